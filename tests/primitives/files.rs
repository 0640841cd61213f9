//! A tree of files against a map of paths.

use super::{Bench, code, run};
use indelible::error::ErrorCode;
use indelible::state::catalog::Kind;
use indelible::state::files::{Node, is_below, parent};
use indelible::state::store::Store;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Where to look, the text, and where it stands: the file and the line.
type Row<'a> = (&'a str, &'a str, &'a [(&'a str, u64)]);

#[derive(Clone, Debug)]
enum Step {
    Write(String, Vec<u8>),
    Folder(String),
    Rename(String, String),
    Copy(String, String),
    Delete(String, bool),
    Restart,
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("a0"), Just("ü%")], 1..4)
        .prop_map(|names| format!("/{}", names.join("/")))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Some are kept beside the index.
    let bytes = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => any::<u8>().prop_map(|byte| vec![byte; 70_000]),
    ];
    let step = prop_oneof![
        5 => (path(), bytes).prop_map(|(path, bytes)| Step::Write(path, bytes)),
        2 => path().prop_map(Step::Folder),
        3 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Copy(from, to)),
        2 => (path(), any::<bool>()).prop_map(|(path, deep)| Step::Delete(path, deep)),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..30)
}

/// Bytes of a file, none for a folder.
type Model = BTreeMap<String, Option<Vec<u8>>>;

fn parents(model: &Model, path: &str) -> Result<Vec<String>, ErrorCode> {
    let mut made = Vec::new();
    let mut above = parent(path);
    while let Some(folder) = above.filter(|folder| *folder != "/") {
        match model.get(folder) {
            Some(Some(_)) => return Err(ErrorCode::Conflict),
            Some(None) => break,
            None => made.push(folder.to_owned()),
        }
        above = parent(folder);
    }
    Ok(made)
}

fn put(model: &mut Model, path: &str, node: Option<Vec<u8>>) -> Result<(), ErrorCode> {
    for folder in parents(model, path)? {
        model.insert(folder, None);
    }
    model.insert(path.to_owned(), node);
    Ok(())
}

fn whole(model: &Model, path: &str) -> Vec<(String, Option<Vec<u8>>)> {
    let mine = |other: &String| other == path || is_below(other, path);
    model.iter().filter(|(other, _)| mine(other)).map(|(path, node)| (path.clone(), node.clone())).collect()
}

