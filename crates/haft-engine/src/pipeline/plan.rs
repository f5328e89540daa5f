//! Plan: every check that needs neither a person nor a running tool, in the order of the documentation.
//!
//! Takes calls; gives each as ready, as needing approval, or as resolved. Never runs a tool, writes nothing but
//! the claim on an idempotency key, asks nobody. A batch is planned whole before anyone is asked.

mod decide;
mod explain;
mod limits;
mod writes;

pub(crate) use decide::{confirm_reason, decide, denied, disabled, listed, resolved};
pub(crate) use explain::explain;
pub(crate) use writes::{is_general, when_asked};

use super::types::{
    CallRecord, CallState, Containment, EarlyExit, Facts, NeedsApproval, Planned, Ready,
    containment::{contain, enter},
    unless_cancelled,
};
use crate::{
    panic_guard::{PanicGuard, guarded, guarded_async},
    ports::Ports,
    registry::Registered,
    telemetry,
};
use decide::{guard_failed, guard_panicked};
use futures_util::FutureExt;
use haft_core::{
    ApprovalId, Arguments, BatchOrigin, CallOptions, ErrorCode, ExecutionId, Footprint, Tier, ToolError,
    ToolsMode,
    port::{Authorisation, Claim, Verdict},
};
use haft_schema::{Coercion, Fitting};
use haft_sdk::{Args, Prepared};
use limits::{bounds, within_licence};
use std::{collections::HashSet, sync::Arc};

/// What is planned for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To run.
    Run,
    /// To run with the arguments that a person changed: what was claimed is claimed.
    Again,
    /// To see what would happen: nothing is claimed.
    DryRun,
}

/// Plans calls that belong together; a batch has an origin, a single call has none.
pub(crate) async fn plan(
    ports: &Ports,
    origin: Option<BatchOrigin>,
    calls: &[Arc<CallState>],
    purpose: Purpose,
) -> Vec<Planned> {
    let whole = origin.and_then(|origin| batch_too_large(ports, calls, origin)).map(Box::new);
    if let (Some(refusal), Some(first), true) = (&whole, calls.first(), purpose == Purpose::Run) {
        telemetry::batch_too_large(calls.len(), refusal.most, first.context.tier);
    }
    let mut seen = HashSet::new();
    let mut planned = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter().enumerate() {
        let shape = match &whole {
            Some(refusal) if index >= refusal.from => Err(Box::new(refusal.error.clone())),
            _ if calls.len() > 1 && !call.tool_call.id.is_empty() && !seen.insert(&*call.tool_call.id) => {
                Err(Box::new(duplicate_id(call)))
            }
            _ => Ok(()),
        };
        planned.push(plan_call(ports, CallRecord::of(call), shape, purpose).await);
    }
    planned
}

/// Whether a batch is refused whole, because the caller's licence tier does not allow so many calls.
pub(crate) fn is_above_tier(calls: &[Arc<CallState>], origin: BatchOrigin) -> bool {
    let most = calls.first().and_then(|call| call.context.tier.max_batch());
    origin == BatchOrigin::Client && most.is_some_and(|most| calls.len() > most)
}

struct BatchRefusal {
    /// The first call that is refused.
    from: usize,
    /// The most calls that would have been taken.
    most: usize,
    error: ToolError,
}

/// A model's answer loses the calls over the limit; any other batch is refused whole.
fn batch_too_large(ports: &Ports, calls: &[Arc<CallState>], origin: BatchOrigin) -> Option<BatchRefusal> {
    let count = calls.len();
    match origin {
        BatchOrigin::Model => {
            let most = ports.settings.max_calls_per_answer;
            let text =
                format!("Exceeded max tool calls per batch: {count} calls, and at most {most} are run");
            let error = ToolError::new(ErrorCode::LimitExceeded, text);
            (count > most).then_some(BatchRefusal { from: most, most, error })
        }
        BatchOrigin::Client => {
            let tier = calls.first()?.context.tier;
            let most = tier.max_batch().filter(|most| count > *most)?;
            let text = format!(
                "A batch of {count} calls is more than the {tier:?} tier allows ({most}). Nothing was run. Send \
                 fewer calls at once"
            );
            Some(BatchRefusal { from: 0, most, error: ToolError::new(ErrorCode::LimitExceeded, text) })
        }
    }
}

