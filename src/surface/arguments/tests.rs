//! Arguments as clients send them, and what handlers get of them.

use super::*;
use crate::surface::built_in_manifest;
use proptest::prelude::*;
use serde_json::json;

fn settings() -> SurfaceSettings {
    let manifest = built_in_manifest().unwrap();
    let defaults = manifest.profile("memory").unwrap().defaults.clone();
    SurfaceSettings { max_rows: 50, default_limit: 20, ..SurfaceSettings::for_profile(&defaults) }
}

fn run(tool: &str, arguments: Value) -> Result<Value, String> {
    let manifest = built_in_manifest().unwrap();
    let spec = manifest.tool(&format!("memory.{tool}")).unwrap();
    let given = match arguments {
        Value::Null => None,
        Value::Object(map) => Some(map),
        other => panic!("not arguments: {other}"),
    };
    check(spec, &settings(), given).map(Value::Object).map_err(|error| error.message)
}

#[test]
fn what_clients_commonly_send_is_taken() {
    #[track_caller]
    fn taken(tool: &str, given: Value, expected: Value) {
        assert_eq!(run(tool, given.clone()), Ok(expected), "{tool} {given}");
    }
    taken("read_query", json!({"query": "q"}), json!({"query": "q", "limit": 20}));
    taken("read_query", json!({"query": "q", "limit": "12"}), json!({"query": "q", "limit": 12}));
    taken("read_query", json!({"query": "q", "limit": 2.0}), json!({"query": "q", "limit": 2}));
    taken("read_query", json!({"query": "q", "limit": null}), json!({"query": "q", "limit": 20}));
    taken("read_query", json!({"query": "", "limit": 50}), json!({"query": "", "limit": 50}));
    let bound = json!({"query": "q", "params": [1, "x"], "limit": 20});
    taken("read_query", json!({"query": "q", "params": [1, "x"]}), bound.clone());
    taken("read_query", json!({"query": "q", "params": "[1,\"x\"]"}), bound);
    taken(
        "read_query",
        json!({"query": "q", "params": "{\"id\": 3}"}),
        json!({"query": "q", "params": {"id": 3}, "limit": 20}),
    );
    taken("list_tables", Value::Null, json!({"include_row_counts": true}));
    taken("list_tables", json!({"include_row_counts": "FALSE"}), json!({"include_row_counts": false}));
    taken("verify_chain", Value::Null, json!({}));
    taken("append_event", json!({"content": "[1]"}), json!({"content": "[1]", "kind": "note"}));
    taken(
        "get_resume_context",
        json!({"exclude_kinds": "[\"prompt\"]"}),
        json!({"max_events": 50, "exclude_kinds": ["prompt"]}),
    );
}

#[test]
fn a_mistake_is_named_with_its_field_and_rule_in_one_line() {
    #[track_caller]
    fn refused(tool: &str, given: Value, expected: &str) {
        assert_eq!(run(tool, given.clone()), Err(expected.to_owned()), "{tool} {given}");
    }
    refused("read_query", Value::Null, "`query` is missing; read_query needs it");
    refused("read_query", json!({"query": null}), "`query` is missing; read_query needs it");
    refused("read_query", json!({"query": 5}), "`query` must be a string, got the number 5");
    refused("read_query", json!({"query": "q", "limit": 0}), "`limit` must be between 1 and 50, got 0");
    refused("read_query", json!({"query": "q", "limit": 51}), "`limit` must be between 1 and 50, got 51");
    refused("read_query", json!({"query": "q", "limit": "-3"}), "`limit` must be between 1 and 50, got -3");
    refused(
        "read_query",
        json!({"query": "q", "limit": 2.5}),
        "`limit` must be a whole number, got the number 2.5",
    );
    refused(
        "read_query",
        json!({"query": "q", "limit": "ten"}),
        "`limit` must be a whole number, got the string \"ten\"",
    );
    refused("read_query", json!({"query": "q", "limit": true}), "`limit` must be a whole number, got true");
    refused(
        "read_query",
        json!({"query": "q", "limt": 5}),
        "`limt` is not an argument of read_query; did you mean `limit`? it takes `query`, `params` and `limit`",
    );
    refused(
        "read_query",
        json!({"sql": "q"}),
        "`sql` is not an argument of read_query, which takes `query`, `params` and `limit`; `query` is missing; read_query needs it",
    );
    refused("verify_chain", json!({"a": 1}), "`a` is not an argument of verify_chain, which takes none");
    refused(
        "read_query",
        json!({"query": "q", "params": "1"}),
        "`params` must be an array (values by position) or an object (values by name), got the string \"1\"",
    );
    refused(
        "list_tables",
        json!({"include_row_counts": 1}),
        "`include_row_counts` must be true or false, got the number 1",
    );
    refused(
        "get_resume_context",
        json!({"exclude_kinds": "prompt"}),
        "`exclude_kinds` must be a list of strings, such as [\"a\",\"b\"], got the string \"prompt\"",
    );
    refused(
        "get_resume_context",
        json!({"exclude_kinds": ["a", 1]}),
        "`exclude_kinds` must be a list of strings, got the number 1 at position 2",
    );
}

