//! What the file tools cost against what nobody can do without, in one run: opening, listing, reading, searching.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "not a library")]

use haft_core::{
    Arguments, CallContext, Enforcement, ExecutionId, OutputStream, ToolCall, ToolError, ToolOutput,
    port::{BoxFuture, GuestEnd, GuestSpec},
};
use haft_files::{DEFAULT_DENIES, Files, JailSpec, Keep, PathJail, RootSpec};
use haft_sdk::{Args, CallHost, Cancel, Tool, ToolCtx, capability::Capabilities, files::Workspace};
use haft_store::MemoryReadHashes;
use haft_tools::{FileToolSettings, file_tools};
use ignore::{WalkBuilder, WalkState};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    fs::File,
    hint::black_box,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const FOLDERS: usize = 1000;
const FILES_IN_EACH: usize = 100;
/// Enough for everything: the limits are not what is measured.
const MOST: usize = 1_000_000;

/// An engine's side of a call, without the engine: blocking code goes to the runtime's threads for that.
struct Bare {
    call: ToolCall,
    context: Arc<CallContext>,
    cancel: Cancel,
    capabilities: Capabilities,
}

impl CallHost for Bare {
    fn execution_id(&self) -> ExecutionId {
        ExecutionId::from_uuid(uuid::Uuid::from_u128(1))
    }
    fn call(&self) -> &ToolCall {
        &self.call
    }
    fn context(&self) -> &CallContext {
        &self.context
    }
    fn attempt(&self) -> u32 {
        1
    }
    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
    fn output_limit(&self) -> usize {
        usize::MAX
    }
    fn capacity(&self) -> usize {
        self.output_limit()
    }
    fn without_secrets(&self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }
    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
    fn write(&self, _stream: OutputStream, _bytes: &[u8]) {}
    fn progress(&self, _percent: Option<u8>, _message: Option<&str>) {}
    fn warn(&self, _message: &str) {}
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn isolation(&self) -> haft_core::IsolationLevel {
        haft_core::IsolationLevel::None
    }
    fn file_limits(&self) -> haft_core::Limits {
        haft_core::Limits::default()
    }
    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        drop(tokio::runtime::Handle::current().spawn_blocking(job));
    }
    fn workspace(&self) -> &dyn Workspace {
        &*self.capabilities.workspace
    }
    fn fit(&self, spec: GuestSpec) -> Result<GuestSpec, ToolError> {
        Ok(spec)
    }
    fn stage<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<GuestSpec, ToolError>> {
        Box::pin(async move { Ok(spec) })
    }
    fn contained(&self, _sandbox: &str, _by: &Enforcement) {}
    fn used(&self, _end: &GuestEnd) {}
    fn settings(&self) -> Arc<Map<String, Value>> {
        Arc::default()
    }
}

struct House {
    root: PathBuf,
    files: Arc<Files>,
    tools: Vec<Box<dyn Tool>>,
    cx: ToolCtx,
    threads: usize,
    runtime: tokio::runtime::Runtime,
}

impl House {
    fn new(root: &Path) -> House {
        let jail = PathJail::new(JailSpec {
            roots: vec![RootSpec { path: root.to_path_buf(), read_only: false }],
            denied_patterns: DEFAULT_DENIES.iter().map(|&pattern| pattern.to_owned()).collect(),
            ..JailSpec::default()
        });
        let reads = Arc::new(MemoryReadHashes::default());
        // Nothing is changed here, so nothing is kept there.
        let records = root.join("../records");
        let files = Arc::new(Files::new(Arc::new(jail.unwrap()), reads, &records, Keep::default()));
        let threads = std::thread::available_parallelism().unwrap().get();
        let mut settings = FileToolSettings::default();
        (settings.glob.max_results, settings.glob.threads) = (MOST, threads);
        (settings.search_files.max_results, settings.search_files.threads) = (MOST, threads);
        (settings.list_directory.max_entries, settings.read_file.max_file_read_bytes) = (MOST, MOST);
        let workspace: Arc<dyn Workspace> = Arc::clone(&files) as _;
        let host = Bare {
            call: ToolCall::new("bench", Arguments::default()),
            context: CallContext::owner(),
            cancel: Cancel::new(),
            capabilities: Capabilities { workspace, ..Capabilities::default() },
        };
        House {
            root: root.to_path_buf(),
            files,
            tools: file_tools(&settings),
            cx: ToolCtx::new(Arc::new(host)),
            threads,
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        }
    }

