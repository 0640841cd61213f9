//! `indelible call TOOL ...`: one tool call by the same way an agent's goes, without the protocol.
//!
//! It checks no argument; the tool does, as for an agent.

use super::ask::Terminal;
use super::stdin::Stdin;
use super::{Program, output, runtime};
use crate::config::Settings;
use crate::error::{EXIT_FAILURE, EXIT_OK, StartError};
use crate::outcome::CallContext;
use crate::server::{Service, shut_down};
use serde_json::{Map, Value};
use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

/// Prints the tool's text, and returns exit status 1 when it is an error's.
pub(super) fn call<P: Program>(
    program: &P,
    settings: &Settings,
    tool: &str,
    arguments: &[String],
) -> Result<u8, StartError> {
    let arguments = parse(arguments, &mut Stdin::new(std::io::stdin()))?;
    runtime::run(async {
        let service = program.open(settings).await?;
        let stop = runtime::signals(false)?.stop;
        let asks = Arc::new(Terminal { stop: stop.clone() });
        let context = CallContext { cancel: stop, confirm: Some(asks), ..CallContext::default() };
        let outcome = service.call(tool.to_owned(), Some(arguments), context).await;
        shut_down(Instant::now(), |deadline| service.shutdown(deadline)).await;
        let outcome = outcome.ok_or_else(|| unknown(tool, &service.descriptors()))?;
        output::print(&outcome.text)?;
        Ok(if outcome.error.is_some() { EXIT_FAILURE } else { EXIT_OK })
    })
}

/// The arguments as an object. Values by name are strings, or stand on stdin; the tool's own checks make numbers
/// of them.
fn parse(arguments: &[String], stdin: &mut Stdin<impl Read>) -> Result<Map<String, Value>, StartError> {
    if let [json] = arguments
        && json.trim_start().starts_with('{')
    {
        return serde_json::from_str(json)
            .map_err(|error| StartError::usage(format!("the arguments are not a JSON object: {error}")));
    }
    let mut object = Map::new();
    for argument in arguments {
        let Some((name, value)) = argument.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let rule = "give NAME=VALUE pairs, or all arguments as one JSON object";
            return Err(StartError::usage(format!("argument `{argument}`: {rule}")));
        };
        if object.insert(name.to_owned(), stdin.value(name, value)?.into()).is_some() {
            return Err(StartError::usage(format!("argument `{name}` is given twice")));
        }
    }
    Ok(object)
}

fn unknown(tool: &str, descriptors: &[Value]) -> StartError {
    let names: Vec<&str> = descriptors.iter().filter_map(|d| d.get("name")?.as_str()).collect();
    let nearest = names.iter().map(|name| (strsim::osa_distance(tool, name), *name)).min();
    let meant = match nearest {
        // Up to a third of the letters wrong still looks like a slip.
        Some((distance, name)) if distance <= name.len() / 3 => format!("; did you mean `{name}`?"),
        _ => format!("; the tools are {}", names.join(", ")),
    };
    StartError::usage(format!("unknown tool `{tool}`{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_pairs_or_one_object() {
        let rows: &[(&[&str], Value)] = &[
            (&[], json!({})),
            (&["query=SELECT 1", "limit=5"], json!({"query": "SELECT 1", "limit": "5"})),
            (&["query=SELECT a=b", "x="], json!({"query": "SELECT a=b", "x": ""})),
            (&[" {\"limit\": 5}"], json!({"limit": 5})),
            (&["params=[1,2]"], json!({"params": "[1,2]"})),
            (&["a=@-", "b=@-.x"], json!({"a": "{\"x\": 1}", "b": "1"})),
        ];
        for (arguments, expected) in rows {
            let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
            let mut stdin = Stdin::new(&b"{\"x\": 1}\n"[..]);
            assert_eq!(parse(&arguments, &mut stdin).map(Value::from), Ok(expected.clone()));
        }
        let rows: &[(&[&str], &str)] = &[
            (&["x"], "argument `x`: give NAME=VALUE pairs, or all arguments as one JSON object"),
            (&["=x"], "argument `=x`: give NAME=VALUE pairs, or all arguments as one JSON object"),
            (&["a=1", "a=2"], "argument `a` is given twice"),
            (&["{"], "the arguments are not a JSON object: EOF while parsing an object at line 1 column 1"),
        ];
        for (arguments, expected) in rows {
            let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
            let mut stdin = Stdin::new(&b""[..]);
            assert_eq!(parse(&arguments, &mut stdin), Err(StartError::usage(*expected)));
        }
    }

    #[test]
    fn an_unknown_tool_is_answered_with_the_nearest_or_with_all() {
        let tools = [json!({"name": "read_query"}), json!({"name": "verify_chain"})];
        assert_eq!(
            unknown("red_query", &tools).message,
            "unknown tool `red_query`; did you mean `read_query`?"
        );
        let all = "unknown tool `x`; the tools are read_query, verify_chain";
        assert_eq!(unknown("x", &tools).message, all);
    }
}
