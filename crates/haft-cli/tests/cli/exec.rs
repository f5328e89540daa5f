//! `haft exec`: any program in a jail, as if it were started without one.

use crate::{
    screen::Screen,
    support::{Place, Said},
};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::Command,
    time::{Duration, Instant},
};

/// A place where programs can be put into a jail; `None` where they cannot be.
fn place(name: &str) -> Option<Place> {
    let place = Place::new();
    let said = place.haft(&["exec", "--", "true"]);
    if said.code != 0 {
        haft_testkit::not_run(&format!("exec::{name}"), said.shown().trim());
        return None;
    }
    Some(place)
}

fn sh(place: &Place, flags: &[&str], line: &str) -> Said {
    let args: Vec<&str> =
        ["exec"].into_iter().chain(flags.iter().copied()).chain(["--", "sh", "-c", line]).collect();
    place.haft(&args)
}

#[test]
fn streams_and_the_exit_code_pass_through() {
    let Some(place) = place("streams_and_the_exit_code_pass_through") else { return };
    let said = sh(&place, &[], "echo out; echo err >&2; exit 7");
    assert_eq!((said.code, &*said.stdout, &*said.stderr), (7, "out\n", "err\n"));
    let said = place.haft_with(&["exec", "--", "cat"], "line\n".repeat(50_000));
    assert_eq!((said.code, said.stdout.len()), (0, 250_000));
    assert_eq!(sh(&place, &[], "kill -9 $$").code, 137);
    // Without `--`, too: what follows the program is the program's.
    assert_eq!(place.haft(&["exec", "sh", "-c", "exit 4"]).code, 4);
    let typo = place.haft(&["exec", "--hots", "a.example", "true"]);
    assert!(typo.code == 2 && typo.stderr.contains("--host"), "{typo:?}");
    let missing = place.haft(&["exec", "--", "no-such-program"]);
    assert!(missing.code == 127 && missing.stderr.contains("no-such-program"), "{missing:?}");
    let unset = sh(&place, &["--env", "NOT_SET"], "true");
    assert!(unset.code == 2 && unset.stderr.contains("--env NOT_SET=VALUE"), "{unset:?}");
    // Bytes that are no text are passed on as they are.
    let bytes = place.program(&["exec", "--", "printf", r"\377\000\001"]).output().unwrap();
    assert_eq!(bytes.stdout, [0xff, 0, 1]);
}

/// The same line does harm without a jail, and none in it.
#[test]
fn the_program_keeps_to_the_folder_and_reaches_nothing_else() {
    let Some(place) = place("the_program_keeps_to_the_folder") else { return };
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    let attack = format!(
        "echo changed > {0}; echo made > here.txt; echo '[core]' > .git/config; echo $SECRET_TOKEN; cat .env",
        victim.display()
    );
    let prepare = || {
        fs::write(&victim, "precious").unwrap();
        fs::create_dir_all(place.work().join(".git")).unwrap();
        fs::write(place.work().join(".git/config"), "mine").unwrap();
        fs::write(place.work().join(".env"), "KEY=hidden").unwrap();
    };
    prepare();
    let control =
        place.command("/bin/sh").args(["-c", &attack]).env("SECRET_TOKEN", "s3cret").output().unwrap();
    let control = String::from_utf8_lossy(&control.stdout).into_owned();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "changed\n");
    assert!(control.contains("s3cret") && control.contains("hidden"), "{control}");

    prepare();
    let mut haft = place.program(&["exec", "--", "sh", "-c", &attack]);
    let said = Said::of(haft.env("SECRET_TOKEN", "s3cret").output().unwrap());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{said:?}");
    assert_eq!(fs::read_to_string(place.work().join(".git/config")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(place.work().join("here.txt")).unwrap(), "made\n");
    assert!(!said.stdout.contains("s3cret") && !said.stdout.contains("hidden"), "{said:?}");
}

#[test]
fn flags_grant_more_for_this_program_alone() {
    let Some(place) = place("flags_grant_more") else { return };
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(read.path().join("text"), "to read").unwrap();
    let (w, r) = (write.path().to_str().unwrap(), read.path().to_str().unwrap());
    let line = format!("echo x > {w}/made; cat {r}/text; echo x > {r}/made; echo \"$TOKEN $OTHER_KEY\"");
    let mut haft = place.program(&[
        "exec",
        "--write",
        w,
        "--read",
        r,
        "--env",
        "TOKEN",
        "--env",
        "OTHER_KEY=given",
        "--",
        "sh",
        "-c",
        &line,
    ]);
    let said = Said::of(haft.env("TOKEN", "passed").output().unwrap());
    assert!(write.path().join("made").exists() && !read.path().join("made").exists(), "{said:?}");
    assert!(said.stdout.contains("to read") && said.stdout.contains("passed given"), "{said:?}");
    let without = sh(&place, &[], &line);
    assert!(!without.stdout.contains("to read"), "{without:?}");

    let read_only = sh(&place, &["--profile", "read-only"], "touch made; ls");
    assert!(!place.work().join("made").exists() && read_only.code == 0, "{read_only:?}");
    place.own_config("[tools.approval]\ndenylist = ['exec_program']\n");
    assert_eq!(sh(&place, &[], "true").code, 3, "what the owner denies is denied");
}

