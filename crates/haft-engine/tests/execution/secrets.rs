//! Secrets do not leave: not in results, events, errors, diagnostics, the audit, stored output, or questions to people.

use crate::common::{
    Answers, House, Scripted, Setup, call, call_with, known_id, poll_once, quiet, tool, with,
};
use haft_core::{
    ContentPart, Decision, EventPayload, Footprint, OutputStream, Problem, Resource, SideEffect,
    SideEffectKind, ToolCall, ToolError, ToolOutput, ToolResult,
};
use haft_engine::Preview;
use haft_guard::KnownSecrets;
use haft_sdk::ToolCtx;
use serde_json::{Value, json};
use std::sync::Arc;

const SECRET: &str = "s3cr3t-value-42";
const PIN: u64 = 8_675_309_424_242;

fn setup(tools: impl IntoIterator<Item = Scripted>) -> (House, Arc<Answers>) {
    quiet();
    let secrets = KnownSecrets::new([("TOKEN", SECRET.to_owned()), ("PIN", PIN.to_string())]);
    let person = Answers::by(|request| match request.call_id.strip_prefix("deny: ") {
        Some(reason) => Decision::Deny { reason: Some(reason.to_owned()) },
        None => Decision::Approve,
    });
    let setup = Setup { redactor: Some(Arc::new(secrets)), approver: person.clone(), ..Setup::default() };
    (setup.build(tools), person)
}

/// A tool that returns that.
fn gives(output: ToolOutput) -> Scripted {
    tool("leaks", move |_, _| {
        let output = output.clone();
        async { Ok(output) }
    })
}

/// A tool that fails with that.
fn fails(error: ToolError) -> Scripted {
    tool("leaks", move |_, _| {
        let error = error.clone();
        async { Err::<(), _>(error) }
    })
}

/// A tool that does that with its context.
fn does(act: fn(&ToolCtx)) -> Scripted {
    tool("leaks", move |_, cx: ToolCtx| async move {
        act(&cx);
        Ok(())
    })
}

fn part(part: ContentPart) -> Scripted {
    gives(ToolOutput { parts: vec![part], ..ToolOutput::text("see below") })
}

fn resource(uri: &str, text: &str) -> Scripted {
    let text = Some(text.to_owned());
    part(ContentPart::Resource { uri: uri.to_owned(), mime_type: None, text, blob: None })
}

fn effect(change: fn(&mut SideEffect)) -> Scripted {
    let mut effect = SideEffect::new(SideEffectKind::Modified, "a.txt", jiff::Timestamp::UNIX_EPOCH);
    change(&mut effect);
    gives(ToolOutput::text("changed").with_side_effect(effect))
}

