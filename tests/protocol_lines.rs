//! The protocol over an in-process pair of streams: which lines get which answers.
//!
//! Nothing here needs a database or a process of its own; `protocol_stdio.rs` has the latter.

mod duplex_client;
mod toy;

use duplex_client::{Client, call, code_and_id, initialize, modern, ping};
use indelible::server::{Ending, serve};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;
use toy::Toy;

#[tokio::test]
async fn every_handshake_revision_is_spoken_and_unknown_ones_get_the_newest() {
    let rows = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("9999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ];
    for (asked, given) in rows {
        let mut client = Client::start(Toy::default());
        let answer = client.ask(initialize(asked)).await;
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], json!(given), "asked for {asked}");
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        assert_eq!(result["serverInfo"]["name"], json!("indelible"));
        assert_eq!(result["serverInfo"]["version"], json!(env!("CARGO_PKG_VERSION")));
        assert_eq!(result["instructions"], json!("toys only"));
        client.expect_quiet().await;
    }
}

#[tokio::test]
async fn the_2026_revision_needs_no_handshake() {
    let mut client = Client::start(Toy::default());
    let found = client.ask(modern(json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}))).await;
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert_eq!(versions.len(), 5, "{found}");
    assert_eq!(found["result"]["capabilities"], json!({"tools": {}}));
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let listed = client.ask(modern(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))).await;
    let result = &listed["result"];
    assert_eq!(result["resultType"], json!("complete"));
    assert_eq!(result["cacheScope"], json!("public"));
    assert!(result["ttlMs"].as_u64().unwrap() > 0);
    let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], json!("indelible"));
    let failed = client.ask(modern(call(3, "fail", json!({})))).await;
    let meta = &failed["result"]["_meta"];
    assert_eq!(meta["indelible/code"], json!("UNKNOWN_TABLE"));
    assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], json!("indelible"));
    let bare = client.ask(call(4, "echo", json!({}))).await;
    assert_eq!(code_and_id(&bare), "-32602 4");
    let ping = client.ask(modern(ping(5))).await;
    assert_eq!(code_and_id(&ping), "-32601 5");
    let mut future = modern(call(6, "echo", json!({})));
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    assert_eq!(code_and_id(&client.ask(future).await), "-32022 6");
}

#[tokio::test]
async fn a_question_without_an_answer_is_taken_back_in_time() {
    let mut client = Client::start(Toy { patience_ms: 100, ..Toy::default() });
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!({"elicitation": {"form": {}}});
    client.ask(hello).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let question = client.ask(call(1, "ask", json!({}))).await;
    assert_eq!(
        (&question["method"], &question["params"]["message"]),
        (&json!("elicitation/create"), &json!("may I?"))
    );
    let mut said = [client.answer().await, client.answer().await];
    said.sort_by_key(|message| message["id"].is_null());
    assert_eq!(said[0]["result"]["content"][0]["text"], json!("Expired"));
    assert_eq!(said[1]["method"], json!("notifications/cancelled"));
    assert_eq!(said[1]["params"]["requestId"], question["id"]);
    client.expect_quiet().await;
}

#[tokio::test]
async fn the_list_of_tools_is_the_same_byte_for_byte_from_run_to_run() {
    let mut texts = Vec::new();
    for _ in 0..3 {
        let mut client = Client::with_handshake("2025-11-25").await;
        client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
        texts.push(client.answer_text().await.unwrap());
    }
    assert!(texts[0].contains(r#""properties":{"zeta":{"type":"string"},"alpha""#), "{}", texts[0]);
    assert!(texts.iter().all(|text| *text == texts[0]));
    let mut client = Client::with_handshake("2025-11-25").await;
    let page = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "x"}});
    assert_eq!(code_and_id(&client.ask(page).await), "-32602 1");
}

