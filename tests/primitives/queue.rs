//! Queues against a list of jobs.

use super::{Bench, code, run};
use indelible::error::ErrorCode;
use indelible::state::catalog::Kind;
use indelible::state::clock::Clock;
use indelible::state::queue::{DEDUPE_WINDOW, Leased, MOST_ATTEMPTS, NewJob, Settle, State, backoff};
use indelible::state::store::Store;
use proptest::prelude::*;
use std::collections::BTreeMap;

const LEASE: i64 = 10_000;
const HOUR: i64 = 3_600_000;

fn job(body: u32, priority: u8, visible_at: i64) -> NewJob {
    NewJob { queue: "q".to_owned(), body: body.to_string(), visible_at, priority, dedupe_key: None }
}

/// Two queues and their dead letters.
const QUEUES: [&str; 4] = ["q", "q/dead", "other", "other/dead"];

#[derive(Clone, Debug)]
enum Step {
    /// Which of the two queues, priority, delay, and the key if it has one.
    Send(bool, u8, i64, Option<u8>),
    /// Which of all queues, and how many.
    Claim(usize, u64),
    /// The lease by its place among those ever held, the last first; how; whether something is said.
    Settle(usize, Settle, bool),
    Wait(i64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![
        3 => Just(Settle::Ack),
        2 => (0_i64..9_000).prop_map(Settle::Retry),
        3 => Just(Settle::Fail),
        2 => Just(Settle::Dead),
        1 => Just(Settle::Heartbeat),
    ];
    let key = || proptest::option::weighted(0.4, 0_u8..3);
    let queue = prop_oneof![6 => Just(0_usize), 3 => Just(1), 2 => Just(2), 1 => Just(3)];
    let step = prop_oneof![
        3 => (any::<bool>(), 0_u8..3, 0_i64..4_000, key()).prop_map(|(other, priority, delay, key)| {
            Step::Send(other, priority, delay, key)
        }),
        6 => (queue, 1_u64..4).prop_map(|(queue, most)| Step::Claim(queue, most)),
        5 => (0_usize..6, how, any::<bool>()).prop_map(|(back, how, said)| Step::Settle(back, how, said)),
        4 => (1_i64..15_000).prop_map(Step::Wait),
        1 => (0_i64..400_000).prop_map(Step::Wait),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..60)
}

#[derive(Clone, Debug)]
struct Modelled {
    id: String,
    queue: String,
    body: u32,
    priority: u8,
    visible_at: i64,
    leased_at: i64,
    attempts: u32,
    token: Option<String>,
    errors: Vec<String>,
}

impl Modelled {
    fn is_dead(&self) -> bool {
        self.queue.ends_with("/dead")
    }

