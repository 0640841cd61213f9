//! vault_use over real stdio, against a server that gives everything back.

use super::echo::{Echo, traces};
use super::stdio::Desk;
use super::vault_commands::done;
use crate::support::{Server, wait_until};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// With everything that some spelling escapes.
const SECRET: &str = "k3y/\"<&>'+%\\~ the=end";

/// A vault with one secret, `token`, and the server that it may go to.
struct Bench {
    folder: TempDir,
    echo: Echo,
    desk: Desk,
}

impl Bench {
    #[track_caller]
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [data, log] =
            ["data", "calls.log"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
        let place =
            ["--profile", "primitives", "--data", &data, "--group", "g", "-v", "-v", "--audit-log", &log];
        let mut server = Server::bare().flags(&place);
        // Nothing goes through a proxy; nobody is there.
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
            server = server.env(name, "http://127.0.0.1:9");
        }
        let mut desk = Desk::of(server);
        desk.ok("primitive_create", json!({"type": "vault", "name": "v"}));
        let bench = Self { echo: Echo::start(), folder, desk };
        done(&bench.data(), &["set", "token"], SECRET);
        bench
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// Grants the server everything, with these flags besides.
    #[track_caller]
    fn grant(&self, flags: &[&str]) {
        let host = self.echo.address.to_string();
        let all = ["grant", "token", "--host", &host, "--plain-http", "--private"];
        done(&self.data(), &[&all, flags].concat(), "");
    }

    #[track_caller]
    fn ok(&mut self, path: &str, more: Value) -> Value {
        let answer = self.desk.ok("vault_use", asked(&self.echo.url(path), more));
        assert_no_trace(&answer.to_string());
        answer
    }

    /// The error's code and words.
    #[track_caller]
    fn refused(&mut self, url: &str, more: Value) -> (String, String) {
        let refusal = self.desk.refusal("vault_use", asked(url, more));
        assert_no_trace(&refusal.1);
        refusal
    }
}

