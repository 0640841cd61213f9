//! `--confirm destructive` over real stdio: a person is asked before anything is destroyed, in both families
//! of revisions, and an answer holds for what was asked and for one time.
//!
//! The client is raw lines; what a person reads is looked at as text.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]
#![cfg(unix)]

#[path = "support/mod.rs"]
mod support;

use serde_json::{Value, json};
use std::time::Duration;
use support::{Answer, Bench, Client, Server};

const CONFIRM: [&str; 2] = ["--confirm", "destructive"];
const DELETE: &str = "DELETE FROM notes WHERE id = 3";

fn start(bench: &Bench) -> Client {
    Server::on(bench).flags(&CONFIRM).start_with(json!({"elicitation": {}}))
}

fn arguments(sql: &str) -> Value {
    json!({"query": sql, "reason": "a test"})
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"confirm": true}})
}

/// Answers a question of the server's.
fn reply(client: &mut Client, question: &Value, result: &Value) {
    client.send_line(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}).to_string());
}

/// The call asks; this is the text that the person reads, and the question.
#[track_caller]
fn asked(client: &mut Client) -> (String, Value) {
    let question = client.wait_for_method("elicitation/create");
    assert_eq!(question["params"]["mode"], "form");
    let schema = &question["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["confirm"]["type"], "boolean");
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["confirm"])));
    (question["params"]["message"].as_str().unwrap().to_owned(), question)
}

/// The last lines of a question: what the statement takes.
fn toll(text: &str) -> String {
    let (_, toll) = text.split_once("counted in a trial that was undone:\n").unwrap();
    toll.split_once("\n\n").unwrap().0.to_owned()
}

/// The `confirmed` of every call of destructive_query, oldest first.
fn confirmed(bench: &Bench) -> String {
    bench.query("SELECT ok || ' ' || coalesce(json_extract(detail, '$.confirmed'), '-') FROM query_log WHERE tool = 'destructive_query' ORDER BY id").replace('\n', ", ")
}

/// The log shows this within a moment.
#[track_caller]
fn log_shows(bench: &Bench, expected: &str) {
    support::wait_until(|| confirmed(bench) == expected);
    assert_eq!(confirmed(bench), expected);
}

mod handshake {
    use super::*;

    #[test]
    fn an_accepted_call_runs_once_as_shown_and_behind_a_snapshot() {
        let bench = Bench::notes();
        let mut client = start(&bench);
        let id = client.send_call(
            "destructive_query",
            json!({"query": "DELETE FROM notes\nWHERE id = ?", "params": [3], "reason": "too old\n- notes: no rows"}),
        );
        let (text, question) = asked(&mut client);
        assert!(bench.snapshots().is_empty(), "no snapshot before the answer");
        assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
        let path = bench.path().display();
        assert_eq!(
            text,
            format!(
                "An agent wants to run this with destructive_query on {path}:\n\n  | DELETE FROM notes\n  | WHERE id = ?\n\n\
                 Parameters:\n  | [3]\n\nReason, in the agent's words:\n  | too old\n  | - notes: no rows\n\n\
                 What it takes, counted in a trial that was undone:\n- notes: 1 row removed (it has 3 rows)\n\n\
                 A snapshot of the whole database is made first."
            )
        );
        reply(&mut client, &question, &yes());
        client.answer(id).ok().starts("ok: 1 rows affected; snapshot: ");
        assert_eq!((bench.query("SELECT count(*) FROM notes").as_str(), bench.snapshots().len()), ("2", 1));
        log_shows(&bench, "1 accepted");
        // The next call asks anew.
        let id = client.send_call("destructive_query", arguments("DELETE FROM notes"));
        let (text, question) = asked(&mut client);
        assert_eq!(toll(&text), "- notes: 2 rows removed (it has 2 rows)");
        reply(&mut client, &question, &json!({"action": "decline"}));
        client.answer(id).fails_as("DECLINED", &["declined"]);
    }

