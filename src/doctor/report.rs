//! What `indelible doctor` has to say: findings, how bad each is and what to do, as text and as JSON.
//!
//! It looks at nothing.

use crate::config::Setting;
use crate::render::one_line;
use serde_json::{Value, json};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// It works, and may not always.
    Warning,
    /// It does not work.
    Problem,
}

impl State {
    /// `ok`, `note`, `warning`, `problem`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// How bad.
    pub state: State,
    /// What: `journal mode`.
    pub topic: &'static str,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// The same for programs, where there is a number or a name in it.
    pub value: Value,
}

impl Finding {
    /// A finding without advice and value.
    pub fn new(state: State, topic: &'static str, text: impl Into<String>) -> Self {
        Self { state, topic, text: text.into(), advice: None, value: Value::Null }
    }

    /// As it should be.
    pub fn ok(topic: &'static str, text: impl Into<String>) -> Self {
        Self::new(State::Ok, topic, text)
    }

    /// From a line that says what is wrong and, behind a semicolon, what to do.
    pub fn from_line(state: State, topic: &'static str, line: &str) -> Self {
        match line.rsplit_once("; ") {
            Some((text, advice)) => Self::new(state, topic, text).advise(advice),
            None => Self::new(state, topic, line),
        }
    }

    /// With what to do.
    #[must_use]
    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// With the value for programs.
    #[must_use]
    pub fn with(self, value: impl Into<Value>) -> Self {
        Self { value: value.into(), ..self }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The database's absolute path.
    pub database: String,
    /// In the order they were looked at.
    pub findings: Vec<Finding>,
    /// The settings that a server would have.
    pub settings: Vec<Setting>,
    /// SHA-256 of the manifest.
    pub manifest_sha256: String,
    /// SHA-256 of the effective policy.
    pub policy_sha256: String,
}

/// The longest text of a finding; SQLite's own words may be long.
const LONGEST: usize = 600;

impl Report {
    /// The worst state of all findings.
    #[must_use]
    pub fn state(&self) -> State {
        self.findings.iter().map(|finding| finding.state).max().unwrap_or(State::Ok)
    }

    fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }

    /// For people: a line for each finding, with the advice below it, then the settings and the sum.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text =
            format!("indelible {} (SQLite {})\n\n", env!("CARGO_PKG_VERSION"), rusqlite::version());
        for finding in &self.findings {
            let (state, topic) = (finding.state.as_str(), finding.topic);
            text.push_str(&format!("{state:<8} {topic:<13} {}\n", one_line(&finding.text, LONGEST)));
            if let Some(advice) = &finding.advice {
                text.push_str(&format!("{:<23}-> {}\n", "", one_line(advice, LONGEST)));
            }
        }
        text.push_str("\nsettings\n");
        for Setting { name, value, origin } in &self.settings {
            let value = one_line(&value.to_string_lossy(), LONGEST);
            let value = if value.is_empty() { "-" } else { &value };
            // Two spaces also behind a value that is longer than its column.
            text.push_str(format!("  {name:<18} {value:<29}  {origin}").trim_end());
            text.push('\n');
        }
        text.push_str(&format!("\nmanifest {}\npolicy   {}\n\n", self.manifest_sha256, self.policy_sha256));
        text.push_str(&self.sum());
        text.push('\n');
        text
    }

    fn sum(&self) -> String {
        let several =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let counts: Vec<String> =
            [(State::Problem, "problem"), (State::Warning, "warning"), (State::Note, "note")]
                .into_iter()
                .map(|(state, what)| (self.count(state), what))
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| several(count, what))
                .collect();
        if counts.is_empty() { "nothing to remark".to_owned() } else { counts.join(", ") }
    }

    /// For programs; every key is always there.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "state": finding.state.as_str(),
                "topic": finding.topic,
                "text": finding.text,
                "advice": finding.advice,
                "value": finding.value,
            })
        };
        let setting = |setting: &Setting| {
            json!({
                "name": setting.name,
                "value": setting.value.to_string_lossy(),
                "from": setting.origin.to_string(),
            })
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "sqlite": rusqlite::version(),
            "database": self.database,
            "state": self.state().as_str(),
            "problems": self.count(State::Problem),
            "warnings": self.count(State::Warning),
            "notes": self.count(State::Note),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
            "settings": self.settings.iter().map(setting).collect::<Vec<_>>(),
            "manifest_sha256": self.manifest_sha256,
            "policy_sha256": self.policy_sha256,
        })
    }
}
