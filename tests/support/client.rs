//! A client of the real program: lines of JSON-RPC over pipes or socket pairs, each wait with an end.
//!
//! It uses no protocol library, so that it agrees with the server by the wire alone.

use super::bench::Bench;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than anything takes on a loaded machine; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server about to be started.
pub(crate) struct Server {
    command: Command,
    database: Option<PathBuf>,
    sockets: bool,
}

impl Server {
    /// On a bench's database.
    pub(crate) fn on(bench: &Bench) -> Self {
        Self::at(bench.path())
    }

    /// On the database at this path.
    pub(crate) fn at(path: &Path) -> Self {
        let mut server = Self::bare();
        server.command.arg("--db").arg(path);
        server.database = Some(path.to_owned());
        server
    }

    /// Without arguments, and without the settings of whoever runs the tests.
    pub(crate) fn bare() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_indelible"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("INDELIBLE_") {
                command.env_remove(name);
            }
        }
        Self { command, database: None, sockets: false }
    }

    pub(crate) fn flags<S: AsRef<OsStr>>(mut self, flags: &[S]) -> Self {
        self.command.args(flags);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Under another user and group; only the superuser can.
    pub(crate) fn under_user(mut self, id: u32) -> Self {
        use std::os::unix::process::CommandExt;
        self.command.uid(id).gid(id);
        self
    }

    /// With its command changed otherwise.
    pub(crate) fn changed(mut self, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut self.command);
        self
    }

    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// stdin and stdout as socket pairs, as Node's clients have them.
    pub(crate) fn over_sockets(mut self) -> Self {
        self.sockets = true;
        self
    }

    /// Starts it and shakes hands.
    #[track_caller]
    pub(crate) fn start(self) -> Client {
        self.start_with(json!({}))
    }

    /// The same as a client with these capabilities.
    #[track_caller]
    pub(crate) fn start_with(self, capabilities: Value) -> Client {
        let mut client = self.spawn();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "0"}});
        let answer = client.request("initialize", params);
        client.initialized = answer["result"].clone();
        assert!(client.initialized.is_object(), "the handshake failed: {answer} {}", client.stderr());
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// Starts it and says nothing.
    #[track_caller]
    pub(crate) fn spawn(mut self) -> Client {
        let (near_input, far_input) = self.stream();
        let (near_output, far_output) = self.stream();
        self.command.stdin(far_input).stdout(far_output).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        // The command keeps the far ends open until it is dropped.
        drop(self.command);
        let input: Box<dyn Write + Send> = match near_input {
            Some(near) => Box::new(near),
            None => Box::new(child.stdin.take().unwrap()),
        };
        let output: Box<dyn Read + Send> = match near_output {
            Some(near) => Box::new(near),
            None => Box::new(child.stdout.take().unwrap()),
        };
        let stderr = Arc::new(Mutex::new(String::new()));
        gather(child.stderr.take().unwrap(), Arc::clone(&stderr));
        Client {
            child,
            database: self.database,
            calls: 0,
            input: Some(input),
            lines: read_lines(output),
            early: HashMap::new(),
            notices: Vec::new(),
            next_id: 0,
            stderr,
            initialized: Value::Null,
        }
    }

    fn stream(&self) -> (Option<UnixStream>, Stdio) {
        if !self.sockets {
            return (None, Stdio::piped());
        }
        let (near, far) = UnixStream::pair().unwrap();
        (Some(near), Stdio::from(OwnedFd::from(far)))
    }

    /// Starts it where it should end by itself; its status and the one line it says on stderr.
    #[track_caller]
    pub(crate) fn refusal(mut self) -> (i32, String) {
        let output = self.command.stdin(Stdio::null()).output().unwrap();
        let line = error_line(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "stdout is for the protocol alone");
        (output.status.code().unwrap(), line)
    }

    /// Runs a command for people to its end: status, stdout, stderr.
    #[track_caller]
    pub(crate) fn run(self) -> (i32, String, String) {
        self.run_with("")
    }

    /// The same with this on stdin.
    #[track_caller]
    pub(crate) fn run_with(mut self, stdin: &str) -> (i32, String, String) {
        let command = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read may be gone already.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

/// The one line on stderr of a program that could not start.
#[track_caller]
fn error_line(stderr: &[u8]) -> String {
    let text = String::from_utf8(stderr.to_vec()).unwrap();
    assert_eq!(text.lines().count(), 1, "one line on stderr: {text}");
    let line = text.trim_end();
    line.strip_prefix("indelible: ").unwrap_or_else(|| panic!("the program names itself: {line}")).to_owned()
}

/// A running server and the client's end of it. Dropping it kills the server.
pub(crate) struct Client {
    child: Child,
    database: Option<PathBuf>,
    calls: i64,
    input: Option<Box<dyn Write + Send>>,
    lines: Receiver<String>,
    early: HashMap<i64, Value>,
    notices: Vec<Value>,
    next_id: i64,
    stderr: Arc<Mutex<String>>,
    /// The result of the handshake.
    pub(crate) initialized: Value,
}

/// How a server ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// From the end of its input to its own.
    pub(crate) took: Duration,
    /// Everything that it still said.
    pub(crate) said: Vec<Value>,
}

