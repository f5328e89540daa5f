//! Attacks. Each is tried without a jail first, where it has to succeed: one that cannot work shows nothing.
//!
//! The attacker is this program, started with `--attack`. It says `HARM` when it reached what it should not.
#![allow(unsafe_code, reason = "the attacks are system calls")]

use crate::world::{Heard, House, block_on, has_runtime, is_root, jails, own_program, run as run_guest};
use haft_core::{
    ErrorCode, IsolationLevel, Limits,
    port::{GuestSpec, StageSpec, Writes},
};
use libtest_mimic::Trial;
use serde::{Deserialize, Serialize};
use std::{
    ffi::CString,
    fs,
    io::{Read as _, Write as _},
    mem,
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{MetadataExt as _, PermissionsExt as _, symlink},
            net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    ptr,
    time::Duration,
};

mod kernel;
mod list;
mod masks;
pub mod names;
mod names_git;
mod privilege;

pub use {kernel::reboot, list::Attack, privilege::use_unix_sockets};

/// All attacks.
pub fn attacks() -> impl Iterator<Item = &'static Attack> + Clone {
    list::ATTACKS.iter().chain(privilege::ATTACKS)
}

/// What an attacker is told about the world outside.
#[derive(Debug, Serialize, Deserialize)]
pub struct Target {
    pub outside: PathBuf,
    pub workspace: PathBuf,
    pub state: PathBuf,
    pub secret: String,
    pub haft: i32,
    pub victim: i32,
    pub tcp: u16,
    pub udp: u16,
    pub abstract_name: String,
    pub shm: i32,
    pub root: bool,
}

impl Target {
    pub fn canary(&self) -> PathBuf {
        self.outside.join("canary")
    }
}

/// The attacker's `main`.
pub fn run(arguments: &[String]) -> i32 {
    let name = &arguments[0];
    let target: Target = serde_json::from_str(&arguments[1]).unwrap();
    let attack = attacks().find(|attack| attack.name == *name).unwrap();
    if (attack.run)(&target) {
        println!("HARM");
        return 42;
    }
    println!("nothing reached: {}", std::io::Error::last_os_error());
    0
}

/// The world outside: what an attacker could reach if nothing held it.
struct World {
    outside: tempfile::TempDir,
    workspace: tempfile::TempDir,
    victim: Child,
    tcp: u16,
    udp: u16,
    abstract_name: String,
    shm: i32,
    secret: String,
    _listener: UnixListener,
    _abstract: UnixListener,
    _datagram: UnixDatagram,
    /// In the folder that is granted, as an agent for keys may have one there.
    _inside: (UnixListener, UnixDatagram),
}

