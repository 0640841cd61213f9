//! Tries what a confined process must not be able to do, so that nobody has to take it on trust.
//!
//! It is run in a process of its own that is confined as a worker is, by tests and `indelible doctor`; an attempt that
//! succeeds does no harm beyond an empty file that is removed again.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ground {
    /// A file to read and write that is out of reach.
    #[serde(with = "crate::os_path")]
    pub outside: PathBuf,
    /// The database that is in reach.
    #[serde(with = "crate::os_path")]
    pub database: PathBuf,
    /// A process to send a signal to.
    pub process: u32,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// What was tried: `read a file outside`.
    pub what: String,
    /// Whether the system refused it.
    pub denied: bool,
    /// The system's words, or what was possible.
    pub words: String,
}

/// Tries everything.
#[must_use]
pub fn all(ground: &Ground) -> Vec<Attempt> {
    let outside = ground.outside.as_path();
    let beside = outside.with_extension("made-by-a-worker");
    let mut attempts = vec![
        tried("read a file outside", std::fs::File::open(outside)),
        tried("write a file outside", std::fs::OpenOptions::new().write(true).open(outside)),
        tried("make a file outside", std::fs::File::create_new(&beside)),
        tried("list a folder outside", std::fs::read_dir(outside.parent().unwrap_or(Path::new("/")))),
        tried("rename a file outside", std::fs::rename(outside, outside.with_extension("renamed"))),
        tried("remove a file outside", std::fs::remove_file(outside)),
        tried("read the database", std::fs::File::open(&ground.database)),
        tried("write the database", std::fs::OpenOptions::new().write(true).open(&ground.database)),
        tried("make a file beside the database", make_and_remove(&ground.database.with_extension("beside"))),
        tried("make a temporary file", make_temporary()),
        tried("listen on the network", TcpListener::bind((Ipv4Addr::LOCALHOST, 0))),
        tried("open a datagram socket", UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))),
        tried("start a program", start_a_program()),
    ];
    attempts.extend(system::attempts(ground));
    attempts
}

fn tried<T, E: std::fmt::Display>(what: &str, done: Result<T, E>) -> Attempt {
    let (denied, words) = match done {
        Ok(_) => (false, "it was possible".to_owned()),
        Err(error) => (true, error.to_string()),
    };
    Attempt { what: what.to_owned(), denied, words }
}

fn make_and_remove(path: &Path) -> std::io::Result<()> {
    std::fs::File::create_new(path)?;
    std::fs::remove_file(path)
}

/// As SQLite makes them.
fn make_temporary() -> std::io::Result<()> {
    let folder =
        std::env::var_os("SQLITE_TMPDIR").ok_or_else(|| std::io::Error::other("there is no folder"))?;
    make_and_remove(&Path::new(&folder).join("attempt"))
}

fn start_a_program() -> std::io::Result<()> {
    let program = if cfg!(windows) { "cmd" } else { "/bin/true" };
    let mut child =
        Command::new(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    child.kill().and_then(|()| child.wait()).map(|_| ())
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Attempt, Ground, tried};
    use rustix::process::{Pid, Resource};
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::os::unix::process::CommandExt;

    pub(super) fn attempts(ground: &Ground) -> Vec<Attempt> {
        let core = rustix::process::getrlimit(Resource::Core);
        let dumpable = rustix::process::dumpable_behavior();
        let process = i32::try_from(ground.process).ok().and_then(Pid::from_raw);
        let signalled = process.map_or(Err(rustix::io::Errno::SRCH), rustix::process::test_kill_process);
        vec![
            tried("open a Unix socket", UnixDatagram::unbound()),
            tried("open a pair of sockets", UnixStream::pair()),
            // Replaces this process if it succeeds, and the report does not come.
            tried::<(), _>("become another program", Err(std::process::Command::new("/bin/true").exec())),
            tried("leave a core dump", if core.current == Some(0) { Err("the limit is 0") } else { Ok(()) }),
            tried(
                "be looked into by others",
                match dumpable {
                    Ok(rustix::process::DumpableBehavior::NotDumpable) => {
                        Err("it is not dumpable".to_owned())
                    }
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.to_string()),
                },
            ),
            tried("send a signal to the server", signalled),
            tried("set the memory limit anew", raise_memory()),
            tried("gain privileges", no_new_privileges()),
            tried("map memory that can be executed", raw::executable()),
            tried("become two processes", raw::fork()),
            tried("take more memory than allowed", too_much()),
            // Last: a traced process stops at its next signal.
            tried("be traced by another process", raw::trace()),
        ]
    }

    fn raise_memory() -> Result<(), String> {
        // Anybody may set the limit to what it is, and root may raise it.
        let limit = rustix::process::getrlimit(Resource::As);
        rustix::process::setrlimit(Resource::As, limit).map_err(|error| error.to_string())
    }

    fn no_new_privileges() -> Result<(), String> {
        match rustix::thread::no_new_privs() {
            Ok(true) => Err("no_new_privs is set".to_owned()),
            Ok(false) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn too_much() -> Result<(), String> {
        let mut bytes: Vec<u8> = Vec::new();
        let reserved = bytes.try_reserve_exact(4 << 30).map_err(|error| error.to_string());
        std::hint::black_box(&bytes);
        reserved
    }

    /// What no safe library offers, because no program should want it.
    #[expect(unsafe_code, reason = "the calls that the sandbox must deny")]
    mod raw {
        use std::io::{Error, Result};

        pub(super) fn trace() -> Result<()> {
            // SAFETY: PTRACE_TRACEME takes no pointer; the process is a throwaway whose parent may trace it.
            answer(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) })
        }

        pub(super) fn executable() -> Result<()> {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new anonymous mapping at an address of the kernel's choice; nothing points into it.
            let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
            if mapped == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(()) }
        }

        pub(super) fn fork() -> Result<()> {
            // SAFETY: there is one thread, and the child does nothing but end.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: ends the child at once, without running anything of this program's.
                unsafe { libc::_exit(0) }
            }
            if child > 0 {
                let mut status = 0;
                // SAFETY: the child was made above and ends by itself; the status is written to a variable of ours.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
            }
            answer(child.into())
        }

        fn answer(value: libc::c_long) -> Result<()> {
            if value < 0 { Err(Error::last_os_error()) } else { Ok(()) }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Attempt, Ground};

    pub(super) fn attempts(_ground: &Ground) -> Vec<Attempt> {
        Vec::new()
    }
}
