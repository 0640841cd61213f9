//! Memories recalled by meaning, with a model whose vectors the test knows: each text's vector stands in a table.

use super::{Bench, run};
use indelible::error::{ErrorCode, ToolError};
use indelible::state::Outcome;
use indelible::state::catalog::Kind;
use indelible::state::memory::{Embedder, Memory, MemoryKind, NewMemory, Sought};
use indelible::state::store::Store;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Texts of one line mean the same, more or less; the number is the angle in degrees.
const MEANINGS: &[(&str, f32)] = &[
    ("the package manager is pnpm", 0.0),
    ("packages are installed with pnpm", 10.0),
    ("which tool installs dependencies", 15.0),
    ("we deploy on friday", 120.0),
    ("releases go out at the end of the week", 125.0),
];

struct Table {
    model: &'static str,
    works: bool,
    embedded: AtomicUsize,
}

impl Table {
    fn new(model: &'static str) -> Arc<Self> {
        Arc::new(Self { model, works: true, embedded: AtomicUsize::new(0) })
    }
}

impl Embedder for Table {
    fn model(&self) -> &str {
        self.model
    }

    fn embed(&self, texts: &[String]) -> Outcome<Vec<Vec<f32>>> {
        if !self.works {
            return Err(ToolError::new(ErrorCode::SqlError, "no"));
        }
        self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
        let vector = |text: &String| {
            let known =
                MEANINGS.iter().find(|(meaning, _)| meaning == text).map_or(-90.0, |(_, angle)| *angle);
            let angle = known.to_radians();
            vec![angle.cos(), angle.sin()]
        };
        Ok(texts.iter().map(vector).collect())
    }
}

fn with(bench: Bench, embedder: Option<Arc<Table>>) -> Bench {
    let Bench { folder, clock, store, primitive } = bench;
    drop(store);
    let store = super::open(&folder, &clock).with_embedder(embedder.map(|table| table as Arc<dyn Embedder>));
    Bench { folder, clock, store, primitive }
}

async fn closed(bench: Bench) -> Bench {
    bench.store.close().await;
    bench
}

fn new(text: &str, tag: &str) -> NewMemory {
    NewMemory {
        kind: MemoryKind::Semantic,
        text: text.to_owned(),
        tags: BTreeSet::from([tag.to_owned()]),
        metadata: None,
    }
}

async fn recall(memory: &dyn Memory, query: &str, tags: &[&str]) -> (bool, Vec<String>) {
    let sought = Sought {
        query: query.to_owned(),
        kinds: Vec::new(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        limit: 50,
    };
    let found = memory.recall(sought).await.unwrap();
    (found.hybrid, found.memories.into_iter().map(|one| one.text).collect())
}

#[test]
fn what_means_the_same_is_recalled_without_a_word_in_common_and_filters_hold() {
    run(async {
        let bench = with(closed(Bench::new(Kind::Memory).await).await, Some(Table::new("a")));
        let memory = bench.store.memory(&bench.primitive).await.unwrap();
        for (text, _) in MEANINGS.iter().filter(|(text, _)| !text.starts_with("which")) {
            memory.remember(new(text, if text.contains("pnpm") { "tools" } else { "dates" })).await.unwrap();
        }
        let (hybrid, found) = recall(&*memory, "which tool installs dependencies", &[]).await;
        assert!(hybrid);
        assert_eq!(found, ["packages are installed with pnpm", "the package manager is pnpm"]);
        assert_eq!(recall(&*memory, "which tool installs dependencies", &["dates"]).await.1, [""; 0]);
        // A word that only one of them holds counts beside the meaning that both share.
        let (_, found) = recall(&*memory, "we deploy on friday", &[]).await;
        assert_eq!(found, ["we deploy on friday", "releases go out at the end of the week"]);
    });
}

#[test]
fn texts_from_before_the_model_are_taken_up_when_they_are_needed_and_once_for_each_model() {
    run(async {
        let bench = with(closed(Bench::new(Kind::Memory).await).await, None);
        let memory = bench.store.memory(&bench.primitive).await.unwrap();
        memory.remember(new("the package manager is pnpm", "t")).await.unwrap();
        memory.remember(new("we deploy on friday", "t")).await.unwrap();
        let query = "which tool installs dependencies";
        assert_eq!(recall(&*memory, query, &[]).await, (false, Vec::new()));
        let mut bench = bench;
        for model in ["a", "b"] {
            let table = Table::new(model);
            bench = with(closed(bench).await, Some(Arc::clone(&table)));
            let memory = bench.store.memory(&bench.primitive).await.unwrap();
            for embedded in [3, 4] {
                let found = recall(&*memory, query, &[]).await;
                assert_eq!(found, (true, vec!["the package manager is pnpm".to_owned()]), "{model}");
                assert_eq!(
                    table.embedded.load(Ordering::SeqCst),
                    embedded,
                    "both texts once, and each query"
                );
            }
        }
    });
}

#[test]
fn a_model_that_fails_costs_meaning_and_nothing_else() {
    run(async {
        let broken = Arc::new(Table { model: "a", works: false, embedded: AtomicUsize::new(0) });
        let bench = with(closed(Bench::new(Kind::Memory).await).await, Some(broken));
        let memory = bench.store.memory(&bench.primitive).await.unwrap();
        memory.remember(new("we deploy on friday", "t")).await.unwrap();
        assert_eq!(
            recall(&*memory, "deploy friday", &[]).await,
            (false, vec!["we deploy on friday".to_owned()])
        );
    });
}

#[test]
fn texts_that_mean_the_same_are_consolidated_within_one_kind_and_set_of_tags() {
    run(async {
        let bench = with(closed(Bench::new(Kind::Memory).await).await, Some(Table::new("a")));
        let memory = bench.store.memory(&bench.primitive).await.unwrap();
        let old = memory.remember(new("the package manager is pnpm", "t")).await.unwrap();
        memory.remember(new("the package manager is pnpm", "u")).await.unwrap();
        memory.remember(new("packages are installed with pnpm", "t")).await.unwrap();
        memory.remember(new("we deploy on friday", "t")).await.unwrap();
        let changes = memory.consolidate().await.unwrap();
        let changed: Vec<&str> = changes.iter().map(|change| change.id.as_str()).collect();
        assert_eq!(changed, [old.id.as_str()], "10 degrees apart; the other one has other tags");
        let (_, found) = recall(&*memory, "which tool installs dependencies", &["t"]).await;
        assert_eq!(found, ["packages are installed with pnpm"], "no vector of it is left behind");
        assert!(memory.consolidate().await.unwrap().is_empty());
    });
}
