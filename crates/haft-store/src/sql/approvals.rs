//! Questions to people and confirmations given ahead of time, as tables.

use super::{
    recovery::time,
    value::{Fault, Row, Sql, Value},
    work::Work,
};
use crate::failpoint;
use haft_core::{
    ApprovalId, ApprovalRequest, Arguments, Asker, Channel, Decision, ExecutionId, UnknownChannel,
    port::{Answer, ApprovalFilter, ApprovalState, Intent, StoredApproval, StoredGrant, TakenAnswer},
};

const OPEN: i64 = 0;
const APPROVED: i64 = 1;
const DENIED: i64 = 2;
const EXPIRED: i64 = 3;
const USED: i64 = 4;
const EDITED: i64 = 5;

/// Uses an approval up, in the transaction that writes the intent: it allows one call, once.
pub(crate) fn use_up(
    work: &mut Work<'_>,
    intent: &Intent,
    approval: &ApprovalId,
    execution_id: &str,
) -> Result<(), Fault> {
    let at = Value::Int(intent.at.as_microsecond());
    let (approval, tenant) = (Value::Text(approval.as_str()), Value::Text(&intent.context.tenant));
    let execution = Value::Text(execution_id);
    let row = work.sql.query_one(
        "SELECT state, used_by, expires_at FROM approvals WHERE approval_id = ?1 AND tenant = ?2",
        &[approval, tenant],
    )?;
    let now = work.now();
    let Some(mut row) = row else {
        // Asked and answered face to face: from now on it is known, so that it cannot be used twice.
        return work
            .sql
            .execute(
                "INSERT INTO approvals (approval_id, tenant, state, execution_id, call_id, tool_name, summary, risk, \
                 reason, arguments, fingerprint, agent_id, user_id, session_id, asked_at, answered_at, used_at, used_by) \
                 VALUES (?1, ?2, 4, ?3, ?4, ?5, '', '', 'answered while the call waited', ?6, '', ?7, ?8, ?9, ?10, ?10, \
                 ?10, ?3)",
                &[
                    approval,
                    tenant,
                    execution,
                    Value::Text(&intent.call_id),
                    Value::Text(&intent.tool),
                    Value::Text(intent.arguments.as_str()),
                    Value::Text(&intent.context.agent),
                    Value::text(intent.context.user.as_deref()),
                    Value::text(intent.context.session.as_deref()),
                    at,
                ],
            )
            .map(drop);
    };
    let (state, by, expires_at) = (row.int(0)?, row.opt_text(1)?, row.opt_int(2)?);
    match (state, by) {
        // An answer that a call took in time is that call's; one that nobody took is over.
        (APPROVED, None) if expires_at.is_some_and(|end| end <= now) => {
            Err(Fault::refused("the approval has expired; ask again"))
        }
        // Taken by this very call, where it was asked through the list.
        (APPROVED, by) if by.as_deref().is_none_or(|by| by == execution_id) => work
            .sql
            .execute(
                "UPDATE approvals SET state = 4, used_at = ?3, used_by = ?4, answered_at = COALESCE(answered_at, ?3) \
                 WHERE approval_id = ?1 AND tenant = ?2",
                &[approval, tenant, at, execution],
            )
            .map(drop),
        // The next attempt of the same call.
        (USED, Some(by)) if by == execution_id => Ok(()),
        (USED | APPROVED, _) => Err(Fault::refused("the approval was used for another call; ask again")),
        (OPEN, _) => Err(Fault::refused("nobody has approved it yet; ask again")),
        _ => Err(Fault::refused("the approval was denied or has expired; ask again")),
    }
}

