//! Kernels that lack a piece: an outer filter of system calls makes this one look like them.

use crate::support::{Bench, Server};
use crate::{finding, has, indelible};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the command and all it starts run on a kernel without these system calls.
#[expect(unsafe_code, reason = "a filter is set between fork and exec")]
fn without(command: &mut Command, calls: &[libc::c_long]) {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    // SAFETY: it makes two system calls over memory that is there already, which is fine after a fork.
    unsafe {
        command.pre_exec(move || {
            seccompiler::apply_filter(&program).map_err(|_| std::io::Error::other("no filter"))
        });
    }
}

const LANDLOCK: libc::c_long = libc::SYS_landlock_create_ruleset;

#[test]
fn doctor_says_what_is_missing_and_the_rest_holds() {
    if !has("seccomp") || !has("landlock") {
        return;
    }
    let doctor = || indelible(&["doctor", "--json", "--db", "/nonexistent/x.db"]);
    let mut old = doctor();
    without(&mut old, &[LANDLOCK]);
    let found = finding(old);
    assert_eq!(
        (found["state"].as_str(), &found["value"]["landlock"]),
        (Some("note"), &0.into()),
        "{found:#}"
    );
    assert_eq!(found["text"], "files are not confined: this kernel has no Landlock");
    assert_eq!(found["value"]["reader"]["read a file outside"], false, "it is not confined");
    assert_eq!(found["value"]["reader"]["listen on the network"], true, "the filter holds");

    let mut older = doctor();
    without(&mut older, &[libc::SYS_seccomp]);
    let found = finding(older);
    assert_eq!(
        (found["state"].as_str(), &found["value"]["seccomp"]),
        (Some("note"), &false.into()),
        "{found:#}"
    );
    assert_eq!(found["value"]["reader"]["open a Unix socket"], false, "it is not filtered");
    assert_eq!(found["value"]["reader"]["read a file outside"], true, "Landlock holds");
}

#[test]
fn the_server_says_once_what_is_missing_and_goes_on() {
    if !has("seccomp") {
        return;
    }
    let bench = Bench::notes();
    let server = Server::on(&bench).changed(|command| without(command, &[LANDLOCK, libc::SYS_seccomp]));
    let mut client = server.start();
    // A reader, a writer, and the process that makes a snapshot.
    client.read("SELECT count(*) AS n FROM notes").is("n\n3\n# 1 rows");
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    client.call("snapshot", serde_json::json!({"reason": "test"})).ok();
    let (said, _) = client.close_with_stderr();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("less confined")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    for words in ["files are not confined", "system calls are not filtered"] {
        assert!(lines[0].contains(words), "{said}");
    }
}

#[test]
fn a_kernel_that_has_all_of_it_is_not_talked_about() {
    if !has("seccomp") || !has("landlock") {
        return;
    }
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.read("SELECT count(*) AS n FROM notes").is("n\n3\n# 1 rows");
    let (said, _) = client.close_with_stderr();
    assert!(!said.contains("confined"), "{said}");
}
