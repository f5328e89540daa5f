//! Which jail is chosen, what is offered, what several guests share.

use crate::world::{House, block_on, has_cgroups, has_gvisor, has_runtime, is_root, own_program, run, sh};
use haft_core::{
    ErrorCode, IsolationLevel, Limits,
    port::{GuestSpec, Jail},
};
use haft_jail::guest::Auto;
use libtest_mimic::Trial;
use std::{fs, process::Command, time::Duration};

pub fn trials() -> Vec<Trial> {
    let tests: [(&'static str, fn()); 17] = [
        ("choice::a_kernel_that_stands_ready_is_used_once", a_kernel_that_stands_ready_is_used_once),
        ("choice::every_jail_knows_its_sandboxes", every_jail_knows_its_sandboxes),
        ("choice::runc_says_what_it_is", runc_says_what_it_is),
        ("choice::crun", crun),
        ("choice::what_is_mounted_later_is_seen", what_is_mounted_later_is_seen),
        ("choice::a_gate_gets_the_socket_of_the_jail", a_gate_gets_the_socket_of_the_jail),
        ("choice::what_the_gate_refuses_is_on_record", what_the_gate_refuses_is_on_record),
        ("choice::gvisor", gvisor),
        ("choice::gvisor_threads_are_held", gvisor_threads_are_held),
        ("choice::the_cheapest_jail_that_delivers", the_cheapest_jail_that_delivers),
        ("choice::a_named_technology_is_the_only_one", a_named_technology_is_the_only_one),
        ("choice::what_is_offered_was_probed", what_is_offered_was_probed),
        ("choice::an_enforcement_says_what_it_is", an_enforcement_says_what_it_is),
        ("choice::restricted_grants_nothing", restricted_grants_nothing),
        ("choice::siblings_stay_within_their_sandbox", siblings_stay_within_their_sandbox),
        ("choice::an_unknown_sandbox_is_refused", an_unknown_sandbox_is_refused),
        ("choice::limits_per_process_do_not_do_for_strict", limits_per_process_do_not_do_for_strict),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

fn the_cheapest_jail_that_delivers() {
    let house = House::new();
    let auto = Auto::new(&house.host);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".env"), "x").unwrap();
    let plain = tempfile::tempdir().unwrap();
    let spec = |level, writable: &tempfile::TempDir, denied: &[&str]| GuestSpec {
        level,
        writable: vec![writable.path().to_owned()],
        denied: denied.iter().map(|pattern| (*pattern).to_owned()).collect(),
        ..GuestSpec::command(["true"])
    };
    // As root that one does not run.
    let cheapest = if is_root() { "namespace" } else { "process" };
    for (spec, jail) in [
        (spec(IsolationLevel::Standard, &plain, &[]), cheapest),
        (spec(IsolationLevel::Standard, &plain, &[".env"]), cheapest),
        (spec(IsolationLevel::Standard, &folder, &[".env"]), "namespace"),
        (spec(IsolationLevel::Strict, &plain, &[]), "namespace"),
    ] {
        assert_eq!(auto.holds(&spec).unwrap().jail, jail, "{spec:?}");
    }
    let restricted = GuestSpec { level: IsolationLevel::Restricted, ..GuestSpec::command(["true"]) };
    let strongest = if has_gvisor() { "gvisor" } else { "namespace" };
    assert_eq!(auto.holds(&restricted).unwrap().jail, strongest);
    let (end, _) = block_on(run(&auto, spec(IsolationLevel::Strict, &folder, &[".env"]))).unwrap();
    assert_eq!(end.exit_code, Some(0));
}

/// `isolation_technology`: nothing else is taken in the place of the one that is named, not for any level.
fn a_named_technology_is_the_only_one() {
    let house = House::new();
    for name in crate::world::jails().into_iter().filter(|name| *name != "crun") {
        let one = Auto::new(&house.host).only(name);
        let level = if name == "process" { IsolationLevel::Standard } else { IsolationLevel::Strict };
        assert_eq!(one.offers(level).unwrap().jail, name);
        let spec = GuestSpec { level, ..GuestSpec::command(["true"]) };
        let (end, _) = block_on(run(&one, spec)).unwrap();
        assert_eq!(end.exit_code, Some(0), "{name}");
    }
    let process = Auto::new(&house.host).only("process");
    assert!(process.offers(IsolationLevel::Strict).is_err(), "it holds `standard` only");
    let spec = GuestSpec { level: IsolationLevel::Strict, ..GuestSpec::command(["true"]) };
    let refused = block_on(run(&process, spec)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::SandboxCreationFailed);
    assert!(Auto::new(&house.host).only("firecracker").offers(IsolationLevel::Strict).is_err());
}

fn what_is_offered_was_probed() {
    let house = House::new();
    for name in crate::world::jails() {
        let jail = house.jail(name);
        let level = if name == "process" { IsolationLevel::Standard } else { IsolationLevel::Strict };
        let offer = jail.offers(level).unwrap();
        // crun is another runtime of the same jail.
        let name = if name == "crun" { "runc" } else { name };
        assert_eq!((offer.jail.as_ref(), offer.level), (name, level));
    }
    // Also in the middle of a runtime with one thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { House::new().jail("namespace").offers(IsolationLevel::Standard).unwrap() });
    let process = house.jail("process");
    let because = if is_root() { "as root" } else { "modes of all files" };
    for level in [IsolationLevel::Strict, IsolationLevel::Restricted] {
        let refusal = process.offers(level).unwrap_err();
        assert!(refusal.to_string().contains(because), "{refusal}");
    }
    assert_eq!(process.offers(IsolationLevel::Standard).is_err(), is_root());
    assert_eq!(block_on(process.start(sh("true"))).is_err(), is_root());
}

fn an_enforcement_says_what_it_is() {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("deep/.git")).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join("deep/.env"), "x").unwrap();
    let mut spec = sh("true");
    spec.writable = vec![folder.path().to_owned()];
    spec.denied = vec![".env".into()];
    let guest = block_on(house.jail("namespace").start(spec)).unwrap();
    let details = &guest.enforcement().details;
    assert_eq!(details["network"], "none");
    assert_eq!(details["masked"][0], folder.path().join("deep/.env").to_str().unwrap());
    assert_eq!(details["readOnly"][0], folder.path().join(".git/hooks").to_str().unwrap());
    assert!(details["landlock"].as_u64().unwrap() >= 1 && details["seccomp"] == true, "{details:?}");
    assert!(guest.sandbox_id().starts_with("haft-"));
}

