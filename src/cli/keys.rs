//! `indelible keys ...`: what lets agents into a group over HTTP, made, listed and taken back by a person.
//!
//! A key's text goes to stdout, once, and nowhere else. What is changed holds at once on a server that runs.

use super::output::{moment, table};
use super::people::{failed, one_group};
use super::{Program, output, runtime};
use crate::config::{self, RawArgs};
use crate::error::{EXIT_OK, StartError};
use crate::logging::{self, complain};
use crate::state::catalog::Catalog;
use crate::state::clock::{Clock, SystemClock};
use crate::state::duration;
use crate::state::keys::{Key, LONGEST_NAME, Scope, make};
use clap::{ArgAction, Subcommand};
use serde_json::{Value, json};
use std::ffi::OsString;

/// What to do with keys.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum KeysAction {
    /// Make a key for --group and print it, this once
    Create {
        // As the settings of these names, so that clap takes them for the same: here they mean something else.
        /// The tools it may use, separated by commas; all without it
        #[arg(long, value_name = "TOOL,TOOL", conflicts_with = "read_only")]
        tools: Vec<OsString>,
        /// It may use the tools that only read
        #[arg(long, action = ArgAction::SetTrue)]
        read_only: bool,
        /// When it ends: 30d, 12h; never without it
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// What to call it
        #[arg(long)]
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the keys of --group, or of every group; never their texts
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a key back, at once and for good, with every URL that was signed with it
    Revoke {
        /// Its id, or its name if it is the only one
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `indelible keys ...`
pub(super) fn keys<P: Program>(
    program: &P,
    raw: &RawArgs,
    environment: impl Fn(&str) -> Option<OsString> + Copy,
    action: KeysAction,
) -> Result<u8, StartError> {
    logging::start(raw.verbose);
    let place = config::data_folder(raw, environment)?;
    let text = runtime::run(async {
        let catalog = program.catalog(&place.data, false)?;
        match action {
            KeysAction::Create { tools, read_only, expires, name, json } => {
                let scope = scope(program, raw, environment, &tools, read_only)?;
                let group = one_group(&*catalog, place.group.as_deref()).await?;
                let lasts = |text: &str| duration::milliseconds("--expires", text, 1_000, None);
                let lasts = expires.as_deref().map(lasts).transpose();
                let lasts = lasts.map_err(|error| StartError::usage(error.message))?;
                let long = |name: &String| name.is_empty() || name.chars().count() > LONGEST_NAME;
                if name.as_ref().is_some_and(|name| long(name) || name.contains(char::is_control)) {
                    return Err(StartError::usage(format!(
                        "--name: must be 1 to {LONGEST_NAME} characters without control characters"
                    )));
                }
                let now = SystemClock.now();
                let made = make(catalog.keys(), &group, name, scope, now, lasts).await;
                let (key, text) = made.map_err(failed)?;
                complain(&format!(
                    "key {} opens /mcp/{} for {}, {}; this is the only time that it is shown:",
                    key.id,
                    key.group.name,
                    tools_of(&key),
                    key.expires_at
                        .map_or("until it is revoked".to_owned(), |end| format!("until {}", moment(end))),
                ));
                let mut value = entry(&key, "ok");
                if let Some(object) = value.as_object_mut() {
                    object.insert("key".to_owned(), text.clone().into());
                }
                Ok(if json { value.to_string() } else { text })
            }
            KeysAction::List { json } => {
                let group = match place.group.as_deref() {
                    Some(name) => Some(one_group(&*catalog, Some(name)).await?),
                    None => None,
                };
                let found = catalog.keys().list(group.as_ref()).await.map_err(failed)?;
                let now = SystemClock.now();
                let states = found.iter().map(|key| (key, state(key, now)));
                Ok(match json {
                    true => Value::from(states.map(|(key, state)| entry(key, state)).collect::<Vec<_>>())
                        .to_string(),
                    false if found.is_empty() => "no keys".to_owned(),
                    false => key_table(states),
                })
            }
            KeysAction::Revoke { key, json } => {
                let key = chosen(&*catalog, &key).await?;
                let now = catalog.keys().revoke(&key.id).await.map_err(failed)?;
                let stored = catalog.keys().find(&key.id).await.map_err(failed)?;
                let key = stored.map_or(key, |stored| stored.key);
                Ok(match json {
                    true => entry(&key, state(&key, SystemClock.now())).to_string(),
                    false if now => format!("ok: key {} revoked", key.id),
                    false => format!("ok: key {} was revoked already", key.id),
                })
            }
        }
    })?;
    output::print(&text)?;
    Ok(EXIT_OK)
}

/// What the flags allow. Names are held against the tools that a server with these settings offers.
fn scope<P: Program>(
    program: &P,
    raw: &RawArgs,
    environment: impl Fn(&str) -> Option<OsString> + Copy,
    tools: &[OsString],
    read_only: bool,
) -> Result<Scope, StartError> {
    if tools.is_empty() {
        return Ok(if read_only { Scope::ReadOnly } else { Scope::All });
    }
    let given = tools.iter().map(|tools| tools.to_string_lossy().into_owned()).collect::<Vec<_>>().join(",");
    let mut names: Vec<&str> = given.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Err(StartError::usage("--tools: name tools, or leave it out for all"));
    }
    let mut raw = RawArgs { tools: Vec::new(), read_only: false, ..raw.clone() };
    if raw.profile.is_none() && environment("INDELIBLE_PROFILE").is_none_or(|profile| profile.is_empty()) {
        raw.profile = Some(super::OF_DATA.to_owned());
    }
    let (overlays, profile) = config::overlays(&raw, environment)?;
    let profiles = program.profiles(&overlays, profile.as_deref())?;
    let mut settings = config::resolve(&raw, environment, &profiles)?;
    settings.read_only = false;
    program.check_tools(&settings, &names)?;
    Ok(Scope::Tools(names.into_iter().map(str::to_owned).collect()))
}

/// The key of this id, or the only one of this name.
async fn chosen(catalog: &dyn Catalog, wanted: &str) -> Result<Key, StartError> {
    let all = catalog.keys().list(None).await.map_err(failed)?;
    if let Some(key) = all.iter().find(|key| key.id == wanted) {
        return Ok(key.clone());
    }
    let mut named: Vec<Key> = all
        .into_iter()
        .filter(|key| key.revoked_at.is_none() && key.name.as_deref() == Some(wanted))
        .collect();
    match (named.pop(), named.len()) {
        (Some(only), 0) => Ok(only),
        (Some(_), _) => Err(StartError::failure(format!(
            "there are several keys `{wanted}`; give the id of one, from `indelible keys list`"
        ))),
        (None, _) => Err(StartError::failure(format!(
            "there is no key `{wanted}` that is still in force; `indelible keys list` shows ids and names"
        ))),
    }
}

fn state(key: &Key, now: i64) -> &'static str {
    match key {
        _ if key.holds(now) => "ok",
        _ if key.revoked_at.is_some() => "revoked",
        _ => "expired",
    }
}