fn apply(model: &mut Model, step: &Step) -> Result<(), ErrorCode> {
    match step {
        Step::Write(path, bytes) => match model.get(path) {
            Some(None) => Err(ErrorCode::Conflict),
            _ => put(model, path, Some(bytes.clone())),
        },
        Step::Folder(path) => match model.get(path) {
            Some(Some(_)) => Err(ErrorCode::Conflict),
            Some(None) => Ok(()),
            None => put(model, path, None),
        },
        Step::Rename(from, to) => {
            let moved = model.get(from).cloned().ok_or(ErrorCode::NotFound)?;
            if is_below(to, from) {
                return Err(ErrorCode::InvalidArguments);
            }
            if from == to {
                return Ok(());
            }
            match (&moved, model.get(to)) {
                (_, None) | (Some(_), Some(Some(_))) => {}
                (None, Some(None)) if whole(model, to).len() == 1 => {}
                _ => return Err(ErrorCode::Conflict),
            }
            parents(model, to)?;
            let entries = whole(model, from);
            entries.iter().for_each(|(path, _)| drop(model.remove(path)));
            for (path, node) in entries {
                put(model, &format!("{to}{}", path.strip_prefix(from.as_str()).unwrap()), node)?;
            }
            Ok(())
        }
        Step::Copy(from, to) => {
            if !model.contains_key(from) {
                return Err(ErrorCode::NotFound);
            }
            if is_below(to, from) {
                return Err(ErrorCode::InvalidArguments);
            }
            if model.contains_key(to) {
                return Err(ErrorCode::Conflict);
            }
            parents(model, to)?;
            for (path, node) in whole(model, from) {
                put(model, &format!("{to}{}", path.strip_prefix(from.as_str()).unwrap()), node)?;
            }
            Ok(())
        }
        Step::Delete(path, deep) => {
            if !model.contains_key(path) {
                return Err(ErrorCode::NotFound);
            }
            let entries = whole(model, path);
            if entries.len() > 1 && !deep {
                return Err(ErrorCode::Conflict);
            }
            entries.iter().for_each(|(path, _)| drop(model.remove(path)));
            Ok(())
        }
        Step::Restart => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn an_fs_primitive_is_a_map_of_paths(steps in steps()) {
        run(async {
            let mut bench = Bench::new(Kind::Fs).await;
            let mut files = bench.store.files(&bench.primitive).await.unwrap();
            let mut model = Model::new();
            for step in steps {
                let expected = apply(&mut model, &step);
                let result = match step.clone() {
                    Step::Write(path, bytes) => files.write(path, bytes).await,
                    Step::Folder(path) => files.make_folder(path).await,
                    Step::Rename(from, to) => files.rename(from, to).await,
                    Step::Copy(from, to) => files.copy(from, to).await,
                    Step::Delete(path, deep) => files.delete(path, deep).await.map(|_| ()),
                    Step::Restart => {
                        drop(files);
                        bench = bench.again().await;
                        files = bench.store.files(&bench.primitive).await.unwrap();
                        Ok(())
                    }
                };
                prop_assert_eq!(result.map_err(|error| error.code), expected, "{:?}", step);
                let listed = files.list("/".to_owned(), true, 0, 10_000).await.unwrap();
                let paths: Vec<&String> = listed.iter().map(|entry| &entry.path).collect();
                prop_assert_eq!(paths, model.keys().collect::<Vec<_>>(), "{:?}", step);
                for entry in &listed {
                    match (&entry.node, &model[&entry.path]) {
                        (Node::Folder, None) => {}
                        (Node::File { size, .. }, Some(bytes)) => {
                            prop_assert_eq!(*size, bytes.len() as u64);
                            let read = files.read(entry.path.clone(), 0, usize::MAX).await.unwrap();
                            prop_assert!(&read == bytes, "{}", entry.path);
                        }
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
            }
            Ok(())
        })?;
    }
}

#[test]
fn texts_are_found_whatever_their_letters_and_the_file_s_size() {
    run(async {
        let bench = Bench::new(Kind::Fs).await;
        let files = bench.store.files(&bench.primitive).await.unwrap();
        let large = format!("{}\nthe Needle c++ here\n", "x".repeat(300_000));
        for (path, text) in
            [("/a/1", "no\nneedle c++ one"), ("/a/2", &large), ("/b", "NEEDLE C++"), ("/c", "NOT (x)")]
        {
            files.write(path.to_owned(), text.as_bytes().to_vec()).await.unwrap();
        }
        files.write("/bin".to_owned(), b"\0needle c++".to_vec()).await.unwrap();
        let rows: [Row<'_>; 6] = [
            ("/", "needle C++", &[("/a/1", 2), ("/a/2", 2), ("/b", 1)]),
            ("/a", "needle", &[("/a/1", 2), ("/a/2", 2)]),
            ("/b", "needle", &[("/b", 1)]),
            ("/", "NOT (", &[("/c", 1)]),
            ("/", "++", &[("/a/1", 2), ("/a/2", 2), ("/b", 1)]),
            ("/", "\"needle", &[]),
        ];
        for (path, text, expected) in rows {
            let found = files.search(path.to_owned(), text.to_owned(), 100).await.unwrap();
            let found: Vec<(&str, u64)> = found.iter().map(|one| (one.path.as_str(), one.line)).collect();
            assert_eq!(found, expected, "{path} {text}");
        }
        files.delete("/a".to_owned(), true).await.unwrap();
        let found = files.search("/".to_owned(), "needle".to_owned(), 100).await.unwrap();
        assert_eq!(found.len(), 1, "what is deleted is not found");
        assert_eq!(code(files.read("/a/1".to_owned(), 0, 1).await), ErrorCode::NotFound);
    });
}
