//! The program under ptrace(2): every change it makes to the files of one folder is recorded in order, with what it
//! says on stdout, and a system call can be made to fail.
//!
//! It sees the system calls of the server and of all processes that it starts, and so needs no help of theirs, no
//! library in front of libc and no rights beyond those over one's own children. It knows nothing of SQLite.
//! What the recording means for a disk that loses power is said in `disk.rs`.

#![expect(unsafe_code, reason = "ptrace(2) and waitpid(2) have no safe form")]

pub(crate) mod disk;
mod session;

pub(crate) use session::{Recording, Session};

use libc::{c_int, c_long, pid_t};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A file by the order of its making: inode numbers are used again.
pub(crate) type FileId = usize;

/// What was done to the folder, or said.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A new file under this name.
    Create(PathBuf, FileId),
    Write {
        file: FileId,
        offset: u64,
        data: Vec<u8>,
    },
    Truncate(FileId, u64),
    /// What was written to the file is on the disk.
    Sync(FileId),
    MakeFolder(PathBuf),
    /// What was done to the names in the folder is on the disk.
    SyncFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    /// A line on the server's stdout.
    Said(String),
}

/// An operation, the moment it was over, and how many had been done by then that can be made to fail.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) at: Duration,
}

/// Kinds of calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Writing, making files and names, setting a length: what needs room on the disk.
    Room,
    /// fsync and fdatasync.
    Sync,
}

/// Which calls fail, and how.
#[derive(Debug, Default)]
pub(crate) struct Sabotage {
    /// The calls of the kind counted so far.
    pub(crate) seen: AtomicUsize,
    /// From the call of this number on (the first is 1); 0 for never.
    pub(crate) from: AtomicUsize,
    /// Only that one call.
    pub(crate) once: AtomicBool,
    /// The error's number; 0 for none, the call is done then, after [`Self::held_ms`].
    pub(crate) error: AtomicI32,
    /// How long each call is held before it is done or fails, in milliseconds. One tracer: others wait meanwhile.
    pub(crate) held_ms: AtomicU64,
    /// How many were made to fail.
    pub(crate) failed: AtomicUsize,
    kind: Mutex<Option<Kind>>,
}

impl Sabotage {
    pub(crate) fn of(kind: Kind, error: i32) -> Arc<Self> {
        let sabotage = Self::default();
        *sabotage.kind.lock().unwrap() = Some(kind);
        sabotage.error.store(error, Ordering::Relaxed);
        Arc::new(sabotage)
    }

    /// Calls fail from that number on, counted from now, or only that one; 0 for none.
    pub(crate) fn begin(&self, from: usize, once: bool) {
        self.seen.store(0, Ordering::Relaxed);
        self.once.store(once, Ordering::Relaxed);
        self.from.store(from, Ordering::Relaxed);
    }

    /// Nothing fails any more.
    pub(crate) fn end(&self) {
        self.from.store(0, Ordering::Relaxed);
    }

    /// Whether this call fails.
    fn hits(&self, kind: Kind) -> bool {
        if *self.kind.lock().unwrap() != Some(kind) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        let from = self.from.load(Ordering::Relaxed);
        let hit = from > 0 && (number == from || (number > from && !self.once.load(Ordering::Relaxed)));
        self.failed.fetch_add(usize::from(hit), Ordering::Relaxed);
        hit
    }
}

/// Whether this process may trace its children; said on stderr if not.
pub(crate) fn is_allowed() -> bool {
    let mut command = Command::new("true");
    let allowed = traced(&mut command).is_ok_and(|child| {
        let mut status = 0;
        // SAFETY: waits for a child of this thread.
        let stopped = unsafe { libc::waitpid(raw(&child), &mut status, libc::__WALL) } > 0;
        let allowed = stopped && libc::WIFSTOPPED(status);
        if allowed {
            // SAFETY: the child is stopped and ours.
            unsafe {
                libc::ptrace(libc::PTRACE_CONT, raw(&child), 0_usize, 0_usize);
                libc::waitpid(raw(&child), &mut status, libc::__WALL);
            }
        }
        allowed
    });
    if !allowed {
        eprintln!("SKIPPED: this system does not let a process trace its children");
    }
    allowed
}

fn raw(child: &Child) -> pid_t {
    pid_t::try_from(child.id()).unwrap()
}

