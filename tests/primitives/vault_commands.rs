//! `indelible vault` as a person runs it, beside a server.

#![cfg(target_os = "linux")]

use super::stdio::Desk;
use crate::support::Server;
use serde_json::{Value, json};
use std::path::Path;

/// Runs `indelible vault ...` on the group `g`: status, stdout, stderr.
pub(super) fn vault(data: &Path, words: &[&str], stdin: &str) -> (i32, String, String) {
    let place = ["--data", data.to_str().unwrap(), "--group", "g"];
    Server::bare().flags(&["vault"]).flags(words).flags(&place).run_with(stdin)
}

#[track_caller]
pub(super) fn done(data: &Path, words: &[&str], stdin: &str) -> String {
    let (status, said, wrong) = vault(data, words, stdin);
    assert_eq!((status, wrong.as_str()), (0, ""), "{words:?} {said}");
    said
}

#[test]
fn a_person_sets_secrets_and_grants_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let mut desk = Desk::at(data);
    desk.ok("primitive_create", json!({"type": "vault", "name": "v"}));
    assert_eq!(desk.ok("vault_list", json!({})), json!({"data": []}));
    assert_eq!(done(data, &["list"], ""), "no secrets\n");
    let said = done(data, &["set", "token"], "correct horse battery\n");
    assert_eq!(said, "ok: token set, version 1; it goes nowhere before `indelible vault grant`\n");
    let said = done(data, &["grant", "token", "--host", "API.example.com", "--path", "/v1"], "");
    assert_eq!(said, "ok: grant 1 of token added\n");
    let wide = [
        "grant",
        "token",
        "--host",
        ".b.example:8443",
        "--host",
        "[::1]",
        "--method",
        "post",
        "--auth",
        "query:key",
        "--private",
        "--plain-http",
        "--json",
    ];
    assert_eq!(done(data, &wide, ""), "{\"name\":\"token\",\"grant\":2}\n");
    let grants = json!([
        {
            "grant": 1, "hosts": ["api.example.com"], "methods": ["GET", "HEAD"], "path": "/v1",
            "auth": ["bearer", "basic", "header"], "private": false, "http": false,
        },
        {
            "grant": 2, "hosts": [".b.example:8443", "[::1]"], "methods": ["POST"], "path": "/",
            "auth": ["query:key"], "private": true, "http": true,
        },
    ]);
    let listed = json!([{"name": "token", "version": 1, "grants": grants}]);
    assert_eq!(desk.ok("vault_list", json!({})), json!({"data": listed}));
    assert_eq!(serde_json::from_str::<Value>(&done(data, &["list", "--json"], "")).unwrap(), listed);
    assert_eq!(
        done(data, &["list", "--primitive", "v"], ""),
        "secret  version  grant  hosts                  methods   path  forms                also\n\
         token   1        1      api.example.com        GET,HEAD  /v1   bearer,basic,header  -\n\
         token   1        2      .b.example:8443,[::1]  POST      /     query:key            private addresses, plain http\n"
    );
    assert_eq!(
        done(data, &["set", "token", "--json"], "another value"),
        "{\"name\":\"token\",\"version\":2}\n"
    );
    assert_eq!(done(data, &["revoke", "token", "2"], ""), "ok: 1 taken back, token has 1 left\n");
    assert_eq!(done(data, &["revoke", "token", "--all"], ""), "ok: 1 taken back, token has 0 left\n");
    assert_eq!(
        desk.ok("vault_list", json!({})),
        json!({"data": [{"name": "token", "version": 2, "grants": []}]})
    );
    assert_eq!(done(data, &["delete", "token"], ""), "ok: token deleted\n");
    assert_eq!(desk.ok("vault_list", json!({})), json!({"data": []}));
}

