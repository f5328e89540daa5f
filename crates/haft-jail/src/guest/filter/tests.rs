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
const EOPNOTSUPP: u32 = libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Numbers of this architecture, written down: a list that loses one of them fails here, whatever it calls the rest.
#[cfg(target_arch = "x86_64")]
mod pinned {
    /// kexec_load, kexec_file_load, init_module, finit_module, delete_module, reboot, swapon, swapoff, acct,
    /// settimeofday, clock_settime, clock_adjtime, adjtimex, quotactl, quotactl_fd, lookup_dcookie, nfsservctl,
    /// vhangup, iopl, ioperm, uselib, _sysctl.
    pub(super) const ENDS: &[u32] = &[
        246, 320, 175, 313, 176, 169, 167, 168, 163, 164, 227, 305, 159, 179, 443, 212, 180, 153, 172, 173,
        134, 156,
    ];
    /// ptrace, process_vm_readv, process_vm_writev, process_madvise, kcmp, pidfd_getfd; add_key, request_key, keyctl;
    /// bpf, perf_event_open, userfaultfd, io_uring_setup, io_uring_enter, io_uring_register; unshare, setns; mount,
    /// umount2, pivot_root, chroot, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr,
    /// open_tree_attr; name_to_handle_at, open_by_handle_at, fanotify_init; syslog, sethostname, setdomainname; mbind,
    /// move_pages, migrate_pages, set_mempolicy, set_mempolicy_home_node.
    pub(super) const REFUSED: &[u32] = &[
        101, 310, 311, 440, 312, 438, 248, 249, 250, 321, 298, 323, 425, 426, 427, 272, 308, 165, 166, 155,
        161, 428, 429, 430, 431, 432, 433, 442, 467, 303, 304, 300, 103, 170, 171, 237, 279, 256, 238, 450,
    ];
    /// clone3, openat2.
    pub(super) const NOT_THERE: &[u32] = &[435, 437];
    pub(super) const OPENAT2: u32 = 437;
    pub(super) const FALLOCATE: u32 = 285;
    pub(super) const SOCKET: u32 = 41;
    pub(super) const SOCKETPAIR: u32 = 53;
    /// By the argument that is a mode: chmod, fchmod, creat, mkdir, mknod; fchmodat, fchmodat2, mkdirat, mknodat.
    pub(super) const MODES: &[(u32, usize)] =
        &[(90, 1), (91, 1), (85, 1), (83, 1), (133, 1), (268, 2), (452, 2), (258, 2), (259, 2)];
    /// open and openat, with the arguments of their flags and modes.
    pub(super) const MAKES: &[(u32, usize, usize)] = &[(2, 1, 2), (257, 2, 3)];
    /// setuid, setgid.
    pub(super) const PRIVILEGED: [u64; 2] = [0o4000, 0o2000];
    /// O_CREAT, and O_TMPFILE with and without the bit of a folder.
    pub(super) const MAKING: [u64; 3] = [0o100, 0o20_200_000, 0o20_000_000];
    /// The last call that was looked at: file_setattr.
    pub(super) const LAST: u32 = 469;
}

const GUESTS: [FilterKind; 3] = [FilterKind::NoNetwork, FilterKind::Network, FilterKind::NetworkAndUnix];

#[test]
#[cfg(target_arch = "x86_64")]
fn every_call_gets_the_answer_that_is_written_down_for_its_number() {
    for kind in GUESTS {
        let program = &compile(kind).unwrap()[0];
        let arch = program[1].k;
        for number in 0..1000u32 {
            // Of an ordinary socket of the internet; harmless for everything else.
            let arguments = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0];
            let expected = match number {
                number if number > pinned::LAST => ENOSYS,
                number if pinned::NOT_THERE.contains(&number) => ENOSYS,
                number if pinned::ENDS.contains(&number) => KILL,
                number if pinned::REFUSED.contains(&number) => EPERM,
                pinned::FALLOCATE => EOPNOTSUPP,
                pinned::SOCKET if kind == FilterKind::NoNetwork => EPERM,
                // Not of this machine.
                pinned::SOCKETPAIR if kind != FilterKind::NetworkAndUnix => EPERM,
                _ => ALLOW,
            };
            assert_eq!(answer(program, arch, number, arguments), expected, "{kind:?} {number}");
            let of_x32 = answer(program, arch, number | 0x4000_0000, arguments);
            assert_eq!(of_x32, ENOSYS, "{number}");
            assert_eq!(answer(program, arch ^ 1, number, arguments), KILL, "{number}");
        }
    }
}

