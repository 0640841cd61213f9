//! Limits and switches of the process itself: memory, core dumps, who may look into it, new privileges.
//!
//! It touches no file and no system call.

use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};

/// Sets what can be set; what cannot is put into words.
pub(super) fn set(memory: u64, lacks: &mut Vec<String>) {
    let mut must = |what: &str, done: rustix::io::Result<()>| {
        if let Err(error) = done {
            lacks.push(format!("{what}: {error}"));
        }
    };
    // A core would hold the database's content.
    must("core dumps are not off", lower(Resource::Core, 0));
    must("memory is not limited", lower(Resource::As, memory));
    // Nor may another process of the same user attach (https://man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html).
    let closed = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    must("other processes may attach to workers", closed);
    must("workers may gain privileges", rustix::thread::set_no_new_privs(true));
}

fn lower(resource: Resource, to: u64) -> rustix::io::Result<()> {
    let hard = rustix::process::getrlimit(resource).maximum;
    let to = Some(hard.map_or(to, |hard| hard.min(to)));
    rustix::process::setrlimit(resource, Rlimit { current: to, maximum: to })
}

/// The kernel ends this process when the thread that started it ends, also by SIGKILL.
pub(in crate::sandbox) fn die_with_the_parent() {
    // Without it the process still ends when it next looks at its stdin.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// Closes every descriptor but the three standard streams: a client may have left some open that are not for us.
#[expect(unsafe_code, reason = "no safe library closes descriptors that it does not own")]
pub(in crate::sandbox) fn close_inherited() {
    // SAFETY: this is called first in the process, so no value of this program owns a descriptor above 2 yet.
    // A kernel without the call leaves them open, which is as it was.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// SIGXFSZ is ignored, and by the programs that this one starts as well (execve(2) keeps that).
#[expect(unsafe_code, reason = "no safe library ignores a signal; a handler would not reach the workers")]
pub(in crate::sandbox) fn survive_file_size_limits() {
    // SAFETY: nothing of this program is run by the signal, neither before nor after.
    let _ = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
