//! Questions to people and confirmations given ahead of time, as tables.

use super::{
    recovery::time,
    value::{Fault, Row, Value},
    work::Work,
};
use haft_core::{ApprovalId, ApprovalRequest, CallContext, Decision, port::Intent};
use jiff::Timestamp;
use std::sync::Arc;

const OPEN: i64 = 0;
const APPROVED: i64 = 1;
const DENIED: i64 = 2;
const EXPIRED: i64 = 3;
const USED: i64 = 4;

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionState {
    /// Nobody has answered.
    Open,
    /// Yes, and the call has not started yet.
    Approved,
    /// No.
    Denied,
    /// It stayed open for too long.
    Expired,
    /// Yes, and the call was started.
    Used,
}

/// A question, as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What is asked.
    pub request: ApprovalRequest,
    /// Where it stands.
    pub state: QuestionState,
    /// The agent that wants to call.
    pub agent: Arc<str>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// Until when it can be answered.
    pub expires_at: Option<Timestamp>,
    /// Who answered.
    pub answered_by: Option<String>,
    /// In whose words.
    pub answer_reason: Option<String>,
}

/// A confirmation that a person gave ahead of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// By which it is revoked.
    pub id: String,
    /// The tool's canonical name.
    pub tool: String,
    /// Only for this agent.
    pub agent: Option<String>,
    /// Only for this user.
    pub user: Option<String>,
    /// Only in this session.
    pub session: Option<String>,
    /// What it covers, as a document that the guard understands.
    pub covers: String,
    /// What the person was shown.
    pub shown: String,
    /// Who gave it.
    pub granted_by: String,
    /// When.
    pub granted_at: Timestamp,
    /// Until when.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

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
        "SELECT state, used_by FROM approvals WHERE approval_id = ?1 AND tenant = ?2",
        &[approval, tenant],
    )?;
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
    match (row.int(0)?, row.opt_text(1)?) {
        // An open one was answered face to face after it had been put on the list.
        (OPEN | APPROVED, _) => work
            .sql
            .execute(
                "UPDATE approvals SET state = 4, used_at = ?3, used_by = ?4, answered_at = COALESCE(answered_at, ?3) \
                 WHERE approval_id = ?1 AND tenant = ?2",
                &[approval, tenant, at, execution],
            )
            .map(drop),
        // The next attempt of the same call.
        (USED, Some(by)) if by == execution_id => Ok(()),
        (USED, _) => Err(Fault::refused("the approval was used for another call; ask again")),
        _ => Err(Fault::refused("the approval was denied or has expired; ask again")),
    }
}

/// Puts a question on the list. The same id again changes nothing.
pub(crate) fn ask(
    work: &mut Work<'_>,
    context: &CallContext,
    request: &ApprovalRequest,
    expires_at: Option<i64>,
) -> Result<(), Fault> {
    let now = work.now();
    let risk = serde_json::to_string(&request.risk)?;
    work.sql
        .execute(
            "INSERT INTO approvals (approval_id, tenant, state, execution_id, call_id, tool_name, summary, risk, reason, \
             arguments, fingerprint, agent_id, user_id, session_id, asked_at, expires_at, preview) \
             VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) \
             ON CONFLICT (approval_id) DO NOTHING",
            &[
                Value::Text(request.id.as_str()),
                Value::Text(&context.tenant),
                Value::Text(&request.execution_id.to_string()),
                Value::Text(&request.call_id),
                Value::Text(&request.tool),
                Value::Text(&request.summary),
                Value::Text(&risk),
                Value::Text(&request.reason),
                Value::Text(request.arguments.as_str()),
                Value::Text(&request.fingerprint),
                Value::Text(&context.agent),
                Value::text(context.user.as_deref()),
                Value::text(context.session.as_deref()),
                Value::Int(now),
                Value::int(expires_at),
                Value::text(request.preview.as_deref()),
            ],
        )
        .map(drop)
}

/// Answers a question, once; false where it is not open (any more).
pub(crate) fn answer(
    work: &mut Work<'_>,
    tenant: &str,
    id: &ApprovalId,
    decision: &Decision,
    by: &str,
) -> Result<bool, Fault> {
    let now = work.now();
    let (state, reason) = match decision {
        Decision::Approve => (APPROVED, None),
        Decision::Deny { reason } => (DENIED, reason.as_deref()),
        Decision::Expired => (EXPIRED, None),
        Decision::Unanswered => return Ok(false),
    };
    let changed = work.sql.execute(
        "UPDATE approvals SET state = ?3, answered_at = ?4, answered_by = ?5, answer_reason = ?6 \
         WHERE approval_id = ?1 AND tenant = ?2 AND state = 0 AND (expires_at IS NULL OR expires_at > ?4)",
        &[
            Value::Text(id.as_str()),
            Value::Text(tenant),
            Value::Int(state),
            Value::Int(now),
            Value::Text(by),
            Value::text(reason),
        ],
    )?;
    Ok(changed == 1)
}