/// A container runtime may do everything else.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_runtime_is_kept_from_privileged_modes_alone() {
    let program = &compile(FilterKind::Runtime).unwrap()[0];
    let arch = program[1].k;
    for number in 0..=pinned::LAST {
        let expected = if number == pinned::OPENAT2 { ENOSYS } else { ALLOW };
        assert_eq!(answer(program, arch, number, [0; 6]), expected, "{number}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn no_way_of_making_a_file_takes_a_privileged_mode() {
    let high = 1 << 40;
    let kinds = GUESTS.into_iter().chain([FilterKind::Runtime]);
    for (kind, program) in kinds.map(|kind| (kind, compile(kind).unwrap().remove(0))) {
        let ask = |number: u32, set: &[(usize, u64)]| {
            let mut arguments = [0; 6];
            for (at, value) in set {
                arguments[*at] = *value;
            }
            answer(&program, program[1].k, number, arguments)
        };
        for (number, mode) in pinned::MODES {
            for bit in pinned::PRIVILEGED {
                for value in [bit, bit | 0o755, bit | 0o100_000, 0o7777, bit | high] {
                    assert_eq!(ask(*number, &[(*mode, value)]), EPERM, "{kind:?} {number} {value:o}");
                }
            }
            for harmless in [0, 0o755, 0o1777, high] {
                assert_eq!(ask(*number, &[(*mode, harmless)]), ALLOW, "{kind:?} {number} {harmless:o}");
            }
            // The other arguments are none.
            assert_eq!(ask(*number, &[(4, 0o6000)]), ALLOW, "{kind:?} {number}");
        }
        for (number, flags, mode) in pinned::MAKES {
            for bit in pinned::PRIVILEGED {
                for making in pinned::MAKING {
                    let set = [(*flags, making | 1), (*mode, bit | 0o700)];
                    assert_eq!(ask(*number, &set), EPERM, "{kind:?} {number} {making:o} {bit:o}");
                }
                // Where no file is made, the mode is whatever was in the register.
                assert_eq!(ask(*number, &[(*flags, 2), (*mode, bit)]), ALLOW, "{kind:?} {number}");
            }
            assert_eq!(ask(*number, &[(*flags, 0o100), (*mode, 0o1777)]), ALLOW, "{kind:?} {number}");
        }
    }
}

/// The first process of a jail: enough to wait and to end, and nothing that a guest is refused.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_first_process_has_nothing_that_a_guest_is_refused() {
    let program = &compile_init().unwrap()[0];
    let arch = program[1].k;
    let ask = |number: u32| answer(program, arch, number, [0; 6]);
    let lists = [pinned::ENDS, pinned::REFUSED, pinned::NOT_THERE].concat();
    let modes = pinned::MODES.iter().map(|(number, _)| *number);
    // clone, fork, vfork, execve, execveat, socket, socketpair, connect, prctl, seccomp.
    let others = [56, 57, 58, 59, 322, 41, 53, 42, 157, 317];
    for number in lists.into_iter().chain(modes).chain(others) {
        assert_eq!(ask(number), EPERM, "{number}");
    }
    for number in pinned::LAST + 1..1000 {
        assert_eq!(ask(number), ENOSYS, "{number}");
    }
    // read, poll, recvmsg, sendmsg, wait4, kill, exit_group.
    for number in [0, 7, 47, 46, 61, 62, 231] {
        assert_eq!(ask(number), ALLOW, "{number}");
    }
}

/// What a runtime would make of the rules of one call.
fn told(rules: &[&Value], arguments: [u64; 6]) -> u32 {
    let number = |value: &Value| value.as_u64().unwrap();
    let holds = |argument: &Value| {
        assert_eq!(argument["op"], "SCMP_CMP_MASKED_EQ");
        let given = arguments[number(&argument["index"]) as usize];
        given & number(&argument["value"]) == number(&argument["valueTwo"])
    };
    let conditions = |rule: &&&Value| rule["args"].as_array().is_none_or(|all| all.iter().all(holds));
    match rules.iter().find(conditions) {
        None => ALLOW,
        Some(rule) if rule["action"] == "SCMP_ACT_KILL_PROCESS" => KILL,
        Some(rule) => libc::SECCOMP_RET_ERRNO | number(&rule["errnoRet"]) as u32,
    }
}

#[test]
fn runtimes_are_told_the_same() {
    for kind in [FilterKind::Network, FilterKind::NetworkAndUnix] {
        are_told_the_same(&for_runtimes(kind), &compile(kind).unwrap()[0]);
    }
}

