//! A database with the server's tables and guarded connections to it, as workers have them; and what must hold of any
//! statement that is run there.
//!
//! It starts no server.

use super::grammar::{SCHEMA, SERVER_TABLES, TABLES};
use indelible::audit::AuditRow;
use indelible::generated::{POLICIES, PROTECTED};
use indelible::policy::{ConnectionKind, Policy};
use indelible::render::Caps;
use indelible::render::DatumRows;
use indelible::sqlite::bootstrap::bootstrap;
use indelible::sqlite::fault::Fault;
use indelible::sqlite::guard::Guarded;
use indelible::sqlite::params::Params;
use indelible::sqlite::query::{Form, Read, ReadRows, run};
use indelible::sqlite::toll::Agreed;
use indelible::sqlite::watch::Watch;
use indelible::sqlite::write::{Change, Changed, Moments, Writer};
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Rows that a write may overwrite.
pub(crate) const CAP: u64 = 2;

/// No statement of the grammar needs a tenth of it.
const LIMIT: Duration = Duration::from_secs(5);

/// The folder is removed when this is dropped.
pub(crate) struct Desk {
    path: PathBuf,
    writer: Writer,
    reader: Guarded,
    outside: Connection,
    _folder: tempfile::TempDir,
}

struct Nobody;

impl Moments for Nobody {
    fn before_log(&mut self) {}
    fn before_commit(&mut self) {}
}

/// Rows by what identifies them, whole.
type Rows = BTreeMap<String, String>;

fn policy(id: &str) -> &'static Policy {
    POLICIES.iter().copied().find(|policy| policy.id == id).unwrap()
}