impl World {
    fn new() -> World {
        let outside = tempfile::tempdir().unwrap();
        let workspace = tempfile::tempdir().unwrap();
        let secret = format!("planted-{}", std::process::id());
        fs::write(outside.path().join("canary"), &secret).unwrap();
        fs::write(outside.path().join("second"), "keep me").unwrap();
        let at = workspace.path();
        fs::write(at.join("own"), "mine").unwrap();
        fs::write(at.join(".env"), &secret).unwrap();
        fs::create_dir(at.join("private")).unwrap();
        fs::write(at.join("private/key"), &secret).unwrap();
        fs::create_dir_all(at.join(".git/hooks")).unwrap();
        fs::write(at.join(".git/config"), "[core]\n").unwrap();
        symlink(outside.path().join("canary"), at.join("link")).unwrap();
        symlink(outside.path(), at.join("linked")).unwrap();
        let other = at.join("as-another");
        let _ = fs::copy("/usr/bin/id", &other);
        let _ = std::os::unix::fs::chown(&other, Some(12345), None);
        let _ = fs::set_permissions(&other, fs::Permissions::from_mode(0o4755));
        let listener = UnixListener::bind(outside.path().join("docker.sock")).unwrap();
        let datagram = UnixDatagram::bind(outside.path().join("log.sock")).unwrap();
        let inside = (
            UnixListener::bind(at.join("agent.sock")).unwrap(),
            UnixDatagram::bind(at.join("log.sock")).unwrap(),
        );
        let unique = outside.path().file_name().unwrap().to_string_lossy().into_owned();
        let abstract_name = format!("haft-attack-{unique}");
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let by_name = UnixListener::bind_addr(&address).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp_port = tcp.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in tcp.incoming().flatten() {
                let _ = { stream }.write_all(b"hello");
            }
        });
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let udp_port = udp.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((count, from)) = udp.recv_from(&mut buffer) {
                let _ = udp.send_to(&buffer[..count], from);
            }
        });
        // SAFETY: makes a segment of shared memory and writes within it.
        let shm = unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, 4096, 0o666 | libc::IPC_CREAT);
            let at = libc::shmat(id, ptr::null(), 0).cast::<u8>();
            ptr::copy_nonoverlapping(secret.as_ptr(), at, secret.len());
            libc::shmdt(at.cast());
            id
        };
        let victim = Command::new("sleep").arg("1000").env("SECRET", &secret).spawn().unwrap();
        World {
            outside,
            workspace,
            victim,
            tcp: tcp_port,
            udp: udp_port,
            abstract_name,
            shm,
            secret,
            _listener: listener,
            _abstract: by_name,
            _datagram: datagram,
            _inside: inside,
        }
    }

    fn target(&self, state: &Path) -> Target {
        Target {
            outside: self.outside.path().to_owned(),
            workspace: self.workspace.path().to_owned(),
            state: state.to_owned(),
            secret: self.secret.clone(),
            haft: std::process::id() as i32,
            victim: self.victim.id() as i32,
            tcp: self.tcp,
            udp: self.udp,
            abstract_name: self.abstract_name.clone(),
            shm: self.shm,
            root: rustix::process::geteuid().is_root(),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        // SAFETY: removes the segment that `new` made.
        unsafe { libc::shmctl(self.shm, libc::IPC_RMID, ptr::null_mut()) };
    }
}

/// What an attacker may use: little, so that those who eat resources are stopped soon.
pub fn small() -> Limits {
    Limits {
        memory_bytes: Some(96 << 20),
        processes: Some(40),
        open_files: Some(256),
        file_bytes: Some(24 << 20),
        scratch_bytes: Some(16 << 20),
        cpu_time: Some(Duration::from_secs(1)),
        wall_time: Some(Duration::from_secs(20)),
        output_bytes: Some(1 << 20),
        ..Limits::default()
    }
}

fn without_a_jail(attack: &Attack, world: &World, state: &Path) -> bool {
    let target = serde_json::to_string(&world.target(state)).unwrap();
    // The shell is what an attack at its parent hits.
    let output = Command::new("sh")
        .args(["-c", "\"$0\" \"$@\"; exit $?"])
        .arg(own_program())
        .args(["--attack", attack.name, &target])
        .current_dir(world.workspace.path())
        .env("HAFT_PLANTED", &world.secret)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("HARM") {
        eprintln!("control: {text} {}", String::from_utf8_lossy(&output.stderr));
    }
    text.contains("HARM")
}

fn in_a_jail(attack: &Attack, world: &World, house: &House, jail: &str) -> (bool, String) {
    in_a_jail_with(attack, world, house, jail, |_| {})
}

