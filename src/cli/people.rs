//! `indelible groups ...` and `indelible primitives ...`: what there is, made, paused and resumed by a person.
//!
//! They work on the catalog alone, beside a server that has the folder as well as without one.

use super::output::{moment, table};
use super::{Program, output, runtime};
use crate::config::Primitives;
use crate::error::{EXIT_OK, StartError, ToolError};
use crate::render::one_line;
use crate::spec::diagnostic::suggestion;
use crate::state::catalog::{Catalog, Group, GroupEntry, Kind, Primitive, find};
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

/// What to do with groups.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum GroupsAction {
    /// List the groups, by name
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a group, and the data folder where it is missing; a running server serves it at once
    Create {
        /// 1 to 64 letters, digits, `_`, `-` or `.`, first a letter or digit
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What to do with primitives.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum PrimitivesAction {
    /// List the primitives of --group, or of every group
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make an empty primitive in --group
    Create {
        /// What it keeps
        #[arg(value_name = "TYPE", value_parser = PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.name())))]
        kind: String,
        /// 1 to 64 letters, digits, `_`, `-` or `.`, first a letter or digit
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Refuse every call on a primitive of --group until it is resumed; what it keeps stays
    Pause {
        /// Its name or id
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take calls on a paused primitive of --group again
    Resume {
        /// Its name or id
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `indelible groups ...`
pub(super) fn groups<P: Program>(
    program: &P,
    place: &Primitives,
    action: GroupsAction,
) -> Result<u8, StartError> {
    let creates = matches!(action, GroupsAction::Create { .. });
    let text = runtime::run(async {
        let catalog = program.catalog(&place.data, creates)?;
        match action {
            GroupsAction::List { json } => {
                let found = catalog.groups().await.map_err(failed)?;
                Ok(match json {
                    true => Value::from(found.iter().map(group_entry).collect::<Vec<_>>()).to_string(),
                    false if found.is_empty() => format!("no groups in {}", place.data.display()),
                    false => group_table(&found),
                })
            }
            GroupsAction::Create { name, json } => {
                let made = catalog.create_group(&name).await.map_err(failed)?;
                Ok(match json {
                    true => json!({"id": made.id, "name": made.name}).to_string(),
                    false => format!("ok: group {} made; it is served at /mcp/{}", made.name, made.name),
                })
            }
        }
    })?;
    output::print(&text)?;
    Ok(EXIT_OK)
}

/// `indelible primitives ...`
pub(super) fn primitives<P: Program>(
    program: &P,
    place: &Primitives,
    action: PrimitivesAction,
) -> Result<u8, StartError> {
    let text = runtime::run(async {
        let catalog = program.catalog(&place.data, false)?;
        let group = place.group.as_deref();
        match action {
            PrimitivesAction::List { json } => {
                let groups = match group {
                    Some(_) => vec![one_group(&*catalog, group).await?],
                    None => {
                        let all = catalog.groups().await.map_err(failed)?;
                        all.into_iter().map(|entry| entry.group).collect()
                    }
                };
                let mut found = Vec::new();
                for group in groups {
                    let primitives = catalog.primitives(&group).await.map_err(failed)?;
                    found.extend(primitives.into_iter().map(|one| (group.name.clone(), one)));
                }
                Ok(match json {
                    true => Value::from(found.iter().map(primitive_entry).collect::<Vec<_>>()).to_string(),
                    false if found.is_empty() => "no primitives".to_owned(),
                    false => primitive_table(&found),
                })
            }
            PrimitivesAction::Create { kind, name, json } => {
                let group = one_group(&*catalog, group).await?;
                let kind = Kind::from_name(&kind)
                    .ok_or_else(|| StartError::usage(format!("unknown type `{kind}`")))?;
                let made = catalog.create(&group, kind, &name).await.map_err(failed)?;
                let text = format!("ok: {} {} made in group {}", kind.name(), made.name, group.name);
                Ok(if json { primitive_entry(&(group.name, made)).to_string() } else { text })
            }
            PrimitivesAction::Pause { name, json } => set_paused(&*catalog, group, &name, true, json).await,
            PrimitivesAction::Resume { name, json } => set_paused(&*catalog, group, &name, false, json).await,
        }
    })?;
    output::print(&text)?;
    Ok(EXIT_OK)
}

async fn set_paused(
    catalog: &dyn Catalog,
    group: Option<&str>,
    name: &str,
    paused: bool,
    json: bool,
) -> Result<String, StartError> {
    let group = one_group(catalog, group).await?;
    let found = one_primitive(catalog, &group, Some(name), None).await?;
    catalog.pause(&found, paused).await.map_err(failed)?;
    if json {
        return Ok(primitive_entry(&(group.name, Primitive { paused, ..found })).to_string());
    }
    let what = if paused { "paused; its calls fail with `paused`" } else { "resumed" };
    Ok(format!("ok: {} {what}", found.name))
}

/// The group that --group names.
pub(super) async fn one_group(catalog: &dyn Catalog, name: Option<&str>) -> Result<Group, StartError> {
    let name = crate::config::named_group(name)?;
    let all = catalog.groups().await.map_err(failed)?;
    let known: Vec<String> = all.iter().map(|entry| entry.group.name.clone()).collect();
    all.into_iter().map(|entry| entry.group).find(|group| group.name == name).ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = suggestion(name, &known);
        StartError::failure(format!("there is no group `{name}`{hint}; `indelible groups create` makes one"))
    })
}

/// The primitive that a person means: by name or id, or else the only one of the kind. What is paused is so for agents.
pub(super) async fn one_primitive(
    catalog: &dyn Catalog,
    group: &Group,
    wanted: Option<&str>,
    kind: Option<Kind>,
) -> Result<Primitive, StartError> {
    let all = catalog.primitives(group).await.map_err(failed)?;
    let group = &group.name;
    let of_kind = kind.map_or_else(String::new, |kind| format!(" of type {}", kind.name()));
    let Some(wanted) = wanted else {
        let mut fitting: Vec<Primitive> =
            all.into_iter().filter(|one| kind.is_none_or(|kind| one.kind == kind)).collect();
        return match (fitting.pop(), fitting.len()) {
            (Some(only), 0) => Ok(only),
            (Some(_), others) => Err(StartError::failure(format!(
                "the group has {} primitives{of_kind}; give one with --primitive NAME, `indelible primitives list` shows them",
                others + 1
            ))),
            (None, _) => Err(StartError::failure(format!(
                "the group has no primitive{of_kind}; `indelible primitives create` makes one"
            ))),
        };
    };
    let names: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
    let found = find(all, wanted).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let (shown, hint) = (one_line(wanted, 80), suggestion(wanted, &known));
        StartError::failure(format!(
            "group {group} has no primitive `{shown}`{hint}; `indelible primitives list` shows what it has"
        ))
    })?;
    match kind.filter(|kind| *kind != found.kind) {
        None => Ok(found),
        Some(kind) => Err(StartError::failure(format!(
            "`{}` is of type {}, and this command works on {}; `indelible primitives list` shows types",
            found.name,
            found.kind.name(),
            kind.name()
        ))),
    }
}

/// An error that was meant for an agent and meets a person.
pub(super) fn failed(error: ToolError) -> StartError {
    StartError::failure(error.message)
}

fn group_entry(entry: &GroupEntry) -> Value {
    json!({
        "name": entry.group.name,
        "id": entry.group.id,
        "primitives": entry.primitives,
        "created_at": moment(entry.created_at),
    })
}

fn group_table(found: &[GroupEntry]) -> String {
    let mut rows = vec![["group", "primitives", "made"].map(str::to_owned)];
    rows.extend(
        found
            .iter()
            .map(|entry| [entry.group.name.clone(), entry.primitives.to_string(), moment(entry.created_at)]),
    );
    table(&rows)
}

fn primitive_entry((group, one): &(String, Primitive)) -> Value {
    json!({"group": group, "name": one.name, "type": one.kind.name(), "paused": one.paused, "id": one.id})
}

fn primitive_table(found: &[(String, Primitive)]) -> String {
    let mut rows = vec![["group", "name", "type", "state", "id"].map(str::to_owned)];
    rows.extend(found.iter().map(|(group, one)| {
        let state = if one.paused { "paused" } else { "-" };
        [group.clone(), one.name.clone(), one.kind.name().to_owned(), state.to_owned(), one.id.clone()]
    }));
    table(&rows)
}
