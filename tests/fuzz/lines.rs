//! stdin of the server: whatever comes, each line that goes out is one JSON-RPC message, and the end of input ends it.

#[path = "../toy/mod.rs"]
#[allow(dead_code)]
mod toy;

use indelible::server::serve;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use toy::Toy;

const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"0"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);

pub(crate) fn run(data: &[u8]) {
    // A toy that sleeps would make each run as long as it says.
    if ["sleep", "stubborn", "ask"]
        .iter()
        .any(|tool| data.windows(tool.len()).any(|part| part == tool.as_bytes()))
    {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(far);
        let server = serve(Arc::new(Toy::default()), read, write, CancellationToken::new());
        let client = async {
            let (mut read, mut write) = tokio::io::split(near);
            let send = async {
                // Half of the inputs come before a handshake.
                if data.first().is_some_and(|byte| byte % 2 == 0) {
                    let _ = write.write_all(HELLO.as_bytes()).await;
                }
                let _ = write.write_all(data.get(1..).unwrap_or_default()).await;
                let _ = write.shutdown().await;
                drop(write);
            };
            let mut said = String::new();
            let (_, _) = tokio::join!(send, read.read_to_string(&mut said));
            said
        };
        let both = async { tokio::join!(server, client) };
        let (ended, said) = tokio::time::timeout(Duration::from_secs(10), both).await.expect("it ends");
        ended.expect("nothing a client sends is an error");
        for line in said.lines() {
            let message: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
            let messages = message.as_array().cloned().unwrap_or_else(|| vec![message.clone()]);
            assert!(messages.iter().all(|message| message["jsonrpc"] == "2.0"), "{line}");
        }
    });
}