fn in_a_jail_with(
    attack: &Attack,
    world: &World,
    house: &House,
    jail: &str,
    change: impl FnOnce(&mut GuestSpec),
) -> (bool, String) {
    let target = serde_json::to_string(&world.target(house.state.path())).unwrap();
    let program = own_program();
    let mut spec = GuestSpec::command([program.to_str().unwrap(), "--attack", attack.name, &target]);
    spec.level = IsolationLevel::Strict;
    spec.readable = vec![program.clone()];
    spec.writable = vec![world.workspace.path().to_owned()];
    spec.denied = vec![".env".to_owned(), "private/".to_owned()];
    spec.limits = small();
    if jail == "gvisor" {
        // Its kernel is a program that needs some of it.
        spec.limits.memory_bytes = Some(160 << 20);
    }
    if jail == "process" {
        // It cannot take anything away from what it grants, and says so; the rest is tried in a folder without such.
        match block_on(run_guest(&*house.jail(jail), spec.clone())) {
            Err(error) if error.code == ErrorCode::SandboxCreationFailed => {}
            other => panic!("the process jail took what it cannot hold: {other:?}"),
        }
        if attack.needs_subtraction {
            return (false, "refused".into());
        }
        spec.denied.clear();
        spec.writable = Vec::new();
        spec.readable.push(world.workspace.path().to_owned());
        let plain = world.workspace.path().join("plain");
        fs::create_dir_all(&plain).unwrap();
        spec.working_dir = Some(plain.clone());
        spec.writable.push(plain);
    }
    change(&mut spec);
    match block_on(run_guest(&*house.jail(jail), spec)) {
        Ok((end, Heard { out, err })) => {
            // It really tried: it says that it reached nothing, or a limit or a forbidden call ended it.
            let tried = out.contains("HARM") || out.contains("nothing reached");
            let ended = end.exceeded.is_some() || !end.violations.is_empty();
            assert!(tried || ended, "it did not run: {out}{err} {end:?}");
            // gVisor counts ticks of the wall, and on a busy machine many more than it got of a core. What the machine
            // counted is what was used; it is looked at a little late there.
            let most = small().cpu_time.unwrap().as_millis() as f64 * 1.5;
            let is_of_cores = attack.name.starts_with("use_a_core") || attack.name.starts_with("use_cores");
            let within = is_of_cores && end.metrics.cpu_time_ms.is_some_and(|used| used <= most);
            (out.contains("HARM") && !within, format!("{out}{err} {end:?}"))
        }
        Err(error) => panic!("{}: the guest did not start: {error:?}", attack.name),
    }
}

/// In gVisor these reach its own kernel, or its own processes, and nothing of the machine: that shows nothing.
const OF_ITS_OWN_KERNEL: [&str; 16] = [
    "advise_the_kernel_about_memory",
    "ask_for_a_keyring",
    "change_the_mode_of_its_input",
    "compare_two_processes",
    "end_its_supervisor",
    "go_before_others",
    "make_a_user_namespace",
    "make_a_user_namespace_with_clone",
    "make_an_io_ring",
    "open_a_netlink_socket",
    "read_the_kernels_log",
    "read_the_map_of_hafts_memory",
    "search_the_memory_of_others",
    "start_more_threads",
    "trace_its_own_child",
    "write_to_the_kernels_log",
];

/// A descriptor that any child inherits, as programs that embed haft may have.
fn leak_a_descriptor(world: &World) -> OwnedFd {
    let file = fs::File::open(world.outside.path().join("canary")).unwrap();
    // SAFETY: a new descriptor that nobody else owns; without the flag that closes it in new programs.
    unsafe { OwnedFd::from_raw_fd(libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, 60)) }
}

fn test(attack: &'static Attack, jail: &'static str) {
    let world = World::new();
    let house = House::new();
    fs::write(house.state.path().join("keys"), &world.secret).unwrap();
    let _leaked = leak_a_descriptor(&world);
    let (harmed, said) = in_a_jail(attack, &world, &house, jail);
    let control = without_a_jail(attack, &world, house.state.path());
    assert!(control, "without a jail the attack has to succeed");
    if attack.not_stopped_by.contains(&jail) {
        assert!(harmed, "the jail is better than it says: {said}");
    } else {
        assert!(!harmed, "{said}");
    }
}

/// The same with its writes kept apart: nothing is reached and, whatever the program wrote, nothing is on the machine.
/// `works` for what it may do to the layer.
pub fn staged(name: &str, works: bool) {
    let Some(attack) = attacks().find(|attack| attack.name == name) else { panic!("no attack {name}") };
    if attack.needs_root && !is_root() {
        return;
    }
    let (world, house) = (World::new(), House::new());
    fs::write(house.state.path().join("keys"), &world.secret).unwrap();
    let layers = tempfile::tempdir_in(house.state.path()).unwrap();
    let at = world.workspace.path();
    if !is_root() {
        // A layer of an ordinary user holds no other owner's files.
        let _ = fs::remove_file(at.join("as-another"));
    }
    let before = crate::staged::picture(at);
    let stage = StageSpec { layers: layers.path().to_owned(), ..StageSpec::default() };
    let (harmed, said) =
        in_a_jail_with(attack, &world, &house, "namespace", |spec| spec.writes = Writes::Staged(stage));
    assert_eq!(crate::staged::picture(at), before, "{name}: {said}");
    assert!(without_a_jail(attack, &world, house.state.path()), "{name}: without a jail it has to succeed");
    assert_eq!(harmed, works, "{name}: {said}");
}

