//! JSON Schemas of results, as plain as clients like them.
//!
//! schemars derives them; the parts below replace what would come out as a list of types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// The schema of a result struct: an object, everything in line, no `$schema`, no `format`.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut value);
    value
}

/// Drops what says nothing to a client: titles of Rust types, number formats.
fn plain(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if !map.get("title").is_some_and(Value::is_object) {
                map.remove("title");
            }
            if map.get("format").is_some_and(Value::is_string) {
                map.remove("format");
            }
            map.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

/// null or a number: no `type`, the description says it.
pub(super) fn integer_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// null or a string.
pub(super) fn string_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// null or a reason.
pub(super) fn truncated(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": [null, "max_rows", "max_output_bytes", "max_cell_chars"] })
}

/// Rows of cells.
pub(super) fn rows(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "array", "items": {} } })
}
