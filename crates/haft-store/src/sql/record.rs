//! An audit record as text: what is sealed, exported and archived.

use super::value::Fault;
use haft_core::{
    ApprovalId, Arguments, CallContext, ContentPart, ErrorCode, ErrorInfo, ResultMetadata, Status, Tier,
    ToolResult,
    port::{AuditRecord, Hashes, Right},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap, fmt::Display, sync::Arc};

/// The form of the text. A reader that knows a later one knows this one, too.
const FORM: u32 = 1;

/// Who, as it is sealed: everything but what was passed through to the tool.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextText<'a> {
    tenant: &'a str,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    roles: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    permissions: &'a [String],
    tier: Tier,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
}

impl<'a> ContextText<'a> {
    fn of(context: &'a CallContext) -> Self {
        ContextText {
            tenant: &context.tenant,
            agent: &context.agent,
            session: context.session.as_deref(),
            conversation: context.conversation.as_deref(),
            user: context.user.as_deref(),
            roles: &context.roles,
            permissions: &context.permissions,
            tier: context.tier,
            correlation_id: context.correlation_id.as_deref(),
        }
    }
}

/// A context as text, for an intent.
pub(crate) fn context_text(context: &CallContext) -> Result<String, Fault> {
    Ok(serde_json::to_string(&ContextText::of(context))?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallText<'a> {
    form: u32,
    event: &'static str,
    context: ContextText<'a>,
    call_id: &'a str,
    tool: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a ApprovalId>,
    input_size: u64,
    input_sha256: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<&'a str>,
    metadata: &'a ResultMetadata,
}

/// The text of a call's record. With its input, where that is to be part of it.
pub(crate) fn call_text(record: &AuditRecord, hashes: &Hashes, input: Option<&str>) -> Result<String, Fault> {
    let input = input.map(short);
    let text = CallText {
        form: FORM,
        event: "call",
        context: ContextText::of(&record.context),
        call_id: &record.call_id,
        tool: &record.tool,
        status: record.status,
        code: record.code,
        error_message: record.error.as_deref(),
        rule: record.rule.as_deref(),
        approval: record.approval.as_ref(),
        input_size: record.input_size,
        input_sha256: &hashes.input,
        output_sha256: hashes.output.as_deref(),
        input: input.as_deref(),
        diagnostics: record.diagnostics.as_deref(),
        metadata: &record.metadata,
    };
    Ok(serde_json::to_string(&text)?)
}

/// The most bytes of arguments in a record: records are for ever, and some arguments are whole files.
const INPUT: usize = 64 << 10;

/// Arguments that fit into a record: long texts in them are cut.
fn short(input: &str) -> Cow<'_, str> {
    if input.len() <= INPUT {
        return Cow::Borrowed(input);
    }
    let fitted = serde_json::from_str(input).ok().and_then(|value| haft_core::json_fit::fit(&value, INPUT));
    match fitted {
        Some(fitted) => Cow::Owned(fitted.to_string()),
        None => Cow::Owned(Json::String(format!("[{} bytes]", input.len())).to_string()),
    }
}

/// What the table of executions has of a record as it stands in its text.
#[derive(Deserialize)]
pub(crate) struct Verbatim<'a> {
    #[serde(borrow)]
    pub(crate) metadata: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallRead {
    context: CallContext,
    call_id: Arc<str>,
    tool: Arc<str>,
    status: Status,
    code: Option<ErrorCode>,
    error_message: Option<Box<str>>,
    input: Option<String>,
    rule: Option<String>,
    approval: Option<ApprovalId>,
    input_size: u64,
    input_sha256: String,
    output_sha256: Option<String>,
    diagnostics: Option<Box<str>>,
    metadata: ResultMetadata,
}

/// Something that happened besides calls: to the record itself, to keys, at the door of a server.
#[derive(Serialize, Deserialize, Debug, PartialEq)]
#[serde(rename_all = "camelCase", tag = "event")]
pub(crate) enum Happening {
    /// Records were archived, and up to `through` they were cut off. Ties the cut to the chain, and names those after
    /// it whose texts are gone, first and last of each run: only they may be without one.
    #[serde(rename_all = "camelCase")]
    Retention {
        form: u32,
        at: i64,
        archived: u64,
        through: i64,
        mac: String,
        #[serde(default)]
        emptied: Vec<(i64, i64)>,
    },
    /// Somebody decided about what a crash left.
    #[serde(rename_all = "camelCase")]
    Recovery { form: u32, at: i64, tenant: String, what: String, decision: String },
    /// A key was made.
    #[serde(rename_all = "camelCase")]
    KeyCreated {
        form: u32,
        at: i64,
        tenant: String,
        key: String,
        name: String,
        rights: Vec<Right>,
        roles: Vec<String>,
        expires_at: Option<i64>,
        by: String,
    },
    /// A key counts no longer.
    #[serde(rename_all = "camelCase")]
    KeyRevoked { form: u32, at: i64, tenant: String, key: String, by: String },
    /// Somebody was not let in.
    #[serde(rename_all = "camelCase")]
    Refused { form: u32, at: i64, without: u64, unknown: u64, addresses: BTreeMap<String, u64>, others: u64 },
}

impl Happening {
    pub(crate) const FORM: u32 = FORM;

    /// When, in microseconds.
    pub(crate) const fn at(&self) -> i64 {
        match self {
            Happening::Retention { at, .. }
            | Happening::Recovery { at, .. }
            | Happening::KeyCreated { at, .. }
            | Happening::KeyRevoked { at, .. }
            | Happening::Refused { at, .. } => *at,
        }
    }
}

