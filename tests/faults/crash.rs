//! Server and workers killed at random moments, in the middle of everything that writes.

use crate::chain;
use crate::support::{Answer, Bench, Client, Server, children_of, kill, query, wait_until};
use crate::{Dice, rounds, side_by_side};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A call that was sent, by the number that is in its text.
#[derive(Clone, Debug)]
struct Sent {
    id: i64,
    tool: &'static str,
    number: u64,
}

/// What is known of one database over all rounds.
struct World {
    bench: Bench,
    dice: Dice,
    next: u64,
    /// Numbers of calls that were answered with success, each with its tool.
    acknowledged: BTreeSet<(u64, &'static str)>,
    /// Numbers of calls whose answer said that nothing was changed.
    refused: BTreeSet<u64>,
    /// Snapshots that an answer named; none of them is rotated away here.
    promised: BTreeSet<PathBuf>,
    /// Snapshots looked at already.
    checked: BTreeSet<PathBuf>,
    kills: usize,
}

impl World {
    fn new(mode: &str) -> Self {
        let sql = format!(
            "PRAGMA journal_mode = {mode}; CREATE TABLE t(v INTEGER PRIMARY KEY, filler BLOB); CREATE INDEX i ON t(filler)"
        );
        Self {
            bench: Bench::with(&sql),
            dice: Dice::new(),
            next: 0,
            acknowledged: BTreeSet::new(),
            refused: BTreeSet::new(),
            promised: BTreeSet::new(),
            checked: BTreeSet::new(),
            kills: 0,
        }
    }

    /// One call of some kind.
    fn send(&mut self, client: &mut Client) -> Sent {
        self.next += 1;
        let number = self.next;
        let some_row = self.dice.below(number) + 1;
        let size = 1 + self.dice.below(20_000);
        let (tool, arguments) = match self.dice.below(20) {
            0..5 => ("append_event", json!({"content": format!("event /{number}/")})),
            5 => ("checkpoint", json!({"summary": format!("so far /{number}/")})),
            6..11 => (
                "write_query",
                json!({"query": format!("INSERT INTO t VALUES ({number}, zeroblob({size})) -- /{number}/")}),
            ),
            11..13 => (
                "write_query",
                json!({"query": format!("UPDATE t SET filler = zeroblob({size}) WHERE v = {some_row} -- /{number}/")}),
            ),
            13..16 => (
                "destructive_query",
                json!({"query": format!("DELETE FROM t WHERE v = {some_row} -- /{number}/"), "reason": "x"}),
            ),
            16 => ("snapshot", json!({"reason": format!("/{number}/")})),
            17 => match self.bench.snapshots().iter().rfind(|path| is_final(path)) {
                Some(path) => (
                    "restore_snapshot",
                    json!({"name": path.file_name().unwrap().to_str().unwrap(), "reason": format!("/{number}/")}),
                ),
                None => ("list_tables", json!({})),
            },
            _ => ("read_query", json!({"query": format!("SELECT count(*) FROM t -- /{number}/")})),
        };
        Sent { id: client.send_call(tool, arguments), tool, number }
    }

    /// Starts a server, keeps it busy, and kills it or what it has started.
    fn round(&mut self) {
        let mut client =
            Server::on(&self.bench).flags(&["--snapshots", "200", "--busy-timeout", "20"]).start();
        let mut open = Vec::new();
        let hits = self.dice.below(3);
        for hit in 0..=hits {
            let calls: Vec<Sent> = (0..1 + self.dice.below(12)).map(|_| self.send(&mut client)).collect();
            let answered = self.dice.below(calls.len() as u64 + 1) as usize;
            let (first, rest) = calls.split_at(answered);
            for call in first {
                self.settle(&mut client, call);
            }
            std::thread::sleep(Duration::from_micros(self.dice.below(40_000)));
            if hit == hits {
                open = rest.to_vec();
                break;
            }
            // Some process of the server's: readers, the writer, one that copies or restores.
            let children = children_of(client.pid());
            if !children.is_empty() {
                self.kills += 1;
                kill(children[self.dice.below(children.len() as u64) as usize]);
            }
            for call in rest {
                self.settle(&mut client, call);
            }
        }
        // What was said before the kill may still be in the pipe.
        let said = client.kill_and_read();
        self.kills += 1;
        for (id, answer) in said {
            if let Some(call) = open.iter().find(|call| call.id == id) {
                self.note(call, &answer);
            }
        }
        // Also one that was just being started.
        assert!(wait_until(|| !is_open_somewhere(self.bench.folder())), "workers outlive the server");
    }

