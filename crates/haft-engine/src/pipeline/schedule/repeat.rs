//! The repeat guard: a model that makes the same failing call again and again is told so, and then stopped.
//!
//! "Again" means: by the same agent in the same conversation, with the same arguments, and with nothing changed in
//! between. A call of that agent that changed something successfully clears its slate: tests that fail five times are
//! no loop where an edit lies between each.

use crate::pipeline::types::CallRecord;
use haft_core::{CallContext, ErrorCode, ToolError};
use std::{
    collections::HashMap,
    hash::BuildHasher,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// When the same failing call is warned about, and when it is not run any more.
///
/// ```
/// let guard = haft_engine::RepeatGuard::default();
/// assert_eq!((guard.warn_at, guard.stop_after), (3, 5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatGuard {
    /// The failure in a row from which on the error says so.
    pub warn_at: u32,
    /// So many failures in a row, and the call is not run again.
    pub stop_after: u32,
    /// How long a failure is remembered.
    pub forget_after: Duration,
}

impl Default for RepeatGuard {
    fn default() -> Self {
        RepeatGuard { warn_at: 3, stop_after: 5, forget_after: Duration::from_secs(600) }
    }
}

#[derive(Clone, Copy)]
struct Failing {
    hash: u64,
    times: u32,
    last: Instant,
}

type Slates = HashMap<u64, Vec<Failing>, foldhash::fast::RandomState>;

/// What fails for whom.
pub(crate) struct Repeats {
    guard: RepeatGuard,
    /// Keyed hashes: nobody outside can find two calls that have the same.
    hashing: foldhash::quality::RandomState,
    slates: Mutex<Slates>,
}

/// Failing calls that are remembered of one agent.
const MOST_CALLS: usize = 32;
/// Agents at which those whose failures are old are forgotten.
const MANY_AGENTS: usize = 10_000;

impl Repeats {
    pub(crate) fn new(guard: RepeatGuard) -> Self {
        Repeats { guard, hashing: foldhash::quality::RandomState::default(), slates: Mutex::default() }
    }

    fn slates(&self) -> MutexGuard<'_, Slates> {
        self.slates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn who(&self, context: &CallContext) -> u64 {
        self.hashing.hash_one((&context.tenant, &context.agent, &context.session, &context.conversation))
    }

    fn hash(&self, call: &CallRecord) -> u64 {
        self.hashing.hash_one((&**call.tool_name(), call.arguments().as_str()))
    }

    fn is_fresh(&self, failing: &Failing) -> bool {
        failing.last.elapsed() < self.guard.forget_after
    }

    /// Why a call is not run once more, if it is not.
    pub(crate) fn stops(&self, call: &mut CallRecord) -> Option<ToolError> {
        let who = self.who(&call.context);
        let slates = self.slates();
        let slate = slates.get(&who)?;
        let hash = self.hash(call);
        let failing = slate.iter().find(|failing| failing.hash == hash && self.is_fresh(failing))?;
        let times = failing.times;
        drop(slates);
        (times >= self.guard.stop_after.max(1)).then(|| {
            let text = format!(
                "This very call of `{}` has failed {times} times in a row with these arguments, so it was not run again. \
                 It would fail in the same way. Change the arguments, look into why it fails with another tool, or tell \
                 the user what is in the way",
                call.tool_name()
            );
            call.scheduling().repeated_failures = Some(times);
            ToolError::new(ErrorCode::RepeatedFailure, text)
        })
    }

    /// Counts how a call ended. A failure that was seen before gets a sentence about that.
    pub(crate) fn note(&self, call: &mut CallRecord, outcome: Result<(), &mut ToolError>) {
        match outcome {
            Ok(()) => self.succeeded(call),
            Err(error) if is_the_calls_own(error.code) => {
                let times = self.failed(call);
                if times >= self.guard.warn_at.max(1) {
                    call.scheduling().repeated_failures = Some(times);
                    warn(error, times);
                }
            }
            Err(_) => {}
        }
    }

    fn succeeded(&self, call: &CallRecord) {
        let who = self.who(&call.context);
        let mut slates = self.slates();
        let Some(slate) = slates.get_mut(&who) else { return };
        let changes_things = call.registered.get().is_none_or(|tool| tool.definition.has_side_effects());
        if changes_things {
            slates.remove(&who);
        } else {
            let hash = self.hash(call);
            slate.retain(|failing| failing.hash != hash);
            if slate.is_empty() {
                slates.remove(&who);
            }
        }
    }

    fn failed(&self, call: &CallRecord) -> u32 {
        let (who, hash) = (self.who(&call.context), self.hash(call));
        let mut slates = self.slates();
        if slates.len() >= MANY_AGENTS && !slates.contains_key(&who) {
            slates.retain(|_, slate| slate.iter().any(|failing| self.is_fresh(failing)));
        }
        let slate = slates.entry(who).or_default();
        slate.retain(|failing| self.is_fresh(failing));
        let times = match slate.iter().position(|failing| failing.hash == hash) {
            Some(place) => slate.remove(place).times.saturating_add(1),
            None => 1,
        };
        if slate.len() >= MOST_CALLS {
            slate.remove(0);
        }
        slate.push(Failing { hash, times, last: Instant::now() });
        times
    }
}

/// Whether a failure is about the call as such. One that was not taken for want of room, time or a person's word may
/// well be sent again.
fn is_the_calls_own(code: ErrorCode) -> bool {
    !code.is_retryable()
        && !matches!(
            code,
            ErrorCode::Cancelled
                | ErrorCode::NotStarted
                | ErrorCode::Blocked
                | ErrorCode::ConfirmationRequired
                | ErrorCode::ApprovalExpired
                | ErrorCode::QuotaExceeded
                | ErrorCode::StoreUnavailable
                | ErrorCode::RepeatedFailure
                | ErrorCode::DuplicateCallId
        )
}

fn warn(error: &mut ToolError, times: u32) {
    // A tool's own JSON error reaches the model byte for byte.
    let is_json = error.code == ErrorCode::ExecutionFailed && error.message.trim_start().starts_with('{');
    if !is_json {
        let text = format!(
            "\n\nThis is the {} time in a row that this very call fails. Sending it again will not help: change the \
             arguments, or do something else first",
            ordinal(times)
        );
        error.message.push_str(&text);
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (1, hundred) if hundred != 11 => "st",
        (2, hundred) if hundred != 12 => "nd",
        (3, hundred) if hundred != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn ordinals() {
        let got = [1, 2, 3, 4, 11, 12, 13, 21, 112].map(super::ordinal);
        assert_eq!(got, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"]);
    }
}
