//! The examples in Rust of `docs/`, word for word: `haft-cli/tests/docs` fails for one that is not here. Those that
//! need no jail run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic: that is how it fails"
)]

use haft::{
    ApprovalRequest, BatchOptions, BatchRequest, CallContext, CallOptions, Category, Decision, ExecutionId,
    Folders, Footprint, Resource, Risk, Strategy, Task, TaskOptions, TaskQuery, ToolDefinition, ask_with,
    prelude::*,
};
use std::{error::Error, time::Duration};

type Outcome = Result<(), Box<dyn Error>>;

mod writing_tools {
    use super::{
        Category, Deserialize, Duration, Footprint, JsonSchema, Outcome, Resource, ToolCtx, ToolDefinition,
        ToolError, json,
    };
    use haft::{Json, TypedTool, serde::Serialize, typed};

    #[tokio::test]
    async fn the_short_form_and_its_test() -> Outcome {
        use haft::prelude::*;

        /// Counts the words of a text.
        #[derive(Deserialize, JsonSchema)]
        struct WordCount {
            /// The text.
            text: String,
            /// Count only words of at least this many letters.
            #[serde(default)]
            at_least: u32,
        }

        async fn word_count(args: WordCount, _cx: ToolCtx) -> Result<u64, ToolError> {
            let long_enough = |word: &&str| word.chars().count() >= args.at_least as usize;
            Ok(args.text.split_whitespace().filter(long_enough).count() as u64)
        }

        let tool = tool_fn("word_count", word_count).read_only();

        let host = haft::testing::TestHost::new();
        let output = host.call(&tool, json!({"text": "to be or not"})).await?;
        assert_eq!(output.structured, Some(json!(4)));
        assert_eq!(host.stdout(), "");
        Ok(())
    }

    /// Books an entry.
    #[derive(Deserialize, JsonSchema)]
    struct Entry {
        /// The account.
        account: String,
        /// How much.
        amount: u64,
    }

    #[derive(Serialize, JsonSchema)]
    struct Receipt {
        number: u64,
    }

    struct Ledger {
        is_open: bool,
    }

    impl TypedTool for Ledger {
        const NAME: &'static str = "book_entry";
        type Args = Entry;
        type Output = Json<Receipt>;

        fn define(&self, definition: &mut ToolDefinition) {
            definition.category = Category::Database;
            definition.required_permissions = vec!["ledger.write".into()];
            definition.constraints.default_timeout = Some(Duration::from_secs(5));
        }

        fn footprint(&self, entry: &Entry) -> Option<Footprint> {
            Some(Footprint::writes([Resource::named(format!("account:{}", entry.account))]))
        }

        fn summary(&self, entry: &Entry) -> Option<String> {
            Some(format!("Book {} to {}", entry.amount, entry.account))
        }

        async fn call(&self, entry: Entry, _cx: ToolCtx) -> Result<Json<Receipt>, ToolError> {
            if !self.is_open {
                return Err(ToolError::failed("the ledger is closed until 06:00"));
            }
            Ok(Json(Receipt { number: entry.amount }))
        }
    }

    #[tokio::test]
    async fn the_long_form_and_its_error() {
        let tool = typed(Ledger { is_open: true });
        let entry = json!({"account": "rent", "amount": 7});
        let output = haft::testing::TestHost::new().call(&tool, entry.clone()).await.unwrap();
        assert_eq!(output.structured, Some(json!({"number": 7})));
        let closed = typed(Ledger { is_open: false });
        let error = haft::testing::TestHost::new().call(&closed, entry).await.unwrap_err();
        assert!(error.to_string().contains("closed until 06:00"), "{error}");
    }
}

/// Counts the words of a text.
#[derive(Deserialize, JsonSchema)]
struct WordCount {
    /// The text.
    text: String,
}

async fn word_count(args: WordCount, _cx: ToolCtx) -> Result<u64, ToolError> {
    Ok(args.text.split_whitespace().count() as u64)
}

fn engine() -> Result<Haft, haft::Error> {
    let haft = Haft::builder()
        .tool(tool_fn("word_count", word_count).read_only())
        .approver(ask_with(|questions| vec![Decision::Approve; questions.len()]))
        .build()?;
    Ok(haft)
}

