//! What processes that are gone left behind. Nothing is ever run again; the evidence stays.

use super::{
    changes, claims, history, instances, journal, projection,
    record::{self, Happening},
    running, tasks,
    value::{Fault, FaultKind, Row, Value},
    work::Work,
};
use haft_core::{
    Arguments, CallContext, ContentPart, ErrorCode, ErrorInfo, ExecutionId, OutputHandle, ResultMetadata,
    Status, ToolResult,
    port::{
        AuditRecord, CallState, DISCARDED_AFTER_CRASH, Hashes, MISSING_AFTER_CRASH, RecoveredCall, Recovery,
        Unfinished, UnfinishedCall, UnfinishedId,
    },
};
use jiff::Timestamp;
use std::{sync::Arc, time::Duration};

/// Looks after every process that is gone.
pub(crate) fn sweep_all(work: &mut Work<'_>) -> Result<(), Fault> {
    for instance in instances::dead(work)? {
        sweep(work, &instance)?;
    }
    Ok(())
}

/// Looks after one process that is gone: what it had started and not ended is recorded as outcome unknown, keys of what
/// it had not started are free again. Its batches wait for somebody to decide.
pub(crate) fn sweep(work: &mut Work<'_>, instance: &str) -> Result<(), Fault> {
    let rows = work.sql.query(
        "SELECT execution_id, context, batch_id, batch_index, call_id, tool_name, arguments, approval_id, attempt, \
         begun_at FROM intents WHERE instance_id = ?1 AND state = 0 ORDER BY begun_at, execution_id",
        &[Value::Text(instance)],
    )?;
    for mut row in rows {
        let id: ExecutionId = row.parsed(0)?;
        let text = id.to_string();
        claims::unknown(work, instance, &text)?;
        let arguments = row.text(6)?;
        let mut ended = Ended {
            id,
            context: Arc::new(serde_json::from_str::<CallContext>(&row.text(1)?)?),
            batch: (row.opt_text(2)?, row.opt_int(3)?),
            call_id: row.text(4)?.into(),
            tool: row.text(5)?.into(),
            arguments,
            approval: row.opt_text(7)?,
            attempts: u32::try_from(row.int(8)?).unwrap_or(u32::MAX),
            begun_at: row.int(9)?,
            code: ErrorCode::OutcomeUnknown,
            message: ErrorCode::OutcomeUnknown.model_text().to_owned(),
            output: None,
        };
        ended.message.push_str(" The process that ran it was gone before it could say.");
        ended.output = running::rescue(work, &ended.context.tenant, &text)?;
        if let Some((handle, size)) = &ended.output {
            let more = format!(" What it had put out by then, {size} bytes, is kept: read_output {handle}.");
            ended.message.push_str(&more);
        }
        let tenant = Arc::clone(&ended.context.tenant);
        if let Some(step) = changes::find(work.sql, &tenant, id)? {
            ended.message.push_str(&format!(" {}.", step.in_words()));
        }
        let result = ended.write(work)?;
        tasks::unknown(work, instance, &tenant, &text, &result)?;
        work.sql.execute("UPDATE intents SET state = 1 WHERE execution_id = ?1", &[Value::Text(&text)])?;
    }
    claims::release(work, instance)?;
    tasks::interrupted(work, instance)?;
    let now = work.now();
    work.sql
        .execute(
            "UPDATE instances SET swept = 1, ended_at = COALESCE(ended_at, ?2) WHERE instance_id = ?1",
            &[Value::Text(instance), Value::Int(now)],
        )
        .map(drop)
}

/// A call that gets its end from here, because its process cannot give it one any more.
pub(crate) struct Ended {
    pub(crate) id: ExecutionId,
    pub(crate) context: Arc<CallContext>,
    pub(crate) batch: (Option<String>, Option<i64>),
    pub(crate) call_id: Arc<str>,
    pub(crate) tool: Arc<str>,
    pub(crate) arguments: String,
    pub(crate) approval: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) begun_at: i64,
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    /// What it had put out.
    pub(crate) output: Option<(OutputHandle, u64)>,
}