    #[test]
    fn what_is_no_consent_runs_nothing() {
        let rows = [
            (json!({"action": "decline"}), "declined"),
            (json!({"action": "accept", "content": {"confirm": false}}), "declined"),
            (json!({"action": "accept"}), "declined"),
            (json!({"action": "cancel"}), "cancelled"),
        ];
        let bench = Bench::notes();
        let mut client = start(&bench);
        let mut log = Vec::new();
        for (answer, noted) in rows {
            let id = client.send_call("destructive_query", arguments(DELETE));
            let (_, question) = asked(&mut client);
            reply(&mut client, &question, &answer);
            client.answer(id).fails_as("DECLINED", &["nothing was run"]);
            log.push(format!("0 {noted}"));
        }
        let id = client.send_call("destructive_query", arguments(DELETE));
        let (_, question) = asked(&mut client);
        let error = json!({"code": -32601, "message": "no forms here"});
        client.send_line(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}).to_string());
        client.answer(id).fails_as("DECLINED", &["-32601", "no forms here", "nothing was run"]);
        log.push("0 unsupported".to_owned());
        client.is_alive();
        assert_eq!((bench.query("SELECT count(*) FROM notes").as_str(), bench.snapshots().len()), ("3", 0));
        log_shows(&bench, &log.join(", "));
    }

    #[test]
    fn a_client_without_forms_is_told_so_and_only_under_confirm() {
        for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
            let bench = Bench::notes();
            let mut client = Server::on(&bench).flags(&CONFIRM).start_with(capabilities.clone());
            client
                .destroy(DELETE)
                .fails_as("DECLINED", &["--confirm destructive", "`elicitation`", "nothing was run"]);
            client.write("UPDATE notes SET score = 1 WHERE id = 1").ok();
            client.is_alive();
            assert_eq!(
                (bench.query("SELECT count(*) FROM notes").as_str(), bench.snapshots().len()),
                ("3", 0)
            );
            log_shows(&bench, "0 unsupported");
            drop(client);
            for flags in [&[] as &[&str], &["--confirm", "none"]] {
                Server::on(&bench)
                    .flags(flags)
                    .start_with(capabilities.clone())
                    .destroy("UPDATE notes SET score = 2")
                    .ok();
            }
            log_shows(&bench, "0 unsupported, 1 -, 1 -");
        }
    }

    #[test]
    fn the_variable_asks_as_the_flag_does() {
        let bench = Bench::notes();
        let mut client = Server::on(&bench).env("INDELIBLE_CONFIRM", "destructive").start();
        client.destroy(DELETE).fails_as("DECLINED", &["--confirm destructive"]);
        let (status, line) = Server::on(&bench).flags(&["--confirm", "sometimes"]).refusal();
        assert_eq!((status, line.as_str()), (2, "--confirm `sometimes`: must be none or destructive"));
    }

    #[test]
    fn what_would_not_run_is_not_asked_about() {
        let bench = Bench::notes();
        bench.sql("INSERT INTO tags(note_id, tag) VALUES (1, 'x')");
        let mut client = start(&bench);
        for (sql, words) in [
            ("DELETE FROM nope", "no such table: nope"),
            ("SELECT 1", "only reads"),
            ("DELETE FROM query_log", "`query_log`"),
            ("DELETE FROM notes WHERE id = 1", "FOREIGN KEY constraint failed"),
            ("DELETE FROM notes WHERE id = ?", "param"),
            (
                "CREATE TRIGGER tr AFTER INSERT ON notes BEGIN DELETE FROM memory_events; END",
                "`memory_events`",
            ),
        ] {
            client.destroy(sql).fails(&[words]);
        }
        client.call("destructive_query", json!({"query": DELETE, "reason": " "})).fails(&["`reason`"]);
        assert!(bench.snapshots().is_empty());
    }

    #[test]
    fn nothing_is_held_while_the_person_thinks() {
        let bench = Bench::notes();
        let mut client = start(&bench);
        let id = client.send_call("destructive_query", arguments(DELETE));
        let (_, question) = asked(&mut client);
        let other = bench.open();
        // Long enough for a log row of the server's to be committed, and far from a person's time.
        other.busy_timeout(Duration::from_secs(2)).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE; UPDATE notes SET score = 7 WHERE id = 1; COMMIT").unwrap();
        client.write("INSERT INTO tags(note_id, tag) VALUES (1, 'meanwhile')").ok();
        client.call("append_event", json!({"content": "meanwhile"})).ok();
        client.call("snapshot", json!({"reason": "meanwhile"})).ok();
        client.is_alive();
        reply(&mut client, &question, &yes());
        client.answer(id).ok();
        assert_eq!(bench.query("SELECT count(*), sum(score) FROM notes"), "2|9.0");
    }

    #[test]
    fn many_open_questions_do_not_keep_other_calls_out() {
        let bench = Bench::notes();
        let mut client = start(&bench);
        let ids: Vec<i64> = (0..80)
            .map(|_| client.send_call("destructive_query", arguments("UPDATE notes SET score = 1")))
            .collect();
        let questions: Vec<Value> = (0..64).map(|_| asked(&mut client).1).collect();
        client.is_alive();
        let wait = Duration::from_millis(1);
        while ids.iter().filter(|id| client.answers_within(**id, wait)).count() < 16 {}
        for question in &questions {
            reply(&mut client, question, &json!({"action": "decline"}));
        }
        let words: Vec<Answer> = ids.into_iter().map(|id| client.answer(id)).collect();
        let crowded = words.iter().filter(|answer| answer.text.contains("too many questions")).count();
        let declined = words.iter().filter(|answer| answer.text.contains("asked and declined")).count();
        assert_eq!((crowded, declined), (16, 64));
    }

    #[test]
    fn other_counts_than_agreed_are_asked_about_again_and_at_last_given_up() {
        let bench = Bench::notes();
        let mut client = start(&bench);
        let sql = "DELETE FROM notes WHERE id > 1";
        let id = client.send_call("destructive_query", arguments(sql));
        let (text, question) = asked(&mut client);
        assert_eq!(toll(&text), "- notes: 2 rows removed (it has 3 rows)");
        bench.sql("INSERT INTO notes(id, title) VALUES (4, 'delta')");
        reply(&mut client, &question, &yes());
        let (text, question) = asked(&mut client);
        assert_eq!(toll(&text), "- notes: 3 rows removed (it has 4 rows)");
        assert_eq!((bench.query("SELECT count(*) FROM notes").as_str(), bench.snapshots().len()), ("4", 0));
        // A row that the statement does not touch changes nothing about what was agreed.
        bench.sql("INSERT INTO notes(id, title) VALUES (0, 'omega')");
        reply(&mut client, &question, &yes());
        client.answer(id).ok().starts("ok: 3 rows affected; snapshot: ");

        let id = client.send_call("destructive_query", arguments("DELETE FROM notes"));
        for more in 10..13 {
            let (_, question) = asked(&mut client);
            bench.sql(&format!("INSERT INTO notes(id, title) VALUES ({more}, 'x')"));
            reply(&mut client, &question, &yes());
        }
        client.answer(id).fails_as("BUSY", &["asked 3 times", "nothing was run"]);
        assert_eq!(bench.query("SELECT count(*) FROM notes"), "5");
        log_shows(&bench, "1 accepted, 0 accepted");
        client.is_alive();
    }

    #[test]
    fn a_run_that_takes_something_else_is_rolled_back() {
        // Each run of it takes another number of rows.
        let bench = Bench::with(
            "CREATE TABLE t(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO t SELECT i FROM n",
        );
        let mut client = start(&bench);
        let id = client.send_call("destructive_query", arguments("DELETE FROM t WHERE random() > 0"));
        for _ in 0..3 {
            let (_, question) = asked(&mut client);
            reply(&mut client, &question, &yes());
        }
        client.answer(id).fails_as("BUSY", &["asked 3 times"]);
        assert_eq!(bench.query("SELECT count(*) FROM t"), "2000");
    }

    #[test]
    fn cancelling_the_call_takes_the_question_away() {
        let bench = Bench::notes();
        let mut client = start(&bench);
        let id = client.send_call("destructive_query", arguments(DELETE));
        let (_, question) = asked(&mut client);
        client.notify("notifications/cancelled", json!({"requestId": id}));
        let withdrawn = client.wait_for_method("notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        // Too late.
        reply(&mut client, &question, &yes());
        client.is_alive();
        log_shows(&bench, "0 cancelled");
        assert!(!client.answers_within(id, Duration::from_millis(50)), "a cancelled call has no answer");
        assert_eq!((bench.query("SELECT count(*) FROM notes").as_str(), bench.snapshots().len()), ("3", 0));
    }

    #[test]
    fn the_end_of_input_ends_a_waiting_question() {
        let bench = Bench::notes();
        let mut client = start(&bench);
        client.send_call("destructive_query", arguments(DELETE));
        asked(&mut client);
        let ended = client.close();
        assert!(ended.status.success() && ended.took < Duration::from_millis(2500), "{ended:?}");
        log_shows(&bench, "0 cancelled");
        assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
    }
}

