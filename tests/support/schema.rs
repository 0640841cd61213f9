//! Whether a value is what a JSON Schema says, for the few keywords that the server's schemas use.
//!
//! Any other keyword fails: what is not understood is not checked.

use serde_json::Value;

/// The first thing that does not fit, with its place; none if everything fits.
pub(crate) fn violation(schema: &Value, value: &Value) -> Option<String> {
    at(schema, value, "$")
}

fn at(schema: &Value, value: &Value, place: &str) -> Option<String> {
    for (keyword, said) in schema.as_object()? {
        let found = match keyword.as_str() {
            "type" => {
                (!is_of(said.as_str().unwrap(), value)).then(|| format!("{place}: {value} is no {said}"))
            }
            "enum" => (!said.as_array().unwrap().contains(value))
                .then(|| format!("{place}: {value} is none of {said}")),
            "required" => said.as_array().unwrap().iter().find_map(|name| {
                let missing = value.get(name.as_str().unwrap()).is_none();
                missing.then(|| format!("{place}: {name} is missing"))
            }),
            "properties" => said.as_object().unwrap().iter().find_map(|(name, schema)| {
                value.get(name).and_then(|value| at(schema, value, &format!("{place}.{name}")))
            }),
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .find_map(|(index, item)| at(said, item, &format!("{place}[{index}]"))),
            "additionalProperties" if said == false => {
                let known = schema["properties"].as_object().unwrap();
                let strange =
                    value.as_object().into_iter().flatten().find(|(name, _)| !known.contains_key(*name));
                strange.map(|(name, _)| format!("{place}: {name} is not in the schema"))
            }
            "description" | "title" => None,
            other => Some(format!("{place}: the schema says `{other}`, which nobody checks")),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no JSON type `{other}`"),
    }
}
