//! The real Claude Code and the real Codex, with a scripted model: what each way of installing haft lets through. The
//! table of `docs/hosts.md` says the same.

use super::{
    scripted_model::{Asked, Heard, Model},
    support::{Place, Said},
};
use serde_json::json;
use std::{
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// What of the three attempts had its effect.
#[derive(Debug, PartialEq, Eq)]
struct Effects {
    /// `rm -rf victim`, or another command that does the same.
    removed: bool,
    /// An edit of `.git/config`.
    edited: bool,
    /// A connection to a server on this machine.
    connected: bool,
}

const ALL: Effects = Effects { removed: true, edited: true, connected: true };
const NONE: Effects = Effects { removed: false, edited: false, connected: false };

/// A host in a place of its own, with something to lose.
struct Stage {
    place: Place,
    program: PathBuf,
    address: SocketAddr,
    /// Whether anybody connected to that address.
    connected: Arc<AtomicBool>,
}

impl Stage {
    fn new(program: PathBuf) -> Stage {
        let place = Place::new();
        std::fs::create_dir_all(place.work().join("victim/inner")).unwrap();
        std::fs::create_dir(place.work().join(".git")).unwrap();
        place.write(".git/config", "[core]\n");
        place.write("notes.txt", "of the owner\n");
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, connected) = (server.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&connected);
        std::thread::spawn(move || server.incoming().for_each(|_| seen.store(true, Ordering::Release)));
        Stage { place, program, address, connected }
    }

    fn haft(&self, args: &[&str]) -> Said {
        let said = self.place.haft(args);
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
        said
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Runs the host until its model is done, and says what it did.
    fn run(&self, mut command: Command, model: &Model) -> (Effects, Heard) {
        self.connected.store(false, Ordering::Release);
        let mut child = command.spawn().unwrap();
        let begun = std::time::Instant::now();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if begun.elapsed().as_secs() > 100 => {
                    child.kill().unwrap();
                    break child.wait().unwrap();
                }
                None => std::thread::sleep(std::time::Duration::from_millis(50)),
            }
        };
        let said = child.wait_with_output().unwrap();
        let heard = model.heard();
        assert!(
            status.success() && !heard.tools.is_empty(),
            "{status} {heard:?}\n{}\n{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
        let work = self.place.work();
        let effects = Effects {
            removed: !work.join("victim").exists(),
            edited: std::fs::read_to_string(work.join(".git/config")).unwrap() != "[core]\n",
            connected: self.connected.load(Ordering::Acquire),
        };
        (effects, heard)
    }

    fn command(&self) -> Command {
        let mut command = self.place.command(&self.program);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Claude Code in the mode in which it asks nobody: what is blocked is blocked by haft.
    fn claude(&self, script: Vec<Asked>) -> (Effects, Heard) {
        let model = Model::start(script);
        let mut command = self.command();
        command
            .args(["-p", "go", "--dangerously-skip-permissions"])
            .env("ANTHROPIC_BASE_URL", format!("http://{}", model.address))
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            // It refuses that mode to root, unless somebody says that the machine is made for it.
            .env("IS_SANDBOX", "1");
        self.run(command, &model)
    }

    /// Codex without its own sandbox and questions.
    fn codex(&self, script: Vec<Asked>, trusts_hooks: bool) -> (Effects, Heard) {
        let model = Model::start(script);
        let mut command = self.command();
        let provider = format!(
            "model_providers.local={{name=\"local\",base_url=\"http://{}/v1\",wire_api=\"responses\",env_key=\"KEY\",\
             request_max_retries=0,stream_max_retries=0}}",
            model.address
        );
        command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]);
        command.args(trusts_hooks.then_some("--dangerously-bypass-hook-trust"));
        command.args(["-c", &provider, "-c", "model_provider=\"local\"", "-c", "model=\"gpt-5\""]);
        command.args(["-c", "analytics.enabled=false", "go"]).env("KEY", "none");
        self.run(command, &model)
    }
}