fn asked(url: &str, more: Value) -> Value {
    let mut arguments = json!({"url": url, "auth": {"bearer": "token"}});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

#[track_caller]
fn assert_no_trace(text: &str) {
    let lower = text.to_lowercase();
    for trace in traces(SECRET) {
        // As it stands, and as a text in JSON.
        let json = serde_json::to_string(&trace).unwrap();
        for trace in [trace.as_str(), json.trim_matches('"')] {
            assert!(!lower.contains(&trace.to_lowercase()), "{trace} is in {text}");
        }
    }
}

const WIDE: &[&str] = &["--auth", "bearer", "--auth", "basic", "--auth", "header", "--auth", "query"];
const METHODS: &[&str] = &["--method", "GET", "--method", "HEAD", "--method", "POST", "--method", "DELETE"];

#[test]
fn a_request_carries_the_secret_and_the_answer_does_not() {
    let mut bench = Bench::new();
    bench.grant(&[WIDE, METHODS].concat());
    let basic = json!({"basic": {"username": "me", "secret": "token"}});
    let header = json!({"header": {"name": "X-Key", "secret": "token"}});
    let query = json!({"query": {"param": "key", "secret": "token"}});
    for auth in [json!({"bearer": "token"}), basic, header, query] {
        for path in ["/all", "/spellings", "/headers", "/redirect", "/gzip", "/utf16", "/big"] {
            let answer = bench.ok(path, json!({"auth": auth}));
            assert!(
                answer.to_string().contains("[redacted]") || path == "/utf16" || path == "/headers",
                "{path} {answer}"
            );
        }
        let seen = bench.echo.seen();
        assert_eq!(seen.len(), 7, "no redirect was followed");
        let first = &seen[0];
        let arrived = match auth.as_object().unwrap().keys().next().unwrap().as_str() {
            "bearer" => first.header("authorization") == Some(&format!("Bearer {SECRET}")),
            "basic" => first.header("authorization").is_some_and(|text| text.starts_with("Basic bWU6azN5")),
            "header" => first.header("x-key") == Some(SECRET),
            _ => first.target.starts_with("/all?key=k3y%2F%22%3C%26%3E"),
        };
        assert!(arrived, "{first:?}");
        assert_eq!(first.header("cookie"), None);
    }
    let answer = bench.ok("/headers", json!({}));
    assert_eq!(answer["headers"]["x-raw"], "[redacted]");
    assert_eq!(answer["headers"]["x-two"], "one, two");
    assert_eq!(answer["headers"].get("set-cookie"), None);
    let answer = bench.ok("/redirect", json!({}));
    assert_eq!((&answer["status"], &answer["body"]), (&json!(302), &json!("")));
    assert_eq!(answer["headers"]["location"], "http://evil.example/?stolen=[redacted]");
    assert_eq!(bench.ok("/gzip", json!({}))["body"], "packed [redacted] packed");
    let answer = bench.ok("/utf16", json!({}));
    assert_eq!((&answer["encoding"], &answer["body"]), (&json!("base64"), &json!("AAFbcmVkYWN0ZWRdAAI=")));
    for packed in ["/br", "/twice"] {
        let answer = bench.ok(packed, json!({}));
        assert_eq!((&answer["body"], &answer["truncated"]), (&json!(""), &json!(true)), "{answer}");
        assert!(answer["note"].as_str().unwrap().contains("cannot be looked through"), "{answer}");
    }
    let posted =
        bench.ok("/all", json!({"method": "POST", "body": {"a": [1]}, "headers": {"X-Mine": "yes"}}));
    let posted: Value = serde_json::from_str(posted["body"].as_str().unwrap()).unwrap();
    assert_eq!((&posted["method"], &posted["body"]), (&json!("POST"), &json!("{\"a\":[1]}")));
    assert_eq!(posted["headers"]["content-type"], "application/json");
    assert_eq!(posted["headers"]["x-mine"], "yes");
    let head = bench.ok("/all", json!({"method": "HEAD"}));
    assert_eq!(
        (&head["status"], &head["body"], &head["truncated"]),
        (&json!(200), &json!(""), &json!(false))
    );
}

#[test]
fn an_answer_is_cut_and_never_within_the_secret() {
    let mut bench = Bench::new();
    bench.grant(&[]);
    let cap = 256 << 10;
    for before in [cap - 30, cap - SECRET.len(), cap - 10, cap - 1, cap, cap + 1] {
        let answer = bench.ok(&format!("/big?before={before}"), json!({}));
        let body = answer["body"].as_str().unwrap();
        assert_eq!(answer["truncated"], true);
        // A placeholder is shorter than what it stands for.
        assert!((cap - SECRET.len()..=cap).contains(&body.len()), "{before}: {}", body.len());
        let end = body.trim_start_matches('x').trim_end_matches('y');
        assert!("[redacted]".starts_with(end), "{before}: {end}");
    }
}

#[test]
fn what_no_grant_allows_is_not_sent() {
    let mut bench = Bench::new();
    let url = bench.echo.url("/api/x");
    let port = bench.echo.address.port();
    let refused = |bench: &mut Bench, url: &str, more: Value, code: &str, words: &str| {
        let (found, said) = bench.refused(url, more);
        assert_eq!(found, code, "{url} {said}");
        assert!(said.contains(words), "{url} {said}");
    };
    refused(&mut bench, &url, json!({}), "not_granted", "`indelible vault grant token --host HOST`");
    refused(&mut bench, &url, json!({"auth": {"bearer": "other"}}), "not_found", "vault_list");
    let host = bench.echo.address.to_string();
    done(&bench.data(), &["grant", "token", "--host", &host, "--path", "/api"], "");
    refused(&mut bench, &url, json!({}), "not_granted", "only https");
    done(&bench.data(), &["revoke", "token", "--all"], "");
    done(&bench.data(), &["grant", "token", "--host", &host, "--path", "/api", "--plain-http"], "");
    refused(&mut bench, &url, json!({}), "not_granted", "has the private address 127.0.0.1");
    done(&bench.data(), &["revoke", "token", "--all"], "");
    bench.grant(&["--path", "/api", "--auth", "bearer"]);
    let rows = [
        (format!("http://127.0.0.1:{port}/apix"), json!({}), "must lie under"),
        (format!("http://127.0.0.1:{port}/api/../x"), json!({}), "must lie under"),
        (format!("http://127.0.0.1:{port}/api/..%2fx"), json!({}), "must lie under"),
        (format!("http://127.0.0.1:{port}/api/x"), json!({"method": "POST"}), "method POST"),
        (url.clone(), json!({"auth": {"basic": {"username": "u", "secret": "token"}}}), "the form basic"),
        (
            url.clone(),
            json!({"auth": {"header": {"name": "x-key", "secret": "token"}}}),
            "the form header:x-key",
        ),
        (url.clone(), json!({"auth": {"query": {"param": "key", "secret": "token"}}}), "the form query:key"),
        (format!("http://localhost:{port}/api"), json!({}), "host `localhost"),
        (format!("http://127.0.0.2:{port}/api"), json!({}), "host `127.0.0.2"),
        (format!("http://[::1]:{port}/api"), json!({}), "host `[::1]"),
        (format!("http://[::ffff:127.0.0.1]:{port}/api"), json!({}), "host `[::ffff:7f00:1]"),
        ("http://127.0.0.1:1/api".to_owned(), json!({}), "host `127.0.0.1:1`"),
        ("http://127.0.0.1/api".to_owned(), json!({}), "host `127.0.0.1`"),
    ];
    for (url, more, words) in rows {
        refused(&mut bench, &url, more, "not_granted", words);
    }
    for (url, more) in [
        (format!("http://user@127.0.0.1:{port}/api"), json!({})),
        (format!("http://127.0.0.1:{port}@evil.example/api"), json!({})),
        ("file:///etc/passwd".to_owned(), json!({})),
        (url.clone(), json!({"headers": {"Host": "evil.example"}})),
        (url.clone(), json!({"headers": {"authorization": "Bearer mine"}})),
        (url.clone(), json!({"headers": {"Range": "bytes=0-3"}})),
        (url.clone(), json!({"method": "TRACE"})),
        (url.clone(), json!({"body": "x"})),
        (url.clone(), json!({"auth": {}})),
    ] {
        refused(&mut bench, &url, more, "invalid_arguments", "");
    }
    assert_eq!(bench.echo.seen().len(), 0, "nothing was sent");
    // The same host by other names for its address.
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1"] {
        let url = format!("http://{host}:{port}/api/x");
        assert_eq!(bench.desk.ok("vault_use", asked(&url, json!({})))["status"], 200);
    }
    // A grant that was taken back holds at once.
    done(&bench.data(), &["revoke", "token", "--all"], "");
    refused(&mut bench, &url, json!({}), "not_granted", "has no grant");
}

