//! Threads swap folders, links to the outside and links to denied files while every file tool runs: nothing outside
//! and nothing denied is ever read, and nothing is written there.
//!
//! What is swapped are names and links. Somebody who gives a denied folder itself another name has made it another
//! folder: that is not a race, and no pattern knows of it.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "tests say what they need, and how much they tried"
)]

mod attack;

use attack::{
    CANARY, DENIED, OUTSIDE_NAME, Watchdog, assert_nothing_leaks, call, everything, files_with, fingerprint,
    new_folder,
};
use haft_files::Files;
use haft_sdk::Tool;
use haft_tools::FileToolSettings;
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read as _,
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

struct Ground {
    _folder: TempDir,
    state: TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl Ground {
    /// `d` is a folder with a file, `f` a file. Beside each lies what takes its place: links to the outside, to what
    /// is denied, to other files inside; pipes and sockets.
    fn new() -> Self {
        let folder = new_folder();
        let top = folder.path().canonicalize().unwrap();
        let (root, outside) = (top.join("root"), top.join("outside"));
        for (path, text) in [
            ("outside/f", CANARY),
            ("outside/sub/f", CANARY),
            (&*format!("outside/{OUTSIDE_NAME}"), CANARY),
            ("root/.env", DENIED),
            ("root/.ssh/f", DENIED),
            ("root/.ssh/sub/f", DENIED),
            ("root/d/f", "inside\n"),
            ("root/d/sub/f", "inside\n"),
            ("root/swap/other-folder/f", "inside\n"),
            ("root/f", "inside\n"),
            ("root/swap/other-file", "inside\n"),
            ("root/honest", "honest\n"),
        ] {
            fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
            fs::write(top.join(path), text).unwrap();
        }
        let swap = root.join("swap");
        for (name, target) in [
            ("folder-outside", outside.clone()),
            ("folder-relative", "../outside".into()),
            ("folder-denied", root.join(".ssh")),
            ("folder-inside", root.join("swap/other-folder")),
            ("file-outside", outside.join("f")),
            ("file-relative", "../outside/f".into()),
            ("file-denied", root.join(".env")),
            ("file-inside", root.join("honest")),
        ] {
            symlink(target, swap.join(name)).unwrap();
        }
        rustix::fs::mknodat(CWD, swap.join("file-pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        drop(UnixListener::bind(swap.join("file-socket")).unwrap());
        // A device that never ends, where one may be made.
        let zero = rustix::fs::makedev(1, 5);
        let _ = rustix::fs::mknodat(CWD, swap.join("file-zero"), FileType::CharacterDevice, Mode::RWXU, zero);
        Ground { _folder: folder, state: new_folder(), root, outside }
    }

    fn files(&self, step_by_step: bool) -> Files {
        attack::files(&self.root, self.state.path(), step_by_step)
    }

    fn assert_untouched(&self, outside: &BTreeMap<PathBuf, String>) {
        assert_eq!(fingerprint(&self.outside), *outside);
        assert_eq!(files_with(&self.root, CANARY), Vec::<PathBuf>::new(), "copied in");
        assert_eq!(files_with(self.state.path(), CANARY), Vec::<PathBuf>::new(), "kept");
        let mut denied = files_with(&self.root, DENIED);
        denied.sort();
        let expected = [".env", ".ssh/f", ".ssh/sub/f"].map(|path| self.root.join(path));
        assert_eq!(denied, expected, "a denied file was copied, moved or changed");
        assert_eq!(files_with(self.state.path(), DENIED), Vec::<PathBuf>::new(), "kept");
    }

    /// Runs something while threads swap what `d`, `d/sub` and `f` are.
    fn in_a_storm<T>(&self, run: impl FnOnce() -> T) -> (T, usize) {
        let (over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
        let beside = |prefix: &str| -> Vec<PathBuf> {
            let entries = fs::read_dir(self.root.join("swap")).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix)).collect()
        };
        let (folders, files) = (beside("folder-"), beside("file-"));
        let result = thread::scope(|scope| {
            for (name, all) in [("d", &folders), ("f", &files)] {
                let (over, swaps, place) = (&over, &swaps, self.root.join(name));
                scope.spawn(move || {
                    let mut turn = 0;
                    while !over.load(Ordering::Relaxed) {
                        let other = &all[turn / 2 % all.len()];
                        // There and back: after two turns each is where it was. A tool may have replaced or moved it.
                        let _ = rustix::fs::renameat_with(CWD, &place, CWD, other, RenameFlags::EXCHANGE);
                        turn += 1;
                        // The tools need the processor as well; without a pause there are fifty swaps for each try.
                        if turn % 8 == 0 {
                            thread::sleep(Duration::from_micros(20));
                        }
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let (over_seen, swaps, root) = (&over, &swaps, &self.root);
            let outside = &self.outside;
            scope.spawn(move || {
                // The other way to swap: a link is made under another name, and renamed over the one that is there.
                let (at, fresh) = (root.join("l"), root.join("swap/fresh"));
                let targets = [
                    outside.join("f"),
                    root.join(".env"),
                    root.join("honest"),
                    "swap/../../outside/f".into(),
                ];
                for target in targets.iter().cycle() {
                    if over_seen.load(Ordering::Relaxed) {
                        break;
                    }
                    let _ = fs::remove_file(&fresh);
                    let _ = symlink(target, &fresh).and_then(|()| fs::rename(&fresh, &at));
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Also when it panics the others must end.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            over.store(true, Ordering::Relaxed);
            result
        });
        match result {
            Ok(result) => (result, swaps.into_inner()),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn tools() -> BTreeMap<String, Box<dyn Tool>> {
    let mut settings = FileToolSettings::default();
    settings.move_file.allow_overwrite = true;
    settings.copy_file.allow_overwrite = true;
    settings.glob.threads = 2;
    settings.search_files.threads = 2;
    haft_tools::file_tools(&settings).into_iter().map(|tool| (tool.definition().name.clone(), tool)).collect()
}

/// The calls of one round; the cheap ones come often.
fn round(number: usize, worker: usize) -> Vec<(&'static str, Value)> {
    let mut calls = Vec::new();
    for _ in 0..12 {
        for path in ["f", "d/f", "d/sub/f", "l"] {
            calls.push(("read_file", json!({"path": path})));
        }
        for path in ["d", "d/sub"] {
            calls.push(("list_directory", json!({"path": path, "include_hidden": true})));
        }
    }
    let path = ["f", "d/f", "d/sub/f", "l"][number % 4];
    let fresh = format!("d/new-{worker}-{}", number % 8);
    let search =
        json!({"path": (["d", ".", "f"][number % 3]), "pattern": "content", "literal": true, "hidden": true});
    let patch =
        format!("*** Begin Patch\n*** Update File: {path}\n@@\n-inside\n+inside\n+more\n*** End Patch\n");
    let add = format!("*** Begin Patch\n*** Add File: {fresh}\n+new\n*** End Patch\n");
    calls.extend([
        ("list_directory", json!({"path": ".", "recursive": true, "include_hidden": true})),
        ("glob", json!({"path": (["d", "."][number % 2]), "pattern": "**", "hidden": true})),
        ("search_files", search),
        ("write_file", json!({"path": fresh, "content": "new"})),
        (
            "write_file",
            json!({"path": path, "content": "new\n", "mode": (["append", "overwrite"][number % 2])}),
        ),
        ("edit_file", json!({"path": path, "old_text": "inside", "new_text": "inside", "all": true})),
        ("edit_file", json!({"path": path, "start_line": 1, "end_line": 1, "new_text": "inside\n"})),
        ("apply_patch", json!({"patch": if number.is_multiple_of(2) { patch } else { add }})),
        ("copy_file", json!({"source": path, "destination": format!("copies/{worker}"), "overwrite": true})),
        ("copy_file", json!({"source": "honest", "destination": path, "overwrite": true})),
        (
            "move_file",
            json!({"source": path, "destination": format!("copies/moved-{worker}"), "overwrite": true}),
        ),
        (
            "move_file",
            json!({"source": format!("copies/moved-{worker}"), "destination": path, "overwrite": true}),
        ),
        ("delete_file", json!({"path": fresh})),
    ]);
    calls
}

#[test]
fn nothing_leaks_and_nothing_is_written_in_a_storm_of_swaps() {
    const LEAST: usize = 100_000;
    let ground = Ground::new();
    let outside = fingerprint(&ground.outside);
    let tools = tools();
    let doing = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&doing);
    let _watchdog = Watchdog::new(Duration::from_secs(600), move || seen.lock().unwrap().clone());
    let counts: Mutex<BTreeMap<&str, (usize, usize)>> = Mutex::default();
    let start = Instant::now();
    let ((), swaps) = ground.in_a_storm(|| {
        thread::scope(|scope| {
            for worker in 0..2 {
                let files = Arc::new(ground.files(worker == 1));
                let (tools, counts, doing) = (&tools, &counts, &doing);
                scope.spawn(move || {
                    for number in 0.. {
                        let total: usize = counts.lock().unwrap().values().map(|(tried, _)| tried).sum();
                        if start.elapsed() >= Duration::from_secs(10) && total >= LEAST {
                            break;
                        }
                        for (name, arguments) in round(number, worker) {
                            if worker == 0 {
                                *doing.lock().unwrap() = format!("{name} {arguments}");
                            }
                            let result = call(&files, &*tools[name], arguments);
                            assert_nothing_leaks(&everything(&result), || format!("{name}, worker {worker}"));
                            let mut counts = counts.lock().unwrap();
                            let count = counts.entry(name).or_default();
                            *count = (count.0 + 1, count.1 + usize::from(result.is_ok()));
                        }
                    }
                });
            }
        });
    });
    ground.assert_untouched(&outside);
    let counts = counts.into_inner().unwrap();
    let total: usize = counts.values().map(|(tried, _)| tried).sum();
    println!(
        "{total} tries against {swaps} swaps in {:.1} s; tried and done: {counts:?}",
        start.elapsed().as_secs_f32()
    );
    assert!(total >= LEAST && swaps >= 10_000, "{total} tries, {swaps} swaps");
    for (name, (tried, done)) in &counts {
        assert!(*tried >= 500, "{name}: {tried} tries");
        // A tool that always fails would show nothing.
        assert!(*done >= 1, "{name} never worked");
    }
}

/// What a jail by comparing paths does in the same storm: resolve, compare, open.
fn naive(root: &Path, path: &str) -> Option<String> {
    let real = root.join(path).canonicalize().ok().filter(|real| real.starts_with(root))?;
    let is_denied = real.components().any(|name| name.as_os_str() == ".env" || name.as_os_str() == ".ssh");
    if is_denied || !fs::symlink_metadata(&real).ok()?.is_file() {
        return None;
    }
    let file =
        rustix::fs::open(&real, rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK, Mode::empty());
    let mut text = String::new();
    File::from(file.ok()?).take(4096).read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn the_same_storm_breaks_a_jail_that_compares_paths() {
    let ground = Ground::new();
    let _watchdog = Watchdog::new(Duration::from_secs(120), || "the control".to_owned());
    let ((tries, broken), swaps) = ground.in_a_storm(|| {
        let (start, mut tries, mut broken) = (Instant::now(), 0, 0);
        while start.elapsed() < Duration::from_secs(60)
            && (broken < 3 || start.elapsed() < Duration::from_secs(1))
        {
            for path in ["f", "d/f", "d/sub/f", "l"] {
                tries += 1;
                let text = naive(&ground.root, path).unwrap_or_default();
                broken += usize::from(text.contains(CANARY) || text.contains(DENIED));
            }
        }
        (tries, broken)
    });
    println!("broken {broken} times in {tries} tries, {swaps} swaps");
    assert!(broken >= 1, "the storm is too weak to show anything");
}

type Swap = fn(&Ground);

/// One swap, at one point of a change: deterministic, where the storm only hopes.
fn swapped_at(point: &'static str, swap: Swap, name: &str, arguments: &Value) {
    for step_by_step in [false, true] {
        let ground = Arc::new(Ground::new());
        let outside = fingerprint(&ground.outside);
        let _watchdog = Watchdog::new(Duration::from_secs(60), move || format!("swapped at {point}"));
        let mut files = ground.files(step_by_step);
        let (at, done) = (Arc::clone(&ground), AtomicBool::new(false));
        files.at_points(Arc::new(move |now| {
            if now == point && !done.swap(true, Ordering::Relaxed) {
                swap(&at);
            }
        }));
        let files = Arc::new(files);
        let tools = tools();
        if arguments.get("path").is_some() {
            let _ = call(&files, &*tools["read_file"], json!({"path": arguments["path"]}));
        }
        let result = call(&files, &*tools[name], arguments.clone());
        assert_nothing_leaks(&everything(&result), || format!("{name} swapped at {point}"));
        ground.assert_untouched(&outside);
    }
}

fn exchange(ground: &Ground, name: &str, other: &str) {
    let (one, other) = (ground.root.join(name), ground.root.join("swap").join(other));
    if other.exists() || other.is_symlink() {
        // At some points the change has already given it another name.
        let _ = rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
    }
}

#[test]
fn a_swap_at_every_point_of_a_change() {
    let swaps: [Swap; 8] = [
        |ground| exchange(ground, "d", "folder-outside"),
        |ground| exchange(ground, "d", "folder-relative"),
        |ground| exchange(ground, "d", "folder-denied"),
        |ground| exchange(ground, "d", "folder-inside"),
        |ground| exchange(ground, "f", "file-outside"),
        |ground| exchange(ground, "f", "file-denied"),
        |ground| exchange(ground, "f", "file-pipe"),
        |ground| exchange(ground, "f", "file-zero"),
    ];
    let mut tried = 0;
    for point in ["image", "manifest", "folder", "stage", "name", "carried out"] {
        for swap in swaps {
            for (name, arguments) in [
                ("write_file", json!({"path": "d/new", "content": "x"})),
                ("write_file", json!({"path": "d/a/b/new", "content": "x"})),
                ("write_file", json!({"path": "d/f", "content": "x", "mode": "append"})),
                ("write_file", json!({"path": "f", "content": "x", "mode": "append"})),
                ("edit_file", json!({"path": "f", "old_text": "inside", "new_text": "x"})),
                ("edit_file", json!({"path": "d/sub/f", "old_text": "inside", "new_text": "x"})),
                ("delete_file", json!({"path": "d/f"})),
                ("delete_file", json!({"path": "f"})),
                ("move_file", json!({"source": "d/f", "destination": "new"})),
                ("move_file", json!({"source": "d/sub", "destination": "new"})),
                ("move_file", json!({"source": "f", "destination": "d/new"})),
                ("move_file", json!({"source": "honest", "destination": "f", "overwrite": true})),
                ("copy_file", json!({"source": "f", "destination": "d/new"})),
                ("copy_file", json!({"source": "honest", "destination": "f", "overwrite": true})),
            ] {
                swapped_at(point, swap, name, &arguments);
                tried += 2;
            }
        }
    }
    println!("{tried} changes with a swap in the middle");
}
