//! A server with two tenants, and a client that holds every answer against the document.

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Method, Request, StatusCode, header},
};
use haft::{Folders, Haft, StoreOptions, prelude::*};
use haft_core::port::{
    self, ApiKey, Guest, GuestSpec, Jail, KeyStore, Right, Sandbox, StoredGrant, Unavailable,
};
use haft_server::{ApiSecret, Limits, Refused, Server, ServerBackend};
use haft_store::MemoryKeys;
use serde_json::Value;
use std::{
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tower::ServiceExt as _;

/// Says something again.
#[derive(Deserialize, JsonSchema)]
pub struct Echo {
    /// What comes back.
    text: String,
}

/// Does what its name says.
#[derive(Deserialize, JsonSchema)]
pub struct Nothing {}

/// Puts out lines.
#[derive(Deserialize, JsonSchema)]
pub struct Lines {
    /// How many.
    count: u32,
}

pub fn tools() -> Vec<Box<dyn haft::Tool>> {
    let echo = tool_fn("echo", async |args: Echo, _: ToolCtx| -> Result<String, ToolError> { Ok(args.text) });
    let wait = tool_fn("wait", async |_: Nothing, cx: ToolCtx| -> Result<String, ToolError> {
        cx.status("waiting");
        cx.cancelled().await;
        Err(ToolError::cancelled())
    });
    let lines = tool_fn("lines", async |args: Lines, cx: ToolCtx| -> Result<String, ToolError> {
        let lines: Vec<String> = (0..args.count).map(|line| format!("line {line}\n")).collect();
        lines.iter().take(20).for_each(|line| cx.print(line));
        Ok(lines.concat())
    });
    let count = AtomicU64::new(0);
    let next = tool_fn("next", move |_: Echo, _: ToolCtx| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, ToolError>(number.to_string()) }
    });
    let fails = tool_fn("fails", async |_: Nothing, _: ToolCtx| -> Result<String, ToolError> {
        Err(ToolError::failed("the ledger is closed"))
    });
    vec![
        Box::new(echo.read_only()),
        Box::new(wait.read_only()),
        Box::new(lines.read_only()),
        Box::new(fails.read_only()),
        Box::new(next),
    ]
}

/// A jail that holds nothing, for sandboxes without programs: this test program does not start any.
struct EmptyJail;

struct EmptySandbox(String);

impl Sandbox for EmptySandbox {
    fn id(&self) -> &str {
        &self.0
    }

    fn used(&self) -> haft_core::Metrics {
        haft_core::Metrics::default()
    }

    fn end<'a>(&'a self) -> Future<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

impl Jail for EmptyJail {
    fn name(&self) -> &str {
        "empty"
    }

    fn offers(&self, level: haft::IsolationLevel) -> Result<haft_core::Enforcement, Unavailable> {
        Ok(haft_core::Enforcement { level, ..haft_core::Enforcement::in_process() })
    }

    fn open_sandbox(&self, _limits: &haft_core::Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Ok(Arc::new(EmptySandbox(format!("sandbox-{}", COUNT.fetch_add(1, Ordering::Relaxed)))))
    }

    fn start<'a>(&'a self, _spec: GuestSpec) -> Future<'a, Box<dyn Guest>> {
        Box::pin(async { Err(ToolError::failed("no programs here")) })
    }
}

/// Acme has one open approval, `apr_a`, and one grant, `grant_a`.
async fn with_approvals(haft: &Haft) {
    let acme = haft.store().for_tenant("acme");
    for id in ["apr_a", "apr_b"] {
        let request = json!({
            "id": id, "executionId": haft::ExecutionId::at(jiff::Timestamp::now()), "callId": "c", "tool": "deploy",
            "summary": "deploy", "reason": "it changes something", "risk": "high", "arguments": {}, "fingerprint": id,
            "asker": {"tenant": "acme", "agent": "helper"},
            "offers": [{"covers": {"kind": "exact_call"}, "words": "this very call"}],
        });
        acme.ask(serde_json::from_value(request).unwrap(), Vec::new()).await.unwrap();
    }
    let grant = StoredGrant {
        id: "grant_a".into(),
        tool: "deploy".into(),
        agent: None,
        user: None,
        session: None,
        covers: "{}".into(),
        shown: "deploy to staging".into(),
        granted_by: "ada".into(),
        granted_from: Some(haft_core::Channel::Http),
        granted_at: jiff::Timestamp::UNIX_EPOCH,
        expires_at: None,
        revoked_at: None,
    };
    let yes = port::Answer {
        decision: haft::Decision::Approve,
        by: "ada".into(),
        from: haft_core::Channel::Program,
    };
    let id = haft::ApprovalId::from_text("apr_b");
    assert!(acme.answer_with_grant(&id, yes, Some(grant)).await.unwrap());
}

