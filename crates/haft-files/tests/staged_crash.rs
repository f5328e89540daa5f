//! A process that is killed while it applies what a command changed: after the next start all is old or all is new.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "tests say what they need"
)]

mod common;
#[path = "common/stage.rs"]
mod stage;

use haft_core::port::LayerMarks;
use haft_files::{Keep, StagedSet};
use haft_sdk::files::{Reader, Workspace as _};
use stage::{Op, Stage, apply, is_root, run, run_staged, snapshot};
use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const DIES: &str = "HAFT_TEST_STAGE_DIES";

#[test]
fn stage_child() {
    stage::child();
}

/// Every kind of step: a file replaced, made, deleted; a folder made, deleted, replaced, moved with changes in it;
/// other permissions and times.
fn program() -> Vec<Op> {
    let owned = str::to_owned;
    let mut ops = vec![
        Op::Write(owned("a"), owned("new a")),
        Op::Write(owned("new/deep/b"), owned("new b")),
        Op::Delete(owned("gone")),
        Op::Again(owned("again")),
        Op::Write(owned("folder/in"), owned("in")),
        Op::Mode(owned("folder"), 0o700),
        Op::Touch(owned("touched")),
        Op::Delete(owned("tree")),
    ];
    if is_root() {
        ops.extend([
            Op::Rename(owned("from"), owned("made/to")),
            Op::Write(owned("made/to/x"), owned("changed in it")),
        ]);
    }
    ops
}

fn lay_out(stage: &Stage) {
    let files = ["a", "gone", "again/old", "folder/old", "touched", "tree/x/y", "tree/z", "from/x", "from/y"];
    let ops: Vec<_> = files.iter().map(|path| Op::Write((*path).to_owned(), format!("old {path}"))).collect();
    run(&stage.root(), &ops);
}

/// Where a layer and a record are that cannot be renamed from and to the root: another file system.
fn elsewhere() -> Option<tempfile::TempDir> {
    use std::os::unix::fs::MetadataExt as _;
    let (here, there) = (stage::base(), tempfile::tempdir().unwrap());
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    (device(here.path()) != device(there.path())).then_some(there)
}

fn set(base: &Path, since: (i64, u32)) -> StagedSet {
    let marks = if is_root() { LayerMarks::Trusted } else { LayerMarks::User };
    let (root, upper) = (base.join("root"), base.join("layers/upper"));
    let root = haft_core::port::StagedRoot { root, upper, marks, hidden: Vec::new(), since };
    StagedSet { roots: vec![root], rules: haft_files::StageRules::default() }
}

/// Not a test by itself: the process that is killed.
#[test]
fn dies() {
    let Ok(plan) = env::var(DIES) else { return };
    let [base, state, since, die_at]: [&str; 4] = plan.split('|').collect::<Vec<_>>().try_into().unwrap();
    let (seconds, nanos) = since.split_once('.').unwrap();
    let base = Path::new(base);
    let mut files = common::files(&base.join("root"), Path::new(state), Keep::default());
    let (passed, die_at) = (AtomicUsize::new(0), die_at.parse::<usize>().unwrap());
    files.at_points(Arc::new(move |point| {
        println!("\npoint {point}");
        if passed.fetch_add(1, Ordering::Relaxed) == die_at {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }));
    let set = set(base, (seconds.parse().unwrap(), nanos.parse().unwrap()));
    apply(&files, &set).unwrap();
    println!("\nanswered");
}

/// What was noted as put back. Without that, haft's own way back would count as a change of somebody else.
fn restored(files: &haft_files::Files, state: &Path) -> haft_files::Restored {
    let mut all = haft_files::Restored::new();
    for entry in fs::read_dir(state.join("changes/restored")).into_iter().flatten() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        all.extend(files.restored(name.strip_suffix(".json").unwrap().parse().unwrap()).unwrap());
    }
    all
}