#[test]
fn changes_of_a_staged_program_wait_for_a_decision() {
    let Some(place) = place("changes_of_a_staged_program") else { return };
    let said = sh(&place, &["--staged"], "echo new > made.txt");
    if said.stderr.contains("cannot be kept apart") {
        haft_testkit::not_run("exec::changes_of_a_staged_program", said.stderr.trim());
        return;
    }
    assert!(said.code == 5 && said.stderr.contains("haft apply"), "{said:?}");
    assert!(!place.work().join("made.txt").exists());
    let id =
        said.stderr.split("`haft apply ").nth(1).and_then(|rest| rest.split('`').next()).unwrap().to_owned();
    assert_eq!(place.haft(&["apply", &id]).code, 0);
    assert_eq!(fs::read_to_string(place.work().join("made.txt")).unwrap(), "new\n");
}

/// What is sent to haft reaches the program, which decides what to do about it.
#[test]
fn signals_are_passed_on() {
    let Some(place) = place("signals_are_passed_on") else { return };
    for (signal, code) in [("TERM", 41), ("INT", 42), ("HUP", 43)] {
        let line = format!("trap 'exit {code}' {signal}; echo ready > ready; while :; do sleep 0.1; done");
        let _ = fs::remove_file(place.work().join("ready"));
        let mut child = place.program(&["exec", "--", "sh", "-c", &line]).spawn().unwrap();
        let begun = Instant::now();
        while !place.work().join("ready").exists() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(20));
        }
        let sent =
            Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
}

/// Keys, the size of the window and its changes, and a terminal that is afterwards what it was before.
#[test]
fn a_terminal_passes_through() {
    let Some(place) = place("a_terminal_passes_through") else { return };
    let Some(screen) = Screen::new(&place, "exec", 90, &[]) else { return };
    screen.line("stty -g > before; clear");
    screen.line("\"$haft\" exec -- sh -c 'trap \"echo got-int\" INT; stty size; read a || read a; echo \"<$a>\"; stty size; exit 9'");
    screen.until("40 90");
    screen.press("C-c");
    screen.until("got-int");
    screen.resize(70, 30);
    screen.line("typed");
    let shown = screen.until("30 70");
    assert!(shown.contains("<typed>"), "{shown}");
    screen.line("code=$?; stty -g > after; echo \"code $code\"");
    screen.until("code 9");
    let read = |name: &str| fs::read_to_string(place.work().join(name)).unwrap();
    assert_eq!(read("before"), read("after"), "the terminal is as it was");
}

/// An agent has a folder of its own, its owner's settings, its key, and no way to its owner's installation.
#[test]
fn an_agent_has_a_folder_of_its_own() {
    let Some(place) = place("an_agent_has_a_folder_of_its_own") else { return };
    let owners = place.home().join(".claude");
    fs::create_dir_all(&owners).unwrap();
    fs::write(owners.join("settings.json"), "{\"model\": \"of-the-owner\"}").unwrap();
    fs::write(owners.join("history"), "private").unwrap();
    let bin = place.home().join("bin");
    fs::create_dir(&bin).unwrap();
    let program = bin.join("claude");
    let script = format!(
        "#!/bin/sh\ncat $CLAUDE_CONFIG_DIR/settings.json\necho \"key $ANTHROPIC_API_KEY $1\"\n\
         echo '{{}}' > $CLAUDE_CONFIG_DIR/.claude.json && echo hooks > $CLAUDE_CONFIG_DIR/settings.json\n\
         cat {0}/history; echo x > {0}/settings.json\n",
        owners.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    for _ in 0..2 {
        let mut haft = place.program(&["exec", "--", "claude", "--resume"]);
        let said =
            Said::of(haft.env("PATH", &path).env("ANTHROPIC_API_KEY", "of-the-agent").output().unwrap());
        // The second time, too: what the agent wrote in place of the settings is gone.
        assert!(said.stdout.contains("of-the-owner"), "{said:?}");
        assert!(said.stdout.contains("key of-the-agent --resume"), "{said:?}");
        assert!(!said.stdout.contains("private"), "{said:?}");
    }
    assert_eq!(fs::read_to_string(owners.join("settings.json")).unwrap(), "{\"model\": \"of-the-owner\"}");
    let own = place.home().join(".local/share/haft/agents/claude/config/.claude.json");
    assert_eq!(fs::read_to_string(own).unwrap(), "{}\n", "its own state stays");
}

#[test]
fn what_ran_is_on_record() {
    let Some(place) = place("what_ran_is_on_record") else { return };
    assert_eq!(sh(&place, &[], "exit 3").code, 3);
    let runs = place.haft(&["runs", "list", "--json"]);
    assert!(runs.stdout.contains("exec_program") && runs.stdout.contains("NON_ZERO_EXIT"), "{runs:?}");
    assert_eq!(place.haft(&["audit", "verify"]).code, 0);
}
