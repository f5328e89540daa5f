//! Every line of the lists of path traversals, as the path of every file tool, in a jail with something to find
//! outside and links to it inside: nothing of it is read, and nothing is written there.
//!
//! The lines are made here, of every way to write "up" with every way to write a slash. Where the test data has the
//! lists that people publish, those are tried, and a part of ours.
//!
//! All lines go through the five tools of the acceptance test, half of them with each way of opening. A fixed sample
//! gets both ways, other spellings, and the other tools; with `HAFT_TEST_EVERYTHING=1` all lines do.

#![cfg(unix)]
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
    CANARY, DENIED, OUTSIDE_NAME, Watchdog, assert_nothing_leaks, call, everything, files, files_with,
    fingerprint, new_folder,
};
use haft_files::Files;
use haft_sdk::Tool;
use haft_tools::FileToolSettings;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// How many folders lie between the top of the ground and the root.
const LEVELS: usize = 9;
/// What the lists are after, mostly.
const AIMS: &[&str] = &[
    "etc/passwd",
    "etc/shadow",
    "etc/group",
    "etc/hosts",
    "etc/issue",
    "boot.ini",
    "windows/win.ini",
    "windows/system32/drivers/etc/hosts",
    "proc/self/environ",
    "var/log/apache/access.log",
    "root/.ssh/id_rsa",
];

/// A root deep below folders that all hold what the lists are after.
struct Ground {
    _folder: TempDir,
    _state: TempDir,
    top: PathBuf,
    root: PathBuf,
    state: PathBuf,
    files: Arc<Files>,
}

fn canary_at(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, CANARY).unwrap();
}

impl Ground {
    fn new(step_by_step: bool) -> Self {
        let (folder, state) = (new_folder(), new_folder());
        let top = folder.path().canonicalize().unwrap();
        let mut at = top.clone();
        for level in 0..LEVELS {
            for aim in AIMS {
                canary_at(&at.join(aim));
            }
            canary_at(&at.join(OUTSIDE_NAME));
            at.push(format!("level{level}"));
            fs::create_dir(&at).unwrap();
        }
        let outside = at.join("outside");
        for aim in AIMS.iter().chain(&["canary.txt", OUTSIDE_NAME]) {
            canary_at(&outside.join(aim));
        }
        let root = at.join("root");
        fs::create_dir(&root).unwrap();
        Ground::furnish(&root, &outside, &top);
        let state_path = state.path().canonicalize().unwrap();
        let files = Arc::new(files(&root, &state_path, step_by_step));
        Ground { _folder: folder, _state: state, top, root, state: state_path, files }
    }

    /// Honest files, denied ones, and every kind of link to the outside.
    fn furnish(root: &Path, outside: &Path, top: &Path) {
        for path in ["docs/a.txt", "docs/deep/b.txt", "images/c.txt"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "honest text\n").unwrap();
        }
        for path in [".env", ".ssh/id_rsa", "docs/prod.env"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), DENIED).unwrap();
        }
        for (name, target) in [
            ("file-link", outside.join("canary.txt")),
            ("folder-link", outside.to_owned()),
            ("relative-file", "../outside/canary.txt".into()),
            ("relative-folder", "../outside".into()),
            ("docs/up", "../../outside".into()),
            ("chain-1", "chain-2".into()),
            ("chain-2", "docs/chain-3".into()),
            ("docs/chain-3", "../../outside/canary.txt".into()),
            ("way-1", "docs/way-2".into()),
            ("docs/way-2", outside.to_owned()),
            ("above", "..".into()),
            ("top", top.to_owned()),
            ("slash", "/".into()),
            // The lists begin with these, once what leads up is taken away.
            ("etc", top.join("etc")),
            ("windows", outside.join("windows")),
            ("boot.ini", outside.join("boot.ini")),
            ("proc", "/proc".into()),
            ("var", "../../../var".into()),
            ("new", outside.join("not-there-yet")),
            ("notes", ".env".into()),
            ("keys", ".ssh".into()),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
    }

    /// All that is not the root.
    fn outside(&self) -> BTreeMap<PathBuf, String> {
        let mut all = fingerprint(&self.top);
        all.retain(|path, _| !path.starts_with(&self.root));
        all
    }

    fn assert_untouched(&self, before: &BTreeMap<PathBuf, String>) {
        let after = self.outside();
        for (path, was) in before {
            assert_eq!(after.get(path), Some(was), "{} is not as it was", path.display());
        }
        assert_eq!(after.len(), before.len(), "something is new outside");
        assert_eq!(files_with(&self.root, CANARY), Vec::<PathBuf>::new(), "copied in");
        assert_eq!(files_with(&self.state, CANARY), Vec::<PathBuf>::new(), "kept");
        assert_eq!(files_with(&self.root, DENIED).len(), 3, "a denied file was copied or moved");
        assert_eq!(files_with(&self.state, DENIED), Vec::<PathBuf>::new(), "kept");
    }
}

