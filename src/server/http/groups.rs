//! Many services below one path, `/mcp/NAME`: who asks is judged first, then which service that is for.
//!
//! It keeps an endpoint for each service once it has been asked for, and knows neither what a service is nor how a
//! credential is checked: [`Groups`] does.

use super::access::{Bearer, bearer, challenge};
use super::resource;
use super::router::{self, Bounds, Endpoint, METRICS};
use super::signed::{self, Signed, Unsigned};
use super::{Listening, PATH, until_stopped};
use crate::config::HttpSettings;
use crate::error::StartError;
use crate::outcome::Caller;
use crate::server::handler::Shared;
use crate::server::{Ending, Service};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::header::{HOST, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Services by name, and who may use them.
pub trait Groups: Send + Sync + 'static {
    /// What each of them is.
    type Service: Service;

    /// Who somebody is who came in.
    type Who: Send + Sync;

    /// Who sends this credential, or none.
    ///
    /// # Errors
    /// [`Turned::NoCredential`], [`Turned::WrongCredential`], [`Turned::Later`].
    fn identify(&self, credential: Option<&str>) -> impl Future<Output = Result<Self::Who, Turned>> + Send;

    /// The service that somebody asks for, and what they may do there.
    ///
    /// # Errors
    /// Every [`Turned`] but those of [`Groups::identify`].
    fn admit(
        &self,
        who: &Self::Who,
        asked: Asked<'_>,
    ) -> impl Future<Output = Result<Admitted<Self::Service>, Turned>> + Send;

    /// The object that a signed URL lets its bearer at. `writes`: they want to put it.
    ///
    /// # Errors
    /// Why the URL opens nothing.
    fn signed(
        &self,
        primitive: &str,
        query: &str,
        writes: bool,
    ) -> impl Future<Output = Result<Signed, Unsigned>> + Send;

    /// Notes for the log what was asked for by a URL that holds, and the status of the answer.
    fn note_signed(
        &self,
        signed: &Signed,
        method: &Method,
        status: u16,
        began: Instant,
    ) -> impl Future<Output = ()> + Send;

    /// The issuer of tokens, where there is one.
    fn issuer(&self) -> Option<&str>;

    /// Scheme, name and port of this server for clients that address it so.
    fn base(&self, host: &str) -> String;

    /// Whether somebody may see what is counted, over all groups.
    fn oversees(&self, who: &Self::Who) -> bool;

    /// Ends what still runs and closes everything, as [`Service::shutdown`]. Those of the services are not called.
    fn shutdown(&self, deadline: Instant) -> impl Future<Output = ()> + Send;
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'r> {
    /// The service's name, as it stands in the path.
    pub name: &'r str,
    /// The URL's query, without `?`.
    pub query: Option<&'r str>,
    /// Under which name and port the server is addressed.
    pub host: &'r str,
}

/// Somebody who came in, and to what.
#[derive(Debug)]
pub struct Admitted<S> {
    /// Tells the service apart from every other, for good.
    pub id: String,
    /// The service.
    pub service: Arc<S>,
    /// Who it is.
    pub caller: Caller,
}

impl<S> Clone for Admitted<S> {
    fn clone(&self) -> Self {
        Self { id: self.id.clone(), service: Arc::clone(&self.service), caller: self.caller.clone() }
    }
}

/// Why somebody did not come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turned {
    /// A credential is asked for, and there is none.
    NoCredential,
    /// The credential is none of this server, or no longer.
    WrongCredential,
    /// The credential is for something else. Whether what was asked for exists is not said.
    Elsewhere,
    /// There is no service of this name.
    NoSuch,
    /// The query says what cannot be done; in words.
    Query(String),
    /// It cannot be found out now; in words.
    Later(String),
}

impl Turned {
    /// The answer; `lead` are parameters of a challenge that lead to whoever gives tokens, each with a comma before it.
    fn answer(self, lead: &str) -> Response {
        match self {
            Self::NoCredential => {
                challenge(lead, "this server asks for a key: send `Authorization: Bearer KEY`\n")
            }
            Self::WrongCredential => challenge(
                &format!(
                    "{lead}, error=\"invalid_token\", error_description=\"not a key of this server, or one that is revoked or has expired\""
                ),
                "this server takes no such key or token, or it is revoked or has expired; ask a person for another\n",
            ),
            Self::Elsewhere => {
                let words =
                    "the key or token is not for this path; it opens the groups that it was made for\n";
                let mut response = (StatusCode::FORBIDDEN, words).into_response();
                let value = format!("Bearer realm=\"indelible\"{lead}, error=\"insufficient_scope\"");
                if let Some(value) = HeaderValue::try_from(value).ok().filter(|_| !lead.is_empty()) {
                    response.headers_mut().insert(WWW_AUTHENTICATE, value);
                }
                response
            }
            Self::NoSuch => {
                let words = "there is nothing at this path; a group is served at /mcp/GROUP\n";
                (StatusCode::NOT_FOUND, words).into_response()
            }
            Self::Query(words) => (StatusCode::BAD_REQUEST, words + "\n").into_response(),
            Self::Later(words) => (StatusCode::SERVICE_UNAVAILABLE, words + "\n").into_response(),
        }
    }
}