fn restricted_grants_nothing() {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let mut spec = sh("true");
    spec.level = IsolationLevel::Restricted;
    spec.readable = vec![folder.path().to_owned()];
    let error = block_on(run(&*house.jail("namespace"), spec.clone())).unwrap_err();
    assert_eq!(error.code, ErrorCode::FilesystemPolicyViolation);
    spec.readable.clear();
    spec.hosts = vec!["example.com".into()];
    assert!(block_on(run(&*house.jail("namespace"), spec)).is_err());
}

fn siblings_stay_within_their_sandbox() {
    let house = House::new();
    if !has_cgroups() {
        return haft_testkit::not_run(
            "siblings_stay_within_their_sandbox",
            "an ordinary user makes no cgroups here",
        );
    }
    // One has room for itself, the kernel of gVisor included, and two together have not, without it.
    const ROOM: u64 = 360 << 20;
    const EACH: u64 = 200 << 20;
    let limits = Limits { memory_bytes: Some(ROOM), ..Limits::default() };
    let sandbox = house.host.open_sandbox(&limits).unwrap();
    let spec = || {
        // `tail` says nothing before it holds all of it, and lets go of it when somebody reads on.
        let mut spec = sh(&format!(
            "exec 3<&0; head -c {EACH} /dev/zero | tail -c {EACH} | {{ head -c 1 >/dev/null; echo full; read x <&3; wc -c; }}"
        ));
        spec.parent = Some(sandbox.id().to_owned());
        spec.limits.memory_bytes = Some(ROOM);
        spec.limits.wall_time = Some(Duration::from_secs(60));
        spec.stdin = haft_core::port::GuestStdin::Stream;
        spec
    };
    let whole = format!("full\n{}\n", EACH - 1);
    for jail in crate::world::jails() {
        let held = house.jail(jail);
        let (together, alone) = block_on(async {
            let mut both = Vec::new();
            for _ in 0..2 {
                both.push(Holding::start(&*held, spec()).await);
            }
            let together = until_full_or_ended(both).await;
            (together, until_full_or_ended(vec![Holding::start(&*held, spec()).await]).await)
        });
        assert!(together.iter().filter(|out| **out == whole).count() < 2, "{jail}");
        assert_eq!(alone, std::slice::from_ref(&whole), "{jail}");
    }
}

