//! The effective policy for a reader: which policy allows which action, and what a file takes away.
//!
//! It changes and checks nothing.

use super::PolicyFile;
use crate::config::Settings;
use crate::generated::{ACTION_WORDS, POLICIES};
use crate::policy::{ActionKind, ConnectionKind, Policy};
use crate::sqlite::weigh::Weigher;
use serde_json::{Value, json};

/// What one policy says to one kind of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Allowed,
    Refused,
    Narrowed,
}

impl Says {
    fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Narrowed => "narrowed",
        }
    }
}

/// The policies under which agent-written SQL runs.
fn policies() -> impl Iterator<Item = &'static Policy> {
    POLICIES.iter().copied().filter(|policy| policy.connection != ConnectionKind::None)
}

fn says(file: &PolicyFile, policy: &Policy, kind: ActionKind) -> Says {
    match (policy.actions.contains(&kind), file.narrowing.refuses(policy.id, kind)) {
        (false, _) => Says::Refused,
        (true, true) => Says::Narrowed,
        (true, false) => Says::Allowed,
    }
}

/// Where the action is allowed, or why it is not.
fn instead(file: &PolicyFile, kind: ActionKind) -> String {
    let Some(words) = ACTION_WORDS.iter().find(|words| words.kind == kind) else { return String::new() };
    let policy = words.instead.and_then(|id| POLICIES.iter().find(|policy| policy.id == id));
    match policy {
        Some(policy) if says(file, policy, kind) == Says::Allowed => policy.tool.to_owned(),
        Some(_) => "no tool: the policy file refuses it".to_owned(),
        None if words.reason.is_empty() => "no tool".to_owned(),
        None if words.reason.starts_with("no tool") => words.reason.to_owned(),
        None => format!("no tool: {}", words.reason),
    }
}

/// As text: a table of actions, then what a file takes away.
#[must_use]
pub fn text(file: &PolicyFile, settings: &Settings, weigher: Option<&Weigher>) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let heads = policies().map(|policy| policy.id.to_owned());
    rows.push(std::iter::once("action".to_owned()).chain(heads).chain(["use".to_owned()]).collect());
    let tools = policies().map(|policy| policy.tool.to_owned());
    rows.push(std::iter::once(String::new()).chain(tools).chain([String::new()]).collect());
    for kind in ActionKind::ALL.iter().copied() {
        let cells: Vec<Says> = policies().map(|policy| says(file, policy, kind)).collect();
        let words =
            cells.iter().map(|cell| if *cell == Says::Refused { "-" } else { cell.word() }.to_owned());
        let mut row: Vec<String> = std::iter::once(kind.name().to_owned()).chain(words).collect();
        let all = cells.iter().all(|cell| *cell == Says::Allowed);
        row.push(if all { String::new() } else { instead(file, kind) });
        rows.push(row);
    }
    let mut text = format!("policy sha256 {}\n", file.sha256);
    text.push_str(&match &settings.policy {
        Some(path) => format!("narrowed by {}\n\n", path.display()),
        None => "as built in, without a policy file\n\n".to_owned(),
    });
    text.push_str(&aligned(&rows));
    for (head, lines) in sections(file, weigher) {
        if !lines.is_empty() {
            text.push_str(&format!("\n{head}\n"));
            lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
    }
    text
}

/// As data.
#[must_use]
pub fn json(file: &PolicyFile, settings: &Settings, weigher: Option<&Weigher>) -> Value {
    let policies: Vec<Value> = policies()
        .map(|policy| {
            let actions: serde_json::Map<String, Value> = ActionKind::ALL
                .iter()
                .map(|kind| (kind.name().to_owned(), says(file, policy, *kind).word().into()))
                .collect();
            json!({"id": policy.id, "tool": policy.tool, "actions": actions})
        })
        .collect();
    let instead: serde_json::Map<String, Value> =
        ActionKind::ALL.iter().map(|kind| (kind.name().to_owned(), instead(file, *kind).into())).collect();
    let sections: serde_json::Map<String, Value> = sections(file, weigher)
        .into_iter()
        .map(|(head, lines)| (head.replace(' ', "_"), lines.into()))
        .collect();
    json!({
        "policy_sha256": file.sha256,
        "file": settings.policy.as_ref().map(|path| path.display().to_string()),
        "policies": policies,
        "use": instead,
        "narrowed": sections,
    })
}

/// What the file takes away beside whole actions: heads and lines.
fn sections(file: &PolicyFile, weigher: Option<&Weigher>) -> Vec<(&'static str, Vec<String>)> {
    let narrowing = &file.narrowing;
    let named = |pattern: &crate::policy::narrowing::Pattern| pattern.as_str().to_owned();
    let hidden = match weigher.map(Weigher::bounds) {
        Some(Ok(bounds)) if narrowing.hides() => {
            let lines = bounds.hidden.listed().into_iter();
            lines.map(|(name, why)| why.map_or(name.clone(), |why| format!("{name}: {why}"))).collect()
        }
        _ => narrowing
            .hidden
            .iter()
            .flat_map(|hidden| {
                let table = hidden.table.as_str();
                let columns = hidden.columns.iter().map(move |column| format!("{table}.{}", column.as_str()));
                let whole = hidden.columns.is_empty().then(|| table.to_owned());
                columns.chain(whole)
            })
            .collect(),
    };
    let scoped = |names: &dyn Fn(&crate::policy::narrowing::Refused) -> Vec<String>| {
        let all = names(&narrowing.refused).into_iter();
        let single = narrowing.policies.iter().flat_map(|narrowed| {
            names(&narrowed.refused).into_iter().map(move |name| format!("{name} (policy {})", narrowed.id))
        });
        all.chain(single).collect::<Vec<_>>()
    };
    let limits = narrowing.limits;
    let limits = [
        ("max_rows", limits.max_rows),
        ("max_result_bytes", limits.max_result_bytes),
        ("max_cell_chars", limits.max_cell_chars),
        ("max_update_rows", limits.max_update_rows),
        ("query_timeout in ms", limits.query_timeout_ms),
    ];
    let notes = weigher.and_then(|weigher| weigher.notes(narrowing).ok()).unwrap_or_default();
    vec![
        ("protected", narrowing.protected.iter().map(named).collect()),
        ("hidden", hidden),
        ("refused functions", scoped(&|refused| refused.functions.clone())),
        ("refused pragmas", scoped(&|refused| refused.pragmas.clone())),
        (
            "limits",
            limits.iter().filter_map(|(name, limit)| limit.map(|limit| format!("{name}: {limit}"))).collect(),
        ),
        ("notes", notes),
    ]
}

/// Rows with their cells below each other.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
