//! What the public conformance suite of MCP expects a server to have, registered through haft's public API.
//!
//! ```text
//! cargo run -p haft-mcp --example conformance_server -- 127.0.0.1:8787
//! npx @modelcontextprotocol/conformance server --url http://127.0.0.1:8787/mcp --requirements 2026-07-28
//! ```
//!
//! Everybody on this machine is taken for its owner: for trying out only. `cargo xtask test` runs the suite.

#![allow(
    clippy::print_stdout,
    deprecated,
    reason = "a program for a terminal; the suite asks for sampling, roots and logging, too"
)]

use haft::{
    CallContext, CallOptions, ContentPart, ErrorCode, ExecutionId, Haft, Request, Tool, ToolCtx,
    ToolDefinition, ToolError, ToolOutput, port::BoxFuture, tool_fn,
};
use haft_core::Parameters;
use haft_mcp::{
    rmcp::{
        ErrorData,
        model::{
            ClientCapabilities, CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock,
            CreateMessageRequest, CreateMessageRequestParams, GetPromptRequestParams, GetPromptResponse,
            GetPromptResult, InputRequest, InputRequests, InputRequiredResult, ListRootsRequest,
            LoggingLevel, Prompt, PromptArgument, PromptMessage, ReadResourceResult, Resource,
            ResourceContents, ResourceTemplate, Role, SamplingMessage,
        },
    },
    server::{
        Callers, Change, Client, Extension, McpServer, TaskNow, Tasks,
        http::{HttpOptions, listen, service},
    },
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::sync::watch;

const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const AUDIO: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

type Given = HashMap<String, Value>;
type Failed = Box<dyn std::error::Error>;

/// The server, for the two tools that have it tell of changes.
static SERVER: OnceLock<McpServer> = OnceLock::new();

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    // Rounds of one call look like a call that fails again and again.
    let haft = Haft::builder().without_builtins().tools(tools()).repeat_guard(None).lanes(None).build()?;
    let tasks = InProcess { engine: haft.clone().into_engine(), tasks: Mutex::default() };
    let server = McpServer::builder(haft.into_engine(), Callers::One(CallContext::owner()))
        // Its tools reach no files, and the suite says which questions it expects.
        .without_roots()
        .extension(Fixtures)
        .tasks(Arc::new(tasks))
        .build();
    let server = SERVER.get_or_init(|| server);
    let mut options = HttpOptions::default();
    options.origins = ["http://localhost:*", "http://127.0.0.1:*"].map(str::to_owned).to_vec();
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    listen(listener, service(server, options), Default::default()).await?;
    Ok(())
}

/// A tool without arguments that changes nothing.
fn tool<Fut>(name: &'static str, run: impl Fn(Given, ToolCtx) -> Fut + Send + Sync + 'static) -> Box<dyn Tool>
where
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    tool_with(name, json!({"type": "object", "properties": {}}), run)
}

fn tool_with<Fut>(
    name: &'static str,
    schema: Value,
    run: impl Fn(Given, ToolCtx) -> Fut + Send + Sync + 'static,
) -> Box<dyn Tool>
where
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let described = move |definition: &mut ToolDefinition| {
        definition.description = format!("What the conformance suite calls {name}");
        definition.parameters = Parameters::Schema(schema);
    };
    Box::new(tool_fn(name, run).read_only().define(described))
}

fn text(text: impl Into<String>) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::text(text))
}

fn parts(parts: impl IntoIterator<Item = ContentPart>) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput { parts: parts.into_iter().collect(), ..ToolOutput::default() })
}

fn client() -> Result<Client, ToolError> {
    Client::current().ok_or_else(|| ToolError::failed("there is no client"))
}

fn form(message: &str, properties: Value, required: Value) -> Result<InputRequest, ToolError> {
    Client::form(message, json!({"type": "object", "properties": properties, "required": required}))
}

fn sample(question: &str) -> InputRequest {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(question)], 100);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

fn one(name: &str, request: InputRequest) -> InputRequests {
    [(name.to_owned(), request)].into()
}

fn pause() -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_millis(50))
}

fn tools() -> Vec<Box<dyn Tool>> {
    [plain(), asking(), in_rounds(), long()].into_iter().flatten().collect()
}

