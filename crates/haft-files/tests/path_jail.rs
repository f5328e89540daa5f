//! The path jail, attacked from every side that does not need a second thread.

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

use common::{files, new_id, spec, tree};
use haft_files::{Files, JailSpec, Keep, PathError, PathJail, RootSpec};
use haft_sdk::files::{Access, Change, ChangeSet, Expect, Reader, Step, Walk, Workspace as _};
use haft_store::MemoryReadHashes;
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use rustix::fs::{FileType, Mode};
use std::{
    env,
    ffi::OsStr,
    fs,
    io::Read as _,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};
use tempfile::TempDir;

const OUTSIDE: &str = "what lies outside";

/// A root, something outside, and a jail for each way of opening.
struct Place {
    folder: TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (root, outside) = (top.join("root"), top.join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("canary"), OUTSIDE).unwrap();
        Place { folder, root, outside }
    }

    fn file(&self, path: &str) -> &Self {
        let full = self.root.join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, path).unwrap();
        self
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) -> &Self {
        symlink(target, self.root.join(path)).unwrap();
        self
    }

    fn jails(&self) -> [PathJail; 2] {
        both(spec(&self.root))
    }
}

fn both(spec: JailSpec) -> [PathJail; 2] {
    [false, true].map(|step_by_step| PathJail::new(JailSpec { step_by_step, ..spec.clone() }).unwrap())
}

fn root(path: &Path, read_only: bool) -> RootSpec {
    RootSpec { path: path.to_owned(), read_only }
}

fn files_of(jail: PathJail, state: &Path) -> Files {
    Files::new(Arc::new(jail), Arc::new(MemoryReadHashes::default()), state, Keep::default())
}

