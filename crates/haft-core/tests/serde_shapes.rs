//! The wire shapes that are a promise: what other programs read and write. A change of a snapshot here is a change of
//! the promise, and belongs into the changelog.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{
    Annotations, ApprovalDetail, ApprovalId, ApprovalRequest, Arguments, Asker, AttemptRecord, BatchId,
    BatchOptions, BatchOrigin, BatchSummary, CacheUse, CallContext, CallOptions, Category, Constraints,
    ContentPart, Decision, Enforcement, ErrorCode, ErrorInfo, Event, EventPayload, ExecutionId, FailedTry,
    Footprint, FromCache, GrantOffer, IsolationLevel, IsolationTechnology, Limits, Metrics, ModelBudget,
    OutputHandle, OutputStream, Parameters, ParentGrant, Problem, Resource, ResultMetadata, Retry, Risk,
    Scheduling, SideEffect, SideEffectKind, Source, Status, Strategy, Tier, TokenEstimate, ToolCall,
    ToolDefinition, ToolResult, Violation,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("wire shapes can always be written")
}

/// That what was written can be read, and is the same.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    let back: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(&back, value, "it came back different from {text}");
    // Strings that are not borrowed take another way through serde.
    let value_of = serde_json::to_value(value).unwrap();
    let back: T =
        serde_json::from_value(value_of.clone()).unwrap_or_else(|error| panic!("{error}: {value_of}"));
    assert_eq!(&back, value, "it came back different from {value_of}");
}

fn execution_id() -> ExecutionId {
    "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b".parse().unwrap()
}

fn batch_id() -> BatchId {
    "0190a1b2-0000-7000-8000-00000000000b".parse().unwrap()
}

fn approval_id() -> ApprovalId {
    ApprovalId::from_text("apr_5d41402abc4b2a76b9719d911017c592")
}

