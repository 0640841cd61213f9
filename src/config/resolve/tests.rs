//! The table of settings: what is given, and the value or the line that it comes to.

use super::*;
use clap::Parser;

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    raw: RawArgs,
}

fn defaults(max_rows: u64) -> Defaults {
    Defaults {
        query_timeout: 10.0,
        default_limit: 100,
        max_rows,
        max_result_bytes: 32_768,
        max_cell_chars: 2000,
    }
}

/// Resolves a command line and an environment, both split at spaces.
fn resolved(flags: &str, env: &str) -> Result<Settings, StartError> {
    origins(flags, env).map(|resolved| resolved.settings)
}

/// The same beside `--db /d`, with where each setting came from.
pub(crate) fn everything(flags: &str, env: &str) -> Result<Resolved, StartError> {
    origins(&format!("--db /d {flags}"), env)
}

fn origins(flags: &str, env: &str) -> Result<Resolved, StartError> {
    let raw = Line::try_parse_from(flags.split_whitespace()).expect("clap takes it").raw;
    let variables: Vec<(&str, &str)> =
        env.split_whitespace().map(|pair| pair.split_once('=').expect("NAME=value")).collect();
    let profiles = [
        Profile {
            id: "memory".to_owned(),
            defaults: defaults(1000),
            only_reads: false,
            serves: Serves::Database,
        },
        Profile {
            id: "explorer".to_owned(),
            defaults: defaults(200),
            only_reads: true,
            serves: Serves::Database,
        },
    ];
    let lookup = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| OsString::from(value))
    };
    resolve_with_origins(&raw, lookup, &profiles)
}

/// One setting, shown.
fn shown(settings: &Settings, name: &str) -> String {
    match name {
        "db" => settings.db.display().to_string(),
        "profile" => settings.profile.clone(),
        "read-only" => settings.read_only.to_string(),
        "query-timeout" => settings.query_timeout.as_secs_f64().to_string(),
        "busy-timeout" => settings.busy_timeout.as_secs_f64().to_string(),
        "default-limit" => settings.default_limit.to_string(),
        "max-rows" => settings.max_rows.to_string(),
        "max-result-bytes" => settings.max_result_bytes.to_string(),
        "max-cell-chars" => settings.max_cell_chars.to_string(),
        "max-update-rows" => settings.max_update_rows.to_string(),
        "search-candidates" => settings.search_candidates.to_string(),
        "snapshots" => settings.snapshots.to_string(),
        "confirm" => format!("{:?}", settings.confirm),
        "snapshot-dir" => settings.snapshot_dir.display().to_string(),
        "audit-keep" => settings.audit_keep.map_or_else(String::new, |keep| keep.to_string()),
        "audit-log" => format!("{:?}", settings.audit_log),
        "verbose" => settings.verbosity.to_string(),
        other => panic!("no setting {other}"),
    }
}

