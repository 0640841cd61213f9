//! Random statements under random policy files, on guarded connections: nothing is allowed that was refused
//! before, and no hidden value comes out.

use super::{CANARY, HIDE, PEOPLE};
use indelible::audit::AuditRow;
use indelible::generated::{POLICIES, PROTECTED};
use indelible::policy::{ConnectionKind, Narrowing, Policy};
use indelible::render::Caps;
use indelible::spec::check_narrowing::{Ground, GroundLimits, GroundPolicy, check_narrowing};
use indelible::sqlite::bootstrap::bootstrap;
use indelible::sqlite::fault::Fault;
use indelible::sqlite::guard::Guarded;
use indelible::sqlite::params::Params;
use indelible::sqlite::query::{Form, Read, ReadRows, run};
use indelible::sqlite::toll::Agreed;
use indelible::sqlite::watch::Watch;
use indelible::sqlite::write::{Change, Moments, Writer};
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;

fn ground() -> Ground {
    let policies = POLICIES.iter().filter(|policy| policy.connection != ConnectionKind::None);
    Ground {
        policies: policies
            .map(|policy| GroundPolicy {
                id: policy.id.to_owned(),
                actions: policy.actions.to_vec(),
                pragmas: policy.pragmas.iter().map(|rule| rule.name.to_owned()).collect(),
            })
            .collect(),
        functions: indelible::sqlite::hiding::function_names().unwrap(),
        limits: GroundLimits { max_rows: 10, ..GroundLimits::default() },
    }
}

fn narrowing(text: &str) -> Narrowing {
    check_narrowing("policy.yaml", text, &ground(), &|_| None)
        .unwrap_or_else(|found| panic!("{text}\n{found:?}"))
}

fn policy(id: &str) -> &'static Policy {
    POLICIES.iter().copied().find(|policy| policy.id == id).unwrap()
}

/// A database in a folder of its own, with the server's tables.
fn database() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    // A definition can be read; there the value would stand as text.
    connection.execute_batch(&PEOPLE.replace("'CANARY@x' AS email", "'q' AS email")).unwrap();
    bootstrap(&mut connection, &path).unwrap();
    (folder, path)
}

fn guarded(path: &Path, kind: ConnectionKind, narrowing: &Narrowing) -> Guarded {
    let watch = Watch::alone(Duration::from_secs(2));
    Guarded::open(path, kind, false, &PROTECTED, watch).unwrap().narrowed(narrowing.clone())
}

const TABLES: &[&str] = &[
    "people",
    "orders",
    "secrets",
    "contacts",
    "over_contacts",
    "names",
    "matched",
    "people_fts",
    "people_terms",
    "name_fts",
    "fed",
    "old_addresses",
    "sqlite_stat4",
    "sqlite_stat1",
    "people_fts_data",
    "people_fts_idx",
    "sqlite_schema",
    "made",
    "\"PEOPLE\"",
    "[people]",
    "pragma_table_info('people')",
    "people_fts('c*')",
    "dbstat",
];
const COLUMNS: &[&str] = &[
    "*",
    "a.*",
    "id",
    "name",
    "email",
    "EMAIL",
    "\"email\"",
    "a.email",
    "b.email",
    "domain",
    "shout",
    "hello",
    "word",
    "rowid",
    "a.rowid",
    "city",
    "term",
    "sample",
    "stat",
    "sql",
    "x",
    "address",
    "person",
    "total",
    "rank",
    "people_fts",
    "count(*)",
    "1",
    "a.name",
    "b.name",
];

fn one_of(list: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    proptest::sample::select(list).prop_map(str::to_owned)
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![4 => one_of(COLUMNS), 1 => Just("'CAN*'".to_owned()), 1 => Just("7".to_owned())];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (
                one_of(&[
                    "lower",
                    "max",
                    "group_concat",
                    "quote",
                    "length",
                    "random",
                    "json_group_array",
                    "hex",
                    "count",
                    "highlight",
                    "upper"
                ]),
                inner.clone()
            )
                .prop_map(|(f, e)| format!("{f}({e})")),
            (inner.clone(), one_of(&["||", "=", "LIKE", "IN", "MATCH", ">"]), inner.clone()).prop_map(
                |(a, o, b)| if o == "IN" { format!("{a} IN ({b})") } else { format!("{a} {o} {b}") }
            ),
            (inner.clone(), one_of(TABLES)).prop_map(|(e, t)| format!("(SELECT {e} FROM {t} LIMIT 1)")),
            one_of(TABLES).prop_map(|t| format!("'x' IN {t}")),
            inner.prop_map(|e| format!("CASE WHEN {e} THEN {e} END")),
        ]
    })
}

