//! What of a staged change set is refused, asked about, in conflict: each beside the same without it.

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

use haft_files::{StageRules, StagedSet, UndoFit, ViolationKind};
use haft_sdk::files::{Reader, Workspace as _};
use stage::{Stage, apply, how, is_root, snapshot};
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

#[test]
fn stage_child() {
    stage::child();
}

/// Real layers need a kernel that makes them.
fn can(test: &str) -> bool {
    match stage::is_possible() {
        Ok(()) => true,
        Err(why) => {
            haft_testkit::not_run(test, &why);
            false
        }
    }
}

/// A folder with something in it.
fn ground() -> Stage {
    let stage = Stage::new();
    let root = stage.root();
    fs::create_dir_all(root.join("d/deep")).unwrap();
    fs::create_dir_all(root.join("other")).unwrap();
    for (path, text) in
        [("d/.env", "SECRET=1"), ("d/a", "a"), ("d/deep/b", "b"), ("other/c", "c"), ("top", "t")]
    {
        fs::write(root.join(path), text).unwrap();
    }
    stage
}

/// What the lines do is refused with this kind, and applied by rules without it.
fn refused(lines: &str, with: impl Fn(&mut StagedSet), expected: impl Fn(&ViolationKind) -> bool) {
    let stage = ground();
    let before = snapshot(&stage.root());
    let free = stage.shell(lines);
    let mut set = free.clone();
    with(&mut set);
    let found = set.look().unwrap();
    assert!(found.violations.first.iter().any(|one| expected(&one.kind)), "{lines}: {found:?}");
    assert_eq!(found.violations.total as usize, found.violations.first.len());
    let error = apply(&stage.files(), &set).unwrap_err();
    assert!(error.starts_with("Nothing was applied: "), "{error}");
    assert_eq!(snapshot(&stage.root()), before, "{lines}");
}

#[test]
fn what_is_hidden_is_neither_written_nor_deleted_with_its_folder() {
    if !can("what_is_hidden_is_neither_written_nor_deleted_with_its_folder") {
        return;
    }
    let hide = |set: &mut StagedSet| set.roots[0].hidden = vec!["d/.env".into()];
    refused("echo mine > d/.env", hide, |kind| *kind == ViolationKind::Hidden);
    refused("rm d/.env", hide, |kind| *kind == ViolationKind::Hidden);
    let holds = |kind: &ViolationKind| *kind == ViolationKind::HoldsHidden { hidden: "d/.env".into() };
    refused("rm -r d", hide, holds);
    refused("rm -r d; mkdir d; echo x > d/new", hide, holds);
    refused("rm -r d; echo x > d", hide, holds);
    if is_root() {
        refused("mv d e", hide, holds);
        refused("mv d other/e", hide, holds);
    }
    // Without the mask each of them is applied, and takes the file along.
    for lines in ["echo mine > d/.env", "rm d/.env", "rm -r d", "rm -r d; mkdir d", "rm -r d; echo x > d"] {
        let stage = ground();
        let set = stage.shell(lines);
        apply(&stage.files(), &set).unwrap();
        assert_ne!(
            fs::read_to_string(stage.root().join("d/.env")).ok().as_deref(),
            Some("SECRET=1"),
            "{lines}"
        );
    }
    // Beside the mask all is free.
    let stage = ground();
    let mut set = stage.shell("echo x > d/a; rm -r d/deep; echo y > d/.env2");
    hide(&mut set);
    apply(&stage.files(), &set).unwrap();
    assert_eq!(fs::read_to_string(stage.root().join("d/.env")).unwrap(), "SECRET=1");
    assert!(!stage.root().join("d/deep").exists());
}

#[test]
fn what_gives_privileges_or_is_no_file_is_refused() {
    if !can("what_gives_privileges_or_is_no_file_is_refused") {
        return;
    }
    let nothing = |_: &mut StagedSet| {};
    refused("cp top x; chmod u+s x", nothing, |kind| *kind == ViolationKind::Privileged);
    refused("chmod g+s top", nothing, |kind| *kind == ViolationKind::Privileged);
    refused("mkfifo new/p 2>/dev/null || mkdir new; mkfifo new/p", nothing, |kind| {
        *kind == ViolationKind::Special { kind: "pipe" }
    });
    if is_root() {
        refused("mknod x c 1 3", nothing, |kind| *kind == ViolationKind::Special { kind: "device" });
    }
    let stage = ground();
    let set = stage.shell("cp top x; chmod 755 x; mkdir s; chmod g+s s");
    apply(&stage.files(), &set).unwrap();
    assert_eq!(fs::metadata(stage.root().join("s")).unwrap().permissions().mode() & 0o7777, 0o2755);
}