impl Client {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the server has said on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Sends bytes as they are, the beginning of a line say.
    #[track_caller]
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a raw line.
    #[track_caller]
    pub(crate) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).unwrap();
    }

    #[track_caller]
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    #[track_caller]
    pub(crate) fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Waits for the message with this id; what comes before is kept for whoever asks for it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, id: i64) -> Value {
        if let Some(answer) = self.early.remove(&id) {
            return answer;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => parse(&line),
                Err(error) => panic!("no answer to request {id}: {error}; stderr: {}", self.stderr()),
            };
            match answered(&message) {
                Some(found) if found == id => return message,
                Some(found) => drop(self.early.insert(found, message)),
                None => self.notices.push(message),
            }
        }
    }

    /// Waits for a request or notification of the server's.
    #[track_caller]
    pub(crate) fn wait_for_method(&mut self, method: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.notices.iter().position(|message| message["method"] == method) {
                return self.notices.remove(at);
            }
            let message = match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => parse(&line),
                Err(error) => panic!("no {method}: {error}; stderr: {}", self.stderr()),
            };
            match answered(&message) {
                Some(found) => drop(self.early.insert(found, message)),
                None => self.notices.push(message),
            }
        }
    }

    /// Whether an answer with this id comes within `wait`.
    #[track_caller]
    pub(crate) fn answers_within(&mut self, id: i64, wait: Duration) -> bool {
        let deadline = Instant::now() + wait;
        while !self.early.contains_key(&id) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let message = parse(&line);
                    match answered(&message) {
                        Some(found) => drop(self.early.insert(found, message)),
                        None => self.notices.push(message),
                    }
                }
                Err(RecvTimeoutError::Timeout) => return false,
                Err(error) => panic!("the server ended: {error}; stderr: {}", self.stderr()),
            }
        }
        true
    }

    /// Whether a notification of this method has come or comes within `wait`; it is taken out.
    #[track_caller]
    pub(crate) fn is_told(&mut self, method: &str, wait: Duration) -> Option<Value> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(at) = self.notices.iter().position(|notice| notice["method"] == method) {
                return Some(self.notices.remove(at));
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let message = parse(&line);
                    match message["id"].as_i64() {
                        Some(found) => drop(self.early.insert(found, message)),
                        None => self.notices.push(message),
                    }
                }
                Err(RecvTimeoutError::Timeout) => return None,
                Err(error) => panic!("the server ended: {error}; stderr: {}", self.stderr()),
            }
        }
    }

    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.wait_for(id)
    }

    /// Sends a tool call and returns its id.
    #[track_caller]
    pub(crate) fn send_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.calls += 1;
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let mut asked = format!("{tool} {arguments}");
        if asked.len() > 300 {
            asked = format!("{}...", asked.chars().take(300).collect::<String>());
        }
        let id = self.send_call(tool, arguments);
        self.answer_to(id, asked)
    }

    /// Waits for a tool call's answer.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: i64) -> Answer {
        self.answer_to(id, format!("call {id}"))
    }

    #[track_caller]
    fn answer_to(&mut self, id: i64, asked: String) -> Answer {
        let message = self.wait_for(id);
        Answer::of(message, asked)
    }

    /// Reads; what reads the log does so once the rows of all calls before are in it.
    #[track_caller]
    pub(crate) fn read(&mut self, sql: &str) -> Answer {
        if ["query_log", "query_errors"].iter().any(|name| sql.contains(name)) {
            self.wait_for_the_log();
        }
        self.call("read_query", json!({"query": sql}))
    }

    /// The server itself waits for a tenth of a second at most, which a loaded machine may exceed.
    fn wait_for_the_log(&self) {
        let Some(path) = &self.database else { return };
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        let rows = "SELECT count(*) FROM query_log WHERE session = (SELECT session FROM query_log ORDER BY id DESC LIMIT 1)";
        let there = || {
            connection.query_row(rows, [], |row| row.get::<_, i64>(0)).is_ok_and(|rows| rows >= self.calls)
        };
        super::wait_until(there);
    }

    #[track_caller]
    pub(crate) fn write(&mut self, sql: &str) -> Answer {
        self.call("write_query", json!({"query": sql}))
    }

    #[track_caller]
    pub(crate) fn destroy(&mut self, sql: &str) -> Answer {
        self.call("destructive_query", json!({"query": sql, "reason": "a test"}))
    }

    /// The server still answers.
    #[track_caller]
    pub(crate) fn is_alive(&mut self) {
        self.read("SELECT 1 AS alive").is("alive\n1\n# 1 rows");
    }

    /// Closes the server's input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the server's input and waits for its end.
    #[track_caller]
    pub(crate) fn close(mut self) -> Ended {
        let closed = Instant::now();
        self.input = None;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(closed.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = closed.elapsed();
        let mut said = std::mem::take(&mut self.notices);
        said.extend(self.early.drain().map(|(_, message)| message));
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            said.push(parse(&line));
        }
        Ended { status, took, said }
    }

    /// The same, and all that the server said on stderr.
    #[track_caller]
    pub(crate) fn close_with_stderr(self) -> (String, Ended) {
        let stderr = Arc::clone(&self.stderr);
        let ended = self.close();
        // The last lines may still be on their way through the thread that gathers them.
        std::thread::sleep(Duration::from_millis(100));
        let said = stderr.lock().unwrap().clone();
        (said, ended)
    }

    /// Kills the server without a word.
    pub(crate) fn kill(mut self) {
        let workers = super::children_of(self.pid());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // They end with it, and not at the same instant: one may still be on its way out of a system call.
        super::wait_until(|| !workers.iter().any(|worker| super::is_alive(*worker)));
    }

    /// The same; the whole answers that it had given and nobody has asked for, each with its request's id.
    pub(crate) fn kill_and_read(mut self) -> Vec<(i64, Answer)> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut said: HashMap<i64, Value> = std::mem::take(&mut self.early);
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            // The last line may have been cut off.
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if let Some(id) = answered(&message) {
                said.insert(id, message);
            }
        }
        said.into_iter().map(|(id, message)| (id, Answer::of(message, format!("call {id}")))).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a tool call came to.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    asked: String,
    /// The text an agent reads, or the protocol error's message.
    pub(crate) text: String,
    /// A tool error, or a protocol error.
    pub(crate) failed: bool,
    /// The error's code: `REFUSED`, or the number of a protocol error.
    pub(crate) code: String,
    /// The result as data; null where there is none.
    pub(crate) structured: Value,
}

