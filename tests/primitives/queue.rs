//! Queues against a list of jobs.

use super::{Bench, code, run};
use indelible::error::ErrorCode;
use indelible::state::catalog::Kind;
use indelible::state::queue::{Leased, MOST_ATTEMPTS, NewJob, Settle, State};
use indelible::state::store::Store;
use proptest::prelude::*;

const LEASE: i64 = 10_000;

fn job(body: u32, priority: u8, visible_at: i64) -> NewJob {
    NewJob { queue: "q".to_owned(), body: body.to_string(), visible_at, priority, dedupe_key: None }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u8, i64),
    Claim(u64),
    /// The lease by its place among those ever held, and how.
    Settle(prop::sample::Index, Settle),
    Wait(i64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![
        3 => Just(Settle::Ack),
        1 => (0_i64..9_000).prop_map(Settle::Retry),
        1 => Just(Settle::Dead),
        1 => Just(Settle::Heartbeat),
    ];
    let step = prop_oneof![
        4 => (0_u8..3, 0_i64..4_000).prop_map(|(priority, delay)| Step::Send(priority, delay)),
        4 => (1_u64..4).prop_map(Step::Claim),
        5 => (any::<prop::sample::Index>(), how).prop_map(|(which, how)| Step::Settle(which, how)),
        3 => (1_i64..15_000).prop_map(Step::Wait),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..40)
}

#[derive(Clone, Debug)]
struct Modelled {
    body: u32,
    priority: u8,
    visible_at: i64,
    attempts: u32,
    token: Option<String>,
    dead: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_job_is_held_by_one_and_settled_by_whoever_holds_it(steps in steps()) {
        run(async {
            let mut bench = Bench::new(Kind::Queue).await;
            let mut queue = bench.store.queue(&bench.primitive).await.unwrap();
            let mut now = 1_800_000_000_000;
            let mut model: Vec<Modelled> = Vec::new();
            let mut held: Vec<(Leased, u32)> = Vec::new();
            let mut sent = 0;
            for step in steps {
                match step {
                    Step::Send(priority, delay) => {
                        queue.send(job(sent, priority, now + delay)).await.unwrap();
                        model.push(Modelled {
                            body: sent, priority, visible_at: now + delay, attempts: 0, token: None, dead: false,
                        });
                        sent += 1;
                    }
                    Step::Claim(most) => {
                        for one in &mut model {
                            if !one.dead && one.visible_at <= now && one.token.is_some() && one.attempts >= MOST_ATTEMPTS {
                                one.dead = true;
                                one.token = None;
                            }
                        }
                        let mut ready: Vec<usize> =
                            (0..model.len()).filter(|at| !model[*at].dead && model[*at].visible_at <= now).collect();
                        ready.sort_by_key(|at| (std::cmp::Reverse(model[*at].priority), model[*at].body));
                        ready.truncate(usize::try_from(most).unwrap());
                        let leased = queue.claim("q".to_owned(), most, LEASE).await.unwrap();
                        let bodies: Vec<u32> = leased.iter().map(|one| one.body.parse().unwrap()).collect();
                        prop_assert_eq!(&bodies, &ready.iter().map(|at| model[*at].body).collect::<Vec<_>>());
                        for (at, one) in ready.into_iter().zip(leased) {
                            let modelled = &mut model[at];
                            modelled.attempts += 1;
                            modelled.visible_at = now + LEASE;
                            modelled.token = Some(one.token.clone());
                            prop_assert_eq!(one.attempts, modelled.attempts);
                            prop_assert_eq!(one.expires_at, now + LEASE);
                            held.push((one, modelled.body));
                        }
                    }
                    Step::Settle(which, how) => {
                        if held.is_empty() {
                            continue;
                        }
                        let (lease, body) = which.get(&held).clone();
                        let at = model.iter().position(|one| one.body == body);
                        let holds = at.filter(|at| model[*at].token.as_deref() == Some(lease.token.as_str()));
                        let result =
                            queue.settle("q".to_owned(), lease.id, lease.token, how.clone(), None).await;
                        let Some(at) = holds else {
                            prop_assert_eq!(code(result), ErrorCode::LeaseLost);
                            continue;
                        };
                        let settled = result.unwrap();
                        prop_assert_eq!(settled.late, model[at].visible_at <= now);
                        let last = model[at].attempts >= MOST_ATTEMPTS;
                        match how {
                            Settle::Ack => {
                                prop_assert_eq!(settled.state, State::Acked);
                                model.remove(at);
                            }
                            Settle::Heartbeat => {
                                prop_assert_eq!(settled.state, State::Leased);
                                model[at].visible_at = now + LEASE;
                            }
                            Settle::Retry(pause) if !last => {
                                prop_assert_eq!(settled.state, State::Ready);
                                model[at].visible_at = now + pause;
                                model[at].token = None;
                            }
                            _ => {
                                prop_assert_eq!(settled.state, State::Dead);
                                model[at].dead = true;
                                model[at].token = None;
                            }
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
            let dead = queue.claim("q/dead".to_owned(), 1_000, LEASE).await.unwrap();
            let mut dead: Vec<u32> = dead.iter().map(|one| one.body.parse().unwrap()).collect();
            dead.sort_unstable();
            let mut expected: Vec<u32> = model.iter().filter(|one| one.dead).map(|one| one.body).collect();
            expected.sort_unstable();
            prop_assert_eq!(dead, expected);
            Ok(())
        })?;
    }
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