#[test]
fn a_hostile_name_stays_one_short_line() {
    let mut given = Map::new();
    given.insert(format!("a\n{}\u{1b}[31m", "b".repeat(10_000)), json!(1));
    let message = run("verify_chain", Value::Object(given)).unwrap_err();
    assert!(message.len() < 200 && !message.contains(['\n', '\u{1b}']), "{message:?}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        "[0-9.\\-\\[\\]{}\"]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_passes_is_complete_typed_and_within_bounds(query in any_json(), params in any_json(), limit in any_json()) {
        match run("read_query", json!({"query": query, "params": params, "limit": limit})) {
            Ok(checked) => {
                prop_assert!(checked["query"].is_string());
                prop_assert!(checked["limit"].as_u64().is_some_and(|limit| (1..=50).contains(&limit)));
                let bound = checked.get("params");
                prop_assert!(bound.is_none_or(|value| value.is_array() || value.is_object()));
                // Checking again changes nothing, so handlers and logs see the same call.
                prop_assert_eq!(run("read_query", checked.clone()), Ok(checked));
            }
            Err(message) => prop_assert!(!message.is_empty() && !message.contains('\n'), "{}", message),
        }
    }
}

fn own(kind: ParamType) -> ParamSpec {
    ParamSpec {
        name: "x".to_owned(),
        field: None,
        kind,
        required: false,
        description: String::new(),
        minimum: None,
        maximum: None,
        default: None,
        ceiling: None,
        choices: Vec::new(),
        pattern: None,
    }
}

#[test]
fn parameters_of_statements_are_checked_by_type_choice_pattern_and_bounds() {
    #[track_caller]
    fn gives(param: &ParamSpec, given: Value, expected: Result<Value, &str>) {
        let settings = settings();
        assert_eq!(value(param, &settings, given.clone()), expected.map_err(str::to_owned), "{given}");
    }
    let signed = ParamSpec { minimum: Some(json!(-5)), maximum: Some(json!(5)), ..own(ParamType::Signed) };
    gives(&signed, json!(-5), Ok(json!(-5)));
    gives(&signed, json!("4"), Ok(json!(4)));
    gives(&signed, json!(-6), Err("`x` must be between -5 and 5, got -6"));
    gives(&own(ParamType::Signed), json!(i64::MIN), Ok(json!(i64::MIN)));
    gives(
        &own(ParamType::Signed),
        json!(u64::MAX),
        Err("`x` must be at most 9223372036854775807, got 18446744073709551615"),
    );
    let number = ParamSpec { minimum: Some(json!(0)), maximum: Some(json!(1.5)), ..own(ParamType::Number) };
    gives(&number, json!(1), Ok(json!(1.0)));
    gives(&number, json!("0.25"), Ok(json!(0.25)));
    gives(&number, json!(1.6), Err("`x` must be between 0 and 1.5, got 1.6"));
    gives(&number, json!("NaN"), Err("`x` must be a number, got the string \"NaN\""));
    gives(&number, json!(true), Err("`x` must be a number, got true"));
    let choice = ParamSpec { choices: vec![json!("a"), json!("b")], ..own(ParamType::String) };
    gives(&choice, json!("b"), Ok(json!("b")));
    gives(&choice, json!("c"), Err("`x` must be one of \"a\", \"b\", got the string \"c\""));
    let pattern = ParamSpec { pattern: Some("^[0-9]{4}$".to_owned()), ..own(ParamType::String) };
    gives(&pattern, json!("2026"), Ok(json!("2026")));
    gives(&pattern, json!("26"), Err("`x` must match the pattern `^[0-9]{4}$`, got the string \"26\""));
    let list = ParamSpec { maximum: Some(json!(3)), ..own(ParamType::SignedList) };
    gives(&list, json!([1, 2]), Ok(json!([1, 2])));
    gives(&list, json!("[1,\"2\"]"), Ok(json!([1, 2])));
    gives(&list, json!([]), Ok(json!([])));
    gives(&list, json!([1, 4]), Err("position 2 of `x` must be between -9223372036854775808 and 3, got 4"));
    gives(&list, json!(1), Err("`x` must be a list of whole numbers, such as [1,2], got the number 1"));
    gives(&own(ParamType::BooleanList), json!([true, "false"]), Ok(json!([true, false])));
    gives(
        &own(ParamType::NumberList),
        json!([1, "x"]),
        Err("position 2 of `x` must be a number, got the string \"x\""),
    );
}

#[test]
fn a_maximum_that_was_narrowed_does_not_rise_above_the_settings() {
    let param = ParamSpec {
        minimum: Some(json!(1)),
        maximum: Some(json!(80)),
        ceiling: Some(json!("{{ max_rows }}")),
        ..own(ParamType::Integer)
    };
    assert_eq!(value(&param, &settings(), json!(60)), Err("`x` must be between 1 and 50, got 60".to_owned()));
    let wide = SurfaceSettings { max_rows: 1000, ..settings() };
    assert_eq!(value(&param, &wide, json!(60)), Ok(json!(60)));
    assert_eq!(value(&param, &wide, json!(81)), Err("`x` must be between 1 and 80, got 81".to_owned()));
}
