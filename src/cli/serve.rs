//! `indelible --db PATH`: serves one client on stdin and stdout until it goes or a signal comes.
//!
//! It knows no message; `server/` does.

use super::{Program, runtime};
use crate::config::Settings;
use crate::error::{EXIT_OK, StartError};
use crate::logging::START;
use crate::server::{self, Ending, Service};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How often files are looked at. A change is taken up at the second look that finds it the same.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) fn serve<P: Program>(program: &P, settings: &Settings) -> Result<u8, StartError> {
    runtime::run(async {
        let service = program.open(settings).await?;
        let reloads = !settings.tools.is_empty() || settings.policy.is_some();
        let signals = runtime::signals(reloads)?;
        let place = settings.primitives.as_ref().map_or(&settings.db, |place| &place.data);
        let (db, profile) = (place.display(), &settings.profile);
        let read_only = if settings.read_only { ", read-only" } else { "" };
        tracing::info!(target: START, "serving {db} on stdin and stdout, profile {profile}{read_only}");
        if std::io::stdin().is_terminal() {
            tracing::info!(
                target: START,
                "this waits for an MCP client; ctrl-c ends it, `indelible demo` shows it at work"
            );
        }
        let watching = reloads.then(|| tokio::spawn(keep_up(Arc::clone(&service), signals.reload)));
        let ending = server::serve_stdio(service, signals.stop).await;
        if let Some(watching) = watching {
            watching.abort();
        }
        match ending? {
            Ending::Closed => tracing::info!("the client closed its end"),
            Ending::Stopped => tracing::info!("stopped by a signal"),
        }
        Ok(EXIT_OK)
    })
}

/// Has the files of tools and policy looked at now and then, and read at once when a signal asks for it.
async fn keep_up(service: Arc<impl Service>, asked: Arc<Notify>) {
    loop {
        tokio::select! {
            () = asked.notified() => service.reload(true).await,
            () = tokio::time::sleep(LOOK_EVERY) => service.reload(false).await,
        }
    }
}
