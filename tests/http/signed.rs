//! Signed URLs: what they allow and nothing else, with a plain client.

use super::desk::Heard;
use super::hall::{Hall, people};
use super::{TOKEN, support};
use http::Request;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Command;

const PATH: &str = "/mcp/team";

/// A group with a storage, and a key.
fn hall() -> (Hall, String) {
    let folder = tempfile::tempdir().unwrap();
    people(folder.path(), &["groups", "create", "team"]);
    people(folder.path(), &["primitives", "create", "storage", "files", "--group", "team"]);
    let key = people(folder.path(), &["keys", "create", "--group", "team"]);
    (Hall::on(folder, &[], &[("INDELIBLE_HTTP_TOKEN", TOKEN)]), key)
}

/// A signed URL.
#[track_caller]
fn sign(hall: &Hall, key: &str, arguments: Value) -> String {
    hall.ok(PATH, key, "storage_sign", arguments)["url"].as_str().unwrap().to_owned()
}

/// What a plain client hears.
fn ask(hall: &Hall, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Heard {
    let request = Request::builder().method(method).uri(url);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    hall.caller.run(request.body(body.to_owned()).unwrap())
}

#[test]
fn an_object_goes_in_and_out_by_url_alone() {
    let (hall, key) = hall();
    let name = "a b/../ž?&=%2F#";
    let signed = hall.ok(
        PATH,
        &key,
        "storage_sign",
        json!({"key": name, "method": "PUT", "content_type": "text/plain", "max_size": 10}),
    );
    assert_eq!(
        (&signed["method"], &signed["headers"]),
        (&json!("PUT"), &json!({"Content-Type": "text/plain"}))
    );
    let put = signed["url"].as_str().unwrap();
    let heard = ask(&hall, "PUT", put, &[("content-type", "text/plain")], "0123456789");
    assert_eq!(heard.status, 200, "{heard:?}");
    let read = hall.ok(PATH, &key, "storage_read", json!({"key": name}));
    assert_eq!((&read["content"], &read["content_type"]), (&json!("0123456789"), &json!("text/plain")));
    assert_eq!(heard.header("etag"), read["etag"].as_str().unwrap());

    let get = sign(&hall, &key, json!({"key": name}));
    let heard = ask(&hall, "GET", &get, &[], "");
    assert_eq!((heard.status, heard.text.as_str()), (200, "0123456789"));
    let expected = [
        ("content-type", "text/plain"),
        ("content-length", "10"),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox"),
        ("referrer-policy", "no-referrer"),
        ("content-disposition", ""),
    ];
    for (header, value) in expected {
        assert_eq!(heard.header(header), value, "{header}");
    }
    let etag = heard.header("etag").to_owned();
    let head = ask(&hall, "HEAD", &get, &[], "");
    assert_eq!((head.status, head.header("content-length"), head.text.as_str()), (200, "10", ""));
    // range, status, text, Content-Range
    let rows = [
        ("bytes=0-3", 206, "0123", "bytes 0-3/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=8-100", 206, "89", "bytes 8-9/10"),
        ("bytes=10-", 416, "", "bytes */10"),
        ("bytes=0-1,3-4", 200, "0123456789", ""),
        ("bytes=x", 200, "0123456789", ""),
        ("lines=0-1", 200, "0123456789", ""),
    ];
    for (range, status, text, content_range) in rows {
        let heard = ask(&hall, "GET", &get, &[("range", range)], "");
        let found = (heard.status, heard.text.as_str(), heard.header("content-range"));
        assert_eq!(found, (status, text, content_range), "{range}");
    }
    assert_eq!(ask(&hall, "GET", &get, &[("if-none-match", &etag)], "").status, 304);
    assert_eq!(ask(&hall, "GET", &get, &[("range", "bytes=0-0"), ("if-range", "\"x\"")], "").status, 200);
}

#[test]
fn plain_curl_is_all_it_takes() {
    let (hall, key) = hall();
    let curl = |arguments: &[&str]| {
        let output = Command::new("curl")
            .args(["-sS", "-w", "%{http_code}", "--noproxy", "*"])
            .args(arguments)
            .output();
        output.map(|output| String::from_utf8(output.stdout).unwrap())
    };
    let put = sign(&hall, &key, json!({"key": "x/../y", "method": "PUT", "max_size": 300_000}));
    let file = hall.data().join("to-send");
    std::fs::write(&file, "z".repeat(300_000)).unwrap();
    let Ok(said) = curl(&["-T", file.to_str().unwrap(), &put]) else {
        println!("skipped: there is no curl");
        return;
    };
    assert!(said.ends_with("200"), "{said}");
    let get = sign(&hall, &key, json!({"key": "x/../y"}));
    assert_eq!(curl(&[&get]).unwrap(), format!("{}200", "z".repeat(300_000)));
    std::fs::write(&file, "z".repeat(300_001)).unwrap();
    assert!(curl(&["-T", file.to_str().unwrap(), &put]).unwrap().ends_with("413"));
    let piped = curl(&["-T", file.to_str().unwrap(), "-H", "Transfer-Encoding: chunked", &put]).unwrap();
    assert!(piped.ends_with("413"), "{piped}");
    assert_eq!(hall.ok(PATH, &key, "storage_read", json!({"key": "x/../y", "head": true}))["size"], 300_000);
}

#[test]
fn every_condition_of_a_put_is_enforced() {
    let (hall, key) = hall();
    let put = |arguments: Value| {
        let mut all = json!({"key": "k", "method": "PUT"});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        sign(&hall, &key, all)
    };
    let typed = put(json!({"content_type": "image/png"}));
    let charset = put(json!({"content_type": "text/plain; charset=utf-8"}));
    let small = put(json!({"max_size": 3}));
    let fresh = put(json!({"if_none_match": "*"}));
    let plain = put(json!({}));
    // url, headers, body, status
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, u16);
    let rows: &[Row<'_>] = &[
        (&typed, &[("content-type", "text/html")], "x", 415),
        (&typed, &[], "x", 415),
        (&typed, &[("content-type", "image/png")], "x", 200),
        (&typed, &[("content-type", "Image/PNG")], "x", 200),
        (&typed, &[("content-type", "image/png; x=1")], "x", 415),
        (&charset, &[("content-type", "TEXT/plain;Charset=\"UTF-8\"")], "x", 200),
        (&charset, &[("content-type", "text/plain")], "x", 415),
        (&charset, &[("content-type", "text/plain; charset=latin1")], "x", 415),
        (&plain, &[("content-range", "bytes 0-0/5")], "x", 400),
        (&plain, &[("content-encoding", "gzip")], "x", 415),
        (&small, &[], "1234", 413),
        (&small, &[], "123", 200),
        (&fresh, &[], "x", 412),
        (&plain, &[("if-none-match", "*")], "x", 412),
        (&plain, &[("if-match", "\"other\"")], "x", 412),
        (&plain, &[("if-none-match", "\"x\"")], "x", 400),
        (&plain, &[("content-type", "no type")], "x", 400),
        (&plain, &[], "last", 200),
    ];
    for (url, headers, body, status) in rows {
        let heard = ask(&hall, "PUT", url, headers, body);
        assert_eq!(heard.status, *status, "{url} {headers:?}: {heard:?}");
        assert_eq!(heard.header("x-content-type-options"), "nosniff");
    }
    assert_eq!(hall.ok(PATH, &key, "storage_read", json!({"key": "k"}))["content"], "last");
    hall.ok(PATH, &key, "storage_write", json!({"key": "k", "action": "delete"}));
    assert_eq!(ask(&hall, "PUT", &fresh, &[], "new").status, 200);
    // What is not its method is refused, with a method that it does not have, too.
    assert_eq!(ask(&hall, "GET", &plain, &[], "").status, 403);
    assert_eq!(ask(&hall, "PUT", &sign(&hall, &key, json!({"key": "k"})), &[], "x").status, 403);
    assert_eq!(ask(&hall, "POST", &plain, &[], "x").status, 405);
    assert_eq!(ask(&hall, "DELETE", &plain, &[], "").status, 405);
}

