//! A client on a pipe that understands nothing but lines.

use haft::{CallContext, ContentPart, Haft, Tool, ToolCtx, ToolDefinition, ToolError, ToolOutput, tool_fn};
use haft_mcp::server::{Callers, McpServer};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    time::timeout,
};

pub(crate) const LEGACY: [&str; 2] = ["2025-06-18", "2025-11-25"];
pub(crate) const STATELESS: &str = "2026-07-28";

pub(crate) type Given = HashMap<String, Value>;

pub(crate) fn described(definition: &mut ToolDefinition) {
    definition.description = "For tests".into();
}

/// Tools that the tests call.
pub(crate) fn tools() -> Vec<Box<dyn Tool>> {
    let echo = tool_fn("echo", async |given: Given, _: ToolCtx| -> Result<ToolOutput, ToolError> {
        let text = given.get("text").and_then(Value::as_str).unwrap_or("nothing").to_owned();
        Ok(ToolOutput::text(&text).with_structured(json!({"said": text})))
    });
    let echo = echo.read_only().define(|definition| {
        described(definition);
        definition.title = Some("Echo".into());
        definition.output_schema =
            Some(json!({"type": "object", "properties": {"said": {"type": "string"}}}));
        definition.annotations.open_world = Some(false);
    });
    let number = tool_fn("number", async |_: Given, _: ToolCtx| -> Result<i64, ToolError> { Ok(42) });
    let number = number.read_only().define(described);
    let parts = tool_fn("parts", async |_: Given, _: ToolCtx| -> Result<ToolOutput, ToolError> {
        let parts = vec![
            ContentPart::Image { data: "aGk=".into(), mime_type: "image/png".into() },
            ContentPart::Resource {
                uri: "a://b".into(),
                mime_type: None,
                text: None,
                blob: Some("aGk=".into()),
            },
        ];
        Ok(ToolOutput { text: Some("with parts".into()), parts, ..ToolOutput::default() })
    });
    let long = tool_fn("long", async |_: Given, _: ToolCtx| -> Result<String, ToolError> {
        Ok("0123456789".repeat(30_000))
    });
    let slow = tool_fn("slow", async |_: Given, cx: ToolCtx| -> Result<String, ToolError> {
        for percent in [0, 20, 40] {
            cx.progress(percent, "working");
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        cx.warn("it takes long");
        cx.cancelled().await;
        Err(ToolError::cancelled())
    });
    let deploy =
        tool_fn("deploy", async |_: Given, _: ToolCtx| -> Result<&'static str, ToolError> { Ok("deployed") });
    let secret =
        tool_fn("secret", async |_: Given, _: ToolCtx| -> Result<&'static str, ToolError> { Ok("secret") });
    let secret = secret.read_only().define(|definition| {
        described(definition);
        definition.required_permissions = vec!["vault.read".into()];
    });
    vec![
        Box::new(echo),
        Box::new(number),
        Box::new(parts.read_only().define(described)),
        Box::new(long.read_only().define(described)),
        Box::new(slow.read_only().define(described)),
        Box::new(deploy.define(described)),
        Box::new(secret),
    ]
}

pub(crate) fn haft() -> Haft {
    Haft::builder().without_builtins().tools(tools()).repeat_guard(None).build().unwrap()
}

pub(crate) fn server(haft: Haft) -> haft_mcp::server::Builder {
    McpServer::builder(haft.into_engine(), Callers::One(CallContext::owner()))
}

/// A client.
pub(crate) struct Wire {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    to: WriteHalf<DuplexStream>,
    pub(crate) version: String,
    pub(crate) capabilities: Value,
    /// What the server said of itself in a handshake.
    pub(crate) begun: Value,
    next: i64,
    schemas: Option<Arc<Value>>,
    /// The kinds of messages that were checked against the schema.
    pub(crate) checked: Mutex<BTreeSet<String>>,
}

impl Wire {
    /// Begins as that revision begins.
    pub(crate) async fn new(server: &McpServer, version: &str, capabilities: Value) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let session = server.session();
        tokio::spawn(async move {
            if let Ok(running) = haft_mcp::rmcp::serve_server(session, tokio::io::split(theirs)).await {
                let _ = running.waiting().await;
            }
        });
        let (from, to) = tokio::io::split(ours);
        let schemas = haft_testkit::shared_data(&format!("mcp_schema/schema/{version}/schema.json"));
        let schemas = schemas
            .map(|path| Arc::new(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()));
        let lines = BufReader::new(from).lines();
        let mut wire = Wire {
            lines,
            to,
            version: version.to_owned(),
            capabilities,
            begun: Value::Null,
            next: 0,
            schemas,
            checked: Mutex::default(),
        };
        if version != STATELESS {
            let params = json!({
                "protocolVersion": version,
                "capabilities": wire.capabilities,
                "clientInfo": {"name": "tester", "version": "1"},
            });
            let begun = wire.ask("initialize", params).await;
            assert_eq!(begun["result"]["protocolVersion"], version);
            wire.begun = begun["result"].clone();
            wire.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        }
        wire
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request, with what the revision wants in it, and does not wait.
    pub(crate) async fn request(&mut self, method: &str, mut params: Value) -> i64 {
        self.next += 1;
        if self.version == STATELESS {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.version);
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "tester", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(request).await;
        self.next
    }

    /// The next line, whatever it is.
    pub(crate) async fn line(&mut self) -> Value {
        let line = timeout(Duration::from_secs(20), self.lines.next_line()).await.expect("a line in time");
        let message: Value = serde_json::from_str(&line.unwrap().expect("the server is there")).unwrap();
        self.check(&message);
        message
    }

    /// The answer to a request, and what came before it.
    pub(crate) async fn answer(&mut self, id: i64) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let line = self.line().await;
            if line["id"] == id && line.get("method").is_none() {
                return (line, before);
            }
            before.push(line);
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let (answer, _) = self.answer(id).await;
        self.check_result(method, &answer);
        answer
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    pub(crate) fn check_as(&self, kind: &str, value: &Value) {
        let Some(schemas) = &self.schemas else { return };
        let defs = if schemas.get("$defs").is_some() { "$defs" } else { "definitions" };
        assert!(schemas[defs].get(kind).is_some(), "{}: no {kind}", self.version);
        self.checked.lock().unwrap().insert(kind.to_owned());
        let mut schema = Value::clone(schemas);
        schema["$ref"] = json!(format!("#/{defs}/{kind}"));
        let checker = jsonschema::validator_for(&schema).unwrap();
        let problems: Vec<_> = checker
            .iter_errors(value)
            .map(|problem| format!("{} at {}", problem, problem.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{} is no {kind} of {}: {problems:#?}\n{value:#}", value, self.version);
    }

    /// Every line is a message of the revision.
    fn check(&self, message: &Value) {
        self.check_as("JSONRPCMessage", message);
        let kind = match message.get("method").and_then(Value::as_str) {
            Some("notifications/progress") => "ProgressNotification",
            Some("notifications/message") => "LoggingMessageNotification",
            Some("notifications/tools/list_changed") => "ToolListChangedNotification",
            Some("notifications/resources/list_changed") => "ResourceListChangedNotification",
            Some("notifications/resources/updated") => "ResourceUpdatedNotification",
            Some("elicitation/create") => "ElicitRequest",
            Some("roots/list") => "ListRootsRequest",
            Some("notifications/subscriptions/acknowledged") => "SubscriptionsAcknowledgedNotification",
            Some("notifications/prompts/list_changed") => "PromptListChangedNotification",
            Some("notifications/cancelled") => "CancelledNotification",
            Some("sampling/createMessage") => "CreateMessageRequest",
            Some(other) => panic!("what is {other}?"),
            None => return,
        };
        self.check_as(kind, message);
    }

    /// Every result is what the method gives in the revision.
    pub(crate) fn check_result(&self, method: &str, answer: &Value) {
        let Some(result) = answer.get("result") else { return };
        let kind = match (method, result["resultType"].as_str()) {
            (_, Some("input_required")) if method != "tasks/get" => "InputRequiredResult",
            // The extension has a schema of its own, which is not among the published ones; this holds for every
            // result.
            ("tasks/get" | "tasks/update" | "tasks/cancel", _) | (_, Some("task")) => "Result",
            ("prompts/list", _) => "ListPromptsResult",
            ("prompts/get", _) => "GetPromptResult",
            ("completion/complete", _) => "CompleteResult",
            ("subscriptions/listen", _) => "SubscriptionsListenResult",
            ("initialize", _) => "InitializeResult",
            ("server/discover", _) => "DiscoverResult",
            ("tools/list", _) => "ListToolsResult",
            ("tools/call", _) => "CallToolResult",
            ("resources/list", _) => "ListResourcesResult",
            ("resources/templates/list", _) => "ListResourceTemplatesResult",
            ("resources/read", _) => "ReadResourceResult",
            ("ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe", _) => {
                "EmptyResult"
            }
            (other, _) => panic!("what does {other} give?"),
        };
        self.check_as(kind, result);
    }
}

/// Where a test has nothing to check its lines against, it says so at the end of the run.
pub(crate) fn said_without_schemas(test: &str) -> bool {
    let missing = haft_testkit::shared_data("mcp_schema/schema").is_none();
    if missing {
        haft_testkit::not_run(test, "the folder mcp_schema is not in the test data");
    }
    missing
}

pub(crate) fn owner_with(change: impl FnOnce(&mut CallContext)) -> Arc<CallContext> {
    let mut context = CallContext::clone(&CallContext::owner());
    change(&mut context);
    Arc::new(context)
}
