//! The first hundred bytes of a database file: what the file says of itself before SQLite is asked.
//!
//! The layout is that of <https://sqlite.org/fileformat2.html#the_database_header>. It reads the file as any other
//! program would; no connection to it may be open in this process, whose locks closing the file would drop.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether the file is in WAL mode; else it is in rollback mode.
    pub wal: bool,
}

/// The header, or none if the file is empty or begins like no database.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> std::io::Result<Option<Header>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(100).read_to_end(&mut bytes)?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> Option<Header> {
    const READ_VERSION: usize = 19;
    if bytes.len() < 100 || !bytes.starts_with(b"SQLite format 3\0") {
        return None;
    }
    Some(Header { wal: bytes.get(READ_VERSION) == Some(&2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_mode_stands_in_the_header() {
        let mut bytes = b"SQLite format 3\0\x10\x00\x02\x02".to_vec();
        assert_eq!(parse(&bytes), None, "too short");
        bytes.resize(100, 0);
        assert_eq!(parse(&bytes), Some(Header { wal: true }));
        bytes[19] = 1;
        assert_eq!(parse(&bytes), Some(Header { wal: false }));
        bytes[0] = b'X';
        assert_eq!(parse(&bytes), None);
    }
}
