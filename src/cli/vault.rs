//! `indelible vault ...`: secrets and where they may go, as a person sets them.
//!
//! A value comes from stdin or the terminal, never from an argument: other users of the machine see command lines. It
//! works beside a server that has the folder, and prints no value.

use super::output::table;
use super::people::{failed, one_group, one_primitive};
use super::{Program, ask, output, runtime};
use crate::config::Primitives;
use crate::error::{EXIT_OK, StartError, ToolError};
use crate::primitives::vault::shown;
use crate::render::one_line;
use crate::results::VaultEntry;
use crate::state::catalog::Kind;
use crate::state::vault::grant::{AuthRule, Grant};
use crate::state::vault::{HostRule, LONGEST_VALUE, SecretText, Vault, no_secret};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::io::{IsTerminal, Read};
use zeroize::Zeroizing;

/// What to do with secrets.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum VaultAction {
    /// List the secrets and their grants
    List {
        #[command(flatten)]
        at: At,
    },
    /// Set a value, of a new secret or in the place of the former one; grants stay
    Set {
        /// 1 to 64 letters, digits, `_`, `-` or `.`, first a letter or digit
        name: String,
        #[command(flatten)]
        at: At,
    },
    /// Say where a secret may go; each call adds a grant, and a request must be within one of them
    Grant {
        /// The secret
        name: String,
        /// api.example.com, or .example.com for every host below it; with :PORT where it is not the usual one; repeatable, or with commas
        #[arg(long, value_name = "HOST", required = true, value_delimiter = ',')]
        host: Vec<String>,
        /// GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; repeatable, or with commas [default: GET and HEAD]
        #[arg(long, value_name = "METHOD", value_delimiter = ',')]
        method: Vec<String>,
        /// Only paths under this
        #[arg(long, value_name = "PATH", default_value = "/")]
        path: String,
        /// How it is sent: bearer, basic, header, header:NAME, query or query:PARAM; repeatable, or with commas [default: all but query]
        #[arg(long, value_name = "FORM", value_delimiter = ',')]
        auth: Vec<String>,
        /// The hosts may have loopback and private addresses
        #[arg(long)]
        private: bool,
        /// It may be sent without TLS, readable for everybody on the way
        #[arg(long)]
        plain_http: bool,
        #[command(flatten)]
        at: At,
    },
    /// Take back one grant, by the number that list shows, or with --all every one
    Revoke {
        /// The secret
        name: String,
        /// The grant's number
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        grant: Option<u64>,
        /// Every grant
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        at: At,
    },
    /// Delete a secret with its grants
    Delete {
        /// The secret
        name: String,
        #[command(flatten)]
        at: At,
    },
}

