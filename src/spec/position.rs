//! Where every node of a YAML text stands, from the marked events of saphyr-parser.
//!
//! serde keeps no positions for nodes that parse, and its maps hide repeated keys; this pass finds both.
//! It builds no values.

use saphyr_parser::{Event, Marker, Parser};
use std::collections::HashMap;

/// A place in a text. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

/// One step from a node to a node below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The value of this key.
    Key(String),
    /// The item of this index, from 0.
    Index(usize),
}

/// The way from the root to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(pub Vec<Step>);

impl Path {
    /// The root.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// One key down.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        self.with(Step::Key(name.to_owned()))
    }

    /// One item down.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

/// Where the nodes of one text stand.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    places: HashMap<Path, Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    key: Position,
    value: Position,
}

/// The top of the file, where nothing better is known.
pub const TOP: Position = Position { line: 1, column: 1 };

impl Positions {
    /// Where the node begins; where it is not there (or hides behind an alias), its nearest ancestor.
    #[must_use]
    pub fn value(&self, path: &Path) -> Position {
        self.nearest(path).map_or(TOP, |place| place.value)
    }

    /// Where the node's key begins, or the node itself when it is an item.
    #[must_use]
    pub fn key(&self, path: &Path) -> Position {
        self.nearest(path).map_or(TOP, |place| place.key)
    }

    fn nearest(&self, path: &Path) -> Option<Place> {
        let mut steps = path.clone();
        loop {
            if let Some(place) = self.places.get(&steps) {
                return Some(*place);
            }
            steps.0.pop()?;
        }
    }
}

/// A key given twice in one map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: String,
    /// Where it first stood.
    pub first: Position,
    /// Where it stands again.
    pub again: Position,
}

/// What one pass over a text finds.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Where things stand.
    pub positions: Positions,
    /// Keys given twice.
    pub duplicates: Vec<Duplicate>,
    /// The first syntax error, which also ends the pass.
    pub error: Option<(Position, String)>,
}

/// Walks the events of `text`.
#[must_use]
pub fn scan(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut frames: Vec<Frame> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(marked) => marked,
            Err(error) => {
                scan.error = Some((position(error.marker()), error.info().to_owned()));
                break;
            }
        };
        let at = position(&span.start);
        match event {
            Event::Scalar(value, ..) => {
                enter(&mut scan, &mut frames, at, &value);
            }
            Event::Alias(..) => {
                enter(&mut scan, &mut frames, at, "*");
            }
            Event::SequenceStart(..) => {
                let path = enter(&mut scan, &mut frames, at, "[");
                frames.push(Frame { path, holds: Holds::Items(0) });
            }
            Event::MappingStart(..) => {
                let path = enter(&mut scan, &mut frames, at, "{");
                frames.push(Frame { path, holds: Holds::Keys { pending: None, seen: HashMap::new() } });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                frames.pop();
            }
            _ => {}
        }
    }
    scan
}

/// A map or a sequence that is open.
struct Frame {
    path: Path,
    holds: Holds,
}

enum Holds {
    Items(usize),
    Keys { pending: Option<(String, Position)>, seen: HashMap<String, Position> },
}

/// Takes in the beginning of a node: a key, a value or an item. Returns the node's path.
fn enter(scan: &mut Scan, frames: &mut [Frame], at: Position, text: &str) -> Path {
    let Some(frame) = frames.last_mut() else {
        scan.positions.places.insert(Path::root(), Place { key: at, value: at });
        return Path::root();
    };
    match &mut frame.holds {
        Holds::Items(next) => {
            let path = frame.path.index(*next);
            *next += 1;
            scan.positions.places.insert(path.clone(), Place { key: at, value: at });
            path
        }
        Holds::Keys { pending, seen } => match pending.take() {
            None => {
                if let Some(first) = seen.get(text) {
                    scan.duplicates.push(Duplicate { key: text.to_owned(), first: *first, again: at });
                } else {
                    seen.insert(text.to_owned(), at);
                }
                *pending = Some((text.to_owned(), at));
                frame.path.key(text)
            }
            Some((key, key_at)) => {
                let path = frame.path.key(&key);
                scan.positions.places.insert(path.clone(), Place { key: key_at, value: at });
                path
            }
        },
    }
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}
