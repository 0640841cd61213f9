//! What a policy file of the user's takes away from the built-in policies, as checked data.
//!
//! It can only take away: nothing here can name what is allowed. `bounds.rs` applies it; the checks are in
//! `spec/check_narrowing.rs`.

use super::action::ActionKind;
use serde::{Deserialize, Serialize};

/// The name of tables, views or columns, in which `*` stands for any characters and `?` for one. Names
/// compare without regard to ASCII case, as SQLite's do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern of this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for one name only.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether the name is one of those it stands for.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut rest) = (self.0.chars(), name.chars());
        // Where to go on when the last `*` has to take in one more character.
        let mut again: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
        loop {
            let (pattern_here, rest_here) = (pattern.clone(), rest.clone());
            match (pattern.next(), rest.next()) {
                (Some('*'), _) => {
                    rest = rest_here.clone();
                    again = Some((pattern.clone(), rest_here));
                    continue;
                }
                (None, None) => return true,
                (Some('?'), Some(_)) => continue,
                (Some(wanted), Some(found)) if wanted.eq_ignore_ascii_case(&found) => continue,
                _ => drop(pattern_here),
            }
            let Some((after_star, mut taken)) = again.take() else { return false };
            if taken.next().is_none() {
                return false;
            }
            pattern = after_star.clone();
            rest = taken.clone();
            again = Some((after_star, taken));
        }
    }
}

/// A table to hide, or some of its columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenPattern {
    /// The tables or views.
    pub table: Pattern,
    /// The columns; empty for the whole table.
    pub columns: Vec<Pattern>,
}

/// What is refused, under one policy or under all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Kinds of actions.
    pub actions: Vec<ActionKind>,
    /// SQL functions; lower case.
    pub functions: Vec<String>,
    /// Pragmas; lower case.
    pub pragmas: Vec<String>,
}

/// What is refused under one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NarrowedPolicy {
    /// The policy's id.
    pub id: String,
    /// What it no longer allows.
    pub refused: Refused,
}

/// Limits below those of the flags; none where the file says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LowerLimits {
    /// Rows a call may ask for.
    pub max_rows: Option<u64>,
    /// Bytes of a result.
    pub max_result_bytes: Option<u64>,
    /// Characters of a cell.
    pub max_cell_chars: Option<u64>,
    /// Existing rows that one write may overwrite.
    pub max_update_rows: Option<u64>,
    /// Milliseconds that a statement may run.
    pub query_timeout_ms: Option<u64>,
}

/// Everything that a policy file takes away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    /// Tables and views that no agent-written statement changes, beside the server's own.
    pub protected: Vec<Pattern>,
    /// What no agent-written statement reads.
    pub hidden: Vec<HiddenPattern>,
    /// What no policy allows any more.
    pub refused: Refused,
    /// What single policies do not allow any more.
    pub policies: Vec<NarrowedPolicy>,
    /// Lower limits.
    pub limits: LowerLimits,
}

impl Narrowing {
    /// Whether it hides anything.
    #[must_use]
    pub fn hides(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Whether the file refuses this kind of action under the policy.
    #[must_use]
    pub fn refuses(&self, policy: &str, kind: ActionKind) -> bool {
        self.refused_under(policy).any(|refused| refused.actions.contains(&kind))
    }

    /// Whether the file refuses this function under the policy. The name is in lower case.
    #[must_use]
    pub fn refuses_function(&self, policy: &str, name: &str) -> bool {
        self.refused_under(policy).any(|refused| refused.functions.iter().any(|known| known == name))
    }

    /// Whether the file refuses this pragma under the policy. The name is in lower case.
    #[must_use]
    pub fn refuses_pragma(&self, policy: &str, name: &str) -> bool {
        self.refused_under(policy).any(|refused| refused.pragmas.iter().any(|known| known == name))
    }

    /// Whether the file protects the table or view of this name.
    #[must_use]
    pub fn protects(&self, name: &str) -> bool {
        self.protected.iter().any(|pattern| pattern.matches(name))
    }

    fn refused_under<'n>(&'n self, policy: &str) -> impl Iterator<Item = &'n Refused> {
        let of_policy = self.policies.iter().filter(move |narrowed| narrowed.id == policy);
        // The iterator must not borrow `policy`.
        let of_policy: Vec<&Refused> = of_policy.map(|narrowed| &narrowed.refused).collect();
        std::iter::once(&self.refused).chain(of_policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_with_stars_and_question_marks() {
        for (pattern, names, others) in [
            ("people", &["people", "PEOPLE"][..], &["peoples", "eople", ""][..]),
            ("log_*", &["log_", "LOG_2026", "log_*"], &["log", "blog_1"]),
            ("*log*", &["log", "catalog", "logs", "a log b"], &["lo", "l-o-g"]),
            ("a?c", &["abc", "a?c", "aéc"], &["ac", "abbc"]),
            ("*", &["", "x"], &[]),
            ("a*b*c", &["abc", "a1b2c", "abbbcc", "abcabc"], &["acb", "ab"]),
            ("**x", &["x", "xx"], &["xy"]),
            ("ä*", &["äb"], &["Äb"]),
        ] {
            let pattern = Pattern::new(pattern);
            assert!(names.iter().all(|name| pattern.matches(name)), "{pattern:?}");
            assert!(!others.iter().any(|name| pattern.matches(name)), "{pattern:?}");
        }
    }
}
