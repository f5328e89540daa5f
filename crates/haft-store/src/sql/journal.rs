//! What is written before, while and after a call runs.

use super::{
    chain, changes, claims, record,
    value::{Fault, Value},
    work::Work,
};
use haft_core::port::{BatchBegin, CallEnd, Hashes, Intent, JournalStep};
use std::time::Duration;

/// A batch still comes in.
pub(crate) const STREAMING: i64 = 0;
/// After a crash.
pub(crate) const RESUMED: i64 = 3;
pub(crate) const DISCARDED: i64 = 4;

/// Somebody decided about a call whose outcome is unknown.
pub(crate) const DECIDED: i64 = 2;

/// Writes what is about to happen, and uses up the approval that allows it: both, or nothing.
pub(crate) fn intent(work: &mut Work<'_>, intent: &Intent) -> Result<(), Fault> {
    let id = intent.execution_id.to_string();
    if let Some(approval) = &intent.approval {
        super::approvals::use_up(work, intent, approval, &id)?;
    }
    let batch = intent.batch.map(|(batch, _)| batch.to_string());
    let at = intent.at.as_microsecond();
    let written = work.sql.execute(
        "INSERT INTO intents (execution_id, tenant, instance_id, state, batch_id, batch_index, call_id, tool_name, \
         arguments, context, approval_id, attempt, attempted_at, begun_at) \
         VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12) \
         ON CONFLICT (execution_id) DO UPDATE SET attempt = excluded.attempt, attempted_at = excluded.attempted_at \
         WHERE intents.state = 0 AND intents.instance_id = excluded.instance_id \
         AND intents.attempt < excluded.attempt",
        &[
            Value::Text(&id),
            Value::Text(&intent.context.tenant),
            Value::Text(work.instance),
            Value::text(batch.as_deref()),
            Value::int(intent.batch.map(|(_, index)| i64::from(index))),
            Value::Text(&intent.call_id),
            Value::Text(&intent.tool),
            Value::Text(intent.arguments.as_str()),
            Value::Text(&record::context_text(&intent.context)?),
            Value::text(intent.approval.as_ref().map(|approval| approval.as_str())),
            Value::Int(i64::from(intent.attempt)),
            Value::Int(at),
        ],
    )?;
    match written {
        0 => Err(Fault::refused(format!("the call {id} was started before; its id cannot be used again"))),
        _ => Ok(()),
    }
}

/// Writes how a call ended, with its audit record.
pub(crate) fn outcome(work: &mut Work<'_>, outcome: &CallEnd) -> Result<(), Fault> {
    let input = outcome.arguments.as_ref().map_or("", |arguments| arguments.as_str());
    let parts = outcome.result.as_deref().map(record::parts_text).transpose()?;
    let hash = |text: &str| chain::hex(&chain::digest(text.as_bytes()));
    let hashes = Hashes { input: hash(input), output: parts.as_deref().map(hash) };
    // Hashes are for everybody; what came in and went out is kept where the licence includes it.
    let tier = outcome.audit.context.tier;
    let keeps = work.options.keep_results && tier.keeps_results();
    let audited = work.options.audit_input && tier.keeps_results();
    let body = record::call_text(&outcome.audit, &hashes, audited.then_some(input))?;
    let seq = work.append(&body)?;
    let id = outcome.audit.metadata.execution_id.to_string();
    if keeps {
        let now = work.now();
        let longest = tier.longest_retention();
        keep_result(work, seq, &id, (now, longest), Some(input), parts.as_deref())?;
    }
    if outcome.had_intent {
        // Its own, and not that of an earlier process that had the same id: that one is evidence.
        work.sql.execute(
            "DELETE FROM intents WHERE execution_id = ?1 AND instance_id = ?2 AND state < 2",
            &[Value::Text(&id), Value::Text(work.instance)],
        )?;
    }
    if let Some(settled) = &outcome.audit.metadata.changes {
        changes::ended(work, &id, settled)?;
    }
    if let Some((request, settlement)) = &outcome.settles {
        claims::settle(work, request, settlement)?;
    }
    if let Some((task, result)) = &outcome.task {
        super::tasks::ended(work, task, result)?;
    }
    Ok(())
}