/// Puts a question on the list, and gives its id there. One about the same call that still waits, or whose answer no
/// call has taken, is the same question; but for those in `not`.
pub(crate) fn ask(
    work: &mut Work<'_>,
    tenant: &str,
    request: &ApprovalRequest,
    not: &[ApprovalId],
) -> Result<ApprovalId, Fault> {
    expire(work, tenant)?;
    if let Some(id) = same(work, tenant, request, not)? {
        return Ok(id);
    }
    // The id may be that of an earlier question that is over: then this is another one.
    let known = "SELECT 1 FROM approvals WHERE approval_id = ?1";
    let known = work.sql.query_one(known, &[Value::Text(request.id.as_str())])?;
    let id = if known.is_some() { ApprovalId::random() } else { request.id.clone() };
    insert(work, tenant, request, &id)?;
    Ok(id)
}

/// The question about the same call that is not over. Answered ones come first: their answer is for the first that
/// comes.
fn same(
    work: &mut Work<'_>,
    tenant: &str,
    request: &ApprovalRequest,
    not: &[ApprovalId],
) -> Result<Option<ApprovalId>, Fault> {
    let rows = work.sql.query(
        "SELECT approval_id FROM approvals WHERE tenant = ?1 AND fingerprint = ?2 AND state IN (0, 1, 2, 5) \
         AND used_by IS NULL ORDER BY CASE state WHEN 0 THEN 1 ELSE 0 END, asked_at, approval_id LIMIT 100",
        &[Value::Text(tenant), Value::Text(&request.fingerprint)],
    )?;
    for mut row in rows {
        let id = ApprovalId::from_text(row.text(0)?);
        if not.contains(&id) {
            continue;
        }
        // From now on it is this call that waits for it.
        work.sql.execute(
            "UPDATE approvals SET execution_id = ?3, call_id = ?4, batch_id = ?5, preview = ?6 \
             WHERE approval_id = ?1 AND tenant = ?2 AND state = 0",
            &[
                Value::Text(id.as_str()),
                Value::Text(tenant),
                Value::Text(&request.execution_id.to_string()),
                Value::Text(&request.call_id),
                Value::text(request.batch_id.map(|batch| batch.to_string()).as_deref()),
                Value::text(request.preview.as_deref()),
            ],
        )?;
        return Ok(Some(id));
    }
    Ok(None)
}

fn insert(
    work: &mut Work<'_>,
    tenant: &str,
    request: &ApprovalRequest,
    id: &ApprovalId,
) -> Result<(), Fault> {
    let now = work.now();
    let risk = serde_json::to_string(&request.risk)?;
    let footprint = serde_json::to_string(&request.footprint)?;
    let offers = serde_json::to_string(&request.offers)?;
    let detail = serde_json::to_string(&request.detail)?;
    let batch = request.batch_id.map(|batch| batch.to_string());
    work.sql
        .execute(
            "INSERT INTO approvals (approval_id, tenant, state, execution_id, call_id, tool_name, summary, risk, reason, \
             arguments, fingerprint, agent_id, user_id, session_id, asked_at, expires_at, preview, batch_id, footprint, \
             offers, replaces, detail) VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
             ?17, ?18, ?19, ?20, ?21)",
            &[
                Value::Text(id.as_str()),
                Value::Text(tenant),
                Value::Text(&request.execution_id.to_string()),
                Value::Text(&request.call_id),
                Value::Text(&request.tool),
                Value::Text(&request.summary),
                Value::Text(&risk),
                Value::Text(&request.reason),
                Value::Text(request.arguments.as_str()),
                Value::Text(&request.fingerprint),
                Value::Text(&request.asker.agent),
                Value::text(request.asker.user.as_deref()),
                Value::text(request.asker.session.as_deref()),
                Value::Int(now),
                Value::int(request.expires_at.map(|at| at.as_microsecond())),
                Value::text(request.preview.as_deref()),
                Value::text(batch.as_deref()),
                Value::Text(&footprint),
                Value::Text(&offers),
                Value::text(request.replaces.as_ref().map(ApprovalId::as_str)),
                Value::Text(&detail),
            ],
        )
        .map(drop)
}

