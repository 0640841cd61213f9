//! What of a call goes into the log: its parameters, and its row once it is over.

use super::{Call, Reply};
use crate::error::ToolError;
use serde_json::Value;

/// Parameters go into the log, shortened: they are part of what was done.
pub fn note_params(call: &Call<'_>, params: Option<&Value>) {
    const MOST: usize = 2000;
    let Some(params) = params.filter(|params| !params.is_null()) else { return };
    // As far as the log wants it and no further: one parameter may have 60 MB.
    let mut head = Head { bytes: Vec::new(), room: MOST };
    if serde_json::to_writer(&mut head, params).is_ok() {
        call.note("params", params.clone());
    } else {
        let (short, _) = crate::render::cap_text(String::from_utf8_lossy(&head.bytes).into_owned(), MOST);
        call.note("params_cut", short);
    }
}

/// A value as the log takes it: a text shortened, a list of texts that is longer in all as shortened JSON.
pub(super) fn bounded(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(super::shortened(&text)),
        Value::Array(items) => {
            let texts = items.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
            if texts + items.len() <= super::MAX_LOGGED_QUERY {
                return Value::Array(items);
            }
            Value::String(super::shortened(&Value::Array(items).to_string()))
        }
        other => other,
    }
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