impl Ended {
    /// Writes the end, with its record.
    pub(crate) fn write(self, work: &mut Work<'_>) -> Result<ToolResult, Fault> {
        let (batch, index) = self.batch;
        let metadata = ResultMetadata {
            execution_id: self.id,
            batch_id: batch.and_then(|batch| batch.parse().ok()),
            batch_index: index.and_then(|index| u32::try_from(index).ok()),
            started_at: time(self.begun_at)?,
            completed_at: time(work.now())?,
            // How long it took is part of what is not known.
            duration: Duration::ZERO,
            attempts: self.attempts,
            parallel: None,
            attempt_records: Vec::new(),
            output_size: self.output.as_ref().map_or(0, |(_, size)| *size),
            output_truncated: false,
            output_handle: self.output.map(|(handle, _)| handle),
            sandbox_id: None,
            enforcement: None,
            metrics: None,
            violations: Vec::new(),
            side_effects: Vec::new(),
            changes: None,
            scheduling: None,
            coercions: Vec::new(),
            correlation_id: self.context.correlation_id.clone(),
        };
        let result = ToolResult {
            call_id: Arc::clone(&self.call_id),
            tool: Arc::clone(&self.tool),
            status: self.code.status().unwrap_or(Status::Failed),
            input: None,
            output: None,
            content: vec![ContentPart::text(&self.message)],
            error: Some(Box::new(ErrorInfo {
                code: self.code,
                number: self.code.e_number().map(str::to_owned),
                message: self.message,
                retryable: self.code.is_retryable(),
                problems: Vec::new(),
                data: None,
            })),
            diagnostics: None,
            metadata: Arc::new(metadata),
        };
        let audit = AuditRecord {
            context: self.context,
            call_id: self.call_id,
            tool: self.tool,
            status: result.status,
            code: Some(self.code),
            error: result.error.as_ref().map(|error| error.message.as_str().into()),
            rule: None,
            approval: self.approval.map(haft_core::ApprovalId::from_text),
            input_size: self.arguments.len() as u64,
            input: None,
            diagnostics: None,
            metadata: Arc::clone(&result.metadata),
            hashes: None,
        };
        let parts = record::parts_text(&result)?;
        let hash = |text: &str| super::chain::hex(&super::chain::digest(text.as_bytes()));
        let hashes = Hashes { input: hash(&self.arguments), output: Some(hash(&parts)) };
        let input = work.options.audit_input.then_some(&*self.arguments);
        let seq = work.append(&record::call_text(&audit, &hashes, input)?)?;
        let now = work.now();
        let id = self.id.to_string();
        // Evidence, which no licence takes away.
        journal::keep_result(work, seq, &id, (now, None), Some(&self.arguments), Some(&parts))?;
        Ok(result)
    }
}

/// Everything of one tenant that waits for a decision, oldest first.
pub(crate) fn unfinished(work: &mut Work<'_>, tenant: &str) -> Result<Vec<Unfinished>, Fault> {
    sweep_all(work)?;
    projection::catch_up(work)?;
    let mut found = Vec::new();
    let rows = work.sql.query(
        "SELECT batch_id, instance_id FROM batches WHERE tenant = ?1 AND state < 2 ORDER BY begun_at, batch_id",
        &[Value::Text(tenant)],
    )?;
    for mut row in rows {
        let (batch, instance) = (row.text(0)?, row.text(1)?);
        if instances::is_gone(work, &instance) {
            found.extend(load_batch(work, tenant, &batch)?);
        }
    }
    let rows = work.sql.query(
        &format!(
            "{INTENT} WHERE tenant = ?1 AND state = 1 AND batch_id IS NULL ORDER BY begun_at, execution_id"
        ),
        &[Value::Text(tenant)],
    )?;
    for row in rows {
        let (id, one) = single(row)?;
        found.push(with_changes(work, tenant, id, one)?);
    }
    found.sort_by_key(|unfinished| unfinished.begun_at);
    Ok(found)
}

/// How many batches and calls of one tenant wait for a decision. Processes that went away since this one opened the
/// store are not looked after.
pub(crate) fn waiting(work: &mut Work<'_>, tenant: &str) -> Result<u64, Fault> {
    let mut count = 0;
    let rows = work
        .sql
        .query("SELECT instance_id FROM batches WHERE tenant = ?1 AND state < 2", &[Value::Text(tenant)])?;
    for mut row in rows {
        let instance = row.text(0)?;
        count += u64::from(instances::is_gone(work, &instance));
    }
    let row = work.sql.query_one(
        "SELECT COUNT(*) FROM intents WHERE tenant = ?1 AND state = 1 AND batch_id IS NULL",
        &[Value::Text(tenant)],
    )?;
    let single = row.map_or(Ok(0), |mut row| row.int(0))?;
    Ok(count + u64::try_from(single).unwrap_or(0))
}

const INTENT: &str = "SELECT execution_id, context, call_id, tool_name, arguments, attempt, attempted_at, begun_at \
                      FROM intents";

/// A call that was in no batch, with what became of its changes.
fn with_changes(
    work: &mut Work<'_>,
    tenant: &str,
    id: ExecutionId,
    mut one: Unfinished,
) -> Result<Unfinished, Fault> {
    let step = changes::find(work.sql, tenant, id)?;
    one.calls.iter_mut().for_each(|call| call.changes = step);
    Ok(one)
}

