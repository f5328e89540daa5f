//! The lists of system calls.

/// The first number that is in no list because it was not there when the lists were written (Linux 6.18 ends at 469).
/// From 424 on, numbers are the same on every architecture. Those of the x32 interface, which the lists would miss, are
/// above it, too.
pub(super) const FIRST_UNKNOWN: u32 = 470;

/// A system call, by number and by name: the kernel knows numbers, container runtimes know names.
pub(super) type Call = (libc::c_long, &'static str);

macro_rules! calls {
    ($($(#[$condition:meta])* $name:ident),* $(,)?) => {{
        #[allow(unused_imports, reason = "names that only one of the two has")]
        use libc::*;
        &[$($(#[$condition])* ($name, stringify!($name)),)*]
    }};
}

/// Changes the machine itself, or its kernel.
pub(super) const ENDS: &[Call] = calls![
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_lookup_dcookie,
    SYS_nfsservctl,
    SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    SYS__sysctl,
];

/// Other processes, other namespaces, mounts, keys, and large attack surface.
pub(super) const REFUSED: &[Call] = calls![
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_open_tree_attr,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_syslog,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_mbind,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_set_mempolicy,
    SYS_set_mempolicy_home_node,
];

/// Their arguments are behind a pointer, where no filter sees them. Programs fall back to `clone` and `openat`.
pub(super) const UNKNOWN: &[Call] = calls![SYS_clone3, SYS_openat2];

/// The flag of `fallocate` that gives room back. Without it the call takes some, as much as it likes, at once.
pub(super) const FREES_ROOM: u32 = libc::FALLOC_FL_PUNCH_HOLE as u32;

/// A file with one of these bits runs as its owner or group, no matter who starts it. The files of a guest belong to
/// the user whom haft runs as, so such a file would make anybody on the machine that user.
pub(super) const PRIVILEGED_MODES: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Calls that set a mode, and which argument it is.
pub(super) const SETS_MODE: &[(Call, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    ((libc::SYS_chmod, "SYS_chmod"), 1),
    ((libc::SYS_fchmod, "SYS_fchmod"), 1),
    ((libc::SYS_fchmodat, "SYS_fchmodat"), 2),
    ((SYS_FCHMODAT2, "SYS_fchmodat2"), 2),
    #[cfg(target_arch = "x86_64")]
    ((libc::SYS_creat, "SYS_creat"), 1),
    #[cfg(target_arch = "x86_64")]
    ((libc::SYS_mkdir, "SYS_mkdir"), 1),
    ((libc::SYS_mkdirat, "SYS_mkdirat"), 2),
    #[cfg(target_arch = "x86_64")]
    ((libc::SYS_mknod, "SYS_mknod"), 1),
    ((libc::SYS_mknodat, "SYS_mknodat"), 2),
];

/// Calls that set a mode where their flags say that they make a file: the arguments of the flags and of the mode. In
/// other calls the mode is whatever was in the register.
pub(super) const MAKES_FILE: &[(Call, u8, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    ((libc::SYS_open, "SYS_open"), 1, 2),
    ((libc::SYS_openat, "SYS_openat"), 2, 3),
];

/// The flags that make a file. `O_TMPFILE` is this bit and that of a folder.
pub(super) const MAKING: [u32; 2] = [libc::O_CREAT as u32, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32];

/// Newer than some of the headers that `libc` is made from, with one number on every architecture.
const SYS_FCHMODAT2: libc::c_long = 452;
#[allow(non_upper_case_globals, reason = "named as in `libc`, which does not have it yet")]
const SYS_open_tree_attr: libc::c_long = 467;

/// What the first process of a jail needs when its guest runs: to wait, to hear and answer haft, to end everything.
pub(super) const INIT: &[Call] = calls![
    SYS_read,
    SYS_write,
    SYS_pread64,
    SYS_pwrite64,
    SYS_readv,
    SYS_writev,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    // The numbers of its children, where it is not the first process of a namespace.
    SYS_openat,
    SYS_getdents64,
    SYS_readlinkat,
    #[cfg(target_arch = "x86_64")]
    SYS_poll,
    SYS_ppoll,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_wait4,
    SYS_kill,
    SYS_getrusage,
    SYS_getpid,
    SYS_gettid,
    SYS_clock_gettime,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_restart_syscall,
    SYS_fcntl,
    SYS_memfd_create,
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_futex,
    SYS_getrandom,
    SYS_sigaltstack,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
];

/// The old way to raw packets.
pub(super) const SOCK_PACKET: i32 = 10;

pub(super) const NEW_NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

pub(super) use calls;