    fn call(&self, name: &str, args: &Value) -> ToolOutput {
        let tool = self.tools.iter().find(|tool| tool.definition().name == name).unwrap();
        let original = Arguments::from(args.clone());
        let value = original.parse().unwrap();
        let prepared = tool.prepare(&Args { value, original }).unwrap();
        self.runtime.block_on(prepared.execute(self.cx.clone())).unwrap()
    }

    /// The walk of the library that ripgrep walks with; gives how many files it saw.
    fn ignore_walk(&self, with_metadata: bool) -> usize {
        let seen = AtomicUsize::new(0);
        WalkBuilder::new(&self.root).threads(self.threads).build_parallel().run(|| {
            Box::new(|entry| {
                let entry = entry.unwrap();
                if with_metadata {
                    black_box(entry.metadata().unwrap());
                }
                if entry.file_type().is_some_and(|kind| kind.is_file()) {
                    black_box(entry.path());
                    seen.fetch_add(1, Ordering::Relaxed);
                }
                WalkState::Continue
            })
        });
        seen.into_inner()
    }

    fn rg(&self, args: &[&str]) {
        let threads = self.threads.to_string();
        let status = Command::new("rg")
            .args(["--no-config", "--threads", &threads])
            .args(args)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().code().is_some_and(|code| code < 2));
    }
}

/// Folders in folders, with small files of source-like text.
fn plant(root: &Path, folders: usize) {
    let line = "    let value = compute(input, other_input)?; // a comment about it\n";
    for number in 0..folders {
        let folder = root.join(format!("part{}/module{}/unit{number}", number % 10, number % 100));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..FILES_IN_EACH {
            let mut text = line.repeat(8);
            if file == 0 {
                text.push_str("    the needle is here\n");
            }
            let ending = ["rs", "ts", "md", "json"][file % 4];
            std::fs::write(folder.join(format!("source_{file}.{ending}")), text).unwrap();
        }
    }
    std::fs::write(root.join(".gitignore"), "target/\n*.log\n/build\nnode_modules\n").unwrap();
    std::fs::create_dir(root.join(".git")).unwrap();
}

