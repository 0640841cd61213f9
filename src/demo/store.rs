//! The music store the demo runs on: its schema, and rows that are the same every time.
//!
//! It writes no file (`sqlite/music_store.rs` does), and takes nothing from the clock or the machine.

use super::words;
use crate::sqlite::music_store::{Contents, Field, TableRows};
use jiff::ToSpan;
use jiff::civil::{Date, date};
use std::collections::HashSet;

const ARTISTS: i64 = 50;
const CUSTOMERS: i64 = 120;
const INVOICES: usize = 600;
/// The first day of the store's books; they cover [`DAYS`] days.
const OPENING: Date = date(2023, 1, 1);
const DAYS: u64 = 1096;

const SCHEMA: &str = "\
CREATE TABLE artists (
  artist_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  country TEXT NOT NULL
);
CREATE TABLE albums (
  album_id INTEGER PRIMARY KEY,
  artist_id INTEGER NOT NULL REFERENCES artists (artist_id),
  title TEXT NOT NULL,
  genre TEXT NOT NULL,
  released INTEGER NOT NULL
);
CREATE TABLE tracks (
  track_id INTEGER PRIMARY KEY,
  album_id INTEGER NOT NULL REFERENCES albums (album_id),
  position INTEGER NOT NULL,
  title TEXT NOT NULL,
  seconds INTEGER NOT NULL CHECK (seconds > 0),
  price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
  UNIQUE (album_id, position)
);
CREATE TABLE customers (
  customer_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  country TEXT NOT NULL,
  joined TEXT NOT NULL
);
CREATE TABLE invoices (
  invoice_id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
  invoice_date TEXT NOT NULL,
  total_cents INTEGER NOT NULL
);
CREATE TABLE invoice_lines (
  invoice_id INTEGER NOT NULL REFERENCES invoices (invoice_id),
  line INTEGER NOT NULL,
  track_id INTEGER NOT NULL REFERENCES tracks (track_id),
  price_cents INTEGER NOT NULL,
  PRIMARY KEY (invoice_id, line)
) WITHOUT ROWID;
";

const FINISH: &str = "\
CREATE INDEX albums_artist ON albums (artist_id);
CREATE INDEX invoices_customer ON invoices (customer_id, invoice_date);
CREATE INDEX invoice_lines_track ON invoice_lines (track_id);
CREATE VIEW track_list AS
-- description: every track with its album, artist, genre and price
SELECT t.track_id, t.title AS track, al.title AS album, ar.name AS artist, al.genre, t.seconds, t.price_cents
FROM tracks t JOIN albums al USING (album_id) JOIN artists ar USING (artist_id);
";

/// The store's contents; `wal` for a server that writes.
#[must_use]
pub fn contents(wal: bool) -> Contents {
    let mut maker = Maker { dice: Dice(2026), taken: HashSet::new() };
    let (artists, genres) = maker.artists();
    let albums = maker.albums(&genres);
    let tracks = maker.tracks(albums.len());
    let customers = maker.customers();
    let (invoices, lines) = maker.sales(&tracks, &customers);
    let rows = |table, rows| TableRows { table, rows };
    Contents {
        schema: SCHEMA,
        tables: vec![
            rows("artists", artists),
            rows("albums", albums),
            rows("tracks", tracks.into_iter().map(|track| track.row).collect()),
            rows("customers", customers.into_iter().map(|customer| customer.row).collect()),
            rows("invoices", invoices),
            rows("invoice_lines", lines),
        ],
        finish: FINISH,
        wal,
    }
}

/// Knuth's MMIX generator (The Art of Computer Programming, volume 2, section 3.3.4), of which the upper half
/// is used.
struct Dice(u64);