#[test]
fn what_is_done_by_url_is_logged_as_calls_are() {
    let (hall, key, log) = Hall::logged();
    let put = sign(&hall, &key, json!({"key": "k", "method": "PUT", "max_size": 3}));
    let get = sign(&hall, &key, json!({"key": "k"}));
    assert_eq!(ask(&hall, "PUT", &put, &[], "1234").status, 413);
    assert_eq!(ask(&hall, "PUT", &put, &[("content-range", "bytes 0-0/5")], "1").status, 400);
    assert_eq!(ask(&hall, "PUT", &put, &[], "123").status, 200);
    assert_eq!(ask(&hall, "GET", &get, &[], "").status, 200);
    assert_eq!(ask(&hall, "HEAD", &get, &[], "").status, 200);
    // Nobody's request: it is as a call without a key.
    assert_eq!(ask(&hall, "GET", &put, &[], "").status, 403);
    let rows: Vec<Value> = std::fs::read_to_string(log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let by = key.split('_').nth(1).unwrap();
    let expected = [
        ("storage_sign", true, Value::Null),
        ("storage_sign", true, Value::Null),
        ("signed PUT", false, json!(413)),
        ("signed PUT", false, json!(400)),
        ("signed PUT", true, json!(200)),
        ("signed GET", true, json!(200)),
        ("signed HEAD", true, json!(200)),
    ];
    assert_eq!(rows.len(), expected.len(), "{rows:?}");
    for (row, (tool, ok, status)) in rows.iter().zip(expected) {
        let detail: Value = serde_json::from_str(row["detail"].as_str().unwrap()).unwrap();
        assert_eq!((&row["tool"], &row["ok"]), (&json!(tool), &json!(ok)), "{row}");
        let error = if ok { Value::Null } else { json!(format!("status {status}")) };
        assert_eq!(row["error"], error, "{row}");
        let found = [
            &detail["credential"],
            &detail["object"],
            &detail["primitive"],
            &detail["group"],
            &detail["status"],
        ];
        assert_eq!(found, [&json!(by), &json!("k"), &json!("files"), &json!("team"), &status], "{row}");
        assert_eq!(row["session"], rows[0]["session"]);
    }
}

#[test]
fn a_write_of_a_client_that_is_gone_is_logged_too() {
    let (hall, key, log) = Hall::logged();
    let body = "x".repeat(200_000);
    for number in 0..40_u64 {
        let url = sign(&hall, &key, json!({"key": format!("k{number}"), "method": "PUT"}));
        let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let head = format!("PUT /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_micros(number * 250));
    }
    // What was written when its client went may be on its way still.
    let written = || hall.ok(PATH, &key, "storage_list", json!({}))["data"].as_array().unwrap().len();
    let logged = || {
        let text = std::fs::read_to_string(&log).unwrap();
        let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.filter(|row| row["tool"] == "signed PUT" && row["ok"] == json!(true)).count()
    };
    for _ in 0..500 {
        if written() == logged() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(written(), logged());
    assert!(written() > 0, "the clients went too early to say anything");
}

#[test]
fn nothing_in_a_url_can_be_changed() {
    let (hall, key) = hall();
    hall.ok(PATH, &key, "storage_write", json!({"key": "k", "content": "secret"}));
    hall.ok(PATH, &key, "storage_write", json!({"key": "other", "content": "more secret"}));
    hall.ok(PATH, &key, "primitive_create", json!({"type": "storage", "name": "second"}));
    let second =
        hall.ok(PATH, &key, "primitive_list", json!({}))["data"][1]["id"].as_str().unwrap().to_owned();
    let url = sign(&hall, &key, json!({"primitive": "files", "key": "k"}));
    let status = |url: &str| ask(&hall, "GET", url, &[], "").status;
    assert_eq!(status(&url), 200);
    let (base, query) = url.split_once('?').unwrap();
    let id = base.rsplit('/').next().unwrap();
    assert_eq!(status(&url.replace(id, &second)), 403);
    let other = hall.key("team", &[]);
    let other = other.split('_').nth(1).unwrap();
    let fields: Vec<&str> = query.split('&').collect();
    for (at, field) in fields.iter().enumerate() {
        let (name, value) = field.split_once('=').unwrap();
        for to in ["other", "PUT", "9999999999", other, "operator", "anybody", "", &"0".repeat(64)] {
            let mut changed = fields.clone();
            let replaced = format!("{name}={to}");
            changed[at] = &replaced;
            assert_eq!(status(&format!("{base}?{}", changed.join("&"))), 403, "{replaced} for {value}");
        }
        let mut without = fields.clone();
        without.remove(at);
        assert_eq!(status(&format!("{base}?{}", without.join("&"))), 403, "without {name}");
        assert_eq!(status(&format!("{url}&{field}")), 403, "{field} twice");
    }
    for more in ["x=1", "content_type=text/html", "max_size=1", "if_none_match=*"] {
        assert_eq!(status(&format!("{url}&{more}")), 403, "{more}");
    }
    assert_eq!(status(base), 403);
    // Under a name that is not the server's it is as any other path.
    assert_eq!(ask(&hall, "GET", &url, &[("host", "evil.example")], "").status, 403);
}

#[test]
fn a_url_ends_with_its_time_its_key_and_what_it_is_for() {
    let (hall, key) = hall();
    hall.ok(PATH, &key, "storage_write", json!({"key": "k", "content": "x"}));
    let status = |url: &str| ask(&hall, "GET", url, &[], "").status;
    let short = sign(&hall, &key, json!({"key": "k", "expires_in": "2s"}));
    let long = sign(&hall, &key, json!({"key": "k", "expires_in": "7d"}));
    let operators = sign(&hall, TOKEN, json!({"key": "k"}));
    assert!(short.contains("expires=") && status(&short) == 200);
    assert!(support::wait_until(|| status(&short) == 403));
    assert_eq!((status(&long), status(&operators)), (200, 200));
    hall.people(&["primitives", "pause", "files", "--group", "team"]);
    assert_eq!(status(&long), 403);
    hall.people(&["primitives", "resume", "files", "--group", "team"]);
    // No later than the key itself.
    let brief = hall.key("team", &["--expires", "1h"]);
    let ends =
        hall.ok(PATH, &brief, "storage_sign", json!({"key": "k", "expires_in": "7d"}))["expires_at"].clone();
    let ends: jiff::Timestamp = ends.as_str().unwrap().parse().unwrap();
    let left = ends.as_second() - jiff::Timestamp::now().as_second();
    assert!((3_500..=3_600).contains(&left), "{left}");
    hall.people(&["keys", "revoke", key.split('_').nth(1).unwrap()]);
    assert_eq!((status(&long), status(&operators)), (403, 200));
    hall.ok(PATH, TOKEN, "storage_write", json!({"key": "k", "action": "delete"}));
    assert_eq!(status(&operators), 404);
}

#[test]
fn a_url_allows_no_more_than_the_key_that_signed_it() {
    let (hall, key) = hall();
    hall.ok(PATH, &key, "storage_write", json!({"key": "k", "content": "x"}));
    let signs = hall.key("team", &["--tools", "storage_sign,storage_read"]);
    let alone = hall.key("team", &["--tools", "storage_sign"]);
    let get = json!({"key": "k"});
    let put = json!({"key": "k", "method": "PUT"});
    hall.ok(PATH, &signs, "storage_sign", get.clone());
    for (key, arguments, tool) in [(&signs, &put, "storage_write"), (&alone, &get, "storage_read")] {
        let (code, words) = hall.refused(PATH, key, "storage_sign", arguments.clone());
        assert_eq!(code, "forbidden_tool");
        assert!(words.contains(&format!("`{tool}`")), "{words}");
    }
    let reads = hall.key("team", &["--read-only"]);
    assert_eq!(hall.refused(PATH, &reads, "storage_sign", get.clone()).0, "forbidden_tool");
    let rows = [
        json!({"key": "k", "expires_in": "8d"}),
        json!({"key": "k", "expires_in": "0s"}),
        json!({"key": "k", "max_size": 1}),
        json!({"key": "k", "method": "DELETE"}),
        json!({"key": "k", "method": "PUT", "if_none_match": "x"}),
        json!({"key": "k", "method": "PUT", "content_type": "x"}),
        json!({"key": ""}),
    ];
    for arguments in rows {
        assert_eq!(
            hall.refused(PATH, &key, "storage_sign", arguments.clone()).0,
            "invalid_arguments",
            "{arguments}"
        );
    }
}

#[test]
fn what_a_browser_could_run_is_offered_as_a_file() {
    let (hall, key) = hall();
    let rows = [
        ("text/html", "attachment"),
        ("Text/HTML; charset=utf-8", "attachment"),
        ("image/svg+xml", "attachment"),
        ("application/xhtml+xml", "attachment"),
        ("text/javascript", "attachment"),
        ("application/octet-stream", "attachment"),
        ("image/png", ""),
        ("text/plain; charset=utf-8", ""),
    ];
    for (content_type, disposition) in rows {
        let put = json!({"key": "k", "content": "<script>", "content_type": content_type});
        hall.ok(PATH, &key, "storage_write", put);
        let heard = ask(&hall, "GET", &sign(&hall, &key, json!({"key": "k"})), &[], "");
        assert_eq!(heard.header("content-disposition"), disposition, "{content_type}");
        assert_eq!(heard.header("content-type"), content_type);
        assert_eq!(heard.header("content-security-policy"), "sandbox");
    }
}

#[test]
fn a_server_behind_a_proxy_signs_under_its_public_name() {
    let folder = tempfile::tempdir().unwrap();
    people(folder.path(), &["groups", "create", "team"]);
    people(folder.path(), &["primitives", "create", "storage", "files", "--group", "team"]);
    let hall = Hall::on(folder, &["--no-auth", "--http-public-url", "https://state.example"], &[]);
    hall.ok(PATH, "-", "storage_write", json!({"key": "k", "content": "x"}));
    let url = sign(&hall, "-", json!({"key": "k"}));
    let rest = url.strip_prefix("https://state.example/s/").unwrap();
    let here = format!("http://{}/s/{rest}", hall.caller.authority);
    assert_eq!(ask(&hall, "GET", &here, &[("host", "state.example")], "").text, "x");
}
