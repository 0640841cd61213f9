//! The worker process: reads jobs from stdin, runs them behind the guard, answers on stdout.
//!
//! One thread. While a statement runs, SQLite's progress handler looks whether an interrupt has come in
//! over stdin; when stdin closes the process ends at once, and an open transaction ends with it. It
//! writes nothing to stdout but frames. Once it knows its database it gives up everything else (`confine`), and
//! only then opens it.

use super::confine::{self, Ward};
use super::frames::Frames;
use super::protocol::{Answer, FromWorker, Grouped, Job, Order, Setup, ToWorker, Work};
use crate::audit::AuditRow;
use crate::generated::{POLICIES, PROTECTED};
use crate::policy::{ConnectionKind, NOTHING_PROTECTED, Policy};
use crate::render::Caps;
use crate::sandbox;
use crate::sqlite::fault::{self, Fault};
use crate::sqlite::guard::Guarded;
use crate::sqlite::next_step;
use crate::sqlite::query::{self, Read as ReadStatement, ReadRows};
use crate::sqlite::restore;
use crate::sqlite::search_rows;
use crate::sqlite::toll::Agreed;
use crate::sqlite::view::NewView;
use crate::sqlite::watch::Watch;
use crate::sqlite::write::{Change, Changed, Moments, Writer};
use crate::sqlite::{compile, hiding, plan, sample};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs the worker until its stdin closes.
///
/// # Errors
/// What cannot be reported to the server: broken pipes, messages that are not of the protocol.
pub fn run() -> io::Result<()> {
    sandbox::die_with_the_parent();
    sandbox::close_inherited();
    if server_is_gone() {
        return Ok(());
    }
    fault::deny_quietly();
    let frames = Arc::new(Mutex::new(Frames::of_stdio()?));
    let pipe = Pipe { frames, stopped: Arc::default() };
    match pipe.receive::<Order>()? {
        Some(Order::Jobs(setup)) => run_jobs(&pipe, &setup),
        Some(Order::Snapshot(request)) => {
            let done = confine::for_snapshot(&request)
                .and_then(|_| crate::sqlite::copy::snapshot(&request, jiff::Timestamp::now()));
            pipe.send(&FromWorker::Snapshot(done))
        }
        Some(Order::Restore(request)) => {
            // No job, so no number.
            let mut before_commit = || {
                let _ = pipe.send(&FromWorker::Committing { job: 0 });
            };
            let done = confine::for_restore(&request)
                .map_err(Fault::from)
                .and_then(|_| restore::restore(&request, jiff::Timestamp::now(), &mut before_commit));
            pipe.send(&FromWorker::Restored(done.map(Box::new)))
        }
        Some(Order::Snapshots(listing)) => {
            let _ = confine::for_listing(&listing);
            pipe.send(&FromWorker::Snapshots(restore::list(&listing)))
        }
        Some(Order::Copy(request)) => {
            let _ = confine::for_copy(&request);
            pipe.send(&FromWorker::Copied(crate::sqlite::copy::plain(&request)))
        }
        Some(Order::Attempts(setup, ground)) => {
            let (confined, _) = confine::for_jobs(&setup);
            pipe.send(&FromWorker::Attempts(confined, sandbox::attempt::all(&ground)))
        }
        None => Ok(()),
    }
}

fn run_jobs(pipe: &Pipe, setup: &Setup) -> io::Result<()> {
    let (confined, ward) = confine::for_jobs(setup);
    let current = Arc::new(AtomicU64::new(0));
    let watch = watch_over(pipe, &current, Duration::from_millis(setup.busy_timeout_ms));
    let mut bench = match Bench::open(setup, watch) {
        Ok(bench) => bench,
        Err(error) => {
            return pipe.send(&FromWorker::Ready(Err(Fault::at_opening(&error))));
        }
    };
    pipe.send(&FromWorker::Ready(Ok(confined)))?;
    let mut tells_notes = setup.tells_notes;
    while let Some(message) = pipe.receive::<ToWorker>()? {
        match message {
            ToWorker::Job(job) => {
                current.store(job.number, Ordering::Relaxed);
                let number = job.number;
                let result = bench.work(*job, pipe);
                // Within a job, because reading the schema may wait for a lock.
                if std::mem::take(&mut tells_notes) {
                    let notes = hiding::notes(bench.guarded(), &setup.narrowing).unwrap_or_default();
                    pipe.send(&FromWorker::Notes(notes))?;
                }
                current.store(0, Ordering::Relaxed);
                if result.is_err() && outgrown(&bench, &ward) {
                    // The server takes another worker; this job has changed nothing.
                    return Ok(());
                }
                pipe.send(&FromWorker::Done { job: number, result })?;
            }
            // The job is over already.
            ToWorker::Interrupt { .. } | ToWorker::LogWritten { .. } => {}
        }
    }
    Ok(())
}

