//! That guests run at all, and end as they should: output, input, terminals, limits, metering, violations.

use crate::world::{House, block_on, jails, keeping, run, sh};
use haft_core::{
    ErrorCode, IsolationLevel, Limits,
    port::{GuestSignal, GuestSpec, GuestStdin, Preset, TerminalSize},
};
use libtest_mimic::Trial;
use std::{
    fs,
    time::{Duration, Instant},
};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for jail in jails() {
        let mut add = |name: &str, test: fn(&'static str)| {
            trials.push(Trial::test(format!("basics::{jail}::{name}"), move || {
                test(jail);
                Ok(())
            }));
        };
        add("says_hello", says_hello);
        add("reads_its_input", reads_its_input);
        add("has_no_input", has_no_input);
        add("takes_input_while_it_runs", takes_input_while_it_runs);
        if ["process", "namespace"].contains(&jail) {
            add("has_a_terminal", has_a_terminal);
        }
        add("has_no_terminal", has_no_terminal);
        add("takes_signals", takes_signals);
        add("tidies_up_in_its_grace", tidies_up_in_its_grace);
        add("is_killed_after_its_grace", is_killed_after_its_grace);
        add("writes_where_it_may", writes_where_it_may);
        add("has_a_small_environment", has_a_small_environment);
        add("a_missing_program_is_told", a_missing_program_is_told);
        add("a_missing_interpreter_is_named", a_missing_interpreter_is_named);
        add("a_forbidden_system_call_is_a_violation", a_forbidden_system_call_is_a_violation);
        add("use_is_metered", use_is_metered);
        add("a_large_request_arrives", a_large_request_arrives);
        add("a_hundred_at_once", a_hundred_at_once);
        add("honest_modes_are_set", honest_modes_are_set);
        if jail == "process" {
            add("modes_of_hafts_folders_are_put_back", modes_of_hafts_folders_are_put_back);
        }
        if jail == "namespace" {
            add("its_first_process_is_held_too", its_first_process_is_held_too);
        }
        if crate::world::is_root() {
            // They are in the home of the one who runs the tests.
            add("programs_of_presets_run", programs_of_presets_run);
        }
    }
    trials
}

fn says_hello(jail: &'static str) {
    let house = House::new();
    let (end, heard) = block_on(run(&*house.jail(jail), sh("echo hello; echo oops >&2; exit 3"))).unwrap();
    assert_eq!((heard.out.as_str(), heard.err.as_str(), end.exit_code), ("hello\n", "oops\n", Some(3)));
    assert_eq!(end.error().unwrap().code, ErrorCode::NonZeroExit);
    assert!(end.violations.is_empty(), "{:?}", end.violations);
}

fn reads_its_input(jail: &'static str) {
    let house = House::new();
    let stdin = GuestStdin::Bytes(vec![b'x'; 300_000]);
    let (end, heard) = block_on(run(&*house.jail(jail), GuestSpec { stdin, ..sh("wc -c") })).unwrap();
    assert_eq!((heard.out.trim(), end.exit_code), ("300000", Some(0)));
}

fn has_no_input(jail: &'static str) {
    let house = House::new();
    let (_, heard) = block_on(run(&*house.jail(jail), sh("cat; echo end"))).unwrap();
    assert_eq!(heard.out, "end\n");
    if ["process", "namespace"].contains(&jail) {
        // A pipe would be searched by programs that search what they are given.
        let (end, _) = block_on(run(&*house.jail(jail), sh("[ -c /dev/stdin ]"))).unwrap();
        assert_eq!(end.exit_code, Some(0));
    }
}

