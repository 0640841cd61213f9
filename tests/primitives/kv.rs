//! Keys and values against a map.

use super::{Bench, code, run};
use indelible::error::ErrorCode;
use indelible::state::catalog::Kind;
use indelible::state::kv::{Range, Value, Write};
use indelible::state::store::Store;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<(u8, i64, Option<i64>, Option<u8>)>),
    Increment(u8, i64, Option<i64>),
    Delete(u8, bool),
    Wait(i64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ttl = || proptest::option::weighted(0.3, 1_i64..3_000);
    // The guess of a version: none, 0, the right one, a wrong one.
    let put = (0_u8..5, -9_i64..9, ttl(), proptest::option::weighted(0.5, 0_u8..3));
    let step = prop_oneof![
        4 => proptest::collection::vec(put, 1..4).prop_map(Step::Put),
        2 => (0_u8..5, any::<i8>(), ttl()).prop_map(|(key, by, ttl)| Step::Increment(key, by.into(), ttl)),
        2 => (0_u8..5, any::<bool>()).prop_map(|(key, right)| Step::Delete(key, right)),
        2 => (1_i64..2_000).prop_map(Step::Wait),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..25)
}

/// What a key holds, since which version, and until when.
type Model = BTreeMap<String, (i64, u64, Option<i64>)>;

fn key(number: u8) -> String {
    // Byte order, and not that of any language.
    ["a", "a/b", "b", "ž", "\u{10ffff}"][usize::from(number)].to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_kv_primitive_is_a_map_with_versions(steps in steps()) {
        run(async {
            let mut bench = Bench::new(Kind::Kv).await;
            let mut kv = bench.store.kv(&bench.primitive).await.unwrap();
            let mut now = 1_800_000_000_000;
            let mut model = Model::new();
            let mut highest = 0;
            for step in steps {
                model.retain(|_, (_, _, expires)| expires.is_none_or(|at| at > now));
                match step {
                    Step::Put(puts) => {
                        let mut writes: BTreeMap<String, Write> = BTreeMap::new();
                        for (number, value, ttl, guess) in puts {
                            let key = key(number);
                            let right = model.get(&key).map_or(0, |(_, version, _)| *version);
                            let if_version = guess.map(|guess| [0, right, right + 1][usize::from(guess)]);
                            let value = Value::Json(value.to_string());
                            let expires_at = ttl.map(|ttl| now + ttl);
                            writes.insert(key.clone(), Write { key, value, expires_at, if_version });
                        }
                        let holds = writes.values().all(|write| {
                            let version = model.get(&write.key).map_or(0, |(_, version, _)| *version);
                            write.if_version.is_none_or(|wanted| wanted == version)
                        });
                        let result = kv.apply(writes.values().cloned().collect()).await;
                        if !holds {
                            prop_assert_eq!(code(result), ErrorCode::PreconditionFailed);
                            continue;
                        }
                        for (write, written) in writes.into_values().zip(result.unwrap()) {
                            prop_assert!(written.version > highest, "a version is never given twice");
                            highest = written.version;
                            let Value::Json(text) = write.value else { unreachable!() };
                            model.insert(write.key, (text.parse().unwrap(), highest, write.expires_at));
                        }
                    }
                    Step::Increment(number, by, ttl) => {
                        let (before, _, old) = model.get(&key(number)).copied().unwrap_or_default();
                        let (written, sum) =
                            kv.increment(key(number), by, ttl.map(|ttl| now + ttl)).await.unwrap();
                        prop_assert_eq!(sum, before + by);
                        prop_assert!(written.version > highest);
                        highest = written.version;
                        model.insert(key(number), (sum, highest, ttl.map(|ttl| now + ttl).or(old)));
                    }
                    Step::Delete(number, right) => {
                        let version = model.get(&key(number)).map(|(_, version, _)| *version);
                        let wanted = if right { version } else { Some(version.unwrap_or_default() + 1) };
                        let result = kv.delete(vec![key(number)], wanted).await;
                        if wanted.is_some_and(|wanted| version != Some(wanted)) {
                            prop_assert_eq!(code(result), ErrorCode::PreconditionFailed);
                        } else {
                            prop_assert_eq!(result.unwrap(), u64::from(version.is_some()));
                            model.remove(&key(number));
                        }
                    }
                    Step::Wait(milliseconds) => {
                        bench.clock.advance(milliseconds);
                        now += milliseconds;
                    }
                    Step::Restart => {
                        drop(kv);
                        bench = bench.again().await;
                        kv = bench.store.kv(&bench.primitive).await.unwrap();
                    }
                }
                model.retain(|_, (_, _, expires)| expires.is_none_or(|at| at > now));
                let (entries, more) = kv.list(Range { limit: 100, values: true, ..Range::default() }).await.unwrap();
                prop_assert!(!more);
                let found: Model = entries
                    .iter()
                    .map(|entry| {
                        let Some(Value::Json(text)) = &entry.value else { unreachable!() };
                        (entry.key.clone(), (text.parse().unwrap(), entry.version, entry.expires_at))
                    })
                    .collect();
                prop_assert_eq!(&found, &model);
                let keys: Vec<&String> = entries.iter().map(|entry| &entry.key).collect();
                prop_assert_eq!(keys, model.keys().collect::<Vec<_>>(), "in byte order");
                let got = kv.get((0..5).map(key).collect()).await.unwrap();
                let got: Vec<Option<u64>> = got.into_iter().map(|one| one.map(|one| one.version)).collect();
                let expected: Vec<Option<u64>> =
                    (0..5).map(|number| model.get(&key(number)).map(|(_, version, _)| *version)).collect();
                prop_assert_eq!(got, expected);
            }
            Ok(())
        })?;
    }
}

