//! SQLite: the only place that opens a connection, and everything that runs a statement.
//!
//! Two kinds of connection live here. [`guard::Guarded`] runs what agents write, in a worker process,
//! behind the authorizer, limits and a watch; the server's own connections (`open`) run fixed SQL over
//! the server's tables. Nothing here speaks MCP or knows tools by name.

pub mod fault;
pub mod guard;
pub mod introspect;
pub mod objects;
pub mod overwrites;
pub mod params;
pub mod query;
pub mod search_rows;
pub mod text_command;
pub mod view;
pub mod watch;
pub mod write;