    /// Waits for an answer and remembers what it promises.
    fn settle(&mut self, client: &mut Client, call: &Sent) {
        let answer = client.answer(call.id);
        self.note(call, &answer);
    }

    fn note(&mut self, call: &Sent, answer: &Answer) {
        if !answer.failed {
            self.acknowledged.insert((call.number, call.tool));
            if matches!(call.tool, "snapshot" | "destructive_query" | "restore_snapshot") {
                self.promised.insert(answer.snapshot());
            }
        } else if answer.text.contains("nothing was changed") || answer.text.contains("nothing was restored")
        {
            self.refused.insert(call.number);
        }
    }

    fn check(&mut self, round: usize) {
        let told = |what: &str, dice: &Dice| dice.told(format!("round {round}: {what}"));
        // The first one to open the file does the recovery; that is an outsider here.
        let connection = chain::open(self.bench.path());
        if let Some(fault) = chain::fault(&connection) {
            panic!("{}", told(&fault, &self.dice));
        }
        let log = LogRow::all(&connection);
        for (number, tool) in &self.acknowledged {
            let row = log.iter().find(|row| row.number == Some(*number) && row.tool == *tool);
            if matches!(
                *tool,
                "append_event" | "checkpoint" | "write_query" | "destructive_query" | "restore_snapshot"
            ) {
                let row = row.unwrap_or_else(|| {
                    panic!("{}", told(&format!("no log row of {tool} /{number}/"), &self.dice))
                });
                assert!(row.ok, "{}", told(&format!("{tool} /{number}/ is logged as failed"), &self.dice));
            }
        }
        for row in log.iter().filter(|row| row.ok && row.changes()) {
            let number = row.number.unwrap_or(0);
            assert!(
                !self.refused.contains(&number),
                "{}",
                told(&format!("{} /{number}/ was said to have changed nothing", row.tool), &self.dice)
            );
        }
        let count = |sql: &str| query(&connection, sql).parse::<usize>().unwrap();
        let logged = |tool: &str| log.iter().filter(|row| row.ok && row.tool == tool).count();
        assert_eq!(
            count("SELECT count(*) FROM memory_events WHERE kind = 'note'"),
            logged("append_event"),
            "{}",
            told("events and their log rows", &self.dice)
        );
        assert_eq!(count("SELECT count(*) FROM memory_checkpoints"), logged("checkpoint"));
        assert_eq!(
            count("SELECT count(*) FROM memory_events WHERE kind = 'restore'"),
            logged("restore_snapshot")
        );
        let found: Vec<i64> = numbers(&connection);
        assert_eq!(found, replay(&log), "{}", told("the table is what the log says", &self.dice));
        drop(connection);
        for path in &self.promised {
            assert!(path.is_file(), "{}", told(&format!("{path:?} was promised"), &self.dice));
        }
        for path in self.bench.snapshots() {
            if is_final(&path) && self.checked.insert(path.clone()) {
                let copy = open_copy(&path);
                let sound = query(&copy, "PRAGMA integrity_check");
                assert_eq!(sound, "ok", "{}", told(&format!("{path:?}"), &self.dice));
            }
        }
    }

