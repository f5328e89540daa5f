//! Attacks that are one system call.

use super::*;

/// Whether a call gave no error. A descriptor that it gave is closed when the attacker ends.
pub fn good(got: libc::c_long) -> bool {
    got >= 0
}

macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {
        // SAFETY: the arguments are numbers, or pointers to values that live across the call.
        unsafe { libc::syscall($number $(, $argument)*) }
    };
}

pub fn rustix_kill(pid: i32, signal: i32) -> bool {
    // SAFETY: sends a signal.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// In a copy of this process, because it cannot be undone.
pub fn in_a_child(attack: impl Fn() -> bool) -> bool {
    // SAFETY: the attacker has one thread; the copy ends itself.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(i32::from(!attack())),
            pid if pid > 0 => {
                let mut status = 0;
                libc::waitpid(pid, &raw mut status, 0);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
            _ => false,
        }
    }
}

pub fn ptrace_attach(pid: i32) -> bool {
    // SAFETY: seizing does not stop the other process.
    unsafe {
        let seized = libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) == 0;
        if seized {
            libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0);
        }
        seized
    }
}

pub fn process_vm_read(pid: i32) -> bool {
    let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else { return false };
    let Some(from) = maps.split('-').next().and_then(|from| usize::from_str_radix(from, 16).ok()) else {
        return false;
    };
    let mut buffer = [0u8; 16];
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 16 };
    let remote = libc::iovec { iov_base: from as *mut _, iov_len: 16 };
    // SAFETY: reads at most 16 bytes into a buffer of 16.
    unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) > 0 }
}

pub fn pidfd_getfd(pid: i32) -> bool {
    let pidfd = call!(libc::SYS_pidfd_open, pid, 0);
    pidfd >= 0 && good(call!(libc::SYS_pidfd_getfd, pidfd, 0, 0))
}

pub fn socket(family: i32, kind: i32, protocol: i32) -> bool {
    good(call!(libc::SYS_socket, family, kind, protocol))
}

pub fn mount_tmpfs() -> bool {
    let _ = fs::create_dir("mounted");
    // SAFETY: the texts end with zero bytes.
    unsafe {
        let mounted = libc::mount(c"x".as_ptr(), c"mounted".as_ptr(), c"tmpfs".as_ptr(), 0, ptr::null()) == 0;
        if mounted {
            libc::umount2(c"mounted".as_ptr(), libc::MNT_DETACH);
        }
        mounted
    }
}

pub fn fsopen() -> bool {
    good(call!(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0))
}

pub fn open_tree() -> bool {
    good(call!(libc::SYS_open_tree, libc::AT_FDCWD, c"/".as_ptr(), 1))
}

pub fn unshare(flags: i32) -> bool {
    // SAFETY: changes only this copy.
    unsafe { libc::unshare(flags) == 0 }
}

pub fn clone_user_namespace() -> bool {
    let pid = call!(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0);
    if pid == 0 {
        // SAFETY: ends the copy.
        unsafe { libc::_exit(0) }
    }
    pid > 0
}

pub fn clone3_user_namespace() -> bool {
    // SAFETY: all zero is valid.
    let mut args: libc::clone_args = unsafe { mem::zeroed() };
    args.flags = libc::CLONE_NEWUSER as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    let pid = call!(libc::SYS_clone3, &raw mut args, mem::size_of::<libc::clone_args>());
    if pid == 0 {
        // SAFETY: ends the copy.
        unsafe { libc::_exit(0) }
    }
    pid > 0
}

pub fn setns(pid: i32) -> bool {
    let Ok(namespace) = fs::File::open(format!("/proc/{pid}/ns/uts")) else { return false };
    // SAFETY: changes only this copy.
    unsafe { libc::setns(namespace.as_raw_fd(), 0) == 0 }
}

pub fn chroot() -> bool {
    // SAFETY: changes only this copy.
    unsafe { libc::chroot(c".".as_ptr()) == 0 }
}

pub fn mknod() -> bool {
    // SAFETY: the path ends with a zero byte.
    unsafe { libc::mknod(c"device".as_ptr(), libc::S_IFCHR | 0o666, libc::makedev(1, 3)) == 0 }
}

pub fn add_key() -> bool {
    const PROCESS_KEYRING: i32 = -2;
    good(call!(
        libc::SYS_add_key,
        c"user".as_ptr(),
        c"haft".as_ptr(),
        c"x".as_ptr(),
        1_usize,
        PROCESS_KEYRING
    ))
}

