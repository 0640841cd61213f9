//! A small database, and a query over it that does not end.

/// A small music store.
pub(crate) const MUSIC: &str = "
    CREATE TABLE artists(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE albums(id INTEGER PRIMARY KEY, artist_id INTEGER NOT NULL REFERENCES artists(id), title TEXT);
    CREATE TABLE tracks(id INTEGER PRIMARY KEY, album_id INTEGER REFERENCES albums(id), title TEXT, ms INTEGER, price REAL, art BLOB);
    CREATE INDEX tracks_album ON tracks(album_id);
    CREATE VIEW long_tracks AS SELECT id, title FROM tracks WHERE ms > 200000;
    INSERT INTO artists VALUES (1, 'Ana'), (2, 'Bo');
    INSERT INTO albums VALUES (1, 1, 'First'), (2, 2, 'Second');
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 60)
        INSERT INTO tracks SELECT x, 1 + x % 2, 'track ' || x, 100000 + x * 3000, 0.99, x'0102' FROM c;
";

/// A query that ends only when it is made to.
pub(crate) const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