fn timed<R>(run: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = run();
    (start.elapsed(), result)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The contestants take turns; gives the median of each in ms, and of each one's ratio to the last.
fn rounds(count: usize, contestants: &mut [&mut dyn FnMut()]) -> Vec<(f64, f64)> {
    contestants.iter_mut().for_each(|run| run());
    let mut times = vec![Vec::new(); contestants.len()];
    for _ in 0..count {
        for (run, times) in contestants.iter_mut().zip(&mut times) {
            times.push(timed(&mut **run).0.as_secs_f64() * 1e3);
        }
    }
    let floor = times.last().unwrap().clone();
    let ratio = |times: &[f64]| median(times.iter().zip(&floor).map(|(time, floor)| time / floor).collect());
    times.iter().map(|times| (median(times.clone()), ratio(times))).collect()
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let only: Option<String> = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wants = |part: &str| only.as_ref().is_none_or(|only| part.contains(only.as_str()));
    let (folders, many, few) = if quick { (20, 5, 3) } else { (FOLDERS, 101, 11) };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    plant(&root, folders);
    let house = House::new(&root);
    let has_rg = Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !has_rg {
        println!("not run: comparisons with ripgrep, because `rg` is not installed");
    }
    let mut met = true;
    let mut goal = |what: &str, ratio: f64, most: f64| {
        met &= ratio <= most;
        println!("    {what}: {ratio:.2}x (goal {most}x)");
    };
    if wants("open") {
        open(&house, many, &mut goal);
    }
    if wants("read") {
        read(&house, many, &mut goal);
    }
    if wants("list") {
        list(&house, folders, few, has_rg, &mut goal);
    }
    if wants("search") && has_rg {
        search(&house, few, &mut goal);
    }
    println!("{}", if met { "goals met" } else { "a goal was missed" });
}

fn open(house: &House, many: usize, goal: &mut dyn FnMut(&str, f64, f64)) {
    const TIMES: usize = 500;
    let below = "part1/module1/unit1/source_1.ts";
    let path = house.root.join(below);
    let results = rounds(
        many,
        &mut [
            &mut || (0..TIMES).for_each(|_| drop(black_box(house.files.open(below).unwrap()))),
            &mut || (0..TIMES).for_each(|_| drop(black_box(File::open(&path).unwrap()))),
        ],
    );
    println!("open a file, 4 names deep");
    println!("    jail {:.2} µs, bare open {:.2} µs", results[0].0 * 2.0, results[1].0 * 2.0);
    goal("jail / bare open", results[0].1, 3.0);
}

fn read(house: &House, many: usize, goal: &mut dyn FnMut(&str, f64, f64)) {
    let line = "    let text = \"a string with \\\"quotes\\\"\";\tand a tab, some words, and more\n";
    let text: String = line.chars().cycle().take(200_000).collect();
    let path = house.root.join("big.txt");
    std::fs::write(&path, &text).unwrap();
    let args = json!({"path": "big.txt"});
    let results = rounds(
        many,
        &mut [
            &mut || {
                let output = house.call("read_file", &args);
                black_box(serde_json::to_string(&output.structured).unwrap());
            },
            &mut || {
                black_box(house.call("read_file", &args));
            },
            &mut || {
                black_box(Sha256::digest(text.as_bytes()));
            },
            &mut || {
                let bytes = std::fs::read(&path).unwrap();
                black_box(serde_json::to_string(std::str::from_utf8(&bytes).unwrap()).unwrap());
            },
        ],
    );
    println!("read 200 KB");
    println!(
        "    read_file and its JSON {:.3} ms, of which the tool {:.3} and SHA-256 in it {:.3}; read, check, escape {:.3} ms",
        results[0].0, results[1].0, results[2].0, results[3].0
    );
    goal("read_file and its JSON / (read + UTF-8 check + JSON escape)", results[0].1, 1.3);
    println!("    without the hash: {:.2}x", results[0].1 - results[2].1);
    std::fs::remove_file(path).unwrap();
}

fn list(house: &House, folders: usize, few: usize, has_rg: bool, goal: &mut dyn FnMut(&str, f64, f64)) {
    let files = folders * FILES_IN_EACH;
    let args = json!({"pattern": "**/*", "max_results": MOST});
    let found = house.call("glob", &args).structured.unwrap();
    assert_eq!(found["total"], json!(files));
    assert_eq!(house.ignore_walk(false), files);
    let results = rounds(
        few,
        &mut [
            &mut || drop(black_box(house.call("glob", &args))),
            &mut || {
                let walk = haft_sdk::files::Walk {
                    path: ".",
                    hidden: false,
                    ignore_files: true,
                    threads: house.threads,
                };
                let seen = AtomicUsize::new(0);
                let visitor = |visit: &haft_sdk::files::Visit<'_>| {
                    black_box(visit.below);
                    seen.fetch_add(1, Ordering::Relaxed);
                    haft_sdk::files::Step::Continue
                };
                house.files.walk(&walk, &visitor).unwrap();
                assert_eq!(seen.into_inner(), files);
            },
            &mut || {
                if has_rg {
                    house.rg(&["--files"]);
                }
            },
            &mut || {
                black_box(house.ignore_walk(false));
            },
        ],
    );
    println!("list {files} files, {} threads", house.threads);
    println!(
        "    glob {:.1} ms, the jail's walk alone {:.1} ms, rg --files {:.1} ms, bare `ignore` walk {:.1} ms",
        results[0].0, results[1].0, results[2].0, results[3].0
    );
    goal("glob / bare `ignore` walk", results[0].1, 1.2);
    println!("    the jail's walk alone / bare `ignore` walk: {:.2}x", results[1].1);
    if has_rg {
        goal("glob / rg --files", results[0].0 / results[2].0, 1.0);
    }
    let args = json!({"path": ".", "recursive": true, "max_entries": MOST});
    let listing = house.call("list_directory", &args).structured.unwrap();
    assert!(listing["returned"].as_u64().unwrap() as usize > files);
    let results = rounds(
        few,
        &mut [&mut || drop(black_box(house.call("list_directory", &args))), &mut || {
            black_box(house.ignore_walk(true));
        }],
    );
    println!("list {files} files with metadata");
    println!("    list_directory {:.1} ms, `ignore` walk with metadata {:.1} ms", results[0].0, results[1].0);
    println!("    ratio {:.2}x (the list has every size and time as sorted JSON)", results[0].1);
}

fn search(house: &House, few: usize, goal: &mut dyn FnMut(&str, f64, f64)) {
    for (what, pattern, matches) in [("rare", "needle", true), ("absent", "no such text at all", false)] {
        let args = json!({"pattern": pattern, "max_results": MOST});
        let found = house.call("search_files", &args).structured.unwrap();
        assert_eq!(found["matches"].as_array().unwrap().is_empty(), !matches);
        let results = rounds(
            few,
            &mut [&mut || drop(black_box(house.call("search_files", &args))), &mut || {
                house.rg(&["--line-number", "--smart-case", pattern]);
            }],
        );
        println!("search all of them, {what} text");
        println!("    search_files {:.1} ms, rg {:.1} ms", results[0].0, results[1].0);
        goal("search_files / rg", results[0].1, 1.2);
    }
}