/// A guest that holds memory until it is let go.
struct Holding {
    control: std::sync::Arc<dyn haft_core::port::GuestControl>,
    heard: std::sync::Arc<std::sync::Mutex<crate::world::Heard>>,
    end: tokio::task::JoinHandle<()>,
}

impl Holding {
    async fn start(jail: &dyn Jail, spec: GuestSpec) -> Self {
        let mut guest = jail.start(spec).await.unwrap();
        let (sink, heard) = crate::world::keeping();
        let control = guest.control();
        let end = tokio::spawn(async move { drop(guest.wait(sink).await) });
        Holding { control, heard, end }
    }
}

/// Lets guests go when each of them holds all of it or has ended. Says what each of them put out; of those that ended
/// before, nothing is whole.
async fn until_full_or_ended(all: Vec<Holding>) -> Vec<String> {
    let full = |one: &Holding| one.heard.lock().unwrap().out.starts_with("full");
    while !all.iter().all(|one| one.end.is_finished() || full(one)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut said = Vec::new();
    for one in all {
        one.control.close_stdin();
        one.end.await.unwrap();
        said.push(one.heard.lock().unwrap().out.clone());
    }
    said
}

fn an_unknown_sandbox_is_refused() {
    let house = House::new();
    let mut spec = sh("true");
    spec.parent = Some("sb-17".into());
    for jail in crate::world::jails() {
        let error = block_on(run(&*house.jail(jail), spec.clone())).unwrap_err();
        assert_eq!(error.code.e_number(), Some("E3101"), "{jail}");
        assert!(error.message.contains("sb-17"), "{}", error.message);
    }
}

/// So that a call that names a sandbox is refused before anything runs.
fn every_jail_knows_its_sandboxes() {
    let house = House::new();
    let all = |id: &str| {
        let names = ["process", "namespace", "runc", "gvisor"];
        let mut answers: Vec<Option<bool>> =
            names.into_iter().map(|name| house.jail(name).has_sandbox(id)).collect();
        answers.push(Auto::new(&house.host).has_sandbox(id));
        answers
    };
    assert_eq!(all("sb-17"), vec![Some(false); 5]);
    if !rustix::process::geteuid().is_root() {
        return haft_testkit::not_run(
            "every_jail_knows_its_sandboxes",
            "an ordinary user makes no cgroups here",
        );
    }
    let sandbox = house.host.open_sandbox(&Limits::default()).unwrap();
    let id = sandbox.id().to_owned();
    assert_eq!(all(&id), vec![Some(true); 5]);
    drop(sandbox);
    assert_eq!(all(&id), vec![Some(false); 5]);
}

fn limits_per_process_do_not_do_for_strict() {
    if has_cgroups() {
        // The tests as an ordinary user run it.
        return;
    }
    let house = House::with(|options| options.per_process_limits_do = false);
    let refusal = house.jail("namespace").offers(IsolationLevel::Strict).unwrap_err();
    assert!(refusal.reason.contains("cgroup"), "{refusal}");
    for way in [
        "systemd-run --user --scope -p Delegate=yes haft",
        "haft --set tools.commands.per_process_limits=true",
    ] {
        assert!(refusal.fix.contains(way), "{refusal}");
    }
    assert!(house.jail("namespace").offers(IsolationLevel::Standard).is_ok());
}

/// The jail that is a kernel of its own, where runsc is installed.
pub fn gvisor() {
    use haft_jail::guest::Gvisor;
    let house = House::new();
    let jail = Gvisor::new(&house.host);
    if let Err(unavailable) = jail.offers(IsolationLevel::Restricted) {
        return haft_testkit::not_run("choice::gvisor", &unavailable.to_string());
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".env"), "planted").unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    let script = "dmesg | grep -ci gvisor; cat .env; echo x > .git/hooks/pre-commit; echo made > made; \
                  (setsid sleep 7654321 >/dev/null 2>&1 &); exit 5";
    let mut spec = sh(script);
    spec.writable = vec![folder.path().to_owned()];
    spec.denied = vec![".env".into()];
    let (end, heard) = block_on(run(&jail, spec)).unwrap();
    assert_eq!(end.exit_code, Some(5), "{heard:?}");
    assert!(heard.out.trim().parse::<u32>().is_ok_and(|count| count > 0), "{heard:?}");
    assert!(!heard.out.contains("planted"), "{heard:?}");
    assert_eq!(fs::read_to_string(folder.path().join("made")).unwrap(), "made\n");
    assert!(!folder.path().join(".git/hooks/pre-commit").exists());
    let size = haft_core::port::TerminalSize { rows: 1, columns: 1 };
    let with_terminal = GuestSpec { terminal: Some(size), ..sh("true") };
    assert!(jail.holds(&with_terminal).unwrap_err().reason.contains("terminal"));
    let mut hungry = sh("head -c 200M /dev/zero | tail -c 200M");
    hungry.limits.memory_bytes = Some(96 << 20);
    let (end, _) = block_on(run(&jail, hungry)).unwrap();
    assert_eq!(end.error().map(|error| error.code), Some(ErrorCode::ResourceLimitExceeded), "{end:?}");
}