fn at(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

// --- definitions ---------------------------------------------------------------------------------------------------

/// The example of seeds/003 §6, as it stands there.
#[test]
fn tool_definition_reads_and_writes_the_example_of_seeds_003_unchanged() {
    let example: Value = serde_json::from_str(include_str!("fixtures/read_file_definition.json")).unwrap();
    let definition: ToolDefinition = serde_json::from_value(example.clone()).unwrap();
    assert_eq!(definition.check(), []);
    assert_eq!(definition.constraints.max_execution_time, Duration::from_secs(30));
    assert_eq!(definition.required_permissions, ["tool.filesystem.read"]);
    assert_eq!(serde_json::to_value(&definition).unwrap(), example);
    round_trip(&definition);
}

fn full_definition() -> ToolDefinition {
    ToolDefinition {
        name: "edit_file".into(),
        title: Some("Edit a file".into()),
        description: "Replaces text in a file".into(),
        category: Category::FileSystem,
        parameters: Parameters::Schema(json!({
            "properties": {"path": {"type": "string"}}, "required": ["path"], "type": "object"
        })),
        output_schema: Some(json!({"type": "object"})),
        constraints: Constraints {
            default_timeout: Some(Duration::from_millis(1500)),
            max_execution_time: Duration::from_secs(90),
            max_output_size: 1 << 20,
            max_argument_size: Some(512 * 1024),
            allow_side_effects: true,
            required_isolation: IsolationLevel::Strict,
        },
        required_permissions: vec!["tool.filesystem.write".into()],
        requires_confirmation: true,
        risk: Some(Risk::High),
        idempotent: true,
        retry: Some(Box::new(Retry { max_retries: 1, on: vec![ErrorCode::NonZeroExit], ..Retry::default() })),
        cacheable: true,
        tier: Tier::Teams,
        version: Some("1.2.3".into()),
        source: Source::Mcp,
        command: None,
        http: None,
        mcp: None,
        flow: None,
        settings_schema: None,
        aliases: vec!["Edit".into()],
        annotations: Annotations { destructive: Some(true), open_world: Some(false) },
        metadata: object(json!({"owner": "files"})),
    }
}

#[test]
fn tool_definition() {
    insta::assert_snapshot!("tool_definition_full", pretty(&full_definition()));
    insta::assert_snapshot!(
        "tool_definition_smallest",
        pretty(&ToolDefinition::new("ping", "Answers at once"))
    );
    round_trip(&full_definition());
    round_trip(&ToolDefinition::new("ping", "Answers at once"));
}

// --- calls ---------------------------------------------------------------------------------------------------------

#[test]
fn tool_call() {
    let full = ToolCall {
        metadata: Some(Arc::new(object(json!({"trace": "abc"})))),
        ..ToolCall::new("read_file", json!({"path": "a.txt", "lines": [1, 2]}))
            .with_id("call_1")
            .with_idempotency_key("key-1")
    };
    insta::assert_snapshot!("tool_call_full", pretty(&full));
    insta::assert_snapshot!("tool_call_smallest", pretty(&ToolCall::new("ping", json!({}))));
    round_trip(&full);
    let shortest: ToolCall = serde_json::from_str(r#"{"name": "ping"}"#).unwrap();
    assert_eq!(shortest, ToolCall::new("ping", json!({})));
}

/// What is hashed and shown is what was sent: spaces, order and spelling of the arguments stay.
#[test]
fn arguments_keep_the_text_that_they_came_as() {
    let text = r#"{"id":"a","name":"ping","arguments":{ "b" : 1.50,"a": "\u0041" }}"#;
    let call: ToolCall = serde_json::from_str(text).unwrap();
    assert_eq!(call.arguments.as_str(), r#"{ "b" : 1.50,"a": "\u0041" }"#);
    assert_eq!(serde_json::to_string(&call).unwrap(), text);
    let odd = Arguments::from_text("{not json");
    assert_eq!(serde_json::to_value(&odd).unwrap(), json!("{not json"), "what is no JSON is shown as a text");
}

fn full_context() -> CallContext {
    CallContext {
        session: Some("session-1".into()),
        conversation: Some("conversation-1".into()),
        user: Some("ada".into()),
        roles: vec!["editor".into()],
        permissions: vec!["tool.filesystem.*".into()],
        parent: Some(ParentGrant {
            sandbox_id: "sb-1".into(),
            limits: Limits { processes: Some(8), ..Limits::default() },
            mounts: vec!["/work".into()],
            hosts: vec!["example.com".into()],
            isolation_technology: IsolationTechnology::Auto,
        }),
        tier: Tier::WriterPro,
        correlation_id: Some("request-7".into()),
        extra: object(json!({"locale": "en"})),
        ..CallContext::new("acme", "did:agent:7")
    }
}

#[test]
fn call_context() {
    insta::assert_snapshot!("call_context_full", pretty(&full_context()));
    insta::assert_snapshot!("call_context_smallest", pretty(&CallContext::new("acme", "did:agent:7")));
    round_trip(&full_context());
    round_trip(&CallContext::new("acme", "did:agent:7"));
}

fn full_limits() -> Limits {
    Limits {
        memory_bytes: Some(256 << 20),
        cpu_millicores: Some(500),
        cpu_time: Some(Duration::from_secs(300)),
        wall_time: Some(Duration::from_millis(1500)),
        processes: Some(64),
        open_files: Some(128),
        file_bytes: Some(1 << 30),
        scratch_bytes: Some(1 << 20),
        output_bytes: Some(1 << 16),
        read_bytes: Some(1 << 24),
        written_bytes: Some(0),
        io_operations: Some(1000),
        io_bytes_per_second: Some(1 << 20),
    }
}

#[test]
fn limits() {
    insta::assert_snapshot!("limits_full", pretty(&full_limits()));
    insta::assert_snapshot!("limits_smallest", pretty(&Limits::default()));
    round_trip(&full_limits());
    round_trip(&Limits::default());
}

fn full_call_options() -> CallOptions {
    let estimate = TokenEstimate { limit: 8192, used: 4096, response_reserve: 1024, safety_margin: 256 };
    CallOptions {
        attended: false,
        execution_id: Some(execution_id()),
        timeout: Some(Duration::from_secs(5)),
        attempt_timeout: Some(Duration::from_secs(2)),
        idle_timeout: Some(Duration::from_millis(2500)),
        require_confirmation: true,
        isolation: Some(IsolationLevel::Strict),
        isolation_technology: IsolationTechnology::Gvisor,
        writes: Some(haft_core::CommandWrites::Staged),
        limits: Some(Box::new(Limits { processes: Some(8), ..Limits::default() })),
        retry: Some(Retry { max_retries: 1, base: Duration::from_millis(100), on: vec![ErrorCode::Timeout] }),
        priority: Some(7),
        cache: CacheUse::Refresh,
        detached: true,
        coerce: Some(true),
        model: ModelBudget::Known(estimate),
    }
}

#[test]
fn call_options() {
    insta::assert_snapshot!("call_options_full", pretty(&full_call_options()));
    insta::assert_snapshot!("call_options_smallest", pretty(&CallOptions::default()));
    round_trip(&full_call_options());
    for cache in [CacheUse::Allowed, CacheUse::Refresh, CacheUse::Off] {
        for model in [ModelBudget::NoModel, ModelBudget::Unknown] {
            round_trip(&CallOptions { cache, model, ..CallOptions::default() });
        }
    }
}

#[test]
fn batch_options() {
    let full = BatchOptions {
        call: CallOptions { timeout: Some(Duration::from_secs(5)), ..CallOptions::default() },
        strategy: Strategy::Smart,
        continue_on_failure: false,
        max_parallelism: 8,
        origin: BatchOrigin::Model,
    };
    insta::assert_snapshot!("batch_options_full", pretty(&full));
    insta::assert_snapshot!("batch_options_default", pretty(&BatchOptions::default()));
    round_trip(&full);
    for strategy in [Strategy::Sequential, Strategy::Parallel, Strategy::Smart] {
        for origin in [BatchOrigin::Client, BatchOrigin::Model] {
            round_trip(&BatchOptions { strategy, origin, ..BatchOptions::default() });
        }
    }
    assert_eq!(serde_json::from_str::<BatchOptions>("{}").unwrap(), BatchOptions::default());
}

// --- results -------------------------------------------------------------------------------------------------------

fn full_metadata() -> ResultMetadata {
    ResultMetadata {
        execution_id: execution_id(),
        batch_id: Some(batch_id()),
        batch_index: Some(3),
        parallel: Some(true),
        started_at: at("2026-11-15T10:00:00Z"),
        completed_at: at("2026-11-15T10:00:00.0123Z"),
        duration: Duration::from_micros(12_300),
        attempts: 2,
        attempt_records: vec![AttemptRecord {
            number: 1,
            code: Some(ErrorCode::Timeout),
            enforcement: Some(Enforcement::in_process()),
            sandbox_id: Some("sb-0".into()),
            metrics: Some(Box::new(Metrics { cpu_time_ms: Some(1.5), ..Metrics::default() })),
        }],
        output_size: 123_456,
        output_truncated: true,
        output_handle: Some(OutputHandle::from_text("out_5d41402abc4b2a76b9719d911017c592")),
        scheduling: Some(Box::new(Scheduling {
            queue_wait: Duration::from_micros(4_200),
            failed_tries: vec![FailedTry { code: ErrorCode::Timeout, delay: Duration::from_millis(730) }],
            cache: Some(FromCache {
                execution_id: execution_id(),
                age: Duration::from_secs(2),
                shared: false,
            }),
            adaptive_timeout: Some(Duration::from_secs(3)),
            repeated_failures: Some(3),
        })),
        sandbox_id: Some("sb-1".into()),
        enforcement: Some(Enforcement {
            level: IsolationLevel::Strict,
            jail: "namespace".into(),
            details: object(json!({"cgroup": "v2"})),
        }),
        metrics: Some(Box::new(Metrics {
            wall_time_ms: Some(40.5),
            peak_memory_bytes: Some(1 << 20),
            cpu_time_ms: Some(7.5),
            bytes_read: Some(1),
            bytes_written: Some(2),
            filesystem_operations: Some(3),
            network_requests: Some(4),
            network_bytes_received: Some(5),
            network_bytes_sent: Some(6),
        })),
        violations: vec![Violation {
            kind: "UnauthorizedNetworkAccess".into(),
            resource: "evil.example:443".into(),
            description: "the host is not on the list".into(),
            timestamp: at("2026-11-15T10:00:00.005Z"),
            was_blocked: true,
        }],
        side_effects: vec![SideEffect {
            description: Some("replaced 3 lines".into()),
            previous_value: Some(json!("sha256:aa")),
            new_value: Some(json!("sha256:bb")),
            is_reversible: true,
            ..SideEffect::new(SideEffectKind::Modified, "a.txt", at("2026-11-15T10:00:00.01Z"))
        }],
        changes: Some(Box::new(changes())),
        coercions: vec!["/n".into()],
        correlation_id: Some("request-7".into()),
    }
}

fn changes() -> haft_core::SettledChanges {
    use haft_core::{ChangeSummary, ChangedEntry, ChangesState, EntryChange, EntryKind, SettledChanges};
    let mut summary = ChangeSummary::default();
    let (path, kind) = ("/w/b.txt".to_owned(), EntryKind::File);
    summary.add(ChangedEntry { path, change: EntryChange::Created, kind, bytes: 5 }, 1);
    let change = EntryChange::Moved("/w/a".into());
    summary.add(ChangedEntry { path: "/w/c".into(), change, kind: EntryKind::Folder, bytes: 0 }, 1);
    let kept = SettledChanges::new(ChangesState::Kept, summary).because("it timed out");
    SettledChanges { kept_until: Some(at("2026-11-22T10:00:00Z")), ..kept }
}

fn successful() -> ToolResult {
    ToolResult {
        call_id: "call_1".into(),
        tool: "edit_file".into(),
        status: Status::Success,
        input: Some(json!({"path": "a.txt"}).into()),
        output: Some(json!({"lines": 3})),
        content: vec![
            ContentPart::text("3 lines replaced"),
            ContentPart::Image { data: "QUJD".into(), mime_type: "image/png".into() },
            ContentPart::Audio { data: "QUJD".into(), mime_type: "audio/wav".into() },
            ContentPart::Resource {
                uri: "file:///a.txt".into(),
                mime_type: Some("text/plain".into()),
                text: Some("abc".into()),
                blob: None,
            },
        ],
        error: None,
        diagnostics: None,
        metadata: Arc::new(full_metadata()),
    }
}

fn error_info() -> ErrorInfo {
    ErrorInfo {
        code: ErrorCode::ValidationFailed,
        number: Some("E3401".into()),
        message: "Bad args: /n: expected an integer, got the string \"one\"".into(),
        retryable: false,
        problems: vec![Problem::new("/n", "type", "expected an integer, got the string \"one\"")],
        data: Some(Box::new(json!({"approvalId": "apr_1"}))),
    }
}

fn failed() -> ToolResult {
    let metadata = ResultMetadata {
        completed_at: at("2026-11-15T10:00:00.001Z"),
        duration: Duration::from_millis(1),
        ..ResultMetadata::not_started(execution_id(), at("2026-11-15T10:00:00Z"))
    };
    ToolResult {
        call_id: "call_2".into(),
        tool: "edit_file".into(),
        status: Status::ValidationError,
        input: None,
        output: None,
        content: vec![ContentPart::text("Bad args")],
        error: Some(Box::new(error_info())),
        diagnostics: None,
        metadata: Arc::new(metadata),
    }
}

#[test]
fn tool_result() {
    insta::assert_snapshot!("tool_result_success_with_everything", pretty(&successful()));
    insta::assert_snapshot!("tool_result_error", pretty(&failed()));
    round_trip(&successful());
    round_trip(&failed());
}

#[test]
fn what_only_the_operator_sees_is_never_written() {
    let result = ToolResult { diagnostics: Some("db=ledger7 errno=30".into()), ..failed() };
    assert_eq!(serde_json::to_value(&result).unwrap(), serde_json::to_value(failed()).unwrap());
}

#[test]
fn error_info_shape() {
    insta::assert_snapshot!("error_info", pretty(&error_info()));
    round_trip(&error_info());
    let smallest = ErrorInfo { number: None, problems: Vec::new(), data: None, ..error_info() };
    insta::assert_snapshot!("error_info_smallest", pretty(&smallest));
    round_trip(&smallest);
}

#[test]
fn batch_summary() {
    let summary = BatchSummary::of(batch_id(), &[successful(), failed()], Duration::from_micros(1500));
    insta::assert_snapshot!("batch_summary", pretty(&summary));
    round_trip(&summary);
}

// --- approvals and footprints --------------------------------------------------------------------------------------

#[test]
fn approval_request() {
    let request = ApprovalRequest {
        id: approval_id(),
        execution_id: execution_id(),
        call_id: "call_1".into(),
        tool: "edit_file".into(),
        summary: "edit a.txt".into(),
        risk: Risk::Medium,
        reason: "it has side effects, and policy asks about those".into(),
        arguments: json!({"path": "a.txt"}).into(),
        preview: Some("-old\n+new\n".into()),
        fingerprint: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
        detail: ApprovalDetail {
            does: "edit a.txt".into(),
            isolation: IsolationLevel::Strict,
            reach: json!({"hosts": ["example.com"]}),
            limits: Some(Limits { processes: Some(4), ..Limits::default() }),
            sandbox: None,
            passed: Value::Null,
            hidden: None,
        },
        asker: Asker {
            tenant: "acme".into(),
            agent: "helper".into(),
            user: Some("ada".into()),
            session: Some("s1".into()),
        },
        batch_id: Some(batch_id()),
        footprint: Footprint { reads: vec![], writes: vec![Resource::path("/work/a.txt")] },
        offers: vec![GrantOffer {
            covers: json!({"kind": "tool_in_folder", "tool": "edit_file", "folder": "/work"}),
            words: "`edit_file`, every call that touches only what is in `/work`".into(),
        }],
        replaces: Some(approval_id()),
        expires_at: Some("2026-03-02T12:00:00Z".parse().unwrap()),
    };
    insta::assert_snapshot!("approval_request", pretty(&request));
    round_trip(&request);
}

#[test]
fn decision() {
    let all = vec![
        Decision::Approve,
        Decision::Deny { reason: None },
        Decision::Deny { reason: Some("not on a Friday".into()) },
        Decision::Edit { arguments: json!({"path": "b.txt"}).into() },
        Decision::Unanswered,
        Decision::Expired,
    ];
    insta::assert_snapshot!("decision_all", pretty(&all));
    round_trip(&all);
}

#[test]
fn footprint() {
    let full = Footprint {
        reads: vec![Resource::path("/src"), Resource::Host("example.com".into())],
        writes: vec![Resource::named("git-index:/repo"), Resource::Anything],
    };
    insta::assert_snapshot!("footprint_all_resources", pretty(&full));
    insta::assert_snapshot!("footprint_empty", pretty(&Footprint::default()));
    round_trip(&full);
    round_trip(&Footprint::default());
}

// --- events --------------------------------------------------------------------------------------------------------

/// One payload of every kind, and two where a member may be absent or has two values.
fn payloads() -> Vec<EventPayload> {
    let ms = Duration::from_micros(1_500);
    let all = vec![
        EventPayload::Started {
            arguments: json!({"path": "a.txt"}).into(),
            timeout: Duration::from_secs(30),
        },
        EventPayload::InProgress { percent: Some(50), message: Some("half".into()) },
        EventPayload::InProgress { percent: None, message: None },
        EventPayload::Output { stream: OutputStream::Stdout, offset: 0, chunk: "line 1\n".into() },
        EventPayload::Output { stream: OutputStream::Stderr, offset: 7, chunk: "warning\n".into() },
        EventPayload::Warning { message: "slow disk".into() },
        EventPayload::ConfirmationRequested { approval_id: approval_id(), summary: "edit a.txt".into() },
        EventPayload::ConfirmationReceived { approval_id: approval_id(), approved: true },
        EventPayload::Completed { duration: ms },
        EventPayload::Failed {
            status: Status::Failed,
            code: ErrorCode::ExecutionFailed,
            message: "edit_file failed: no".into(),
            duration: ms,
        },
        EventPayload::Timeout { timeout: Duration::from_secs(30) },
        EventPayload::Cancelled { code: ErrorCode::Cancelled, message: "Cancelled by user".into() },
        EventPayload::BatchStarted { count: 3, is_parallel: false },
        EventPayload::BatchCompleted { count: 3, succeeded: 2, failed: 1, duration: ms },
        EventPayload::Gap { from: 1, to: 7 },
        EventPayload::ParallelStarted { read_only: 2, mutating: 1 },
        EventPayload::ParallelCompleted { total: 3, succeeded: 2, failed: 1, overlapped: 2, duration: ms },
        EventPayload::Queued { lane: "agent", ahead: 3 },
        EventPayload::CacheHit { age: ms, shared: false },
        EventPayload::RetryAttempt { attempt: 1, most: 3, delay: Duration::ZERO, failed: None },
        EventPayload::RetryAttempt {
            attempt: 2,
            most: 3,
            delay: ms,
            failed: Some((ErrorCode::Timeout, "too slow".into())),
        },
        EventPayload::RetrySucceeded { attempts: 2 },
        EventPayload::RetryExhausted { attempts: 3, code: ErrorCode::Timeout, message: "too slow".into() },
        EventPayload::CircuitChanged { state: "open", failures: 6, calls: 10 },
        EventPayload::Running,
        EventPayload::Missed,
    ];
    // The enum may grow, so no match here can be complete; the list of wire names in its source is.
    let named = include_str!("../src/event.rs").matches("=> \"tool:").count();
    let kinds: BTreeSet<&str> = all.iter().map(EventPayload::kind).collect();
    assert_eq!(kinds.len(), named, "a kind of event has no example here: {kinds:?}");
    all
}

#[test]
fn event_of_every_kind() {
    let is_of_a_batch = |payload: &EventPayload| {
        payload.kind().starts_with("Batch") || payload.kind().starts_with("Parallel")
    };
    let events: Vec<Event> = (0..)
        .zip(payloads())
        .map(|(seq, payload)| Event {
            seq,
            execution_id: (!is_of_a_batch(&payload)).then(execution_id),
            batch_id: (seq > 7).then(batch_id),
            batch_index: (seq > 7 && !is_of_a_batch(&payload)).then_some(2),
            tool: if is_of_a_batch(&payload) { "".into() } else { "edit_file".into() },
            timestamp: at("2026-11-15T10:00:00.0015Z"),
            elapsed: Duration::from_micros(1_500),
            payload,
        })
        .collect();
    for event in &events {
        assert!(!event.payload.message().is_empty(), "{event:?} has no words");
        let name = format!("event_{:02}_{}", event.seq, event.payload.kind());
        insta::assert_snapshot!(name, pretty(event));
    }
}

/// Names on the wire: those of seeds/001 §6, kinds of seeds/000 §4.5, and what may be lost.
#[test]
fn event_names() {
    let mut rows: Vec<String> = payloads()
        .iter()
        .map(|payload| {
            let traits = match (payload.is_terminal(), payload.is_droppable()) {
                (true, false) => "last of a call",
                (false, true) => "may be dropped",
                (false, false) => "stays",
                (true, true) => panic!("a last event must not be dropped"),
            };
            format!("{:<22} {:<28} {traits}", payload.kind(), payload.wire_name())
        })
        .collect();
    rows.dedup();
    insta::assert_snapshot!("event_names", rows.join("\n"));
}

// --- the error table -----------------------------------------------------------------------------------------------

type Row = (&'static str, Option<&'static str>, Option<Status>, bool, u16, u8);

/// DESIGN §3, "One error table", a row for each code: code, E-number, status, retry, HTTP, exit.
const DESIGN: [Row; 43] = {
    use Status::{
        Cancelled, Failed, PermissionDenied, RequiresConfirmation, SandboxError, Timeout, ValidationError,
    };
    [
        ("TOOL_NOT_FOUND", Some("E3001"), Some(Failed), false, 404, 1),
        ("TOOL_DISABLED", None, Some(PermissionDenied), false, 403, 3),
        ("TOOL_DENIED", None, Some(PermissionDenied), false, 403, 3),
        ("PERMISSION_DENIED", None, Some(PermissionDenied), false, 403, 3),
        ("LICENSE_REQUIRED", None, Some(PermissionDenied), false, 402, 3),
        ("DUPLICATE_TOOL", Some("E3007"), None, false, 409, 2),
        ("BAD_DEFINITION", Some("E3008"), None, false, 422, 2),
        ("BAD_SIGNATURE", None, None, false, 422, 2),
        ("VALIDATION_FAILED", Some("E3401"), Some(ValidationError), false, 422, 4),
        ("OUTPUT_VALIDATION_FAILED", Some("E3401"), Some(Failed), false, 502, 4),
        ("LIMIT_EXCEEDED", Some("E3404"), Some(ValidationError), false, 413, 4),
        ("DUPLICATE_CALL_ID", None, Some(ValidationError), false, 409, 4),
        ("IDEMPOTENCY_CONFLICT", None, Some(ValidationError), false, 409, 4),
        ("CONFIRMATION_REQUIRED", None, Some(RequiresConfirmation), false, 202, 5),
        ("CONFIRMATION_DENIED", None, Some(Cancelled), false, 403, 3),
        ("APPROVAL_EXPIRED", None, Some(RequiresConfirmation), false, 410, 5),
        ("SANDBOX_CREATION_FAILED", Some("E3101"), Some(SandboxError), false, 500, 1),
        ("RESOURCE_LIMIT_EXCEEDED", Some("E3102"), Some(SandboxError), false, 422, 1),
        ("TIMEOUT", Some("E3103"), Some(Timeout), true, 408, 124),
        ("NETWORK_POLICY_VIOLATION", Some("E3104"), Some(SandboxError), false, 403, 3),
        ("FILESYSTEM_POLICY_VIOLATION", Some("E3105"), Some(SandboxError), false, 403, 3),
        ("CONCURRENT_LIMIT_EXCEEDED", Some("E3106"), Some(Failed), true, 429, 1),
        ("RATE_LIMITED", Some("E3302"), Some(Failed), true, 429, 1),
        ("CIRCUIT_OPEN", Some("E3301"), Some(Failed), true, 503, 1),
        ("SANDBOX_CRASHED", Some("E3107"), Some(SandboxError), false, 502, 1),
        ("NON_ZERO_EXIT", Some("E3108"), Some(Failed), false, 200, 1),
        ("CANCELLED", None, Some(Cancelled), false, 499, 130),
        ("NOT_STARTED", None, Some(Cancelled), false, 424, 1),
        ("BLOCKED", None, Some(Cancelled), false, 424, 1),
        ("EXECUTION_FAILED", None, Some(Failed), false, 200, 1),
        ("PANICKED", None, Some(Failed), false, 200, 1),
        ("STALE_FILE", None, Some(Failed), false, 200, 1),
        ("PATCH_FAILED", None, Some(Failed), false, 200, 1),
        ("OUTCOME_UNKNOWN", None, Some(Failed), false, 200, 6),
        ("STORE_UNAVAILABLE", None, Some(Failed), false, 503, 1),
        ("TASK_NOT_FOUND", Some("E3150"), None, false, 404, 1),
        ("TASK_FINISHED", Some("E3151"), None, false, 409, 1),
        ("TASK_CANCEL_FAILED", Some("E3152"), None, false, 409, 1),
        ("BAD_REQUEST", None, None, false, 400, 2),
        ("UNAUTHENTICATED", None, None, false, 401, 3),
        ("NOT_FOUND", None, None, false, 404, 1),
        ("ALREADY_ANSWERED", None, None, false, 409, 1),
        ("NOT_SUPPORTED", None, None, false, 501, 1),
    ]
};

fn row(code: ErrorCode) -> Row {
    (code.as_str(), code.e_number(), code.status(), code.is_retryable(), code.http(), code.exit())
}

#[test]
fn the_error_table_is_that_of_the_design_row_by_row() {
    for expected in DESIGN {
        let code: ErrorCode =
            expected.0.parse().unwrap_or_else(|_| panic!("{} is not in the table", expected.0));
        assert_eq!(row(code), expected);
    }
    // "Extend in the same place": rows that the design has not.
    let more = [
        ErrorCode::QuotaExceeded,
        ErrorCode::RepeatedFailure,
        ErrorCode::UpstreamUnavailable,
        ErrorCode::ShuttingDown,
    ];
    for code in ErrorCode::ALL.iter().filter(|code| !more.contains(code)) {
        assert!(DESIGN.iter().any(|row| row.0 == code.as_str()), "{code} is in no row of DESIGN §3");
    }
    assert_eq!("EXECUTION_TIMEOUT".parse(), Ok(ErrorCode::Timeout), "the alias of seeds/001");
    assert_eq!("EXECUTION_ERROR".parse(), Ok(ErrorCode::ExecutionFailed), "the alias of seeds/000");
}

#[test]
fn the_error_table() {
    let heading = ("code", "E", "status", "retry", "http", "exit", "what a model may read");
    let line = |(code, e, status, retry, http, exit, text): (&str, &str, &str, &str, &str, &str, &str)| {
        format!("{code:<28} {e:<6} {status:<21} {retry:<6} {http:<5} {exit:<5} {text}\n")
    };
    let mut table = line(heading);
    for &code in ErrorCode::ALL {
        let (name, e, status, retry, http, exit) = row(code);
        let (http, exit) = (http.to_string(), exit.to_string());
        let status = status.map_or("–", Status::as_str);
        let retry = if retry { "yes" } else { "–" };
        table.push_str(&line((name, e.unwrap_or("–"), status, retry, &http, &exit, code.model_text())));
    }
    insta::assert_snapshot!("error_table", table);
}

#[test]
fn error_codes_and_statuses_are_written_as_they_are_named() {
    for code in ErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), json!(code.as_str()));
        round_trip(code);
    }
    for status in Status::ALL {
        assert_eq!(serde_json::to_value(status).unwrap(), json!(status.as_str()));
        round_trip(&status);
    }
    assert!(serde_json::from_str::<ErrorCode>("\"NO_SUCH_CODE\"").is_err());
}