impl Answer {
    pub(crate) fn of(message: Value, asked: String) -> Self {
        if let Some(error) = message.get("error") {
            let text = error["message"].as_str().unwrap().to_owned();
            return Self {
                asked,
                text,
                failed: true,
                code: error["code"].to_string(),
                structured: Value::Null,
            };
        }
        let result = &message["result"];
        let content = result["content"].as_array().unwrap();
        assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{message}");
        Self {
            asked,
            text: content[0]["text"].as_str().unwrap().to_owned(),
            failed: result["isError"].as_bool().unwrap_or(false),
            code: result["_meta"]["indelible/code"].as_str().unwrap_or_default().to_owned(),
            structured: result["structuredContent"].clone(),
        }
    }

    #[track_caller]
    pub(crate) fn ok(&self) -> &Self {
        assert!(!self.failed, "{}\nfailed: {}", self.asked, self.text);
        self
    }

    /// A tool error whose text has all of these.
    #[track_caller]
    pub(crate) fn fails(&self, words: &[&str]) -> &Self {
        assert!(self.failed, "{}\nshould have failed, gave: {}", self.asked, self.text);
        for word in words {
            self.has(word);
        }
        self
    }

    /// A tool error of this kind.
    #[track_caller]
    pub(crate) fn fails_as(&self, code: &str, words: &[&str]) -> &Self {
        self.fails(words);
        assert_eq!(self.code, code, "{}\n{}", self.asked, self.text);
        self
    }

