//! A server over HTTP on a data folder of its own, and the commands of people beside it.

use super::desk::{Caller, Heard, TOKEN};
use super::support::{Client, Server};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A data folder, and the server on it.
pub(crate) struct Hall {
    pub(crate) server: Client,
    pub(crate) visitor: Visitor,
    folder: TempDir,
}

/// Whoever sends requests to its groups; may do so from several threads.
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
}

impl std::ops::Deref for Hall {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.visitor
    }
}

impl Hall {
    /// With the operator's token; every group there is, and those that are made.
    #[track_caller]
    pub(crate) fn open(groups: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        groups.iter().for_each(|group| drop(people(folder.path(), &["groups", "create", group])));
        Self::on(folder, &[], &[("INDELIBLE_HTTP_TOKEN", TOKEN)])
    }

    /// On a folder that there is, with these flags and variables.
    #[track_caller]
    pub(crate) fn on(folder: TempDir, flags: &[&str], env: &[(&str, &str)]) -> Self {
        let server = serving(folder.path(), flags);
        let server = env.iter().fold(server, |server, (name, value)| server.env(name, value)).spawn();
        let visitor = Visitor { caller: Caller::of(&server) };
        Self { server, visitor, folder }
    }

    /// With a log in a file, a group `team` with a storage in it, and a key of that.
    #[track_caller]
    pub(crate) fn logged() -> (Self, String, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        people(folder.path(), &["groups", "create", "team"]);
        people(folder.path(), &["primitives", "create", "storage", "files", "--group", "team"]);
        let key = people(folder.path(), &["keys", "create", "--group", "team"]);
        let log = folder.path().join("audit.jsonl");
        let hall = Self::on(folder, &["--audit-log", log.to_str().unwrap()], &[]);
        (hall, key, log)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A new key for a group.
    #[track_caller]
    pub(crate) fn key(&self, group: &str, flags: &[&str]) -> String {
        self.people(&[&["keys", "create", "--group", group], flags].concat())
    }

    /// What a command of people prints.
    #[track_caller]
    pub(crate) fn people(&self, words: &[&str]) -> String {
        people(self.folder.path(), words)
    }
}

impl Visitor {
    /// A request of 2025-11-25 to this path, with this credential.
    #[track_caller]
    pub(crate) fn send(&self, path: &str, credential: Option<&str>, method: &str, params: Value) -> Heard {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self.caller.post().uri(format!("http://{}{path}", self.caller.authority));
        let mut request =
            request.header("mcp-protocol-version", "2025-11-25").body(message.to_string()).unwrap();
        request.headers_mut().remove("authorization");
        if let Some(credential) = credential {
            request.headers_mut().insert("authorization", format!("Bearer {credential}").parse().unwrap());
        }
        self.caller.run(request)
    }

    /// The status of a ping.
    #[track_caller]
    pub(crate) fn status(&self, path: &str, credential: Option<&str>) -> u16 {
        self.send(path, credential, "ping", json!({})).status
    }

    /// A tool's result in a group.
    #[track_caller]
    pub(crate) fn call(&self, path: &str, credential: &str, tool: &str, arguments: Value) -> Value {
        let heard = self.send(path, Some(credential), "tools/call", super::call(tool, arguments));
        assert_eq!(heard.status, 200, "{tool}: {heard:?}");
        heard.answer()["result"].clone()
    }

    /// A tool's result as data.
    #[track_caller]
    pub(crate) fn ok(&self, path: &str, credential: &str, tool: &str, arguments: Value) -> Value {
        let result = self.call(path, credential, tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// The names in tools/list.
    #[track_caller]
    pub(crate) fn tools(&self, path: &str, credential: &str) -> Vec<String> {
        let heard = self.send(path, Some(credential), "tools/list", json!({}));
        assert_eq!(heard.status, 200, "{path}: {heard:?}");
        let tools = heard.answer()["result"]["tools"].clone();
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The code and the words of a tool's error.
    #[track_caller]
    pub(crate) fn refused(
        &self,
        path: &str,
        credential: &str,
        tool: &str,
        arguments: Value,
    ) -> (String, String) {
        let result = self.call(path, credential, tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let (code, words) = text.strip_prefix('[').unwrap().split_once("] ").unwrap();
        (code.to_owned(), words.to_owned())
    }
}

/// A server on the data folder in here.
pub(crate) fn serving(folder: &Path, flags: &[&str]) -> Server {
    let data = folder.join("data");
    let place = ["--profile", "primitives", "--data", data.to_str().unwrap(), "--http", "127.0.0.1:0"];
    Server::bare().flags(&place).flags(flags)
}

/// Runs a command of people on the data folder in here; what it prints.
#[track_caller]
pub(crate) fn people(folder: &Path, words: &[&str]) -> String {
    let (status, out, said) = person(folder, words);
    assert_eq!(status, 0, "{words:?}: {said}");
    out.trim_end().to_owned()
}

/// The same; its status, what it prints and what it says.
pub(crate) fn person(folder: &Path, words: &[&str]) -> (i32, String, String) {
    Server::bare().flags(words).flags(&["--data", folder.join("data").to_str().unwrap()]).run()
}
