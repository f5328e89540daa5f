//! Settle: what becomes of what a command wrote apart from the files. It is applied, asked about, kept or thrown away.
//!
//! A command that ended by itself is settled by policy. One that was stopped is never applied: what it wrote is kept for
//! a bounded time, and the result names it.

mod decide;

use super::{
    approve::{ChangesQuestion, ask_about_changes},
    plan::decide as policy,
    types::{CallRecord, Decided, RunOutcome, StagedRun},
};
use crate::ports::Ports;
use decide::{Settling, changes_definition, touched};
use haft_core::{
    Arguments, ChangeSummary, ChangesState, ErrorCode, Footprint, IsolationLevel, SettledChanges, ToolError,
    port::{FoundChanges, KeepOutcome},
};
use haft_sdk::Args;
use std::sync::Arc;

/// How much of a change set a person can be asked about.
const MOST_ASKED: usize = 4 << 20;
/// How many changes a result lists.
const MOST_LISTED: usize = 50;

/// Settles what the last attempt at a call wrote, where that was kept apart. What it comes to is on the call's facts;
/// the outcome is an error where a command succeeded and its changes were not applied.
pub(crate) async fn settle(ports: &Ports, call: &mut CallRecord, outcome: RunOutcome) -> RunOutcome {
    if call.facts.staging.is_none() {
        return outcome;
    }
    // Boxed like everything that is rare: its state would make every call larger to move.
    Box::pin(settle_staged(ports, call, outcome)).await
}

async fn settle_staged(ports: &Ports, call: &mut CallRecord, outcome: RunOutcome) -> RunOutcome {
    let staged =
        call.facts.present.as_ref().and_then(|present| present.found().guest.as_mut()?.staged.take());
    let Some(staged) = staged else { return left(ports, call, outcome).await };
    if let Some(staging) = &mut call.facts.staging {
        staging.settling = Some(Arc::clone(&staged.sets));
    }
    let mut settlement = Settlement { ports, call, staged };
    let (settled, refused) = match settlement.settle(&outcome).await {
        Ok(settled) => (settled, None),
        Err((settled, error)) => (settled, Some(error)),
    };
    let Settlement { call, staged, .. } = settlement;
    // Others may change the folders again.
    drop(staged.held);
    let settled = shown(ports, settled);
    let outcome = match (outcome, refused) {
        (RunOutcome::Returned(_), Some(error)) => RunOutcome::Error(error),
        (outcome, _) => outcome,
    };
    if let Some(staging) = &mut call.facts.staging {
        (staging.settled, staging.settling) = (Some(settled), None);
    }
    outcome
}

/// A call whose caller went away while it was settled: what was begun is done, and nothing else is.
async fn left(ports: &Ports, call: &mut CallRecord, outcome: RunOutcome) -> RunOutcome {
    let sets = call.facts.staging.as_mut().and_then(|staging| staging.settling.take());
    let Some(sets) = sets else { return outcome };
    let why = stopped(&outcome);
    let settled = match sets.keep(call.id, &why.message).await {
        Ok(KeepOutcome::Kept(until)) => {
            let kept = SettledChanges::new(ChangesState::Kept, ChangeSummary::default()).because(why.message);
            SettledChanges { kept_until: Some(until), ..kept }
        }
        Ok(KeepOutcome::Applied(summary)) => SettledChanges::new(ChangesState::Applied, summary),
        Ok(KeepOutcome::Nothing) => SettledChanges::new(ChangesState::Nothing, ChangeSummary::default()),
        Err(error) => not_kept(ChangeSummary::default(), &why, &error),
    };
    if let Some(staging) = &mut call.facts.staging {
        staging.settled = Some(shown(ports, settled));
    }
    outcome
}

type Settled = Result<SettledChanges, (SettledChanges, ToolError)>;

struct Settlement<'a> {
    ports: &'a Ports,
    call: &'a mut CallRecord,
    staged: StagedRun,
}

