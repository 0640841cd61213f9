//! A group of primitives over HTTP: at its own path, behind the same door.

use super::desk::{Caller, TOKEN, call};
use super::support::Server;
use serde_json::json;

#[test]
fn a_group_is_served_at_its_own_path_behind_the_same_door() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let flags = ["--profile", "primitives", "--data", data, "--group", "team", "--http", "127.0.0.1:0"];
    let server = Server::bare().flags(&flags).env("INDELIBLE_HTTP_TOKEN", TOKEN).spawn();
    let caller = Caller::of(&server);
    assert!(caller.url().ends_with("/mcp/team"), "{}", caller.url());
    caller.ask("tools/call", call("primitive_create", json!({"type": "kv", "name": "state"})));
    caller.ask("tools/call", call("kv_set", json!({"key": "a", "value": 1})));
    let found = caller.ask("tools/call", call("kv_get", json!({"key": "a"})));
    assert_eq!(found["result"]["structuredContent"]["data"]["value"], 1, "{found}");

    let at = |path: &str, token: &str| {
        let url = caller.url().replace("/mcp/team", path);
        let request = caller.post().uri(url).header("mcp-protocol-version", "2025-11-25");
        let mut request =
            request.body(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string()).unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        caller.run(request).status
    };
    assert_eq!(at("/mcp/team", TOKEN), 200);
    assert_eq!(at("/mcp/team", "another"), 401);
    assert_eq!(at("/mcp/other", TOKEN), 404);
    assert_eq!(at("/mcp", TOKEN), 404);
}
