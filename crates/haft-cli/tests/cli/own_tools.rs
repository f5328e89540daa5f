//! The command line with tools of one's own. This very program, started again, is that command line.

use crate::support::{Place, Said};
use haft::{config::Surroundings, prelude::*};
use std::{
    process::{Command, ExitCode},
    time::Duration,
};

const ARGS: &str = "HAFT_TEST_ARGS";
const BETWEEN: &str = "\u{1f}";

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Doubles a number.
#[derive(Deserialize, JsonSchema)]
struct Double {
    /// The number.
    n: i64,
}

/// Not a test: the program that the tests of this file and of `stop` start.
#[test]
fn as_a_program() {
    let Ok(args) = std::env::var(ARGS) else { return };
    let touch = tool_fn("touch", async |_: Nothing, _: ToolCtx| Ok::<_, ToolError>("touched"));
    let always = tool_fn("always", async |_: Nothing, _: ToolCtx| Ok::<_, ToolError>("done"))
        .define(|definition| definition.requires_confirmation = true);
    let slow = tool_fn("slow", async |_: Nothing, cx: ToolCtx| -> Result<(), ToolError> {
        cx.progress(50, "half way");
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    });
    let slow_touch = tool_fn("slow_touch", async |_: Nothing, cx: ToolCtx| -> Result<(), ToolError> {
        cx.progress(50, "half way");
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    });
    let prints = tool_fn("prints", async |_: Nothing, cx: ToolCtx| -> Result<(), ToolError> {
        cx.print("wrote the first half\n");
        cx.progress(50, "half way");
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    });
    let stubborn = tool_fn("stubborn", async |_: Nothing, cx: ToolCtx| -> Result<(), ToolError> {
        cx.status("blocking");
        std::thread::sleep(Duration::from_secs(60));
        Ok(())
    });
    let fails = tool_fn("fails", async |_: Nothing, cx: ToolCtx| -> Result<(), ToolError> {
        cx.print("what it did before\n");
        cx.warn("this will not end well");
        Err(ToolError::failed("the ledger is closed").with_diagnostics("errno=30"))
    });
    let panics =
        tool_fn("panics", async |_: Nothing, _: ToolCtx| -> Result<(), ToolError> { panic!("oh no") });
    let long = tool_fn("long", async |_: Nothing, _: ToolCtx| -> Result<String, ToolError> {
        Ok((1..=50).map(|line| format!("line {line}\n")).collect())
    });
    let double = tool_fn("double", async |args: Double, _: ToolCtx| Ok::<_, ToolError>(args.n * 2));
    let tools = [
        Box::new(touch) as Box<dyn haft::Tool>,
        Box::new(slow_touch),
        Box::new(prints),
        Box::new(always.read_only()),
        Box::new(slow.read_only()),
        Box::new(stubborn.read_only()),
        Box::new(fails.read_only()),
        Box::new(panics.read_only()),
        Box::new(long.read_only()),
        Box::new(double.read_only()),
    ];
    let surroundings = Surroundings {
        working_folder: std::env::current_dir().expect("a folder"),
        home: std::env::var_os("HOME").map(Into::into),
        env: Vec::new(),
        user_id: None,
    };
    let code = haft_cli::run(args.split(BETWEEN), surroundings, tools);
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).expect("it is one of them");
    std::process::exit(number.into());
}

impl Place {
    /// haft with the tools above, not yet started.
    pub(crate) fn with_tools(&self, args: &[&str]) -> Command {
        let mut command = self.command(std::env::current_exe().expect("this program"));
        command.args(["own_tools::as_a_program", "--exact", "--nocapture", "--quiet"]);
        command.env(ARGS, [&["haft"], args].concat().join(BETWEEN));
        command
    }

    pub(crate) fn run_with_tools(&self, args: &[&str]) -> Said {
        without_frame(Said::of(self.with_tools(args).output().expect("it starts")))
    }
}

/// What was said, without the line of the test runner before it.
pub(crate) fn without_frame(mut said: Said) -> Said {
    said.stdout = said.stdout.replacen("\nrunning 1 test\n", "", 1);
    said
}

#[test]
fn ends_that_the_built_in_tools_do_not_have() {
    let place = Place::new();
    for (args, code, status) in [
        (&["call", "touch", "--json"][..], 5, "RequiresConfirmation"),
        (&["call", "always", "--json"], 5, "RequiresConfirmation"),
        (&["--set", "tools.approval.allowlist=touch", "call", "touch", "--json"], 0, "Success"),
        (&["call", "slow", "--timeout", "50ms", "--json"], 124, "Timeout"),
        (&["call", "fails", "--json"], 1, "Failed"),
        (&["call", "panics", "--json"], 1, "Failed"),
    ] {
        let said = place.run_with_tools(args);
        assert_eq!(
            (said.code, said.json()["status"].as_str().unwrap()),
            (code, status),
            "{args:?}: {said:?}"
        );
        assert!(!said.stdout.contains("errno=30"), "what only an operator should see: {}", said.stdout);
    }
    assert_eq!(place.run_with_tools(&["call", "touch", "--dry-run"]).code, 5);
}

#[test]
fn what_needs_approval_says_how_to_allow_it() {
    let place = Place::new();
    let said = place.run_with_tools(&["call", "touch"]);
    assert!(
        said.stderr.contains(
            "\n  help: to run it without being asked, add \"touch\" to allowlist under [tools.approval] in \
             ~/.config/haft/haft.toml\n"
        ),
        "{}",
        said.stderr
    );
    place.own_config("[tools.approval]\nallowlist = ['touch']\n");
    assert_eq!(place.run_with_tools(&["call", "touch"]).code, 0, "as it said");
    let said = place.run_with_tools(&["call", "always"]);
    assert!(said.stderr.contains("\n  help: haft asks about this tool every time"), "{}", said.stderr);
}

#[test]
fn what_a_tool_said_before_it_failed_is_kept() {
    let place = Place::new();
    let said = place.run_with_tools(&["call", "fails"]);
    assert_eq!(said.stdout, "what it did before\n");
    assert_eq!(said.stderr, "warning: this will not end well\nerror: fails failed: the ledger is closed\n");
    let said = place.run_with_tools(&["call", "fails", "-v"]);
    assert!(said.stderr.contains("errno=30"), "the operator asked for it: {}", said.stderr);
}

#[test]
fn a_number_in_quotes_is_a_number_for_whoever_asks_for_that() {
    let place = Place::new();
    let quoted = r#"{"n": "21"}"#;
    assert_eq!(
        place.run_with_tools(&["call", "double", "n=21"]).stdout,
        "42\n",
        "typed as the tool wants it"
    );
    assert_eq!(place.run_with_tools(&["call", "double", "--args", quoted, "--no-coerce"]).code, 4);
    let said = place.run_with_tools(&["call", "double", "--args", quoted, "--json"]);
    let result = said.json();
    assert_eq!(
        (&result["output"], &result["metadata"]["coercions"]),
        (&json!(42), &json!(["/n"])),
        "{said:?}"
    );
}

#[test]
fn nothing_is_cut_in_a_pipe() {
    let place = Place::new();
    place.write("calls.json", "[{\"id\": \"c1\", \"name\": \"long\"}]");
    let said = place.run_with_tools(&["batch", "calls.json"]);
    assert!(said.stdout.contains("line 50") && !said.stdout.contains("--full"), "{}", said.stdout);
}
