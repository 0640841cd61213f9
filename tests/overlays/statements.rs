//! Tools made of SQL: compiled at the start, called like built-in ones.

use super::{Files, names, notes, tool};
use crate::support::Bench;
use serde_json::json;

const TOOLS: &str = r#"
tools:
  - name: find_notes
    title: Find notes
    policy: read
    words: {purpose: Find notes by title.}
    statement: SELECT id, title FROM notes WHERE title LIKE '%' || :word || '%' ORDER BY id
    params:
      - {name: word, type: string, required: true, description: Part of the title.}
  - name: some_notes
    policy: read
    limit: 2
    words: {purpose: Some notes.}
    statement: |
      SELECT id FROM notes
      WHERE (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) AND :flag AND coalesce(score, 0) >= :least
      ORDER BY id
    params:
      - {name: ids, type: array, items: integer, maximum: 99, description: Their ids.}
      - {name: flag, type: boolean, default: true, description: Whether to show any.}
      - {name: least, type: number, default: 0, minimum: -1.5, description: The least score.}
  - name: add_tag
    policy: write
    words: {purpose: Tag a note.}
    statement: INSERT INTO tags(note_id, tag) VALUES (:note, :tag)
    params:
      - {name: note, type: integer, required: true, description: The note's id.}
      - {name: tag, type: string, enum: [red, blue], default: red, description: The tag.}
  - name: rename_note
    policy: write
    words: {purpose: Rename a note.}
    statement: UPDATE notes SET title = :title WHERE id = :id OR :everywhere
    params:
      - {name: id, type: integer, required: true, description: Its id.}
      - {name: title, type: string, required: true, description: Its title.}
      - {name: everywhere, type: boolean, default: false, description: All of them.}
  - name: put_note
    policy: write
    words: {purpose: Put a note in its place.}
    statement: REPLACE INTO notes(id, title) VALUES (:id, :title)
    params:
      - {name: id, type: integer, required: true, description: Its id.}
      - {name: title, type: string, required: true, description: Its title.}
"#;

#[test]
fn they_stand_beside_the_built_in_ones_with_plain_schemas() {
    let bench = Bench::notes();
    let files = Files::new();
    let mut client = notes(&bench, &[&files.write("a.yaml", TOOLS)]).start();
    let listed = names(&mut client);
    assert_eq!(listed.len(), 15 + 5, "{listed:?}");
    let some = tool(&mut client, "some_notes");
    assert_eq!(some["title"], "Some notes");
    assert_eq!(
        some["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "ids": {"type": "array", "items": {"type": "integer", "maximum": 99}, "description": "Their ids."},
                "flag": {"type": "boolean", "description": "Whether to show any.", "default": true},
                "least": {"type": "number", "description": "The least score.", "minimum": -1.5, "default": 0},
            },
            "additionalProperties": false,
        })
    );
    assert_eq!(
        some["description"],
        "Some notes.\nCSV with header and trailer `# N rows`; at most 2 rows.\nChanges nothing."
    );
    let tag = &tool(&mut client, "add_tag")["inputSchema"]["properties"]["tag"];
    assert_eq!(tag["enum"], json!(["red", "blue"]));
}

#[test]
fn hints_come_from_the_compiled_statement() {
    let bench = Bench::notes();
    let files = Files::new();
    let mut client = notes(&bench, &[&files.write("a.yaml", TOOLS)]).start();
    for (name, read_only, destructive) in [
        ("find_notes", true, false),
        ("add_tag", false, false),
        ("rename_note", false, true),
        ("put_note", false, true),
    ] {
        let hints = tool(&mut client, name)["annotations"].clone();
        let expected = json!({"readOnlyHint": read_only, "destructiveHint": destructive,
            "idempotentHint": read_only, "openWorldHint": false});
        assert_eq!(hints, expected, "{name}");
    }
}

#[test]
fn arguments_are_checked_and_bound_never_spliced() {
    let bench = Bench::notes();
    let files = Files::new();
    let mut client = notes(&bench, &[&files.write("a.yaml", TOOLS)]).start();
    client.call("find_notes", json!({"word": "et"})).is("id,title\n2,beta\n# 1 rows");
    client.call("find_notes", json!({"word": "' OR 1=1 --"})).is("id,title\n# 0 rows");
    client
        .call("find_notes", json!({}))
        .fails_as("INVALID_ARGUMENTS", &["`word` is missing; find_notes needs it"]);
    client.call("find_notes", json!({"wrod": "x"})).fails(&["did you mean `word`?"]);
    client.call("some_notes", json!({})).is("id\n1\n2\n# 2 rows; more rows exist (limit 2, maximum 2)");
    client.call("some_notes", json!({"ids": [3, 2]})).is("id\n2\n3\n# 2 rows");
    client.call("some_notes", json!({"ids": "[1]"})).is("id\n1\n# 1 rows");
    client.call("some_notes", json!({"ids": []})).is("id\n# 0 rows");
    client.call("some_notes", json!({"flag": false})).is("id\n# 0 rows");
    client.call("some_notes", json!({"least": 1.75})).is("id\n2\n# 1 rows");
    client.call("some_notes", json!({"ids": [1, 100]})).fails(&["position 2 of `ids` must be between"]);
    client.call("add_tag", json!({"note": 1})).is("ok: 1 rows affected (last_insert_rowid=1)");
    client
        .call("add_tag", json!({"note": 1, "tag": "green"}))
        .fails(&["`tag` must be one of \"red\", \"blue\""]);
    assert_eq!(bench.query("SELECT note_id, tag FROM tags"), "1|red");
}

