//! What a jail costs: the same small programs plainly, in each jail, and by what others use, in one run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a program that measures"
)]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("jails are made on Linux only");
}

#[cfg(target_os = "linux")]
fn main() {
    haft_jail::init();
    if std::env::args().nth(1).as_deref() == Some("--floor") {
        return linux::floor();
    }
    linux::measure();
}

#[cfg(target_os = "linux")]
mod linux {
    use haft_core::{
        IsolationLevel,
        port::{GuestSpec, GuestStdin, Jail},
    };
    use haft_jail::guest::{Gvisor, JailHost, JailOptions, Namespace, Process, Runc};
    use std::{
        collections::BTreeMap,
        process::{Command, Stdio},
        sync::Arc,
        time::{Duration, Instant},
    };

    const ROUNDS: usize = 300;

    #[derive(Default)]
    struct Figures(Vec<f64>);

    impl Figures {
        fn at(&self, part: f64) -> f64 {
            let mut sorted = self.0.clone();
            sorted.sort_by(f64::total_cmp);
            sorted
                .get(((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0.0)
        }
    }

    fn spec(level: IsolationLevel, program: &str) -> GuestSpec {
        let stdin = if program == "cat" { GuestStdin::Bytes(b"hello".to_vec()) } else { GuestStdin::Closed };
        let mut spec = GuestSpec { level, stdin, ..GuestSpec::command([program]) };
        // With a workspace in it, what has to be looked through counts, too.
        if let Some(folder) = std::env::var_os("HAFT_BENCH_WORKSPACE") {
            spec.writable.push(folder.into());
            let denied = haft_files::DEFAULT_DENIES.iter().filter(|pattern| **pattern != "**/.git/**");
            spec.denied = denied.map(|&pattern| pattern.to_owned()).collect();
        }
        spec
    }

    async fn jailed(jail: &dyn Jail, program: &str) {
        let level = if jail.name() == "process" { IsolationLevel::Standard } else { IsolationLevel::Strict };
        let mut guest = jail.start(spec(level, program)).await.unwrap();
        let end = guest.wait(Arc::new(|_, _: &[u8]| {})).await.unwrap();
        assert_eq!(end.exit_code, Some(0));
    }

    async fn plain(mut command: tokio::process::Command, program: &str) {
        use tokio::io::AsyncWriteExt as _;
        command.stdin(if program == "cat" { Stdio::piped() } else { Stdio::null() });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if let Some(mut input) = child.stdin.take() {
            input.write_all(b"hello").await.unwrap();
        }
        assert!(child.wait_with_output().await.unwrap().status.success());
    }

    /// Between two starts, so that what the last one leaves to the kernel, and the making of the next init, are not
    /// measured with another's.
    async fn pause() {
        tokio::time::sleep(Duration::from_millis(12)).await;
    }

    fn bwrap(program: &str) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("bwrap");
        command.args([
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--ro-bind",
            "/usr",
            "/usr",
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/lib",
            "/lib",
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--uid",
            "1000",
            "--gid",
            "1000",
            program,
        ]);
        command
    }

    /// A bare clone with the same namespaces, one after the other, in a process with one thread.
    pub(super) fn floor() {
        let mut figures = Figures::default();
        for _ in 0..ROUNDS {
            std::thread::sleep(Duration::from_millis(12));
            let began = Instant::now();
            bare::run();
            figures.0.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        println!("{} {}", figures.at(0.5), figures.at(0.95));
    }

    mod bare {
        #![allow(unsafe_code, reason = "what is measured is the system calls themselves")]

        /// Namespaces, maps, a private tree, a `/proc`: what no jail of this kind can do without.
        pub(super) fn run() {
            let flags = libc::CLONE_NEWUSER
                | libc::CLONE_NEWNS
                | libc::CLONE_NEWPID
                | libc::CLONE_NEWNET
                | libc::CLONE_NEWIPC
                | libc::CLONE_NEWUTS
                | libc::CLONE_NEWCGROUP;
            // SAFETY: one thread; the copy becomes another program or ends. All texts end with zero bytes.
            unsafe {
                let pid = libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0);
                if pid == 0 {
                    let null = std::ptr::null();
                    let write = |path: &std::ffi::CStr, text: &[u8]| {
                        let fd = libc::open(path.as_ptr(), libc::O_WRONLY);
                        libc::write(fd, text.as_ptr().cast(), text.len());
                        libc::close(fd);
                    };
                    write(c"/proc/self/setgroups", b"deny");
                    write(c"/proc/self/uid_map", b"1000 0 1");
                    write(c"/proc/self/gid_map", b"1000 0 1");
                    libc::mount(null, c"/".as_ptr(), null, libc::MS_REC | libc::MS_PRIVATE, null.cast());
                    libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, null.cast());
                    let argv = [c"true".as_ptr(), null];
                    libc::execve(c"/bin/true".as_ptr(), argv.as_ptr(), [null].as_ptr());
                    libc::_exit(127);
                }
                let mut status = 0;
                libc::waitpid(pid as i32, &raw mut status, 0);
                assert_eq!(status, 0);
            }
        }
    }