/// Answers a question, once, and keeps the grant that the answer gives, in the same transaction; false where it is not
/// open (any more).
pub(crate) fn answer(
    work: &mut Work<'_>,
    tenant: &str,
    id: &ApprovalId,
    answer: &Answer,
    given: Option<&StoredGrant>,
) -> Result<bool, Fault> {
    let now = work.now();
    let (state, reason, edited) = match &answer.decision {
        Decision::Approve => (APPROVED, None, None),
        Decision::Deny { reason } => (DENIED, reason.as_deref(), None),
        Decision::Edit { arguments } => (EDITED, None, Some(arguments.as_str())),
        Decision::Expired => (EXPIRED, None, None),
        Decision::Unanswered => return Ok(false),
    };
    let changed = work.sql.execute(
        "UPDATE approvals SET state = ?3, answered_at = ?4, answered_by = ?5, answer_reason = ?6, answered_from = ?7, \
         edited = ?8 WHERE approval_id = ?1 AND tenant = ?2 AND state = 0 AND (expires_at IS NULL OR expires_at > ?4)",
        &[
            Value::Text(id.as_str()),
            Value::Text(tenant),
            Value::Int(state),
            Value::Int(now),
            Value::Text(&answer.by),
            Value::text(reason),
            Value::Text(answer.from.as_str()),
            Value::text(edited),
        ],
    )?;
    if changed != 1 {
        return Ok(false);
    }
    failpoint::hit("answer", "decided");
    if let Some(given) = given {
        grant(work, tenant, given)?;
    }
    Ok(true)
}

/// Whether there may be something to take: a look that changes nothing, for callers that look often.
pub(crate) fn is_open(sql: &mut dyn Sql, tenant: &str, id: &ApprovalId, now: i64) -> Result<bool, Fault> {
    let row = sql.query_one(
        "SELECT 1 FROM approvals WHERE approval_id = ?1 AND tenant = ?2 AND state = 0 \
         AND (expires_at IS NULL OR expires_at > ?3)",
        &[Value::Text(id.as_str()), Value::Text(tenant), Value::Int(now)],
    )?;
    Ok(row.is_some())
}

/// Takes an answer for one call. The first call that takes it has it.
pub(crate) fn take(
    work: &mut Work<'_>,
    tenant: &str,
    id: &ApprovalId,
    call: ExecutionId,
) -> Result<TakenAnswer, Fault> {
    expire(work, tenant)?;
    let (call, now) = (call.to_string(), work.now());
    let key = [Value::Text(id.as_str()), Value::Text(tenant)];
    work.sql.execute(
        "UPDATE approvals SET used_by = ?3, used_at = ?4 WHERE approval_id = ?1 AND tenant = ?2 \
         AND state IN (1, 2, 5) AND used_by IS NULL",
        &[key[0], key[1], Value::Text(&call), Value::Int(now)],
    )?;
    let row = work.sql.query_one(
        "SELECT state, used_by, answer_reason, edited, answered_by, answered_from FROM approvals \
         WHERE approval_id = ?1 AND tenant = ?2",
        &key,
    )?;
    let Some(mut row) = row else { return Ok(TakenAnswer::Gone) };
    let (state, by) = (row.int(0)?, row.opt_text(1)?);
    let decision = match state {
        OPEN => return Ok(TakenAnswer::Open),
        EXPIRED => return Ok(TakenAnswer::Expired),
        _ if by.as_deref() != Some(call.as_str()) => return Ok(TakenAnswer::Gone),
        DENIED => Decision::Deny { reason: row.opt_text(2)? },
        EDITED => Decision::Edit { arguments: Arguments::from_text(row.text(3)?) },
        _ => Decision::Approve,
    };
    let by = row.opt_text(4)?.unwrap_or_default();
    // An answer by a way that is not known is none: the call is denied.
    let from = row.opt_text(5)?.unwrap_or_default();
    let from = from.parse().map_err(|unknown: UnknownChannel| Fault::refused(unknown.to_string()))?;
    Ok(TakenAnswer::Answered(Answer { decision, by, from }))
}

