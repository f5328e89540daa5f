//! Which system calls a guest may not use.
//!
//! Two lists. What no honest program asks for ends the process, so that it is noticed (`SIGSYS` is a violation on the
//! result). What programs try and can do without is refused with an error, so that they go on.

use super::wire::FilterKind;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

/// Filters, in the order in which they are loaded.
pub(crate) type Filters = Vec<BpfProgram>;

/// Changes the machine itself, or its kernel.
const ENDS: &[libc::c_long] = &[
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Other processes, other namespaces, mounts, keys, and large attack surface.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_mbind,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_set_mempolicy,
];

/// The old way to raw packets.
const SOCK_PACKET: i32 = 10;

const NEW_NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// The filters for a kind. Compiled once, when the spawner starts.
pub(crate) fn compile(kind: FilterKind) -> Result<Filters, seccompiler::BackendError> {
    if kind == FilterKind::Off {
        return Ok(Vec::new());
    }
    let errno = |errno: i32| SeccompAction::Errno(errno as u32);
    let always =
        |calls: &[libc::c_long]| calls.iter().map(|call| (*call, Vec::new())).collect::<BTreeMap<_, _>>();
    let mut refused = always(REFUSED);
    refused.insert(libc::SYS_clone, any_bit(0, NEW_NAMESPACES)?);
    // Typing into a terminal, and what else would reach somebody's terminal.
    refused.insert(
        libc::SYS_ioctl,
        vec![rule(&[equals(1, libc::TIOCSTI as u64)?])?, rule(&[equals(1, libc::TIOCLINUX as u64)?])?],
    );
    let not =
        |family: i32| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family as u64);
    let kind_of_socket = |kind: i32| {
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(0xf), kind as u64)
    };
    match kind {
        FilterKind::NoNetwork => {
            refused.insert(libc::SYS_socket, Vec::new());
            // A pair of datagram sockets can still be sent elsewhere by naming an address.
            refused.insert(libc::SYS_socketpair, vec![rule(&[kind_of_socket(libc::SOCK_DGRAM)?])?]);
        }
        FilterKind::Network => {
            let others = [not(libc::AF_UNIX)?, not(libc::AF_INET)?, not(libc::AF_INET6)?];
            refused.insert(
                libc::SYS_socket,
                vec![
                    rule(&others)?,
                    rule(&[not(libc::AF_UNIX)?, kind_of_socket(libc::SOCK_RAW)?])?,
                    rule(&[kind_of_socket(SOCK_PACKET)?])?,
                ],
            );
        }
        FilterKind::Off => {}
    }
    // The arguments of `clone3` are behind a pointer, where no filter sees them. Programs fall back to `clone`.
    let unknown = always(&[libc::SYS_clone3]);
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = |rules, action| -> Result<BpfProgram, seccompiler::BackendError> {
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()
    };
    Ok(vec![
        other_abi(),
        filter(always(ENDS), SeccompAction::KillProcess)?,
        filter(unknown, errno(libc::ENOSYS))?,
        filter(refused, errno(libc::EPERM))?,
    ])
}

fn rule(conditions: &[SeccompCondition]) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.to_vec())
}

fn equals(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    // The kernel looks at the lower half only.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// One rule for each bit: a rule holds when all of its conditions do, and here any one is enough.
fn any_bit(argument: u8, bits: u64) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    (0..64)
        .map(|bit| 1u64 << bit)
        .filter(|bit| bits & bit != 0)
        .map(|bit| {
            let set =
                SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bit), bit)?;
            rule(&[set])
        })
        .collect()
}

/// Calls of the x32 interface have the architecture of this machine but other numbers, which the lists would miss.
fn other_abi() -> BpfProgram {
    use seccompiler::sock_filter;
    const LOAD_NUMBER: sock_filter = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    const X32: u32 = 0x4000_0000;
    vec![
        LOAD_NUMBER,
        sock_filter { code: 0x35, jt: 0, jf: 1, k: X32 },
        sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32 },
        sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}
