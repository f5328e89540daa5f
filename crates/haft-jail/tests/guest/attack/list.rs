//! The attacks, by name.

use super::{kernel::*, *};

/// One attack.
pub struct Attack {
    pub name: &'static str,
    /// Whether it reached what it should not.
    pub run: fn(&Target) -> bool,
    /// Jails that say that they do not stop it. That they do not is tested, too.
    pub not_stopped_by: &'static [&'static str],
    /// Whether only a jail that can hide something in a granted folder can be asked at all.
    pub needs_subtraction: bool,
    /// Jails that need cgroups to stop it.
    pub without_cgroups: &'static [&'static str],
    /// Whether it works for root only, even without a jail.
    pub needs_root: bool,
}

pub const fn attack(name: &'static str, run: fn(&Target) -> bool) -> Attack {
    Attack {
        name,
        run,
        not_stopped_by: &[],
        needs_subtraction: false,
        without_cgroups: &[],
        needs_root: false,
    }
}

impl Attack {
    pub const fn unless_process(mut self) -> Self {
        self.not_stopped_by = &["process"];
        self
    }

    const fn subtracts(mut self) -> Self {
        self.needs_subtraction = true;
        self
    }

    const fn takes_cgroups_in(mut self, jails: &'static [&'static str]) -> Self {
        self.without_cgroups = jails;
        self
    }

    pub const fn root(mut self) -> Self {
        self.needs_root = true;
        self
    }
}

fn has(path: impl AsRef<Path>, secret: &str) -> bool {
    fs::read(path).is_ok_and(|found| String::from_utf8_lossy(&found).contains(secret))
}

fn pids() -> Vec<i32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn fill(folder: &Path, files: usize, bytes: usize) -> bool {
    (0..files).all(|number| fs::write(folder.join(format!("fill-{number}")), vec![1u8; bytes]).is_ok())
}

fn temporary() -> PathBuf {
    std::env::temp_dir()
}

/// Runs this many copies of something at once, each in a process; how many could be started.
fn children(count: usize, each: impl Fn() -> bool) -> usize {
    let mut started = Vec::new();
    for _ in 0..count {
        // SAFETY: this program has one thread when it attacks.
        match unsafe { libc::fork() } {
            0 => {
                let good = each();
                std::thread::sleep(Duration::from_millis(if good { 700 } else { 0 }));
                // SAFETY: ends the copy.
                unsafe { libc::_exit(i32::from(!good)) }
            }
            pid if pid > 0 => started.push(pid),
            _ => break,
        }
    }
    let mut good = 0;
    for pid in started {
        let mut status = 0;
        // SAFETY: waits for a child of this process.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        good += usize::from(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
    }
    good
}

fn touch_memory(bytes: usize) -> bool {
    let mut held = Vec::new();
    if held.try_reserve_exact(bytes).is_err() {
        return false;
    }
    held.resize(bytes, 0u8);
    for at in (0..bytes).step_by(4096) {
        held[at] = at as u8 | 1;
    }
    std::hint::black_box(&held).iter().step_by(4096).all(|byte| *byte != 0)
}

fn burn(time: Duration) -> bool {
    let used = || {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
    };
    while used() < time {
        std::hint::black_box(0);
    }
    true
}

fn echo(target: &Target) -> bool {
    let Ok(socket) = std::net::UdpSocket::bind("127.0.0.1:0") else { return false };
    let _ = socket.set_read_timeout(Some(Duration::from_millis(300)));
    let _ = socket.send_to(b"ping", ("127.0.0.1", target.udp));
    socket.recv(&mut [0; 8]).is_ok()
}