    fn die(&mut self) {
        self.queue += "/dead";
        self.token = None;
    }
}

/// What is left when a claim of this queue comes, and which of it the claim finds, in order.
fn claimed(model: &mut [Modelled], queue: &str, most: usize, now: i64) -> Vec<usize> {
    let source = queue.trim_end_matches("/dead");
    for one in &mut *model {
        let over = one.token.is_some() && one.visible_at <= now && one.attempts >= MOST_ATTEMPTS;
        if one.queue == source && over {
            one.die();
            one.errors.push("lease_expired".to_owned());
        }
    }
    let ready = |at: &usize| model[*at].queue == queue && model[*at].visible_at <= now;
    let mut found: Vec<usize> = (0..model.len()).filter(ready).collect();
    found.sort_by_key(|at| (std::cmp::Reverse(model[*at].priority), model[*at].body));
    found.truncate(most);
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_job_is_held_by_one_and_settled_by_whoever_holds_it(steps in steps()) {
        run(async {
            let mut bench = Bench::new(Kind::Queue).await;
            let mut queue = bench.store.queue(&bench.primitive).await.unwrap();
            let mut now = 1_800_000_000_000;
            let mut model: Vec<Modelled> = Vec::new();
            let mut held: Vec<(String, Leased)> = Vec::new();
            // By queue and key: the job, and until when it is known at least.
            let mut keys: BTreeMap<(String, u8), (String, i64)> = BTreeMap::new();
            let mut sent = 0;
            for step in steps {
                match step {
                    Step::Send(other, priority, delay, key) => {
                        let name = if other { "other" } else { "q" };
                        let dedupe_key = key.map(|key| key.to_string());
                        let new = NewJob { queue: name.to_owned(), dedupe_key, ..job(sent, priority, now + delay) };
                        let made = queue.send(new).await.unwrap();
                        let place = key.map(|key| (name.to_owned(), key));
                        let known = place.as_ref().and_then(|place| keys.get(place)).filter(|(id, until)| {
                            now < *until || model.iter().any(|one| one.id == *id && one.queue == name)
                        });
                        if let Some((id, _)) = known {
                            prop_assert_eq!((&made.id, made.deduplicated), (id, true));
                            continue;
                        }
                        prop_assert!(!made.deduplicated);
                        if let Some(place) = place {
                            keys.insert(place, (made.id.clone(), now + DEDUPE_WINDOW));
                        }
                        model.push(Modelled {
                            id: made.id,
                            queue: name.to_owned(),
                            body: sent,
                            priority,
                            visible_at: now + delay,
                            leased_at: 0,
                            attempts: 0,
                            token: None,
                            errors: Vec::new(),
                        });
                        sent += 1;
                    }
                    Step::Claim(which, most) => {
                        let name = QUEUES[which];
                        let expected = claimed(&mut model, name, usize::try_from(most).unwrap(), now);
                        let leased = queue.claim(name.to_owned(), most, LEASE).await.unwrap();
                        let bodies: Vec<u32> = leased.iter().map(|one| one.body.parse().unwrap()).collect();
                        prop_assert_eq!(&bodies, &expected.iter().map(|at| model[*at].body).collect::<Vec<_>>());
                        for (at, one) in expected.into_iter().zip(leased) {
                            let modelled = &mut model[at];
                            if modelled.token.is_some() && !modelled.is_dead() {
                                modelled.errors.push("lease_expired".to_owned());
                            }
                            modelled.attempts += 1;
                            (modelled.visible_at, modelled.leased_at) = (now + LEASE, now);
                            modelled.token = Some(one.token.clone());
                            prop_assert_eq!((&one.id, one.attempts), (&modelled.id, modelled.attempts));
                            prop_assert_eq!((one.expires_at, &one.errors), (now + LEASE, &modelled.errors));
                            held.push((name.to_owned(), one));
                        }
                    }
                    Step::Settle(back, how, said) => {
                        let Some((name, lease)) = held.len().checked_sub(back + 1).map(|at| held[at].clone()) else { continue };
                        let holds = model.iter().position(|one| {
                            one.id == lease.id && one.queue == name && one.token.as_deref() == Some(lease.token.as_str())
                        });
                        let error = said.then(|| format!("said {}", held.len()));
                        let result = queue.settle(name, lease.id, lease.token, how.clone(), error.clone()).await;
                        let Some(at) = holds else {
                            prop_assert_eq!(code(result), ErrorCode::LeaseLost);
                            continue;
                        };
                        let settled = result.unwrap();
                        let one = &mut model[at];
                        prop_assert_eq!(settled.late, one.visible_at <= now);
                        one.errors.extend(error);
                        let last = one.attempts >= MOST_ATTEMPTS;
                        let dead = one.is_dead();
                        let (state, visible_at) = match how {
                            Settle::Ack => {
                                prop_assert_eq!(settled.state, State::Acked);
                                model.remove(at);
                                continue;
                            }
                            Settle::Heartbeat => (State::Leased, Some(now + LEASE)),
                            Settle::Retry(pause) if dead => {
                                one.queue = one.queue.trim_end_matches("/dead").to_owned();
                                one.attempts = 0;
                                (State::Ready, Some(now + pause))
                            }
                            Settle::Retry(pause) if !last => (State::Ready, Some(now + pause)),
                            Settle::Fail if dead => (State::Ready, Some(now)),
                            Settle::Fail if !last => {
                                let at = settled.at.unwrap();
                                let bounds = now + backoff(one.attempts, 0.0)..=now + backoff(one.attempts, 1.0);
                                prop_assert!(bounds.contains(&at), "{} in {:?}", at, bounds);
                                (State::Ready, Some(at))
                            }
                            Settle::Dead if dead => (State::Dead, Some(now)),
                            Settle::Retry(_) | Settle::Fail | Settle::Dead => {
                                one.die();
                                (State::Dead, None)
                            }
                        };
                        prop_assert_eq!((settled.state, settled.at), (state, visible_at));
                        one.visible_at = visible_at.unwrap_or(now);
                        if state != State::Leased {
                            one.token = None;
                        }
                    }
                    Step::Wait(milliseconds) => {
                        bench.clock.advance(milliseconds);
                        now += milliseconds;
                    }
                    Step::Restart => {
                        drop(queue);
                        bench = bench.again().await;
                        queue = bench.store.queue(&bench.primitive).await.unwrap();
                    }
                }
            }
            // In the end everything that was not acknowledged is somewhere, with all that was said of it.
            bench.clock.advance(HOUR);
            now += HOUR;
            for name in QUEUES {
                let expected = claimed(&mut model, name, 1_000, now);
                let leased = queue.claim(name.to_owned(), 1_000, LEASE).await.unwrap();
                prop_assert_eq!(leased.len(), expected.len(), "{}", name);
                for (at, one) in expected.into_iter().zip(leased) {
                    let modelled = &mut model[at];
                    if modelled.token.take().is_some() && !modelled.is_dead() {
                        modelled.errors.push("lease_expired".to_owned());
                    }
                    modelled.visible_at = now + LEASE;
                    prop_assert_eq!((&one.id, &one.errors), (&modelled.id, &modelled.errors));
                }
            }
            prop_assert!(model.iter().all(|one| one.visible_at == now + LEASE), "{:?}", model);
            Ok(())
        })?;
    }
}

#[test]
fn a_job_whose_last_lease_ran_out_is_dead_for_whoever_looks_there_first() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        queue.send(job(7, 0, 0)).await.unwrap();
        let mut last = None;
        for attempt in 1..=MOST_ATTEMPTS {
            assert_eq!(queue.claim("q/dead".to_owned(), 1, LEASE).await.unwrap(), [], "before {attempt}");
            let leased = queue.claim("q".to_owned(), 1, LEASE).await.unwrap().remove(0);
            // Each lease before this one ran out.
            let expected = vec!["lease_expired"; usize::try_from(attempt).unwrap() - 1];
            assert_eq!(
                (leased.attempts, &leased.errors),
                (attempt, &expected.iter().map(ToString::to_string).collect())
            );
            let end = leased.expires_at;
            // Whoever waits for the dead is to look again when the last lease runs out, and no sooner.
            let next = queue.next_visible("q/dead".to_owned()).await.unwrap();
            assert_eq!(next, (attempt == MOST_ATTEMPTS).then_some(end));
            last = Some(leased);
            bench.clock.advance(LEASE);
        }
        let dead = queue.claim("q/dead".to_owned(), 1, LEASE).await.unwrap().remove(0);
        assert_eq!(
            (dead.body.as_str(), dead.errors.as_slice()),
            ("7", ["lease_expired"; 5].map(str::to_owned).as_slice())
        );
        assert_eq!(queue.claim("q".to_owned(), 1, LEASE).await.unwrap(), []);
        let last = last.unwrap();
        let late = queue.settle("q".to_owned(), last.id, last.token, Settle::Ack, None).await;
        assert_eq!(code(late), ErrorCode::LeaseLost);
        // Who only looks at a dead letter, and lets the lease run out, adds nothing.
        bench.clock.advance(LEASE);
        assert_eq!(queue.claim("q/dead".to_owned(), 1, LEASE).await.unwrap()[0].errors.len(), 5);
    });
}

