//! A client of the toy service over an in-process pair of streams, and the messages it sends.
//!
//! It judges no answer; a silent server fails the test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a helper that fails fails its test"
)]

use crate::toy::Toy;
use indelible::server::{Ending, serve};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The client's end of a connection to a [`Toy`].
pub(crate) struct Client {
    pub(crate) toy: Arc<Toy>,
    pub(crate) stop: CancellationToken,
    pub(crate) server: JoinHandle<Ending>,
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    pub(crate) fn start(toy: Toy) -> Self {
        let toy = Arc::new(toy);
        let stop = CancellationToken::new();
        let (near, far) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(far);
        let serving = serve(Arc::clone(&toy), read, write, stop.clone());
        let server = tokio::spawn(async { serving.await.unwrap() });
        let (read, write) = tokio::io::split(near);
        Self { toy, stop, server, input: Some(write), output: BufReader::new(read).lines() }
    }

    pub(crate) async fn with_handshake(revision: &str) -> Self {
        let mut client = Self::start(Toy::default());
        let answer = client.ask(initialize(revision)).await;
        assert_eq!(answer["result"]["protocolVersion"], json!(revision));
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    pub(crate) async fn line(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    /// The next answer; a silent server fails the test.
    pub(crate) async fn answer(&mut self) -> Value {
        serde_json::from_str(&self.answer_text().await.expect("an answer, not the end")).unwrap()
    }

    pub(crate) async fn answer_text(&mut self) -> Option<String> {
        let line = tokio::time::timeout(Duration::from_secs(10), self.output.next_line());
        line.await.expect("an answer within ten seconds").unwrap()
    }

    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.send(message).await;
        self.answer().await
    }

    /// Asks a ping and expects its answer to be the next one: nothing else was answered before.
    pub(crate) async fn expect_quiet(&mut self) {
        let answer = self.ask(ping("quiet")).await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "quiet", "result": {}}));
    }

    /// Closes the input and returns what was still answered, and how long the server took to end.
    pub(crate) async fn end(mut self) -> (Vec<Value>, Duration, Ending) {
        self.input.as_mut().unwrap().shutdown().await.unwrap();
        let closed = Instant::now();
        let mut answers = Vec::new();
        let reading = async {
            while let Some(line) = self.output.next_line().await.unwrap() {
                answers.push(serde_json::from_str(&line).unwrap());
            }
        };
        let ending = tokio::select! {
            ending = &mut self.server => ending.unwrap(),
            () = reading => self.server.await.unwrap(),
        };
        let took = closed.elapsed();
        drop(self.input);
        while let Ok(Ok(Some(line))) =
            tokio::time::timeout(Duration::from_millis(50), self.output.next_line()).await
        {
            answers.push(serde_json::from_str(&line).unwrap());
        }
        (answers, took, ending)
    }
}

pub(crate) fn initialize(revision: &str) -> Value {
    let params =
        json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

pub(crate) fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params})
}

pub(crate) fn modern(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}

/// An error's code and id in one word, for tables.
pub(crate) fn code_and_id(answer: &Value) -> String {
    format!("{} {}", answer["error"]["code"], answer["id"])
}
