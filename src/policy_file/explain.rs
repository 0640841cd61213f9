//! One statement for a reader: what it would do, which tools take it, and the words of those that refuse.
//!
//! Nothing of it runs.

use super::PolicyFile;
use super::report::aligned;
use crate::generated::{ACTION_WORDS, PolicyId};
use crate::policy::{Action, Policy};
use crate::spec::model::{Manifest, ProfileSpec, ToolSpec};
use crate::sqlite::fault::Fault;
use crate::sqlite::watch::Stop;
use crate::sqlite::weigh::{Way, Weigher};
use serde_json::{Value, json};

/// A tool's answer to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    profile: String,
    tool: String,
    policy: &'static str,
    /// The words of the refusal.
    refusal: Option<String>,
}

/// What a statement would do and who would take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    actions: Vec<Action>,
    answers: Vec<Answer>,
}

/// Explains a statement.
#[must_use]
pub fn explain(weigher: &Weigher, file: &PolicyFile, manifest: &Manifest, sql: &str) -> Explained {
    let mut answers = Vec::new();
    for profile in &manifest.profiles {
        let tools = profile.tools.iter().filter_map(|id| manifest.tool(id));
        for (tool, policy, way) in tools.filter_map(statement_tool) {
            let refusal = weigher.verdict(policy, way, sql).err();
            let refusal = refusal.map(|fault| words(&fault, file, manifest, profile, tool));
            let (profile, tool) = (profile.id.clone(), tool.name.clone());
            answers.push(Answer { profile, tool, policy: policy.id, refusal });
        }
    }
    Explained { actions: weigher.actions(sql), answers }
}

impl Explained {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from("does\n");
        let actions = self.actions.iter().map(|action| {
            let through = action.accessor.as_ref().map(|name| format!("through {name}")).unwrap_or_default();
            vec!["".to_owned(), action.kind.name().to_owned(), named(action), through]
        });
        text.push_str(&aligned(&actions.collect::<Vec<_>>()));
        text.push_str("\nis taken by\n");
        let answers = self.answers.iter().map(|answer| {
            let verdict = match &answer.refusal {
                None => "accepts".to_owned(),
                Some(words) => format!("refuses: {words}"),
            };
            vec!["".to_owned(), answer.profile.clone(), answer.tool.clone(), verdict]
        });
        text.push_str(&aligned(&answers.collect::<Vec<_>>()));
        text
    }

    /// As data.
    #[must_use]
    pub fn json(&self) -> Value {
        let actions: Vec<Value> = self
            .actions
            .iter()
            .map(|action| {
                json!({
                    "action": action.kind.name(),
                    "object": action.object,
                    "detail": action.detail,
                    "through": action.accessor,
                })
            })
            .collect();
        let tools: Vec<Value> = self
            .answers
            .iter()
            .map(|answer| {
                json!({
                    "profile": answer.profile,
                    "tool": answer.tool,
                    "policy": answer.policy,
                    "accepted": answer.refusal.is_none(),
                    "words": answer.refusal,
                })
            })
            .collect();
        json!({"actions": actions, "tools": tools})
    }
}

/// `people.email`; an index or trigger with its table, a pragma with its value.
fn named(action: &Action) -> String {
    match action.detail.as_deref().filter(|detail| !detail.is_empty()) {
        Some(detail) if action.object.is_empty() => detail.to_owned(),
        Some(detail) => format!("{}.{detail}", action.object),
        None => action.object.clone(),
    }
}

/// A tool that takes a statement, its policy, and what it does with it.
fn statement_tool(tool: &ToolSpec) -> Option<(&ToolSpec, &'static Policy, Way)> {
    if tool.statement.is_some() {
        // It runs a statement of its own.
        return None;
    }
    let way = match tool.handler.as_str() {
        "query.read" | "explore.explain" => Way::Reads,
        "query.write" | "query.destroy" => Way::Changes,
        "view.create" => Way::MakesView,
        _ => return None,
    };
    Some((tool, PolicyId::from_id(&tool.policy)?.policy(), way))
}

fn words(
    fault: &Fault,
    file: &PolicyFile,
    manifest: &Manifest,
    profile: &ProfileSpec,
    tool: &ToolSpec,
) -> String {
    match fault {
        Fault::Refused(refusal) => {
            let tool_of = |policy: &str| {
                let refused = refusal.kind().is_some_and(|kind| file.narrowing.refuses(policy, kind));
                let mut tools = profile.tools.iter().filter_map(|id| manifest.tool(id));
                let found = tools.find(|tool| tool.policy == policy && statement_tool(tool).is_some());
                found.filter(|_| !refused).map(|tool| tool.name.clone())
            };
            refusal.words(&tool.name, ACTION_WORDS, &tool_of).message
        }
        Fault::Error(error) => error.message.clone(),
        Fault::CutOff(words) | Fault::InDoubt(words) => words.clone(),
        Fault::Exists { name, .. } => format!("`{name}` exists already"),
        // Nothing is counted where nothing runs.
        Fault::OtherToll(_) => "it takes something else than agreed".to_owned(),
        Fault::Stopped(Stop::Deadline | Stop::Cancelled) => "it was stopped".to_owned(),
    }
}
