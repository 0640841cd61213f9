//! Secrets at rest: versions, grants, what was changed in the file, and copies of it.

use super::{Bench, code, run};
use indelible::embedded::Embedded;
use indelible::error::ErrorCode;
use indelible::state::catalog::Kind;
use indelible::state::clock::{Clock, ManualClock};
use indelible::state::store::Store;
use indelible::state::vault::grant::Grant;
use indelible::state::vault::{Entry, HostRule, SecretText, Vault};
use std::path::PathBuf;
use std::sync::Arc;
use zeroize::Zeroizing;

fn secret(text: &str) -> SecretText {
    SecretText::new(Zeroizing::new(text.to_owned())).unwrap()
}

fn grant(host: &str) -> Grant {
    Grant::to(vec![HostRule::parse(host).unwrap()])
}

fn name() -> String {
    "token".to_owned()
}

async fn entry(vault: &dyn Vault) -> Entry {
    vault.entry(name()).await.unwrap().unwrap()
}

fn file(bench: &Bench) -> PathBuf {
    bench.folder.path().join("groups").join(&bench.primitive.group).join(&bench.primitive.id).join("main.db")
}

#[test]
fn values_have_versions_and_grants_stay_with_the_name() {
    run(async {
        let bench = Bench::new(Kind::Vault).await;
        let vault = bench.store.vault(&bench.primitive).await.unwrap();
        assert_eq!(vault.list().await.unwrap(), []);
        assert_eq!(vault.entry(name()).await.unwrap(), None);
        assert_eq!(code(vault.grant(name(), grant("a.example")).await), ErrorCode::NotFound);
        assert_eq!(code(vault.revoke(name(), None).await), ErrorCode::NotFound);
        assert_eq!(code(vault.delete(name()).await), ErrorCode::NotFound);
        assert_eq!(code(vault.value(name(), 1).await), ErrorCode::NotFound);
        assert_eq!(code(vault.set("a b".to_owned(), secret("12345678")).await), ErrorCode::InvalidArguments);
        assert_eq!(vault.set(name(), secret("first value")).await, Ok(1));
        assert_eq!(vault.value(name(), 1).await, Ok(secret("first value")));
        assert_eq!(vault.grant(name(), grant("a.example")).await, Ok(1));
        assert_eq!(vault.grant(name(), grant(".b.example")).await, Ok(2));
        assert_eq!(vault.set(name(), secret("second value")).await, Ok(2));
        assert_eq!(code(vault.value(name(), 1).await), ErrorCode::NotFound);
        let now = entry(&*vault).await;
        assert_eq!((now.version, now.grants.len()), (2, 2));
        assert_eq!(now.grants[1].grant, grant(".b.example"));
        assert_eq!(code(vault.revoke(name(), Some(3)).await), ErrorCode::NotFound);
        assert_eq!(vault.revoke(name(), Some(2)).await, Ok(1));
        // A number is not given twice.
        assert_eq!(vault.grant(name(), grant("c.example")).await, Ok(3));
        assert_eq!(vault.revoke(name(), None).await, Ok(2));
        assert_eq!(entry(&*vault).await.grants, []);
        vault.grant(name(), grant("a.example")).await.unwrap();
        vault.delete(name()).await.unwrap();
        assert_eq!(vault.list().await.unwrap(), []);
        assert_eq!(code(vault.value(name(), 2).await), ErrorCode::NotFound);
        // Nor is a version, and a new secret of the name has none of the former one's grants.
        assert_eq!(vault.set(name(), secret("third value")).await, Ok(3));
        assert_eq!(entry(&*vault).await.grants, []);
        let bench = bench.again().await;
        let vault = bench.store.vault(&bench.primitive).await.unwrap();
        assert_eq!(vault.value(name(), 3).await, Ok(secret("third value")));
    });
}

#[test]
fn grants_have_an_end() {
    run(async {
        let bench = Bench::new(Kind::Vault).await;
        let vault = bench.store.vault(&bench.primitive).await.unwrap();
        vault.set(name(), secret("12345678")).await.unwrap();
        for number in 1..=50 {
            assert_eq!(vault.grant(name(), grant("a.example")).await, Ok(number));
        }
        assert_eq!(code(vault.grant(name(), grant("a.example")).await), ErrorCode::TooLarge);
    });
}