/// Kills at every point. With `state` elsewhere, everything is copied.
fn sweep(state_of: &dyn Fn(&Stage) -> PathBuf, expected_points: &[&str]) {
    let laid = |with: bool| {
        let stage = Stage::new();
        lay_out(&stage);
        if with {
            run(&stage.root(), &program());
        }
        snapshot(&stage.root())
    };
    let (old, new) = (laid(false), laid(true));
    let mut points = BTreeSet::new();
    let (mut kills, mut taken_back) = (0, 0);
    for die_at in 0.. {
        let stage = Stage::new();
        lay_out(&stage);
        let since = stage.now();
        run_staged(&[(stage.base.path().to_path_buf(), program())]).unwrap();
        let base = stage.base.path().canonicalize().unwrap();
        let state = state_of(&stage);
        let plan = format!("{}|{}|{}.{}|{die_at}", base.display(), state.display(), since.0, since.1);
        let output = Command::new(env::current_exe().unwrap())
            .args(["dies", "--exact", "--nocapture", "--test-threads=1"])
            .env(DIES, plan)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        points.extend(text.lines().filter_map(|line| line.strip_prefix("point ")).map(str::to_owned));
        if output.status.success() {
            assert!(text.contains("answered"));
            assert_eq!(snapshot(&stage.root()), new);
            break;
        }
        assert_eq!(output.status.signal(), Some(9), "{text} {}", String::from_utf8_lossy(&output.stderr));
        kills += 1;
        let recovered = haft_files::take_back_cut(&state.join("changes")).unwrap();
        taken_back += recovered.len();
        assert!(recovered.iter().all(|set| set.left.is_empty() && set.problem.is_none()), "{recovered:?}");
        let now = snapshot(&stage.root());
        let is_done = text.contains("point done");
        assert_eq!(now, *if is_done { &new } else { &old }, "killed at {die_at}: {text}");
        assert!(haft_files::take_back_cut(&state.join("changes")).unwrap().is_empty(), "once");
        assert_eq!(fs::read_dir(state.join("changes/open")).unwrap().count(), 0);
        let files = common::files(&stage.root(), &state, Keep::default());
        match is_done {
            // What was made can be undone.
            true => {
                let made = fs::read_dir(state.join("changes/done")).unwrap().next().unwrap().unwrap();
                let by = made.file_name().into_string().unwrap();
                let by = by.split_once('.').unwrap().0.parse().unwrap();
                let reader = Reader { tenant: "local".into(), conversation: "c".into() };
                files.undo(by, common::new_id(), &reader).unwrap();
                assert_eq!(snapshot(&stage.root()), old);
            }
            // What was taken back can be applied: its layer is as it was.
            false => {
                let mut set = set(&base, since);
                set.rules.restored = restored(&files, &state).into();
                apply(&files, &set).unwrap();
                assert_eq!(snapshot(&stage.root()), new, "killed at {die_at}");
            }
        }
    }
    println!("{kills} kills, {taken_back} sets taken back, {points:?}");
    for point in expected_points {
        assert!(points.contains(*point), "{point} in {points:?}");
    }
    assert!(kills >= 14 && taken_back >= 10, "{kills} kills, {taken_back} taken back");
}

#[test]
fn killed_at_every_point_of_applying_all_is_old_or_all_is_new() {
    if let Err(why) = stage::is_possible() {
        return haft_testkit::not_run("killed_at_every_point_of_applying_all_is_old_or_all_is_new", &why);
    }
    sweep(&|stage| stage.path("state"), &["manifest", "kept", "put", "meta", "carried out", "done"]);
}

#[test]
fn killed_at_every_point_with_the_record_on_another_file_system() {
    let test = "killed_at_every_point_with_the_record_on_another_file_system";
    if let Err(why) = stage::is_possible() {
        return haft_testkit::not_run(test, &why);
    }
    let Some(elsewhere) = elsewhere() else { return haft_testkit::not_run(test, "there is one file system") };
    let number = AtomicUsize::new(0);
    let state_of = |_: &Stage| elsewhere.path().join(number.fetch_add(1, Ordering::Relaxed).to_string());
    sweep(&state_of, &["image", "manifest", "kept", "put", "carried out", "done"]);
}

