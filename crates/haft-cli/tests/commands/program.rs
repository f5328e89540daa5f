//! Programs as tools.

use crate::world::{World, in_world, in_world_with, mark, none_left};
use haft::{
    CallOptions, CommandInput, CommandOutput, CommandSource, CommandTool, CommandToolSettings,
    DeniedVariables, ErrorCode, EventPayload, ExecutionId, IsolationLevel, Limits, Request, Resource, Source,
    Status, Tool as _, ToolCall, ToolDefinition, Variables, port::Preset,
};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 10] = [
        ("program::arguments_as_json_and_json_back", arguments_as_json_and_json_back),
        ("program::arguments_as_flags", arguments_as_flags),
        ("program::progress_is_no_output", progress_is_no_output),
        ("program::its_own_error_passes_byte_for_byte", its_own_error_passes_byte_for_byte),
        ("program::what_is_not_json_is_told", what_is_not_json_is_told),
        ("program::it_gets_no_more_than_is_configured", it_gets_no_more_than_is_configured),
        ("program::its_environment", its_environment),
        ("program::metadata_and_context_reach_it", metadata_and_context_reach_it),
        ("program::it_is_held_to_what_it_says_it_writes", it_is_held_to_what_it_says_it_writes),
        ("program::a_program_that_is_gone_and_one_that_hangs", a_program_that_is_gone_and_one_that_hangs),
    ];
    crate::world::trials(tests)
}

pub fn definition(command: CommandSource) -> ToolDefinition {
    let mut definition = ToolDefinition::new("my_tool", "Does something");
    definition.source = Source::Command;
    definition.command = Some(Box::new(command));
    let schema = json!({"type": "object", "properties": {
        "text": {"type": "string"}, "path": {"type": "string"}, "n": {"type": "integer", "default": 3},
        "on": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}}
    }, "additionalProperties": false});
    definition.parameters = haft::serde_json::from_value(schema).unwrap();
    assert_eq!(definition.check(), []);
    definition
}

pub fn add(world: &World, definition: ToolDefinition) {
    let settings = CommandToolSettings {
        denied_variables: DeniedVariables::new(["*_TOKEN"]),
        variables: Variables::new(|name| (name == "WANTED").then(|| "its value".to_owned())),
        ..CommandToolSettings::default()
    };
    world.haft.register(CommandTool::new(definition, &settings).unwrap()).unwrap();
}

/// A program of that script behind a tool.
fn script(world: &World, text: &str) -> CommandSource {
    CommandSource::new(world.program("program.sh", &format!("#!/bin/sh\n{text}\n")).to_str().unwrap())
}

fn arguments_as_json_and_json_back(name: &str) {
    in_world(name, async |world| {
        let command = CommandSource { output: CommandOutput::Json, ..script(&world, "cat") };
        let mut definition = definition(command);
        definition.output_schema =
            Some(json!({"type": "object", "properties": {"text": {"type": "string", "maxLength": 20}}}));
        add(&world, definition);
        let result = world.call("my_tool", json!({"text": "ä \"quoted\"\n"})).await;
        assert_eq!(
            result.output,
            Some(json!({"text": "ä \"quoted\"\n", "n": 3})),
            "with defaults: {result:?}"
        );
        let enforcement = result.metadata.enforcement.as_ref().unwrap();
        assert_eq!((enforcement.level, &*enforcement.jail), (IsolationLevel::Strict, "namespace"));
        assert!(result.metadata.metrics.is_some() && result.metadata.sandbox_id.is_some());
        let result = world.call("my_tool", json!({"text": "much too long to be put out"})).await;
        assert_eq!(result.error.unwrap().code, ErrorCode::OutputValidationFailed, "the schema holds");
        assert_eq!(world.call("my_tool", json!({"txet": "x"})).await.status, Status::ValidationError);
    });
}

fn arguments_as_flags(name: &str) {
    in_world(name, async |world| {
        let command = CommandSource {
            args: vec!["first word".into()],
            input: CommandInput::Flags,
            positional: vec!["path".into()],
            ..script(&world, "for word in \"$@\"; do printf '<%s>' \"$word\"; done; cat")
        };
        add(&world, definition(command));
        let arguments = json!({"text": "--on $(id)", "on": true, "tags": ["a", "b c"], "path": "-rf"});
        let result = world.call("my_tool", arguments).await;
        let expected = "<first word><--n><3><--on><--tags><a><--tags><b c><--text=--on $(id)><--><-rf>";
        assert_eq!(result.text(), expected);
    });
}

