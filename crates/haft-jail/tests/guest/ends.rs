//! Nothing outlives its call, however it ends.

use crate::world::{House, block_on, is_root, jails, keeping, own_program, run, sh};
use haft_core::{
    IsolationLevel, Limits,
    port::{GuestSignal, GuestSpec},
};
use libtest_mimic::Trial;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for jail in jails() {
        let mut add = |name: &str, test: fn(&'static str)| {
            trials.push(Trial::test(format!("ends::{jail}::{name}"), move || {
                test(jail);
                Ok(())
            }));
        };
        add("a_daemon_ends_with_its_call", a_daemon_ends_with_its_call);
        add("the_next_guest_is_not_ended_with_the_last", the_next_guest_is_not_ended_with_the_last);
        add("dropping_ends_everything", dropping_ends_everything);
        add("stopped_children_end", stopped_children_end);
        add("two_hundred_violent_ends", two_hundred_violent_ends);
        add("killing_haft_ends_everything", killing_haft_ends_everything);
        add("killing_haft_and_its_spawner_is_swept_up", killing_haft_and_its_spawner_is_swept_up);
        add("only_the_jails_of_the_killed_haft_end", only_the_jails_of_the_killed_haft_end);
        add("a_killed_spawner_is_replaced", a_killed_spawner_is_replaced);
        add("a_sandbox_outlives_its_spawner", a_sandbox_outlives_its_spawner);
        add("what_is_in_the_base_folder_goes_with_its_guest", what_is_in_the_base_folder_goes_with_its_guest);
    }
    trials.push(Trial::test("ends::gvisor::a_kernel_ends_with_its_guest", || {
        a_kernel_ends_with_its_guest();
        Ok(())
    }));
    trials
}

/// Makes daemons in every way there is: twice forked, in sessions of their own, deaf to signals.
fn daemons(mark: &str) -> String {
    format!(
        "for n in 1 2 3; do (setsid sh -c 'trap \"\" TERM INT HUP; exec 3>&- >/dev/null 2>&1; \
         (sh -c \"while :; do sleep 7{mark}; done\" &) ; while :; do sleep 7{mark}; done' >/dev/null 2>&1 &) ; done; \
         (setsid sleep 7{mark} >/dev/null 2>&1 &) ; sleep 0.1; echo ready"
    )
}

/// A number that is in nobody else's command lines.
fn mark() -> String {
    format!("{}", u32::from_str_radix(&uuid::Uuid::new_v4().simple().to_string()[..7], 16).unwrap())
}

pub fn processes(text: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let own = std::process::id().to_string();
    all.filter(|entry| entry.file_name().to_string_lossy() != own)
        .filter_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(text).then(|| format!("{} {line}", entry.file_name().to_string_lossy()))
        })
        .collect()
}

/// What runs of the guests with that mark. In gVisor they are in its kernel, whose processes show where haft made it:
/// `place` is the state folder, or the beginning of the name of a run of haft.
fn guests(jail: &str, place: &str, mark: &str) -> Vec<String> {
    match jail {
        "gvisor" => processes(place).into_iter().filter(|line| line.contains("/haft-")).collect(),
        _ => processes(&format!("sleep 7{mark}")),
    }
}

pub fn gone_within(what: &str, time: Duration, left: impl Fn() -> Vec<String>) {
    let end = Instant::now() + time;
    loop {
        let left = left();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{what} left: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn cgroups(prefix: &str) -> Vec<String> {
    fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(prefix) {
                    found.push(entry.path().display().to_string());
                }
                walk(&entry.path(), prefix, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), prefix, &mut found);
    found
}

fn mounts(text: &Path) -> Vec<String> {
    let text = text.display().to_string();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(&text)).map(str::to_owned).collect()
}

fn a_daemon_ends_with_its_call(jail: &'static str) {
    let house = House::new();
    let place = house.state.path().display().to_string();
    let mark = mark();
    let (end, heard) = block_on(run(&*house.jail(jail), sh(&daemons(&mark)))).unwrap();
    assert_eq!((heard.out.as_str(), end.exit_code), ("ready\n", Some(0)));
    // At once: an end is only told when nothing is left.
    assert_eq!(guests(jail, &place, &mark), Vec::<String>::new());
}