#[test]
fn addresses_that_are_nobody_s_are_refused_whatever_is_granted() {
    let mut bench = Bench::new();
    for host in [
        "169.254.169.254",
        "[fe80::1]",
        "0.0.0.0",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "[::ffff:169.254.169.254]",
    ] {
        done(&bench.data(), &["grant", "token", "--host", host, "--plain-http", "--private"], "");
        let (code, words) = bench.refused(&format!("http://{host}/latest/meta-data"), json!({}));
        assert_eq!(
            (code.as_str(), words.contains("which no secret is sent to")),
            ("not_granted", true),
            "{words}"
        );
    }
    done(&bench.data(), &["grant", "token", "--host", "localhost", "--plain-http"], "");
    let (code, words) = bench.refused("http://localhost/", json!({}));
    assert_eq!((code.as_str(), words.contains("has the private address")), ("not_granted", true), "{words}");
}

#[test]
fn a_host_that_does_not_answer_as_it_should_is_an_error_without_the_secret() {
    let mut bench = Bench::new();
    bench.grant(WIDE);
    let query = json!({"auth": {"query": {"param": "key", "secret": "token"}}});
    for path in ["/broken", "/nonsense"] {
        for more in [json!({}), query.clone()] {
            let (code, words) = bench.refused(&bench.echo.url(path), more);
            assert_eq!(
                (code.as_str(), words.contains("the answer cannot be read")),
                ("unreachable", true),
                "{words}"
            );
        }
    }
    done(&bench.data(), &["grant", "token", "--host", "127.0.0.1:1", "--plain-http", "--private"], "");
    let (code, words) = bench.refused("http://127.0.0.1:1/", json!({}));
    assert_eq!(
        (code.as_str(), words.contains("no connection, nothing was sent")),
        ("unreachable", true),
        "{words}"
    );
    // No TLS where it must be.
    let (code, words) = bench.refused(&bench.echo.url("/all").replace("http:", "https:"), json!({}));
    assert_eq!(code, "unreachable", "{words}");
    assert!(words.contains("nothing was sent"), "{words}");
    assert!(bench.echo.seen().iter().all(|seen| seen.method == "GET"), "nothing readable went to it");
}

