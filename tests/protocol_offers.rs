//! Resources, prompts, completion and change notifications over an in-process pair of streams, in both eras of
//! the protocol.
//!
//! The toy service stands behind them; what the real one says is held by `resources.rs`.

#[allow(dead_code, reason = "shared with protocol_lines.rs, which uses all of it")]
mod duplex_client;
mod toy;

use duplex_client::{Client, call, code_and_id, initialize, modern, ping};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use toy::Toy;

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A client of a toy with more than tools, after its handshake.
async fn client(box_of_toys: Option<watch::Sender<u64>>) -> Client {
    let mut client = Client::start(Toy { box_of_toys: Some(box_of_toys), ..Toy::default() });
    client.ask(initialize("2025-11-25")).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client
}

#[tokio::test]
async fn what_is_offered_is_announced_and_nothing_else() {
    for (box_of_toys, expected) in [
        (None, json!({"tools": {}})),
        (Some(None), json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}})),
        (
            Some(Some(watch::Sender::new(0))),
            json!({"tools": {}, "resources": {"listChanged": true}, "prompts": {}, "completions": {}}),
        ),
    ] {
        let mut client = Client::start(Toy { box_of_toys, ..Toy::default() });
        let answer = client.ask(initialize("2025-11-25")).await;
        assert_eq!(answer["result"]["capabilities"], expected);
        let found = client.ask(modern(json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}))).await;
        assert_eq!(found["result"]["capabilities"], expected);
    }
}

#[tokio::test]
async fn lists_resources_prompts_and_completions_are_answered_in_both_eras() {
    for is_modern in [false, true] {
        let mut client = if is_modern {
            Client::start(Toy { box_of_toys: Some(None), ..Toy::default() })
        } else {
            client(None).await
        };
        let mut id = 0;
        let mut rows = Vec::new();
        for (method, params) in [
            ("resources/list", json!({})),
            ("resources/list", json!({"cursor": "2"})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": "toy://ball"})),
            ("prompts/list", json!({})),
            ("prompts/get", json!({"name": "play", "arguments": {"toy": "ball"}})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/resource", "uri": "toy://{name}"}, "argument": {"name": "name", "value": "b"}}),
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "play"}, "argument": {"name": "toy", "value": ""}}),
            ),
        ] {
            id += 1;
            let message = request(id, method, params);
            let answer = client.ask(if is_modern { modern(message) } else { message }).await;
            let mut result = answer["result"].clone();
            if is_modern {
                assert_eq!(result["resultType"], json!("complete"), "{answer}");
                assert_eq!(
                    result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "indelible",
                    "{answer}"
                );
                if !method.starts_with("completion") && method != "prompts/get" {
                    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{answer}");
                }
            }
            for key in ["resultType", "_meta", "ttlMs", "cacheScope"] {
                result.as_object_mut().unwrap().remove(key);
            }
            rows.push(result);
        }
        let ball = json!({"uri": "toy://ball", "name": "ball", "title": "BALL", "description": "A toy.", "mimeType": "text/plain", "size": 4});
        let top = json!({"uri": "toy://top", "name": "top", "title": "TOP", "description": "A toy.", "mimeType": "text/plain"});
        let expected = [
            json!({"nextCursor": "2", "resources": [ball]}),
            json!({"resources": [top]}),
            json!({"resourceTemplates": [{"uriTemplate": "toy://{name}", "name": "toy", "title": "A toy", "mimeType": "text/plain"}]}),
            json!({"contents": [{"uri": "toy://ball", "mimeType": "text/plain", "text": "ball"}]}),
            json!({"prompts": [{"name": "play", "title": "Play", "description": "Plays.",
                "arguments": [{"name": "toy", "description": "Which.", "required": true}]}]}),
            json!({"description": "Plays.", "messages": [{"role": "user", "content": {"type": "text", "text": "play with the ball"}}]}),
            json!({"completion": {"values": ["toy://{name}/name/b"], "total": 2, "hasMore": true}}),
            json!({"completion": {"values": ["play/toy/"], "total": 2, "hasMore": true}}),
        ];
        assert_eq!(rows, expected, "modern: {is_modern}");
    }
}

