//! Groups of primitives over HTTP: who may come in, and to what.

use super::Served;
use crate::config::HttpSettings;
use crate::error::{ErrorCode, StartError, ToolError};
use crate::outcome::Caller;
use crate::primitives::groups::Groups;
use crate::server::http::{Admitted, Groups as GroupsOverHttp, Turned};
use constant_time_eq::constant_time_eq_32;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The groups that are served.
pub struct ServedGroups {
    groups: Groups,
    /// The one that is served, where it is not all.
    only: Option<String>,
    /// Whether who sends nothing may do everything.
    open: bool,
    /// SHA-256 of the operator's token.
    token: Option<[u8; 32]>,
}

/// Somebody who came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Nobody was asked for anything.
    Anybody,
    /// Whoever started the server: they know its token.
    Operator,
}

impl ServedGroups {
    /// Groups for those whom the settings let in.
    ///
    /// # Errors
    /// Nobody could come in; exit status 2.
    pub(super) fn new(groups: Groups, only: Option<&str>, http: &HttpSettings) -> Result<Self, StartError> {
        if http.token.is_none() && !http.no_auth {
            return Err(StartError::usage(
                "no token: set INDELIBLE_HTTP_TOKEN to a secret, which clients send as `Authorization: Bearer SECRET`; \
                 on a loopback address --no-auth lets everybody on this machine in",
            ));
        }
        let token = http.token.as_ref().map(|token| Sha256::digest(token.reveal().as_bytes()).into());
        Ok(Self { groups, only: only.map(str::to_owned), open: http.no_auth, token })
    }
}

impl GroupsOverHttp for ServedGroups {
    type Service = Served;
    type Who = Who;

    async fn identify(&self, credential: Option<&str>) -> Result<Who, Turned> {
        let Some(credential) = credential else {
            return if self.open { Ok(Who::Anybody) } else { Err(Turned::NoCredential) };
        };
        let given: [u8; 32] = Sha256::digest(credential.as_bytes()).into();
        // Hashes are compared, all of them: how long it takes tells neither the token nor its length.
        match &self.token {
            Some(token) if constant_time_eq_32(&given, token) => Ok(Who::Operator),
            _ if self.open => Ok(Who::Anybody),
            _ => Err(Turned::WrongCredential),
        }
    }

    async fn admit(&self, who: &Who, name: &str, query: Option<&str>) -> Result<Admitted<Served>, Turned> {
        let _ = query;
        if self.only.as_ref().is_some_and(|only| only != name) {
            return Err(Turned::NoSuch);
        }
        let group = self.groups.open(name, false).await.map_err(turned)?;
        let credential = match who {
            Who::Anybody => None,
            Who::Operator => Some(Arc::from("operator")),
        };
        Ok(Admitted {
            id: group.group.id.clone(),
            service: Arc::new(Served::Group(group)),
            caller: Caller { credential, tools: None },
        })
    }

    async fn shutdown(&self) {
        self.groups.store().close().await;
    }
}

/// Why a group cannot be looked up.
fn turned(error: ToolError) -> Turned {
    match error.code {
        ErrorCode::NotFound => Turned::NoSuch,
        _ => Turned::Later(error.message),
    }
}