#[test]
fn of_many_that_want_a_key_to_be_new_one_wins() {
    run(async {
        let bench = Bench::new(Kind::Kv).await;
        let kv = bench.store.kv(&bench.primitive).await.unwrap();
        let tries = (0..50).map(|number| {
            let value = Value::Json(number.to_string());
            kv.apply(vec![Write { key: "k".to_owned(), value, expires_at: None, if_version: Some(0) }])
        });
        let results = futures::future::join_all(tries).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        let counts = (0..50).map(|_| kv.increment("n".to_owned(), 1, None));
        let mut sums: Vec<i64> =
            futures::future::join_all(counts).await.into_iter().map(|one| one.unwrap().1).collect();
        sums.sort_unstable();
        assert_eq!(sums, (1..=50).collect::<Vec<_>>());
    });
}

#[test]
fn of_many_that_want_to_follow_one_version_one_does() {
    run(async {
        let bench = Bench::new(Kind::Kv).await;
        let kv = bench.store.kv(&bench.primitive).await.unwrap();
        let put = |number: u32, if_version| {
            let value = Value::Json(number.to_string());
            kv.apply(vec![Write { key: "k".to_owned(), value, expires_at: None, if_version }])
        };
        let mut version = put(0, None).await.unwrap()[0].version;
        for round in 0..5 {
            let results = futures::future::join_all((0..40).map(|number| put(number, Some(version)))).await;
            let won: Vec<usize> = (0..40).filter(|at| results[*at].is_ok()).collect();
            assert_eq!(won.len(), 1, "{round}");
            version = results[won[0]].as_ref().unwrap()[0].version;
            for error in results.into_iter().filter_map(Result::err) {
                assert_eq!(error.code, ErrorCode::PreconditionFailed);
                assert!(error.message.contains(&format!("`k` has version {version};")), "{error}");
            }
            let entry = kv.get(vec!["k".to_owned()]).await.unwrap().remove(0).unwrap();
            assert_eq!((entry.version, entry.value), (version, Some(Value::Json(won[0].to_string()))));
        }
        let deletes = (0..20).map(|_| kv.delete(vec!["k".to_owned()], Some(version)));
        let deleted = futures::future::join_all(deletes).await;
        assert_eq!(deleted.iter().filter(|result| **result == Ok(1)).count(), 1);
    });
}

#[test]
fn a_count_leaves_neither_its_type_nor_its_bounds() {
    run(async {
        let bench = Bench::new(Kind::Kv).await;
        let kv = bench.store.kv(&bench.primitive).await.unwrap();
        let put = |key: &str, value| Write { key: key.to_owned(), value, expires_at: None, if_version: None };
        kv.apply(vec![put("text", Value::Json("\"1\"".to_owned())), put("bytes", Value::Bytes(vec![49]))])
            .await
            .unwrap();
        kv.apply(vec![put("most", Value::Json(i64::MAX.to_string()))]).await.unwrap();
        for (key, expected) in
            [("text", ErrorCode::WrongType), ("bytes", ErrorCode::WrongType), ("most", ErrorCode::TooLarge)]
        {
            assert_eq!(code(kv.increment(key.to_owned(), 1, None).await), expected, "{key}");
        }
        let most = kv.get(vec!["most".to_owned()]).await.unwrap();
        assert_eq!(most[0].as_ref().unwrap().value, Some(Value::Json(i64::MAX.to_string())));
    });
}
