//! What a crash must not confuse: the steps of a batch, and what is found afterwards.

use crate::{Arguments, BatchId, CallContext, ChangesState, ErrorCode, ExecutionId, ToolResult};
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
    /// How far a call came with what its command wrote apart from the files. It belongs to a call, and to no batch.
    Changes {
        /// The call whose command wrote it.
        execution_id: ExecutionId,
        /// Whose call it is.
        tenant: Arc<str>,
        /// How far it came.
        step: ChangesStep,
        /// When it came so far.
        at: Timestamp,
    },
}

/// How far a call came with what its command wrote apart from the files: it was staged, it ran, it was settled.
///
/// Three of them are on disk before a call goes on, whatever the durability of the store: [`Staged`](Self::Staged)
/// before the command runs, [`Applying`](Self::Applying) before the first file changes, and that all was applied
/// before what the command wrote is thrown away. So whatever a crash leaves, the last step says whether files were
/// changed; only after `Applying` the records of changed files have to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesStep {
    /// There is room for what the command writes, and it may run. No file was changed.
    Staged,
    /// The command has ended, and nobody decided yet. No file was changed.
    Ran,
    /// It is being applied: all of it will be, or nothing.
    Applying,
    /// That became of it.
    Settled(ChangesState),
}

impl ChangesStep {
    const ALL: [ChangesStep; 8] = [
        ChangesStep::Staged,
        ChangesStep::Ran,
        ChangesStep::Applying,
        ChangesStep::Settled(ChangesState::Nothing),
        ChangesStep::Settled(ChangesState::Applied),
        ChangesStep::Settled(ChangesState::Kept),
        ChangesStep::Settled(ChangesState::Discarded),
        ChangesStep::Settled(ChangesState::Live),
    ];

    /// In a word, for the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            ChangesStep::Staged => "staged",
            ChangesStep::Ran => "ran",
            ChangesStep::Applying => "applying",
            ChangesStep::Settled(ChangesState::Nothing) => "nothing",
            ChangesStep::Settled(ChangesState::Applied) => "applied",
            ChangesStep::Settled(ChangesState::Kept) => "kept",
            ChangesStep::Settled(ChangesState::Discarded) => "discarded",
            ChangesStep::Settled(ChangesState::Live) => "live",
        }
    }

    /// The step of that word.
    ///
    /// ```
    /// use haft_core::port::ChangesStep;
    /// assert_eq!(ChangesStep::of("applying"), Some(ChangesStep::Applying));
    /// assert_eq!(ChangesStep::of("?"), None);
    /// ```
    pub fn of(word: &str) -> Option<Self> {
        ChangesStep::ALL.into_iter().find(|step| step.as_str() == word)
    }

    /// Whether a call may go on only when the step is on disk.
    pub const fn must_wait(self) -> bool {
        matches!(
            self,
            ChangesStep::Staged | ChangesStep::Applying | ChangesStep::Settled(ChangesState::Applied)
        )
    }

    /// Whether the files have what the command changed; `None` where the step alone does not tell.
    ///
    /// ```
    /// use haft_core::{ChangesState, port::ChangesStep};
    /// assert_eq!(ChangesStep::Ran.is_applied(), Some(false));
    /// assert_eq!(ChangesStep::Settled(ChangesState::Applied).is_applied(), Some(true));
    /// assert_eq!(ChangesStep::Applying.is_applied(), None);
    /// ```
    pub const fn is_applied(self) -> Option<bool> {
        match self {
            ChangesStep::Applying => None,
            ChangesStep::Settled(ChangesState::Applied | ChangesState::Live) => Some(true),
            ChangesStep::Staged
            | ChangesStep::Ran
            | ChangesStep::Settled(ChangesState::Nothing | ChangesState::Kept | ChangesState::Discarded) => {
                Some(false)
            }
        }
    }

    /// What it says about the files, in a sentence without its end.
    pub const fn in_words(self) -> &'static str {
        match self {
            ChangesStep::Staged | ChangesStep::Ran => "Nothing of what it changed was applied",
            ChangesStep::Applying => {
                "haft was applying what it changed: all of it will be there, or nothing. The next start of haft in its \
                 folder says which"
            }
            ChangesStep::Settled(ChangesState::Nothing) => "It changed nothing",
            ChangesStep::Settled(ChangesState::Applied) => "All of what it changed was applied",
            ChangesStep::Settled(ChangesState::Kept) => {
                "Nothing of what it changed was applied; it was kept apart from the files"
            }
            ChangesStep::Settled(ChangesState::Discarded) => {
                "Nothing of what it changed was applied; it was thrown away"
            }
            ChangesStep::Settled(ChangesState::Live) => "What it changed is in the files",
        }
    }
}

impl JournalStep {
    /// The batch that it belongs to; none where it belongs to a call.
    pub fn batch(&self) -> Option<BatchId> {
        match self {
            JournalStep::Changes { .. } => None,
            JournalStep::Begin(begin) => Some(begin.batch),
            JournalStep::Text { batch, .. }
            | JournalStep::CallStart { batch, .. }
            | JournalStep::ArgsDelta { batch, .. }
            | JournalStep::Seal { batch, .. }
            | JournalStep::Calls { batch, .. }
            | JournalStep::Decided { batch, .. }
            | JournalStep::Close { batch, .. } => Some(*batch),
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
    /// What became of what its command wrote apart from the files; absent where it wrote to the files themselves.
    pub changes: Option<ChangesStep>,
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