impl Settlement<'_> {
    async fn settle(&mut self, outcome: &RunOutcome) -> Settled {
        let id = self.call.id;
        let Some(roots) = self.staged.roots.clone() else {
            return self.keep(ChangeSummary::default(), stopped(outcome)).await;
        };
        let found = match self.staged.sets.ran(id, roots).await {
            Ok(found) => found,
            Err(error) => return self.keep(ChangeSummary::default(), error).await,
        };
        if !self.staged.is_own_exit || decide::was_stopped(outcome) {
            return self.keep(found.summary, stopped(outcome)).await;
        }
        let footprint = touched(&found);
        match self.decide(&found, &footprint) {
            Settling::Nothing => match self.discard().await {
                Ok(()) => Ok(SettledChanges::new(ChangesState::Nothing, found.summary)),
                Err(error) => Err((SettledChanges::new(ChangesState::Nothing, found.summary), error)),
            },
            Settling::Apply { approved } => self.apply(found, approved).await,
            Settling::Ask(reason) => self.ask(found, &footprint, &reason).await,
            Settling::Keep(error) => self.keep(found.summary, error).await,
            Settling::Discard(error) => self.thrown_away(found.summary, error).await,
        }
    }

    fn decide(&mut self, found: &FoundChanges, footprint: &Footprint) -> Settling {
        let definition = changes_definition();
        let arguments = Args { value: serde_json::Map::new(), original: Arguments::from_text("{}") };
        let confirm = (!found.asks.is_empty()).then(|| decide::some_of(&found.asks));
        let verdict = policy(self.ports, self.call, definition, (&arguments, footprint), confirm.as_deref());
        decide::decide(self.ports.settings.ask_commands, found, confirm, verdict)
    }

    async fn apply(&mut self, found: FoundChanges, approved: bool) -> Settled {
        let (sets, call) = (&self.staged.sets, &*self.call);
        match sets.apply(&call.context.tenant, call.id, &found.fingerprint, approved).await {
            Ok(summary) => Ok(SettledChanges::new(ChangesState::Applied, summary)),
            Err(error) => self.keep(found.summary, error).await,
        }
    }

    async fn ask(&mut self, found: FoundChanges, footprint: &Footprint, reason: &str) -> Settled {
        let diff = self.staged.sets.diff(&self.call.context.tenant, self.call.id, MOST_ASKED + 1).await;
        let diff = match diff {
            Ok(diff) => diff,
            Err(error) => return self.keep(found.summary, error).await,
        };
        let staging = self.call.facts.staging.as_ref();
        let command = staging.map(|staging| staging.does.clone()).unwrap_or_default();
        let does = format!("Apply what it changed ({}): {command}", found.summary);
        let question = ChangesQuestion {
            does: &does,
            reason,
            diff: &diff,
            fingerprint: &found.fingerprint,
            footprint,
            level: level(self.call),
        };
        match ask_about_changes(self.ports, self.call, &question).await {
            Ok(()) => self.apply(found, true).await,
            Err(error) if error.code == ErrorCode::ConfirmationDenied => {
                self.thrown_away(found.summary, error).await
            }
            Err(error) => self.keep(found.summary, error).await,
        }
    }

    async fn keep(&self, summary: ChangeSummary, why: ToolError) -> Settled {
        match self.staged.sets.keep(self.call.id, &why.message).await {
            Ok(KeepOutcome::Kept(until)) => {
                let kept = SettledChanges::new(ChangesState::Kept, summary).because(why.message.clone());
                self.block_others();
                Err((SettledChanges { kept_until: Some(until), ..kept }, with_next_step(why, self.call.id)))
            }
            Ok(KeepOutcome::Applied(summary)) => Ok(SettledChanges::new(ChangesState::Applied, summary)),
            Ok(KeepOutcome::Nothing) => {
                Err((SettledChanges::new(ChangesState::Nothing, ChangeSummary::default()), why))
            }
            Err(error) => {
                self.block_others();
                Err((not_kept(summary, &why, &error), why))
            }
        }
    }

    async fn thrown_away(&self, summary: ChangeSummary, why: ToolError) -> Settled {
        match self.discard().await {
            Ok(()) => {
                let settled = SettledChanges::new(ChangesState::Discarded, summary).because(&*why.message);
                Err((settled, why))
            }
            Err(_) => self.keep(summary, why).await,
        }
    }

    async fn discard(&self) -> Result<(), ToolError> {
        self.staged.sets.discard(&self.call.context.tenant, self.call.id).await
    }

    /// Later calls of the batch that touch the same must not run as if this one had changed nothing.
    fn block_others(&self) {
        if let (Some((batch, index)), Some(staging)) = (&self.call.batch, &self.call.facts.staging) {
            batch.unsettled().push((*index, staging.footprint.clone()));
        }
    }
}

