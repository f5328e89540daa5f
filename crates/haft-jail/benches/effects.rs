//! What it costs to decide about effects: a command that writes apart from the files against one that writes to them,
//! and applying what it wrote against copying the same files. Beside `sandfs` and `agentfs` where they are installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a program that measures"
)]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("writes are staged on Linux only");
}

#[cfg(target_os = "linux")]
fn main() {
    haft_jail::init();
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        // Cargo runs benches as tests, too.
        Some("--test") => {}
        Some("--memory") => linux::memory(arguments[2].parse().unwrap()),
        _ => linux::measure(),
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use haft_core::{
        ExecutionId, IsolationLevel,
        port::{GuestSpec, Jail as _, StageSpec, StagedRoot, Writes},
    };
    use haft_files::{ApplyStaged, Files, JailSpec, Keep, PathJail, RootSpec, StageRules, StagedSet};
    use haft_jail::guest::{JailHost, JailOptions, Namespace};
    use haft_store::MemoryReadHashes;
    use std::{
        fs,
        path::{Path, PathBuf},
        process::{Command, Stdio},
        sync::Arc,
        time::{Duration, Instant},
    };

    /// Starts of `true`, of each kind.
    const STARTS: usize = 300;
    const ROUNDS: usize = 5;

    /// A folder with haft's state beside it, and a jail.
    struct Ground {
        base: tempfile::TempDir,
        jail: Namespace,
        runtime: tokio::runtime::Runtime,
        next: std::cell::Cell<usize>,
    }

    impl Ground {
        fn new() -> Ground {
            // Beside the programs: a folder of temporary files may be memory, where nothing costs anything.
            let base = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
            for folder in ["root", "state", "layers", "source", "copy"] {
                fs::create_dir(base.path().join(folder)).unwrap();
            }
            let host = JailHost::new(JailOptions::new(base.path().join("state"), "/nonexistent")).unwrap();
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            Ground {
                jail: Namespace::new(&host),
                base,
                runtime: runtime.unwrap(),
                next: std::cell::Cell::default(),
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.base.path().canonicalize().unwrap().join(name)
        }

        fn layers(&self) -> PathBuf {
            self.next.set(self.next.get() + 1);
            let layers = self.path("layers").join(self.next.get().to_string());
            fs::create_dir(&layers).unwrap();
            layers
        }

        fn spec(&self, argv: &[&str], layers: Option<PathBuf>) -> GuestSpec {
            let bounds = (Some(1 << 30), Some(200_000));
            GuestSpec {
                level: IsolationLevel::Strict,
                writable: vec![self.path("root")],
                readable: vec![self.path("source")],
                denied: vec![".env".to_owned()],
                writes: layers.map_or(Writes::Live, |layers| {
                    Writes::Staged(StageSpec { layers, most_bytes: bounds.0, most_files: bounds.1 })
                }),
                ..GuestSpec::command(argv.iter().copied())
            }
        }

        /// Runs it, and gives what was kept apart.
        fn run(&self, spec: GuestSpec) -> Vec<StagedRoot> {
            self.runtime.block_on(async {
                let mut guest = self.jail.start(spec).await.unwrap();
                let end = guest.wait(Arc::new(|_, _: &[u8]| {})).await.unwrap();
                assert_eq!(end.exit_code, Some(0));
                end.staged
            })
        }

        fn files(&self) -> Files {
            let spec = RootSpec { path: self.path("root"), read_only: false };
            let jail = PathJail::new(JailSpec { roots: vec![spec], ..JailSpec::default() }).unwrap();
            let reads = Arc::new(MemoryReadHashes::default());
            Files::new(Arc::new(jail), reads, &self.path("state/changes"), Keep::default())
        }

        /// Looks at what was kept apart, and applies it.
        fn apply(&self, roots: Vec<StagedRoot>) -> u64 {
            let set = StagedSet { roots, rules: StageRules::default() };
            let found = set.look().unwrap();
            let how = ApplyStaged {
                by: ExecutionId::at(jiff::Timestamp::now()),
                tenant: "local".into(),
                summary: "a measurement".into(),
                fingerprint: found.fingerprint,
                approved: false,
            };
            let summary = self.files().apply_staged(&set, &how).unwrap();
            summary.created + summary.modified
        }
    }

    pub(super) fn measure() {
        starts();
        for (count, is_new) in [(1000, true), (20_000, true), (1000, false), (20_000, false)] {
            applying(count, is_new);
        }
        let [few, many] = [1000, 20_000].map(peak_of);
        println!(
            "memory that looking and applying takes at its peak: {few} KiB for 1,000 files, {many} KiB for 20,000, \
             {:.2} times (goal: flat)",
            many as f64 / few.max(1) as f64
        );
        sandfs();
        match is_installed("agentfs") {
            true => println!("agentfs: installed, but this program does not know its options"),
            false => println!("agentfs: not measured, no program `agentfs` in PATH"),
        }
    }

    /// `true` in a small folder: written through, kept apart, and kept apart with a look at what is kept.
    fn starts() {
        let ground = Ground::new();
        for name in ["src/main.rs", "Cargo.toml", ".env"] {
            write(&ground.path("root").join(name), "x");
        }
        let mut took = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..STARTS + 5 {
            for (kind, took) in took.iter_mut().enumerate() {
                // What the last one leaves to the kernel, and the making of the next jail, are not measured with it.
                std::thread::sleep(Duration::from_millis(12));
                let layers = (kind > 0).then(|| ground.layers());
                let spec = ground.spec(&["true"], layers.clone());
                let began = Instant::now();
                let roots = ground.run(spec);
                if kind == 2 {
                    let found = StagedSet { roots, rules: StageRules::default() }.look().unwrap();
                    assert_eq!(found.summary.created, 0);
                    haft_files::discard(&layers.unwrap()).unwrap();
                }
                if round >= 5 {
                    took.push(began.elapsed());
                }
            }
        }
        let at = |all: &[Duration], part: usize| {
            let mut all = all.to_vec();
            all.sort();
            all[all.len() / part].as_secs_f64() * 1000.0
        };
        let [live, staged, looked] = took;
        for (name, all) in [("live", &live), ("staged", &staged), ("staged and looked at", &looked)] {
            let ratio = |part| at(all, part) / at(&live, part);
            println!(
                "true, {name:<21} {:.2} ms, {:.2} times live; the lower tenth {:.2} ms, {:.2} times (goal: 1.3)",
                at(all, 2),
                ratio(2),
                at(all, 10),
                ratio(10)
            );
        }
    }

    /// A command copies files into the folder; then what it wrote is applied.
    fn applying(count: usize, is_new: bool) {
        let (mut ratios, mut copied, mut applied) = (Vec::new(), Vec::new(), Vec::new());
        let (mut live, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let ground = Ground::new();
            let source = ground.path("source");
            fill(&source, count, "new");
            if !is_new {
                fill(&ground.path("root"), count, "old");
            }
            let names = format!("{}/.", source.display());
            let argv = ["cp", "-r", &names, "."];
            sync(ground.base.path());
            let copy = timed(|| {
                let status = Command::new("cp").arg("-r").arg(&names).arg(ground.path("copy")).status();
                assert!(status.unwrap().success());
                sync(ground.base.path());
            });
            let layers = ground.layers();
            let began = Instant::now();
            let roots = ground.run(ground.spec(&argv, Some(layers.clone())));
            // What the command wrote is on its way to the disk, as it is after a command that writes live.
            let ran = began.elapsed();
            sync(ground.base.path());
            let apply = timed(|| assert_eq!(ground.apply(roots), count as u64));
            haft_files::discard(&layers).unwrap();
            // The same command on the files themselves, where they are as they were.
            fs::remove_dir_all(ground.path("root")).unwrap();
            fs::create_dir(ground.path("root")).unwrap();
            if !is_new {
                fill(&ground.path("root"), count, "old");
            }
            sync(ground.base.path());
            live.push(timed(|| {
                ground.run(ground.spec(&argv, None));
                sync(ground.base.path());
            }));
            ratios.push(apply.as_secs_f64() / copy.as_secs_f64());
            whole.push(ran + apply);
            copied.push(copy);
            applied.push(apply);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{count:>6} files, {}: cp -r and sync {:?}, look and apply {:?}, {:.2} times (goal: 2); \
             the command live {:?}, staged and applied {:?}",
            if is_new { "new" } else { "replaced" },
            median(copied),
            median(applied),
            ratios[ratios.len() / 2],
            median(live),
            median(whole),
        );
    }

    /// In a process of its own: how much more memory looking and applying needed than was needed before.
    fn peak_of(count: usize) -> u64 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.arg("--memory").arg(count.to_string()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    }

    pub(super) fn memory(count: usize) {
        let ground = Ground::new();
        fill(&ground.path("source"), count, "new");
        fill(&ground.path("root"), count, "old");
        let names = format!("{}/.", ground.path("source").display());
        let roots = ground.run(ground.spec(&["cp", "-r", &names, "."], Some(ground.layers())));
        // From here on the peak is counted again.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = status("VmRSS:");
        assert_eq!(ground.apply(roots), count as u64);
        println!("{}", status("VmHWM:").saturating_sub(before));
    }

    /// A workspace of sandfs: `true` in its shell, and changes that are copied back into the folder.
    fn sandfs() {
        if !is_installed("sandfs") {
            return println!("sandfs: not measured, no program `sandfs` in PATH");
        }
        let ground = Ground::new();
        fill(&ground.path("root"), 100, "old");
        let (home, mount) = (ground.path("home"), ground.path("mount"));
        let sandfs = |arguments: &[&str]| {
            let mut command = Command::new("sandfs");
            command.args(arguments).env("SANDFS_HOME", &home).stdout(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let [root, at] = [ground.path("root"), mount.clone()].map(|path| path.display().to_string());
        if !sandfs(&["mount", &root, &at, "--name", "measured"]) {
            return println!("sandfs: not measured, it cannot mount here");
        }
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        let has_shell = sandfs(&["shell", "measured", "--", "true"]);
        for _ in 0..if has_shell { 30 } else { 0 } {
            theirs.push(timed(|| assert!(sandfs(&["shell", "measured", "--", "true"]))));
            let layers = ground.layers();
            ours.push(timed(|| drop(ground.run(ground.spec(&["true"], Some(layers))))));
        }
        match has_shell {
            true => {
                println!("sandfs shell, true: {:?}; staged beside it {:?}", median(theirs), median(ours));
            }
            false => println!("sandfs shell: not measured, it does not run here"),
        }
        for count in [1000, 20_000] {
            let folder = mount.join(format!("new{count}"));
            fs::create_dir(&folder).unwrap();
            let wrote = timed(|| fill(&folder, count, "new"));
            let copied = timed(|| assert!(sandfs(&["changes", "measured", "--copy-to", &root])));
            println!("sandfs, {count} new files: written in {wrote:?}, `changes --copy-to` {copied:?}");
        }
        sandfs(&["unmount", &at]);
    }

    fn is_installed(program: &str) -> bool {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    }

    fn fill(folder: &Path, count: usize, text: &str) {
        for number in 0..count {
            let text = format!("{text} {number}\n").repeat(20);
            write(&folder.join(format!("{}/{number}.txt", number / 100)), &text);
        }
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sync(path: &Path) {
        assert!(Command::new("sync").arg("-f").arg(path).status().unwrap().success());
    }

    fn timed(work: impl FnOnce()) -> Duration {
        let began = Instant::now();
        work();
        began.elapsed()
    }

    fn median(mut all: Vec<Duration>) -> Duration {
        all.sort();
        all[all.len() / 2]
    }

    /// A figure of this process, in KiB.
    fn status(name: &str) -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}
