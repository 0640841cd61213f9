//! Policy files over the real program: what they refuse, hide and lower, what is wrong with one, and that none
//! ever allows more.
//!
//! `property` works on guarded connections without a server; the other parts speak to the program.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod commands;
mod files;
mod hiding;
mod property;
mod refusing;
mod reload;
mod restoring;

#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;
use support::Bench;

/// The value that must never come out of a hidden place.
const CANARY: &str = "CANARY";

/// People with a hidden address, and everything that is made from it.
const PEOPLE: &str = "
    CREATE TABLE people(
        id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, city TEXT,
        domain TEXT GENERATED ALWAYS AS (substr(email, 3)) VIRTUAL,
        shout TEXT GENERATED ALWAYS AS (upper(domain)) STORED,
        hello TEXT GENERATED ALWAYS AS ('hello ' || name) VIRTUAL
    );
    INSERT INTO people(name, email, city) VALUES ('Ada', 'CANARY@x', 'London'), ('Bob', 'bCANARY', 'Paris');
    CREATE INDEX people_lower ON people(lower(email));
    CREATE INDEX people_city ON people(city);
    CREATE TABLE orders(id INTEGER PRIMARY KEY, person INTEGER REFERENCES people(id), total REAL);
    INSERT INTO orders(person, total) VALUES (1, 2.5), (2, 4.0);
    CREATE TABLE secrets(word TEXT);
    INSERT INTO secrets VALUES ('CANARY');
    CREATE VIEW contacts AS SELECT name, email FROM people;
    CREATE VIEW over_contacts AS SELECT name FROM contacts;
    CREATE VIEW names AS SELECT id, name FROM people;
    CREATE VIEW matched AS SELECT o.id FROM (SELECT 'CANARY@x' AS email, 1 AS id) AS o JOIN people USING (email);
    CREATE VIRTUAL TABLE people_fts USING fts5(name, email, content='people', content_rowid='id');
    INSERT INTO people_fts(people_fts) VALUES ('rebuild');
    CREATE VIRTUAL TABLE people_terms USING fts5vocab('people_fts', 'row');
    CREATE VIRTUAL TABLE name_fts USING fts5(name, content='people', content_rowid='id');
    INSERT INTO name_fts(name_fts) VALUES ('rebuild');
    CREATE VIRTUAL TABLE fed USING fts5(x, content='');
    CREATE TABLE old_addresses(person INTEGER, address TEXT);
    CREATE TRIGGER feeds AFTER UPDATE OF email ON people BEGIN
        INSERT INTO fed(rowid, x) VALUES (new.id, new.email);
        INSERT INTO old_addresses VALUES (old.id, old.email);
    END;
    ANALYZE;
";

/// Hides the address and the secrets.
const HIDE: &str = "hide:\n  - table: people\n    columns: [email]\n  - table: SECRETS\n";

/// A policy file beside, not in, the database's folder.
struct Policy {
    folder: tempfile::TempDir,
}

impl Policy {
    fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("policy.yaml"), text).unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("policy.yaml")
    }
}

/// A server on the bench under the policy file.
#[track_caller]
fn server(bench: &Bench, policy: &Policy) -> support::Server {
    support::Server::on(bench).flags(&["--policy", policy.path().to_str().unwrap()])
}
