//! Places for what can go on at once, shared so that nobody takes them all from the others.
//!
//! Whoever is alone gets half of them, and a group two thirds; the more there are who want some, the smaller the share
//! of each. No share is set aside: what may be taken depends on how many places are free at the moment, so that there is
//! always one for somebody who has none, as long as not everybody wants some at once. It does not know what the places
//! are for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Who takes a place. Without a name all places are there for the taking: where there is nobody else to take them from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner(Option<Arc<Named>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Named {
    group: Arc<str>,
    caller: String,
}

impl Owner {
    /// Somebody of a group; callers of two groups are never the same.
    #[must_use]
    pub fn new(group: &str, caller: &str) -> Self {
        Self(Some(Arc::new(Named { group: Arc::from(group), caller: caller.to_owned() })))
    }
}

/// The places.
#[derive(Clone, Debug)]
pub struct Shares(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    groups: HashMap<Arc<str>, usize>,
    callers: HashMap<Arc<Named>, usize>,
    /// In the order in which they came.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    owner: Owner,
    places: usize,
    turn: oneshot::Sender<Taken>,
}

/// Places that somebody has; given back when this is dropped.
#[derive(Debug)]
pub struct Taken {
    of: Shares,
    owner: Owner,
    places: usize,
}

impl Shares {
    /// So many places.
    #[must_use]
    pub fn new(places: usize) -> Self {
        let (groups, callers) = Default::default();
        Self(Arc::new(Mutex::new(State { free: places, groups, callers, waiting: Vec::new() })))
    }

    /// Takes places, if that can be done now.
    #[must_use]
    pub fn try_take(&self, owner: &Owner, places: usize) -> Option<Taken> {
        let mut state = self.state();
        state.may(owner, places).then(|| self.taken(&mut state, owner.clone(), places))
    }

    /// Takes places when that can be done. Whoever gives up waiting drops the future.
    pub async fn take(&self, owner: &Owner, places: usize) -> Taken {
        loop {
            let told = {
                let mut state = self.state();
                // Who wants less goes past who waits for much.
                let before = |one: &Waiting| one.owner == *owner && one.places <= places;
                let behind = state.waiting.iter().any(|one| before(one) && !one.turn.is_closed());
                if !behind && state.may(owner, places) {
                    return self.taken(&mut state, owner.clone(), places);
                }
                let (turn, told) = oneshot::channel();
                state.waiting.push(Waiting { owner: owner.clone(), places, turn });
                told
            };
            // Nobody else takes a sender away without using it.
            if let Ok(taken) = told.await {
                return taken;
            }
        }
    }

    fn taken(&self, state: &mut State, owner: Owner, places: usize) -> Taken {
        state.free = state.free.saturating_sub(places);
        if let Owner(Some(named)) = &owner {
            *state.groups.entry(Arc::clone(&named.group)).or_default() += places;
            *state.callers.entry(Arc::clone(named)).or_default() += places;
        }
        Taken { of: self.clone(), owner, places }
    }

