//! One error of the library's that is none: an answer that nobody waits for any more.
//!
//! It says nothing itself, and keeps no other event from being said.

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Leaves out the library's error about an answer that it could not send any more.
///
/// Over HTTP rmcp (3.11.0, `OneshotTransport`) gives each request a channel of its own, and calls it an error when the
/// other end is gone once the answer is there: whenever a client goes away before its call is done, or the server ends
/// with one under way. Nobody waits for that answer, what the call came to is in the log of calls, and the answers that
/// can still be sent at the end are waited for (`server/http`). On stdin and stdout sending cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct NothingOfGoneClients;

impl<S: Subscriber> Layer<S> for NothingOfGoneClients {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let undelivered = "failed to send pending response during drain";
        event.metadata().target() != "rmcp::service" || !says(event, undelivered)
    }
}

/// Whether an event has these words as its message.
fn says(event: &Event<'_>, words: &'static str) -> bool {
    struct Looking(&'static str, bool);
    impl Visit for Looking {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.1 |= field.name() == "message" && format!("{value:?}") == self.0;
        }
    }
    let mut looking = Looking(words, false);
    event.record(&mut looking);
    looking.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use tracing_subscriber::layer::SubscriberExt;

    /// Everything that is written, one after the other.
    #[derive(Clone, Default)]
    struct Written(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_error_of_the_library_is_left_out_and_no_other() {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(lines).with(NothingOfGoneClients);
        tracing::subscriber::with_default(subscriber, || {
            let error = "channel closed";
            tracing::error!(target: "rmcp::service", %error, "failed to send pending response during drain");
            tracing::error!(target: "rmcp::service", %error, "response send task failed during drain");
            tracing::error!("failed to send pending response during drain");
            tracing::warn!("failed to send pending response during drain, says an agent");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let targets =
            text.lines().map(|line| line.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" "));
        assert_eq!(
            targets.collect::<Vec<_>>(),
            [
                "ERROR rmcp::service:",
                "ERROR indelible::server::undelivered::tests:",
                "WARN indelible::server::undelivered::tests:"
            ]
        );
    }
}
