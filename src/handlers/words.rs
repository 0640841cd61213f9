//! The words for what ended a call: refusals with the tool to use instead, stops, lost workers.
//!
//! What is refused was decided on the compiled statement; here it is only said.

use super::{Call, unexpected_answer};
use crate::error::{ErrorCode, ToolError};
use crate::generated::ACTION_WORDS;
use crate::policy::{Narrowing, Refusal};
use crate::sqlite::fault::Fault;
use crate::sqlite::watch::Stop;
use crate::surface::ActiveTool;
use crate::worker::pool::JobError;

impl Call<'_> {
    /// What ended a job, in the words of this tool.
    pub(super) fn explain(&self, error: JobError) -> ToolError {
        match error {
            JobError::Fault(Fault::Error(error)) => error,
            JobError::Fault(Fault::CutOff(words) | Fault::InDoubt(words)) => {
                ToolError::new(ErrorCode::SqlError, words)
            }
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
        if let Refusal::Pragma { name, with_value: false } = refusal
            && let Some(tool) = self.tool_that_looks(name, &self.policy_file().narrowing)
        {
            let text = format!("PRAGMA {name} is not allowed in {}; use {tool}", self.name);
            return ToolError::new(ErrorCode::Refused, text);
        }
        refusal.words(self.name, ACTION_WORDS, &|policy| {
            let refused =
                refusal.kind().is_some_and(|kind| self.policy_file().narrowing.refuses(policy, kind));
            self.tool_of(policy).filter(|_| !refused)
        })
    }

    /// The name of another active tool that runs this pragma without a value.
    fn tool_that_looks(&self, pragma: &str, narrowing: &Narrowing) -> Option<String> {
        let tools = self.surface.tools().iter().filter(|tool| runs_sql(tool) && tool.spec.name != self.name);
        let looks = |tool: &&ActiveTool| {
            let policy = tool.policy.policy();
            let listed = policy.pragmas.iter().any(|rule| rule.name == pragma);
            listed && !policy.selects_only && !narrowing.refuses_pragma(tool.policy.id(), pragma)
        };
        tools.into_iter().find(looks).map(|tool| tool.spec.name.clone())
    }

    /// The name of the active tool that runs any statement under a policy.
    fn tool_of(&self, policy: &str) -> Option<String> {
        let tools = self.surface.tools().iter().filter(|tool| runs_sql(tool));
        let found = tools.into_iter().find(|tool| tool.policy.id() == policy);
        found.map(|tool| tool.spec.name.clone())
    }

    /// The name of the active tool that shows plans.
    fn tool_that_explains(&self) -> Option<&str> {
        let mut tools = self.surface.tools().iter();
        tools.find(|tool| tool.spec.handler == "explore.explain").map(|tool| tool.spec.name.as_str())
    }

    fn no_select(&self, keyword: &str) -> ToolError {
        let hint = match keyword {
            "EXPLAIN" => match self.tool_that_explains() {
                Some(name) if name == self.name => "; leave EXPLAIN out".to_owned(),
                Some(name) => format!("; use {name} for a plan"),
                None => String::new(),
            },
            "PRAGMA" => {
                "; those that look can be read as functions, such as SELECT * FROM pragma_table_info('t')"
                    .to_owned()
            }
            _ if self.surface.tools().iter().any(|tool| tool.policy.policy().writes) => String::new(),
            _ => "; no tool of this server changes anything".to_owned(),
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
                    "the statement ran longer than {} s and was stopped, nothing was changed; narrow it with WHERE or LIMIT, or look at its plan with {}",
                    self.limits().query_timeout,
                    self.tool_that_explains().unwrap_or("EXPLAIN QUERY PLAN")
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

/// Whether a tool runs any statement that its policy allows.
fn runs_sql(tool: &ActiveTool) -> bool {
    let handler = tool.spec.handler.as_str();
    tool.spec.statement.is_none() && (handler.starts_with("query.") || handler.starts_with("view."))
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
