//! The system calls that no safe library wraps. The only unsafe code of the workspace.
//!
//! Nothing here allocates: much of it runs in a child that is about to become a guest.
#![allow(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")]

use rustix::{
    fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    io::{Errno, Result},
    process::Pid,
};
use std::{ffi::CStr, mem, os::raw::c_char, ptr};

/// Which of the two one is after [`fork`].
pub(super) enum Forked {
    Child,
    Parent(Pid),
}

/// The flag of `clone3` that makes mounts of its own.
pub(super) const MOUNTS: u64 = libc::CLONE_NEWNS as u64;

/// Flags of `clone3` that make the namespaces of a jail init for a container runtime.
pub(super) const MOUNTS_AND_NETWORK: u64 = (libc::CLONE_NEWNS | libc::CLONE_NEWNET) as u64;

/// Flags of `clone3` that make namespaces.
pub(super) const ALL_NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS) as u64;

/// `CLONE_INTO_CGROUP`: the child starts in a cgroup of the second version, without the cost of a move.
const INTO_CGROUP: u64 = 0x2_0000_0000;

/// Makes a child with a copy of the memory, as `fork` does, in new namespaces and in a cgroup.
///
/// The caller must have one thread only: another one's locks would stay locked in the child for ever.
pub(super) fn fork(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> Result<Forked> {
    let mut args = libc::clone_args {
        flags: namespaces,
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    if let Some(cgroup) = cgroup {
        args.flags |= INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    // SAFETY: `args` lives across the call and has the size that is passed. Neither CLONE_VM nor a stack is asked
    // for, so that the child has its own copy of everything, on a copy of this stack. Spawner and init have one
    // thread, so no lock is held by anyone but the caller.
    let got = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, mem::size_of::<libc::clone_args>()) };
    match got {
        0 => Ok(Forked::Child),
        pid => Pid::from_raw(check(pid)? as i32).map(Forked::Parent).ok_or(Errno::SRCH),
    }
}

/// A list of texts as `execve` wants it. Made before a child exists; used in it.
pub(super) struct CStrings {
    pointers: Vec<*const c_char>,
    _owned: Vec<std::ffi::CString>,
}

impl CStrings {
    pub(super) fn new<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> std::result::Result<Self, std::ffi::NulError> {
        let owned: std::result::Result<Vec<_>, _> = texts.into_iter().map(std::ffi::CString::new).collect();
        let owned = owned?;
        let pointers = owned.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Ok(CStrings { pointers, _owned: owned })
    }
}

/// Becomes another program. Comes back only with the reason why it could not.
pub(super) fn execve(program: &CStr, argv: &CStrings, environment: &CStrings) -> Errno {
    // SAFETY: `program` ends with a zero byte; both lists end with a null pointer, and their texts live in the lists.
    unsafe { libc::execve(program.as_ptr(), argv.pointers.as_ptr(), environment.pointers.as_ptr()) };
    last()
}

/// Closes every descriptor from `first` on when the process becomes another program.
pub(super) fn close_on_exec_from(first: RawFd) -> Result<()> {
    // SAFETY: only marks descriptors; nothing that Rust owns is closed while it is in use.
    let got = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC as libc::c_uint,
        )
    };
    check(got).map(drop)
}

/// Closes every descriptor from 3 on but these. For a process that has just begun, or has just been copied.
pub(super) fn close_others(keep: &[RawFd]) -> Result<()> {
    let mut keep = keep.to_vec();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().filter(|fd| *fd >= 3).chain([RawFd::MAX]) {
        if fd > first {
            // SAFETY: the callers own no descriptor apart from those that they name; values that stand for a closed
            // one are forgotten or never dropped, because such a process ends by `exit`.
            let got = unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
            check(got)?;
        }
        first = fd.saturating_add(1);
    }
    Ok(())
}

/// Takes the descriptor 0 as the spawner's socket. Called once, at the very start of that process.
pub(super) fn take_stdin() -> OwnedFd {
    // SAFETY: nothing has used standard input yet, and nothing else in that process will.
    unsafe { OwnedFd::from_raw_fd(0) }
}

/// Lets the runtime tell when a descriptor is ready. It never blocks from then on.
pub(super) fn watched(fd: OwnedFd) -> std::io::Result<tokio::io::unix::AsyncFd<OwnedFd>> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK)?;
    // SAFETY: an `OwnedFd` is the same open descriptor from here until it is dropped, and only the `AsyncFd` holds it.
    unsafe { tokio::io::unix::AsyncFd::register(fd) }.map_err(Into::into)
}

/// Makes the cgroups that this process is in the roots of what it sees of them.
pub(super) fn own_cgroup_namespace() -> Result<()> {
    // SAFETY: a cgroup namespace changes only what `/proc` shows; no memory or descriptor table is unshared.
    check(libc::c_long::from(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) })).map(drop)
}

/// Leaves the network for one of its own, in which nothing is.
pub(super) fn own_network_namespace() -> Result<()> {
    // SAFETY: a network namespace is about sockets that will be made; no memory or descriptor table is unshared.
    check(libc::c_long::from(unsafe { libc::unshare(libc::CLONE_NEWNET) })).map(drop)
}