fn duplicate_id(call: &CallState) -> ToolError {
    let text = format!("Duplicate tool call id: {}. The first call of that id was taken", call.tool_call.id);
    ToolError::new(ErrorCode::DuplicateCallId, text)
}

/// Plans a call whose arguments a person changed, as if it had come in like that.
pub(crate) async fn plan_again(ports: &Ports, call: CallRecord) -> Planned {
    plan_call(ports, call, Ok(()), Purpose::Again).await
}

async fn plan_call(
    ports: &Ports,
    mut call: CallRecord,
    place: Result<(), Box<ToolError>>,
    purpose: Purpose,
) -> Planned {
    let (state, facts) = call.parts();
    let checked = check_call(ports, state, facts, place, purpose).await;
    if purpose != Purpose::DryRun {
        call.announce();
    }
    match checked {
        Ok(Checked::Passed(passed)) => passed.planned(call),
        Ok(Checked::Follows(leader)) => Planned::Follows(call, leader),
        Ok(Checked::AwaitsResult) => Planned::AwaitingResult(call),
        Err(exit) => Planned::Resolved(call, exit),
    }
}

/// What the checks of a call come to, where none of them refuses it.
enum Checked {
    /// All were passed.
    Passed(Passed),
    /// Another call with the same idempotency key runs.
    Follows(ExecutionId),
    /// Somebody outside supplies the result.
    AwaitsResult,
}

/// A call that passed all checks: what is known of it beside its facts.
struct Passed {
    prepared: PanicGuard<Box<dyn Prepared>>,
    arguments: Args,
    footprint: Footprint,
    containment: Containment,
    has_side_effects: bool,
    forces_approval: bool,
    /// Why a person has to agree, where one has to.
    reason: Option<String>,
    asked_before: Option<ApprovalId>,
}

impl Passed {
    fn planned(self, call: CallRecord) -> Planned {
        let Passed { prepared, arguments, footprint, containment, .. } = self;
        let Passed { has_side_effects, forces_approval, .. } = self;
        let cancel = Arc::clone(&call.cancel);
        let ready = Ready {
            call,
            prepared,
            arguments,
            cancel,
            footprint,
            containment,
            has_side_effects,
            forces_approval,
        };
        let asked_before = self.asked_before;
        match self.reason {
            Some(reason) => Planned::NeedsApproval(Box::new(NeedsApproval { ready, reason, asked_before })),
            None => Planned::Ready(ready),
        }
    }
}

