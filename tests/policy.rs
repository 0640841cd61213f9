//! policy.yaml against the verdicts: every action of SQLite's authorizer under every policy.
//!
//! Actions are made up here; what SQLite really reports for a statement, the tests over stdio show.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper that fails fails its test")]

use indelible::generated::{POLICIES, PROTECTED};
use indelible::policy::decide::{ObjectKind, Objects, at_once, is_row_write, is_structural, judge};
use indelible::policy::{Action, ActionKind, Bounds, Policy, PragmaForm, Refusal};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Every name is an ordinary table's, but for the one shadow table.
struct Tables;

impl Objects for Tables {
    fn kind(&self, name: &str) -> Option<ObjectKind> {
        Some(if name == "f_data" { ObjectKind::Shadow } else { ObjectKind::Table })
    }
}

/// The lists of one policy as policy.yaml has them.
struct Listed {
    actions: BTreeSet<String>,
    read: BTreeSet<String>,
    introspect: BTreeSet<String>,
    functions_denied: BTreeSet<String>,
    modules: BTreeSet<String>,
}

fn yaml() -> BTreeMap<String, Listed> {
    let text = include_str!("../policy.yaml");
    let document: serde_json::Value = serde_yaml::from_str(text).unwrap();
    let names = |list: &serde_json::Value| -> BTreeSet<String> {
        list.as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let policies = document["policies"].as_array().unwrap();
    let listed = policies.iter().map(|policy| {
        let lists = Listed {
            actions: names(&policy["actions"]),
            read: names(&policy["pragmas"]["read"]),
            introspect: names(&policy["pragmas"]["introspect"]),
            functions_denied: names(&policy["functions_denied"]),
            modules: names(&policy["modules"]),
        };
        (policy["id"].as_str().unwrap().to_owned(), lists)
    });
    listed.collect()
}

fn action(kind: ActionKind, object: &str, detail: Option<&str>) -> Action {
    Action {
        kind,
        object: object.to_owned(),
        detail: detail.map(str::to_owned),
        database: Some("main".to_owned()),
        accessor: None,
    }
}

/// An action of this kind to which nothing but its kind could be objected.
fn harmless(policy: &Policy, kind: ActionKind) -> Action {
    match kind {
        ActionKind::Pragma => {
            let name = policy
                .pragmas
                .iter()
                .find(|rule| rule.form == PragmaForm::Read)
                .map_or("x", |rule| rule.name);
            action(kind, name, None)
        }
        ActionKind::CreateVtable | ActionKind::DropVtable => {
            action(kind, "notes", Some(policy.modules.first().copied().unwrap_or("fts5")))
        }
        ActionKind::CreateIndex
        | ActionKind::DropIndex
        | ActionKind::CreateTrigger
        | ActionKind::DropTrigger => action(kind, "thing", Some("notes")),
        ActionKind::Function => action(kind, "lower", None),
        _ => action(kind, "notes", None),
    }
}

fn verdict(policy: &Policy, actions: &[Action]) -> Result<(), Refusal> {
    let readonly = !actions.iter().any(|action| action.kind.writes());
    judge(policy, &PROTECTED, &Bounds::default(), &Tables, actions, readonly).map(|_| ())
}

const TEMPORARY: &[ActionKind] = &[
    ActionKind::CreateTempTable,
    ActionKind::CreateTempIndex,
    ActionKind::CreateTempView,
    ActionKind::CreateTempTrigger,
    ActionKind::DropTempTable,
    ActionKind::DropTempIndex,
    ActionKind::DropTempView,
    ActionKind::DropTempTrigger,
];

const NEVER: &[ActionKind] = &[
    ActionKind::Attach,
    ActionKind::Detach,
    ActionKind::Transaction,
    ActionKind::Savepoint,
    ActionKind::Unknown,
];

#[test]
fn each_policy_allows_the_actions_that_policy_yaml_lists_and_no_other() {
    let listed = yaml();
    assert_eq!(POLICIES.len(), listed.len());
    for policy in POLICIES {
        let lists = &listed[policy.id];
        for kind in ActionKind::ALL {
            let allowed = verdict(policy, &[harmless(policy, *kind)]).is_ok();
            assert_eq!(allowed, lists.actions.contains(kind.name()), "{} under {}", kind.name(), policy.id);
        }
    }
}

#[test]
fn what_no_tool_does_is_listed_nowhere_and_refused_everywhere() {
    let listed = yaml();
    for kind in NEVER.iter().chain(TEMPORARY) {
        assert!(listed.values().all(|lists| !lists.actions.contains(kind.name())), "{}", kind.name());
        for policy in POLICIES {
            assert!(
                verdict(policy, &[harmless(policy, *kind)]).is_err(),
                "{} under {}",
                kind.name(),
                policy.id
            );
        }
    }
    for kind in NEVER {
        for policy in POLICIES {
            assert_eq!(
                at_once(policy, &Bounds::default(), &action(*kind, "x", None)),
                Err(Refusal::action(&action(*kind, "x", None)))
            );
        }
    }
}

#[test]
fn a_statement_without_a_recorded_action_is_refused() {
    for policy in POLICIES {
        assert_eq!(verdict(policy, &[]), Err(Refusal::Unrecorded), "{}", policy.id);
        // VACUUM is not read-only and reports nothing that it does.
        let select = [action(ActionKind::Select, "", None)];
        assert!(
            judge(policy, &PROTECTED, &Bounds::default(), &Tables, &select, false).is_err(),
            "{}",
            policy.id
        );
    }
}

#[test]
fn pragmas_are_allowed_as_policy_yaml_lists_them_in_any_case() {
    let listed = yaml();
    let every: BTreeSet<&String> =
        listed.values().flat_map(|lists| lists.read.iter().chain(&lists.introspect)).collect();
    let others = ["writable_schema", "optimize", "wal_checkpoint", "hard_heap_limit", "key", "mmap_size", ""];
    for policy in POLICIES {
        let lists = &listed[policy.id];
        for name in every.iter().map(|name| name.as_str()).chain(others) {
            for name in [name.to_owned(), name.to_uppercase()] {
                let lower = name.to_lowercase();
                let (read, introspect) = (lists.read.contains(&lower), lists.introspect.contains(&lower));
                for (value, allowed) in [(None, read || introspect), (Some("1"), introspect)] {
                    let found =
                        at_once(policy, &Bounds::default(), &action(ActionKind::Pragma, &name, value));
                    assert_eq!(found.is_ok(), allowed, "{name} {value:?} under {}", policy.id);
                    assert_eq!(verdict(policy, &[action(ActionKind::Pragma, &name, value)]).is_ok(), allowed);
                }
            }
        }
    }
}

#[test]
fn no_pragma_that_sets_or_writes_is_listed_to_take_a_value() {
    for lists in yaml().values() {
        for name in lists.introspect.iter() {
            let looks = ["_info", "_xinfo", "_list", "_check"].iter().any(|ending| name.ends_with(ending));
            assert!(looks, "`{name}` takes a value");
        }
        for name in ["optimize", "wal_checkpoint", "incremental_vacuum", "writable_schema", "shrink_memory"] {
            assert!(!lists.read.contains(name) && !lists.introspect.contains(name), "{name}");
        }
    }
}

#[test]
fn denied_functions_are_denied_in_any_case_and_others_are_not() {
    let listed = yaml();
    for policy in POLICIES {
        let lists = &listed[policy.id];
        assert_eq!(lists.functions_denied.is_empty(), lists.actions.is_empty(), "{}", policy.id);
        for name in &lists.functions_denied {
            for name in [name.clone(), name.to_uppercase()] {
                let found = at_once(policy, &Bounds::default(), &action(ActionKind::Function, &name, None));
                assert_eq!(found, Err(Refusal::Function { name: name.to_lowercase() }), "{}", policy.id);
            }
        }
        assert_eq!(at_once(policy, &Bounds::default(), &action(ActionKind::Function, "lower", None)), Ok(()));
    }
    for name in ["load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"] {
        assert!(
            listed.values().all(|lists| lists.actions.is_empty() || lists.functions_denied.contains(name))
        );
    }
}

#[test]
fn only_listed_modules_make_virtual_tables() {
    let listed = yaml();
    for policy in POLICIES {
        let lists = &listed[policy.id];
        for module in
            ["fts3", "fts4", "fts5", "rtree", "FTS5", "dbstat", "fts5vocab", "csv", "", "fts3tokenize"]
        {
            let allowed = lists.modules.contains(&module.to_lowercase());
            let found = verdict(policy, &[action(ActionKind::CreateVtable, "t", Some(module))]);
            assert_eq!(found.is_ok(), allowed, "{module} under {}", policy.id);
        }
    }
}

/// The server's objects, as written and in capitals.
fn protected() -> Vec<String> {
    let names = PROTECTED.tables.iter().chain(PROTECTED.views).chain(PROTECTED.others);
    names.flat_map(|name| [(*name).to_owned(), name.to_uppercase()]).collect()
}

#[test]
fn no_policy_changes_an_object_of_the_server_s_by_any_action() {
    for policy in POLICIES {
        for name in protected() {
            for kind in ActionKind::ALL.iter().filter(|kind| kind.writes()) {
                let leaves_all = matches!(kind, ActionKind::Analyze | ActionKind::Reindex);
                let named = if is_structural(*kind) || is_row_write(*kind) { name.as_str() } else { "notes" };
                let on_it = action(*kind, "thing", Some(&name));
                let it = action(*kind, named, harmless(policy, *kind).detail.as_deref());
                if is_row_write(*kind) || (is_structural(*kind) && !leaves_all) {
                    assert_eq!(
                        verdict(policy, std::slice::from_ref(&it)),
                        Err(Refusal::Protected { object: name.clone() }),
                        "{} {name}",
                        kind.name()
                    );
                }
                if is_structural(*kind) && !leaves_all {
                    assert_eq!(
                        verdict(policy, &[on_it]),
                        Err(Refusal::Protected { object: name.clone() }),
                        "{} on {name}",
                        kind.name()
                    );
                }
            }
            let reads = [action(ActionKind::Select, "", None), action(ActionKind::Read, &name, Some("id"))];
            assert_eq!(
                verdict(policy, &reads).is_ok(),
                policy.actions.contains(&ActionKind::Read),
                "{}",
                policy.id
            );
        }
    }
}

#[test]
fn sqlite_s_own_tables_and_shadow_tables_are_not_written_row_by_row() {
    for policy in POLICIES {
        for kind in [ActionKind::Insert, ActionKind::Update, ActionKind::Delete] {
            for name in
                ["sqlite_master", "SQLITE_SCHEMA", "sqlite_temp_master", "sqlite_temp_schema", "f_data"]
            {
                let refused = Err(Refusal::Internal { object: name.to_owned() });
                assert_eq!(verdict(policy, &[action(kind, name, None)]), refused, "{} {name}", policy.id);
            }
            for name in ["sqlite_stat1", "SQLITE_STAT4"] {
                let refused = Err(Refusal::Statistics { object: name.to_owned() });
                assert_eq!(verdict(policy, &[action(kind, name, None)]), refused, "{} {name}", policy.id);
            }
        }
        for kind in [ActionKind::CreateIndex, ActionKind::CreateTrigger] {
            let found = verdict(policy, &[action(kind, "thing", Some("f_data"))]);
            assert!(found.is_err(), "{} on a shadow table under {}", kind.name(), policy.id);
        }
        assert!(verdict(policy, &[action(ActionKind::DropTable, "f_data", None)]).is_err(), "{}", policy.id);
        assert!(
            verdict(policy, &[action(ActionKind::AlterTable, "f_data", Some("main"))]).is_err(),
            "{}",
            policy.id
        );
    }
}

#[test]
fn nothing_is_made_in_the_database_temp() {
    for policy in POLICIES {
        for kind in ActionKind::ALL.iter().filter(|kind| is_structural(**kind)) {
            let mut made = harmless(policy, *kind);
            made.database = Some("temp".to_owned());
            assert!(verdict(policy, &[made]).is_err(), "{} under {}", kind.name(), policy.id);
            let mut stored = action(ActionKind::Insert, "sqlite_master", None);
            stored.database = Some("temp".to_owned());
            assert!(verdict(policy, &[harmless(policy, *kind), stored]).is_err(), "{}", kind.name());
        }
    }
}

fn any_action() -> impl Strategy<Value = Action> {
    let object = prop::sample::select(vec![
        "notes",
        "tags",
        "sqlite_master",
        "main",
        "f_data",
        "journal_mode",
        "lower",
    ]);
    let detail = prop::option::of(prop::sample::select(vec!["notes", "tags", "id", "fts5", "1"]));
    let accessor = prop::option::of(prop::sample::select(vec!["tr", "v"]));
    (prop::sample::select(ActionKind::ALL.to_vec()), object, detail, accessor).prop_map(
        |(kind, object, detail, accessor)| Action {
            accessor: accessor.map(str::to_owned),
            ..action(kind, object, detail)
        },
    )
}

/// Whether SQLite carries such an action out for itself as part of what a statement of this kind is.
fn may_come_along(main: ActionKind, kind: ActionKind) -> bool {
    kind == ActionKind::Reindex && matches!(main, ActionKind::CreateIndex | ActionKind::AlterTable)
}

proptest! {
    #[test]
    fn no_set_with_a_refused_kind_is_accepted(
        actions in prop::collection::vec(any_action(), 0..8),
        at in 0_usize..8,
        which in 0_usize..8,
        kind in prop::sample::select(ActionKind::ALL.to_vec()),
        readonly in any::<bool>(),
    ) {
        let policy = POLICIES[which % POLICIES.len()];
        prop_assume!(!policy.actions.contains(&kind));
        prop_assume!(!actions.iter().any(|action| may_come_along(action.kind, kind)));
        let mut actions = actions;
        actions.insert(at.min(actions.len()), action(kind, "elsewhere", Some("nowhere")));
        prop_assert!(judge(policy, &PROTECTED, &Bounds::default(), &Tables, &actions, readonly).is_err());
    }

    #[test]
    fn no_set_that_changes_an_object_of_the_server_s_is_accepted(
        actions in prop::collection::vec(any_action(), 0..8),
        at in 0_usize..8,
        which in 0_usize..8,
        name in prop::sample::select(protected()),
        kind in prop::sample::select(ActionKind::ALL.to_vec()),
        readonly in any::<bool>(),
    ) {
        let policy = POLICIES[which % POLICIES.len()];
        prop_assume!(is_row_write(kind) || is_structural(kind));
        prop_assume!(!matches!(kind, ActionKind::Analyze | ActionKind::Reindex));
        let mut actions = actions;
        actions.insert(at.min(actions.len()), action(kind, &name, None));
        prop_assert!(judge(policy, &PROTECTED, &Bounds::default(), &Tables, &actions, readonly).is_err());
    }

    #[test]
    fn a_verdict_does_not_hang_on_the_order_of_what_was_reported(
        actions in prop::collection::vec(any_action(), 1..8),
        which in 0_usize..8,
    ) {
        // Which of several structural actions is the statement's own is told by coming first.
        prop_assume!(actions.iter().filter(|action| is_structural(action.kind)).count() <= 1);
        let policy = POLICIES[which % POLICIES.len()];
        let mut reversed = actions.clone();
        reversed.reverse();
        let found = [actions, reversed].map(|actions| judge(policy, &PROTECTED, &Bounds::default(), &Tables, &actions, true));
        prop_assert_eq!(found[0].is_ok(), found[1].is_ok());
        if let [Ok(one), Ok(other)] = &found {
            prop_assert_eq!(one, other);
        }
    }
}
