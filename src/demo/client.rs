//! A small MCP client: a server process, and requests to it over its stdin and stdout.
//!
//! It speaks the plain JSON-RPC lines that any client speaks and shares no code with the server, so that what
//! the demo shows is what a client gets. Every wait is bounded.

use crate::error::StartError;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The revision asked for.
const PROTOCOL: &str = "2025-11-25";
/// How long one answer may take: no call of the demo needs a second, but a machine may be busy.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long the server may take to end once its input has ended; it promises two seconds.
const END_TIME: Duration = Duration::from_secs(5);
/// Lines of the server's stderr that are kept.
const KEPT_LINES: usize = 20;

/// A running server and the way to it. Dropping it ends the server.
#[derive(Debug)]
pub struct Client {
    child: Child,
    /// None once its end was announced.
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    stderr: Stderr,
    last_id: u64,
    /// The server's name and version.
    greeting: String,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text for the model.
    pub text: String,
    /// Whether the tool calls it an error.
    pub is_error: bool,
}

impl Client {
    /// Starts `program` with these arguments and shakes hands with it; settings of the environment
    /// (`INDELIBLE_...`) do not reach it.
    ///
    /// # Errors
    /// Exit status 1: it cannot be started, does not answer, or refuses.
    pub fn start(program: &Path, arguments: &[OsString]) -> Result<Self, StartError> {
        let failed = |error: &dyn std::fmt::Display| {
            StartError::failure(format!("cannot start the server `{}`: {error}", program.display()))
        };
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("INDELIBLE_") {
                command.env_remove(name);
            }
        }
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(&"its pipes are missing"));
        };
        let (sender, answers) = channel();
        thread::spawn(move || pass_lines(stdout, &sender));
        let stderr = Stderr::follow(stderr);
        let mut client =
            Self { child, stdin: Some(stdin), answers, stderr, last_id: 0, greeting: String::new() };
        client.greeting = client.initialize()?;
        Ok(client)
    }

    /// The server's name and version, as `indelible 0.1.0`.
    #[must_use]
    pub fn greeting(&self) -> &str {
        &self.greeting
    }

    /// `initialize`, then the notification that it is done.
    fn initialize(&mut self) -> Result<String, StartError> {
        let about = json!({"name": "indelible-demo", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about});
        let result = self.request("initialize", &hello)?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let said = |name: &str| result.get("serverInfo").and_then(|info| info.get(name)?.as_str());
        Ok(format!("{} {}", said("name").unwrap_or("?"), said("version").unwrap_or("?")))
    }

    /// The names of the tools.
    ///
    /// # Errors
    /// Exit status 1: the server does not answer, or refuses.
    pub fn tools(&mut self) -> Result<Vec<String>, StartError> {
        let result = self.request("tools/list", &json!({}))?;
        let tools = result.get("tools").and_then(Value::as_array).into_iter().flatten();
        Ok(tools.filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect())
    }

    /// Calls a tool. An error that the tool answers with is an answer.
    ///
    /// # Errors
    /// Exit status 1: the server does not answer, or refuses.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, StartError> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let content = result.get("content").and_then(Value::as_array).into_iter().flatten();
        let texts: Vec<&str> = content.filter_map(|part| part.get("text")?.as_str()).collect();
        let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
        Ok(Answer { text: texts.join("\n"), is_error })
    }

    /// The text of a resource.
    ///
    /// # Errors
    /// Exit status 1: the server does not answer, or refuses.
    pub fn read(&mut self, uri: &str) -> Result<String, StartError> {
        let result = self.request("resources/read", &json!({"uri": uri}))?;
        let contents = result.get("contents").and_then(Value::as_array).into_iter().flatten();
        let texts: Vec<&str> = contents.filter_map(|part| part.get("text")?.as_str()).collect();
        Ok(texts.join("\n"))
    }

    /// Ends the server as a client does, by closing its input; returns the last lines it wrote to stderr.
    ///
    /// # Errors
    /// Exit status 1: it did not end by itself, or not well.
    pub fn stop(mut self) -> Result<Vec<String>, StartError> {
        self.stdin = None;
        let deadline = Instant::now() + END_TIME;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(self.stderr.lines()),
                Ok(Some(status)) => return Err(self.failure(&format!("ended badly ({status})"))),
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                Err(error) => return Err(self.failure(&format!("cannot be waited for: {error}"))),
            }
        }
        Err(self.failure("did not end when its input ended"))
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, StartError> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let deadline = Instant::now() + ANSWER_TIME;
        loop {
            let line = match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone(method)),
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = ANSWER_TIME.as_secs();
                    return Err(self.failure(&format!("did not answer `{method}` within {seconds} s")));
                }
            };
            let mut message: Value = serde_json::from_str(&line)
                .map_err(|error| self.failure(&format!("wrote a line that is no JSON ({error})")))?;
            // Anything else is a notification.
            if message.get("id").and_then(Value::as_u64) == Some(id) {
                return match message.get_mut("result").map(Value::take) {
                    Some(result) => Ok(result),
                    None => Err(self.failure(&format!("refused `{method}`: {message}"))),
                };
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), StartError> {
        let line = format!("{message}\n");
        let sent =
            self.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.gone(message.get("method").and_then(Value::as_str).unwrap_or_default())),
        }
    }

    /// The server has ended by itself.
    fn gone(&mut self, method: &str) -> StartError {
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut status = self.child.try_wait();
        while matches!(status, Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
            status = self.child.try_wait();
        }
        let how = match status {
            Ok(Some(status)) => status.to_string(),
            _ => "closed its output".to_owned(),
        };
        self.failure(&format!("ended at `{method}` ({how})"))
    }

    fn failure(&self, what: &str) -> StartError {
        let said = self.stderr.lines();
        let said = if said.is_empty() { "nothing".to_owned() } else { said.join(" / ") };
        StartError::failure(format!("the demo's server {what}; it said: {said}"))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // Its workers end with it: their input closes.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn pass_lines(stdout: ChildStdout, sender: &Sender<String>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if sender.send(line).is_err() {
            return;
        }
    }
}

/// The last lines the server wrote to stderr.
#[derive(Debug)]
struct Stderr {
    kept: Arc<Mutex<Vec<String>>>,
    /// Disconnected when the stream has ended.
    ended: Receiver<()>,
}

impl Stderr {
    fn follow(stderr: ChildStderr) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = channel::<()>();
        let keeping = Arc::clone(&kept);
        thread::spawn(move || {
            let _end = end;
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = keeping.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == KEPT_LINES {
                    kept.remove(0);
                }
                kept.push(line);
            }
        });
        Self { kept, ended }
    }

    /// What there is once the stream has ended, or after a moment: a worker may hold it a little longer.
    fn lines(&self) -> Vec<String> {
        let _ = self.ended.recv_timeout(Duration::from_millis(500));
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