type Future<'a, T> = haft_core::port::BoxFuture<'a, Result<T, ToolError>>;

pub struct TestBackend(Arc<Mutex<Vec<Refused>>>);

impl ServerBackend for TestBackend {
    fn tier(&self, _tenant: &str) -> haft::Tier {
        haft::Tier::Enterprise
    }

    fn explain<'a>(&'a self, request: haft::Request) -> Future<'a, Value> {
        Box::pin(async move { Ok(json!({"tool": request.call.name})) })
    }

    fn doctor<'a>(&'a self) -> Future<'a, Value> {
        Box::pin(async { Ok(json!({"jails": []})) })
    }

    fn refused<'a>(&'a self, refused: Refused) -> Future<'a, ()> {
        self.0.lock().unwrap().push(refused);
        Box::pin(async { Ok(()) })
    }

    fn happenings<'a>(&'a self, limit: usize) -> Future<'a, Vec<Value>> {
        Box::pin(async move { Ok(vec![json!({"event": "keyCreated"}); limit.min(1)]) })
    }
}

pub struct World {
    pub haft: Haft,
    pub keys: Arc<MemoryKeys>,
    pub server: Server,
    pub router: Router,
    /// acme's keys by their rights, and rival's with all of them.
    pub invoker: String,
    pub approver: String,
    pub operator: String,
    pub rival: String,
    /// What the host was told of those who were not let in.
    pub refused: Arc<Mutex<Vec<Refused>>>,
    _folder: tempfile::TempDir,
}

pub async fn key(
    keys: &MemoryKeys,
    tenant: &str,
    rights: &[Right],
    change: impl FnOnce(&mut ApiKey),
) -> String {
    let secret = ApiSecret::random().unwrap();
    let mut key = ApiKey {
        id: format!("key_{tenant}_{}", rights.iter().map(|right| right.as_str()).collect::<String>()),
        name: "a test".into(),
        tenant: tenant.into(),
        agent: None,
        user: None,
        roles: vec!["admin".into()],
        rights: rights.to_vec(),
        created_at: jiff::Timestamp::now(),
        created_by: "ada".into(),
        expires_at: None,
        revoked_at: None,
    };
    change(&mut key);
    keys.add(key, secret.hash()).await.unwrap();
    secret.as_str().to_owned()
}

pub async fn world() -> World {
    world_with(|builder| builder).await
}