fn progress_is_no_output(name: &str) {
    in_world(name, async |world| {
        let text =
            "echo 'haft:progress {\"percent\": 40, \"message\": \"half\"}' >&2; echo words >&2; echo done";
        add(&world, definition(script(&world, text)));
        let id = ExecutionId::at(haft::jiff::Timestamp::now());
        let options = CallOptions { execution_id: Some(id), ..CallOptions::default() };
        let call = world.haft.execute(Request::new(ToolCall::new("my_tool", json!({}))).options(options));
        let mut watch = world.haft.observe(id).unwrap();
        let result = call.await;
        assert_eq!(result.text(), "done\n", "{result:?}");
        let (mut progress, mut words) = (Vec::new(), String::new());
        while let Some(event) = watch.next().await {
            match event.payload {
                EventPayload::InProgress { percent, message } => progress.push((percent, message)),
                EventPayload::Output { chunk, .. } => words.push_str(&chunk),
                _ => {}
            }
        }
        assert_eq!(progress, [(Some(40), Some("half".to_owned()))]);
        assert!(words.contains("words\n") && words.contains("done\n") && !words.contains("haft:"), "{words}");
    });
}

fn its_own_error_passes_byte_for_byte(name: &str) {
    in_world(name, async |world| {
        let error = r#"{"error":  "no such thing", "n": 1.50, "u": "\u00e4"}"#;
        add(&world, definition(script(&world, &format!("echo aside >&2; echo '{error}'; exit 9"))));
        let result = world.call("my_tool", json!({})).await;
        assert_eq!((result.status, result.text()), (Status::Failed, error));
        let info = result.error.unwrap();
        assert_eq!((info.code, info.message.as_str()), (ErrorCode::ExecutionFailed, error));
        assert_eq!(info.data.as_deref(), Some(&json!({"exitCode": 9, "tool": "my_tool"})));
    });
}

fn what_is_not_json_is_told(name: &str) {
    in_world(name, async |world| {
        let command = CommandSource { output: CommandOutput::Json, ..script(&world, "echo '{\"a\": 1,}'") };
        add(&world, definition(command));
        let result = world.call("my_tool", json!({})).await;
        assert_eq!(result.error.as_ref().unwrap().code, ErrorCode::OutputValidationFailed);
        assert!(result.text().contains("did not put out JSON"), "{}", result.text());
        assert!(result.text().contains("{\"a\": 1,}"), "and what it put out is there: {}", result.text());
        let plain = world.another("");
        let command = CommandSource { output: CommandOutput::Json, ..script(&world, "echo partly; exit 2") };
        let tool = CommandTool::new(definition(command), &CommandToolSettings::default()).unwrap();
        plain.register(tool).unwrap();
        let result = plain.execute(ToolCall::new("my_tool", json!({}))).await;
        assert_eq!(result.error.as_ref().unwrap().code, ErrorCode::NonZeroExit);
        assert!(
            result.text().contains("exit code 2") && result.text().contains("partly"),
            "{}",
            result.text()
        );
    });
}

fn it_gets_no_more_than_is_configured(name: &str) {
    in_world_with(
        name,
        "[tools.commands]\nhosts = ['*.example.com']\nmemory_bytes = 1000000000\n",
        async |world| {
            let cases = [
                (
                    CommandSource { hosts: vec!["example.org".into()], ..script(&world, "true") },
                    ErrorCode::NetworkPolicyViolation,
                    "tools.commands.hosts",
                ),
                (
                    CommandSource { presets: vec![Preset::Git], ..script(&world, "true") },
                    ErrorCode::FilesystemPolicyViolation,
                    "tools.commands.presets",
                ),
                (
                    CommandSource {
                        limits: Limits { memory_bytes: Some(1_000_000_001), ..Limits::default() },
                        ..script(&world, "true")
                    },
                    ErrorCode::ResourceLimitExceeded,
                    "memoryBytes",
                ),
            ];
            for (command, code, word) in cases {
                let haft =
                    world.another("[tools.commands]\nhosts = ['*.example.com']\nmemory_bytes = 1000000000\n");
                let tool = CommandTool::new(definition(command), &CommandToolSettings::default()).unwrap();
                haft.register(tool).unwrap();
                let result = haft.execute(ToolCall::new("my_tool", json!({}))).await;
                assert_eq!(result.error.as_ref().unwrap().code, code, "{result:?}");
                assert!(result.text().contains(word), "{}", result.text());
            }
            // What it does not ask for it does not get.
            add(&world, definition(script(&world, "env | grep -i proxy; echo end")));
            let result = world.call("my_tool", json!({})).await;
            assert_eq!(result.text(), "end\n", "no way to the hosts of others");
            assert_eq!(result.metadata.enforcement.as_ref().unwrap().details["network"], "none");
        },
    );
}

