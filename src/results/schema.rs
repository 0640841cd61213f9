//! JSON Schemas of results, as plain as clients like them.
//!
//! schemars derives them; the parts below replace what would come out as a list of types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// The `extend` key of the words that a client gets as `description`. Doc comments are for those who read the
/// code; every client pays for each word of a schema in each session.
const NOTE: &str = "note";

/// The schema of a result struct: an object, everything in line, no `$schema`, no `format`, and as
/// descriptions nothing but notes.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut value, true);
    value
}

/// Drops what says little to a client: titles of Rust types, doc comments, number formats, the bound of
/// unsigned numbers, and below the top, that every field is there.
fn plain(value: &mut Value, top: bool) {
    match value {
        Value::Object(map) => {
            // Under `properties` the same keys are names of fields, whose schemas are objects.
            for key in ["title", "description", "format", "minimum"] {
                if map.get(key).is_some_and(|value| !value.is_object()) {
                    map.shift_remove(key);
                }
            }
            if map.get(NOTE).is_some_and(Value::is_string)
                && let Some(note) = map.shift_remove(NOTE)
            {
                map.insert("description".to_owned(), note);
            }
            if !top && map.get("required").is_some_and(Value::is_array) {
                map.shift_remove("required");
            }
            map.values_mut().for_each(|value| plain(value, false));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| plain(value, false)),
        _ => {}
    }
}

/// Any JSON.
pub(super) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// An object with any fields.
pub(super) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
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