fn kit(test: &str, program: &str) -> Option<PathBuf> {
    let path = haft_testkit::mcp_kit().map(|kit| kit.modules.join("node_modules").join(program));
    let found = path.filter(|path| path.is_file());
    if found.is_none() {
        haft_testkit::not_run(test, "Claude Code and Codex are not installed for this system");
    }
    found
}

fn claude_code(test: &str) -> Option<Stage> {
    kit(test, "@anthropic-ai/claude-code-linux-x64/claude").map(Stage::new)
}

fn codex(test: &str) -> Option<Stage> {
    kit(test, "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex").map(Stage::new)
}

/// What the model of Claude Code asks for.
fn claude_attempts(stage: &Stage) -> Vec<Asked> {
    let config = stage.place.work().join(".git/config");
    vec![
        ("Bash", json!({"command": "rm -rf victim"})),
        ("Read", json!({"file_path": config})),
        ("Edit", json!({"file_path": config, "old_string": "[core]", "new_string": "[evil]"})),
        ("Bash", json!({"command": format!("curl -s -m 3 {}", stage.url())})),
    ]
}

/// What the model of Codex asks for: it has one tool for all of it. Codex itself refuses `rm -rf`, and not this.
fn codex_attempts(stage: &Stage) -> Vec<Asked> {
    vec![
        ("exec_command", json!({"cmd": "find victim -delete"})),
        ("exec_command", json!({"cmd": "echo '[evil]' > .git/config"})),
        ("exec_command", json!({"cmd": format!("curl -s -m 3 {}", stage.url())})),
    ]
}

#[test]
fn claude_code_with_haft_over_mcp_keeps_its_own_tools_free() {
    let Some(stage) = claude_code("claude_code_with_haft_over_mcp_keeps_its_own_tools_free") else { return };
    stage.haft(&["install", "claude-code"]);
    let (effects, _) = stage.claude(claude_attempts(&stage));
    assert_eq!(effects, ALL);
}

#[test]
fn claude_code_with_only_haft_has_no_tools_of_its_own() {
    let Some(stage) = claude_code("claude_code_with_only_haft_has_no_tools_of_its_own") else { return };
    stage.haft(&["install", "claude-code", "--only-haft"]);
    let mut script = claude_attempts(&stage);
    script.push(("mcp__haft__read_file", json!({"path": "notes.txt"})));
    script.push(("mcp__haft__run_command", json!({"command": "rm -rf victim"})));
    let (effects, heard) = stage.claude(script);
    assert_eq!(effects, NONE, "{heard:?}");
    assert!(
        !heard
            .tools
            .iter()
            .any(|tool| ["Bash", "Read", "Edit", "Write", "WebFetch"].contains(&tool.as_str())),
        "{heard:?}"
    );
    assert!(heard.results[4].contains("of the owner"), "haft's own tools are there: {heard:?}");
    assert!(heard.results[5].contains("denylist"), "and haft decides about them: {heard:?}");
}

#[test]
fn claude_code_with_the_hook_runs_what_haft_allows_and_nothing_else() {
    let Some(stage) = claude_code("claude_code_with_the_hook_runs_what_haft_allows_and_nothing_else") else {
        return;
    };
    stage.haft(&["install", "claude-code", "--mode", "hook"]);
    let mut script = claude_attempts(&stage);
    script.push(("Read", json!({"file_path": stage.place.work().join("notes.txt")})));
    script.push(("Read", json!({"file_path": "/etc/hostname"})));
    script.push(("WebFetch", json!({"url": stage.url(), "prompt": "p"})));
    let (effects, heard) = stage.claude(script.clone());
    assert_eq!(effects, NONE, "{heard:?}");
    assert!(heard.results[0].contains("denylist"), "{heard:?}");
    assert!(heard.results[4].contains("of the owner"), "{heard:?}");
    assert!(heard.results[5].contains("outside sandbox"), "{heard:?}");
    let records = stage.haft(&["audit", "query", "--json"]).stdout;
    assert!(records.contains("run_command") && records.contains("host_result"), "{records}");
    // Without the hook the same model does all of it.
    stage.haft(&["uninstall", "claude-code"]);
    assert_eq!(stage.claude(script).0, ALL);
}