#[test]
fn what_is_changed_in_the_file_is_noticed() {
    let changes = [
        "UPDATE secrets SET sealed_value = zeroblob(60)",
        "UPDATE secrets SET sealed_key = zeroblob(72)",
        "UPDATE secrets SET sealed_by = zeroblob(8)",
        "UPDATE secrets SET version = 7",
        "UPDATE vault SET id = zeroblob(16)",
        // One secret's value under another's name.
        "UPDATE secrets SET (sealed_key, sealed_value) = (SELECT o.sealed_key, o.sealed_value FROM secrets o WHERE o.name = 'other')",
        "UPDATE grants SET rule = replace(rule, 'a.example', 'evil.example')",
        "UPDATE grants SET rule = replace(rule, '\"private\":false', '\"private\":true')",
        "UPDATE grants SET number = 9",
        "UPDATE grants SET stamp = zeroblob(40)",
        "INSERT INTO grants SELECT name, 5, rule, stamped_by, stamp FROM grants WHERE name = 'token'",
        "INSERT INTO grants SELECT 'token', 1000 + number, rule, stamped_by, stamp FROM grants WHERE name = 'other'",
    ];
    for change in changes {
        run(async {
            let bench = Bench::new(Kind::Vault).await;
            let vault = bench.store.vault(&bench.primitive).await.unwrap();
            for name in ["other", "token"] {
                vault.set(name.to_owned(), secret(&format!("the value of {name}"))).await.unwrap();
                vault.grant(name.to_owned(), grant("a.example")).await.unwrap();
            }
            let beside = rusqlite::Connection::open(file(&bench)).unwrap();
            beside.execute_batch(change).unwrap();
            let looked = vault.entry(name()).await;
            let version = looked.as_ref().map_or(1, |entry| entry.as_ref().unwrap().version);
            let opened = vault.value(name(), version).await;
            let error = looked.err().or(opened.err()).unwrap_or_else(|| panic!("{change} went unnoticed"));
            assert_eq!(error.code, ErrorCode::Corrupt, "{change}");
            assert!(!error.message.contains("the value of"), "{error}");
        });
    }
}

#[test]
fn a_copy_of_the_file_opens_as_another_primitive_and_goes_its_own_way() {
    run(async {
        let bench = Bench::new(Kind::Vault).await;
        let vault = bench.store.vault(&bench.primitive).await.unwrap();
        vault.set(name(), secret("first value")).await.unwrap();
        vault.grant(name(), grant("a.example")).await.unwrap();
        let group = bench.store.catalog().group("g", false).await.unwrap();
        let fork = bench.store.catalog().create(&group, Kind::Vault, "fork").await.unwrap();
        let target = bench.folder.path().join("groups").join(&fork.group).join(&fork.id);
        std::fs::create_dir_all(&target).unwrap();
        let source = rusqlite::Connection::open(file(&bench)).unwrap();
        source.execute("VACUUM INTO ?1", [target.join("main.db").to_str().unwrap()]).unwrap();
        let forked = bench.store.vault(&fork).await.unwrap();
        assert_eq!(entry(&*forked).await, entry(&*vault).await);
        assert_eq!(forked.value(name(), 1).await, Ok(secret("first value")));
        vault.set(name(), secret("second value")).await.unwrap();
        forked.revoke(name(), None).await.unwrap();
        assert_eq!(forked.value(name(), 1).await, Ok(secret("first value")));
        assert_eq!(entry(&*vault).await.grants.len(), 1);
    });
}

#[test]
fn without_its_key_a_vault_tells_nothing_and_says_what_is_missing() {
    run(async {
        let bench = Bench::new(Kind::Vault).await;
        let vault = bench.store.vault(&bench.primitive).await.unwrap();
        vault.set(name(), secret("first value")).await.unwrap();
        let key = bench.folder.path().join("vault.key");
        let kept = bench.folder.path().join("kept");
        std::fs::rename(&key, &kept).unwrap();
        let error = vault.value(name(), 1).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Corrupt);
        assert!(error.message.contains("`vault.key` in the data folder, is not there"), "{error}");
        // A second key would leave what was sealed before to nobody: none is made while there is such a secret.
        let error = vault.set("other".to_owned(), secret("other value")).await.unwrap_err();
        assert!(error.message.contains("is not there; a person must put it back"), "{error}");
        assert_eq!(vault.grant(name(), grant("a.example")).await.unwrap_err().code, ErrorCode::Corrupt);
        assert!(!key.exists());
        // A key that is put back counts at once.
        std::fs::rename(&kept, &key).unwrap();
        assert_eq!(vault.value(name(), 1).await, Ok(secret("first value")));
        // Where it is lost, the secrets are deleted and set anew.
        std::fs::rename(&key, &kept).unwrap();
        vault.delete(name()).await.unwrap();
        assert_eq!(vault.set(name(), secret("third value")).await, Ok(2));
        assert_eq!(vault.value(name(), 2).await, Ok(secret("third value")));
    });
}

#[test]
fn a_command_writes_beside_the_server_and_is_seen_at_once() {
    run(async {
        let bench = Bench::new(Kind::Vault).await;
        let served = bench.store.vault(&bench.primitive).await.unwrap();
        assert_eq!(served.list().await.unwrap(), []);
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(0));
        let beside = Embedded::beside(bench.folder.path(), clock).unwrap();
        let person = beside.vault(&bench.primitive).await.unwrap();
        person.set(name(), secret("first value")).await.unwrap();
        assert_eq!(served.value(name(), 1).await, Ok(secret("first value")));
        served.grant(name(), grant("a.example")).await.unwrap();
        assert_eq!(entry(&*person).await.grants.len(), 1);
        beside.close().await;
        assert_eq!(served.set(name(), secret("second value")).await, Ok(2));
        let nowhere = bench.folder.path().join("nowhere");
        let error = Embedded::beside(&nowhere, Arc::new(ManualClock::at(0))).err().unwrap();
        assert!(error.message.contains("is no data folder"), "{error}");
        assert!(!nowhere.exists());
    });
}
