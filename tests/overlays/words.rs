//! Other words, fewer tools, other names, other profiles.

use super::{Files, names, notes, tool};
use crate::support::{Bench, Server};
use serde_json::json;

#[test]
fn a_part_of_a_description_changes_and_nothing_else() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files
        .write("a.yaml", "tools:\n  - tool: memory.list_tables\n    words: {purpose: Name every table.}\n");
    let mut plain = Server::on(&bench).start();
    let mut client = notes(&bench, &[&file]).start();
    let (before, after) = (super::tools(&mut plain), super::tools(&mut client));
    for (old, new) in before.iter().zip(&after) {
        if old["name"] == "list_tables" {
            let text = old["description"]
                .as_str()
                .unwrap()
                .replace("List the tables and views.", "Name every table.");
            assert_eq!(new["description"], text);
        } else {
            assert_eq!(old, new);
        }
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(client.initialized["instructions"], plain.initialized["instructions"]);
}

#[test]
fn later_files_win() {
    let bench = Bench::notes();
    let files = Files::new();
    let one = files.write(
        "one.yaml",
        "instructions: {append: One.}\nhide: [snapshot]\ntools:\n  - {tool: read_query, name: ask, title: First}\n",
    );
    let two =
        files.write("two.yaml", "instructions: {append: Two.}\ntools:\n  - {tool: ask, title: Second}\n");
    let mut client = notes(&bench, &[&one, &two]).start();
    assert_eq!(tool(&mut client, "ask")["title"], "Second");
    assert!(!names(&mut client).contains(&"snapshot".to_owned()));
    assert!(client.initialized["instructions"].as_str().unwrap().ends_with("One.\n\nTwo."));
    let three = files.write("three.yaml", "instructions: {replace: Three.}\nonly: [snapshot, ask]\n");
    let paths = std::env::join_paths([&one, &two, &three]).unwrap();
    let mut client = Server::on(&bench).env("INDELIBLE_TOOLS", paths).start();
    assert_eq!(names(&mut client), ["ask", "snapshot"], "in the profile's order");
    assert_eq!(client.initialized["instructions"], "Three.");
}

#[test]
fn a_hidden_tool_is_not_there() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write("a.yaml", "hide: [destructive_query, memory.create_view]\n");
    let mut client = notes(&bench, &[&file]).start();
    client.destroy("DELETE FROM notes").fails_as("-32602", &["unknown tool `destructive_query`"]);
    client
        .write("DELETE FROM notes")
        .fails(&["DELETE is not allowed in write_query"])
        .lacks("use destructive_query");
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
}

#[test]
fn a_renamed_tool_is_known_by_its_new_name_everywhere() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write(
        "a.yaml",
        "tools:\n  - {tool: destructive_query, name: remove}\n  - {tool: get_resume_context, name: where_am_i}\n",
    );
    let mut client = notes(&bench, &[&file]).start();
    let text = client.initialized["instructions"].as_str().unwrap().to_owned();
    assert!(
        text.contains("call where_am_i before anything else") && text.contains("go through remove"),
        "{text}"
    );
    let said = super::tools(&mut client).iter().map(ToString::to_string).collect::<String>();
    assert!(!said.contains("destructive_query") && !said.contains("get_resume_context"), "{said}");
    client.write("DELETE FROM notes").fails(&["use remove"]);
    client.call("remove", json!({"query": "DELETE FROM notes", "reason": "test"})).ok();
    client.close();
    assert_eq!(bench.query("SELECT tool FROM query_log WHERE ok AND query LIKE 'DELETE%'"), "remove");
}

#[test]
fn a_new_profile_is_chosen_by_its_name() {
    let bench = Bench::notes();
    let files = Files::new();
    let text =
        "profiles:\n  - {id: small, base: memory, tools: [memory.read_query, write_query], resources: []}\n";
    let file = files.write("a.yaml", text);
    let mut client = notes(&bench, &[&file]).flags(&["--profile", "small"]).start();
    assert_eq!(names(&mut client), ["read_query", "write_query"]);
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    assert!(client.initialized["capabilities"].get("resources").is_none());
    let (status, line) = notes(&bench, &[&file]).flags(&["--profile", "smal"]).refusal();
    assert_eq!(
        (status, line.as_str()),
        (2, "--profile `smal`: no such profile; there is memory, explorer, primitives, small")
    );
}

#[test]
fn a_narrowed_bound_holds_and_never_rises_above_the_settings() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write(
        "a.yaml",
        "tools:\n  - tool: read_query\n    params: [{name: limit, maximum: 200, default: 150}]\n",
    );
    for (flags, most, usual) in [(&[][..], 200, 150), (&["--max-rows", "20"], 20, 20)] {
        let mut client = notes(&bench, &[&file]).flags(flags).start();
        let limit = tool(&mut client, "read_query")["inputSchema"]["properties"]["limit"].clone();
        assert_eq!((&limit["maximum"], &limit["default"]), (&json!(most), &json!(usual)));
        client
            .call("read_query", json!({"query": "SELECT 1", "limit": most + 1}))
            .fails(&[&format!("between 1 and {most}")]);
    }
}

#[test]
fn variables_come_from_the_environment() {
    let bench = Bench::notes();
    let files = Files::new();
    let text =
        "# ${NOT_SET} in a comment\ninstructions: {replace: 'For ${TEAM}, ${ROOM:-somewhere}; $${TEAM}.'}\n";
    let file = files.write("a.yaml", text);
    let client = notes(&bench, &[&file]).env("TEAM", "sales").start();
    assert_eq!(client.initialized["instructions"], "For sales, somewhere; ${TEAM}.");
    let (status, _, err) = notes(&bench, &[&file]).run();
    let place = format!("{}:2:25: the environment has no `TEAM`", file.display());
    assert!(status == 2 && err.contains(&place), "{err}");
}
