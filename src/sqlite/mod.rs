//! The only place that opens a SQLite connection, and all fixed SQL of the server's own.
//!
//! # Layout
//!
//! - [`open`]: the server's own connections, and what is wrong with a file that cannot be served
//! - [`tables`] and [`bootstrap`]: the server's tables: what they must look like, how they come to be
//! - [`ledger`]: the writing connection: events, checkpoints, audit rows
//! - [`readout`]: the reading connection: one consistent view of events and checkpoints
//! - snapshots: [`mod@copy`]
//!
//! It decides nothing about agents' statements beyond what the guard enforces, and holds no queue and
//! no thread; those are the floors above.

pub mod bootstrap;
pub mod copy;
pub mod diagnose;
mod judge;
pub mod ledger;
pub mod open;
pub mod readout;
mod rows;
pub mod stored_sql;
pub mod tables;
