//! seccomp: the system calls that a worker may make. All others look as if the kernel did not have them.
//!
//! `ENOSYS` and not `EPERM`, because libraries that try a newer call first then fall back on an older one. Sockets,
//! other programs, other processes' memory and signals to others are not in the list.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
pub(super) use filtered::filter;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub(super) fn filter() -> Result<(), String> {
    Err(format!("there is no filter for {}", std::env::consts::ARCH))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod filtered {
    use seccompiler::{BpfProgram, sock_filter};

    /// Allowed whatever the arguments.
    const ALLOWED: &[libc::c_long] = &[
        // Open files. Landlock judges the paths.
        libc::SYS_openat,
        libc::SYS_close,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_pread64,
        libc::SYS_preadv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_pwrite64,
        libc::SYS_pwritev,
        libc::SYS_lseek,
        libc::SYS_fcntl,
        libc::SYS_dup,
        libc::SYS_dup3,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_fadvise64,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_flock,
        libc::SYS_fchmod,
        libc::SYS_fchown,
        libc::SYS_copy_file_range,
        libc::SYS_sendfile,
        libc::SYS_splice,
        // Files by name.
        libc::SYS_newfstatat,
        libc::SYS_fstat,
        libc::SYS_statx,
        libc::SYS_fstatfs,
        libc::SYS_statfs,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_readlinkat,
        libc::SYS_unlinkat,
        libc::SYS_renameat2,
        libc::SYS_linkat,
        libc::SYS_getdents64,
        libc::SYS_getcwd,
        libc::SYS_umask,
        // Memory. Whether it may be executed is judged below.
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_mincore,
        libc::SYS_msync,
        // Time, waiting, the scheduler.
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_clock_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_nanosleep,
        libc::SYS_ppoll,
        libc::SYS_pselect6,
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_getcpu,
        // The process itself.
        libc::SYS_getpid,
        libc::SYS_getppid,
        libc::SYS_gettid,
        libc::SYS_getuid,
        libc::SYS_geteuid,
        libc::SYS_getgid,
        libc::SYS_getegid,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_sysinfo,
        libc::SYS_uname,
        libc::SYS_set_robust_list,
        libc::SYS_set_tid_address,
        libc::SYS_rseq,
        libc::SYS_membarrier,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// Older calls for the same, which newer architectures never had.
    #[cfg(target_arch = "x86_64")]
    const ALLOWED_HERE: &[libc::c_long] = &[
        libc::SYS_open,
        libc::SYS_stat,
        libc::SYS_lstat,
        libc::SYS_access,
        libc::SYS_readlink,
        libc::SYS_unlink,
        libc::SYS_rename,
        libc::SYS_renameat,
        libc::SYS_link,
        libc::SYS_chmod,
        libc::SYS_dup2,
        libc::SYS_poll,
        libc::SYS_select,
        libc::SYS_time,
        libc::SYS_arch_prctl,
    ];
    #[cfg(target_arch = "aarch64")]
    const ALLOWED_HERE: &[libc::c_long] = &[libc::SYS_renameat];
    #[cfg(target_arch = "riscv64")]
    const ALLOWED_HERE: &[libc::c_long] = &[];

    /// What the kernel calls this machine's calls (<https://docs.kernel.org/userspace-api/seccomp_filter.html>).
    const MACHINE: u32 = if cfg!(target_arch = "x86_64") {
        0xc000_003e
    } else if cfg!(target_arch = "aarch64") {
        0xc000_00b7
    } else {
        0xc000_00f3
    };

    /// Filters the calls of every thread of this process.
    pub(in crate::sandbox::system) fn filter() -> Result<(), String> {
        seccompiler::apply_filter_all_threads(&program()).map_err(|error| error.to_string())
    }

    /// The program that the kernel runs for each call: `struct seccomp_data` is the number, the machine, the
    /// instruction's address and six arguments of 64 bits.
    ///
    /// It is put together here and not by the library's compiler, because the kernel tries out every number of the
    /// machine when it takes a filter, and five times the instructions make a worker start half a millisecond later.
    fn program() -> BpfProgram {
        let mut program =
            vec![load(4), jump(EQUAL, MACHINE, 1, 0), answer(libc::SECCOMP_RET_KILL_PROCESS), load(0)];
        for (call, test) in judged() {
            let skip = u8::try_from(test.len()).unwrap_or(u8::MAX);
            program.push(jump(EQUAL, number(call), 0, skip));
            program.extend(test);
        }
        for (first, last) in ranges() {
            if first == last {
                program.extend([jump(EQUAL, first, 0, 1), allow()]);
            } else {
                program.extend([jump(AT_LEAST, first, 0, 2), jump(ABOVE, last, 1, 0), allow()]);
            }
        }
        program.push(unknown());
        program
    }

    /// Calls that some arguments make dangerous, and the test of those.
    fn judged() -> Vec<(libc::c_long, Vec<sock_filter>)> {
        // No new code: what is mapped or changed later is not executable.
        let not_executable = || {
            vec![load(argument(2)), jump(HAS_BIT, libc::PROT_EXEC.unsigned_abs(), 0, 1), unknown(), allow()]
        };
        // A thread, and no process.
        let only_thread = vec![
            load(argument(0)),
            jump(HAS_BIT, libc::CLONE_THREAD.unsigned_abs(), 1, 0),
            unknown(),
            allow(),
        ];
        // abort() signals its own thread.
        let only_own = vec![load(argument(0)), jump(EQUAL, std::process::id(), 1, 0), unknown(), allow()];
        // Limits are read and no longer set: the pointer to the new one, in two halves, is null.
        let only_read = vec![
            load(argument(2)),
            jump(EQUAL, 0, 0, 2),
            load(argument(2) + 4),
            jump(EQUAL, 0, 1, 0),
            unknown(),
            allow(),
        ];
        // glibc and std name memory and threads; the others only ask.
        let mut options = vec![load(argument(0))];
        for option in [libc::PR_SET_NAME, libc::PR_SET_VMA, libc::PR_GET_DUMPABLE, libc::PR_GET_NO_NEW_PRIVS]
        {
            options.extend([jump(EQUAL, option.unsigned_abs(), 0, 1), allow()]);
        }
        options.push(unknown());
        vec![
            (libc::SYS_mmap, not_executable()),
            (libc::SYS_mprotect, not_executable()),
            (libc::SYS_clone, only_thread),
            (libc::SYS_tgkill, only_own),
            (libc::SYS_prlimit64, only_read),
            (libc::SYS_prctl, options),
        ]
    }

    /// The numbers that are always allowed, neighbours put together.
    fn ranges() -> Vec<(u32, u32)> {
        let mut numbers: Vec<u32> = ALLOWED.iter().chain(ALLOWED_HERE).map(|call| number(*call)).collect();
        numbers.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if number <= *last + 1 => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        ranges
    }

    const EQUAL: u32 = libc::BPF_JEQ;
    const ABOVE: u32 = libc::BPF_JGT;
    const AT_LEAST: u32 = libc::BPF_JGE;
    const HAS_BIT: u32 = libc::BPF_JSET;

    /// Where the lower half of an argument stands: these machines are little-endian.
    fn argument(at: u32) -> u32 {
        16 + 8 * at
    }

    /// System call numbers are small.
    fn number(call: libc::c_long) -> u32 {
        u32::try_from(call).unwrap_or(u32::MAX)
    }

    fn load(offset: u32) -> sock_filter {
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
    }

    fn jump(test: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
        instruction(libc::BPF_JMP | libc::BPF_K | test, value, if_true, if_false)
    }

    fn allow() -> sock_filter {
        answer(libc::SECCOMP_RET_ALLOW)
    }

    fn unknown() -> sock_filter {
        answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs())
    }

    fn answer(what: u32) -> sock_filter {
        instruction(libc::BPF_RET | libc::BPF_K, what, 0, 0)
    }

    fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
        // The codes have eight bits.
        sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt, jf, k }
    }
}