#[test]
fn a_call_that_is_cancelled_ends_and_others_go_on_meanwhile() {
    let mut bench = Bench::new();
    bench.grant(&[]);
    let arguments = asked(&bench.echo.url("/slow"), json!({}));
    let slow = bench.desk.client.send("tools/call", json!({"name": "vault_use", "arguments": arguments}));
    assert_eq!(bench.ok("/all", json!({}))["status"], 200);
    let began = Instant::now();
    bench.desk.client.notify("notifications/cancelled", json!({"requestId": slow}));
    let log = bench.folder.path().join("calls.log");
    wait_until(|| std::fs::read_to_string(&log).unwrap().contains("(CANCELLED)"));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn the_value_is_in_no_file_and_no_log() {
    let mut bench = Bench::new();
    bench.grant(&[WIDE, METHODS].concat());
    let query =
        json!({"auth": {"query": {"param": "key", "secret": "token"}}, "method": "POST", "body": "x"});
    let basic = json!({"auth": {"basic": {"username": "me", "secret": "token"}}});
    for path in ["/all", "/spellings", "/redirect", "/headers"] {
        for more in [json!({}), query.clone(), basic.clone()] {
            bench.ok(path, more);
        }
    }
    for more in [json!({}), query] {
        bench.refused(&bench.echo.url("/broken"), more.clone());
        bench.refused(&bench.echo.url("/nonsense"), more);
    }
    bench.refused("http://127.0.0.2/", json!({}));
    bench.desk.ok("primitive_snapshot", json!({"primitive": "v"}));
    bench.desk.ok("primitive_fork", json!({"primitive": "v", "new_name": "copy"}));
    done(&bench.data(), &["set", "token", "--primitive", "v"], &format!("{SECRET} and more"));
    for primitive in ["v", "copy"] {
        bench.ok("/all", json!({"primitive": primitive}));
    }
    done(&bench.data(), &["delete", "token", "--primitive", "v"], "");
    done(&bench.data(), &["list", "--primitive", "v"], "");
    let log = std::fs::read_to_string(bench.folder.path().join("calls.log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let used = lines.iter().filter(|line| line["tool"] == "vault_use");
    assert_eq!(used.clone().count(), 19);
    assert!(log.contains("127.0.0.1") && log.contains("token"), "{log}");
    // While the server has the files open, with what is in the WAL, and after it has ended.
    let found = search(bench.folder.path());
    assert!(found > 6, "{found} files: those of the vault, its snapshot and its copy among them");
    let said = bench.desk.client.close_with_stderr().0;
    assert!(said.contains("serving"), "{said}");
    assert_no_trace(&said);
    search(bench.folder.path());
}

#[test]
fn a_fork_has_the_secrets_and_grants_of_then_and_goes_its_own_way() {
    let mut bench = Bench::new();
    bench.grant(&[]);
    bench.desk.ok("primitive_fork", json!({"primitive": "v", "new_name": "copy"}));
    let listed =
        |desk: &mut Desk, name: &str| desk.ok("vault_list", json!({"primitive": name}))["data"].clone();
    assert_eq!(listed(&mut bench.desk, "copy"), listed(&mut bench.desk, "v"));
    assert_eq!(bench.ok("/all", json!({"primitive": "copy"}))["status"], 200);
    let url = bench.echo.url("/all");
    assert_eq!(bench.refused(&url, json!({})).0, "ambiguous_primitive");
    let data = bench.data();
    done(&data, &["revoke", "token", "--all", "--primitive", "copy"], "");
    done(&data, &["set", "token", "--primitive", "v"], "another value");
    assert_eq!(bench.refused(&url, json!({"primitive": "copy"})).0, "not_granted");
    assert_eq!(bench.ok("/all", json!({"primitive": "v"}))["status"], 200);
    let seen = bench.echo.seen();
    let sent: Vec<_> = seen.iter().map(|seen| seen.header("authorization").unwrap()).collect();
    assert_eq!(sent, [format!("Bearer {SECRET}").as_str(), "Bearer another value"]);
}

#[test]
fn a_read_only_server_names_secrets_and_uses_none() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    drop(Desk::at(folder.path()).ok("primitive_create", json!({"type": "vault", "name": "v"})));
    let flags = ["--profile", "primitives", "--data", data, "--group", "g", "--read-only"];
    let mut client = Server::bare().flags(&flags).start();
    let list = client.request("tools/list", json!({}));
    let names: Vec<&str> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"vault_list") && !names.contains(&"vault_use"), "{names:?}");
}

/// Looks for the secret in every file; how many there were.
#[track_caller]
fn search(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += search(&path);
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).unwrap().to_ascii_lowercase();
        for trace in traces(SECRET) {
            let json = serde_json::to_string(&trace).unwrap();
            let utf16: Vec<u8> = trace.encode_utf16().flat_map(u16::to_le_bytes).collect();
            for trace in [trace.as_bytes(), json.trim_matches('"').as_bytes(), &utf16] {
                let trace = trace.to_ascii_lowercase();
                assert!(
                    !bytes.windows(trace.len()).any(|window| window == trace),
                    "{} has it",
                    path.display()
                );
            }
        }
    }
    files
}
