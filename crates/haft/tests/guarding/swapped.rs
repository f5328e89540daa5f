//! Decided when it was planned, swapped before it runs: what is decided on is what is used. Each with a control that
//! shows that the attack would work.

use haft::{
    Decision, ErrorCode, FlowRequest, Folders, Haft, Status, ToolCall, ToolCtx, ToolError, ToolResult,
    ask_with, config, tool_fn,
};
use haft_files::{Files, JailSpec, Keep, PathJail, RootSpec};
use haft_sdk::files::{Access, Workspace};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const SECRET: &str = "what-a-rule-keeps-back";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Target {
    to: String,
}

struct Ground {
    haft: Haft,
    folder: tempfile::TempDir,
}

impl Ground {
    /// Folders `src`, `private` and `other`, and a rule of that effect about what is in `private`.
    fn new(effect: Option<&str>) -> Ground {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work/src", "work/private", "work/other", "state"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for (path, text) in [("src/x", "open"), ("private/x", SECRET), ("other/x", "elsewhere")] {
            fs::write(folder.path().join("work").join(path), text).unwrap();
        }
        let rule = effect.map_or_else(String::new, |effect| {
            format!("[[policy.rules]]\nname = 'private'\neffect = '{effect}'\npath = '**/private/**'\n")
        });
        // The same call is made again and again here, and refused again and again.
        let text =
            format!("[tools.approval]\nmode = 'auto'\n[scheduling.repeat_guard]\nenabled = false\n{rule}");
        let config = config::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let work = folder.path().join("work");
        let haft = Haft::builder()
            .config(&config)
            .files(Folders::new(work.clone(), folder.path().join("state")))
            // Whatever is asked about is agreed to: it is what nobody was asked about that must not run.
            .approver(ask_with(|requests| requests.iter().map(|_| Decision::Approve).collect()))
            .build()
            .unwrap();
        // What a command would do: `mv src src2; ln -s TO src`.
        let swap = tool_fn("swap", move |target: Target, _: ToolCtx| {
            let work = work.clone();
            async move {
                fs::rename(work.join("src"), work.join("src2")).unwrap();
                symlink(target.to, work.join("src")).unwrap();
                Ok::<(), ToolError>(())
            }
        });
        haft.register(swap.define(|definition| definition.description = "Swaps a folder for a link".into()))
            .unwrap();
        Ground { haft, folder }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    async fn batch(&self, to: &str) -> Vec<ToolResult> {
        let calls = vec![
            ToolCall::new("swap", json!({ "to": to })),
            ToolCall::new("read_file", json!({"path": "src/x"})),
            ToolCall::new("write_file", json!({"path": "src/y", "content": "planted"})),
            ToolCall::new("list_directory", json!({"path": "src"})),
        ];
        self.haft.execute_batch(calls).await.0
    }
}

fn codes(results: &[ToolResult]) -> Vec<Option<ErrorCode>> {
    results.iter().map(|result| result.error.as_ref().map(|error| error.code)).collect()
}

#[tokio::test]
async fn a_batch_that_swaps_a_folder_for_a_denied_one_gets_nothing_of_it() {
    let control = Ground::new(None);
    let results = control.batch("private").await;
    assert_eq!(codes(&results), [None; 4], "the control: {results:?}");
    assert!(results[1].text().contains(SECRET) && control.work().join("private/y").exists());

    let ground = Ground::new(Some("deny"));
    let results = ground.batch("private").await;
    let denied = Some(ErrorCode::ToolDenied);
    assert_eq!(codes(&results), [None, denied, denied, denied], "{results:?}");
    assert!(!format!("{results:?}").contains(SECRET), "{results:?}");
    assert!(!ground.work().join("private/y").exists(), "nothing was planted");
    for result in &results[1..] {
        assert_eq!(result.error.as_ref().unwrap().data.as_ref().unwrap()["rule"], json!("private"));
        assert_eq!(result.metadata.attempts, 0, "it did not run");
    }
}

#[tokio::test]
async fn what_a_person_would_be_asked_about_now_does_not_run_unasked() {
    let ground = Ground::new(Some("ask"));
    let results = ground.batch("private").await;
    let asks = Some(ErrorCode::ConfirmationRequired);
    assert_eq!(codes(&results), [None, asks, asks, asks], "{results:?}");
    assert!(!ground.work().join("private/y").exists());
    assert!(results[1].text().contains("Send it again"), "{}", results[1].text());
}

#[tokio::test]
async fn a_path_that_leads_to_what_is_allowed_is_used_as_it_is_now() {
    let ground = Ground::new(Some("deny"));
    let results = ground.batch("other").await;
    assert_eq!(codes(&results), [None; 4], "{results:?}");
    assert!(results[1].text().contains("elsewhere"), "{}", results[1].text());
    assert_eq!(fs::read_to_string(ground.work().join("other/y")).unwrap(), "planted");
}

