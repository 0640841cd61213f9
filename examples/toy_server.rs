//! Serves toy tools on stdin and stdout, for `tests/protocol_stdio.rs`.
//!
//! It has no database; the program itself is `indelible`.

#[path = "../tests/toy/mod.rs"]
mod toy;

use indelible::server::{serve, stdio};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn main() {
    indelible::logging::start(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let toy = Arc::new(toy::Toy::default());
        let served = serve(toy, stdio::input(), stdio::output(), CancellationToken::new());
        served.await.expect("the toys can be described");
    });
    runtime.shutdown_background();
}
