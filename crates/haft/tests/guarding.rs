//! What guards calls, as a program that embeds haft has it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

#[cfg(unix)]
#[path = "guarding/swapped.rs"]
mod swapped;

use haft::{
    CallContext, Folders, Haft, PolicyReload, Reloaded, Request, Role, Status, Tier, ToolCall, ToolCtx,
    ToolError,
    config::{self, LoadOptions, Surroundings},
    tool_fn,
};
use serde_json::json;
use std::{path::Path, sync::Arc};

async fn status(haft: &Haft, tool: &str) -> Status {
    haft.execute(ToolCall::new(tool, json!({}))).await.status
}

fn surroundings(folder: &Path) -> Surroundings {
    let working_folder = folder.join("work");
    std::fs::create_dir_all(folder.join("home/.config/haft")).unwrap();
    std::fs::create_dir_all(&working_folder).unwrap();
    Surroundings { working_folder, home: Some(folder.join("home")), ..Surroundings::default() }
}

/// Long-lived: a change of the user's own file or the folder's holds from the next call on, a broken one changes
/// nothing.
#[tokio::test]
async fn policy_is_read_anew_when_its_files_change() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = surroundings(folder.path());
    let own = |text: &str| std::fs::write(folder.path().join("home/.config/haft/haft.toml"), text).unwrap();
    let project = |text: &str| std::fs::write(surroundings.working_folder.join("haft.toml"), text).unwrap();
    let rule =
        |effect: &str| format!("[[policy.rules]]\nname = 'r'\neffect = '{effect}'\ntool = 'get_metrics'\n");
    own("[tools.approval]\nmode = 'auto'\n");
    let config = config::load(&surroundings, &LoadOptions::default()).unwrap().config;
    let haft = Haft::builder().config(&config).build().unwrap();
    let mut reload = PolicyReload::new(surroundings.clone(), LoadOptions::default());
    assert_eq!(status(&haft, "get_metrics").await, Status::Success);
    assert_eq!(reload.look(&haft), Reloaded::Same);

    project(&rule("deny"));
    assert_eq!(status(&haft, "get_metrics").await, Status::Success, "not before somebody looks");
    assert_eq!(reload.look(&haft), Reloaded::Done);
    assert_eq!(status(&haft, "get_metrics").await, Status::PermissionDenied);
    // Broken: the old one goes on holding, and that is said once.
    project(&rule("denny"));
    let Reloaded::Kept(why) = reload.look(&haft) else { panic!("it was taken") };
    assert!(why.contains("unknown variant `denny`") && why.contains("haft.toml:3:1"), "{why}");
    assert_eq!(reload.look(&haft), Reloaded::Same);
    assert_eq!(status(&haft, "get_metrics").await, Status::PermissionDenied);
    project(&rule("ask"));
    assert_eq!(reload.look(&haft), Reloaded::Done);
    assert_eq!(status(&haft, "get_metrics").await, Status::RequiresConfirmation);
    // What loosens counts only where it may: the folder is not trusted, so the lists stay.
    project("[tools.approval]\ndenylist = []\n");
    assert_eq!(reload.look(&haft), Reloaded::Done);
    assert!(haft.policy().unwrap().lists().denylist.contains("run_command"));
    std::fs::remove_file(surroundings.working_folder.join("haft.toml")).unwrap();
    own("[tools.approval]\nmode = 'auto'\ndenylist = ['GetMetrics']\n");
    assert_eq!(reload.look(&haft), Reloaded::Done);
    assert_eq!(status(&haft, "get_metrics").await, Status::PermissionDenied, "an alias means the tool");
}

#[tokio::test]
async fn a_watch_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = surroundings(folder.path());
    let haft = Haft::builder().build().unwrap();
    let reload = PolicyReload::new(surroundings.clone(), LoadOptions::default());
    let watch = tokio::spawn(reload.keep_current(haft.clone(), std::time::Duration::from_millis(10)));
    std::fs::write(
        surroundings.working_folder.join("haft.toml"),
        "[[policy.rules]]\nname = 'r'\neffect = 'deny'\ntool = 'get_metrics'\n",
    )
    .unwrap();
    for _ in 0..500 {
        if status(&haft, "get_metrics").await == Status::PermissionDenied {
            watch.abort();
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the change was not noticed");
}

/// Each built-in has the tier that the licence's table says.
#[test]
fn built_ins_have_the_tier_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let folders = Folders::new(folder.path(), folder.path().join("state"));
    let haft = Haft::builder().files(folders).build().unwrap();
    let definitions = haft.definitions();
    assert!(definitions.len() > 15);
    for definition in definitions {
        assert_eq!(definition.tier, haft_guard::built_in_tier(&definition.name), "{}", definition.name);
    }
}

#[tokio::test]
async fn another_authoriser_can_be_put_in_and_roles_change_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "x").unwrap();
    let permissions = Arc::new(haft::Permissions::default());
    struct Shared(Arc<haft::Permissions>);
    impl haft::port::Authoriser for Shared {
        fn authorise<'a>(
            &'a self,
            context: &'a CallContext,
            definition: &'a haft::ToolDefinition,
        ) -> haft::port::BoxFuture<'a, Result<haft::port::Authorisation, haft::port::GuardError>> {
            self.0.authorise(context, definition)
        }
    }
    let folders = Folders::new(folder.path(), folder.path().join("state"));
    let haft = Haft::builder().files(folders).authoriser(Shared(Arc::clone(&permissions))).build().unwrap();
    let mut context = CallContext::new("acme", "agent");
    (context.roles, context.tier) = (vec!["reader".into()], Tier::Enterprise);
    let read = async |context: &CallContext| {
        let call = ToolCall::new("read_file", json!({"path": "a"}));
        haft.execute(Request::new(call).context(context.clone())).await
    };
    let refused = read(&context).await;
    assert!(refused.text().contains("there is no role `reader` here"), "{}", refused.text());
    permissions.define("acme", "reader", Role::new(["tool.*.read"]));
    assert_eq!(read(&context).await.status, Status::Success);
    context.tenant = "other".into();
    assert_eq!(read(&context).await.status, Status::PermissionDenied, "a role is its tenant's own");
    context.tenant = "acme".into();
    permissions.remove("acme", "reader");
    assert_eq!(read(&context).await.status, Status::PermissionDenied, "at once");
}

