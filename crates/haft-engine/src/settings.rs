//! The numbers that the engine keeps to.

use haft_core::{AgentDefinition, AskCommands, CommandWrites, Retry, ToolsMode, port::AcceptAnswers};
use std::{sync::Arc, time::Duration};

/// The numbers and switches of an engine. The default is what the documentation says.
///
/// ```
/// let settings = haft_engine::Settings::default();
/// assert_eq!(settings.max_calls_per_answer, 8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What happens to calls at all.
    pub mode: ToolsMode,
    /// Calls that a model may make in one answer.
    pub max_calls_per_answer: usize,
    /// Whether calls of one answer of a model may run at the same time.
    pub allow_parallel: bool,
    /// Retries of a single call, where it names none itself.
    pub retry: Retry,
    /// Retries of a call of a batch, where it names none itself.
    pub batch_retry: Retry,
    /// Bytes of a call's arguments, for tools that have no limit of their own.
    pub max_args_bytes: usize,
    /// Whether arguments are coerced where nothing is lost by it and the call does not say: see
    /// [`CallOptions::coerce`](haft_core::CallOptions).
    pub coerce_arguments: bool,
    /// The longest tool list that a model is given: with more, those that were added are found by searching.
    pub max_listed_tools: usize,
    /// The deadline where neither call nor tool names one.
    pub default_timeout: Duration,
    /// Bytes of a result's text.
    pub max_output_bytes: usize,
    /// How long a shutdown waits for running calls before it cancels them.
    pub drain: Duration,
    /// How long a shutdown waits for cancelled calls to end.
    pub grace: Duration,
    /// Sandboxes that a tenant may have at once.
    pub max_sandboxes_per_tenant: usize,
    /// Sandboxes of all tenants together.
    pub max_sandboxes: usize,
    /// How long a question to a person can be answered, and the answer be used.
    pub approval_expiry: Duration,
    /// Agents that have limits of their own. That they have listed tools and no more is the authoriser's to hold.
    pub agents: Arc<[AgentDefinition]>,
    /// From where answers to questions count.
    pub accept_answers: AcceptAnswers,
    /// When a person is asked about a command.
    pub ask_commands: AskCommands,
    /// Where the writes of commands go, where a call does not say.
    pub command_writes: CommandWrites,
    /// Progress and output events that a call's log keeps for slow observers.
    pub event_log_capacity: usize,
    /// Ended calls and batches whose events can still be observed.
    pub observable_after_end: usize,
    /// Calls that go on without their callers.
    pub tasks: TaskSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            mode: ToolsMode::Enabled,
            max_calls_per_answer: 8,
            allow_parallel: false,
            retry: Retry::default(),
            batch_retry: Retry { max_retries: 0, ..Retry::default() },
            max_args_bytes: 256 * 1024,
            coerce_arguments: true,
            max_listed_tools: 128,
            agents: Arc::default(),
            default_timeout: Duration::from_secs(30),
            max_output_bytes: 100 * 1024,
            drain: Duration::from_secs(10),
            grace: Duration::from_secs(2),
            max_sandboxes_per_tenant: 16,
            max_sandboxes: 256,
            approval_expiry: Duration::from_secs(24 * 60 * 60),
            accept_answers: AcceptAnswers::default(),
            ask_commands: AskCommands::Before,
            command_writes: CommandWrites::Live,
            event_log_capacity: 1024,
            observable_after_end: 256,
            tasks: TaskSettings::default(),
        }
    }
}

/// How an engine runs tasks.
///
/// ```
/// let tasks = haft_engine::TaskSettings::default();
/// assert_eq!(tasks.ttl.as_secs(), 24 * 60 * 60);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSettings {
    /// A name for the kind of process that this is. After a restart, a process of the same kind goes on with what
    /// waited for a person; no other does.
    pub runner: Arc<str>,
    /// Whether it takes over tasks by itself: those whose question was answered, and those that wait for a runner.
    pub takes_over: bool,
    /// Tasks that it takes over while so many run.
    pub max_taken: usize,
    /// Tasks that may be under way; one more is refused with `CONCURRENT_LIMIT_EXCEEDED`.
    pub max_open: usize,
    /// Of these, those of one tenant.
    pub max_open_per_tenant: usize,
    /// How long a task is kept after its end, where it does not say.
    pub ttl: Duration,
    /// How often progress is written down, and wishes to cancel are looked for.
    pub tick: Duration,
}

impl Default for TaskSettings {
    fn default() -> Self {
        TaskSettings {
            runner: "engine".into(),
            takes_over: true,
            max_taken: 10,
            max_open: 1000,
            max_open_per_tenant: 500,
            ttl: Duration::from_secs(24 * 60 * 60),
            tick: Duration::from_secs(1),
        }
    }
}