#[test]
fn links_that_lead_out_are_refused_whatever_way_they_take() {
    if !can("links_that_lead_out_are_refused_whatever_way_they_take") {
        return;
    }
    let nothing = |_: &mut StagedSet| {};
    let out = |kind: &ViolationKind| matches!(kind, ViolationKind::LeadsOut { .. });
    for lines in [
        "ln -s /etc/passwd x",
        "ln -s ../outside x",
        "ln -s ../../x d/x",
        "mkdir -p n/m; ln -s ../../../x n/m/x",
        // Each by itself is inside; the second goes on from where the first leads.
        "ln -s ../.. d/deep/up; ln -s d/deep/up/../x x",
    ] {
        refused(lines, nothing, out);
    }
    // By a link of the owner's that leads out.
    let stage = ground();
    let outside = stage.path("state");
    std::os::unix::fs::symlink(&outside, stage.root().join("mine")).unwrap();
    let set = stage.shell("ln -s mine/x x");
    assert!(out(&set.look().unwrap().violations.first[0].kind));
    // By a link of the command's to a folder with such a link in it.
    let stage = ground();
    std::os::unix::fs::symlink(&outside, stage.root().join("d/mine")).unwrap();
    let set = stage.shell("ln -s d e; ln -s e/mine/x x");
    let found = set.look().unwrap().violations;
    assert!(found.total == 1 && out(&found.first[0].kind), "{found:?}");
    if is_root() {
        refused("mkdir -p d/deep/l; ln -s ../../../top d/deep/l/t; mv d/deep/l l", nothing, out);
        let stage = ground();
        std::os::unix::fs::symlink("../../top", stage.root().join("d/deep/t")).unwrap();
        let set = stage.shell("mv d/deep deep");
        assert!(out(&set.look().unwrap().violations.first[0].kind), "it leads elsewhere from there");
    }
    // Inside, and where links may lead, all is free.
    let stage = ground();
    let mut set = stage.shell("ln -s top x; ln -s ../top d/x; ln -s /usr/bin/env e;");
    set.rules.link_targets = vec![PathBuf::from("/usr")];
    apply(&stage.files(), &set).unwrap();
    assert_eq!(fs::read_link(stage.root().join("e")).unwrap(), PathBuf::from("/usr/bin/env"));
}

/// A folder comes back to its place, after the one around it went and another one of that name was made.
#[test]
fn a_folder_that_comes_back_into_a_new_folder_keeps_what_is_in_it() {
    if !can("a_folder_that_comes_back_into_a_new_folder_keeps_what_is_in_it") || !is_root() {
        return;
    }
    let stage = ground();
    fs::create_dir_all(stage.root().join("a/a/deep")).unwrap();
    fs::write(stage.root().join("a/a/deep/file"), "kept").unwrap();
    let set = stage.shell("mv a b; mkdir a; mv b/a a/a");
    assert!(set.look().unwrap().violations.is_empty());
    let by = apply(&stage.files(), &set).unwrap();
    assert_eq!(fs::read_to_string(stage.root().join("a/a/deep/file")).unwrap(), "kept");
    assert_eq!(fs::read_dir(stage.root().join("b")).unwrap().count(), 0);
    let reader = Reader { tenant: "local".into(), conversation: "c".into() };
    stage.files().undo(by, common::new_id(), &reader).unwrap();
    assert_eq!(fs::read_to_string(stage.root().join("a/a/deep/file")).unwrap(), "kept");
    assert!(!stage.root().join("b").exists());
}

/// A link is followed through the folder as it is with the changes, and not as it was.
#[test]
fn links_lead_through_what_the_command_made_and_not_through_what_it_replaced() {
    if !can("links_lead_through_what_the_command_made_and_not_through_what_it_replaced") {
        return;
    }
    let stage = ground();
    for (name, target) in [("a", "nowhere"), ("b", "/etc"), ("c", "/usr/bin")] {
        std::os::unix::fs::symlink(target, stage.root().join(name)).unwrap();
    }
    let mut set = stage.shell(
        "rm a b; mkdir a b; ln -s x/y a/l; ln -s b/passwd passwd; ln -s c/env env; ln -s d again; ln -s again/x x",
    );
    set.rules.link_targets = vec![PathBuf::from("/usr")];
    let found = set.look().unwrap();
    assert!(found.violations.is_empty(), "{found:?}");
    apply(&stage.files(), &set).unwrap();
    // What was free before is not once the way there leads out.
    let stage = ground();
    let set = stage.shell("ln -s d/deep first; rm -rf d; ln -s /etc d");
    let found = set.look().unwrap().violations;
    assert_eq!(found.total, 2, "{found:?}");
}