#[tokio::test]
async fn calls() -> Outcome {
    let haft = engine()?;
    let result = haft.execute(ToolCall::new("word_count", json!({"text": "to be"}))).await;
    assert_eq!(result.text(), "2");

    let call = ToolCall::new("word_count", json!({"text": "to be"}));
    let request = Request::new(call)
        .context(CallContext { permissions: vec!["tool.*".into()], ..haft.caller("acme", "did:agent:7") })
        .options(CallOptions {
            timeout: Some(Duration::from_secs(5)),
            coerce: Some(false),
            ..Default::default()
        });
    assert_eq!(haft.execute(request).await.text(), "2");
    Ok(())
}

#[tokio::test]
async fn batches() -> Outcome {
    let haft = engine()?;
    let calls = || vec![ToolCall::new("word_count", json!({"text": "to be"})); 3];
    let batch = calls();
    {
        let calls = batch;
        let (results, summary) = haft.execute_batch(calls).await;
        assert_eq!((results.len(), summary.succeeded), (3, 3));
    }
    let calls = calls();
    let options = BatchOptions { strategy: Strategy::Smart, max_parallelism: 8, ..Default::default() };
    let (results, summary) = haft.execute_batch(BatchRequest::from(calls).options(options)).await;
    assert_eq!((results.len(), summary.succeeded), (3, 3));
    Ok(())
}

#[tokio::test]
async fn approval() -> Outcome {
    let approver = ask_with(|questions: &[ApprovalRequest]| {
        let answer = |question: &ApprovalRequest| match question.risk {
            Risk::High => Decision::Deny { reason: None },
            _ => Decision::Approve,
        };
        questions.iter().map(answer).collect()
    });
    let haft = Haft::builder().tool(tool_fn("word_count", word_count)).approver(approver).build()?;
    assert_eq!(haft.execute(ToolCall::new("word_count", json!({"text": "to be"}))).await.text(), "2");
    Ok(())
}

#[tokio::test]
async fn watching() -> Outcome {
    let haft = engine()?;
    let call = ToolCall::new("word_count", json!({"text": "to be"}));
    let id = ExecutionId::at(haft::jiff::Timestamp::now());
    let options = CallOptions { execution_id: Some(id), ..Default::default() };
    let call = haft.execute(Request::new(call).options(options));
    let mut events = haft.observe(id).expect("it was taken when `execute` was called");
    assert_eq!(call.await.text(), "2");
    assert!(events.next().await.is_some());
    Ok(())
}

#[tokio::test]
async fn tasks() -> Outcome {
    let haft = engine()?;
    let call = ToolCall::new("word_count", json!({"text": "to be"}));
    let task = haft.submit(call, TaskOptions::default()).await?; // on record, and on its way
    let tasks = haft.tasks("local"); // of one tenant
    let now = tasks.get(&task.id).await?; // state, progress, output so far, result
    let done = tasks.wait(&task.id, Some(Duration::from_secs(60))).await?;
    let page = tasks.list(TaskQuery { open_only: true, ..TaskQuery::default() }).await?;
    let _: (Task, Task) = (now, done);
    assert!(page.tasks.is_empty());
    Ok(())
}

// Programs need a jail, and a program that begins with `haft::init`: haft-cli/tests/commands runs those.

#[allow(dead_code, reason = "compiled only")]
fn command_tool(definition: ToolDefinition, folders: Folders) -> Result<Haft, Box<dyn Error>> {
    let settings = haft::CommandToolSettings::default();
    let tool = haft::CommandTool::new(definition, &settings)?;
    let haft = haft::Haft::builder().files(folders).tool(tool).build()?;
    Ok(haft)
}

#[allow(dead_code, reason = "compiled only")]
async fn sandboxes(haft: Haft) -> Outcome {
    use haft::{CallContext, Limits, Request, SandboxSpec, ToolCall};

    let limits = Limits { memory_bytes: Some(512 << 20), ..Limits::default() };
    let spec = SandboxSpec { limits, mounts: vec!["src".into()], ..SandboxSpec::default() };
    let sandbox = haft.sandboxes().create(&CallContext::owner(), spec).await?;
    let inside = haft.sandboxes().enter(&CallContext::owner(), &sandbox.id)?;
    haft.execute(Request::new(ToolCall::new("run_command", json!({"command": "make"}))).context(inside))
        .await;
    println!("{:?}", haft.sandboxes().status("local", &sandbox.id)?.used);
    haft.sandboxes().destroy("local", &sandbox.id).await?;
    Ok(())
}
