//! Indelible: one SQLite file as an AI agent's primary tool, over the Model Context Protocol.
//!
//! # Layout
//!
//! Imports go down this list only (a test reads the sources and holds it to that):
//!
//! - [`error`], [`os_path`], [`platform`], [`sandbox`], [`shares`], [`spec`]: errors and exit statuses; paths in messages; what systems do each in their own way; what a process takes
//!   from itself; places for what goes on at once; the YAML model, its checks and diagnostics
//! - `codegen`: spec to text, for build.rs and tests
//! - [`config`], [`generated`], [`policy`], [`chain`], [`clients`], [`render`], [`results`], [`search`], [`surface`],
//!   [`overlay`], [`audit`], [`confirm`], [`outcome`], [`outbound`], [`state`]: settings resolved once; what the build made of the YAML files;
//!   verdicts over what a statement does; the memory's hashes; settings of MCP clients; CSV; patterns and
//!   snippets; the active tools, files laid over them and their arguments; a call's log row, its question to a
//!   person, its surroundings and outcome; requests to the outside; what primitives can do, as traits
//! - [`sqlite`]: the only place that opens a connection
//! - [`worker`], [`embedded`], [`embedding`]: the processes that agent SQL runs in; primitives in SQLite files; vectors of
//!   texts by a model that the user brings
//! - [`store`], [`handlers`], [`policy_file`], [`app`], [`primitives`], [`oauth`]: the server's own tables; one file per family of
//!   tools; the user's policy file; what ties them; a group of primitives and its tools; tokens of an OAuth issuer
//! - [`server`]: the only place that names rmcp
//! - [`logging`], [`cli`], [`demo`], [`doctor`], [`bundle`], [`program`]: what goes to stderr; subcommands
//!
//! It is a library for its own binary and tests, not an API with a promise of stability.

pub mod app;
pub mod audit;
pub mod bundle;
pub mod chain;
pub mod cli;
pub mod clients;
pub mod config;
pub mod confirm;
pub mod demo;
pub mod doctor;
pub mod embedded;
pub mod embedding;
pub mod error;
pub mod generated;
pub mod handlers;
pub mod logging;
pub mod oauth;
pub mod os_path;
pub mod outbound;
pub mod outcome;
pub mod overlay;
pub mod platform;
pub mod policy;
pub mod policy_file;
pub mod primitives;
pub mod program;
pub mod render;
pub mod results;
pub mod sandbox;
pub mod search;
pub mod server;
pub mod shares;
pub mod spec;
pub mod sqlite;
pub mod state;
pub mod store;
pub mod surface;
pub mod worker;
