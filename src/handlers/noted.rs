//! What of a call's parameters goes into the log.

use super::Call;
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