fn plain() -> Vec<Box<dyn Tool>> {
    let image = || ContentPart::Image { data: IMAGE.into(), mime_type: "image/png".into() };
    vec![
        tool("test_simple_text", async |_, _| text("This is a simple text response for testing.")),
        tool("test_image_content", move |_, _| async move { parts([image()]) }),
        tool("test_audio_content", async |_, _| {
            parts([ContentPart::Audio { data: AUDIO.into(), mime_type: "audio/wav".into() }])
        }),
        tool("test_embedded_resource", async |_, _| {
            parts([document(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            )])
        }),
        tool("test_multiple_content_types", move |_, _| async move {
            let document = document(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            );
            parts([ContentPart::text("Multiple content types test:"), image(), document])
        }),
        tool("test_error_handling", async |_, _| {
            Err(ToolError::failed("This tool intentionally returns an error for testing"))
        }),
        tool("test_tool_with_progress", async |_, cx: ToolCtx| {
            for percent in [0, 50, 100] {
                cx.progress(percent, &format!("Completed step {percent} of 100"));
                pause().await;
            }
            text("done")
        }),
        tool("test_tool_with_logging", async |_, _| {
            let client = client()?;
            for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                client.log(LoggingLevel::Info, json!(message)).await;
                pause().await;
            }
            text("Tool with logging executed successfully")
        }),
        tool("test_logging_tool", async |_, _| {
            client()?.log(LoggingLevel::Info, json!("Diagnostic trace")).await;
            text("Logging evaluated")
        }),
        tool("test_trigger_tool_change", async |_, _| change(Change::Tools)),
        tool("test_trigger_prompt_change", async |_, _| change(Change::Prompts)),
        tool_with("json_schema_2020_12_tool", schema_2020_12(), async |_, _| text("called")),
    ]
}

fn change(change: Change) -> Result<ToolOutput, ToolError> {
    if let Some(server) = SERVER.get() {
        server.notify(change);
    }
    text("Mutation triggered")
}

fn document(uri: &str, mime_type: &str, text: &str) -> ContentPart {
    ContentPart::Resource {
        uri: uri.into(),
        mime_type: Some(mime_type.into()),
        text: Some(text.into()),
        blob: None,
    }
}

/// Those that ask while they run, or between two rounds.
fn asking() -> Vec<Box<dyn Tool>> {
    let with =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let word = |given: &Given, name: &str| given[name].as_str().unwrap_or_default().to_owned();
    vec![
        tool_with("test_sampling", with("prompt"), move |given, _| async move {
            let answers = client()?.ask(one("sample", sample(&word(&given, "prompt")))).await?;
            text(format!("LLM response: {}", answers["sample"]["content"]["text"]))
        }),
        tool_with("test_elicitation", with("message"), move |given, _| async move {
            let question =
                form(&word(&given, "message"), json!({"response": {"type": "string"}}), json!(["response"]))?;
            let answers = client()?.ask(one("form", question)).await?;
            text(format!("User response: {}", answers["form"]))
        }),
        tool("test_elicitation_sep1034_defaults", async |_, _| {
            let properties = json!({
                "name": {"type": "string", "description": "User name", "default": "John Doe"},
                "age": {"type": "integer", "description": "User age", "default": 30},
                "score": {"type": "number", "description": "User score", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "description": "Verification status", "default": true},
            });
            let question = form("Please review the form fields", properties, json!([]))?;
            let answers = client()?.ask(one("form", question)).await?;
            text(format!("Elicitation completed: {}", answers["form"]))
        }),
        tool("test_elicitation_sep1330_enums", async |_, _| {
            let titled = |letter: &str| {
                json!([
                    {"const": "value1", "title": format!("First {letter}")},
                    {"const": "value2", "title": format!("Second {letter}")},
                    {"const": "value3", "title": format!("Third {letter}")},
                ])
            };
            let three = json!(["option1", "option2", "option3"]);
            let properties = json!({
                "untitledSingle": {"type": "string", "description": "Select one option", "enum": three},
                "titledSingle": {"type": "string", "oneOf": titled("Option")},
                "legacyEnum": {
                    "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": three}},
                "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": titled("Choice")}},
            });
            let question = form("Please select options from the enum fields", properties, json!([]))?;
            let answers = client()?.ask(one("form", question)).await?;
            text(format!("Elicitation completed: {}", answers["form"]))
        }),
        tool("test_streaming_elicitation", async |_, cx: ToolCtx| {
            cx.progress(10, "asking");
            let question = form("Go on?", json!({"ok": {"type": "boolean"}}), json!(["ok"]))?;
            client()?.ask(one("go_on", question)).await?;
            text("Streaming complete")
        }),
        tool("test_missing_capability", async |_, _| {
            client()?.require(ClientCapabilities::builder().enable_sampling().build())?;
            text("Success")
        }),
    ]
}