    /// Success with exactly this text.
    #[track_caller]
    pub(crate) fn is(&self, text: &str) -> &Self {
        self.ok();
        assert_eq!(self.text, text, "{}", self.asked);
        self
    }

    #[track_caller]
    pub(crate) fn starts(&self, text: &str) -> &Self {
        assert!(self.text.starts_with(text), "{}\ndoes not start with {text:?}: {}", self.asked, self.text);
        self
    }

    #[track_caller]
    pub(crate) fn ends(&self, text: &str) -> &Self {
        assert!(self.text.ends_with(text), "{}\ndoes not end with {text:?}: {}", self.asked, self.text);
        self
    }

    #[track_caller]
    pub(crate) fn has(&self, text: &str) -> &Self {
        assert!(self.text.contains(text), "{}\nlacks {text:?}: {}", self.asked, self.text);
        self
    }

    #[track_caller]
    pub(crate) fn lacks(&self, text: &str) -> &Self {
        assert!(!self.text.contains(text), "{}\nhas {text:?}: {}", self.asked, self.text);
        self
    }

    /// What matches this regular expression's one group.
    #[track_caller]
    pub(crate) fn found(&self, pattern: &str) -> String {
        let pattern = regex::Regex::new(pattern).unwrap();
        match pattern.captures(&self.text) {
            Some(found) => found[found.len() - 1].to_owned(),
            None => panic!("{}\ndoes not match {pattern}: {}", self.asked, self.text),
        }
    }

    /// The text as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.ok().text).unwrap()
    }

    /// The path that a destructive call or a snapshot names.
    #[track_caller]
    pub(crate) fn snapshot(&self) -> PathBuf {
        PathBuf::from(OsString::from(self.found(r"snapshot:? (/.*?\.db)(?: \(|\n|$)")))
    }
}

/// The request that a message answers; the server's own requests have ids of their own.
fn answered(message: &Value) -> Option<i64> {
    if message.get("method").is_some() { None } else { message["id"].as_i64() }
}

#[track_caller]
fn parse(line: &str) -> Value {
    let message: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("stdout carried {line:?}: {error}"));
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    message
}

fn read_lines(output: Box<dyn Read + Send>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn gather(mut stream: impl Read + Send + 'static, into: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut chunk = [0_u8; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    });
}
