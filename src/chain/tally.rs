//! How many events of which kind stand behind a checkpoint.
//!
//! It counts what it is shown and reads nothing.

/// Kinds counted apart; what has none of these is counted together.
const MOST_KINDS: usize = 64;

/// Counts events behind one event, by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    since: i64,
    /// The first `named` of them are those that were asked for.
    kinds: Vec<(Option<Vec<u8>>, u64)>,
    named: usize,
    others: u64,
}

impl Tally {
    /// Nothing counted yet. Events up to `since` will not be; the kinds `named` are counted apart in any case.
    #[must_use]
    pub fn behind(since: i64, named: &[String]) -> Self {
        let mut kinds: Vec<(Option<Vec<u8>>, u64)> = Vec::new();
        for kind in named {
            let kind = Some(kind.as_bytes().to_vec());
            if !kinds.iter().any(|(known, _)| *known == kind) {
                kinds.push((kind, 0));
            }
        }
        Self { since, named: kinds.len(), kinds, others: 0 }
    }

    /// The event that counting begins behind.
    #[must_use]
    pub fn since(&self) -> i64 {
        self.since
    }

    /// Counts an event; a kind that is no text is none.
    pub fn event(&mut self, id: i64, kind: Option<&[u8]>) {
        if id > self.since {
            self.add(kind, 1);
        }
    }

    /// The counts of two walks that began with the same tally, together.
    #[must_use]
    pub fn joined(mut self, later: &Self) -> Self {
        for (kind, count) in &later.kinds {
            self.add(kind.as_deref(), *count);
        }
        self.others += later.others;
        self
    }

    /// How many were counted that have none of these kinds; none where that is not known.
    #[must_use]
    pub fn without(&self, excluded: &[String]) -> Option<u64> {
        let is_excluded = |kind: &Option<Vec<u8>>| {
            excluded.iter().any(|excluded| Some(excluded.as_bytes()) == kind.as_deref())
        };
        let apart = |excluded: &String| {
            let named = self.kinds.iter().take(self.named);
            named.map(|(kind, _)| kind).any(|kind| kind.as_deref() == Some(excluded.as_bytes()))
        };
        if self.others > 0 && !excluded.iter().all(apart) {
            return None;
        }
        let counted = self.kinds.iter().filter(|(kind, _)| !is_excluded(kind)).map(|(_, count)| count);
        Some(counted.sum::<u64>() + self.others)
    }

    fn add(&mut self, kind: Option<&[u8]>, count: u64) {
        if let Some((_, counted)) = self.kinds.iter_mut().find(|(known, _)| known.as_deref() == kind) {
            *counted += count;
        } else if self.kinds.len() < self.named + MOST_KINDS {
            self.kinds.push((kind.map(<[u8]>::to_vec), count));
        } else {
            self.others += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_apart_as_long_as_there_are_few() {
        let excluded = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>();
        let mut tally = Tally::behind(2, &excluded(&["prompt", "prompt"]));
        for (id, kind) in
            [(1, "note"), (2, "prompt"), (3, "note"), (4, "prompt"), (5, "decision"), (6, "note")]
        {
            tally.event(id, Some(kind.as_bytes()));
        }
        tally.event(7, None);
        for (kinds, count) in [(&[][..], 5), (&["prompt"], 4), (&["note", "prompt"], 2), (&["unknown"], 5)] {
            assert_eq!(tally.without(&excluded(kinds)), Some(count), "{kinds:?}");
        }
        let twice = tally.clone().joined(&tally);
        assert_eq!(twice.without(&excluded(&["note"])), Some(6));
        for id in 100..300 {
            tally.event(id, Some(id.to_string().as_bytes()));
        }
        assert_eq!(tally.without(&excluded(&["prompt"])), Some(204), "this one was counted apart");
        assert_eq!(tally.without(&excluded(&["299"])), None, "this one was not");
    }
}