async fn check_call(
    ports: &Ports,
    call: &Arc<CallState>,
    facts: &mut Facts,
    place: Result<(), Box<ToolError>>,
    purpose: Purpose,
) -> Result<Checked, EarlyExit> {
    // 0. The context is well formed.
    call.context.check().map_err(|problem| ToolError::new(ErrorCode::PermissionDenied, problem))?;
    // 1. Switched off.
    if ports.settings.mode == ToolsMode::Disabled {
        return Err(ToolError::new(ErrorCode::ToolDisabled, "Tool execution disabled").into());
    }
    if !ports.policy.is_enabled() {
        return Err(ToolError::from(ErrorCode::ToolDisabled).into());
    }
    // 2. Shape: the place in the batch, then the arguments. The tool is looked up first because some have a limit of
    // their own.
    place.map_err(|error| *error)?;
    let registered = look_up(ports, &call.tool_call.name)?;
    let arguments = shape(ports, call, facts.arguments(call), registered.as_deref())?;
    // 3. Lookup.
    let registered = registered.ok_or_else(|| not_found(ports, &call.tool_call.name))?;
    let registered = call.registered.get_or_init(|| registered);
    let definition = &registered.definition;
    if !registered.is_enabled() {
        return Err(disabled(registered).into());
    }
    if definition.tier > call.context.tier {
        return Err(above_tier(call, registered).into());
    }
    // 4. Denylist.
    listed(ports, call, facts, definition)?;
    // 5. Permission.
    match authorise(ports, call, definition).await? {
        Authorisation::Granted => {}
        Authorisation::Denied { missing, reason } => {
            return Err(lacks(registered, &missing, &reason).into());
        }
        Authorisation::NotListed { agent } => return Err(not_listed(registered, &agent).into()),
        Authorisation::Unlicensed { what, needed } => {
            return Err(unlicensed(call, &what, needed).into());
        }
    }
    // 6. Idempotency.
    let mut asked_before = None;
    if let (Some(key), Purpose::Run) = (&call.tool_call.idempotency_key, purpose) {
        match Box::pin(claim(ports, call, facts, registered, key)).await? {
            Claimed::Mine(approval) => asked_before = approval,
            Claimed::Follow(leader) => return Ok(Checked::Follows(leader)),
        }
    }
    // 7. Arguments.
    let coercion = coercion(ports, &call.options);
    let Fitting { arguments, coerced } = registered.arguments.check(definition, arguments, coercion)?;
    if ports.settings.mode == ToolsMode::ParseOnly {
        return Ok(Checked::AwaitsResult);
    }
    // 8. Limits, prepare, footprint, containment. What the tool itself says about the call comes before what would
    // hold it: a tool that cannot run at all needs no jail.
    enter(ports, call)?;
    let bounds = bounds(ports, call, facts, registered, call.options.timeout)?;
    let arguments = Args { value: arguments, original: facts.arguments(call).clone() };
    let (prepared, footprint, confirm, (timeout, stages)) = guarded(|| {
        let prepared = PanicGuard::new(registered.tool.prepare(&arguments)?);
        let (footprint, confirm, own) = prepared
            .get()
            .map(|prepared| {
                (prepared.footprint(), prepared.confirm(), (prepared.timeout(), prepared.stages()))
            })
            .unwrap_or_default();
        let workspace = &*call.reach().workspace;
        let footprint = resolved(workspace, footprint, &call.context.tenant)?;
        let confirm = confirm_reason(workspace, registered, confirm, &footprint)?;
        Ok((prepared, footprint, confirm, own))
    })?;
    let bounds = match timeout {
        Some(_) if call.options.timeout.is_none() => limits::bounds(ports, call, facts, registered, timeout)?,
        _ => bounds,
    };
    facts.bounds = Some(bounds);
    let level = contain(ports, call, registered, &footprint)?;
    within_licence(ports, call, registered, level)?;
    let writes = writes::choose(ports, call, registered, stages, level)?;
    facts.staging = writes.facts();
    // 9. Policy.
    let verdict = decide(ports, call, definition, (&arguments, &footprint), confirm.as_deref())?;
    let verdict = when_asked(ports, call, definition, writes.is_staged, stages, verdict);
    let (rule, reason, confirmed) = match verdict {
        Verdict::Deny { rule, reason } => {
            return Err(denied(facts, rule, reason).into());
        }
        Verdict::Ask { rule, reason } => (rule, Some(reason), false),
        Verdict::Allow { rule, confirmed } => (rule, None, confirmed),
    };
    facts.rule = Some(rule);
    facts.coercions = coerced;
    let forces_approval = confirm.is_some();
    let reason = reason.or(confirm.filter(|_| !confirmed)).or_else(|| writes.loosens()).or_else(|| {
        call.options.require_confirmation.then(|| "the caller wants this call to be confirmed".to_owned())
    });
    Ok(Checked::Passed(Passed {
        prepared,
        arguments,
        footprint,
        containment: Containment::new(level, registered, writes.is_staged),
        has_side_effects: definition.has_side_effects(),
        forces_approval,
        reason,
        asked_before,
    }))
}

/// Whether arguments may be turned into what the schema wants, where nothing is lost.
pub(crate) fn coercion(ports: &Ports, options: &CallOptions) -> Coercion {
    match options.coerce.unwrap_or(ports.settings.coerce_arguments) {
        true => Coercion::Lossless,
        false => Coercion::Off,
    }
}

fn shape(
    ports: &Ports,
    call: &CallState,
    arguments: &Arguments,
    registered: Option<&Registered>,
) -> Result<serde_json::Map<String, serde_json::Value>, ToolError> {
    let own_limit = registered.and_then(|registered| registered.definition.constraints.max_argument_size);
    let most =
        own_limit.map_or(ports.settings.max_args_bytes, |own| usize::try_from(own).unwrap_or(usize::MAX));
    let length = arguments.len();
    if length > most {
        let text =
            format!("Tool arguments too large: {length} bytes, and {most} is the most. Send less at once");
        return Err(ToolError::new(ErrorCode::LimitExceeded, text));
    }
    call.options.check()?;
    if call.options.detached {
        let text =
            "Only a single call can be detached, and not one of a batch or of another call. Send it without";
        return Err(ToolError::new(ErrorCode::ValidationFailed, text));
    }
    arguments.parse().map_err(|problem| {
        let text = format!("Invalid tool arguments JSON: {problem}");
        ToolError::new(ErrorCode::ValidationFailed, text).with_problems(vec![problem])
    })
}