#[test]
fn read_only_folders_stay_as_they_are() {
    if !can("read_only_folders_stay_as_they_are") {
        return;
    }
    for lines in ["echo x > d/new", "rm d/a", "rm -r d", "rm -r d; mkdir d"] {
        let stage = ground();
        let mut set = stage.shell(lines);
        set.rules.read_only = vec![stage.root().join("d")];
        assert_eq!(set.look().unwrap().violations.first[0].kind, ViolationKind::ReadOnly, "{lines}");
        assert!(apply(&stage.files(), &set).is_err());
        set.rules.read_only = vec![stage.root().join("other")];
        apply(&stage.files(), &set).unwrap();
    }
}

#[test]
fn protected_names_are_asked_about_and_repositories_without_their_preset() {
    if !can("protected_names_are_asked_about_and_repositories_without_their_preset") {
        return;
    }
    // lines, asks with the preset git, asks without
    let cases = [
        ("echo x > .envrc", true, true),
        ("mkdir -p sub; echo x > sub/.envrc", true, true),
        ("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", true, true),
        ("mkdir -p .git; echo x > .git/index", false, true),
        ("mkdir -p r/objects r/refs; echo 'ref: x' > r/HEAD; echo x > r/config", true, true),
        ("echo x > cacert.pem; echo y > .env", false, false),
    ];
    for (lines, with, without) in cases {
        for (git, expected) in [(true, with), (false, without)] {
            let stage = ground();
            let mut set = stage.shell(lines);
            set.rules.git = git;
            let found = set.look().unwrap();
            assert_eq!(!found.asks.is_empty(), expected, "{lines} {git}: {:?}", found.asks);
            let applied = apply(&stage.files(), &set);
            assert_eq!(applied.is_err(), expected, "{lines}: {applied:?}");
            let approved = haft_files::ApplyStaged { approved: true, ..how(&set) };
            if expected {
                stage.files().apply_staged(&set, &approved).unwrap();
            }
        }
    }
    // Also what is deleted, or moved, with the folder around it.
    let stage = ground();
    fs::write(stage.root().join("d/deep/.envrc"), "x").unwrap();
    let set = stage.shell("rm -r d");
    assert!(!set.look().unwrap().asks.is_empty());
}

#[test]
fn what_others_changed_meanwhile_is_in_conflict_and_nothing_else_is() {
    if !can("what_others_changed_meanwhile_is_in_conflict_and_nothing_else_is") {
        return;
    }
    // what the command does, what somebody else does, whether they conflict
    let cases: [(&str, &str, bool); 9] = [
        ("echo x > top", "echo y > top", true),
        ("echo x > top", "rm top", true),
        ("echo x > top", "rm top; mkdir top", true),
        ("rm -r d", "echo y > d/deep/new", true),
        ("rm -r d", "echo y > d/deep/b", true),
        ("echo x > new", "echo y > new", true),
        ("echo x > d/a", "rm -r d", true),
        ("echo x > new", "echo y > top", false),
        ("echo x > d/a", "echo y > d/new", false),
    ];
    for (command, other, expected) in cases {
        let stage = ground();
        let set = stage.shell(command);
        let status =
            std::process::Command::new("sh").args(["-euc", other]).current_dir(stage.root()).status();
        assert!(status.unwrap().success());
        let before = snapshot(&stage.root());
        let found = set.look().unwrap();
        assert_eq!(!found.conflicts.is_empty(), expected, "{command} | {other}: {found:?}");
        let applied = apply(&stage.files(), &set);
        assert_eq!(applied.is_err(), expected, "{command} | {other}: {applied:?}");
        if expected {
            assert_eq!(snapshot(&stage.root()), before);
        }
    }
}

#[test]
fn the_summary_is_exact_and_bounded_and_the_diff_tells_texts() {
    if !can("the_summary_is_exact_and_bounded_and_the_diff_tells_texts") {
        return;
    }
    let stage = ground();
    let mut set = stage.shell(
        "mkdir -p new/in; for i in 1 2 3 4 5; do echo $i > new/in/$i; done; echo more >> d/a; rm -r d/deep; \
         ln -s top l; head -c 100 /dev/zero > zero; cp -a top same; mv same top",
    );
    set.rules.most_listed = 3;
    let found = set.look().unwrap();
    let summary = &found.summary;
    assert_eq!((summary.created, summary.modified, summary.deleted), (7, 1, 1), "{summary:?}");
    assert_eq!((summary.folders, summary.changes.len()), (3, 3), "{summary:?}");
    assert_eq!(summary.omitted, 9);
    let diff = set.diff(1 << 16).unwrap();
    assert!(
        diff.contains("--- a/d/a\n+++ b/d/a\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+amore\n"),
        "{diff}"
    );
    assert!(diff.contains("deleted file mode") && diff.contains("d/deep/b"), "{diff}");
    assert!(!diff.contains("/top"), "what is the same is no change: {diff}");
    let short = set.diff(300).unwrap();
    assert!(short.len() < 400 && short.contains("more changes are not shown"), "{short}");
}

