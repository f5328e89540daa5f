//! Random sets of changes: undoing gives back the tree as it was, with its permissions; so does a kill in the middle.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "tests say what they need"
)]

mod common;

use common::{Ground, files, new_id};
use haft_files::Keep;
use haft_sdk::files::{Change, ChangeSet, Expect, Reader, Workspace as _};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abc]", 1..4).prop_map(|names| names.join("/"))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (path(), "[xy\n]{0,6}").prop_map(|(path, text)| Change::Write {
            path, expect: Expect::Anything, bytes: text.into_bytes(), like: None }),
        2 => path().prop_map(|path| Change::Delete { path, expect: Expect::Anything }),
        2 => (path(), path(), any::<bool>()).prop_map(|(from, to, replace)| Change::Move { from, to, replace }),
        2 => (path(), path(), any::<bool>()).prop_map(|(from, to, replace)| Change::Copy { from, to, replace }),
    ]
}

/// A file, folder or link with its permissions.
fn start() -> impl Strategy<Value = Vec<(String, u8, u32)>> {
    let modes = prop_oneof![Just(0o644), Just(0o755), Just(0o600), Just(0o777), Just(0o666)];
    proptest::collection::vec((path(), 0..4_u8, modes), 0..8)
}

fn lay_out(root: &Path, start: &[(String, u8, u32)]) {
    for (path, kind, mode) in start {
        let full = root.join(path);
        let is_free = |path: &Path| {
            path.ancestors().take_while(|at| *at != root).all(|at| !at.is_symlink() && !at.is_file())
        };
        if !is_free(&full) || full.exists() {
            continue;
        }
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        match kind {
            0 => fs::create_dir(&full).unwrap(),
            1 => symlink("a/b", &full).unwrap(),
            _ => fs::write(&full, format!("{path} at first\n")).unwrap(),
        }
        if *kind != 1 {
            // The user who runs the test must still be able to use it.
            let mode = if *kind == 0 { mode | 0o700 } else { *mode };
            fs::set_permissions(&full, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

/// Everything below a folder, with its kind, permissions and content.
fn snapshot(root: &Path) -> Vec<String> {
    let (mut all, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let known = fs::symlink_metadata(&path).unwrap();
            let content = match () {
                () if known.is_symlink() => format!("-> {}", fs::read_link(&path).unwrap().display()),
                () if known.is_dir() => "folder".to_owned(),
                () => format!("{:?}", fs::read_to_string(&path).unwrap()),
            };
            if known.is_dir() {
                open.push(path.clone());
            }
            all.push(format!(
                "{} {:o} {content}",
                path.strip_prefix(root).unwrap().display(),
                known.permissions().mode()
            ));
        }
    }
    all.sort();
    all
}

fn set(changes: Vec<Change>) -> ChangeSet {
    let reader = Reader { tenant: "local".into(), conversation: "c".into() };
    ChangeSet { by: new_id(), reader, summary: "a test".into(), changes }
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]))
}

#[test]
fn undoing_in_reverse_gives_back_every_tree_in_between() {
    let cases = env::var("HAFT_TEST_CASES").map_or(150, |cases| cases.parse().unwrap());
    let sets = proptest::collection::vec(proptest::collection::vec(change(), 1..3), 1..5);
    let counts = Mutex::new((0, 0));
    let result = runner(cases).run(&(start(), sets), |(start, sets)| {
        let ground = Ground::new();
        let root = ground.root.path();
        lay_out(root, &start);
        let mut made = Vec::new();
        for changes in sets {
            let before = snapshot(root);
            let set = set(changes.clone());
            let by = set.by;
            match ground.files.change(set) {
                Ok(changed) if changed.is_empty() => prop_assert_eq!(snapshot(root), before),
                Ok(_) => made.push((by, before, changes)),
                Err(error) => {
                    counts.lock().unwrap().1 += 1;
                    prop_assert_eq!(snapshot(root), before, "{:?} failed: {}", changes, error.message);
                }
            }
        }
        for (by, before, changes) in made.into_iter().rev() {
            let after = snapshot(root);
            let undo = ground.undo(by);
            prop_assert!(undo.is_ok(), "{:?}: {}", changes, undo.unwrap_err().message);
            prop_assert_eq!(&snapshot(root), &before, "{:?}", &changes);
            // Undoing can itself be undone, and that again.
            let again = ground.undo(undo.unwrap());
            prop_assert!(again.is_ok(), "{:?}: {}", changes, again.unwrap_err().message);
            prop_assert_eq!(snapshot(root), after, "{:?}", &changes);
            prop_assert!(ground.undo(again.unwrap()).is_ok());
            prop_assert_eq!(snapshot(root), before);
            counts.lock().unwrap().0 += 1;
        }
        Ok(())
    });
    result.unwrap();
    let (undone, refused) = counts.into_inner().unwrap();
    println!("{undone} sets undone, {refused} refused whole");
    assert!(undone >= 40 && refused >= 40, "{undone} {refused}");
}

