//! Attacks that leave something behind or reach somebody: privileged files, metadata of what is the machine's, sockets
//! behind which another program listens, and calls that only the filter stops.

use super::{
    kernel::{good, in_a_child},
    list::{Attack, attack},
    *,
};

macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {
        // SAFETY: the arguments are numbers, or pointers to values that live across the call.
        unsafe { libc::syscall($number $(, $argument)*) }
    };
}

/// A file that runs as its owner or its group.
fn is_privileged(path: impl AsRef<Path>) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.mode() & 0o6000 != 0)
}

/// A shell that will belong to the user who starts it, unless somebody says otherwise.
fn own_shell() -> &'static str {
    let _ = fs::copy("/bin/sh", "shell");
    "shell"
}

fn mode_by_path(path: impl AsRef<Path>, mode: u32) {
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
}

/// Every call that sets a mode, with each of the bits, on names that are there or made by it.
fn privileged_by_any_call() -> bool {
    const FCHMODAT2: libc::c_long = 452;
    const OPENAT2: libc::c_long = 437;
    let here = libc::AT_FDCWD;
    for (bit, name) in [(0o4000u32, "user"), (0o2000, "group")] {
        let mode = bit | 0o755;
        let name = |call: &str| CString::new(format!("{name}-{call}")).unwrap();
        let made = |call: &str| {
            let name = name(call);
            fs::write(name.to_str().unwrap(), "").unwrap();
            name
        };
        let file = |name: &CString| fs::File::open(name.to_str().unwrap()).unwrap();
        let chmod = made("chmod");
        #[cfg(target_arch = "x86_64")]
        call!(libc::SYS_chmod, chmod.as_ptr(), mode);
        let fchmod = made("fchmod");
        call!(libc::SYS_fchmod, file(&fchmod).as_raw_fd(), mode);
        let fchmodat = made("fchmodat");
        call!(libc::SYS_fchmodat, here, fchmodat.as_ptr(), mode);
        let fchmodat2 = made("fchmodat2");
        call!(FCHMODAT2, here, fchmodat2.as_ptr(), mode, 0);
        let by_descriptor = made("proc");
        let open = file(&by_descriptor);
        mode_by_path(format!("/proc/self/fd/{}", open.as_raw_fd()), mode);
        let (creat, open, openat) = (name("creat"), name("open"), name("openat"));
        let making = libc::O_CREAT | libc::O_WRONLY;
        #[cfg(target_arch = "x86_64")]
        {
            call!(libc::SYS_creat, creat.as_ptr(), mode);
            call!(libc::SYS_open, open.as_ptr(), making, mode);
        }
        call!(libc::SYS_openat, here, openat.as_ptr(), making, mode);
        let unnamed = name("unnamed");
        let fd = call!(libc::SYS_openat, here, c".".as_ptr(), libc::O_TMPFILE | libc::O_WRONLY, mode);
        let from = CString::new(format!("/proc/self/fd/{fd}")).unwrap();
        call!(libc::SYS_linkat, here, from.as_ptr(), here, unnamed.as_ptr(), libc::AT_SYMLINK_FOLLOW);
        let openat2 = name("openat2");
        let how = [making as u64, u64::from(mode), 0u64];
        call!(OPENAT2, here, openat2.as_ptr(), how.as_ptr(), mem::size_of_val(&how));
        let (mknod, mknodat) = (name("mknod"), name("mknodat"));
        #[cfg(target_arch = "x86_64")]
        call!(libc::SYS_mknod, mknod.as_ptr(), libc::S_IFREG | mode, 0);
        call!(libc::SYS_mknodat, here, mknodat.as_ptr(), libc::S_IFREG | mode, 0);
        let (mkdir, mkdirat) = (name("mkdir"), name("mkdirat"));
        #[cfg(target_arch = "x86_64")]
        call!(libc::SYS_mkdir, mkdir.as_ptr(), mode);
        call!(libc::SYS_mkdirat, here, mkdirat.as_ptr(), mode);
    }
    let all = fs::read_dir(".").unwrap().flatten();
    all.into_iter().any(|entry| {
        let privileged = is_privileged(entry.path()) && entry.file_name() != "as-another";
        if privileged {
            println!("{:?} is privileged", entry.file_name());
        }
        privileged
    })
}