/// Starts a command that stops at its first instruction.
fn traced(command: &mut Command) -> std::io::Result<Child> {
    // SAFETY: between fork and exec only ptrace(2) is called, which allocates nothing.
    unsafe {
        command.pre_exec(|| {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0_usize, 0_usize) == -1 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command.spawn()
}

/// The tracer; all of it runs on the thread that started the program.
struct Tracer {
    root: PathBuf,
    server: pid_t,
    stdout: Option<PathBuf>,
    said: Vec<u8>,
    began: Instant,
    steps: Arc<Mutex<Vec<Step>>>,
    sabotage: Option<Arc<Sabotage>>,
    /// What each thread is in the middle of.
    calls: HashMap<pid_t, Call>,
    known: HashSet<pid_t>,
    files: HashMap<(u64, u64), FileId>,
    names: HashMap<PathBuf, FileId>,
    count: usize,
}

struct Call {
    number: c_long,
    arguments: [u64; 6],
    /// Paths, read before the call changes what they mean.
    paths: Vec<PathBuf>,
    fails: Option<c_int>,
}

impl Tracer {
    fn run(mut self) -> c_int {
        let mut ended = 0;
        loop {
            let mut status = 0;
            // SAFETY: waits for tracees of this thread alone.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
            if pid < 0 {
                return ended;
            }
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                self.calls.remove(&pid);
                if pid == self.server {
                    ended = status;
                }
                continue;
            }
            let signal = libc::WSTOPSIG(status);
            let first = self.known.insert(pid);
            let mut deliver = 0;
            if signal == libc::SIGTRAP | 0x80 {
                self.at_system_call(pid);
            } else if status >> 16 != 0 || signal == libc::SIGTRAP || (first && signal == libc::SIGSTOP) {
                // An event of ptrace's own.
            } else {
                deliver = signal;
            }
            // SAFETY: the tracee is stopped; should it have been killed meanwhile, this fails and nothing is lost.
            unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0_usize, usize::try_from(deliver).unwrap()) };
        }
    }

    fn at_system_call(&mut self, pid: pid_t) {
        // SAFETY: all zeros is a value of this plain struct.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let size = size_of_val(&info);
        // SAFETY: the kernel writes at most `size` bytes.
        let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, &raw mut info) };
        if got <= 0 {
            return;
        }
        match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                // SAFETY: `op` says which part is filled.
                let entry = unsafe { info.u.entry };
                self.enter(pid, c_long::try_from(entry.nr).unwrap_or(-1), entry.args);
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => {
                // SAFETY: as above.
                let exit = unsafe { info.u.exit };
                self.leave(pid, exit.sval);
            }
            _ => {}
        }
    }

    fn enter(&mut self, pid: pid_t, number: c_long, arguments: [u64; 6]) {
        let mut call = Call { number, arguments, paths: Vec::new(), fails: None };
        let [a, b, c, d, ..] = arguments;
        match number {
            libc::SYS_rename => call.paths = self.paths(pid, &[(libc::AT_FDCWD, a), (libc::AT_FDCWD, b)]),
            libc::SYS_renameat | libc::SYS_renameat2 => {
                call.paths = self.paths(pid, &[(a as c_int, b), (c as c_int, d)]);
            }
            libc::SYS_link => call.paths = self.paths(pid, &[(libc::AT_FDCWD, a), (libc::AT_FDCWD, b)]),
            libc::SYS_linkat => call.paths = self.paths(pid, &[(a as c_int, b), (c as c_int, d)]),
            libc::SYS_unlink | libc::SYS_rmdir | libc::SYS_mkdir | libc::SYS_truncate | libc::SYS_open => {
                call.paths = self.paths(pid, &[(libc::AT_FDCWD, a)]);
            }
            libc::SYS_unlinkat | libc::SYS_mkdirat | libc::SYS_openat => {
                call.paths = self.paths(pid, &[(a as c_int, b)]);
            }
            libc::SYS_write | libc::SYS_writev if pid == self.server || number == libc::SYS_write => {
                self.hear(pid, &call);
            }
            _ => {}
        }
        let needs = self.needs(pid, &call);
        if let (Some(kind), Some(sabotage)) = (needs, &self.sabotage)
            && sabotage.hits(kind)
        {
            std::thread::sleep(Duration::from_millis(sabotage.held_ms.load(Ordering::Relaxed)));
            call.fails = Some(sabotage.error.load(Ordering::Relaxed)).filter(|error| *error != 0);
            if call.fails.is_some() {
                set(pid, libc::ORIG_RAX, u64::MAX);
            }
        }
        self.calls.insert(pid, call);
    }

    /// What a call that changes the folder needs of the disk.
    fn needs(&self, pid: pid_t, call: &Call) -> Option<Kind> {
        let ours = |path: &PathBuf| path.starts_with(&self.root);
        let descriptor = call.arguments[0];
        let target = |at: u64| self.path_of(pid, at).filter(ours);
        match call.number {
            libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_fallocate => target(descriptor).map(|_| Kind::Room),
            libc::SYS_copy_file_range => target(call.arguments[2]).map(|_| Kind::Room),
            libc::SYS_ftruncate => {
                let path = target(descriptor)?;
                let grows = path.metadata().is_ok_and(|found| found.len() < call.arguments[1]);
                grows.then_some(Kind::Room)
            }
            libc::SYS_fsync | libc::SYS_fdatasync => target(descriptor).map(|_| Kind::Sync),
            libc::SYS_open | libc::SYS_openat => {
                let flags = call.arguments[if call.number == libc::SYS_open { 1 } else { 2 }];
                let makes = flags & libc::O_CREAT as u64 != 0;
                let path = call.paths.first().filter(|path| ours(path))?;
                (makes && !path.exists()).then_some(Kind::Room)
            }
            libc::SYS_mkdir | libc::SYS_mkdirat => {
                call.paths.first().filter(|path| ours(path)).map(|_| Kind::Room)
            }
            _ => None,
        }
    }

    fn leave(&mut self, pid: pid_t, value: i64) {
        let Some(call) = self.calls.remove(&pid) else { return };
        if let Some(error) = call.fails {
            set(pid, libc::RAX, (-i64::from(error)) as u64);
            return;
        }
        if value < 0 {
            return;
        }
        let [a, b, c, ..] = call.arguments;
        let count = value as u64;
        match call.number {
            libc::SYS_pwrite64 => self.wrote(pid, a, Some(call.arguments[3]), count),
            libc::SYS_write | libc::SYS_writev => self.wrote(pid, a, None, count),
            libc::SYS_copy_file_range => self.wrote(pid, c, None, count),
            libc::SYS_sendfile | libc::SYS_splice => self.wrote(pid, a, None, count),
            libc::SYS_ftruncate => {
                if let Some(file) = self.file_of(pid, a) {
                    self.done(Op::Truncate(file, b));
                }
            }
            libc::SYS_fallocate => {
                if let Some(file) = self.file_of(pid, a) {
                    let length = std::fs::metadata(link(pid, a)).unwrap().len();
                    self.done(Op::Truncate(file, length));
                }
            }
            libc::SYS_fsync | libc::SYS_fdatasync => self.synced(pid, a),
            libc::SYS_open | libc::SYS_openat => self.opened(pid, count, &call),
            libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => {
                let [from, to] = &call.paths[..] else { return };
                assert!(call.number != libc::SYS_renameat2 || call.arguments[4] & 2 == 0, "an exchange");
                if let Some(file) = self.names.remove(from) {
                    self.names.insert(to.clone(), file);
                    self.done(Op::Rename(from.clone(), to.clone()));
                }
            }
            libc::SYS_link | libc::SYS_linkat => {
                if let [from, to] = &call.paths[..]
                    && let Some(file) = self.names.get(from).copied()
                {
                    self.names.insert(to.clone(), file);
                    self.done(Op::Create(to.clone(), file));
                }
            }
            libc::SYS_unlink | libc::SYS_unlinkat => {
                if let Some(path) = call.paths.first()
                    && self.names.remove(path).is_some()
                {
                    self.done(Op::Remove(path.clone()));
                }
            }
            libc::SYS_mkdir | libc::SYS_mkdirat => {
                if let Some(path) = call.paths.first().filter(|path| path.starts_with(&self.root)) {
                    self.done(Op::MakeFolder(path.clone()));
                }
            }
            libc::SYS_pwritev | libc::SYS_pwritev2 | libc::SYS_truncate => {
                assert!(self.file_of(pid, a).is_none(), "a call that the recording does not know");
            }
            _ => {}
        }
    }

    fn opened(&mut self, pid: pid_t, descriptor: u64, call: &Call) {
        let Some(path) = call.paths.first().filter(|path| path.starts_with(&self.root)) else { return };
        let flags = call.arguments[if call.number == libc::SYS_open { 1 } else { 2 }];
        let Ok(found) = std::fs::metadata(link(pid, descriptor)) else { return };
        if !found.is_file() {
            return;
        }
        let is_new = !self.names.contains_key(path);
        if is_new {
            assert!(flags & libc::O_CREAT as u64 != 0, "{path:?} came from nowhere");
            self.count += 1;
            self.files.insert((found.dev(), found.ino()), self.count);
            self.names.insert(path.clone(), self.count);
            self.done(Op::Create(path.clone(), self.count));
        } else if flags & libc::O_TRUNC as u64 != 0 {
            let file = self.names[path];
            self.done(Op::Truncate(file, 0));
        }
    }

    /// The bytes are read back from the file: whoever else may write them waits for a lock.
    fn wrote(&mut self, pid: pid_t, descriptor: u64, offset: Option<u64>, count: u64) {
        let Some(file) = self.file_of(pid, descriptor) else { return };
        let offset = offset.unwrap_or_else(|| position(pid, descriptor) - count);
        let mut data = vec![0; usize::try_from(count).unwrap()];
        let source = std::fs::File::open(link(pid, descriptor)).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&source, &mut data, offset).unwrap();
        self.done(Op::Write { file, offset, data });
    }

    fn synced(&mut self, pid: pid_t, descriptor: u64) {
        if let Some(file) = self.file_of(pid, descriptor) {
            self.done(Op::Sync(file));
        } else if let Some(path) = self.path_of(pid, descriptor)
            && path.starts_with(&self.root)
            && path.is_dir()
        {
            self.done(Op::SyncFolder(path));
        }
    }

    /// A line on stdout counts as said when the call begins: nobody can have read it before.
    fn hear(&mut self, pid: pid_t, call: &Call) {
        if self.stdout.is_none() || self.path_of(pid, call.arguments[0]) != self.stdout {
            return;
        }
        let pieces = if call.number == libc::SYS_write {
            vec![(call.arguments[1], call.arguments[2])]
        } else {
            let vectors = memory(pid, call.arguments[1], usize::try_from(call.arguments[2]).unwrap() * 16);
            let word = |at: usize| u64::from_ne_bytes(vectors[at..at + 8].try_into().unwrap());
            (0..vectors.len() / 16).map(|at| (word(at * 16), word(at * 16 + 8))).collect()
        };
        for (address, length) in pieces {
            let bytes = memory(pid, address, usize::try_from(length).unwrap());
            self.said.extend(bytes);
        }
        while let Some(at) = self.said.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.said.drain(..=at).collect();
            self.done(Op::Said(String::from_utf8(line).unwrap()));
        }
    }

    fn done(&mut self, op: Op) {
        self.steps.lock().unwrap().push(Step { op, at: self.began.elapsed() });
    }

    /// The file behind a descriptor, if it is a file of the folder's.
    fn file_of(&self, pid: pid_t, descriptor: u64) -> Option<FileId> {
        let found = std::fs::metadata(link(pid, descriptor)).ok()?;
        // A folder may have got the number of a file that is gone.
        self.files.get(&(found.dev(), found.ino())).copied().filter(|_| found.is_file())
    }

    fn path_of(&self, pid: pid_t, descriptor: u64) -> Option<PathBuf> {
        std::fs::read_link(link(pid, descriptor)).ok()
    }

    fn paths(&self, pid: pid_t, given: &[(c_int, u64)]) -> Vec<PathBuf> {
        given.iter().filter_map(|(folder, address)| path(pid, *folder, *address)).collect()
    }
}