fn read(jail: &PathJail, path: &str) -> Result<String, PathError> {
    let mut opened = jail.open(path)?;
    let mut text = Vec::new();
    opened.file.read_to_end(&mut text).unwrap();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn write(path: &str, text: &str) -> Change {
    Change::Write { path: path.into(), expect: Expect::Anything, bytes: text.into(), like: None }
}

fn change(files: &Files, changes: Vec<Change>) -> Result<(), haft_core::ToolError> {
    let reader = Reader { tenant: "local".into(), conversation: "c".into() };
    files.change(ChangeSet { by: new_id(), reader, summary: "a test".into(), changes }).map(|_| ())
}

fn walked(files: &Files, path: &str) -> Vec<PathBuf> {
    let found = Mutex::new(Vec::new());
    let walk = Walk { path, hidden: true, ignore_files: false, threads: 2 };
    let visited = files.walk(&walk, &|visit| {
        // Whatever is visited can be opened, or says why not; it never waits.
        let _ = (visit.open)();
        found.lock().unwrap().push(visit.below.to_owned());
        Step::Continue
    });
    visited.unwrap();
    let mut found = found.into_inner().unwrap();
    found.sort();
    found
}

#[test]
fn t_sbx_01_parents_are_refused() {
    let place = Place::new();
    place.file("a/b.txt").link("a/up", "..");
    for jail in place.jails() {
        for path in
            ["../outside/canary", "a/../../outside/canary", "a/..", "..", r"..\outside\canary", "a/../b.txt"]
        {
            for access in [Access::Read, Access::Write] {
                let error = jail.locate(path, access).unwrap_err();
                assert!(matches!(error, PathError::Outside { .. }), "{path}: {error}");
            }
            assert!(matches!(read(&jail, path), Err(PathError::Outside { .. })), "{path}");
        }
        // A link that says `..` and stays inside is one like any other.
        assert_eq!(read(&jail, "a/up/a/b.txt").unwrap(), "a/b.txt");
    }
}

#[test]
fn t_sbx_02_absolute_paths_are_refused_unless_they_are_allowed() {
    let place = Place::new();
    place.file("a.txt");
    let (inside, outside) = (place.root.join("a.txt"), place.outside.join("canary"));
    let (inside, outside) = (inside.to_str().unwrap(), outside.to_str().unwrap());
    for jail in place.jails() {
        assert!(matches!(read(&jail, inside), Err(PathError::Outside { .. })));
        assert!(matches!(read(&jail, outside), Err(PathError::Outside { .. })));
    }
    for jail in both(JailSpec { allow_absolute: true, ..spec(&place.root) }) {
        assert_eq!(read(&jail, inside).unwrap(), "a.txt");
        assert!(matches!(read(&jail, outside), Err(PathError::Outside { .. })));
        // The names of the root and of what lies beside it begin alike.
        let beside = format!("{}-beside/x", place.root.display());
        assert!(matches!(jail.locate(&beside, Access::Write), Err(PathError::Outside { .. })));
    }
}

#[test]
fn t_sbx_03_denied_patterns_count_where_a_path_really_leads() {
    let place = Place::new();
    for path in [".env", "sub/.ENV", ".ssh/config", "x/.Ssh/config", "key.PEM", "deep/.git/config"] {
        place.file(path);
    }
    place.link("notes", ".env").link("notes2", "notes").link("keys", ".ssh").link("x/more", "../keys");
    place.link("abs", place.root.join("sub/.ENV")).link("all", ".");
    for jail in place.jails() {
        for path in [
            ".env",
            "sub/.ENV",
            ".ssh/config",
            "x/.Ssh/config",
            "key.PEM",
            "deep/.git/config",
            "notes",
            "notes2",
            "keys/config",
            "x/more/config",
            "abs",
            "all/.env",
            "all/all/keys/config",
            "./.env",
            ".//.ssh//config",
        ] {
            let error = read(&jail, path).unwrap_err();
            assert!(matches!(error, PathError::Denied { .. }), "{path}: {error}");
            let error = jail.locate(path, Access::Read).unwrap_err();
            assert!(matches!(error, PathError::Denied { .. }), "{path}: {error}");
        }
        for path in ["new/.env", "keys/new", "all/x/more/new", ".SSH/new"] {
            assert!(matches!(jail.locate(path, Access::Write), Err(PathError::Denied { .. })), "{path}");
        }
        let state = tempfile::tempdir().unwrap();
        let files = files_of(jail, state.path());
        assert_eq!(walked(&files, "."), Vec::<PathBuf>::new());
        assert!(files.folder("keys").is_err() && files.folder("x/more").is_err());
        let (_, top) = files.folder(".").unwrap();
        let names: Vec<_> = top.entries().unwrap().into_iter().map(|entry| entry.name).collect();
        assert!(!names.iter().any(|name| name == ".env" || name == ".ssh"), "{names:?}");
        assert!(top.folder(OsStr::new(".ssh")).is_err() && top.metadata(OsStr::new(".env")).is_err());
        for odd in ["..", ".", "", "a/b", "x/.Ssh", "/"] {
            assert!(top.folder(OsStr::new(odd)).is_err(), "{odd}");
        }
    }
}

#[test]
fn several_roots_and_roots_in_roots_have_rules_of_their_own() {
    let place = Place::new();
    place
        .file("work/a.txt")
        .file("work/vendor/lib.txt")
        .file("work/vendor/own/x.txt")
        .file("work/vendor/secrets/k");
    let other = place.root.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("o.txt"), "other").unwrap();
    let work = place.root.join("work");
    symlink("../other/o.txt", work.join("to-other")).unwrap();
    let spec = JailSpec {
        roots: vec![
            root(&work, false),
            root(&work.join("vendor"), true),
            root(&work.join("vendor/own"), false),
            root(&other, true),
        ],
        denied_patterns: vec!["secrets/**".into()],
        ..JailSpec::default()
    };
    for jail in both(spec) {
        // However a path gets there, the deepest root says whether it may be written.
        assert!(jail.locate("new.txt", Access::Write).is_ok());
        assert!(matches!(jail.locate("vendor/lib.txt", Access::Write), Err(PathError::ReadOnly { .. })));
        assert!(matches!(jail.locate("vendor/new/x", Access::Write), Err(PathError::ReadOnly { .. })));
        assert!(jail.locate("vendor/own/x.txt", Access::Write).is_ok());
        assert_eq!(read(&jail, "vendor/lib.txt").unwrap(), "work/vendor/lib.txt");
        assert_eq!(jail.locate("vendor/lib.txt", Access::Read).unwrap().shown, "vendor/lib.txt");
        // A pattern that starts at a root counts from each.
        assert!(matches!(read(&jail, "vendor/secrets/k"), Err(PathError::Denied { .. })));
        // A link from one root into another leads inside.
        assert_eq!(read(&jail, "to-other").unwrap(), "other");
        let state = tempfile::tempdir().unwrap();
        let files = files_of(jail, state.path());
        let before = tree(&place.root);
        for refused in [
            write("vendor/lib.txt", "x"),
            write("vendor/new.txt", "x"),
            Change::Delete { path: "vendor".into(), expect: Expect::Anything },
            Change::Delete { path: "vendor/lib.txt".into(), expect: Expect::Anything },
            Change::Delete { path: "vendor/own".into(), expect: Expect::Anything },
            Change::Delete { path: ".".into(), expect: Expect::Anything },
            Change::Move { from: "vendor".into(), to: "moved".into(), replace: false },
            Change::Move { from: "vendor/lib.txt".into(), to: "lib.txt".into(), replace: false },
            Change::Move { from: "a.txt".into(), to: "vendor/a.txt".into(), replace: false },
            Change::Copy { from: "a.txt".into(), to: "vendor/a.txt".into(), replace: false },
            Change::Copy { from: "vendor/secrets/k".into(), to: "k".into(), replace: false },
        ] {
            assert!(change(&files, vec![refused.clone()]).is_err(), "{refused:?}");
            assert_eq!(tree(&place.root), before, "{refused:?}");
        }
        change(&files, vec![write("vendor/own/x.txt", "new")]).unwrap();
        change(&files, vec![write("vendor/own/x.txt", "work/vendor/own/x.txt")]).unwrap();
        assert!(!walked(&files, ".").iter().any(|path| path.ends_with("k")));
    }
}