#[test]
fn what_is_over_the_limits_is_applied_only_with_an_approval_and_not_undone() {
    if !can("what_is_over_the_limits_is_applied_only_with_an_approval_and_not_undone") {
        return;
    }
    let stage = ground();
    let keep = haft_files::Keep { bytes: 2, ..haft_files::Keep::default() };
    let mut set = stage.shell("rm -r d");
    set.rules = StageRules { keep, ..StageRules::default() };
    let found = set.look().unwrap();
    assert_eq!(found.undo, UndoFit::TooLarge { bytes: 10, largest: 8 });
    let files = common::files(&stage.root(), &stage.path("state"), keep);
    let error = apply(&files, &set).unwrap_err();
    assert!(error.contains("cannot be undone"), "{error}");
    let approved = haft_files::ApplyStaged { approved: true, ..how(&set) };
    files.apply_staged(&set, &approved).unwrap();
    assert!(!stage.root().join("d").exists());
    let reader = Reader { tenant: "local".into(), conversation: "c".into() };
    let error = files.undo(approved.by, common::new_id(), &reader).unwrap_err();
    assert!(error.message.contains("cannot be undone"), "{}", error.message);
    assert_eq!(fs::read_dir(stage.path("state/changes/left")).unwrap().count(), 0);
}

#[test]
fn what_was_looked_at_is_what_is_applied() {
    if !can("what_was_looked_at_is_what_is_applied") {
        return;
    }
    let stage = ground();
    let set = stage.shell("echo x > new");
    let seen = how(&set);
    fs::write(stage.path("layers/upper/late"), "late").unwrap();
    let error = stage.files().apply_staged(&set, &seen).unwrap_err();
    assert!(error.message.contains("not those that were looked at"), "{}", error.message);
    assert!(!stage.root().join("new").exists());
}

/// Folders that their owner may not write to, as module caches have them: root is never kept out of one.
#[test]
fn folders_without_permissions_are_applied_and_undone() {
    if !can("folders_without_permissions_are_applied_and_undone") {
        return;
    }
    let stage = ground();
    let before = snapshot(&stage.root());
    let set = stage.shell("mkdir n; echo x > n/a; chmod 555 n; echo y > d/a; chmod 555 d; chmod 500 d/deep");
    let files = stage.files();
    let by = apply(&files, &set).unwrap();
    let mode = |path: &str| fs::metadata(stage.root().join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(["n", "d", "d/deep"].map(mode), [0o555, 0o555, 0o500]);
    assert_eq!(fs::read_to_string(stage.root().join("d/a")).unwrap(), "y\n");
    let reader = Reader { tenant: "local".into(), conversation: "c".into() };
    files.undo(by, common::new_id(), &reader).unwrap();
    assert_eq!(snapshot(&stage.root()), before);
}

/// All of this file once more. Only root can become somebody else.
#[test]
fn the_same_for_an_ordinary_user() {
    if !is_root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let user = 54_321;
    std::os::unix::fs::chown(home.path(), Some(user), Some(user)).unwrap();
    let user = user.to_string();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["--skip", "the_same_for_an_ordinary_user", "--nocapture"])
        .env(stage::USER, "1")
        .env("TMPDIR", home.path())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn layers_are_removed_whatever_their_permissions() {
    let stage = Stage::new();
    let folder = stage.path("layers/upper/a/b");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("c"), "c").unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(stage.path("layers/work"), fs::Permissions::from_mode(0o000)).unwrap();
    haft_files::discard(&stage.path("layers")).unwrap();
    assert!(!stage.path("layers").exists());
}

/// A diff goes to the sender of the command: it shows nothing that the command could not see.
#[test]
fn a_diff_shows_nothing_that_was_hidden_from_the_command() {
    if !can("a_diff_shows_nothing_that_was_hidden_from_the_command") {
        return;
    }
    for lines in ["echo new > d/.env", "rm d/.env", "rm -rf d", "mv d/.env e; echo x > d/.env"] {
        let stage = ground();
        let free = stage.shell(lines);
        assert!(free.diff(10_000).unwrap().contains("-SECRET=1"), "the control: {lines}");
        let mut set = free;
        set.roots[0].hidden = vec![PathBuf::from("d/.env")];
        let diff = set.diff(10_000).unwrap();
        assert!(!diff.contains("-SECRET=1") && diff.contains("d/.env"), "{lines}: {diff}");
        // What the owner wrote while it ran is not shown, either.
        let stage = ground();
        let set = stage.shell("echo new > top");
        fs::write(stage.root().join("top"), "written meanwhile").unwrap();
        let diff = set.diff(10_000).unwrap();
        assert!(!diff.contains("meanwhile") && diff.contains("top"), "{diff}");
    }
}
