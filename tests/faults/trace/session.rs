//! A client of a server under trace: calls one after the other or several at once, and the recording at the end.
//!
//! It is apart from the other tests' client because only the tracing thread may wait for the process.

#![expect(unsafe_code, reason = "ptrace(2) has no safe form")]

use super::{FileId, Sabotage, Step, Tracer, raw, read_all, traced};
use crate::support::Answer;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) root: PathBuf,
    /// The folder before; folders have no content.
    pub(crate) before: Vec<(PathBuf, Option<Vec<u8>>, FileId)>,
    pub(crate) steps: Vec<Step>,
}

/// A running server under trace. It is killed when this is dropped.
pub(crate) struct Session {
    pid: i32,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    early: HashMap<i64, Value>,
    next_id: i64,
    stderr: Arc<Mutex<String>>,
    steps: Arc<Mutex<Vec<Step>>>,
    root: PathBuf,
    before: Vec<(PathBuf, Option<Vec<u8>>, FileId)>,
    tracer: Option<JoinHandle<i32>>,
}

impl Session {
    /// Starts a server on the database at `path`, recording what happens in the folder it lies in, and shakes hands.
    pub(crate) fn start(path: &Path, flags: &[&str], sabotage: Option<Arc<Sabotage>>) -> Self {
        let mut session = Self::spawn(path, flags, sabotage);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
        let id = session.send("initialize", params);
        let answer = session.wait_for(id).unwrap_or_else(|| panic!("no handshake: {}", session.stderr()));
        assert!(answer["result"].is_object(), "{answer}");
        session.send_line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    /// The same without a word to it.
    pub(crate) fn spawn(path: &Path, flags: &[&str], sabotage: Option<Arc<Sabotage>>) -> Self {
        let root = path.parent().unwrap().canonicalize().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_indelible"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("INDELIBLE_") {
                command.env_remove(name);
            }
        }
        command.arg("--db").arg(root.join(path.file_name().unwrap())).args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut files = HashMap::new();
        let mut names = HashMap::new();
        let mut count = 0;
        let before: Vec<_> = read_all(&root)
            .into_iter()
            .map(|(path, content)| {
                count += 1;
                if content.is_some() {
                    let found = path.metadata().unwrap();
                    files.insert((found.dev(), found.ino()), count);
                    names.insert(path.clone(), count);
                }
                (path, content, count)
            })
            .collect();
        let steps = Arc::new(Mutex::new(Vec::new()));
        let (started, start) = channel();
        let (traced_root, recorded) = (root.clone(), Arc::clone(&steps));
        let tracer = std::thread::spawn(move || {
            #[expect(clippy::zombie_processes, reason = "the tracer waits for it, by waitpid(2)")]
            let mut child = traced(&mut command).unwrap();
            let pid = raw(&child);
            let mut status = 0;
            // SAFETY: a child of this thread, stopped at its first instruction.
            unsafe {
                assert_eq!(libc::waitpid(pid, &mut status, libc::__WALL), pid);
                let options = libc::PTRACE_O_TRACESYSGOOD
                    | libc::PTRACE_O_TRACECLONE
                    | libc::PTRACE_O_TRACEFORK
                    | libc::PTRACE_O_TRACEVFORK
                    | libc::PTRACE_O_TRACEEXEC
                    | libc::PTRACE_O_EXITKILL;
                assert_eq!(libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0_usize, options as usize), 0);
            }
            let tracer = Tracer {
                root: traced_root,
                server: pid,
                stdout: std::fs::read_link(format!("/proc/{pid}/fd/1")).ok(),
                said: Vec::new(),
                began: Instant::now(),
                steps: recorded,
                sabotage,
                calls: HashMap::new(),
                known: HashSet::from([pid]),
                files,
                names,
                count,
            };
            started.send((pid, child.stdin.take(), child.stdout.take(), child.stderr.take())).unwrap();
            // SAFETY: stopped and ours.
            unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0_usize, 0_usize) };
            tracer.run()
        });
        let (pid, input, output, errors) = start.recv().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output.unwrap()).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let stderr = Arc::new(Mutex::new(String::new()));
        let gathered = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let (mut errors, mut chunk) = (errors.unwrap(), [0; 4096]);
            while let Ok(count @ 1..) = errors.read(&mut chunk) {
                gathered.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
            }
        });
        let (early, tracer) = (HashMap::new(), Some(tracer));
        Self { pid, input, lines, early, next_id: 0, stderr, steps, root, before, tracer }
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    fn send_line(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        // A server that has ended reads nothing; whoever waits for an answer sees that.
        let _ = input.write_all(format!("{message}\n").as_bytes());
    }

    fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The message with this id; none if the server has ended.
    fn wait_for(&mut self, id: i64) -> Option<Value> {
        let deadline = Instant::now() + PATIENCE;
        while !self.early.contains_key(&id) {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
            let message: Value = serde_json::from_str(&line).unwrap();
            if let Some(found) = message["id"].as_i64() {
                self.early.insert(found, message);
            }
        }
        self.early.remove(&id)
    }

    pub(crate) fn send_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The answer to a call; none if the server has ended.
    pub(crate) fn answer(&mut self, id: i64) -> Option<Answer> {
        self.wait_for(id).map(|message| Answer::of(message, format!("call {id}")))
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let id = self.send_call(tool, arguments);
        self.answer(id).unwrap_or_else(|| panic!("the server has ended: {}", self.stderr()))
    }

    /// Closes the server's input, waits for the end of all its processes; the status as of waitpid(2).
    pub(crate) fn end(mut self) -> (Recording, i32, String) {
        self.input = None;
        let status = self.tracer.take().unwrap().join().unwrap();
        let steps = std::mem::take(&mut *self.steps.lock().unwrap());
        let (root, before) = (self.root.clone(), std::mem::take(&mut self.before));
        (Recording { root, before, steps }, status, self.stderr())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(tracer) = self.tracer.take() {
            // SAFETY: a child that was not waited for to its end.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            let _ = tracer.join();
        }
    }
}
