//! A grammar of SQL over one small schema: bytes choose, so that a fuzzer and a property test share it.
//!
//! It knows what is SQL and not what is allowed. `select` gives statements that SQLite takes and whose rows do not
//! depend on chance; `anything` gives whatever somebody may send.

/// The schema that statements are about.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT UNIQUE, score REAL, tag INTEGER DEFAULT 7);
    CREATE TABLE pairs(a TEXT, b INTEGER, c BLOB, PRIMARY KEY(a, b)) WITHOUT ROWID;
    CREATE TABLE child(id INTEGER PRIMARY KEY, note INTEGER REFERENCES notes(id) ON DELETE CASCADE ON UPDATE SET NULL);
    CREATE INDEX by_score ON notes(score DESC, tag);
    CREATE VIEW seen AS SELECT n.id, n.title, p.b FROM notes n LEFT JOIN pairs p ON p.b = n.id;
    CREATE VIRTUAL TABLE words USING fts5(body);
    CREATE TRIGGER counted AFTER UPDATE ON notes BEGIN UPDATE pairs SET b = b + 1000 WHERE a = new.title; END;
    CREATE TRIGGER through INSTEAD OF INSERT ON seen BEGIN INSERT INTO notes(title) VALUES (new.title); END;
    INSERT INTO notes(id, title, score) VALUES (1, 'one', 1.5), (2, 'two', -0.0), (3, 'three', NULL), (4, '4', 4e300), (5, '', 0.1);
    INSERT INTO pairs VALUES ('one', 1, x'00ff'), ('one', 2, NULL), ('two', 2, 'text'), ('x', 9223372036854775807, 3);
    INSERT INTO child VALUES (1, 1), (2, 1), (3, NULL); INSERT INTO words VALUES ('one two'), ('three');
";

/// The user's tables, as they can be read whole.
pub(crate) const TABLES: &[&str] = &["notes", "pairs", "child", "words"];

/// The server's.
pub(crate) const SERVER_TABLES: &[&str] = &["memory_events", "memory_checkpoints", "query_log"];

/// Bytes that decide.
pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
    depth: u32,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    /// 0 once the bytes are used up, so that everything comes to an end.
    fn below(&mut self, bound: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(*first) % bound
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// One of these, made one level deeper; the first, which must be plain, when it is deep enough.
    fn deeper(&mut self, bound: usize) -> usize {
        if self.depth > 3 || self.bytes.is_empty() { 0 } else { self.below(bound) }
    }
}

const NAMES: &[&str] = &["notes", "pairs", "child", "seen", "words"];
const COLUMNS: &[&str] = &["id", "title", "score", "tag", "a", "b", "c", "note", "body", "rowid"];
const LITERALS: &[&str] = &[
    "1",
    "0",
    "-1",
    "2",
    "NULL",
    "'one'",
    "''",
    "'4'",
    "1.5",
    "-0.0",
    "1e999",
    "x'00ff'",
    "9223372036854775807",
    "'it''s'",
    "'a,\"b\nc'",
    "TRUE",
    "5",
    "'zz'",
];

/// A value over the columns of one source.
fn expression(c: &mut Choices<'_>, columns: &[&str]) -> String {
    c.depth += 1;
    let made = match c.deeper(14) {
        0 | 1 => c.of(LITERALS).to_owned(),
        2..=4 => c.of(columns).to_owned(),
        5 => {
            let operator = c.of(&[
                "+", "-", "*", "/", "%", "||", "<", "<=", "=", "<>", "IS", "IS NOT", "AND", "OR", "&", "|",
                "<<",
            ]);
            format!("({} {operator} {})", expression(c, columns), expression(c, columns))
        }
        6 => format!(
            "{}({})",
            c.of(&["abs", "length", "typeof", "upper", "hex", "quote", "unicode", "trim", "round"]),
            c.of(columns)
        ),
        7 => format!(
            "CASE WHEN {} THEN {} ELSE {} END",
            expression(c, columns),
            expression(c, columns),
            expression(c, columns)
        ),
        8 => format!(
            "CAST({} AS {})",
            expression(c, columns),
            c.of(&["TEXT", "INTEGER", "REAL", "BLOB", "NUMERIC"])
        ),
        9 => format!(
            "({} {}IN ({}, {}))",
            expression(c, columns),
            c.of(&["", "NOT "]),
            c.of(LITERALS),
            c.of(LITERALS)
        ),
        10 => format!("coalesce({}, {})", expression(c, columns), expression(c, columns)),
        11 => format!(
            "(SELECT {}(id) FROM notes WHERE id > {})",
            c.of(&["max", "count", "sum"]),
            c.of(&["0", "2", "99"])
        ),
        12 => format!("EXISTS (SELECT 1 FROM pairs WHERE b = {})", c.of(columns)),
        _ => format!(
            "substr({}, {}, {})",
            expression(c, columns),
            c.of(&["1", "-2", "0"]),
            c.of(&["1", "3", "-1"])
        ),
    };
    c.depth -= 1;
    made
}

