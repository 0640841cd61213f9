//! The names of snapshots: which database, when, by whom; and which of them rotation may remove.
//!
//! Pure. A name is this database's only if it parses to the last byte: files of another database whose
//! name begins alike are never touched. In a folder that other databases may use as well, the name also
//! says which file of that name was copied.

use super::SnapshotKind;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What the names of a database's snapshots begin with: its file name, and in a folder of the user's
/// choosing (`shared`) twelve hex digits of the SHA-256 of its real path, since `a/memory.db` and
/// `b/memory.db` may both put their snapshots there.
pub(in crate::sqlite) fn label(database: &Path, real: &Path, shared: bool) -> Option<OsString> {
    let mut label = database.file_name()?.to_os_string();
    if shared {
        let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
        let digits = crate::render::hex(digest.get(..6).unwrap_or_default());
        label.push(format!(".{digits}"));
    }
    Some(label)
}

/// What a snapshot's name says, in the order of its making.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sqlite) struct Name {
    /// `20261130T090102.123Z`
    pub(in crate::sqlite) stamp: String,
    /// 0, or the number that kept it apart from another of the same millisecond.
    pub(in crate::sqlite) counter: u32,
    pub(in crate::sqlite) kind: SnapshotKind,
}

impl Name {
    pub(in crate::sqlite) fn new(moment: jiff::Timestamp, counter: u32, kind: SnapshotKind) -> Self {
        Self { stamp: moment.strftime("%Y%m%dT%H%M%S%.3fZ").to_string(), counter, kind }
    }

    /// `memory.db.20261130T090102.123Z.auto.db`, with a counter `memory.db.20261130T090102.123Z-2.auto.db`.
    pub(in crate::sqlite) fn file_name(&self, database: &OsStr) -> OsString {
        let mut name = database.to_os_string();
        name.push(format!(".{}", self.stamp));
        if self.counter > 0 {
            name.push(format!("-{}", self.counter));
        }
        name.push(format!(".{}.db", self.kind.as_str()));
        name
    }

    /// The moment as people read it: `2026-11-30T09:01:02.123Z`.
    pub(in crate::sqlite) fn time(&self) -> String {
        let part = |range: std::ops::Range<usize>| self.stamp.get(range).unwrap_or_default();
        format!(
            "{}-{}-{}T{}:{}:{}",
            part(0..4),
            part(4..6),
            part(6..8),
            part(9..11),
            part(11..13),
            part(13..20)
        )
    }

    /// The name, if `file` is a snapshot of `database`.
    pub(in crate::sqlite) fn parse(database: &OsStr, file: &[u8]) -> Option<Self> {
        let rest = file.strip_prefix(database.as_encoded_bytes())?.strip_prefix(b".")?;
        let rest = std::str::from_utf8(rest).ok()?.strip_suffix(".db")?;
        let (rest, kind) = match (rest.strip_suffix(".auto"), rest.strip_suffix(".manual")) {
            (Some(rest), _) => (rest, SnapshotKind::Auto),
            (_, Some(rest)) => (rest, SnapshotKind::Manual),
            _ => return None,
        };
        let (stamp, counter) = match rest.split_once('-') {
            None => (rest, 0),
            Some((stamp, counter)) if counter.bytes().all(|digit| digit.is_ascii_digit()) => {
                (stamp, counter.parse().ok()?)
            }
            Some(_) => return None,
        };
        let shape = b"00000000T000000.000Z";
        let fits = stamp.len() == shape.len()
            && stamp.bytes().zip(shape).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                other => byte == *other,
            });
        fits.then(|| Self { stamp: stamp.to_owned(), counter, kind })
    }
}

/// The name a snapshot is written under before it is whole: `.<name>.tmp-<random>`.
pub(in crate::sqlite) fn temporary(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".tmp-{}", uuid::Uuid::new_v4().simple()));
    temporary
}

/// Whether `file` is a temporary file of a snapshot of `database`, or SQLite's companion of one.
pub(in crate::sqlite) fn is_temporary(database: &OsStr, file: &[u8]) -> bool {
    let Some(rest) = file.strip_prefix(b".") else { return false };
    let rest =
        [&b"-journal"[..], b"-wal", b"-shm"].iter().find_map(|end| rest.strip_suffix(*end)).unwrap_or(rest);
    let Some((name, random)) = rest.len().checked_sub(32).and_then(|at| rest.split_at_checked(at)) else {
        return false;
    };
    random.iter().all(u8::is_ascii_hexdigit)
        && name.strip_suffix(b".tmp-").is_some_and(|name| Name::parse(database, name).is_some())
}

/// `path` with something behind its last character: `memory.db` and `-wal`.
pub(in crate::sqlite) fn with_ending(path: &OsStr, ending: &str) -> OsString {
    let mut name = path.to_os_string();
    name.push(ending);
    name
}