/// Every way out that a secret could take through what a tool says.
fn ways_of_a_tool() -> Vec<(&'static str, Scripted)> {
    let failed = || ToolError::failed("it failed");
    vec![
        ("text", gives(ToolOutput::text(SECRET))),
        ("long text that is stored", gives(ToolOutput::text(format!("{SECRET}\n").repeat(20_000)))),
        ("value", gives(ToolOutput::structured(json!({"a": [{"b": SECRET}]})))),
        ("key of a value", gives(ToolOutput::structured(json!({"a": {SECRET: 1}})))),
        ("number", gives(ToolOutput::structured(json!({"pin": PIN})))),
        ("text part", part(ContentPart::text(SECRET))),
        ("text of a resource", resource("file:///a", SECRET)),
        ("address of a resource", resource(&format!("https://host/?token={SECRET}"), "a")),
        ("side effect: resource", effect(|effect| effect.resource = SECRET.into())),
        ("side effect: words", effect(|effect| effect.description = Some(SECRET.into()))),
        ("side effect: before", effect(|effect| effect.previous_value = Some(SECRET.into()))),
        ("side effect: after", effect(|effect| effect.new_value = Some(json!({"a": SECRET})))),
        ("stdout", does(|cx| cx.print(SECRET))),
        ("stderr", does(|cx| cx.write(OutputStream::Stderr, SECRET.as_bytes()))),
        ("progress", does(|cx| cx.progress(50, SECRET))),
        ("status", does(|cx| cx.status(SECRET))),
        ("warning", does(|cx| cx.warn(SECRET))),
        ("coloured text", gives(ToolOutput::text("s3cr3t-\x1b[1;31mvalue\x1b[0m-42"))),
        ("coloured stdout", does(|cx| cx.print("s3cr3t-\x1b[1;31mvalue\x1b[0m-42"))),
        ("coloured warning", does(|cx| cx.warn("s3cr3t-\x1b[1;31mvalue\x1b[0m-42"))),
        ("error", fails(ToolError::failed(SECRET))),
        ("JSON error", fails(ToolError::failed(format!(r#"{{"error": "{SECRET}"}}"#)))),
        ("long JSON error", fails(ToolError::failed(format!(r#"{{"error": "{}"}}"#, SECRET.repeat(20_000))))),
        ("coloured error", fails(ToolError::failed("s3cr3t-\x1b[1;31mvalue\x1b[0m-42"))),
        ("facts of an error", fails(failed().with_data(json!({"a": SECRET})))),
        ("key of an error's facts", fails(failed().with_data(json!({SECRET: 1})))),
        ("diagnostics", fails(failed().with_diagnostics(SECRET))),
        ("problem: words", fails(failed().with_problems(vec![Problem::new("/a", "type", SECRET)]))),
        (
            "problem: place",
            fails(failed().with_problems(vec![Problem::new(format!("/{SECRET}"), "type", "no")])),
        ),
        ("panic with a fixed text", does(|_| panic!("planned: s3cr3t-value-42"))),
        ("panic with a formatted text", does(|_| panic!("planned: {SECRET}"))),
        ("panic in prepare", gives(ToolOutput::text("a")).on_prepare(|_| panic!("planned: {SECRET}"))),
        ("error of prepare", gives(ToolOutput::text("a")).on_prepare(|_| Err(ToolError::bad_args(SECRET)))),
        ("summary", gives(ToolOutput::text("a")).asks().on_summary(|_| format!("send {SECRET}"))),
    ]
}

/// A footprint that names the secret, on both sides.
fn touched<S: From<String>>(resource: fn(S) -> Resource) -> Footprint {
    let named = || resource(format!("/work/{SECRET}/x").into());
    Footprint { reads: vec![named()], writes: vec![named()] }
}

/// The secret, with an escape in the middle of it.
fn in_pieces() -> String {
    let (begin, end) = SECRET.split_at(5);
    format!("+{begin}\x1b[0m{end}")
}

/// Calls that carry a secret in what the caller says.
fn ways_of_a_call() -> Vec<(&'static str, Scripted, ToolCall)> {
    let strict = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "map": {"additionalProperties": {"type": "integer"}}},
        "additionalProperties": false
    });
    let fine = || gives(ToolOutput::text("fine"));
    vec![
        ("arguments", fine(), call_with("leaks", json!({"token": SECRET}))),
        ("arguments that do not fit", fine().takes(strict.clone()), call_with("leaks", json!({"n": SECRET}))),
        ("a key that does not fit", fine().takes(strict.clone()), call_with("leaks", json!({SECRET: 1}))),
        (
            "a nested key that does not fit",
            fine().takes(strict),
            call_with("leaks", json!({"map": {SECRET: "a"}})),
        ),
        ("arguments in a question", fine().asks(), call_with("leaks", json!({"token": SECRET}))),
        ("a path in a question", fine().asks().on_footprint(|_| touched(Resource::Path)), call("leaks")),
        ("a host in a question", fine().asks().on_footprint(|_| touched(Resource::Host)), call("leaks")),
        ("a name in a question", fine().asks().on_footprint(|_| touched(Resource::Named)), call("leaks")),
        ("a summary in a question", fine().asks().on_summary(|_| format!("uses {SECRET}")), call("leaks")),
        ("a summary with escapes", fine().asks().on_summary(|_| in_pieces()), call("leaks")),
        ("a change in a question", fine().asks().on_preview(|_| format!("+key = {SECRET}")), call("leaks")),
        ("a change with escapes", fine().asks().on_preview(|_| in_pieces()), call("leaks")),
        ("reason of a denial", fine().asks(), call("leaks").with_id(format!("deny: {SECRET}"))),
    ]
}

fn has_secret(text: &str) -> bool {
    // In pieces it would be to be seen, too.
    let (begin, end) = SECRET.split_at(5);
    let in_pieces = text.contains(begin) && text.contains(end);
    text.contains(SECRET) || text.contains(&PIN.to_string()) || in_pieces
}

/// Everywhere that the secret can be seen after a call.
async fn seen_in(house: &House, person: &Answers, result: &ToolResult) -> Vec<String> {
    let id = result.metadata.execution_id;
    let mut places = Vec::new();
    let mut look = |place: &str, text: String| {
        if has_secret(&text) {
            places.push(place.to_owned());
        }
    };
    look("content", serde_json::to_string(&result.content).unwrap());
    look("structured output", serde_json::to_string(&result.output).unwrap());
    look("error", serde_json::to_string(&result.error).unwrap());
    look("metadata", serde_json::to_string(&result.metadata).unwrap());
    look("diagnostics", format!("{:?}", result.diagnostics));
    look("formatted for a model", result.format_for_context(usize::MAX, true));
    for event in house.events(id).await {
        look(&format!("{} event", event.payload.kind()), serde_json::to_string(&event).unwrap());
    }
    // The caller's own name for the call comes back to the caller as it was.
    for mut record in house.audit_of(id).await {
        record.call_id = Arc::default();
        look("audit", format!("{record:?}"));
    }
    if let Some(handle) = &result.metadata.output_handle {
        let stored = house.stored("local", handle).await.unwrap();
        look("stored output", String::from_utf8_lossy(&stored).into_owned());
    }
    for mut request in person.asked().into_iter().flatten() {
        request.call_id = Arc::default();
        look("view for a person", request.view().to_string());
        look("question", serde_json::to_string(&request).unwrap());
    }
    places
}

#[tokio::test]
async fn a_secret_that_a_tool_says_reaches_nobody() {
    let mut leaks = Vec::new();
    for (way, tool) in ways_of_a_tool() {
        let (house, person) = setup([tool]);
        let result = house.engine.execute(call("leaks")).await;
        let places = seen_in(&house, &person, &result).await;
        if !places.is_empty() {
            leaks.push(format!("{way}: seen in {}", places.join(", ")));
        }
    }
    assert!(leaks.is_empty(), "secrets left through\n  {}", leaks.join("\n  "));
}

#[tokio::test]
async fn a_secret_that_a_caller_says_is_in_no_event_error_or_record() {
    let mut leaks = Vec::new();
    for (way, tool, call) in ways_of_a_call() {
        let (house, person) = setup([tool]);
        let result = house.engine.execute(call).await;
        let places = seen_in(&house, &person, &result).await;
        if !places.is_empty() {
            leaks.push(format!("{way}: seen in {}", places.join(", ")));
        }
    }
    assert!(leaks.is_empty(), "secrets left through\n  {}", leaks.join("\n  "));
}

#[tokio::test]
async fn a_tool_itself_gets_its_arguments_as_they_are() {
    let (house, _) = setup([tool("login", |args, _| async move { Ok(args.value["token"] == SECRET) })]);
    let result = house.engine.execute(call_with("login", json!({"token": SECRET}))).await;
    assert_eq!(result.output, Some(json!(true)), "redaction is for what is shown, not for what runs");
}

#[tokio::test]
async fn a_secret_in_a_note_about_a_cancellation_is_redacted() {
    let (house, person) = setup([tool("leaks", |_, _| async {
        std::future::pending::<()>().await;
        Ok(())
    })]);
    let (id, options) = known_id();
    let mut running = Box::pin(house.engine.execute(with(call("leaks"), options)));
    poll_once(&mut running).await;
    house.engine.cancel(id, haft_sdk::CancelReason::User, Some(SECRET));
    let result = running.await;
    assert_eq!(seen_in(&house, &person, &result).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_dry_run_shows_no_secret() {
    let (house, _) = setup([
        gives(ToolOutput::text("a")).on_summary(|_| format!("send {SECRET}")),
        tool("asks", |_, _| async { Ok(()) }).asks().on_summary(|_| format!("send {SECRET}")),
        tool("broken", |_, _| async { Ok(()) }).on_prepare(|_| Err(ToolError::bad_args(SECRET))),
    ]);
    for (name, preview) in ["leaks", "asks", "broken"]
        .iter()
        .zip(house.engine.plan(["leaks", "asks", "broken"].map(call).to_vec()).await)
    {
        let shown = match &preview {
            Preview::Ready { summary, .. } | Preview::NeedsApproval { summary, .. } => summary,
            Preview::Refused(error) => &error.message,
            Preview::Pending { .. } => panic!("{name}: {preview:?}"),
        };
        assert!(!has_secret(shown), "{name}: {shown}");
    }
}

/// The chunks of a call's output events, put together.
async fn streamed(house: &House, result: &ToolResult) -> String {
    let events = house.events(result.metadata.execution_id).await;
    let chunk = |payload: &EventPayload| match payload {
        EventPayload::Output { chunk, .. } => Some(chunk.clone()),
        _ => None,
    };
    events.iter().filter_map(|event| chunk(&event.payload)).collect()
}

#[tokio::test]
async fn a_secret_that_is_cut_between_chunks_is_seen_wherever_it_is_cut() {
    let text = format!("before {SECRET} after");
    let chunked = tool("prints", |args, cx: ToolCtx| async move {
        for chunk in args.value["chunks"].as_array().into_iter().flatten() {
            cx.print(chunk.as_str().unwrap_or_default());
        }
        Ok(())
    });
    let (house, _) = setup([chunked]);
    let mut cuts: Vec<Vec<&str>> = (0..=text.len()).map(|cut| vec![&text[..cut], &text[cut..]]).collect();
    for first in 0..text.len() {
        for second in first..text.len() {
            cuts.push(vec![&text[..first], &text[first..second], &text[second..]]);
        }
    }
    cuts.push(text.split("").collect());
    for chunks in cuts {
        let result = house.engine.execute(call_with("prints", json!({"chunks": chunks}))).await;
        assert_eq!(result.text(), "before [redacted:TOKEN] after", "{chunks:?}");
        assert_eq!(streamed(&house, &result).await, "before [redacted:TOKEN] after", "{chunks:?}");
    }
}

#[tokio::test]
async fn what_only_begins_like_a_secret_is_not_lost() {
    let (house, _) = setup([tool("prints", |_, cx: ToolCtx| async move {
        for chunk in ["s3c", "r3t-", "valve", " s3cr3t", "-val"] {
            cx.print(chunk);
        }
        Ok(())
    })]);
    let result = house.engine.execute(call("prints")).await;
    assert_eq!(result.text(), "s3cr3t-valve s3cr3t-val");
    assert_eq!(streamed(&house, &result).await, "s3cr3t-valve s3cr3t-val");
    assert_eq!(result.metadata.output_size, 23);
}

#[tokio::test]
async fn without_secrets_nothing_is_changed() {
    let value: Value = json!({"a": ["s3cr3t", {"b": "value-42"}], "n": 12.5});
    let given = value.clone();
    let (house, _) = setup([gives(ToolOutput::structured(given))]);
    assert_eq!(house.engine.execute(call("leaks")).await.output, Some(value));
}

/// seeds/000 §4.6: the audit entry holds the error's text.
#[tokio::test]
async fn the_record_has_the_errors_text_without_secrets() {
    let (house, _) = setup([fails(ToolError::failed(format!("no luck with {SECRET} {}", "x".repeat(5000))))]);
    let result = house.engine.execute(call("leaks")).await;
    let record = &house.audit_of(result.metadata.execution_id).await[0];
    let error = record.error.as_deref().unwrap();
    assert!(error.starts_with("leaks failed: no luck with [redacted:TOKEN]"), "{error}");
    assert!(error.len() <= haft_core::port::AuditRecord::ERROR_MESSAGE, "{}", error.len());
    let (house, _) = setup([gives(ToolOutput::text("fine"))]);
    let result = house.engine.execute(call("leaks")).await;
    assert_eq!(house.audit_of(result.metadata.execution_id).await[0].error, None);
}
