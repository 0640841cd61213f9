//! What is answered to which body and which method.

use super::Desk;
use http::Request;
use serde_json::{Value, json};
use std::io::{Read, Write};

#[test]
fn what_is_no_message_is_refused_as_on_stdin() {
    let desk = Desk::open(&[]);
    // body, status, code, id
    let rows: &[(&str, u16, i64, Value)] = &[
        ("", 400, -32600, Value::Null),
        ("not json", 400, -32700, Value::Null),
        ("{\"jsonrpc\":\"2.0\",", 400, -32700, Value::Null),
        ("5", 400, -32600, Value::Null),
        ("[]", 400, -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32600, Value::Null),
        (r#"{"id":7,"method":"ping"}"#, 400, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#, 400, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}"#, 400, -32600, Value::Null),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{},"params":{}}"#,
            400,
            -32600,
            Value::Null,
        ),
        (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"ping"}"#, 400, -32600, Value::Null),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"nope"}}"#,
            400,
            -32600,
            json!(7),
        ),
        (r#"{"jsonrpc":"2.0","id":7}"#, 400, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#, 200, -32602, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#, 200, -32602, json!(7)),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_query","arguments":[]}}"#,
            200,
            -32602,
            json!(7),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"nope"}}"#, 200, -32602, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"x"}}"#, 200, -32602, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"nope"}"#, 200, -32601, json!(7)),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"sqlite://schema"}}"#,
            200,
            -32601,
            json!(7),
        ),
    ];
    for (body, status, code, id) in rows {
        let heard = desk.run(desk.post().body((*body).to_owned()).unwrap());
        assert_eq!(heard.status, *status, "{body}: {heard:?}");
        let answer = heard.answer();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{body}: {answer}");
    }
    assert_eq!(desk.call("read_query", json!({"query": "SELECT 1 AS alive"})), "alive\n1\n# 1 rows");
}

#[test]
fn a_body_may_be_large_but_not_too_large() {
    let desk = Desk::open(&[]);
    let insert = |bytes: usize| {
        let arguments =
            json!({"query": "INSERT INTO notes(title) VALUES (:t)", "params": {"t": "x".repeat(bytes)}});
        let params = json!({"name": "write_query", "arguments": arguments});
        desk.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}))
    };
    let heard = insert(8 * 1024 * 1024);
    assert_eq!((heard.status, &heard.answer()["result"]["isError"]), (200, &json!(false)), "{heard:?}");
    // Of known length, and in pieces of which the last is too much.
    let pieces = format!("100000\r\n{}\r\n", "x".repeat(1024 * 1024)).repeat(17);
    let lengths = [
        "Content-Length: 16777217\r\n\r\n".to_owned(),
        format!("Transfer-Encoding: chunked\r\n\r\n{pieces}"),
    ];
    for rest in lengths {
        let answer = raw(&desk, &format!("Content-Type: application/json\r\n{rest}"));
        // A client that still sends may not see the answer, and sees the connection closed.
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(
            rest.starts_with("Transfer") || answer.contains("a body may hold 16777216 bytes"),
            "{answer}"
        );
    }
    let rows = desk.call(
        "read_query",
        json!({"query": "SELECT count(*) AS n, max(length(title)) AS longest FROM notes"}),
    );
    assert_eq!(rows, "n,longest\n4,8388608\n# 1 rows");
}

#[test]
fn notifications_are_taken_and_answers_are_not() {
    let desk = Desk::open(&[]);
    let rows = [
        (json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), 202),
        (json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}), 202),
        (json!({"jsonrpc": "2.0", "id": 1, "result": {}}), 400),
    ];
    for (message, status) in rows {
        let heard = desk.send(&message);
        assert_eq!(heard.status, status, "{message}: {heard:?}");
        if status == 202 {
            assert_eq!(heard.text, "", "{message}");
        }
    }
}

#[test]
fn there_is_no_stream_to_open_and_no_session_to_end() {
    let desk = Desk::open(&[]);
    for method in ["GET", "DELETE", "PUT"] {
        let request = desk.post().method(method).header("mcp-session-id", "x");
        let heard = desk.run(request.body(String::new()).unwrap());
        assert_eq!((heard.status, heard.header("allow")), (405, "POST"), "{method}: {heard:?}");
    }
    let heard = desk.send(&super::shake("2025-11-25"));
    assert_eq!((heard.status, heard.header("mcp-session-id")), (200, ""));
}

#[test]
fn headers_say_what_comes_and_what_is_taken() {
    let desk = Desk::open(&[]);
    let body = super::shake("2025-11-25").to_string();
    let without = |header: &str, instead: Option<&str>| {
        let mut request = desk.post();
        request.headers_mut().unwrap().remove(header);
        if let Some(value) = instead {
            request = request.header(header, value);
        }
        desk.run(request.body(body.clone()).unwrap()).status
    };
    let rows = [
        ("content-type", None, 415),
        ("content-type", Some("text/plain"), 415),
        ("content-type", Some("application/json; charset=utf-8"), 200),
        ("accept", Some("application/json"), 406),
        ("accept", Some("text/event-stream"), 406),
    ];
    for (header, value, status) in rows {
        assert_eq!(without(header, value), status, "{header} {value:?}");
    }
    let request = desk.post().header("mcp-protocol-version", "1999-01-01");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(desk.run(request.body(ping).unwrap()).status, 400);
}

/// Sends a POST with these bytes behind its first headers and closes that way; what comes back.
fn raw(desk: &Desk, rest: &str) -> String {
    let (host, token) = (&desk.authority, super::TOKEN);
    unlike(desk, &format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{rest}"))
}

/// Sends these bytes and closes that way; what comes back.
fn unlike(desk: &Desk, bytes: &str) -> String {
    let mut stream = std::net::TcpStream::connect(&desk.authority).unwrap();
    // The server may have answered and closed before all is sent.
    let _ = stream.write_all(bytes.as_bytes());
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn garbage_leaves_the_server_alive() {
    let desk = Desk::open(&[]);
    let answers = [
        unlike(&desk, "\u{0}\u{1}garbage\r\n\r\n"),
        unlike(&desk, "GET / HTTP/1.1\r\n\r\n"),
        raw(&desk, "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{}"),
        raw(&desk, "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        raw(&desk, "Host: evil.example\r\nContent-Length: 0\r\n\r\n"),
    ];
    for answer in answers {
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let request = Request::builder().uri(format!("http://{}/healthz", desk.authority));
    assert_eq!(desk.run(request.body(String::new()).unwrap()).status, 200);
}