/// A guest comes to where another's daemons were ended.
fn the_next_guest_is_not_ended_with_the_last(jail: &'static str) {
    let house = House::new();
    let mark = mark();
    for round in 0..6 {
        let (end, heard) = block_on(run(&*house.jail(jail), sh(&daemons(&mark)))).unwrap();
        assert_eq!((heard.out.as_str(), end.exit_code), ("ready\n", Some(0)), "{round} {end:?}");
    }
}

fn dropping_ends_everything(jail: &'static str) {
    let house = House::new();
    let place = house.state.path().display().to_string();
    let mark = mark();
    block_on(async {
        let mut guest = house.jail(jail).start(sh(&format!("{}; sleep 1000", daemons(&mark)))).await.unwrap();
        let (sink, heard) = keeping();
        let waited = tokio::time::timeout(Duration::from_millis(1500), guest.wait(sink)).await;
        assert!(waited.is_err() && heard.lock().unwrap().out == "ready\n", "{waited:?} {heard:?}");
        assert!(!guests(jail, &place, &mark).is_empty());
    });
    gone_within("processes", Duration::from_secs(5), || guests(jail, &place, &mark));
}

fn stopped_children_end(jail: &'static str) {
    let house = House::new();
    let place = house.state.path().display().to_string();
    let mark = mark();
    block_on(async {
        let script = format!("{}; kill -STOP $$", daemons(&mark));
        let mut guest = house.jail(jail).start(sh(&script)).await.unwrap();
        let (sink, _) = keeping();
        let control = guest.control();
        let _ = tokio::time::timeout(Duration::from_millis(1000), guest.wait(sink)).await;
        let _ = control.signal(GuestSignal::Stop);
    });
    gone_within("processes", Duration::from_secs(5), || guests(jail, &place, &mark));
}

