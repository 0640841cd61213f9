//! Edits of JSON settings that keep comments, order and layout.
//!
//! It accepts comments and commas at the end, which several clients allow, and no other liberties: what a client
//! would read otherwise than we do is refused.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Map, Value};

/// The text with `entry` under `key`.`name`; fields of an entry that is there already are set one by one.
///
/// # Errors
/// The text is no JSON object, or something else stands in the way; in words.
pub(super) fn with_entry(
    text: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, String> {
    edit(text, |root| {
        let servers = object_of(root, key)?;
        let Some(servers) = servers else {
            root.append(key, CstInputValue::Object(vec![(name.to_owned(), object(entry))]));
            return Ok(());
        };
        let Some(there) = object_of(&servers, name)? else {
            servers.append(name, object(entry));
            return Ok(());
        };
        for (field, value) in entry {
            match property(&there, field)? {
                Some(found)
                    if found.value().and_then(|value| value.to_serde_value()).as_ref() == Some(value) => {}
                Some(found) => found.set_value(input(value)),
                None => {
                    there.append(field, input(value));
                }
            }
        }
        Ok(())
    })
}

/// Parses, edits the root object, and gives the text; an empty text becomes a file of its own.
pub(super) fn edit(
    text: &str,
    change: impl FnOnce(&CstObject) -> Result<(), String>,
) -> Result<String, String> {
    let is_new = text.trim().is_empty();
    let root = CstRootNode::parse(if is_new { "{}\n" } else { text }, &rules())
        .map_err(|error| format!("it is not JSON: {error}"))?;
    let object = root.object_value().ok_or("it is not a JSON object")?;
    change(&object)?;
    Ok(root.to_string())
}

/// The property of this name, which must not be there twice.
pub(super) fn property(
    object: &CstObject,
    name: &str,
) -> Result<Option<jsonc_parser::cst::CstObjectProp>, String> {
    let mut found =
        object.properties().into_iter().filter(|property| property.decoded_name().as_deref() == Some(name));
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(format!("`{name}` is there twice")),
        (found, None) => Ok(found),
    }
}

/// The object under this name, if there is anything.
pub(super) fn object_of(object: &CstObject, name: &str) -> Result<Option<CstObject>, String> {
    let Some(found) = property(object, name)? else { return Ok(None) };
    match found.value().and_then(|value: CstNode| value.as_object()) {
        Some(object) => Ok(Some(object)),
        None => Err(format!("`{name}` is there and is not an object")),
    }
}

/// A value, to be put in.
pub(super) fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => object(fields),
    }
}

fn object(fields: &Map<String, Value>) -> CstInputValue {
    CstInputValue::Object(fields.iter().map(|(name, value)| (name.clone(), input(value))).collect())
}

fn rules() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}