#[test]
fn claude_code_is_blocked_where_its_hook_cannot_be_started() {
    let Some(stage) = claude_code("claude_code_is_blocked_where_its_hook_cannot_be_started") else { return };
    stage.haft(&["install", "claude-code", "--mode", "hook"]);
    let settings = stage.place.home().join(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replace(env!("CARGO_BIN_EXE_haft"), "/nowhere/haft")).unwrap();
    let (effects, heard) = stage.claude(claude_attempts(&stage));
    assert_eq!(effects, NONE, "{heard:?}");
}

#[test]
fn claude_code_runs_rewritten_commands_with_their_tickets() {
    let test = "claude_code_runs_rewritten_commands_with_their_tickets";
    let Some(stage) = claude_code(test) else { return };
    stage.place.own_config(COMMANDS_ARE_ALLOWED);
    stage.haft(&["install", "claude-code", "--mode", "exec"]);
    let outside = stage.place.home().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let (effects, heard) = stage.claude(vec![
        ("Bash", json!({"command": format!("rm -rf {}", outside.display())})),
        ("Bash", json!({"command": "echo here > made"})),
        ("Bash", json!({"command": format!("curl -s -m 3 {}", stage.url())})),
    ]);
    assert!(outside.exists() && !effects.connected, "{heard:?}");
    assert!(stage.place.work().join("made").exists(), "what the jail allows is done: {heard:?}");
}

/// The whole agent in a jail: the same model, in the jail with it, because a jail reaches no address of this machine.
#[test]
fn claude_code_as_a_whole_is_held_by_the_kernel() {
    let test = "claude_code_as_a_whole_is_held_by_the_kernel";
    let Some(stage) = claude_code(test) else { return };
    if stage.place.haft(&["exec", "--", "python3", "--version"]).code != 0 {
        return haft_testkit::not_run(test, "there is no python3 or no jail here");
    }
    let outside = stage.place.home().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let line = format!(
        "rm -rf {}; echo '[alias]' >> .git/config; echo here > made; curl -s -m 3 {}",
        outside.display(),
        stage.url()
    );
    let calls = json!([
        ["Bash", {"command": line}],
        ["Write", {"file_path": stage.place.work().join(".git/hooks/post-commit"), "content": "#!/bin/sh\n"}],
    ]);
    // Its own program of that name, so that it has the preset; the model begins before it.
    let bin = stage.place.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("calls.json"), calls.to_string()).unwrap();
    std::fs::write(bin.join("model.py"), include_str!("../mcp/anthropic_model.py")).unwrap();
    let script = format!(
        "#!/bin/sh\npython3 {bin}/model.py {bin}/calls.json /tmp/port /tmp/results &\n\
         while ! [ -s /tmp/port ]; do sleep 0.1; done\n\
         export ANTHROPIC_BASE_URL=http://127.0.0.1:$(cat /tmp/port)\n\
         {program} \"$@\"\ncode=$?\ncat /tmp/results\nexit $code\n",
        bin = bin.display(),
        program = stage.program.display()
    );
    std::fs::write(bin.join("claude"), script).unwrap();
    std::fs::set_permissions(bin.join("claude"), PermissionsExt::from_mode(0o755)).unwrap();
    let modules = stage.program.ancestors().find(|folder| folder.ends_with("node_modules")).unwrap();
    let (bin, modules) = (bin.display().to_string(), modules.display().to_string());
    let mut haft = stage.place.program(&[
        "exec",
        "--read",
        &bin,
        "--read",
        &modules,
        "--",
        "claude",
        "-p",
        "go",
        "--dangerously-skip-permissions",
    ]);
    haft.env("PATH", format!("{bin}:/usr/bin:/bin")).env("ANTHROPIC_API_KEY", "none");
    let said = Said::of(haft.output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(stage.place.work().join("made").exists(), "what the jail allows is done: {said:?}");
    assert!(outside.exists() && !stage.connected.load(Ordering::Acquire), "{said:?}");
    assert_eq!(std::fs::read_to_string(stage.place.work().join(".git/config")).unwrap(), "[core]\n");
    assert!(!stage.place.work().join(".git/hooks/post-commit").exists());
    assert!(!stage.place.home().join(".claude").exists(), "it has a folder of its own: {said:?}");
}

