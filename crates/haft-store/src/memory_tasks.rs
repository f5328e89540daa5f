//! Tasks that last as long as the process.

use crate::memory_approvals::Approvals;
use haft_core::{
    ApprovalId, ContentPart, ErrorCode, ErrorInfo, ExecutionId, ResultMetadata, Status, Task, TaskId,
    TaskKey, TaskPage, TaskProgress, TaskQuery, TaskState, ToolResult,
    port::{ClaimedTask, NewTask, TaskCancel},
};
use jiff::{SignedDuration, Timestamp};
use std::{collections::BTreeMap, sync::Arc};

/// From so many on it is looked with each new one whether some can go.
const MANY: usize = 1000;

/// The tasks of a store in memory.
#[derive(Default)]
pub(crate) struct Tasks(BTreeMap<TaskId, Kept>);

struct Kept {
    task: Task,
    new: NewTask,
    is_claimed: bool,
}

impl Tasks {
    pub(crate) fn submit(&mut self, new: NewTask) {
        if self.0.len() >= MANY {
            self.sweep(new.created_at);
        }
        let kept = Kept { task: Task::taken(&new), is_claimed: new.is_mine, new };
        self.0.insert(kept.new.id.clone(), kept);
    }

    pub(crate) fn take_over(
        &mut self,
        runner: &str,
        most: usize,
        approvals: &mut Approvals,
        now: Timestamp,
    ) -> Vec<ClaimedTask> {
        self.end_late(now);
        self.go_on(approvals, now);
        let mut waiting: Vec<&mut Kept> = self
            .0
            .values_mut()
            .filter(|kept| {
                !kept.is_claimed && kept.task.state == TaskState::Pending && *kept.new.runner == *runner
            })
            .collect();
        waiting.sort_by_key(|kept| kept.task.created_at);
        let claim = |kept: &mut Kept| {
            kept.is_claimed = true;
            ClaimedTask {
                id: kept.new.id.clone(),
                execution_id: kept.new.execution_id,
                context: Arc::clone(&kept.new.context),
                call: kept.new.call.clone(),
                options: kept.new.options.clone(),
                place: kept.new.place.clone(),
                approval: kept.task.approval_id.clone(),
            }
        };
        waiting.into_iter().take(most).map(claim).collect()
    }

    /// Tasks whose approval was answered wait for a runner again. An approval that has run out is answered, too: by
    /// nobody.
    fn go_on(&mut self, approvals: &mut Approvals, now: Timestamp) {
        let waiting = self.0.values_mut().filter(|kept| kept.task.state == TaskState::AwaitingApproval);
        for kept in waiting {
            let Some(approval) = &kept.task.approval_id else { continue };
            let Some(edited) = approvals.is_answered(&kept.new.context.tenant, approval, now) else {
                continue;
            };
            if let Some(edited) = edited {
                kept.new.call.arguments = edited;
            }
            kept.task.state = TaskState::Pending;
            kept.new.start_by = None;
            // Each execution has an id of its own.
            kept.new.execution_id = ExecutionId::at(now);
        }
    }

    /// Its execution has ended: so does the task, unless there is an approval that can still be answered.
    pub(crate) fn ended(
        &mut self,
        id: &TaskId,
        result: Arc<ToolResult>,
        approvals: &mut Approvals,
        now: Timestamp,
    ) {
        let asked =
            || result.error.as_ref()?.data.as_ref()?.get("approvalId")?.as_str().map(ApprovalId::from_text);
        let asked = asked().filter(|_| result.status == Status::RequiresConfirmation);
        let asked = asked.filter(|approval| approvals.can_go_on(approval, now));
        let open =
            self.0.get_mut(id).filter(|kept| !kept.task.state.is_over() && !kept.task.cancel_requested);
        match (open, asked) {
            (Some(kept), Some(approval)) => {
                kept.task.state = TaskState::AwaitingApproval;
                kept.task.approval_id = Some(approval);
                kept.task.updated_at = now;
                kept.is_claimed = false;
            }
            _ => self.finish(id, result, now),
        }
    }

    pub(crate) fn begin(&mut self, id: &TaskId, execution: ExecutionId, now: Timestamp) -> bool {
        let Some(kept) = self.0.get_mut(id).filter(|kept| kept.task.state == TaskState::Pending) else {
            return false;
        };
        if kept.task.cancel_requested {
            kept.end(ErrorCode::Cancelled, "Cancelled before it began", now);
            return false;
        }
        kept.task.state = TaskState::Running;
        kept.task.execution_id = execution;
        kept.task.updated_at = now;
        true
    }

    pub(crate) fn note(&mut self, notes: Vec<(TaskId, TaskProgress)>, now: Timestamp) -> Vec<TaskId> {
        for (id, progress) in notes {
            // What a task said last may be written down after its end.
            if let Some(kept) = self.0.get_mut(&id) {
                kept.task.progress = progress;
                if !kept.task.state.is_over() {
                    kept.task.updated_at = now;
                }
            }
        }
        let open = self.0.values().filter(|kept| kept.task.cancel_requested && !kept.task.state.is_over());
        open.map(|kept| kept.task.id.clone()).collect()
    }