const CHILD: &str = "HAFT_TEST_UNDO_CHILD";

/// A set that can be made, mostly: what is deleted, moved and copied is there.
fn random_set(seed: u8) -> (Vec<(String, u8, u32)>, Vec<Change>) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let modes = prop_oneof![Just(0o644), Just(0o755), Just(0o600)];
    let start = proptest::collection::btree_map("[abc]/[d-k]", modes, 4..8);
    let kinds = proptest::collection::vec((0..4_u8, "[abcx]/[l-z]{2}"), 4);
    let (start, kinds) = (start, kinds).new_tree(&mut runner).unwrap().current();
    let there = start.keys().cloned();
    let changes = there.zip(kinds).map(|(there, (kind, other))| match kind {
        0 => Change::Write { path: there, expect: Expect::Anything, bytes: b"new".into(), like: None },
        1 => Change::Delete { path: there, expect: Expect::Anything },
        2 => Change::Move { from: there, to: other, replace: false },
        _ => Change::Copy { from: there, to: other, replace: false },
    });
    let changes = changes.collect();
    (start.into_iter().map(|(path, mode)| (path, 2, mode)).collect(), changes)
}

/// Not a test by itself: the process that is killed.
#[test]
fn child() {
    let Ok(plan) = env::var(CHILD) else { return };
    let [root, state, seed, die_at]: [&str; 4] = plan.split('|').collect::<Vec<_>>().try_into().unwrap();
    let die_at: usize = die_at.parse().unwrap();
    let mut files = files(Path::new(root), Path::new(state), Keep::default());
    let passed = AtomicUsize::new(0);
    files.at_points(Arc::new(move |point| {
        println!("\npoint {point}");
        if passed.fetch_add(1, Ordering::Relaxed) == die_at {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }));
    let _ = files.change(set(random_set(seed.parse().unwrap()).1));
}

#[test]
fn a_kill_in_a_random_set_leaves_all_old_or_all_new() {
    let (mut kills, mut new) = (0, 0);
    for seed in 0..60 {
        let (start, _) = random_set(seed);
        let die_at = usize::from(seed) * 7 % 13;
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        lay_out(root.path(), &start);
        let before = snapshot(root.path());
        let output = Command::new(env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{}|{}|{seed}|{die_at}", root.path().display(), state.path().display()))
            .output()
            .unwrap();
        let killed = !output.status.success();
        kills += usize::from(killed);
        let recovered = files(root.path(), state.path(), Keep::default()).recover().unwrap();
        let is_whole = recovered.iter().all(|set| set.left.is_empty() && set.problem.is_none());
        assert!(is_whole, "{:?} at {die_at}: {recovered:?} of {before:?}", random_set(seed));
        let is_done = String::from_utf8_lossy(&output.stdout).contains("point done");
        if is_done {
            new += 1;
        } else {
            assert_eq!(snapshot(root.path()), before, "seed {seed}, killed at {die_at}");
        }
    }
    println!("{kills} kills, {new} sets made");
    assert!(kills >= 30 && new >= 1, "{kills}");
}
