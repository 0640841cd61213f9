//! Settings by flag and by environment, and a server that writes nothing.

use crate::support::{Bench, Server};
use serde_json::json;

#[test]
fn a_flag_comes_before_its_variable_and_that_before_the_default() {
    let bench = Bench::notes();
    let many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000) SELECT x FROM c";
    let rows = |server: Server, ends: &str| {
        server.start().read(many).ok().ends(ends);
    };
    rows(Server::on(&bench), "# 100 rows; more rows exist (limit 100, maximum 1000)");
    rows(
        Server::on(&bench).env("INDELIBLE_DEFAULT_LIMIT", "7"),
        "# 7 rows; more rows exist (limit 7, maximum 1000)",
    );
    rows(
        Server::on(&bench).env("INDELIBLE_DEFAULT_LIMIT", "7").flags(&["--default-limit", "8"]),
        "# 8 rows; more rows exist (limit 8, maximum 1000)",
    );
    rows(
        Server::on(&bench).env("INDELIBLE_DEFAULT_LIMIT", ""),
        "# 100 rows; more rows exist (limit 100, maximum 1000)",
    );
    rows(Server::on(&bench).flags(&["--max-rows", "9"]), "# 9 rows; more rows exist (limit 9, maximum 9)");
    rows(
        Server::on(&bench).env("INDELIBLE_MAX_ROWS", "2000"),
        "# 100 rows; more rows exist (limit 100, maximum 2000)",
    );
    rows(
        Server::bare().env("INDELIBLE_DB", bench.path()),
        "# 100 rows; more rows exist (limit 100, maximum 1000)",
    );
    let home = Server::bare().env("HOME", bench.folder()).flags(&["--db", "~/memory.db", "--max-rows", "3"]);
    rows(home, "# 3 rows; more rows exist (limit 3, maximum 3)");
}

#[test]
fn a_bad_value_is_one_line_that_names_flag_value_and_rule() {
    let bench = Bench::notes();
    let count = "must be a whole number from";
    for (flags, says) in [
        (&["--max-rows", "0"] as &[&str], "--max-rows `0`: must be a whole number from 1 to"),
        (&["--max-rows", "-5"], "--max-rows `-5`: must be"),
        (&["--max-rows", "1e3"], "--max-rows `1e3`: must be"),
        (&["--default-limit", "5000"], "--default-limit `5000`: must be at most --max-rows, which is 1000"),
        (
            &["--default-limit", "51", "--max-rows", "50"],
            "--default-limit `51`: must be at most --max-rows, which is 50",
        ),
        (&["--query-timeout", "0"], "--query-timeout `0`: must be a number of seconds above 0"),
        (&["--query-timeout", "nan"], "--query-timeout `nan`: must be"),
        (&["--busy-timeout", "-1"], "--busy-timeout `-1`: must be a number of seconds from 0"),
        (&["--max-result-bytes", "x"], count),
        (&["--max-cell-chars", "0"], count),
        (&["--max-update-rows", "many"], count),
        (&["--search-candidates", "-1"], count),
        (&["--snapshots", "1.5"], count),
        (&["--profile", "nope"], "--profile `nope`: no such profile"),
        (&["--snapshot-dir", ""], "--snapshot-dir ``: must be a path"),
        (&["--nope"], "unknown argument `--nope`"),
        (&["--db"], "--db"),
    ] {
        let (status, line) = Server::on(&bench).flags(flags).refusal();
        assert_eq!(status, 2, "{flags:?}: {line}");
        assert!(line.contains(says), "{flags:?}: {line}");
    }
    for (name, value, says) in [
        ("INDELIBLE_MAX_ROWS", "x", "INDELIBLE_MAX_ROWS `x`: must be a whole number"),
        ("INDELIBLE_READ_ONLY", "maybe", "INDELIBLE_READ_ONLY `maybe`: must be one of"),
        ("INDELIBLE_VERBOSE", "9", "INDELIBLE_VERBOSE `9`: must be"),
        ("INDELIBLE_QUERY_TIMEOUT", "\n", "INDELIBLE_QUERY_TIMEOUT `\\n`: must be"),
    ] {
        let (status, line) = Server::on(&bench).env(name, value).refusal();
        assert_eq!(status, 2, "{name}: {line}");
        assert!(line.starts_with(says), "{name}: {line}");
    }
    assert_eq!(bench.query("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'memory%'"), "0");
}