/// Cancelled, out of time, killed, stopped, out of memory, at any moment.
fn two_hundred_violent_ends(jail: &'static str) {
    let house = House::with(|options| options.warm = 2);
    let place = house.state.path().display().to_string();
    let mark = mark();
    let instance = fs::read_dir(house.state.path().join("instances")).unwrap().flatten().next().unwrap();
    let instance = instance.file_name().to_string_lossy().into_owned();
    block_on(async {
        for round in 0..200u64 {
            let mut spec = sh(&format!("{}; sleep 1000", daemons(&mark)));
            if round % 4 == 1 {
                spec.limits.wall_time = Some(Duration::from_millis(round / 2));
            }
            let moment = Duration::from_micros(round * 997 % 150_000);
            let held = house.jail(jail);
            let starting = tokio::time::timeout(moment, held.start(spec));
            let mut guest = match starting.await {
                Ok(guest) => guest.unwrap(),
                Err(_) => continue,
            };
            let control = guest.control();
            let (sink, _) = keeping();
            let waited = tokio::time::timeout(moment, guest.wait(sink)).await;
            match round % 4 {
                0 => drop(guest),
                2 => {
                    let _ = control.signal(GuestSignal::Stop);
                    drop(guest);
                }
                3 if waited.is_err() => {
                    control.kill();
                    let (sink, _) = keeping();
                    let _ = guest.wait(sink).await;
                }
                _ => {}
            }
        }
    });
    gone_within("processes", Duration::from_secs(10), || guests(jail, &place, &mark));
    let (state, host) = (house.state, house.host);
    drop(host);
    gone_within("cgroups", Duration::from_secs(5), || cgroups(&instance));
    assert_eq!(mounts(state.path()), Vec::<String>::new());
    let left: Vec<PathBuf> =
        fs::read_dir(state.path().join("instances")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

/// Another haft, which starts a guest with daemons and waits for it.
pub fn be_haft(arguments: &[String]) -> ! {
    let [jail, state, mark, base @ ..] = arguments else { panic!("--haft JAIL STATE MARK [BASE]") };
    let mut options = haft_jail::guest::JailOptions::new(state, "/");
    options.base = base.first().map(PathBuf::from);
    options.per_process_limits_do = !crate::world::has_cgroups();
    let host = haft_jail::guest::JailHost::new(options).unwrap();
    let jail = crate::world::jail(&host, jail);
    block_on(async {
        let spec = GuestSpec {
            level: IsolationLevel::Strict,
            limits: Limits { wall_time: Some(Duration::from_secs(60)), ..Limits::default() },
            ..sh(&format!("{}; sleep 1000", daemons(mark)))
        };
        let mut guest = jail.start(spec).await.unwrap();
        let sink: haft_core::port::OutputSink = std::sync::Arc::new(|_, bytes: &[u8]| {
            use std::io::Write as _;
            let _ = std::io::stdout().write_all(bytes);
            let _ = std::io::stdout().flush();
        });
        let _ = guest.wait(sink).await;
    });
    std::process::exit(0)
}

fn another_haft(jail: &str, state: &Path, mark: &str) -> Child {
    another_haft_with(jail, state, mark, None)
}

fn another_haft_with(jail: &str, state: &Path, mark: &str, base: Option<&Path>) -> Child {
    let mut child = Command::new(own_program())
        .args(["--haft", jail, state.to_str().unwrap(), mark])
        .args(base)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    assert!(!guests(jail, &format!("haft-{}-", child.id()), mark).is_empty());
    child
}

/// Where a base folder is named, the folders of guests are there, and nowhere else; they go with the guest, with haft, and
/// where haft and its spawner are killed, with the next haft.
fn what_is_in_the_base_folder_goes_with_its_guest(jail: &'static str) {
    let base = tempfile::tempdir().unwrap();
    let inside = || -> Vec<PathBuf> {
        let all = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        all(base.path()).flat_map(|run| all(&run).collect::<Vec<_>>()).collect()
    };
    let house = House::with(|options| options.base = Some(base.path().to_owned()));
    block_on(async {
        let held = house.jail(jail);
        let mut guest = held.start(sh("echo $HOME; touch $HOME/left; exit 0")).await.unwrap();
        // A jail in namespaces has its scratch space in memory.
        assert_eq!(inside().is_empty(), jail == "namespace", "{:?}", inside());
        let (sink, _) = keeping();
        guest.wait(sink).await.unwrap();
    });
    assert_eq!(inside(), Vec::<PathBuf>::new());
    let instances = fs::read_dir(house.state.path().join("instances")).unwrap().flatten();
    assert!(instances.into_iter().all(|run| !run.path().join("scratch").exists()));
    // A guest that is granted all around it does not see it.
    let (around, name) = (base.path().parent().unwrap(), base.path().file_name().unwrap().to_str().unwrap());
    if jail == "namespace" {
        let spec =
            GuestSpec { readable: vec![around.to_owned()], ..sh(&format!("cd {name} && echo seen *")) };
        let heard = block_on(run(&*house.jail(jail), spec)).unwrap().1;
        assert!(!heard.out.contains("seen"), "{heard:?}");
    }
    drop(house);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0, "it goes with haft");
    let (state, mark) = (tempfile::tempdir().unwrap(), mark());
    let mut haft = another_haft_with(jail, state.path(), &mark, Some(base.path()));
    let spawner = spawner_of(haft.id());
    for pid in [spawner, haft.id() as i32] {
        assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    }
    haft.wait().unwrap();
    assert_ne!(fs::read_dir(base.path()).unwrap().count(), 0, "nobody was left to remove it");
    drop(House::on(state));
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0, "the next haft removes it");
}

