//! Commands that are decided about by what they changed: who is asked, when, and about what.

use crate::world::{World, in_world_with};
use haft::{
    ApprovalRequest, ChangesState, Decision, ErrorCode, Request, Status, ToolCall, ToolResult, ask_with,
    port::{ApprovalFilter, ApprovalState},
};
use libtest_mimic::Trial;
use serde_json::json;
use std::{
    fs,
    sync::{Arc, Mutex},
};

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 6] = [
        ("effects::a_person_is_asked_about_the_diff_and_not_before", asked_about_the_diff),
        ("effects::what_is_allowed_is_applied_unasked", allowed_is_unasked),
        ("effects::rules_about_paths_hold_for_what_a_command_changed", rules_hold),
        ("effects::network_and_background_are_decided_before", network_is_before),
        ("effects::a_rule_that_asks_still_asks_before", rules_ask_before),
        ("effects::never_asks_nobody_and_applies_nothing_that_needs_an_answer", never),
    ];
    crate::world::trials(tests)
}

const EFFECTS: &str = "[tools.commands]\nwrites = 'staged'\nask = 'effects'\n";

/// What people were asked, and what came of the call.
async fn run(world: &World, tool: &str, command: &str, yes: bool) -> (ToolResult, Vec<ApprovalRequest>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let approver = ask_with(move |requests| {
        heard.lock().unwrap().extend(requests.iter().cloned());
        requests.iter().map(|_| if yes { Decision::Approve } else { Decision::Unanswered }).collect()
    });
    let call = ToolCall::new(tool, json!({"command": command}));
    let result = world.haft.execute(Request::new(call).approver(Arc::new(approver))).await;
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    (result, asked)
}

fn state(result: &ToolResult) -> ChangesState {
    result.metadata.changes.as_ref().unwrap_or_else(|| panic!("{result:?}")).state
}

fn is_there(world: &World, name: &str) -> bool {
    world.work().join(name).exists()
}

fn asked_about_the_diff(name: &str) {
    in_world_with(name, EFFECTS, async |world| {
        let (result, asked) = run(&world, "run_command", "echo one > a; ls", true).await;
        assert_eq!((result.status, state(&result)), (Status::Success, ChangesState::Applied), "{result:?}");
        let [request] = &asked[..] else { panic!("{asked:?}") };
        assert!(request.preview.as_ref().is_some_and(|diff| diff.contains("+one")), "{request:?}");
        assert!(
            request.summary.contains("1 created") && request.summary.contains("echo one > a"),
            "{request:?}"
        );
        let (result, asked) = run(&world, "run_command", "cat a", true).await;
        assert_eq!((result.status, asked.len()), (Status::Success, 0), "it changes nothing");
        let (result, asked) = run(&world, "run_command", "echo two > b", false).await;
        assert_eq!((state(&result), asked.len()), (ChangesState::Kept, 1));
        assert_eq!(result.status, Status::RequiresConfirmation, "{result:?}");
        assert!(result.error.unwrap().message.contains("haft apply"));
        assert!(!is_there(&world, "b"));
        let open = world
            .haft
            .approvals("local")
            .list(ApprovalFilter { state: Some(ApprovalState::Open), ..ApprovalFilter::default() })
            .await
            .unwrap();
        assert!(open.is_empty(), "from now on the change set itself is decided about: {open:?}");
    });
}

fn allowed_is_unasked(name: &str) {
    let config = format!("allowlist = ['apply_changes']\n{EFFECTS}");
    in_world_with(name, &config, async |world| {
        let (result, asked) = run(&world, "run_command", "mkdir d; echo one > d/a", false).await;
        assert_eq!((state(&result), asked.len()), (ChangesState::Applied, 0), "{result:?}");
        let (result, asked) = run(&world, "run_command", "echo x > .envrc", false).await;
        assert_eq!((state(&result), asked.len()), (ChangesState::Kept, 1), "a protected name: {result:?}");
        assert!(!is_there(&world, ".envrc"));
    });
}

fn rules_hold(name: &str) {
    let rules = "[[policy.rules]]\nname = 'frozen'\neffect = 'deny'\npath = '**/frozen/**'\n";
    let config = format!("allowlist = ['apply_changes']\n{EFFECTS}{rules}");
    in_world_with(name, &config, async |world| {
        world.write("frozen/a", "old");
        let (result, asked) = run(&world, "run_command", "echo new > frozen/a; echo x > other", true).await;
        assert_eq!(result.error.as_ref().map(|error| error.code), Some(ErrorCode::ToolDenied), "{result:?}");
        // A command may also read there, so that the rule asks before, and what it changed is thrown away all the same.
        assert_eq!((state(&result), asked.len()), (ChangesState::Discarded, 1));
        assert!(asked[0].preview.is_none() && asked[0].reason.contains("frozen"), "{asked:?}");
        assert_eq!(fs::read_to_string(world.work().join("frozen/a")).unwrap(), "old");
        assert!(!is_there(&world, "other"));
        // The control: elsewhere the same is allowed.
        let (result, _) = run(&world, "run_command", "echo x > other", true).await;
        assert_eq!(state(&result), ChangesState::Applied);
    });
}

fn network_is_before(name: &str) {
    let config = "allowlist = ['apply_changes']\n[tools.commands]\nwrites = 'staged'\nask = 'effects'\nhosts = ['example.com']\n";
    in_world_with(name, config, async |world| {
        let (result, asked) = run(&world, "run_command", "echo x > a", false).await;
        assert_eq!((result.status, asked.len()), (Status::RequiresConfirmation, 1));
        assert!(asked[0].preview.is_none() && !is_there(&world, "a"), "nothing ran");
        let (result, asked) = run(&world, "start_command", "echo x > a", false).await;
        assert_eq!((result.status, asked.len()), (Status::RequiresConfirmation, 1));
    });
}

fn rules_ask_before(name: &str) {
    let rules = "[[policy.rules]]\nname = 'look first'\neffect = 'ask'\ncommand = 'rm'\n";
    let config = format!("allowlist = ['apply_changes']\n{EFFECTS}{rules}");
    in_world_with(name, &config, async |world| {
        world.write("a", "x");
        let (result, asked) = run(&world, "run_command", "rm a", false).await;
        assert_eq!((result.status, asked.len()), (Status::RequiresConfirmation, 1), "{result:?}");
        assert!(asked[0].reason.contains("look first") && is_there(&world, "a"));
        let (result, asked) = run(&world, "run_command", "mv a b", false).await;
        assert_eq!((state(&result), asked.len()), (ChangesState::Applied, 0), "{result:?}");
    });
}

fn never(name: &str) {
    let config = "[tools.commands]\nwrites = 'staged'\nask = 'never'\n";
    in_world_with(name, config, async |world| {
        let (result, asked) = run(&world, "run_command", "echo x > a", true).await;
        assert_eq!((state(&result), asked.len()), (ChangesState::Applied, 0), "{result:?}");
        let (result, asked) = run(&world, "run_command", "echo x > .envrc", true).await;
        assert_eq!((state(&result), asked.len()), (ChangesState::Kept, 0), "{result:?}");
        assert!(!is_there(&world, ".envrc"));
    });
}