fn outgrown(bench: &Bench, ward: &Ward) -> bool {
    matches!(bench, Bench::Reads(_)) && ward.is_outgrown()
}

/// The connection a worker works on.
enum Bench {
    Reads(Box<Guarded>),
    Writes(Box<Writer>),
}

impl Bench {
    fn open(setup: &Setup, watch: Watch) -> rusqlite::Result<Self> {
        let protected = if setup.has_own_tables { &PROTECTED } else { &NOTHING_PROTECTED };
        if setup.writes {
            let guarded = Guarded::open(&setup.path, ConnectionKind::ReadWrite, false, protected, watch)?
                .narrowed(setup.narrowing.clone());
            Writer::new(guarded, setup.path.clone()).map(|writer| Self::Writes(Box::new(writer)))
        } else {
            Guarded::open(&setup.path, ConnectionKind::ReadOnly, setup.immutable, protected, watch)
                .map(|guarded| Self::Reads(Box::new(guarded.narrowed(setup.narrowing.clone()))))
        }
    }

    fn guarded(&self) -> &Guarded {
        match self {
            Self::Reads(guarded) => guarded,
            Self::Writes(writer) => writer.guarded(),
        }
    }

    fn work(&mut self, job: Job, pipe: &Pipe) -> Result<Answer, Fault> {
        let policy = policy_of(&job.policy)?;
        self.work_under(policy, job, pipe).map_err(|fault| next_step::added(self.guarded(), policy, fault))
    }

    fn work_under(&mut self, policy: &'static Policy, job: Job, pipe: &Pipe) -> Result<Answer, Fault> {
        self.guarded().watch().start(Duration::from_millis(job.timeout_ms));
        let mut moments = Told { pipe, job: job.number };
        match job.work {
            Work::Read { sql, params, limit, max_rows, caps, form } => {
                let read = ReadStatement { sql: &sql, params: &params, limit, max_rows, caps, form };
                query::run(self.guarded(), policy, read, &mut || moments.before_log()).map(
                    |rows| match rows {
                        ReadRows::Text(text) => Answer::Text(text),
                        ReadRows::Data(rows) => Answer::Rows(rows),
                    },
                )
            }
            Work::Sample(sample) => {
                sample::run(self.guarded(), policy, &sample, &mut || moments.before_log()).map(Answer::Rows)
            }
            Work::Explain { sql, params } => {
                plan::run(self.guarded(), policy, &sql, &params).map(Answer::Plan)
            }
            Work::Search(search) => {
                search_rows::run(self.guarded(), policy, &search, &mut || moments.before_log())
                    .map(Answer::Text)
            }
            Work::Tables { counts } => self.guarded().tables(counts).map(Answer::Tables),
            Work::Describe { table, count } => {
                self.guarded().describe(&table, count).map(|found| Answer::Described(Box::new(found)))
            }
            Work::Definitions { include_system, max_bytes } => {
                let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
                self.guarded().definitions(include_system, max_bytes).map(Answer::Definitions)
            }
            Work::Compile { sql } => match self {
                Self::Reads(guarded) => compile::read(guarded, policy, &sql),
                Self::Writes(writer) => compile::write(writer, policy, &sql),
            }
            .map(Answer::Compiled),
            Work::Check { sql, params } => {
                self.writer()?.check(policy, &sql, &params).map(|to_do| Answer::Accepted { to_do })
            }
            Work::Try { sql, params, max_overwrites } => {
                let (agreed, audit) = (Agreed::Nothing, AuditRow::default());
                let caps = Caps { max_result_bytes: 0, max_cell_chars: 0 };
                let change = Change {
                    sql: &sql,
                    params: &params,
                    max_rows: 0,
                    caps,
                    max_overwrites,
                    agreed,
                    audit: &audit,
                };
                takes_or_changed(self.writer()?.run(policy, &change, &mut moments))
            }
            Work::Change { sql, params, max_rows, caps, max_overwrites, agreed, audit } => {
                let change = Change {
                    sql: &sql,
                    params: &params,
                    max_rows,
                    caps,
                    max_overwrites,
                    agreed: agreed.as_ref().map_or(Agreed::Anything, Agreed::To),
                    audit: &audit,
                };
                takes_or_changed(self.writer()?.run(policy, &change, &mut moments))
            }
            Work::Group(group) => {
                let changes: Vec<Change<'_>> = group.iter().map(change_of).collect();
                self.writer()?.run_group(policy, &changes, &mut moments).map(Answer::Group)
            }
            Work::Batch(batch) => {
                Ok(Answer::Executed(self.writer()?.run_batch(policy, &batch, &mut moments)))
            }
            Work::CreateView { name, select_sql, description, replace, audit } => {
                let view = NewView {
                    name: &name,
                    select_sql: &select_sql,
                    description: description.as_deref(),
                    replace,
                    audit: &audit,
                };
                self.writer()?.create_view(policy, view, &mut moments).map(Answer::ViewCreated)
            }
        }
    }