fn source() -> impl Strategy<Value = String> {
    let join = one_of(&[
        " JOIN ",
        " NATURAL JOIN ",
        " LEFT JOIN ",
        " RIGHT JOIN ",
        " FULL JOIN ",
        " CROSS JOIN ",
        " NATURAL LEFT JOIN ",
        ", ",
    ]);
    let condition = one_of(&[
        "",
        "",
        " USING (email)",
        " USING (id)",
        " USING (word)",
        " ON a.id = b.id",
        " ON a.email = b.email",
        " USING (name)",
    ]);
    let made =
        one_of(&["(SELECT 'q' AS email, 1 AS id, 'w' AS word)", "(SELECT * FROM people)", "(VALUES (1))"]);
    let table = || one_of(TABLES);
    prop_oneof![
        3 => table().prop_map(|t| format!("{t} AS a")),
        3 => (table(), join.clone(), table(), condition.clone()).prop_map(|(a, j, b, c)| format!("{a} AS a{j}{b} AS b{c}")),
        2 => (made, join, table(), condition).prop_map(|(a, j, b, c)| format!("{a} AS a{j}{b} AS b{c}")),
    ]
}

fn select() -> impl Strategy<Value = String> {
    let tail = one_of(&[
        "",
        "",
        " ORDER BY 1",
        " GROUP BY 1",
        " LIMIT 5",
        " ORDER BY email",
        " UNION SELECT email FROM people",
    ]);
    (prop::collection::vec(expression(), 1..3), source(), prop::option::of(expression()), tail).prop_map(
        |(columns, from, filter, tail)| {
            let filter = filter.map(|e| format!(" WHERE {e}")).unwrap_or_default();
            format!("SELECT {} FROM {from}{filter}{tail}", columns.join(", "))
        },
    )
}

fn statement() -> impl Strategy<Value = String> {
    let returning = one_of(&["", "", " RETURNING *", " RETURNING id", " RETURNING email"]);
    prop_oneof![
        6 => select(),
        1 => select().prop_map(|s| format!("EXPLAIN QUERY PLAN {s}")),
        1 => select().prop_map(|s| format!("WITH c AS ({s}) SELECT * FROM c")),
        2 => (one_of(TABLES), select(), returning.clone()).prop_map(|(t, s, r)| format!("INSERT INTO {t} {s}{r}")),
        1 => (select()).prop_map(|s| format!("INSERT INTO old_addresses(address) {s}")),
        2 => (one_of(TABLES), one_of(&["name", "email", "city", "total", "address"]), expression(), returning.clone())
            .prop_map(|(t, c, e, r)| format!("UPDATE {t} AS a SET {c} = {e}{r}")),
        1 => (one_of(TABLES), expression(), returning).prop_map(|(t, e, r)| format!("DELETE FROM {t} AS a WHERE {e}{r}")),
        1 => select().prop_map(|s| format!("CREATE TABLE made AS {s}")),
        1 => (one_of(TABLES), expression()).prop_map(|(t, e)| format!("CREATE INDEX made_i ON {t}({e})")),
        1 => (one_of(TABLES), select()).prop_map(|(t, s)| format!("CREATE TRIGGER made_t AFTER INSERT ON {t} BEGIN INSERT INTO old_addresses(address) {s}; END")),
        1 => one_of(TABLES).prop_map(|t| format!("DROP TABLE {t}")),
        1 => (one_of(TABLES), one_of(&["RENAME COLUMN email TO mail", "RENAME TO made", "ADD COLUMN late AS (email)", "DROP COLUMN shout"]))
            .prop_map(|(t, c)| format!("ALTER TABLE {t} {c}")),
        1 => one_of(&["ANALYZE", "REINDEX", "PRAGMA integrity_check", "PRAGMA table_info(people)", "VACUUM", "PRAGMA user_version", "PRAGMA data_version",
            "CREATE VIRTUAL TABLE made USING fts5(email, content='people', content_rowid='id')", "INSERT INTO made(made) VALUES ('rebuild')", "INSERT INTO name_fts(name_fts) VALUES ('rebuild')"]),
    ]
}

