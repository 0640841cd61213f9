//! `indelible tools` and `indelible tools check`, as people run them.

use super::{Files, names, notes, tools};
use crate::support::{Bench, Server};
use serde_json::Value;

#[track_caller]
fn run(flags: &[&str]) -> String {
    let (status, out, err) = Server::bare().flags(flags).run();
    assert_eq!((status, err.as_str()), (0, ""), "{flags:?}: {out}");
    out
}

#[test]
fn the_table_shows_every_tool_with_its_policy_and_cost() {
    let out = run(&["tools"]);
    assert!(out.starts_with("tool                policy    hints"), "{out}");
    assert_eq!(out.lines().filter(|line| line.contains("built in")).count(), 15, "{out}");
    let line = out.lines().find(|line| line.starts_with("destructive_query")).unwrap();
    assert!(line.contains("destroy") && line.contains("destructive"), "{line}");
    assert!(out.contains("* an estimate: bytes / 4"), "{out}");
}

#[test]
fn json_is_the_list_that_clients_get() {
    let bench = Bench::notes();
    for profile in ["memory", "explorer"] {
        let shown: Value =
            serde_json::from_str(&run(&["tools", "--profile", profile, "--format", "json"])).unwrap();
        let mut client = Server::on(&bench).flags(&["--profile", profile]).start();
        assert_eq!(shown["tools"].as_array().unwrap(), &tools(&mut client));
        assert_eq!(shown["instructions"], client.initialized["instructions"]);
    }
}

#[test]
fn yaml_is_a_complete_overlay_that_gives_the_same_tools() {
    let bench = Bench::notes();
    let files = Files::new();
    let own = files.write(
        "own.yaml",
        "hide: [snapshot]\ntools:\n  - {tool: read_query, name: ask}\n  - name: t\n    policy: read\n    limit: 5\n    output: rows\n    words: {purpose: 'Costs $${5}.'}\n    statement: |\n      SELECT :a AS a,\n        :b AS b\n    params:\n      - {name: a, type: array, items: number, maximum: 3, default: [1], description: x.}\n      - {name: b, type: string, enum: [x, 'y'], pattern: '^.$', description: y.}\n",
    );
    for (profile, overlays) in [("memory", vec![]), ("explorer", vec![]), ("memory", vec![own.as_path()])] {
        let mut flags = vec!["tools", "--profile", profile, "--format", "yaml"];
        for path in &overlays {
            flags.extend(["--tools", path.to_str().unwrap()]);
        }
        let text = run(&flags);
        let file = files.write("whole.yaml", &text);
        let checked = run(&["tools", "--profile", profile, "check", file.to_str().unwrap()]);
        assert!(checked.starts_with("ok: 1 file, profile"), "{checked}");
        let mut before = notes(&bench, &overlays).flags(&["--profile", profile]).start();
        let mut after = notes(&bench, &[&file]).flags(&["--profile", profile]).start();
        assert_eq!(tools(&mut before), tools(&mut after), "{text}");
        assert_eq!(before.initialized["instructions"], after.initialized["instructions"]);
    }
}

#[test]
fn check_says_what_is_wrong_and_what_it_costs_and_serves_nothing() {
    let bench = Bench::notes();
    let files = Files::new();
    let bad = files.write("bad.yaml", "hide: [nothing]\n");
    let (status, out, err) = Server::bare().flags(&["tools", "check", bad.to_str().unwrap()]).run();
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.starts_with(&format!("indelible: {}:1:8: no tool `nothing`", bad.display())), "{err}");
    let good = files.write(
        "good.yaml",
        "hide: [search_text]\ntools:\n  - {name: t, policy: write, words: {purpose: x.}, statement: DELETE FROM notes}\n",
    );
    let good = good.to_str().unwrap();
    let out = run(&["tools", "check", good]);
    assert!(out.contains("statements not compiled: 1; give --db to compile them"), "{out}");
    assert!(out.contains("overlay"), "{out}");
    assert!(out.contains("note: ") && out.contains("speak of `search_text`, which is no tool here"), "{out}");
    let before = bench.files();
    let (status, _, err) = Server::on(&bench).flags(&["tools", "check", good]).run();
    assert_eq!(status, 2);
    assert!(err.contains("good.yaml:3:") && err.contains("DELETE is not allowed"), "{err}");
    assert_eq!(bench.files(), before, "the database is left as it is");
}

#[test]
fn a_call_by_hand_goes_to_own_tools_too() {
    let bench = Bench::notes();
    let files = Files::new();
    let text = "tools:\n  - {name: one, policy: read, words: {purpose: x.}, statement: SELECT 1 AS one}\n";
    let file = files.write("a.yaml", text);
    let (status, out, _) = notes(&bench, &[&file]).flags(&["call", "one"]).run();
    assert_eq!((status, out.as_str()), (0, "one\n1\n# 1 rows\n"));
    let mut client = notes(&bench, &[&file]).start();
    assert!(names(&mut client).contains(&"one".to_owned()));
}
