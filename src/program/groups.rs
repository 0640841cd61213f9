//! Groups of primitives over HTTP: who may come in, and to what.
//!
//! A key opens one group and some of its tools. The operator's token opens every group. Nothing is remembered of a key
//! from one request to the next, so that one which is taken back is so at once.

use super::Served;
use crate::config::HttpSettings;
use crate::error::{ErrorCode, StartError, ToolError};
use crate::oauth::{Refused, Token, Verifier};
use crate::outcome::{Caller, Reached};
use crate::primitives::access::{allowed, narrowed};
use crate::primitives::groups::Groups;
use crate::server::http::{Admitted, Asked, Groups as GroupsOverHttp, Signed, Turned, Unsigned};
use crate::shares::Owner;
use crate::state::clock::{Clock, SystemClock};
use crate::state::keys::{self, Key, Scope};
use crate::state::signing::{ANYBODY, Claimed, Method};
use constant_time_eq::constant_time_eq_32;
use std::sync::Arc;
use std::time::Instant;

/// The groups that are served.
pub struct ServedGroups {
    groups: Groups,
    /// The one that is served, where it is not all.
    only: Option<String>,
    /// Whether who sends nothing may do everything.
    open: bool,
    /// SHA-256 of the operator's token.
    token: Option<[u8; 32]>,
    /// Judges tokens of an issuer.
    oauth: Option<Verifier>,
    /// Where clients reach it, if not under the name they use.
    public_url: Option<String>,
}

/// Somebody who came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Nobody was asked for anything.
    Anybody,
    /// Whoever started the server: they know its token.
    Operator,
    /// Whoever has this key, which holds.
    Holder(Key),
    /// Whoever has a token of the issuer's.
    Bearer(Token),
}

impl ServedGroups {
    /// Groups for those whom the settings and the keys let in.
    ///
    /// # Errors
    /// Nobody could come in, or everybody although there are keys: exit status 2. The keys cannot be read: 1.
    pub(super) async fn new(
        groups: Groups,
        only: Option<&str>,
        http: &HttpSettings,
    ) -> Result<Self, StartError> {
        let all = groups.store().catalog().keys().list(None).await.map_err(super::failed)?;
        let now = SystemClock.now();
        let opens = |key: &Key| key.holds(now) && only.is_none_or(|only| only == key.group.name);
        let keys = all.iter().filter(|key| opens(key)).count();
        if http.no_auth && http.oauth.is_some() {
            return Err(StartError::usage(
                "--no-auth lets everybody in, and --oauth-issuer asks for tokens: give only one of them",
            ));
        }
        if http.no_auth && keys > 0 {
            return Err(StartError::usage(
                "--no-auth lets everybody in, and there are keys: leave it out, or take the keys back with \
                 `indelible keys revoke`",
            ));
        }
        if keys == 0 && http.token.is_none() && http.oauth.is_none() && !http.no_auth {
            return Err(StartError::usage(
                "no key: `indelible keys create --data DIR --group NAME` makes one, which clients send as \
                 `Authorization: Bearer KEY`; on a loopback address --no-auth lets everybody on this machine in",
            ));
        }
        let token = http.token.as_ref().map(|token| keys::hash(token.reveal()));
        let public_url = http.public_url.clone();
        let oauth =
            http.oauth.as_ref().map(|oauth| Verifier::new(&oauth.issuer, &oauth.audience)).transpose();
        let oauth = oauth.map_err(StartError::failure)?;
        Ok(Self { groups, only: only.map(str::to_owned), open: http.no_auth, token, oauth, public_url })
    }
}

/// As what the operator signs.
const OPERATOR: &str = "operator";
/// As what holders of the issuer's tokens sign.
const OAUTH: &str = "oauth";

impl ServedGroups {
    /// Why something cannot be looked up.
    fn turned(&self, error: ToolError) -> Turned {
        match error.code {
            ErrorCode::NotFound => Turned::NoSuch,
            _ => Turned::Later(self.groups.without_whereabouts(error).message),
        }
    }

    /// What the credentials of this name are bound to; none where they open nothing. A key is looked up by itself.
    fn binding(&self, credential: Option<&str>) -> Option<String> {
        match credential {
            None => self.open.then(|| "open".to_owned()),
            Some(OPERATOR) => self.token.map(|token| crate::render::hex(&token)),
            Some(OAUTH) => self.oauth.as_ref().map(Verifier::binding),
            Some(_) => Some("key".to_owned()),
        }
    }
}

impl GroupsOverHttp for ServedGroups {
    type Service = Served;
    type Who = Who;

    async fn identify(&self, credential: Option<&str>) -> Result<Who, Turned> {
        let Some(credential) = credential else {
            return if self.open { Ok(Who::Anybody) } else { Err(Turned::NoCredential) };
        };
        // Hashes are compared, all of them: how long it takes tells neither the token nor its length.
        if self.token.is_some_and(|token| constant_time_eq_32(&keys::hash(credential), &token)) {
            return Ok(Who::Operator);
        }
        if let Some(oauth) = self.oauth.as_ref().filter(|_| keys::id(credential).is_none()) {
            return match oauth.judge(credential).await {
                Ok(token) => Ok(Who::Bearer(token)),
                Err(Refused::Invalid(why)) => {
                    tracing::info!(why, "a token was refused");
                    Err(Turned::WrongCredential)
                }
                Err(Refused::NoKeys(_)) => Err(Turned::Later(
                    "the keys of the token's issuer cannot be had now; try again".to_owned(),
                )),
            };
        }
        // Whoever sends a key is held to it, also where nobody has to.
        if self.open && keys::id(credential).is_none() {
            return Ok(Who::Anybody);
        }
        let keys = self.groups.store().catalog().keys();
        let key =
            keys::judge(keys, credential, SystemClock.now()).await.map_err(|error| self.turned(error))?;
        key.map(Who::Holder).ok_or(Turned::WrongCredential)
    }

