//! The list of mistakes in one file while its checks run.
//!
//! It knows where things stand and no rule of its own.

use super::diagnostic::{Diagnostic, suggestion};
use super::position::{Path, Positions};
use std::collections::HashMap;

/// Gathers the diagnostics of one file.
#[derive(Debug)]
pub struct Report<'a> {
    file: &'a str,
    positions: &'a Positions,
    /// The mistakes so far, in the order of finding.
    pub diagnostics: Vec<Diagnostic>,
}

impl<'a> Report<'a> {
    /// An empty list for `file`.
    #[must_use]
    pub fn new(file: &'a str, positions: &'a Positions) -> Self {
        Self { file, positions, diagnostics: Vec::new() }
    }

    /// A mistake in the value at `path`.
    pub fn value(&mut self, path: &Path, message: impl Into<String>) {
        let position = self.positions.value(path);
        self.diagnostics.push(Diagnostic { file: self.file.to_owned(), position, message: message.into() });
    }

    /// A mistake about the whole entry whose key is at `path`.
    pub fn key(&mut self, path: &Path, message: impl Into<String>) {
        let position = self.positions.key(path);
        self.diagnostics.push(Diagnostic { file: self.file.to_owned(), position, message: message.into() });
    }

    /// The text under `key`, trimmed; a diagnostic where it is missing or blank. `what` names the entry.
    pub fn text(&mut self, given: Option<&String>, path: &Path, key: &str, what: &str) -> String {
        match given.map(|text| text.trim()) {
            Some("") => {
                self.value(&path.key(key), format!("{what} has an empty `{key}`"));
                String::new()
            }
            Some(text) => text.to_owned(),
            None => {
                self.value(path, format!("{what} has no `{key}`"));
                String::new()
            }
        }
    }

    /// The value under `key`; a diagnostic where it is missing.
    pub fn given<T: Copy + Default>(&mut self, given: Option<T>, path: &Path, key: &str, what: &str) -> T {
        if given.is_none() {
            self.value(path, format!("{what} has no `{key}`"));
        }
        given.unwrap_or_default()
    }

    /// One of `choices` by its name; a diagnostic where it is missing or none of them.
    pub fn choice<T: Copy>(
        &mut self,
        given: Option<&String>,
        path: &Path,
        key: &str,
        what: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let name = given?.trim();
        if let Some((_, choice)) = choices.iter().find(|(known, _)| *known == name) {
            return Some(*choice);
        }
        let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
        self.value(
            &path.key(key),
            format!("{what} has an unknown `{key}`: `{name}`{}", suggestion(name, &known)),
        );
        None
    }

    /// Like [`Report::choice`], and missing is a mistake too.
    pub fn must_choose<T: Copy>(
        &mut self,
        given: Option<&String>,
        path: &Path,
        key: &str,
        what: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        if given.is_none() {
            self.value(path, format!("{what} has no `{key}`"));
        }
        self.choice(given, path, key, what, choices)
    }

    /// A diagnostic for every name that was there before. `what` is the kind of thing: "tool id".
    pub fn unique<'n>(&mut self, what: &str, names: impl Iterator<Item = (&'n str, Path)>) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (name, path) in names {
            if name.is_empty() {
                continue;
            }
            let line = self.positions.value(&path).line;
            if let Some(first) = seen.get(name) {
                self.value(&path, format!("{what} `{name}` is given twice, first in line {first}"));
            } else {
                seen.insert(name, line);
            }
        }
    }
}

/// Whether `name` is a lower-case identifier that generated Rust may use as it is.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|c| c.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether Rust keeps this word for itself.
#[must_use]
pub fn is_keyword(name: &str) -> bool {
    // https://doc.rust-lang.org/reference/keywords.html, strict and reserved, edition 2024
    const KEYWORDS: &[&str] = &[
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
        "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
        "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self",
        "static", "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
        "virtual", "where", "while", "yield",
    ];
    KEYWORDS.contains(&name)
}
