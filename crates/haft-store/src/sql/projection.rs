//! The table of executions, worked out from the audit log.
//!
//! The log is only added to, which costs one page a commit. The table has an index for every way to ask, which costs
//! many. So it follows a moment later, in larger pieces; before anybody reads, it is brought up to date. How far it has
//! come is part of the transaction that moves it on, so a crash loses nothing and repeats nothing.

use super::{
    record::{self, Read},
    value::{Fault, Value},
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
            insert(work, last, &record)?;
        }
    }
    // Where the log ends before its head says so, somebody cut it: `verify` names that, and here it must not spin.
    let last = if last == from { to } else { last };
    work.head_mut()?.projected = last;
    Ok(last < to)
}

fn insert(work: &mut Work<'_>, seq: i64, record: &AuditRecord) -> Result<(), Fault> {
    let facts = &record.metadata;
    let context = &record.context;
    let batch = facts.batch_id.map(|batch| batch.to_string());
    work.sql.execute(
        "INSERT INTO tool_executions (seq, execution_id, tenant, call_id, tool_name, status, error_code, started_at, \
         completed_at, duration_ms, output_size_bytes, output_truncated, output_handle, sandbox_id, agent_id, user_id, \
         session_id, batch_id, batch_index, correlation_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
         ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20) ON CONFLICT (seq) DO NOTHING",
        &[
            Value::Int(seq),
            Value::Text(&facts.execution_id.to_string()),
            Value::Text(&context.tenant),
            Value::Text(&record.call_id),
            Value::Text(&record.tool),
            Value::Int(record::status_number(record.status)),
            Value::text(record.code.map(|code| code.as_str())),
            Value::Int(facts.started_at.as_microsecond()),
            Value::Int(facts.completed_at.as_microsecond()),
            Value::Real(facts.duration.as_secs_f64() * 1000.0),
            Value::Int(i64::try_from(facts.output_size).unwrap_or(i64::MAX)),
            Value::Int(i64::from(facts.output_truncated)),
            Value::text(facts.output_handle.as_ref().map(|handle| handle.as_str())),
            Value::text(facts.sandbox_id.as_deref()),
            Value::Text(&context.agent),
            Value::text(context.user.as_deref()),
            Value::text(context.session.as_deref()),
            Value::text(batch.as_deref()),
            Value::int(facts.batch_index.map(i64::from)),
            Value::text(context.correlation_id.as_deref()),
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
