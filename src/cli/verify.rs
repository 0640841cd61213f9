//! `indelible verify`: the chain's verdict for people and scripts. It mends nothing.

use super::{Program, output};
use crate::config::Settings;
use crate::error::{EXIT_BROKEN, EXIT_OK, StartError};

/// Prints the verdict; exit status 0 when intact, 3 when not.
pub(super) fn verify<P: Program>(
    program: &P,
    settings: &Settings,
    expect_head: Option<&str>,
) -> Result<u8, StartError> {
    let expect_head = expect_head.map(head).transpose()?;
    let verdict = program.verify(settings, expect_head.as_deref())?;
    output::print(&verdict.text)?;
    Ok(if verdict.intact { EXIT_OK } else { EXIT_BROKEN })
}

fn head(text: &str) -> Result<String, StartError> {
    let hash = text.trim().to_ascii_lowercase();
    if hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(hash);
    }
    Err(StartError::usage(format!("--expect-head `{text}`: must be a hash of 64 hex digits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expected_head_is_a_whole_hash() {
        let hash = "AB".repeat(32);
        assert_eq!(head(&hash), Ok("ab".repeat(32)));
        for text in ["", "abc", &"g".repeat(64), &"é".repeat(32)] {
            let error = head(text).unwrap_err();
            let expected = format!("--expect-head `{text}`: must be a hash of 64 hex digits");
            assert_eq!((error.message, error.exit), (expected, 2));
        }
    }
}