#[test]
fn who_takes_the_next_job_buries_the_worn_out() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        queue.send(job(1, 9, 0)).await.unwrap();
        for _ in 0..MOST_ATTEMPTS {
            assert_eq!(queue.claim("q".to_owned(), 1, LEASE).await.unwrap().len(), 1);
            bench.clock.advance(LEASE);
        }
        queue.send(job(2, 0, 0)).await.unwrap();
        assert_eq!(
            queue.claim("q".to_owned(), 5, LEASE).await.unwrap()[0].body,
            "2",
            "though it comes behind"
        );
        let dead = queue.claim("q/dead".to_owned(), 5, LEASE).await.unwrap();
        assert_eq!((dead.len(), dead[0].body.as_str()), (1, "1"));
    });
}

#[test]
fn a_late_settle_counts_and_says_nothing_of_the_lease_that_ran_out() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        queue.send(job(1, 0, 0)).await.unwrap();
        let leased = queue.claim("q".to_owned(), 1, LEASE).await.unwrap().remove(0);
        bench.clock.advance(LEASE * 2);
        let said = Some("slow".to_owned());
        let settled =
            queue.settle("q".to_owned(), leased.id, leased.token, Settle::Retry(0), said).await.unwrap();
        assert_eq!((settled.state, settled.late), (State::Ready, true));
        assert_eq!(queue.claim("q".to_owned(), 1, LEASE).await.unwrap()[0].errors, ["slow"]);
    });
}

