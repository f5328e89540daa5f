//! Random programs of file operations: what they leave is the same whether they worked on the files themselves, or on a
//! layer that was applied. A layer that is not applied changes nothing, and undoing gives back what was there.

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

use haft_sdk::files::{Reader, Workspace as _};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use stage::{Op, Stage, apply, is_root, run, run_staged, snapshot};
use std::{env, fs, process::Command};

const USER: u32 = 54_321;
/// How many programs one process runs: starting it costs more than most of them.
const BATCH: usize = 50;

#[test]
fn stage_child() {
    stage::child();
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abc]", 1..4).prop_map(|names| names.join("/"))
}

/// Where a link leads: inside, and through no other link, so that every program may be applied.
fn target() -> impl Strategy<Value = String> {
    proptest::collection::vec("[xyz]", 1..3).prop_map(|names| names.join("/"))
}

fn op() -> impl Strategy<Value = Op> {
    let modes = prop_oneof![Just(0o644), Just(0o755), Just(0o600), Just(0o2755), Just(0o1777)];
    prop_oneof![
        5 => (path(), "[xy\n]{0,6}").prop_map(|(path, text)| Op::Write(path, text)),
        2 => (path(), "[xy]{0,3}").prop_map(|(path, text)| Op::Append(path, text)),
        3 => path().prop_map(Op::Delete),
        2 => path().prop_map(Op::Folder),
        5 => (path(), path()).prop_map(|(from, to)| Op::Rename(from, to)),
        2 => (path(), target()).prop_map(|(path, to)| Op::Link(path, to)),
        1 => (path(), path()).prop_map(|(from, to)| Op::HardLink(from, to)),
        2 => (path(), modes).prop_map(|(path, mode)| Op::Mode(path, mode)),
        2 => path().prop_map(Op::Again),
        1 => path().prop_map(Op::Touch),
        1 => (path(), any::<u8>()).prop_map(|(path, value)| Op::Attribute(path, value)),
        1 => (path(), prop_oneof![Just(0_u32), Just(1234)]).prop_map(|(path, owner)| Op::Owner(path, owner)),
    ]
}

/// The tree that was there, made by a program, too: without hard links, which a layer breaks up.
fn start() -> impl Strategy<Value = Vec<Op>> {
    let ops = proptest::collection::vec(op(), 0..16);
    ops.prop_map(|ops| ops.into_iter().filter(|op| !matches!(op, Op::HardLink(..))).collect())
}

fn cases(seed: u8, count: usize) -> Vec<(Vec<Op>, Vec<Op>)> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = (start(), proptest::collection::vec(op(), 1..14));
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn reader() -> Reader {
    Reader { tenant: "local".into(), conversation: "c".into() }
}

/// A program that is to run on a layer, and what it left where it worked on the files themselves.
struct Case<'a> {
    said: &'a (Vec<Op>, Vec<Op>),
    live: Stage,
    staged: Stage,
    before: Vec<String>,
    since: (i64, u32),
}

impl<'a> Case<'a> {
    fn new(said: &'a (Vec<Op>, Vec<Op>)) -> Self {
        let (start, program) = said;
        let (live, staged) = (Stage::new(), Stage::new());
        run(&live.root(), start);
        run(&staged.root(), start);
        let before = snapshot(&staged.root());
        assert_eq!(snapshot(&live.root()), before);
        run(&live.root(), program);
        let since = staged.now();
        Case { said, live, staged, before, since }
    }

    /// Applies, undoes and applies again, and gives whether there was anything to apply.
    fn settle(self) -> bool {
        let Case { said, live, staged, before, since } = self;
        let said = format!("{:?} then {:?}", said.0, said.1);
        assert_eq!(snapshot(&staged.root()), before, "nothing before it is applied: {said}");
        let (files, set) = (staged.files(), staged.set(since));
        let found = set.look().unwrap();
        assert!(found.violations.is_empty() && found.conflicts.is_empty(), "{found:?} {said}");
        let by = apply(&files, &set).unwrap_or_else(|error| panic!("{error}: {said}"));
        let after = snapshot(&staged.root());
        assert_eq!(after, snapshot(&live.root()), "{said}");
        assert_eq!(fs::read_dir(staged.path("state/changes/open")).unwrap().count(), 0);
        haft_files::discard(&staged.path("layers")).unwrap();
        if fs::read_dir(staged.path("state/changes/done")).unwrap().count() == 0 {
            assert_eq!(after, before, "{said}");
            return false;
        }
        // Undoing can itself be undone, and that again.
        let (first, second, third) = (common::new_id(), common::new_id(), common::new_id());
        let undo = |of, by| {
            let undone = files.undo(of, by, &reader());
            undone.unwrap_or_else(|error| panic!("{}: {said}", error.message));
        };
        undo(by, first);
        assert_eq!(snapshot(&staged.root()), before, "{said}");
        undo(first, second);
        assert_eq!(snapshot(&staged.root()), after, "{said}");
        undo(second, third);
        assert_eq!(snapshot(&staged.root()), before, "{said}");
        true
    }
}

/// Goes through all of them, also after one that fails: each says by itself what is wrong.
fn check(cases: &[(Vec<Op>, Vec<Op>)]) {
    let (mut applied, mut failed) = (0, Vec::new());
    for (number, batch) in cases.chunks(BATCH).enumerate() {
        let batch: Vec<_> = batch.iter().map(Case::new).collect();
        let base = |case: &Case<'_>| case.staged.base.path().to_path_buf();
        let programs: Vec<_> = batch.iter().map(|case| (base(case), case.said.1.clone())).collect();
        run_staged(&programs).unwrap();
        for (place, case) in batch.into_iter().enumerate() {
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.settle())) {
                Ok(changed) => applied += usize::from(changed),
                Err(_) => failed.push(number * BATCH + place),
            }
        }
    }
    println!("{applied} of {} programs changed something", cases.len());
    assert!(failed.is_empty(), "{} of {} failed: {failed:?}", failed.len(), cases.len());
    assert!(applied * 2 > cases.len(), "{applied}");
}

fn count() -> usize {
    env::var("HAFT_TEST_CASES").map_or(300, |cases| cases.parse().unwrap())
}

#[test]
fn applied_is_as_live_and_undone_is_as_before() {
    if let Err(why) = stage::is_possible() {
        return haft_testkit::not_run("applied_is_as_live_and_undone_is_as_before", &why);
    }
    let seed = env::var("HAFT_TEST_SEED").map_or(7, |seed| seed.parse().unwrap());
    check(&cases(seed, count()));
}

/// Only root can become somebody else.
#[test]
fn applied_is_as_live_for_an_ordinary_user() {
    if !is_root() {
        return;
    }
    let name = "applied_is_as_live_and_undone_is_as_before";
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(home.path(), Some(USER), Some(USER)).unwrap();
    let user = USER.to_string();
    let output = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .arg(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(stage::USER, "1")
        .env("TMPDIR", home.path())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    print!("{said}");
    assert!(output.status.success(), "{said}");
}