/// Sets what is there already, so that nothing changes where it succeeds.
fn mode_again(path: &str) -> bool {
    fs::metadata(path).is_ok_and(|found| fs::set_permissions(path, found.permissions()).is_ok())
}

fn times_again(path: &str) -> bool {
    let Ok(found) = fs::metadata(path) else { return false };
    let times = [(found.atime(), found.atime_nsec()), (found.mtime(), found.mtime_nsec())];
    let times = times.map(|(tv_sec, tv_nsec)| libc::timespec { tv_sec, tv_nsec });
    let path = CString::new(path).unwrap();
    // SAFETY: a text that ends with a zero byte, and two times.
    unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), 0) == 0 }
}

fn owner_again(path: &str) -> bool {
    fs::metadata(path)
        .is_ok_and(|found| std::os::unix::fs::chown(path, Some(found.uid()), Some(found.gid())).is_ok())
}

fn set_attribute(path: &Path, name: &std::ffi::CStr, value: &[u8]) -> bool {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: texts that end with zero bytes, and a value of that length.
    unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) == 0 }
}

/// A raw socket of this machine is one that knows no connections, whatever it is called.
fn send_from_a_raw_pair(to: &Path) -> bool {
    let mut pair = [0; 2];
    // SAFETY: two descriptors, which nobody else owns.
    let socket = unsafe {
        if libc::socketpair(libc::AF_UNIX, libc::SOCK_RAW, 0, pair.as_mut_ptr()) != 0 {
            return false;
        }
        UnixDatagram::from(OwnedFd::from_raw_fd(pair[0]))
    };
    socket.send_to(b"x", to).is_ok()
}

fn trace_own_child() -> bool {
    in_a_child(|| {
        // SAFETY: lets the parent trace this copy, which ends.
        unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 }
    })
}

fn advise() -> bool {
    let pidfd = call!(libc::SYS_pidfd_open, std::process::id(), 0);
    let page = [0u8; 1];
    let advised = libc::iovec { iov_base: page.as_ptr().cast_mut().cast(), iov_len: 0 };
    pidfd >= 0
        && good(call!(libc::SYS_process_madvise, pidfd, &raw const advised, 1_usize, libc::MADV_COLD, 0))
}

