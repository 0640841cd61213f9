//! vault_use over TLS: to a server whose certificate the system trusts, and never to another one.
//!
//! Which authorities the system trusts is said by SSL_CERT_FILE, as everywhere on Linux. The certificates and the key in
//! `tls` were made for these tests.

use super::stdio::Desk;
use super::vault_commands::done;
use crate::support::Server;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const SECRET: &str = "a secret behind TLS";

fn made_for_tests(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/primitives/tls").join(name)
}

/// What it was sent over TLS, whole lines of heads, and connections that came to nothing.
#[derive(Clone, Default)]
struct Heard {
    lines: Arc<Mutex<Vec<String>>>,
    failed: Arc<Mutex<Vec<String>>>,
}

/// A server that answers everybody; its threads end with the test.
fn serve() -> (SocketAddr, Heard) {
    let certificates = vec![CertificateDer::from_pem_file(made_for_tests("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(made_for_tests("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
    let kept = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, stream));
            loop {
                let mut line = String::new();
                match stream.read_line(&mut line) {
                    Ok(_) if line.trim().is_empty() => break,
                    Ok(_) => kept.lines.lock().unwrap().push(line.trim().to_owned()),
                    Err(error) => {
                        kept.failed.lock().unwrap().push(error.to_string());
                        break;
                    }
                }
            }
            let _ = stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            stream.get_mut().conn.send_close_notify();
            let _ = stream.get_mut().flush();
        }
    });
    (address, heard)
}

#[test]
fn a_secret_goes_to_a_server_that_the_system_trusts_and_to_no_other() {
    let (address, heard) = serve();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let place = ["--profile", "primitives", "--data", data, "--group", "g"];
    let trusting = |authority: &str| {
        let file = made_for_tests(authority);
        Desk::of(Server::bare().flags(&place).env("SSL_CERT_FILE", file.to_str().unwrap()))
    };
    let asked = json!({"url": format!("https://{address}/hello"), "auth": {"bearer": "token"}});

    let mut desk = trusting("ca.pem");
    desk.ok("primitive_create", json!({"type": "vault", "name": "v"}));
    done(folder.path(), &["set", "token"], SECRET);
    done(folder.path(), &["grant", "token", "--host", &address.to_string(), "--private"], "");
    let answer = desk.ok("vault_use", asked.clone());
    assert_eq!((&answer["status"], &answer["body"]), (&json!(200), &json!("hello")), "{answer}");
    let lines = std::mem::take(&mut *heard.lines.lock().unwrap());
    assert_eq!(lines[0], "GET /hello HTTP/1.1");
    assert!(lines.iter().any(|line| *line == format!("authorization: Bearer {SECRET}")), "{lines:?}");
    drop(desk);

    let mut desk = trusting("other.pem");
    let (code, words) = desk.refusal("vault_use", asked);
    assert_eq!(code, "unreachable", "{words}");
    assert!(words.contains("no connection, nothing was sent: ") && words.contains("certificate"), "{words}");
    assert!(!words.contains(SECRET));
    assert_eq!(heard.lines.lock().unwrap().as_slice(), [] as [String; 0], "not a byte of the request");
    // The server may hear of it a moment after the client.
    let failed = || heard.failed.lock().unwrap().len();
    for _ in 0..500 {
        if failed() > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(failed(), 1);
}
