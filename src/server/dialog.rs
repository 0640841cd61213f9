//! A question while its call waits: `elicitation/create`, up to revision 2025-11-25.
//!
//! The call gives up its place among those that run at once while the person thinks. It does not know what
//! the question is about, and seals nothing; `asking` has the other way.

use super::asking::{Questions, form, said_in, verdict};
use crate::confirm::{Confirmer, Question, Said};
use crate::outcome::Standing;
use crate::shares::{Owner, Shares, Taken};
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ClientResult, ElicitRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// One call's way to the person, up to 2025-11-25.
pub(super) struct Dialog {
    questions: Arc<Questions>,
    peer: Peer<RoleServer>,
    cancel: CancellationToken,
    place: Arc<Place>,
}

impl Dialog {
    /// For a call with this token, which gives up its place while the person thinks.
    pub(super) fn new(
        questions: Arc<Questions>,
        peer: Peer<RoleServer>,
        cancel: CancellationToken,
        place: Arc<Place>,
    ) -> Self {
        Self { questions, peer, cancel, place }
    }

    async fn put(&self, question: &Question) -> Said {
        let unsupported = |why: &str| Said::Unsupported(why.to_owned());
        let Ok(_open) = self.questions.dialogs().try_acquire() else {
            return unsupported("too many questions wait for an answer; try again later");
        };
        let params = match form(question) {
            Ok(params) => params,
            Err(error) => return Said::Unsupported(error.to_string()),
        };
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        // Sent from the call's own task: the library ties it to the call by that.
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let Ok(mut handle) = sent else { return unsupported("the client is gone") };
        let (said, why) = tokio::select! {
            answer = &mut handle.rx => return said_by(answer.unwrap_or(Err(ServiceError::TransportClosed))),
            () = self.cancel.cancelled() => (Said::Cancelled, "the call was cancelled"),
            () = tokio::time::sleep(self.questions.patience()) => (Said::Expired, "no answer in time"),
        };
        // So that the client takes the form away. Not waited for: at the end nobody sends it any more.
        tokio::spawn(handle.cancel(Some(why.to_owned())));
        said
    }
}

impl Confirmer for Dialog {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(async {
            self.place.leave();
            let said = self.put(question).await;
            tokio::select! {
                () = self.place.take() => {}
                () = self.cancel.cancelled() => {}
            }
            said
        })
    }
}

/// A call's place among those that run at once.
pub(super) struct Place {
    places: Shares,
    owner: Owner,
    held: Mutex<Option<Taken>>,
}

impl Place {
    /// Not yet taken.
    pub(super) fn among(places: &Shares, owner: Owner) -> Self {
        Self { places: places.clone(), owner, held: Mutex::default() }
    }

    /// Waits for a place; it is given back when this is dropped.
    pub(super) async fn take(&self) {
        let taken = self.places.take(&self.owner, 1).await;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
    }
}

impl Standing for Place {
    fn leave(&self) {
        drop(self.held.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn back(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.take())
    }
}

fn said_by(answer: Result<ClientResult, ServiceError>) -> Said {
    match answer {
        Ok(ClientResult::ElicitResult(result)) => verdict(&result),
        // The library reads an answer as the first kind that fits it.
        Ok(other) => {
            let result = serde_json::to_value(other).ok().and_then(|value| said_in(Some(&value)?));
            result
                .unwrap_or_else(|| Said::Unsupported("the client's answer is no answer to a form".to_owned()))
        }
        Err(ServiceError::McpError(error)) => {
            let words = crate::render::one_line(&error.message, 200);
            Said::Unsupported(format!("the client answered with error {}: {words}", error.code.0))
        }
        Err(_) => Said::Unsupported("the client is gone".to_owned()),
    }
}