impl Desk {
    /// In rollback mode, so that the file is all there is.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut outside = Connection::open(&path).unwrap();
        outside.execute_batch(SCHEMA).unwrap();
        bootstrap(&mut outside, &path).unwrap();
        outside.execute_batch("INSERT INTO memory_events VALUES (1, 't', 's', 'note', 'c', '0', 'h'); INSERT INTO query_log(ts, session, tool, ok, duration_ms) VALUES ('t', 's', 'x', 1, 0)").unwrap();
        let open =
            |kind| Guarded::open(&path, kind, false, &PROTECTED, Watch::alone(Duration::ZERO)).unwrap();
        let (reader, writer) = (open(ConnectionKind::ReadOnly), open(ConnectionKind::ReadWrite));
        Self { writer: Writer::new(writer, path.clone()).unwrap(), reader, outside, path, _folder: folder }
    }

    /// Runs a statement that reads, under a policy that reads.
    pub(crate) fn read(&self, policy_id: &str, sql: &str) -> Result<DatumRows, Fault> {
        self.reader.watch().start(LIMIT);
        let caps = Caps { max_result_bytes: 1 << 22, max_cell_chars: 1 << 20 };
        let read = Read { sql, params: &Params::None, limit: 1000, max_rows: 1000, caps, form: Form::Data };
        match run(&self.reader, policy(policy_id), read, &mut || {})? {
            ReadRows::Data(rows) => Ok(rows),
            ReadRows::Text(text) => panic!("{}", text.text),
        }
    }

    fn change(&mut self, policy_id: &str, sql: &str) -> Result<Changed, Fault> {
        self.writer.guarded().watch().start(LIMIT);
        let policy = policy(policy_id);
        let audit = AuditRow {
            tool: "test".to_owned(),
            query: Some(sql.to_owned()),
            ok: true,
            ..AuditRow::default()
        };
        let change = Change {
            sql,
            params: &Params::None,
            max_rows: 10,
            caps: Caps { max_result_bytes: 1 << 16, max_cell_chars: 100 },
            max_overwrites: (policy_id == "write").then_some(CAP),
            agreed: Agreed::Anything,
            audit: &audit,
        };
        self.writer.run(policy, &change, &mut Nobody)
    }

    /// What stands in a table, each row under its key.
    fn rows(&self, table: &str) -> Rows {
        let key = match table {
            "pairs" => "quote(a) || '/' || quote(b)",
            _ => "rowid",
        };
        let sql = format!("SELECT {key} AS row_key, * FROM \"{table}\"");
        let mut statement = self.outside.prepare(&sql).unwrap();
        let width = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut found = Rows::new();
        while let Some(row) = rows.next().unwrap() {
            let cells: Vec<String> = (0..width).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
            found.insert(cells[0].clone(), cells[1..].join("|"));
        }
        found
    }

    fn user_rows(&self) -> Vec<Rows> {
        // A table that was dropped or altered away has no rows.
        TABLES.iter().map(|table| if self.has(table) { self.rows(table) } else { Rows::new() }).collect()
    }

    fn has(&self, table: &str) -> bool {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        self.outside.query_row(sql, [table], |row| row.get::<_, i64>(0)).unwrap() == 1
    }

    fn definitions(&self) -> Vec<String> {
        let sql = "SELECT name || ' ' || ifnull(sql, '') FROM sqlite_schema WHERE tbl_name IN ('memory_events', 'memory_checkpoints', 'query_log', 'query_errors') ORDER BY 1";
        let mut statement = self.outside.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Runs it under every policy that reads: the file's bytes stay, and nothing comes up beside it.
    pub(crate) fn read_changes_nothing(&self, sql: &str) {
        let files = || -> Vec<(std::ffi::OsString, Vec<u8>)> {
            let entries = std::fs::read_dir(self.path.parent().unwrap()).unwrap();
            let mut files: Vec<_> = entries
                .map(|entry| entry.unwrap())
                .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
                .collect();
            files.sort();
            files
        };
        let before = files();
        for id in ["read", "look"] {
            let result = self.read(id, sql);
            assert!(files() == before, "{id}: {sql}\nwrote to the file: {result:?}");
        }
    }

    /// Runs it under every policy that changes: the server's tables stay but for the log row of the change, a refused
    /// statement leaves nothing, and one under `write` overwrites no more than the cap.
    pub(crate) fn change_keeps_its_bounds(&mut self, sql: &str) {
        for id in ["write", "destroy"] {
            let (users, servers, definitions) =
                (self.user_rows(), SERVER_TABLES.map_rows(self), self.definitions());
            let result = self.change(id, sql);
            let after = SERVER_TABLES.map_rows(self);
            assert_eq!(after[..2], servers[..2], "{id}: {sql}\nchanged the memory: {result:?}");
            let (log, old) = (&after[2], &servers[2]);
            assert!(
                old.iter().all(|(key, row)| log.get(key) == Some(row)),
                "{id}: {sql}\nchanged the log: {result:?}"
            );
            assert_eq!(log.len(), old.len() + usize::from(result.is_ok()), "{id}: {sql}\n{result:?}");
            assert_eq!(
                self.definitions(),
                definitions,
                "{id}: {sql}\nchanged the server's definitions: {result:?}"
            );
            let now = self.user_rows();
            if result.is_err() {
                assert!(now == users, "{id}: {sql}\nfailed and left something: {result:?}");
            }
            if id == "write" {
                let kept = |before: &Rows, now: &Rows| {
                    before.iter().filter(|(key, row)| now.get(*key) != Some(*row)).count()
                };
                let overwritten: usize = users.iter().zip(&now).map(|(before, now)| kept(before, now)).sum();
                assert!(overwritten as u64 <= CAP, "{sql}\noverwrote {overwritten} rows: {result:?}");
            }
        }
    }

    /// What plain SQLite gives.
    pub(crate) fn plain(&self, sql: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
        let mut statement = self.outside.prepare(sql)?;
        let width = statement.column_count();
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let value = |at: usize| -> rusqlite::Result<Value> {
                match row.get_ref(at)? {
                    // Bytes that are no text are shown with a mark in their place.
                    ValueRef::Text(text) => Ok(Value::Text(String::from_utf8_lossy(text).into_owned())),
                    _ => row.get(at),
                }
            };
            found.push((0..width).map(value).collect::<rusqlite::Result<_>>()?);
        }
        Ok(found)
    }
}

trait MapRows {
    fn map_rows(&self, desk: &Desk) -> Vec<Rows>;
}

impl MapRows for &[&str] {
    fn map_rows(&self, desk: &Desk) -> Vec<Rows> {
        self.iter().map(|table| desk.rows(table)).collect()
    }
}