#[test]
fn heartbeats_hold_a_job_for_twelve_hours_and_no_longer() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        queue.send(job(1, 0, 0)).await.unwrap();
        let leased = queue.claim("q".to_owned(), 1, 5 * HOUR).await.unwrap().remove(0);
        let began = leased.expires_at - 5 * HOUR;
        for (hours, until) in [(0, 5), (4, 9), (8, 12), (11, 12)] {
            let now = bench.clock.now();
            bench.clock.advance(began + hours * HOUR - now);
            let beat = Settle::Heartbeat;
            let settled = queue
                .settle("q".to_owned(), leased.id.clone(), leased.token.clone(), beat, None)
                .await
                .unwrap();
            assert_eq!(
                (settled.state, settled.at),
                (State::Leased, Some(began + until * HOUR)),
                "after {hours} h"
            );
        }
        bench.clock.advance(HOUR);
        assert_eq!(queue.claim("q".to_owned(), 1, LEASE).await.unwrap()[0].attempts, 2);
    });
}

#[test]
fn many_workers_share_the_jobs_and_none_is_given_twice() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        let sends = (0..200).map(|body| queue.send(job(body, 0, 0)));
        futures::future::join_all(sends)
            .await
            .into_iter()
            .for_each(|sent| assert!(!sent.unwrap().deduplicated));
        let claims = (0..40).map(|_| queue.claim("q".to_owned(), 5, LEASE));
        let leased: Vec<Leased> =
            futures::future::join_all(claims).await.into_iter().flat_map(Result::unwrap).collect();
        let mut bodies: Vec<u32> = leased.iter().map(|one| one.body.parse().unwrap()).collect();
        bodies.sort_unstable();
        assert_eq!(bodies, (0..200).collect::<Vec<_>>());
    });
}

#[test]
fn one_key_is_one_job_while_it_waits_and_for_five_minutes() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        let keyed = || NewJob { dedupe_key: Some("k".to_owned()), ..job(1, 0, 0) };
        let first = queue.send(keyed()).await.unwrap();
        assert!(!first.deduplicated);
        bench.clock.advance(3_600_000);
        let again = queue.send(keyed()).await.unwrap();
        assert_eq!((again.id.as_str(), again.deduplicated), (first.id.as_str(), true), "it still waits");
        let leased = queue.claim("q".to_owned(), 1, LEASE).await.unwrap().remove(0);
        queue.settle("q".to_owned(), leased.id, leased.token, Settle::Ack, None).await.unwrap();
        let second = queue.send(keyed()).await.unwrap();
        assert!(!second.deduplicated, "it is done, and five minutes are over");
        let leased = queue.claim("q".to_owned(), 1, LEASE).await.unwrap().remove(0);
        queue.settle("q".to_owned(), leased.id, leased.token, Settle::Ack, None).await.unwrap();
        assert!(queue.send(keyed()).await.unwrap().deduplicated, "it is done, and five minutes are not over");
    });
}

#[test]
fn the_dead_keep_what_was_said_and_come_back_as_new() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        queue.send(job(7, 0, 0)).await.unwrap();
        for attempt in 1..=MOST_ATTEMPTS {
            bench.clock.advance(1_000_000);
            let leased = queue.claim("q".to_owned(), 1, LEASE).await.unwrap().remove(0);
            assert_eq!(leased.attempts, attempt);
            let said = Some(format!("no {attempt}"));
            let settled =
                queue.settle("q".to_owned(), leased.id, leased.token, Settle::Fail, said).await.unwrap();
            let expected = if attempt == MOST_ATTEMPTS { State::Dead } else { State::Ready };
            assert_eq!(settled.state, expected, "{attempt}");
        }
        let dead = queue.claim("q/dead".to_owned(), 1, LEASE).await.unwrap().remove(0);
        assert_eq!(dead.errors, ["no 1", "no 2", "no 3", "no 4", "no 5"]);
        let settled =
            queue.settle("q/dead".to_owned(), dead.id, dead.token, Settle::Retry(0), None).await.unwrap();
        assert_eq!(settled.state, State::Ready);
        assert_eq!(queue.claim("q".to_owned(), 1, LEASE).await.unwrap()[0].attempts, 1);
    });
}
