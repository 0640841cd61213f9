//! Asking a person before something is done: the question, what came of it, and who can be asked.
//!
//! Plain types. They know no protocol and no terminal (`server/` and `cli/` have those), and not what is
//! asked about (`handlers/` has that).

use futures::future::BoxFuture;
use std::time::Duration;

/// How long a person may take for an answer.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Whether this very thing may be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What the person reads; several lines.
    pub text: String,
    /// What the answer holds for: a digest of everything that the answer depends on. Two questions with
    /// the same subject are the same question.
    pub subject: String,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The person agreed.
    Accepted,
    /// The person said no, or sent the form without agreeing.
    Declined,
    /// The person closed the form, or the call itself was cancelled.
    Cancelled,
    /// There was no answer in time.
    Expired,
    /// Nobody could be asked; why, as words that can follow a colon.
    Unsupported(String),
    /// The question goes out as the result of this call, and the answer comes with another.
    Later,
}

/// Somebody who can put a question to a person.
pub trait Confirmer: Send + Sync {
    /// Puts the question and waits for what comes of it, at most about [`PATIENCE`]. The caller holds no
    /// lock meanwhile. An answer is given once: asked again, the person is asked again.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said>;

    /// The answer to this question, if the call came with it. It is given once.
    fn at_hand(&self, _: &Question) -> Option<Said> {
        None
    }

    /// How many questions came before in the same matter, in calls that ended with [`Said::Later`].
    fn asked_before(&self) -> u32 {
        0
    }
}
