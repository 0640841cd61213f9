//! Parameters an agent gives for a statement, and how they are bound.
//!
//! By position (an array) or by name (an object, with or without the prefix character). Nothing is
//! spliced into SQL here or anywhere else.

use super::fault::Fault;
use crate::error::{ErrorCode, ToolError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rusqlite::Statement;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

/// One value to bind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BindValue {
    /// NULL.
    Null,
    /// INTEGER; booleans come as 1 and 0.
    Integer(i64),
    /// REAL.
    Real(f64),
    /// TEXT.
    Text(String),
    /// BLOB; given as `{"base64": ...}`.
    Blob(Vec<u8>),
}

/// All parameters of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Params {
    /// None were given.
    #[default]
    None,
    /// An array: the first is parameter 1.
    Positional(Vec<BindValue>),
    /// An object.
    Named(Vec<(String, BindValue)>),
}

/// What to do about parameters that do not fit.
const HOW: &str = "give an array with one value for each, or an object with their names";

impl Params {
    /// About how many bytes they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Positional(values) => values.iter().map(BindValue::bytes).sum(),
            Self::Named(values) => values.iter().map(|(name, value)| name.len() + value.bytes()).sum(),
        }
    }
}

impl BindValue {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            _ => size_of::<Self>(),
        }
    }
}

impl rusqlite::ToSql for BindValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Blob(value) => ValueRef::Blob(value),
        }))
    }
}

impl Params {
    /// Takes the `params` argument apart; texts are moved, not copied: they may have 60 MB.
    ///
    /// # Errors
    /// A value that SQLite cannot hold as it is (a nested array or object, an integer beyond 64 bits),
    /// naming the parameter.
    pub fn from_json(value: Option<serde_json::Value>) -> Result<Self, ToolError> {
        match value {
            None | Some(serde_json::Value::Null) => Ok(Self::None),
            Some(serde_json::Value::Array(items)) => items
                .into_iter()
                .enumerate()
                .map(|(at, item)| bind_value(&format!("{}", at + 1), item))
                .collect::<Result<_, _>>()
                .map(Self::Positional),
            Some(serde_json::Value::Object(items)) => items
                .into_iter()
                .map(|(name, item)| {
                    let value = bind_value(&name, item)?;
                    Ok((name, value))
                })
                .collect::<Result<_, ToolError>>()
                .map(Self::Named),
            Some(_) => Err(ToolError::arguments("`params` must be an array or an object of values")),
        }
    }

    /// Binds them all.
    ///
    /// # Errors
    /// A parameter that is missing, or given and not in the statement, by name.
    pub fn bind(&self, statement: &mut Statement<'_>) -> Result<(), Fault> {
        let count = statement.parameter_count();
        match self {
            Self::None if count == 0 => Ok(()),
            Self::None => Err(wrong(format!(
                "the statement has {count} parameters ({}) and `params` is missing; {HOW}",
                parameter_names(statement)
            ))),
            Self::Positional(values) => {
                if values.len() != count {
                    return Err(wrong(format!(
                        "the statement has {count} parameters ({}) and `params` has {} values; {HOW}",
                        parameter_names(statement),
                        values.len()
                    )));
                }
                for (at, value) in values.iter().enumerate() {
                    bind_one(statement, at + 1, value)?;
                }
                Ok(())
            }
            Self::Named(values) => bind_named(statement, values),
        }
    }
}

fn bind_named(statement: &mut Statement<'_>, values: &[(String, BindValue)]) -> Result<(), Fault> {
    let names: Vec<Option<String>> =
        (1..=statement.parameter_count()).map(|at| statement.parameter_name(at).map(str::to_owned)).collect();
    let mut used = vec![false; values.len()];
    let mut missing = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let index = at + 1;
        let Some(name) = name else {
            return Err(wrong(format!(
                "parameter {index} is a bare `?` and has no name: give `params` as an array"
            )));
        };
        let found =
            values.iter().position(|(given, _)| given == name || name.get(1..) == Some(given.as_str()));
        let Some(found) = found else {
            missing.push(name.as_str());
            continue;
        };
        if let Some((_, value)) = values.get(found) {
            bind_one(statement, index, value)?;
        }
        if let Some(mark) = used.get_mut(found) {
            *mark = true;
        }
    }
    let extra: Vec<&str> =
        values.iter().zip(&used).filter(|(_, used)| !**used).map(|((name, _), _)| name.as_str()).collect();
    let mut faults = Vec::new();
    match missing.len() {
        0 => {}
        1 => faults.push(format!("parameter {} is missing from `params`", named(&missing))),
        _ => faults.push(format!("parameters {} are missing from `params`", named(&missing))),
    }
    if !extra.is_empty() {
        let what = if extra.len() == 1 { "is not a parameter" } else { "are not parameters" };
        faults.push(format!(
            "`params` has {}, which {what} of the statement ({})",
            named(&extra),
            parameter_names(statement)
        ));
    }
    if faults.is_empty() { Ok(()) } else { Err(wrong(faults.join("; "))) }
}

/// Up to ten names in a row, each on one short line: they may be anything.
fn named(names: &[&str]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(10).map(|name| crate::render::one_line(name, 60)).collect();
    if names.len() > shown.len() {
        shown.push("...".to_owned());
    }
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    crate::spec::diagnostic::listed(&shown)
}

fn bind_one(statement: &mut Statement<'_>, index: usize, value: &BindValue) -> Result<(), Fault> {
    statement.raw_bind_parameter(index, value).map_err(|error| {
        let words = super::fault::message(&error);
        Fault::error(ErrorCode::TooBig, format!("parameter {index} cannot be bound: {words}"))
    })
}

fn parameter_names(statement: &Statement<'_>) -> String {
    let count = statement.parameter_count();
    let mut names: Vec<String> = (1..=count.min(20))
        .map(|at| statement.parameter_name(at).map_or_else(|| "?".to_owned(), str::to_owned))
        .collect();
    if count > 20 {
        names.push("...".to_owned());
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn wrong(message: String) -> Fault {
    Fault::error(ErrorCode::InvalidParams, message)
}

fn bind_value(name: &str, value: serde_json::Value) -> Result<BindValue, ToolError> {
    match value {
        serde_json::Value::Null => Ok(BindValue::Null),
        serde_json::Value::Bool(value) => Ok(BindValue::Integer(i64::from(value))),
        serde_json::Value::String(text) => Ok(BindValue::Text(text)),
        serde_json::Value::Number(number) => {
            if let Some(value) = number.as_i64() {
                Ok(BindValue::Integer(value))
            } else if let (true, Some(value)) = (number.is_f64(), number.as_f64()) {
                Ok(BindValue::Real(value))
            } else {
                Err(unbindable(name, "an integer beyond 64 bits; give it as a string"))
            }
        }
        serde_json::Value::Object(object) if object.len() == 1 && object.contains_key("base64") => {
            let text = object.get("base64").and_then(serde_json::Value::as_str);
            let bytes = text.and_then(|text| STANDARD.decode(text).ok());
            let bytes = bytes.ok_or_else(|| unbindable(name, "`base64` with something else than base64"))?;
            Ok(BindValue::Blob(bytes))
        }
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            Err(unbindable(name, "an array or object; give it as JSON text, for json_each say"))
        }
    }
}

fn unbindable(name: &str, what: &str) -> ToolError {
    let name = crate::render::one_line(name, 60);
    ToolError::new(ErrorCode::InvalidParams, format!("parameter `{name}` cannot be bound: it is {what}"))
}
