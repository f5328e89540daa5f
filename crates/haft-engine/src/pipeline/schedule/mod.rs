//! Schedule: when calls start. It does not know what a tool does, only what it touches.
//!
//! `order` decides which calls of a batch wait for which; this file lets the others overlap. One start goes through
//! `admit`: the repeat guard, stored results, and then `attempts`, the only loop over attempts at a call.

pub(crate) mod admit;
pub(crate) mod attempts;
pub(crate) mod breaker;
pub(crate) mod cache;
pub(crate) mod controls;
pub(crate) mod lanes;
pub(crate) mod order;
pub(crate) mod quota;
pub(crate) mod rate;
pub(crate) mod repeat;
pub(crate) mod retry;

use super::types::{Batch, Decided, EarlyExit, cancelled_with};
use futures_util::{StreamExt, future::Either, stream::FuturesUnordered};
use haft_core::{ErrorCode, ExecutionId, Strategy, ToolError, ToolResult};
use order::{BatchPlan, Step, dependencies};
use std::{
    collections::{BTreeSet, HashMap},
    future::Future,
};

/// A call whose turn has come; with the reason, if it does not start any more.
pub(crate) struct Turn {
    pub(crate) decided: Decided,
    pub(crate) skipped: Option<Box<ToolError>>,
}

/// Gives every call its turn; results are in call order. After a stop, nothing new starts, and what did not start says
/// why. Not an `async fn`, and the rare case is boxed: a single call would carry the size of both around.
pub(crate) fn schedule<F: Future<Output = ToolResult>, T: FnMut(Turn) -> F>(
    batch: Option<&Batch>,
    continue_on_failure: bool,
    batch_plan: &BatchPlan,
    decided: Vec<Decided>,
    take: T,
) -> impl Future<Output = Vec<ToolResult>> {
    match batch_plan.strategy {
        Strategy::Sequential => Either::Left(one_by_one(batch, continue_on_failure, decided, take)),
        Strategy::Parallel | Strategy::Smart => {
            Either::Right(Box::pin(overlapping(batch, continue_on_failure, batch_plan, decided, take)))
        }
    }
}

/// Made of as little as can be: a single call goes through this, too.
fn one_by_one<F: Future<Output = ToolResult>>(
    batch: Option<&Batch>,
    continue_on_failure: bool,
    decided: Vec<Decided>,
    mut take: impl FnMut(Turn) -> F,
) -> impl Future<Output = Vec<ToolResult>> {
    let mut results: Vec<ToolResult> = Vec::with_capacity(decided.len());
    let mut decided = decided.into_iter();
    let mut stopped_by = None;
    async move {
        while decided.len() > 0 {
            let result = take(next_turn(batch, stopped_by, &mut decided)).await;
            if !continue_on_failure && !result.is_success() && stopped_by.is_none() {
                stopped_by = Some(results.len());
            }
            results.push(result);
        }
        results
    }
}

fn next_turn(
    batch: Option<&Batch>,
    stopped_by: Option<usize>,
    decided: &mut std::vec::IntoIter<Decided>,
) -> Turn {
    let Some(decided) = decided.next() else { unreachable!("there is one more") };
    Turn { decided, skipped: skipped(batch, stopped_by) }
}

