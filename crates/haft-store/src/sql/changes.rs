//! How far calls came with what their commands wrote apart from the files.
//!
//! A row is there from the moment the command may run until the outcome of its call says that it is settled. What is
//! kept apart, and what a crash cut, keeps its row: somebody may still apply it.

use super::{
    value::{Fault, FaultKind, Sql, Value},
    work::Work,
};
use haft_core::{ChangesState, ExecutionId, SettledChanges, port::ChangesStep};

/// Writes down how far a call came.
pub(crate) fn step(
    work: &mut Work<'_>,
    id: ExecutionId,
    tenant: &str,
    step: ChangesStep,
    at: i64,
) -> Result<(), Fault> {
    let text = id.to_string();
    // What was applied stays applied, whatever a late word says.
    let written = work.sql.execute(
        "INSERT INTO change_steps (execution_id, tenant, instance_id, step, changed_at) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (execution_id) DO UPDATE SET instance_id = excluded.instance_id, step = excluded.step, \
         changed_at = excluded.changed_at \
         WHERE change_steps.tenant = excluded.tenant AND change_steps.step <> 'applied'",
        &[
            Value::Text(&text),
            Value::Text(tenant),
            Value::Text(work.instance),
            Value::Text(step.as_str()),
            Value::Int(at),
        ],
    )?;
    if written > 0 || find(work.sql, tenant, id)?.is_some_and(|before| before == step) {
        return Ok(());
    }
    Err(Fault::refused(format!("what {id} changed was applied before, or is not of this tenant")))
}

/// The last step of a call.
pub(crate) fn find(sql: &mut dyn Sql, tenant: &str, id: ExecutionId) -> Result<Option<ChangesStep>, Fault> {
    let row = sql.query_one(
        "SELECT step FROM change_steps WHERE execution_id = ?1 AND tenant = ?2",
        &[Value::Text(&id.to_string()), Value::Text(tenant)],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let word = row.text(0)?;
    let unknown = || Fault::new(FaultKind::Corrupt, format!("`{word}` is no step of changes"));
    ChangesStep::of(&word).ok_or_else(unknown).map(Some)
}

/// The outcome of a call says what became of its changes: from then on its record does. What is kept keeps its row.
pub(crate) fn ended(work: &mut Work<'_>, id: &str, settled: &SettledChanges) -> Result<(), Fault> {
    if settled.state == ChangesState::Kept {
        return Ok(());
    }
    work.sql.execute("DELETE FROM change_steps WHERE execution_id = ?1", &[Value::Text(id)]).map(drop)
}

/// Lets go of what is settled for that long.
pub(crate) fn expire(work: &mut Work<'_>, before: i64) -> Result<(), Fault> {
    work.sql
        .execute(
            "DELETE FROM change_steps WHERE changed_at < ?1 AND step <> 'applying' AND execution_id NOT IN \
             (SELECT execution_id FROM intents WHERE state < 2)",
            &[Value::Int(before)],
        )
        .map(drop)
}