const QUESTION: &str = "SELECT approval_id, execution_id, call_id, tool_name, summary, risk, reason, arguments, \
                        fingerprint, state, agent_id, asked_at, expires_at, answered_by, answer_reason, preview, user_id, \
                        session_id, batch_id, footprint, offers, replaces, edited, answered_from, answered_at, used_by, \
                        tenant, detail FROM approvals";

/// The questions of a tenant that the filter lets through: the newest, oldest first.
pub(crate) fn questions(
    work: &mut Work<'_>,
    tenant: &str,
    filter: &ApprovalFilter,
) -> Result<Vec<StoredApproval>, Fault> {
    expire(work, tenant)?;
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX).min(10_000);
    let rows = work.sql.query(
        // Typed, because a server cannot tell what an absent one would be.
        &format!(
            "{QUESTION} WHERE tenant = ?1 AND (?2 = -1 OR state = ?2) AND (?3 = '' OR tool_name = ?3) \
             AND (?4 = '' OR replaces = ?4) ORDER BY asked_at DESC, approval_id DESC LIMIT {limit}"
        ),
        &[
            Value::Text(tenant),
            Value::Int(filter.state.map_or(-1, number)),
            Value::Text(filter.tool.as_deref().unwrap_or_default()),
            Value::Text(filter.replaces.as_ref().map_or("", ApprovalId::as_str)),
        ],
    )?;
    rows.into_iter().rev().map(approval).collect()
}

/// One question of a tenant.
pub(crate) fn find(
    work: &mut Work<'_>,
    tenant: &str,
    id: &ApprovalId,
) -> Result<Option<StoredApproval>, Fault> {
    expire(work, tenant)?;
    let row = work.sql.query_one(
        &format!("{QUESTION} WHERE approval_id = ?1 AND tenant = ?2"),
        &[Value::Text(id.as_str()), Value::Text(tenant)],
    )?;
    row.map(approval).transpose()
}

/// What stayed open, or approved and unused, for too long. An answer that a call has taken is that call's.
fn expire(work: &mut Work<'_>, tenant: &str) -> Result<(), Fault> {
    let now = work.now();
    work.sql
        .execute(
            "UPDATE approvals SET state = 3 WHERE tenant = ?1 AND state IN (0, 1, 2, 5) AND used_by IS NULL \
             AND expires_at <= ?2",
            &[Value::Text(tenant), Value::Int(now)],
        )
        .map(drop)
}

fn number(state: ApprovalState) -> i64 {
    match state {
        ApprovalState::Open => OPEN,
        ApprovalState::Approved => APPROVED,
        ApprovalState::Denied => DENIED,
        ApprovalState::Expired => EXPIRED,
        ApprovalState::Used => USED,
        ApprovalState::Edited => EDITED,
    }
}

fn approval(mut row: Row) -> Result<StoredApproval, Fault> {
    // What was asked face to face has no risk on record.
    let risk = row.text(5)?;
    let risk = if risk.is_empty() { haft_core::Risk::High } else { serde_json::from_str(&risk)? };
    let footprint = row.opt_text(19)?.map(|text| serde_json::from_str(&text)).transpose()?;
    let offers = row.opt_text(20)?.map(|text| serde_json::from_str(&text)).transpose()?;
    let detail = row.opt_text(27)?.map(|text| serde_json::from_str(&text)).transpose()?;
    Ok(StoredApproval {
        request: ApprovalRequest {
            id: ApprovalId::from_text(row.text(0)?),
            execution_id: row.parsed(1)?,
            call_id: row.text(2)?.into(),
            tool: row.text(3)?.into(),
            summary: row.text(4)?,
            risk,
            reason: row.text(6)?,
            arguments: Arguments::from_text(row.text(7)?),
            preview: row.opt_text(15)?,
            fingerprint: row.text(8)?,
            detail: detail.unwrap_or_default(),
            asker: Asker {
                tenant: row.text(26)?.into(),
                agent: row.text(10)?.into(),
                user: row.opt_text(16)?.map(Into::into),
                session: row.opt_text(17)?.map(Into::into),
            },
            batch_id: row.opt_parsed(18)?,
            footprint: footprint.unwrap_or_default(),
            offers: offers.unwrap_or_default(),
            replaces: row.opt_text(21)?.map(ApprovalId::from_text),
            expires_at: row.opt_int(12)?.map(time).transpose()?,
        },
        state: match row.int(9)? {
            OPEN => ApprovalState::Open,
            APPROVED => ApprovalState::Approved,
            DENIED => ApprovalState::Denied,
            EXPIRED => ApprovalState::Expired,
            EDITED => ApprovalState::Edited,
            _ => ApprovalState::Used,
        },
        asked_at: time(row.int(11)?)?,
        answered_at: row.opt_int(24)?.map(time).transpose()?,
        answered_by: row.opt_text(13)?,
        // Another version may know more channels; the rest of the record can still be read.
        answered_from: row.opt_text(23)?.and_then(|name| name.parse().ok()),
        answer_reason: row.opt_text(14)?,
        edited: row.opt_text(22)?.map(Arguments::from_text),
        used_by: row.opt_parsed(25)?,
    })
}

