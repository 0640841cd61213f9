//! `indelible --db PATH`: serves one client on stdin and stdout until it goes or a signal comes.

use super::{Program, runtime};
use crate::config::Settings;
use crate::error::{EXIT_OK, StartError};
use crate::logging::START;
use crate::server::{self, Ending, stdio};
use std::io::IsTerminal;

pub(super) fn serve<P: Program>(program: &P, settings: &Settings) -> Result<u8, StartError> {
    runtime::run(async {
        let service = program.open(settings).await?;
        let stop = runtime::stop_at_signals()?;
        let (db, profile) = (settings.db.display(), &settings.profile);
        let read_only = if settings.read_only { ", read-only" } else { "" };
        tracing::info!(target: START, "serving {db} on stdin and stdout, profile {profile}{read_only}");
        if std::io::stdin().is_terminal() {
            tracing::info!(
                target: START,
                "this waits for an MCP client; ctrl-c ends it, `indelible demo` shows it at work"
            );
        }
        match server::serve(service, stdio::input(), stdio::output(), stop).await? {
            Ending::Closed => tracing::info!("the client closed its end"),
            Ending::Stopped => tracing::info!("stopped by a signal"),
        }
        Ok(EXIT_OK)
    })
}
