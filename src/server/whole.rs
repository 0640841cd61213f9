//! JSON as a message or a batch, with a look at whether a member of any object in it stands there twice.
//!
//! Readers differ in which of the two they take, and the library takes none. It judges nothing else.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess};
use serde_json::{Map, Value};

/// A message, or a batch of some; and whether a member of a message itself stands in it more than once, or one of an object
/// below it there.
pub(super) struct Whole {
    pub(super) value: Value,
    pub(super) twice: bool,
    pub(super) twice_below: bool,
}

impl From<Value> for Whole {
    fn from(value: Value) -> Self {
        Self { value, twice: false, twice_below: false }
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Whole;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Whole, A::Error> {
                let (mut object, mut twice, mut twice_below) = (Map::new(), false, false);
                while let Some((name, member)) = members.next_entry::<String, Whole>()? {
                    twice_below |= member.twice | member.twice_below;
                    twice |= object.insert(name, member.value).is_some();
                }
                Ok(Whole { value: Value::Object(object), twice, twice_below })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<Whole, A::Error> {
                let (mut batch, mut twice, mut twice_below) = (Vec::new(), false, false);
                while let Some(message) = messages.next_element::<Whole>()? {
                    twice |= message.twice;
                    twice_below |= message.twice_below;
                    batch.push(message.value);
                }
                Ok(Whole { value: Value::Array(batch), twice, twice_below })
            }

            fn visit_bool<E>(self, value: bool) -> Result<Whole, E> {
                Ok(Value::from(value).into())
            }

            fn visit_i64<E>(self, value: i64) -> Result<Whole, E> {
                Ok(Value::from(value).into())
            }

            fn visit_u64<E>(self, value: u64) -> Result<Whole, E> {
                Ok(Value::from(value).into())
            }

            fn visit_f64<E>(self, value: f64) -> Result<Whole, E> {
                Ok(Value::from(value).into())
            }

            fn visit_str<E>(self, value: &str) -> Result<Whole, E> {
                Ok(Value::from(value).into())
            }

            fn visit_unit<E>(self) -> Result<Whole, E> {
                Ok(Value::Null.into())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