/// An untrusted folder keeps variables from programs. It does not choose which texts a model does not get to see.
#[tokio::test]
async fn values_of_variables_are_hidden_where_their_owner_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = surroundings(folder.path());
    let text = "the value of a variable";
    let say = async || {
        let config = config::load(&surroundings, &LoadOptions::default()).unwrap().config;
        let said = tool_fn("say", move |_: Nothing, _: ToolCtx| async move { Ok::<_, ToolError>(text) });
        let variables = [("GREETING".to_owned(), text.to_owned())];
        let haft =
            Haft::builder().config(&config).variables(variables).tool(said.read_only()).build().unwrap();
        (haft.execute(ToolCall::new("say", json!({}))).await.text().to_string(), config)
    };
    let denies = "tools.approval.mode = 'auto'\ntools.environment.denylist = ['GREETING']\n";
    std::fs::write(surroundings.working_folder.join("haft.toml"), denies).unwrap();
    let (said, config) = say().await;
    assert_eq!(said, text);
    assert!(config.tools.environment.denylist.contains(&"GREETING".to_owned()), "programs do not get it");
    // The control: the owner's own list.
    std::fs::write(folder.path().join("home/.config/haft/haft.toml"), denies).unwrap();
    assert_eq!(say().await.0, "[redacted:GREETING]");
}

/// Nothing.
#[derive(haft::serde::Deserialize, haft::schemars::JsonSchema)]
#[serde(crate = "haft::serde")]
#[schemars(crate = "haft::schemars")]
struct Nothing {}

/// A private key is known by its first line. Lines of it that are read without that are known as well.
#[tokio::test]
async fn no_range_of_lines_shows_a_part_of_a_private_key() {
    let folder = tempfile::tempdir().unwrap();
    let body: Vec<String> =
        (0..12).map(|n| format!("MIIEvQ{n:02}IBADANBgkqhkiG9w0BAQEFAASCBKcwggSj{n:02}AgEA")).collect();
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", body.join("\n"));
    let text = format!("name = ada\n{key}\nafter = 1\nmore = 2\n");
    std::fs::write(folder.path().join("notes.txt"), &text).unwrap();
    let files = || Folders::new(folder.path(), folder.path().join("state"));
    let build = || Haft::builder().files(files());
    let (haft, open) = (build().build().unwrap(), build().without_redaction().build().unwrap());
    let lines = text.lines().count();
    for first in 1..=lines {
        for (last, numbers) in [(first, false), (first + 3, true), (lines, false)] {
            let arguments = json!({"path": "notes.txt", "start_line": first, "end_line": last, "show_line_numbers": numbers});
            let read = haft.execute(ToolCall::new("read_file", arguments.clone())).await;
            assert_eq!(read.status, Status::Success);
            let whole = serde_json::to_string(&read).unwrap();
            assert!(!body.iter().any(|line| whole.contains(&line[6..])), "{first}-{last}: {whole}");
            // What is not of the key is there.
            assert_eq!(
                read.text().contains("after = 1"),
                (first..=last).contains(&(lines - 1)),
                "{}",
                read.text()
            );
            // The control: it is in the file.
            let shown = open.execute(ToolCall::new("read_file", arguments)).await;
            let is_inside = (3..lines - 2).contains(&first);
            assert!(!is_inside || shown.text().contains(&body[first - 3]), "{first}: {}", shown.text());
        }
    }
}

/// What runs programs later is changed with an approval only, by its own name or with the folder around it.
#[tokio::test]
async fn a_file_that_runs_later_is_not_changed_without_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir_all(work.join("sub/.vscode")).unwrap();
    std::fs::create_dir_all(work.join("plain")).unwrap();
    for name in ["sub/.vscode/tasks.json", "plain/a"] {
        std::fs::write(work.join(name), "x").unwrap();
    }
    let config = "tools.approval.mode = 'auto'\ntools.approval.prompt_side_effects = false\n";
    let config = config::parse(config).unwrap();
    let files = Folders::new(work.clone(), folder.path().join("state"));
    let haft = Haft::builder().config(&config).files(files).build().unwrap();
    for (tool, arguments, asks) in [
        ("write_file", json!({"path": "b", "content": "x"}), false),
        ("write_file", json!({"path": ".envrc", "content": "x"}), true),
        ("write_file", json!({"path": "sub/.ENVRC", "content": "x"}), true),
        // Always asks; what it says tells the two apart.
        ("move_file", json!({"source": "plain", "destination": "plain2"}), false),
        ("move_file", json!({"source": "sub", "destination": "sub2"}), true),
    ] {
        let result = haft.execute(ToolCall::new(tool, arguments.clone())).await;
        let waits = asks || tool == "move_file";
        let expected = waits.then_some(haft::ErrorCode::ConfirmationRequired);
        assert_eq!(result.error_code(), expected, "{tool} {arguments}: {}", result.text());
        assert_eq!(result.text().contains("is protected"), asks, "{tool} {arguments}: {}", result.text());
    }
    assert!(work.join("sub/.vscode/tasks.json").exists() && !work.join(".envrc").exists());
}
