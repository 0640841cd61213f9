//! From YAML text to a raw value, with every unknown and repeated key as a diagnostic.
//!
//! Syntax and type errors stop at the first. What the values mean is checked elsewhere.

use super::diagnostic::{Diagnostic, suggestion};
use super::position::{Path, Position, Positions, Step, TOP, scan};
use serde::de::DeserializeOwned;

/// A text as parsed.
#[derive(Debug)]
pub struct Loaded<T> {
    /// The value, unless a syntax or type error is among the diagnostics.
    pub raw: Option<T>,
    /// Where its nodes stand.
    pub positions: Positions,
    /// What is wrong so far.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses `text`; `keys` names the known keys of the map at a path.
pub fn load<T: DeserializeOwned>(
    file: &str,
    text: &str,
    keys: fn(&Path) -> &'static [&'static str],
) -> Loaded<T> {
    let scan = scan(text);
    let say = |position: Position, message: String| Diagnostic { file: file.to_owned(), position, message };
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    if let Some((position, message)) = scan.error {
        diagnostics.push(say(position, format!("not YAML: {message}")));
        return Loaded { raw: None, positions: scan.positions, diagnostics };
    }
    for twice in &scan.duplicates {
        let message = format!("key `{}` is given twice, first in line {}", twice.key, twice.first.line);
        diagnostics.push(say(twice.again, message));
    }
    let mut unknown: Vec<Path> = Vec::new();
    let mut parsed: Result<T, serde_yaml::Error> =
        serde_ignored::deserialize(serde_yaml::Deserializer::from_str(text), |path| {
            unknown.push(steps(&path))
        });
    if !scan.duplicates.is_empty() && parsed.is_err() {
        // A key given twice ends serde's parse of a struct; with the last one taken, the checks can go on.
        unknown.clear();
        parsed = serde_yaml::from_str::<serde_json::Value>(text).and_then(|value| {
            serde_ignored::deserialize(value, |path| unknown.push(steps(&path)))
                .map_err(serde::de::Error::custom)
        });
    }
    for path in unknown {
        let mut parent = path.clone();
        if let Some(Step::Key(key)) = parent.0.pop() {
            let message = format!("unknown key `{key}`{}", suggestion(&key, keys(&parent)));
            diagnostics.push(say(scan.positions.key(&path), message));
        }
    }
    let raw = match parsed {
        Ok(raw) => Some(raw),
        // Without a place it comes from the second parse, and the repeated key is to be mended first.
        Err(error) if error.location().is_none() && !scan.duplicates.is_empty() => None,
        Err(error) => {
            let position =
                error.location().map_or(TOP, |place| Position { line: place.line(), column: place.column() });
            diagnostics.push(say(position, without_location(&error.to_string())));
            None
        }
    };
    Loaded { raw, positions: scan.positions, diagnostics }
}

/// The parser's words without its own "at line L column C"; the diagnostic says that already.
fn without_location(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(words, _)| words).to_owned()
}

fn steps(path: &serde_ignored::Path<'_>) -> Path {
    use serde_ignored::Path as Ignored;
    match path {
        Ignored::Root => Path::root(),
        Ignored::Seq { parent, index } => steps(parent).index(*index),
        Ignored::Map { parent, key } => steps(parent).key(key),
        Ignored::Some { parent } | Ignored::NewtypeStruct { parent } | Ignored::NewtypeVariant { parent } => {
            steps(parent)
        }
    }
}
