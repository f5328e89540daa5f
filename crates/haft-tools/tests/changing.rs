//! The tools that change files, through the whole pipeline.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests say what they need"
)]

use haft_core::{
    ApprovalMode, ApprovalRequest, CallContext, Decision, ErrorCode, Risk, ToolCall, ToolResult,
    port::{Approver, BoxFuture, GuardError},
};
use haft_engine::{Engine, Request};
use haft_files::{DEFAULT_DENIES, Files, JailSpec, Keep, PathJail, RootSpec};
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::capability::Capabilities;
use haft_store::{MemoryReadHashes, MemoryStore};
use haft_tools::{FileToolSettings, file_tools};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex},
};
use tempfile::TempDir;

struct Ground {
    root: TempDir,
    _state: TempDir,
    engine: Engine,
    asked: Asked,
}

/// Says yes, and remembers what it was asked.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<ApprovalRequest>>>);

impl Approver for Asked {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        self.0.lock().unwrap().extend_from_slice(requests);
        Box::pin(async move { Ok(requests.iter().map(|_| Decision::Approve).collect()) })
    }
}

impl Ground {
    fn new() -> Self {
        Ground::with(FileToolSettings::default())
    }

    fn with(settings: FileToolSettings) -> Self {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spec = JailSpec {
            roots: vec![RootSpec { path: root.path().into(), read_only: false }],
            denied_patterns: DEFAULT_DENIES.iter().map(|&pattern| pattern.to_owned()).collect(),
            ..JailSpec::default()
        };
        let jail = Arc::new(PathJail::new(spec).unwrap());
        let files = Files::new(
            jail,
            Arc::new(MemoryReadHashes::default()),
            &state.path().join("changes"),
            Keep::default(),
        );
        let capabilities = Capabilities { workspace: Arc::new(files), ..Capabilities::default() };
        let policy = ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() };
        let asked = Asked::default();
        let builder =
            Engine::builder(Arc::new(policy), Arc::new(PermissionStrings), Arc::new(MemoryStore::default()))
                .approver(Arc::new(asked.clone()))
                .capabilities(capabilities);
        let engine = file_tools(&settings)
            .into_iter()
            .fold(builder, |builder, tool| builder.boxed_tool(tool))
            .build()
            .unwrap();
        Ground { root, _state: state, engine, asked }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap()
    }

    fn is_there(&self, path: &str) -> bool {
        self.root.path().join(path).exists()
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.engine.execute(ToolCall::new(tool, arguments)).await
    }

    async fn ok(&self, tool: &str, arguments: Value) -> ToolResult {
        let result = self.call(tool, arguments).await;
        assert!(result.is_success(), "{result:?}");
        result
    }

    async fn fails(&self, tool: &str, arguments: Value, code: ErrorCode, part: &str) {
        let result = self.call(tool, arguments).await;
        let error = result.error.as_ref().unwrap_or_else(|| panic!("it succeeded: {result:?}"));
        assert_eq!(error.code, code, "{}", error.message);
        assert!(error.message.contains(part), "{}", error.message);
    }
}

#[tokio::test]
async fn write_file_makes_new_files_only_unless_told() {
    let ground = Ground::new();
    let result = ground.ok("write_file", json!({"path": "new/a.txt", "content": "hello"})).await;
    assert_eq!(result.text(), "Created new/a.txt (5 bytes)");
    assert_eq!(ground.text("new/a.txt"), "hello");
    let again = json!({"path": "new/a.txt", "content": "other"});
    ground
        .fails(
            "write_file",
            again,
            ErrorCode::ExecutionFailed,
            "file already exists: new/a.txt. Use edit_file",
        )
        .await;
    // What a call wrote counts as read.
    let over = json!({"path": "new/a.txt", "content": "replaced", "mode": "overwrite"});
    assert_eq!(ground.ok("write_file", over.clone()).await.text(), "Replaced new/a.txt (8 bytes)");
    ground.write("new/a.txt", "someone else's");
    ground.fails("write_file", over, ErrorCode::StaleFile, "File content changed since last read").await;
    let append = json!({"path": "new/a.txt", "content": "!", "mode": "append"});
    ground.ok("write_file", append).await;
    assert_eq!(ground.text("new/a.txt"), "someone else's!");
    ground
        .fails(
            "write_file",
            json!({"path": " ", "content": ""}),
            ErrorCode::ValidationFailed,
            "must not be empty",
        )
        .await;
    ground
        .fails(
            "write_file",
            json!({"path": ".env", "content": ""}),
            ErrorCode::FilesystemPolicyViolation,
            "**/.env",
        )
        .await;
}