/// Ways to write "one folder up" and "here a folder ends", of which some reader takes each for the plain one.
const UPS: &[&str] = &[
    "..",
    "%2e%2e",
    ".%2e",
    "%252e%252e",
    "%c0%ae%c0%ae",
    "....",
    "..;",
    ".. ",
    "\u{ff0e}\u{ff0e}",
    "\u{2025}",
];
const SLASHES: &[&str] =
    &["/", "//", "/./", "\\", "\\/", "%2f", "%5c", "%252f", "%c0%af", "%u2215", "\u{ff0f}", "\u{2044}"];
/// What such a path begins and ends with, so that a check of the one or the other end lets it pass.
const AROUND: &[(&str, &str)] = &[
    ("/", ""),
    ("./", "/."),
    ("docs/", "%00"),
    ("file:///", "\0.txt"),
    ("C:/", "%00.jpg"),
    ("~/", "?x"),
    ("above/", "#x"),
    ("folder-link/", "/"),
    ("\\\\.\\", "::$DATA"),
];

/// Every way to write "up", with every slash, as far up as there are folders and further, to every aim.
fn own_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for (up, slash) in UPS.iter().flat_map(|up| SLASHES.iter().map(move |slash| (up, slash))) {
        for (times, aim) in (1..=LEVELS + 1).flat_map(|times| AIMS.iter().map(move |aim| (times, aim))) {
            let line = format!("{up}{slash}").repeat(times) + &aim.replace('/', slash);
            if times % 5 == 0 {
                let (before, after) = AROUND[lines.len() % AROUND.len()];
                lines.push(format!("{before}{line}{after}"));
            }
            lines.push(line);
        }
    }
    lines
}

/// The lines of all lists, each once, and how many there were with repetitions.
fn lines() -> (Vec<String>, usize) {
    let published = haft_testkit::shared_data("path_traversal");
    let part = if published.is_some() { 10 } else { 1 };
    let mut lines: BTreeSet<String> = own_lines().into_iter().step_by(part).collect();
    let mut total = lines.len();
    let mut open: Vec<PathBuf> = published.into_iter().collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        for line in fs::read(&path).unwrap().split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let text = String::from_utf8_lossy(line);
            total += 1;
            lines.insert(text.replace("{FILE}", "etc/passwd"));
        }
    }
    (lines.into_iter().collect(), total)
}

/// `%2e` as the byte that it means; what is no such thing stays.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| bytes[at] == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Other ways in which the same line could reach a tool.
fn spellings(line: &str) -> Vec<String> {
    let once = decoded(line);
    let twice = decoded(&once);
    let mut all: Vec<_> = [
        once.clone(),
        twice.clone(),
        line.replace('\\', "/"),
        twice.replace('\\', "/"),
        format!("/{line}"),
        twice.trim_start_matches(['/', '\\', '.']).to_owned(),
        twice.replace('\0', ""),
        line.to_uppercase(),
    ]
    .into();
    for folder in ["docs", "./docs/deep/.", "folder-link", "above", "slash", "no-such-folder"] {
        all.push(format!("{folder}/{twice}"));
    }
    all.sort();
    all.dedup();
    all.retain(|spelling| spelling != line);
    all
}

struct Tools(BTreeMap<String, Box<dyn Tool>>);

impl Tools {
    fn new() -> Self {
        let mut settings = FileToolSettings::default();
        settings.move_file.allow_overwrite = true;
        settings.copy_file.allow_overwrite = true;
        settings.delete_file.allow_delete_dirs = true;
        settings.glob.threads = 1;
        settings.search_files.threads = 1;
        let tools = haft_tools::file_tools(&settings);
        Tools(tools.into_iter().map(|tool| (tool.definition().name.clone(), tool)).collect())
    }

    fn run(&self, ground: &Ground, name: &str, arguments: Value) -> bool {
        let shown = if cfg!(debug_assertions) { arguments.to_string() } else { String::new() };
        let result = call(&ground.files, &*self.0[name], arguments);
        assert_nothing_leaks(&everything(&result), || format!("{name} {shown}"));
        result.is_ok()
    }
}