#[test]
fn flags_come_before_the_environment_and_that_before_defaults() {
    // flags beside --db /d, environment, setting, value
    let rows = [
        ("", "", "db", "/d"),
        ("", "", "profile", "memory"),
        ("", "INDELIBLE_PROFILE=explorer", "profile", "explorer"),
        ("--profile memory", "INDELIBLE_PROFILE=explorer", "profile", "memory"),
        ("--profile explorer", "", "max-rows", "200"),
        ("", "", "query-timeout", "10"),
        ("--query-timeout 0.25", "INDELIBLE_QUERY_TIMEOUT=3", "query-timeout", "0.25"),
        ("", "INDELIBLE_QUERY_TIMEOUT=3", "query-timeout", "3"),
        ("", "INDELIBLE_QUERY_TIMEOUT=", "query-timeout", "10"),
        ("--query-timeout 86400", "", "query-timeout", "86400"),
        ("", "", "busy-timeout", "5"),
        ("--busy-timeout 0", "", "busy-timeout", "0"),
        ("", "", "default-limit", "100"),
        ("", "", "max-rows", "1000"),
        ("--max-rows 50", "", "default-limit", "50"),
        ("", "INDELIBLE_MAX_ROWS=50", "default-limit", "50"),
        ("--max-rows 5000", "", "default-limit", "100"),
        ("--max-rows 50 --default-limit 20", "", "default-limit", "20"),
        ("--default-limit 1000", "", "default-limit", "1000"),
        ("", "", "max-result-bytes", "32768"),
        ("--max-result-bytes 1", "", "max-result-bytes", "1"),
        ("", "", "max-cell-chars", "2000"),
        ("", "", "max-update-rows", "500"),
        ("--max-update-rows 0", "", "max-update-rows", "0"),
        ("", "", "search-candidates", "0"),
        ("", "INDELIBLE_SEARCH_CANDIDATES=9", "search-candidates", "9"),
        ("", "", "snapshots", "5"),
        ("--snapshots 0", "", "snapshots", "0"),
        ("", "", "confirm", "None"),
        ("--confirm destructive", "INDELIBLE_CONFIRM=none", "confirm", "Destructive"),
        ("", "INDELIBLE_CONFIRM=destructive", "confirm", "Destructive"),
        ("", "INDELIBLE_CONFIRM=", "confirm", "None"),
        ("", "", "snapshot-dir", "/d.snapshots"),
        ("--snapshot-dir /s", "", "snapshot-dir", "/s"),
        ("", "", "audit-keep", ""),
        ("--audit-keep 100000", "INDELIBLE_AUDIT_KEEP=90d", "audit-keep", "100000"),
        ("", "INDELIBLE_AUDIT_KEEP=90d", "audit-keep", "90d"),
        ("", "", "audit-log", "None"),
        ("", "INDELIBLE_AUDIT_LOG=~/a HOME=/h", "audit-log", "Some(\"/h/a\")"),
        ("", "", "read-only", "false"),
        ("--read-only", "INDELIBLE_READ_ONLY=no", "read-only", "true"),
        ("", "INDELIBLE_READ_ONLY=1", "read-only", "true"),
        ("", "INDELIBLE_READ_ONLY=True", "read-only", "true"),
        ("", "INDELIBLE_READ_ONLY=yes", "read-only", "true"),
        ("", "INDELIBLE_READ_ONLY=0", "read-only", "false"),
        ("", "", "verbose", "0"),
        ("-vvv", "", "verbose", "2"),
        ("-v", "INDELIBLE_VERBOSE=2", "verbose", "1"),
        ("", "INDELIBLE_VERBOSE=2", "verbose", "2"),
        ("", "INDELIBLE_VERBOSE=true", "verbose", "1"),
    ];
    for (flags, env, name, expected) in rows {
        let settings = resolved(&format!("--db /d {flags}"), env).expect(flags);
        assert_eq!(shown(&settings, name), expected, "{flags} {env}");
    }
}