#[test]
fn a_folder_that_holds_a_root_stays_where_it_is() {
    let place = Place::new();
    place.file("a/inner/x.txt");
    let spec = JailSpec {
        roots: vec![root(&place.root, false), root(&place.root.join("a/inner"), false)],
        ..JailSpec::default()
    };
    for jail in both(spec) {
        let state = tempfile::tempdir().unwrap();
        let files = files_of(jail, state.path());
        let error = change(&files, vec![Change::Move { from: "a".into(), to: "b".into(), replace: false }])
            .unwrap_err();
        assert!(error.message.contains("root"), "{}", error.message);
        assert!(change(&files, vec![Change::Delete { path: "a".into(), expect: Expect::Anything }]).is_err());
        assert_eq!(tree(&place.root), ["a/inner/x.txt=a/inner/x.txt"]);
    }
}

#[test]
fn links_are_followed_inside_and_nowhere_else() {
    let place = Place::new();
    place.file("d/a.txt").link("rel", "d/a.txt").link("abs", place.root.join("d/a.txt")).link("chain", "rel");
    place
        .link("dir", "d")
        .link("d/back", "../dir")
        .link("self", "self")
        .link("ping", "pong")
        .link("pong", "ping");
    place
        .link("out", &place.outside)
        .link("out2", "../outside/canary")
        .link("out3", "d/../../outside/canary");
    place
        .link("in-and-out", "out/../root/d/a.txt")
        .link("nowhere", "not/there")
        .link("nowhere-out", "../outside/new");
    for jail in place.jails() {
        for path in ["rel", "abs", "chain", "dir/a.txt", "d/back/back/a.txt", "in-and-out"] {
            assert_eq!(read(&jail, path).unwrap(), "d/a.txt", "{path}");
            assert_eq!(jail.locate(path, Access::Read).unwrap().shown, "d/a.txt", "{path}");
        }
        for path in ["out/canary", "out2", "out3", "out", "out/new"] {
            assert!(
                matches!(read(&jail, path), Err(PathError::Outside { .. } | PathError::NotFound { .. })),
                "{path}"
            );
            assert!(matches!(jail.locate(path, Access::Read), Err(PathError::Outside { .. })), "{path}");
        }
        for path in ["self", "ping", "self/x", "pong/x"] {
            assert!(read(&jail, path).is_err() && jail.locate(path, Access::Read).is_err(), "{path}");
        }
        for path in ["nowhere", "nowhere-out", "nowhere/x"] {
            let error = read(&jail, path).unwrap_err();
            assert!(matches!(error, PathError::NotFound { .. }), "{path}: {error}");
        }
        let state = tempfile::tempdir().unwrap();
        let files = files_of(jail, state.path());
        let before = (tree(&place.root), tree(&place.outside));
        for path in [
            "rel",
            "abs",
            "chain",
            "out",
            "out2",
            "out/new",
            "nowhere",
            "nowhere/x",
            "nowhere-out",
            "nowhere-out/x",
            "self",
            "self/x",
        ] {
            assert!(change(&files, vec![write(path, "x")]).is_err(), "{path}");
            assert!(
                change(&files, vec![Change::Copy { from: "d/a.txt".into(), to: path.into(), replace: true }])
                    .is_err()
            );
            assert!(
                change(&files, vec![Change::Move { from: "d/a.txt".into(), to: path.into(), replace: true }])
                    .is_err()
            );
            assert_eq!((tree(&place.root), tree(&place.outside)), before, "{path}");
        }
        // Links before the last name are followed for writing, too.
        change(&files, vec![write("dir/b.txt", "b")]).unwrap();
        assert_eq!(fs::read_to_string(place.root.join("d/b.txt")).unwrap(), "b");
        // Of a link, the link itself goes.
        for path in ["out", "dir"] {
            change(&files, vec![Change::Delete { path: path.into(), expect: Expect::Anything }]).unwrap();
            assert!(fs::symlink_metadata(place.root.join(path)).is_err());
        }
        assert_eq!(tree(&place.outside), before.1);
        place.link("out", &place.outside).link("dir", "d");
        fs::remove_file(place.root.join("d/b.txt")).unwrap();
    }
}