fn spawner_of(haft: u32) -> i32 {
    // Whichever of its threads started it.
    let threads = fs::read_dir(format!("/proc/{haft}/task")).unwrap().flatten();
    let children: String =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok()).collect();
    let spawner = children.split_whitespace().find(|pid| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "haft-spawner")
    });
    spawner.unwrap().parse().unwrap()
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn killing_haft_ends_everything(jail: &'static str) {
    let state = tempfile::tempdir().unwrap();
    let mark = mark();
    let mut haft = another_haft(jail, state.path(), &mark);
    let prefix = format!("haft-{}-", haft.id());
    haft.kill().unwrap();
    haft.wait().unwrap();
    gone_within("processes", Duration::from_secs(8), || guests(jail, &prefix, &mark));
    gone_within("cgroups", Duration::from_secs(8), || cgroups(&prefix));
    gone_within("folders", Duration::from_secs(8), || {
        let left = fs::read_dir(state.path().join("instances")).into_iter().flatten().flatten();
        left.map(|entry| entry.path().display().to_string()).collect()
    });
}

fn killing_haft_and_its_spawner_is_swept_up(jail: &'static str) {
    if jail == "process" && !crate::world::has_cgroups() {
        return haft_testkit::not_run(
            "killing_haft_and_its_spawner_is_swept_up",
            "it takes a cgroup to find orphans",
        );
    }
    let state = tempfile::tempdir().unwrap();
    let mark = mark();
    let mut haft = another_haft(jail, state.path(), &mark);
    let prefix = format!("haft-{}-", haft.id());
    let spawner = spawner_of(haft.id());
    // Stopped first, so that neither sees the other's end.
    kill_both(&mut haft, spawner);
    // The next haft on the same state folder.
    let next =
        haft_jail::guest::JailHost::new(haft_jail::guest::JailOptions::new(state.path(), "/")).unwrap();
    gone_within("processes", Duration::from_secs(5), || guests(jail, &prefix, &mark));
    gone_within("cgroups", Duration::from_secs(5), || cgroups(&prefix));
    drop(next);
    let left = fs::read_dir(state.path().join("instances")).unwrap().count();
    assert_eq!(left, 0);
}

fn kill_both(haft: &mut Child, spawner: i32) {
    let spawner_pid = rustix::process::Pid::from_raw(spawner).unwrap();
    rustix::process::kill_process(spawner_pid, rustix::process::Signal::STOP).unwrap();
    haft.kill().unwrap();
    haft.wait().unwrap();
    kill(spawner);
}

fn only_the_jails_of_the_killed_haft_end(jail: &'static str) {
    let state = tempfile::tempdir().unwrap();
    let marks = [mark(), mark(), mark()];
    let mut hafts: Vec<Child> = marks.iter().map(|mark| another_haft(jail, state.path(), mark)).collect();
    let names: Vec<String> = hafts.iter().map(|haft| format!("haft-{}-", haft.id())).collect();
    hafts[1].kill().unwrap();
    hafts[1].wait().unwrap();
    gone_within("processes", Duration::from_secs(8), || guests(jail, &names[1], &marks[1]));
    // A fourth, which sweeps when it begins.
    let fourth =
        haft_jail::guest::JailHost::new(haft_jail::guest::JailOptions::new(state.path(), "/")).unwrap();
    for index in [0, 2] {
        assert!(!guests(jail, &names[index], &marks[index]).is_empty());
        assert!(hafts[index].try_wait().unwrap().is_none());
        hafts[index].kill().unwrap();
        hafts[index].wait().unwrap();
    }
    for (name, mark) in names.iter().zip(&marks) {
        gone_within("processes", Duration::from_secs(8), || guests(jail, name, mark));
    }
    drop(fourth);
}

fn a_killed_spawner_is_replaced(jail: &'static str) {
    let house = House::new();
    let place = house.state.path().display().to_string();
    let mark = mark();
    block_on(async {
        let mut guest = house.jail(jail).start(sh(&format!("{}; sleep 1000", daemons(&mark)))).await.unwrap();
        let (sink, _) = keeping();
        let _ = tokio::time::timeout(Duration::from_millis(800), guest.wait(sink)).await;
        kill(spawner_of_this_house(&house));
        let (sink, _) = keeping();
        let end = guest.wait(sink).await;
        // It may just have had the time to say how its guest ended.
        assert!(end.as_ref().is_ok_and(|end| end.error().is_some()) || end.is_err(), "{end:?}");
        let (end, _) = run(&*house.jail(jail), sh("exit 0")).await.unwrap();
        assert_eq!(end.exit_code, Some(0));
    });
    gone_within("processes", Duration::from_secs(5), || guests(jail, &place, &mark));
}

