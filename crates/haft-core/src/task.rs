//! A call that goes on without its caller: a task.

use crate::{ApprovalId, ExecutionId, Status, TaskId, ToolResult, iso_duration};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, sync::Arc, time::Duration};

/// Where a task stands.
///
/// ```
/// use haft_core::{Status, TaskState};
/// assert_eq!(TaskState::of(Status::Timeout), TaskState::Failed);
/// assert!(!TaskState::AwaitingApproval.is_over());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It is on record, and has not begun.
    Pending,
    /// It runs.
    Running,
    /// A person has to agree first. It goes on when they have answered, also after a restart.
    AwaitingApproval,
    /// It succeeded.
    Completed,
    /// It did not succeed: the result says why.
    Failed,
    /// Somebody ended it, or it never started.
    Cancelled,
}

impl TaskState {
    /// All six, in the order of their numbers.
    pub const ALL: [TaskState; 6] = [
        TaskState::Pending,
        TaskState::Running,
        TaskState::AwaitingApproval,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Cancelled,
    ];

    /// The state of a task whose call ended so.
    pub const fn of(status: Status) -> Self {
        match status {
            Status::Success => TaskState::Completed,
            Status::Cancelled => TaskState::Cancelled,
            Status::Failed
            | Status::Timeout
            | Status::RequiresConfirmation
            | Status::SandboxError
            | Status::PermissionDenied
            | Status::ValidationError => TaskState::Failed,
        }
    }

    /// Whether nothing more will happen.
    pub const fn is_over(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Failed | TaskState::Cancelled)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskState::Pending => "pending",
            TaskState::Running => "running",
            TaskState::AwaitingApproval => "awaiting_approval",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a task is, as its tool says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskProgress {
    /// Of a hundred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// In words that are safe to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Bytes that the tool has put out.
    pub output_bytes: u64,
    /// The end of what it has put out, safe to show.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output_tail: String,
}

impl TaskProgress {
    /// Bytes of output that are kept for callers that ask before the end.
    pub const TAIL: usize = 16 << 10;

    /// Adds output; what is too much goes from the front, by whole characters.
    ///
    /// ```
    /// let mut progress = haft_core::TaskProgress::default();
    /// progress.add_output("12 of 30 files\n");
    /// assert_eq!((progress.output_bytes, progress.output_tail.len()), (15, 15));
    /// ```
    pub fn add_output(&mut self, text: &str) {
        self.output_bytes += text.len() as u64;
        self.output_tail.push_str(text);
        if self.output_tail.len() > Self::TAIL {
            let mut from = self.output_tail.len() - Self::TAIL;
            while !self.output_tail.is_char_boundary(from) {
                from += 1;
            }
            self.output_tail.drain(..from);
        }
    }
}

/// A call that goes on without its caller, as it stands at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// By which it is asked about. Nobody who was not told can guess it.
    #[serde(rename = "taskId")]
    pub id: TaskId,
    /// Where it stands.
    pub state: TaskState,
    /// The tool, as it was asked for.
    pub tool: Arc<str>,
    /// The caller's own name for the call.
    #[serde(skip_serializing_if = "str_is_empty")]
    pub call_id: Arc<str>,
    /// Its execution: the present one, the last, or the one to come.
    pub execution_id: ExecutionId,
    /// The agent that asked.
    pub agent: Arc<str>,
    /// The person behind the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// The run of the agent that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// When it was taken.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How long it is kept after its end.
    #[serde(with = "iso_duration")]
    #[schemars(with = "String")]
    pub ttl: Duration,
    /// When it is forgotten. Known once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// How far it is.
    pub progress: TaskProgress,
    /// The question that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    /// Whether somebody wants it to end.
    pub cancel_requested: bool,
    /// How it ended. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<ToolResult>>,
}

fn str_is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

