//! The workers of all databases together: which files have some, how many run at once, and when those that nobody
//! needs are ended.
//!
//! A worker costs memory even while it waits, and a data folder may hold thousands of databases. It knows no SQL.

use super::SqlSettings;
use crate::sqlite::copy::{Copied, CopyRequest};
use crate::state::Outcome;
use crate::worker::pool::{Attend, JobError, Pool, Terms, Yard};
use crate::worker::protocol::{Answer, Work};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Jobs that run at once, over all databases.
const MOST_RUNNING: usize = 8;
/// Databases that keep their workers while nobody uses them.
const MOST_KEPT: usize = 4;
/// How long they keep them.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Workers, by the file that they work on.
pub(super) struct Crew {
    yard: Yard,
    pools: Mutex<HashMap<PathBuf, Kept>>,
}

struct Kept {
    pool: Arc<Pool>,
    used: Instant,
}

/// There is no log that a statement could read.
struct NoLog;

impl Attend for NoLog {
    async fn write_log(&self) {}
}

impl Crew {
    /// A crew without workers yet, which ends those that were not used for a while. Must be called in a tokio runtime.
    pub(super) fn new(sql: &SqlSettings) -> Arc<Self> {
        let SqlSettings { busy_timeout, narrowing, program, .. } = sql.clone();
        let yard = Yard::new(MOST_RUNNING, busy_timeout, narrowing, program);
        let crew = Arc::new(Self { yard, pools: Mutex::default() });
        tokio::spawn(watch(Arc::downgrade(&crew)));
        crew
    }

    /// Runs a job that reads.
    ///
    /// # Errors
    /// As [`Pool::read`].
    pub(super) async fn read(&self, file: &Path, work: Work, terms: &Terms) -> Result<Answer, JobError> {
        let pool = self.pool(file);
        let result = pool.read(work, terms, &NoLog).await;
        drop(pool);
        self.used(file);
        result
    }

    /// Runs a job that writes; those over one file one after the other.
    ///
    /// # Errors
    /// As [`Pool::write`].
    pub(super) async fn write(&self, file: &Path, work: Work, terms: &Terms) -> Result<Answer, JobError> {
        let pool = self.pool(file);
        let result = pool.write(work, terms, &NoLog).await;
        drop(pool);
        self.used(file);
        result
    }

    /// How long to wait for another process's lock.
    pub(super) fn busy_timeout(&self) -> Duration {
        self.yard.busy_timeout
    }

    /// Makes a copy, in a process of its own.
    ///
    /// # Errors
    /// As [`Yard::copy`].
    pub(super) async fn copy(&self, request: CopyRequest) -> Outcome<Copied> {
        self.yard.copy(request).await
    }

    /// Ends the workers of a file that is used no more, or lets them end what they do.
    pub(super) fn forget(&self, file: &Path) {
        self.pools(|pools| pools.remove(file));
    }

    /// Stops what runs and ends all workers.
    pub(super) async fn close(&self) {
        let pools: Vec<Kept> = self.pools(|pools| pools.drain().map(|(_, kept)| kept).collect());
        futures::future::join_all(pools.iter().map(|kept| kept.pool.close())).await;
    }

    fn pool(&self, file: &Path) -> Arc<Pool> {
        self.pools(|pools| {
            let made = || Kept { pool: Arc::new(self.yard.pool(file.to_path_buf())), used: Instant::now() };
            Arc::clone(&pools.entry(file.to_path_buf()).or_insert_with(made).pool)
        })
    }

    fn used(&self, file: &Path) {
        self.pools(|pools| {
            if let Some(kept) = pools.get_mut(file) {
                kept.used = Instant::now();
            }
            end_idle(pools, MOST_KEPT, None);
        });
    }

    fn pools<T>(&self, work: impl FnOnce(&mut HashMap<PathBuf, Kept>) -> T) -> T {
        work(&mut self.pools.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Ends the workers of idle databases: of those that were used longest ago, but for `most`, and of those that were not
/// used since `before`. Dropping a pool kills them.
fn end_idle(pools: &mut HashMap<PathBuf, Kept>, most: usize, before: Option<Instant>) {
    let idle = |kept: &Kept| Arc::strong_count(&kept.pool) == 1;
    let mut times: Vec<Instant> = pools.values().filter(|kept| idle(kept)).map(|kept| kept.used).collect();
    times.sort_unstable();
    let surplus = times.len().checked_sub(most + 1).and_then(|last| times.get(last).copied());
    let since = surplus.max(before);
    pools.retain(|_, kept| !idle(kept) || since.is_none_or(|since| kept.used > since));
}

async fn watch(crew: Weak<Crew>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(crew) = crew.upgrade() else { return };
        let before = Instant::now().checked_sub(KEPT_FOR);
        crew.pools(|pools| end_idle(pools, MOST_KEPT, before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_databases_keep_their_workers_for_a_while_and_a_few_at_most() {
        let yard = Yard::new(1, Duration::ZERO, crate::policy::Narrowing::default(), None);
        let now = Instant::now();
        let mut pools: HashMap<PathBuf, Kept> = (0..7_u64)
            .map(|age| {
                let path = PathBuf::from(age.to_string());
                let used = now + Duration::from_secs(100 - age);
                (path.clone(), Kept { pool: Arc::new(yard.pool(path)), used })
            })
            .collect();
        let busy = Arc::clone(&pools[Path::new("6")].pool);
        let names = |pools: &HashMap<PathBuf, Kept>| {
            let mut names: Vec<String> = pools.keys().map(|path| path.display().to_string()).collect();
            names.sort();
            names.concat()
        };
        end_idle(&mut pools, 4, None);
        assert_eq!(names(&pools), "01236", "the last four, and the one that works");
        end_idle(&mut pools, 4, Some(now + Duration::from_secs(98)));
        assert_eq!(names(&pools), "016");
        drop(busy);
        end_idle(&mut pools, 4, Some(now + Duration::from_secs(200)));
        assert_eq!(names(&pools), "");
    }
}