/// What stands behind FROM, and the columns that it has.
fn source(c: &mut Choices<'_>) -> (String, Vec<&'static str>) {
    c.depth += 1;
    let made = match c.deeper(8) {
        0 | 1 => ("notes".to_owned(), vec!["id", "title", "score", "tag"]),
        2 => ("pairs".to_owned(), vec!["a", "b", "c"]),
        3 => ("seen".to_owned(), vec!["id", "title", "b"]),
        4 => ("child".to_owned(), vec!["id", "note"]),
        5 => {
            let join = c.of(&["JOIN", "LEFT JOIN", "CROSS JOIN", "RIGHT JOIN", "FULL JOIN"]);
            let on = expression(c, &["n.id", "p.b", "n.title", "p.a"]);
            let on = if join == "CROSS JOIN" { String::new() } else { format!(" ON {on}") };
            (format!("notes n {join} pairs p{on}"), vec!["n.id", "n.title", "p.a", "p.b", "p.c"])
        }
        6 => (format!("({}) AS inner_rows", select_of(c, &["one_value"])), vec!["one_value"]),
        _ => (
            format!(
                "(WITH RECURSIVE k(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM k WHERE x < {}) SELECT x FROM k)",
                c.of(&["3", "20"])
            ),
            vec!["x"],
        ),
    };
    c.depth -= 1;
    made
}

fn select_of(c: &mut Choices<'_>, names: &[&str]) -> String {
    let (from, columns) = source(c);
    let grouped = c.below(5) == 0;
    let mut shown = Vec::new();
    for at in 0..if names.is_empty() { 1 + c.below(3) } else { names.len() } {
        let value = if grouped && at > 0 {
            format!("{}({})", c.of(&["count", "sum", "min", "max", "total", "avg"]), c.of(&columns))
        } else {
            expression(c, &columns)
        };
        let alias = names.get(at).map_or(format!("c{at}"), |name| (*name).to_owned());
        shown.push(format!("{value} AS {alias}"));
    }
    let mut sql =
        format!("SELECT {}{} FROM {from}", if c.below(6) == 0 { "DISTINCT " } else { "" }, shown.join(", "));
    if c.below(2) == 0 {
        sql.push_str(&format!(" WHERE {}", expression(c, &columns)));
    }
    if grouped {
        sql.push_str(" GROUP BY 1");
    }
    sql
}