    fn writer(&mut self) -> Result<&mut Writer, Fault> {
        match self {
            Self::Writes(writer) => Ok(writer),
            Self::Reads(_) => Err(Fault::error(
                crate::error::ErrorCode::SqlError,
                "a change was sent to a worker that only reads",
            )),
        }
    }
}

fn change_of(member: &Grouped) -> Change<'_> {
    let Grouped { sql, params, max_rows, caps, max_overwrites, audit } = member;
    let (max_rows, caps, max_overwrites) = (*max_rows, *caps, *max_overwrites);
    Change { sql, params, max_rows, caps, max_overwrites, agreed: Agreed::Anything, audit }
}

fn takes_or_changed(result: Result<Changed, Fault>) -> Result<Answer, Fault> {
    match result {
        Ok(changed) => Ok(Answer::Changed(changed)),
        Err(Fault::OtherToll(toll)) => Ok(Answer::Takes(toll)),
        Err(fault) => Err(fault),
    }
}

fn policy_of(id: &str) -> Result<&'static Policy, Fault> {
    POLICIES.iter().copied().find(|policy| policy.id == id).ok_or_else(|| {
        Fault::error(crate::error::ErrorCode::SqlError, format!("there is no policy `{id}` in this build"))
    })
}

/// Tells the server of moments in a job.
struct Told<'p> {
    pipe: &'p Pipe,
    job: u64,
}

impl Moments for Told<'_> {
    fn before_log(&mut self) {
        if self.pipe.send(&FromWorker::NeedsLog { job: self.job }).is_err() {
            return;
        }
        while let Ok(Some(message)) = self.pipe.receive::<ToWorker>() {
            match message {
                ToWorker::LogWritten { job } if job == self.job => return,
                ToWorker::Interrupt { job } => self.pipe.stopped.store(job, Ordering::Relaxed),
                _ => {}
            }
        }
    }

    fn before_commit(&mut self) {
        // A server that is gone will not read it; the next receive ends this process.
        let _ = self.pipe.send(&FromWorker::Committing { job: self.job });
    }
}

fn watch_over(pipe: &Pipe, current: &Arc<AtomicU64>, busy_timeout: Duration) -> Watch {
    let (asked, asked_job) = (pipe.clone(), Arc::clone(current));
    let (told, told_job) = (pipe.clone(), Arc::clone(current));
    Watch::new(
        busy_timeout,
        Box::new(move || asked.interrupted(asked_job.load(Ordering::Relaxed))),
        Box::new(move |waiting| {
            let job = told_job.load(Ordering::Relaxed);
            let message = if waiting { FromWorker::Waiting { job } } else { FromWorker::Started { job } };
            let _ = told.send(&message);
        }),
    )
}

/// The pipe to the server, shared with the watch.
#[derive(Clone)]
struct Pipe {
    frames: Arc<Mutex<Frames>>,
    /// The job of an interrupt that came while the job waited for the log; 0 for none.
    stopped: Arc<AtomicU64>,
}

impl Pipe {
    fn receive<T: serde::de::DeserializeOwned>(&self) -> io::Result<Option<T>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).receive()
    }

    fn send<T: serde::Serialize>(&self, message: &T) -> io::Result<()> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).send(message)
    }

    /// Whether the server wants this job stopped. Ends the process when the server is gone.
    fn interrupted(&self, job: u64) -> bool {
        if self.stopped.load(Ordering::Relaxed) == job {
            return true;
        }
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        while frames.readable() {
            match frames.receive::<ToWorker>() {
                Ok(Some(ToWorker::Interrupt { job: stopped })) if stopped == job => return true,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => std::process::exit(0),
            }
        }
        false
    }
}

/// Whether the server ended before the kernel was asked to tell: the pipe has no writer any more. What it had
/// ordered, a restore say, must not be begun by a process that nobody waits for.
#[cfg(unix)]
fn server_is_gone() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

/// Elsewhere the order that cannot be read whole tells.
#[cfg(not(unix))]
fn server_is_gone() -> bool {
    false
}
