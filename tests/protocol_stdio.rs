//! The protocol over a real process: pipes and socket pairs, the end of input, a client that goes away.
//!
//! The process is `examples/toy_server.rs`; what lines get which answers is in `protocol_lines.rs`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper that fails fails its test")]
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How the client hands over a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Pipe,
    Socket,
}

struct Client {
    child: Child,
    input: Option<Box<dyn Write>>,
    output: BufReader<Box<dyn Read>>,
}

/// The server's program. `cargo test` builds examples as well, but not when it is asked for one test
/// file alone, so it is built here, into the folder that this test was built into.
fn toy_server() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let folder = test.ancestors().nth(2).unwrap();
        let profile = match folder.file_name().and_then(|name| name.to_str()).unwrap() {
            "debug" => "dev",
            profile => profile,
        };
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--offline", "--example", "toy_server", "--profile", profile]);
        build.arg("--target-dir").arg(folder.parent().unwrap());
        build.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        // What cargo tells a test of its package. The build script of `ring` looks at it and would run anew, and with it
        // half of the dependencies be built once more, here and the next time that somebody builds.
        for (name, _) in std::env::vars_os() {
            let told = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CFG_", "OUT_DIR"];
            if name.to_str().is_some_and(|name| told.iter().any(|start| name.starts_with(start))) {
                build.env_remove(name);
            }
        }
        assert!(build.status().unwrap().success(), "examples/toy_server.rs does not build");
        folder.join("examples").join("toy_server")
    })
}

impl Client {
    fn start(input: Kind, output: Kind) -> Self {
        let mut command = Command::new(toy_server());
        command.args(["--db", "toys"]).stderr(Stdio::null());
        let (stdin, near_input) = match input {
            Kind::Pipe => (Stdio::piped(), None),
            Kind::Socket => {
                let (near, far) = UnixStream::pair().unwrap();
                (Stdio::from(OwnedFd::from(far)), Some(near))
            }
        };
        let (stdout, near_output) = match output {
            Kind::Pipe => (Stdio::piped(), None),
            Kind::Socket => {
                let (near, far) = UnixStream::pair().unwrap();
                (Stdio::from(OwnedFd::from(far)), Some(near))
            }
        };
        let mut child = command.stdin(stdin).stdout(stdout).spawn().unwrap();
        // The command keeps the far ends open until it is dropped.
        drop(command);
        let input: Box<dyn Write> = match near_input {
            Some(near) => Box::new(near),
            None => Box::new(child.stdin.take().unwrap()),
        };
        let output: Box<dyn Read> = match near_output {
            Some(near) => Box::new(near),
            None => Box::new(child.stdout.take().unwrap()),
        };
        Self { child, input: Some(input), output: BufReader::new(output) }
    }

    fn send(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn answer(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn handshake(&mut self) {
        self.send(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
        );
        assert_eq!(self.answer()["id"], 0);
    }

    fn ended(&mut self) -> (ExitStatus, Duration) {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, started.elapsed());
            }
            assert!(started.elapsed() < Duration::from_secs(10), "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

const SLEEP: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":60000}}}"#;

const KINDS: [(Kind, Kind); 4] = [
    (Kind::Pipe, Kind::Pipe),
    (Kind::Socket, Kind::Socket),
    (Kind::Pipe, Kind::Socket),
    (Kind::Socket, Kind::Pipe),
];

#[test]
fn large_messages_pass_through_pipes_and_socket_pairs() {
    for (input, output) in KINDS {
        let mut client = Client::start(input, output);
        client.handshake();
        let text = "ž".repeat(2_000_000);
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
        ));
        assert_eq!(client.answer()["result"]["content"][0]["text"], text, "{input:?} {output:?}");
        client.input = None;
        let (status, took) = client.ended();
        assert!(status.success(), "{input:?} {output:?}: {status}");
        assert!(took < Duration::from_millis(500), "{input:?} {output:?}: {took:?}");
    }
}

#[test]
fn the_process_is_gone_within_two_seconds_of_the_end_of_input() {
    let mut client = Client::start(Kind::Pipe, Kind::Pipe);
    client.handshake();
    client.send(SLEEP);
    client.input = None;
    let (status, took) = client.ended();
    assert!(status.success() && took < Duration::from_secs(2), "{status} {took:?}");
    let mut rest = String::new();
    client.output.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("slept"), "{rest}");
}

