//! What must be settled before anybody is served.

use super::Desk;
use super::support::{Bench, Server};
use std::net::TcpListener;

#[test]
fn without_a_token_it_does_not_start_and_says_what_to_do() {
    let bench = Bench::notes();
    // flags, token, words
    let rows: &[(&[&str], Option<&str>, &[&str])] = &[
        (&["--http", "127.0.0.1:0"], None, &["INDELIBLE_HTTP_TOKEN", "Authorization: Bearer", "--no-auth"]),
        (&["--http", "0.0.0.0:0"], None, &["INDELIBLE_HTTP_TOKEN", "--no-auth"]),
        (&["--http", "0.0.0.0:0", "--no-auth"], None, &["0.0.0.0", "loopback", "INDELIBLE_HTTP_TOKEN"]),
        (&["--http", "127.0.0.1:0", "--no-auth"], Some(super::TOKEN), &["only one of them"]),
        (&["--http", "nowhere"], Some(super::TOKEN), &["`nowhere`", "127.0.0.1:7777"]),
        (&["--no-auth"], None, &["--http"]),
        (&["--http", "127.0.0.1:0"], Some("too-short"), &["at least 16", "openssl rand -hex 32"]),
    ];
    for (flags, token, words) in rows {
        let mut server = Server::on(&bench).flags(flags);
        if let Some(token) = token {
            server = server.env("INDELIBLE_HTTP_TOKEN", token);
        }
        let (status, line) = server.refusal();
        assert_eq!(status, 2, "{flags:?}: {line}");
        assert!(words.iter().all(|word| line.contains(word)), "{flags:?}: {line}");
    }
}

#[test]
fn the_flags_are_for_serving_alone() {
    let bench = Bench::notes();
    let (status, line) = Server::on(&bench).flags(&["--http", "127.0.0.1:0", "verify"]).refusal();
    assert_eq!((status, line.as_str()), (2, "--http is for serving; leave it out here"));
    let (status, _, said) = Server::on(&bench).flags(&["verify", "--http", "127.0.0.1:0"]).run();
    assert_eq!(status, 2, "{said}");
}

#[test]
fn a_port_that_is_taken_is_said_before_the_database_is_touched() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let bench = Bench::empty();
    let (status, line) =
        Server::on(&bench).flags(&["--http", &address]).env("INDELIBLE_HTTP_TOKEN", super::TOKEN).refusal();
    assert_eq!(status, 1);
    assert!(line.contains(&format!("cannot listen on {address}")) && line.contains("--http"), "{line}");
    assert!(!bench.path().exists());
}

#[test]
fn stderr_says_where_it_is_served_and_stdin_is_not_asked_for() {
    let mut desk = Desk::open(&["--read-only"]);
    let said = desk.server.stderr();
    assert!(said.contains(&format!("on http://{}/mcp, profile memory, read-only", desk.authority)), "{said}");
    desk.server.close_input();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let listed = desk.ask("tools/list", serde_json::json!({}));
    assert!(listed["result"]["tools"].as_array().unwrap().len() > 3, "{listed}");
}
