//! What a worker cannot do.

use crate::{finding, has, indelible};

/// What is denied by Landlock alone.
const FILES: &[&str] = &[
    "read a file outside",
    "write a file outside",
    "make a file outside",
    "list a folder outside",
    "rename a file outside",
    "remove a file outside",
    "make a file beside the database",
];

/// What is denied by the filter of system calls, by limits, or by both and Landlock.
const CALLS: &[&str] = &[
    "listen on the network",
    "open a datagram socket",
    "open a Unix socket",
    "open a pair of sockets",
    "start a program",
    "become another program",
    "become two processes",
    "send a signal to the server",
    "be traced by another process",
    "map memory that can be executed",
    "set the memory limit anew",
    "take more memory than allowed",
    "leave a core dump",
    "be looked into by others",
    "gain privileges",
];

#[test]
fn nothing_but_the_own_database_is_in_reach() {
    if !has("landlock") {
        return;
    }
    let found = finding(indelible(&["doctor", "--json", "--db", "/nonexistent/x.db"]));
    for who in ["reader", "writer"] {
        let tried = &found["value"][who];
        for what in FILES {
            assert_eq!(tried[what], true, "a {who} could {what}: {found:#}");
        }
        for what in ["read the database", "make a temporary file"] {
            assert_eq!(tried[what], false, "a {who} cannot {what}: {found:#}");
        }
        assert_eq!(tried["write the database"], who == "reader", "{found:#}");
    }
}

#[test]
fn no_program_no_process_no_socket_and_no_memory_beyond_the_limit_is_to_be_had() {
    if !has("seccomp") {
        return;
    }
    let found = finding(indelible(&["doctor", "--json", "--db", "/nonexistent/x.db"]));
    for who in ["reader", "writer"] {
        for what in CALLS {
            assert_eq!(found["value"][who][what], true, "a {who} could {what}: {found:#}");
        }
        let tried = found["value"][who].as_object().unwrap().len();
        assert_eq!(tried, FILES.len() + CALLS.len() + 3, "every attempt is named in this test");
    }
    assert_eq!((found["state"].as_str(), found["value"]["lacks"].as_array().unwrap().len()), (Some("ok"), 0));
}
