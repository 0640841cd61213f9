//! Texts to be recalled: what happened, what is so, how it is done.
//!
//! Nothing is rewritten: what replaces a text is a text of its own, and the old one is no longer recalled. Whether two
//! texts are the same is a rule that can be tested, and no model decides it.

use super::Outcome;
use crate::error::ToolError;
use async_trait::async_trait;
use std::collections::BTreeSet;

/// The longest text, in bytes.
pub const LONGEST_TEXT: usize = 32 << 10;
/// The most tags of one memory.
pub const MOST_TAGS: usize = 20;
/// The longest tag, in bytes.
pub const LONGEST_TAG: usize = 64;
/// The largest metadata, in bytes of compact JSON.
pub const LARGEST_METADATA: usize = 8 << 10;
/// The longest query, in bytes.
pub const LONGEST_QUERY: usize = 4 << 10;
/// The most words of a query that count.
pub const MOST_WORDS: usize = 24;
/// The part of a query's weight that a text must hold to be recalled.
pub const GATE: f64 = 0.5;

/// How alike two vectors must be for the texts to say the same.
pub const SAME: f32 = 0.95;
/// How alike the vectors of a query and a text must be for the text to be recalled.
pub const NEAR: f32 = 0.25;

/// Turns texts into vectors that are the more alike the more the texts mean the same. The cosine of two of them says
/// how alike they are.
pub trait Embedder: Send + Sync {
    /// The model's name; vectors of two models have nothing to do with each other.
    fn model(&self) -> &str;

    /// A vector of length 1 for each text, in their order. Takes tens of milliseconds a text: not for an event loop.
    ///
    /// # Errors
    /// The model cannot be run.
    fn embed(&self, texts: &[String]) -> Outcome<Vec<Vec<f32>>>;
}

/// What a memory is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// What happened.
    Episodic,
    /// What is so.
    Semantic,
    /// How it is done.
    Procedural,
}

impl MemoryKind {
    /// Every kind.
    pub const ALL: &'static [MemoryKind] = &[Self::Episodic, Self::Semantic, Self::Procedural];

    /// Its name: `episodic`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Episodic => "episodic",
            Self::Semantic => "semantic",
            Self::Procedural => "procedural",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// A text to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    /// What it is about.
    pub kind: MemoryKind,
    /// The text.
    pub text: String,
    /// Its tags; a set.
    pub tags: BTreeSet<String>,
    /// Compact JSON of an object; none where there is none.
    pub metadata: Option<String>,
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Its id.
    pub id: String,
    /// Whether the same text, kind and tags were there already.
    pub deduplicated: bool,
}

/// What is sought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// The query.
    pub query: String,
    /// Of these kinds; all where it is empty.
    pub kinds: Vec<MemoryKind>,
    /// With all of these tags.
    pub tags: BTreeSet<String>,
    /// Memories at most.
    pub limit: usize,
}

/// A memory that was recalled.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub kind: MemoryKind,
    /// The text.
    pub text: String,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// Compact JSON of an object.
    pub metadata: Option<String>,
    /// How well it fits; only the order means something.
    pub score: f64,
}

/// What was recalled.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Whether meaning counted, beside words.
    pub hybrid: bool,
    /// The memories, the best first.
    pub memories: Vec<Recalled>,
}

/// What happened to a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The memory.
    pub id: String,
    /// "deleted", "superseded" or "remembered".
    pub action: &'static str,
}

/// A memory primitive.
#[async_trait]
pub trait Memory: Send + Sync {
    /// Remembers a text, unless the same one is there.
    async fn remember(&self, memory: NewMemory) -> Outcome<Remembered>;

    /// The memories that fit best, the best first.
    async fn recall(&self, sought: Sought) -> Outcome<Found>;

    /// Deletes a memory for good.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    async fn delete(&self, id: String) -> Outcome<Vec<Change>>;

    /// Puts a text in the place of another, which is kept and no longer recalled. Without tags it has the old ones.
    ///
    /// # Errors
    /// `NOT_FOUND`; also for a memory that was superseded.
    async fn supersede(
        &self,
        id: String,
        text: String,
        tags: Option<BTreeSet<String>>,
    ) -> Outcome<Vec<Change>>;

    /// Supersedes every memory that says the same as a later one of the same kind and with the same tags: equal but for
    /// case, spaces and punctuation, or, where there is a model, with vectors at least as alike as [`SAME`].
    async fn consolidate(&self) -> Outcome<Vec<Change>>;
}

/// A text as it is compared when it is remembered: spaces collapsed.
#[must_use]
pub fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as it is compared when memories are consolidated: letters and digits alone, in lower case.
#[must_use]
pub fn essence(text: &str) -> String {
    words(text).join(" ")
}

/// The words of a text, in lower case.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Words that stand in most texts and say nothing about what is sought.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "did", "do", "does", "for", "from", "has", "have",
    "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or", "our", "that", "the", "this", "to",
    "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "you", "your",
];

/// The words of a query that count, each once: all of them where none else is left.
#[must_use]
pub fn query_words(query: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all: Vec<String> = words(query).into_iter().filter(|word| seen.insert(word.clone())).collect();
    let telling = all.iter().filter(|word| !STOP_WORDS.contains(&word.as_str()));
    let telling: Vec<String> = telling.take(MOST_WORDS).cloned().collect();
    if telling.is_empty() { all.into_iter().take(MOST_WORDS).collect() } else { telling }
}

/// A text that may be remembered.
///
/// # Errors
/// `INVALID_ARGUMENTS` or `TOO_LARGE` with the rule.
pub fn check_text(text: &str) -> Outcome<()> {
    if text.trim().is_empty() {
        return Err(ToolError::arguments("`text` must say something"));
    }
    if text.len() > LONGEST_TEXT {
        return Err(ToolError::new(
            crate::error::ErrorCode::TooLarge,
            format!(
                "`text` has {} bytes, and a memory at most {LONGEST_TEXT}; remember its parts, or what matters of it",
                text.len()
            ),
        ));
    }
    Ok(())
}

/// Tags as a set.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule.
pub fn check_tags(tags: Vec<String>) -> Outcome<BTreeSet<String>> {
    let tags: BTreeSet<String> = tags.into_iter().collect();
    let good = |tag: &String| !tag.trim().is_empty() && tag.len() <= LONGEST_TAG;
    if tags.len() > MOST_TAGS || !tags.iter().all(good) {
        return Err(ToolError::arguments(format!(
            "`tags` must be at most {MOST_TAGS} texts of 1 to {LONGEST_TAG} bytes"
        )));
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_its_telling_words() {
        let rows: [(&str, &[&str]); 5] = [
            ("What is the package manager?", &["package", "manager"]),
            ("the the THE", &["the"]),
            ("c++ \"quote NOT ( *", &["c", "quote", "not"]),
            ("", &[]),
            ("Žluťoučký kůň", &["žluťoučký", "kůň"]),
        ];
        for (query, expected) in rows {
            assert_eq!(query_words(query), expected, "{query}");
        }
    }

    #[test]
    fn texts_are_the_same_but_for_what_says_nothing() {
        assert_eq!(normal(" a\n b  c "), "a b c");
        assert_eq!(essence("Use  PNPM, please!"), essence("use pnpm please"));
        assert_ne!(essence("use pnpm"), essence("use bun"));
    }
}