#[test]
fn a_bad_value_is_one_line_with_flag_value_and_rule() {
    // flags, environment, message
    let day = "must be a number of seconds above 0 to 86400";
    let rows = [
        ("", "", "no database: give --db PATH, or set INDELIBLE_DB".to_owned()),
        ("--db ~/x", "", "--db `~/x`: `~` needs HOME to be set".to_owned()),
        ("--db d --query-timeout 0", "", format!("--query-timeout `0`: {day}")),
        ("--db d --query-timeout -1", "", format!("--query-timeout `-1`: {day}")),
        ("--db d --query-timeout abc", "", format!("--query-timeout `abc`: {day}")),
        ("--db d --query-timeout NaN", "", format!("--query-timeout `NaN`: {day}")),
        ("--db d --query-timeout inf", "", format!("--query-timeout `inf`: {day}")),
        ("--db d --query-timeout 1e-12", "", format!("--query-timeout `1e-12`: {day}")),
        ("--db d --query-timeout 86401", "", format!("--query-timeout `86401`: {day}")),
        ("--db d", "INDELIBLE_QUERY_TIMEOUT=x", format!("INDELIBLE_QUERY_TIMEOUT `x`: {day}")),
        ("--db d --confirm yes", "", "--confirm `yes`: must be none or destructive".to_owned()),
        (
            "--db d --busy-timeout -1",
            "",
            "--busy-timeout `-1`: must be a number of seconds from 0 to 86400".to_owned(),
        ),
        ("--db d --max-rows 0", "", "--max-rows `0`: must be a whole number from 1 to 2147483647".to_owned()),
        (
            "--db d --max-rows 1.5",
            "",
            "--max-rows `1.5`: must be a whole number from 1 to 2147483647".to_owned(),
        ),
        (
            "--db d --snapshots -1",
            "",
            "--snapshots `-1`: must be a whole number from 0 to 2147483647".to_owned(),
        ),
        (
            "--db d --default-limit 2000",
            "",
            "--default-limit `2000`: must be at most --max-rows, which is 1000".to_owned(),
        ),
        (
            "--db d --max-rows 50",
            "INDELIBLE_DEFAULT_LIMIT=51",
            "INDELIBLE_DEFAULT_LIMIT `51`: must be at most --max-rows, which is 50".to_owned(),
        ),
        (
            "--db d --profile memori",
            "",
            "--profile `memori`: no such profile; there is memory, explorer".to_owned(),
        ),
        (
            "--db d",
            "INDELIBLE_READ_ONLY=on",
            "INDELIBLE_READ_ONLY `on`: must be one of 1, 0, true, false, yes, no".to_owned(),
        ),
        ("--db d", "INDELIBLE_VERBOSE=9", "INDELIBLE_VERBOSE `9`: must be 0, 1 or 2".to_owned()),
    ];
    for (flags, env, expected) in rows {
        let error = resolved(flags, env).expect_err(flags);
        assert_eq!((error.message, error.exit), (expected, 2), "{flags} {env}");
    }
}

#[test]
fn paths_become_absolute_and_any_file_name_is_taken() {
    let here = std::env::current_dir().unwrap();
    let path = |text: &str| {
        let raw = RawArgs { db: Some(text.into()), ..RawArgs::default() };
        let profiles = [Profile {
            id: "memory".to_owned(),
            defaults: defaults(1000),
            only_reads: false,
            serves: Serves::Database,
        }];
        resolve(&raw, |name| (name == "HOME").then(|| "/home/me".into()), &profiles).map(|s| s.db)
    };
    let rows = [
        ("a.db", here.join("a.db")),
        ("./a.db", here.join("a.db")),
        ("/x/a b?#%.db", "/x/a b?#%.db".into()),
        ("~", "/home/me".into()),
        ("~/a.db", "/home/me/a.db".into()),
        ("~other/a.db", here.join("~other/a.db")),
        ("a~", here.join("a~")),
        ("file:a.db?mode=ro", here.join("file:a.db?mode=ro")),
    ];
    for (text, expected) in rows {
        assert_eq!(path(text), Ok(expected), "{text}");
    }
    assert_eq!(path("").unwrap_err().message, "--db ``: must be a path");
    assert_eq!(path("a\n\u{1b}b").map(|db| db.file_name().unwrap().to_owned()), Ok("a\n\u{1b}b".into()));
}

#[cfg(unix)]
#[test]
fn a_file_name_need_not_be_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let name = OsString::from_vec(b"/x/\xff.db".to_vec());
    let raw = RawArgs { db: Some(name.clone()), ..RawArgs::default() };
    let profiles = [Profile {
        id: "memory".to_owned(),
        defaults: defaults(1000),
        only_reads: false,
        serves: Serves::Database,
    }];
    let settings = resolve(&raw, |_| None, &profiles).unwrap();
    assert_eq!(settings.db, PathBuf::from(name));
}
