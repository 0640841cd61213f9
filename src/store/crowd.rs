//! How long it is worth to wait for others before a commit that they can share.
//!
//! Who calls alone never waits. Where several were there last time, as many are most likely on their way again: their
//! next requests stand in the pipe already, or their clients have just read the last answers. It holds nobody's work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The longest wait: about what one sync of a disk takes.
const PATIENCE: Duration = Duration::from_micros(200);

/// How many came last time.
#[derive(Debug, Default)]
pub struct Crowd(AtomicUsize);

impl Crowd {
    /// Lets the event loop bring in others until as many wait as last time, and remembers how many do now.
    pub async fn gather(&self, waiting: impl Fn() -> usize) {
        let expected = self.0.load(Ordering::Relaxed);
        let began = Instant::now();
        while waiting() < expected && began.elapsed() < PATIENCE {
            tokio::task::yield_now().await;
        }
        self.0.store(waiting(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_waits_alone_and_nobody_waits_long() {
        let crowd = Crowd::default();
        let began = Instant::now();
        crowd.gather(|| 1).await;
        crowd.gather(|| 8).await;
        // Eight came, and now there is one: it waits for the others, in vain, and the next does not.
        crowd.gather(|| 1).await;
        assert!(began.elapsed() >= PATIENCE);
        let began = Instant::now();
        for _ in 0..100 {
            crowd.gather(|| 1).await;
        }
        assert!(began.elapsed() < 50 * PATIENCE, "{:?}", began.elapsed());
    }
}
