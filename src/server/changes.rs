//! Telling clients that the list of resources or of tools changed.
//!
//! A client of a handshake revision is told once it has said that it is ready. From 2026-07-28 on a client is
//! told only what it asked for with subscriptions/listen, under its subscription's id. It does not know what
//! changed: changes close together are told of once.

use super::handler::Wire;
use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::{Peer, SubscriptionContext};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// Subscriptions of one client at once. Each is a request under way, and reading pauses at some hundreds.
const MAX_SUBSCRIPTIONS: usize = 16;

/// The same of all clients over HTTP. Each keeps a connection.
const MAX_SUBSCRIPTIONS_OVER_HTTP: usize = 128;

/// The changes, and who is told of them.
pub(super) struct Changes {
    resources: Counter,
    tools: Counter,
    /// Whether the client's revision has a handshake and it was made.
    shaken: AtomicBool,
    /// Whether the client is told by itself.
    told: AtomicBool,
    subscriptions: Semaphore,
    most: usize,
    /// Cancelled at the end of input: nobody can cancel a subscription any more.
    input_over: CancellationToken,
}

impl Changes {
    /// Counters of lists that change; none for one that never does.
    pub(super) fn new(
        resources: Option<watch::Receiver<u64>>,
        tools: Option<watch::Receiver<u64>>,
        wire: Wire,
        input_over: CancellationToken,
    ) -> Self {
        let most = match wire {
            Wire::Lines => MAX_SUBSCRIPTIONS,
            Wire::Http => MAX_SUBSCRIPTIONS_OVER_HTTP,
        };
        Self {
            resources: Counter(resources),
            tools: Counter(tools),
            shaken: AtomicBool::new(false),
            told: AtomicBool::new(false),
            subscriptions: Semaphore::new(most),
            most,
            input_over,
        }
    }

    /// `initialize` was answered.
    pub(super) fn shaken(&self) {
        self.shaken.store(true, Ordering::Release);
    }

    /// The client is ready: from now on it is told, if it made the handshake.
    pub(super) fn ready(&self, peer: Peer<RoleServer>) {
        if !self.shaken.load(Ordering::Acquire) || self.told.swap(true, Ordering::AcqRel) {
            return;
        }
        let (mut resources, mut tools) = (self.resources.fresh(), self.tools.fresh());
        let over = self.input_over.clone();
        tokio::spawn(async move {
            loop {
                let told = tokio::select! {
                    () = resources.changed() => peer.notify_resource_list_changed().await,
                    () = tools.changed() => peer.notify_tool_list_changed().await,
                    () = over.cancelled() => return,
                };
                if told.is_err() {
                    return;
                }
            }
        });
    }

    /// Tells a subscriber until it cancels or the input ends.
    ///
    /// # Errors
    /// Too many subscriptions at once.
    pub(super) async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let Ok(_place) = self.subscriptions.try_acquire() else {
            let words = format!("{} subscriptions are open already; cancel one first", self.most);
            return Err(ErrorData::invalid_request(words, None));
        };
        let (mut resources, mut tools) = (self.resources.fresh(), self.tools.fresh());
        let accepted = subscription.accepted();
        let wants_resources = accepted.resources_list_changed == Some(true);
        let wants_tools = accepted.tools_list_changed == Some(true);
        loop {
            let told = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                () = self.input_over.cancelled() => return Ok(()),
                () = resources.changed(), if wants_resources => {
                    subscription.sink().notify_resource_list_changed().await
                }
                () = tools.changed(), if wants_tools => subscription.sink().notify_tool_list_changed().await,
            };
            if told.is_err() {
                return Ok(());
            }
        }
    }
}

/// Counts the changes of one list, if it changes at all.
struct Counter(Option<watch::Receiver<u64>>);

impl Counter {
    /// A counter that has seen everything up to now.
    fn fresh(&self) -> Self {
        let mut counter = self.0.clone();
        if let Some(counter) = &mut counter {
            counter.mark_unchanged();
        }
        Self(counter)
    }

    /// Waits for the next change; for ever where there will be none.
    async fn changed(&mut self) {
        let over = match &mut self.0 {
            Some(counter) => counter.changed().await.is_err(),
            None => true,
        };
        if over {
            std::future::pending::<()>().await;
        }
    }
}
