//! The file itself: every mistake at once and in its place, variables, where it lies.

use super::support::{Bench, Server};
use super::{Policy, server};

/// What the program says of a policy file, without the file's path.
#[track_caller]
fn told(text: &str, flags: &[&str]) -> (i32, Vec<String>) {
    let policy = Policy::of(text);
    let path = policy.path();
    let (status, said, complained) = Server::bare()
        .env("NOTHING", "")
        .env("TABLE", "ta*")
        .flags(&["policy", "--policy", path.to_str().unwrap()])
        .flags(flags)
        .run();
    let start = format!("indelible: {}:", path.display());
    let lines = complained.lines().map(|line| line.strip_prefix(&start).unwrap_or(line).to_owned()).collect();
    assert_eq!(status == 0, !said.is_empty());
    (status, lines)
}

#[test]
fn what_would_widen_or_does_nothing_is_named_where_it_stands() {
    let text = "\
protect: [a, '']
allow: [drop_table]
hide:
  - columns: [x]
  - table: t
    columns: []
  - table: sqlite_schema
  - tabel: t
refuse:
  actions: [drop_tabel, attach]
  functions: [randm]
  pragmas: [user_versoin]
policies:
  - id: destory
    refuse: {actions: [insert]}
  - id: read
    actions: [insert]
  - id: write
    refuse: {actions: [drop_table], pragmas: [user_version]}
  - id: chain
    refuse: {}
limits:
  max_rows: 1001
  max_cell_chars: 0
  max_update_rows: 501
  query_timeout: 11
  max_result_bytes: many
";
    let (status, lines) = told(text, &[]);
    assert_eq!(status, 2);
    let expected = [
        "1:14: an empty name",
        "2:1: `allow` is not for a policy file of your own, which can only narrow; it takes `protect`, `hide`, `refuse`, `policies` with `refuse`, and `limits`",
        "4:5: an entry of `hide` has no `table`",
        "6:5: `columns` of `t` is empty; name them, or leave the key out to hide the whole table",
        "7:12: `sqlite_schema` cannot be hidden: SQL cannot be written without it",
        "8:5: an entry of `hide` has no `table`",
        "8:5: unknown key `tabel`; did you mean `table`?",
        "10:13: unknown action `drop_tabel`; did you mean `drop_table`?",
        "10:25: no policy allows `attach`; refusing it changes nothing",
        "11:15: SQLite has no function `randm`; did you mean `random`?",
        "12:13: no policy allows the pragma `user_versoin`; did you mean `user_version`?",
        "14:9: unknown policy `destory`; did you mean `destroy`?",
        "16:5: policy `read` has no `refuse`, so nothing would change",
        "17:5: `actions` is not for a policy file of your own, which can only narrow; it takes `protect`, `hide`, `refuse`, `policies` with `refuse`, and `limits`",
        "19:24: policy `write` does not allow `drop_table`; refusing it changes nothing",
        "19:47: policy `write` allows no pragma `user_version`; did you mean `data_version`?",
        "20:9: unknown policy `chain`; known are `read`, `look`, `write`, `destroy`, `view`, `database_read` and `database_change`",
        "23:13: `max_rows` is 1001 and 1000 is in force; a policy file can only lower it",
        "24:19: `max_cell_chars` must be a whole number from 1 to 2000",
        "25:20: `max_update_rows` is 501 and 500 is in force; a policy file can only lower it",
        "26:18: `query_timeout` is 11 and 10 is in force; a policy file can only lower it",
        "27:21: `max_result_bytes` must be a number, and `many` is none",
    ];
    let wrong: Vec<_> = lines.iter().zip(expected).filter(|(given, expected)| given != expected).collect();
    assert!(wrong.is_empty() && lines.len() == expected.len(), "{wrong:#?}\n{lines:#?}");
}