/// A record as it was read.
pub(crate) enum Read {
    Call(Box<AuditRecord>),
    Happening(Happening),
}

#[derive(Deserialize)]
struct Event {
    event: String,
    #[serde(default)]
    form: u32,
}

/// The fault of a record that a later haft wrote. It concerns one record, and the database is in order.
fn newer(why: impl Display) -> Fault {
    Fault::refused(format!(
        "an audit record was written by a newer haft ({why}); use that haft, or a newer one, to read it"
    ))
}

/// What is wrong with a text that is JSON: a word that is not known here is one of a later haft.
fn not_read(error: serde_json::Error) -> Fault {
    let text = error.to_string();
    let is_word = text.starts_with("unknown variant") || text.contains("is not an error code of haft");
    if is_word { newer(text) } else { error.into() }
}

/// Reads a record's text.
pub(crate) fn read(text: &str) -> Result<Read, Fault> {
    let Event { event, form } = serde_json::from_str(text)?;
    if form > FORM {
        return Err(newer(format!("form {form}; this haft reads up to {FORM}")));
    }
    if event != "call" {
        return Ok(Read::Happening(serde_json::from_str(text).map_err(not_read)?));
    }
    let read: CallRead = serde_json::from_str(text).map_err(not_read)?;
    Ok(Read::Call(Box::new(AuditRecord {
        context: Arc::new(read.context),
        call_id: read.call_id,
        tool: read.tool,
        status: read.status,
        code: read.code,
        error: read.error_message,
        rule: read.rule.map(Cow::Owned),
        approval: read.approval,
        input_size: read.input_size,
        input: read.input.map(Arguments::from_text),
        diagnostics: read.diagnostics,
        metadata: Arc::new(read.metadata),
        hashes: Some(Box::new(Hashes { input: read.input_sha256, output: read.output_sha256 })),
    })))
}

/// What a result holds beside the facts that are in its record.
#[derive(Serialize)]
struct PartsText<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Arguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a Json>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    content: &'a [ContentPart],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorInfo>,
}

#[derive(Deserialize)]
struct PartsRead {
    input: Option<Arguments>,
    output: Option<Json>,
    #[serde(default)]
    content: Vec<ContentPart>,
    error: Option<Box<ErrorInfo>>,
}

/// A result without its facts, as text.
pub(crate) fn parts_text(result: &ToolResult) -> Result<String, Fault> {
    let parts = PartsText {
        input: result.input.as_ref(),
        output: result.output.as_ref(),
        content: &result.content,
        error: result.error.as_deref(),
    };
    Ok(serde_json::to_string(&parts)?)
}

/// A result, put together again from its record and the rest.
pub(crate) fn result(record: &AuditRecord, parts: &[u8]) -> Result<ToolResult, Fault> {
    let parts: PartsRead = serde_json::from_slice(parts)?;
    Ok(ToolResult {
        call_id: Arc::clone(&record.call_id),
        tool: Arc::clone(&record.tool),
        status: record.status,
        input: parts.input,
        output: parts.output,
        content: parts.content,
        error: parts.error,
        diagnostics: record.diagnostics.clone(),
        metadata: Arc::clone(&record.metadata),
    })
}

/// The number of a status in the database, as `docs/audit.md` has it.
pub(crate) const fn status_number(status: Status) -> i64 {
    match status {
        Status::Success => 0,
        Status::Timeout => 1,
        Status::Cancelled => 2,
        Status::RequiresConfirmation => 3,
        Status::PermissionDenied => 10,
        Status::ValidationError => 20,
        Status::Failed => 30,
        Status::SandboxError => 40,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::value::FaultKind;

    /// An older haft that shares a database with a newer one says so, and does not call the database broken.
    #[test]
    fn a_record_of_a_newer_haft_is_named_as_that() {
        let revoked = |form: u32, event: &str| {
            format!(r#"{{"event":"{event}","form":{form},"at":1,"tenant":"t","key":"k","by":"ada"}}"#)
        };
        assert!(matches!(read(&revoked(FORM, "keyRevoked")), Ok(Read::Happening(_))));
        let call = |code: &str| {
            let now = jiff::Timestamp::UNIX_EPOCH;
            serde_json::json!({
                "form": FORM, "event": "call", "context": {"tenant": "t", "agent": "a"}, "callId": "c", "tool": "x",
                "status": "Failed", "code": code, "inputSize": 1, "inputSha256": "",
                "metadata": haft_core::ResultMetadata::not_started(haft_core::ExecutionId::at(now), now),
            })
            .to_string()
        };
        assert!(read(&call("CANCELLED")).is_ok());
        for (text, why) in [
            (revoked(FORM + 1, "keyRevoked"), "form 2; this haft reads up to 1"),
            (revoked(FORM, "keyTurned"), "keyTurned"),
            (call("OUT_OF_TEA"), "OUT_OF_TEA"),
        ] {
            let fault = read(&text).err().unwrap();
            assert_eq!(fault.kind, FaultKind::Refused, "{fault:?}");
            assert!(fault.text.contains("written by a newer haft") && fault.text.contains(why), "{fault:?}");
        }
        for broken in ["", "{", r#"{"event":"keyRevoked"}"#] {
            assert_eq!(read(broken).err().unwrap().kind, FaultKind::Corrupt, "{broken}");
        }
    }
}
