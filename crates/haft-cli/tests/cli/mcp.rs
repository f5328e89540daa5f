//! `haft mcp`: the real program, driven line by line and by the official SDKs; and making it known to hosts.

use super::support::{Place, Said};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

/// A client that speaks line by line.
struct Lines {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Lines {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut child = place.program(args).stdin(Stdio::piped()).spawn().unwrap();
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        Lines { child, to, from }
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.ask_line(&request.to_string())
    }

    fn ask_line(&mut self, request: &str) -> Value {
        writeln!(self.to.as_mut().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn begin(&mut self) -> Value {
        self.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }}))
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))["result"]
            .clone()
    }

    fn end(mut self) -> Said {
        drop(self.to.take());
        let mut stdout = String::new();
        self.from.read_to_string(&mut stdout).unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Said { code: self.child.wait().unwrap().code().unwrap(), stdout, stderr }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_staged_command_changed_is_a_resource() {
    let place = Place::new();
    place.own_config("[tools.approval]\ndenylist = []\nmode = 'auto'\n[tools.commands]\nwrites = 'staged'\nask = 'never'\n");
    place.write(".env", "SECRET=of-the-owner\n");
    let mut lines = Lines::start(&place, &["mcp"]);
    lines.begin();
    let ran = lines.call("run_command", json!({"command": "echo mine > .env; echo 'layout node' > .envrc"}));
    let id =
        ran["_meta"]["haft/executionId"].as_str().or(ran["_meta"]["haft/metadata"]["executionId"].as_str());
    let Some(id) = id.map(str::to_owned).filter(|_| ran.to_string().contains("NOT applied")) else {
        return haft_testkit::not_run("what_a_staged_command_changed_is_a_resource", &ran.to_string());
    };
    let mut read = |id: &str| {
        let params = json!({"uri": format!("haft://changes/{id}")});
        lines.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": params}))
    };
    let diff = read(&id)["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
    assert!(diff.contains("+layout node"), "{diff}");
    assert!(diff.contains(".env") && !diff.contains("of-the-owner"), "what was hidden stays so: {diff}");
    assert!(read("0197a1b0-0000-7000-8000-000000000000")["error"].is_object());
    lines.end();
}

#[test]
fn a_client_on_pipes_is_served_and_the_choice_explained_once() {
    let place = Place::new();
    place.write("a.txt", "hello\n");
    let mut lines = Lines::start(&place, &["mcp"]);
    assert_eq!(lines.begin()["result"]["serverInfo"]["name"], "haft");
    assert_eq!(lines.call("read_file", json!({"path": "a.txt"}))["structuredContent"]["content"], "hello\n");
    let open = lines.call("write_file", json!({"path": "b.txt", "content": "x"}));
    assert_eq!(open["_meta"]["haft/error"]["code"], "CONFIRMATION_REQUIRED");
    let said = lines.end();
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{said:?}");
    assert!(
        said.stderr.contains("approvals = \"host\"") && said.stderr.contains("haft shows this once"),
        "{said:?}"
    );

    let mut again = Lines::start(&place, &["mcp"]);
    again.begin();
    assert_eq!(again.end().stderr, "");
}

#[test]
fn the_host_can_be_trusted_to_ask_but_a_folder_cannot_say_so() {
    let place = Place::new();
    let written = |place: &Place, args: &[&str]| {
        let mut lines = Lines::start(place, args);
        lines.begin();
        let result = lines.call("write_file", json!({"path": "b.txt", "content": "x"}));
        lines.end();
        (result["isError"] == true, place.work().join("b.txt").exists())
    };
    place.write("haft.toml", "[mcp]\napprovals = 'host'\n");
    assert_eq!(written(&place, &["mcp"]), (true, false), "a folder's file has no say in it");
    assert_eq!(written(&place, &["--no-folder-config", "mcp", "--approvals", "host"]), (false, true));

    let place = Place::new();
    place.own_config("[mcp]\napprovals = 'host'\n");
    assert_eq!(written(&place, &["mcp"]), (false, true));
    assert_eq!(written(&Place::new(), &["mcp", "--approvals", "queue"]), (true, false));
}

#[test]
fn what_is_denied_stays_denied_whoever_asks() {
    let place = Place::new();
    let rule =
        "[[policy.rules]]\nname = 'no keys'\neffect = 'deny'\ntool = 'write_file'\npath = ['secret/**']\n";
    place.own_config(rule);
    let mut lines = Lines::start(&place, &["mcp", "--approvals", "host"]);
    lines.begin();
    let code = |answer: Value| answer["_meta"]["haft/error"]["code"].clone();
    assert_eq!(code(lines.call("run_command", json!({"command": "echo hi"}))), "TOOL_DENIED");
    assert_eq!(code(lines.call("write_file", json!({"path": "secret/a", "content": "x"}))), "TOOL_DENIED");
    // The path jail holds.
    let outside = lines.call("write_file", json!({"path": "../home/b", "content": "x"}));
    assert_eq!(code(outside), "FILESYSTEM_POLICY_VIOLATION");
    assert_ne!(lines.call("write_file", json!({"path": "a", "content": "x"}))["isError"], true);
    lines.end();
    // Everything is on record, and from where the yes came.
    let records = place.haft(&["audit", "query", "--json"]).stdout;
    assert_eq!(records.matches("\"write_file\"").count(), 3, "{records}");
    assert_eq!(records.matches("\"run_command\"").count(), 1, "{records}");
}

#[cfg(target_os = "linux")]
#[test]
fn jails_hold_whoever_asks() {
    let place = Place::new();
    std::fs::write(place.home().join("secret"), "x").unwrap();
    let mut lines =
        Lines::start(&place, &["--set", "tools.approval.denylist=[]", "mcp", "--approvals", "host"]);
    lines.begin();
    let secret = place.home().join("secret");
    let read = lines.call("run_command", json!({"command": format!("cat {}", secret.display())}));
    lines.end();
    assert_eq!(read["_meta"]["haft/error"]["code"], "NON_ZERO_EXIT", "{read}");
}

#[test]
fn answers_through_mcp_count_only_where_they_are_accepted() {
    for (approvals, accepted, runs) in [
        ("host", "['terminal', 'mcp']", true),
        ("host", "['terminal']", false),
        ("client", "['terminal', 'mcp']", true),
        ("client", "['terminal']", false),
        ("queue", "['terminal', 'mcp']", false),
    ] {
        let place = Place::new();
        place.own_config(&format!("[tools.approval]\naccept_from = {accepted}\n"));
        let mut lines = Lines::start(&place, &["mcp", "--approvals", approvals]);
        lines.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }}));
        let call = json!({"name": "write_file", "arguments": {"path": "b.txt", "content": "x"}});
        let mut answer =
            lines.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}));
        if answer["method"] == "elicitation/create" {
            assert_eq!(approvals, "client");
            let yes = json!({"action": "accept", "content": {"decision": "approve"}});
            answer = lines.ask(&json!({"jsonrpc": "2.0", "id": answer["id"], "result": yes}));
        }
        let result = &answer["result"];
        assert_eq!(place.work().join("b.txt").exists(), runs, "{approvals} {accepted}: {result}");
        if !runs {
            let id = result["_meta"]["haft/error"]["data"]["approvalId"].as_str().unwrap().to_owned();
            let open = place.haft(&["approvals", "list", "--json"]).stdout;
            assert!(open.contains(&id), "a person finds it: {open}");
        }
        let said = lines.end();
        let warned = said.stderr.contains("haft does not accept answers through MCP");
        assert_eq!(warned, approvals != "queue" && !runs, "{approvals} {accepted}: {said:?}");
    }
}