pub const ATTACKS: &[Attack] = &[
    attack("make_a_shell_that_runs_as_its_owner", |_| {
        mode_by_path(own_shell(), 0o4755);
        is_privileged("shell")
    }),
    attack("make_a_shell_that_runs_as_its_group", |_| {
        mode_by_path(own_shell(), 0o2755);
        is_privileged("shell")
    }),
    attack("make_a_privileged_file_by_any_call", |_| privileged_by_any_call()),
    attack("make_a_file_outside_privileged", |t| {
        mode_by_path(t.canary(), 0o6755);
        let privileged = is_privileged(t.canary());
        mode_by_path(t.canary(), 0o644);
        privileged
    }),
    attack("give_a_file_capabilities", |_| {
        // Of the second version: to change users, effective.
        let capabilities = [1, 0, 0, 2, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        set_attribute(Path::new(own_shell()), c"security.capability", &capabilities)
    })
    .root(),
    attack("change_the_times_of_a_file_outside", |t| times_again(t.canary().to_str().unwrap()))
        .unless_process(),
    attack("change_the_attributes_of_a_file_outside", |t| set_attribute(&t.canary(), c"user.planted", b"x"))
        .unless_process(),
    attack("change_the_mode_of_a_device", |_| {
        ["/dev/full", "/dev/null", "/dev/tty"].into_iter().any(mode_again)
    })
    .root(),
    attack("change_the_times_of_a_device", |_| times_again("/dev/full")).root(),
    attack("change_the_owner_of_a_device", |_| owner_again("/dev/full")).root(),
    attack("change_the_mode_of_its_input", |_| {
        // SAFETY: looks at its standard input, and sets the mode that it has.
        unsafe {
            let mut found: libc::stat = mem::zeroed();
            let is_device =
                libc::fstat(0, &raw mut found) == 0 && found.st_mode & libc::S_IFMT == libc::S_IFCHR;
            is_device && libc::fchmod(0, found.st_mode & 0o777) == 0
        }
    })
    .root(),
    attack("connect_to_a_socket_in_its_folder", |t| {
        UnixStream::connect(t.workspace.join("agent.sock")).is_ok()
    }),
    attack("send_to_a_socket_in_its_folder", |t| {
        UnixDatagram::unbound().is_ok_and(|socket| socket.send_to(b"x", t.workspace.join("log.sock")).is_ok())
    }),
    attack("send_from_a_raw_pair_of_sockets", |t| {
        [&t.outside, &t.workspace].into_iter().any(|folder| send_from_a_raw_pair(&folder.join("log.sock")))
    }),
    attack("trace_its_own_child", |_| trace_own_child()),
    attack("compare_two_processes", |_| {
        let own = std::process::id();
        good(call!(libc::SYS_kcmp, own, own, 1, 0, 0))
    }),
    attack("ask_for_a_keyring", |_| good(call!(libc::SYS_keyctl, 0, -2, 1))),
    attack("advise_the_kernel_about_memory", |_| advise()),
];

/// What jails that are opened further than usual still hold.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    if !is_root() {
        // The `process` jail has all of the network or nothing of it.
        let of_sockets = attacks().filter(|attack| reaches_a_socket(attack));
        trials.extend(of_sockets.map(|attack| {
            Trial::test(format!("attack::process_with_all_hosts::{}", attack.name), move || {
                with_all_hosts(attack);
                Ok(())
            })
        }));
    }
    for jail in jails().into_iter().filter(|jail| ["namespace", "runc", "crun"].contains(jail)) {
        trials.push(Trial::test(
            format!("attack::{jail}::unix_sockets_are_there_where_they_are_wanted"),
            move || {
                unix_sockets_are_there_where_they_are_wanted(jail);
                Ok(())
            },
        ));
    }
    trials
}

fn reaches_a_socket(attack: &Attack) -> bool {
    ["connect_to_a_socket_", "send_to_a_socket_", "send_from_a_"]
        .into_iter()
        .any(|start| attack.name.starts_with(start))
}

fn with_all_hosts(attack: &Attack) {
    let (world, house) = (World::new(), House::new());
    let (harmed, said) =
        in_a_jail_with(attack, &world, &house, "process", |spec| spec.hosts = vec!["*".to_owned()]);
    assert!(!harmed, "{said}");
    assert!(without_a_jail(attack, &world, house.state.path()), "without a jail the attack has to succeed");
}

/// The programs of a guest talk to each other as ever where the configuration says so, and by pairs of sockets in any
/// case.
fn unix_sockets_are_there_where_they_are_wanted(jail: &'static str) {
    let program = own_program();
    for wanted in [false, true] {
        let house = House::with(|options| options.unix_sockets = wanted);
        let mut spec = GuestSpec::command([program.to_str().unwrap(), "--unix-sockets"]);
        spec.level = IsolationLevel::Strict;
        spec.readable = vec![program.clone()];
        let (end, heard) = block_on(run_guest(&*house.jail(jail), spec)).unwrap();
        assert_eq!(heard.out, format!("pair true, listens and answers {wanted}\n"), "{heard:?} {end:?}");
    }
}

/// The guest of that test.
pub fn use_unix_sockets() -> i32 {
    let paired = UnixStream::pair().is_ok_and(|(mut one, mut other)| {
        one.write_all(b"x").is_ok() && other.read(&mut [0; 1]).is_ok_and(|count| count == 1)
    });
    let path = std::env::temp_dir().join("own.sock");
    let listens = UnixListener::bind(&path).is_ok_and(|listener| {
        let mut client = UnixStream::connect(&path).unwrap();
        listener.accept().unwrap().0.write_all(b"x").unwrap();
        client.read(&mut [0; 1]).is_ok_and(|count| count == 1)
    });
    println!("pair {paired}, listens and answers {listens}");
    0
}
