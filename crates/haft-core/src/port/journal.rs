//! What a crash must not confuse: the steps of a batch, and what is found afterwards.

use crate::{Arguments, BatchId, CallContext, ErrorCode, ExecutionId, ToolResult};
use jiff::Timestamp;
use std::sync::Arc;

/// One step of a batch, taken down as it happens.
///
/// A batch whose calls stream in goes `Begin`, then `Text`, `CallStart` and `ArgsDelta` in any mixture, then `Seal`.
/// One that is there as a whole goes `Begin`, `Calls`. Both go on with `Decided` and end with `Close`, which says that
/// the caller has taken the results over.
#[derive(Clone, Debug)]
pub enum JournalStep {
    /// A batch begins. A second `Begin` of the same id changes nothing, so that the code that streams a batch in and
    /// the code that runs it can both say so.
    Begin(BatchBegin),
    /// The model's words go on.
    Text {
        /// The batch.
        batch: BatchId,
        /// What came.
        delta: Arc<str>,
    },
    /// A call begins to come in.
    CallStart {
        /// The batch.
        batch: BatchId,
        /// The place of the call in the batch.
        index: u32,
        /// The caller's own name for it.
        call_id: Arc<str>,
        /// The tool, as it was asked for.
        tool: Arc<str>,
    },
    /// Its arguments go on.
    ArgsDelta {
        /// The batch.
        batch: BatchId,
        /// The call's place.
        index: u32,
        /// What came.
        delta: Arc<str>,
    },
    /// Everything has come in.
    Seal {
        /// The batch.
        batch: BatchId,
        /// When the batch was sealed.
        at: Timestamp,
    },
    /// All calls, as they are about to be planned. Seals the batch.
    Calls {
        /// The batch.
        batch: BatchId,
        /// In call order, from place 0.
        calls: Vec<JournalCall>,
        /// When the calls were taken down.
        at: Timestamp,
    },
    /// What was decided about each call, after everybody was asked and before anything runs.
    Decided {
        /// The batch.
        batch: BatchId,
        /// By place.
        calls: Vec<(u32, PlannedStep)>,
    },
    /// Every call has its result, and the caller has taken them over.
    Close {
        /// The batch.
        batch: BatchId,
        /// When the batch was closed.
        at: Timestamp,
    },
}

impl JournalStep {
    /// The batch that it belongs to.
    pub fn batch(&self) -> BatchId {
        match self {
            JournalStep::Begin(begin) => begin.batch,
            JournalStep::Text { batch, .. }
            | JournalStep::CallStart { batch, .. }
            | JournalStep::ArgsDelta { batch, .. }
            | JournalStep::Seal { batch, .. }
            | JournalStep::Calls { batch, .. }
            | JournalStep::Decided { batch, .. }
            | JournalStep::Close { batch, .. } => *batch,
        }
    }
}

/// A batch begins.
#[derive(Clone, Debug)]
pub struct BatchBegin {
    /// The id of the batch.
    pub batch: BatchId,
    /// Who asks.
    pub context: Arc<CallContext>,
    /// The model that asks, where one does.
    pub model: Option<Arc<str>>,
    /// What the model said before the calls.
    pub assistant_text: Arc<str>,
    /// When the batch began.
    pub at: Timestamp,
}

/// A call of a batch, as it is taken down.
#[derive(Clone, Debug)]
pub struct JournalCall {
    /// The execution of the call.
    pub execution_id: ExecutionId,
    /// The caller's own name for it.
    pub call_id: Arc<str>,
    /// The tool, as it was asked for.
    pub tool: Arc<str>,
    /// With what, without secrets.
    pub arguments: Arguments,
}

/// What was decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedStep {
    /// It runs when its turn comes.
    Runs,
    /// Its result comes from elsewhere: a person, or the same call that runs already.
    Waits,
    /// It is over without having run.
    Over(Option<ErrorCode>),
}

impl PlannedStep {
    /// In a word or two, for the record.
    ///
    /// ```
    /// assert_eq!(haft_core::port::PlannedStep::Runs.as_str(), "runs");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            PlannedStep::Runs => "runs",
            PlannedStep::Waits => "waits",
            PlannedStep::Over(Some(code)) => code.as_str(),
            PlannedStep::Over(None) => "replayed",
        }
    }
}

/// Names something unfinished: a batch, or a call that was in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnfinishedId {
    /// A batch.
    Batch(BatchId),
    /// A single call.
    Call(ExecutionId),
}

/// A batch, or a single call, that was under way when its process ended.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// Which.
    pub id: UnfinishedId,
    /// The agent that asked.
    pub agent: Arc<str>,
    /// The session that it belongs to.
    pub session: Option<Arc<str>>,
    /// The model that asked, where one did.
    pub model: Option<Arc<str>>,
    /// What the model said before the calls.
    pub assistant_text: String,
    /// Whether everything had come in. If not, the last call may be cut.
    pub sealed: bool,
    /// When it began.
    pub begun_at: Timestamp,
    /// Its calls, in call order.
    pub calls: Vec<UnfinishedCall>,
}

/// One call of something unfinished.
#[derive(Clone, Debug)]
pub struct UnfinishedCall {
    /// The caller's own name for it.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The arguments, as far as they had come in; not always JSON.
    pub arguments: Arguments,
    /// The execution of the call, where it had one.
    pub execution_id: Option<ExecutionId>,
    /// How far it got.
    pub state: CallState,
}

/// How far a call got before its process ended.
#[derive(Clone, Debug)]
pub enum CallState {
    /// It ended, with this result. `None` where its result is not kept any more.
    Finished(Option<Arc<ToolResult>>),
    /// It had not been started: nothing happened.
    NeverStarted,
    /// It was started, and nothing tells how it ended. It is never run again by itself.
    OutcomeUnknown {
        /// When it was started.
        since: Timestamp,
        /// Which try it was.
        attempt: u32,
    },
}

/// What to do about something unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Go on with what is there: results stay, gaps are said to be gaps.
    Resume,
    /// Let go of all results.
    Discard,
}

/// What stands for a result that a crash swallowed.
pub const MISSING_AFTER_CRASH: &str = "Tool result missing after crash";

/// What stands for every result of a batch that was discarded.
pub const DISCARDED_AFTER_CRASH: &str = "Tool results discarded after crash";

/// One call, as a conversation goes on with it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveredCall {
    /// The caller's own name for it.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// What stands as its result.
    pub text: String,
    /// Whether that is an error.
    pub is_error: bool,
    /// Whether it may have had its effect without anybody knowing.
    pub outcome_unknown: bool,
}
