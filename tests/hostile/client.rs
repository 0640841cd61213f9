//! A server on a database of its own, and calls to it. It knows no tool.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Server {
    folder: tempfile::TempDir,
    path: PathBuf,
    flags: Vec<String>,
    process: Process,
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    /// A server over a database made by `setup`, started with `flags`.
    pub(crate) fn over(setup: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        rusqlite::Connection::open(&path).unwrap().execute_batch(setup).unwrap();
        Self::at(folder, path, flags)
    }

    pub(crate) fn at(folder: tempfile::TempDir, path: PathBuf, flags: &[&str]) -> Self {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let process = Process::start(&path, &flags);
        Self { folder, path, flags, process }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Ends the server and starts another on the same file.
    #[track_caller]
    pub(crate) fn restart(&mut self) {
        self.process.end();
        self.process = Process::start(&self.path, &self.flags);
    }

    /// Runs SQL on a connection that is nobody's but ours.
    pub(crate) fn outside(&self, sql: &str) {
        let connection = rusqlite::Connection::open(&self.path).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// One integer, asked for from outside.
    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        rusqlite::Connection::open(&self.path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// A call's text, or its error.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        outcome(&self.process.request("tools/call", &json!({"name": tool, "arguments": arguments})))
    }

    /// Calls that are sent before the first answer is awaited, and what each came to.
    #[track_caller]
    pub(crate) fn calls(&mut self, calls: Vec<(&str, Value)>) -> Vec<Result<String, String>> {
        self.process
            .requests(
                calls
                    .into_iter()
                    .map(|(tool, arguments)| ("tools/call", json!({"name": tool, "arguments": arguments})))
                    .collect(),
            )
            .iter()
            .map(outcome)
            .collect()
    }

    /// Any request's answer.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.process.request(method, &params)
    }

    pub(crate) fn read(&mut self, query: &str) -> Result<String, String> {
        self.call("read_query", json!({"query": query}))
    }

    pub(crate) fn write(&mut self, query: &str) -> Result<String, String> {
        self.call("write_query", json!({"query": query}))
    }

    pub(crate) fn destroy(&mut self, query: &str) -> Result<String, String> {
        self.call("destructive_query", json!({"query": query, "reason": "a test"}))
    }

    /// Fails unless the statement is refused with these words.
    #[track_caller]
    pub(crate) fn refuses(&mut self, tool: &str, query: &str, words: &str) {
        let result = match tool {
            "destructive_query" => self.destroy(query),
            tool => self.call(tool, json!({"query": query})),
        };
        match result {
            Err(error) if error.contains(words) => {}
            other => panic!("{tool} {query}: {other:?}"),
        }
    }
}

#[track_caller]
fn outcome(message: &Value) -> Result<String, String> {
    let result = &message["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned();
    if result["isError"] == json!(true) { Err(text) } else { Ok(text) }
}

impl Process {
    fn start(path: &Path, flags: &[String]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_indelible"))
            .arg("--db")
            .arg(path)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, input, output, next: 0 };
        process.request(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}),
        );
        process.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        process
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        // Whole: written piece by piece, a text full of escapes would take a system call for each.
        let line = format!("{message}\n");
        input.write_all(line.as_bytes()).and_then(|()| input.flush()).unwrap();
    }

    #[track_caller]
    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    /// Sends all from a thread of its own, as a client does, and gives the answers in the order of the requests.
    fn requests(&mut self, requests: Vec<(&str, Value)>) -> Vec<Value> {
        let first = self.next + 1;
        self.next += requests.len() as u64;
        let lines: Vec<String> = requests
            .iter()
            .zip(first..)
            .map(|((method, params), id)| {
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
            })
            .collect();
        let mut input = self.input.take().unwrap();
        let sender = std::thread::spawn(move || {
            for line in lines {
                writeln!(input, "{line}").and_then(|()| input.flush()).unwrap();
            }
            input
        });
        let mut answers: Vec<Option<Value>> = vec![None; requests.len()];
        while answers.iter().any(Option::is_none) {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if let Some(id) = message["id"].as_u64() {
                answers[usize::try_from(id - first).unwrap()] = Some(message);
            }
        }
        self.input = Some(sender.join().unwrap());
        answers.into_iter().flatten().collect()
    }

    fn end(&mut self) {
        self.input = None;
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
