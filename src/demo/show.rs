//! What a demo is made of: a table of scenes, each with a line of narration. One table a profile.
//!
//! The tables hold no code; `mod.rs` plays them.

use serde_json::Value;

/// A whole demo.
#[derive(Debug)]
pub struct Show {
    /// The profile the server is started with.
    pub profile: &'static str,
    /// Whether the music store is made in WAL mode (a server that writes) or in rollback mode.
    pub wal: bool,
    /// What a person is about to see.
    pub opening: &'static str,
    /// The scenes, in parts.
    pub parts: &'static [Part],
    /// The command that gives the server to one's own client.
    pub connect: &'static str,
    /// The command that shows the demo again and keeps its database.
    pub again: &'static str,
    /// What is said about a database that was kept, in front of the commands to look into it.
    pub kept: &'static str,
    /// Commands to look into a database that was kept; `{db}` is its path.
    pub look: &'static [&'static str],
}

/// Scenes under one headline.
#[derive(Debug)]
pub struct Part {
    /// The headline.
    pub headline: &'static str,
    /// The scenes, in order.
    pub scenes: &'static [Scene],
    /// What is to be remembered of it; empty for nothing.
    pub moral: &'static str,
}

/// One step.
#[derive(Debug)]
pub struct Scene {
    /// What the step is about, for a person.
    pub says: &'static str,
    /// What is done.
    pub act: Act,
}

/// What is done in a step.
#[derive(Debug)]
pub enum Act {
    /// The server is started, and the agent's program asks which tools there are.
    Start,
    /// The agent calls a tool.
    Call {
        /// The tool's name.
        tool: &'static str,
        /// Its arguments, an object.
        arguments: fn() -> Value,
        /// How it must end. Anything else ends the demo with an error: its narration would be untrue.
        ends: Ends,
        /// Lines of the answer to show at most.
        lines: usize,
    },
    /// The agent's program reads a resource. Text without `contains` ends the demo with an error.
    Read {
        /// Its URI.
        uri: &'static str,
        /// What its text must contain.
        contains: &'static str,
        /// Lines of it to show at most.
        lines: usize,
    },
    /// The SHA-256 of the database file is shown. From the second time on, another one than before ends the
    /// demo with an error.
    Fingerprint,
    /// The server is stopped, and a new one started on the same file for a new session.
    Restart,
    /// The server is stopped, the statements are run on a copy of the file without it, and a new server is
    /// started on the copy.
    Tamper(&'static [&'static str]),
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// With a result that contains this.
    Well(&'static str),
    /// With a tool error that contains this.
    Refused(&'static str),
}
