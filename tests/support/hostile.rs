//! SQL that agents send to get around what a tool is for; one table for all profiles.

/// A statement over the music store, and the code of its refusal by each tool; empty where the tool takes it.
pub(crate) struct Hostile {
    /// The statement.
    pub(crate) sql: &'static str,
    /// By run_query.
    pub(crate) run_query: &'static str,
    /// By db_query.
    pub(crate) db_query: &'static str,
    /// By db_exec.
    pub(crate) db_exec: &'static str,
}

const fn row(
    sql: &'static str,
    run_query: &'static str,
    db_query: &'static str,
    db_exec: &'static str,
) -> Hostile {
    Hostile { sql, run_query, db_query, db_exec }
}

/// Statements that would change the file, the connection or other files.
pub(crate) const HOSTILE: &[Hostile] = &[
    row("DELETE FROM tracks", "NOT_SELECT", "not_read_only", ""),
    row("INSERT INTO artists VALUES (9, 'x')", "NOT_SELECT", "not_read_only", ""),
    row("UPDATE artists SET name = 'x'", "NOT_SELECT", "not_read_only", ""),
    row("REPLACE INTO artists VALUES (1, 'x')", "NOT_SELECT", "not_read_only", ""),
    row("DROP TABLE tracks", "NOT_SELECT", "not_read_only", ""),
    row("CREATE TABLE t(x)", "NOT_SELECT", "not_read_only", ""),
    row("CREATE TEMP TABLE t(x)", "NOT_SELECT", "not_read_only", "not_read_only"),
    row("CREATE VIEW v AS SELECT 1", "NOT_SELECT", "not_read_only", ""),
    row("CREATE VIRTUAL TABLE f USING fts5(x)", "NOT_SELECT", "not_read_only", ""),
    row("ALTER TABLE tracks ADD COLUMN x", "NOT_SELECT", "not_read_only", ""),
    row("VACUUM", "NOT_SELECT", "refused", "refused"),
    row("VACUUM INTO 'copy.db'", "NOT_SELECT", "refused", "refused"),
    row("ANALYZE", "NOT_SELECT", "not_read_only", ""),
    row("REINDEX", "NOT_SELECT", "not_read_only", ""),
    row("BEGIN", "NOT_SELECT", "refused", "refused"),
    row("BEGIN IMMEDIATE", "NOT_SELECT", "refused", "refused"),
    row("ROLLBACK", "NOT_SELECT", "refused", "refused"),
    row("SAVEPOINT s", "NOT_SELECT", "refused", "refused"),
    row("ATTACH 'other.db' AS other", "NOT_SELECT", "refused", "refused"),
    row("DETACH main", "NOT_SELECT", "refused", "refused"),
    row("PRAGMA table_info(tracks)", "NOT_SELECT", "", ""),
    row("PRAGMA journal_mode = WAL", "NOT_SELECT", "refused", "refused"),
    row("PRAGMA writable_schema = ON", "NOT_SELECT", "refused", "refused"),
    row("PRAGMA query_only = OFF", "NOT_SELECT", "refused", "refused"),
    row("PRAGMA wal_checkpoint", "NOT_SELECT", "refused", "refused"),
    row("PRAGMA database_list", "NOT_SELECT", "refused", "refused"),
    row("EXPLAIN SELECT 1", "NOT_SELECT", "", ""),
    row("EXPLAIN QUERY PLAN SELECT 1", "NOT_SELECT", "", ""),
    row("EXPLAIN DELETE FROM tracks", "NOT_SELECT", "", ""),
    row("/* SELECT */ DELETE FROM tracks", "NOT_SELECT", "not_read_only", ""),
    row("-- SELECT\nDELETE FROM tracks", "NOT_SELECT", "not_read_only", ""),
    row("; ; DELETE FROM tracks", "NOT_SELECT", "not_read_only", ""),
    row("DELETE FROM tracks RETURNING *", "NOT_SELECT", "not_read_only", ""),
    row("WITH x AS (SELECT 1) DELETE FROM tracks", "NOT_READ_ONLY", "not_read_only", ""),
    row("WITH x AS (SELECT 1) DELETE FROM tracks RETURNING id", "NOT_READ_ONLY", "not_read_only", ""),
    row(
        "WITH x AS (SELECT 1) INSERT INTO artists SELECT 9, 'x' FROM x",
        "NOT_READ_ONLY",
        "not_read_only",
        "",
    ),
    row("WITH x AS (SELECT 1) UPDATE tracks SET ms = 0", "NOT_READ_ONLY", "not_read_only", ""),
    row(
        "/* c */ WITH x AS (SELECT 1) REPLACE INTO artists SELECT 1, 'x'",
        "NOT_READ_ONLY",
        "not_read_only",
        "",
    ),
    row("SELECT 1; SELECT 2", "MULTIPLE_STATEMENTS", "multiple_statements", "multiple_statements"),
    row("SELECT 1; DELETE FROM tracks", "MULTIPLE_STATEMENTS", "multiple_statements", "multiple_statements"),
    row("SELECT 1; nonsense", "MULTIPLE_STATEMENTS", "multiple_statements", "multiple_statements"),
    row("SELECT load_extension('x')", "REFUSED", "refused", "refused"),
];

/// Functions and tables that reach outside the database, or write it from a SELECT: no tool takes them.
pub(crate) const OUT_OF_REACH: &[&str] = &[
    "SELECT writefile('x', 'y')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple', x'00')",
    "SELECT * FROM fsdir('/')",
    "SELECT * FROM pragma_journal_mode('wal')",
    "SELECT * FROM pragma_wal_checkpoint",
    "SELECT * FROM sqlite_dbpage",
];