pub fn bpf_map() -> bool {
    let attributes: [u32; 32] = {
        let mut attributes = [0; 32];
        attributes[..4].copy_from_slice(&[2, 4, 4, 1]);
        attributes
    };
    good(call!(libc::SYS_bpf, 0, attributes.as_ptr(), 48_usize))
}

pub fn perf_event() -> bool {
    let mut attributes = [0u32; 32];
    attributes[0] = 1;
    attributes[1] = 112;
    good(call!(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0))
}

pub fn userfaultfd() -> bool {
    const USER_MODE_ONLY: i32 = 1;
    good(call!(libc::SYS_userfaultfd, USER_MODE_ONLY))
}

pub fn io_uring() -> bool {
    let mut parameters = [0u32; 30];
    good(call!(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()))
}

pub fn open_by_handle(path: &Path) -> bool {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    let mut handle = [0u8; 136];
    handle[0] = 128;
    let mut mount = 0i32;
    let named = call!(
        libc::SYS_name_to_handle_at,
        libc::AT_FDCWD,
        path.as_ptr(),
        handle.as_mut_ptr(),
        &raw mut mount,
        0
    );
    let Ok(root) = fs::File::open("/") else { return false };
    good(named) && good(call!(libc::SYS_open_by_handle_at, root.as_raw_fd(), handle.as_mut_ptr(), 0))
}

pub fn fanotify() -> bool {
    good(call!(libc::SYS_fanotify_init, libc::FAN_CLASS_CONTENT, 0))
}

pub fn sethostname() -> bool {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    // SAFETY: the name has that length.
    unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) == 0 }
}

pub fn syslog() -> bool {
    const READ_ALL: i32 = 3;
    let mut buffer = [0u8; 64];
    good(call!(libc::SYS_syslog, READ_ALL, buffer.as_mut_ptr(), 64))
}

/// Makes a terminal its own, and types into it as if somebody sat there.
pub fn tiocsti() -> bool {
    // SAFETY: descriptors and a byte that live across the calls.
    unsafe {
        libc::setsid();
        let master = libc::open(c"/dev/ptmx".as_ptr(), libc::O_RDWR | libc::O_NOCTTY);
        if master < 0 || libc::grantpt(master) != 0 || libc::unlockpt(master) != 0 {
            return false;
        }
        let name = libc::ptsname(master);
        let terminal = libc::open(name, libc::O_RDWR);
        libc::ioctl(terminal, libc::TIOCSCTTY, 0);
        let byte = b'x';
        libc::ioctl(terminal, libc::TIOCSTI, &raw const byte) == 0
    }
}

/// Runs a copy of `id` that runs as its owner, who is another one.
pub fn setuid_program(target: &Target) -> bool {
    let program = target.workspace.join("as-another");
    let output = Command::new(&program).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("12345"))
}

pub fn chown_own() -> bool {
    let _ = fs::write("given", "x");
    std::os::unix::fs::chown("given", Some(12345), None).is_ok()
        && fs::metadata("given").is_ok_and(|given| given.uid() == 12345)
}

pub fn setgroups() -> bool {
    let groups = [4242];
    // SAFETY: one group, in a list of one.
    unsafe { libc::setgroups(1, groups.as_ptr()) == 0 }
}

pub fn renice() -> bool {
    // SAFETY: changes only this copy.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -5) == 0 }
}

pub fn read_a_disk() -> bool {
    let disks = fs::read_dir("/dev").into_iter().flatten().flatten().filter(|entry| {
        use std::os::unix::fs::FileTypeExt as _;
        entry.file_type().is_ok_and(|kind| kind.is_block_device())
    });
    disks
        .into_iter()
        .any(|disk| fs::File::open(disk.path()).is_ok_and(|mut disk| disk.read(&mut [0; 512]).is_ok()))
}

pub fn shm_read(target: &Target) -> bool {
    // SAFETY: a segment of one page is read within it.
    unsafe {
        let at = libc::shmat(target.shm, ptr::null(), libc::SHM_RDONLY);
        if at as isize == -1 {
            return false;
        }
        let held = std::slice::from_raw_parts(at.cast::<u8>(), 64);
        String::from_utf8_lossy(held).contains(&target.secret)
    }
}

/// Asks for something of the kernel with wrong magic numbers: refused without a filter, noticed with one.
pub fn reboot() -> ! {
    call!(libc::SYS_reboot, 0, 0, 0, 0);
    std::process::exit(1)
}
