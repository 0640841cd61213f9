//! What the structs of a YAML file have in common: known keys, a JSON Schema for editors, a walk over their texts.
//!
//! One macro makes the structs, so that keys, schema and walk cannot come apart. It parses nothing and holds no
//! rule about meaning.

use super::position::Path;
use serde_json::{Map, Value, json};

/// A value of a YAML file, as parsed.
pub trait Shape {
    /// The JSON Schema that an editor checks it with.
    fn schema() -> Value;

    /// Shows every text to `visit`, with its place; SQL is none.
    fn texts(&mut self, path: &Path, visit: &mut dyn FnMut(&Path, &mut String)) {
        let _ = (path, visit);
    }
}

impl Shape for String {
    fn schema() -> Value {
        json!({ "type": "string" })
    }

    fn texts(&mut self, path: &Path, visit: &mut dyn FnMut(&Path, &mut String)) {
        visit(path, self);
    }
}

impl Shape for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl Shape for u64 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0 })
    }
}

impl Shape for f64 {
    fn schema() -> Value {
        json!({ "type": "number" })
    }
}

impl Shape for Value {
    fn schema() -> Value {
        json!({})
    }

    fn texts(&mut self, path: &Path, visit: &mut dyn FnMut(&Path, &mut String)) {
        match self {
            Self::String(text) => visit(path, text),
            Self::Array(items) => items.texts(path, visit),
            Self::Object(map) => {
                for (key, value) in map {
                    value.texts(&path.key(key), visit);
                }
            }
            _ => {}
        }
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }

    fn texts(&mut self, path: &Path, visit: &mut dyn FnMut(&Path, &mut String)) {
        for (index, item) in self.iter_mut().enumerate() {
            item.texts(&path.index(index), visit);
        }
    }
}

/// A schema with the help and the choices of its key.
#[must_use]
pub fn described(schema: Value, help: Option<&str>, choices: &[&str]) -> Value {
    let mut described = Map::new();
    if let Some(help) = help {
        described.insert("description".to_owned(), json!(help));
    }
    if let Value::Object(schema) = schema {
        described.extend(schema);
    }
    if !choices.is_empty() {
        // Of a list, the choices are its items'.
        match described.get_mut("items") {
            Some(Value::Object(items)) => items.insert("enum".to_owned(), json!(choices)),
            _ => described.insert("enum".to_owned(), json!(choices)),
        };
    }
    Value::Object(described)
}

/// The schema of a whole file, to be committed under `schemas/`.
#[must_use]
pub fn document<T: Shape>(title: &str) -> Value {
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    document.insert("title".to_owned(), json!(title));
    if let Value::Object(schema) = T::schema() {
        document.extend(schema);
    }
    Value::Object(document)
}

/// Structs of which every field may be missing. Per field: the key, its name in Rust, its type, what it is for,
/// and the words it can be.
macro_rules! raw {
    ($($(#[$doc:meta])* $name:ident $expecting:literal {
        $($key:literal $field:ident: $type:ty $(= $help:literal)? $([$($choice:literal),*])?,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, serde::Deserialize)]
            #[serde(expecting = $expecting)]
            pub struct $name {
                $(
                    #[doc = concat!("`", $key, "`.", $(" ", $help)?)]
                    #[serde(default, rename = $key)]
                    pub $field: Option<$type>,
                )*
            }

            impl $name {
                /// The keys, in the order of the declaration.
                pub const KEYS: &'static [&'static str] = &[$($key,)*];
            }

            impl $crate::spec::shape::Shape for $name {
                fn schema() -> serde_json::Value {
                    let mut properties = serde_json::Map::new();
                    $(
                        #[allow(unused_mut, unused_assignments, reason = "help and choices may be left out")]
                        {
                            let mut help: Option<&str> = None;
                            $(help = Some($help);)?
                            let mut choices: &[&str] = &[];
                            $(choices = &[$($choice),*];)?
                            let schema = <$type as $crate::spec::shape::Shape>::schema();
                            properties.insert($key.to_owned(), $crate::spec::shape::described(schema, help, choices));
                        }
                    )*
                    serde_json::json!({ "type": "object", "properties": properties, "additionalProperties": false })
                }

                fn texts(
                    &mut self,
                    path: &$crate::spec::position::Path,
                    visit: &mut dyn FnMut(&$crate::spec::position::Path, &mut String),
                ) {
                    $(
                        if let Some(value) = &mut self.$field {
                            $crate::spec::shape::Shape::texts(value, &path.key($key), visit);
                        }
                    )*
                }
            }
        )*
    };
}

pub(crate) use raw;