/// Serves each group at its name below [`PATH`] until `stop` is cancelled, as [`super::serve`] does.
///
/// # Errors
/// None: nothing a client sends is an error.
pub async fn serve_groups<G: Groups>(
    groups: Arc<G>,
    listening: Listening,
    settings: &HttpSettings,
    stop: CancellationToken,
) -> Result<Ending, StartError> {
    let (shared, streams) = (Shared::default(), CancellationToken::new());
    let mounts = Arc::new(Mounts::<G::Service> {
        open: Mutex::default(),
        shared: shared.clone(),
        streams: streams.clone(),
    });
    let below = Router::new().route(&format!("{PATH}/{{name}}"), any(handed_over::<G>)).with_state(mounts);
    // Named, so that it stays behind the judgement when routes that are not judged come beside it.
    let below = below.fallback(async || Turned::NoSuch.answer(""));
    let bounds = Bounds::default();
    let below = router::bounded(below.merge(router::measures(&shared)), &bounds);
    let judged = below.layer(from_fn_with_state(Arc::clone(&groups), judged::<G>));
    let all = judged.merge(signed::routes(Arc::clone(&groups), &bounds));
    let all = all.merge(router::loaded(resource::routes(&groups), &bounds));
    let app = router::front(all, settings, &shared);
    Ok(until_stopped(listening, app, &shared, &streams, stop, |deadline| groups.shutdown(deadline)).await)
}

/// Endpoints that have been asked for, by the id of their service.
struct Mounts<S: Service> {
    open: Mutex<HashMap<String, Endpoint<S>>>,
    shared: Shared,
    streams: CancellationToken,
}

impl<S: Service> Mounts<S> {
    fn endpoint(&self, admitted: Admitted<S>) -> Result<Endpoint<S>, StartError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = open.get(&admitted.id) {
            return Ok(endpoint.clone());
        }
        let endpoint = router::endpoint(admitted.service, &self.shared, self.streams.clone())?;
        open.insert(admitted.id, endpoint.clone());
        Ok(endpoint)
    }
}

/// Judges who asks, and for what. Whoever has no credential hears the same at every path.
async fn judged<G: Groups>(State(groups): State<Arc<G>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    match admitted(&*groups, &parts).await {
        Ok(admitted) => {
            if let Some(admitted) = admitted {
                parts.extensions.insert(admitted.caller.clone());
                parts.extensions.insert(admitted);
            }
            next.run(Request::from_parts(parts, body)).await
        }
        Err(turned) => {
            tracing::info!(?turned, "a request was turned away");
            turned.answer(&resource::parameters(&*groups, &parts.headers, parts.uri.path()))
        }
    }
}

/// To which group, or to none where it is about what is counted.
async fn admitted<G: Groups>(groups: &G, request: &Parts) -> Result<Option<Admitted<G::Service>>, Turned> {
    let credential = match bearer(&request.headers) {
        Bearer::None => None,
        Bearer::One(credential) => Some(credential),
        Bearer::Two => return Err(Turned::WrongCredential),
    };
    let who = groups.identify(credential).await?;
    let name = request.uri.path().strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
    match name {
        Some(name) => {
            let host = request.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            groups.admit(&who, Asked { name, query: request.uri.query(), host }).await.map(Some)
        }
        None if request.uri.path() != METRICS => Err(Turned::NoSuch),
        None if groups.oversees(&who) => Ok(None),
        None => Err(Turned::Elsewhere),
    }
}

/// Hands a request to the endpoint of its group.
async fn handed_over<G: Groups>(
    State(mounts): State<Arc<Mounts<G::Service>>>,
    mut request: Request,
) -> Response {
    let Some(admitted) = request.extensions_mut().remove::<Admitted<G::Service>>() else {
        return Turned::NoSuch.answer("");
    };
    match mounts.endpoint(admitted) {
        Ok(endpoint) => endpoint.handle(request).await.map(Body::new),
        Err(error) => {
            tracing::error!(%error, "a group cannot be served");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "this group cannot be served; a person must look at the log\n",
            )
                .into_response()
        }
    }
}
