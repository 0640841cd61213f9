//! Progress reports of one call, on their way to the client.
//!
//! It does not wait on anybody's behalf: reports that find no room are dropped.

use crate::outcome::ProgressReporter;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Reports that may wait to be sent.
const WAITING_REPORTS: usize = 16;

/// Sends the reports of one call, and stops before its answer.
pub(super) struct Progress {
    done: CancellationToken,
    task: JoinHandle<()>,
}

impl Progress {
    /// Starts to send reports under the client's token; the reporter is for the call.
    pub(super) fn start(peer: Peer<RoleServer>, token: ProgressToken) -> (Self, ProgressReporter) {
        let (reports, queue) = mpsc::channel(WAITING_REPORTS);
        let reporter: ProgressReporter = Arc::new(move |progress, total, message| {
            let _ = reports.try_send((progress, total, message));
        });
        let done = CancellationToken::new();
        let task = tokio::spawn(send(peer, token, queue, done.clone()));
        (Self { done, task }, reporter)
    }

    /// Sends what is queued and stops: nothing may follow the call's answer.
    pub(super) async fn finish(self) {
        self.done.cancel();
        let _ = self.task.await;
    }
}

async fn send(
    peer: Peer<RoleServer>,
    token: ProgressToken,
    mut queue: mpsc::Receiver<(f64, Option<f64>, String)>,
    done: CancellationToken,
) {
    loop {
        let report = tokio::select! {
            biased;
            report = queue.recv() => report,
            () = done.cancelled() => None,
        };
        let Some((progress, total, message)) = report else { return };
        let mut param = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
        param.total = total;
        if peer.notify_progress(param).await.is_err() {
            return;
        }
    }
}