mod other_tools {
    use super::*;

    #[test]
    fn restoring_a_snapshot_asks_too() {
        let bench = Bench::notes();
        let mut client = start(&bench);
        let path = client.call("snapshot", json!({"reason": "x"})).snapshot();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        client.write("INSERT INTO notes(id, title) VALUES (4, 'delta')").ok();
        for (answer, left, noted) in
            [(json!({"action": "decline"}), "4", "0 declined"), (yes(), "3", "0 declined, 1 accepted")]
        {
            let id = client.send_call("restore_snapshot", json!({"name": name, "reason": "back\nto it"}));
            let (text, question) = asked(&mut client);
            for part in [&format!("\n  | {name}\n"), "(manual)", "and is ok", "  | back\n  | to it"] {
                assert!(text.contains(part), "{part}: {text}");
            }
            let other = bench.open();
            other.busy_timeout(Duration::from_secs(2)).unwrap();
            other.execute_batch("BEGIN EXCLUSIVE; COMMIT").unwrap();
            reply(&mut client, &question, &answer);
            assert_eq!(client.answer(id).failed, left == "4");
            assert_eq!(bench.query("SELECT count(*) FROM notes"), left);
            let log = "SELECT group_concat(ok || ' ' || json_extract(detail, '$.confirmed'), ', ') FROM query_log WHERE tool = 'restore_snapshot'";
            assert!(support::wait_until(|| bench.query(log) == noted), "{}", bench.query(log));
        }
        // A person at the command line has decided already.
        let restore = ["snapshots", "restore", &name];
        let (status, stdout, stderr) = Server::on(&bench).flags(&CONFIRM).flags(&restore).run();
        assert_eq!(status, 0, "{stdout}{stderr}");
    }