    /// Gives what is free to those who wait and may have it, the first of them first.
    fn hand_out(&self) {
        loop {
            let (turn, taken) = {
                let mut state = self.state();
                state.waiting.retain(|one| !one.turn.is_closed());
                let next = state.waiting.iter().position(|one| state.may(&one.owner, one.places));
                let Some(next) = next else { return };
                let Waiting { owner, places, turn } = state.waiting.remove(next);
                (turn, self.taken(&mut state, owner, places))
            };
            // Should they have gone this very moment, the places come back and are handed out again.
            drop(turn.send(taken));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// With what it would then have, a caller has no more than are free before, and a group no more than twice as many.
    /// Who takes several at once leaves as many.
    fn may(&self, owner: &Owner, places: usize) -> bool {
        if places > 1 && places.saturating_mul(2) > self.free {
            return false;
        }
        let Owner(Some(named)) = owner else { return places <= self.free };
        let of_group = self.groups.get(&named.group).copied().unwrap_or_default();
        let of_caller = self.callers.get(named).copied().unwrap_or_default();
        places <= self.free
            && of_caller.saturating_add(places) <= self.free
            && of_group.saturating_add(places) <= self.free.saturating_mul(2)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.of.state();
        state.free = state.free.saturating_add(self.places);
        if let Owner(Some(named)) = &self.owner {
            less(&mut state.groups, &named.group, self.places);
            less(&mut state.callers, named, self.places);
        }
        let somebody_waits = !state.waiting.is_empty();
        drop(state);
        if somebody_waits {
            self.of.hand_out();
        }
    }
}

/// Counts down, and forgets whoever has nothing left.
fn less<K: std::hash::Hash + Eq>(held: &mut HashMap<K, usize>, key: &K, places: usize) {
    if let Some(count) = held.get_mut(key) {
        *count = count.saturating_sub(places);
        if *count == 0 {
            held.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    /// Takes one place after another; how many.
    fn all(shares: &Shares, owner: &Owner) -> Vec<Taken> {
        std::iter::from_fn(|| shares.try_take(owner, 1)).collect()
    }

    #[test]
    fn who_takes_much_leaves_room_for_who_takes_little_and_does_not_stand_in_its_way() {
        for owner in [Owner::default(), Owner::new("g", "a")] {
            let shares = Shares::new(16);
            let mut large: Vec<Taken> = std::iter::from_fn(|| shares.try_take(&owner, 4)).collect();
            let count = large.len();
            assert!((2..=3).contains(&count), "{count}");
            let mut waits = std::pin::pin!(shares.take(&owner, 4));
            assert!(waits.as_mut().now_or_never().is_none());
            let small = shares.take(&Owner::new("h", "b"), 1).now_or_never();
            assert!(small.is_some(), "of another");
            if owner == Owner::default() {
                assert!(shares.take(&owner, 1).now_or_never().is_some(), "of the same");
            }
            large.clear();
            assert!(waits.as_mut().now_or_never().is_some(), "and much comes in its turn");
        }
    }

    #[test]
    fn whoever_is_alone_gets_half_and_there_is_room_for_the_next() {
        // places, of one caller, of a second caller of the group, of a caller of another group
        for (places, first, second, other) in
            [(8, 4, 2, 1), (64, 32, 11, 11), (256, 128, 43, 43), (16, 8, 3, 3)]
        {
            let shares = Shares::new(places);
            let one = all(&shares, &Owner::new("team", "a"));
            let two = all(&shares, &Owner::new("team", "b"));
            let three = all(&shares, &Owner::new("other", "a"));
            assert_eq!((one.len(), two.len(), three.len()), (first, second, other), "of {places}");
            drop((one, two, three));
            let state = shares.state();
            assert_eq!((state.free, state.groups.len(), state.callers.len()), (places, 0, 0));
        }
    }

    #[test]
    fn no_group_takes_more_than_two_thirds_however_many_callers_it_has() {
        let shares = Shares::new(64);
        let held: Vec<Vec<Taken>> =
            (0..100).map(|caller| all(&shares, &Owner::new("team", &caller.to_string()))).collect();
        assert_eq!(held.iter().flatten().count(), 43);
        assert!(!all(&shares, &Owner::new("other", "")).is_empty());
    }

    #[test]
    fn without_a_name_all_places_are_there() {
        let shares = Shares::new(8);
        assert_eq!(all(&shares, &Owner::default()).len(), 8);
    }

    #[test]
    fn the_first_that_may_is_next_and_whoever_gave_up_is_passed_over() {
        let shares = Shares::new(4);
        let (team, other) = (Owner::new("team", ""), Owner::new("other", ""));
        let mut held = all(&shares, &team);
        assert_eq!(held.len(), 2);
        let mut gone = Box::pin(shares.take(&team, 1));
        let mut waits = Box::pin(shares.take(&team, 1));
        assert!(gone.as_mut().now_or_never().is_none() && waits.as_mut().now_or_never().is_none());
        let of_other = shares.take(&other, 1).now_or_never();
        assert!(of_other.is_some(), "others do not wait behind them");
        drop(gone);
        held.pop();
        let got = waits.as_mut().now_or_never();
        assert!(got.is_some());
        assert!(shares.take(&team, 1).now_or_never().is_none());
        drop((got, held, of_other));
        assert_eq!(shares.state().free, 4);
    }

    #[test]
    fn a_place_that_was_given_to_somebody_who_is_gone_is_not_lost() {
        let shares = Shares::new(1);
        let nobody = Owner::default();
        let held = shares.try_take(&nobody, 1);
        let mut waits = Box::pin(shares.take(&nobody, 1));
        assert!(waits.as_mut().now_or_never().is_none());
        drop(held);
        drop(waits);
        assert!(shares.try_take(&nobody, 1).is_some());
    }

    #[test]
    fn a_large_one_waits_until_there_is_as_much() {
        let shares = Shares::new(64);
        let (team, other) = (Owner::new("team", ""), Owner::new("other", ""));
        let mut held: Vec<Taken> = std::iter::from_fn(|| shares.try_take(&team, 16)).collect();
        assert_eq!(held.len(), 2, "half");
        let mut waits = Box::pin(shares.take(&team, 16));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(shares.try_take(&team, 1).is_none() && shares.try_take(&other, 16).is_some());
        held.pop();
        assert!(waits.as_mut().now_or_never().is_some());
    }
}