/// Changes of which nobody could write down that they are kept: they are where they were, and the next start does it.
fn not_kept(summary: ChangeSummary, why: &ToolError, error: &ToolError) -> SettledChanges {
    let text = format!(
        "{}. That could not be written down: {}. The next start of haft does",
        why.message.trim_end_matches('.'),
        error.message.trim_end_matches('.')
    );
    SettledChanges::new(ChangesState::Kept, summary).because(text)
}

fn level(call: &CallRecord) -> IsolationLevel {
    let present = call.facts.present.as_ref();
    let enforcement = present.and_then(|present| present.found().enforcement.as_ref().map(|by| by.level));
    enforcement.unwrap_or_default()
}

/// Why what a stopped command wrote is not applied.
fn stopped(outcome: &RunOutcome) -> ToolError {
    let (code, why) = match outcome {
        RunOutcome::Error(error) => (error.code, error.message.trim_end_matches('.').to_owned()),
        RunOutcome::Returned(_) | RunOutcome::Replay(_) | RunOutcome::HandedOver => {
            (ErrorCode::SandboxCrashed, "The command did not end by itself".to_owned())
        }
    };
    ToolError::new(code, format!("{why}. Nothing of what it wrote was applied"))
}

/// The error with what a person can do about it. What is never applied has no step that would.
fn with_next_step(error: ToolError, id: haft_core::ExecutionId) -> ToolError {
    let apply = match error.code {
        ErrorCode::FilesystemPolicyViolation => String::new(),
        _ => format!("`haft apply {id}` applies it, "),
    };
    let text = format!(
        "{}. What it changed is kept apart: `haft diff {id}` shows it, {apply}`haft discard {id}` throws it away",
        error.message.trim_end_matches('.')
    );
    ToolError { message: text, ..error }
}

/// The changes as a result has them: a bounded list, without secrets.
fn shown(ports: &Ports, mut settled: SettledChanges) -> SettledChanges {
    let changes = &mut settled.summary.changes;
    let more = changes.len().saturating_sub(MOST_LISTED);
    changes.truncate(MOST_LISTED);
    for change in changes {
        change.path = ports.redaction.model_string(std::mem::take(&mut change.path));
    }
    settled.summary.omitted += more as u64;
    settled.reason = settled.reason.map(|reason| ports.redaction.model_string(reason));
    settled
}

/// Why a call of a batch does not start: it touches what an earlier one touched whose changes are not settled.
pub(crate) fn blocked(decided: &Decided) -> Option<Box<ToolError>> {
    let Decided::Go(ready) = decided else { return None };
    let (batch, index) = ready.call.batch.as_ref()?;
    let mut unsettled = batch.unsettled();
    let (earlier, _) = unsettled.iter().find(|(_, footprint)| footprint.conflicts_with(&ready.footprint))?;
    let text = format!(
        "Not started, because it touches what call {} of this batch touches, whose changes are not applied",
        earlier + 1
    );
    unsettled.push((*index, ready.footprint.clone()));
    Some(Box::new(ToolError::new(ErrorCode::Blocked, text)))
}