    #[test]
    fn a_tool_made_of_sql_that_overwrites_asks_without_a_snapshot() {
        let bench = Bench::notes();
        let file = bench.folder().join("tools.yaml");
        std::fs::write(
            &file,
            "tools:\n  - name: grade\n    policy: write\n    words: {purpose: Grade all notes.}\n    statement: UPDATE notes SET score = :score\n    params:\n      - {name: score, type: integer, required: true, description: The grade.}\n",
        )
        .unwrap();
        let mut client = Server::on(&bench)
            .flags(&CONFIRM)
            .flags(&["--tools", file.to_str().unwrap()])
            .start_with(json!({"elicitation": {}}));
        for (answer, failed) in [(json!({"action": "decline"}), true), (yes(), false)] {
            let id = client.send_call("grade", json!({"score": 5}));
            let (text, question) = asked(&mut client);
            assert_eq!(toll(&text), "- notes: 3 rows changed (it has 3 rows)");
            assert!(text.ends_with("\nNo snapshot is made first.") && !text.contains("Reason"), "{text}");
            reply(&mut client, &question, &answer);
            assert_eq!(client.answer(id).failed, failed);
        }
        assert_eq!(
            (bench.query("SELECT sum(score) FROM notes").as_str(), bench.snapshots().len()),
            ("15.0", 0)
        );
        client.write("UPDATE notes SET score = 1 WHERE id = 1").ok();
    }
}

mod counts {
    use super::*;