#[test]
fn every_odd_byte_of_a_name() {
    let place = Place::new();
    for byte in (1..=255_u8).filter(|byte| *byte != b'/') {
        let name = [b"odd-".as_slice(), &[byte], b"-name"].concat();
        fs::write(place.root.join(OsStr::from_bytes(&name)), "odd").unwrap();
        let denied = [b"odd-".as_slice(), &[byte], b".pem"].concat();
        fs::write(place.root.join(OsStr::from_bytes(&denied)), "odd").unwrap();
    }
    for jail in place.jails() {
        for code in 0..=255_u32 {
            let c = char::from_u32(code).unwrap();
            let found = read(&jail, &format!("odd-{c}-name"));
            match c {
                '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                    assert!(matches!(found, Err(PathError::Malformed { .. })), "{code:x}");
                }
                '/' => assert!(found.unwrap_err().is_not_found()),
                ' '..='~' => assert_eq!(found.unwrap(), "odd", "{code:x}"),
                _ => assert!(found.unwrap_err().is_not_found(), "{code:x}"),
            }
        }
        let state = tempfile::tempdir().unwrap();
        // A pattern denies names with any byte in them, a line end as well.
        assert_eq!(walked(&files_of(jail, state.path()), ".").len(), 254);
    }
}

#[test]
fn haft_s_own_folder_cannot_be_reached() {
    let place = Place::new();
    place.file("home/haft/secret").file("home/x.txt").link("way", "home/haft").link("deep", "way/secret");
    place.link("via", ".");
    let private = [place.root.join("home/haft"), place.root.join("way"), place.root.join("via/home/haft")];
    for private in private {
        for jail in both(JailSpec { private: vec![private.clone()], ..spec(&place.root) }) {
            for path in [
                "home/haft/secret",
                "way/secret",
                "deep",
                "via/home/haft/secret",
                "via/deep",
                "home/HAFT/secret",
            ] {
                let error = read(&jail, path).unwrap_err();
                assert!(matches!(error, PathError::Denied { .. }), "{path}: {error}");
            }
            let state = tempfile::tempdir().unwrap();
            let files = files_of(jail, state.path());
            assert_eq!(walked(&files, "."), [Path::new("home/x.txt")]);
            for refused in [
                write("home/haft/new", "x"),
                write("way/new", "x"),
                Change::Delete { path: "home".into(), expect: Expect::Anything },
                Change::Move { from: "home".into(), to: "moved".into(), replace: false },
            ] {
                assert!(change(&files, vec![refused.clone()]).is_err(), "{refused:?}");
            }
        }
    }
}

#[test]
fn haft_s_own_folder_may_be_made_later_behind_a_link() {
    let place = Place::new();
    fs::create_dir(place.root.join("real")).unwrap();
    place.link("link", "real");
    for jail in both(JailSpec { private: vec![place.root.join("link/state/haft")], ..spec(&place.root) }) {
        place.file("real/state/haft/secret");
        for path in ["real/state/haft/secret", "link/state/haft/secret"] {
            assert!(matches!(read(&jail, path), Err(PathError::Denied { .. })), "{path}");
        }
        fs::remove_dir_all(place.root.join("real/state")).unwrap();
    }
}