#[tokio::test]
async fn outcomes_are_results_and_misuse_is_an_error() {
    let mut client = Client::with_handshake("2025-11-25").await;
    let good = client.ask(call(1, "echo", json!({"text": "žluť\n🐎"}))).await;
    let expected = json!({"content": [{"type": "text", "text": "žluť\n🐎"}],
        "structuredContent": {"length": 11}, "isError": false});
    assert_eq!(good["result"], expected);
    let bad = client.ask(call(2, "fail", json!({}))).await;
    let expected = json!({"content": [{"type": "text", "text": "no such table: nope"}],
        "isError": true, "_meta": {"indelible/code": "UNKNOWN_TABLE"}});
    assert_eq!(bad["result"], expected);
    let unknown = client.ask(call(3, "nope", json!({}))).await;
    assert_eq!(unknown["error"]["code"], json!(-32602));
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("unknown tool `nope`; the tools are `echo`, `sleep`,"), "{message}");
    let rows = [
        (json!({"method": "tools/call"}), "-32602 9"),
        (json!({"method": "tools/call", "params": {"name": 5}}), "-32602 9"),
        (json!({"method": "tools/call", "params": {"name": "echo", "arguments": []}}), "-32602 9"),
        (json!({"method": "tools/call", "params": {"name": "echo", "arguments": "{}"}}), "-32602 9"),
        (json!({"method": "tools/call", "params": {"name": "echo", "_meta": 5}}), "-32602 9"),
        (json!({"method": "tools/list", "params": {"cursor": 5}}), "-32602 9"),
        (json!({"method": "initialize", "params": {}}), "-32602 9"),
        (json!({"method": "resources/list"}), "-32601 9"),
        (json!({"method": "prompts/list"}), "-32601 9"),
        (json!({"method": "prompts/get", "params": {"name": "x"}}), "-32601 9"),
        (json!({"method": "completion/complete"}), "-32601 9"),
        (json!({"method": "logging/setLevel", "params": {"level": "info"}}), "-32601 9"),
        (json!({"method": "tasks/list"}), "-32601 9"),
        (json!({"method": "nope"}), "-32601 9"),
    ];
    for (mut message, expected) in rows {
        message["jsonrpc"] = json!("2.0");
        message["id"] = json!(9);
        let answer = client.ask(message.clone()).await;
        assert_eq!(code_and_id(&answer), expected, "{message} -> {answer}");
    }
    for arguments in [json!(null), json!({})] {
        let answer = client.ask(call(4, "echo", arguments)).await;
        assert_eq!(answer["result"]["isError"], json!(false));
    }
}

