//! The table of executions, worked out from the audit log.
//!
//! The log is only added to, which costs one page a commit. The table has an index for every way to ask, which costs
//! many. So it follows a moment later, in larger pieces; before anybody reads, it is brought up to date. How far it has
//! come is part of the transaction that moves it on, so a crash loses nothing and repeats nothing.

use super::{
    chain,
    record::{self, Read, Verbatim},
    value::{Fault, Row, Value},
    work::Work,
};
use haft_core::port::AuditRecord;

/// Records in one piece.
pub(crate) const PIECE: i64 = 1024;

/// Brings the table up to date, whatever it takes.
pub(crate) fn catch_up(work: &mut Work<'_>) -> Result<(), Fault> {
    while project(work, PIECE)? {}
    Ok(())
}

/// Goes on by one piece; false where nothing is left.
pub(crate) fn project(work: &mut Work<'_>, most: i64) -> Result<bool, Fault> {
    let head = work.head()?;
    let (from, to) = (head.projected, head.link.seq);
    if from >= to {
        return Ok(false);
    }
    let rows = work.sql.query(
        "SELECT seq, body FROM audit_log WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        &[Value::Int(from), Value::Int(most)],
    )?;
    let mut last = from;
    for mut row in rows {
        last = row.int(0)?;
        let Some(body) = row.opt_text(1)? else { continue };
        if let Read::Call(record) = record::read(&body)? {
            insert(work, last, &record, &body)?;
        }
    }
    // Where the log ends before its head says so, somebody cut it: `verify` names that, and here it must not spin.
    let last = if last == from { to } else { last };
    work.head_mut()?.projected = last;
    Ok(last < to)
}

/// A row of the table, without its number.
#[derive(Debug, PartialEq)]
pub(crate) struct Execution {
    pub(crate) execution_id: String,
    tenant: String,
    call_id: String,
    tool_name: String,
    status: i64,
    error_code: Option<String>,
    started_at: i64,
    completed_at: i64,
    duration_ms: f64,
    output_size_bytes: i64,
    output_truncated: i64,
    output_handle: Option<String>,
    sandbox_id: Option<String>,
    agent_id: String,
    user_id: Option<String>,
    session_id: Option<String>,
    batch_id: Option<String>,
    batch_index: Option<i64>,
    correlation_id: Option<String>,
    id: String,
    parameters_json: Option<String>,
    error_message: Option<String>,
    metadata_json: String,
}

impl Execution {
    /// Its columns, of a table that is called `e`.
    pub(crate) const COLUMNS: &'static str = "e.execution_id, e.tenant, e.call_id, e.tool_name, e.status, e.error_code, \
         e.started_at, e.completed_at, e.duration_ms, e.output_size_bytes, e.output_truncated, e.output_handle, e.sandbox_id, \
         e.agent_id, e.user_id, e.session_id, e.batch_id, e.batch_index, e.correlation_id, e.id, e.parameters_json, \
         e.error_message, e.metadata_json";

    /// What a record says, by its number and its text.
    pub(crate) fn of(seq: i64, record: &AuditRecord, body: &str) -> Result<Self, Fault> {
        let verbatim: Verbatim<'_> = serde_json::from_str(body)?;
        let (facts, context) = (&record.metadata, &record.context);
        let text = |text: Option<&str>| text.map(str::to_owned);
        Ok(Execution {
            execution_id: facts.execution_id.to_string(),
            tenant: context.tenant.to_string(),
            call_id: record.call_id.to_string(),
            tool_name: record.tool.to_string(),
            status: record::status_number(record.status),
            error_code: text(record.code.map(|code| code.as_str())),
            started_at: facts.started_at.as_microsecond(),
            completed_at: facts.completed_at.as_microsecond(),
            duration_ms: facts.duration.as_secs_f64() * 1000.0,
            output_size_bytes: i64::try_from(facts.output_size).unwrap_or(i64::MAX),
            output_truncated: i64::from(facts.output_truncated),
            output_handle: text(facts.output_handle.as_ref().map(|handle| handle.as_str())),
            sandbox_id: text(facts.sandbox_id.as_deref()),
            agent_id: context.agent.to_string(),
            user_id: text(context.user.as_deref()),
            session_id: text(context.session.as_deref()),
            batch_id: facts.batch_id.map(|batch| batch.to_string()),
            batch_index: facts.batch_index.map(i64::from),
            correlation_id: text(context.correlation_id.as_deref()),
            id: row_id(seq, body),
            parameters_json: record.input.as_ref().map(|input| input.as_str().to_owned()),
            error_message: text(record.error.as_deref()),
            metadata_json: verbatim.metadata.get().to_owned(),
        })
    }

