//! Memories: what is the same, what is recalled, what is not any more.

use super::{Bench, code, run};
use indelible::error::ErrorCode;
use indelible::state::catalog::Kind;
use indelible::state::memory::{Memory, MemoryKind, NewMemory, Sought};
use indelible::state::store::Store;
use std::collections::BTreeSet;

fn tags(tags: &[&str]) -> BTreeSet<String> {
    tags.iter().map(|tag| (*tag).to_owned()).collect()
}

fn memory(text: &str) -> NewMemory {
    NewMemory { kind: MemoryKind::Semantic, text: text.to_owned(), tags: tags(&["t"]), metadata: None }
}

fn sought(query: &str) -> Sought {
    Sought { query: query.to_owned(), kinds: Vec::new(), tags: BTreeSet::new(), limit: 50 }
}

async fn texts(memory: &dyn Memory, query: &str) -> Vec<String> {
    memory.recall(sought(query)).await.unwrap().memories.into_iter().map(|one| one.text).collect()
}

#[test]
fn what_shares_just_a_common_word_is_not_recalled() {
    run(async {
        let bench = Bench::new(Kind::Memory).await;
        let memories = bench.store.memory(&bench.primitive).await.unwrap();
        for number in 0..40 {
            memories
                .remember(memory(&format!("The server number {number} stands in rack {}", number % 7)))
                .await
                .unwrap();
        }
        memories
            .remember(memory("The database password of the staging server rotates weekly"))
            .await
            .unwrap();
        let found = texts(&*memories, "How often does the password of the staging server rotate?").await;
        assert_eq!(found, ["The database password of the staging server rotates weekly"]);
        assert_eq!(texts(&*memories, "rack 3").await.len(), 6, "of 0 to 39");
        assert_eq!(texts(&*memories, "nothing of the kind").await, Vec::<String>::new());
    });
}

#[test]
fn no_query_is_a_syntax_error_and_scripts_without_spaces_are_found() {
    run(async {
        let bench = Bench::new(Kind::Memory).await;
        let memories = bench.store.memory(&bench.primitive).await.unwrap();
        memories.remember(memory("部署在星期五进行")).await.unwrap();
        memories.remember(memory("C++ \"quote\" NOT (a) * b: c^2")).await.unwrap();
        for query in ["c++", "\"quote", "NOT (", "*", "b:", "^", "'", "", "a AND OR", "NEAR(x y)"] {
            memories.recall(sought(query)).await.unwrap();
        }
        assert_eq!(texts(&*memories, "星期五").await, ["部署在星期五进行"]);
    });
}

#[test]
fn a_text_is_remembered_once_superseded_and_consolidated() {
    run(async {
        let bench = Bench::new(Kind::Memory).await;
        let memories = bench.store.memory(&bench.primitive).await.unwrap();
        let first = memories.remember(memory("use pnpm")).await.unwrap();
        let same = memories.remember(memory(" use\n pnpm ")).await.unwrap();
        assert_eq!((same.id.as_str(), same.deduplicated), (first.id.as_str(), true));
        let other = NewMemory { tags: tags(&["u"]), ..memory("use pnpm") };
        assert!(!memories.remember(other).await.unwrap().deduplicated, "other tags");
        let later = memories.remember(memory("Use PNPM!")).await.unwrap();
        assert!(!later.deduplicated);

        let changes = memories.consolidate().await.unwrap();
        let changed: Vec<(&str, &str)> = changes.iter().map(|one| (one.id.as_str(), one.action)).collect();
        assert_eq!(changed, [(first.id.as_str(), "superseded")], "the newest of one kind and tags stays");
        assert_eq!(memories.consolidate().await.unwrap(), []);

        let changes = memories.supersede(later.id.clone(), "use bun".to_owned(), None).await.unwrap();
        assert_eq!(changes[0].action, "superseded");
        assert_eq!(texts(&*memories, "bun").await, ["use bun"]);
        assert_eq!(texts(&*memories, "pnpm").await, ["use pnpm"], "the one with the other tags");
        assert_eq!(code(memories.supersede(later.id, "x".to_owned(), None).await), ErrorCode::NotFound);
        memories.delete(changes[1].id.clone()).await.unwrap();
        assert_eq!(texts(&*memories, "bun").await, Vec::<String>::new());
        assert_eq!(code(memories.delete(changes[1].id.clone()).await), ErrorCode::NotFound);
    });
}