#[test]
fn processes_are_not_files() {
    let place = Place::new();
    place.file("a.txt").link("env", "/proc/self/environ").link("fd", "/dev/fd").link("proc", "/proc/self");
    let spec =
        JailSpec { roots: vec![root(Path::new("/"), false)], allow_absolute: true, ..JailSpec::default() };
    let below = |name: &str| place.root.join(name).to_str().unwrap().to_owned();
    for jail in both(spec) {
        assert_eq!(read(&jail, &below("a.txt")).unwrap(), "a.txt");
        for path in [
            "/proc/self/environ",
            "/proc/self/root/etc/hostname",
            "/proc/self/cwd/x",
            "/proc/self/fd/0",
            "/proc/1/maps",
            "proc/self/environ",
            "/sys/kernel/notes",
            "//proc//self/environ",
            "/./proc/self/status",
            &below("env"),
            &below("proc/environ"),
            &below("proc/mem"),
        ] {
            let error = read(&jail, path).unwrap_err();
            assert!(
                matches!(error, PathError::Denied { .. } | PathError::NotFound { .. }),
                "{path}: {error}"
            );
            assert!(
                !path.contains("environ") || matches!(error, PathError::Denied { .. }),
                "{path}: {error}"
            );
        }
        for descriptor in 0..10 {
            let path = below(&format!("fd/{descriptor}"));
            assert!(!read(&jail, &path).is_ok_and(|text| text.contains("HAFT")), "{path}");
        }
    }
}

#[test]
fn what_is_not_a_regular_file_is_refused_and_nobody_waits() {
    let place = Place::new();
    place.file("d/a.txt");
    let make = |name: &str, kind, device| {
        rustix::fs::mknodat(rustix::fs::CWD, place.root.join(name), kind, Mode::RUSR | Mode::WUSR, device)
    };
    make("pipe", FileType::Fifo, 0).unwrap();
    make(".gitignore", FileType::Fifo, 0).unwrap();
    let _socket = UnixListener::bind(place.root.join("socket")).unwrap();
    // The zero device would never end.
    let has_device = make("zero", FileType::CharacterDevice, rustix::fs::makedev(1, 5)).is_ok();
    let mut specials = vec!["pipe", "socket"];
    if has_device {
        specials.push("zero");
    }
    place.link("to-pipe", "pipe");
    for jail in place.jails() {
        for path in specials.iter().chain(&["to-pipe"]) {
            let error = read(&jail, path).unwrap_err();
            assert!(matches!(error, PathError::Special { .. } | PathError::Io { .. }), "{path}: {error}");
        }
        assert!(matches!(read(&jail, "d"), Err(PathError::Folder { .. })));
        assert!(matches!(read(&jail, "d/a.txt/x"), Err(PathError::NotFolder { .. })));
        assert!(matches!(read(&jail, "."), Err(PathError::Folder { .. })));
        let state = tempfile::tempdir().unwrap();
        let files = files_of(jail, state.path());
        assert_eq!(walked(&files, "."), [Path::new("d/a.txt")]);
        let walk = Walk { path: ".", hidden: true, ignore_files: true, threads: 1 };
        files.walk(&walk, &|_| Step::Continue).unwrap();
        for path in &specials {
            assert!(files.folder(path).is_err());
            assert!(files.walk(&Walk { path, ..walk.clone() }, &|_| panic!("visited")).is_err());
            for refused in [
                write(path, "x"),
                Change::Delete { path: (*path).into(), expect: Expect::Anything },
                Change::Copy { from: (*path).into(), to: "copy".into(), replace: true },
                Change::Copy { from: "d/a.txt".into(), to: (*path).into(), replace: true },
                Change::Move { from: (*path).into(), to: "moved".into(), replace: true },
                Change::Move { from: "d/a.txt".into(), to: (*path).into(), replace: true },
            ] {
                assert!(change(&files, vec![refused.clone()]).is_err(), "{refused:?}");
            }
        }
        assert!(change(&files, vec![write("d", "x")]).is_err());
    }
}

#[test]
fn paths_that_are_too_long_are_refused() {
    let place = Place::new();
    for jail in place.jails() {
        for path in ["a".repeat(256), "a/".repeat(2049), format!("{}b", "a/".repeat(2047)), "ä".repeat(128)]
        {
            for access in [Access::Read, Access::Write] {
                let _ = jail.locate(&path, access);
            }
            assert!(read(&jail, &path).is_err());
            let state = tempfile::tempdir().unwrap();
            let files = files(&place.root, state.path(), Keep::default());
            assert!(
                path.len() < 4096 && path.starts_with("a/")
                    || change(&files, vec![write(&path, "x")]).is_err()
            );
        }
    }
    assert_eq!(tree(&place.root), [""; 0]);
}