/// `docs/isolation.md` says what was tried: every name of a test in it is one of a test or an attack, every line of its
/// table has one, and every attack is in it.
fn the_documentation_names_tests_that_exist() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(crates.parent().unwrap().join("docs/isolation.md")).unwrap();
    let mut sources = String::new();
    for folder in [
        "haft-jail/tests",
        "haft-jail/src",
        "haft-gate/tests",
        "haft-files/tests",
        "haft-cli/tests",
        "haft/tests",
    ] {
        read_below(&crates.join(folder), &mut sources);
    }
    let is_attack = |name: &str| attacks().any(|attack| attack.name == name);
    let is_test = |name: &str| sources.contains(&format!("fn {name}("));
    let of_a_test = |name: &str| {
        let words: Vec<_> = name.split('_').collect();
        words.len() > 1
            && words.iter().all(|word| {
                !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            })
    };
    // What stands between backquotes.
    let named = |text: &str| -> Vec<String> {
        text.split('`').skip(1).step_by(2).filter(|name| of_a_test(name)).map(str::to_owned).collect()
    };
    let all = named(&page);
    let missing: Vec<_> = all.iter().filter(|name| !is_attack(name) && !is_test(name)).collect();
    assert!(missing.is_empty(), "docs/isolation.md names tests that are not there: {missing:?}");
    let table = page.split("## What each stops").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 15, "{rows:?}");
    for row in rows {
        let (_, last) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
        assert!(!named(last).is_empty(), "no test is named for {row}");
        let column = |number| row.split(" | ").nth(number).unwrap();
        for attack in attacks().filter(|attack| named(last).iter().any(|name| name == attack.name)) {
            let process = match column(1) {
                "✓" => !attack.not_stopped_by.contains(&"process") && !attack.needs_subtraction,
                stops if stops.starts_with('–') => attack.not_stopped_by.contains(&"process"),
                stops => stops.starts_with("n/a") && attack.needs_subtraction,
            };
            let of_its_own = OF_ITS_OWN_KERNEL.contains(&attack.name);
            assert!(process && (column(3) != "✓") == of_its_own, "{} is not as in {row}", attack.name);
        }
    }
    let untold: Vec<_> =
        attacks().map(|attack| attack.name).filter(|name| !all.iter().any(|told| told == name)).collect();
    assert!(untold.is_empty(), "docs/isolation.md does not name {untold:?}");
}

fn read_below(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            read_below(&entry.path(), all);
        } else if entry.path().extension().is_some_and(|kind| kind == "rs") {
            all.push_str(&fs::read_to_string(entry.path()).unwrap());
        }
    }
}

pub fn trials() -> Vec<Trial> {
    let all = jails().into_iter().flat_map(|jail| attacks().map(move |attack| (jail, attack)));
    // An ordinary user cannot do some of it anyway, and makes no cgroups.
    let applies = |jail: &str, attack: &Attack| {
        let of_another_kernel = jail != "gvisor" || !OF_ITS_OWN_KERNEL.contains(&attack.name);
        let held = crate::world::has_cgroups() || !attack.without_cgroups.contains(&jail);
        of_another_kernel && held && (is_root() || !attack.needs_root)
    };
    let mut trials: Vec<Trial> = all
        .filter(|(jail, attack)| applies(jail, attack))
        .map(|(jail, attack)| {
            Trial::test(format!("attack::{jail}::{}", attack.name), move || {
                test(attack, jail);
                Ok(())
            })
        })
        .collect();
    trials.extend(privilege::trials());
    for (jail, runtime) in [("gvisor", "runsc"), ("runc", "runc")] {
        if is_root() && !has_runtime(runtime) {
            trials.push(Trial::test(format!("attack::{jail}"), move || {
                haft_testkit::not_run(&format!("attack::{jail}"), &format!("{runtime} is not installed"));
                Ok(())
            }));
        }
    }
    trials.extend(masks::trials());
    trials.extend(names::trials());
    trials.extend(names_git::trials());
    trials.push(Trial::test("attack::the_documentation_names_tests_that_exist", || {
        the_documentation_names_tests_that_exist();
        Ok(())
    }));
    trials.push(Trial::test("attack::there_are_at_least_60", || {
        assert!(attacks().count() >= 60, "{}", attacks().count());
        Ok(())
    }));
    trials
}
