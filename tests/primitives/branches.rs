//! Branches of a database against lists of numbers, through the trait; and over stdio with kills.

use super::{Bench, code, run};
use crate::stdio::Desk;
use crate::support::{children_of, kill, wait_until};
use indelible::error::ErrorCode;
use indelible::render::{Caps, Datum};
use indelible::state::catalog::Kind;
use indelible::state::db::{Db, Statement, Terms};
use indelible::state::store::Store;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
enum Step {
    /// Numbers into main (0) or a branch; whether a last statement fails.
    Insert(usize, Vec<i64>, bool),
    Clear(usize),
    Create(usize),
    Promote(usize, bool),
    Discard(usize, bool),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3_usize, proptest::collection::vec(0_i64..9, 1..4), proptest::bool::weighted(0.2))
            .prop_map(|(place, numbers, fails)| Step::Insert(place, numbers, fails)),
        1 => (0..3_usize).prop_map(Step::Clear),
        3 => (1..3_usize).prop_map(Step::Create),
        3 => (1..3_usize, any::<bool>()).prop_map(|(place, force)| Step::Promote(place, force)),
        2 => (1..3_usize, any::<bool>()).prop_map(|(place, force)| Step::Discard(place, force)),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..20)
}

const PLACES: [&str; 3] = ["main", "a", "b"];

/// What stands somewhere, which commit was the last, and of a branch, which was main's when it was made.
#[derive(Clone, Debug, Default)]
struct Place {
    numbers: Vec<i64>,
    last: u64,
    base: u64,
}

pub(crate) fn terms() -> Terms {
    Terms {
        timeout: Duration::from_secs(20),
        max_rows: 1_000,
        caps: Caps { max_result_bytes: 1 << 20, max_cell_chars: 1 << 16 },
        tool: "db_exec".to_owned(),
        others: Default::default(),
        cancel: Default::default(),
        owner: Default::default(),
    }
}

pub(crate) fn sql(text: &str) -> Statement {
    Statement { sql: text.to_owned(), params: None }
}

