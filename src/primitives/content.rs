//! Bytes as tools take and give them: UTF-8 text, or base64.

use crate::error::{ErrorCode, ToolError};
use crate::state::blobs::MOST_WRITTEN;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes as they are shown.
pub(super) struct Shown {
    /// "utf8" or "base64".
    pub encoding: &'static str,
    /// The text.
    pub content: String,
    /// How many of the bytes are shown: the end of a text that was cut may lack the half of a character.
    pub bytes: u64,
}

/// The bytes that an argument stands for.
///
/// # Errors
/// `INVALID_ARGUMENTS` for what is no base64, `TOO_LARGE`.
pub(super) fn taken(content: String, encoding: &str, instead: &str) -> Result<Vec<u8>, ToolError> {
    let bytes = if encoding == "base64" {
        let wrong = |_| ToolError::arguments("`content` must be base64 text, since `encoding` is base64");
        STANDARD.decode(content.as_bytes()).map_err(wrong)?
    } else {
        content.into_bytes()
    };
    if bytes.len() > MOST_WRITTEN {
        return Err(ToolError::new(
            ErrorCode::TooLarge,
            format!(
                "`content` has {} bytes, and one call writes at most {MOST_WRITTEN}; {instead}",
                bytes.len()
            ),
        ));
    }
    Ok(bytes)
}

/// Bytes of a content that is text or is not; `cut` where more of them follow.
pub(super) fn shown(bytes: Vec<u8>, text: bool, cut: bool) -> Shown {
    let size = bytes.len();
    let whole = match std::str::from_utf8(&bytes) {
        Ok(_) => Some(size),
        // Half a character at the end of what was cut.
        Err(error) if cut && error.error_len().is_none() => Some(error.valid_up_to()),
        Err(_) => None,
    };
    match whole.filter(|_| text) {
        Some(end) => {
            let mut bytes = bytes;
            bytes.truncate(end);
            let content = String::from_utf8_lossy(&bytes).into_owned();
            Shown { encoding: "utf8", content, bytes: u64::try_from(end).unwrap_or_default() }
        }
        None => Shown {
            encoding: "base64",
            content: STANDARD.encode(bytes),
            bytes: u64::try_from(size).unwrap_or_default(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_as_text_and_never_with_half_a_character() {
        let rows = [
            (b"abc".to_vec(), true, false, ("utf8", "abc", 3)),
            ("ž".into(), true, true, ("utf8", "ž", 2)),
            (b"a\xc5".to_vec(), true, true, ("utf8", "a", 1)),
            (b"a\xc5".to_vec(), true, false, ("base64", "YcU=", 2)),
            (b"\x00\xff".to_vec(), false, false, ("base64", "AP8=", 2)),
        ];
        for (bytes, text, cut, expected) in rows {
            let shown = shown(bytes, text, cut);
            assert_eq!((shown.encoding, shown.content.as_str(), shown.bytes), expected);
        }
    }

    #[test]
    fn bytes_come_as_base64_or_text() {
        assert_eq!(taken("AP8=".to_owned(), "base64", "").unwrap(), [0, 255]);
        assert_eq!(taken("AP8=".to_owned(), "utf8", "").unwrap(), b"AP8=");
        assert!(taken("?".to_owned(), "base64", "").is_err());
    }
}