/// Somebody who changes a file after haft has put it back is in conflict, as before.
#[test]
fn what_haft_put_back_is_no_conflict_and_what_others_change_after_that_is() {
    let test = "what_haft_put_back_is_no_conflict_and_what_others_change_after_that_is";
    if let Err(why) = stage::is_possible() {
        return haft_testkit::not_run(test, &why);
    }
    for meanwhile in [None, Some("a"), Some("gone"), Some("untouched/new")] {
        let stage = Stage::new();
        lay_out(&stage);
        fs::create_dir(stage.root().join("untouched")).unwrap();
        let since = stage.now();
        run_staged(&[(stage.base.path().to_path_buf(), program())]).unwrap();
        let base = stage.base.path().canonicalize().unwrap();
        let state = stage.path("state");
        // Killed when everything is carried out, and nothing counts yet.
        let number = if is_root() { 14 } else { 10 };
        let plan = format!("{}|{}|{}.{}|{number}", base.display(), state.display(), since.0, since.1);
        let output = Command::new(env::current_exe().unwrap())
            .args(["dies", "--exact", "--nocapture", "--test-threads=1"])
            .env(DIES, plan)
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(9));
        haft_files::take_back_cut(&state.join("changes")).unwrap();
        let files = common::files(&stage.root(), &state, Keep::default());
        let mut plain = set(&base, since);
        assert!(
            !plain.look().unwrap().conflicts.is_empty(),
            "the control: without the note it is in conflict"
        );
        plain.rules.restored = restored(&files, &state).into();
        let diff = plain.diff(1 << 16).unwrap();
        assert!(diff.contains("+new a"), "{diff}");
        if let Some(name) = meanwhile {
            fs::write(stage.root().join(name), "of somebody else").unwrap();
        }
        let conflicts = plain.look().unwrap().conflicts;
        let is_touched = meanwhile.is_some_and(|name| !name.starts_with("untouched"));
        assert_eq!(!conflicts.is_empty(), is_touched, "{meanwhile:?}: {conflicts:?}");
        assert_eq!(apply(&files, &plain).is_err(), is_touched);
    }
}

/// The layer is on another file system than the folder, so its files are copied; and that one is full.
#[test]
fn a_full_disk_changes_nothing() {
    let test = "a_full_disk_changes_nothing";
    if !is_root() {
        return haft_testkit::not_run(test, "only root can mount a small file system");
    }
    if env::var_os("HAFT_TEST_STAGE_FULL").is_none() {
        // In a mount namespace of its own, so that nothing is left of it.
        let output = Command::new("unshare")
            .arg("-m")
            .arg(env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env("HAFT_TEST_STAGE_FULL", "1")
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        return assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
    let stage = Stage::new();
    let status = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "small"])
        .arg(stage.root())
        .status()
        .unwrap();
    assert!(status.success());
    lay_out(&stage);
    let before = snapshot(&stage.root());
    let since = stage.now();
    let upper = stage.path("layers/upper");
    fs::write(upper.join("a"), "new a").unwrap();
    fs::create_dir(upper.join("many")).unwrap();
    for number in 0..40 {
        fs::write(upper.join(format!("many/{number}")), vec![b'x'; 16 << 10]).unwrap();
    }
    let files = stage.files();
    let error = apply(&files, &stage.set(since)).unwrap_err();
    assert!(error.contains("Nothing was changed"), "{error}");
    assert_eq!(snapshot(&stage.root()), before);
    assert_eq!(fs::read_dir(stage.path("state/changes/open")).unwrap().count(), 0);
    // With less it fits.
    for number in 8..40 {
        fs::remove_file(upper.join(format!("many/{number}"))).unwrap();
    }
    apply(&files, &stage.set(since)).unwrap();
    assert_eq!(fs::read_to_string(stage.root().join("a")).unwrap(), "new a");
    assert_eq!(fs::read_dir(stage.root().join("many")).unwrap().count(), 8);
}