    /// What the table says, from that column of a row on; `None` where it has no such row.
    pub(crate) fn read(row: &mut Row, at: usize) -> Result<Option<Self>, Fault> {
        let Some(execution_id) = row.opt_text(at)? else { return Ok(None) };
        Ok(Some(Execution {
            execution_id,
            tenant: row.text(at + 1)?,
            call_id: row.text(at + 2)?,
            tool_name: row.text(at + 3)?,
            status: row.int(at + 4)?,
            error_code: row.opt_text(at + 5)?,
            started_at: row.int(at + 6)?,
            completed_at: row.int(at + 7)?,
            duration_ms: row.real(at + 8)?,
            output_size_bytes: row.int(at + 9)?,
            output_truncated: row.int(at + 10)?,
            output_handle: row.opt_text(at + 11)?,
            sandbox_id: row.opt_text(at + 12)?,
            agent_id: row.text(at + 13)?,
            user_id: row.opt_text(at + 14)?,
            session_id: row.opt_text(at + 15)?,
            batch_id: row.opt_text(at + 16)?,
            batch_index: row.opt_int(at + 17)?,
            correlation_id: row.opt_text(at + 18)?,
            id: row.opt_text(at + 19)?.unwrap_or_default(),
            parameters_json: row.opt_text(at + 20)?,
            error_message: row.opt_text(at + 21)?,
            metadata_json: row.opt_text(at + 22)?.unwrap_or_default(),
        }))
    }
}

/// The id of a row: a UUID that follows from the record, so that a check can tell whether it is the right one.
fn row_id(seq: i64, body: &str) -> String {
    let digest = chain::digest(format!("{seq} {body}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

fn insert(work: &mut Work<'_>, seq: i64, record: &AuditRecord, body: &str) -> Result<(), Fault> {
    let (facts, context) = (&record.metadata, &record.context);
    let row = Execution::of(seq, record, body)?;
    work.sql.execute(
        "INSERT INTO tool_executions (seq, execution_id, tenant, call_id, tool_name, status, error_code, started_at, \
         completed_at, duration_ms, output_size_bytes, output_truncated, output_handle, sandbox_id, agent_id, user_id, \
         session_id, batch_id, batch_index, correlation_id, id, parameters_json, error_message, \
         metadata_json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
         ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) ON CONFLICT (seq) DO NOTHING",
        &[
            Value::Int(seq),
            Value::Text(&row.execution_id),
            Value::Text(&row.tenant),
            Value::Text(&row.call_id),
            Value::Text(&row.tool_name),
            Value::Int(row.status),
            Value::text(row.error_code.as_deref()),
            Value::Int(row.started_at),
            Value::Int(row.completed_at),
            Value::Real(row.duration_ms),
            Value::Int(row.output_size_bytes),
            Value::Int(row.output_truncated),
            Value::text(row.output_handle.as_deref()),
            Value::text(row.sandbox_id.as_deref()),
            Value::Text(&row.agent_id),
            Value::text(row.user_id.as_deref()),
            Value::text(row.session_id.as_deref()),
            Value::text(row.batch_id.as_deref()),
            Value::int(row.batch_index),
            Value::text(row.correlation_id.as_deref()),
            Value::Text(&row.id),
            Value::text(row.parameters_json.as_deref()),
            Value::text(row.error_message.as_deref()),
            Value::Text(&row.metadata_json),
        ],
    )?;
    for violation in &facts.violations {
        work.sql.execute(
            "INSERT INTO sandbox_security_events (seq, tenant, sandbox_id, violation_type, resource, description, \
             was_blocked, happened_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            &[
                Value::Int(seq),
                Value::Text(&context.tenant),
                Value::text(facts.sandbox_id.as_deref()),
                Value::Text(&violation.kind),
                Value::Text(&violation.resource),
                Value::Text(&violation.description),
                Value::Int(i64::from(violation.was_blocked)),
                Value::Int(violation.timestamp.as_microsecond()),
            ],
        )?;
    }
    Ok(())
}