    const SHOP: &str = "
        CREATE TABLE a(id INTEGER PRIMARY KEY, v TEXT UNIQUE);
        CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a(id) ON DELETE CASCADE);
        CREATE TABLE c(id INTEGER PRIMARY KEY, b REFERENCES b(id) ON DELETE SET NULL);
        CREATE TABLE gone(id, v);
        CREATE TRIGGER keep AFTER DELETE ON a BEGIN INSERT INTO gone VALUES (old.id, old.v); END;
        CREATE TABLE plain(x);
        CREATE TABLE w(k TEXT PRIMARY KEY, v, a REFERENCES a(id) ON DELETE SET NULL) WITHOUT ROWID;
        CREATE TABLE w2(k TEXT PRIMARY KEY, a REFERENCES a(id) ON DELETE CASCADE) WITHOUT ROWID;
        CREATE VIRTUAL TABLE f USING fts5(t);
        INSERT INTO a VALUES (1, 'x'), (2, 'y'), (3, 'z');
        INSERT INTO b VALUES (1, 1), (2, 1), (3, 2);
        INSERT INTO c VALUES (1, 1), (2, 1), (3, 3);
        INSERT INTO plain VALUES (1), (2), (3), (4);
        INSERT INTO w VALUES ('p', 1, NULL), ('q', 2, NULL), ('r', 3, 3);
        INSERT INTO f VALUES ('one'), ('two');
    ";

    #[test]
    fn every_row_that_goes_or_changes_is_counted() {
        let rows: &[(&str, &[&str])] = &[
            ("DELETE FROM plain", &["- plain: 4 rows removed (it has 4 rows)"]),
            ("DELETE FROM plain WHERE x > 3", &["- plain: 1 row removed (it has 4 rows)"]),
            ("DELETE FROM plain WHERE x > 9", &["- no rows"]),
            ("UPDATE plain SET x = 0", &["- plain: 4 rows changed (it has 4 rows)"]),
            (
                "DELETE FROM a WHERE id = 1",
                &[
                    "- a: 1 row removed (it has 3 rows)",
                    "- b: 2 rows removed (it has 3 rows)",
                    "- c: 2 rows changed (it has 3 rows)",
                    "- gone: 1 row added (it has 0 rows)",
                ],
            ),
            (
                "DELETE FROM a WHERE id = 3",
                &[
                    "- a: 1 row removed (it has 3 rows)",
                    "- gone: 1 row added (it has 0 rows)",
                    "- w: 1 row changed (it has 3 rows)",
                ],
            ),
            (
                "REPLACE INTO a VALUES (9, 'x')",
                &[
                    "- a: 1 row removed, 1 row added (it has 3 rows)",
                    "- b: 2 rows removed (it has 3 rows)",
                    "- c: 2 rows changed (it has 3 rows)",
                ],
            ),
            (
                "UPDATE OR REPLACE a SET v = 'y'",
                &[
                    "- a: 2 rows removed, 2 rows changed (it has 3 rows)",
                    "- b: 3 rows removed (it has 3 rows)",
                    "- c: 3 rows changed (it has 3 rows)",
                ],
            ),
            ("INSERT INTO plain SELECT 1 WHERE 0 UNION ALL SELECT 5; ", &[]),
            ("UPDATE w SET v = 0 WHERE v < 3", &["- w: 2 rows changed (it has 3 rows)"]),
            ("DELETE FROM w", &["- w: 3 rows removed (it has 3 rows)"]),
            (
                "REPLACE INTO w VALUES ('p', 5, NULL), ('s', 6, NULL)",
                &["- w: 1 row changed, 1 row added (it has 3 rows)"],
            ),
            ("DELETE FROM f WHERE f MATCH 'one'", &["- f: 1 row removed (it has 2 rows)"]),
            ("UPDATE f SET t = 'x'", &["- f: 2 rows changed (it has 2 rows)"]),
            ("DROP TABLE plain", &["- DROP TABLE plain", "- plain: 4 rows removed (it has 4 rows)"]),
            ("DROP TABLE f", &["- DROP TABLE of a virtual table f", "- f: 2 rows removed (it has 2 rows)"]),
            ("DROP TRIGGER keep", &["- DROP TRIGGER keep"]),
            (
                "ALTER TABLE plain RENAME TO n",
                &["- ALTER TABLE plain", "- plain: no rows removed or changed (it has 4 rows)"],
            ),
            ("ALTER TABLE a DROP COLUMN v", &[]),
            ("CREATE TRIGGER t AFTER DELETE ON plain BEGIN DELETE FROM b; END", &["- CREATE TRIGGER t"]),
        ];
        let bench = Bench::with(SHOP);
        let mut client = start(&bench);
        client.is_alive();
        let before = bench.content();
        for (sql, lines) in rows {
            let id = client.send_call("destructive_query", arguments(sql));
            if lines.is_empty() {
                client.answer(id).fails(&[]);
                continue;
            }
            let (text, question) = asked(&mut client);
            assert_eq!(toll(&text), lines.join("\n"), "{sql}");
            reply(&mut client, &question, &json!({"action": "decline"}));
            client.answer(id).fails_as("DECLINED", &[]);
        }
        assert_eq!(bench.content(), before, "a trial leaves nothing");
    }

    #[test]
    fn what_was_counted_is_what_happens() {
        let bench = Bench::with(SHOP);
        let mut client = start(&bench);
        for (sql, left) in [
            ("DELETE FROM a WHERE id = 1", "2|1|3|1"),
            ("UPDATE OR REPLACE a SET v = 'y'", "1|0|3|1"),
            ("DROP TABLE c", ""),
        ] {
            let id = client.send_call("destructive_query", arguments(sql));
            let (_, question) = asked(&mut client);
            reply(&mut client, &question, &yes());
            client.answer(id).ok();
            if !left.is_empty() {
                let counts = "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT count(*) FROM c), (SELECT count(*) FROM gone)";
                assert_eq!(bench.query(counts), left, "{sql}");
            }
        }
    }

    #[test]
    fn a_trial_that_runs_too_long_is_stopped_and_nobody_is_asked() {
        let bench = Bench::notes();
        let mut client = Server::on(&bench)
            .flags(&CONFIRM)
            .flags(&["--query-timeout", "0.3"])
            .start_with(json!({"elicitation": {"form": {}}}));
        client
            .destroy("DELETE FROM notes WHERE id IN (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)")
            .fails_as("TIMEOUT", &["nothing was changed"]);
        client.is_alive();
        assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
    }
}