fn tools_of(key: &Key) -> String {
    match &key.scope {
        Scope::All => "all tools".to_owned(),
        Scope::ReadOnly => "tools that read".to_owned(),
        Scope::Tools(names) => names.join(","),
    }
}

fn entry(key: &Key, state: &str) -> Value {
    let tools = match &key.scope {
        Scope::All => json!("all"),
        Scope::ReadOnly => json!("read-only"),
        Scope::Tools(names) => json!(names),
    };
    json!({
        "id": key.id,
        "group": key.group.name,
        "name": key.name,
        "tools": tools,
        "state": state,
        "created_at": moment(key.created_at),
        "expires_at": key.expires_at.map(moment),
        "revoked_at": key.revoked_at.map(moment),
    })
}

fn key_table<'k>(keys: impl Iterator<Item = (&'k Key, &'static str)>) -> String {
    let mut rows = vec![["id", "group", "name", "tools", "state", "made", "expires"].map(str::to_owned)];
    rows.extend(keys.map(|(key, state)| {
        [
            key.id.clone(),
            key.group.name.clone(),
            key.name.clone().unwrap_or_else(|| "-".to_owned()),
            tools_of(key),
            state.to_owned(),
            moment(key.created_at),
            key.expires_at.map_or_else(|| "-".to_owned(), moment),
        ]
    }));
    table(&rows)
}
