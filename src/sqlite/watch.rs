//! The watch over a running statement: a deadline, and word from outside that it should stop.
//!
//! SQLite's progress and busy handlers ask it; it stops nothing itself, and it cannot stop a single
//! long opcode: the parent kills the worker for that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Virtual machine instructions between two looks at the watch (<https://sqlite.org/c3ref/progress_handler.html>).
pub const PROGRESS_OPS: i32 = 1000;

/// How often the outside is asked, at most; a look costs a system call.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// Why a statement was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Stop {
    /// The deadline passed.
    Deadline,
    /// The client cancelled, or the server is going.
    Cancelled,
}

/// Asks whether somebody outside wants the statement stopped. Called on the thread that runs it.
pub type Ask = Box<dyn FnMut() -> bool + Send>;

/// Told when the statement begins to wait for another process's lock, and when it has it.
pub type Waiting = Box<dyn FnMut(bool) + Send>;

/// A watch, shared between the connection's handlers and the code that runs statements.
#[derive(Clone)]
pub struct Watch(Arc<Mutex<State>>);

struct State {
    deadline: Option<Instant>,
    busy_timeout: Duration,
    busy_since: Option<Instant>,
    last_ask: Instant,
    stopped: Option<Stop>,
    ask: Ask,
    waiting: Waiting,
}

impl Watch {
    /// A watch that is not running yet.
    #[must_use]
    pub fn new(busy_timeout: Duration, ask: Ask, waiting: Waiting) -> Self {
        Self(Arc::new(Mutex::new(State {
            deadline: None,
            busy_timeout,
            busy_since: None,
            last_ask: Instant::now(),
            stopped: None,
            ask,
            waiting,
        })))
    }

    /// A watch that nobody outside can stop, for tests and for work without an agent.
    #[must_use]
    pub fn alone(busy_timeout: Duration) -> Self {
        Self::new(busy_timeout, Box::new(|| false), Box::new(|_| {}))
    }

    /// Starts the clock of one job.
    pub fn start(&self, limit: Duration) {
        self.with(|state| {
            let now = Instant::now();
            state.deadline = now.checked_add(limit);
            state.busy_since = None;
            state.stopped = None;
            state.last_ask = now;
        });
    }

    /// Nothing is stopped from here on: the work is about to be committed.
    pub fn disarm(&self) {
        self.with(|state| state.deadline = None);
    }

    /// Time left until the deadline; none when disarmed.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.with(|state| state.deadline.map(|at| at.saturating_duration_since(Instant::now())))
    }

    /// Why the last statement was stopped, if it was.
    #[must_use]
    pub fn stopped(&self) -> Option<Stop> {
        self.with(|state| state.stopped)
    }

    /// One look: whether the statement must stop now. Code that works between statements asks too.
    #[must_use]
    pub fn must_stop(&self) -> bool {
        self.with(State::must_stop)
    }

    /// SQLite's busy handler: waits a moment and says whether to try again. Waiting for another
    /// process's lock is bounded by the busy timeout and does not eat the statement's own time.
    pub(crate) fn wait_for_lock(&self, tries: i32) -> bool {
        let pause = Duration::from_millis(match tries {
            0..=2 => 1,
            3..=8 => 5,
            _ => 20,
        });
        let go_on = self.with(|state| {
            let now = Instant::now();
            let since = match state.busy_since {
                Some(since) if tries > 0 => since,
                _ => {
                    state.busy_since = Some(now);
                    (state.waiting)(true);
                    now
                }
            };
            if now.duration_since(since) >= state.busy_timeout {
                return false;
            }
            state.deadline = state.deadline.and_then(|at| at.checked_add(pause));
            state.last_ask = now;
            if (state.ask)() {
                state.stopped = Some(Stop::Cancelled);
                return false;
            }
            true
        });
        if go_on {
            std::thread::sleep(pause);
        }
        go_on
    }

    /// The lock was had, or given up: tells the outside if it had been told of the wait.
    pub fn waited(&self) {
        self.with(|state| {
            if state.busy_since.take().is_some() {
                (state.waiting)(false);
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn must_stop(&mut self) -> bool {
        let Some(deadline) = self.deadline else { return false };
        if self.stopped.is_some() {
            return true;
        }
        let now = Instant::now();
        if now >= deadline {
            self.stopped = Some(Stop::Deadline);
        } else if now.duration_since(self.last_ask) >= ASK_EVERY {
            self.last_ask = now;
            if (self.ask)() {
                self.stopped = Some(Stop::Cancelled);
            }
        }
        self.stopped.is_some()
    }
}
