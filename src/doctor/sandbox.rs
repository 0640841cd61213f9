//! Whether workers are confined by the system: one is started on a file of its own and tries.
//!
//! It looks at no database of the user's.

use super::{Finding, State};
use crate::worker::selftest::{self, Tested};
use serde_json::{Value, json};

/// The findings.
pub(super) fn look() -> Vec<Finding> {
    let tested = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        runtime.block_on(async { Ok([selftest::run(false).await?, selftest::run(true).await?]) })
    });
    match tested {
        Ok([reads, writes]) => judge(&reads, &writes),
        Err(error) => {
            let text = format!("whether workers are confined cannot be found out: {error}");
            vec![Finding::new(State::Warning, "sandbox", text)]
        }
    }
}

fn judge(reads: &Tested, writes: &Tested) -> Vec<Finding> {
    let confined = &reads.confined;
    let value = json!({
        "landlock": confined.landlock,
        "seccomp": confined.seccomp,
        "lacks": confined.lacks,
        "reader": attempts(reads),
        "writer": attempts(writes),
    });
    let wrong: Vec<String> = [("reader", reads), ("writer", writes)]
        .into_iter()
        .flat_map(|(who, tested)| {
            tested
                .wrong()
                .into_iter()
                .map(move |attempt| format!("a {who} could{} {}", not(attempt.denied), attempt.what))
        })
        .collect();
    if !confined.lacks.is_empty() {
        let text = confined.lacks.join("; ");
        let mut finding = Finding::new(State::Note, "sandbox", text);
        if cfg!(target_os = "linux") {
            finding = finding.advise("policies and processes protect as ever; a kernel from 5.13 on with Landlock, and a container that lets it through, would add to that");
        }
        return vec![finding.with(value)];
    }
    if let [first, ..] = wrong.as_slice() {
        let text = format!("workers are not confined as they should be: {first}");
        return vec![Finding::new(State::Warning, "sandbox", text).with(value)];
    }
    let text = format!(
        "workers reach their database alone (Landlock {}, seccomp): {} attempts at anything else were denied",
        confined.landlock,
        [reads, writes].iter().flat_map(|tested| &tested.attempts).filter(|attempt| attempt.denied).count()
    );
    vec![Finding::ok("sandbox", text).with(value)]
}

fn not(denied: bool) -> &'static str {
    if denied { " not" } else { "" }
}

/// What was tried, and whether it was denied.
fn attempts(tested: &Tested) -> Value {
    tested.attempts.iter().map(|attempt| (attempt.what.clone(), Value::from(attempt.denied))).collect()
}