/// Keeps a grant.
fn grant(work: &mut Work<'_>, tenant: &str, grant: &StoredGrant) -> Result<(), Fault> {
    work.sql
        .execute(
            "INSERT INTO grants (grant_id, tenant, tool_name, agent_id, user_id, session_id, covers, shown, granted_by, \
             granted_at, expires_at, granted_from) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            &[
                Value::Text(&grant.id),
                Value::Text(tenant),
                Value::Text(&grant.tool),
                Value::text(grant.agent.as_deref()),
                Value::text(grant.user.as_deref()),
                Value::text(grant.session.as_deref()),
                Value::Text(&grant.covers),
                Value::Text(&grant.shown),
                Value::Text(&grant.granted_by),
                Value::Int(grant.granted_at.as_microsecond()),
                Value::int(grant.expires_at.map(|at| at.as_microsecond())),
                Value::text(grant.granted_from.map(Channel::as_str)),
            ],
        )
        .map(drop)
}

/// Takes a grant back; false where there is none, or not any more.
pub(crate) fn revoke(work: &mut Work<'_>, tenant: &str, id: &str, by: &str) -> Result<bool, Fault> {
    let now = work.now();
    let changed = work.sql.execute(
        "UPDATE grants SET revoked_at = ?3, revoked_by = ?4 WHERE grant_id = ?1 AND tenant = ?2 AND revoked_at IS NULL",
        &[Value::Text(id), Value::Text(tenant), Value::Int(now), Value::Text(by)],
    )?;
    Ok(changed == 1)
}

/// The grants of a tenant that hold now, or all that there ever were.
pub(crate) fn grants(
    sql: &mut dyn Sql,
    tenant: &str,
    now: i64,
    all: bool,
) -> Result<Vec<StoredGrant>, Fault> {
    let rows = sql.query(
        "SELECT grant_id, tool_name, agent_id, user_id, session_id, covers, shown, granted_by, granted_at, expires_at, \
         revoked_at, granted_from FROM grants WHERE tenant = ?1 AND (?3 = 1 OR (revoked_at IS NULL AND (expires_at IS NULL OR \
         expires_at > ?2))) ORDER BY granted_at, grant_id",
        &[Value::Text(tenant), Value::Int(now), Value::Int(i64::from(all))],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(StoredGrant {
                id: row.text(0)?,
                tool: row.text(1)?,
                agent: row.opt_text(2)?,
                user: row.opt_text(3)?,
                session: row.opt_text(4)?,
                covers: row.text(5)?,
                shown: row.text(6)?,
                granted_by: row.text(7)?,
                granted_from: row.opt_text(11)?.and_then(|name| name.parse().ok()),
                granted_at: time(row.int(8)?)?,
                expires_at: row.opt_int(9)?.map(time).transpose()?,
                revoked_at: row.opt_int(10)?.map(time).transpose()?,
            })
        })
        .collect()
}