/// A policy file that the checker accepts.
fn file() -> impl Strategy<Value = String> {
    let table = || {
        one_of(&[
            "people",
            "orders",
            "secrets",
            "'*'",
            "'peo*'",
            "names",
            "'*_fts'",
            "query_log",
            "'s?crets'",
        ])
    };
    let refused = || {
        (
            prop::collection::vec(
                one_of(&["select", "insert", "update", "create_table", "recursive", "analyze", "function"]),
                0..3,
            ),
            prop::collection::vec(one_of(&["random", "lower", "max", "quote", "like", "match"]), 0..3),
            prop::collection::vec(one_of(&["integrity_check", "table_info", "data_version"]), 0..2),
        )
            .prop_map(|(a, f, p)| {
                format!(
                    "{{actions: [{}], functions: [{}], pragmas: [{}]}}",
                    a.join(", "),
                    f.join(", "),
                    p.join(", ")
                )
            })
    };
    (
        prop::collection::vec(table(), 0..3),
        prop::collection::vec((table(), prop::option::of(one_of(&["email", "'*'", "name", "id"]))), 0..3),
        refused(),
        prop::option::of(prop::collection::vec(one_of(&["lower", "max"]), 1..2)),
    )
        .prop_map(|(protect, hide, refuse, of_read)| {
            let hide = hide.into_iter().map(|(table, column)| {
                let columns = column.map(|column| format!(", columns: [{column}]")).unwrap_or_default();
                format!("{{table: {table}{columns}}}")
            });
            let mut text = format!(
                "protect: [{}]\nhide: [{}]\nrefuse: {refuse}\n",
                protect.join(", "),
                hide.collect::<Vec<_>>().join(", ")
            );
            if let Some(functions) = of_read {
                text.push_str(&format!(
                    "policies: [{{id: read, refuse: {{functions: [{}]}}}}]\n",
                    functions.join(", ")
                ));
            }
            text
        })
}

/// Nothing to tell.
struct Silent;

impl Moments for Silent {
    fn before_log(&mut self) {}
    fn before_commit(&mut self) {}
}

const CAPS: Caps = Caps { max_result_bytes: 100_000, max_cell_chars: 10_000 };

/// The text of a read, or of its error.
fn read(guarded: &Guarded, sql: &str) -> String {
    guarded.watch().start(Duration::from_secs(2));
    let asked = Read { sql, params: &Params::None, limit: 50, max_rows: 50, caps: CAPS, form: Form::Csv };
    match run(guarded, policy("read"), asked, &mut || {}) {
        Ok(ReadRows::Text(found)) => found.text,
        Ok(ReadRows::Data(_)) => String::new(),
        Err(fault) => said(&fault),
    }
}

/// The RETURNING rows of a change, or its error.
fn change(writer: &mut Writer, id: &str, sql: &str) -> String {
    writer.guarded().watch().start(Duration::from_secs(2));
    let audit = AuditRow {
        ts: "2026-01-01T00:00:00Z".to_owned(),
        session: "s".to_owned(),
        tool: "t".to_owned(),
        ok: true,
        ..AuditRow::default()
    };
    let change = Change {
        sql,
        params: &Params::None,
        max_rows: 50,
        caps: CAPS,
        max_overwrites: None,
        agreed: Agreed::Anything,
        audit: &audit,
    };
    match writer.run(policy(id), &change, &mut Silent) {
        Ok(changed) => changed.returning.unwrap_or_default(),
        Err(fault) => said(&fault),
    }
}

fn said(fault: &Fault) -> String {
    format!("{fault:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn a_policy_file_never_allows_what_the_built_in_policy_refuses(
        text in file(),
        statements in prop::collection::vec(statement(), 1..12),
    ) {
        let (_folder, path) = database();
        let narrowing = narrowing(&text);
        for kind in [ConnectionKind::ReadOnly, ConnectionKind::ReadWrite] {
            let (plain, narrowed) = (guarded(&path, kind, &Narrowing::default()), guarded(&path, kind, &narrowing));
            for policy in POLICIES.iter().filter(|policy| policy.connection == kind) {
                for sql in &statements {
                    let (before, after) = (plain.compile(policy, sql).is_ok(), narrowed.compile(policy, sql).is_ok());
                    prop_assert!(before || !after, "{}: {sql}\n{text}", policy.id);
                }
            }
        }
    }

    #[test]
    fn no_statement_brings_a_hidden_value_to_light(statements in prop::collection::vec(statement(), 1..14)) {
        let (_folder, path) = database();
        let narrowing = narrowing(HIDE);
        let reader = guarded(&path, ConnectionKind::ReadOnly, &narrowing);
        let mut writer = Writer::new(guarded(&path, ConnectionKind::ReadWrite, &narrowing), path.clone()).unwrap();
        for sql in &statements {
            for given in [read(&reader, sql), change(&mut writer, "write", sql), change(&mut writer, "destroy", sql)] {
                prop_assert!(!given.contains(CANARY), "{sql}\n{given}\nafter {statements:?}");
            }
        }
        // Nor has one come to stand where it can be read.
        let shown = reader.tables(false).unwrap();
        for table in shown {
            let sql = format!("SELECT * FROM \"{}\"", table.name);
            let given = read(&reader, &sql);
            prop_assert!(!given.contains(CANARY), "{sql}\n{given}\nafter {statements:?}");
        }
    }
}