/// Kernels of gVisor that were started before their guests came.
fn a_kernel_that_stands_ready_is_used_once() {
    let house = House::with(|options| options.warm = 2);
    let jail = house.jail("gvisor");
    if let Err(unavailable) = jail.offers(IsolationLevel::Restricted) {
        return haft_testkit::not_run("choice::a_kernel_that_stands_ready", &unavailable.to_string());
    }
    let instance = fs::read_dir(house.state.path().join("instances")).unwrap().flatten().next().unwrap();
    let instance = instance.file_name().to_string_lossy().into_owned();
    let started_before = |spec: &GuestSpec| -> (haft_core::port::GuestEnd, crate::world::Heard, String) {
        let soon = std::time::Instant::now() + Duration::from_secs(60);
        block_on(async {
            loop {
                let mut guest = jail.start(spec.clone()).await.unwrap();
                let (sink, heard) = crate::world::keeping();
                let before = guest.enforcement().details.contains_key("startedBefore");
                let id = guest.sandbox_id().to_owned();
                let end = guest.wait(sink).await.unwrap();
                let heard = heard.lock().unwrap().clone();
                if before {
                    // Time for the next one, which this runtime makes.
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    return (end, heard, id);
                }
                assert!(std::time::Instant::now() < soon, "none ever stands ready");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
    };
    let script = "cat; echo $DECLARED; ls -A /tmp $HOME; ls /proc | grep -c '^[0-9]'; \
                  touch /tmp/left $HOME/left; (setsid sleep 7654323 >/dev/null 2>&1 &); exit 5";
    let mut spec = GuestSpec { level: IsolationLevel::Restricted, ..sh(script) };
    spec.environment.insert("DECLARED".into(), "declared".into());
    spec.stdin = haft_core::port::GuestStdin::Bytes(b"given\n".to_vec());
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (end, heard, id) = started_before(&spec);
        assert_eq!(end.exit_code, Some(5), "{heard:?}");
        assert!(heard.out.starts_with("given\ndeclared\n") && !heard.out.contains("left"), "{heard:?}");
        assert!(!seen.contains(&(id.clone(), heard.out.clone())), "a sandbox was used twice: {id}");
        // As many processes as the first time.
        assert!(seen.iter().all(|(_, out)| *out == heard.out), "{seen:?} {heard:?}");
        seen.push((id, heard.out));
    }
    let mut hungry = sh("head -c 200M /dev/zero | tail -c 200M");
    hungry.limits.memory_bytes = Some(128 << 20);
    let (end, _, _) = started_before(&hungry);
    assert_eq!(end.error().map(|error| error.code), Some(ErrorCode::ResourceLimitExceeded), "{end:?}");
    // The first that grants a path gets a kernel of its own making.
    let folder = tempfile::tempdir().unwrap();
    let granted = GuestSpec { readable: vec![folder.path().to_owned()], ..sh("true") };
    let guest = block_on(jail.start(granted)).unwrap();
    assert!(!guest.enforcement().details.contains_key("startedBefore"));
    drop(guest);
    // Those that stand ready end with haft.
    assert!(!crate::ends::processes(&instance).is_empty());
    drop((jail, house));
    crate::ends::gone_within("processes", Duration::from_secs(8), || crate::ends::processes(&instance));
    crate::ends::gone_within("cgroups", Duration::from_secs(8), || crate::ends::cgroups(&instance));
}

/// Enforcement, refusals, and that its own files and cgroups go with the guest.
fn runc_says_what_it_is() {
    if !(is_root() && has_runtime("runc")) {
        return haft_testkit::not_run("choice::runc_says_what_it_is", "it takes root and runc");
    }
    let house = House::new();
    let jail = house.jail("runc");
    let offer = jail.offers(IsolationLevel::Strict).unwrap();
    assert_eq!((offer.jail.as_ref(), &offer.details["runtime"]), ("runc", &"runc".into()));
    assert_eq!(offer.details["seccomp"], true);
    let size = haft_core::port::TerminalSize { rows: 1, columns: 1 };
    let with_terminal = GuestSpec { terminal: Some(size), ..sh("true") };
    assert!(jail.holds(&with_terminal).unwrap_err().reason.contains("terminal"));
    let with_hosts = GuestSpec { hosts: vec!["example.com".into()], ..sh("true") };
    // There is no gate in this house.
    assert!(jail.holds(&with_hosts).unwrap_err().reason.contains("gate"));
    let outside = GuestSpec { working_dir: Some(house.state.path().to_owned()), ..sh("true") };
    let error = block_on(run(&*jail, outside)).unwrap_err();
    assert_eq!(error.code, ErrorCode::FilesystemPolicyViolation, "{error:?}");
    // What it cannot start is told as that, not as an exit of the program.
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    fs::write(&broken, "not a program").unwrap();
    let mut spec = GuestSpec::command([broken.to_str().unwrap()]);
    spec.readable = vec![folder.path().to_owned()];
    let error = block_on(run(&*jail, spec)).unwrap_err();
    assert_eq!(error.code, ErrorCode::SandboxCreationFailed, "{error:?}");
    let instance = fs::read_dir(house.state.path().join("instances")).unwrap().flatten().next().unwrap();
    assert_eq!(fs::read_dir(instance.path().join("scratch")).unwrap().count(), 0);
}

/// The other runtime that the `runc` jail can be made by.
fn crun() {
    if !(is_root() && has_runtime("crun")) {
        return haft_testkit::not_run("choice::crun", "it takes root and crun");
    }
    let house = House::new();
    let jail = house.jail("crun");
    let offer = jail.offers(IsolationLevel::Strict).unwrap();
    assert_eq!(offer.details["runtime"], "crun");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".env"), "planted").unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    let mut spec = sh("cat .env; echo x > .git/hooks/pre-commit; echo x > /dev/made; echo made > made; \
                       (setsid sleep 7654322 >/dev/null 2>&1 &); unshare -U true; exit 5");
    spec.writable = vec![folder.path().to_owned()];
    spec.denied = vec![".env".into()];
    let (end, heard) = block_on(run(&*jail, spec)).unwrap();
    assert_eq!(end.exit_code, Some(5), "{heard:?}");
    assert!(!heard.out.contains("planted") && heard.err.contains("/dev/made"), "{heard:?}");
    assert!(heard.err.contains("unshare failed"), "{heard:?}");
    assert_eq!(fs::read_to_string(folder.path().join("made")).unwrap(), "made\n");
    assert!(!folder.path().join(".git/hooks/pre-commit").exists());
    let mut hungry = sh("head -c 200M /dev/zero | tail -c 200M");
    hungry.limits.memory_bytes = Some(64 << 20);
    let (end, _) = block_on(run(&*jail, hungry)).unwrap();
    assert_eq!(end.error().map(|error| error.code), Some(ErrorCode::ResourceLimitExceeded), "{end:?}");
}