#[test]
fn a_client_that_closes_only_its_reading_end_is_noticed_at_the_next_answer() {
    for (input, output) in KINDS {
        let mut client = Client::start(input, output);
        client.handshake();
        client.output = BufReader::new(Box::new(std::io::empty()));
        client.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let (status, took) = client.ended();
        assert!(status.success() && took < Duration::from_secs(2), "{input:?} {output:?}: {status} {took:?}");
    }
}

#[test]
fn a_file_as_input_is_served_to_its_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    std::fs::write(&path, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\nnonsense").unwrap();
    let output = Command::new(toy_server())
        .args(["--db", "toys"])
        .stdin(std::fs::File::open(path).unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    assert!(lines.next().unwrap().contains("-32700"), "{text}");
    assert_eq!((lines.next(), output.status.success()), (None, true));
}

#[test]
fn a_signal_ends_the_process_at_once_and_cancels_what_runs() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut client = Client::start(Kind::Pipe, Kind::Pipe);
        client.handshake();
        client.send(SLEEP);
        client.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
        assert_eq!(client.answer()["id"], 2);
        kill_process(Pid::from_child(&client.child), signal).unwrap();
        let (status, took) = client.ended();
        assert!(status.success() && took < Duration::from_millis(500), "{signal:?}: {status} {took:?}");
    }
}

#[test]
fn the_start_is_said_on_stderr_with_the_absolute_path() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(toy_server());
    command.current_dir(folder.path()).args(["--db", "a\nb"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = format!("{}/a\\nb on stdin", folder.path().canonicalize().unwrap().display());
    assert!(stderr.contains(&expected), "no {expected} in {stderr}");
    assert_eq!(
        (stderr.lines().count(), output.stdout.len(), output.status.code()),
        (1, 0, Some(0)),
        "{stderr}"
    );
}

#[test]
fn commands_for_people_say_how_it_went_by_their_exit_status() {
    let zeros = "0".repeat(64);
    let ones = "1".repeat(64);
    // arguments, status, stdout, what stderr ends with
    let rows: &[(&[&str], i32, &str, &str)] = &[
        (&["call", "echo", "text=hi", "--db", "x"], 0, "hi\n", ""),
        (&["call", "echo", "{\"text\": \"a\\nb\\n\"}", "--db", "x"], 0, "a\nb\n", ""),
        (&["call", "fail", "--db", "x"], 1, "no such table: nope\n", ""),
        (&["call", "eco", "--db", "x"], 2, "", "indelible: unknown tool `eco`; did you mean `echo`?\n"),
        (&["call", "echo", "--db", "broken"], 1, "", "indelible: the toy box is broken\n"),
        (&["--db", "broken"], 1, "", "indelible: the toy box is broken\n"),
        (&["verify", "--db", "x"], 0, "intact: true\n", ""),
        (&["verify", "--db", "x", "--expect-head", &zeros], 0, "intact: true\n", ""),
        (&["verify", "--db", "x", "--expect-head", &ones], 3, "intact: false\n", ""),
        (&["verify", "--db", "broken"], 4, "", "indelible: no toys in here\n"),
        (&["worker"], 1, "", "indelible: toys do not work\n"),
    ];
    for (arguments, status, stdout, stderr) in rows {
        let output = Command::new(toy_server()).args(*arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let seen = (output.status.code(), text(output.stdout), text(output.stderr));
        assert_eq!(seen.0, Some(*status), "{arguments:?}: {}", seen.2);
        assert_eq!(seen.1, *stdout, "{arguments:?}");
        assert!(seen.2.ends_with(stderr), "{arguments:?}: {}", seen.2);
    }
}