/// Of the snapshots in a folder, those that `keep` newest of a kind leave over; `written` stays, whatever
/// its name says about its age.
pub(in crate::sqlite) fn surplus(
    database: &OsStr,
    kind: SnapshotKind,
    keep: usize,
    written: &OsStr,
    files: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut others: Vec<(Name, OsString)> = files
        .into_iter()
        .filter(|file| file != written)
        .filter_map(|file| Some((Name::parse(database, file.as_encoded_bytes())?, file)))
        .filter(|(name, _)| name.kind == kind)
        .collect();
    others.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    others.into_iter().skip(keep.max(1) - 1).map(|(_, file)| file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_database_moment_and_kind_and_parses_back() {
        let moment: jiff::Timestamp = "2026-11-30T09:01:02.123456Z".parse().unwrap();
        for (counter, kind, expected) in [
            (0, SnapshotKind::Auto, "a b?.db.20261130T090102.123Z.auto.db"),
            (12, SnapshotKind::Manual, "a b?.db.20261130T090102.123Z-12.manual.db"),
        ] {
            let name = Name::new(moment, counter, kind);
            let file = name.file_name(OsStr::new("a b?.db"));
            assert_eq!(file, expected);
            assert_eq!(Name::parse(OsStr::new("a b?.db"), file.as_encoded_bytes()), Some(name));
        }
        let whole: jiff::Timestamp = "2026-11-30T09:01:02Z".parse().unwrap();
        assert_eq!(Name::new(whole, 0, SnapshotKind::Auto).stamp, "20261130T090102.000Z");
    }

    #[test]
    fn databases_of_one_name_keep_apart_in_a_shared_folder() {
        let label = |path: &str, shared| label(Path::new(path), Path::new(path), shared).unwrap();
        assert_eq!(label("/a/memory.db", false), "memory.db");
        let (a, b) = (label("/a/memory.db", true), label("/b/memory.db", true));
        assert_eq!(a, "memory.db.cd6b6b509645");
        assert_ne!(a, b);
        let of_a = Name::new(jiff::Timestamp::UNIX_EPOCH, 0, SnapshotKind::Auto).file_name(&a);
        assert!(Name::parse(&a, of_a.as_encoded_bytes()).is_some());
        for other in [b.as_os_str(), OsStr::new("memory.db")] {
            assert_eq!(Name::parse(other, of_a.as_encoded_bytes()), None);
        }
    }

    #[test]
    fn only_this_database_s_own_names_parse() {
        for file in [
            "memory.db",
            "memory.db.old.20261130T090102.123Z.auto.db",
            "xmemory.db.20261130T090102.123Z.auto.db",
            "memory.20261130T090102.123Z.auto.db",
            "memory.db.20261130T090102.123Z.auto.db.20261130T090102.123Z.auto.db",
            "memory.db.20261130T090102.123Z.auto.db-wal",
            "memory.db.20261130T090102Z.auto.db",
            "memory.db.20261130T090102.123Z-x.auto.db",
            "memory.db.20261130T090102.123Z-.auto.db",
            "memory.db.20261130T090102.123Z.other.db",
            "Memory.db.20261130T090102.123Z.auto.db",
        ] {
            assert_eq!(Name::parse(OsStr::new("memory.db"), file.as_bytes()), None, "{file}");
        }
    }

    #[test]
    fn rotation_keeps_the_newest_of_the_kind_and_the_one_just_written() {
        let file =
            |second: u32, kind: &str| OsString::from(format!("m.db.20261130T0900{second:02}.000Z.{kind}.db"));
        let mut files: Vec<_> = (1..=5).flat_map(|s| [file(s, "auto"), file(s, "manual")]).collect();
        files.push("m.db.20261130T090005.000Z-2.auto.db".into());
        files.push("m.db.x.20261130T090001.000Z.auto.db".into());
        for (keep, written, expected) in [
            (6, file(5, "auto"), vec![]),
            (2, file(5, "auto"), vec![file(4, "auto"), file(3, "auto"), file(2, "auto"), file(1, "auto")]),
            // The clock was set back: the newest by name are others.
            (2, file(1, "auto"), vec![file(5, "auto"), file(4, "auto"), file(3, "auto"), file(2, "auto")]),
            (
                0,
                file(1, "auto"),
                vec![
                    "m.db.20261130T090005.000Z-2.auto.db".into(),
                    file(5, "auto"),
                    file(4, "auto"),
                    file(3, "auto"),
                    file(2, "auto"),
                ],
            ),
        ] {
            assert_eq!(
                surplus(OsStr::new("m.db"), SnapshotKind::Auto, keep, &written, files.clone()),
                expected
            );
        }
    }

    #[test]
    fn temporary_names_are_known_again() {
        let name =
            Name::new(jiff::Timestamp::UNIX_EPOCH, 0, SnapshotKind::Auto).file_name(OsStr::new("m.db"));
        let temporary = temporary(&name);
        for (database, file, expected) in [
            ("m.db", temporary.clone(), true),
            ("m.db", with_ending(&temporary, "-journal"), true),
            ("other.db", temporary, false),
            ("m.db", name, false),
            ("m.db", OsString::from(".m.db.tmp-x"), false),
        ] {
            assert_eq!(is_temporary(OsStr::new(database), file.as_encoded_bytes()), expected, "{file:?}");
        }
    }
}