/// A gate that answers everybody with one line.
struct Greeter;

struct Greeting {
    answered: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl haft_jail::guest::OpenGate for Greeting {
    fn report(&self) -> haft_jail::guest::GateReport {
        let requests = self.answered.load(std::sync::atomic::Ordering::SeqCst);
        haft_jail::guest::GateReport { requests, bytes_sent: 7, ..Default::default() }
    }
}

impl haft_jail::guest::Gatekeeper for Greeter {
    fn check(&self, _hosts: &[String]) -> Result<(), String> {
        Ok(())
    }

    fn open(
        &self,
        listener: std::net::TcpListener,
        hosts: &[String],
    ) -> Result<Box<dyn haft_jail::guest::OpenGate>, String> {
        assert_eq!(hosts, ["example.com"]);
        let answered = std::sync::Arc::<std::sync::atomic::AtomicU64>::default();
        let count = std::sync::Arc::clone(&answered);
        std::thread::spawn(move || {
            use std::io::Write as _;
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let _ = { stream }.write_all(b"through the gate\n");
            }
        });
        Ok(Box::new(Greeting { answered }))
    }
}

fn a_gate_gets_the_socket_of_the_jail() {
    let house = House::with(|options| options.gate = Some(std::sync::Arc::new(Greeter)));
    let program = own_program();
    let mut spec = GuestSpec::command([program.to_str().unwrap(), "--through-the-gate"]);
    spec.level = IsolationLevel::Strict;
    spec.readable = vec![program];
    spec.hosts = vec!["example.com".into()];
    for jail in jails_with_gates() {
        let guest_of = |spec: GuestSpec| block_on(run(&*house.jail(jail), spec));
        let (end, heard) = guest_of(spec.clone()).unwrap();
        assert_eq!((heard.out.as_str(), end.exit_code), ("through the gate\n", Some(0)), "{jail} {heard:?}");
        assert_eq!(end.metrics.network_requests, Some(1), "{jail}");
        assert_eq!(house.jail(jail).holds(&spec).unwrap().details["network"], "gate", "{jail}");
        // Without hosts nobody listens there.
        let (end, _) = guest_of(GuestSpec { hosts: Vec::new(), ..spec.clone() }).unwrap();
        assert_ne!(end.exit_code, Some(0), "{jail}");
    }
    // That one knows no hosts, and says so.
    let because = if is_root() { "root" } else { "hosts" };
    assert!(house.jail("process").holds(&spec).unwrap_err().reason.contains(because));
}

