//! Formats that are sound and unusual: page sizes, encodings, other programs' marks. What is written is read back.

use crate::support::{Bench, Server};
use serde_json::json;

#[test]
fn every_page_size_and_encoding_is_read_and_written() {
    let text = "Grüße, 世界 \u{1f409}";
    for (at, page_size) in [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536].into_iter().enumerate() {
        let encoding = ["UTF-8", "UTF-16le", "UTF-16be"][at % 3];
        let mode = ["wal", "delete"][at % 2];
        let vacuum = at % 3;
        let bench = Bench::with(&format!(
            "PRAGMA page_size = {page_size}; PRAGMA encoding = '{encoding}'; PRAGMA auto_vacuum = {vacuum}; PRAGMA journal_mode = {mode};
             PRAGMA application_id = {at}12345; PRAGMA user_version = {at}; CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT)"
        ));
        let mut client = Server::on(&bench).start();
        let insert = json!({"query": "INSERT INTO t(a) VALUES (?)", "params": [text]});
        client.call("write_query", insert).ok();
        client
            .read("SELECT a, length(a) AS n FROM t")
            .is(&format!("a,n\n\"{text}\",{}\n# 1 rows", text.chars().count()));
        client.call("append_event", json!({"content": text})).ok();
        client.call("verify_chain", json!({})).ok().has("\"ok\":true");
        client
            .call("search_text", json!({"pattern": "世界", "table": "t", "columns": ["a"]}))
            .ok()
            .has("世界");
        let snapshot = client.destroy("DELETE FROM t").snapshot();
        let name = snapshot.file_name().unwrap().to_str().unwrap().to_owned();
        client.call("restore_snapshot", json!({"name": name, "reason": "a test"})).ok();
        client.close();
        let mut client = Server::on(&bench).flags(&["--profile", "explorer"]).start();
        let rows =
            client.call("run_query", json!({"sql": "SELECT a FROM t"})).ok().structured["rows"].clone();
        assert_eq!(rows, json!([[text]]), "{page_size} {encoding}");
        client.close();
        for (pragma, expected) in [
            ("page_size", page_size.to_string()),
            ("encoding", encoding.to_owned()),
            ("auto_vacuum", vacuum.to_string()),
            ("application_id", format!("{at}12345").trim_start_matches('0').to_owned()),
            ("user_version", at.to_string()),
            ("journal_mode", mode.to_owned()),
            ("integrity_check", "ok".to_owned()),
        ] {
            assert_eq!(
                bench.query(&format!("PRAGMA {pragma}")),
                expected,
                "{page_size} {encoding}: {pragma}"
            );
        }
    }
}

#[test]
fn files_of_other_programs_keep_their_marks() {
    // GeoPackage, Fossil, and a number with its highest bit set.
    for id in ["0x47504B47", "252006673", "-1"] {
        let bench = Bench::with(&format!(
            "PRAGMA application_id = {id}; CREATE TABLE t(a); INSERT INTO t VALUES (1)"
        ));
        let before = bench.query("PRAGMA application_id");
        for flags in [&["--profile", "explorer"] as &[&str], &[]] {
            Server::on(&bench).flags(flags).start().close();
        }
        assert_eq!(bench.query("PRAGMA application_id"), before);
    }
}