/// Those that may become tasks, one that does not, and one whose argument is mirrored in a header.
fn long() -> Vec<Box<dyn Tool>> {
    let mirrored =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let named = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let timed =
        json!({"type": "object", "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}}});
    vec![
        tool_with("test_custom_headers", mirrored, async |given, _| {
            text(format!("for {}", given.get("region").and_then(Value::as_str).unwrap_or("everywhere")))
        }),
        tool_with("greet", named, async |given, _| {
            text(format!("Hello, {}!", given.get("name").and_then(Value::as_str).unwrap_or("you")))
        }),
        tool_with("slow_compute", timed, async |given, cx: ToolCtx| {
            let seconds = given.get("seconds").and_then(Value::as_f64).unwrap_or(1.0).clamp(0.0, 60.0);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => text("computed"),
                _ = cx.cancelled() => Err(ToolError::cancelled()),
            }
        }),
        tool("failing_job", async |_, _| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err(ToolError::failed("it fails, as it should"))
        }),
        tool("protocol_error_job", async |_, _| {
            tokio::time::sleep(Duration::from_millis(100)).await;
            std::panic::resume_unwind(Box::new("it breaks, as it should"));
        }),
    ]
}

/// Tasks that last as long as the process.
struct InProcess {
    engine: haft::Engine,
    tasks: Mutex<HashMap<String, (ExecutionId, watch::Receiver<TaskNow>)>>,
}

impl InProcess {
    fn task(&self, id: &str) -> Result<(ExecutionId, watch::Receiver<TaskNow>), ToolError> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.get(id).cloned().ok_or_else(|| ErrorCode::TaskNotFound.into())
    }
}

impl Tasks for InProcess {
    fn patience(&self, definition: &ToolDefinition) -> Option<Duration> {
        let long = ["slow_compute", "failing_job", "protocol_error_job"];
        long.contains(&&*definition.name).then_some(Duration::ZERO)
    }

    fn submit<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<TaskNow, ToolError>> {
        Box::pin(async move {
            let now = jiff::Timestamp::now();
            let (id, execution) = (ExecutionId::at(now), ExecutionId::at(now));
            let task = TaskNow {
                id: id.to_string(),
                created_at: now,
                updated_at: now,
                ttl: Some(Duration::from_secs(600)),
                poll: Duration::from_millis(200),
                message: None,
                asks: None,
                result: None,
            };
            let (tell, told) = watch::channel(task.clone());
            self.tasks
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(task.id.clone(), (execution, told));
            let options =
                CallOptions { execution_id: Some(execution), ..CallOptions::clone(&request.options) };
            let running = self.engine.execute(request.options(options));
            tokio::spawn(async move {
                let result = running.await;
                tell.send_modify(|task| {
                    task.updated_at = jiff::Timestamp::now();
                    task.result = Some(Arc::new(result));
                });
            });
            Ok(task)
        })
    }

    fn get<'a>(
        &'a self,
        _caller: &'a CallContext,
        id: &'a str,
        at_most: Duration,
    ) -> BoxFuture<'a, Result<TaskNow, ToolError>> {
        Box::pin(async move {
            let (_, mut told) = self.task(id)?;
            let _ = tokio::time::timeout(at_most, told.wait_for(|task| task.result.is_some())).await;
            let now = told.borrow().clone();
            Ok(now)
        })
    }

    fn cancel<'a>(&'a self, _caller: &'a CallContext, id: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let (execution, _) = self.task(id)?;
            self.engine.cancel(execution, haft::CancelReason::User, None);
            Ok(())
        })
    }
}

