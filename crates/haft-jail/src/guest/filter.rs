//! Which system calls a guest may not use.
//!
//! Two lists. What no honest program asks for ends the process, so that it is noticed (`SIGSYS` is a violation on the
//! result). What programs try and can do without is refused with an error, so that they go on.

use super::wire::FilterKind;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Filters, in the order in which they are loaded.
pub(crate) type Filters = Vec<BpfProgram>;

/// What the kernel is told about a call.
mod code {
    pub(super) const LOAD: u16 = 0x20;
    pub(super) const RETURN: u16 = 0x06;
    pub(super) const JUMP_EQUAL: u16 = 0x15;
    pub(super) const JUMP_AT_LEAST: u16 = 0x35;
    pub(super) const NUMBER_AT: u32 = 0;
    pub(super) const ARCHITECTURE_AT: u32 = 4;
    /// Calls of the x32 interface have the architecture of this machine but other numbers, which the lists would miss.
    pub(super) const X32: u32 = 0x4000_0000;
}

/// A system call, by number and by name: the kernel knows numbers, container runtimes know names.
type Call = (libc::c_long, &'static str);

macro_rules! calls {
    ($($(#[$condition:meta])* $name:ident),* $(,)?) => {
        &[$($(#[$condition])* (libc::$name, stringify!($name)),)*]
    };
}

/// Changes the machine itself, or its kernel.
const ENDS: &[Call] = calls![
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
const REFUSED: &[Call] = calls![
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
];

/// Its arguments are behind a pointer, where no filter sees them. Programs fall back to `clone`.
const UNKNOWN: &[Call] = calls![SYS_clone3];

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
        |calls: &[Call]| calls.iter().map(|(call, _)| (*call, Vec::new())).collect::<BTreeMap<_, _>>();
    let mut refused = always(REFUSED);
    refused.insert(libc::SYS_clone, any_bit(0, NEW_NAMESPACES)?);
    // Typing into a terminal, and what else would reach somebody's terminal.
    refused.insert(
        libc::SYS_ioctl,
        vec![rule(&[equals(1, libc::TIOCSTI)?])?, rule(&[equals(1, libc::TIOCLINUX)?])?],
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
    let unknown = always(UNKNOWN);
    let mut listed: Vec<u32> = refused
        .keys()
        .chain(unknown.keys())
        .chain(ENDS.iter().map(|(call, _)| call))
        .map(|call| *call as u32)
        .collect();
    listed.sort_unstable();
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter = |rules, action| -> Result<BpfProgram, seccompiler::BackendError> {
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()
    };
    let lists = [
        filter(always(ENDS), SeccompAction::KillProcess)?,
        filter(unknown, errno(libc::ENOSYS))?,
        filter(refused, errno(libc::EPERM))?,
    ];
    Ok(vec![joined(&listed, &lists)])
}

/// The filter of a guest with a network of its own, in the words of container runtimes.
///
/// Arguments are compared by their lower half, which is what the kernel looks at. A runtime takes several conditions on
/// one argument as alternatives, so families of sockets are listed one by one instead of by what they are not.
pub(crate) fn for_runtimes() -> Value {
    const LOWER: u64 = 0xffff_ffff;
    // All that the kernel may know; it refuses larger numbers itself.
    const FAMILIES: i32 = 64;
    let name = |(_, name): &Call| name.trim_start_matches("SYS_").to_owned();
    let names = |calls: &[Call]| calls.iter().map(name).collect::<Vec<_>>();
    let refuse = |calls: Vec<String>, errno: i32, arguments: &[Value]| json!({"names": calls, "action": "SCMP_ACT_ERRNO", "errnoRet": errno, "args": arguments});
    let is = |argument: u8, mask: u64, value: u64| json!({"index": argument, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"});
    let refused_if = |call: &str, arguments: &[Value]| refuse(vec![call.to_owned()], libc::EPERM, arguments);
    let mut rules = vec![
        json!({"names": names(ENDS), "action": "SCMP_ACT_KILL_PROCESS"}),
        refuse(names(UNKNOWN), libc::ENOSYS, &[]),
        refuse(names(REFUSED), libc::EPERM, &[]),
        refused_if("ioctl", &[is(1, LOWER, libc::TIOCSTI)]),
        refused_if("ioctl", &[is(1, LOWER, libc::TIOCLINUX)]),
        refused_if("socket", &[is(1, 0xf, SOCK_PACKET as u64)]),
    ];
    let bits = (0..64).map(|bit| 1u64 << bit).filter(|bit| NEW_NAMESPACES & bit != 0);
    rules.extend(bits.map(|bit| refused_if("clone", &[is(0, bit, bit)])));
    for family in 0..FAMILIES {
        let family_is = is(0, LOWER, family as u64);
        match family {
            libc::AF_UNIX => {}
            libc::AF_INET | libc::AF_INET6 => {
                rules.push(refused_if("socket", &[family_is, is(1, 0xf, libc::SOCK_RAW as u64)]));
            }
            _ => rules.push(refused_if("socket", &[family_is])),
        }
    }
    json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})
}

/// One filter of several, with a quick way out for calls that are in no list.
///
/// The kernel runs a new filter once for every call that there is, to know which are always allowed. With lists one
/// after the other that took 0.3 ms, which was most of what a jail cost.
fn joined(listed: &[u32], lists: &[BpfProgram]) -> BpfProgram {
    use code::{ARCHITECTURE_AT, JUMP_AT_LEAST, JUMP_EQUAL, LOAD, NUMBER_AT, RETURN, X32};
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // Each list starts by checking the architecture; the first instructions of the first one say which it is.
    let architecture = lists.first().and_then(|list| list.get(1)).map_or(0, |check| check.k);
    let mut program = vec![
        line(LOAD, 0, 0, ARCHITECTURE_AT),
        line(JUMP_EQUAL, 1, 0, architecture),
        line(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        line(LOAD, 0, 0, NUMBER_AT),
        line(JUMP_AT_LEAST, 0, 1, X32),
        line(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    let quick = search(listed);
    let length = quick.len();
    for (at, step) in quick.into_iter().enumerate() {
        program.push(match step {
            Step::Below { k, to } => line(JUMP_AT_LEAST, 0, (to - at - 1) as u8, k),
            Step::Listed { k } => line(JUMP_EQUAL, (length - at - 1) as u8, 0, k),
            Step::NotListed => line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        });
    }
    for (index, list) in lists.iter().enumerate() {
        // The last instruction of a list allows; that is for the last list to say.
        let all = if index + 1 == lists.len() { list.len() } else { list.len().saturating_sub(1) };
        program.extend(list.iter().take(all).cloned());
    }
    program
}

/// A step of the search for a number.
enum Step {
    /// Where the number is below `k`, go on at `to`.
    Below { k: u32, to: usize },
    /// Where it is `k`, go on behind the search.
    Listed { k: u32 },
    /// It is none of them.
    NotListed,
}

/// Halves the list until few are left.
fn search(listed: &[u32]) -> Vec<Step> {
    const FEW: usize = 4;
    let (middle, Some(first_above)) = (listed.len() / 2, listed.get(listed.len() / 2)) else {
        return vec![Step::NotListed];
    };
    if listed.len() <= FEW {
        return listed.iter().map(|k| Step::Listed { k: *k }).chain([Step::NotListed]).collect();
    }
    let (below, above) = (search(&listed[..middle]), search(&listed[middle..]));
    let shift = |steps: Vec<Step>, by: usize| {
        steps.into_iter().map(move |step| match step {
            Step::Below { k, to } => Step::Below { k, to: to + by },
            other => other,
        })
    };
    let behind = 1 + above.len();
    let mut steps = vec![Step::Below { k: *first_above, to: behind }];
    steps.extend(shift(above, 1));
    steps.extend(shift(below, behind));
    steps
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// What the kernel would answer. Only the instructions that filters here have.
    fn answer(program: &[sock_filter], arch: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let word = |at: u32| match at {
            0 => number,
            4 => arch,
            at if at >= 16 => {
                let argument = arguments[((at - 16) / 8) as usize];
                (if at % 8 == 0 { argument } else { argument >> 32 }) as u32
            }
            _ => 0,
        };
        let (mut at, mut held) = (0usize, 0u32);
        loop {
            let line = &program[at];
            at += 1;
            let jump = |yes: bool| usize::from(if yes { line.jt } else { line.jf });
            match line.code {
                0x20 => held = word(line.k),
                0x06 => return line.k,
                0x54 => held &= line.k,
                0x05 => at += line.k as usize,
                0x15 => at += jump(held == line.k),
                0x25 => at += jump(held > line.k),
                0x35 => at += jump(held >= line.k),
                0x45 => at += jump(held & line.k != 0),
                other => unreachable!("{other:x}"),
            }
        }
    }

    const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    #[test]
    fn every_call_gets_the_answer_of_its_list() {
        for kind in [FilterKind::NoNetwork, FilterKind::Network] {
            let program = &compile(kind).unwrap()[0];
            let arch = program[1].k;
            for number in 0..1000u32 {
                let call = libc::c_long::from(number);
                let expected = match call {
                    libc::SYS_clone3 => ENOSYS,
                    // With harmless arguments.
                    libc::SYS_clone | libc::SYS_ioctl | libc::SYS_socketpair => ALLOW,
                    libc::SYS_socket if kind == FilterKind::Network => ALLOW,
                    libc::SYS_socket => EPERM,
                    call if ENDS.iter().any(|(known, _)| *known == call) => KILL,
                    call if REFUSED.iter().any(|(known, _)| *known == call) => EPERM,
                    _ => ALLOW,
                };
                let arguments = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0];
                let arguments = if call == libc::SYS_clone { [libc::SIGCHLD as u64; 6] } else { arguments };
                assert_eq!(answer(program, arch, number, arguments), expected, "{kind:?} {number}");
                assert_eq!(answer(program, arch, number | code::X32, arguments), ENOSYS, "{number}");
                assert_eq!(answer(program, arch ^ 1, number, arguments), KILL, "{number}");
            }
        }
    }

    /// What a runtime would make of the rules.
    fn told(rules: &Value, name: &str, arguments: [u64; 6]) -> u32 {
        let number = |value: &Value| value.as_u64().unwrap();
        let holds = |argument: &Value| {
            assert_eq!(argument["op"], "SCMP_CMP_MASKED_EQ");
            let given = arguments[number(&argument["index"]) as usize];
            given & number(&argument["value"]) == number(&argument["valueTwo"])
        };
        let names = |rule: &Value| rule["names"].as_array().unwrap().iter().any(|known| known == name);
        let conditions = |rule: &Value| rule["args"].as_array().is_none_or(|all| all.iter().all(holds));
        let mut hit =
            rules["syscalls"].as_array().unwrap().iter().filter(|rule| names(rule) && conditions(rule));
        match hit.next() {
            None => ALLOW,
            Some(rule) if rule["action"] == "SCMP_ACT_KILL_PROCESS" => KILL,
            Some(rule) => libc::SECCOMP_RET_ERRNO | number(&rule["errnoRet"]) as u32,
        }
    }

    #[test]
    fn runtimes_are_told_the_same() {
        let rules = for_runtimes();
        let program = &compile(FilterKind::Network).unwrap()[0];
        let arch = program[1].k;
        let others: &[Call] = calls![SYS_clone, SYS_ioctl, SYS_socket, SYS_socketpair, SYS_read, SYS_execve];
        let high = 1 << 40;
        for (call, name) in [ENDS, REFUSED, UNKNOWN, others].concat() {
            // The kernel itself refuses families of sockets that it does not know.
            let bits = (6..32).map(|bit| 1 << bit).filter(|_| call != libc::SYS_socket);
            for first in (0..64).chain(bits) {
                for second in
                    [0, 1, 2, 3, 5, 10, 0x80003, libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSTI | high]
                {
                    for first in [first, first | high] {
                        let arguments = [first, second, 0, 0, 0, 0];
                        let expected = answer(program, arch, call as u32, arguments);
                        let name = name.trim_start_matches("SYS_");
                        assert_eq!(told(&rules, name, arguments), expected, "{name} {first:x} {second:x}");
                    }
                }
            }
        }
    }

    #[test]
    fn arguments_are_looked_at() {
        let with = &compile(FilterKind::Network).unwrap()[0];
        let without = &compile(FilterKind::NoNetwork).unwrap()[0];
        let arch = with[1].k;
        let ask = |program, call: libc::c_long, one: u64, two: u64| {
            answer(program, arch, call as u32, [one, two, 0, 0, 0, 0])
        };
        let flag = libc::SOCK_CLOEXEC as u64;
        for (family, kind, expected) in [
            (libc::AF_INET, libc::SOCK_STREAM, ALLOW),
            (libc::AF_INET6, libc::SOCK_DGRAM, ALLOW),
            (libc::AF_UNIX, libc::SOCK_RAW, ALLOW),
            (libc::AF_INET, libc::SOCK_RAW, EPERM),
            (libc::AF_INET, SOCK_PACKET, EPERM),
            (libc::AF_NETLINK, libc::SOCK_DGRAM, EPERM),
            (libc::AF_PACKET, libc::SOCK_DGRAM, EPERM),
            (libc::AF_VSOCK, libc::SOCK_STREAM, EPERM),
            (libc::AF_ALG, libc::SOCK_SEQPACKET, EPERM),
        ] {
            assert_eq!(
                ask(with, libc::SYS_socket, family as u64, kind as u64 | flag),
                expected,
                "{family} {kind}"
            );
            assert_eq!(ask(without, libc::SYS_socket, family as u64, kind as u64 | flag), EPERM);
        }
        for bit in 0..32 {
            let expected = if NEW_NAMESPACES & (1 << bit) != 0 { EPERM } else { ALLOW };
            assert_eq!(ask(with, libc::SYS_clone, 1 << bit, 0), expected, "{bit}");
        }
        assert_eq!(ask(with, libc::SYS_ioctl, 0, libc::TIOCSTI), EPERM);
        // The kernel does not look at the upper half.
        assert_eq!(ask(with, libc::SYS_ioctl, 0, libc::TIOCSTI | 1 << 40), EPERM);
        assert_eq!(ask(with, libc::SYS_ioctl, 0, libc::TIOCGWINSZ), ALLOW);
        let datagram = libc::SOCK_DGRAM as u64;
        assert_eq!(ask(without, libc::SYS_socketpair, libc::AF_UNIX as u64, datagram | flag), EPERM);
        assert_eq!(ask(without, libc::SYS_socketpair, libc::AF_UNIX as u64, libc::SOCK_STREAM as u64), ALLOW);
    }
}