    pub(crate) fn asks(&mut self, id: &TaskId, approval: Option<ApprovalId>) {
        if let Some(kept) = self.0.get_mut(id) {
            kept.task.approval_id = approval;
        }
    }

    pub(crate) fn finish(&mut self, id: &TaskId, result: Arc<ToolResult>, now: Timestamp) {
        if let Some(kept) = self.0.get_mut(id).filter(|kept| !kept.task.state.is_over()) {
            kept.finish(result, now);
        }
    }

    pub(crate) fn find(&self, tenant: &str, id: &TaskId, now: Timestamp) -> Option<Task> {
        let kept = self.0.get(id).filter(|kept| *kept.new.context.tenant == *tenant)?;
        (!kept.is_expired(now)).then(|| kept.task.clone())
    }

    pub(crate) fn list(&self, tenant: &str, query: &TaskQuery, now: Timestamp) -> TaskPage {
        let limit = query.limit.clamp(1, TaskQuery::MOST);
        let mut found: Vec<(TaskKey, &Kept)> = self
            .0
            .values()
            .filter(|kept| *kept.new.context.tenant == *tenant && !kept.is_expired(now))
            .filter(|kept| matches(query, &kept.task))
            .map(|kept| {
                (TaskKey { at: kept.task.created_at.as_microsecond(), id: kept.task.id.clone() }, kept)
            })
            .filter(|(key, _)| query.after.as_ref().is_none_or(|after| key < after))
            .collect();
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        let next = (found.len() > limit).then(|| found[limit - 1].0.clone());
        let tasks = found.into_iter().take(limit);
        let tasks = tasks.map(|(_, kept)| Task { result: None, ..kept.task.clone() }).collect();
        TaskPage { tasks, next }
    }

    pub(crate) fn cancel(
        &mut self,
        tenant: &str,
        id: &TaskId,
        approvals: &mut Approvals,
        now: Timestamp,
    ) -> TaskCancel {
        let kept = self.0.get_mut(id).filter(|kept| *kept.new.context.tenant == *tenant);
        let Some(kept) = kept.filter(|kept| !kept.is_expired(now)) else { return TaskCancel::Unknown };
        if kept.task.state.is_over() {
            return TaskCancel::Over;
        }
        if kept.is_claimed {
            kept.task.cancel_requested = true;
            return TaskCancel::Asked;
        }
        if let Some(approval) = &kept.task.approval_id {
            approvals.withdraw(tenant, approval, now);
        }
        kept.end(ErrorCode::Cancelled, ErrorCode::Cancelled.model_text(), now);
        TaskCancel::Ended
    }

    pub(crate) fn sweep(&mut self, now: Timestamp) -> u64 {
        self.end_late(now);
        let before = self.0.len();
        self.0.retain(|_, kept| !kept.is_expired(now));
        (before - self.0.len()) as u64
    }

    fn end_late(&mut self, now: Timestamp) {
        for kept in self.0.values_mut() {
            let is_late = kept.new.start_by.is_some_and(|by| by <= now);
            if is_late && !kept.is_claimed && kept.task.state == TaskState::Pending {
                let text = "Never started: nobody was there to run it in time. Send it again";
                kept.end(ErrorCode::NotStarted, text, now);
            }
        }
    }
}

fn matches(query: &TaskQuery, task: &Task) -> bool {
    let is = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
    query.state.is_none_or(|state| state == task.state)
        && !(query.open_only && task.state.is_over())
        && is(&query.tool, Some(&task.tool))
        && is(&query.agent, Some(&task.agent))
        && is(&query.user, task.user.as_deref())
        && is(&query.session, task.session.as_deref())
}

impl Kept {
    fn is_expired(&self, now: Timestamp) -> bool {
        self.task.expires_at.is_some_and(|at| at <= now)
    }

    fn finish(&mut self, result: Arc<ToolResult>, now: Timestamp) {
        let ttl = SignedDuration::try_from(self.new.ttl).unwrap_or(SignedDuration::MAX);
        self.task.state = TaskState::of(result.status);
        self.task.finished_at = Some(now);
        self.task.updated_at = now;
        self.task.expires_at = Some(now.checked_add(ttl).unwrap_or(Timestamp::MAX));
        self.task.result = Some(result);
        self.new.call.arguments = haft_core::Arguments::default();
    }

    /// Ends a task that does not run.
    fn end(&mut self, code: ErrorCode, text: &str, now: Timestamp) {
        let result = ToolResult {
            call_id: Arc::clone(&self.task.call_id),
            tool: Arc::clone(&self.task.tool),
            status: code.status().unwrap_or(Status::Cancelled),
            input: None,
            output: None,
            content: vec![ContentPart::text(text)],
            error: Some(Box::new(ErrorInfo {
                code,
                number: code.e_number().map(str::to_owned),
                message: text.to_owned(),
                retryable: code.is_retryable(),
                problems: Vec::new(),
                data: None,
            })),
            diagnostics: None,
            metadata: Arc::new(ResultMetadata {
                started_at: self.task.created_at,
                correlation_id: self.new.context.correlation_id.clone(),
                ..ResultMetadata::not_started(self.task.execution_id, now)
            }),
        };
        self.finish(Arc::new(result), now);
    }
}