#[test]
fn tools_that_another_process_adds_and_removes_are_told() {
    let place = Place::new();
    let definition = json!({"name": "said", "description": "Says something"});
    place.write("said.json", definition.to_string());
    let mut lines = Lines::start(&place, &["mcp"]);
    lines.begin();
    writeln!(
        lines.to.as_mut().unwrap(),
        "{}",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
    .unwrap();
    let list = |lines: &mut Lines| lines.ask(&json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}));
    assert!(!list(&mut lines).to_string().contains("\"said\""));
    for (change, is_there) in [(["tools", "add", "said.json"], true), (["tools", "remove", "said"], false)] {
        assert_eq!(place.haft(&change).code, 0);
        let mut told = Vec::new();
        while told.len() < 2 {
            let mut line = String::new();
            lines.from.read_line(&mut line).unwrap();
            told.push(serde_json::from_str::<Value>(&line).unwrap()["method"].clone());
        }
        assert_eq!(told, ["notifications/tools/list_changed", "notifications/resources/list_changed"]);
        assert_eq!(list(&mut lines).to_string().contains("\"said\""), is_there, "{change:?}");
    }
    // What cannot be read changes nothing, and is said once.
    place.change_database(
        "INSERT INTO tool_registrations (tool_name, enabled, settings_json, created_stamp, changed_stamp) \
         VALUES ('read_file', 0, '{', 1000, 1000)",
    );
    place.change_database("UPDATE tool_stamp SET stamp = 1000");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(list(&mut lines).to_string().contains("read_file"));
    let said = lines.end();
    assert_eq!(said.stderr.matches("so they stay").count(), 1, "{said:?}");
}

