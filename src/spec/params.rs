//! Parameters of tools as checked data, and the types they can have.
//!
//! Part of `model.rs`, which names them too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamSpec {
    /// The name agents give.
    pub name: String,
    /// The field of the handler's input; the name where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// Unit, format, bounds and default in words; may name settings as `{{ max_rows }}`.
    pub description: String,
    /// For integers: the least value; a number or a setting's name in braces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Value>,
    /// For integers: the greatest value; a number or `"{{ max_rows }}"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Value>,
    /// What holds when it is left out; a constant or a setting in braces. Shown in the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// A maximum that an overlay narrowed, as it was before: it goes on to hold when settings lower it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Value>,
    /// The only values it may have; none for any. Of a list, the only values of its items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Value>,
    /// A regular expression that strings, or a list's strings, must match somewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// What a parameter holds. Each is one plain JSON Schema type, or none for `binding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParamType {
    /// A string (Rust: `String`).
    String,
    /// A whole number (Rust: `u64`).
    Integer,
    /// true or false (Rust: `bool`).
    Boolean,
    /// A list of strings (Rust: `Vec<String>`).
    StringList,
    /// A whole number below zero or above (Rust: `i64`).
    Signed,
    /// A number (Rust: `f64`).
    Number,
    /// A list of whole numbers (Rust: `Vec<i64>`).
    SignedList,
    /// A list of numbers (Rust: `Vec<f64>`).
    NumberList,
    /// A list of true and false (Rust: `Vec<bool>`).
    BooleanList,
    /// An array or an object of SQL parameters; no JSON Schema `type` (Rust: `serde_json::Value`).
    Binding,
    /// Any JSON value but null; no JSON Schema `type` (Rust: `serde_json::Value`).
    Any,
    /// A JSON object (Rust: `serde_json::Map<String, serde_json::Value>`).
    Object,
    /// A list of JSON objects (Rust: `Vec<serde_json::Map<String, serde_json::Value>>`).
    ObjectList,
    /// A length of time as text, `30s`, `15m`, `1h`, `7d`, or seconds; numbers are taken too (Rust: `String`).
    Duration,
}

impl ParamType {
    /// For a list, what its items are.
    #[must_use]
    pub fn item(self) -> Option<Self> {
        match self {
            Self::StringList => Some(Self::String),
            Self::SignedList => Some(Self::Signed),
            Self::NumberList => Some(Self::Number),
            Self::BooleanList => Some(Self::Boolean),
            Self::ObjectList => Some(Self::Object),
            _ => None,
        }
    }

    /// Its name in JSON Schema; none for `binding` and `any`, which have no `type`.
    #[must_use]
    pub fn schema_name(self) -> Option<&'static str> {
        match self {
            Self::String | Self::Duration => Some("string"),
            Self::Integer | Self::Signed => Some("integer"),
            Self::Number => Some("number"),
            Self::Boolean => Some("boolean"),
            Self::StringList | Self::SignedList | Self::NumberList | Self::BooleanList | Self::ObjectList => {
                Some("array")
            }
            Self::Object => Some("object"),
            Self::Binding | Self::Any => None,
        }
    }
}

impl ParamSpec {
    /// The field of the handler's input.
    #[must_use]
    pub fn field_name(&self) -> &str {
        self.field.as_deref().unwrap_or(&self.name)
    }
}
