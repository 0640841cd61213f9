//! Telling clients that the list of resources changed.
//!
//! A client of a handshake revision is told once it has said that it is ready. From 2026-07-28 on a client is
//! told only what it asked for with subscriptions/listen, under its subscription's id. It does not know what
//! changed: changes close together are told of once.

use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::{Peer, SubscriptionContext};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// Subscriptions of one client at once. Each is a request under way, and reading pauses at some hundreds.
const MAX_SUBSCRIPTIONS: usize = 16;

/// The changes, and who is told of them.
pub(super) struct Changes {
    counter: watch::Receiver<u64>,
    /// Whether the client's revision has a handshake and it was made.
    shaken: AtomicBool,
    /// Whether the client is told by itself.
    told: AtomicBool,
    subscriptions: Semaphore,
    /// Cancelled at the end of input: nobody can cancel a subscription any more.
    input_over: CancellationToken,
}

impl Changes {
    pub(super) fn new(counter: watch::Receiver<u64>, input_over: CancellationToken) -> Self {
        let subscriptions = Semaphore::new(MAX_SUBSCRIPTIONS);
        Self {
            counter,
            shaken: AtomicBool::new(false),
            told: AtomicBool::new(false),
            subscriptions,
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
        let (mut counter, over) = (self.fresh(), self.input_over.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    changed = counter.changed() => if changed.is_err() { return },
                    () = over.cancelled() => return,
                }
                if peer.notify_resource_list_changed().await.is_err() {
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
            let words = format!("{MAX_SUBSCRIPTIONS} subscriptions are open already; cancel one first");
            return Err(ErrorData::invalid_request(words, None));
        };
        let mut counter = self.fresh();
        let wanted = subscription.accepted().resources_list_changed == Some(true);
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                () = self.input_over.cancelled() => return Ok(()),
                changed = counter.changed(), if wanted => if changed.is_err() { return Ok(()) },
            }
            if subscription.sink().notify_resource_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }

    /// A receiver that has seen everything up to now.
    fn fresh(&self) -> watch::Receiver<u64> {
        let mut counter = self.counter.clone();
        counter.mark_unchanged();
        counter
    }
}