/// Those of revision 2026-07-28, which come again with their answers.
fn in_rounds() -> Vec<Box<dyn Tool>> {
    let name = || form("What is your name?", json!({"name": {"type": "string"}}), json!(["name"]));
    let confirm = || form("Please confirm", json!({"ok": {"type": "boolean"}}), json!(["ok"]));
    vec![
        tool("test_input_required_result_elicitation", move |_, _| async move {
            let answers = client()?.ask(one("user_name", name()?)).await?;
            text(format!("Hello, {}!", answers["user_name"]["content"]["name"]))
        }),
        tool("test_input_required_result_sampling", async |_, _| {
            let answers =
                client()?.ask(one("capital_question", sample("What is the capital of France?"))).await?;
            text(format!("Sampling result: {}", answers["capital_question"]["content"]["text"]))
        }),
        tool("test_input_required_result_list_roots", async |_, _| {
            let answers = client()?.ask(one("client_roots", roots())).await?;
            text(format!("Found {}", answers["client_roots"]["roots"]))
        }),
        tool("test_input_required_result_request_state", move |_, _| async move {
            let client = client()?;
            client.ask_keeping(one("confirm", confirm()?), Some(json!("kept"))).await?;
            match client.kept() {
                Some(kept) if kept == "kept" => text("state-ok: requestState validated"),
                _ => Err(ToolError::failed("the state did not come back")),
            }
        }),
        tool("test_input_required_result_tampered_state", move |_, _| async move {
            client()?.ask_keeping(one("confirm", confirm()?), Some(json!("kept"))).await?;
            text("integrity-ok: state verified")
        }),
        tool("test_input_required_result_multiple_inputs", move |_, _| async move {
            let questions = [
                ("user_name".to_owned(), name()?),
                ("greeting".to_owned(), sample("Generate a greeting")),
                ("client_roots".to_owned(), roots()),
            ];
            let answers = client()?.ask_keeping(questions.into(), Some(json!("kept"))).await?;
            text(format!("{} answers", answers.len()))
        }),
        tool("test_input_required_result_multi_round", move |_, _| async move {
            let client = client()?;
            let Some(known) = client.kept().filter(|kept| kept["step"] == 2).cloned() else {
                let answers = client.ask_keeping(one("step1", name()?), Some(json!({"step": 1}))).await?;
                let color = form(
                    "What is your favorite color?",
                    json!({"color": {"type": "string"}}),
                    json!(["color"]),
                )?;
                let keep = json!({"step": 2, "name": answers["step1"]["content"]["name"]});
                client.ask_keeping(one("step2", color), Some(keep)).await?;
                return text("asked");
            };
            let color =
                form("What is your favorite color?", json!({"color": {"type": "string"}}), json!(["color"]))?;
            let answers = client.ask_keeping(one("step2", color), Some(known.clone())).await?;
            text(format!("{} likes {}", known["name"], answers["step2"]["content"]["color"]))
        }),
        tool("test_input_required_result_capabilities", move |_, _| async move {
            let client = client()?;
            let can = client.capabilities();
            let mut questions = InputRequests::new();
            if can.elicitation.is_some() {
                questions.insert("user_name".into(), name()?);
            }
            if can.sampling.is_some() {
                questions.insert("sample".into(), sample("Sample request"));
            }
            let answers = client.ask(questions).await?;
            text(format!("capabilities-ok: {} answers", answers.len()))
        }),
    ]
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Prompts, completion and resources, none of which are haft's.
struct Fixtures;

impl Extension for Fixtures {
    fn has_prompts(&self) -> bool {
        true
    }

    fn has_completions(&self) -> bool {
        true
    }

    fn prompts(&self, _caller: &CallContext) -> Vec<Prompt> {
        let argument =
            |name: &str| PromptArgument::new(name).with_description("For the suite").with_required(true);
        let prompt = |name: &str, arguments: Option<Vec<PromptArgument>>| {
            Prompt::new(name, Some("What the conformance suite asks for"), arguments)
        };
        vec![
            prompt("test_simple_prompt", None),
            prompt("test_prompt_with_arguments", Some(vec![argument("arg1"), argument("arg2")])),
            prompt("test_prompt_with_embedded_resource", Some(vec![argument("resourceUri")])),
            prompt("test_prompt_with_image", None),
            prompt("test_input_required_result_prompt", None),
        ]
    }

    fn prompt<'a>(
        &'a self,
        request: GetPromptRequestParams,
        _caller: &'a CallContext,
        _client: Client,
    ) -> BoxFuture<'a, Result<GetPromptResponse, ErrorData>> {
        let given = request.arguments.unwrap_or_default();
        let word = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let says = |text: String| PromptMessage::new_text(Role::User, text);
        let shows = |block: ContentBlock| PromptMessage::new(Role::User, block);
        let messages = match request.name.as_str() {
            "test_simple_prompt" => Ok(vec![says("This is a simple prompt for testing.".into())]),
            "test_prompt_with_arguments" => Ok(vec![says(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                word("arg1"),
                word("arg2")
            ))]),
            "test_prompt_with_embedded_resource" => Ok(vec![
                shows(ContentBlock::embedded_text(
                    word("resourceUri"),
                    "Embedded resource content for testing.",
                )),
                says("Please process the embedded resource above.".into()),
            ]),
            "test_prompt_with_image" => Ok(vec![
                shows(ContentBlock::image(IMAGE, "image/png")),
                says("Please analyze the image above.".into()),
            ]),
            "test_input_required_result_prompt" => {
                match request.input_responses.as_ref().and_then(|answers| answers.get("user_context")) {
                    Some(answer) => {
                        Ok(vec![says(format!("Prompt with context: {}", answer["content"]["context"]))])
                    }
                    None => Err(()),
                }
            }
            _ => {
                let unknown = ErrorData::invalid_params("there is no such prompt", None);
                return Box::pin(async { Err(unknown) });
            }
        };
        Box::pin(async move {
            let Ok(messages) = messages else {
                let question = form(
                    "What context should the prompt use?",
                    json!({"context": {"type": "string"}}),
                    json!(["context"]),
                )
                .map_err(|error| ErrorData::internal_error(error.message, None))?;
                return Ok(InputRequiredResult::from_input_requests(one("user_context", question)).into());
            };
            Ok(GetPromptResult::new(messages).into())
        })
    }

    fn complete<'a>(
        &'a self,
        _request: CompleteRequestParams,
        _caller: &'a CallContext,
    ) -> BoxFuture<'a, Result<CompleteResult, ErrorData>> {
        let values = CompletionInfo::new(vec!["paris".to_owned()]).unwrap_or_default();
        Box::pin(async { Ok(CompleteResult::new(values)) })
    }

    fn resources(&self, _caller: &CallContext) -> Vec<Resource> {
        let resource = |uri: &str, name: &str, kind: &str| Resource::new(uri, name).with_mime_type(kind);
        vec![
            resource("test://static-text", "static-text", "text/plain"),
            resource("test://static-binary", "static-binary", "image/png"),
            resource("test://watched-resource", "watched-resource", "text/plain"),
        ]
    }

    fn resource_templates(&self, _caller: &CallContext) -> Vec<ResourceTemplate> {
        vec![
            ResourceTemplate::new("test://template/{id}/data", "template").with_mime_type("application/json"),
        ]
    }

    fn read<'a>(
        &'a self,
        uri: &'a str,
        _caller: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<ReadResourceResult>, ErrorData>> {
        let words = |kind: &str, text: String| ResourceContents::TextResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(kind.to_owned()),
            text,
            meta: None,
        };
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            (_, Some(id)) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                Some(words("application/json", data.to_string()))
            }
            ("test://static-text", _) => {
                Some(words("text/plain", "This is the content of the static text resource.".into()))
            }
            ("test://watched-resource", _) => Some(words("text/plain", "Watched resource content".into())),
            ("test://static-binary", _) => Some(ResourceContents::BlobResourceContents {
                uri: uri.to_owned(),
                mime_type: Some("image/png".to_owned()),
                blob: IMAGE.to_owned(),
                meta: None,
            }),
            _ => None,
        };
        Box::pin(async move { Ok(contents.map(|contents| ReadResourceResult::new(vec![contents]))) })
    }
}
