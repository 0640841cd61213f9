//! SQLite: the only place that opens a connection, and everything that runs a statement.
//!
//! # Layout
//!
//! Agent SQL, in a worker process, behind the authorizer, limits and a watch:
//! - [`guard`], `heard`, `judged`, [`watch`], [`objects`], [`fault`], [`params`]: the connection and how a
//!   statement gets onto it
//! - [`query`], [`write`], [`view`], [`search_rows`], `search_beside`,
//!   `change`, [`introspect`], [`sample`], [`plan`],
//!   [`mod@compile`]: what runs on it
//! - `names`, [`next_step`]: the stored names behind those that agents give; what to do next, behind SQLite's words
//! - [`weigh`]: what a statement would do, for people
//! - [`hiding`], `shown`: what else is hidden where a policy file hides a column; what lists then show
//! - [`group`]: changes of several calls in one transaction; [`batch`]: statements of one call in one
//! - `aftermath`: what a structural statement left behind
//! - [`program`], `registers`: what a compiled program tells beyond the authorizer
//! - [`overwrites`], [`seen`], [`toll`], [`text_command`]: what a change overwrites, what it takes, what an
//!   insert into a full-text table asks for
//!
//! The server's own connections, fixed SQL only:
//! - [`open`], [`diagnose`], [`identity`]: opening, what is wrong with a file that cannot be served, and whether the
//!   file is still the one that was opened
//! - [`tables`], [`bootstrap`], `judge`, [`stored_sql`]: the server's tables: what they must look like, how they come
//!   to be, what a file has in their place
//! - [`ledger`], `ledger_commit`, `ledger_guard`, `ledger_rows`: the writing connection: events, checkpoints, audit rows
//! - [`trim`]: old audit rows moved into files
//! - [`readout`], `chain_view`, `rows`: the reading connection: one consistent view of events and checkpoints,
//!   whatever their rows hold
//! - `one_moment`: two connections with one view of the file
//! - `trusted`: a resume over the writing connection that goes on from what was verified before
//! - snapshots: [`mod@copy`] makes them, [`restore`] lists them and brings one back
//! - [`checkup`], [`header`]: what a file holds and whether it is sound, for `indelible doctor`
//!
//! For the demo: [`music_store`] writes its file, [`outsider`] tampers with a copy of it.
//!
//! Nothing here speaks MCP, knows tools by name, or holds a queue, or a thread that outlives a call.

mod aftermath;
pub mod batch;
pub mod bootstrap;
mod chain_view;
mod change;
pub mod checkup;
pub mod compile;
pub mod copy;
pub mod diagnose;
pub mod fault;
pub mod group;
pub mod guard;
pub mod header;
mod heard;
pub mod hiding;
pub mod identity;
pub mod introspect;
mod judge;
mod judged;
pub mod ledger;
mod ledger_commit;
mod ledger_guard;
mod ledger_rows;
pub mod music_store;
mod names;
pub mod next_step;
pub mod objects;
mod one_moment;
pub mod open;
pub mod outsider;
pub mod overwrites;
pub mod params;
pub mod plan;
pub mod program;
pub mod query;
pub mod readout;
mod registers;
pub mod restore;
mod rows;
pub mod sample;
mod schema_size;
mod search_beside;
pub mod search_rows;
pub mod seen;
mod shown;
pub mod state_file;
pub mod stored_sql;
pub mod tables;
pub mod text_command;
pub mod toll;
pub mod trim;
mod trusted;
pub mod view;
pub mod watch;
pub mod weigh;
pub mod write;