#[tokio::test]
async fn fr_tool_patch_02_a_file_must_be_known_before_it_is_edited() {
    let edit = json!({"path": "a.txt", "old_text": "two", "new_text": "2"});
    let patch = json!({"patch": "LP1\nF a.txt\nR\ntwo\n.\n2\n.\nEND\n"});
    for (tool, arguments) in [("edit_file", &edit), ("apply_patch", &patch)] {
        let ground = Ground::new();
        ground.write("a.txt", "one\ntwo\n");
        // 02a
        ground
            .fails(tool, arguments.clone(), ErrorCode::StaleFile, "File was not read before patching")
            .await;
        // 02b
        ground.ok("read_file", json!({"path": "a.txt"})).await;
        ground.write("a.txt", "one\ntwo\nthree\n");
        ground
            .fails(tool, arguments.clone(), ErrorCode::StaleFile, "File content changed since last read")
            .await;
        ground.write("a.txt", "one\ntwo\n");
        ground.ok(tool, arguments.clone()).await;
        assert_eq!(ground.text("a.txt"), "one\n2\n", "{tool}");
        // Its own write counts as read, so a second edit needs no reading.
        let back = json!({"path": "a.txt", "old_text": "2", "new_text": "two"});
        ground.ok("edit_file", back).await;
        // 02c: each conversation for itself.
        let mut other = CallContext::clone(&CallContext::owner());
        other.conversation = Some("another".into());
        let call = ToolCall::new(tool, arguments.clone());
        let result = ground.engine.execute(Request::new(call).context(other)).await;
        assert_eq!(result.error_code(), Some(ErrorCode::StaleFile), "{tool}");
    }
    let ground = Ground::new();
    ground.write("other.txt", "x");
    let hash = "3f8b9e0b".repeat(8);
    let wrong = json!({"path": "other.txt", "old_text": "x", "new_text": "y", "expected_sha256": hash});
    ground.fails("edit_file", wrong, ErrorCode::StaleFile, "changed since").await;
    let right = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let with = json!({"path": "other.txt", "old_text": "x", "new_text": "y", "expected_sha256": right});
    ground.ok("edit_file", with).await;
    let nonsense = json!({"path": "other.txt", "old_text": "x", "new_text": "y", "expected_sha256": "12"});
    ground.fails("edit_file", nonsense, ErrorCode::ValidationFailed, "64 hexadecimal digits").await;
}

#[tokio::test]
async fn edit_file_says_what_is_wrong_with_its_arguments() {
    let ground = Ground::new();
    for (arguments, part) in [
        (json!({"path": "a", "new_text": "x"}), "give old_text, or start_line and end_line"),
        (json!({"path": "a", "new_text": "x", "old_text": "y", "start_line": 1, "end_line": 1}), "not both"),
        (json!({"path": "a", "new_text": "x", "start_line": 1}), "end_line is missing"),
        (
            json!({"path": "a", "new_text": "x", "start_line": 5, "end_line": 3}),
            "start_line must be <= end_line",
        ),
        (json!({"path": "a", "new_text": "x", "old_text": ""}), "must not be empty"),
        (json!({"path": "a", "new_text": "x", "old_text": "x"}), "are the same"),
        (json!({"path": "a", "new_text": "x", "old_text": "y", "all": true, "occurrence": 1}), "not both"),
        (json!({"path": "a", "new_text": "x", "old_string": "y"}), "old_string"),
    ] {
        ground.fails("edit_file", arguments, ErrorCode::ValidationFailed, part).await;
    }
    let missing = json!({"path": "a", "new_text": "x", "old_text": "y"});
    ground.fails("edit_file", missing, ErrorCode::ExecutionFailed, "does not exist. Use write_file").await;
}

