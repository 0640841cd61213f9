//! vault_use with names that mean now this and now that, and with hosts that take their time.

use super::echo::Echo;
use super::run;
use async_trait::async_trait;
use indelible::app::surface_settings;
use indelible::cli::Program;
use indelible::config::{self, RawArgs};
use indelible::embedded::{Embedded, SqlSettings};
use indelible::error::ErrorCode;
use indelible::outbound::{Outbound, Resolver};
use indelible::outcome::{CallContext, Outcome};
use indelible::primitives::GroupServer;
use indelible::primitives::groups::Groups;
use indelible::program::Indelible;
use indelible::state::catalog::Kind;
use indelible::state::clock::{Clock, SystemClock};
use indelible::state::store::Store;
use indelible::state::vault::grant::Grant;
use indelible::state::vault::{HostRule, SecretText};
use indelible::surface::built_in_manifest;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use zeroize::Zeroizing;

/// Gives one answer after the other, and remembers who was asked for.
#[derive(Default)]
struct Changing {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Changing {
    fn will_say(&self, answers: &[&[&str]]) {
        let parsed = answers.iter().map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect());
        *self.answers.lock().unwrap() = parsed.collect();
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[async_trait]
impl Resolver for Changing {
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let next = self.answers.lock().unwrap().pop_front();
        next.ok_or_else(|| std::io::Error::other("no such name"))
    }
}

struct Bench {
    _folder: TempDir,
    names: Arc<Changing>,
    group: Arc<GroupServer>,
    store: Arc<dyn Store>,
}

impl Bench {
    /// A group with a vault that has the secret `token`, granted to these hosts.
    async fn new(grants: Vec<Grant>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let raw = RawArgs {
            profile: Some("primitives".to_owned()),
            data: Some(folder.path().into()),
            ..RawArgs::default()
        };
        let profiles = Indelible.profiles(&[], None).unwrap();
        let settings = config::resolve(&raw, |_| None, &profiles).unwrap();
        let words = surface_settings(&settings);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Embedded::open(folder.path(), Arc::clone(&clock), SqlSettings::default()).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let names = Arc::new(Changing::default());
        let outbound = Outbound::new(Arc::clone(&names) as Arc<dyn Resolver>, Duration::from_secs(2));
        let groups =
            Groups::new(&built_in_manifest().unwrap(), settings, words, Arc::clone(&store), clock, None)
                .unwrap();
        let group = groups.with_outbound(outbound).open("g", true).await.unwrap();
        let primitive = store.catalog().create(&group.group, Kind::Vault, "v").await.unwrap();
        let vault = store.vault(&primitive).await.unwrap();
        let value = SecretText::new(Zeroizing::new("correct horse".to_owned())).unwrap();
        vault.set("token".to_owned(), value).await.unwrap();
        for grant in grants {
            vault.grant("token".to_owned(), grant).await.unwrap();
        }
        Self { _folder: folder, names, group, store }
    }

    async fn get(&self, url: &str) -> Outcome {
        let arguments = json!({"url": url, "auth": {"bearer": "token"}});
        let Value::Object(arguments) = arguments else { panic!() };
        self.group.call("vault_use", Some(arguments), CallContext::default()).await.unwrap()
    }
}

fn grant(host: &str, private: bool) -> Grant {
    Grant { private, http: true, ..Grant::to(vec![HostRule::parse(host).unwrap()]) }
}

#[test]
fn a_connection_goes_to_the_address_that_was_looked_at() {
    let good = Echo::start();
    let port = good.address.port();
    // Another server on the same port.
    let evil = Echo::on(format!("127.0.0.2:{port}").parse().unwrap());
    assert_ne!(good.ip(), evil.ip());
    run(async {
        let bench = Bench::new(vec![grant(&format!("rebind.example:{port}"), true)]).await;
        bench.names.will_say(&[&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.2"]]);
        let answer = bench.get(&format!("http://rebind.example:{port}/x")).await;
        assert_eq!(answer.error, None, "{}", answer.text);
        assert_eq!(bench.names.asked(), ["rebind.example"], "a name is looked up once");
        let seen = good.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].header("host"), Some(format!("rebind.example:{port}").as_str()));
        assert_eq!(evil.seen().len(), 0);
        bench.store.close().await;
    });
}

#[test]
fn one_address_that_is_none_to_go_to_is_enough_to_refuse() {
    let echo = Echo::start();
    let port = echo.address.port();
    run(async {
        let public = grant(&format!("public.example:{port}"), false);
        let bench = Bench::new(vec![public, grant(&format!("private.example:{port}"), true)]).await;
        let rows: [(&str, &[&str], ErrorCode, &str); 9] = [
            ("public", &["127.0.0.1"], ErrorCode::NotGranted, "has the private address 127.0.0.1"),
            ("public", &["8.8.8.8", "127.0.0.1"], ErrorCode::NotGranted, "has the private address 127.0.0.1"),
            ("public", &["10.1.2.3"], ErrorCode::NotGranted, "has the private address 10.1.2.3"),
            ("public", &["::1"], ErrorCode::NotGranted, "has the private address ::1"),
            (
                "public",
                &["::ffff:127.0.0.1"],
                ErrorCode::NotGranted,
                "has the private address ::ffff:127.0.0.1",
            ),
            ("private", &["127.0.0.1", "169.254.169.254"], ErrorCode::NotGranted, "no secret is sent to"),
            ("private", &["0.0.0.0"], ErrorCode::NotGranted, "no secret is sent to"),
            ("private", &["::ffff:169.254.169.254"], ErrorCode::NotGranted, "no secret is sent to"),
            ("private", &[], ErrorCode::Unreachable, "the name has no address"),
        ];
        for (host, addresses, code, words) in rows {
            bench.names.will_say(&[addresses]);
            let answer = bench.get(&format!("http://{host}.example:{port}/x")).await;
            assert_eq!(answer.error, Some(code), "{addresses:?} {}", answer.text);
            assert!(
                answer.text.contains(words) && answer.text.contains("nothing was sent"),
                "{}",
                answer.text
            );
        }
        bench.names.will_say(&[]);
        let answer = bench.get(&format!("http://private.example:{port}/x")).await;
        assert_eq!(answer.error, Some(ErrorCode::Unreachable));
        assert!(answer.text.contains("nothing was sent: no such name"), "{}", answer.text);
        // What is not granted is not even looked up.
        bench.names.asked();
        bench.get("http://other.example/").await;
        assert!(bench.names.asked().is_empty());
        assert_eq!(echo.seen().len(), 0);
        bench.store.close().await;
    });
}

#[test]
fn slow_hosts_cost_their_time_and_no_more_than_so_many_at_once() {
    let echo = Echo::start();
    let url = echo.url("/slow");
    run(async {
        let bench = Bench::new(vec![grant(&echo.address.to_string(), true)]).await;
        let began = Instant::now();
        let sixteen = futures::future::join_all((0..16).map(|_| bench.get(&url)));
        let one_more = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            bench.get(&url).await
        };
        let (sixteen, one_more) = tokio::join!(sixteen, one_more);
        assert_eq!(one_more.error, Some(ErrorCode::Busy), "{}", one_more.text);
        for answer in sixteen {
            assert_eq!(answer.error, Some(ErrorCode::Timeout), "{}", answer.text);
            assert!(
                answer.text.contains("whether the request had an effect is not known"),
                "{}",
                answer.text
            );
        }
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        assert_eq!(bench.get(&echo.url("/all")).await.error, None);
        bench.store.close().await;
    });
}
