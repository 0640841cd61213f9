//! Bytes that are not what they were: flipped bits, cut ends, pages in each other's place.

use crate::dice::Dice;
use crate::support::Bench;
use crate::{Way, bytes, from_environment, laid, survive};

/// A table of each kind that SQLite has its own code for.
const SCHEMA: &str = "
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT, score REAL DEFAULT 1.5);
    CREATE INDEX by_title ON notes(title, score DESC);
    CREATE INDEX by_length ON notes(length(body)) WHERE body IS NOT NULL;
    CREATE TABLE pairs(a TEXT, b BLOB, PRIMARY KEY(a, b)) WITHOUT ROWID;
    CREATE TABLE made(a INTEGER, b AS (a * 2) STORED, c AS (a || 'x'));
    CREATE TABLE large(id INTEGER PRIMARY KEY AUTOINCREMENT, v BLOB);
    CREATE VIRTUAL TABLE words USING fts5(body);
    CREATE VIRTUAL TABLE older USING fts4(body);
    CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);
    CREATE VIEW both AS SELECT n.title, p.b FROM notes n JOIN pairs p ON p.a = n.title;
    CREATE TRIGGER noted AFTER INSERT ON notes BEGIN INSERT INTO words VALUES (new.title); END;
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200)
        INSERT INTO notes(title, body) SELECT 'title ' || x, printf('%.*c', 40 + x, 'a') FROM c;
    INSERT INTO pairs SELECT title, body FROM notes; INSERT INTO made(a) SELECT id FROM notes;
    INSERT INTO large(v) SELECT zeroblob(20000) FROM notes LIMIT 4; INSERT INTO older SELECT title FROM notes;
    INSERT INTO boxes SELECT id, id, id + 1.5 FROM notes; ANALYZE;
";

const TABLES: &[&str] =
    &["notes", "pairs", "made", "large", "words", "older", "boxes", "both", "sqlite_stat1"];

/// The database's bytes, and with `wal` those of a -wal that holds the later half of it.
fn sound(wal: bool, page_size: usize) -> (Vec<u8>, Option<Vec<u8>>) {
    let mode = if wal { "wal" } else { "delete" };
    let bench =
        Bench::with(&format!("PRAGMA page_size = {page_size}; PRAGMA journal_mode = {mode}; {SCHEMA}"));
    let writer = bench.open();
    writer
        .execute_batch("PRAGMA wal_autocheckpoint = 0; UPDATE notes SET body = body || 'b'; DELETE FROM pairs WHERE a > 'title 5'")
        .unwrap();
    let database = std::fs::read(bench.path()).unwrap();
    (database, wal.then(|| std::fs::read(bench.folder().join("memory.db-wal")).unwrap()))
}

/// Damages the bytes in one of several ways, and says how.
fn damage(dice: &mut Dice, bytes: &mut Vec<u8>, page_size: usize) -> String {
    let pages = bytes.len() / page_size;
    match dice.below(8) {
        0 => {
            let flips = 1 + dice.below(8);
            for _ in 0..flips {
                let at = dice.below(bytes.len());
                bytes[at] ^= 1 << dice.below(8);
            }
            format!("{flips} bits flipped")
        }
        1 => {
            let at = dice.below(100.min(bytes.len()));
            bytes[at] = dice.below(256) as u8;
            format!("header byte {at} is {}", bytes[at])
        }
        2 => {
            // The schema's page, behind the header, where definitions and their sizes stand.
            let at = 100 + dice.below(page_size.saturating_sub(100));
            let at = at.min(bytes.len() - 1);
            bytes[at] = dice.below(256) as u8;
            format!("byte {at} of the first page")
        }
        3 => {
            let kept = dice.below(pages + 1);
            bytes.truncate(kept * page_size);
            format!("cut after {kept} of {pages} pages")
        }
        4 => {
            let kept = dice.below(bytes.len());
            bytes.truncate(kept);
            format!("cut after {kept} bytes")
        }
        5 => {
            let (one, other) = (dice.below(pages), dice.below(pages));
            for at in 0..page_size {
                bytes.swap(one * page_size + at, other * page_size + at);
            }
            format!("pages {one} and {other} exchanged")
        }
        6 => {
            let page = dice.below(pages);
            for at in 0..page_size {
                bytes[page * page_size + at] = dice.below(256) as u8;
            }
            format!("page {page} is noise")
        }
        _ => {
            // Heads of pages and pointers: small numbers at even places.
            let page = dice.below(pages);
            let flips = 1 + dice.below(4);
            for _ in 0..flips {
                let at = page * page_size + dice.below(16);
                bytes[at] = dice.below(256) as u8;
            }
            format!("{flips} bytes at the head of page {page}")
        }
    }
}

#[test]
fn a_damaged_file_costs_errors_and_neither_the_server_nor_a_byte() {
    let rounds = from_environment("INDELIBLE_HOSTILE_ROUNDS").unwrap_or(14);
    let seed =
        from_environment("INDELIBLE_HOSTILE_SEED").unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    let mut dice = Dice(seed | 1);
    let sizes = [512, 1024, 4096];
    let sources: Vec<_> = sizes.iter().flat_map(|size| [(false, *size), (true, *size)]).collect();
    let sources: Vec<_> = sources.into_iter().map(|(wal, size)| (sound(wal, size), size)).collect();
    let (mut served, mut failed) = (0, 0);
    for round in 0..rounds {
        let ((database, wal), size) = &sources[dice.below(sources.len())];
        let (mut database, mut wal) = (database.clone(), wal.clone());
        let how = match &mut wal {
            Some(wal) if dice.below(2) == 0 => format!("the -wal: {}", damage(&mut dice, wal, size + 24)),
            _ => damage(&mut dice, &mut database, *size),
        };
        let way = Way::ALL[dice.below(3)];
        let bench = laid(&database, wal.as_deref());
        let told = format!("INDELIBLE_HOSTILE_SEED={seed} round {round}, {way:?}, pages of {size}, {how}");
        let before = bytes(bench.path());
        let ran = survive(bench.path(), way, TABLES, &told);
        if way != Way::Memory {
            assert!(bytes(bench.path()) == before, "{told}: somebody wrote");
        }
        served += usize::from(ran.served);
        failed += ran.failed;
    }
    eprintln!("{served} of {rounds} damaged files were served, with {failed} errors");
}

#[test]
fn a_file_cut_at_any_page_is_refused_or_served_in_part() {
    let (database, _) = sound(false, 4096);
    let pages = database.len() / 4096;
    for kept in [0, 1, 2, pages / 2, pages - 1] {
        for extra in [0, 1, 4095] {
            let bench = laid(&database[..(kept * 4096 + extra).min(database.len())], None);
            let before = bytes(bench.path());
            survive(
                bench.path(),
                Way::Explorer,
                &["notes", "words"],
                &format!("{kept} pages and {extra} bytes"),
            );
            assert!(bytes(bench.path()) == before, "{kept} pages and {extra} bytes: somebody wrote");
        }
    }
}
