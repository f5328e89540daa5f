//! Calls that go on without their callers, as a table.

use super::{
    instances, recovery,
    recovery::{Ended, time},
    value::{Fault, FaultKind, Row, Value},
    work::Work,
};
use haft_core::{
    ApprovalId, Arguments, CallContext, ErrorCode, ExecutionId, Status, Task, TaskId, TaskKey, TaskPage,
    TaskProgress, TaskQuery, TaskState, ToolCall, ToolResult,
    port::{ClaimedTask, NewTask, TaskCancel},
};
use std::{sync::Arc, time::Duration};

const PENDING: i64 = 0;
const RUNNING: i64 = 1;
const WAITING: i64 = 2;
const COMPLETED: i64 = 3;
const FAILED: i64 = 4;
const CANCELLED: i64 = 5;

fn number(state: TaskState) -> i64 {
    match state {
        TaskState::Pending => PENDING,
        TaskState::Running => RUNNING,
        TaskState::AwaitingApproval => WAITING,
        TaskState::Completed => COMPLETED,
        TaskState::Failed => FAILED,
        TaskState::Cancelled => CANCELLED,
    }
}

fn state(number: i64) -> Result<TaskState, Fault> {
    TaskState::ALL
        .into_iter()
        .find(|state| self::number(*state) == number)
        .ok_or_else(|| Fault::new(FaultKind::Corrupt, format!("a task is in the state {number}")))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Takes a task.
pub(crate) fn submit(work: &mut Work<'_>, task: &NewTask) -> Result<(), Fault> {
    let context = &task.context;
    let place = task.place.as_ref().map(ToString::to_string);
    work.sql
        .execute(
            "INSERT INTO tasks (task_id, tenant, runner, instance_id, state, execution_id, call_id, tool_name, agent_id, \
             user_id, session_id, context, call_json, options_json, place_json, created_at, updated_at, start_by, ttl) \
             VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15, ?16, ?17) \
             ON CONFLICT (task_id) DO NOTHING",
            &[
                Value::Text(task.id.as_str()),
                Value::Text(&context.tenant),
                Value::Text(&task.runner),
                Value::text(task.is_mine.then_some(work.instance)),
                Value::Text(&task.execution_id.to_string()),
                Value::Text(&task.call.id),
                Value::Text(&task.call.name),
                Value::Text(&context.agent),
                Value::text(context.user.as_deref()),
                Value::text(context.session.as_deref()),
                // As it is: what it may do after a restart is decided by this.
                Value::Text(&serde_json::to_string(&**context)?),
                Value::Text(&serde_json::to_string(&task.call)?),
                Value::Text(&serde_json::to_string(&task.options)?),
                Value::text(place.as_deref()),
                Value::Int(task.created_at.as_microsecond()),
                Value::int(task.start_by.map(|by| by.as_microsecond())),
                Value::Int(micros(task.ttl)),
            ],
        )
        .map(drop)
}

/// Takes over tasks that nobody runs.
pub(crate) fn take_over(work: &mut Work<'_>, runner: &str, most: usize) -> Result<Vec<ClaimedTask>, Fault> {
    recovery::sweep_all(work)?;
    end_late(work)?;
    let now = work.now();
    // A question that has run out is answered, too: by nobody. One about changed arguments is about the call with them.
    let rows = work.sql.query(
        &format!(
            "SELECT t.task_id, t.execution_id, t.context, t.call_json, t.options_json, t.place_json, t.approval_id, \
             t.state, b.edited FROM tasks t \
             LEFT JOIN approvals a ON a.approval_id = t.approval_id AND a.tenant = t.tenant \
             LEFT JOIN approvals b ON b.approval_id = a.replaces AND b.tenant = t.tenant \
             WHERE t.runner = ?1 AND t.instance_id IS NULL AND (t.state = 0 OR (t.state = 2 AND \
             (a.state IS NULL OR a.state <> 0 OR a.expires_at <= ?2))) ORDER BY t.created_at, t.task_id LIMIT {most}"
        ),
        &[Value::Text(runner), Value::Int(now)],
    )?;
    let mut claimed = Vec::with_capacity(rows.len());
    for mut row in rows {
        let id = row.text(0)?;
        let first: ExecutionId = row.parsed(1)?;
        let again = row.int(7)? == WAITING;
        let document =
            |text: Option<String>| text.ok_or_else(|| Fault::new(FaultKind::Corrupt, "a task has no call"));
        let mut call: ToolCall = serde_json::from_str(&document(row.opt_text(3)?)?)?;
        if let Some(edited) = row.opt_text(8)? {
            call.arguments = Arguments::from_text(edited);
        }
        claimed.push(ClaimedTask {
            // Each execution has an id of its own.
            execution_id: if again { ExecutionId::at(time(now)?) } else { first },
            context: Arc::new(serde_json::from_str(&row.text(2)?)?),
            call,
            options: serde_json::from_str(&document(row.opt_text(4)?)?)?,
            place: row.opt_text(5)?.map(|place| serde_json::from_str(&place)).transpose()?,
            approval: row.opt_text(6)?.map(ApprovalId::from_text),
            id: TaskId::from_text(id.clone()),
        });
        work.sql.execute(
            "UPDATE tasks SET instance_id = ?2, state = 0, updated_at = ?3 WHERE task_id = ?1",
            &[Value::Text(&id), Value::Text(work.instance), Value::Int(now)],
        )?;
    }
    Ok(claimed)
}

/// It begins. False where somebody ended it meanwhile.
pub(crate) fn begin(work: &mut Work<'_>, id: &TaskId, execution: ExecutionId) -> Result<bool, Fault> {
    let id = id.as_str();
    let row = work.sql.query_one(
        "SELECT cancel_requested FROM tasks WHERE task_id = ?1 AND instance_id = ?2 AND state = 0",
        &[Value::Text(id), Value::Text(work.instance)],
    )?;
    let Some(mut row) = row else { return Ok(false) };
    if row.int(0)? != 0 {
        end_at_once(work, id, ErrorCode::Cancelled, "Cancelled before it began")?;
        return Ok(false);
    }
    let now = work.now();
    work.sql.execute(
        "UPDATE tasks SET state = 1, execution_id = ?2, updated_at = ?3, percent = NULL, message = NULL, \
         output_bytes = 0, output_tail = '' WHERE task_id = ?1",
        &[Value::Text(id), Value::Text(&execution.to_string()), Value::Int(now)],
    )?;
    Ok(true)
}

/// How far tasks of this process are; gives those that somebody wants to end.
pub(crate) fn note(work: &mut Work<'_>, notes: &[(TaskId, TaskProgress)]) -> Result<Vec<TaskId>, Fault> {
    let now = work.now();
    for (id, progress) in notes {
        work.sql.execute(
            "UPDATE tasks SET percent = ?2, message = ?3, output_bytes = ?4, output_tail = ?5, updated_at = ?6 \
             WHERE task_id = ?1 AND (state = 1 AND instance_id = ?7 OR state > 2 AND instance_id IS NULL)",
            &[
                Value::Text(id.as_str()),
                Value::int(progress.percent.map(i64::from)),
                Value::text(progress.message.as_deref()),
                Value::Int(i64::try_from(progress.output_bytes).unwrap_or(i64::MAX)),
                Value::Text(&progress.output_tail),
                Value::Int(now),
                Value::Text(work.instance),
            ],
        )?;
    }
    let rows = work.sql.query(
        "SELECT task_id FROM tasks WHERE instance_id = ?1 AND state < 2 AND cancel_requested = 1",
        &[Value::Text(work.instance)],
    )?;
    rows.into_iter().map(|mut row| row.text(0).map(TaskId::from_text)).collect()
}

/// A person is asked about a task while it runs, or has answered.
pub(crate) fn asks(work: &mut Work<'_>, id: &TaskId, approval: Option<&str>) -> Result<(), Fault> {
    work.sql
        .execute(
            "UPDATE tasks SET approval_id = ?2 WHERE task_id = ?1 AND state = 1 AND instance_id = ?3",
            &[Value::Text(id.as_str()), Value::text(approval), Value::Text(work.instance)],
        )
        .map(drop)
}

/// The execution of a task has ended: the task ends with it, unless there is a question that can still be answered.
pub(crate) fn ended(work: &mut Work<'_>, id: &TaskId, result: &ToolResult) -> Result<(), Fault> {
    let now = work.now();
    if let Some(approval) = open_approval(work, result)? {
        let waits = work.sql.execute(
            "UPDATE tasks SET state = 2, instance_id = NULL, approval_id = ?2, updated_at = ?3 \
             WHERE task_id = ?1 AND state < 2 AND cancel_requested = 0",
            &[Value::Text(id.as_str()), Value::Text(&approval), Value::Int(now)],
        )?;
        if waits > 0 {
            return Ok(());
        }
    }
    finish(work, id.as_str(), result)
}

/// The question that an execution ended with, where it is open.
fn open_approval(work: &mut Work<'_>, result: &ToolResult) -> Result<Option<String>, Fault> {
    if result.status != Status::RequiresConfirmation {
        return Ok(None);
    }
    let asked = || result.error.as_ref()?.data.as_ref()?.get("approvalId")?.as_str().map(str::to_owned);
    let Some(approval) = asked() else { return Ok(None) };
    let now = Value::Int(work.now());
    let row = work.sql.query_one(
        "SELECT 1 FROM approvals WHERE approval_id = ?1 AND state IN (0, 1) AND (expires_at IS NULL OR expires_at > ?2)",
        &[Value::Text(&approval), now],
    )?;
    Ok(row.map(|_| approval))
}

/// Writes the end of a task that is not over. Its call is let go.
fn finish(work: &mut Work<'_>, id: &str, result: &ToolResult) -> Result<(), Fault> {
    let now = work.now();
    let document = serde_json::to_vec(result)?;
    work.sql
        .execute(
            "UPDATE tasks SET state = ?2, instance_id = NULL, finished_at = ?3, updated_at = ?3, expires_at = ?3 + ttl, \
             result = ?4, call_json = NULL, options_json = NULL, place_json = NULL WHERE task_id = ?1 AND state < 3",
            &[
                Value::Text(id),
                Value::Int(number(TaskState::of(result.status))),
                Value::Int(now),
                Value::Blob(&document),
            ],
        )
        .map(drop)
}

/// A call whose outcome is unknown was of a task, perhaps: of its own tenant, and of the process that is gone.
pub(crate) fn unknown(
    work: &mut Work<'_>,
    instance: &str,
    tenant: &str,
    execution: &str,
    result: &ToolResult,
) -> Result<(), Fault> {
    let row = work.sql.query_one(
        "SELECT task_id FROM tasks WHERE execution_id = ?1 AND tenant = ?2 AND instance_id = ?3 AND state = 1",
        &[Value::Text(execution), Value::Text(tenant), Value::Text(instance)],
    )?;
    match row.map(|mut row| row.text(0)).transpose()? {
        Some(id) => finish(work, &id, result),
        None => Ok(()),
    }
}

/// Tasks of a process that is gone, which had no effect yet: they say so.
pub(crate) fn interrupted(work: &mut Work<'_>, instance: &str) -> Result<(), Fault> {
    // Whose question is open, or was answered with yes and not used: they go on.
    work.sql.execute(
        "UPDATE tasks SET state = 2, instance_id = NULL WHERE instance_id = ?1 AND state < 2 AND cancel_requested = 0 \
         AND EXISTS (SELECT 1 FROM approvals a WHERE a.approval_id = tasks.approval_id AND a.tenant = tasks.tenant \
         AND a.state IN (0, 1))",
        &[Value::Text(instance)],
    )?;
    let rows = work.sql.query(
        "SELECT task_id, state FROM tasks WHERE instance_id = ?1 AND state < 2 ORDER BY created_at, task_id",
        &[Value::Text(instance)],
    )?;
    for mut row in rows {
        let (id, state) = (row.text(0)?, row.int(1)?);
        let text = match state {
            PENDING => {
                "Never started: the process that was to run it was gone before it began. Send it again"
            }
            _ => {
                "Interrupted: the process that ran it was gone before it ended. It had no side effect of its own. \
                 Send it again"
            }
        };
        end_at_once(work, &id, ErrorCode::NotStarted, text)?;
    }
    Ok(())
}

/// Tasks that waited too long for somebody to begin them.
fn end_late(work: &mut Work<'_>) -> Result<(), Fault> {
    let now = Value::Int(work.now());
    let rows = work.sql.query(
        "SELECT task_id FROM tasks WHERE state = 0 AND instance_id IS NULL AND start_by <= ?1 ORDER BY created_at",
        &[now],
    )?;
    for mut row in rows {
        let id = row.text(0)?;
        let text = "Never started: nobody was there to run it in time. Send it again";
        end_at_once(work, &id, ErrorCode::NotStarted, text)?;
    }
    Ok(())
}

/// How many are not over.
pub(crate) fn open(work: &mut Work<'_>, runner: &str) -> Result<u64, Fault> {
    let row = work
        .sql
        .query_one("SELECT COUNT(*) FROM tasks WHERE runner = ?1 AND state < 3", &[Value::Text(runner)])?;
    Ok(row.map_or(Ok(0), |mut row| row.int(0))?.try_into().unwrap_or(0))
}

/// Ends a task that does not run, with a record.
pub(crate) fn end_at_once(work: &mut Work<'_>, id: &str, code: ErrorCode, text: &str) -> Result<(), Fault> {
    let row = work.sql.query_one(
        "SELECT execution_id, context, call_id, tool_name, created_at, approval_id, call_json FROM tasks \
         WHERE task_id = ?1 AND state < 3",
        &[Value::Text(id)],
    )?;
    let Some(mut row) = row else { return Ok(()) };
    let context: CallContext = serde_json::from_str(&row.text(1)?)?;
    let begun_at = row.int(4)?;
    let ended = Ended {
        id: row.parsed(0)?,
        context: Arc::new(context),
        batch: (None, None),
        call_id: row.text(2)?.into(),
        tool: row.text(3)?.into(),
        // What was sent may hold secrets, which only the engine that would have run it knows.
        arguments: String::new(),
        approval: row.opt_text(5)?,
        attempts: 0,
        begun_at,
        code,
        message: text.to_owned(),
        output: None,
    };
    let result = ended.write(work)?;
    finish(work, id, &result)
}

/// Wants a task to end.
pub(crate) fn cancel(work: &mut Work<'_>, tenant: &str, id: &TaskId) -> Result<TaskCancel, Fault> {
    recovery::sweep_all(work)?;
    let name = id.as_str();
    let now = work.now();
    let row = work.sql.query_one(
        "SELECT state, instance_id, approval_id FROM tasks WHERE task_id = ?1 AND tenant = ?2 \
         AND (expires_at IS NULL OR expires_at > ?3)",
        &[Value::Text(name), Value::Text(tenant), Value::Int(now)],
    )?;
    let Some(mut row) = row else { return Ok(TaskCancel::Unknown) };
    let (state, instance, approval) = (row.int(0)?, row.opt_text(1)?, row.opt_text(2)?);
    if state >= COMPLETED {
        return Ok(TaskCancel::Over);
    }
    if instance.is_some() {
        work.sql.execute(
            "UPDATE tasks SET cancel_requested = 1, updated_at = ?2 WHERE task_id = ?1",
            &[Value::Text(name), Value::Int(now)],
        )?;
        return Ok(TaskCancel::Asked);
    }
    if let Some(approval) = approval {
        // Nobody needs to answer any more.
        work.sql.execute(
            "UPDATE approvals SET state = 3 WHERE approval_id = ?1 AND tenant = ?2 AND state IN (0, 1)",
            &[Value::Text(&approval), Value::Text(tenant)],
        )?;
    }
    end_at_once(work, name, ErrorCode::Cancelled, ErrorCode::Cancelled.model_text())?;
    Ok(TaskCancel::Ended)
}

/// Forgets what was kept long enough.
pub(crate) fn sweep(work: &mut Work<'_>) -> Result<u64, Fault> {
    end_late(work)?;
    let now = Value::Int(work.now());
    work.sql.execute("DELETE FROM tasks WHERE state >= 3 AND expires_at <= ?1", &[now])
}

const TASK: &str = "SELECT task_id, state, tool_name, call_id, execution_id, agent_id, user_id, session_id, created_at, \
                    updated_at, finished_at, ttl, expires_at, percent, message, output_bytes, output_tail, approval_id, \
                    cancel_requested, instance_id";

/// One task of a tenant.
pub(crate) fn find(work: &mut Work<'_>, tenant: &str, id: &TaskId) -> Result<Option<Task>, Fault> {
    let question = format!("{TASK}, result FROM tasks WHERE task_id = ?1 AND tenant = ?2");
    let arguments = [Value::Text(id.as_str()), Value::Text(tenant)];
    let Some(mut row) = work.sql.query_one(&question, &arguments)? else { return Ok(None) };
    // Its process may have gone a moment ago: then what is known about it is not true any more.
    if let Some(instance) = row.opt_text(19)?
        && instances::is_gone(work, &instance)
    {
        recovery::sweep(work, &instance)?;
        match work.sql.query_one(&question, &arguments)? {
            Some(again) => row = again,
            None => return Ok(None),
        }
    }
    let result = row.opt_blob(20)?;
    let mut task = task(row)?;
    if task.expires_at.is_some_and(|at| at.as_microsecond() <= work.now()) {
        return Ok(None);
    }
    task.result = result.map(|result| serde_json::from_slice(&result)).transpose()?.map(Arc::new);
    Ok(Some(task))
}

fn task(mut row: Row) -> Result<Task, Fault> {
    Ok(Task {
        id: TaskId::from_text(row.text(0)?),
        state: state(row.int(1)?)?,
        tool: row.text(2)?.into(),
        call_id: row.text(3)?.into(),
        execution_id: row.parsed(4)?,
        agent: row.text(5)?.into(),
        user: row.opt_text(6)?.map(Into::into),
        session: row.opt_text(7)?.map(Into::into),
        created_at: time(row.int(8)?)?,
        updated_at: time(row.int(9)?)?,
        finished_at: row.opt_int(10)?.map(time).transpose()?,
        ttl: Duration::from_micros(u64::try_from(row.int(11)?).unwrap_or(0)),
        expires_at: row.opt_int(12)?.map(time).transpose()?,
        progress: TaskProgress {
            percent: row.opt_int(13)?.and_then(|percent| u8::try_from(percent).ok()),
            message: row.opt_text(14)?,
            output_bytes: u64::try_from(row.int(15)?).unwrap_or(0),
            output_tail: row.text(16)?,
        },
        approval_id: row.opt_text(17)?.map(ApprovalId::from_text),
        cancel_requested: row.int(18)? != 0,
        result: None,
    })
}

/// Tasks of a tenant, newest first.
pub(crate) fn list(work: &mut Work<'_>, tenant: &str, query: &TaskQuery) -> Result<TaskPage, Fault> {
    recovery::sweep_all(work)?;
    let limit = query.limit.clamp(1, TaskQuery::MOST);
    let mut text = format!("{TASK} FROM tasks WHERE tenant = ?1 AND (expires_at IS NULL OR expires_at > ?2)");
    let mut arguments = vec![Value::Text(tenant), Value::Int(work.now())];
    let states = query.state.map(number);
    if let Some(state) = states {
        arguments.push(Value::Int(state));
        text.push_str(&format!(" AND state = ?{}", arguments.len()));
    }
    if query.open_only {
        text.push_str(" AND state < 3");
    }
    let names = [
        ("tool_name", &query.tool),
        ("agent_id", &query.agent),
        ("user_id", &query.user),
        ("session_id", &query.session),
    ];
    for (column, wanted) in names {
        if let Some(wanted) = wanted {
            arguments.push(Value::Text(wanted));
            text.push_str(&format!(" AND {column} = ?{}", arguments.len()));
        }
    }
    if let Some(after) = &query.after {
        arguments.extend([Value::Int(after.at), Value::Text(after.id.as_str())]);
        let place = arguments.len();
        text.push_str(&format!(" AND (created_at, task_id) < (?{}, ?{place})", place - 1));
    }
    text.push_str(&format!(" ORDER BY created_at DESC, task_id DESC LIMIT {}", limit + 1));
    let rows = work.sql.query(&text, &arguments)?;
    let more = rows.len() > limit;
    let tasks = rows.into_iter().take(limit).map(task).collect::<Result<Vec<_>, _>>()?;
    let key = |task: &Task| TaskKey { at: task.created_at.as_microsecond(), id: task.id.clone() };
    let next = tasks.last().map(key).filter(|_| more);
    Ok(TaskPage { tasks, next })
}