mod rounds {
    use super::*;

    fn meta(capabilities: &Value) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })
    }

    fn call_with(client: &mut Client, capabilities: &Value, arguments: Value, more: Value) -> Value {
        let mut params =
            json!({"name": "destructive_query", "arguments": arguments, "_meta": meta(capabilities)});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        client.request("tools/call", params)
    }

    fn call(client: &mut Client, arguments: Value, more: Value) -> Value {
        call_with(client, &json!({"elicitation": {"form": {}}}), arguments, more)
    }

    fn with_state(state: &Value, answer: Value) -> Value {
        json!({"requestState": state, "inputResponses": {"confirm": answer}})
    }

    /// The state of a result that asks, and what the person reads.
    #[track_caller]
    fn asks(message: &Value) -> (Value, String) {
        let result = &message["result"];
        assert_eq!(result["resultType"], "input_required", "{message}");
        assert_eq!(result["inputRequests"]["confirm"]["method"], "elicitation/create");
        let params = &result["inputRequests"]["confirm"]["params"];
        assert_eq!(params["requestedSchema"]["properties"]["confirm"]["type"], "boolean");
        assert_eq!(params["requestedSchema"]["required"], json!(["confirm"]));
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "indelible");
        (result["requestState"].clone(), params["message"].as_str().unwrap().to_owned())
    }

    #[track_caller]
    fn fails(message: &Value, code: &str, words: &str) {
        let result = &message["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"));
        assert_eq!(
            (&result["isError"], result["_meta"]["indelible/code"].as_str()),
            (&json!(true), Some(code)),
            "{message}"
        );
        assert!(text.contains(words), "{text}");
    }

    #[track_caller]
    fn refused(message: &Value, words: &str) {
        assert_eq!(message["error"]["code"], -32602, "{message}");
        assert!(message["error"]["message"].as_str().unwrap().contains(words), "{message}");
    }

    fn serve(bench: &Bench) -> Client {
        Server::on(bench).flags(&CONFIRM).spawn()
    }

    fn notes(bench: &Bench) -> String {
        bench.query("SELECT count(*) FROM notes")
    }

    #[test]
    fn an_accepted_call_runs_once() {
        let bench = Bench::notes();
        let mut client = serve(&bench);
        let (state, text) = asks(&call(&mut client, arguments(DELETE), json!({})));
        assert_eq!(toll(&text), "- notes: 1 row removed (it has 3 rows)");
        assert_eq!((notes(&bench).as_str(), bench.snapshots().len()), ("3", 0));
        let done = call(&mut client, arguments(DELETE), with_state(&state, yes()));
        let text = done["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("ok: 1 rows affected; snapshot: "), "{text}");
        assert_eq!((notes(&bench).as_str(), bench.snapshots().len()), ("2", 1));
        bench.sql("INSERT INTO notes(id, title) VALUES (3, 'again')");
        refused(&call(&mut client, arguments(DELETE), with_state(&state, yes())), "used before");
        assert_eq!(notes(&bench), "3");
        log_shows(&bench, "1 asked, 1 accepted, 0 refused");
    }

    #[test]
    fn what_is_no_consent_runs_nothing() {
        let bench = Bench::notes();
        let mut client = serve(&bench);
        for (answer, words) in [
            (json!({"action": "decline"}), "declined"),
            (json!({"action": "accept", "content": {"confirm": false}}), "declined"),
            (json!({"action": "cancel"}), "closed the question"),
        ] {
            let (state, _) = asks(&call(&mut client, arguments(DELETE), json!({})));
            fails(&call(&mut client, arguments(DELETE), with_state(&state, answer)), "DECLINED", words);
        }
        assert_eq!((notes(&bench).as_str(), bench.snapshots().len()), ("3", 0));
        log_shows(&bench, "1 asked, 0 declined, 1 asked, 0 declined, 1 asked, 0 cancelled");
    }

    #[test]
    fn a_client_without_forms_is_told_so() {
        let bench = Bench::notes();
        let mut client = serve(&bench);
        let answer = call_with(&mut client, &json!({}), arguments(DELETE), json!({}));
        fails(&answer, "DECLINED", "`elicitation`");
        let answer = call_with(&mut Server::on(&bench).spawn(), &json!({}), arguments(DELETE), json!({}));
        assert_eq!(answer["result"]["isError"], json!(false), "{answer}");
        log_shows(&bench, "0 unsupported, 1 -");
    }

    #[test]
    fn a_state_holds_for_its_tool_its_arguments_and_this_server_alone() {
        let bench = Bench::notes();
        let mut client = serve(&bench);
        let (state, _) = asks(&call(&mut client, arguments(DELETE), json!({})));
        let sealed = state.as_str().unwrap();
        let last = sealed.len() - 2;
        let mut tampered = sealed.to_owned();
        tampered.replace_range(last..=last, if &sealed[last..=last] == "A" { "B" } else { "A" });
        let all = "DELETE FROM notes";
        for (arguments, state) in [
            (arguments(DELETE), json!(tampered)),
            (arguments(DELETE), json!("")),
            (arguments(DELETE), json!("rs1.AAAA.AAAA")),
            (arguments(all), state.clone()),
            (json!({"query": DELETE, "reason": "another"}), state.clone()),
        ] {
            refused(&call(&mut client, arguments, with_state(&state, yes())), "is not the one");
        }
        let mut other = serve(&bench);
        refused(&call(&mut other, arguments(DELETE), with_state(&state, yes())), "is not the one");
        let read = json!({"name": "read_query", "arguments": {"query": "SELECT 1"}, "requestState": state, "_meta": meta(&json!({}))});
        refused(&client.request("tools/call", read), "is not the one");
        assert_eq!((notes(&bench).as_str(), bench.snapshots().len()), ("3", 0));
        // None of this used it up, and the order of the arguments is the client's.
        let reordered = json!({"reason": "a test", "query": DELETE});
        let done = call(&mut client, reordered, with_state(&state, yes()));
        assert_eq!((&done["result"]["isError"], notes(&bench).as_str()), (&json!(false), "2"), "{done}");
    }

    #[test]
    fn a_missing_answer_is_asked_for_again() {
        let bench = Bench::notes();
        let mut client = serve(&bench);
        let (state, _) = asks(&call(&mut client, arguments(DELETE), json!({})));
        let (state, _) = asks(&call(&mut client, arguments(DELETE), json!({"requestState": state})));
        let (state, _) =
            asks(&call(&mut client, arguments(DELETE), with_state(&state, json!({"action": "shrug"}))));
        fails(&call(&mut client, arguments(DELETE), json!({"requestState": state})), "BUSY", "asked 3 times");
        // An answer without a state is an answer to nothing.
        asks(&call(&mut client, arguments(DELETE), json!({"inputResponses": {"confirm": yes()}})));
        assert_eq!(notes(&bench), "3");
    }

    #[test]
    fn other_counts_than_agreed_are_asked_about_again_and_at_last_given_up() {
        let bench = Bench::notes();
        let mut client = serve(&bench);
        let all = arguments("DELETE FROM notes");
        let (mut state, _) = asks(&call(&mut client, all.clone(), json!({})));
        for more in 4..6 {
            bench.sql(&format!("INSERT INTO notes(id, title) VALUES ({more}, 'x')"));
            let (next, text) = asks(&call(&mut client, all.clone(), with_state(&state, yes())));
            assert_eq!(toll(&text), format!("- notes: {more} rows removed (it has {more} rows)"));
            assert_eq!((notes(&bench), bench.snapshots().len()), (more.to_string(), 0));
            state = next;
        }
        bench.sql("INSERT INTO notes(id, title) VALUES (9, 'x')");
        fails(&call(&mut client, all.clone(), with_state(&state, yes())), "BUSY", "asked 3 times");
        assert_eq!(notes(&bench), "6");
        // A no is a no, whatever the counts are by then.
        let (state, _) = asks(&call(&mut client, all.clone(), json!({})));
        bench.sql("DELETE FROM notes WHERE id = 9");
        fails(
            &call(&mut client, all, with_state(&state, json!({"action": "decline"}))),
            "DECLINED",
            "declined",
        );
        assert_eq!(notes(&bench), "5");
    }

    #[test]
    fn nothing_is_held_between_the_rounds() {
        let bench = Bench::notes();
        let mut client = serve(&bench);
        let (state, _) = asks(&call(&mut client, arguments(DELETE), json!({})));
        let other = bench.open();
        // Long enough for a log row of the server's to be committed, and far from a person's time.
        other.busy_timeout(Duration::from_secs(2)).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE; UPDATE notes SET score = 7 WHERE id = 1; COMMIT").unwrap();
        let done = call(&mut client, arguments(DELETE), with_state(&state, yes()));
        assert_eq!(done["result"]["isError"], json!(false), "{done}");
    }
}

