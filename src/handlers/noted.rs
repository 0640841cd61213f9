//! What of a call goes into the log: its parameters, and its row once it is over.

use super::{Call, Reply};
use crate::error::ToolError;
use crate::render::{boundary_before, cap_text};
use serde_json::Value;

/// Bytes of one argument that go into the log.
const MOST: usize = 2000;

/// Parameters go into the log, shortened: they are part of what was done.
pub fn note_params(call: &Call<'_>, params: Option<&Value>) {
    let Some(params) = params.filter(|params| !params.is_null()) else { return };
    // As far as the log wants it and no further: one parameter may have 60 MB.
    let mut head = Head { bytes: Vec::new(), room: MOST };
    if serde_json::to_writer(&mut head, params).is_ok() {
        call.note("params", params.clone());
    } else {
        let (short, _) = cap_text(String::from_utf8_lossy(&head.bytes).into_owned(), MOST);
        call.note("params_cut", short);
    }
}

/// An argument as the log takes it: a long text without its end, of a long list the beginning.
pub(super) fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(shortened_text(&text, MOST)),
        Value::Array(items) => {
            let (count, mut bytes) = (items.len(), 0);
            let mut kept: Vec<Value> = items
                .into_iter()
                .map(shortened)
                .take_while(|item| {
                    bytes += item.as_str().map_or(8, str::len) + 3;
                    bytes <= MOST
                })
                .collect();
            if kept.len() < count {
                kept.push(Value::String(format!("...[{count} in all]")));
            }
            Value::Array(kept)
        }
        other => other,
    }
}

/// At most `most` bytes of a text, and how many it has in all where some are left out.
pub(super) fn shortened_text(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.get(..boundary_before(text, most)).unwrap_or_default();
    format!("{head}...[{} bytes]", text.len())
}

/// Takes the first `room` bytes and refuses the rest.
struct Head {
    bytes: Vec<u8>,
    room: usize,
}

impl std::io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.room);
        self.bytes.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        self.room -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Call<'_> {
    /// The log has the digests now.
    pub(super) fn mark(&self) {
        let now = self.digests();
        let mut marked = self.core.marked();
        if marked.as_ref() != Some(&now) {
            *marked = Some(now);
        }
    }

    /// The digests of manifest and policy in force for this call.
    pub(super) fn digests(&self) -> (String, String) {
        (self.surface.manifest_sha256().to_owned(), self.policy_file().sha256.clone())
    }

    /// Puts the call's row into the log, unless it went with the change, and into the log file.
    pub fn finish(&self, result: &Result<Reply, ToolError>) {
        let recorded = self.notes().recorded.take();
        let row = match recorded {
            Some(row) => row,
            None => {
                let (rows, error) = match result {
                    Ok(reply) => (reply.rows, None),
                    Err(error) => (None, Some(error.message.as_str())),
                };
                let row = self.audit_row(rows, error);
                if let Some(store) = &self.core.store {
                    store.queue_audit(row.clone());
                    self.mark();
                }
                row
            }
        };
        if let Some(log) = &self.core.audit_log {
            log.write(&row);
        }
    }
}