/// Which vault, and how to answer.
#[derive(Args, Clone, Debug)]
pub(super) struct At {
    /// The vault, by name or id; may be left out where the group has one
    #[arg(long, value_name = "NAME")]
    primitive: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl VaultAction {
    fn at(&self) -> &At {
        match self {
            Self::List { at }
            | Self::Set { at, .. }
            | Self::Grant { at, .. }
            | Self::Revoke { at, .. }
            | Self::Delete { at, .. } => at,
        }
    }

    /// The secret that it is about.
    fn secret(&self) -> Option<&str> {
        match self {
            Self::List { .. } => None,
            Self::Set { name, .. }
            | Self::Grant { name, .. }
            | Self::Revoke { name, .. }
            | Self::Delete { name, .. } => Some(name),
        }
    }
}

/// An error for people: where the secret is missing, an agent is told of tools.
fn said(error: ToolError, secret: Option<&str>) -> StartError {
    match secret.filter(|name| error == no_secret(name)) {
        Some(name) => StartError::failure(format!(
            "there is no secret `{}`; `indelible vault list` shows which there are, `indelible vault set` sets one",
            one_line(name, 80)
        )),
        None => failed(error),
    }
}

/// Runs one action and prints what came of it.
pub(super) fn vault<P: Program>(
    program: &P,
    place: &Primitives,
    action: VaultAction,
) -> Result<u8, StartError> {
    let (json, wanted) = (action.at().json, action.at().primitive.clone());
    let (text, data) = runtime::run(async {
        let store = program.store(place)?;
        let done = async {
            let group = one_group(store.catalog(), place.group.as_deref()).await?;
            let chosen = one_primitive(store.catalog(), &group, wanted.as_deref(), Some(Kind::Vault)).await?;
            let vault = store.vault(&chosen).await.map_err(failed)?;
            let secret = action.secret().map(str::to_owned);
            run(&*vault, action).await.map_err(|error| said(error, secret.as_deref()))
        }
        .await;
        store.close().await;
        done
    })?;
    output::print(&if json { data.to_string() } else { text })?;
    Ok(EXIT_OK)
}

/// What to say to people, and to programs.
async fn run(vault: &dyn Vault, action: VaultAction) -> Result<(String, Value), ToolError> {
    match action {
        VaultAction::List { .. } => {
            let found: Vec<VaultEntry> = vault.list().await?.into_iter().map(shown).collect();
            let text = if found.is_empty() { "no secrets".to_owned() } else { list(&found) };
            Ok((text, json!(found)))
        }
        VaultAction::Set { name, .. } => {
            let value = tokio::task::spawn_blocking(value).await;
            let value = value.map_err(|_| ToolError::arguments("the value cannot be read"))??;
            let version = vault.set(name.clone(), value).await?;
            let granted = vault.entry(name.clone()).await?.is_some_and(|entry| !entry.grants.is_empty());
            let next = if granted { "" } else { "; it goes nowhere before `indelible vault grant`" };
            Ok((
                format!("ok: {name} set, version {version}{next}"),
                json!({"name": name, "version": version}),
            ))
        }
        VaultAction::Grant { name, host, method, path, auth, private, plain_http, .. } => {
            let hosts = host.iter().map(|host| HostRule::parse(host)).collect::<Result<_, _>>()?;
            let mut grant = Grant { path, private, http: plain_http, ..Grant::to(hosts) };
            if !method.is_empty() {
                grant.methods = method.iter().map(|method| method.to_ascii_uppercase()).collect();
            }
            if !auth.is_empty() {
                grant.auth = auth.iter().map(|form| AuthRule::parse(form)).collect::<Result<_, _>>()?;
            }
            let number = vault.grant(name.clone(), grant).await?;
            Ok((format!("ok: grant {number} of {name} added"), json!({"name": name, "grant": number})))
        }
        VaultAction::Revoke { name, grant, .. } => {
            let gone = vault.revoke(name.clone(), grant).await?;
            let left = vault.entry(name.clone()).await?.map_or(0, |entry| entry.grants.len());
            Ok((
                format!("ok: {gone} taken back, {name} has {left} left"),
                json!({"name": name, "revoked": gone, "left": left}),
            ))
        }
        VaultAction::Delete { name, .. } => {
            vault.delete(name.clone()).await?;
            Ok((format!("ok: {name} deleted"), json!({"name": name, "deleted": true})))
        }
    }
}

/// The value: at the terminal twice, so that a slip shows, else all of stdin. One line break at its end is no part
/// of it.
fn value() -> Result<SecretText, ToolError> {
    let failed = |error: std::io::Error| {
        ToolError::arguments(format!("the value cannot be read: {error}; give it on stdin"))
    };
    if std::io::stdin().is_terminal() {
        let value = ask::secret("Value (not shown): ").map_err(failed)?;
        let again = ask::secret("Again: ").map_err(failed)?;
        if value != again {
            return Err(ToolError::arguments("the two are not the same; nothing was set"));
        }
        return SecretText::new(value);
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST_VALUE + 3));
    let most = u64::try_from(LONGEST_VALUE + 3).unwrap_or(u64::MAX);
    std::io::stdin().lock().take(most).read_to_end(&mut bytes).map_err(failed)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| ToolError::arguments("a secret is text in UTF-8, and this is none"))?;
    let text = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    SecretText::new(Zeroizing::new(text.to_owned()))
}

/// A line for each grant.
fn list(found: &[VaultEntry]) -> String {
    let mut rows =
        vec![["secret", "version", "grant", "hosts", "methods", "path", "forms", "also"].map(str::to_owned)];
    for entry in found {
        let secret = [entry.name.clone(), entry.version.to_string()];
        if entry.grants.is_empty() {
            let [name, version] = secret.clone();
            let none = ["none", "-", "-", "-", "-", "-"].map(str::to_owned);
            let [grant, hosts, methods, path, forms, also] = none;
            rows.push([name, version, grant, hosts, methods, path, forms, also]);
        }
        for grant in &entry.grants {
            let [name, version] = secret.clone();
            let also = match (grant.private, grant.http) {
                (false, false) => "-",
                (true, false) => "private addresses",
                (false, true) => "plain http",
                (true, true) => "private addresses, plain http",
            };
            rows.push([
                name,
                version,
                grant.grant.to_string(),
                grant.hosts.join(","),
                grant.methods.join(","),
                grant.path.clone(),
                grant.auth.join(","),
                also.to_owned(),
            ]);
        }
    }
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::VaultGrant;

    #[test]
    fn a_list_has_a_line_for_each_grant() {
        let grant = VaultGrant {
            grant: 2,
            hosts: vec!["a.example".to_owned(), ".b.example".to_owned()],
            methods: vec!["GET".to_owned()],
            path: "/v1".to_owned(),
            auth: vec!["bearer".to_owned()],
            private: true,
            http: false,
        };
        let entry = |name: &str, grants| VaultEntry { name: name.to_owned(), version: 3, grants };
        let text = list(&[entry("one", vec![grant]), entry("two", Vec::new())]);
        assert_eq!(
            text,
            "secret  version  grant  hosts                 methods  path  forms   also\n\
             one     3        2      a.example,.b.example  GET      /v1   bearer  private addresses\n\
             two     3        none   -                     -        -     -       -"
        );
    }
}