/// The numbers of `SELECT a FROM t ORDER BY rowid`.
pub(crate) async fn numbers(db: &Arc<dyn Db>, branch: &str) -> Result<Vec<i64>, ErrorCode> {
    let statement = sql("SELECT a FROM t ORDER BY rowid");
    let rows = db.query_ro(Some(branch.to_owned()), statement, terms()).await.map_err(|error| error.code)?;
    let number =
        |row: &Vec<Datum>| if let Datum::Integer(number) = row[0] { number } else { panic!("{row:?}") };
    Ok(rows.rows.iter().map(number).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn branches_go_their_own_way_and_nothing_of_main_is_lost_unasked(steps in steps()) {
        run(async {
            let mut bench = Bench::new(Kind::Db).await;
            let mut db = bench.store.db(&bench.primitive).await.unwrap();
            db.exec_tx(None, vec![sql("CREATE TABLE t(a)")], terms()).await.unwrap();
            let mut commits = 1;
            let mut model = BTreeMap::from([("main", Place { last: 1, ..Place::default() })]);
            for step in steps {
                match step {
                    Step::Insert(place, numbers, fails) => {
                        let name = PLACES[place];
                        let mut statements: Vec<Statement> = numbers
                            .iter()
                            .map(|number| Statement { params: Some(json!([number])), ..sql("INSERT INTO t VALUES (?)") })
                            .collect();
                        if fails {
                            statements.push(sql("INSERT INTO nowhere VALUES (1)"));
                        }
                        let done = db.exec_tx(Some(name.to_owned()), statements, terms()).await;
                        match model.get_mut(name) {
                            None => prop_assert_eq!(code(done), ErrorCode::NotFound),
                            Some(_) if fails => prop_assert_eq!(code(done), ErrorCode::UnknownTable),
                            Some(place) => {
                                prop_assert_eq!(done.unwrap().len(), numbers.len());
                                commits += 1;
                                place.last = commits;
                                place.numbers.extend(numbers);
                            }
                        }
                    }
                    Step::Clear(place) => {
                        let name = PLACES[place];
                        let done = db.exec_tx(Some(name.to_owned()), vec![sql("DELETE FROM t")], terms()).await;
                        prop_assert_eq!(done.is_ok(), model.contains_key(name));
                        if let Some(place) = model.get_mut(name) {
                            commits += 1;
                            *place = Place { numbers: Vec::new(), last: commits, ..*place };
                        }
                    }
                    Step::Create(place) => {
                        let done = db.create_branch(PLACES[place]).await;
                        if model.contains_key(PLACES[place]) {
                            prop_assert_eq!(code(done), ErrorCode::Conflict);
                        } else {
                            done.unwrap();
                            let main = model["main"].clone();
                            model.insert(PLACES[place], Place { base: main.last, ..main });
                        }
                    }
                    Step::Promote(place, force) => {
                        let done = db.promote_branch(PLACES[place], force).await;
                        match model.get(PLACES[place]).cloned() {
                            None => prop_assert_eq!(code(done), ErrorCode::NotFound),
                            Some(branch) => {
                                let changed = model["main"].last != branch.base;
                                if changed && !force {
                                    prop_assert_eq!(code(done), ErrorCode::Conflict);
                                } else {
                                    prop_assert_eq!(done.unwrap().is_some(), changed, "main is kept where it is replaced");
                                    model.remove(PLACES[place]);
                                    model.insert("main", Place { base: 0, ..branch });
                                }
                            }
                        }
                    }
                    Step::Discard(place, force) => {
                        let done = db.discard_branch(PLACES[place], force).await;
                        match model.get(PLACES[place]) {
                            None => prop_assert_eq!(code(done), ErrorCode::NotFound),
                            Some(branch) if branch.last != branch.base && !force => {
                                prop_assert_eq!(code(done), ErrorCode::Conflict);
                            }
                            Some(_) => {
                                done.unwrap();
                                model.remove(PLACES[place]);
                            }
                        }
                    }
                    Step::Restart => {
                        drop(db);
                        bench = bench.again().await;
                        db = bench.store.db(&bench.primitive).await.unwrap();
                    }
                }
                for name in PLACES {
                    let expected = model.get(name).map(|place| place.numbers.clone()).ok_or(ErrorCode::NotFound);
                    prop_assert_eq!(numbers(&db, name).await, expected, "{}", name);
                }
                let listed = db.branches().await.unwrap().into_iter().map(|one| (one.name, one.changed));
                let expected = model.iter().filter(|(name, _)| **name != "main");
                let expected = expected.map(|(name, place)| ((*name).to_owned(), place.last != place.base));
                prop_assert_eq!(listed.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            }
            // Of every file that was exchanged or discarded nothing is left.
            let folder = bench.folder.path().join("groups").join(&bench.primitive.group).join(&bench.primitive.id);
            let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let databases = files.filter(|path| path.extension().is_some_and(|ending| ending == "db")).count();
            prop_assert_eq!(databases, model.len());
            Ok(())
        })?;
    }
}

#[test]
fn what_is_refused_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "db", "name": "d"}));
    desk.ok("db_exec", json!({"sql": "CREATE TABLE t(a)"}));
    for arguments in [
        json!({"action": "create"}),
        json!({"action": "create", "branch": "main"}),
        json!({"action": "promote", "branch": "main"}),
        json!({"action": "discard", "branch": "main", "force": true}),
        json!({"action": "create", "branch": "../x"}),
        json!({"action": "list", "branch": "x"}),
        json!({"action": "merge", "branch": "x"}),
    ] {
        assert_eq!(desk.refused("db_branch", arguments.clone()), "invalid_arguments", "{arguments}");
    }
    let (_, words) = desk.refusal("db_branch", json!({"action": "promote", "branch": "main"}));
    assert!(words.contains("main is none") && words.contains("list shows them"), "{words}");
    assert_eq!(desk.ok("db_branch", json!({"branch": "x"})), json!({"branch": "x", "action": "created"}));
    assert_eq!(desk.refused("db_branch", json!({"branch": "x"})), "conflict");
    for tool in ["db_query", "db_exec"] {
        let (code, words) = desk.refusal(tool, json!({"branch": "y", "sql": "SELECT 1"}));
        assert_eq!(code, "not_found");
        assert!(words.contains("no branch `y`") && words.contains("list"), "{words}");
    }
    desk.ok("db_exec", json!({"branch": "x", "sql": "INSERT INTO t VALUES (1)"}));
    let listed = desk.ok("db_branch", json!({"action": "list"}));
    assert_eq!((&listed["data"][0]["branch"], &listed["data"][0]["changed"]), (&json!("x"), &json!(true)));
    let (code, words) = desk.refusal("db_branch", json!({"action": "discard", "branch": "x"}));
    assert!(code == "conflict" && words.contains("`force`"), "{words}");
    desk.ok("db_exec", json!({"sql": "INSERT INTO t VALUES (2)"}));
    let (code, words) = desk.refusal("db_branch", json!({"action": "promote", "branch": "x"}));
    assert!(code == "conflict" && words.contains("main has changed") && words.contains("`force`"), "{words}");
    let forced = desk.ok("db_branch", json!({"action": "promote", "branch": "x", "force": true}));
    assert_eq!(forced["snapshot"].as_str().unwrap().len(), 26);
    assert_eq!(desk.ok("db_query", json!({"sql": "SELECT a FROM t"}))["rows"], json!([[1]]));
}

#[test]
fn branches_hold_through_kills_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "db", "name": "d"}));
    desk.ok("db_exec", json!({"sql": "CREATE TABLE t(a INTEGER)"}));
    let mut sum = 0;
    for round in 0..8_u64 {
        desk.ok("db_branch", json!({"branch": "try"}));
        desk.ok("db_exec", json!({"branch": "try", "sql": "INSERT INTO t VALUES (1)"}));
        sum += 1;
        let id = desk.client.send_call("db_branch", json!({"action": "promote", "branch": "try"}));
        std::thread::sleep(Duration::from_millis(round * 3));
        if round % 2 == 0 {
            kill(desk.client.pid());
            drop(desk);
            desk = Desk::at(folder.path());
        } else {
            children_of(desk.client.pid()).into_iter().for_each(kill);
            desk.client.wait_for(id);
            assert!(wait_until(|| children_of(desk.client.pid()).is_empty()));
        }
        // It was promoted as a whole or not at all.
        let there = desk.ok("db_branch", json!({"action": "list"}))["data"].as_array().unwrap().len();
        let main =
            desk.ok("db_query", json!({"sql": "SELECT ifnull(sum(a), 0) FROM t"}))["rows"][0][0].clone();
        if there == 1 {
            assert_eq!(main, json!(sum - 1));
            desk.ok("db_branch", json!({"action": "promote", "branch": "try"}));
        }
        let main =
            desk.ok("db_query", json!({"sql": "SELECT ifnull(sum(a), 0) FROM t"}))["rows"][0][0].clone();
        assert_eq!(main, json!(sum));
    }
}