    async fn admit(&self, who: &Who, asked: Asked<'_>) -> Result<Admitted<Served>, Turned> {
        let name = asked.name;
        let of_token;
        let (credential, scope) = match who {
            Who::Anybody => (None, &Scope::All),
            Who::Operator => (Some(Arc::from(OPERATOR)), &Scope::All),
            // Whether there is another group of this name is not looked up.
            Who::Holder(key) if key.group.name != name => return Err(Turned::Elsewhere),
            Who::Holder(key) => (Some(Arc::from(key.id.as_str())), &key.scope),
            Who::Bearer(token) if !token.scopes.open(name) => return Err(Turned::Elsewhere),
            Who::Bearer(token) => {
                of_token = token.scopes.tools();
                (Some(Arc::from(format!("{OAUTH}:{}", token.subject))), &of_token)
            }
        };
        if self.only.as_ref().is_some_and(|only| only != name) {
            return Err(if self.oversees(who) { Turned::NoSuch } else { Turned::Elsewhere });
        }
        let group = self.groups.open(name, false).await.map_err(|error| self.turned(error))?;
        let surface = self.groups.surface();
        let tools = narrowed(surface, allowed(surface, scope), asked.query).map_err(Turned::Query)?;
        let reached = Reached {
            base: self.base(asked.host),
            signer: match who {
                Who::Anybody => ANYBODY.to_owned(),
                Who::Operator => OPERATOR.to_owned(),
                Who::Holder(key) => key.id.clone(),
                Who::Bearer(_) => OAUTH.to_owned(),
            },
            binding: match who {
                Who::Bearer(_) => self.binding(Some(OAUTH)),
                _ => self.binding(credential.as_deref()),
            }
            .unwrap_or_default(),
            until: match who {
                Who::Bearer(token) => Some(token.until),
                Who::Holder(key) => key.expires_at,
                Who::Anybody | Who::Operator => None,
            },
        };
        let owner = Owner::new(&group.group.id, credential.as_deref().unwrap_or_default());
        Ok(Admitted {
            id: group.group.id.clone(),
            service: Arc::new(Served::Group(group)),
            caller: Caller { credential, tools, reached: Some(Arc::new(reached)), owner },
        })
    }

    async fn signed(&self, primitive: &str, query: &str, writes: bool) -> Result<Signed, Unsigned> {
        const CHANGED: Unsigned =
            Unsigned::Forbidden("this URL was not signed by this server, or was changed since");
        const OVER: Unsigned = Unsigned::Forbidden("this URL is over; ask for another");
        let later = |error: ToolError| Unsigned::Later(self.groups.without_whereabouts(error).message);
        let claimed = Claimed::parse(primitive, query).ok_or(CHANGED)?;
        let (catalog, now) = (self.groups.store().catalog(), SystemClock.now());
        let secret = catalog.keys().signing_secret().await.map_err(later)?;
        let by = claimed.grant.by.clone();
        let by = (by != ANYBODY).then_some(by);
        // Who opens nothing any more signs nothing; nothing is told of a URL before its signature is found right.
        let binding = self.binding(by.as_deref()).ok_or(CHANGED)?;
        let grant = claimed.checked(&secret, &binding).ok_or(CHANGED)?;
        if now >= grant.expires_at.saturating_mul(1_000) {
            return Err(OVER);
        }
        if (grant.method == Method::Put) != writes {
            return Err(Unsigned::Forbidden("this URL was signed for another method"));
        }
        if writes && self.groups.read_only() {
            return Err(Unsigned::Forbidden("this server is read-only"));
        }
        let found = catalog.primitive(&grant.primitive).await.map_err(later)?.ok_or(Unsigned::Gone)?;
        if let Some(id) = by.filter(|by| by != OPERATOR && by != OAUTH) {
            let key = catalog.keys().find(&id).await.map_err(later)?;
            let holds = key.is_some_and(|one| one.key.holds(now) && one.key.group.id == found.group);
            if !holds {
                return Err(OVER);
            }
        }
        if let Some(only) = &self.only
            && catalog.group(only, false).await.map_err(later)?.id != found.group
        {
            return Err(Unsigned::Gone);
        }
        if found.paused {
            return Err(Unsigned::Forbidden("a person has paused what this URL is for"));
        }
        let objects = self.groups.store().objects(&found).await.map_err(later)?;
        // Whoever uses a URL of a key's takes from that key's share.
        let owner = Owner::new(&found.group, &grant.by);
        Ok(Signed { grant, objects, primitive: found, owner })
    }

    async fn note_signed(&self, signed: &Signed, method: &http::Method, status: u16, began: Instant) {
        self.groups.note_signed(&signed.grant, &signed.primitive, method, status, began).await;
    }

    fn issuer(&self) -> Option<&str> {
        self.oauth.as_ref().map(Verifier::issuer)
    }

    fn base(&self, host: &str) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{host}"))
    }

    fn oversees(&self, who: &Who) -> bool {
        matches!(who, Who::Anybody | Who::Operator)
    }

    async fn shutdown(&self, _deadline: Instant) {
        self.groups.store().close().await;
    }
}
