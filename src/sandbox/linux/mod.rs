//! The sandbox on Linux, piece by piece; each works without the others.
//!
//! It decides nothing about what is needed.

mod landlock;
mod limits;
mod pages;
mod seccomp;

use super::{Confined, Reach};

pub(super) use limits::{close_inherited, die_with_the_parent, survive_file_size_limits};
pub(super) use pages::give_back_code;

pub(super) fn confine(reach: &Reach) -> Confined {
    let mut confined = Confined::default();
    limits::set(reach.memory, &mut confined.lacks);
    match landlock::restrict(reach) {
        Ok(version) => confined.landlock = version,
        Err(why) => confined.lacks.push(format!("files are not confined: {why}")),
    }
    // Last: it takes away what the others need.
    match seccomp::filter() {
        Ok(()) => confined.seccomp = true,
        Err(why) => confined.lacks.push(format!("system calls are not filtered: {why}")),
    }
    confined
}