    /// The next start finds nothing to complain of and leaves no temporary file.
    fn start_again(&mut self) {
        let mut client = Server::on(&self.bench).start();
        client.is_alive();
        let status = client.call("verify_chain", json!({})).json();
        assert_eq!(status["ok"], true, "{status}");
        let left: Vec<PathBuf> = self.bench.snapshots().into_iter().filter(|path| !is_final(path)).collect();
        assert!(left.is_empty(), "{}: {left:?}", self.dice.told("leftovers"));
        let (stderr, ended) = client.close_with_stderr();
        assert!(ended.status.success(), "{stderr}");
        let loud: Vec<&str> =
            stderr.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
        assert!(loud.is_empty(), "{loud:?}");
    }
}

/// Whether a file in the snapshot folder has a snapshot's name and not a temporary one.
fn is_final(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    !name.starts_with('.') && name.ends_with(".db")
}

/// Whether a process has a file in the folder open.
fn is_open_somewhere(folder: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut links = processes
        .filter_map(|process| std::fs::read_dir(process.path().join("fd")).ok())
        .flat_map(|descriptors| descriptors.flatten())
        .filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    links.any(|path| path.starts_with(folder))
}

fn numbers(connection: &rusqlite::Connection) -> Vec<i64> {
    query(connection, "SELECT v FROM t ORDER BY v").lines().map(|line| line.parse().unwrap()).collect()
}

fn open_copy(path: &Path) -> rusqlite::Connection {
    use rusqlite::OpenFlags;
    // It is in WAL mode; nothing is to be made beside it.
    let uri = format!("file:{}?immutable=1", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    rusqlite::Connection::open_with_flags(uri, flags).unwrap()
}

/// A row of the log, as far as the test is concerned.
struct LogRow {
    tool: String,
    ok: bool,
    /// The number between the slashes of its text.
    number: Option<u64>,
    sql: String,
    /// The snapshot that was restored.
    restored: Option<String>,
    folder: PathBuf,
}

impl LogRow {
    fn all(connection: &rusqlite::Connection) -> Vec<Self> {
        let folder = PathBuf::from(format!("{}.snapshots", connection.path().unwrap()));
        let mut statement = connection
            .prepare(
                "SELECT l.tool, l.ok, coalesce(l.query, ''), coalesce(l.detail, '{}'), \
                 coalesce(e.content, c.summary, '') FROM query_log l \
                 LEFT JOIN memory_events e ON l.tool = 'append_event' AND e.id = l.detail ->> 'event' \
                 LEFT JOIN memory_checkpoints c ON l.tool = 'checkpoint' AND c.id = l.detail ->> 'checkpoint' \
                 ORDER BY l.id",
            )
            .unwrap();
        let rows = statement.query_map([], |row| {
            let (sql, text): (String, String) = (row.get(2)?, row.get(4)?);
            let detail: Value = serde_json::from_str(&row.get::<_, String>(3)?).unwrap();
            let said = format!("{sql}{text}{}", detail["reason"].as_str().unwrap_or_default());
            let number = said.split('/').nth(1).and_then(|text| text.parse().ok());
            let restored = detail["restored"].as_str().map(str::to_owned);
            Ok(Self { tool: row.get(0)?, ok: row.get(1)?, number, sql, restored, folder: folder.clone() })
        });
        rows.unwrap().map(Result::unwrap).collect()
    }

    fn changes(&self) -> bool {
        self.tool != "read_query" && self.tool != "list_tables" && self.tool != "snapshot"
    }
}

/// What the table must hold when the logged calls ran in the log's order, and no other.
fn replay(log: &[LogRow]) -> Vec<i64> {
    let mut table: BTreeSet<i64> = BTreeSet::new();
    for row in log.iter().filter(|row| row.ok) {
        if let Some(rest) = row.sql.strip_prefix("INSERT INTO t VALUES (") {
            table.insert(rest.split(',').next().unwrap().parse().unwrap());
        } else if let Some(rest) = row.sql.strip_prefix("DELETE FROM t WHERE v = ") {
            table.remove(&rest.split(' ').next().unwrap().parse().unwrap());
        } else if let Some(name) = &row.restored {
            let copy = open_copy(&row.folder.join(name));
            table = numbers(&copy).into_iter().collect();
        }
    }
    table.into_iter().collect()
}

#[test]
fn what_was_acknowledged_outlives_kills_of_server_and_workers() {
    side_by_side(&["WAL", "DELETE"], |mode| {
        let (mut left, mut calls, mut acknowledged, mut kills) = (rounds(12).div_ceil(2), 0, 0, 0);
        while left > 0 {
            // A new database now and then: each restore reads all that was there before.
            let some = left.min(25);
            left -= some;
            let mut world = World::new(mode);
            for round in 0..some {
                world.round();
                world.check(round);
                world.start_again();
                world.check(round);
            }
            calls += world.next;
            acknowledged += world.acknowledged.len();
            kills += world.kills;
        }
        eprintln!("{mode}: {calls} calls, {acknowledged} acknowledged, {kills} kills");
        assert!(acknowledged > 5, "too little was acknowledged");
    });
}
