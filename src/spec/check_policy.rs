//! From a raw policy.yaml to a checked one.
//!
//! It checks the file against itself; whether it fits tools.yaml is checked in `check.rs`.

use super::diagnostic::{Diagnostic, suggestion};
use super::policy_model::{
    ActionSpec, Connection, ExceptionSpec, PolicyFile, PolicySpec, ProtectedSpec, ServerWork,
};
use super::position::{Path, Positions};
use super::raw::{RawAction, RawPolicy, RawPolicyFile};
use super::report::{Report, is_identifier};
use crate::policy::action::ActionKind;

/// Pragmas that do something even when they are given no value (<https://sqlite.org/pragma.html>).
const NEVER: &[&str] = &[
    "data_store_directory",
    "incremental_vacuum",
    "optimize",
    "shrink_memory",
    "temp_store_directory",
    "wal_checkpoint",
];

const CONNECTIONS: &[(&str, Connection)] =
    &[("read_only", Connection::ReadOnly), ("read_write", Connection::ReadWrite), ("none", Connection::None)];

const WORK: &[(&str, ServerWork)] = &[
    ("look", ServerWork::Look),
    ("append", ServerWork::Append),
    ("copy", ServerWork::Copy),
    ("replace", ServerWork::Replace),
    ("reach", ServerWork::Reach),
];

/// Checks the whole file. The result is complete only when no diagnostics come with it.
pub fn check_policy(file: &str, raw: &RawPolicyFile, positions: &Positions) -> (PolicyFile, Vec<Diagnostic>) {
    let mut report = Report::new(file, positions);
    let root = Path::root();
    let list = root.key("policies");
    let raw_policies = raw.policies.as_deref().unwrap_or_default();
    if raw_policies.is_empty() {
        report.value(&root, format!("{file} has no `policies`"));
    }
    let policies: Vec<PolicySpec> = raw_policies
        .iter()
        .enumerate()
        .map(|(index, policy)| check_one(&mut report, policy, &list.index(index)))
        .collect();
    let ids = policies.iter().enumerate().map(|(index, p)| (p.id.as_str(), list.index(index).key("id")));
    report.unique("policy", ids);
    let actions = check_actions(&mut report, raw.actions.as_deref().unwrap_or_default(), &policies);
    let protected = check_protected(&mut report, raw);
    let exceptions = check_exceptions(&mut report, raw);
    (PolicyFile { policies, actions, protected, exceptions }, report.diagnostics)
}

fn check_one(report: &mut Report<'_>, raw: &RawPolicy, path: &Path) -> PolicySpec {
    let id = report.text(raw.id.as_ref(), path, "id", "a policy");
    let what = format!("policy `{id}`");
    if !id.is_empty() && !is_identifier(&id) {
        report.value(&path.key("id"), format!("{what} needs an id of lower-case letters, digits and `_`"));
    }
    let connection = report.must_choose(raw.connection.as_ref(), path, "connection", &what, CONNECTIONS);
    let work = report.choice(raw.server_does.as_ref(), path, "server_does", &what, WORK);
    let spec = PolicySpec {
        title: report.text(raw.title.as_ref(), path, "title", &what),
        tool: raw.tool.clone().filter(|name| !name.trim().is_empty()),
        connection: connection.unwrap_or(Connection::None),
        server_does: work.unwrap_or(ServerWork::Nothing),
        selects_only: raw.selects_only.unwrap_or_default(),
        actions: check_action_names(report, raw, path, &what),
        pragmas_read: names(report, pragmas(raw, false), &path.key("pragmas").key("read"), "pragma"),
        pragmas_introspect: names(
            report,
            pragmas(raw, true),
            &path.key("pragmas").key("introspect"),
            "pragma",
        ),
        functions_denied: names(
            report,
            raw.functions_denied.as_deref(),
            &path.key("functions_denied"),
            "function",
        ),
        modules: names(report, raw.modules.as_deref(), &path.key("modules"), "module"),
        counts_overwrites: raw.counts_overwrites.unwrap_or_default(),
        snapshots_first: raw.snapshots_first.unwrap_or_default(),
        id,
    };
    check_pragmas(report, &spec, path);
    if let Some(connection) = connection {
        check_connection(report, &spec, connection, path, &what);
    }
    check_companions(report, &spec, path, &what);
    spec
}

fn pragmas(raw: &RawPolicy, introspect: bool) -> Option<&[String]> {
    let pragmas = raw.pragmas.as_ref()?;
    if introspect { pragmas.introspect.as_deref() } else { pragmas.read.as_deref() }
}