#[test]
fn folders_of_the_client_narrow_what_is_granted() {
    let place = Place::new();
    std::fs::create_dir(place.work().join("project")).unwrap();
    place.write("project/in.txt", "in");
    place.write("out.txt", "out");
    let mut lines = Lines::start(&place, &["mcp"]);
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "test", "version": "1"},
    }});
    lines.ask(&begin);
    // Nothing is read before it is known where the client works.
    let reading = |path: &str| json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": path}}});
    let asked = lines.ask(&reading("out.txt"));
    assert_eq!(asked["method"], "roots/list", "{asked}");
    let roots = json!([{"uri": format!("file://{}", place.work().join("project").display())}]);
    let read = lines.ask(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}}));
    assert_eq!(read["result"]["isError"], true, "{read}");
    // Relative paths start at the client's folder.
    assert_ne!(lines.call("read_file", json!({"path": "in.txt"}))["isError"], true);
    assert_eq!(lines.call("read_file", json!({"path": "../out.txt"}))["isError"], true);
    lines.end();
}

/// Two clients that work in different folders make the same call: a yes to the one is none to the other.
#[test]
fn a_yes_holds_in_the_folders_of_its_client() {
    let place = Place::new();
    let write = json!({"path": "x.txt", "content": "hello"});
    let mut clients = ["a", "b"].map(|folder| {
        std::fs::create_dir(place.work().join(folder)).unwrap();
        let mut lines = Lines::start(&place, &["mcp"]);
        lines.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "test", "version": "1"},
        }}));
        let call = json!({"name": "write_file", "arguments": write});
        let asked = lines.ask(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}));
        let roots = json!([{"uri": format!("file://{}", place.work().join(folder).display())}]);
        let open = lines.ask(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}}));
        let error = &open["result"]["_meta"]["haft/error"];
        assert_eq!(error["code"], "CONFIRMATION_REQUIRED", "{open}");
        (lines, error["data"]["approvalId"].as_str().unwrap().to_owned())
    });
    assert_ne!(clients[0].1, clients[1].1);
    assert_eq!(place.haft(&["approvals", "approve", &clients[0].1]).code, 0);
    // The other one first: it must not take the yes, nor use it up.
    let open = clients[1].0.call("write_file", write.clone());
    assert_eq!(open["_meta"]["haft/error"]["code"], "CONFIRMATION_REQUIRED", "{open}");
    assert_ne!(clients[0].0.call("write_file", write)["isError"], true);
    let there = |file: &str| place.work().join(file).exists();
    assert!(there("a/x.txt") && !there("b/x.txt") && !there("x.txt"));
    for (lines, _) in clients {
        assert_eq!(lines.end().code, 0);
    }
}

