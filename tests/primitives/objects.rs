//! Objects against a map of keys.

use super::{Bench, code, run};
use indelible::error::ErrorCode;
use indelible::state::catalog::Kind;
use indelible::state::objects::{Condition, Listing};
use indelible::state::store::Store;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Step {
    Put(String, Vec<u8>, u8),
    Copy(String, String, bool),
    Delete(String, u8),
    Restart,
}

fn key() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![Just("a"), Just("/"), Just("b"), Just("ü ?#%"), Just("\u{d7ff}")],
        1..5,
    )
    .prop_map(|parts| parts.concat())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => any::<u8>().prop_map(|byte| vec![byte; 70_000]),
    ];
    let step = prop_oneof![
        5 => (key(), bytes, 0_u8..4).prop_map(|(key, bytes, condition)| Step::Put(key, bytes, condition)),
        2 => (key(), key(), any::<bool>()).prop_map(|(from, to, none)| Step::Copy(from, to, none)),
        2 => (key(), 0_u8..4).prop_map(|(key, condition)| Step::Delete(key, condition)),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..25)
}

/// 0 none, 1 nothing there, 2 the right tag, 3 a wrong one.
fn condition(which: u8, etag: Option<&String>) -> (Condition, bool) {
    match which {
        1 => (Condition { if_none: true, if_match: None }, etag.is_none()),
        2 => (
            Condition { if_none: false, if_match: Some(etag.cloned().unwrap_or_else(|| "\"x\"".to_owned())) },
            etag.is_some(),
        ),
        3 => (Condition { if_none: false, if_match: Some("\"wrong\"".to_owned()) }, false),
        _ => (Condition::default(), true),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_storage_primitive_is_a_map_of_keys(steps in steps(), prefix in proptest::option::of(key()), limit in 1_usize..4) {
        run(async {
            let mut bench = Bench::new(Kind::Storage).await;
            let mut objects = bench.store.objects(&bench.primitive).await.unwrap();
            let mut model: BTreeMap<String, (Vec<u8>, String)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(key, bytes, which) => {
                        let (condition, holds) = condition(which, model.get(&key).map(|(_, etag)| etag));
                        let put = objects.put(key.clone(), bytes.clone(), "a/b".to_owned(), "{}".to_owned(), condition).await;
                        if holds {
                            model.insert(key, (bytes, put.unwrap().etag));
                        } else {
                            prop_assert_eq!(code(put), ErrorCode::PreconditionFailed);
                        }
                    }
                    Step::Copy(from, to, none) => {
                        let (condition, holds) =
                            condition(u8::from(none), model.get(&to).map(|(_, etag)| etag));
                        let copied = objects.copy(from.clone(), to.clone(), condition).await;
                        match model.get(&from).cloned() {
                            None => prop_assert_eq!(code(copied), ErrorCode::NotFound),
                            Some(_) if !holds => prop_assert_eq!(code(copied), ErrorCode::PreconditionFailed),
                            Some(object) => {
                                prop_assert_eq!(&copied.unwrap().etag, &object.1);
                                model.insert(to, object);
                            }
                        }
                    }
                    Step::Delete(key, which) => {
                        let (condition, holds) = condition(which, model.get(&key).map(|(_, etag)| etag));
                        let deleted = objects.delete(key.clone(), condition).await;
                        if holds {
                            prop_assert_eq!(deleted.unwrap(), model.remove(&key).is_some());
                        } else {
                            prop_assert_eq!(code(deleted), ErrorCode::PreconditionFailed);
                        }
                    }
                    Step::Restart => {
                        drop(objects);
                        bench = bench.again().await;
                        objects = bench.store.objects(&bench.primitive).await.unwrap();
                    }
                }
            }
            for (key, (bytes, etag)) in &model {
                let (head, read) = objects.read(key.clone(), 0, usize::MAX).await.unwrap().unwrap();
                prop_assert!(&read == bytes && &head.etag == etag && head.size == bytes.len() as u64);
            }
            // Page by page, with a delimiter and without, everything comes once and in byte order.
            let prefix = prefix.unwrap_or_default();
            for delimiter in [None, Some("/")] {
                let (mut keys, mut prefixes) = (BTreeSet::new(), BTreeSet::new());
                for key in model.keys().filter(|key| key.starts_with(&prefix)) {
                    match delimiter.and_then(|delimiter| key[prefix.len()..].find(delimiter)) {
                        Some(at) => drop(prefixes.insert(key[..prefix.len() + at + 1].to_owned())),
                        None => drop(keys.insert(key.clone())),
                    }
                }
                let (mut found, mut found_prefixes, mut after) = (Vec::new(), Vec::new(), None);
                loop {
                    let delimiter = delimiter.map(str::to_owned);
                    let page = objects.list(Listing { prefix: prefix.clone(), delimiter, after, limit }).await.unwrap();
                    prop_assert!(page.objects.len() + page.prefixes.len() <= limit);
                    found.extend(page.objects.into_iter().map(|head| head.key));
                    found_prefixes.extend(page.prefixes);
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
                prop_assert_eq!(found, keys.into_iter().collect::<Vec<_>>());
                prop_assert_eq!(found_prefixes, prefixes.into_iter().collect::<Vec<_>>());
            }
            Ok(())
        })?;
    }
}

#[test]
fn of_many_that_want_an_object_to_be_new_or_as_it_was_one_wins() {
    run(async {
        let bench = Bench::new(Kind::Storage).await;
        let objects = bench.store.objects(&bench.primitive).await.unwrap();
        let put = |text: String, condition: Condition| {
            objects.put("o".to_owned(), text.into_bytes(), "a/b".to_owned(), "{}".to_owned(), condition)
        };
        let mut condition = Condition { if_match: None, if_none: true };
        for round in 0..5 {
            // Small ones, and some that stand in files of their own.
            let text = |number: usize| {
                format!("{round} {number}").repeat(if number.is_multiple_of(2) { 1 } else { 20_000 })
            };
            let tries = (0..20).map(|number| put(text(number), condition.clone()));
            let results = futures::future::join_all(tries).await;
            let won: Vec<usize> = (0..20).filter(|at| results[*at].is_ok()).collect();
            assert_eq!(won.len(), 1, "{round}");
            let etag = results[won[0]].as_ref().unwrap().etag.clone();
            for error in results.into_iter().filter_map(Result::err) {
                assert_eq!(error.code, ErrorCode::PreconditionFailed);
                assert!(error.message.contains(&format!("its etag is {etag};")), "{error}");
            }
            let (head, bytes) = objects.read("o".to_owned(), 0, usize::MAX).await.unwrap().unwrap();
            assert!(head.etag == etag && bytes == text(won[0]).into_bytes());
            condition = Condition { if_match: Some(etag), if_none: false };
        }
        let deletes = (0..20).map(|_| objects.delete("o".to_owned(), condition.clone()));
        let deleted = futures::future::join_all(deletes).await;
        assert_eq!(deleted.iter().filter(|result| **result == Ok(true)).count(), 1);
    });
}