const QUESTION: &str = "SELECT approval_id, execution_id, call_id, tool_name, summary, risk, reason, arguments, \
                        fingerprint, state, agent_id, asked_at, expires_at, answered_by, answer_reason, preview FROM approvals";

/// The questions of a tenant in that state, oldest first.
pub(crate) fn questions(
    work: &mut Work<'_>,
    tenant: &str,
    state: QuestionState,
) -> Result<Vec<Question>, Fault> {
    expire(work, tenant)?;
    let rows = work.sql.query(
        &format!("{QUESTION} WHERE tenant = ?1 AND state = ?2 ORDER BY asked_at, approval_id LIMIT 1000"),
        &[Value::Text(tenant), Value::Int(number(state))],
    )?;
    rows.into_iter().map(question).collect()
}

/// One question of a tenant.
pub(crate) fn find(work: &mut Work<'_>, tenant: &str, id: &ApprovalId) -> Result<Option<Question>, Fault> {
    expire(work, tenant)?;
    let row = work.sql.query_one(
        &format!("{QUESTION} WHERE approval_id = ?1 AND tenant = ?2"),
        &[Value::Text(id.as_str()), Value::Text(tenant)],
    )?;
    row.map(question).transpose()
}

fn expire(work: &mut Work<'_>, tenant: &str) -> Result<(), Fault> {
    let now = work.now();
    work.sql
        .execute(
            "UPDATE approvals SET state = 3 WHERE tenant = ?1 AND state IN (0, 1) AND expires_at <= ?2",
            &[Value::Text(tenant), Value::Int(now)],
        )
        .map(drop)
}

fn number(state: QuestionState) -> i64 {
    match state {
        QuestionState::Open => OPEN,
        QuestionState::Approved => APPROVED,
        QuestionState::Denied => DENIED,
        QuestionState::Expired => EXPIRED,
        QuestionState::Used => USED,
    }
}

fn question(mut row: Row) -> Result<Question, Fault> {
    // What was asked face to face has no risk on record.
    let risk = row.text(5)?;
    let risk = if risk.is_empty() { haft_core::Risk::High } else { serde_json::from_str(&risk)? };
    Ok(Question {
        request: ApprovalRequest {
            id: ApprovalId::from_text(row.text(0)?),
            execution_id: row.parsed(1)?,
            call_id: row.text(2)?.into(),
            tool: row.text(3)?.into(),
            summary: row.text(4)?,
            risk,
            reason: row.text(6)?,
            arguments: haft_core::Arguments::from_text(row.text(7)?),
            preview: row.opt_text(15)?,
            fingerprint: row.text(8)?,
        },
        state: match row.int(9)? {
            OPEN => QuestionState::Open,
            APPROVED => QuestionState::Approved,
            DENIED => QuestionState::Denied,
            EXPIRED => QuestionState::Expired,
            _ => QuestionState::Used,
        },
        agent: row.text(10)?.into(),
        asked_at: time(row.int(11)?)?,
        expires_at: row.opt_int(12)?.map(time).transpose()?,
        answered_by: row.opt_text(13)?,
        answer_reason: row.opt_text(14)?,
    })
}

/// Keeps a grant.
pub(crate) fn grant(work: &mut Work<'_>, tenant: &str, grant: &Grant) -> Result<(), Fault> {
    work.sql
        .execute(
            "INSERT INTO grants (grant_id, tenant, tool_name, agent_id, user_id, session_id, covers, shown, granted_by, \
             granted_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
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

/// The grants of a tenant that hold now.
pub(crate) fn grants(work: &mut Work<'_>, tenant: &str) -> Result<Vec<Grant>, Fault> {
    let now = work.now();
    let rows = work.sql.query(
        "SELECT grant_id, tool_name, agent_id, user_id, session_id, covers, shown, granted_by, granted_at, expires_at, \
         revoked_at FROM grants WHERE tenant = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2) \
         ORDER BY granted_at, grant_id",
        &[Value::Text(tenant), Value::Int(now)],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(Grant {
                id: row.text(0)?,
                tool: row.text(1)?,
                agent: row.opt_text(2)?,
                user: row.opt_text(3)?,
                session: row.opt_text(4)?,
                covers: row.text(5)?,
                shown: row.text(6)?,
                granted_by: row.text(7)?,
                granted_at: time(row.int(8)?)?,
                expires_at: row.opt_int(9)?.map(time).transpose()?,
                revoked_at: row.opt_int(10)?.map(time).transpose()?,
            })
        })
        .collect()
}
