//! A call's turn: at most so many run at once, each with a token of its own, its progress and its way to a person.
//!
//! It does not know what a call does, and gives back whatever it came to; a panic comes back as an error.

use super::asking::{Questions, Round, confirmer};
use super::dialog::Place;
use super::guard::caught;
use super::handler::{Shared, Wire};
use super::progress::Progress;
use crate::outcome::{CallContext, Caller, Standing};
use crate::shares::Shares;
use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::RequestContext;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Calls that run at once; more wait for their turn.
const CALLS_AT_ONCE: usize = 64;

/// Places for calls that run at once, of all handlers that share them.
#[derive(Clone, Debug)]
pub(super) struct Places(Shares);

impl Default for Places {
    fn default() -> Self {
        Self(Shares::new(CALLS_AT_ONCE))
    }
}

/// Who a request comes from, as was found out in front of the handler. On a pair of streams it is whoever started the
/// server, who may use everything.
pub(super) fn caller(context: &RequestContext<RoleServer>) -> Caller {
    let parts = context.extensions.get::<http::request::Parts>();
    parts.and_then(|parts| parts.extensions.get::<Caller>()).cloned().unwrap_or_default()
}

/// The places, and what every call gets.
pub(super) struct Turns {
    places: Places,
    questions: Arc<Questions>,
    wire: Wire,
    /// Cancelled at the end: what still runs is to stop.
    over: CancellationToken,
}

impl Turns {
    pub(super) fn new(questions: Arc<Questions>, wire: Wire, shared: &Shared) -> Self {
        Self { places: shared.places.clone(), questions, wire, over: shared.ends.calls.clone() }
    }

    /// As [`Self::asking`], for what asks nobody.
    ///
    /// # Errors
    /// The call panicked.
    pub(super) fn run<F: Future>(
        &self,
        context: &RequestContext<RoleServer>,
        start: impl FnOnce(CallContext) -> F,
    ) -> impl Future<Output = Result<F::Output, ErrorData>> {
        self.asking(context, None, start)
    }

    /// Runs a call when it is its turn, and cancels its own token when the client cancels or the server
    /// ends. The library's token is not handed on: it is cancelled after every answer as well.
    ///
    /// # Errors
    /// The call panicked.
    pub(super) async fn asking<F: Future>(
        &self,
        context: &RequestContext<RoleServer>,
        round: Option<Round>,
        start: impl FnOnce(CallContext) -> F,
    ) -> Result<F::Output, ErrorData> {
        let cancel = CancellationToken::new();
        let caller = caller(context);
        let place = Arc::new(Place::among(&self.places.0, caller.owner.clone()));
        // A call that is cancelled while it waits still goes to the service, which keeps record of it.
        tokio::select! {
            biased;
            () = place.take() => {}
            () = context.ct.cancelled() => cancel.cancel(),
            () = self.over.cancelled() => cancel.cancel(),
        }
        let confirm =
            round.map(|round| confirmer(&self.questions, round, self.wire, context, &cancel, &place));
        let token = context.meta.get_progress_token();
        let progress = token.map(|token| Progress::start(context.peer.clone(), token));
        let (progress, reporter) = progress.unzip();
        let standing: Arc<dyn Standing> = place.clone();
        let call = caught(start(CallContext {
            caller,
            cancel: cancel.clone(),
            progress: reporter,
            place: Some(standing),
            confirm,
        }));
        let outcome = {
            // On the heap from the start: within this future, it would be moved along with it several times.
            let mut call = Box::pin(call);
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut call => break outcome,
                    () = context.ct.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                    () = self.over.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                }
            }
        };
        if let Some(progress) = progress {
            progress.finish().await;
        }
        outcome
    }
}