/// The tools of the acceptance test that read.
fn reading(line: &str) -> [(&'static str, Value); 3] {
    let text = json!({"path": line, "pattern": "canary", "literal": true, "hidden": true, "no_ignore": true});
    [
        ("read_file", json!({"path": line})),
        ("list_directory", json!({"path": line, "include_hidden": true})),
        ("search_files", text),
    ]
}

/// The tools of the acceptance test that change. The second one meets what the first one made, where it made something.
fn changing(line: &str, number: usize) -> [(&'static str, Value); 2] {
    let patch = match number % 3 {
        0 => format!("*** Begin Patch\n*** Add File: {line}\n+x\n*** End Patch\n"),
        1 => format!("LP1\nF {line}\nT\nx\n.\nEND\n"),
        _ => format!("--- /dev/null\n+++ b/{line}\n@@ -0,0 +1 @@\n+x\n"),
    };
    let mut calls =
        [("write_file", json!({"path": line, "content": "x"})), ("apply_patch", json!({"patch": patch}))];
    calls.rotate_left(number / 3 % 2);
    calls
}

/// Everything else that takes a path.
fn others(line: &str) -> Vec<(&'static str, Value)> {
    let envelope = |body: String| json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")});
    let regex = "canary|denied";
    vec![
        ("write_file", json!({"path": line, "content": "x", "mode": "append"})),
        ("write_file", json!({"path": line, "content": "x", "mode": "overwrite"})),
        (
            "list_directory",
            json!({"path": line, "recursive": true, "include_hidden": true, "include_other": true}),
        ),
        ("glob", json!({"path": line, "pattern": "**", "hidden": true, "no_ignore": true})),
        ("glob", json!({"pattern": line, "hidden": true})),
        ("search_files", json!({"pattern": regex, "include": [line], "hidden": true, "no_ignore": true})),
        ("read_file", json!({"path": line, "start_line": 1, "end_line": 2, "encoding": "ascii"})),
        ("edit_file", json!({"path": line, "old_text": "canary", "new_text": "x"})),
        ("edit_file", json!({"path": line, "start_line": 1, "end_line": 1, "new_text": "x"})),
        ("copy_file", json!({"source": line, "destination": "images/copy", "overwrite": true})),
        ("copy_file", json!({"source": "docs/a.txt", "destination": line, "overwrite": true})),
        ("move_file", json!({"source": line, "destination": "images/moved", "overwrite": true})),
        ("move_file", json!({"source": "images/c.txt", "destination": line, "overwrite": true})),
        ("delete_file", json!({"path": line})),
        ("apply_patch", envelope(format!("*** Update File: {line}\n@@\n-{CANARY}\n+x\n"))),
        ("apply_patch", envelope(format!("*** Delete File: {line}\n"))),
        (
            "apply_patch",
            envelope(format!("*** Update File: docs/a.txt\n*** Move to: {line}\n@@\n-honest text\n+x\n")),
        ),
        ("apply_patch", json!({"patch": format!("LP1\nF {line}\nB\nx\n.\nEND\n")})),
        (
            "apply_patch",
            json!({"patch": format!("--- a/{line}\n+++ b/{line}\n@@ -1 +1 @@\n-{CANARY}\n+x\n")}),
        ),
        (
            "apply_patch",
            json!({"patch": format!("diff --git a/docs/a.txt b/{line}\nsimilarity index 100%\nrename from docs/a.txt\nrename to {line}\n")}),
        ),
        ("apply_patch", json!({"patch": format!("--- a/{line}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{CANARY}\n")})),
    ]
}

/// What the links lead to can be read without the jail, and the tools do work: otherwise the rest shows nothing.
fn assert_the_test_can_fail(ground: &Ground, tools: &Tools, lines: &[String]) -> usize {
    for link in [
        "file-link",
        "relative-file",
        "chain-1",
        "folder-link/etc/passwd",
        "docs/up/canary.txt",
        "etc/passwd",
    ] {
        let read = fs::read_to_string(ground.root.join(link)).unwrap();
        assert_eq!(read, CANARY, "{link}");
        assert!(!tools.run(ground, "read_file", json!({"path": link})), "{link}");
    }
    assert_eq!(fs::read_to_string(ground.root.join("notes")).unwrap(), DENIED);
    assert!(tools.run(ground, "read_file", json!({"path": "docs/a.txt"})));
    assert!(tools.run(ground, "list_directory", json!({"path": "docs/deep"})));
    assert!(tools.run(ground, "search_files", json!({"path": ".", "pattern": "honest"})));
    assert!(tools.run(ground, "write_file", json!({"path": "own/new.txt", "content": "x"})));
    let patch =
        "*** Begin Patch\n*** Update File: docs/a.txt\n@@\n-honest text\n+honest words\n*** End Patch\n";
    assert!(tools.run(ground, "apply_patch", json!({"patch": patch})));
    assert!(tools.run(ground, "copy_file", json!({"source": "docs/a.txt", "destination": "own/a.txt"})));
    assert!(tools.run(ground, "delete_file", json!({"path": "own"})));
    let naive = |line: &String| {
        let joined = ground.root.join(line.trim_start_matches('/').split('\0').next().unwrap_or_default());
        // Some lines lead to this process's own pipes: reading those would wait for ever.
        let is_file = fs::metadata(&joined).is_ok_and(|known| known.is_file() && known.len() < 1 << 20);
        is_file && fs::read_to_string(joined).is_ok_and(|text| text == CANARY)
    };
    lines.iter().filter(|line| naive(line)).count()
}

#[test]
fn no_line_of_the_lists_leads_out() {
    let (lines, total) = lines();
    let start = Instant::now();
    let everything_asked = env::var_os("HAFT_TEST_EVERYTHING").is_some();
    let every = |sample: usize| if everything_asked { 1 } else { sample };
    let (sampled_twice, sampled_tools, sampled_spellings) = (every(16), every(64), every(128));
    let tools = Tools::new();
    // One ground for each way of opening a path; and others for the tools that may take a link away.
    let grounds = [Ground::new(false), Ground::new(true)];
    let other_grounds = [Ground::new(false), Ground::new(true)];
    let naive = assert_the_test_can_fail(&grounds[0], &tools, &lines);
    assert!(naive >= 200, "only {naive} lines would read the canary where there is no jail");
    let all_grounds = || grounds.iter().chain(&other_grounds);
    let before: Vec<_> = all_grounds().map(Ground::outside).collect();
    let doing = Arc::new([Mutex::new(String::new()), Mutex::new(String::new())]);
    let seen = Arc::clone(&doing);
    let limit = if everything_asked { 7200 } else { 900 };
    let _watchdog = Watchdog::new(Duration::from_secs(limit), move || format!("{seen:?}"));
    let (tried, other_tried, spelled) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for (way, doing) in doing.iter().enumerate() {
            let (ground, other, lines, tools) = (&grounds[way], &other_grounds[way], &lines, &tools);
            let (tried, other_tried, spelled) = (&tried, &other_tried, &spelled);
            scope.spawn(move || {
                let run = |ground, count: &AtomicUsize, (name, arguments)| {
                    tools.run(ground, name, arguments);
                    count.fetch_add(1, Ordering::Relaxed);
                };
                let five = |line: &str, number| reading(line).into_iter().chain(changing(line, number));
                for (number, line) in lines.iter().enumerate() {
                    // Each line with one way of opening, some with both.
                    if number % 2 == way || number % sampled_twice == 0 {
                        doing.lock().unwrap().clone_from(line);
                        five(line, number).for_each(|call| run(ground, tried, call));
                    }
                    if number % sampled_tools == 0 {
                        others(line).into_iter().for_each(|call| run(other, other_tried, call));
                    }
                    if number % sampled_spellings == 0 {
                        for line in spellings(line) {
                            five(&line, number).for_each(|call| run(ground, spelled, call));
                        }
                    }
                }
            });
        }
    });
    for (ground, before) in all_grounds().zip(&before) {
        ground.assert_untouched(before);
    }
    let (tried, other_tried, spelled) = (tried.into_inner(), other_tried.into_inner(), spelled.into_inner());
    println!(
        "{total} lines, {} of them different, {naive} of which read the canary where there is no jail: {tried} calls \
         of the five tools, {other_tried} of the others, {spelled} with other spellings, in {:.1} s",
        lines.len(),
        start.elapsed().as_secs_f32()
    );
    assert!(total >= 12_000 && lines.len() >= 12_000, "{total} lines, {} different", lines.len());
    assert!(tried >= lines.len() * 5, "{tried}");
    assert!(other_tried >= 10_000 && spelled >= 10_000);
}
