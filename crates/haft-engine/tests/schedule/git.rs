//! A real repository: commits that never overtake their adds, and reads that run meanwhile.

use crate::{
    batch,
    common::{Scripted, call_with, house, tool, within},
};
use haft_core::{Footprint, Resource, Strategy, ToolCall, ToolError};
use haft_sdk::{Args, ToolCtx};
use serde_json::json;
use std::{path::Path, process::Command};

const ROUNDS: usize = 200;

fn git(folder: &Path, words: &[&str]) -> Result<String, ToolError> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"])
        .args(words);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.output().map_err(|error| ToolError::failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(ToolError::failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// A tool that runs git with its arguments in a folder.
fn git_tool(name: &'static str, folder: &Path, footprint: fn(&Args) -> Footprint) -> Scripted {
    let folder = folder.to_owned();
    tool(name, move |args: Args, cx: ToolCtx| {
        let folder = folder.clone();
        async move {
            let words: Vec<String> = serde_json::from_value(args.value["words"].clone()).unwrap();
            cx.blocking(move |_| git(&folder, &words.iter().map(String::as_str).collect::<Vec<_>>())).await
        }
    })
    .effects()
    .on_footprint(footprint)
}

fn index() -> Resource {
    Resource::named("git-index:/repository")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_never_overtake_their_adds_and_reads_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    if git(root, &["init", "-q"]).is_err() {
        haft_testkit::not_run("commits_never_overtake_their_adds_and_reads_overlap", "git is not installed");
        return;
    }
    let house = house([
        git_tool("git_add", root, |args| Footprint {
            reads: vec![Resource::path(args.value["path"].as_str().unwrap())],
            writes: vec![index()],
        }),
        git_tool("git_commit", root, |_| Footprint::writes([index()])),
        git_tool("git_search", root, |_| Footprint::reads([Resource::path("/elsewhere")])),
    ]);
    let mut overlapped = 0;
    for round in 0..ROUNDS {
        let (one, two) = (format!("one_{round}"), format!("two_{round}"));
        std::fs::write(root.join(&one), round.to_string()).unwrap();
        std::fs::write(root.join(&two), round.to_string()).unwrap();
        let run = |name: &str, path: &str, words: &[&str]| -> ToolCall {
            call_with(name, json!({"path": path, "words": words}))
        };
        let calls = vec![
            run("git_search", "", &["grep", "--no-index", "-l", "-F", &round.to_string(), "--", &one]),
            run("git_add", &one, &["add", &one]),
            run("git_commit", "", &["commit", "-q", "--no-gpg-sign", "-m", &one]),
            run("git_search", "", &["grep", "--no-index", "-l", "-F", &round.to_string(), "--", &two]),
            run("git_add", &two, &["add", &two]),
            run("git_commit", "", &["commit", "-q", "--no-gpg-sign", "-m", &two]),
        ];
        let (results, summary) =
            within("the batch", house.engine.execute_batch(batch(calls, Strategy::Smart, 6))).await;
        for result in &results {
            assert!(result.is_success(), "round {round}: {}", result.text());
        }
        overlapped += summary.overlapped;
    }
    assert!(overlapped >= 2 * ROUNDS, "{overlapped} calls overlapped in {ROUNDS} rounds");
    // One file in each commit, in the order of the calls: what the sequential batch does.
    let log = git(root, &["log", "--reverse", "--format=%s", "--name-only"]).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    let expected: Vec<String> = (0..ROUNDS)
        .flat_map(|round| ["one", "two"].map(|name| format!("{name}_{round}")))
        .flat_map(|name| [name.clone(), name])
        .collect();
    assert_eq!(lines, expected);
}
