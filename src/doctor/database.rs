//! What SQLite found in the file, and what it means for a server.
//!
//! Pure.

use super::{Finding, State};
use crate::clients::quoted_path;
use crate::config::Settings;
use crate::sqlite::checkup::{Checkup, Log, Schema};
use crate::sqlite::copy::Integrity;
use serde_json::json;

/// Events behind the newest checkpoint that are worth a word.
const MANY_UNPINNED: i64 = 100;

/// The findings.
pub(super) fn judge(found: &Checkup, settings: &Settings) -> Vec<Finding> {
    let mut findings =
        vec![journal_mode(found, settings), pages(found), encoding(found), application_id(found)];
    findings.push(integrity(&found.integrity));
    match &found.schema {
        Ok(schema) => findings.extend(tables(schema, settings)),
        Err(error) => findings.push(Finding::new(
            State::Problem,
            "tables",
            format!("the schema cannot be read: {error}"),
        )),
    }
    findings.extend(found.log.as_ref().map(log));
    match &found.chain {
        None => {}
        Some(Err(error)) => findings.push(Finding::new(State::Problem, "chain", error.clone())),
        Some(Ok(verdict)) if verdict.ok => {
            findings.push(Finding::ok("chain", verdict.to_string()).with(verdict.to_json()));
            findings.extend(unpinned(verdict.head_id, verdict.pinned_through, settings));
        }
        Some(Ok(verdict)) => {
            let advice = "somebody changed the file past the server; compare it with a snapshot, and see README, What the chain proves";
            findings.push(
                Finding::new(State::Problem, "chain", verdict.to_string())
                    .advise(advice)
                    .with(verdict.to_json()),
            );
        }
    }
    if found.disturbed {
        let text = "the file was written while it was looked at, so what is said above may be wrong";
        findings.push(Finding::new(State::Warning, "database", text).advise("run doctor again"));
    }
    findings
}

fn journal_mode(found: &Checkup, settings: &Settings) -> Finding {
    if found.wal {
        return Finding::ok("journal mode", "WAL: readers and writers do not wait for each other")
            .with("wal");
    }
    if settings.read_only {
        return Finding::ok("journal mode", "rollback").with("rollback");
    }
    let text = "rollback: a writer waits for every reader, and readers for a writer";
    let advice = format!(
        "end the clients, then sqlite3 {} 'PRAGMA journal_mode=WAL' (on a local disk; the server leaves the mode of an existing file alone)",
        quoted_path(&settings.db)
    );
    Finding::new(State::Note, "journal mode", text).advise(advice).with("rollback")
}

fn pages(found: &Checkup) -> Finding {
    let Checkup { page_size, pages, free_pages, .. } = found;
    let value = json!({"page_size": page_size, "pages": pages, "free_pages": free_pages});
    let text = format!("{pages} of {page_size} bytes, {free_pages} of them free");
    let finding = if *free_pages > 1000 && *free_pages > pages / 2 {
        Finding::new(State::Note, "pages", text).advise(format!(
            "to give the space back, end the clients, then VACUUM with sqlite3 ({} would be left)",
            pages - free_pages
        ))
    } else {
        Finding::ok("pages", text)
    };
    finding.with(value)
}

fn encoding(found: &Checkup) -> Finding {
    let finding = match found.encoding.as_str() {
        "UTF-8" => Finding::ok("encoding", "UTF-8"),
        other => Finding::new(State::Note, "encoding", format!("{other}: texts are converted each time")),
    };
    finding.with(found.encoding.as_str())
}

fn application_id(found: &Checkup) -> Finding {
    let (id, version) = (found.application_id, found.user_version);
    let text = match id {
        0 => "0: no program has claimed the file".to_owned(),
        id => format!("{id} (0x{:08x}): another program's mark, which the server leaves alone", id as u32),
    };
    let state = if id == 0 { State::Ok } else { State::Note };
    Finding::new(state, "application", text).with(json!({"application_id": id, "user_version": version}))
}

fn integrity(found: &Result<Integrity, String>) -> Finding {
    let advice = "keep a copy of the file, then restore a snapshot, or recover it with sqlite3 .recover";
    match found {
        Err(error) => {
            Finding::new(State::Problem, "integrity", format!("it cannot be checked: {error}")).advise(advice)
        }
        Ok(Integrity { damage: Some(damage), .. }) => {
            Finding::new(State::Problem, "integrity", damage.clone()).advise(advice).with("damaged")
        }
        Ok(Integrity { content: Some(content), .. }) => {
            Finding::new(State::Warning, "integrity", content.clone())
                .advise("the pages are sound; correct the rows, or rebuild the search index")
                .with("content")
        }
        Ok(_) => Finding::ok("integrity", "quick_check finds nothing").with("ok"),
    }
}

fn tables(schema: &Schema, settings: &Settings) -> Vec<Finding> {
    let Schema { expected, missing, dropped, foreign, unhashed_checkpoints } = schema;
    let value = json!({"expected": expected, "missing": missing, "dropped": dropped, "foreign": foreign});
    if !foreign.is_empty() {
        // A server that only reads does without them, and tells nobody that they are its own.
        let state = if settings.read_only { State::Warning } else { State::Problem };
        let one = |what: &String| {
            Finding::new(state, "tables", what.clone())
                .advise("drop or rename it, or serve another file")
                .with(value.clone())
        };
        return foreign.iter().map(one).collect();
    }
    let mut findings = Vec::new();
    if !dropped.is_empty() {
        let text = format!("somebody has dropped {}: rows could be changed meanwhile", dropped.join(", "));
        findings.push(
            Finding::new(State::Warning, "tables", text)
                .advise("the next start makes them again; look at the chain below")
                .with(value.clone()),
        );
    }
    if *unhashed_checkpoints {
        let text = "memory_checkpoints is as mcp-sqlite-memory made it, without hashes";
        findings.push(Finding::new(State::Note, "tables", text).advise("the next start adds and fills them"));
    }
    findings.push(
        match missing.len() {
            0 => Finding::ok("tables", format!("all {expected} of the server's tables, triggers and views")),
            _ if settings.read_only => {
                Finding::ok("tables", "some of the server's own are not there, and reading does without")
            }
            all if all == *expected => {
                Finding::new(State::Note, "tables", "none of the server's own; the first start makes them")
            }
            _ => Finding::new(State::Note, "tables", format!("not there yet: {}", missing.join(", ")))
                .advise("the next start makes them"),
        }
        .with(value),
    );
    findings
}

fn log(found: &Result<Log, String>) -> Finding {
    match found {
        Err(error) => Finding::new(State::Problem, "log", format!("query_log cannot be read: {error}")),
        Ok(Log { rows, failed, newest }) => {
            let newest =
                newest.as_ref().map(|moment| format!(", the newest at {moment}")).unwrap_or_default();
            let text = format!("{rows} calls in query_log, {failed} of them failed{newest}");
            Finding::ok("log", text).with(json!({"rows": rows, "failed": failed}))
        }
    }
}

fn unpinned(head: i64, pinned: i64, settings: &Settings) -> Option<Finding> {
    let behind = head - pinned;
    if behind <= MANY_UNPINNED || settings.read_only {
        return None;
    }
    let text = format!(
        "{behind} events are behind the last one that a checkpoint names, and could be cut off without a trace"
    );
    Some(Finding::new(State::Note, "checkpoints", text).advise("have a checkpoint written").with(behind))
}
