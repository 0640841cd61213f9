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
        let handled = RmcpService::handle_request(&self.handler, request, context);
        // A handler keeps no state of its own that a panic could leave half changed.
        let result = AssertUnwindSafe(handled).catch_unwind().await;
        self.flight.finished(&id);
        result.unwrap_or_else(|_panic| {
            let words = "internal error: the request failed in the server, which lives on; see its stderr";
            Err(ErrorData::internal_error(words, None))
        })
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