/// A call that was in no batch.
fn single(mut row: Row) -> Result<(ExecutionId, Unfinished), Fault> {
    let id: ExecutionId = row.parsed(0)?;
    let context: CallContext = serde_json::from_str(&row.text(1)?)?;
    let call = UnfinishedCall {
        call_id: row.text(2)?.into(),
        tool: row.text(3)?.into(),
        arguments: Arguments::from_text(row.text(4)?),
        execution_id: Some(id),
        state: CallState::OutcomeUnknown {
            attempt: u32::try_from(row.int(5)?).unwrap_or(u32::MAX),
            since: time(row.int(6)?)?,
        },
        changes: None,
    };
    let unfinished = Unfinished {
        id: UnfinishedId::Call(id),
        agent: context.agent,
        session: context.session,
        model: None,
        assistant_text: String::new(),
        sealed: true,
        begun_at: time(row.int(7)?)?,
        calls: vec![call],
    };
    Ok((id, unfinished))
}

fn load_batch(work: &mut Work<'_>, tenant: &str, batch: &str) -> Result<Option<Unfinished>, Fault> {
    let row = work.sql.query_one(
        "SELECT agent_id, session_id, model, assistant_text, state, begun_at FROM batches \
         WHERE batch_id = ?1 AND tenant = ?2 AND state < 2",
        &[Value::Text(batch), Value::Text(tenant)],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let id =
        batch.parse().map_err(|_| Fault::new(FaultKind::Corrupt, format!("`{batch}` is no batch id")))?;
    let mut unfinished = Unfinished {
        id: UnfinishedId::Batch(id),
        agent: row.text(0)?.into(),
        session: row.opt_text(1)?.map(Into::into),
        model: row.opt_text(2)?.map(Into::into),
        assistant_text: row.text(3)?,
        sealed: row.int(4)? != journal::STREAMING,
        begun_at: time(row.int(5)?)?,
        calls: Vec::new(),
    };
    let pieces = journal::pieces(work, batch)?;
    let piece = |index: i64| pieces.iter().find(|(at, _)| *at == index).map_or("", |(_, text)| text);
    unfinished.assistant_text.push_str(piece(-1));
    let rows = work.sql.query(
        "SELECT call_index, call_id, tool_name, arguments, execution_id FROM batch_calls WHERE batch_id = ?1 \
         ORDER BY call_index",
        &[Value::Text(batch)],
    )?;
    for mut row in rows {
        let index = row.int(0)?;
        let (call_id, tool) = (row.text(1)?.into(), row.text(2)?.into());
        let arguments = row.text(3)? + piece(index);
        let execution_id = row.opt_parsed(4)?;
        let state = match execution_id {
            None => CallState::NeverStarted,
            Some(id) => state_of(work, tenant, id)?,
        };
        let arguments = Arguments::from_text(arguments);
        let changes = match execution_id {
            Some(id) => changes::find(work.sql, tenant, id)?,
            None => None,
        };
        unfinished.calls.push(UnfinishedCall { call_id, tool, arguments, execution_id, state, changes });
    }
    Ok(Some(unfinished))
}

fn state_of(work: &mut Work<'_>, tenant: &str, id: ExecutionId) -> Result<CallState, Fault> {
    let text = id.to_string();
    let row = work.sql.query_one(
        "SELECT attempt, attempted_at FROM intents WHERE execution_id = ?1 AND tenant = ?2",
        &[Value::Text(&text), Value::Text(tenant)],
    )?;
    if let Some(mut row) = row {
        let attempt = u32::try_from(row.int(0)?).unwrap_or(u32::MAX);
        return Ok(CallState::OutcomeUnknown { attempt, since: time(row.int(1)?)? });
    }
    let now = work.now();
    Ok(match history::run(work.sql, tenant, id, now)? {
        Some(run) => CallState::Finished(run.result),
        None => CallState::NeverStarted,
    })
}

/// One thing of a tenant that waits for a decision.
fn find(work: &mut Work<'_>, tenant: &str, which: UnfinishedId) -> Result<Option<Unfinished>, Fault> {
    sweep_all(work)?;
    projection::catch_up(work)?;
    match which {
        UnfinishedId::Call(id) => {
            let row = work.sql.query_one(
                &format!(
                    "{INTENT} WHERE execution_id = ?1 AND tenant = ?2 AND state = 1 AND batch_id IS NULL"
                ),
                &[Value::Text(&id.to_string()), Value::Text(tenant)],
            )?;
            let Some((id, one)) = row.map(single).transpose()? else { return Ok(None) };
            with_changes(work, tenant, id, one).map(Some)
        }
        UnfinishedId::Batch(batch) => {
            let batch = batch.to_string();
            let row = work.sql.query_one(
                "SELECT instance_id FROM batches WHERE batch_id = ?1 AND tenant = ?2",
                &[Value::Text(&batch), Value::Text(tenant)],
            )?;
            let Some(instance) = row.map(|mut row| row.text(0)).transpose()? else { return Ok(None) };
            match instances::is_gone(work, &instance) {
                true => load_batch(work, tenant, &batch),
                false => Ok(None),
            }
        }
    }
}

/// Carries out a decision. `None` where there is nothing of that id to decide about.
pub(crate) fn recover(
    work: &mut Work<'_>,
    tenant: &str,
    which: UnfinishedId,
    how: Recovery,
) -> Result<Option<Vec<RecoveredCall>>, Fault> {
    let Some(unfinished) = find(work, tenant, which)? else { return Ok(None) };
    let now = work.now();
    let what = match which {
        UnfinishedId::Batch(batch) => {
            let batch = batch.to_string();
            let state = match how {
                Recovery::Resume => journal::RESUMED,
                Recovery::Discard => journal::DISCARDED,
            };
            work.sql.execute(
                "UPDATE batches SET state = ?2, closed_at = ?3 WHERE batch_id = ?1",
                &[Value::Text(&batch), Value::Int(state), Value::Int(now)],
            )?;
            let decided = Value::Int(journal::DECIDED);
            work.sql.execute(
                "UPDATE intents SET state = ?2 WHERE batch_id = ?1 AND state = 1",
                &[Value::Text(&batch), decided],
            )?;
            end_never_started(work, tenant, &unfinished, &batch)?;
            format!("batch {batch}")
        }
        UnfinishedId::Call(id) => {
            let id = id.to_string();
            work.sql.execute(
                "UPDATE intents SET state = ?2 WHERE execution_id = ?1 AND state = 1",
                &[Value::Text(&id), Value::Int(journal::DECIDED)],
            )?;
            format!("call {id}")
        }
    };
    let decision = match how {
        Recovery::Resume => "resume",
        Recovery::Discard => "discard",
    };
    let happening = Happening::Recovery {
        form: Happening::FORM,
        at: now,
        tenant: tenant.to_owned(),
        what,
        decision: decision.to_owned(),
    };
    work.append(&serde_json::to_string(&happening)?)?;
    Ok(Some(unfinished.calls.into_iter().map(|call| recovered(call, how)).collect()))
}

/// Each call has one end: those that never started get theirs now.
fn end_never_started(
    work: &mut Work<'_>,
    tenant: &str,
    unfinished: &Unfinished,
    batch: &str,
) -> Result<(), Fault> {
    let context = CallContext {
        session: unfinished.session.clone(),
        ..CallContext::new(tenant, Arc::clone(&unfinished.agent))
    };
    let context = Arc::new(context);
    for (call, index) in unfinished.calls.iter().zip(0..) {
        let (CallState::NeverStarted, Some(id)) = (&call.state, call.execution_id) else { continue };
        let ended = Ended {
            id,
            context: Arc::clone(&context),
            batch: (Some(batch.to_owned()), Some(index)),
            call_id: Arc::clone(&call.call_id),
            tool: Arc::clone(&call.tool),
            arguments: call.arguments.as_str().to_owned(),
            approval: None,
            attempts: 0,
            begun_at: unfinished.begun_at.as_microsecond(),
            code: ErrorCode::NotStarted,
            message: "Not started, because the process that was to run it was gone before".to_owned(),
            output: None,
        };
        ended.write(work)?;
    }
    Ok(())
}

fn recovered(call: UnfinishedCall, how: Recovery) -> RecoveredCall {
    let outcome_unknown = matches!(call.state, CallState::OutcomeUnknown { .. });
    let (text, is_error) = match (how, &call.state) {
        (Recovery::Discard, _) => (DISCARDED_AFTER_CRASH.to_owned(), true),
        (Recovery::Resume, CallState::Finished(Some(result))) => {
            (result.text().to_owned(), !result.is_success())
        }
        (
            Recovery::Resume,
            CallState::Finished(None) | CallState::NeverStarted | CallState::OutcomeUnknown { .. },
        ) => {
            // A conversation that goes on has to know what is in the files.
            let changes = call.changes.map(|step| format!(". {}", step.in_words())).unwrap_or_default();
            (format!("{MISSING_AFTER_CRASH}{changes}"), true)
        }
    };
    RecoveredCall { call_id: call.call_id, tool: call.tool, text, is_error, outcome_unknown }
}

/// A time as the database has it.
pub(crate) fn time(micros: i64) -> Result<Timestamp, Fault> {
    Timestamp::from_microsecond(micros)
        .map_err(|_| Fault::new(FaultKind::Corrupt, format!("{micros} is no time")))
}
