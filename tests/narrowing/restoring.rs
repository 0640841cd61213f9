//! restore_snapshot under a policy file: no way round it, and otherwise the undo that it is.

use super::support::{Bench, Client, Server};
use super::{Policy, server};
use serde_json::json;

const SHOP: &str = "
    CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT, email TEXT);
    INSERT INTO people(name, email) VALUES ('Ada', 'CANARY@x'), ('Bob', 'bCANARY');
    CREATE TABLE ledger(id INTEGER PRIMARY KEY, entry TEXT, cents INTEGER AS (length(entry)));
    INSERT INTO ledger(entry) VALUES ('opened');
    CREATE TABLE by_day(day TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
    INSERT INTO by_day VALUES ('b', 1), ('a', 2);
    CREATE VIRTUAL TABLE words USING fts5(t);
    INSERT INTO words VALUES ('one');
    CREATE TABLE secrets(word TEXT);
    INSERT INTO secrets VALUES ('CANARY');
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
    INSERT INTO notes(title) VALUES ('first');
";

/// A database with one snapshot, changed since by its owner, and a server under the policy.
fn changed(policy: &str, since: &str) -> (Bench, String, Client, Policy) {
    let (bench, policy) = (Bench::with(SHOP), Policy::of(policy));
    let mut client = Server::on(&bench).start();
    client.call("snapshot", json!({"reason": "before"})).ok();
    client.close();
    bench.sql(since);
    let name = bench.snapshots()[0].file_name().unwrap().to_str().unwrap().to_owned();
    let client = server(&bench, &policy).start();
    (bench, name, client, policy)
}

#[test]
fn a_restore_is_no_way_round_what_a_file_takes_away() {
    for (policy, since, words) in [
        ("protect: [ledger]", "INSERT INTO ledger(entry) VALUES ('paid')", "`ledger` is protected"),
        ("protect: [ledger]", "UPDATE ledger SET entry = 'Opened'", "`ledger` is protected"),
        ("protect: [led*]", "DROP TABLE ledger", "`ledger` is protected"),
        ("protect: [led*]", "CREATE TABLE ledger_2(x)", "`ledger_2` is protected"),
        ("protect: [ledger]", "CREATE INDEX i ON ledger(entry)", "`i` is protected"),
        (
            "protect: [ledger]",
            "CREATE TRIGGER ledger AFTER INSERT ON ledger BEGIN SELECT 1; END",
            "`ledger` is protected",
        ),
        ("protect: [by_day]", "UPDATE by_day SET n = 3 WHERE day = 'b'", "`by_day` is protected"),
        ("protect: [words]", "INSERT INTO words VALUES ('two')", "`words` is protected"),
        ("protect: ['*']", "UPDATE notes SET title = 'second'", "`notes` is protected"),
        ("hide: [{table: secrets}]", "UPDATE secrets SET word = 'CANARY2'", "`secrets` is hidden"),
        ("hide: [{table: vault}]", "ALTER TABLE secrets RENAME TO vault", "`vault` is hidden"),
        (
            "hide: [{table: people, columns: [mail]}]",
            "ALTER TABLE people RENAME COLUMN email TO mail",
            "hides columns of `people`, and that table has another definition in the snapshot",
        ),
        (
            "hide: [{table: persons, columns: [email]}]",
            "ALTER TABLE people RENAME TO persons; DROP TABLE persons",
            "hides `persons.email`, and the snapshot has no such column, so it may have it under another name",
        ),
        (
            "refuse: {actions: [drop_table]}",
            "CREATE TABLE later(x)",
            "DROP TABLE is refused by this server's policy, and restoring would do that to `later`",
        ),
        (
            "policies: [{id: write, refuse: {actions: [analyze]}}]",
            "UPDATE notes SET title = 'x'; ALTER TABLE notes ADD COLUMN y",
            "",
        ),
        (
            "refuse: {actions: [drop_view]}",
            "CREATE VIEW later AS SELECT 1",
            "DROP VIEW is refused by this server's policy, and restoring would do that to `later`",
        ),
        (
            "refuse: {actions: [alter_table]}",
            "ALTER TABLE notes ADD COLUMN y",
            "ALTER TABLE is refused by this server's policy, and restoring would do that to `notes`",
        ),
        (
            "refuse: {actions: [create_table]}",
            "DROP TABLE notes",
            "CREATE TABLE is refused by this server's policy, and restoring would do that to `notes`",
        ),
        (
            "refuse: {actions: [delete]}",
            "",
            "DELETE is refused by this server's policy, and a restore may do that",
        ),
    ] {
        let (bench, name, mut client, _policy) = changed(policy, since);
        let (before, kept) = (bench.content(), bench.snapshots().len());
        let answer = client.call("restore_snapshot", json!({"name": name, "reason": "undo"}));
        if words.is_empty() {
            answer.starts("ok: ");
            continue;
        }
        let way_out = format!("a person can restore `{name}` with `indelible snapshots restore`");
        answer.fails_as("REFUSED", &["nothing was restored: ", words, &way_out]);
        assert_eq!(bench.content(), before, "{policy}");
        assert_eq!(bench.snapshots().len(), kept, "{policy}: nothing is restored, so nothing is kept");
        client.close();
        let db = bench.path().to_str().unwrap();
        let flags = ["snapshots", "restore", &name, "--reason", "a person", "--db", db];
        let (status, _, complained) = Server::bare().flags(&flags).run();
        assert_eq!(status, 0, "{policy}: {complained}");
    }
}

#[test]
fn what_a_file_takes_away_stays_away_after_a_restore() {
    let policy =
        "protect: [ledger, by_day, words]\nhide: [{table: people, columns: [email]}, {table: secrets}]";
    let (bench, name, mut client, _policy) = changed(policy, "UPDATE notes SET title = 'second'");
    client.destroy("DROP TABLE people").ok();
    client.call("restore_snapshot", json!({"name": name, "reason": "undo"})).starts("ok: ");
    assert_eq!(bench.query("SELECT title FROM notes"), "first");
    client.read("SELECT name FROM people").is("name\nAda\nBob\n# 2 rows");
    client.read("SELECT email FROM people").fails_as("REFUSED", &["`people.email` is hidden"]);
    client.read("SELECT * FROM secrets").fails_as("REFUSED", &["`secrets` is hidden"]);
    client.write("INSERT INTO ledger(entry) VALUES ('x')").fails_as("REFUSED", &["`ledger` is protected"]);
}