fn takes_input_while_it_runs(jail: &'static str) {
    let house = House::new();
    block_on(async {
        let spec = GuestSpec {
            stdin: GuestStdin::Stream,
            ..sh("while read line; do echo got $line; done; echo end")
        };
        let mut guest = house.jail(jail).start(spec).await.unwrap();
        let control = guest.control();
        let (sink, heard) = keeping();
        let waiting = tokio::spawn(async move { guest.wait(sink).await });
        control.write(b"one\n").await.unwrap();
        let soon = Instant::now() + Duration::from_secs(5);
        while heard.lock().unwrap().out != "got one\n" {
            assert!(Instant::now() < soon, "{:?}", heard.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        control.write(b"two\n").await.unwrap();
        control.close_stdin();
        assert_eq!(waiting.await.unwrap().unwrap().exit_code, Some(0));
        assert_eq!(heard.lock().unwrap().out, "got one\ngot two\nend\n");
        assert!(control.write(b"three\n").await.is_err());
    });
}

fn has_a_terminal(jail: &'static str) {
    let house = House::new();
    block_on(async {
        let size = TerminalSize { rows: 33, columns: 77 };
        let script =
            "tty -s && echo terminal; stty size; trap 'stty size; exit 0' WINCH; echo ready; sleep 10 & wait";
        let spec = GuestSpec { terminal: Some(size), ..sh(script) };
        let mut guest = house.jail(jail).start(spec).await.unwrap();
        let control = guest.control();
        let (sink, heard) = keeping();
        let waiting = tokio::spawn(async move { guest.wait(sink).await });
        let soon = Instant::now() + Duration::from_secs(5);
        while !heard.lock().unwrap().out.contains("ready") {
            assert!(Instant::now() < soon, "{:?}", heard.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        control.resize(TerminalSize { rows: 11, columns: 22 }).unwrap();
        let end = waiting.await.unwrap().unwrap();
        let heard = heard.lock().unwrap().out.replace("\r\n", "\n");
        assert_eq!((heard.as_str(), end.exit_code), ("terminal\n33 77\nready\n11 22\n", Some(0)));
    });
}

fn has_no_terminal(jail: &'static str) {
    let house = House::new();
    let (end, _) = block_on(run(&*house.jail(jail), sh("exec < /dev/tty"))).unwrap();
    assert_ne!(end.exit_code, Some(0));
}

fn takes_signals(jail: &'static str) {
    let house = House::new();
    block_on(async {
        let spec = sh("trap 'echo interrupted; exit 7' INT; echo ready; while :; do sleep 0.05; done");
        let mut guest = house.jail(jail).start(spec).await.unwrap();
        let control = guest.control();
        let (sink, heard) = keeping();
        let waiting = tokio::spawn(async move { guest.wait(sink).await });
        while heard.lock().unwrap().out != "ready\n" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        control.signal(GuestSignal::Interrupt).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().exit_code, Some(7));
    });
}

fn stopped(
    jail: &'static str,
    script: &str,
    grace: Duration,
) -> (Option<i32>, Option<i32>, String, Duration) {
    let house = House::new();
    block_on(async {
        let spec = GuestSpec { grace, ..sh(script) };
        let mut guest = house.jail(jail).start(spec).await.unwrap();
        let control = guest.control();
        let (sink, heard) = keeping();
        let waiting = tokio::spawn(async move { guest.wait(sink).await });
        while !heard.lock().unwrap().out.contains("ready\n") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let asked = Instant::now();
        control.stop();
        let end = waiting.await.unwrap().unwrap();
        let out = heard.lock().unwrap().out.clone();
        (end.exit_code, end.signal, out, asked.elapsed())
    })
}

fn tidies_up_in_its_grace(jail: &'static str) {
    let script = "trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let (code, _, out, took) = stopped(jail, script, Duration::from_secs(10));
    assert_eq!((code, out.as_str()), (Some(0), "ready\ntidy\n"));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

fn is_killed_after_its_grace(jail: &'static str) {
    let script = "trap '' TERM INT HUP; echo ready; while :; do sleep 0.05; done";
    let (code, signal, _, took) = stopped(jail, script, Duration::from_millis(300));
    assert_eq!((code, signal), (None, Some(9)));
    assert!(took >= Duration::from_millis(290) && took < Duration::from_secs(5), "{took:?}");
}

fn writes_where_it_may(jail: &'static str) {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let fixed = tempfile::tempdir().unwrap();
    let mut spec = sh(&format!("echo new > file; mkdir -p a/b; echo x > {}/no", fixed.path().display()));
    spec.writable = vec![folder.path().to_owned()];
    spec.readable = vec![fixed.path().to_owned()];
    let (end, heard) = block_on(run(&*house.jail(jail), spec)).unwrap();
    assert_ne!(end.exit_code, Some(0), "{heard:?}");
    assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "new\n");
    assert!(folder.path().join("a/b").is_dir() && !fixed.path().join("no").exists());
}

fn has_a_small_environment(jail: &'static str) {
    let house = House::new();
    let mut spec = sh("env | sed 's/=.*//' | sort | tr '\\n' ' '; cd && echo ok > kept && cat kept");
    spec.environment.insert("DECLARED".into(), "1".into());
    let (_, heard) = block_on(run(&*house.jail(jail), spec)).unwrap();
    let names = heard.out.replace("OLDPWD ", "").replace("_ ", "");
    assert_eq!(names, "DECLARED HOME PATH PWD TMPDIR ok\n");
}

fn a_missing_program_is_told(jail: &'static str) {
    let house = House::new();
    let spec = GuestSpec { level: IsolationLevel::Strict, ..GuestSpec::command(["no-such-program"]) };
    let error = block_on(run(&*house.jail(jail), spec)).unwrap_err();
    assert_eq!(error.message, "there is no program `no-such-program` in the jail");
}

/// The kernel says of a script without its interpreter that the script is not there.
fn a_missing_interpreter_is_named(jail: &'static str) {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let start = |first: &str| {
        fs::write(&script, format!("{first}\necho ran\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let mut spec = GuestSpec::command([script.to_str().unwrap()]);
        spec.level = IsolationLevel::Strict;
        spec.readable = vec![folder.path().to_owned()];
        block_on(run(&*house.jail(jail), spec))
    };
    let (_, heard) = start("#!/bin/sh").unwrap();
    assert_eq!(heard.out, "ran\n", "the control: with its interpreter it runs");
    let error = start("#!/opt/no-such/python9 -u").unwrap_err();
    let said = format!(
        "`{}` cannot be started: its first line names the interpreter `/opt/no-such/python9`, which is not in the jail",
        script.display()
    );
    assert_eq!(error.message, said);
}

fn a_forbidden_system_call_is_a_violation(jail: &'static str) {
    let house = House::new();
    let program = crate::world::own_program();
    let mut spec = GuestSpec::command([program.to_str().unwrap(), "--reboot"]);
    spec.level = IsolationLevel::Strict;
    spec.readable = vec![program];
    let (end, _) = block_on(run(&*house.jail(jail), spec)).unwrap();
    if jail == "gvisor" {
        // There the call is answered by the guest's own kernel.
        return assert_eq!((end.exit_code, end.violations.len()), (Some(1), 0), "{end:?}");
    }
    // A runtime tells of a program that a signal ended by adding 128.
    let told = (end.signal, end.exit_code);
    assert!([(Some(libc::SIGSYS), None), (None, Some(128 + libc::SIGSYS))].contains(&told), "{end:?}");
    assert_eq!(end.violations[0].kind, "SandboxEscapeAttempt");
    assert!(end.violations[0].was_blocked);
}

fn use_is_metered(jail: &'static str) {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in"), vec![7; 3 << 20]).unwrap();
    let spec =
        GuestSpec { writable: vec![folder.path().to_owned()], ..sh("cat in > out; (cat in > out2) & wait") };
    let (end, heard) = block_on(run(&*house.jail(jail), spec)).unwrap();
    assert_eq!(end.exit_code, Some(0), "{heard:?}");
    let metrics = end.metrics;
    assert!(metrics.peak_memory_bytes.unwrap() > 100_000, "{metrics:?}");
    assert!(metrics.cpu_time_ms.unwrap() > 0.0 && metrics.wall_time_ms.unwrap() > 0.0, "{metrics:?}");
    assert!(metrics.bytes_read.unwrap() >= 6 << 20 && metrics.bytes_read.unwrap() < 7 << 20, "{metrics:?}");
    assert!(
        metrics.bytes_written.unwrap() >= 6 << 20 && metrics.bytes_written.unwrap() < 7 << 20,
        "{metrics:?}"
    );
    assert!(metrics.filesystem_operations.unwrap() > 20, "{metrics:?}");
}

fn a_large_request_arrives(jail: &'static str) {
    let house = House::new();
    let mut spec = sh("echo ${#LARGE}");
    spec.environment.insert("LARGE".into(), "x".repeat(120_000));
    let (_, heard) = block_on(run(&*house.jail(jail), spec)).unwrap();
    assert_eq!(heard.out, "120000\n");
}

fn a_hundred_at_once(jail: &'static str) {
    let house = House::new();
    block_on(async {
        let mut all = Vec::new();
        for number in 0..100 {
            let jail = house.jail(jail);
            all.push(tokio::spawn(async move {
                let (end, heard) = run(&*jail, sh(&format!("sleep 0.5; echo {number}"))).await.unwrap();
                assert_eq!((end.exit_code, heard.out), (Some(0), format!("{number}\n")));
            }));
        }
        for one in all {
            one.await.unwrap();
        }
    });
}

/// What build tools do to modes works; devices are used as ever.
fn honest_modes_are_set(jail: &'static str) {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let script = "set -e; echo 'echo ran' > tool; chmod 755 tool; sh -c ./tool; mkdir -m 1777 sticky; install -m 700 tool t2; \
                  cp -p tool t3; mkdir d; touch d/x; tar cf a.tar d tool; mkdir out; tar xpf a.tar -C out; ln -s tool link; \
                  umask 077; touch private; find tool t2 t3 out/tool private sticky -printf '%m %p\n'; \
                  echo x > /dev/null; echo x >> /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; \
                  ! echo x > /dev/full; cat";
    let spec = GuestSpec { writable: vec![folder.path().to_owned()], ..sh(script) };
    let (end, heard) = block_on(run(&*house.jail(jail), spec)).unwrap();
    let expected = "ran\n755 tool\n700 t2\n755 t3\n755 out/tool\n600 private\n1777 sticky\n3\n3\n";
    assert_eq!((heard.out.as_str(), end.exit_code), (expected, Some(0)), "{heard:?}");
}

/// Landlock does not keep a guest from changing them.
fn modes_of_hafts_folders_are_put_back(jail: &'static str) {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::new();
    let mode = || fs::metadata(house.state.path()).unwrap().permissions().mode() & 0o7777;
    fs::set_permissions(house.state.path(), fs::Permissions::from_mode(0o700)).unwrap();
    for changed in ["777", "000"] {
        let script = format!("chmod {changed} {} && echo changed", house.state.path().display());
        let (end, heard) = block_on(run(&*house.jail(jail), sh(&script))).unwrap();
        assert_eq!((heard.out.as_str(), mode()), ("changed\n", 0o700), "{heard:?}");
        assert_eq!(end.violations[0].kind, "SandboxEscapeAttempt", "{end:?}");
    }
}

/// It has no privileges and hardly any system calls once the guest runs, and does not tell where haft keeps its state.
fn its_first_process_is_held_too(jail: &'static str) {
    let house = House::new();
    let script = "for i in $(seq 200); do grep -q 'Seccomp:.2' /proc/1/status && break; sleep 0.01; done; \
                  grep -E '^(NoNewPrivs|Seccomp|CapEff|CapPrm):' /proc/1/status; tr '\\0' ' ' < /proc/1/cmdline";
    let (_, heard) = block_on(run(&*house.jail(jail), sh(script))).unwrap();
    let none = "0000000000000000";
    let expected =
        format!("CapPrm:\t{none}\nCapEff:\t{none}\nNoNewPrivs:\t1\nSeccomp:\t2\nhaft-jail-spawner ");
    assert_eq!(heard.out, expected, "{heard:?}");
}

fn programs_of_presets_run(jail: &'static str) {
    let home = std::path::PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    for (preset, installed, script) in [
        (Preset::Rust, ".cargo/bin/rustc", "rustc --version"),
        (Preset::Python, ".pyenv/shims/python3", "python3 -c 'print(1+1)'"),
        (Preset::Git, "", "git --version && git config --global --list >/dev/null || true"),
        (Preset::Node, ".nvm", "true"),
    ] {
        if !home.join(installed).exists() {
            haft_testkit::not_run(
                "programs_of_presets_run",
                &format!("{preset:?} is not installed for this user"),
            );
            continue;
        }
        let house = House::new();
        let limits = Limits { memory_bytes: Some(4 << 30), ..Limits::default() };
        let spec = GuestSpec { presets: vec![preset], limits, ..sh(script) };
        let (end, heard) = block_on(run(&*house.jail(jail), spec)).unwrap();
        assert_eq!(end.exit_code, Some(0), "{preset:?} {heard:?}");
    }
}
