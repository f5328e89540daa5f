//! What a face must not do: decide by looking for a text, go around `Approvals` to the store, or check options by
//! itself. The test reads the sources.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The crates that translate between people or programs and the engine.
const FACES: [&str; 3] = ["haft-cli", "haft-server", "haft-mcp"];

/// What is not in them, and what is there instead.
const NEVER: [(&str, &str); 7] = [
    ("[redacted:", "`ApprovalRequest::can_edit` says whether something is hidden"),
    (".answer_with_grant(", "`Approvals::answer` checks an answer and writes it"),
    (").approvals(filter", "`Approvals::list` and `Approvals::subscribe`"),
    ("TakenAnswer", "an answer is taken by the call that it is for"),
    ("max_retries", "`CallOptions::check` says how many retries there may be"),
    ("1..=10)", "`CallOptions::check` says which priorities there are"),
    ("StoredGrant {", "`Approvals::answer` makes the grant of an answer"),
];

fn broken(text: &str) -> Vec<String> {
    let found = NEVER.iter().filter(|(never, _)| text.contains(never));
    found.map(|(never, instead)| format!("`{never}`: {instead}")).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(sources(&path)),
            false if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") => {
                files.push(path);
            }
            false => {}
        }
    }
    files
}

#[test]
fn faces_leave_rules_to_the_engine() {
    let mut wrong = Vec::new();
    for face in FACES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(face).join("src");
        let files = sources(&folder);
        assert!(files.len() > 10, "the sources are elsewhere: {} files in {}", files.len(), folder.display());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            wrong.extend(broken(&text).into_iter().map(|what| format!("{}: {what}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_planted_one_is_noticed() {
    let planted = [
        r#"if before.as_str().contains("[redacted:") { return; }"#,
        "tenant.answer_with_grant(&id, answer, None).await?;",
        "if let TakenAnswer::Open = tenant.take_answer(&id, call).await? {}",
        "store.for_tenant(tenant).approvals(filter).await",
        "let grant = StoredGrant { id, ..grant };",
        "if retry.max_retries > 10 { return Err(too_many()); }",
        "if !(1..=10).contains(&priority) { return Err(none()); }",
    ];
    for text in planted {
        assert_eq!(broken(text).len(), 1, "{text}");
    }
    assert!(broken("fn shown(grant: StoredGrant) { if request.can_edit() {} }").is_empty());
}