/// The tool of that name. Where it cannot be known how a tool is set up, none is called.
pub(crate) fn look_up(ports: &Ports, name: &str) -> Result<Option<Arc<Registered>>, ToolError> {
    let found = ports.registry.find(name);
    found.map_err(|error| ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error))
}

fn not_found(ports: &Ports, name: &str) -> ToolError {
    let shown = haft_core::text::one_line(name, 80);
    let hint = match ports.registry.nearest(name) {
        Some(near) => format!(". Did you mean `{near}`?"),
        None => String::new(),
    };
    ToolError::new(ErrorCode::ToolNotFound, format!("Unknown tool: {shown}{hint}"))
}

fn above_tier(call: &CallState, registered: &Registered) -> ToolError {
    unlicensed(call, &format!("`{}`", registered.name), registered.definition.tier)
}

/// What would be needed, in words for the caller.
fn unlicensed(call: &CallState, what: &str, needed: Tier) -> ToolError {
    let refused = call.context.tier.require(what, |tier| tier >= needed);
    // It was found that the tier is too low, so this is the refusal.
    refused.err().unwrap_or_else(|| ErrorCode::LicenseRequired.into())
}

fn not_listed(registered: &Registered, agent: &str) -> ToolError {
    let text =
        format!("The agent `{agent}` may not call `{}`: its definition does not list it", registered.name);
    ToolError::new(ErrorCode::PermissionDenied, text)
}

fn lacks(registered: &Registered, missing: &str, reason: &str) -> ToolError {
    let text = format!(
        "`{}` needs the permission `{missing}`, which this caller does not have: {reason}",
        registered.name
    );
    ToolError::new(ErrorCode::PermissionDenied, text)
}

/// Asks whether the caller is permitted. Most answers are there at once; waiting for one is boxed, because its state
/// would make every call larger to move.
async fn authorise(
    ports: &Ports,
    call: &CallState,
    definition: &haft_core::ToolDefinition,
) -> Result<Authorisation, ToolError> {
    let mut answer =
        guarded(|| Ok(ports.authoriser.authorise(&call.context, definition))).map_err(guard_panicked)?;
    let at_once = guarded(|| Ok((&mut answer).now_or_never())).map_err(guard_panicked)?;
    let answer = match at_once {
        Some(answer) => answer,
        None => {
            let waiting = Box::pin(unless_cancelled(call, guarded_async(answer)));
            waiting.await?.map_err(guard_panicked)?
        }
    };
    answer.map_err(guard_failed)
}

enum Claimed {
    Mine(Option<ApprovalId>),
    Follow(ExecutionId),
}

async fn claim(
    ports: &Ports,
    call: &CallState,
    facts: &mut Facts,
    registered: &Registered,
    key: &Arc<str>,
) -> Result<Claimed, EarlyExit> {
    let request = call.claim_request(registered, key);
    // Noted before it is asked for: should this be dropped while the store thinks, the end gives it back.
    facts.claim = Some(Box::new(request.clone()));
    let claim = unless_cancelled(call, ports.store.claim(request)).await?;
    let claim =
        claim.map_err(|error| ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error))?;
    let not_mine = match claim {
        Claim::Fresh => return Ok(Claimed::Mine(None)),
        Claim::Waiting(approval) => return Ok(Claimed::Mine(Some(approval))),
        Claim::InFlight(leader) => Ok(Claimed::Follow(leader)),
        Claim::Settled(result) => Err(EarlyExit::Replay(result)),
        Claim::Conflict => Err(ToolError::from(ErrorCode::IdempotencyConflict).into()),
        Claim::OutcomeUnknown(_) => Err(ToolError::from(ErrorCode::OutcomeUnknown).into()),
    };
    facts.claim = None;
    not_mine
}