#[test]
fn folders_deeper_than_a_path_can_name_end_in_an_error() {
    let place = Place::new();
    let top = place.root.join("deep");
    fs::create_dir(&top).unwrap();
    let mut at = rustix::fs::open(&top, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..1500 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "d", rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    for jail in place.jails() {
        let state = tempfile::tempdir().unwrap();
        let files = files_of(jail, state.path());
        assert!(
            change(&files, vec![Change::Delete { path: "deep".into(), expect: Expect::Anything }]).is_err()
        );
        assert!(
            change(&files, vec![Change::Move { from: "deep".into(), to: "x".into(), replace: false }])
                .is_err()
        );
        assert_eq!(walked(&files, "."), Vec::<PathBuf>::new());
    }
    // The system's own way, too, does not get down there by path.
    assert!(Command::new("rm").arg("-rf").arg(&top).status().unwrap().success());
}

#[test]
fn a_root_that_is_replaced_leads_nowhere_else() {
    let place = Place::new();
    place.file("a.txt").link("link", "a.txt");
    let aside = place.folder.path().join("aside");
    for jail in place.jails() {
        let state = tempfile::tempdir().unwrap();
        let files = files_of(jail, state.path());
        fs::rename(&place.root, &aside).unwrap();
        // First a link to the outside where the root was, then another folder.
        symlink(&place.outside, &place.root).unwrap();
        assert!(files.open("canary").is_err() && files.folder("canary").is_err());
        assert!(files.open("link").is_err(), "its way leads out now");
        let _ = change(&files, vec![write("canary", "x")]);
        let _ = change(&files, vec![write("new", "x")]);
        assert_eq!(tree(&place.outside), [format!("canary={OUTSIDE}")]);
        fs::remove_file(&place.root).unwrap();
        fs::create_dir(&place.root).unwrap();
        fs::write(place.root.join("b.txt"), "b").unwrap();
        assert!(files.open("b.txt").is_err());
        fs::remove_dir_all(&place.root).unwrap();
        for made in ["new", "canary"] {
            let _ = fs::remove_file(aside.join(made));
        }
        fs::rename(&aside, &place.root).unwrap();
        assert!(files.open("a.txt").is_ok());
    }
    let [jail, _] = place.jails();
    fs::remove_dir_all(&place.root).unwrap();
    assert!(read(&jail, "a.txt").is_err());
    let state = tempfile::tempdir().unwrap();
    assert!(change(&files_of(jail, state.path()), vec![write("new", "x")]).is_err());
}

#[test]
fn others_do_not_get_the_rights_of_a_copy_s_owner() {
    let place = Place::new();
    place.file("tool");
    fs::set_permissions(place.root.join("tool"), fs::Permissions::from_mode(0o6755)).unwrap();
    let state = tempfile::tempdir().unwrap();
    let files = files(&place.root, state.path(), Keep::default());
    change(&files, vec![Change::Copy { from: "tool".into(), to: "copy".into(), replace: false }]).unwrap();
    let mode = |name: &str| fs::metadata(place.root.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("tool"), mode("copy")), (0o6755, 0o755));
}

const CHILD: &str = "HAFT_TEST_PATH_JAIL_CHILD";

/// Not a test by itself: what an ordinary user meets.
#[test]
fn as_an_ordinary_user() {
    let Some(folder) = env::var_os(CHILD) else { return };
    for jail in both(spec(Path::new(&folder))) {
        let state = tempfile::tempdir().unwrap();
        assert!(matches!(read(&jail, "closed/a.txt"), Err(PathError::Io { .. })));
        assert!(matches!(read(&jail, "unreadable.txt"), Err(PathError::Io { .. })));
        assert!(matches!(read(&jail, "via"), Err(PathError::Io { .. })));
        // A folder that can be passed but not listed.
        assert_eq!(read(&jail, "passable/a.txt").unwrap(), "passable/a.txt");
        let files = files_of(jail, state.path());
        assert!(files.folder("passable").is_err() && files.folder("closed").is_err());
        assert_eq!(walked(&files, "."), [Path::new("open/a.txt"), Path::new("unreadable.txt")]);
        for path in ["closed/new", "passable/a.txt", "open/new", "new"] {
            assert!(change(&files, vec![write(path, "x")]).is_err(), "{path}");
        }
        let gone = Change::Delete { path: "open/a.txt".into(), expect: Expect::Anything };
        assert!(change(&files, vec![gone]).is_err());
    }
    println!("\nall of it");
}

