//! One mistake in a YAML file, as people and editors read it: `file:line:col: message`.
//!
//! It neither finds mistakes nor prints them.

use super::position::Position;
use std::fmt;

/// A mistake and where it stands. Sorts by file, then by place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// The file's name as the caller gave it.
    pub file: String,
    /// Where, counted from 1.
    pub position: Position,
    /// A lower-case fragment that names the thing and says what to do.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.position.line, self.position.column, self.message)
    }
}

/// `; did you mean `x`?` when a known name is near, else the known names in a row, else nothing.
#[must_use]
pub fn suggestion(given: &str, known: &[&str]) -> String {
    if let Some(near) = nearest(given, known) {
        return format!("; did you mean `{near}`?");
    }
    if known.is_empty() {
        return String::new();
    }
    format!("; known are {}", listed(known))
}

/// The known name that `given` most likely stands for: a few edits away, case aside.
#[must_use]
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    // Long input cannot be near a short name; this also bounds the work on hostile input.
    if given.len() > 100 {
        return None;
    }
    let given = given.to_lowercase();
    let best = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), *name))
        .min_by_key(|(distance, _)| *distance);
    best.filter(|(distance, name)| *distance <= 1 + name.chars().count() / 4).map(|(_, name)| name)
}

/// "`a`, `b` and `c`".
#[must_use]
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", most.join(", "))
        }
    }
}
