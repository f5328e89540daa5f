//! Short words for what the suite puts into a store.

use haft_core::{
    Arguments, BatchId, CallContext, ContentPart, ErrorCode, ErrorInfo, ExecutionId, ResultMetadata, Status,
    Tier, ToolResult,
    port::{AuditRecord, CallEnd, ClaimRequest, Clock, Intent, Settlement},
};
use jiff::{SignedDuration, Timestamp};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

/// A call that a test follows.
#[derive(Clone)]
pub struct Call {
    pub id: ExecutionId,
    pub context: Arc<CallContext>,
    pub tool: Arc<str>,
    pub arguments: Arguments,
    pub status: Status,
    pub code: Option<ErrorCode>,
    pub text: String,
    pub at: Timestamp,
    pub duration: Duration,
    pub batch: Option<(BatchId, u32)>,
    pub effect: bool,
}

/// The time at which tests begin.
pub fn noon() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

pub fn after(millis: i64) -> Timestamp {
    noon().checked_add(SignedDuration::from_millis(millis)).unwrap()
}

/// A clock that a test sets.
pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn at(now: Timestamp) -> Self {
        TestClock(AtomicI64::new(now.as_microsecond()))
    }

    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_microsecond(), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

/// A call of that tenant and tool that succeeds.
pub fn call(tenant: &str, tool: &str) -> Call {
    Call {
        id: ExecutionId::at(noon()),
        context: Arc::new(CallContext { tier: Tier::Enterprise, ..CallContext::new(tenant, "agent-1") }),
        tool: tool.into(),
        arguments: Arguments::from_text(r#"{"n":1}"#),
        status: Status::Success,
        code: None,
        text: "done".to_owned(),
        at: noon(),
        duration: Duration::from_millis(5),
        batch: None,
        effect: true,
    }
}

impl Call {
    pub fn agent(mut self, agent: &str) -> Self {
        self.context = Arc::new(CallContext { agent: agent.into(), ..(*self.context).clone() });
        self
    }

    pub fn failed(mut self, code: ErrorCode) -> Self {
        self.status = code.status().unwrap_or(Status::Failed);
        self.code = Some(code);
        self
    }

    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = at;
        self
    }

    pub fn took(mut self, millis: u64) -> Self {
        self.duration = Duration::from_millis(millis);
        self
    }

    pub fn in_batch(mut self, batch: BatchId, index: u32) -> Self {
        self.batch = Some((batch, index));
        self
    }

    pub fn without_effect(mut self) -> Self {
        self.effect = false;
        self
    }

    pub fn intent(&self) -> Intent {
        Intent {
            execution_id: self.id,
            batch: self.batch,
            context: Arc::clone(&self.context),
            call_id: "call_1".into(),
            tool: Arc::clone(&self.tool),
            arguments: self.arguments.clone(),
            approval: None,
            attempt: 1,
            at: self.at,
        }
    }

    pub fn metadata(&self) -> ResultMetadata {
        ResultMetadata {
            execution_id: self.id,
            batch_id: self.batch.map(|(batch, _)| batch),
            batch_index: self.batch.map(|(_, index)| index),
            started_at: self.at,
            completed_at: self.at.checked_add(SignedDuration::try_from(self.duration).unwrap()).unwrap(),
            duration: self.duration,
            attempts: 1,
            parallel: None,
            attempt_records: Vec::new(),
            output_size: self.text.len() as u64,
            output_truncated: false,
            output_handle: None,
            sandbox_id: None,
            enforcement: None,
            metrics: None,
            violations: Vec::new(),
            side_effects: Vec::new(),
            changes: None,
            scheduling: None,
            coercions: Vec::new(),
            correlation_id: None,
        }
    }

    pub fn result(&self) -> ToolResult {
        ToolResult {
            call_id: "call_1".into(),
            tool: Arc::clone(&self.tool),
            status: self.status,
            input: Some(serde_json::json!({"say": self.text}).into()),
            output: Some(serde_json::json!({"said": self.text})),
            content: vec![ContentPart::text(&self.text)],
            error: self.code.map(|code| {
                Box::new(ErrorInfo {
                    code,
                    number: None,
                    message: self.text.clone(),
                    retryable: false,
                    problems: Vec::new(),
                    data: None,
                })
            }),
            diagnostics: None,
            metadata: Arc::new(self.metadata()),
        }
    }

    pub fn outcome(&self) -> CallEnd {
        let result = self.result();
        CallEnd {
            audit: AuditRecord {
                context: Arc::clone(&self.context),
                call_id: "call_1".into(),
                tool: Arc::clone(&self.tool),
                status: self.status,
                code: self.code,
                error: self.code.map(|_| self.text.as_str().into()),
                rule: Some("allowlist".into()),
                approval: None,
                input_size: self.arguments.len() as u64,
                input: None,
                diagnostics: Some("seen by operators".into()),
                metadata: Arc::clone(&result.metadata),
                hashes: None,
            },
            arguments: Some(self.arguments.clone()),
            had_intent: self.effect,
            result: Some(Arc::new(result)),
            settles: None,
            task: None,
        }
    }

    pub fn claim(&self, key: &str) -> ClaimRequest {
        ClaimRequest {
            execution_id: self.id,
            tenant: Arc::clone(&self.context.tenant),
            principal: Arc::clone(&self.context.agent),
            tool: Arc::clone(&self.tool),
            key: key.into(),
            arguments: self.arguments.clone(),
        }
    }

    pub fn settling(&self, key: &str) -> CallEnd {
        let result = Arc::new(self.result());
        CallEnd { settles: Some((self.claim(key), Settlement::Result(result))), ..self.outcome() }
    }
}