fn its_environment(name: &str) {
    in_world(name, async |world| {
        let text = "echo \"$WANTED|$OTHER|$HAFT_EFFECT_ID|$(pwd)\"";
        let command = CommandSource { env: vec!["WANTED".into(), "MISSING".into()], ..script(&world, text) };
        let denied = CommandSource { env: vec!["MY_TOKEN".into()], ..command.clone() };
        let settings = CommandToolSettings {
            denied_variables: DeniedVariables::new(["*_TOKEN"]),
            ..CommandToolSettings::default()
        };
        let problem = CommandTool::new(definition(denied), &settings).unwrap_err();
        assert_eq!(problem.place, "command.env[0]");
        world.write("sub/x", "");
        add(&world, definition(CommandSource { working_dir: Some("sub".into()), ..command }));
        let result = world.call("my_tool", json!({})).await;
        let expected =
            format!("its value||{}|{}\n", result.metadata.execution_id, world.work().join("sub").display());
        assert_eq!(result.text(), expected);
    });
}

fn metadata_and_context_reach_it(name: &str) {
    in_world(name, async |world| {
        let text = "echo \"$HAFT_CALL_ID|$HAFT_CALL_METADATA|$HAFT_CALL_CONTEXT\"";
        add(&world, definition(script(&world, text)));
        let metadata = json!({"trace": 7}).as_object().cloned().map(Arc::new);
        let call = ToolCall { metadata, ..ToolCall::new("my_tool", json!({})).with_id("call_7") };
        let mut context = haft::CallContext::clone(&haft::CallContext::owner());
        context.extra.insert("place".to_owned(), json!("here"));
        let result = world.haft.execute(Request::new(call).context(Arc::new(context))).await;
        assert_eq!(result.text(), "call_7|{\"trace\":7}|{\"place\":\"here\"}\n");
        // A command cannot make them up.
        let arguments =
            json!({"command": "echo ${HAFT_CALL_METADATA:-none}", "env": {"HAFT_CALL_METADATA": "mine"}});
        assert_eq!(world.call("run_command", arguments).await.text(), "none\n");
    });
}

fn it_is_held_to_what_it_says_it_writes(name: &str) {
    in_world(name, async |world| {
        world.write("in/a.txt", "old");
        world.write("out/b.txt", "old");
        let text = "echo new > in/a.txt; echo new > out/b.txt; cat in/a.txt out/b.txt";
        let command = CommandSource { writes: Some(vec!["path".into()]), ..script(&world, text) };
        add(&world, definition(command.clone()));
        let result = world.call("my_tool", json!({"path": "out/b.txt"})).await;
        assert_eq!(result.text(), "oldnew\n", "{result:?}");
        assert_eq!(world.call("my_tool", json!({"path": "../out"})).await.status, Status::SandboxError);
        // A tool that says that it changes nothing cannot.
        let haft = world.another("");
        let mut harmless = definition(CommandSource { writes: None, ..command });
        harmless.constraints.allow_side_effects = false;
        world.write("out/b.txt", "old\n");
        haft.register(CommandTool::new(harmless, &CommandToolSettings::default()).unwrap()).unwrap();
        let result = haft.execute(ToolCall::new("my_tool", json!({}))).await;
        assert_eq!(result.text(), "oldold\n", "{result:?}");
        // And what is declared is what counts for the order of calls.
        let tool = CommandTool::new(
            definition(CommandSource {
                reads: Some(vec!["path".into(), "git-index:".into()]),
                ..CommandSource::new("cat")
            }),
            &CommandToolSettings::default(),
        )
        .unwrap();
        let arguments: Value = json!({"path": "in/a.txt"});
        let original = haft::Arguments::from(arguments);
        let args = haft::Args { value: original.parse().unwrap(), original };
        let footprint = tool.prepare(&args).unwrap().footprint();
        assert_eq!(footprint.reads, [Resource::path("in/a.txt"), Resource::named("git-index:")]);
        assert!(footprint.writes.is_empty());
    });
}

fn a_program_that_is_gone_and_one_that_hangs(name: &str) {
    in_world(name, async |world| {
        let mark = mark();
        let command = script(&world, &format!("setsid sleep 7{mark} & sleep 7{mark}"));
        let program = command.program.clone();
        add(&world, definition(command));
        let options = CallOptions { timeout: Some(Duration::from_secs(1)), ..CallOptions::default() };
        let result =
            world.haft.execute(Request::new(ToolCall::new("my_tool", json!({}))).options(options)).await;
        assert_eq!(result.status, Status::Timeout);
        none_left(&format!("sleep 7{mark}"));
        std::fs::remove_file(&program).unwrap();
        let result = world.call("my_tool", json!({})).await;
        assert_eq!(result.error.as_ref().unwrap().code, ErrorCode::ToolDisabled);
        assert!(
            result.text().contains(&program) && result.text().contains("not there any more"),
            "{}",
            result.text()
        );
    });
}
