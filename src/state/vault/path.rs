//! Whether a path lies under a prefix, whichever way a server reads it.
//!
//! Servers and the proxies before them differ: some decode `%2f`, some take `\` for `/`, drop `;parameters`, merge
//! empty parts, or decode twice. A path lies under a prefix when it does in every one of these readings.

use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;

/// Nobody decodes more often; what still changes then is refused.
const MOST_DECODINGS: usize = 5;
/// A path that can be read in more ways is refused.
const MOST_READINGS: usize = 200;

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

/// Every reading; none where there are too many, or one is no text or has control characters. A server may decode,
/// resolve, and hand the rest to one that does so again, so each round goes on from all readings of the one before.
fn readings(path: &str) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::from([path.to_owned()]);
    let mut fresh = vec![path.to_owned()];
    for _ in 0..MOST_DECODINGS {
        let mut next = Vec::new();
        for text in fresh {
            if text.chars().any(char::is_control) {
                return None;
            }
            let resolved = (0..8).map(|how| resolved(&text, how & 1 > 0, how & 2 > 0, how & 4 > 0));
            for reading in resolved.chain([text.clone()]) {
                let decoded = percent_decode_str(&reading).decode_utf8().ok()?.into_owned();
                if decoded != reading && !found.contains(&decoded) {
                    next.push(decoded.clone());
                    found.insert(decoded);
                }
                found.insert(reading);
            }
        }
        if next.is_empty() {
            return Some(found);
        }
        if found.len() > MOST_READINGS {
            return None;
        }
        fresh = next;
    }
    None
}

/// The path without `.` and `..`; with empty parts merged, with what follows a `;` dropped, with `\` as `/`.
fn resolved(path: &str, merge: bool, drop: bool, backslash: bool) -> String {
    let path = if backslash { path.replace('\\', "/") } else { path.to_owned() };
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
    use proptest::prelude::*;

    /// What a server, or one of several in a row, may do with a path before it looks at it.
    #[derive(Clone, Copy, Debug)]
    struct Stage {
        decodes: bool,
        backslash: bool,
        drops: bool,
        merges: bool,
        resolves: bool,
    }

    fn seen(path: &str, stages: &[Stage]) -> String {
        let mut path = path.to_owned();
        for stage in stages {
            if stage.decodes {
                path = percent_decode_str(&path).decode_utf8_lossy().into_owned();
            }
            if stage.backslash {
                path = path.replace('\\', "/");
            }
            if stage.drops {
                let parts = path.split('/').map(|part| part.split(';').next().unwrap());
                path = parts.collect::<Vec<_>>().join("/");
            }
            while stage.merges && path.contains("//") {
                path = path.replace("//", "/");
            }
            if stage.resolves {
                let mut kept: Vec<&str> = Vec::new();
                for part in path.split('/').skip(1) {
                    match part {
                        "." => {}
                        ".." => drop(kept.pop()),
                        part => kept.push(part),
                    }
                }
                path = format!("/{}", kept.join("/"));
            }
        }
        path
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn no_row_of_servers_reads_an_allowed_path_elsewhere(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "/", "/", "/", "api", "x", "..", ".", "%2e", "%2e%2e", "%2f", "%5c", "\\", ";", ";a=b", "%3b", "%252e",
                    "%252f", "%25", "%252e%252e", "%255c", "/api/", "//",
                ]),
                0..10,
            ),
            stages in proptest::collection::vec(
                (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
                    |(decodes, backslash, drops, merges, resolves)| Stage { decodes, backslash, drops, merges, resolves }
                ),
                1..4,
            ),
        ) {
            let url = url::Url::parse(&format!("https://h.example/api/{}", parts.concat())).unwrap();
            let last = Stage { decodes: false, resolves: true, ..*stages.last().unwrap() };
            let seen = seen(url.path(), &[stages, vec![last]].concat());
            if lies_under(url.path(), "/api") {
                prop_assert!(seen == "/api" || seen.starts_with("/api/"), "{} is read as {seen}", url.path());
            }
        }
    }

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
