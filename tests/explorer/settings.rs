//! The flags of the explorer, under both of their names, and what they start from.

use crate::support::{Bench, Server};
use crate::{Desk, ENDLESS, MUSIC};
use serde_json::json;

const MANY: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000) SELECT x FROM c";

#[test]
fn each_flag_works_under_each_of_its_names() {
    let bench = Bench::with(MUSIC);
    for (flags, last_line) in [
        (&[] as &[&str], "50 rows; more rows exist (limit 50, maximum 500)"),
        (&["--default-limit", "7"], "7 rows; more rows exist (limit 7, maximum 500)"),
        (&["--default-rows", "7"], "7 rows; more rows exist (limit 7, maximum 500)"),
        (&["--max-rows", "9"], "9 rows; more rows exist (limit 9, maximum 9)"),
    ] {
        let answer = Desk::with(&bench, flags).query(MANY);
        answer.ok().ends(&format!("\n\n{last_line}"));
    }
    let wide = "SELECT printf('%.*c', 900, 'x') FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400) SELECT x FROM c)";
    for (flags, bytes) in [
        (&[] as &[&str], 65536),
        (&["--max-result-bytes", "3000"], 3000),
        (&["--max-output-bytes", "3000"], 3000),
    ] {
        let answer = Desk::with(&bench, flags).call("run_query", json!({"sql": wide, "max_rows": 400}));
        answer.ok().ends(&format!("; cut at {bytes} bytes"));
        assert!(answer.text.len() < bytes + 200 && answer.text.len() > bytes - 1000, "{}", answer.text.len());
    }
    for (flags, seconds) in
        [(&["--query-timeout", "0.2"], "longer than 0.2 s"), (&["--timeout-ms", "200"], "longer than 0.2 s")]
    {
        Desk::with(&bench, flags).query(ENDLESS).fails_as("TIMEOUT", &[seconds]);
    }
    let cell = Desk::on(&bench).query("SELECT printf('%.*c', 1500, 'x')");
    cell.ok().ends("1 rows; 1 cells cut to 1000 chars");
}

#[test]
fn variables_count_and_flags_come_first() {
    let bench = Bench::with(MUSIC);
    let server = Server::on(&bench).env("INDELIBLE_DEFAULT_LIMIT", "6").env("INDELIBLE_TIMEOUT_MS", "150");
    let mut desk = Desk::of(server);
    desk.query(MANY).ok().ends("6 rows; more rows exist (limit 6, maximum 500)");
    desk.query(ENDLESS).fails(&["longer than 0.15 s"]);
    let mut desk =
        Desk::of(Server::on(&bench).env("INDELIBLE_DEFAULT_LIMIT", "6").flags(&["--default-rows", "5"]));
    desk.query(MANY).ok().ends("5 rows; more rows exist (limit 5, maximum 500)");
    let mut client = Server::on(&bench).env("INDELIBLE_PROFILE", "explorer").start();
    client.call("run_query", json!({"sql": "SELECT 1"})).ok();
}

#[test]
fn immutable_is_for_profiles_that_only_read() {
    let bench = Bench::with(MUSIC);
    let (status, line) = Server::on(&bench).flags(&["--immutable"]).refusal();
    assert_eq!(status, 2, "{line}");
    assert!(
        line.contains("--immutable is for profiles that only read") && line.contains("--profile explorer"),
        "{line}"
    );
    let (status, help, _) = Server::bare().flags(&["--help"]).run();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        status == 0 && help.contains("SQLite makes -wal and -shm beside a file in WAL mode by itself"),
        "{help}"
    );
}
