//! A process that is killed in the middle of a change: every file is whole, and after the next start all is old or
//! all is new.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests say what they need"
)]

mod common;

use common::{files, new_id, tree};
use haft_files::Keep;
use haft_sdk::files::{Change, ChangeSet, Expect, Reader, Workspace as _};
use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const CHILD: &str = "HAFT_TEST_CRASH_CHILD";

/// What the child does: three files changed, one made in a new folder, one deleted, one moved.
fn set() -> ChangeSet {
    let write = |path: &str, text: String| Change::Write {
        path: path.into(),
        expect: Expect::Anything,
        bytes: text.into_bytes(),
        like: None,
    };
    ChangeSet {
        by: new_id(),
        reader: Reader { tenant: "local".into(), conversation: "c".into() },
        summary: "three files at once".into(),
        changes: vec![
            write("a.txt", "new a\n".repeat(5000)),
            write("b/b.txt", "new b\n".repeat(5000)),
            write("new/folder/c.txt", "new c\n".repeat(5000)),
            Change::Delete { path: "gone.txt".into(), expect: Expect::Anything },
            Change::Move { from: "here.txt".into(), to: "there.txt".into(), replace: true },
        ],
    }
}

fn lay_out(root: &Path) {
    fs::create_dir(root.join("b")).unwrap();
    for (path, text) in [
        ("a.txt", "old a\n"),
        ("b/b.txt", "old b\n"),
        ("gone.txt", "gone\n"),
        ("here.txt", "here\n"),
        ("there.txt", "there\n"),
    ] {
        fs::write(root.join(path), text.repeat(5000)).unwrap();
    }
}

/// Not a test by itself: the process that is killed.
#[test]
fn child() {
    let Ok(plan) = env::var(CHILD) else { return };
    let [root, state, die_at]: [&str; 3] = plan.split('|').collect::<Vec<_>>().try_into().unwrap();
    let die_at: usize = die_at.parse().unwrap();
    let mut files = files(Path::new(root), Path::new(state), Keep::default());
    let passed = AtomicUsize::new(0);
    files.at_points(Arc::new(move |point| {
        println!("\npoint {point}");
        if passed.fetch_add(1, Ordering::Relaxed) == die_at {
            // No unwinding, no clean-up: the process is gone in the middle of it.
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }));
    files.change(set()).unwrap();
    println!("\nanswered");
}

#[test]
fn killed_at_every_point_all_is_old_or_all_is_new() {
    let expected = |made: bool| {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        lay_out(root.path());
        if made {
            files(root.path(), state.path(), Keep::default()).change(set()).unwrap();
        }
        tree(root.path())
    };
    let (old, new) = (expected(false), expected(true));
    let mut points = BTreeSet::new();
    let (mut kills, mut taken_back) = (0, 0);
    for die_at in 0.. {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        lay_out(root.path());
        let output = Command::new(env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{}|{}|{die_at}", root.path().display(), state.path().display()))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        points.extend(text.lines().filter_map(|line| line.strip_prefix("point ")).map(str::to_owned));
        if output.status.success() {
            assert!(text.contains("answered"));
            assert_eq!(tree(root.path()), new);
            break;
        }
        assert_eq!(output.status.signal(), Some(9), "{text}");
        kills += 1;
        // Right after the kill, before anything is taken back: no file is half of something.
        for line in tree(root.path()).iter().filter(|line| !line.contains(".haft-") && !line.ends_with('/')) {
            assert!(old.contains(line) || new.contains(line), "half a file at point {die_at}: {line:.40}");
        }
        // The next start, in a process that has other roots.
        let elsewhere = tempfile::tempdir().unwrap();
        let next = files(elsewhere.path(), state.path(), Keep::default());
        let recovered = next.recover().unwrap();
        taken_back += recovered.len();
        assert!(recovered.iter().all(|set| set.left.is_empty() && set.problem.is_none()), "{recovered:?}");
        let now = tree(root.path());
        assert!(now == old || now == new, "point {die_at}: {now:.2000?}");
        assert_eq!(now == new, text.contains("point done"), "new exactly where it was done");
        assert!(next.recover().unwrap().is_empty(), "once");
        assert_eq!(fs::read_dir(state.path().join("changes/open")).unwrap().count(), 0);
    }
    let expected =
        ["carried out", "done", "folder", "image", "manifest", "name", "stage"].map(str::to_owned).into();
    assert_eq!(points, expected, "every point was passed");
    assert!(kills >= 18 && taken_back >= 10, "{kills} kills, {taken_back} taken back");
    println!("{kills} kills, {taken_back} sets taken back");
}

#[test]
fn a_change_of_a_live_process_is_left_alone() {
    let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    lay_out(root.path());
    let mut first = files(root.path(), state.path(), Keep::default());
    let other = Arc::new(files(root.path(), state.path(), Keep::default()));
    first.at_points(Arc::new(move |_| assert!(other.recover().unwrap().is_empty())));
    assert_eq!(first.change(set()).unwrap().len(), 6);
}

#[test]
fn what_somebody_else_changed_after_the_crash_is_left_alone() {
    let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    lay_out(root.path());
    // Cut right before the end.
    let output = Command::new(env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{}|{}|14", root.path().display(), state.path().display()))
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(9));
    let touched = root.path().join("a.txt");
    fs::write(&touched, "a person's own work").unwrap();
    let recovered = files(root.path(), state.path(), Keep::default()).recover().unwrap();
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].left, [touched.canonicalize().unwrap()]);
    assert_eq!(fs::read_to_string(&touched).unwrap(), "a person's own work");
    assert!(fs::read_to_string(root.path().join("b/b.txt")).unwrap().starts_with("old b"));
}