/// Lower-case names, each once.
fn names(report: &mut Report<'_>, given: Option<&[String]>, path: &Path, what: &str) -> Vec<String> {
    let given = given.unwrap_or_default();
    for (index, name) in given.iter().enumerate() {
        if !is_identifier(name) {
            let message = format!("{what} `{name}` must be a name of lower-case letters, digits and `_`");
            report.value(&path.index(index), message);
        }
    }
    report.unique(what, given.iter().enumerate().map(|(index, name)| (name.as_str(), path.index(index))));
    given.to_vec()
}

fn check_action_names(report: &mut Report<'_>, raw: &RawPolicy, path: &Path, what: &str) -> Vec<ActionKind> {
    let path = path.key("actions");
    let given = raw.actions.as_deref().unwrap_or_default();
    let named = given.iter().enumerate().map(|(index, name)| (name.as_str(), path.index(index)));
    report.unique("action", named);
    let mut actions = Vec::new();
    for (index, name) in given.iter().enumerate() {
        match ActionKind::from_name(name) {
            Some(ActionKind::Unknown) => {
                report.value(
                    &path.index(index),
                    format!("{what} must not allow `unknown`: it has no meaning yet"),
                );
            }
            Some(action) => actions.push(action),
            None => report.value(&path.index(index), unknown_action(name)),
        }
    }
    actions
}

fn unknown_action(name: &str) -> String {
    let known: Vec<&str> = ActionKind::ALL.iter().map(|action| action.name()).collect();
    format!("unknown action `{name}`{}", suggestion(name, &known))
}

fn check_pragmas(report: &mut Report<'_>, spec: &PolicySpec, path: &Path) {
    let path = path.key("pragmas");
    let lists = [("read", &spec.pragmas_read), ("introspect", &spec.pragmas_introspect)];
    for (key, list) in lists {
        for (index, name) in list.iter().enumerate() {
            let at = path.key(key).index(index);
            if NEVER.contains(&name.as_str()) {
                report
                    .value(&at, format!("pragma `{name}` acts even without a value; no policy may allow it"));
            }
            if key == "introspect" && spec.pragmas_read.contains(name) {
                report.value(&at, format!("pragma `{name}` stands under `read` too; keep one"));
            }
        }
    }
}

fn check_connection(
    report: &mut Report<'_>,
    spec: &PolicySpec,
    connection: Connection,
    path: &Path,
    what: &str,
) {
    let writing: Vec<&str> = spec.actions.iter().filter(|a| a.writes()).map(|a| a.name()).collect();
    match connection {
        Connection::ReadOnly => {
            if let Some(action) = writing.first() {
                let message = format!("{what} opens the file read-only and allows `{action}`, which writes");
                report.value(&path.key("actions"), message);
            }
        }
        Connection::ReadWrite => {
            if writing.is_empty() {
                let message = format!("{what} allows nothing that writes; make its connection `read_only`");
                report.value(&path.key("connection"), message);
            }
        }
        Connection::None => {
            if !spec.actions.is_empty() {
                let message =
                    format!("{what} runs no agent-written SQL (connection `none`), so it allows no actions");
                report.value(&path.key("actions"), message);
            }
            if spec.tool.is_some() {
                let message = format!("{what} runs no agent-written SQL, so no `tool` runs it");
                report.value(&path.key("tool"), message);
            }
            if spec.server_does == ServerWork::Nothing {
                let message = format!(
                    "{what} has connection `none`; say in `server_does` what the server does: `look`, `append`, `copy` or `replace`"
                );
                report.value(path, message);
            }
        }
    }
    if connection != Connection::None && spec.server_does != ServerWork::Nothing {
        report.value(
            &path.key("server_does"),
            format!("{what} runs agent-written SQL; `server_does` goes with connection `none`"),
        );
    }
}

/// Lists and switches that mean nothing without the action they narrow.
fn check_companions(report: &mut Report<'_>, spec: &PolicySpec, path: &Path, what: &str) {
    let has_pragmas = !spec.pragmas_read.is_empty() || !spec.pragmas_introspect.is_empty();
    let pairs = [
        ("pragmas", has_pragmas, ActionKind::Pragma),
        ("modules", !spec.modules.is_empty(), ActionKind::CreateVtable),
        ("functions_denied", !spec.functions_denied.is_empty(), ActionKind::Function),
        ("counts_overwrites", spec.counts_overwrites, ActionKind::Update),
        ("selects_only", spec.selects_only, ActionKind::Select),
    ];
    for (key, given, action) in pairs {
        if given && !spec.actions.contains(&action) {
            let message = format!("{what} has `{key}` and does not allow `{}`", action.name());
            report.key(&path.key(key), message);
        }
    }
    for (key, given, action) in [pairs[0], pairs[1]] {
        if !given && spec.actions.contains(&action) {
            let message = format!("{what} allows `{}` and has no `{key}`; nothing would pass", action.name());
            report.value(&path.key("actions"), message);
        }
    }
    if spec.selects_only && spec.writes() {
        report.key(&path.key("selects_only"), format!("{what} allows only SELECT and also what writes"));
    }
    if spec.snapshots_first && !spec.writes() {
        report.key(&path.key("snapshots_first"), format!("{what} makes a snapshot first and writes nothing"));
    }
}