#[cfg(target_os = "linux")]
mod terminal {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn a_call_without_a_terminal_runs_nothing() {
        let bench = Bench::notes();
        let call = ["call", "destructive_query", "query=DELETE FROM notes", "reason=x"];
        let (status, stdout, _) = Server::on(&bench).flags(&CONFIRM).flags(&call).run();
        assert_eq!(status, 1);
        assert!(stdout.contains("stdin is no terminal; nothing was run"), "{stdout}");
        log_shows(&bench, "0 unsupported");
        let (status, _, _) = Server::on(&bench).flags(&call).run();
        assert_eq!((status, bench.query("SELECT count(*) FROM notes").as_str()), (0, "0"));
    }

    #[test]
    fn the_person_at_the_terminal_is_asked() {
        for (typed, status, left, noted) in [("y\n", 0, "0", "1 accepted"), ("\n", 1, "3", "0 declined")] {
            let bench = Bench::notes();
            let line = format!(
                "'{}' --db '{}' --confirm destructive call destructive_query 'query=DELETE FROM notes' reason=x",
                env!("CARGO_BIN_EXE_indelible"),
                bench.path().display()
            );
            // util-linux: runs the line on a terminal of its own.
            let mut child = Command::new("script")
                .args(["-q", "-e", "-c", &line, "/dev/null"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            let shown = String::from_utf8_lossy(&output.stdout);
            assert!(
                shown.contains("- notes: 3 rows removed (it has 3 rows)") && shown.contains("Run it? [y/N]"),
                "{shown}"
            );
            assert_eq!(
                (output.status.code(), bench.query("SELECT count(*) FROM notes").as_str()),
                (Some(status), left),
                "{shown}"
            );
            log_shows(&bench, noted);
        }
    }
}
