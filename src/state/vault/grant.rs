//! Where a secret may go: hosts, methods, a path, the form it is sent in; and whether a request is within that.
//!
//! What no grant allows is refused. Which addresses a host's name has is `outbound`'s to look at.

use super::path::lies_under;
use super::{Entry, HostRule};
use crate::error::{ErrorCode, ToolError};
use crate::state::Outcome;
use serde::{Deserialize, Serialize};
use std::fmt;
use url::Url;

/// The methods there are for requests with a secret. TRACE and CONNECT are not among them.
pub const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Where a secret may go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// To which hosts.
    pub hosts: Vec<HostRule>,
    /// With which methods, in upper case.
    pub methods: Vec<String>,
    /// Only paths under this; `/` is every path.
    pub path: String,
    /// In which forms.
    pub auth: Vec<AuthRule>,
    /// Whether the hosts may have loopback and private addresses.
    pub private: bool,
    /// Whether it may be sent without TLS.
    pub http: bool,
}

/// A form in which a secret may be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AuthRule {
    /// `Authorization: Bearer SECRET`.
    Bearer,
    /// `Authorization: Basic`, with any user name.
    Basic,
    /// A header, of this name (in lower case) or any.
    Header(Option<String>),
    /// A parameter of the query, of this name or any.
    Query(Option<String>),
}

/// The form in which a call wants to send a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthForm {
    /// `Authorization: Bearer SECRET`.
    Bearer,
    /// `Authorization: Basic`.
    Basic,
    /// A header, by its name in lower case.
    Header(String),
    /// A parameter of the query.
    Query(String),
}

impl Grant {
    /// For these hosts: GET and HEAD, every path, every form but the query, public addresses, TLS.
    #[must_use]
    pub fn to(hosts: Vec<HostRule>) -> Self {
        Self {
            hosts,
            methods: vec!["GET".to_owned(), "HEAD".to_owned()],
            path: "/".to_owned(),
            auth: vec![AuthRule::Bearer, AuthRule::Basic, AuthRule::Header(None)],
            private: false,
            http: false,
        }
    }

    /// A grant that can be kept.
    ///
    /// # Errors
    /// `INVALID_ARGUMENTS` with the rule.
    pub fn check(&self) -> Outcome<()> {
        if self.hosts.is_empty() || self.methods.is_empty() || self.auth.is_empty() {
            return Err(ToolError::arguments("a grant names hosts, methods and forms"));
        }
        if let Some(method) = self.methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
            return Err(ToolError::arguments(format!(
                "method `{}`: must be one of {}",
                crate::render::one_line(method, 40),
                METHODS.join(", ")
            )));
        }
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '%' | '?' | '#' | '\\' | ';');
        let parts = || self.path.split('/');
        let dots = parts().any(|part| matches!(part, "." | ".."));
        let double = self.path.contains("//");
        if !self.path.starts_with('/') || !self.path.chars().all(plain) || dots || double {
            return Err(ToolError::arguments(format!(
                "path `{}`: must begin with `/` and be plain: ASCII without `%`, `?`, `#`, `;`, `\\`, `//`, `.` and `..` as parts",
                crate::render::one_line(&self.path, 80)
            )));
        }
        Ok(())
    }

    /// Why it does not allow a request, and how far it got; none where it does.
    fn objection(&self, url: &Url, method: &str, form: &AuthForm) -> Option<(u8, String)> {
        let shown = |text: &str| crate::render::one_line(text, 100);
        if !self.hosts.iter().any(|host| host.covers(url)) {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let host = format!("{}{port}", url.host_str().unwrap_or_default());
            return Some((0, format!("host `{}`", shown(&host))));
        }
        if url.scheme() != "https" && !self.http {
            return Some((1, "`http://`, since only https".to_owned()));
        }
        if !self.methods.iter().any(|allowed| allowed == method) {
            return Some((2, format!("method {}", shown(method))));
        }
        if !lies_under(url.path(), &self.path) {
            return Some((3, format!("path `{}`, which must lie under `{}`", shown(url.path()), self.path)));
        }
        if !self.auth.iter().any(|rule| rule.covers(form)) {
            return Some((4, format!("the form {}", shown(&form.to_string()))));
        }
        None
    }
}

/// Holds a request against the grants of a secret; whether private addresses are allowed to it.
///
/// # Errors
/// `NOT_GRANTED` that names what is not granted, of the grant that comes nearest, and what a person can do.
pub fn judge(entry: &Entry, url: &Url, method: &str, form: &AuthForm) -> Outcome<bool> {
    let mut private = None;
    let mut nearest: Option<(u8, String)> = None;
    for numbered in &entry.grants {
        match numbered.grant.objection(url, method, form) {
            None => private = Some(private.unwrap_or(false) || numbered.grant.private),
            Some(objection) => {
                if nearest.as_ref().is_none_or(|(far, _)| objection.0 > *far) {
                    nearest = Some(objection);
                }
            }
        }
    }
    if let Some(private) = private {
        return Ok(private);
    }
    let why = match nearest {
        Some((_, why)) => format!("no grant of `{}` allows {why}", entry.name),
        None => format!("`{}` has no grant, so it goes nowhere", entry.name),
    };
    Err(not_granted(&why, &entry.name))
}

/// The error for what no grant allows.
#[must_use]
pub fn not_granted(why: &str, name: &str) -> ToolError {
    ToolError::new(
        ErrorCode::NotGranted,
        format!(
            "{why}; nothing was sent. vault_list shows the grants; only a person can add one, with `indelible vault grant {name} --host HOST`"
        ),
    )
}

impl AuthRule {
    /// Reads `bearer`, `basic`, `header`, `header:NAME`, `query` or `query:PARAM`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENTS` with the rule.
    pub fn parse(text: &str) -> Outcome<Self> {
        let (form, name) = match text.split_once(':') {
            Some((form, name)) if !name.is_empty() => (form, Some(name.to_owned())),
            Some(_) => ("", None),
            None => (text, None),
        };
        match (form, name) {
            ("bearer", None) => Ok(Self::Bearer),
            ("basic", None) => Ok(Self::Basic),
            ("header", name) => Ok(Self::Header(name.map(|name| name.to_ascii_lowercase()))),
            ("query", name) => Ok(Self::Query(name)),
            _ => Err(ToolError::arguments(format!(
                "form `{}`: must be bearer, basic, header, header:NAME, query or query:PARAM",
                crate::render::one_line(text, 80)
            ))),
        }
    }

    fn covers(&self, form: &AuthForm) -> bool {
        match (self, form) {
            (Self::Bearer, AuthForm::Bearer) | (Self::Basic, AuthForm::Basic) => true,
            (Self::Header(allowed), AuthForm::Header(name))
            | (Self::Query(allowed), AuthForm::Query(name)) => {
                allowed.as_ref().is_none_or(|allowed| allowed == name)
            }
            _ => false,
        }
    }
}

impl fmt::Display for AuthRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("bearer"),
            Self::Basic => f.write_str("basic"),
            Self::Header(None) => f.write_str("header"),
            Self::Header(Some(name)) => write!(f, "header:{name}"),
            Self::Query(None) => f.write_str("query"),
            Self::Query(Some(name)) => write!(f, "query:{name}"),
        }
    }
}

impl fmt::Display for AuthForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("bearer"),
            Self::Basic => f.write_str("basic"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
        }
    }
}

impl From<AuthRule> for String {
    fn from(rule: AuthRule) -> Self {
        rule.to_string()
    }
}

impl TryFrom<String> for AuthRule {
    type Error = ToolError;

    fn try_from(text: String) -> Outcome<Self> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests;