fn check_actions(report: &mut Report<'_>, raw: &[RawAction], policies: &[PolicySpec]) -> Vec<ActionSpec> {
    let path = Path::root().key("actions");
    let named = raw
        .iter()
        .enumerate()
        .filter_map(|(index, action)| Some((action.action.as_deref()?, path.index(index).key("action"))));
    report.unique("action", named);
    let mut specs = Vec::new();
    for (index, action) in raw.iter().enumerate() {
        let at = path.index(index);
        let name = report.text(action.action.as_ref(), &at, "action", "an action");
        let what = format!("action `{name}`");
        let label = report.text(action.label.as_ref(), &at, "label", &what);
        let reason = action.reason.as_deref().unwrap_or_default().trim().to_owned();
        let instead = action.instead.clone().filter(|id| !id.trim().is_empty());
        if instead.is_none() && reason.is_empty() {
            report.value(&at, format!("{what} needs `instead` (a policy) or a `reason`"));
        }
        match ActionKind::from_name(&name) {
            Some(kind) => {
                if let Some(id) = &instead {
                    check_instead(report, id, kind, policies, &at.key("instead"));
                }
                specs.push(ActionSpec { action: kind, label, instead, reason });
            }
            None if name.is_empty() => {}
            None => report.value(&at.key("action"), unknown_action(&name)),
        }
    }
    for kind in ActionKind::ALL {
        if !specs.iter().any(|spec| spec.action == *kind) {
            report.key(&path, format!("action `{}` has no words; add it under `actions`", kind.name()));
        }
    }
    specs
}

/// A refusal must send the agent where the action is allowed.
fn check_instead(report: &mut Report<'_>, id: &str, kind: ActionKind, policies: &[PolicySpec], at: &Path) {
    let Some(policy) = policies.iter().find(|policy| policy.id == id) else {
        let known: Vec<&str> = policies.iter().map(|policy| policy.id.as_str()).collect();
        report.value(at, format!("unknown policy `{id}`{}", suggestion(id, &known)));
        return;
    };
    if !policy.actions.contains(&kind) {
        let message = format!("`{}` sends agents to policy `{id}`, which does not allow it", kind.name());
        report.value(at, message);
    } else if policy.tool.is_none() {
        report.value(at, format!("`{}` sends agents to policy `{id}`, which names no `tool`", kind.name()));
    }
}

fn check_protected(report: &mut Report<'_>, raw: &RawPolicyFile) -> ProtectedSpec {
    let path = Path::root().key("protected");
    let Some(protected) = &raw.protected else {
        report.value(&Path::root(), "the file has no `protected`");
        return ProtectedSpec { tables: Vec::new(), views: Vec::new(), others: Vec::new() };
    };
    ProtectedSpec {
        tables: names(report, protected.tables.as_deref(), &path.key("tables"), "table"),
        views: names(report, protected.views.as_deref(), &path.key("views"), "view"),
        others: names(report, protected.others.as_deref(), &path.key("others"), "object"),
    }
}

fn check_exceptions(report: &mut Report<'_>, raw: &RawPolicyFile) -> Vec<ExceptionSpec> {
    let path = Path::root().key("exceptions");
    let given = raw.exceptions.as_deref().unwrap_or_default();
    let mut exceptions = Vec::new();
    for (index, exception) in given.iter().enumerate() {
        let at = path.index(index);
        let tool = report.text(exception.tool.as_ref(), &at, "tool", "an exception");
        let reason =
            report.text(exception.reason.as_ref(), &at, "reason", &format!("the exception for `{tool}`"));
        exceptions.push(ExceptionSpec { tool, reason });
    }
    let tools =
        exceptions.iter().enumerate().map(|(index, e)| (e.tool.as_str(), path.index(index).key("tool")));
    report.unique("exception for tool", tools);
    exceptions
}
