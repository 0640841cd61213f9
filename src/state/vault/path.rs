//! Whether a path lies under a prefix, whichever way a server reads it.
//!
//! Servers and the proxies before them differ: some decode `%2f`, some take `\` for `/`, drop `;parameters`, merge
//! empty parts, or decode twice. A path lies under a prefix when it does in every one of these readings.

use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;

/// Nobody decodes more often; what still changes then is refused.
const MOST_DECODINGS: usize = 5;

/// Whether the path (of a URL that was parsed, so without `.` and `..` in plain sight) lies under the prefix in
/// every reading. `/api` has `/api` and `/api/x` under it, and not `/apix`.
#[must_use]
pub(super) fn lies_under(path: &str, prefix: &str) -> bool {
    if prefix == "/" {
        return true;
    }
    readings(path).is_some_and(|readings| readings.iter().all(|reading| is_under(reading, prefix)))
}

fn is_under(path: &str, prefix: &str) -> bool {
    match path.strip_prefix(prefix) {
        Some(rest) => prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// Every reading; none where there is no end to decoding, or a reading is no text or has control characters.
fn readings(path: &str) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::from([path.to_owned()]);
    let mut text = path.to_owned();
    for _ in 0..MOST_DECODINGS {
        if text.chars().any(char::is_control) {
            return None;
        }
        for merge in [false, true] {
            for drop in [false, true] {
                found.insert(resolved(&text, merge, drop));
            }
        }
        let decoded = percent_decode_str(&text).decode_utf8().ok()?.into_owned();
        if decoded == text {
            return Some(found);
        }
        text = decoded;
    }
    None
}

/// The path without `.` and `..`; with empty parts merged, with what follows a `;` dropped.
fn resolved(path: &str, merge: bool, drop: bool) -> String {
    let path = path.replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    let mut last = "";
    for part in path.strip_prefix('/').unwrap_or(&path).split('/') {
        let part = if drop { part.split(';').next().unwrap_or_default() } else { part };
        last = part;
        match part {
            "" if merge => {}
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    // `/a/.` is the folder, and so is `/a/` with its empty parts merged.
    let folder = matches!(last, "." | "..") || (merge && last.is_empty());
    let end = if folder && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_under_a_prefix_in_every_reading_or_not_at_all() {
        let rows = [
            ("/api", "/api", true),
            ("/api/", "/api", true),
            ("/api/x", "/api", true),
            ("/api/x", "/api/", true),
            ("/api/", "/api/", true),
            ("/api", "/api/", false),
            ("/apix", "/api", false),
            ("/", "/api", false),
            ("/API/x", "/api", false),
            ("/x/api", "/api", false),
            ("//api/x", "/api", false),
            ("/api//x", "/api", true),
            ("/api/a%2fb", "/api", true),
            ("/api/projects/a%2Fb/c", "/api/projects", true),
            ("/api/%2e%2e/admin", "/api", false),
            ("/api/..%2fadmin", "/api", false),
            ("/api/%2e%2e%2fadmin", "/api", false),
            ("/api/..%5cadmin", "/api", false),
            ("/api/..\\admin", "/api", false),
            ("/api/x/..%2f..%2fadmin", "/api", false),
            ("/api/x/..%2fy", "/api", true),
            ("/api/%252e%252e%252fadmin", "/api", false),
            ("/api/%25252e%25252e/admin", "/api", false),
            ("/api/..;/admin", "/api", false),
            ("/api/..;a=b/admin", "/api", false),
            ("/api/x;a=b", "/api", true),
            ("/api;x/y", "/api", false),
            ("/api/%2e%2e;/admin", "/api", false),
            ("/api%2f..%2fadmin", "/api", false),
            ("/api%2fx", "/api", false),
            ("/%61pi/x", "/api", false),
            ("/api/x//..%2f..%2fadmin", "/api", false),
            ("/api/%00", "/api", false),
            ("/api/%0a", "/api", false),
            ("/api/%ff", "/api", false),
            ("/api/%2525252525252541", "/api", false),
            ("/api/100%25", "/api", true),
            ("/api/%", "/api", true),
            ("/anything/..%2f", "/", true),
        ];
        for (path, prefix, expected) in rows {
            assert_eq!(lies_under(path, prefix), expected, "{path} under {prefix}");
        }
    }
}