/// Whether that outcome is in the audit already.
pub(crate) fn is_recorded(work: &mut Work<'_>, outcome: &CallEnd) -> Result<bool, Fault> {
    super::projection::catch_up(work)?;
    let facts = &outcome.audit.metadata;
    let row = work.sql.query_one(
        "SELECT 1 FROM tool_executions WHERE execution_id = ?1 AND completed_at = ?2",
        &[Value::Text(&facts.execution_id.to_string()), Value::Int(facts.completed_at.as_microsecond())],
    )?;
    Ok(row.is_some())
}

/// Keeps what went in and came out: from then on, and at most for so long.
pub(crate) fn keep_result(
    work: &mut Work<'_>,
    seq: i64,
    execution_id: &str,
    (at, longest): (i64, Option<Duration>),
    input: Option<&str>,
    parts: Option<&str>,
) -> Result<(), Fault> {
    let longest = longest.map(|longest| i64::try_from(longest.as_micros()).unwrap_or(i64::MAX));
    work.sql
        .execute(
            "INSERT INTO call_results (seq, execution_id, kept_at, input, result, keep_until) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            &[
                Value::Int(seq),
                Value::Text(execution_id),
                Value::Int(at),
                Value::text(input),
                parts.map_or(Value::Null, |parts| Value::Blob(parts.as_bytes())),
                longest.map_or(Value::Null, |longest| Value::Int(at.saturating_add(longest))),
            ],
        )
        .map(drop)
}

/// Writes one step of a batch, or of a call.
pub(crate) fn step(work: &mut Work<'_>, step: &JournalStep) -> Result<(), Fault> {
    let batch = step.batch().map(|batch| batch.to_string()).unwrap_or_default();
    match step {
        JournalStep::Changes { execution_id, tenant, step, at } => {
            changes::step(work, *execution_id, tenant, *step, at.as_microsecond())
        }
        JournalStep::Begin(begun) => begin(work, &batch, begun),
        JournalStep::Text { delta, .. } => add_delta(work, &batch, -1, delta),
        JournalStep::CallStart { index, call_id, tool, .. } => {
            must_stream(work, &batch)?;
            let index = i64::from(*index);
            let arguments = [Value::Text(&batch), Value::Int(index), Value::Text(call_id), Value::Text(tool)];
            work.sql
                .execute(
                    "INSERT INTO batch_calls (batch_id, call_index, call_id, tool_name, arguments) \
                     VALUES (?1, ?2, ?3, ?4, '')",
                    &arguments,
                )
                .map(drop)
        }
        JournalStep::ArgsDelta { index, delta, .. } => add_delta(work, &batch, i64::from(*index), delta),
        JournalStep::Seal { at, .. } => seal(work, &batch, at.as_microsecond()),
        JournalStep::Calls { calls, at, .. } => {
            seal(work, &batch, at.as_microsecond())?;
            for (call, index) in calls.iter().zip(0_i64..) {
                work.sql.execute(
                    "INSERT INTO batch_calls (batch_id, call_index, call_id, tool_name, arguments, execution_id) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (batch_id, call_index) \
                     DO UPDATE SET arguments = excluded.arguments, execution_id = excluded.execution_id",
                    &[
                        Value::Text(&batch),
                        Value::Int(index),
                        Value::Text(&call.call_id),
                        Value::Text(&call.tool),
                        Value::Text(call.arguments.as_str()),
                        Value::Text(&call.execution_id.to_string()),
                    ],
                )?;
            }
            Ok(())
        }
        JournalStep::Decided { calls, .. } => {
            for (index, plan) in calls {
                work.sql.execute(
                    "UPDATE batch_calls SET plan = ?3 WHERE batch_id = ?1 AND call_index = ?2",
                    &[Value::Text(&batch), Value::Int(i64::from(*index)), Value::Text(plan.as_str())],
                )?;
            }
            Ok(())
        }
        JournalStep::Close { at, .. } => {
            let at = Value::Int(at.as_microsecond());
            work.sql.execute(
                "UPDATE batches SET state = 2, closed_at = ?2 WHERE batch_id = ?1 AND state < 2",
                &[Value::Text(&batch), at],
            )?;
            work.sql.execute("DELETE FROM batch_deltas WHERE batch_id = ?1", &[Value::Text(&batch)])?;
            work.sql.execute("DELETE FROM batch_calls WHERE batch_id = ?1", &[Value::Text(&batch)]).map(drop)
        }
    }
}