/// A SELECT that SQLite takes, but for values that its functions refuse while it runs.
pub(crate) fn select(bytes: &[u8]) -> String {
    let c = &mut Choices::new(bytes);
    let mut sql = select_of(c, &[]);
    match c.below(6) {
        0 => sql.push_str(&format!(" ORDER BY {}", c.of(&["1", "1 DESC", "1 NULLS LAST"]))),
        1 => sql.push_str(&format!(" LIMIT {}", c.of(&["0", "2", "3 OFFSET 1"]))),
        2 => {
            let columns = sql_width(&sql);
            let other = vec!["NULL"; columns].join(", ");
            sql.push_str(&format!(
                " {} SELECT {other}",
                c.of(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
            ));
        }
        _ => {}
    }
    sql
}

/// How many columns the outermost SELECT shows: its aliases are numbered.
fn sql_width(sql: &str) -> usize {
    (0..4).rev().find(|at| sql.contains(&format!(" AS c{at}"))).map_or(1, |at| at + 1)
}

/// Any statement, or something near one.
pub(crate) fn anything(bytes: &[u8]) -> String {
    let c = &mut Choices::new(bytes);
    let name = |c: &mut Choices<'_>| -> &'static str {
        if c.below(5) == 0 {
            c.of(&[
                "memory_events",
                "memory_checkpoints",
                "query_log",
                "query_errors",
                "sqlite_schema",
                "words_data",
                "sqlite_sequence",
            ])
        } else {
            c.of(NAMES)
        }
    };
    let table = name(c);
    let or = c.of(&["", " OR REPLACE", " OR IGNORE", " OR ROLLBACK", " OR FAIL"]);
    let (column, other) = (c.of(COLUMNS), c.of(COLUMNS));
    let sql = match c.below(26) {
        0..=3 => select_of(c, &[]),
        4..=6 => {
            let values = (0..1 + c.below(4)).map(|_| c.of(LITERALS)).collect::<Vec<_>>().join(", ");
            format!("INSERT{or} INTO {table} VALUES ({values})")
        }
        7 | 8 => {
            let (one, two) = (expression(c, &["1"]), expression(c, &["2"]));
            format!("INSERT{or} INTO {table}({column}, {other}) VALUES ({one}, {two}), ({two}, {one})")
        }
        9 => format!("INSERT{or} INTO {table} SELECT * FROM {}", name(c)),
        10 => format!(
            "INSERT INTO {table}({column}) VALUES ({}) ON CONFLICT DO UPDATE SET {other} = excluded.{column}",
            c.of(LITERALS)
        ),
        11 => format!("REPLACE INTO {table}({column}, {other}) SELECT {column}, {other} FROM {table}"),
        12..=15 => {
            let (value, test) = (expression(c, COLUMNS), expression(c, COLUMNS));
            format!("UPDATE{or} {table} SET {column} = {value} WHERE {test}")
        }
        16 => format!("UPDATE{or} {table} SET {column} = {other} FROM {} AS f RETURNING *", name(c)),
        17 => format!("DELETE FROM {table} WHERE {}", expression(c, COLUMNS)),
        18 => format!(
            "{} {} {table}",
            c.of(&["DROP", "ALTER", "CREATE"]),
            c.of(&["TABLE", "VIEW", "INDEX", "TRIGGER"])
        ),
        19 => format!(
            "CREATE {} x{} AS SELECT * FROM {table}",
            c.of(&["TABLE", "TEMP TABLE", "VIEW", "TABLE IF NOT EXISTS"]),
            c.below(3)
        ),
        20 => format!("CREATE {}INDEX i{} ON {table}({column}, {other})", c.of(&["", "UNIQUE "]), c.below(3)),
        21 => {
            let body = c.of(&[
                "DELETE FROM notes",
                "UPDATE query_log SET ok = 1",
                "INSERT INTO memory_events(id) VALUES (1)",
                "SELECT 1",
            ]);
            format!(
                "CREATE TRIGGER g{} {} {} ON {table} BEGIN {body}; END",
                c.below(3),
                c.of(&["BEFORE", "AFTER", "INSTEAD OF"]),
                c.of(&["INSERT", "UPDATE", "DELETE"])
            )
        }
        22 => format!(
            "PRAGMA {}",
            c.of(&[
                "journal_mode = OFF",
                "writable_schema = 1",
                "user_version = 9",
                "table_info(notes)",
                "wal_checkpoint",
                "optimize",
                "query_only = 0",
                "incremental_vacuum",
                "integrity_check",
                "foreign_keys = 0",
                "recursive_triggers = 1",
                "page_size = 512",
                "application_id = 5"
            ])
        ),
        23 => c
            .of(&[
                "VACUUM",
                "VACUUM INTO '/tmp/indelible-never'",
                "ATTACH ':memory:' AS m",
                "DETACH main",
                "BEGIN",
                "COMMIT",
                "ROLLBACK",
                "SAVEPOINT s",
                "RELEASE s",
                "ANALYZE",
                "REINDEX",
                "SELECT 1; DELETE FROM notes",
                "",
                ";",
                "--",
                "EXPLAIN DELETE FROM notes",
                "EXPLAIN QUERY PLAN DELETE FROM notes",
                "VALUES (1), (2)",
            ])
            .to_owned(),
        24 => format!(
            "INSERT INTO words({}) VALUES ({})",
            c.of(&["words", "body", "words, rank", "words, rowid, body"]),
            c.of(&[
                "'rebuild'",
                "'delete-all'",
                "'optimize'",
                "'delete', 1, 'one two'",
                "'rank', 'bm25(10)'",
                "'one'"
            ])
        ),
        _ => format!(
            "WITH w AS (SELECT * FROM {table}) {} {table} {}",
            c.of(&["DELETE FROM", "INSERT INTO", "UPDATE"]),
            c.of(&["WHERE 1", "SELECT * FROM w", "SET id = 1", "DEFAULT VALUES"])
        ),
    };
    // Now and then a byte goes missing or comes twice.
    let mut text = sql;
    if c.below(12) == 1 && !text.is_empty() {
        let at = c.below(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
            text.remove(at);
        }
    }
    text
}
