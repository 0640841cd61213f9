//! The command line of the real program, as far as it needs no database.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::process::{Command, Output};

fn indelible(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_indelible"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("INDELIBLE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).output().unwrap()
}

#[test]
fn what_is_wrong_with_the_command_line_is_one_line_on_stderr_and_exit_status_2() {
    let rows: &[(&[&str], &str)] = &[
        (&[], "no database: give --db PATH, or set INDELIBLE_DB"),
        (&["--dbb", "x"], "unknown argument `--dbb`; did you mean `--db`?"),
        (
            &["--db", "x", "--max-rows", "many"],
            "--max-rows `many`: must be a whole number from 1 to 2147483647",
        ),
        (&["--db", "x", "--profile", "a\nb"], "--profile `a\\nb`: no such profile; there is memory"),
        (
            &["call", "--db", "x", "read_query", "y"],
            "argument `y`: give NAME=VALUE pairs, or all arguments as one JSON object",
        ),
        (
            &["verify", "--db", "x", "--expect-head", "y"],
            "--expect-head `y`: must be a hash of 64 hex digits",
        ),
    ];
    for (arguments, expected) in rows {
        let output = indelible(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with(&format!("indelible: {expected}")), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
    }
}

#[test]
fn help_and_version_go_to_stdout_when_asked_for() {
    let help = indelible(&["--help"]);
    let text = String::from_utf8(help.stdout).unwrap();
    assert_eq!((help.status.code(), help.stderr.len()), (Some(0), 0));
    for words in ["--query-timeout <SECONDS>", "INDELIBLE_QUERY_TIMEOUT", "Exit statuses:", "completions"] {
        assert!(text.contains(words), "no {words} in\n{text}");
    }
    assert!(!text.contains("worker"), "{text}");
    let version = indelible(&["--version"]);
    let expected = format!("indelible {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(version.stdout).unwrap(), expected);
}

#[test]
fn completions_are_a_script_on_stdout() {
    for shell in ["bash", "zsh", "fish"] {
        let output = indelible(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("max-result-bytes"), "{shell}");
    }
}