fn begin(work: &mut Work<'_>, batch: &str, begun: &BatchBegin) -> Result<(), Fault> {
    let context = &begun.context;
    let made = work.sql.execute(
        "INSERT INTO batches (batch_id, tenant, instance_id, state, agent_id, session_id, model, assistant_text, \
         begun_at) VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (batch_id) DO NOTHING",
        &[
            Value::Text(batch),
            Value::Text(&context.tenant),
            Value::Text(work.instance),
            Value::Text(&context.agent),
            Value::text(context.session.as_deref()),
            Value::text(begun.model.as_deref()),
            Value::Text(&begun.assistant_text),
            Value::Int(begun.at.as_microsecond()),
        ],
    )?;
    if made == 1 {
        return Ok(());
    }
    // The same batch again is fine while it is under way here; anything else would mix two up.
    let row = work.sql.query_one(
        "SELECT 1 FROM batches WHERE batch_id = ?1 AND tenant = ?2 AND instance_id = ?3 AND state < 2",
        &[Value::Text(batch), Value::Text(&context.tenant), Value::Text(work.instance)],
    )?;
    row.map(drop)
        .ok_or_else(|| Fault::refused(format!("the batch id {batch} was used before; use a new one")))
}

fn must_stream(work: &mut Work<'_>, batch: &str) -> Result<(), Fault> {
    let row = work.sql.query_one(
        "SELECT state FROM batches WHERE batch_id = ?1 AND instance_id = ?2",
        &[Value::Text(batch), Value::Text(work.instance)],
    )?;
    match row.map(|mut row| row.int(0)).transpose()? {
        Some(STREAMING) => Ok(()),
        Some(_) => Err(Fault::refused(format!("the batch {batch} is sealed; nothing can be added"))),
        None => Err(Fault::refused(format!("the batch {batch} has not begun here"))),
    }
}

/// Pieces are only added, never rewritten: arguments that come in many small pieces cost what they are long.
fn add_delta(work: &mut Work<'_>, batch: &str, index: i64, delta: &str) -> Result<(), Fault> {
    must_stream(work, batch)?;
    work.sql
        .execute(
            "INSERT INTO batch_deltas (batch_id, call_index, delta) VALUES (?1, ?2, ?3)",
            &[Value::Text(batch), Value::Int(index), Value::Text(delta)],
        )
        .map(drop)
}

/// Puts the pieces together.
fn seal(work: &mut Work<'_>, batch: &str, at: i64) -> Result<(), Fault> {
    let sealed = work.sql.execute(
        "UPDATE batches SET state = 1, sealed_at = ?2 WHERE batch_id = ?1 AND state = 0",
        &[Value::Text(batch), Value::Int(at)],
    )?;
    if sealed == 0 {
        // Sealed before: the code that streamed it in has done so, and the code that runs it says so again.
        return Ok(());
    }
    for (index, text) in pieces(work, batch)? {
        let (what, place) = match index {
            -1 => ("UPDATE batches SET assistant_text = assistant_text || ?2 WHERE batch_id = ?1", None),
            index => (
                "UPDATE batch_calls SET arguments = arguments || ?2 WHERE batch_id = ?1 AND call_index = ?3",
                Some(index),
            ),
        };
        let mut arguments = vec![Value::Text(batch), Value::Text(&text)];
        arguments.extend(place.map(Value::Int));
        work.sql.execute(what, &arguments)?;
    }
    work.sql.execute("DELETE FROM batch_deltas WHERE batch_id = ?1", &[Value::Text(batch)]).map(drop)
}

/// What has come in of each call, and of the words (-1), and is not put together yet.
pub(crate) fn pieces(work: &mut Work<'_>, batch: &str) -> Result<Vec<(i64, String)>, Fault> {
    let rows = work.sql.query(
        "SELECT call_index, delta FROM batch_deltas WHERE batch_id = ?1 ORDER BY call_index, seq",
        &[Value::Text(batch)],
    )?;
    let mut pieces: Vec<(i64, String)> = Vec::new();
    for mut row in rows {
        let (index, delta) = (row.int(0)?, row.text(1)?);
        match pieces.last_mut() {
            Some((last, text)) if *last == index => text.push_str(&delta),
            _ => pieces.push((index, delta)),
        }
    }
    Ok(pieces)
}