fn are_told_the_same(rules: &Value, program: &BpfProgram) {
    let arch = program[1].k;
    let others: &[Call] =
        calls![SYS_clone, SYS_ioctl, SYS_socket, SYS_socketpair, SYS_read, SYS_execve, SYS_fallocate];
    let mut modes: Vec<Call> = privileged_bits().into_iter().map(|(call, _)| call).collect();
    modes.dedup();
    let high = 1 << 40;
    for (call, name) in [ENDS, REFUSED, UNKNOWN, others, &modes].concat() {
        let name = name.trim_start_matches("SYS_");
        let is_of_it = |rule: &&Value| {
            rule["names"].as_array().unwrap().iter().any(|known| known.as_str() == Some(name))
        };
        let of_it: Vec<&Value> = rules["syscalls"].as_array().unwrap().iter().filter(is_of_it).collect();
        let is_of_sockets = [libc::SYS_socket, libc::SYS_socketpair].contains(&call);
        // The kernel itself refuses families of sockets that it does not know.
        let bits = (6..32).map(|bit| 1 << bit).filter(|_| !is_of_sockets);
        let kinds = [0, 1, 2, 3, 5, 10, 0x80003, 0o4755, 0o2000, 0o1755];
        let seconds = || kinds.into_iter().chain([libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSTI | high]);
        let making = [(0, 0), (0o4644, 0), (libc::O_CREAT as u64, 0o2755), (2, 0o4755)];
        let last = if modes.iter().any(|(mode, _)| *mode == call) { &making[..] } else { &making[..1] };
        for first in (0..64).chain(bits).flat_map(|first| [first, first | high]) {
            for (second, (third, fourth)) in
                seconds().flat_map(|two| last.iter().map(move |more| (two, *more)))
            {
                let arguments = [first, second, third, fourth, 0, 0];
                let expected = answer(program, arch, call as u32, arguments);
                assert_eq!(told(&of_it, arguments), expected, "{name} {arguments:x?}");
            }
        }
    }
}

#[test]
fn arguments_are_looked_at() {
    let with = &compile(FilterKind::NetworkAndUnix).unwrap()[0];
    let inet = &compile(FilterKind::Network).unwrap()[0];
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
        let expected = if family == libc::AF_UNIX { EPERM } else { expected };
        assert_eq!(
            ask(inet, libc::SYS_socket, family as u64, kind as u64 | flag),
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
    // Room is given back at once, and taken by writing.
    for (mode, expected) in [(0, EOPNOTSUPP), (1, EOPNOTSUPP), (0x10, EOPNOTSUPP), (3, ALLOW)] {
        assert_eq!(ask(with, libc::SYS_fallocate, 3, mode), expected, "{mode}");
    }
    // A raw one of this machine is one that knows no connections.
    for (family, kind, expected) in [
        (libc::AF_UNIX, libc::SOCK_STREAM, ALLOW),
        (libc::AF_UNIX, libc::SOCK_SEQPACKET, ALLOW),
        (libc::AF_UNIX, libc::SOCK_DGRAM, EPERM),
        (libc::AF_UNIX, libc::SOCK_RAW, EPERM),
        (libc::AF_TIPC, libc::SOCK_STREAM, EPERM),
    ] {
        for program in [inet, without] {
            let asked = ask(program, libc::SYS_socketpair, family as u64, kind as u64 | flag);
            assert_eq!(asked, expected, "{family} {kind}");
        }
    }
}

/// The kernel's own answers, with this layer alone: the thread runs as the user of the tests, with all permissions.
#[test]
fn the_filter_alone_refuses() {
    use crate::guest::sys;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let own = std::process::id().into();
    let tries = move || {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).is_ok();
        let privileged = [0o4755, 0o2755].map(mode);
        mode(0o644);
        // The keyring of this process; this process with itself; advice about no memory at all; nothing to trace.
        let keyring = sys::call(libc::SYS_keyctl, [0, -2i64 as u64, 1, 0, 0]);
        let compared = sys::call(libc::SYS_kcmp, [own, own, 1, 0, 0]);
        let pidfd = sys::call(libc::SYS_pidfd_open, [own, 0, 0, 0, 0]).unwrap();
        let advised = sys::call(libc::SYS_process_madvise, [pidfd as u64, 0, 0, libc::MADV_COLD as u64, 0]);
        let traced = sys::call(libc::SYS_ptrace, [libc::PTRACE_CONT.into(), own, 0, 0, 0]);
        let answers = [keyring, compared, advised, traced].map(|got| got.err().unwrap_or(0));
        let unix =
            rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None);
        (privileged, mode(0o755), answers, unix.is_ok())
    };
    let (privileged, harmless, answers, unix) = tries();
    assert!(privileged == [true; 2] && harmless && unix);
    // Without it, no such call is refused: the last says that nothing of that name is traced.
    assert!(
        answers[..3].iter().all(|errno| *errno != libc::EPERM) && answers[3] == libc::ESRCH,
        "{answers:?}"
    );
    for (kind, has_unix) in [(FilterKind::Network, false), (FilterKind::NetworkAndUnix, true)] {
        let filter = compile(kind).unwrap().remove(0);
        let tries = tries.clone();
        let filtered = std::thread::spawn(move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            sys::load_filter(&filter).unwrap();
            tries()
        });
        let refused = ([false; 2], true, [libc::EPERM; 4], has_unix);
        assert_eq!(filtered.join().unwrap(), refused, "{kind:?}");
    }
}