#[tokio::test]
async fn a_malformed_line_is_answered_or_skipped_and_the_server_lives_on() {
    let bomb = "[".repeat(100_000);
    let rows: &[(&[u8], Option<&str>)] = &[
        (b"", None),
        (b"   \t", None),
        (b"\xEF\xBB\xBF", None),
        (b"\r", None),
        (b"not json", Some("-32700 null")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi", Some("-32700 null")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}", Some("-32700 null")),
        (br#"{"jsonrpc":"2.0","id":1,"method":"\udc00"}"#, Some("-32700 null")),
        (bomb.as_bytes(), Some("-32700 null")),
        (b"\0", Some("-32700 null")),
        (b"17", Some("-32600 null")),
        (b"{}", Some("-32600 null")),
        (b"[]", Some("-32600 null")),
        (br#"{"jsonrpc":"2.0","id":1,"method":5}"#, Some("-32600 1")),
        (br#"{"id":"a","method":"ping"}"#, Some("-32600 \"a\"")),
        (br#"{"jsonrpc":"2.0","method":"no/such/notification"}"#, None),
        (br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#, None),
        (br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#, None),
        (br#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#, None),
        (br#"{"jsonrpc":"2.0","id":5,"result":{}}"#, None),
        (br#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"x"}}"#, None),
        (br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#, None),
        (b"[{}]", Some("-32600 null")),
    ];
    let mut client = Client::with_handshake("2025-11-25").await;
    for (line, expected) in rows {
        let shown = String::from_utf8_lossy(line.get(..60).unwrap_or(line)).into_owned();
        client.bytes(line).await;
        client.bytes(b"\n").await;
        if let Some(expected) = expected {
            let answer = client.answer().await;
            assert_eq!(&code_and_id(&answer), expected, "{shown} -> {answer}");
            assert_eq!(answer["jsonrpc"], json!("2.0"));
        }
        client.expect_quiet().await;
    }
}

#[tokio::test]
async fn byte_order_marks_carriage_returns_and_extra_members_are_passed_over() {
    let mut client = Client::start(Toy::default());
    client.bytes(b"\xEF\xBB\xBF").await;
    client.bytes(format!("{}\r\n", initialize("2025-06-18")).as_bytes()).await;
    assert_eq!(client.answer().await["result"]["protocolVersion"], json!("2025-06-18"));
    let mut extra = call(2, "echo", json!({"text": "x"}));
    extra["trace"] = json!({"a": [1]});
    extra["result"] = json!(null);
    assert_eq!(client.ask(extra).await["result"]["isError"], json!(false));
}

#[tokio::test]
async fn what_comes_before_the_handshake_does_not_end_the_server() {
    let mut client = Client::start(Toy::default());
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.send(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    client.line("garbage").await;
    assert_eq!(code_and_id(&client.answer().await), "-32700 null");
    client.line("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]").await;
    assert_eq!(code_and_id(&client.answer().await), "-32600 null");
    client.expect_quiet().await;
    let early = client.ask(call(1, "echo", json!({}))).await;
    assert_eq!(code_and_id(&early), "-32602 1");
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    let broken = json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": 5}});
    assert_eq!(code_and_id(&client.ask(broken).await), "-32602 2");
    let answer = client.ask(initialize("2025-11-25")).await;
    assert_eq!(answer["result"]["protocolVersion"], json!("2025-11-25"));
    // A second handshake cannot leave the server at a revision it did not agree to.
    assert_eq!(client.ask(initialize("9999-01-01")).await["result"]["protocolVersion"], json!("2025-11-25"));
    client.expect_quiet().await;
}

#[tokio::test]
async fn a_line_above_the_limit_is_refused_once_and_one_below_is_served() {
    let mut client = Client::with_handshake("2025-11-25").await;
    let text = "x".repeat(20 << 20);
    let answer = client.ask(call(1, "echo", json!({"text": text}))).await;
    assert_eq!(answer["result"]["structuredContent"]["length"], json!(20 << 20));
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..65 {
        client.bytes(&piece).await;
    }
    client.bytes(b"\n").await;
    assert_eq!(code_and_id(&client.answer().await), "-32600 null");
    client.expect_quiet().await;
}

#[tokio::test]
async fn batches_are_answered_in_one_array_in_the_revision_that_has_them() {
    let mut client = Client::with_handshake("2025-03-26").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let batch =
        json!([call(1, "sleep", json!({"ms": 50})), note, ping(2), 5, initialize("2025-03-26"), ping(2)]);
    let mut answers: Vec<String> =
        client.ask(batch).await.as_array().unwrap().iter().map(code_and_id).collect();
    answers.sort();
    assert_eq!(answers, ["-32600 0", "-32600 2", "-32600 null", "null 1", "null 2"]);
    client.send(json!([note, note])).await;
    client.expect_quiet().await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let answer = client.ask(json!([call(1, "sleep", json!({"ms": 60000})), ping(2), cancel])).await;
    assert_eq!(answer.as_array().unwrap().len(), 1, "{answer}");

    let mut client = Client::with_handshake("2024-11-05").await;
    client.send(json!([ping(1), ping(2)])).await;
    let mut ids = [client.answer().await["id"].clone(), client.answer().await["id"].clone()];
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [json!(1), json!(2)]);

    for revision in ["2025-06-18", "2025-11-25"] {
        let mut client = Client::with_handshake(revision).await;
        assert_eq!(code_and_id(&client.ask(json!([ping(1)])).await), "-32600 null");
        client.expect_quiet().await;
    }
}

#[tokio::test]
async fn calls_run_side_by_side_and_answers_overtake() {
    let mut client = Client::with_handshake("2025-11-25").await;
    client.send(call(1, "sleep", json!({"ms": 300}))).await;
    client.send(call(2, "echo", json!({}))).await;
    assert_eq!(client.answer().await["id"], json!(2));
    assert_eq!(client.answer().await["id"], json!(1));
    let started = Instant::now();
    for id in 0..32 {
        client.send(call(id, "sleep", json!({"ms": 300}))).await;
    }
    for _ in 0..32 {
        client.answer().await;
    }
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_thousand_calls_at_once_are_all_answered() {
    let mut client = Client::with_handshake("2025-11-25").await;
    let mut lines = String::new();
    for id in 0..1000 {
        lines.push_str(&format!("{}\n", call(id, "echo", json!({"text": "x"}))));
    }
    client.bytes(lines.as_bytes()).await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        seen.insert(client.answer().await["id"].as_u64().unwrap());
    }
    assert_eq!(seen.len(), 1000);
}

#[tokio::test]
async fn an_id_under_way_twice_is_refused_also_after_its_cancellation() {
    let mut client = Client::with_handshake("2025-11-25").await;
    client.send(call(1, "stubborn", json!({"ms": 300}))).await;
    assert_eq!(code_and_id(&client.ask(call(1, "echo", json!({}))).await), "-32600 1");
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    assert_eq!(code_and_id(&client.ask(call(1, "echo", json!({}))).await), "-32600 1");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let answer = client.ask(call(1, "echo", json!({"text": "mine"}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], json!("mine"));
}

#[tokio::test]
async fn a_cancelled_call_is_told_and_not_answered() {
    let mut client = Client::with_handshake("2025-11-25").await;
    client.send(call(1, "sleep", json!({"ms": 60000}))).await;
    client.expect_quiet().await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    client.expect_quiet().await;
    client.expect_quiet().await;
    assert_eq!(client.toy.cancelled.load(Ordering::SeqCst), 1);
    let answer = client.ask(call(1, "echo", json!({}))).await;
    assert_eq!(answer["result"]["isError"], json!(false));
}

#[tokio::test]
async fn progress_comes_before_the_answer_and_only_where_asked_for() {
    let mut client = Client::with_handshake("2025-11-25").await;
    let mut asking = call(1, "count", json!({}));
    asking["params"]["_meta"] = json!({"progressToken": "p"});
    client.send(asking).await;
    for step in 1..=3 {
        let report = client.answer().await;
        assert_eq!(report["method"], json!("notifications/progress"));
        let expected = json!({"progressToken": "p", "progress": f64::from(step), "total": 3.0, "message": format!("step {step}")});
        assert_eq!(report["params"], expected);
    }
    assert_eq!(client.answer().await["id"], json!(1));
    client.send(call(2, "count", json!({}))).await;
    assert_eq!(client.answer().await["id"], json!(2));
}

#[tokio::test]
async fn a_panic_in_a_tool_is_an_internal_error_and_the_server_lives_on() {
    let mut client = Client::with_handshake("2025-11-25").await;
    assert_eq!(code_and_id(&client.ask(call(1, "panic", json!({}))).await), "-32603 1");
    assert_eq!(client.ask(call(1, "echo", json!({}))).await["result"]["isError"], json!(false));
}

#[tokio::test]
async fn at_the_end_of_input_the_server_ends_at_once_when_idle() {
    let client = Client::with_handshake("2025-11-25").await;
    let toy = Arc::clone(&client.toy);
    let (answers, took, ending) = client.end().await;
    assert_eq!((answers.len(), ending), (0, Ending::Closed));
    assert!(took < Duration::from_millis(300), "{took:?}");
    assert_eq!(toy.shutdowns.load(Ordering::SeqCst), 1);
    let (_, took, _) = Client::start(Toy::default()).end().await;
    assert!(took < Duration::from_millis(300), "{took:?}");
}

#[tokio::test]
async fn answers_under_way_go_out_after_the_end_of_input_the_last_line_needs_no_newline() {
    let mut client = Client::with_handshake("2025-11-25").await;
    client.send(call(1, "sleep", json!({"ms": 400}))).await;
    client.bytes(call(2, "echo", json!({})).to_string().as_bytes()).await;
    let (answers, took, _) = client.end().await;
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(2), &json!(1)]);
    assert!(took > Duration::from_millis(350) && took < Duration::from_millis(1000), "{took:?}");
}

#[tokio::test]
async fn everything_is_over_within_two_seconds_of_the_end_of_input() {
    for (tool, shutdown_ms) in [("sleep", 0), ("stubborn", 60_000)] {
        let mut client = Client::start(Toy { shutdown_ms, ..Toy::default() });
        client.ask(initialize("2025-11-25")).await;
        client.send(call(1, tool, json!({"ms": 60000}))).await;
        client.expect_quiet().await;
        let (_, took, _) = client.end().await;
        assert!(took >= Duration::from_millis(1450) && took < Duration::from_secs(2), "{tool}: {took:?}");
    }
}

#[tokio::test]
async fn a_stop_cancels_what_runs_and_ends_at_once() {
    let mut client = Client::with_handshake("2025-11-25").await;
    client.send(call(1, "sleep", json!({"ms": 60000}))).await;
    client.expect_quiet().await;
    let stopped = Instant::now();
    client.stop.cancel();
    assert_eq!(client.server.await.unwrap(), Ending::Stopped);
    assert!(stopped.elapsed() < Duration::from_millis(500), "{:?}", stopped.elapsed());
    assert_eq!(client.toy.shutdowns.load(Ordering::SeqCst), 1);
    tokio::task::yield_now().await;
    assert_eq!(client.toy.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_stops_reading_ends_the_connection() {
    let toy = Arc::new(Toy::default());
    let (mut input, server_input) = tokio::io::duplex(1 << 20);
    let (server_output, output) = tokio::io::duplex(1 << 20);
    let serving =
        tokio::spawn(serve(Arc::clone(&toy), server_input, server_output, CancellationToken::new()));
    drop(output);
    input.write_all(format!("{}\n", ping(1)).as_bytes()).await.unwrap();
    let ending = tokio::time::timeout(Duration::from_secs(3), serving).await.expect("it ends").unwrap();
    assert_eq!(ending.unwrap(), Ending::Closed);
    assert_eq!(toy.shutdowns.load(Ordering::SeqCst), 1);
}