#[test]
fn what_a_user_may_not_read_is_not_read() {
    if !rustix::process::geteuid().is_root() {
        return haft_testkit::not_run(
            "what_a_user_may_not_read_is_not_read",
            "it needs root, to be somebody else",
        );
    }
    let place = Place::new();
    for path in ["closed/a.txt", "passable/a.txt", "open/a.txt", "unreadable.txt"] {
        place.file(path);
    }
    place.link("via", "closed/a.txt");
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(place.folder.path(), 0o755);
    for (path, bits) in [("closed", 0o700), ("passable", 0o711), ("unreadable.txt", 0o600)] {
        mode(&place.root.join(path), bits);
    }
    // A copy that everybody may run: the folder of the build may be closed.
    let program = place.folder.path().join("program");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    mode(&program, 0o755);
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["as_an_ordinary_user", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, &place.root)
        .env("TMPDIR", "/tmp")
        .current_dir("/")
        .output();
    let Ok(output) = output else {
        return haft_testkit::not_run("what_a_user_may_not_read_is_not_read", "there is no setpriv");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("all of it"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Not a test by itself: it runs where mounts are its own.
#[test]
fn with_mounts_of_its_own() {
    let Some(folder) = env::var_os(format!("{CHILD}_MOUNTS")) else { return };
    let root = PathBuf::from(folder);
    for jail in both(spec(&root)) {
        assert_eq!(read(&jail, "mounted/inner.txt").unwrap(), "inner");
        // The kernel's own view of processes is denied wherever it is mounted.
        for path in
            ["processes/self/environ", "processes/1/status", "to-env", "processes/sys/kernel/hostname"]
        {
            assert!(read(&jail, path).is_err(), "{path}");
        }
        let state = tempfile::tempdir().unwrap();
        let files = files_of(jail, state.path());
        change(
            &files,
            vec![Change::Move { from: "a.txt".into(), to: "mounted/a.txt".into(), replace: false }],
        )
        .unwrap();
        change(
            &files,
            vec![Change::Move { from: "mounted/a.txt".into(), to: "a.txt".into(), replace: false }],
        )
        .unwrap();
        let folder = Change::Move { from: "d".into(), to: "mounted/d".into(), replace: false };
        assert!(change(&files, vec![folder]).is_err());
        let mount = Change::Delete { path: "mounted".into(), expect: Expect::Anything };
        assert!(change(&files, vec![mount]).is_err());
        assert_eq!(fs::read_to_string(root.join("mounted/inner.txt")).unwrap(), "inner");
        assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "a.txt");
    }
    println!("\nall of it");
}

#[test]
fn mounts_inside_a_root() {
    let place = Place::new();
    place.file("a.txt").file("d/b.txt").file("mounted/hidden").file("processes/hidden");
    place.link("to-env", "processes/self/environ");
    let script = "set -e; mount -t tmpfs none \"$1/mounted\"; mount -t proc none \"$1/processes\" || \
                  mount --rbind /proc \"$1/processes\"; printf inner > \"$1/mounted/inner.txt\"; shift; exec \"$@\"";
    let run = |program: &[&OsStr]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "sh", "-c", script, "sh"]).arg(&place.root).args(program);
        command.env(format!("{CHILD}_MOUNTS"), &place.root).output()
    };
    if !run(&[OsStr::new("true")]).is_ok_and(|output| output.status.success()) {
        return haft_testkit::not_run("mounts_inside_a_root", "nothing can be mounted here");
    }
    let program = env::current_exe().unwrap();
    let arguments = ["with_mounts_of_its_own", "--exact", "--nocapture", "--test-threads=1"].map(OsStr::new);
    let all: Vec<_> = std::iter::once(program.as_os_str()).chain(arguments).collect();
    let output = run(&all).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("all of it"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What a random tree is made of: names are few, so that paths and links meet.
#[derive(Clone, Debug)]
enum Made {
    Folder(String),
    File(String),
    Link(String, String),
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof!["[abc]", Just(".env".to_owned())], 1..4)
        .prop_map(|names| names.join("/"))
}