    fn memory_of_init() -> Option<u64> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir("/proc").ok()?.flatten() {
            let path = entry.path();
            let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            if name.trim() == "haft-init" {
                let text = std::fs::read_to_string(path.join("smaps_rollup")).ok()?;
                let field = |name: &str| -> Option<u64> {
                    let line = text.lines().find(|line| line.starts_with(name))?;
                    line.split_whitespace().nth(1)?.parse().ok()
                };
                all.push(field("Private_Dirty:")? + field("Private_Clean:")?);
            }
        }
        all.into_iter().max()
    }

    pub(super) fn measure() {
        let state = tempfile::tempdir().unwrap();
        let cold_state = tempfile::tempdir().unwrap();
        let host = JailHost::new(JailOptions::new(state.path(), "/")).unwrap();
        let cold =
            JailHost::new(JailOptions { warm: 0, ..JailOptions::new(cold_state.path(), "/") }).unwrap();
        let mut jails: Vec<(&str, Arc<dyn Jail>)> = vec![
            ("namespace", Arc::new(Namespace::new(&host))),
            ("process", Arc::new(Process::new(&host))),
            ("namespace, no warm init", Arc::new(Namespace::new(&cold))),
            ("process, no warm init", Arc::new(Process::new(&cold))),
        ];
        // That one does not run as root.
        jails.retain(|(_, jail)| jail.offers(IsolationLevel::Standard).is_ok());
        let has_bwrap =
            Command::new("bwrap").arg("--version").output().is_ok_and(|output| output.status.success());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        println!("{:<10} {:<28} {:>9} {:>9} {:>9}", "program", "how", "median ms", "p95 ms", "of plain");
        let mut namespace_median = 0.0;
        for program in ["true", "cat"] {
            let mut figures: BTreeMap<String, Figures> = BTreeMap::new();
            runtime.block_on(async {
                for round in 0..ROUNDS + 5 {
                    let mut note = |name: &str, began: Instant| {
                        if round >= 5 {
                            let took = began.elapsed().as_secs_f64() * 1000.0;
                            figures.entry(name.to_owned()).or_default().0.push(took);
                        }
                    };
                    pause().await;
                    let began = Instant::now();
                    plain(tokio::process::Command::new(program), program).await;
                    note("plain", began);
                    for (name, jail) in &jails {
                        pause().await;
                        let began = Instant::now();
                        jailed(&**jail, program).await;
                        note(name, began);
                    }
                    if has_bwrap {
                        pause().await;
                        let began = Instant::now();
                        plain(bwrap(program), program).await;
                        note("bwrap", began);
                    }
                }
                for (name, jail) in jails.iter().filter(|(name, _)| !name.contains("no warm init")) {
                    let began = Instant::now();
                    for _ in 0..ROUNDS {
                        jailed(&**jail, program).await;
                    }
                    let each = began.elapsed().as_secs_f64() * 1000.0 / ROUNDS as f64;
                    figures.insert(format!("{name}, back to back"), Figures(vec![each]));
                }
                if has_bwrap {
                    let began = Instant::now();
                    for _ in 0..ROUNDS {
                        plain(bwrap(program), program).await;
                    }
                    let each = began.elapsed().as_secs_f64() * 1000.0 / ROUNDS as f64;
                    figures.insert("bwrap, back to back".into(), Figures(vec![each]));
                }
            });
            let base = figures["plain"].at(0.5);
            for (name, figures) in &figures {
                let (median, late) = (figures.at(0.5), figures.at(0.95));
                println!("{program:<10} {name:<28} {median:>9.3} {late:>9.3} {:>8.2}x", median / base);
            }
            if program == "true" {
                namespace_median = figures["namespace"].at(0.5);
            }
        }
        let floor = Command::new(std::env::current_exe().unwrap()).arg("--floor").output().unwrap();
        let floor = String::from_utf8_lossy(&floor.stdout).into_owned();
        let bare: f64 =
            floor.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        println!(
            "true       bare clone                   {bare:>9.3}           namespace is {:.2}x",
            namespace_median / bare
        );
        println!("goals: process <= 1.5x plain; namespace <= 2x bare clone and <= 0.5x bwrap; p95 < 100 ms");
        if let Some(memory) = memory_of_init() {
            println!("memory of a jail init of its own: {memory} KB (goal: 2048)");
        }
        at_once(&runtime, &jails);
        runc(&runtime, &host);
        gvisor(&runtime, &cold);
        gvisor_warm(&runtime, &host);
    }

    fn line(name: &str, figures: &Figures) {
        println!("true       {name:<28} {:>9.2} {:>9.2}", figures.at(0.5), figures.at(0.95));
    }

    fn runc(runtime: &tokio::runtime::Runtime, host: &JailHost) {
        let runtimes = [("runc", Runc::new(host)), ("crun", Runc::with(host, "/usr/bin/crun"))];
        for (name, jail) in runtimes {
            if let Err(unavailable) = jail.offers(IsolationLevel::Strict) {
                println!("runc, by {name}: not measured, {unavailable}");
                continue;
            }
            let mut figures = Figures::default();
            runtime.block_on(async {
                for _ in 0..ROUNDS / 3 {
                    let began = Instant::now();
                    jailed(&jail, "true").await;
                    figures.0.push(began.elapsed().as_secs_f64() * 1000.0);
                    pause().await;
                }
            });
            line(&format!("runc, by {name}"), &figures);
        }
    }

    /// With pauses in which the next kernel can start; what came too early is not counted.
    fn gvisor_warm(runtime: &tokio::runtime::Runtime, host: &JailHost) {
        let jail = Gvisor::new(host);
        if jail.offers(IsolationLevel::Strict).is_err() {
            return;
        }
        let mut figures = Figures::default();
        runtime.block_on(async {
            for _ in 0..60 {
                let began = Instant::now();
                let mut guest = jail.start(spec(IsolationLevel::Strict, "true")).await.unwrap();
                let warm = guest.enforcement().details.contains_key("startedBefore");
                let end = guest.wait(Arc::new(|_, _: &[u8]| {})).await.unwrap();
                assert_eq!(end.exit_code, Some(0));
                if warm {
                    figures.0.push(began.elapsed().as_secs_f64() * 1000.0);
                }
                tokio::time::sleep(Duration::from_millis(800)).await;
            }
        });
        line(&format!("gvisor, warm ({} of 60)", figures.0.len()), &figures);
        // What nothing around it can be faster than: the program itself, which does not even look at a container.
        let mut floor = Figures::default();
        for _ in 0..60 {
            let began = Instant::now();
            let output = Command::new("runsc").arg("--version").output();
            if output.is_ok_and(|output| output.status.success()) {
                floor.0.push(began.elapsed().as_secs_f64() * 1000.0);
            }
        }
        line("`runsc --version` alone", &floor);
        println!("goal: gvisor warm <= 35 ms");
    }

    fn gvisor(runtime: &tokio::runtime::Runtime, host: &JailHost) {
        let jail = Gvisor::new(host);
        if let Err(unavailable) = jail.offers(IsolationLevel::Strict) {
            return println!("gvisor: not measured, {unavailable}");
        }
        let mut figures = Figures::default();
        runtime.block_on(async {
            for _ in 0..20 {
                let began = Instant::now();
                jailed(&jail, "true").await;
                figures.0.push(began.elapsed().as_secs_f64() * 1000.0);
            }
        });
        println!(
            "true       gvisor, cold                 {:>9.1} {:>9.1}",
            figures.at(0.5),
            figures.at(0.95)
        );
    }

    fn at_once(runtime: &tokio::runtime::Runtime, jails: &[(&str, Arc<dyn Jail>)]) {
        for (name, jail) in &jails[..2] {
            let began = Instant::now();
            runtime.block_on(async {
                let all: Vec<_> = (0..100)
                    .map(|_| {
                        let jail = Arc::clone(jail);
                        tokio::spawn(async move { jailed(&*jail, "true").await })
                    })
                    .collect();
                for one in all {
                    one.await.unwrap();
                }
            });
            println!("100 at once in {name}: {:.0} ms", began.elapsed().as_secs_f64() * 1000.0);
        }
    }
}