#[tokio::test]
async fn t_patch_01_a_patch_is_all_or_nothing_in_every_format() {
    let ground = Ground::new();
    let patches = [
        "LP1\nF a.txt\nR\none\n.\n1\n.\nF new.txt\nT\nnew\n.\nN +\nF b.txt\nR\nnot there\n.\nx\n.\nEND\n",
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: new.txt\n+new\n*** Update File: b.txt\n@@\n-not \
         there\n+x\n*** End Patch\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n--- \
         a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-not there\n+x\n",
    ];
    for patch in patches {
        ground.write("a.txt", "one\n");
        ground.write("b.txt", "two\n");
        for path in ["a.txt", "b.txt"] {
            ground.ok("read_file", json!({"path": path})).await;
        }
        ground
            .fails("apply_patch", json!({"patch": patch}), ErrorCode::PatchFailed, "Patch failed for b.txt")
            .await;
        assert_eq!((ground.text("a.txt"), ground.text("b.txt")), ("one\n".into(), "two\n".into()));
        assert!(!ground.is_there("new.txt"), "{patch}");
        let good = patch.replace("not there", "two");
        let result = ground.ok("apply_patch", json!({"patch": good})).await;
        assert_eq!(result.text(), "modified: a.txt\ncreated: new.txt\nmodified: b.txt", "{patch}");
        assert_eq!((ground.text("a.txt"), ground.text("new.txt")), ("1\n".into(), "new\n".into()));
        let effects = &result.metadata.side_effects;
        assert_eq!(effects.len(), 3);
        assert!(effects.iter().all(|effect| effect.is_reversible && effect.new_value.is_some()));
        assert!(effects[0].previous_value.is_some() && effects[1].previous_value.is_none());
        fs::remove_file(ground.root.path().join("new.txt")).unwrap();
    }
    assert!(ground.asked.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_patch_that_deletes_or_moves_asks_as_high_risk_with_the_diff() {
    let ground = Ground::new();
    ground.write("old.txt", "text\n");
    fs::set_permissions(ground.root.path().join("old.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    ground.write("gone.txt", "gone\n");
    for path in ["old.txt", "gone.txt"] {
        ground.ok("read_file", json!({"path": path})).await;
    }
    let patch = "*** Begin Patch\n*** Update File: old.txt\n*** Move to: sub/new.txt\n@@\n-text\n+other\n*** Delete File: \
                 gone.txt\n*** End Patch\n";
    let result = ground.ok("apply_patch", json!({"patch": patch})).await;
    assert_eq!(result.text(), "created: sub/new.txt\ndeleted: old.txt\ndeleted: gone.txt");
    assert_eq!(ground.text("sub/new.txt"), "other\n");
    let mode = fs::metadata(ground.root.path().join("sub/new.txt")).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o750, "permissions go with the file");
    let asked = ground.asked.0.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].risk, &*asked[0].reason), (Risk::High, "it moves old.txt"));
    let summary = &asked[0].summary;
    assert_eq!(summary, "Apply patch to 2 file(s): move old.txt to sub/new.txt, delete gone.txt");
    let preview = asked[0].preview.as_deref().unwrap();
    assert!(preview.contains("-text\n+other\n") && preview.contains("-gone\n"), "{preview}");
}

#[tokio::test]
async fn deleting_and_moving_always_ask_and_are_undone() {
    let ground = Ground::new();
    ground.write("a.txt", "1");
    ground.write("dir/b.txt", "2");
    let deleted = ground.ok("delete_file", json!({"path": "a.txt"})).await;
    assert_eq!(deleted.text(), "deleted: a.txt");
    assert_eq!(ground.asked.0.lock().unwrap().len(), 1);
    ground
        .fails(
            "delete_file",
            json!({"path": "dir"}),
            ErrorCode::FilesystemPolicyViolation,
            "allow_delete_dirs",
        )
        .await;
    ground.fails("delete_file", json!({"path": "nope"}), ErrorCode::ExecutionFailed, "does not exist").await;
    let moved = ground.ok("mv", json!({"source": "dir", "destination": "folder"})).await;
    assert_eq!(moved.text(), "moved: dir -> folder");
    let over = json!({"source": "folder/b.txt", "destination": "x", "overwrite": true});
    ground.fails("copy_file", over, ErrorCode::FilesystemPolicyViolation, "allow_overwrite").await;
    let copied = json!({"source": "folder/b.txt", "destination": "c.txt"});
    assert_eq!(ground.ok("copy_file", copied).await.text(), "created: c.txt");
    for (result, text) in [(&moved, "moved: folder -> dir"), (&deleted, "created: a.txt")] {
        let id = result.metadata.execution_id.to_string();
        let undone = ground.ok("undo_changes", json!({"execution_id": id})).await;
        assert_eq!(undone.text(), text);
    }
    assert_eq!((ground.text("a.txt"), ground.text("dir/b.txt")), ("1".into(), "2".into()));
    ground
        .fails(
            "undo_changes",
            json!({"execution_id": "x"}),
            ErrorCode::ValidationFailed,
            "not an execution id",
        )
        .await;
}

