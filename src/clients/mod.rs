//! The settings that MCP clients want: what to write, in whose file, and how it gets in there without losing
//! what stands in it.
//!
//! # Layout
//!
//! - this file: which clients there are, as a table, and their snippets
//! - `json`, `toml`: edits that keep comments, order and layout
//! - `hooks`: the hooks of Claude Code
//! - `place`: backup and replacement of a file
//!
//! What is known of a client's format is from its public documentation; docs/CLIENTS.md says from where and how
//! certain it is. Nothing here reads the environment or opens a database.

pub mod hooks;
mod json;
pub mod place;
mod toml;

use crate::error::StartError;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// How a client starts the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The server's name in the client, `indelible`.
    pub name: String,
    /// The program, absolute.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// A file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and commas at the end are let pass and kept.
    Json,
    /// TOML.
    Toml,
}

/// Where a client's file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Below the current folder.
    Project(&'static str),
    /// Below the home folder.
    Home(&'static str),
    /// Below the folder for settings, which on macOS is another one.
    Settings { elsewhere: &'static str, on_macos: &'static str },
    /// Below CODEX_HOME, or else `~/.codex`.
    Codex(&'static str),
}

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its name in sentences.
    pub title: &'static str,
    /// Its file's format.
    pub format: Format,
    /// The key that holds the servers.
    pub key: &'static str,
    /// Whether an entry says `"type": "stdio"`.
    says_stdio: bool,
    place: Place,
    /// What begins a variable in its file; such a path would not arrive as it is.
    pub variable: Option<&'static str>,
}

/// Every client, in the order of the help.
pub const CLIENTS: &[Client] = &[
    Client {
        id: "claude-code",
        title: "Claude Code",
        format: Format::Json,
        key: "mcpServers",
        says_stdio: true,
        place: Place::Project(".mcp.json"),
        variable: Some("${"),
    },
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        format: Format::Json,
        key: "mcpServers",
        says_stdio: false,
        place: Place::Settings {
            elsewhere: "Claude/claude_desktop_config.json",
            on_macos: "Library/Application Support/Claude/claude_desktop_config.json",
        },
        variable: None,
    },
    Client {
        id: "cursor",
        title: "Cursor",
        format: Format::Json,
        key: "mcpServers",
        says_stdio: true,
        place: Place::Project(".cursor/mcp.json"),
        variable: Some("${"),
    },
    Client {
        id: "vscode",
        title: "VS Code",
        format: Format::Json,
        key: "servers",
        says_stdio: true,
        place: Place::Project(".vscode/mcp.json"),
        variable: Some("${"),
    },
    Client {
        id: "codex",
        title: "Codex",
        format: Format::Toml,
        key: "mcp_servers",
        says_stdio: false,
        place: Place::Codex("config.toml"),
        variable: None,
    },
    Client {
        id: "gemini-cli",
        title: "Gemini CLI",
        format: Format::Json,
        key: "mcpServers",
        says_stdio: false,
        place: Place::Home(".gemini/settings.json"),
        variable: Some("$"),
    },
    Client {
        id: "zed",
        title: "Zed",
        format: Format::Json,
        key: "context_servers",
        says_stdio: false,
        place: Place::Settings { elsewhere: "zed/settings.json", on_macos: ".config/zed/settings.json" },
        variable: None,
    },
];

/// What a client's place is measured from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The current folder.
    pub current: PathBuf,
    /// HOME.
    pub home: Option<PathBuf>,
    /// XDG_CONFIG_HOME.
    pub config_home: Option<PathBuf>,
    /// CODEX_HOME.
    pub codex_home: Option<PathBuf>,
    /// Whether this is macOS.
    pub macos: bool,
}

/// The client of this name.
#[must_use]
pub fn client(id: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id == id)
}

impl Client {
    /// The file that the client's documentation names.
    ///
    /// # Errors
    /// No home folder; exit status 2.
    pub fn file(&self, folders: &Folders) -> Result<PathBuf, StartError> {
        let home = || {
            folders.home.clone().ok_or_else(|| {
                StartError::usage(format!("{}'s file needs HOME to be set; name it with --file", self.title))
            })
        };
        Ok(match self.place {
            Place::Project(file) => folders.current.join(file),
            Place::Home(file) => home()?.join(file),
            Place::Settings { on_macos, .. } if folders.macos => home()?.join(on_macos),
            Place::Settings { elsewhere, .. } => match &folders.config_home {
                Some(folder) => folder.join(elsewhere),
                None => home()?.join(".config").join(elsewhere),
            },
            Place::Codex(file) => match &folders.codex_home {
                Some(folder) => folder.join(file),
                None => home()?.join(".codex").join(file),
            },
        })
    }

    /// The whole file for a client that has none yet, with a newline at its end.
    ///
    /// # Errors
    /// As [`Client::merged`].
    pub fn snippet(&self, launch: &Launch) -> Result<String, String> {
        self.merged("", launch)
    }

    /// The file's text with the server's entry in it. Everything else stays as it is, keys of the entry that
    /// are not ours included.
    ///
    /// # Errors
    /// The text is no file of this format, or something else stands in the entry's place; in words.
    pub fn merged(&self, text: &str, launch: &Launch) -> Result<String, String> {
        match self.format {
            Format::Json => json::with_entry(text, self.key, &launch.name, &self.entry(launch)),
            Format::Toml => toml::with_entry(text, self.key, launch),
        }
    }

    fn entry(&self, launch: &Launch) -> Map<String, Value> {
        let mut entry = Map::new();
        if self.says_stdio {
            entry.insert("type".to_owned(), json!("stdio"));
        }
        entry.insert("command".to_owned(), json!(launch.program));
        entry.insert("args".to_owned(), json!(launch.arguments));
        entry
    }

    /// The part of the launch that the client would take for a variable.
    #[must_use]
    pub fn misread<'a>(&self, launch: &'a Launch) -> Option<&'a str> {
        let variable = self.variable?;
        let words = std::iter::once(&launch.program).chain(&launch.arguments);
        words.map(String::as_str).find(|word| word.contains(variable))
    }
}

impl Launch {
    /// The command line that adds the server to Claude Code for one person and folder.
    ///
    /// # Errors
    /// A word that no shell takes (it holds a NUL).
    pub fn claude_mcp_add(&self) -> Result<String, StartError> {
        let words = ["claude", "mcp", "add", &self.name, "--", &self.program];
        quoted(words.into_iter().chain(self.arguments.iter().map(String::as_str)))
    }
}

/// Words as one command line of a POSIX shell.
///
/// # Errors
/// A word that holds a NUL; exit status 2.
pub fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<String, StartError> {
    shlex::try_join(words)
        .map_err(|error| StartError::usage(format!("cannot be written as a command line: {error}")))
}

/// A path as a word of a POSIX shell, for advice.
#[must_use]
pub fn quoted_path(path: &Path) -> String {
    let shown = path.to_string_lossy();
    shlex::try_quote(&shown).map_or_else(|_| shown.clone().into_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests;
