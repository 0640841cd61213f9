//! The processes that a server starts, as /proc shows them, and their end.
//!
//! It starts none.

use std::time::{Duration, Instant};

/// Direct children of a process that have not ended, in the order of their ids.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let mut found: Vec<u32> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|child| status_of(*child).is_some_and(|(state, parent)| parent == pid && state != 'Z'))
        .collect();
    found.sort_unstable();
    found
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    status_of(pid).is_some_and(|(state, _)| state != 'Z')
}

/// Whether another process has the file open.
pub(crate) fn is_open_elsewhere(path: &std::path::Path) -> bool {
    let path = path.canonicalize().unwrap();
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut others = processes.filter(|entry| {
        let name = entry.file_name();
        name != own.as_str() && name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())
    });
    others.any(|entry| {
        let files = std::fs::read_dir(entry.path().join("fd")).into_iter().flatten().filter_map(Result::ok);
        files.filter_map(|file| file.path().read_link().ok()).any(|open| open == path)
    })
}

/// Waits for something to come true; false if it does not within ten seconds.
pub(crate) fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// State and parent, from the fields behind the name, which is in brackets and may hold anything.
fn status_of(pid: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Ends a process without a word. It may have ended by itself.
pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
