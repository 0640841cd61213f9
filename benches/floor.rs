//! What a call costs when nothing is checked: SQLite behind a loop over stdin, in one thread and one process.
//!
//! No SDK, no policy, no worker, no caps, no time limit; but a row in `query_log` for each call, in the same transaction
//! as a change. It is what `benches/outside.py --floor` measures Indelible against, and nothing else: it believes
//! whatever it is sent. It is no benchmark itself: run alone, it waits for lines on stdin.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a measuring stick, not a part of the program"
)]

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};

const LOG: &str = "CREATE TABLE IF NOT EXISTS query_log(id INTEGER PRIMARY KEY, ts TEXT, session TEXT, tool TEXT, \
                   query TEXT, ok INTEGER, rows INTEGER, error TEXT, duration_ms INTEGER, detail TEXT)";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).map(|at| arguments[at + 1].as_str())
    };
    // `cargo bench` runs every bench target with other arguments.
    let Some(db) = option("--db") else { return };
    let write = Connection::open(db).unwrap();
    write.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    write
        .execute_batch(&format!("PRAGMA synchronous={}; {LOG}", option("--synchronous").unwrap_or("FULL")))
        .unwrap();
    let read = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line).unwrap() > 0 {
        let request: Value = serde_json::from_str(&line).unwrap();
        line.clear();
        let Some(id) = request.get("id") else { continue };
        let result = answer(&read, &write, &request);
        writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result})).unwrap();
        output.flush().unwrap();
    }
}

fn answer(read: &Connection, write: &Connection, request: &Value) -> Value {
    let (method, params) = (request["method"].as_str().unwrap(), &request["params"]);
    if method != "tools/call" {
        let info = json!({"name": "floor", "version": "0"});
        return json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info, "tools": []});
    }
    let (tool, arguments) = (params["name"].as_str().unwrap(), &params["arguments"]);
    let query = arguments["query"].as_str().unwrap_or_default();
    let text = match tool {
        "read_query" => {
            let (text, rows) = csv(read, query);
            log(write, tool, query, rows);
            text
        }
        "write_query" => in_transaction(write, || {
            let rows = write.prepare_cached(query).unwrap().execute([]).unwrap();
            log(write, tool, query, rows);
            format!("ok: {rows} rows affected")
        }),
        _ => in_transaction(write, || {
            let id = append(write, arguments["content"].as_str().unwrap());
            log(write, tool, "", 1);
            format!("ok: event {id} appended")
        }),
    };
    json!({"content": [{"type": "text", "text": text}], "isError": false})
}

fn in_transaction(write: &Connection, work: impl FnOnce() -> String) -> String {
    write.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
    let text = work();
    write.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
    text
}

fn csv(read: &Connection, query: &str) -> (String, usize) {
    let mut statement = read.prepare_cached(query).unwrap();
    let mut text = statement.column_names().collect::<Vec<_>>().join(",");
    let columns = statement.column_count();
    let (mut rows, mut count) = (statement.query([]).unwrap(), 0);
    while let Some(row) = rows.next().unwrap() {
        count += 1;
        for at in 0..columns {
            text.push(if at == 0 { '\n' } else { ',' });
            match row.get_ref(at).unwrap() {
                ValueRef::Null => {}
                ValueRef::Integer(value) => write!(text, "{value}").unwrap(),
                ValueRef::Real(value) => write!(text, "{value}").unwrap(),
                ValueRef::Text(value) => text.push_str(&String::from_utf8_lossy(value)),
                ValueRef::Blob(value) => write!(text, "<{} bytes>", value.len()).unwrap(),
            }
        }
    }
    (text, count)
}

fn append(write: &Connection, content: &str) -> i64 {
    let sql = "SELECT id, hash FROM memory_events ORDER BY id DESC LIMIT 1";
    let newest = write.prepare_cached(sql).unwrap().query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    let (last, before): (i64, String) = newest.unwrap_or((0, "0".repeat(64)));
    let (ts, session, kind) = ("2026-11-30T09:00:00Z", "floor", "note");
    let text = serde_json::to_string(&(last + 1, ts, session, kind, content, &before)).unwrap();
    let hash = Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let sql = "INSERT INTO memory_events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    write.prepare_cached(sql).unwrap().execute((last + 1, ts, session, kind, content, before, hash)).unwrap();
    last + 1
}

fn log(write: &Connection, tool: &str, query: &str, rows: usize) {
    let sql = "INSERT INTO query_log(ts, session, tool, query, ok, rows, duration_ms) \
               VALUES ('2026-11-30T09:00:00Z', 'floor', ?1, ?2, 1, ?3, 0)";
    write.prepare_cached(sql).unwrap().execute((tool, query, i64::try_from(rows).unwrap())).unwrap();
}