#[test]
fn a_client_that_works_elsewhere_reaches_no_files() {
    let place = Place::new();
    place.write("out.txt", "out");
    let mut lines = Lines::start(&place, &["mcp"]);
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "test", "version": "1"},
    }});
    lines.ask(&begin);
    let reading = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "out.txt"}}});
    let asked = lines.ask(&reading);
    let read = lines.ask(
        &json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///elsewhere"}]}}),
    );
    assert_eq!(read["result"]["isError"], true, "{read}");
    lines.end();
}

#[test]
fn nonsense_ends_with_a_word_about_it() {
    let place = Place::new();
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": 1, "version": "1"}}});
    let said = place.haft_with(&["mcp"], format!("{unknown}\n"));
    assert_eq!(said.code, 0, "what is no request of MCP is answered: {said:?}");
    assert_eq!(place.haft_with(&["mcp"], "").code, 0, "a client that looked and went");
    let remote = place.haft(&["mcp", "--http", "0.0.0.0:0"]);
    assert_eq!(remote.code, 2);
    assert!(remote.stderr.contains("can be reached from other machines"), "{remote:?}");
    assert_eq!(place.haft(&["mcp", "--http", "nowhere"]).code, 2);
    assert_eq!(place.haft(&["mcp", "--approvals", "nobody"]).code, 2);
}