#[test]
fn they_are_logged_and_capped_like_built_in_ones() {
    let bench = Bench::notes();
    let files = Files::new();
    let flags = ["--max-update-rows", "2"];
    let mut client = notes(&bench, &[&files.write("a.yaml", TOOLS)]).flags(&flags).start();
    client.call("rename_note", json!({"id": 1, "title": "a"})).ok();
    client
        .call("rename_note", json!({"id": 1, "title": "b", "everywhere": true}))
        .fails(&["was rolled back"]);
    client.call("some_notes", json!({"ids": [1, 2]})).ok();
    client.call("some_notes", json!({"ids": "no"})).fails(&["`ids`"]);
    client.close();
    assert_eq!(bench.query("SELECT group_concat(title) FROM notes"), "a,beta,gamma");
    let rows = bench.query(
        "SELECT tool, ok, rows, json_extract(detail, '$.params.ids'), json_extract(detail, '$.params.title')
         FROM query_log ORDER BY id",
    );
    assert_eq!(
        rows,
        "rename_note|1|1|NULL|a\nrename_note|0|NULL|NULL|b\nsome_notes|1|2|[1,2]|NULL\nsome_notes|0|NULL|NULL|NULL"
    );
}

#[test]
fn read_only_leaves_out_those_that_write() {
    let bench = Bench::notes();
    let files = Files::new();
    let mut client = notes(&bench, &[&files.write("a.yaml", TOOLS)]).flags(&["--read-only"]).start();
    let listed = names(&mut client);
    assert!(
        listed.contains(&"find_notes".to_owned()) && !listed.contains(&"add_tag".to_owned()),
        "{listed:?}"
    );
}

#[test]
fn rows_can_be_structured_in_either_profile() {
    let bench = Bench::notes();
    let files = Files::new();
    let entry = |name: &str, output: &str| {
        format!(
            "  - {{name: {name}, policy: read, {output}words: {{purpose: x.}}, statement: SELECT id FROM notes WHERE id = 1}}\n"
        )
    };
    let text = format!(
        "tools:\n{}{}{}",
        entry("own", ""),
        entry("as_rows", "output: rows, "),
        entry("as_csv", "output: csv, ")
    );
    let file = files.write("a.yaml", &text);
    for (profile, own) in [("memory", false), ("explorer", true)] {
        let mut client = notes(&bench, &[&file]).flags(&["--profile", profile]).start();
        for (name, structured) in [("own", own), ("as_rows", true), ("as_csv", false)] {
            assert_eq!(tool(&mut client, name).get("outputSchema").is_some(), structured, "{profile} {name}");
            let id = client.send_call(name, json!({}));
            let result = client.wait_for(id)["result"].clone();
            let text = result["content"][0]["text"].as_str().unwrap();
            if structured {
                assert_eq!(result["structuredContent"]["rows"], json!([[1]]), "{profile} {name}");
                assert!(text.starts_with("| id |"), "{text}");
            } else {
                assert_eq!(text, "id\n1\n# 1 rows", "{profile} {name}");
                assert!(result.get("structuredContent").is_none());
            }
        }
    }
}

#[test]
fn a_statement_that_does_not_hold_ends_the_start_where_it_stands() {
    let bench = Bench::notes();
    let files = Files::new();
    for (policy, params, statement, words) in [
        (
            "read",
            "",
            "SELEC 1",
            "4:16: the statement of tool `t` does not compile: near \"SELEC\": syntax error",
        ),
        (
            "read",
            "",
            "SELECT 1 FROM nots",
            "4:16: the statement of tool `t` does not compile: no such table: nots",
        ),
        (
            "read",
            "",
            "DELETE FROM notes",
            "4:16: the statement of tool `t` does not compile: DELETE is not allowed",
        ),
        ("read", "", "SELECT 1; SELECT 2", "4:16: the statement of tool `t` does not compile: "),
        ("write", "", "SELECT 1", "4:16: the statement of tool `t` does not compile: "),
        (
            "write",
            "",
            "DELETE FROM notes",
            "4:16: the statement of tool `t` does not compile: DELETE is not allowed",
        ),
        ("write", "", "DROP TABLE query_log", "4:16: the statement of tool `t` does not compile: "),
        (
            "read",
            "",
            "SELECT :a",
            "4:16: the statement of tool `t` has `:a`, which is not declared under `params`",
        ),
        (
            "read",
            "",
            "SELECT ?",
            "4:16: the statement of tool `t` has a `?`; name its parameters, as in `:name`",
        ),
        (
            "read",
            "",
            "SELECT ?1",
            "4:16: the statement of tool `t` has a `?`; name its parameters, as in `:name`",
        ),
        (
            "read",
            "\n    params: [{name: b, type: string, description: x.}]",
            "SELECT 1",
            "6:13: parameter `b` of tool `t` is not in its statement as `:b`",
        ),
    ] {
        let text = format!(
            "tools:\n  - name: t\n    policy: {policy}\n    statement: {statement}\n    words: {{purpose: x.}}{params}\n"
        );
        let file = files.write("a.yaml", &text);
        let (status, line) = notes(&bench, &[&file]).refusal();
        assert_eq!(status, 2, "{statement}: {line}");
        assert!(line.starts_with(&format!("{}:{words}", file.display())), "{statement}: {line}");
    }
}

#[test]
fn variables_are_not_filled_into_sql() {
    let bench = Bench::notes();
    let files = Files::new();
    let text = "tools:\n  - {name: t, policy: read, words: {purpose: 'For ${TEAM}.'}, statement: \"SELECT '${TEAM}' AS team\"}\n";
    let mut client = notes(&bench, &[&files.write("a.yaml", text)]).env("TEAM", "sales").start();
    client.call("t", json!({})).is("team\n${TEAM}\n# 1 rows");
    assert!(tool(&mut client, "t")["description"].as_str().unwrap().starts_with("For sales."));
}