#[test]
fn a_read_only_server_offers_what_reads_and_writes_no_byte_of_the_file() {
    // A file that never met the server, and two that did, in rollback mode and in WAL.
    let (ran, wal) = (Bench::notes(), Bench::notes());
    wal.sql("PRAGMA journal_mode = WAL");
    for bench in [&ran, &wal] {
        let mut client = Server::on(bench).start();
        client.call("append_event", json!({"content": "one"})).ok();
        client.close();
    }
    for (bench, events) in [(Bench::notes(), 0), (ran, 1), (wal, 1)] {
        let before = bench.files();
        let mut client = Server::on(&bench).flags(&["--read-only"]).start();
        let list = client.request("tools/list", json!({}));
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 8);
        assert!(client.initialized["instructions"].as_str().unwrap().contains("read-only"));
        client.read("SELECT count(*) AS n FROM notes").is("n\n3\n# 1 rows");
        client.read("SELECT nope").fails(&[]);
        client.call("list_tables", json!({})).ok();
        client.call("search_text", json!({"pattern": "apple", "table": "notes"})).ok();
        let verdict = client.call("verify_chain", json!({}));
        let resume = client.call("get_resume_context", json!({}));
        if events == 0 {
            assert!(
                verdict.text.contains("memory_events") || verdict.text.contains("\"events\":0"),
                "{verdict:?}"
            );
        } else {
            assert_eq!(verdict.json()["events"], 1);
            resume.ok().has("chain ok (1 events)");
        }
        for sql in ["INSERT INTO notes(title) VALUES ('x')", "DELETE FROM notes"] {
            client
                .read(sql)
                .fails(&["not allowed in read_query"])
                .lacks("write_query")
                .lacks("destructive_query");
        }
        for tool in
            ["write_query", "append_event", "snapshot", "create_view", "destructive_query", "checkpoint"]
        {
            let answer = client.request("tools/call", json!({"name": tool, "arguments": {}}));
            assert_eq!(answer["error"]["code"], -32602, "{tool}");
        }
        client.close();
        // Reading a file in WAL mode takes an index beside it and an empty WAL, and who may not write cannot
        // remove them. All else is as it was.
        let aside = |files: Vec<(String, String)>| -> Vec<(String, String)> {
            let kept = |(name, bytes): &(String, String)| {
                name != "memory.db-shm" && !(name == "memory.db-wal" && bytes.starts_with("0 bytes"))
            };
            files.into_iter().filter(kept).collect()
        };
        assert_eq!(aside(bench.files()), aside(before));
    }
}

#[test]
fn a_read_only_server_reads_a_file_that_may_not_be_written() {
    let bench = Bench::notes();
    drop(bench.open());
    let mut permissions = std::fs::metadata(bench.path()).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(bench.path(), permissions).unwrap();
    let mut client = Server::on(&bench).env("INDELIBLE_READ_ONLY", "yes").start();
    client.read("SELECT count(*) AS n FROM notes").is("n\n3\n# 1 rows");
}

#[test]
fn people_call_a_tool_by_the_same_way_as_agents_do() {
    let bench = Bench::notes();
    let db = bench.path().to_str().unwrap();
    let call =
        |arguments: &[&str]| Server::bare().flags(&["call"]).flags(arguments).flags(&["--db", db]).run();
    assert_eq!(
        call(&["read_query", "query=SELECT 1 AS a", "limit=1"]),
        (0, "a\n1\n# 1 rows\n".to_owned(), String::new())
    );
    let (status, text, _) = call(&["append_event", "{\"content\": \"by hand\", \"kind\": \"decision\"}"]);
    assert!(status == 0 && text.starts_with("ok: event 1 appended"), "{text}");
    let (status, text, _) = call(&["read_query", "query=DELETE FROM notes"]);
    assert!(status == 1 && text.contains("destructive_query"), "{text}");
    let (status, text, said) = call(&["no_such_tool"]);
    assert!(status == 2 && text.is_empty() && said.contains("unknown tool"), "{said}");
    assert_eq!(
        bench.query("SELECT tool, ok FROM query_log ORDER BY id"),
        "read_query|1\nappend_event|1\nread_query|0\nno_such_tool|0"
    );
}