impl Dice {
    /// A number from 0 to `sides` - 1.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) % sides.max(1)
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        let sides = u64::try_from(high - low + 1).unwrap_or(1);
        low + i64::try_from(self.roll(sides)).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let sides = u64::try_from(from.len()).unwrap_or(1);
        from.get(usize::try_from(self.roll(sides)).unwrap_or(0))
    }

    fn word(&mut self, from: &[&'static str]) -> &'static str {
        self.pick(from).copied().unwrap_or_default()
    }
}

struct Track {
    id: i64,
    price: i64,
    row: Vec<Field>,
}

struct Customer {
    id: i64,
    /// Days after the opening.
    joined: u64,
    row: Vec<Field>,
}

struct Maker {
    dice: Dice,
    /// Names that must not come up twice.
    taken: HashSet<String>,
}

impl Maker {
    /// The artists, and the genre of each.
    fn artists(&mut self) -> (Vec<Vec<Field>>, Vec<&'static str>) {
        let rows = (1..=ARTISTS).map(|id| {
            let name = self.unused(|dice| match dice.roll(3) {
                0 => format!("The {} {}s", dice.word(words::QUALITIES), dice.word(words::THINGS)),
                1 => format!("{} {}", dice.word(words::QUALITIES), dice.word(words::PLACES)),
                _ => format!("{} {}", dice.word(words::GIVEN_NAMES), dice.word(words::FAMILY_NAMES)),
            });
            (vec![int(id), text(name), text(self.dice.word(words::COUNTRIES))], self.dice.word(words::GENRES))
        });
        rows.unzip()
    }

    fn albums(&mut self, genres: &[&'static str]) -> Vec<Vec<Field>> {
        let mut rows = Vec::new();
        for (artist, genre) in (1..).zip(genres) {
            for _ in 0..self.dice.between(2, 4) {
                let title = self.unused(|dice| match dice.roll(3) {
                    0 => format!("{} {}", dice.word(words::QUALITIES), dice.word(words::THINGS)),
                    1 => format!("Songs from the {}", dice.word(words::PLACES)),
                    _ => format!("{} the {}", dice.word(words::VERBS), dice.word(words::THINGS)),
                });
                let id = next_id(&rows);
                let released = self.dice.between(1998, 2024);
                rows.push(vec![int(id), int(artist), text(title), text(*genre), int(released)]);
            }
        }
        rows
    }

    fn tracks(&mut self, albums: usize) -> Vec<Track> {
        let mut tracks = Vec::new();
        for album in (1..).take(albums) {
            let price = if self.dice.roll(4) == 0 { 129 } else { 99 };
            for position in 1..=self.dice.between(8, 12) {
                let dice = &mut self.dice;
                let title = match dice.roll(4) {
                    0 => format!("{} {}", dice.word(words::QUALITIES), dice.word(words::PLACES)),
                    1 => format!("{} a {}", dice.word(words::VERBS), dice.word(words::THINGS)),
                    2 => format!("{} in the {}", dice.word(words::THINGS), dice.word(words::PLACES)),
                    _ => format!("My {} {}", dice.word(words::QUALITIES), dice.word(words::THINGS)),
                };
                let id = next_id(&tracks);
                let seconds = dice.between(95, 420);
                let row = vec![int(id), int(album), int(position), text(title), int(seconds), int(price)];
                tracks.push(Track { id, price, row });
            }
        }
        tracks
    }

    fn customers(&mut self) -> Vec<Customer> {
        let rows = (1..=CUSTOMERS).map(|id| {
            let name = self.unused(|dice| {
                format!("{} {}", dice.word(words::GIVEN_NAMES), dice.word(words::FAMILY_NAMES))
            });
            // A domain that belongs to nobody (RFC 2606).
            let email = format!("{}@example.com", name.to_lowercase().replace(' ', "."));
            let joined = self.dice.roll(DAYS - 60);
            let country = self.dice.word(words::COUNTRIES);
            Customer { id, joined, row: vec![int(id), text(name), text(email), text(country), day(joined)] }
        });
        rows.collect()
    }

    /// Invoices in the order of their dates, and their lines. One customer in ten buys nothing.
    fn sales(&mut self, tracks: &[Track], customers: &[Customer]) -> (Vec<Vec<Field>>, Vec<Vec<Field>>) {
        let buyers: Vec<&Customer> = customers.iter().filter(|_| self.dice.roll(10) > 0).collect();
        let mut baskets: Vec<(u64, i64)> = (0..INVOICES)
            .filter_map(|_| {
                let buyer = self.dice.pick(&buyers)?;
                Some((buyer.joined + self.dice.roll(DAYS - buyer.joined), buyer.id))
            })
            .collect();
        baskets.sort_unstable();
        let (mut invoices, mut lines) = (Vec::new(), Vec::new());
        for (invoice, (bought, customer)) in (1..).zip(baskets) {
            let mut total = 0;
            for line in 1..=self.dice.between(1, 5) {
                let Some(track) = self.dice.pick(tracks) else { break };
                lines.push(vec![int(invoice), int(line), int(track.id), int(track.price)]);
                total += track.price;
            }
            invoices.push(vec![int(invoice), int(customer), day(bought), int(total)]);
        }
        (invoices, lines)
    }

    fn unused(&mut self, make: impl Fn(&mut Dice) -> String) -> String {
        loop {
            let name = make(&mut self.dice);
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn next_id<T>(rows: &[T]) -> i64 {
    i64::try_from(rows.len()).map_or(i64::MAX, |rows| rows + 1)
}

fn int(number: i64) -> Field {
    Field::Integer(number)
}

fn text(text: impl Into<String>) -> Field {
    Field::Text(text.into())
}

/// The day that many days after the opening, as 2023-01-01.
fn day(after: u64) -> Field {
    let days = i64::try_from(after).unwrap_or(0).days();
    text(OPENING.saturating_add(days).to_string())
}