/// Commands may run without a question.
const COMMANDS_ARE_ALLOWED: &str =
    "[tools.approval]\ndenylist = []\nmode = 'auto'\n[tools.commands]\nask = 'never'\n";

#[test]
fn claude_code_ends_a_session_in_which_a_command_ran_past_haft() {
    let test = "claude_code_ends_a_session_in_which_a_command_ran_past_haft";
    let Some(stage) = claude_code(test) else { return };
    stage.place.own_config(COMMANDS_ARE_ALLOWED);
    stage.haft(&["install", "claude-code", "--mode", "exec"]);
    // As a host that takes the yes and drops the changed command: what haft says before a tool gets lost.
    let settings = stage.place.home().join(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replacen("claude-code --exec", "claude-code --exec > /dev/null", 1))
        .unwrap();
    let (_, heard) = stage.claude(vec![
        ("Bash", json!({"command": "echo past > made"})),
        ("Bash", json!({"command": "echo more > second"})),
    ]);
    let made = |name: &str| stage.place.work().join(name).exists();
    if !made("made") {
        return haft_testkit::not_run(test, &format!("commands cannot be allowed here: {heard:?}"));
    }
    assert!(!made("second"), "{heard:?}");
    assert_eq!(stage.haft(&["hosts", "--json"]).json()["blockedSessions"].as_array().unwrap().len(), 1);
}

#[test]
fn codex_with_haft_over_mcp_keeps_its_own_tools_free() {
    let Some(stage) = codex("codex_with_haft_over_mcp_keeps_its_own_tools_free") else { return };
    stage.haft(&["install", "codex"]);
    assert_eq!(stage.codex(codex_attempts(&stage), false).0, ALL);
}

#[test]
fn codex_with_only_haft_has_no_shell_of_its_own() {
    let Some(stage) = codex("codex_with_only_haft_has_no_shell_of_its_own") else { return };
    stage.haft(&["install", "codex", "--only-haft"]);
    let (effects, heard) = stage.codex(codex_attempts(&stage), false);
    assert_eq!(effects, NONE, "{heard:?}");
    let own =
        ["exec_command", "shell", "shell_command", "write_stdin", "apply_patch", "view_image", "web_search"];
    assert!(!heard.tools.iter().any(|tool| own.contains(&tool.as_str())), "{heard:?}");
    assert!(heard.tools.iter().any(|tool| tool.contains("haft")), "haft's own tools are there: {heard:?}");
}

#[test]
fn codex_calls_nothing_more_after_a_command_ran_past_haft() {
    let test = "codex_calls_nothing_more_after_a_command_ran_past_haft";
    let Some(stage) = codex(test) else { return };
    stage.place.own_config(COMMANDS_ARE_ALLOWED);
    stage.haft(&["install", "codex", "--mode", "exec"]);
    let settings = stage.place.home().join(".codex/hooks.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replacen("codex --exec", "codex --exec > /dev/null", 1)).unwrap();
    let commands = ["echo past > made", "echo more > second"];
    let script = commands.map(|line| ("exec_command", json!({"cmd": line})));
    let (_, heard) = stage.codex(script.into(), true);
    let made = |name: &str| stage.place.work().join(name).exists();
    if !made("made") {
        return haft_testkit::not_run(test, &format!("commands cannot be allowed here: {heard:?}"));
    }
    assert!(!made("second"), "{heard:?}");
}

#[test]
fn codex_with_the_hook_runs_what_haft_allows_once_it_is_trusted() {
    let Some(stage) = codex("codex_with_the_hook_runs_what_haft_allows_once_it_is_trusted") else { return };
    stage.haft(&["install", "codex", "--mode", "hook", "--wait", "1s"]);
    let (effects, heard) = stage.codex(codex_attempts(&stage), true);
    assert_eq!(effects, NONE, "{heard:?}");
    assert!(heard.results[0].contains("denylist"), "{heard:?}");
    // Codex calls no hook that its person has not trusted.
    assert_eq!(stage.codex(codex_attempts(&stage), false).0, ALL);
}