pub async fn world_with(change: impl FnOnce(haft_server::Builder) -> haft_server::Builder) -> World {
    let folder = tempfile::tempdir().unwrap();
    let (work, state) = (folder.path().join("work"), folder.path().join("state"));
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join("note.txt"), "one\ntwo\n").unwrap();
    let policy = haft::ListPolicy {
        mode: haft::ApprovalMode::Auto,
        prompt_side_effects: false,
        ..haft::ListPolicy::default()
    };
    let haft = Haft::builder()
        .tools(tools())
        .policy(policy)
        .jail(EmptyJail)
        .files(Folders::new(&work, &state))
        .durable(&state, StoreOptions::default())
        .build()
        .unwrap();
    with_approvals(&haft).await;
    let keys = Arc::new(MemoryKeys::default());
    let invoker = key(&keys, "acme", &[Right::Invoke], |_| {}).await;
    let approver = key(&keys, "acme", &[Right::Approve], |_| {}).await;
    let operator = key(&keys, "acme", &[Right::Operate], |_| {}).await;
    let rival = key(&keys, "rival", &Right::ALL, |_| {}).await;
    let refused = Arc::<Mutex<Vec<Refused>>>::default();
    let builder = Server::builder(haft.clone().into_engine())
        .keys(Arc::clone(&keys) as Arc<dyn KeyStore>)
        .backend(TestBackend(Arc::clone(&refused)))
        .limits(Limits { body_bytes: 1 << 20, grace: Duration::from_secs(2), ..Limits::default() })
        .invoke_and_approve();
    #[cfg(feature = "mcp")]
    let builder = {
        use haft_mcp::server::{Callers, McpServer, http};
        let mcp = McpServer::builder(haft.clone().into_engine(), Callers::PerRequest).build();
        builder.mcp(http::service(&mcp, http::HttpOptions::default()))
    };
    let server = change(builder).build();
    let router = server.router();
    World { haft, keys, server, router, invoker, approver, operator, rival, refused, _folder: folder }
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

pub fn request(method: Method, path: &str, key: Option<&str>, body: Option<&Value>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(key) = key {
        request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
    }
    match body {
        Some(body) => {
            request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string()))
        }
        None => request.body(Body::empty()),
    }
    .unwrap()
}

impl World {
    /// Sends it, and holds the answer against the document.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, 64 << 20).await.unwrap().to_vec();
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        conforms(&method, &path, &answer);
        answer
    }

    pub async fn get(&self, key: &str, path: &str) -> Answer {
        self.send(request(Method::GET, path, Some(key), None)).await
    }

    pub async fn post(&self, key: &str, path: &str, body: Value) -> Answer {
        self.send(request(Method::POST, path, Some(key), Some(&body))).await
    }

    pub async fn delete(&self, key: &str, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, Some(key), None)).await
    }
}

pub static DOCUMENT: LazyLock<Value> = LazyLock::new(haft_server::document);

/// The types of the document, where no object has members that are not named.
static STRICT: LazyLock<Value> = LazyLock::new(|| {
    let mut components = DOCUMENT["components"].clone();
    close(&mut components);
    components
});

fn close(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(close),
        Value::Object(members) => {
            if members.get("type").is_some_and(|kind| kind == "object")
                && members.get("properties").is_some_and(Value::is_object)
                && !members.contains_key("additionalProperties")
            {
                members.insert("additionalProperties".into(), false.into());
            }
            // What is put together of several has the members of all of them.
            members.iter_mut().filter(|(name, _)| *name != "allOf").for_each(|(_, inner)| close(inner));
        }
        _ => {}
    }
}

/// What that schema has against a value: members that it does not name, too.
pub fn problems(mut schema: Value, value: &Value) -> Vec<String> {
    schema["components"] = STRICT.clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The operation of the document that answers there.
fn operation<'d>(method: &Method, path: &str) -> Option<&'d Value> {
    let fits = |template: &str| {
        let (wanted, given) = (template.split('/'), path.split('/'));
        wanted.clone().count() == given.clone().count()
            && wanted.zip(given).all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    // A fixed path before one with a parameter, as the router has it.
    let mut found: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    found.sort_by_key(|(template, _)| template.matches('{').count());
    found.first().and_then(|(_, item)| item.get(method.as_str().to_lowercase()))
}

/// Panics where the document does not have this answer.
fn conforms(method: &Method, path: &str, answer: &Answer) {
    let Some(operation) = operation(method, path) else { return };
    let responses = &operation["responses"];
    let described = responses.get(answer.status.as_str()).unwrap_or(&responses["default"]);
    let kind = answer.headers.get(header::CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap());
    let kind = kind.split(';').next().unwrap();
    let content = &described["content"][kind];
    assert!(content.is_object(), "{method} {path} {}: `{kind}` is not described: {described}", answer.status);
    if kind.ends_with("json") {
        let value = answer.json();
        let problems = problems(content["schema"].clone(), &value);
        assert!(problems.is_empty(), "{method} {path} {}: {problems:#?}\n{value:#}", answer.status);
    }
}