fn link(pid: pid_t, descriptor: u64) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/fd/{}", descriptor as u32))
}

/// Where a descriptor stands in its file.
fn position(pid: pid_t, descriptor: u64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", descriptor as u32)).unwrap();
    text.lines().find_map(|line| line.strip_prefix("pos:")).unwrap().trim().parse().unwrap()
}

/// A path in the memory of a stopped process, absolute.
fn path(pid: pid_t, folder: c_int, address: u64) -> Option<PathBuf> {
    let mut text = Vec::new();
    // Up to the end of the page, so that nothing beyond what is mapped is asked for.
    let mut at = address;
    loop {
        let piece = memory(pid, at, usize::try_from(4096 - at % 4096).unwrap());
        if piece.is_empty() {
            return None;
        }
        match piece.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend(&piece[..end]);
                break;
            }
            None => text.extend(&piece),
        }
        at += piece.len() as u64;
    }
    let given = Path::new(OsStr::from_bytes(&text)).to_owned();
    let base = if folder == libc::AT_FDCWD {
        std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?
    } else {
        std::fs::read_link(link(pid, folder as u64)).ok()?
    };
    Some(base.join(given))
}

/// Bytes of a stopped process.
fn memory(pid: pid_t, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let Ok(file) = std::fs::File::open(format!("/proc/{pid}/mem")) else { return Vec::new() };
    let got = std::os::unix::fs::FileExt::read_at(&file, &mut bytes, address).unwrap_or(0);
    bytes.truncate(got);
    bytes
}

/// Sets a register of a stopped process.
fn set(pid: pid_t, register: c_int, value: u64) {
    let offset = usize::try_from(register).unwrap() * 8;
    // SAFETY: the tracee is stopped, and the offset is one of `struct user`.
    let done = unsafe { libc::ptrace(libc::PTRACE_POKEUSER, pid, offset, value) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// What lies in a folder before anything is recorded.
pub(crate) fn read_all(root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.push((path.clone(), None));
                folders.push(path);
            } else {
                let mut bytes = Vec::new();
                std::fs::File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
                found.push((path, Some(bytes)));
            }
        }
    }
    found.sort();
    found
}
