//! Files that do not hold: every mistake where it stands, all at once.

use super::{Files, notes};
use crate::support::Bench;

/// Whether the start ends with exactly these lines.
#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write("a.yaml", text);
    let (status, out, err) = notes(&bench, &[&file]).run();
    let start = format!("indelible: {}:", file.display());
    let lines: Vec<String> = err.lines().map(|line| line.replacen(&start, "", 1)).collect();
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert_eq!(lines, expected, "{text}");
}

#[test]
fn what_is_wrong_with_the_whole_is_told_together_with_the_rest() {
    refused(
        "instructions:\n  append: 'x {{ max_rowz }}'\nhide: [nothing_of_mine]\ntools:\n  - {tool: read_query, name: write_query}\n",
        &[
            "2:11: instructions of profile `memory`: unknown setting `max_rowz`; did you mean `max_rows`?",
            "3:8: no tool `nothing_of_mine` in profile `memory`; known are `write_query`, `write_query`, `destructive_query`, `list_tables`, `describe_table`, `get_schema`, `create_view`, `append_event`, `snapshot`, `list_snapshots`, `restore_snapshot`, `verify_chain`, `checkpoint`, `get_resume_context` and `search_text`",
            "5:30: in profile `memory`, tools `memory.read_query` and `memory.write_query` are both called `write_query`; rename or hide one",
        ],
    );
}

#[test]
fn every_mistake_is_named_where_it_stands() {
    refused(
        "hid: [x]\nonly: [read_query, serch_text]\ntools:\n  - tool: reed_query\n    titel: x\n  - name: y\n",
        &[
            "1:1: unknown key `hid`; did you mean `hide`?",
            "2:20: no tool `serch_text` in profile `memory`; did you mean `search_text`?",
            "4:11: no tool `reed_query` in profile `memory`; did you mean `read_query`?",
            "5:5: unknown key `titel`; did you mean `title`?",
            "6:5: a tool needs `tool`, the tool that it changes, or `statement`, the SQL of a new one",
        ],
    );
    refused(
        "hide: [run_query]\ntools:\n  - tool: sample_rows\n",
        &[
            "1:8: no tool `run_query` in profile `memory`; there is one with --profile explorer",
            "3:11: no tool `sample_rows` in profile `memory`; there is one with --profile explorer",
        ],
    );
    refused("tools: [\n", &["2:1: not YAML: while parsing a node, did not find expected node content"]);
    refused("only: 5\n", &["1:7: only: invalid type: integer `5`, expected a sequence"]);
    refused("hide: [snapshot]\nhide: [read_query]\n", &["2:1: key `hide` is given twice, first in line 1"]);
    refused("only: []\n", &["1:7: `only` lists no tool, so none would be left"]);
    refused("instructions: {}\n", &["1:15: `instructions` needs `replace` or `append`"]);
    refused(
        "instructions: {append: 'at most {{ max_row }}'}\n",
        &["1:24: instructions of profile `memory`: unknown setting `max_row`; did you mean `max_rows`?"],
    );
}

#[test]
fn what_a_tool_does_and_what_it_may_ask_for_cannot_be_widened() {
    refused(
        "tools:\n  - tool: read_query\n    policy: write\n    statement: SELECT 1\n    params:\n      - {name: limit, maximum: 5000}\n      - {name: limit, minimum: 0}\n      - {name: query, type: integer, required: false}\n      - {name: querry}\n",
        &[
            "3:5: `policy` of tool `memory.read_query` is built in; make a new tool, without `tool`",
            "4:5: `statement` of tool `memory.read_query` is built in; make a new tool, without `tool`",
            "6:32: `maximum` of parameter `limit` of tool `memory.read_query` is 5000, outside of what it can narrow: 1 to 1000",
            "7:16: parameter `limit` is given twice, first in line 6",
            "7:32: `minimum` of parameter `limit` of tool `memory.read_query` is 0, outside of what it can narrow: 1 to 1000",
            "8:23: `type` of parameter `query` of tool `memory.read_query` cannot be changed",
            "8:38: `required` of parameter `query` of tool `memory.read_query` cannot be changed",
            "9:16: tool `memory.read_query` has no parameter `querry`; did you mean `query`?",
        ],
    );
    refused(
        "tools:\n  - tool: read_query\n    params: [{name: limit, maximum: 50, default: 60}]\n",
        &[
            "3:50: the default of parameter `limit` of tool `memory.read_query` does not fit: `limit` must be between 1 and 50, got 60",
        ],
    );
    refused(
        "profiles:\n  - id: wide\n    base: memory\n    defaults: {max_rows: 5000, query_timeout: 60}\n",
        &[
            "4:26: `max_rows` of profile `wide` must be from 1 to 1000, got 5000",
            "4:47: `query_timeout` of profile `wide` must be above 0 and at most 10, got 60",
        ],
    );
}

