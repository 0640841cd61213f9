//! vault_list, vault_use: what secrets there are, and requests that carry one where its grants allow it.
//!
//! The order matters. A request is checked, then held against the grants, then every address of its host is judged;
//! only then is the value opened. Whatever comes back, errors too, goes through the redactor.

use super::vault_request::{self as request, Auth};
use super::{Call, Reply, content};
use crate::error::{ErrorCode, ToolError};
use crate::outbound::{self, Answer, NoRoute, Redactor, Request};
use crate::results::{VaultAnswer, VaultEntry, VaultGrant, VaultList};
use crate::state::blobs::MOST_SHOWN;
use crate::state::catalog::Kind;
use crate::state::vault::grant::{judge, not_granted};
use crate::state::vault::{Entry, Numbered, Vault, no_secret, target};
use http::Method;
use http::header::{CONTENT_ENCODING, HeaderMap, SET_COOKIE};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The most bytes of an answer's headers that are shown.
const MOST_HEADERS: usize = 32 << 10;

/// Arguments of [`list`].
pub struct ListInput {
    /// Id or name.
    pub primitive: Option<String>,
}

/// Arguments of [`send`].
pub struct SendInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// To where.
    pub url: String,
    /// Which secret, and how it is sent.
    pub auth: Map<String, Value>,
    /// How.
    pub method: String,
    /// Further headers.
    pub headers: Option<Map<String, Value>>,
    /// Text, or JSON.
    pub body: Option<Value>,
    /// "utf8" or "base64".
    pub encoding: Option<String>,
}

/// Names, versions and grants.
///
/// # Errors
/// As the primitive says.
pub async fn list(call: &Call<'_>, input: ListInput) -> Result<Reply, ToolError> {
    let vault = vault(call, input.primitive.as_deref()).await?;
    Reply::of(&VaultList { data: vault.list().await?.into_iter().map(shown).collect() })
}

/// A secret as it is shown to agents and people.
#[must_use]
pub fn shown(entry: Entry) -> VaultEntry {
    let grant = |Numbered { number, grant }: Numbered| VaultGrant {
        grant: number,
        hosts: grant.hosts.iter().map(ToString::to_string).collect(),
        methods: grant.methods,
        path: grant.path,
        auth: grant.auth.iter().map(ToString::to_string).collect(),
        private: grant.private,
        http: grant.http,
    };
    VaultEntry {
        name: entry.name,
        version: entry.version,
        grants: entry.grants.into_iter().map(grant).collect(),
    }
}

/// Sends a request with a secret and gives back the answer without it.
///
/// # Errors
/// `NOT_FOUND`, `NOT_GRANTED`, `UNREACHABLE`, `TIMEOUT`, `BUSY`, `TOO_LARGE`, `CANCELLED`.
pub async fn send(call: &Call<'_>, input: SendInput) -> Result<Reply, ToolError> {
    let url = target::read(&input.url)?;
    let auth = request::auth(&input.auth)?;
    call.note("secret", auth.secret.as_str());
    call.note("method", input.method.as_str());
    let host = url.host_str().unwrap_or_default().to_owned();
    call.note("host", crate::render::one_line(&host, 200));
    let mut headers = request::headers(input.headers.as_ref(), &auth.form)?;
    let body = request::body(input.body, input.encoding.as_deref(), &input.method, &mut headers)?;
    let method = Method::from_bytes(input.method.as_bytes())
        .map_err(|_| ToolError::arguments("`method` must be the name of a method, such as GET"))?;
    let vault = vault(call, input.primitive.as_deref()).await?;
    let entry = vault.entry(auth.secret.clone()).await?.ok_or_else(|| no_secret(&auth.secret))?;
    let private = judge(&entry, &url, &input.method, &auth.form)?;
    let outbound = &call.server.outbound;
    let _place = outbound.place(&call.caller.owner)?;
    let work = exchange(call, &*vault, &entry, &auth, Request { url, method, headers, body }, private);
    tokio::select! {
        done = tokio::time::timeout(outbound.limit, work) => match done {
            Ok(answer) => {
                let answer = answer?;
                call.note("status", answer.status);
                Reply::of(&answer)
            }
            Err(_) => Err(outbound::timed_out(&host)),
        },
        () = call.cancel.cancelled() => Err(ToolError::new(
            ErrorCode::Cancelled,
            "the call was cancelled; whether the request had an effect is not known",
        )),
    }
}