#[tokio::test]
async fn a_flow_whose_node_swaps_is_no_way_round() {
    let text = json!({"name": "swaps", "description": "Swaps, and reads", "nodes": [
        {"name": "a", "tool": "swap", "arguments": {"to": "private"}},
        {"name": "b", "tool": "read_file", "arguments": {"path": "src/x"}, "after": ["a"]},
    ]});
    for effect in [None, Some("deny")] {
        let ground = Ground::new(effect);
        let flow = haft::flow::read(&text.to_string(), haft_definition::Format::Json).unwrap();
        let request = FlowRequest::new(Arc::new(flow), haft::serde_json::Map::new());
        let result = ground.haft.run_flow(request).unwrap().await;
        let read = result.nodes[1].result.as_ref().unwrap();
        assert_eq!(read.text().contains(SECRET), effect.is_none(), "{result:?}");
    }
}

/// Swaps `src` between a folder and a link to `private`, as fast as it can, while `during` runs.
fn in_a_storm<T>(work: &Path, during: impl FnOnce() -> T) -> (T, usize) {
    let (over, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    symlink("private", work.join("link")).unwrap();
    let thread = std::thread::spawn({
        let (over, swaps, work) = (Arc::clone(&over), Arc::clone(&swaps), work.to_owned());
        move || {
            while !over.load(Ordering::Relaxed) {
                // One step, so that there is always something at `src`.
                let (src, link) = (work.join("src"), work.join("link"));
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, &src, rustix::fs::CWD, &link, exchange).unwrap();
                // Now and then long enough for a call to be decided, and for one to be made.
                let swap = swaps.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros([0, 50, 400, 0, 150, 1000, 2500][swap % 7]));
            }
        }
    });
    let done = during();
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    (done, swaps.load(Ordering::Relaxed))
}

/// How long a storm lasts: a moment in the tests, minutes in `cargo xtask soak`.
fn storm() -> Duration {
    let seconds = std::env::var("HAFT_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    seconds.map_or(Duration::from_millis(2500), Duration::from_secs)
}

/// What was decided on is opened by its name again, as tools did it before: some of it leads elsewhere by then.
#[test]
fn the_storm_breaks_what_looks_twice() {
    let ground = Ground::new(None);
    let jail = PathJail::new(JailSpec {
        roots: vec![RootSpec { path: ground.work(), read_only: false }],
        ..JailSpec::default()
    });
    let reads = Arc::new(haft_store::MemoryReadHashes::default());
    let files =
        Files::new(Arc::new(jail.unwrap()), reads, &ground.folder.path().join("state"), Keep::default());
    let private = ground.work().canonicalize().unwrap().join("private");
    let is_private = |path: &str| Path::new(path).starts_with(&private);
    let ((leaks, refused), _) = in_a_storm(&ground.work(), || {
        let (mut leaks, mut refused) = (0, 0);
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until && (leaks == 0 || refused == 0) {
            let Ok(decided) = files.locate("src/x", Access::Read) else { continue };
            if is_private(&decided.path) {
                continue;
            }
            leaks += usize::from(files.open("src/x").is_ok_and(|open| is_private(&open.place.path)));
            let held = files.held_to(&haft::Footprint::reads([haft::Resource::path(decided.path)]));
            match held.open("src/x") {
                Ok(open) => assert!(!is_private(&open.place.path), "{open:?}"),
                Err(_) => refused += 1,
            }
        }
        (leaks, refused)
    });
    assert!(leaks > 0, "the storm was too slow to show anything");
    assert!(refused > 0, "and what is held never had to refuse");
}

#[test]
fn nothing_leaks_and_nothing_is_planted_in_a_storm() {
    let ground = Ground::new(Some("deny"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let ((fine, refused), swaps) = in_a_storm(&ground.work(), || {
        let (mut fine, mut refused) = (0_usize, 0_usize);
        let until = Instant::now() + storm();
        while Instant::now() < until {
            let calls = [
                ToolCall::new("read_file", json!({"path": "src/x"})),
                ToolCall::new(
                    "write_file",
                    json!({"path": "src/y", "content": "planted", "mode": "overwrite"}),
                ),
                ToolCall::new("list_directory", json!({"path": "src"})),
                ToolCall::new("search_files", json!({"path": "src", "pattern": "."})),
                ToolCall::new("copy_file", json!({"source": "src/x", "destination": "copied"})),
            ];
            for call in calls {
                let result = runtime.block_on(ground.haft.execute(call));
                assert!(!format!("{result:?}").contains(SECRET), "{result:?}");
                match result.status {
                    Status::Success => fine += 1,
                    _ => refused += 1,
                }
            }
            let copied = fs::read_to_string(ground.work().join("copied")).unwrap_or_default();
            assert!(!copied.contains(SECRET), "copied");
            let _ = fs::remove_file(ground.work().join("copied"));
            assert!(!ground.work().join("private/y").exists(), "planted");
        }
        (fine, refused)
    });
    assert!(fine > 10 && refused > 10 && swaps > 100, "{fine} fine, {refused} refused, {swaps} swaps");
}