impl Task {
    /// How long to wait before asking again; `None` where it is over.
    ///
    /// What is young may end soon; what is old, or waits for a person, will take longer.
    pub fn poll_after(&self, now: Timestamp) -> Option<Duration> {
        let age = Duration::try_from(now.duration_since(self.created_at)).unwrap_or_default();
        match self.state {
            TaskState::Completed | TaskState::Failed | TaskState::Cancelled => None,
            TaskState::AwaitingApproval => Some(Duration::from_secs(5)),
            TaskState::Pending | TaskState::Running if age < Duration::from_secs(10) => {
                Some(Duration::from_millis(500))
            }
            TaskState::Pending | TaskState::Running if age < Duration::from_secs(60) => {
                Some(Duration::from_secs(1))
            }
            TaskState::Pending | TaskState::Running => Some(Duration::from_secs(5)),
        }
    }

    /// Where it stands, in words for a person or a model.
    pub fn status_message(&self) -> String {
        let error = || self.result.as_ref().and_then(|result| result.error.as_ref());
        match (self.state, &self.progress.message) {
            (TaskState::Pending, _) => "It has not begun yet".to_owned(),
            (TaskState::Running, Some(message)) => message.clone(),
            (TaskState::Running, None) if self.cancel_requested => "It runs, and was asked to end".to_owned(),
            (TaskState::Running, None) => "It runs".to_owned(),
            (TaskState::AwaitingApproval, _) => match &self.approval_id {
                Some(id) => format!("A person has to approve it: {id}"),
                None => "A person has to approve it".to_owned(),
            },
            (TaskState::Completed, _) => "It succeeded".to_owned(),
            (TaskState::Failed, _) => error().map_or("It failed".to_owned(), |error| error.message.clone()),
            (TaskState::Cancelled, _) => {
                error().map_or("It was cancelled".to_owned(), |error| error.message.clone())
            }
        }
    }
}

/// Which tasks. Everything that is set must be so.
///
/// ```
/// use haft_core::{TaskQuery, TaskState};
/// let running = TaskQuery { state: Some(TaskState::Running), ..TaskQuery::default() };
/// assert_eq!(running.limit, 50);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskQuery {
    /// In this state.
    pub state: Option<TaskState>,
    /// Whether those that are over are left out.
    pub open_only: bool,
    /// Of this tool, as it was asked for.
    pub tool: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// Of this person.
    pub user: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// Only what comes after this place: [`TaskPage::next`] of the page before.
    pub after: Option<TaskKey>,
    /// At most so many; 100 is the most.
    pub limit: usize,
}

impl TaskQuery {
    /// The most tasks on one page.
    pub const MOST: usize = 100;
}

impl Default for TaskQuery {
    fn default() -> Self {
        TaskQuery {
            state: None,
            open_only: false,
            tool: None,
            agent: None,
            user: None,
            session: None,
            after: None,
            limit: 50,
        }
    }
}

/// Tasks, newest first, without their results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<TaskKey>,
}

/// A place in a list of tasks: pages do not shift when new tasks come in.
///
/// ```
/// use haft_core::{TaskId, TaskKey};
/// let key = TaskKey { at: 7, id: TaskId::from_text("tsk_1") };
/// assert_eq!(key.to_string().parse::<TaskKey>(), Ok(key));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    /// Microseconds since 1970 of the last task's beginning.
    pub at: i64,
    /// The id of the task.
    pub id: TaskId,
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at, self.id)
    }
}

impl FromStr for TaskKey {
    type Err = crate::port::NotAPageKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (at, id) = text.split_once("-tsk_").ok_or(crate::port::NotAPageKey)?;
        let at = at.parse().map_err(|_| crate::port::NotAPageKey)?;
        Ok(TaskKey { at, id: TaskId::from_text(format!("tsk_{id}")) })
    }
}

impl Task {
    /// A task that was just taken.
    pub fn taken(new: &crate::port::NewTask) -> Task {
        let context = &new.context;
        Task {
            id: new.id.clone(),
            state: TaskState::Pending,
            tool: Arc::clone(&new.call.name),
            call_id: Arc::clone(&new.call.id),
            execution_id: new.execution_id,
            agent: Arc::clone(&context.agent),
            user: context.user.clone(),
            session: context.session.clone(),
            created_at: new.created_at,
            updated_at: new.created_at,
            finished_at: None,
            ttl: new.ttl,
            expires_at: None,
            progress: TaskProgress::default(),
            approval_id: None,
            cancel_requested: false,
            result: None,
        }
    }
}

/// The longest that a task is kept after its end.
pub const LONGEST_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