#[test]
fn what_comes_before_the_beginning_ends_nothing() {
    let place = Place::new();
    let mut lines = Lines::start(&place, &["mcp"]);
    for early in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
        json!({"jsonrpc": "2.0", "method": "notifications/nobody/knows"}),
        json!({"jsonrpc": "2.0", "id": 9, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "no"}}),
    ] {
        writeln!(lines.to.as_mut().unwrap(), "{early}").unwrap();
    }
    let ping = lines.ask(&json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
    assert_eq!(ping["id"], 3, "{ping}");
    writeln!(
        lines.to.as_mut().unwrap(),
        "{}",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
    .unwrap();
    // One that is refused is no beginning either.
    let refused = lines.ask(&json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": {}}));
    assert!(refused["error"].is_object(), "{refused}");
    writeln!(
        lines.to.as_mut().unwrap(),
        "{}",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
    .unwrap();
    assert_eq!(lines.begin()["result"]["protocolVersion"], "2025-11-25");
    writeln!(
        lines.to.as_mut().unwrap(),
        "{}",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
    .unwrap();
    assert_ne!(lines.call("get_metrics", json!({}))["isError"], true);
    assert_eq!(lines.end().code, 0);
    let said =
        place.haft_with(&["mcp"], "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\n");
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn install_keeps_what_is_in_the_file() {
    let place = Place::new();
    let file = place.home().join(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let before = "{\n  // mine\n  \"mcpServers\": {\"other\": {\"command\": \"x\"}}\n}\n";
    std::fs::write(&file, before).unwrap();
    let said = place.haft(&["mcp", "install", "cursor", "--approvals", "host", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let done = said.json();
    assert_eq!(
        (&done["changed"], &done["entry"]["args"]),
        (&json!(true), &json!(["mcp", "--approvals", "host"]))
    );
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(after.contains("// mine") && after.contains("\"other\": {\"command\": \"x\"}"), "{after}");
    let program = done["entry"]["command"].as_str().unwrap();
    assert!(Path::new(program).is_absolute() && after.contains(program));
    let backup = done["backup"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(backup).unwrap(), before);
    assert_eq!(
        place.haft(&["mcp", "install", "cursor", "--approvals", "host", "--json"]).json()["changed"],
        false
    );
}

#[test]
fn every_host_has_its_file_its_entry_and_one_of_it() {
    let hosts = [
        ("claude-code", ".claude.json"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("codex", ".codex/config.toml"),
        ("copilot", ".copilot/mcp-config.json"),
        ("cursor", ".cursor/mcp.json"),
        ("gemini", ".gemini/settings.json"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("zed", ".config/zed/settings.json"),
    ];
    let place = Place::new();
    for (host, file) in hosts {
        let before = match host {
            "codex" => "# mine\nmodel = 'x'\n\n[mcp_servers.other]\ncommand = 'y'\n".to_owned(),
            // A comment where the host allows one; whatever else is there, in whatever order.
            "vscode" | "zed" | "cursor" => {
                "{\n  // mine\n  \"z\": [1,2],\n  \"a\": {\"b\": null},\n}\n".to_owned()
            }
            _ => "{\"z\":[1,2],\"a\":{\"b\":null}}".to_owned(),
        };
        let path = place.home().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &before).unwrap();
        assert_eq!(place.haft(&["mcp", "install", host]).code, 0, "{host}");
        let after = std::fs::read_to_string(&path).unwrap();
        assert_eq!(place.haft(&["mcp", "install", host]).code, 0, "{host}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after, "{host}: twice is once");
        assert_eq!(
            after.matches("\"mcp\"]").count() + after.matches("\"mcp\"\n").count(),
            1,
            "{host}: {after}"
        );
        for kept in before.lines().map(str::trim).filter(|line| line.len() > 2) {
            let kept = kept.trim_matches(['{', '}', ',']);
            assert!(after.contains(kept), "{host}: {kept} in {after}");
        }
    }
    let elsewhere = place.home().join("elsewhere");
    let said =
        place.program(&["mcp", "install", "claude-code"]).env("CLAUDE_CONFIG_DIR", &elsewhere).output();
    assert!(said.unwrap().status.success() && elsewhere.join(".claude.json").is_file());
}

#[test]
fn install_prints_makes_and_refuses() {
    let place = Place::new();
    let printed = place.haft(&["mcp", "install", "vscode", "--print"]);
    let entry: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(entry["servers"]["haft"]["type"], "stdio");
    assert!(!place.home().join(".config/Code").exists(), "nothing was written");

    assert_eq!(place.haft(&["mcp", "install", "codex"]).code, 0);
    let codex = std::fs::read_to_string(place.home().join(".codex/config.toml")).unwrap();
    assert!(codex.starts_with("[mcp_servers.haft]\n"), "{codex}");
    assert_eq!(place.haft(&["mcp", "install", "claude-code"]).code, 0);
    assert!(place.home().join(".claude.json").exists());

    let file = place.home().join(".gemini/settings.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "not json").unwrap();
    let refused = place.haft(&["mcp", "install", "gemini"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--print"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "not json");
    assert_eq!(place.haft(&["mcp", "install", "emacs"]).code, 2);
}

/// Runs a script of an SDK; it asserts by itself.
fn driven(place: &Place, program: &Path, args: &[&str]) {
    let said = Said::of(place.command(program).args(args).output().unwrap());
    assert!(said.code == 0 && said.stdout.contains("driven"), "{args:?}: {said:#?}");
    // The command was started, and stopped long before its time.
    let runs = place.haft(&["runs", "list", "--json"]).json()["runs"].clone();
    let is_command = |run: &&Value| run["tool"] == "run_command" && run["metadata"]["attempts"] == 1;
    let commands: Vec<_> = runs.as_array().unwrap().iter().filter(is_command).collect();
    assert!(commands.iter().any(|run| run["status"] != "Success"), "{runs:#}");
    assert!(commands.iter().all(|run| run["durationMs"].as_f64().unwrap() < 20_000.0), "{commands:#?}");
}

fn script(name: &str) -> String {
    format!("{}/tests/mcp/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Where haft's home is what the scripts call the folder.
fn with_work() -> Place {
    let place = Place::new();
    let work = place.home().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("notes.txt"), "hello\n").unwrap();
    place
}

#[test]
fn the_official_sdks_drive_it_on_pipes() {
    let Some(kit) = haft_testkit::mcp_kit() else {
        return haft_testkit::not_run(
            "the_official_sdks_drive_it_on_pipes",
            "the MCP SDKs are not installed",
        );
    };
    for revision in ["legacy", "2026-07-28"] {
        let (python, typescript) = (with_work(), with_work());
        let haft = env!("CARGO_BIN_EXE_haft");
        let home = |place: &Place| place.home().to_string_lossy().into_owned();
        driven(&python, &kit.python, &[&script("drive.py"), haft, &home(&python), "stdio", revision]);
        let modules = kit.modules.to_string_lossy();
        driven(
            &typescript,
            &kit.node,
            &[&script("drive.mjs"), &modules, haft, &home(&typescript), "stdio", revision],
        );
    }
}

#[test]
fn the_official_sdks_drive_it_over_http() {
    let Some(kit) = haft_testkit::mcp_kit() else {
        return haft_testkit::not_run(
            "the_official_sdks_drive_it_over_http",
            "the MCP SDKs are not installed",
        );
    };
    let place = with_work();
    let args =
        ["--set", "tools.approval.denylist=[]", "mcp", "--approvals", "client", "--http", "127.0.0.1:0"];
    let mut server = place.program(&args).current_dir(place.home().join("work")).spawn().unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    stderr.read_line(&mut said).unwrap();
    let url = said.trim().strip_prefix("serving MCP at ").unwrap_or_else(|| panic!("{said}")).to_owned();
    let token = std::fs::read_to_string(place.home().join(".local/state/haft/mcp-token")).unwrap();
    let (haft, home, token) =
        (env!("CARGO_BIN_EXE_haft"), place.home().to_string_lossy().into_owned(), token.trim());
    let modules = kit.modules.to_string_lossy();
    for revision in ["legacy", "2026-07-28"] {
        driven(&place, &kit.python, &[&script("drive.py"), haft, &home, "http", revision, &url, token]);
        driven(
            &place,
            &kit.node,
            &[&script("drive.mjs"), &modules, haft, &home, "http", revision, &url, token],
        );
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

/// A call that says one thing twice is refused in the same words whichever way it comes, and runs nothing.
#[test]
fn a_call_says_everything_once() {
    let place = Place::new();
    place.write("a.txt", "the first\n");
    place.write("b.txt", "the last\n");
    let twice = r#"{"path":"a.txt","path":"b.txt"}"#;
    let typed = place.haft(&["call", "read_file", "--args", twice, "--json"]);
    let expected = typed.json()["error"].clone();
    let words = "Invalid tool arguments JSON: the key \"path\" is there twice (line 1 column 22)";
    assert_eq!((&expected["code"], &expected["message"]), (&json!("VALIDATION_FAILED"), &json!(words)));

    let call = |id: u8| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"read_file\",\
             \"arguments\":{twice}}}}}"
        )
    };
    let mut lines = Lines::start(&place, &["mcp"]);
    lines.begin();
    for id in [5, 6] {
        let answer = lines.ask_line(&call(id));
        assert_eq!(
            (&answer["id"], &answer["error"]["data"]["haft/error"]),
            (&json!(id), &expected),
            "{answer}"
        );
        assert!(answer.get("result").is_none(), "{answer}");
    }
    assert_eq!(
        lines.call("read_file", json!({"path": "b.txt"}))["structuredContent"]["content"],
        "the last\n"
    );
    assert_eq!(lines.end().code, 0);
}

/// What a server answers to a POST at `/mcp`: its status, and the whole answer.
fn posted(address: &str, key: Option<&str>, method: &str, params: Value) -> (u16, String) {
    posted_on(std::net::TcpStream::connect(address).unwrap(), key, method, params)
}

fn posted_on(
    mut stream: impl std::io::Read + std::io::Write,
    key: Option<&str>,
    method: &str,
    mut params: Value,
) -> (u16, String) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let name = params["name"].as_str().map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}{key}Content-Length: \
         {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

#[cfg(unix)]
#[test]
fn the_server_takes_keys_and_whoever_calls_does_not_approve() {
    let place = Place::new();
    place.own_config("[mcp]\napprovals = 'client'\n");
    let key = |rights: &[&str]| {
        let mut args = vec!["keys", "create", "ci", "--role", "editor", "--json"];
        args.extend(rights.iter().flat_map(|right| ["--right", right]));
        let made = place.haft(&args);
        assert_eq!(made.code, 0, "{}", made.shown());
        made.json()["secret"].as_str().unwrap().to_owned()
    };
    let invoke = key(&["invoke"]);
    let mut server = crate::stop::Running::start(&place, &["serve", "--listen", "127.0.0.1:0"]);
    server.wait_for("serving at");
    let address =
        server.heard().lines().find_map(|line| line.rsplit_once("http://")).unwrap().1.trim().to_owned();

    let (status, answer) = posted(&address, None, "tools/list", json!({}));
    assert_eq!(status, 401);
    assert!(answer.to_ascii_lowercase().contains("www-authenticate: bearer"), "{answer}");
    assert_eq!(posted(&address, Some("haft_nobody"), "tools/list", json!({})).0, 401);
    let (status, answer) = posted(&address, Some(&invoke), "tools/list", json!({}));
    assert!(status == 200 && answer.contains("read_file"), "{status} {answer}");
    // The client has forms, and the configuration says that they count; its key may not approve.
    let call = json!({"name": "write_file", "arguments": {"path": "b.txt", "content": "x"}});
    let (status, answer) = posted(&address, Some(&invoke), "tools/call", call.clone());
    assert!(status == 200 && answer.contains("CONFIRMATION_REQUIRED"), "{status} {answer}");
    assert!(!answer.contains("input_required"), "{answer}");
    // The owner, on the socket, may.
    let socket = place.home().join(".local/state/haft/haft.sock");
    let socket = || std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let (status, answer) = posted_on(socket(), None, "tools/call", call);
    assert!(status == 200 && answer.contains("input_required"), "{status} {answer}");
    assert_eq!(posted_on(socket(), Some("haft_wrong"), "tools/list", json!({})).0, 401);
    let operates = key(&["operate"]);
    assert_eq!(posted(&address, Some(&operates), "tools/list", json!({})).0, 403);
    server.signal("INT");
    server.end();
}

#[cfg(unix)]
#[test]
fn the_official_sdks_drive_a_server_with_a_key() {
    let Some(kit) = haft_testkit::mcp_kit() else {
        return haft_testkit::not_run(
            "the_official_sdks_drive_a_server_with_a_key",
            "the MCP SDKs are not installed",
        );
    };
    let place = with_work();
    place.own_config(
        "[mcp]\napprovals = 'client'\n[server]\ninvoke_and_approve = true\n[tools.approval]\ndenylist = []\n",
    );
    let rights = ["--right", "invoke", "--right", "approve", "--role", "editor", "--json"];
    let made = place.haft(&[&["keys", "create", "sdk"], &rights[..]].concat());
    assert_eq!(made.code, 0, "{}", made.shown());
    let secret = made.json()["secret"].as_str().unwrap().to_owned();
    let work = place.home().join("work");
    let args = ["serve", "--listen", "127.0.0.1:0"];
    let mut server = place.program(&args).current_dir(&work).spawn().unwrap();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("serving at") {
        said.clear();
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "it ended");
    }
    let url = format!("http://{}/mcp", said.trim().rsplit_once("http://").unwrap().1);
    let (haft, home) = (env!("CARGO_BIN_EXE_haft"), place.home().to_string_lossy().into_owned());
    let modules = kit.modules.to_string_lossy();
    for revision in ["legacy", "2026-07-28"] {
        driven(&place, &kit.python, &[&script("drive.py"), haft, &home, "http", revision, &url, &secret]);
        driven(
            &place,
            &kit.node,
            &[&script("drive.mjs"), &modules, haft, &home, "http", revision, &url, &secret],
        );
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_changed_policy_holds_at_once_and_a_broken_one_changes_nothing() {
    let place = Place::new();
    let mut lines = Lines::start(&place, &["mcp"]);
    lines.begin();
    let is_error = |answer: &Value| answer["isError"] == true;
    let ask = |lines: &mut Lines| lines.call("get_metrics", json!({}));
    assert!(!is_error(&ask(&mut lines)));
    place.own_config("[[policy.rules]]\nname = 'no'\neffect = 'deny'\ntool = 'get_metrics'\n");
    let begun = std::time::Instant::now();
    while !is_error(&ask(&mut lines)) {
        assert!(begun.elapsed().as_secs() < 30, "the new rule never held");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    place.own_config("[[policy.rules]]\nname = 'no'\neffect = 'denny'\ntool = 'get_metrics'\n");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(is_error(&ask(&mut lines)), "what held before goes on holding");
    let said = lines.end();
    assert!(said.stderr.contains("the old one holds"), "{said:?}");
}
