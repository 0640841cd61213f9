//! `indelible --db PATH`: serves one client on stdin and stdout until it goes or a signal comes; with `--http`, many
//! clients over HTTP until a signal comes.
//!
//! It knows no message; `server/` does.

use super::Program;
use super::runtime::{self, Signals};
use crate::config::{HttpSettings, Settings};
use crate::error::{EXIT_OK, StartError};
use crate::logging::START;
use crate::sandbox;
use crate::server::http::{Listening, PATH};
use crate::server::{self, Ending, Service};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How often files are looked at. A change is taken up at the second look that finds it the same.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Serves on stdin and stdout.
pub(super) fn on_stdio<P: Program>(program: &P, settings: &Settings) -> Result<u8, StartError> {
    runtime::run(async {
        let service = program.open(settings).await?;
        let (signals, watching) = keep_up(settings, &service)?;
        tracing::info!(target: START, "serving {} on stdin and stdout, {}", place(settings), how(settings));
        if std::io::stdin().is_terminal() {
            tracing::info!(
                target: START,
                "this waits for an MCP client; ctrl-c ends it, `indelible demo` shows it at work"
            );
        }
        sandbox::give_back_code();
        let ending = server::serve_stdio(service, signals.stop).await;
        drop(watching);
        ended(ending?)
    })
}

/// Serves over HTTP until a signal comes.
pub(super) fn over_http<P: Program>(
    program: &P,
    settings: &Settings,
    http: &HttpSettings,
) -> Result<u8, StartError> {
    runtime::run(async {
        // Before the database is touched: whoever has the port may be serving it.
        let listening = server::http::listen(http).await?;
        if let Some(place) = &settings.primitives {
            let groups = program.open_groups(settings, http).await?;
            let signals = runtime::signals(false)?;
            let group = place.group.as_deref().unwrap_or("GROUP");
            say_where(settings, http, &listening, &format!("{PATH}/{group}"));
            sandbox::give_back_code();
            return ended(server::http::serve_groups(groups, listening, http, signals.stop).await?);
        }
        let service = program.open(settings).await?;
        let (signals, watching) = keep_up(settings, &service)?;
        say_where(settings, http, &listening, PATH);
        sandbox::give_back_code();
        let ending = server::http::serve(service, listening, http, signals.stop).await;
        drop(watching);
        ended(ending?)
    })
}

/// Says what is served where, and what that address asks for.
fn say_where(settings: &Settings, http: &HttpSettings, listening: &Listening, path: &str) {
    let url = format!("http://{}{path}", listening.address);
    tracing::info!(target: START, "serving {} on {url}, {}", place(settings), how(settings));
    if !listening.address.ip().to_canonical().is_loopback() {
        tracing::warn!(
            "what clients send and are answered travels unencrypted beyond this machine; put a proxy with TLS in front"
        );
        if http.hosts.is_empty() {
            tracing::warn!(
                "clients can address it by the names of this machine alone; see --http-allow-host"
            );
        }
    }
}

/// What is served.
fn place(settings: &Settings) -> std::path::Display<'_> {
    settings.primitives.as_ref().map_or(&settings.db, |place| &place.data).display()
}

/// The profile, and what is special about it.
fn how(settings: &Settings) -> String {
    format!("profile {}{}", settings.profile, if settings.read_only { ", read-only" } else { "" })
}

fn ended(ending: Ending) -> Result<u8, StartError> {
    match ending {
        Ending::Closed => tracing::info!("the client closed its end"),
        Ending::Stopped => tracing::info!("stopped by a signal"),
    }
    Ok(EXIT_OK)
}

/// What signals ask for; and, where tools or the policy come from files, the task that looks at them, until it is
/// dropped.
fn keep_up<S: Service>(
    settings: &Settings,
    service: &Arc<S>,
) -> Result<(Signals, Option<Watching>), StartError> {
    let reloads = !settings.tools.is_empty() || settings.policy.is_some();
    let signals = runtime::signals(reloads)?;
    let asked = Arc::clone(&signals.reload);
    let watching = reloads.then(|| Watching(tokio::spawn(look(Arc::clone(service), asked))));
    Ok((signals, watching))
}

/// A task that ends with this.
struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Has the files of tools and policy looked at now and then, and read at once when a signal asks for it.
async fn look(service: Arc<impl Service>, asked: Arc<Notify>) {
    loop {
        tokio::select! {
            () = asked.notified() => service.reload(true).await,
            () = tokio::time::sleep(LOOK_EVERY) => service.reload(false).await,
        }
    }
}