/// Attributes of mounts.
pub(super) mod mount_attr {
    pub(in crate::guest) const RDONLY: u64 = 1;
    pub(in crate::guest) const NOSUID: u64 = 2;
    pub(in crate::guest) const NODEV: u64 = 4;
    pub(in crate::guest) const NOEXEC: u64 = 8;
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Adds attributes to a mount, and to those below it.
pub(super) fn mount_setattr(mount: BorrowedFd<'_>, set: u64, recursive: bool) -> Result<()> {
    let attr = MountAttr { set, clear: 0, propagation: 0, userns: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: `attr` has the layout of `struct mount_attr` and lives across the call.
    let got = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            mem::size_of::<MountAttr>(),
        )
    };
    check(got).map(drop)
}

/// The version of Landlock here; 0 where there is none.
pub(super) fn landlock_version() -> u8 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call takes no attributes and makes no ruleset; it only answers.
    let got = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<libc::c_void>(), 0_usize, VERSION)
    };
    u8::try_from(got).unwrap_or(0)
}

/// Restricts this thread to a Landlock ruleset, for good.
pub(super) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: takes a descriptor and flags; changes only what this thread may do.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// Filters this thread's system calls, for good. Takes `no_new_privs` or root, and sets neither.
pub(super) fn load_filter(program: &[seccompiler::sock_filter]) -> Result<()> {
    let length = program.len().try_into().map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: both `sock_filter`s have the kernel's layout; the kernel copies as many of them as there are, and changes
    // none.
    let got =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    check(got).map(drop)
}

/// Brings up the loopback interface of this network namespace.
pub(super) fn loopback_up() -> Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: all zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_name[0] = b'l' as c_char;
    request.ifr_name[1] = b'o' as c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: the request is an `ifreq` that lives across the call, which is what SIOCSIFFLAGS reads.
    let got = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    check(libc::c_long::from(got)).map(drop)
}

/// How a child ended, and what it and those whose end it waited for used.
pub(super) struct Waited {
    pub(super) pid: i32,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// The end of any child: `None` where none has ended yet, `ECHILD` where there are none.
pub(super) fn wait_any(block: bool) -> Result<Option<Waited>> {
    let mut status = 0;
    let flags = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    // SAFETY: `status` lives across the call; no rusage is asked for.
    let pid = unsafe { libc::wait4(-1, &raw mut status, flags, ptr::null_mut()) };
    match check(libc::c_long::from(pid))? as i32 {
        0 => Ok(None),
        pid => Ok(Some(Waited {
            pid,
            exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        })),
    }
}

/// What all children that were waited for used: time on a core in microseconds, the largest of them in bytes.
pub(super) fn children_usage() -> (u64, u64) {
    // SAFETY: all zero is a valid `rusage`, and it lives across the call.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let micros = |time: libc::timeval| (time.tv_sec as u64) * 1_000_000 + time.tv_usec as u64;
    (micros(usage.ru_utime) + micros(usage.ru_stime), (usage.ru_maxrss as u64) * 1024)
}

/// Sends a signal to every process that this one may reach. Only for the first process of a pid namespace.
pub(super) fn kill_namespace(signal: i32) {
    // SAFETY: sends signals; the callers are process 1 of their own namespace, which is not a target itself.
    unsafe { libc::kill(-1, signal) };
}

/// Sends a signal to a process, or with a negative number to a group.
pub(super) fn kill(pid: i32, signal: i32) -> Result<()> {
    // SAFETY: sends a signal.
    check(libc::c_long::from(unsafe { libc::kill(pid, signal) })).map(drop)
}

/// Blocks all signals and gives a descriptor that tells of them.
pub(super) fn signals() -> Result<OwnedFd> {
    // SAFETY: the set is filled by `sigfillset` before it is used; the descriptor is new and owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut set);
        check(libc::c_long::from(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut())))?;
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(libc::c_long::from(fd))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Empties such a descriptor.
pub(super) fn drain_signals(signals: impl AsFd) {
    let mut buffer = [0u8; 128 * 8];
    while matches!(rustix::io::read(&signals, &mut buffer), Ok(read) if read > 0) {}
}

/// All signals as a new program expects them: nothing blocked, nothing ignored.
pub(super) fn default_signals() {
    // SAFETY: default actions run no code of this program; the set is filled before it is used.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Gives up every further group. Works for root only; others have none that they could give up.
pub(super) fn drop_groups() {
    // SAFETY: an empty list needs no memory.
    unsafe { libc::setgroups(0, ptr::null()) };
}

/// Sets a limit by its number. `RLIM_INFINITY` is `u64::MAX`.
pub(super) fn set_limit(resource: i32, limit: u64) -> Result<()> {
    // A second more for time on a core: at the lower one a signal tells what it is about, at the upper one the end is
    // like any other.
    let margin = u64::from(resource == libc::RLIMIT_CPU as i32);
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit.saturating_add(margin) };
    // SAFETY: `limit` lives across the call.
    check(libc::c_long::from(unsafe { libc::setrlimit(resource as _, &raw const limit) })).map(drop)
}

/// Ends this process without running anything more of it.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: ends the process; no destructor is owed anything by a copy of another process.
    unsafe { libc::_exit(code) }
}

/// Any call, for tests of what a layer refuses. No pointers: every argument is a number.
#[cfg(test)]
pub(super) fn call(number: libc::c_long, arguments: [u64; 5]) -> std::result::Result<libc::c_long, i32> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: the callers pass numbers, and calls that write to no memory of this process.
    let got = unsafe { libc::syscall(number, a, b, c, d, e) };
    check(got).map_err(Errno::raw_os_error)
}

fn check(got: libc::c_long) -> Result<libc::c_long> {
    if got < 0 { Err(last()) } else { Ok(got) }
}

fn last() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}