/// Its limits are made again with the next spawner.
fn a_sandbox_outlives_its_spawner(jail: &'static str) {
    if !is_root() {
        return haft_testkit::not_run(
            "a_sandbox_outlives_its_spawner",
            "an ordinary user makes no cgroups here",
        );
    }
    let house = House::new();
    let place = house.state.path().display().to_string();
    let limits = Limits { memory_bytes: Some(48 << 20), ..Limits::default() };
    let sandbox = house.host.open_sandbox(&limits).unwrap();
    let spec = |script: &str| GuestSpec { parent: Some(sandbox.id().to_owned()), ..sh(script) };
    block_on(async {
        let (end, _) = run(&*house.jail(jail), spec("exit 3")).await.unwrap();
        assert_eq!(end.exit_code, Some(3));
        kill(spawner_of_this_house(&house));
        let (end, _) = run(&*house.jail(jail), spec("exit 4")).await.unwrap();
        assert_eq!(end.exit_code, Some(4));
        let (_, heard) =
            run(&*house.jail(jail), spec("head -c 90M /dev/zero | tail -c 90M | wc -c")).await.unwrap();
        assert_ne!(heard.out, "94371840\n", "the limit of the sandbox is gone");
        // What is in it ends with it, and nothing of it is left.
        let mark = mark();
        let mut guest =
            house.jail(jail).start(spec(&format!("{}; sleep 7{mark}", daemons(&mark)))).await.unwrap();
        let (sink, _) = keeping();
        let _ = tokio::time::timeout(Duration::from_millis(800), guest.wait(sink)).await;
        haft_core::port::Sandbox::end(&sandbox).await.unwrap();
        assert_eq!(guests(jail, &place, &mark), Vec::<String>::new());
        let error = run(&*house.jail(jail), spec("true")).await.unwrap_err();
        assert_eq!(error.code.e_number(), Some("E3101"));
    });
}

/// What a guest starts in gVisor is in the kernel that was made for it: that one has to be gone.
fn a_kernel_ends_with_its_guest() {
    if !(is_root() && crate::world::has_runtime("runsc")) {
        return haft_testkit::not_run(
            "ends::gvisor::a_kernel_ends_with_its_guest",
            "it takes root and runsc",
        );
    }
    let house = House::new();
    let jail = house.jail("gvisor");
    let kernels = || processes(house.state.path().to_str().unwrap());
    let deaf = "trap '' TERM INT HUP; (setsid sleep 1000 &); while :; do sleep 1; done";
    block_on(async {
        let (end, _) = run(&*jail, sh("(setsid sleep 1000 >/dev/null 2>&1 &); exit 5")).await.unwrap();
        assert_eq!(end.exit_code, Some(5));
        let runsc = |all: &[String]| all.iter().filter(|line| line.contains("runsc")).count();
        assert_eq!(runsc(&kernels()), 0, "{:?}", kernels());
        let mut late = sh(deaf);
        late.limits.wall_time = Some(Duration::from_secs(2));
        let (end, _) = run(&*jail, late).await.unwrap();
        assert_eq!(end.exceeded.map(|over| over.limit), Some("wallTime"));
        assert_eq!(runsc(&kernels()), 0, "{:?}", kernels());
        let mut guest = jail.start(sh(deaf)).await.unwrap();
        let (sink, _) = keeping();
        let _ = tokio::time::timeout(Duration::from_millis(800), guest.wait(sink)).await;
        assert!(runsc(&kernels()) > 0, "it does not run, or not under that name");
        drop(guest);
        gone_within("kernels", Duration::from_secs(5), || {
            kernels().into_iter().filter(|line| line.contains("runsc")).collect()
        });
    });
}

fn spawner_of_this_house(house: &House) -> i32 {
    let instance = fs::read_dir(house.state.path().join("instances")).unwrap().flatten().next().unwrap();
    let record = fs::read_to_string(instance.path().join("record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    record["spawner"][0].as_i64().unwrap() as i32
}