fn target() -> impl Strategy<Value = String> {
    let inside = "(\\.\\./){0,3}[abc](/[abc]){0,2}";
    prop_oneof![6 => inside.prop_map(String::from), 2 => path(), 1 => Just("../outside/canary".to_owned()),
        1 => Just("../outside".to_owned()), 1 => Just("ROOT/a".to_owned()), 1 => Just("OUTSIDE/canary".to_owned()),
        1 => Just(".env".to_owned()), 1 => Just("..".to_owned()), 1 => Just(".".to_owned())]
}

fn made() -> impl Strategy<Value = Made> {
    prop_oneof![
        path().prop_map(Made::Folder),
        path().prop_map(Made::File),
        (path(), target()).prop_map(|(path, target)| Made::Link(path, target))
    ]
}

fn asked() -> impl Strategy<Value = String> {
    let names = proptest::collection::vec(
        prop_oneof![8 => "[abc]", 1 => Just(".env".to_owned()),
        1 => Just(".".to_owned()), 1 => Just("..".to_owned()), 1 => Just("canary".to_owned())],
        1..5,
    );
    names.prop_map(|names| names.join("/"))
}

fn make(place: &Place, made: &[Made]) {
    for made in made {
        // What is in the way of another stays.
        let _ = match made {
            Made::Folder(path) => fs::create_dir_all(place.root.join(path)),
            Made::File(path) => {
                let full = place.root.join(path);
                let is_inside = |parent: PathBuf| parent.starts_with(&place.root);
                match fs::create_dir_all(full.parent().unwrap())
                    .and_then(|()| full.parent().unwrap().canonicalize())
                {
                    Ok(parent) if is_inside(parent.clone()) && !full.is_symlink() => fs::write(full, path),
                    _ => Ok(()),
                }
            }
            Made::Link(path, target) => {
                let target = target.replace("ROOT", place.root.to_str().unwrap());
                let target = target.replace("OUTSIDE", place.outside.to_str().unwrap());
                symlink(target, place.root.join(path))
            }
        };
    }
}

/// Slow, plain, and right as long as nobody swaps anything: resolve, then compare.
fn reference(place: &Place, path: &str) -> Option<String> {
    if path.split('/').any(|name| name == "..") {
        return None;
    }
    // haft takes `a/.` for `a`, also where `a` is a file.
    let names: PathBuf = path.split('/').filter(|name| *name != ".").collect();
    let real = place.root.join(names).canonicalize().ok()?;
    let below = real.strip_prefix(&place.root).ok()?;
    // What is in a folder of that name is meant as well.
    let denied = below.iter().any(|name| name == OsStr::new(".env"));
    (!denied && real.is_file()).then(|| fs::read_to_string(real).unwrap())
}

#[test]
fn both_ways_of_opening_agree_with_the_plain_one() {
    let cases = env::var("HAFT_TEST_CASES").map_or(300, |cases| cases.parse().unwrap());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let strategy = (proptest::collection::vec(made(), 1..14), proptest::collection::vec(asked(), 20));
    let counts = Mutex::new((0, 0));
    let result = runner.run(&strategy, |(trees, paths)| {
        let place = Place::new();
        make(&place, &trees);
        let outside = tree(&place.outside);
        let [kernel, steps] = place.jails();
        for path in &paths {
            let expected = reference(&place, path);
            let [one, other] = [&kernel, &steps].map(|jail| read(jail, path));
            prop_assert_eq!(one.as_ref().ok(), expected.as_ref(), "{} {:?}", path, one);
            prop_assert_eq!(one.map_err(|error| error.to_string()), other.map_err(|error| error.to_string()));
            for access in [Access::Read, Access::Write] {
                let [one, other] = [&kernel, &steps].map(|jail| jail.locate(path, access));
                prop_assert_eq!(
                    one.map_err(|error| error.to_string()),
                    other.map_err(|error| error.to_string())
                );
            }
            let mut counts = counts.lock().unwrap();
            if expected.is_some() { counts.0 += 1 } else { counts.1 += 1 }
        }
        // And nothing is ever written there.
        let state = tempfile::tempdir().unwrap();
        let files = files(&place.root, state.path(), Keep::default());
        for path in &paths[..4] {
            let _ = change(&files, vec![write(path, "x")]);
        }
        prop_assert_eq!(tree(&place.outside), outside);
        Ok(())
    });
    result.unwrap();
    let (found, refused) = counts.into_inner().unwrap();
    println!("{found} paths opened, {refused} refused");
    assert!(found > 100 && refused > 1000, "{found} {refused}");
}
