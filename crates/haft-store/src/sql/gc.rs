//! Letting go of what is too old or too much. Never of the audit: that is archived.

use super::{
    outputs,
    value::{Fault, Value},
    work::Work,
};
use std::time::Duration;

/// What was let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Results with their arguments.
    pub results: u64,
    /// Outputs.
    pub outputs: u64,
    /// Settled idempotency keys.
    pub keys: u64,
    /// Batches that were over, and calls that were decided about.
    pub batches: u64,
    /// Answered approvals.
    pub approvals: u64,
}

pub(crate) fn gc(work: &mut Work<'_>) -> Result<Gone, Fault> {
    let now = work.now();
    let keep = work.options.keep.clone();
    let before = |age: Duration| now.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
    let mut gone = Gone::default();
    if let Some(age) = keep.results {
        let before = Value::Int(before(age));
        gone.results = work.sql.execute("DELETE FROM call_results WHERE kept_at < ?1", &[before])?;
    }
    // Whatever the configuration says: no longer than the licence of the caller included.
    gone.results += work.sql.execute("DELETE FROM call_results WHERE keep_until < ?1", &[Value::Int(now)])?;
    if let Some(age) = keep.outputs {
        gone.outputs = outputs::expire(work, before(age))?;
    }
    // Of calls that have ended otherwise than they should have.
    work.sql.execute(
        "DELETE FROM running_output WHERE execution_id NOT IN (SELECT execution_id FROM intents WHERE state = 0)",
        &[],
    )?;
    gone.outputs += outputs::shrink(work, keep.output_bytes, None)?;
    if let Some(age) = keep.keys {
        // Those in flight and those of which the outcome is unknown stay.
        let before = Value::Int(before(age));
        gone.keys = work
            .sql
            .execute("DELETE FROM idempotency_keys WHERE state IN (1, 2) AND changed_at < ?1", &[before])?;
    }
    if let Some(age) = keep.batches {
        let before_batches = before(age);
        let before = Value::Int(before_batches);
        work.sql.execute(
            "DELETE FROM batch_calls WHERE batch_id IN (SELECT batch_id FROM batches WHERE state >= 2 \
             AND closed_at < ?1)",
            &[before],
        )?;
        gone.batches =
            work.sql.execute("DELETE FROM batches WHERE state >= 2 AND closed_at < ?1", &[before])?;
        gone.batches +=
            work.sql.execute("DELETE FROM intents WHERE state = 2 AND begun_at < ?1", &[before])?;
        gone.approvals =
            work.sql.execute("DELETE FROM approvals WHERE state >= 2 AND asked_at < ?1", &[before])?;
        super::changes::expire(work, before_batches)?;
        work.sql.execute("DELETE FROM instances WHERE ended_at < ?1", &[before])?;
    }
    super::tasks::sweep(work)?;
    Ok(gone)
}