/// Memory of other processes that can be read, searched for the secret.
fn search_memory(target: &Target) -> bool {
    let own = std::process::id() as i32;
    // In a container the attacker itself is the first process.
    pids().into_iter().filter(|pid| *pid != own).any(|pid| {
        let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else { return false };
        let Ok(memory) = fs::File::open(format!("/proc/{pid}/mem")) else { return false };
        let ours = pid == target.victim || pid == target.haft || pid == 1;
        ours && maps.lines().filter(|line| line.contains(" rw-p ") && line.contains("[stack]")).any(|line| {
            let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            let (from, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
            let mut held = vec![0u8; (to - from) as usize];
            let read = std::os::unix::fs::FileExt::read_at(&memory, &mut held, from).unwrap_or(0);
            String::from_utf8_lossy(&held[..read]).contains(&target.secret)
        })
    })
}

fn opens_for_writing(path: &str) -> bool {
    fs::OpenOptions::new().write(true).open(path).is_ok()
}

fn same_back(path: &str) -> bool {
    let Ok(text) = fs::read_to_string(path) else { return false };
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .is_ok_and(|mut file| file.write_all(text.as_bytes()).is_ok())
}

pub const ATTACKS: &[Attack] = &[
    attack("read_a_file_outside", |t| has(t.canary(), &t.secret)),
    attack("write_a_file_outside", |t| fs::OpenOptions::new().append(true).open(t.canary()).is_ok()),
    attack("make_a_file_outside", |t| fs::write(t.outside.join("new"), "x").is_ok()),
    attack("make_a_folder_outside", |t| fs::create_dir(t.outside.join("folder")).is_ok()),
    attack("make_a_link_outside", |t| symlink("x", t.outside.join("sym")).is_ok()),
    attack("remove_a_file_outside", |t| fs::remove_file(t.outside.join("second")).is_ok()),
    attack("shorten_a_file_outside", |t| {
        let path = CString::new(t.canary().to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero byte.
        unsafe { libc::truncate(path.as_ptr(), 100) == 0 }
    }),
    attack("rename_a_file_outside", |t| {
        fs::rename(t.outside.join("second"), t.outside.join("third")).is_ok()
    }),
    attack("list_a_folder_outside", |t| fs::read_dir(&t.outside).is_ok_and(|mut list| list.next().is_some())),
    attack("see_a_file_outside", |t| t.canary().exists()).unless_process(),
    attack("change_the_mode_of_a_file_outside", |t| {
        fs::set_permissions(t.canary(), fs::Permissions::from_mode(0o777)).is_ok()
    })
    .unless_process(),
    attack("follow_a_planted_link", |t| has(t.workspace.join("link"), &t.secret)),
    attack("follow_a_planted_link_to_a_folder", |t| has(t.workspace.join("linked/canary"), &t.secret)),
    attack("hard_link_to_the_outside", |t| {
        let _ = fs::hard_link(t.canary(), "hard");
        has("hard", &t.secret)
    }),
    attack("move_the_outside_in", |t| fs::rename(t.outside.join("second"), "moved").is_ok()),
    attack("climb_out_of_the_folder", |t| {
        let up = "../".repeat(20);
        has(format!("{up}{}", t.canary().display()), &t.secret)
    }),
    attack("read_password_hashes", |_| fs::read("/etc/shadow").is_ok()).root(),
    attack("read_what_is_denied", |t| has(t.workspace.join(".env"), &t.secret)).subtracts(),
    attack("read_in_a_folder_that_is_denied", |t| has(t.workspace.join("private/key"), &t.secret))
        .subtracts(),
    attack("move_what_is_denied", |t| {
        let _ = fs::rename(t.workspace.join(".env"), t.workspace.join("env"));
        has(t.workspace.join("env"), &t.secret)
    })
    .subtracts(),
    attack("hard_link_to_what_is_denied", |t| {
        let _ = fs::hard_link(t.workspace.join(".env"), t.workspace.join("hard"));
        has(t.workspace.join("hard"), &t.secret)
    })
    .subtracts(),
    attack("write_a_hook", |t| fs::write(t.workspace.join(".git/hooks/pre-commit"), "x").is_ok()).subtracts(),
    attack("write_settings_of_a_repository", |t| fs::write(t.workspace.join(".git/config"), "x").is_ok())
        .subtracts(),
    attack("put_another_repository_in_its_place", |t| {
        let _ = fs::rename(t.workspace.join(".git"), t.workspace.join("away"));
        let _ = fs::create_dir_all(t.workspace.join(".git/hooks"));
        fs::write(t.workspace.join(".git/hooks/pre-commit"), "x").is_ok()
    })
    .subtracts(),
    attack("read_hafts_own_state", |t| has(t.state.join("keys"), &t.secret)),
    attack("read_the_environment_of_haft_or_another", |t| {
        pids()
            .iter()
            .filter(|pid| [t.haft, t.victim, 1].contains(pid))
            .any(|pid| has(format!("/proc/{pid}/environ"), &t.secret))
    }),
    attack("find_a_secret_in_its_own_environment", |t| {
        std::env::vars().any(|(_, value)| value.contains(&t.secret))
    }),
    attack("search_the_memory_of_others", search_memory),
    attack("read_the_map_of_hafts_memory", |t| {
        let own = std::process::id() as i32;
        [t.haft, 1]
            .iter()
            .filter(|pid| **pid != own)
            .any(|pid| fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| !maps.is_empty()))
    }),
    attack("go_through_the_root_of_another", |t| {
        [t.haft, t.victim, 1]
            .iter()
            .any(|pid| has(format!("/proc/{pid}/root{}", t.canary().display()), &t.secret))
    }),
    attack("take_a_file_from_another", |t| {
        pids().iter().filter(|pid| [t.haft, 1].contains(pid)).any(|pid| {
            let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            open.into_iter().any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == t.canary()))
        })
    }),
    attack("see_the_processes_of_the_machine", |t| {
        fs::read_to_string(format!("/proc/{}/comm", t.victim)).is_ok_and(|name| name.trim() == "sleep")
    })
    .unless_process(),
    attack("signal_a_process_of_the_machine", |t| rustix_kill(t.victim, libc::SIGTERM)),
    attack("signal_haft", |t| rustix_kill(t.haft, libc::SIGURG)),
    attack("end_its_supervisor", |_| {
        // SAFETY: asks for the number of the parent, and signals it.
        let parent = unsafe { libc::getppid() };
        std::thread::sleep(Duration::from_millis(5));
        rustix_kill(parent, libc::SIGKILL);
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: as above.
        parent != 0 && unsafe { libc::getppid() } != parent
    }),
    attack("trace_a_process", |t| ptrace_attach(t.victim)),
    attack("read_memory_by_a_system_call", |t| process_vm_read(t.victim)),
    attack("take_a_descriptor_by_a_system_call", |t| pidfd_getfd(t.haft)),
    attack("read_inherited_descriptors", |t| {
        (3..1024).any(|number| {
            let mut buffer = [0u8; 64];
            // SAFETY: reads into a buffer of that size; a number that is no descriptor is an error.
            let read = unsafe { libc::pread(number, buffer.as_mut_ptr().cast(), 64, 0) };
            read > 0 && String::from_utf8_lossy(&buffer).contains(&t.secret)
        })
    }),
    attack("connect_to_a_port_of_the_machine", |t| {
        std::net::TcpStream::connect(("127.0.0.1", t.tcp))
            .is_ok_and(|mut stream| stream.read(&mut [0; 8]).is_ok())
    }),
    attack("send_a_datagram_to_the_machine", echo),
    attack("connect_to_a_socket_like_dockers", |t| {
        UnixStream::connect(t.outside.join("docker.sock")).is_ok()
    }),
    attack("send_to_a_socket_like_the_logs", |t| {
        UnixDatagram::unbound().is_ok_and(|socket| socket.send_to(b"x", t.outside.join("log.sock")).is_ok())
    }),
    attack("send_from_a_pair_of_sockets", |t| {
        UnixDatagram::pair().is_ok_and(|(socket, _)| socket.send_to(b"x", t.outside.join("log.sock")).is_ok())
    }),
    attack("connect_to_a_socket_by_name", |t| {
        UnixStream::connect_addr(&SocketAddr::from_abstract_name(&t.abstract_name).unwrap()).is_ok()
    }),
    attack("open_a_raw_socket", |_| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)).root(),
    attack("open_a_packet_socket", |_| socket(libc::AF_PACKET, libc::SOCK_RAW, 0x300)).root(),
    attack("open_a_netlink_socket", |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, 0)),
    attack("open_a_socket_to_the_host_of_a_virtual_machine", |_| {
        socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)
    }),
    attack("see_the_networks_of_the_machine", |_| {
        fs::read_to_string("/proc/net/dev").is_ok_and(|text| {
            text.lines().skip(2).filter(|line| !line.trim_start().starts_with("lo:")).count() > 0
                || text.lines().any(|line| {
                    line.trim_start().starts_with("lo:")
                        && line.split_whitespace().nth(1).is_some_and(|count| count.len() > 4)
                })
        })
    })
    .unless_process(),
    attack("mount_something", |_| mount_tmpfs()).root(),
    attack("mount_something_the_new_way", |_| fsopen()).root(),
    attack("copy_a_tree_of_mounts", |_| open_tree()).root(),
    attack("make_a_user_namespace", |_| in_a_child(|| unshare(libc::CLONE_NEWUSER))),
    attack("make_a_user_namespace_with_clone", |_| clone_user_namespace()),
    attack("make_a_user_namespace_with_clone3", |_| clone3_user_namespace()),
    attack("enter_the_namespace_of_another", |t| in_a_child(|| setns(t.victim))).root(),
    attack("change_the_root", |_| in_a_child(chroot)).root(),
    attack("make_a_device", |_| mknod()).root(),
    attack("add_a_key", |_| add_key()),
    attack("load_a_bpf_map", |_| bpf_map()).root(),
    attack("count_events_of_the_kernel", |_| perf_event()).root(),
    attack("handle_page_faults", |_| userfaultfd()),
    attack("make_an_io_ring", |_| io_uring()),
    attack("open_a_file_by_its_handle", |t| open_by_handle(&t.canary())).root(),
    attack("watch_the_whole_file_system", |_| fanotify()).root(),
    attack("name_the_machine", |_| sethostname()).root(),
    attack("read_the_kernels_log", |_| syslog()).root(),
    attack("type_into_a_terminal", |_| in_a_child(tiocsti)),
    attack("run_a_setuid_program", setuid_program).root(),
    attack("give_a_file_away", |_| chown_own()).root(),
    attack("take_other_groups", |_| in_a_child(setgroups)).root(),
    attack("go_before_others", |_| in_a_child(renice)).root(),
    attack("be_root", |_| rustix::process::geteuid().is_root()).root().unless_process(),
    attack("have_capabilities", |_| {
        fs::read_to_string("/proc/self/status").is_ok_and(|text| {
            text.lines().any(|line| line.starts_with("CapEff:") && !line.ends_with("0000000000000000"))
        })
    })
    .root(),
    attack("write_settings_of_the_kernel", |_| same_back("/proc/sys/kernel/core_pattern")).root(),
    attack("write_to_sys", |_| opens_for_writing("/sys/bus/platform/uevent")).root(),
    attack("leave_its_cgroup", |_| {
        ["/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/cgroup.procs"]
            .iter()
            .any(|path| fs::OpenOptions::new().write(true).open(path).is_ok())
    })
    .root(),
    attack("write_to_the_kernels_log", |_| fs::write("/dev/kmsg", "<7>haft: a test of a jail\n").is_ok())
        .root(),
    attack("read_the_memory_of_the_kernel", |_| {
        ["/proc/kcore", "/proc/kpageflags", "/dev/mem"].iter().any(|path| {
            fs::File::open(path).is_ok_and(|mut file| file.read(&mut [0; 16]).is_ok_and(|count| count > 0))
        })
    })
    .root()
    .unless_process(),
    attack("read_the_disk", |_| read_a_disk()).root(),
    attack("read_shared_memory_of_haft", shm_read).unless_process(),
    attack("use_more_memory", |_| touch_memory(200 << 20)),
    attack("use_more_memory_in_several_processes", |_| children(6, || touch_memory(40 << 20)) == 6)
        .takes_cgroups_in(&["process", "namespace"]),
    attack("start_more_processes", |_| children(100, || true) == 100).takes_cgroups_in(&["process"]),
    attack("start_more_threads", |_| {
        let wait = Duration::from_millis(500);
        let threads: Vec<_> = (0..100)
            .map_while(|_| {
                std::thread::Builder::new().stack_size(65536).spawn(move || std::thread::sleep(wait)).ok()
            })
            .collect();
        threads.len() == 100
    })
    .takes_cgroups_in(&["process"]),
    attack("open_more_files", |_| {
        let files: Vec<_> = (0..100_000).map_while(|_| fs::File::open("/dev/null").ok()).collect();
        files.len() >= 1000
    }),
    attack("write_a_larger_file", |_| fs::write("large", vec![1u8; 48 << 20]).is_ok()),
    attack("fill_the_scratch_space", |_| {
        let folder = temporary().join(format!("fill-{}", std::process::id()));
        let filled = fs::create_dir(&folder).is_ok() && fill(&folder, 8, 4 << 20);
        let _ = fs::remove_dir_all(folder);
        filled
    })
    .unless_process(),
    attack("fill_shared_memory", |_| {
        let filled = fill(Path::new("/dev/shm"), 8, 4 << 20);
        for number in 0..8 {
            let _ = fs::remove_file(format!("/dev/shm/fill-{number}"));
        }
        filled
    }),
    attack("use_a_core_for_longer", |_| burn(Duration::from_millis(2500))),
    attack("use_cores_in_several_processes", |_| children(4, || burn(Duration::from_millis(1200))) == 4),
    attack("put_out_more", |_| {
        let chunk = vec![b'x'; 1 << 20];
        let wrote = (0..4).all(|_| std::io::stdout().write_all(&chunk).is_ok());
        println!();
        wrote
    }),
];