#[test]
fn a_file_is_held_against_the_flags_and_the_environment() {
    assert_eq!(
        told("limits: {max_rows: 200}", &["--max-rows", "100"]).1,
        ["1:20: `max_rows` is 200 and 100 is in force; a policy file can only lower it"]
    );
    assert_eq!(told("limits: {max_rows: 200}", &["--max-rows", "300"]), (0, vec![]));
    assert_eq!(
        told("limits: {max_rows: '${ROWS:-20}', query_timeout: 0.5}\nprotect: ['${TABLE}']", &[]),
        (0, vec![])
    );
    assert_eq!(
        told("protect: ['${NO_SUCH}', \"${NOTHING}\", '${', x]", &[]).1,
        [
            "1:11: the environment has no `NO_SUCH`; set it, or give a default as `${NO_SUCH:-...}`",
            "1:25: an empty name",
            "1:39: `${` does not begin a variable here; known are `${NAME}` and `${NAME:-default}`; for the characters themselves write `$${`",
        ]
    );
    for nothing in ["", "# nothing\n", "protect:\nhide:\n"] {
        assert_eq!(told(nothing, &[]), (0, vec![]), "{nothing:?}");
    }
    assert_eq!(told("protect: [a\n", &[]).0, 2);
    assert_eq!(told("- a\n", &[]).0, 2);
}

#[test]
fn a_broken_or_missing_file_stops_the_start() {
    let (bench, policy) = (Bench::notes(), Policy::of("protekt: [a]\nlimits: {max_rows: 9999}\n"));
    let (status, said, complained) = server(&bench, &policy).run();
    assert_eq!((status, said.as_str(), complained.lines().count()), (2, "", 2), "{complained}");
    assert!(
        complained.contains("policy.yaml:1:1: unknown key `protekt`; did you mean `protect`?"),
        "{complained}"
    );
    let (status, line) = Server::on(&bench).flags(&["--policy", "/no/such/file"]).refusal();
    assert_eq!(status, 2);
    assert!(line.starts_with("the policy file `/no/such/file` cannot be read: "), "{line}");
    let (status, ..) = Server::on(&bench)
        .env("INDELIBLE_POLICY", policy.path())
        .flags(&["call", "read_query", "query=SELECT 1"])
        .run();
    assert_eq!(status, 2);
}

#[test]
fn a_file_within_the_agents_reach_is_a_warning() {
    let bench = Bench::notes();
    let path = bench.folder().join("narrow.yaml");
    std::fs::write(&path, "protect: [notes]").unwrap();
    let start = || {
        let client = Server::on(&bench).flags(&["--policy", path.to_str().unwrap()]).start();
        client.close_with_stderr().0
    };
    let said = start();
    assert!(said.contains("lies in the database's folder and can be written"), "{said}");
    let policy = Policy::of("protect: [notes]");
    let (said, _) = server(&bench, &policy).start().close_with_stderr();
    assert!(!said.contains("can be written"), "{said}");
}

#[test]
fn what_the_file_says_in_vain_is_a_warning() {
    let bench = Bench::with(super::PEOPLE);
    bench.sql("CREATE TABLE letters(id INTEGER PRIMARY KEY, address REFERENCES people(email), person REFERENCES people(id))");
    let policy =
        Policy::of("hide: [{table: people, columns: [emial, email]}, {table: nobody}]\nprotect: [nothing]");
    let mut client = server(&bench, &policy).start();
    client.read("SELECT name FROM people").ok();
    let (said, _) = client.close_with_stderr();
    for words in [
        "hides `people.emial`, and the database has no such column",
        "hides `nobody`, and the database has no such table or view",
        "protects `nothing`, and the database has no such table or view",
        "the trigger `feeds` may copy `people.email`, which is hidden, into `old_addresses`",
        "`letters.address` refers to `people.email`, which is hidden, and holds values of it",
    ] {
        assert_eq!(said.matches(words).count(), 1, "{words}: {said}");
    }
}
