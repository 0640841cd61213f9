//! What a group keeps together and what it keeps apart.

use super::*;
use crate::audit::AuditRow;
use crate::generated::{POLICIES, PROTECTED};
use crate::policy::ConnectionKind;
use crate::render::Caps;
use crate::sqlite::guard::Guarded;
use crate::sqlite::ledger::Ledger;
use crate::sqlite::params::Params;
use crate::sqlite::toll::Agreed;
use crate::sqlite::watch::Watch;
use rusqlite::Connection;
use std::path::Path;

struct Silent;

impl Moments for Silent {
    fn before_log(&mut self) {}
    fn before_commit(&mut self) {}
}

const SETUP: &str = "
    CREATE TABLE t(id INTEGER PRIMARY KEY, x UNIQUE);
    INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three');
    CREATE TABLE child(of REFERENCES t(id) DEFERRABLE INITIALLY DEFERRED);
    CREATE VIRTUAL TABLE docs USING fts5(body);
";

fn audit(sql: &str) -> AuditRow {
    AuditRow {
        ts: "2026-11-30T09:01:02Z".to_owned(),
        session: "run-1".to_owned(),
        tool: "write_query".to_owned(),
        query: Some(sql.to_owned()),
        ok: true,
        ..AuditRow::default()
    }
}

/// Runs a group and says in a word or two what became of each.
fn run(path: &Path, statements: &[&str]) -> Vec<String> {
    let watch = Watch::alone(Duration::from_secs(1));
    let guarded = Guarded::open(path, ConnectionKind::ReadWrite, false, &PROTECTED, watch).unwrap();
    let mut writer = Writer::new(guarded, path.to_path_buf()).unwrap();
    let policy = POLICIES.iter().copied().find(|policy| policy.id == "write").unwrap();
    let audits: Vec<AuditRow> = statements.iter().map(|sql| audit(sql)).collect();
    let changes: Vec<Change<'_>> = statements
        .iter()
        .zip(&audits)
        .map(|(sql, audit)| Change {
            sql,
            params: &Params::None,
            max_rows: 10,
            caps: Caps { max_result_bytes: 1000, max_cell_chars: 100 },
            max_overwrites: Some(4),
            agreed: Agreed::Anything,
            audit,
        })
        .collect();
    let outcomes = writer.run_group(policy, &changes, &mut Silent).unwrap();
    assert!(writer.guarded().trusted().is_autocommit());
    let word = |outcome: Outcome| match outcome {
        None => "alone".to_owned(),
        Some(Ok(changed)) => match changed.last_insert_rowid {
            Some(id) => format!("{} rows, id {id}", changed.rows),
            None => format!("{} rows", changed.rows),
        },
        Some(Err(Fault::Error(error))) => error.code.as_str().to_owned(),
        Some(Err(Fault::Refused(_))) => "refused".to_owned(),
        Some(Err(other)) => format!("{other:?}"),
    };
    outcomes.into_iter().map(word).collect()
}

#[track_caller]
fn check(statements: &[(&str, &str)], rows: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    drop(Ledger::open(&path, Duration::from_secs(1)).unwrap());
    let outside = Connection::open(&path).unwrap();
    outside.execute_batch(SETUP).unwrap();
    let (statements, expected): (Vec<&str>, Vec<&str>) = statements.iter().copied().unzip();
    assert_eq!(run(&path, &statements), expected);
    let text = |sql: &str| -> String { outside.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(text("SELECT group_concat(x, ' ' ORDER BY id) FROM t"), rows);
    // Whatever changed something is in the log, in order, and nothing else.
    let logged = text("SELECT ifnull(group_concat(query, '|' ORDER BY id), '') FROM query_log");
    let done = statements.iter().zip(&expected).filter(|(_, became)| became.contains(" rows"));
    assert_eq!(logged, done.map(|(sql, _)| *sql).collect::<Vec<_>>().join("|"));
}

#[test]
fn each_member_is_judged_capped_and_logged_as_if_it_were_alone() {
    check(
        &[
            ("INSERT INTO t(x) VALUES ('four')", "1 rows, id 4"),
            ("INSERT INTO t(x) VALUES ('four')", "SQL_ERROR"),
            ("INSERT INTO t(x) SELECT 'five' UNION SELECT 'four'", "SQL_ERROR"),
            ("DELETE FROM t", "refused"),
            ("INSERT INTO query_log(ts) VALUES ('x')", "refused"),
            ("SELECT 1", "refused"),
            ("INSERT INTO t(x) VALUE ('six')", "SYNTAX_ERROR"),
            ("INSERT INTO t(x) VALUES ('seven'); INSERT INTO t(x) VALUES ('eight')", "MULTIPLE_STATEMENTS"),
            ("UPDATE t SET x = 'TWO' WHERE id = 2", "1 rows"),
            ("INSERT INTO t(x) VALUES ('nine') RETURNING id", "1 rows, id 5"),
        ],
        "one TWO three four nine",
    );
}

#[test]
fn what_needs_more_than_a_group_gives_is_left_to_be_run_alone() {
    check(
        &[
            ("INSERT INTO t(x) VALUES ('four')", "1 rows, id 4"),
            ("UPDATE t SET x = x || '!'", "alone"),
            ("CREATE TABLE other(x)", "alone"),
            ("INSERT INTO docs VALUES ('words')", "alone"),
            ("INSERT INTO t(x) VALUES ('five')", "1 rows, id 5"),
        ],
        "one two three four five",
    );
}

#[test]
fn when_the_transaction_is_lost_every_member_is_left_to_be_run_alone() {
    check(
        &[
            ("INSERT INTO t(x) VALUES ('four')", "alone"),
            ("INSERT INTO t(x) VALUES ('four')", "alone"),
            ("INSERT INTO t VALUE (1)", "SYNTAX_ERROR"),
            ("INSERT OR ROLLBACK INTO t(x) VALUES ('one')", "alone"),
            ("INSERT INTO t(x) VALUES ('five')", "alone"),
        ],
        "one two three",
    );
    // A deferred foreign key is looked at when the group commits.
    check(
        &[
            ("INSERT INTO t(x) VALUES ('four')", "alone"),
            ("INSERT INTO child VALUES (99)", "alone"),
            ("INSERT INTO t(x) VALUES ('one')", "alone"),
        ],
        "one two three",
    );
    // Out of time, SQLite rolls back the transaction and not the statement alone.
    let endless =
        "INSERT INTO t(x) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c";
    check(&[("INSERT INTO t(x) VALUES ('four')", "alone"), (endless, "alone")], "one two three");
    check(&[("INSERT INTO t(x) VALUES ('one')", "SQL_ERROR")], "one two three");
}