fn jails_with_gates() -> impl Iterator<Item = &'static str> {
    crate::world::jails().into_iter().filter(|jail| *jail != "process")
}

/// The real gate, and a program that was not written for it.
fn what_the_gate_refuses_is_on_record() {
    if !has_runtime("curl") {
        return haft_testkit::not_run("choice::what_the_gate_refuses_is_on_record", "it takes curl");
    }
    let gate = std::sync::Arc::new(haft_jail::guest::HostGate::new());
    let house = House::with(|options| options.gate = Some(gate));
    let canary = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let port = canary.local_addr().unwrap().port();
    let script = format!(
        "curl -s -m 10 -o /dev/null -w '%{{http_code}}\\n' http://other.test/; \
         curl -s -m 10 --noproxy '*' http://127.0.0.1:{port}/; echo $?"
    );
    for jail in jails_with_gates() {
        let spec = GuestSpec { hosts: vec!["allowed.test".into()], ..sh(&script) };
        let (end, heard) = block_on(run(&*house.jail(jail), spec)).unwrap();
        assert_eq!(heard.out, "403\n7\n", "{jail} {heard:?}");
        assert!(canary.accept().is_err(), "{jail} reached a port of the machine");
        let seen: Vec<_> = end.violations.iter().map(|seen| (&*seen.kind, seen.was_blocked)).collect();
        assert_eq!(seen, [("UnauthorizedNetworkAccess", true)], "{jail}");
        assert!(end.violations[0].resource.contains("other.test"), "{jail} {:?}", end.violations);
    }
}

