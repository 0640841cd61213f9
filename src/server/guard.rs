//! Around every request: a panic becomes an answer, and the book of requests learns when a handler is done.
//!
//! It does not limit or time anything.

use super::flight::Flight;
use futures::FutureExt;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, Service as RmcpService};
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A handler with this care around it.
pub(super) struct Guard<H> {
    handler: H,
    flight: Arc<Flight>,
}

impl<H> Guard<H> {
    pub(super) fn new(handler: H, flight: Arc<Flight>) -> Self {
        Self { handler, flight }
    }
}

impl<H: rmcp::ServerHandler> RmcpService<RoleServer> for Guard<H> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let id = context.id.clone();
        let result = caught(RmcpService::handle_request(&self.handler, request, context)).await;
        self.flight.finished(&id);
        result.and_then(|handled| handled)
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        RmcpService::handle_notification(&self.handler, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        RmcpService::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        RmcpService::supported_protocol_versions(&self.handler)
    }
}

/// What the work comes to, or the answer to a request that panicked. No async function: that would keep room for
/// the work twice.
pub(super) fn caught<F: Future>(work: F) -> impl Future<Output = Result<F::Output, ErrorData>> {
    // Neither a handler nor a service keeps state that a panic could leave half changed.
    AssertUnwindSafe(work).catch_unwind().map(|done| {
        done.map_err(|_panic| {
            let words = "internal error: the request failed in the server, which lives on; see its stderr";
            ErrorData::internal_error(words, None)
        })
    })
}
