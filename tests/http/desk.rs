//! A server over HTTP on a database of its own, and requests to it.

use super::support::{Bench, Client, Server, wait_until};
use http::{HeaderMap, Method, Request};
use serde_json::{Value, json};
use std::time::Duration;
use ureq::Agent;

/// The token of every server here, unless it has none.
pub(crate) const TOKEN: &str = "a-token-for-tests";

/// A running server.
pub(crate) struct Desk {
    pub(crate) bench: Bench,
    pub(crate) server: Client,
    pub(crate) caller: Caller,
}

/// Whoever sends requests to it; may do so from several threads.
pub(crate) struct Caller {
    /// `127.0.0.1:PORT`.
    pub(crate) authority: String,
    /// `/mcp`.
    path: String,
    agent: Agent,
}

impl std::ops::Deref for Desk {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Desk {
    /// The notes, with the token.
    #[track_caller]
    pub(crate) fn open(flags: &[&str]) -> Self {
        Self::on(Bench::notes(), flags, Some(TOKEN))
    }

    /// This database, with this token or with --no-auth.
    #[track_caller]
    pub(crate) fn on(bench: Bench, flags: &[&str], token: Option<&str>) -> Self {
        let server = Server::on(&bench).flags(&["--http", "127.0.0.1:0"]).flags(flags);
        let server = match token {
            Some(token) => server.env("INDELIBLE_HTTP_TOKEN", token),
            None => server.flags(&["--no-auth"]),
        };
        let server = server.spawn();
        let caller = Caller::of(&server);
        Self { bench, server, caller }
    }

    /// Waits for so many log rows; tool and success of each.
    #[track_caller]
    pub(crate) fn log(&self, rows: usize) -> Vec<String> {
        let read = || self.bench.query("SELECT tool || ' ' || ok FROM query_log ORDER BY id");
        let logged = || read().lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(wait_until(|| logged().len() >= rows), "{:?}", logged());
        logged()
    }
}

impl Caller {
    /// Of a server that is starting: where it is stands on its stderr.
    #[track_caller]
    pub(crate) fn of(server: &Client) -> Self {
        let url = regex::Regex::new("serving .* on http://([^/ ]+)(/[^ ,]+), profile").unwrap();
        let found = || url.captures(&server.stderr()).map(|found| (found[1].to_owned(), found[2].to_owned()));
        assert!(wait_until(|| found().is_some()), "no address on stderr: {}", server.stderr());
        let (authority, path) = found().unwrap();
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = config.timeout_global(Some(Duration::from_secs(60))).build().into();
        Self { authority, path, agent }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }

    /// A POST to /mcp as clients make it.
    pub(crate) fn post(&self) -> http::request::Builder {
        Request::builder()
            .method(Method::POST)
            .uri(self.url())
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
    }

    #[track_caller]
    pub(crate) fn run(&self, request: Request<String>) -> Heard {
        let mut response = self.agent.run(request).unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        Heard { status: response.status().as_u16(), headers: response.headers().clone(), text }
    }

    /// A request that keeps its stream.
    #[track_caller]
    pub(crate) fn stream(&self, request: Request<String>) -> http::Response<ureq::Body> {
        self.agent.run(request).unwrap()
    }

    /// Sends a message as a client of 2025-11-25 after its handshake.
    #[track_caller]
    pub(crate) fn send(&self, message: &Value) -> Heard {
        let request = self.post().header("mcp-protocol-version", "2025-11-25");
        self.run(request.body(message.to_string()).unwrap())
    }

    /// A request of 2025-11-25; its answer.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        let heard = self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        assert_eq!(heard.status, 200, "{method}: {heard:?}");
        heard.answer()
    }

    /// A request of 2026-07-28; what came back.
    #[track_caller]
    pub(crate) fn send_modern(&self, method: &str, params: Value) -> Heard {
        self.run(self.modern(method, params))
    }

    pub(crate) fn modern(&self, method: &str, params: Value) -> Request<String> {
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let mut request =
            self.post().header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        request.body(modern(method, params).to_string()).unwrap()
    }

    /// A request of 2026-07-28; its answer.
    #[track_caller]
    pub(crate) fn ask_modern(&self, method: &str, params: Value) -> Value {
        let heard = self.send_modern(method, params);
        assert_eq!(heard.status, 200, "{method}: {heard:?}");
        heard.answer()
    }

    /// A tool's text, in 2025-11-25.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> String {
        text(&self.ask("tools/call", call(tool, arguments)))
    }

    /// A tool's text, in 2026-07-28.
    #[track_caller]
    pub(crate) fn call_modern(&self, tool: &str, arguments: Value) -> String {
        text(&self.ask_modern("tools/call", call(tool, arguments)))
    }
}

impl Heard {
    /// The one message that came, as JSON or as the last of a stream.
    #[track_caller]
    pub(crate) fn answer(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no message: {self:?}"))
    }

    /// Every message that came.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        match self.header("content-type") {
            "application/json" => vec![json(&self.text)],
            "text/event-stream" => {
                self.text.lines().filter_map(|line| line.strip_prefix("data:")).map(json).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// The parameters of a tool call.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// A request of 2026-07-28, of a client that can show forms.
pub(crate) fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// `initialize` in this revision.
pub(crate) fn shake(revision: &str) -> Value {
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

#[track_caller]
fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}")).to_owned()
}