/// The guest of `gvisor_threads_are_held`: says how many threads it has got.
pub fn start_threads(most: &str) -> i32 {
    let wait = Duration::from_secs(2);
    let start =
        |_| std::thread::Builder::new().stack_size(16384).spawn(move || std::thread::sleep(wait)).ok();
    let threads: Vec<_> = (0..most.parse().unwrap()).map_while(start).collect();
    println!("{}", threads.len());
    0
}

/// A thread of a guest is one of its kernel's, and only some of them are threads of the machine. So a limit does not
/// hold for each; what holds is that the machine's own stay within it, and that every one takes memory.
fn gvisor_threads_are_held() {
    if !(is_root() && has_runtime("runsc")) {
        return haft_testkit::not_run("choice::gvisor_threads_are_held", "it takes root and runsc");
    }
    let house = House::new();
    let program = own_program();
    let threads = |most: &str, processes: u32| {
        let mut spec = GuestSpec::command([program.to_str().unwrap(), "--threads", most]);
        spec.level = IsolationLevel::Strict;
        spec.readable = vec![program.clone()];
        spec.limits.processes = Some(processes);
        spec.limits.memory_bytes = Some(160 << 20);
        spec.limits.wall_time = Some(Duration::from_secs(60));
        block_on(run(&*house.jail("gvisor"), spec)).unwrap()
    };
    let (_, heard) = threads("500", 20);
    assert_eq!(heard.out, "500\n", "it has got better than the documentation says: {heard:?}");
    let (end, heard) = threads("20000", 20);
    assert_eq!(heard.out, "", "{end:?}");
    let held = end.violations.iter().map(|seen| seen.resource.as_str());
    assert!(held.clone().any(|limit| ["memoryBytes", "processes"].contains(&limit)), "{end:?}");
    // And the next one is as it should be.
    assert_eq!(threads("5", 20).1.out, "5\n");
}

/// The guest of that test: a program that knows of the gate by its environment.
pub fn go_through_the_gate() -> i32 {
    use std::io::Read as _;
    let Some(proxy) = std::env::var("https_proxy").ok() else { return 2 };
    let Ok(mut stream) = std::net::TcpStream::connect(proxy.trim_start_matches("http://")) else { return 3 };
    let mut text = String::new();
    if stream.read_to_string(&mut text).is_err() {
        return 4;
    }
    print!("{text}");
    0
}

/// A jail init that stands by was made before.
fn what_is_mounted_later_is_seen() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let house = House::with(|options| options.warm = 1);
    let folder = tempfile::tempdir().unwrap();
    let spec = || GuestSpec { readable: vec![folder.path().to_owned()], ..sh("ls") };
    let jail = house.jail("namespace");
    let (_, heard) = block_on(run(&*jail, spec())).unwrap();
    assert_eq!(heard.out, "");
    // Time for the next init to be there.
    std::thread::sleep(Duration::from_millis(300));
    let mount = |arguments: &[&str]| {
        assert!(
            Command::new(arguments[0]).args(&arguments[1..]).arg(folder.path()).status().unwrap().success()
        );
    };
    mount(&["mount", "-t", "tmpfs", "haft-test"]);
    fs::write(folder.path().join("later"), "").unwrap();
    let seen = block_on(run(&*jail, spec()));
    mount(&["umount", "-l"]);
    assert_eq!(seen.unwrap().1.out, "later\n");
}
