//! Two strengths of redaction: what is kept loses every secret, results only what has a look of its own.

use crate::common::{House, Setup, TestStore, call_with, tool};
use haft_core::{EventPayload, ToolOutput};
use haft_guard::{KnownSecrets, Secrets};
use haft_sdk::ToolCtx;
use serde_json::{Value, json};
use std::sync::Arc;

fn known() -> KnownSecrets {
    KnownSecrets::new([("DEPLOY_KEY", "value-of-a-variable-7")])
}

fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6".repeat(3))
}

fn prints() -> crate::common::Scripted {
    tool("prints", |args, cx: ToolCtx| async move {
        for chunk in args.value["chunks"].as_array().into_iter().flatten() {
            cx.print(chunk.as_str().unwrap_or_default());
        }
        Ok(())
    })
}

fn says() -> crate::common::Scripted {
    tool("says", |args, _| async move {
        Ok(ToolOutput {
            structured: Some(args.value["value"].clone()),
            ..ToolOutput::text(args.value["text"].as_str().unwrap_or_default())
        })
    })
}

/// With rules, and with or without redaction of results.
fn redacting(around: fn(haft_engine::EngineBuilder) -> haft_engine::EngineBuilder) -> House {
    Setup {
        redactor: Some(Arc::new(Secrets::full(known()))),
        store: TestStore::wanting_results(),
        around,
        ..Setup::default()
    }
    .build([prints(), says()])
}

fn by_look(builder: haft_engine::EngineBuilder) -> haft_engine::EngineBuilder {
    builder.result_redactor(Arc::new(Secrets::results(known())))
}

fn as_they_are(builder: haft_engine::EngineBuilder) -> haft_engine::EngineBuilder {
    by_look(builder).show_results_as_they_are()
}

async fn chunks(house: &House, id: haft_core::ExecutionId) -> String {
    let chunk = |payload: &EventPayload| match payload {
        EventPayload::Output { chunk, .. } => Some(chunk.clone()),
        _ => None,
    };
    house.events(id).await.iter().filter_map(|event| chunk(&event.payload)).collect()
}

#[tokio::test]
async fn a_secret_is_gone_wherever_it_is_cut() {
    let house = redacting(by_look);
    let text = format!("use {} or value-of-a-variable-7, password = \"hunter2-hunter2\" !", token());
    for cut in 0..=text.len() {
        let call = call_with("prints", json!({"chunks": [text[..cut], text[cut..]]}));
        let result = house.engine.execute(call).await;
        assert_eq!(
            result.text(),
            "use [redacted:github-token] or [redacted:DEPLOY_KEY], password = \"hunter2-hunter2\" !",
            "cut at {cut}"
        );
        let events = chunks(&house, result.metadata.execution_id).await;
        assert_eq!(
            events, "use [redacted:github-token] or [redacted:DEPLOY_KEY], password = \"[redacted:named]\" !",
            "cut at {cut}"
        );
    }
    for (arguments, result) in house.store.kept() {
        let arguments = arguments.unwrap();
        let mut result = serde_json::to_value(&result).unwrap();
        // The same as the arguments, of which more below.
        assert_eq!(result["input"], serde_json::from_str::<Value>(arguments.as_str()).unwrap());
        result["input"].take();
        for secret in ["hunter2", "value-of-a-variable-7", "a1B2c3D4e5F6a1B2"] {
            assert!(!result.to_string().contains(secret), "{secret} in {result:?}");
        }
        // A token that the caller cut in two is two texts there, and neither is the token.
        assert!(
            !arguments.as_str().contains(&token()) && !arguments.as_str().contains("value-of-a-variable-7")
        );
    }
}

#[tokio::test]
async fn values_and_stored_outputs_keep_to_their_strength() {
    let value =
        json!({"password": "hunter2-hunter2", "sha": "9f86d081884c7d659a2feaa0c55ad015", "t": token()});
    let long = format!("{}\nsecret_password = \"hunter2-hunter2\"\n", token()).repeat(2000);
    for (around, shown) in [(by_look as fn(_) -> _, false), (as_they_are, true)] {
        let house = redacting(around);
        let call = call_with("says", json!({"text": long, "value": value.clone()}));
        let result = house.engine.execute(call).await;
        let output: Value = result.output.clone().unwrap();
        assert_eq!((&output["password"], &output["sha"]), (&value["password"], &value["sha"]));
        assert_eq!(output["t"] == value["t"], shown);
        assert_eq!(result.text().contains(&token()), shown);
        let handle = result.metadata.output_handle.clone().unwrap();
        let stored = String::from_utf8(house.stored("local", &handle).await.unwrap()).unwrap();
        assert!(
            !stored.contains(&token()) && stored.contains("hunter2"),
            "what is read on in is as results are"
        );
        let (_, kept) = house.store.kept().pop().unwrap();
        let kept = serde_json::to_string(&kept).unwrap();
        assert!(!kept.contains("hunter2") && !kept.contains(&token()), "what is kept has neither");
        assert!(kept.contains("9f86d081884c7d659a2feaa0c55ad015"), "a hash is none");
    }
}

#[tokio::test]
async fn a_repetition_gets_no_more_than_is_kept() {
    let house = redacting(as_they_are);
    let mut call = call_with("says", json!({"text": token(), "value": 1}));
    call.idempotency_key = Some("once".into());
    let first = house.engine.execute(call.clone()).await;
    assert_eq!(first.text(), token());
    let again = house.engine.execute(call).await;
    assert_eq!(again.text(), "[redacted:github-token]");
}
