//! Idempotency keys: the same key means the same call, over restarts, too.

use super::{
    chain, instances, recovery,
    value::{Fault, Value},
    work::Work,
};
use haft_core::{
    ApprovalId,
    port::{Claim, ClaimRequest, Settlement},
};
use std::sync::Arc;

const IN_FLIGHT: i64 = 0;
const SETTLED: i64 = 1;
const WAITING: i64 = 2;
const UNKNOWN: i64 = 3;

/// Takes a key, or says who has it.
pub(crate) fn claim(work: &mut Work<'_>, request: &ClaimRequest) -> Result<Claim, Fault> {
    if let Some(claim) = look(work, request)? {
        return Ok(claim);
    }
    // The process that had it is gone, and what it left is known now.
    look(work, request)?
        .ok_or_else(|| Fault::refused("the idempotency key could not be taken; send the call again"))
}

/// `None` where the owner was gone and has been looked after: then it is worth looking again.
fn look(work: &mut Work<'_>, request: &ClaimRequest) -> Result<Option<Claim>, Fault> {
    let digest = chain::digest(request.arguments.as_str().as_bytes());
    let id = request.execution_id.to_string();
    let now = work.now();
    let [tenant, principal, tool, key] = names(request);
    let row = work.sql.query_one(
        "SELECT arguments_digest, execution_id, instance_id, state, approval_id, result FROM idempotency_keys \
         WHERE tenant = ?1 AND principal = ?2 AND tool_name = ?3 AND idempotency_key = ?4",
        &[tenant, principal, tool, key],
    )?;
    let Some(mut row) = row else {
        work.sql.execute(
            "INSERT INTO idempotency_keys (tenant, principal, tool_name, idempotency_key, arguments_digest, \
             execution_id, instance_id, state, changed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8)",
            &[
                tenant,
                principal,
                tool,
                key,
                Value::Blob(&digest),
                Value::Text(&id),
                Value::Text(work.instance),
                Value::Int(now),
            ],
        )?;
        return Ok(Some(Claim::Fresh));
    };
    if row.blob(0)? != digest {
        return Ok(Some(Claim::Conflict));
    }
    let owner = row.parsed(1)?;
    let instance = row.text(2)?;
    Ok(Some(match row.int(3)? {
        IN_FLIGHT if instances::is_gone(work, &instance) => {
            recovery::sweep(work, &instance)?;
            return Ok(None);
        }
        IN_FLIGHT => Claim::InFlight(owner),
        SETTLED => Claim::Settled(Arc::new(serde_json::from_slice(&row.blob(5)?)?)),
        WAITING => {
            let approval = ApprovalId::from_text(row.text(4)?);
            work.sql.execute(
                "UPDATE idempotency_keys SET state = 0, execution_id = ?5, instance_id = ?6, changed_at = ?7 \
                 WHERE tenant = ?1 AND principal = ?2 AND tool_name = ?3 AND idempotency_key = ?4",
                &[
                    tenant,
                    principal,
                    tool,
                    key,
                    Value::Text(&id),
                    Value::Text(work.instance),
                    Value::Int(now),
                ],
            )?;
            Claim::Waiting(approval)
        }
        _ => Claim::OutcomeUnknown(owner),
    }))
}

fn names(request: &ClaimRequest) -> [Value<'_>; 4] {
    [&request.tenant, &request.principal, &request.tool, &request.key].map(|name| Value::Text(name))
}

/// What the owner of a key leaves behind. From anybody else it does not count.
pub(crate) fn settle(work: &mut Work<'_>, request: &ClaimRequest, left: &Settlement) -> Result<(), Fault> {
    let [tenant, principal, tool, key] = names(request);
    let owner = request.execution_id.to_string();
    let owner = Value::Text(&owner);
    let now = Value::Int(work.now());
    let result;
    let (state, approval, result) = match left {
        Settlement::Released => {
            return work
                .sql
                .execute(
                    "DELETE FROM idempotency_keys WHERE tenant = ?1 AND principal = ?2 AND tool_name = ?3 \
                     AND idempotency_key = ?4 AND execution_id = ?5 AND state = 0",
                    &[tenant, principal, tool, key, owner],
                )
                .map(drop);
        }
        Settlement::Waiting(approval) => (WAITING, Value::Text(approval.as_str()), Value::Null),
        Settlement::Result(settled) => {
            result = serde_json::to_vec(&**settled)?;
            (SETTLED, Value::Null, Value::Blob(&result))
        }
    };
    work.sql
        .execute(
            "UPDATE idempotency_keys SET state = ?6, approval_id = ?7, result = ?8, changed_at = ?9 \
             WHERE tenant = ?1 AND principal = ?2 AND tool_name = ?3 AND idempotency_key = ?4 \
             AND execution_id = ?5 AND state IN (0, 3)",
            &[tenant, principal, tool, key, owner, Value::Int(state), approval, result, now],
        )
        .map(drop)
}

/// A call was started and nobody knows how it ended: its key says so from now on.
pub(crate) fn unknown(work: &mut Work<'_>, instance: &str, execution_id: &str) -> Result<(), Fault> {
    let now = Value::Int(work.now());
    work.sql
        .execute(
            "UPDATE idempotency_keys SET state = ?2, changed_at = ?3 WHERE execution_id = ?1 AND state = 0 \
             AND instance_id = ?4",
            &[Value::Text(execution_id), Value::Int(UNKNOWN), now, Value::Text(instance)],
        )
        .map(drop)
}

/// Keys of a process that is gone, whose calls were never started: a repetition is a new call.
pub(crate) fn release(work: &mut Work<'_>, instance: &str) -> Result<(), Fault> {
    work.sql
        .execute(
            "DELETE FROM idempotency_keys WHERE instance_id = ?1 AND state = 0",
            &[Value::Text(instance)],
        )
        .map(drop)
}