#[test]
fn a_new_tool_lacks_nothing_and_takes_no_name() {
    refused(
        "tools:\n  - {statement: SELECT 1}\n  - {name: Big, statement: SELECT 1, policy: destroy, words: {purpose: x.}}\n  - {name: t, statement: SELECT 1, policy: read}\n",
        &[
            "2:5: a new tool has no `name`",
            "3:12: tool `Big` needs a name of lower-case letters, digits and `_`, at most 64 of them, got `Big`",
            "3:46: tool `Big` has an unknown `policy`: `destroy`; known are `read` and `write`",
            "4:5: the description of tool `t` has no `purpose`; give it under `words`",
        ],
    );
    refused(
        "tools:\n  - {name: read_query, statement: SELECT 1, policy: read, words: {purpose: x.}}\n",
        &[
            "2:12: in profile `memory`, tools `memory.read_query` and `own.read_query` are both called `read_query`; rename or hide one",
        ],
    );
    let params = "tools:\n  - name: t\n    policy: write\n    limit: 5\n    output: rows\n    words: {purpose: x.}\n    statement: SELECT 1\n    params:\n";
    refused(
        &format!(
            "{params}      - {{name: a, type: text, description: x.}}\n      - {{name: b, type: array, description: x.}}\n      - {{name: c, type: string, minimum: 1, pattern: '[', description: x.}}\n      - {{name: d, type: integer, enum: [1, two, 1], maximum: 1.5, description: x.}}\n      - {{name: e, type: integer, required: true, default: 1}}\n      - {{name: f, type: number, minimum: 2, default: 1, description: x.}}\n"
        ),
        &[
            "4:5: tool `t` writes, so it answers with a line and has no `limit`",
            "5:5: tool `t` writes, so it answers with a line and has no `output`",
            "9:25: parameter `a` of tool `t` has an unknown `type`: `text`; known are `string`, `integer`, `number`, `boolean` and `array`",
            "10:9: parameter `b` of tool `t` has no `items`",
            "11:33: parameter `c` of tool `t` holds no numbers, so it has no `minimum`",
            "11:54: `pattern` of parameter `c` of tool `t` is no regular expression: unclosed character class",
            "12:44: `enum` of parameter `d` of tool `t` does not fit: \"two\" is not of type `integer`",
            "12:49: `enum` of parameter `d` of tool `t` has 1 twice",
            "12:62: `maximum` of parameter `d` of tool `t` must be a whole number",
            "13:9: parameter `e` of tool `t` has no `description`",
            "13:50: parameter `e` of tool `t` is required, so its default would never hold",
            "14:54: the default of parameter `f` of tool `t` does not fit: `f` must be at least 2, got 1",
        ],
    );
}

#[test]
fn the_budgets_are_the_builds() {
    let long = "x".repeat(1_100);
    refused(
        &format!("tools:\n  - tool: verify_chain\n    words: {{purpose: {long}}}\n"),
        &["3:12: the description of tool `memory.verify_chain` is 1376 characters long, above 1024"],
    );
    let many: String = (0..8)
        .map(|n| {
            let purpose = "y".repeat(900);
            format!("  - {{name: t{n}, policy: read, words: {{purpose: {purpose}}}, statement: SELECT 1}}\n")
        })
        .collect();
    let bench = Bench::notes();
    let files = Files::new();
    let (status, line) = notes(&bench, &[&files.write("a.yaml", &format!("tools:\n{many}"))]).refusal();
    assert_eq!(status, 2);
    assert!(
        line.contains("a.yaml:1:1: tools/list of profile `memory` is ") && line.contains("above 16000"),
        "{line}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let bench = Bench::notes();
    let files = Files::new();
    let (status, line) = notes(&bench, &[&files.folder.path().join("none.yaml")]).refusal();
    assert_eq!(status, 2);
    assert!(line.contains("none.yaml:1:1: cannot be read: No such file"), "{line}");
}