/// Of the calls that wait for nobody any more, the first in call order starts first. All in the caller's own task:
/// dropping the batch still drops everything.
async fn overlapping<F: Future<Output = ToolResult>>(
    batch: Option<&Batch>,
    continue_on_failure: bool,
    batch_plan: &BatchPlan,
    decided: Vec<Decided>,
    mut take: impl FnMut(Turn) -> F,
) -> Vec<ToolResult> {
    let waits_for = dependencies(batch_plan.strategy, &steps(&decided));
    let mut blocks: Vec<Vec<usize>> = vec![Vec::new(); decided.len()];
    let mut open: Vec<usize> = waits_for.iter().map(Vec::len).collect();
    for (place, earlier) in waits_for.iter().enumerate() {
        earlier.iter().for_each(|&earlier| blocks[earlier].push(place));
    }
    let refused = first_refused(continue_on_failure, &decided);
    let mut waiting: Vec<Option<Decided>> = decided.into_iter().map(Some).collect();
    // Those that could start, in call order: calls that run, and the rest, which needs no room.
    let (mut ready, mut idle) = (BTreeSet::new(), BTreeSet::new());
    for place in (0..waiting.len()).filter(|&place| open[place] == 0) {
        let set = if matches!(waiting[place], Some(Decided::Go(_))) { &mut ready } else { &mut idle };
        set.insert(place);
    }
    let mut results: Vec<Option<ToolResult>> = waiting.iter().map(|_| None).collect();
    let mut running = FuturesUnordered::new();
    let (mut at_once, mut stopped_by) = (0, None);
    loop {
        let has_room = at_once < batch_plan.at_once || stopped_by.is_some();
        let startable = idle.pop_first().or_else(|| if has_room { ready.pop_first() } else { None });
        if let Some(place) = startable {
            let Some(decided) = waiting[place].take() else { continue };
            let skipped = skipped(batch, stopped_by.or(refused.filter(|refused| *refused < place)));
            let has_room = matches!(decided, Decided::Go(_)) && skipped.is_none();
            at_once += usize::from(has_room);
            let taken = take(Turn { decided, skipped });
            running.push(async move { (place, has_room, taken.await) });
            continue;
        }
        let Some((place, had_room, result)) = running.next().await else { break };
        at_once -= usize::from(had_room);
        // A refused call stops what comes after it, as if it had had its turn in call order.
        let has_failed = !result.is_success() && refused.is_none_or(|refused| place < refused);
        if !continue_on_failure && has_failed && stopped_by.is_none() {
            stopped_by = Some(place);
        }
        results[place] = Some(result);
        for &later in &blocks[place] {
            open[later] -= 1;
            if open[later] == 0 {
                let set = if matches!(waiting[later], Some(Decided::Go(_))) { &mut ready } else { &mut idle };
                set.insert(later);
            }
        }
    }
    // Every call depends on earlier ones only, so each had its turn.
    results.into_iter().flatten().collect()
}

/// The first call that is known not to succeed before anything runs, where the batch stops at such a call.
fn first_refused(continue_on_failure: bool, decided: &[Decided]) -> Option<usize> {
    let is_refused = |decided: &Decided| match decided {
        Decided::Resolved(_, EarlyExit::Error(_)) => true,
        Decided::Resolved(_, EarlyExit::Replay(result)) => !result.is_success(),
        Decided::Go(_) | Decided::Follows(..) | Decided::AwaitingResult(_) => false,
    };
    (!continue_on_failure).then(|| decided.iter().position(is_refused)).flatten()
}

fn steps(decided: &[Decided]) -> Vec<Step<'_>> {
    let places: HashMap<ExecutionId, usize> =
        decided.iter().enumerate().map(|(place, decided)| (decided.call().id, place)).collect();
    decided
        .iter()
        .enumerate()
        .map(|(place, decided)| match decided {
            Decided::Go(ready) => {
                Step::Runs { footprint: &ready.footprint, has_side_effects: ready.has_side_effects }
            }
            Decided::Follows(_, leader) => match places.get(leader) {
                Some(&leader) if leader < place => Step::Follows(leader),
                _ => Step::Idle,
            },
            Decided::AwaitingResult(_) | Decided::Resolved(..) => Step::Idle,
        })
        .collect()
}

/// Why a call does not start any more, if it does not.
fn skipped(batch: Option<&Batch>, stopped_by: Option<usize>) -> Option<Box<ToolError>> {
    let cancelled = batch.and_then(|batch| Some((batch.cancel.note(), batch.cancel.reason()?)));
    match (cancelled, stopped_by) {
        (Some((note, reason)), _) => Some(Box::new(cancelled_with(note, reason))),
        (None, Some(place)) => Some(Box::new(not_started(place))),
        (None, None) => None,
    }
}

fn not_started(failed: usize) -> ToolError {
    let text = format!("Not started, because call {} of this batch did not succeed", failed + 1);
    ToolError::new(ErrorCode::NotStarted, text)
}