#[tokio::test]
async fn misuse_is_named_and_failures_carry_their_code() {
    let mut client = client(None).await;
    let rows = [
        ("resources/read", json!({"uri": "toy://nope"}), -32002, "no such toy"),
        ("resources/read", json!({"uri": "toy://busy"}), -32603, "somebody has it"),
        (
            "resources/read",
            json!({}),
            -32602,
            "`params` do not fit `resources/read`, which takes `uri`, a string",
        ),
        ("resources/list", json!({"cursor": "x"}), -32602, "unknown `cursor`"),
        (
            "resources/templates/list",
            json!({"cursor": "x"}),
            -32602,
            "unknown cursor; resources/templates/list has one page",
        ),
        ("prompts/list", json!({"cursor": "x"}), -32602, "unknown cursor; prompts/list has one page"),
        ("prompts/get", json!({"name": "nope"}), -32602, "unknown prompt `nope`"),
        ("prompts/get", json!({"name": "play"}), -32602, "`toy` is missing"),
        (
            "prompts/get",
            json!({"name": "play", "arguments": []}),
            -32602,
            "`params` do not fit `prompts/get`, which takes `name`, a string, and `arguments`, an object",
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/toy"}, "argument": {"name": "a", "value": ""}}),
            -32602,
            "`params` do not fit `completion/complete`, which takes `ref`, and `argument` with `name` and `value`, both strings",
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "play"}}),
            -32602,
            "`params` do not fit `completion/complete`, which takes `ref`, and `argument` with `name` and `value`, both strings",
        ),
    ];
    for (method, params, code, words) in rows {
        let answer = client.ask(request(1, method, params)).await;
        assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(code), &json!(words)));
    }
    let busy = client.ask(request(2, "resources/read", json!({"uri": "toy://busy"}))).await;
    assert_eq!(busy["error"]["data"], json!({"indelible/code": "BUSY", "uri": "toy://busy"}));
    // The newer revision has one code for it.
    let mut client = Client::start(Toy { box_of_toys: Some(None), ..Toy::default() });
    let gone = client.ask(modern(request(3, "resources/read", json!({"uri": "toy://nope"})))).await;
    assert_eq!(code_and_id(&gone), "-32602 3");
}

#[tokio::test]
async fn a_cancelled_read_stops_and_is_not_answered() {
    let mut client = client(None).await;
    client.send(request(1, "resources/read", json!({"uri": "toy://slow"}))).await;
    client.expect_quiet().await;
    let params = json!({"requestId": 1});
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    client.expect_quiet().await;
    while client.toy.cancelled.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.expect_quiet().await;
}

#[tokio::test]
async fn a_client_with_a_handshake_is_told_of_changes_once_it_is_ready() {
    let (changes, _) = watch::channel(0);
    let mut client = Client::start(Toy { box_of_toys: Some(Some(changes.clone())), ..Toy::default() });
    client.ask(initialize("2025-06-18")).await;
    changes.send_replace(1);
    client.expect_quiet().await;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    client.send(ready.clone()).await;
    client.send(ready).await;
    client.expect_quiet().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    changes.send_replace(2);
    let told = json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"});
    assert_eq!(client.answer().await, told);
    client.expect_quiet().await;
    changes.send_replace(3);
    assert_eq!(client.answer().await, told);
    let (answers, took, _) = client.end().await;
    assert!(answers.is_empty() && took < Duration::from_secs(1), "{answers:?} {took:?}");
}

#[tokio::test]
async fn a_client_without_a_handshake_is_told_what_it_subscribed_to() {
    let (changes, _) = watch::channel(0);
    let mut client = Client::start(Toy { box_of_toys: Some(Some(changes.clone())), ..Toy::default() });
    client.ask(modern(call(1, "echo", json!({})))).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    changes.send_replace(1);
    let ping = client.ask(modern(ping(2))).await;
    assert_eq!(code_and_id(&ping), "-32601 2", "no notification came before");

    let wanted = json!({"notifications": {"resourcesListChanged": true, "toolsListChanged": true}});
    let acknowledged = client.ask(modern(request(3, "subscriptions/listen", wanted.clone()))).await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    assert_eq!(acknowledged["params"]["notifications"], json!({"resourcesListChanged": true}));
    let nothing = json!({"notifications": {"toolsListChanged": true}});
    let acknowledged = client.ask(modern(request(4, "subscriptions/listen", nothing))).await;
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    tokio::time::sleep(Duration::from_millis(20)).await;
    changes.send_replace(2);
    let told = client.answer().await;
    assert_eq!(told["method"], "notifications/resources/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(3), "{told}");

    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    client.send(cancel).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    changes.send_replace(3);
    let echo = client.ask(modern(call(5, "echo", json!({})))).await;
    assert_eq!(echo["id"], json!(5), "a cancelled subscription is silent");
    let (answers, took, _) = client.end().await;
    assert!(took < Duration::from_secs(1), "open subscriptions hold up the end: {took:?}");
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!((&answers[0]["id"], answers[0]["result"].is_object()), (&json!(4), true), "{answers:?}");
}

#[tokio::test]
async fn subscriptions_are_bounded_and_absent_where_nothing_changes() {
    let listen = |id| modern(request(id, "subscriptions/listen", json!({"notifications": {}})));
    let mut client = Client::start(Toy { box_of_toys: Some(None), ..Toy::default() });
    let answer = client.ask(listen(1)).await;
    assert_eq!(code_and_id(&answer), "-32601 1");
    let changes = Some(Some(watch::Sender::new(0)));
    let mut client = Client::start(Toy { box_of_toys: changes, ..Toy::default() });
    for id in 1..=17 {
        let acknowledged = client.ask(listen(id)).await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{id} {acknowledged}");
    }
    let refused = client.answer().await;
    assert_eq!(code_and_id(&refused), "-32600 17");
}
