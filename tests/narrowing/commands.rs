//! `indelible policy`, `policy explain`, and the worked example of docs/HIDING.md.

use super::support::{Bench, Server};
use super::{HIDE, PEOPLE, Policy, server};
use serde_json::Value;

#[track_caller]
fn run(flags: &[&str]) -> String {
    let (status, said, complained) = Server::bare().flags(flags).run();
    assert_eq!((status, complained.as_str()), (0, ""), "{said}");
    said
}

/// The row of a table whose first word this is.
#[track_caller]
fn row<'t>(text: &'t str, first: &str) -> Vec<&'t str> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(first));
    line.unwrap_or_else(|| panic!("no {first} in\n{text}"))
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

#[test]
fn the_policy_is_a_table_of_policies_and_actions() {
    let plain = run(&["policy"]);
    assert!(plain.contains("as built in, without a policy file"), "{plain}");
    let policies = ["read", "look", "write", "destroy", "view", "database_read", "database_change"];
    assert_eq!(row(&plain, "action"), [&["action"], &policies[..], &["use"]].concat());
    assert_eq!(
        row(&plain, "drop_table"),
        ["drop_table", "-", "-", "-", "allowed", "-", "-", "allowed", "destructive_query"]
    );
    assert_eq!(row(&plain, "attach")[8], "no tool: one server serves one database file");
    assert_eq!(row(&plain, "unknown")[8], "no tool allows it");
    let policy = Policy::of(
        "refuse: {actions: [drop_table]}\npolicies: [{id: write, refuse: {functions: [upper]}}]\nlimits: {max_rows: 7}\nhide: [{table: people, columns: [email]}]",
    );
    let path = policy.path();
    let flags = ["policy", "--policy", path.to_str().unwrap()];
    let narrowed = run(&flags);
    assert_eq!(
        row(&narrowed, "drop_table"),
        [
            "drop_table",
            "-",
            "-",
            "-",
            "narrowed",
            "-",
            "-",
            "narrowed",
            "no tool: the policy file refuses it"
        ]
    );
    for line in ["  upper (policy write)", "  max_rows: 7", "  people.email"] {
        assert!(narrowed.lines().any(|found| found == line), "{line}\n{narrowed}");
    }
    let bench = Bench::with(PEOPLE);
    let resolved = run(&[&flags[..], &["--db", bench.path().to_str().unwrap()]].concat());
    assert!(resolved.contains("  people.domain: it is made from `people.email`"), "{resolved}");
    let json: Value = serde_json::from_str(&run(&[&flags[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["policies"][3]["actions"]["drop_table"], "narrowed");
    assert_eq!(json["policies"][3]["actions"]["delete"], "allowed");
    assert_eq!(json["use"]["delete"], "destructive_query");
    assert_eq!(json["narrowed"]["limits"][0], "max_rows: 7");
}

#[test]
fn a_statement_is_explained_with_what_it_does_and_who_takes_it() {
    let (bench, policy) = (Bench::with(PEOPLE), Policy::of(HIDE));
    let (db, path) = (bench.path().to_str().unwrap(), policy.path());
    let said = run(&["policy", "explain", "--db", db, "SELECT name FROM contacts"]);
    assert!(
        said.contains("read      people.email   through contacts") || said.contains("people.email"),
        "{said}"
    );
    let explain = |sql: &str, more: &[&str]| -> Value {
        let flags = [&["policy", "explain", "--json", sql], more].concat();
        serde_json::from_str(&run(&flags)).unwrap()
    };
    let json = explain("SELECT name FROM contacts", &["--db", db]);
    let email = json["actions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|action| action["detail"] == "email")
        .unwrap()
        .clone();
    assert_eq!(
        (&email["action"], &email["object"], &email["through"]),
        (&"read".into(), &"people".into(), &"contacts".into())
    );
    let of = |json: &Value, tool: &str| {
        json["tools"].as_array().unwrap().iter().find(|row| row["tool"] == tool).unwrap().clone()
    };
    assert_eq!(of(&json, "read_query")["accepted"], true);
    assert_eq!(of(&json, "create_view")["accepted"], true);
    assert!(of(&json, "write_query")["words"].as_str().unwrap().contains("use read_query"));
    let json = explain("SELECT name FROM contacts", &["--db", db, "--policy", path.to_str().unwrap()]);
    assert!(
        of(&json, "read_query")["words"].as_str().unwrap().contains("`people.email` is hidden"),
        "{json}"
    );
    let json = explain("UPDATE people SET email = 'x'", &["--db", db]);
    assert!(
        json["actions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|a| a["action"] == "insert" && a["object"] == "fed" && a["through"] == "feeds"),
        "{json}"
    );
    assert_eq!(of(&json, "write_query")["accepted"], true);
    // Without a database: an empty one.
    let json = explain("CREATE TABLE t(x)", &[]);
    assert_eq!(of(&json, "write_query")["accepted"], true, "{json}");
    assert!(of(&json, "destructive_query")["words"].as_str().unwrap().contains("use write_query"));
    let json = explain("SELECT * FROM nowhere", &[]);
    assert_eq!(of(&json, "read_query")["words"], "no such table: nowhere");
    assert_eq!(of(&explain("SELECT 1; SELECT 2", &[]), "read_query")["accepted"], false);
    let (status, _, complained) =
        Server::bare().flags(&["policy", "explain", "--db", "/no/such/folder/x.db", "SELECT 1"]).run();
    assert_eq!(status, 1, "{complained}");
}

#[test]
fn explaining_changes_nothing() {
    let bench = Bench::with(PEOPLE);
    let before = bench.files();
    for sql in [
        "DELETE FROM people",
        "PRAGMA journal_mode = WAL",
        "PRAGMA user_version = 7",
        "DROP TABLE people",
        "VACUUM",
        "ATTACH 'x.db' AS x",
        "CREATE TRIGGER t AFTER INSERT ON orders BEGIN DELETE FROM people; END",
    ] {
        run(&["policy", "explain", "--db", bench.path().to_str().unwrap(), sql]);
        assert_eq!(bench.files(), before, "{sql}");
    }
}

#[test]
fn the_worked_example_does_what_it_says() {
    let page = include_str!("../../docs/HIDING.md");
    let block =
        |language: &str| page.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap();
    let (bench, policy) = (Bench::with(block("sql")), Policy::of(block("yaml")));
    let mut client = server(&bench, &policy).start();
    let mut rows = 0;
    for line in page
        .lines()
        .skip_while(|line| !line.starts_with("| statement"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let code = |cell: &str| cell.trim().trim_matches('`').trim().to_owned();
        let answer = client.read(&code(cells[0]));
        answer.has(&code(cells[1]).replace("; leave it out", ""));
        rows += 1;
    }
    assert_eq!(rows, 8);
    client.write("INSERT INTO ledger_2026(entry) VALUES ('x')").fails(&["`ledger_2026` is protected"]);
    client
        .destroy("DROP TABLE orders")
        .fails(&["DROP TABLE is refused in destructive_query by this server's policy"]);
}

#[test]
fn doctor_looks_at_the_policy_file_too() {
    let bench = Bench::notes();
    let examine = |policy: &std::path::Path| -> Value {
        let flags = [
            "doctor",
            "--json",
            "--db",
            bench.path().to_str().unwrap(),
            "--policy",
            policy.to_str().unwrap(),
        ];
        serde_json::from_str(&Server::bare().flags(&flags).run().1).unwrap()
    };
    let about = |report: &Value| -> Vec<String> {
        let findings =
            report["findings"].as_array().unwrap().iter().filter(|finding| finding["topic"] == "policy file");
        findings
            .map(|finding| {
                format!("{}: {}", finding["state"].as_str().unwrap(), finding["text"].as_str().unwrap())
            })
            .collect()
    };
    let good = Policy::of("protect: [notes]");
    let report = examine(&good.path());
    assert_eq!(about(&report), [format!("ok: {}", good.path().display())]);
    let shown = run(&["policy", "--policy", good.path().to_str().unwrap()]);
    assert!(shown.contains(report["policy_sha256"].as_str().unwrap()), "{shown}");
    let bad = Policy::of("protekt: [notes]\nhied: []");
    assert_eq!(about(&examine(&bad.path())).iter().filter(|line| line.starts_with("problem: ")).count(), 2);
    let near = bench.folder().join("p.yaml");
    std::fs::write(&near, "protect: [notes]").unwrap();
    assert!(about(&examine(&near))[0].starts_with("warning: "));
}
