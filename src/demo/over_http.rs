//! A small MCP client over HTTP: a server process, and requests to it.
//!
//! Like `client`, it speaks what any client speaks and shares no code with the server. Every wait is bounded.

use super::client::Answer;
use crate::error::StartError;
use crate::outbound::trusting_the_system;
use reqwest::Client;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The revision spoken.
const PROTOCOL: &str = "2025-11-25";
/// How long the start and each answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server. Dropping it ends the server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(super) base: String,
    client: Client,
    runtime: Runtime,
}

/// This program with these arguments, out of reach of the settings of the environment.
pub(super) fn program(arguments: &[OsString]) -> Result<Command, StartError> {
    let path = std::env::current_exe()
        .map_err(|error| StartError::failure(format!("cannot find this program to start it: {error}")))?;
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("INDELIBLE_"))
    {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null());
    Ok(command)
}

impl Server {
    /// Starts a server of groups on a data folder, at a free port.
    pub(super) fn start(data: &Path) -> Result<Self, StartError> {
        let failed = |what: &dyn std::fmt::Display| {
            StartError::failure(format!("the demo's server cannot be started: {what}"))
        };
        let arguments = ["--profile", "primitives", "--http", "127.0.0.1:0", "--data"].map(OsString::from);
        let mut command = program(&[&arguments[..], &[data.into()]].concat())?;
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(|error| failed(&error))?;
        let stderr = child.stderr.take().ok_or_else(|| failed(&"it has no stderr"))?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // Whoever listened may be gone; the server's lines are read to their end nevertheless.
                let _ = sender.send(line);
            }
        });
        let mut said = String::new();
        let base = loop {
            let Ok(line) = lines.recv_timeout(PATIENCE) else { break None };
            let url = line.split_once(" on http://").and_then(|(_, rest)| rest.split('/').next());
            if let Some(authority) = url {
                break Some(format!("http://{authority}"));
            }
            said = line;
        };
        let Some(base) = base else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(&said));
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
        let client = Client::builder()
            .tls_backend_preconfigured(trusting_the_system().map_err(|error| failed(&error))?)
            .no_proxy()
            .timeout(PATIENCE)
            .build()
            .map_err(|error| failed(&error))?;
        Ok(Self { child, base, client, runtime })
    }

    /// Asks a group with a key: the status, and the answer's message where it is one.
    pub(super) fn ask(
        &self,
        group: &str,
        key: &str,
        method: &str,
        params: &Value,
    ) -> Result<(u16, Value), StartError> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self
            .client
            .post(format!("{}/mcp/{group}", self.base))
            .bearer_auth(key)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", PROTOCOL)
            .body(message.to_string());
        let (status, text) = self.sent(request)?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// Calls a tool; its answer, and the same as data.
    pub(super) fn call(
        &self,
        group: &str,
        key: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<(Answer, Value), StartError> {
        let (_, message) =
            self.ask(group, key, "tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let result = message.get("result").ok_or_else(|| {
            StartError::failure(format!("the demo's server does not answer `{tool}`: {message}"))
        })?;
        let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
        let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
        let data = result.get("structuredContent").cloned().unwrap_or_default();
        Ok((Answer { text: text.to_owned(), is_error }, data))
    }

    /// What a plain client without a key gets at a URL.
    pub(super) fn get(&self, url: &str) -> Result<String, StartError> {
        self.sent(self.client.get(url)).map(|(_, text)| text)
    }

    fn sent(&self, request: reqwest::RequestBuilder) -> Result<(u16, String), StartError> {
        let sent = async {
            let response = request.send().await?;
            let status = response.status().as_u16();
            Ok((status, response.text().await?))
        };
        self.runtime.block_on(sent).map_err(|error: reqwest::Error| {
            StartError::failure(format!("the demo's server does not answer: {}", error.without_url()))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Asked first, so that what its workers keep in temporary folders goes with it.
        #[cfg(unix)]
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let deadline = std::time::Instant::now() + Duration::from_secs(5);
            while std::time::Instant::now() < deadline {
                if matches!(self.child.try_wait(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