/// From the judged request to the redacted answer.
async fn exchange(
    call: &Call<'_>,
    vault: &dyn Vault,
    entry: &Entry,
    auth: &Auth,
    mut asked: Request,
    private: bool,
) -> Result<VaultAnswer, ToolError> {
    let outbound = &call.server.outbound;
    let host = asked.url.host_str().unwrap_or_default().to_owned();
    let route = outbound.route(&asked.url, private).await.map_err(|why| no_route(why, &host, &entry.name))?;
    let value = vault.value(entry.name.clone(), entry.version).await?;
    let hidden = request::carry(auth, value.reveal(), &mut asked.url, &mut asked.headers)?;
    // A long secret has many spellings, and others' calls are on this thread.
    let made = tokio::task::spawn_blocking(move || {
        let texts: Vec<&str> = hidden.iter().map(|text| text.as_str()).collect();
        Redactor::new(&texts)
    });
    let ending = |_| ToolError::new(ErrorCode::Busy, "the server is ending; nothing was sent");
    let redactor = made.await.map_err(ending)?.ok_or_else(|| {
        ToolError::new(
            ErrorCode::TooLarge,
            "the secret is too large to be looked for in an answer; nothing was sent",
        )
    })?;
    let most = MOST_SHOWN + redactor.margin();
    match outbound.send(asked, route, most).await {
        // So does a quarter of a megabyte full of escapes.
        Ok(answer) => tokio::task::spawn_blocking(move || clean(answer, &redactor)).await.map_err(|_| {
            ToolError::new(
                ErrorCode::Busy,
                "the server is ending; whether the request had an effect is not known",
            )
        }),
        Err(error) => Err(ToolError::new(error.code, redactor.text(&error.message))),
    }
}

fn no_route(why: NoRoute, host: &str, name: &str) -> ToolError {
    match why {
        NoRoute::Unknown(why) => outbound::unreachable(host, &format!("nothing was sent: {why}")),
        NoRoute::Forbidden { address, never: true } => ToolError::new(
            ErrorCode::NotGranted,
            format!(
                "`{host}` has the address {address}, which no secret is sent to; nothing was sent. Use another host"
            ),
        ),
        NoRoute::Forbidden { address, never: false } => not_granted(
            &format!(
                "`{host}` has the private address {address}, and no grant that allows the request says `private`"
            ),
            name,
        ),
    }
}

/// An answer as an agent may see it.
fn clean(answer: Answer, redactor: &Redactor) -> VaultAnswer {
    let packed = answer.headers.contains_key(CONTENT_ENCODING)
        && !answer
            .headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"));
    let (headers, headers_cut) = clean_headers(&answer.headers, redactor);
    // What cannot be unpacked cannot be looked through.
    if packed && !answer.body.is_empty() {
        return VaultAnswer {
            status: answer.status.into(),
            headers,
            body: String::new(),
            encoding: "utf8".to_owned(),
            truncated: true,
            note: Some(
                "the body is packed in a way that cannot be looked through for the secret, and was left out"
                    .to_owned(),
            ),
        };
    }
    let mut body = redactor.redact_up_to(&answer.body, MOST_SHOWN);
    let cut = answer.more || answer.body.len() > MOST_SHOWN || body.len() > MOST_SHOWN;
    body.truncate(MOST_SHOWN);
    let text = !body.contains(&0);
    let shown = content::shown(body, text, cut);
    VaultAnswer {
        status: answer.status.into(),
        headers,
        body: shown.content,
        encoding: shown.encoding.to_owned(),
        truncated: cut || headers_cut,
        note: None,
    }
}

/// The headers by name, cookies left out; whether some did not fit.
fn clean_headers(headers: &HeaderMap, redactor: &Redactor) -> (Map<String, Value>, bool) {
    let mut clean: Map<String, Value> = Map::new();
    let mut left = MOST_HEADERS;
    for name in headers.keys().filter(|name| **name != SET_COOKIE && name.as_str() != "set-cookie2") {
        // As one, so that a secret across two of them is found, too.
        let values: Vec<&[u8]> = headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
        let value = String::from_utf8_lossy(&redactor.redact(&values.join(&b", "[..]))).into_owned();
        let name = redactor.text(name.as_str());
        match left.checked_sub(name.len() + value.len()) {
            Some(rest) => left = rest,
            None => return (clean, true),
        }
        clean.insert(name, value.into());
    }
    (clean, false)
}

async fn vault(call: &Call<'_>, wanted: Option<&str>) -> Result<Arc<dyn Vault>, ToolError> {
    let primitive = call.primitive(wanted, Some(Kind::Vault)).await?;
    call.server.store.vault(&primitive).await
}