#[test]
fn a_mistake_is_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let nothing = vault(data, &["list"], "");
    assert!(nothing.2.contains("is no data folder; `indelible groups create` makes one"), "{nothing:?}");
    let mut desk = Desk::at(data);
    desk.ok("primitive_create", json!({"type": "kv", "name": "k"}));
    assert!(vault(data, &["list"], "").2.contains("no primitive of type vault"));
    desk.ok("primitive_create", json!({"type": "vault", "name": "v"}));
    done(data, &["set", "token"], "correct horse battery");
    let rows: [(&[&str], &str, i32, &str); 15] = [
        (&["set", "short"], "1234567\n", 1, "8 characters to 8192 bytes, and this value has 7 characters"),
        (&["set", "two lines"], "12345678", 1, "`name` must be 1 to 64 letters"),
        (&["set", "lines"], "1234\n5678\n", 1, "no control characters"),
        (&["set", "long"], &"x".repeat(9000), 1, "8 characters to 8192 bytes"),
        (&["set", "token", "correct horse battery"], "", 2, "unknown argument"),
        (&["grant", "token"], "", 2, "missing --host <HOST>"),
        (&["grant", "other", "--host", "a.example"], "", 1, "there is no secret `other`"),
        (&["grant", "token", "--host", "*.example.com"], "", 1, "write `api.example.com`, `.example.com`"),
        (&["grant", "token", "--host", "a.example", "--method", "TRACE"], "", 1, "must be one of GET, HEAD"),
        (&["grant", "token", "--host", "a.example", "--path", "x"], "", 1, "must begin with `/`"),
        (&["grant", "token", "--host", "a.example", "--auth", "cookie"], "", 1, "must be bearer, basic"),
        (&["revoke", "token"], "", 2, "missing <GRANT>"),
        (&["revoke", "token", "4"], "", 1, "has no grant 4"),
        (&["list", "--primitive", "k"], "", 1, "is of type kv"),
        (&["list", "--primitive", "kk"], "", 1, "has no primitive `kk`; did you mean `k`?"),
    ];
    let agents = regex::Regex::new("(primitive|db|fs|queue|memory|vault|kv|storage)_[a-z]").unwrap();
    for (words, stdin, expected, line) in rows {
        let (status, said, wrong) = vault(data, words, stdin);
        assert_eq!((status, said.as_str()), (expected, ""), "{words:?} {wrong}");
        assert!(wrong.contains(line) && wrong.lines().count() == 1, "{words:?} {wrong}");
        assert!(!agents.is_match(&wrong), "a person has no tools: {words:?} {wrong}");
        assert!(stdin.trim().is_empty() || !wrong.contains(stdin.trim()), "{words:?} {wrong}");
    }
    // The same in the other commands that take a primitive.
    drop(desk);
    for (words, line) in [
        (&["snapshots", "create", "--primitive", "x"][..], "`indelible primitives list` shows"),
        (&["snapshots", "create"], "the group has 2 primitives; give one with --primitive NAME"),
        (&["snapshots", "list", "--primitive", "x"], "`indelible primitives list` shows"),
        (&["snapshots", "restore", "x", "--primitive", "k", "--reason", "r"], "x"),
        (&["primitives", "pause", "x"], "`indelible primitives list` shows"),
        (&["primitives", "resume", "vv"], "did you mean `v`?"),
        (&["primitives", "create", "kv", "k"], "already"),
        (&["keys", "revoke", "nosuch"], "nosuch"),
        (&["vault", "delete", "nosuch"], "`indelible vault list` shows"),
        (&["vault", "grant", "nosuch", "--host", "a.example"], "`indelible vault list` shows"),
    ] {
        let place = ["--data", data.to_str().unwrap(), "--group", "g"];
        let place = if words[1] == "revoke" { &place[..2] } else { &place };
        let (status, _, wrong) = Server::bare().flags(words).flags(place).run();
        assert!(status != 0 && wrong.contains(line) && !agents.is_match(&wrong), "{words:?} {wrong}");
    }
    let flags = ["vault", "list", "--data", data.to_str().unwrap()];
    assert!(Server::bare().flags(&flags).refusal().1.contains("no group: give --group NAME"));
}

#[test]
fn the_environment_gives_the_key_instead_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let place = ["--profile", "primitives", "--data", data.to_str().unwrap(), "--group", "g"];
    drop(Desk::at(data).ok("primitive_create", json!({"type": "vault", "name": "v"})));
    let run = |key: &str, words: &[&str]| {
        let server = Server::bare().env("INDELIBLE_VAULT_KEY", key).flags(&["vault"]).flags(words);
        server.flags(&place[2..]).run_with("correct horse battery")
    };
    let key = "0f".repeat(32);
    assert_eq!(run(&key, &["set", "token"]).0, 0);
    assert_eq!(run(&key, &["grant", "token", "--host", "a.example"]).0, 0);
    assert!(!data.join("vault.key").exists());
    assert_eq!(run(&key, &["list"]).0, 0);
    let (status, _, wrong) = run(&"f0".repeat(32), &["list"]);
    assert!(status == 1 && wrong.contains("sealed under another key"), "{wrong}");
    // Nor does another key, or none, write anything beside what is sealed under the right one.
    for words in [&["set", "other"][..], &["grant", "token", "--host", "b.example"]] {
        for other in ["f0".repeat(32), String::new()] {
            let (status, _, wrong) = run(&other, words);
            assert_eq!(status, 1, "{words:?} {wrong}");
        }
    }
    assert!(!data.join("vault.key").exists());
    assert_eq!(run(&key, &["list"]).0, 0);
    let (status, line) = Server::bare().env("INDELIBLE_VAULT_KEY", "123").flags(&place).refusal();
    assert_eq!((status, line.contains("INDELIBLE_VAULT_KEY: must be 64 hex digits")), (2, true), "{line}");
}
