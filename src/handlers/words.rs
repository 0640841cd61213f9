//! The words for what ended a call: refusals with the tool to use instead, stops, lost workers.
//!
//! What is refused was decided on the compiled statement; here it is only said.

use super::{Call, unexpected_answer};
use crate::error::{ErrorCode, ToolError};
use crate::generated::ACTION_WORDS;
use crate::policy::Refusal;
use crate::sqlite::fault::Fault;
use crate::sqlite::watch::Stop;
use crate::surface::ActiveTool;
use crate::worker::pool::JobError;

impl Call<'_> {
    /// What ended a job, in the words of this tool.
    pub(super) fn explain(&self, error: JobError) -> ToolError {
        match error {
            JobError::Fault(Fault::Error(error)) => error,
            JobError::Fault(Fault::Refused(refusal)) => self.refusal(&refusal),
            JobError::Fault(Fault::OtherToll(_)) => unexpected_answer(),
            JobError::Fault(Fault::Exists { kind, name }) => exists(&kind, &name),
            JobError::Fault(Fault::Stopped(stop)) | JobError::Killed(stop) => self.stopped(stop),
            JobError::Lost(words) => ToolError::new(
                ErrorCode::WorkerLost,
                format!("{words}; nothing was changed, other calls are not affected: try again"),
            ),
        }
    }

    fn refusal(&self, refusal: &Refusal) -> ToolError {
        if self.policy.policy().selects_only && !refusal.is_of_the_file() {
            // What is accepted was decided on the compiled statement; its first word only chooses the words.
            let keyword = first_keyword(self.notes().query.as_deref().unwrap_or_default());
            if !matches!(keyword.as_str(), "" | "SELECT" | "WITH" | "VALUES") {
                return self.no_select(&keyword);
            }
        }
        let policy_file = self.core.policy_file();
        refusal.words(self.name, ACTION_WORDS, &|policy| {
            let refused = refusal.kind().is_some_and(|kind| policy_file.narrowing.refuses(policy, kind));
            self.tool_of(policy).filter(|_| !refused)
        })
    }

    /// The name of the active tool that runs any statement under a policy.
    fn tool_of(&self, policy: &str) -> Option<String> {
        let runs_sql = |tool: &&ActiveTool| {
            let handler = tool.spec.handler.as_str();
            tool.spec.statement.is_none() && (handler.starts_with("query.") || handler.starts_with("view."))
        };
        let found = self.surface.tools().iter().filter(runs_sql).find(|tool| tool.policy.id() == policy);
        found.map(|tool| tool.spec.name.clone())
    }

    fn no_select(&self, keyword: &str) -> ToolError {
        let explains =
            |tool: &&ActiveTool| tool.spec.handler == "explore.explain" && tool.spec.name != self.name;
        let hint = match self.surface.tools().iter().find(explains) {
            Some(tool) if keyword == "EXPLAIN" => format!("; use {} for a plan", tool.spec.name),
            _ => String::new(),
        };
        ToolError::new(
            ErrorCode::NotSelect,
            format!(
                "{} takes one SELECT, WITH ... SELECT or VALUES statement, and this is {keyword}{hint}",
                self.name
            ),
        )
    }

    fn stopped(&self, stop: Stop) -> ToolError {
        match stop {
            Stop::Cancelled => cancelled(),
            Stop::Deadline => ToolError::new(
                ErrorCode::Timeout,
                format!(
                    "the statement ran longer than {} s and was stopped, nothing was changed; narrow it with WHERE or LIMIT, or look at EXPLAIN QUERY PLAN",
                    self.core.settings.query_timeout.as_secs_f64()
                ),
            ),
        }
    }
}

pub(super) fn cancelled() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "the call was cancelled and nothing was changed")
}

fn exists(kind: &str, name: &str) -> ToolError {
    let what_next = if kind == "view" {
        "give `replace`: true to replace it, or choose another name"
    } else {
        "choose another name"
    };
    ToolError::new(ErrorCode::Refused, format!("a {kind} `{name}` exists already; {what_next}"))
}

/// The first word of a statement in upper case, comments aside.
fn first_keyword(sql: &str) -> String {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            return rest
                .chars()
                .take_while(char::is_ascii_alphabetic)
                .take(20)
                .collect::<String>()
                .to_ascii_uppercase();
        }
    }
}