#[tokio::test]
async fn what_a_path_leads_to_is_known_before_anybody_is_asked() {
    let ground = Ground::new();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), ground.root.path().join("out")).unwrap();
    for (tool, arguments) in [
        ("write_file", json!({"path": "out/x", "content": ""})),
        ("delete_file", json!({"path": "../x"})),
        ("move_file", json!({"source": "/etc/passwd", "destination": "x"})),
        ("apply_patch", json!({"patch": "LP1\nF out/x\nT\nx\n.\nEND\n"})),
        ("copy_file", json!({"source": ".git/config", "destination": "x"})),
    ] {
        ground.fails(tool, arguments, ErrorCode::FilesystemPolicyViolation, "").await;
    }
    assert!(ground.asked.0.lock().unwrap().is_empty(), "nobody was asked");
}

#[tokio::test]
async fn a_path_that_is_swapped_while_a_person_thinks_voids_the_approval() {
    let ground = Ground::new();
    ground.write("one/a.txt", "1");
    ground.write("two/a.txt", "2");
    std::os::unix::fs::symlink("one", ground.root.path().join("current")).unwrap();
    let root = ground.root.path().to_owned();
    struct Swaps(std::path::PathBuf);
    impl Approver for Swaps {
        fn ask<'a>(
            &'a self,
            requests: &'a [ApprovalRequest],
        ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
            fs::remove_file(self.0.join("current")).unwrap();
            std::os::unix::fs::symlink("two", self.0.join("current")).unwrap();
            Box::pin(async move { Ok(requests.iter().map(|_| Decision::Approve).collect()) })
        }
    }
    let call = ToolCall::new("delete_file", json!({"path": "current/a.txt"}));
    let result = ground.engine.execute(Request::new(call).approver(Arc::new(Swaps(root)))).await;
    assert_eq!(result.error_code(), Some(ErrorCode::ApprovalExpired), "{result:?}");
    assert!(ground.is_there("one/a.txt") && ground.is_there("two/a.txt"));
}

#[tokio::test]
async fn a_patch_over_the_limit_is_refused_before_anything() {
    let mut settings = FileToolSettings::default();
    settings.apply_patch.max_patch_bytes = 100;
    let ground = Ground::with(settings);
    let patch = format!("LP1\nF a.txt\nT\n{}\n.\nEND\n", "x".repeat(200));
    ground
        .fails(
            "apply_patch",
            json!({"patch": patch}),
            ErrorCode::ValidationFailed,
            "Patch exceeds max_patch_bytes",
        )
        .await;
    let text = "LP1\nF a.txt\nQ\nEND\n";
    ground.fails("apply_patch", json!({"patch": text}), ErrorCode::ValidationFailed, "patch line 3").await;
    assert!(!ground.is_there("a.txt"));
}

#[tokio::test]
async fn line_ends_permissions_and_the_final_newline_stay() {
    let ground = Ground::new();
    ground.write("dos.txt", "a\r\nb\r\nc");
    fs::set_permissions(ground.root.path().join("dos.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    ground.ok("read_file", json!({"path": "dos.txt"})).await;
    ground.ok("edit_file", json!({"path": "dos.txt", "old_text": "a\nb", "new_text": "x\ny\nz"})).await;
    assert_eq!(ground.text("dos.txt"), "x\r\ny\r\nz\r\nc");
    ground.ok("apply_patch", json!({"patch": "LP1\nF dos.txt\nI\ny\n.\nnew\n.\nEND\n"})).await;
    assert_eq!(ground.text("dos.txt"), "x\r\ny\r\nnew\r\nz\r\nc");
    let mode = fs::metadata(ground.root.path().join("dos.txt")).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o600);
}

/// FR-TOOL-PATCH-01: a fixed text where a patch leaves every file as it was.
#[tokio::test]
async fn a_patch_that_changes_nothing_says_so() {
    let ground = Ground::new();
    ground.write("a.txt", "one\n");
    ground.ok("read_file", json!({"path": "a.txt"})).await;
    let patch = "LP1\nF a.txt\nR\none\n.\none\n.\nEND\n";
    assert_eq!(ground.ok("apply_patch", json!({"patch": patch})).await.text(), "No changes applied.");
    assert_eq!(ground.text("a.txt"), "one\n");
}
