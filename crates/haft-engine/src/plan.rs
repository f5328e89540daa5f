//! Plan: every check that needs neither a person nor a running tool, in the order of the documentation.
//!
//! Takes calls; gives each as ready, as needing approval, or as resolved. Never runs a tool, writes nothing but
//! the claim on an idempotency key, asks nobody. A batch is planned whole before anyone is asked.

use crate::{
    contained::{Contained, guarded, guarded_async},
    containment::{Containment, contain, enter},
    frame::{Bounds, Frame},
    ports::Ports,
    registry::Registered,
    run::unless_cancelled,
};
use futures_util::FutureExt;
use haft_core::{
    ApprovalId, BatchOrigin, Category, ErrorCode, ExecutionId, Footprint, IsolationLevel, Resource, Tier,
    ToolDefinition, ToolError, ToolResult, ToolsMode, iso_duration,
    port::{Authorisation, Claim, ClaimRequest, GuardError, RuleName, Subject, Verdict},
};
use haft_schema::{Coercion, Fitting};
use haft_sdk::{
    Args, Cancel, Prepared,
    capability::Workspace,
    files::{Access, Scope},
};
use std::{collections::HashSet, sync::Arc, time::Duration};

/// A call that passed every check.
pub(crate) struct Ready {
    pub(crate) frame: Arc<Frame>,
    pub(crate) prepared: Contained<Box<dyn Prepared>>,
    /// From which it is prepared again where it is tried again.
    pub(crate) arguments: Args,
    /// Ends the present attempt.
    pub(crate) cancel: Arc<Cancel>,
    pub(crate) footprint: Footprint,
    pub(crate) containment: Containment,
    pub(crate) has_side_effects: bool,
    /// The tool itself says that a person must agree to this very call.
    pub(crate) is_grave: bool,
}

impl Ready {
    /// Makes room for another attempt; false where somebody has cancelled the call.
    pub(crate) fn next_attempt(&mut self) -> bool {
        match self.frame.next_switch() {
            Some(cancel) => self.cancel = cancel,
            None => return false,
        }
        true
    }

    /// Whether it changes nothing, by what the tool says of itself and of this very call.
    pub(crate) fn only_reads(&self) -> bool {
        !self.has_side_effects && self.footprint.writes.is_empty()
    }

    /// Whether running it twice does no harm.
    pub(crate) fn may_run_again(&self) -> bool {
        let is_idempotent = self.frame.registered.get().is_some_and(|tool| tool.definition.idempotent);
        self.only_reads() || (self.has_side_effects && is_idempotent)
    }

    /// Whether it is a flow.
    pub(crate) fn is_flow(&self) -> bool {
        self.frame.registered.get().is_some_and(|tool| tool.definition.source == haft_core::Source::Flow)
            && self.passes_on()
    }

    /// Whether it is not the tool itself that changes anything, but something that it calls.
    pub(crate) fn passes_on(&self) -> bool {
        !self.has_side_effects && !self.footprint.writes.is_empty()
    }
}

/// What planning a call came to.
pub(crate) enum Planned {
    /// It may run.
    Ready(Ready),
    /// It may run if a person agrees.
    NeedsApproval(Box<Asking>),
    /// Another one with the same idempotency key runs: its result will be this one's.
    Follows(Arc<Frame>, ExecutionId),
    /// Somebody outside supplies the result.
    Parked(Arc<Frame>),
    /// It is over.
    Resolved(Arc<Frame>, Exit),
}

/// A call that a person has to agree to. Apart, so that those who need nobody are not larger for it.
pub(crate) struct Asking {
    pub(crate) ready: Ready,
    pub(crate) reason: String,
    /// The question that an earlier call with the same idempotency key asked.
    pub(crate) asked_before: Option<ApprovalId>,
}

/// How a call is over before it ran.
pub(crate) enum Exit {
    /// With an error.
    Error(ToolError),
    /// With the result that the same call had before.
    Replay(Arc<ToolResult>),
}

impl From<ToolError> for Exit {
    fn from(error: ToolError) -> Self {
        Exit::Error(error)
    }
}

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
    frames: &[Arc<Frame>],
    purpose: Purpose,
) -> Vec<Planned> {
    let whole = origin.and_then(|origin| batch_too_large(ports, frames, origin)).map(Box::new);
    let mut seen = HashSet::new();
    let mut planned = Vec::with_capacity(frames.len());
    for (index, frame) in frames.iter().enumerate() {
        let shape = match &whole {
            Some(refusal) if index >= refusal.from => Err(Box::new(refusal.error.clone())),
            _ if frames.len() > 1 && !frame.call.id.is_empty() && !seen.insert(&*frame.call.id) => {
                Err(Box::new(duplicate_id(frame)))
            }
            _ => Ok(()),
        };
        let outcome = plan_call(ports, frame, shape, purpose).await;
        planned.push(outcome.unwrap_or_else(|exit| Planned::Resolved(Arc::clone(frame), exit)));
    }
    planned
}

/// Whether a batch is refused whole, because the caller's licence tier does not allow so many calls.
pub(crate) fn is_above_tier(frames: &[Arc<Frame>], origin: BatchOrigin) -> bool {
    let most = frames.first().and_then(|frame| frame.context.tier.max_batch());
    origin == BatchOrigin::Client && most.is_some_and(|most| frames.len() > most)
}

struct BatchRefusal {
    /// The first call that is refused.
    from: usize,
    error: ToolError,
}

/// A model's answer loses the calls over the limit; any other batch is refused whole.
fn batch_too_large(ports: &Ports, frames: &[Arc<Frame>], origin: BatchOrigin) -> Option<BatchRefusal> {
    let count = frames.len();
    match origin {
        BatchOrigin::Model => {
            let most = ports.settings.max_calls_per_answer;
            let text =
                format!("Exceeded max tool calls per batch: {count} calls, and at most {most} are run");
            let error = ToolError::new(ErrorCode::LimitExceeded, text);
            (count > most).then_some(BatchRefusal { from: most, error })
        }
        BatchOrigin::Client => {
            let tier = frames.first()?.context.tier;
            let most = tier.max_batch().filter(|most| count > *most)?;
            let text = format!(
                "A batch of {count} calls is more than the {tier:?} tier allows ({most}). Nothing was run. Send \
                 fewer calls at once"
            );
            Some(BatchRefusal { from: 0, error: ToolError::new(ErrorCode::LimitExceeded, text) })
        }
    }
}

fn duplicate_id(frame: &Frame) -> ToolError {
    let text = format!("Duplicate tool call id: {}. The first call of that id was taken", frame.call.id);
    ToolError::new(ErrorCode::DuplicateCallId, text)
}

/// Plans a call whose arguments a person changed, as if it had come in like that.
pub(crate) async fn plan_again(ports: &Ports, frame: &Arc<Frame>) -> Planned {
    let outcome = plan_call(ports, frame, Ok(()), Purpose::Again).await;
    outcome.unwrap_or_else(|exit| Planned::Resolved(Arc::clone(frame), exit))
}

async fn plan_call(
    ports: &Ports,
    frame: &Arc<Frame>,
    place: Result<(), Box<ToolError>>,
    purpose: Purpose,
) -> Result<Planned, Exit> {
    // 0. The context is well formed.
    frame.context.check().map_err(|problem| ToolError::new(ErrorCode::PermissionDenied, problem))?;
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
    let registered = ports.registry.lookup(&frame.call.name);
    let arguments = shape(ports, frame, registered.as_deref())?;
    // 3. Lookup.
    let registered = registered.ok_or_else(|| not_found(ports, &frame.call.name))?;
    let registered = frame.registered.get_or_init(|| registered);
    let definition = &registered.definition;
    if !registered.is_enabled() {
        return Err(disabled(registered).into());
    }
    if definition.tier > frame.context.tier {
        return Err(above_tier(frame, registered).into());
    }
    // 4. Denylist.
    listed(ports, frame, definition)?;
    // 5. Permission.
    match authorise(ports, frame, definition).await? {
        Authorisation::Granted => {}
        Authorisation::Denied { missing, reason } => {
            return Err(lacks(registered, &missing, &reason).into());
        }
        Authorisation::Unlicensed { what, needed } => {
            return Err(unlicensed(frame, &what, needed).into());
        }
    }
    // 6. Idempotency.
    let mut asked_before = None;
    if let (Some(key), Purpose::Run) = (&frame.call.idempotency_key, purpose) {
        match Box::pin(claim(ports, frame, registered, key)).await? {
            Claimed::Mine(approval) => asked_before = approval,
            Claimed::Follow(leader) => return Ok(Planned::Follows(Arc::clone(frame), leader)),
        }
    }
    // 7. Arguments.
    let coercion = if frame.options.coerce { Coercion::Lossless } else { Coercion::Off };
    let Fitting { arguments, coerced } = registered.arguments.check(definition, arguments, coercion)?;
    if ports.settings.mode == ToolsMode::ParseOnly {
        return Ok(Planned::Parked(Arc::clone(frame)));
    }
    // 8. Limits, prepare, footprint, containment. What the tool itself says about the call comes before what would
    // hold it: a tool that cannot run at all needs no jail.
    enter(ports, frame)?;
    let bounds = bounds(ports, frame, registered, frame.options.timeout)?;
    let arguments = Args { value: arguments, original: frame.arguments() };
    let (prepared, footprint, confirm, timeout) = guarded(|| {
        let prepared = Contained::new(registered.tool.prepare(&arguments)?);
        let (footprint, confirm, timeout) = prepared
            .get()
            .map(|prepared| (prepared.footprint(), prepared.confirm(), prepared.timeout()))
            .unwrap_or_default();
        let workspace = &*frame.reach().workspace;
        let footprint = resolved(workspace, footprint)?;
        let confirm = confirm_reason(workspace, definition, confirm, &footprint)?;
        Ok((prepared, footprint, confirm, timeout))
    })?;
    let bounds = match timeout {
        Some(_) if frame.options.timeout.is_none() => self::bounds(ports, frame, registered, timeout)?,
        _ => bounds,
    };
    frame.set_bounds(bounds);
    let level = contain(ports, frame, registered, &footprint)?;
    within_licence(ports, frame, registered, level)?;
    // 9. Policy.
    let verdict = decide(ports, frame, &arguments, &footprint, confirm.as_deref())?;
    let has_side_effects = definition.has_side_effects();
    let is_grave = confirm.is_some();
    let ready = Ready {
        frame: Arc::clone(frame),
        prepared,
        arguments,
        cancel: Arc::clone(&frame.cancel),
        footprint,
        containment: Containment::new(level, registered),
        has_side_effects,
        is_grave,
    };
    let (rule, reason, confirmed) = match verdict {
        Verdict::Deny { rule, reason } => {
            return Err(denied(frame, rule, reason).into());
        }
        Verdict::Ask { rule, reason } => (rule, Some(reason), false),
        Verdict::Allow { rule, confirmed } => (rule, None, confirmed),
    };
    {
        let mut facts = frame.facts();
        facts.rule = Some(rule);
        facts.coercions = coerced;
    }
    let reason = reason.or(confirm.filter(|_| !confirmed)).or_else(|| {
        frame.options.require_confirmation.then(|| "the caller wants this call to be confirmed".to_owned())
    });
    Ok(match reason {
        Some(reason) => Planned::NeedsApproval(Box::new(Asking { ready, reason, asked_before })),
        None => Planned::Ready(ready),
    })
}

/// Refuses a tool that is on the denylist.
pub(crate) fn listed(
    ports: &Ports,
    frame: &Frame,
    definition: &haft_core::ToolDefinition,
) -> Result<(), ToolError> {
    let listed = guarded(|| ports.policy.denies(&frame.context, definition).map_err(guard_failed));
    match listed.map_err(guard_panicked)? {
        Some(reason) => Err(denied(frame, "denylist".into(), reason)),
        None => Ok(()),
    }
}

/// What policy says to a call that touches this.
pub(crate) fn decide(
    ports: &Ports,
    frame: &Frame,
    arguments: &Args,
    footprint: &Footprint,
    confirm: Option<&str>,
) -> Result<Verdict, ToolError> {
    let Some(registered) = frame.registered.get() else { return Err(ErrorCode::ToolNotFound.into()) };
    let subject = Subject {
        context: &frame.context,
        definition: &registered.definition,
        arguments: &arguments.value,
        footprint,
        folder: &crate::containment::folder(frame),
        confirm,
        now: ports.clock.now(),
    };
    guarded(|| ports.policy.decide(&subject).map_err(guard_failed)).map_err(guard_panicked)
}

/// The footprint with every path as the path jail resolves it; one that leads out is refused.
pub(crate) fn resolved(workspace: &dyn Workspace, mut footprint: Footprint) -> Result<Footprint, ToolError> {
    let sides = [(&mut footprint.reads, Access::Read), (&mut footprint.writes, Access::Write)];
    for (resources, access) in sides {
        for resource in resources {
            if let Resource::Path(path) = resource {
                *path = workspace.locate(path, access)?.path;
            }
        }
    }
    Ok(footprint)
}

/// Why this very call has to be confirmed: its tool says so, or it changes a file that runs programs later. Only for code in
/// haft's own process: what a jailed program changes is held by its jail.
pub(crate) fn confirm_reason(
    workspace: &dyn Workspace,
    definition: &ToolDefinition,
    of_tool: Option<String>,
    footprint: &Footprint,
) -> Result<Option<String>, ToolError> {
    if definition.constraints.required_isolation > IsolationLevel::None {
        return Ok(of_tool);
    }
    // File tools move and delete whole folders; others name what they work in.
    let scope = match definition.category {
        Category::FileSystem => Scope::Everything,
        _ => Scope::Entry,
    };
    let mut reasons: Vec<String> = of_tool.into_iter().collect();
    for resource in &footprint.writes {
        if let Resource::Path(path) = resource {
            reasons.extend(workspace.protects(path, scope)?);
        }
    }
    Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
}

fn shape(
    ports: &Ports,
    frame: &Frame,
    registered: Option<&Registered>,
) -> Result<serde_json::Map<String, serde_json::Value>, ToolError> {
    let own_limit = registered.and_then(|registered| registered.definition.constraints.max_argument_size);
    let most =
        own_limit.map_or(ports.settings.max_args_bytes, |own| usize::try_from(own).unwrap_or(usize::MAX));
    let arguments = frame.arguments();
    let length = arguments.len();
    if length > most {
        let text =
            format!("Tool arguments too large: {length} bytes, and {most} is the most. Send less at once");
        return Err(ToolError::new(ErrorCode::LimitExceeded, text));
    }
    if let Some(priority) = frame.options.priority.filter(|priority| !(1..=10).contains(priority)) {
        let text = format!("A priority is a number from 1 (last) to 10 (first), and not {priority}");
        return Err(ToolError::new(ErrorCode::ValidationFailed, text));
    }
    if frame.options.detached {
        let text =
            "Only a single call can be detached, and not one of a batch or of another call. Send it without";
        return Err(ToolError::new(ErrorCode::ValidationFailed, text));
    }
    arguments.parse().map_err(|problem| {
        let text = format!("Invalid tool arguments JSON: {problem}");
        ToolError::new(ErrorCode::ValidationFailed, text).with_problems(vec![problem])
    })
}

/// What policy refuses: the rule is on the record and on the result.
pub(crate) fn denied(frame: &Frame, rule: RuleName, reason: String) -> ToolError {
    let data = serde_json::json!({"rule": rule});
    frame.facts().rule = Some(rule);
    ToolError::new(ErrorCode::ToolDenied, reason).with_data(data)
}

fn not_found(ports: &Ports, name: &str) -> ToolError {
    let shown = haft_core::text::one_line(name, 80);
    let hint = match ports.registry.nearest(name) {
        Some(near) => format!(". Did you mean `{near}`?"),
        None => String::new(),
    };
    ToolError::new(ErrorCode::ToolNotFound, format!("Unknown tool: {shown}{hint}"))
}

pub(crate) fn disabled(registered: &Registered) -> ToolError {
    let text = format!("`{}` is disabled by an administrator. Use another tool", registered.name);
    ToolError::new(ErrorCode::ToolDisabled, text)
}

fn above_tier(frame: &Frame, registered: &Registered) -> ToolError {
    unlicensed(frame, &format!("`{}`", registered.name), registered.definition.tier)
}

/// What a call asks for beyond what its caller's tier includes.
fn within_licence(
    ports: &Ports,
    frame: &Frame,
    registered: &Registered,
    level: IsolationLevel,
) -> Result<(), ToolError> {
    let tier = frame.context.tier;
    // Nothing is above it.
    if tier == Tier::Enterprise {
        return Ok(());
    }
    let name = &registered.name;
    tier.require(format_args!("{level:?} isolation for `{name}`"), |tier| level <= tier.max_isolation())?;
    if ports.has_own_jail && level > IsolationLevel::None {
        let what = format_args!("`{name}` in `{}`, which did not come with haft,", ports.jail.name());
        tier.require(what, Tier::allows_own_jails)?;
    }
    if let Some(asked) = &frame.options.limits
        && let Some((name, mine, most)) = asked.exceeds(&tier.limits())
    {
        let what = format_args!("{name} of {mine}, where at most {most} are included,");
        tier.require(what, |tier| asked.exceeds(&tier.limits()).is_none())?;
    }
    Ok(())
}

/// What would be needed, in words for whoever was refused.
fn unlicensed(frame: &Frame, what: &str, needed: Tier) -> ToolError {
    let refused = frame.context.tier.require(what, |tier| tier >= needed);
    // It was found that the tier is too low, so this is the refusal.
    refused.err().unwrap_or_else(|| ErrorCode::LicenseRequired.into())
}

fn lacks(registered: &Registered, missing: &str, reason: &str) -> ToolError {
    let text = format!(
        "`{}` needs the permission `{missing}`, which this caller does not have: {reason}",
        registered.name
    );
    ToolError::new(ErrorCode::PermissionDenied, text)
}

/// Asks whether the caller is permitted. Most answers are there at once; waiting for one is boxed, because its state
/// would make every walk larger to move.
async fn authorise(
    ports: &Ports,
    frame: &Frame,
    definition: &haft_core::ToolDefinition,
) -> Result<Authorisation, ToolError> {
    let mut answer =
        guarded(|| Ok(ports.authoriser.authorise(&frame.context, definition))).map_err(guard_panicked)?;
    let at_once = guarded(|| Ok((&mut answer).now_or_never())).map_err(guard_panicked)?;
    let answer = match at_once {
        Some(answer) => answer,
        None => {
            let waiting = Box::pin(unless_cancelled(frame, guarded_async(answer)));
            waiting.await?.map_err(guard_panicked)?
        }
    };
    answer.map_err(guard_failed)
}

/// So does one that panics.
fn guard_panicked(panic: ToolError) -> ToolError {
    match panic.code {
        ErrorCode::Panicked => guard_failed(GuardError(panic.diagnostics.unwrap_or(panic.message))),
        _ => panic,
    }
}

/// A guard that errors denies.
fn guard_failed(error: GuardError) -> ToolError {
    ToolError::new(ErrorCode::ToolDenied, "This call could not be checked, so it was not run")
        .with_diagnostics(error)
}

enum Claimed {
    Mine(Option<ApprovalId>),
    Follow(ExecutionId),
}

async fn claim(
    ports: &Ports,
    frame: &Frame,
    registered: &Registered,
    key: &Arc<str>,
) -> Result<Claimed, Exit> {
    let request = claim_request(frame, registered, key);
    // Noted before it is asked for: should this be dropped while the store thinks, the end gives it back.
    frame.facts().claim = Some(Box::new(request.clone()));
    let claim = unless_cancelled(frame, ports.store.claim(request)).await?;
    let claim =
        claim.map_err(|error| ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error))?;
    let not_mine = match claim {
        Claim::Fresh => return Ok(Claimed::Mine(None)),
        Claim::Waiting(approval) => return Ok(Claimed::Mine(Some(approval))),
        Claim::InFlight(leader) => Ok(Claimed::Follow(leader)),
        Claim::Settled(result) => Err(Exit::Replay(result)),
        Claim::Conflict => Err(ToolError::from(ErrorCode::IdempotencyConflict).into()),
        Claim::OutcomeUnknown(_) => Err(ToolError::from(ErrorCode::OutcomeUnknown).into()),
    };
    frame.facts().claim = None;
    not_mine
}

pub(crate) fn claim_request(frame: &Frame, registered: &Registered, key: &Arc<str>) -> ClaimRequest {
    ClaimRequest {
        execution_id: frame.id,
        tenant: Arc::clone(&frame.context.tenant),
        principal: principal(&frame.context),
        tool: Arc::clone(&registered.name),
        key: Arc::clone(key),
        arguments: frame.call.arguments.clone(),
    }
}

/// Who makes a call, for what is remembered of it: the user, or else the agent. One cannot be called like the other: no name
/// has a control character.
pub(crate) fn principal(context: &haft_core::CallContext) -> Arc<str> {
    match &context.user {
        Some(user) => Arc::clone(user),
        None => format!("\u{1f}{}", context.agent).into(),
    }
}

/// The deadline and the room for output, or why the call cannot have them.
fn bounds(
    ports: &Ports,
    frame: &Frame,
    registered: &Registered,
    requested: Option<Duration>,
) -> Result<Bounds, ToolError> {
    let constraints = &registered.definition.constraints;
    let parent_limits = frame.parent_limits();
    let timeout = resolve_timeout(
        requested,
        constraints.default_timeout,
        constraints.max_execution_time,
        parent_limits.wall_time,
        ports.settings.default_timeout,
    )?;
    let timeout = adapted(ports, frame, registered, timeout);
    let tool_most = usize::try_from(constraints.max_output_size).unwrap_or(usize::MAX);
    let output = tool_most.min(ports.settings.max_output_bytes);
    if let Some(limits) = &frame.options.limits {
        limits.check_ceiling(&frame.reach().commands.ceiling())?;
    }
    if let (Some(limits), Some(parent)) = (&frame.options.limits, &frame.context.parent)
        && let Some((name, mine, theirs)) = limits.exceeds(&parent_limits)
    {
        let text = format!("{name} of {mine} is above the {theirs} of the sandbox {}", parent.sandbox_id);
        return Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text));
    }
    Ok(Bounds { timeout, output })
}

/// A shorter deadline where nobody named one and the tool's history suggests it.
fn adapted(ports: &Ports, frame: &Frame, registered: &Registered, planned: Duration) -> Duration {
    let (Some(adaptive), None) = (&ports.around.adaptive, frame.options.timeout) else { return planned };
    let Some(timeout) = adaptive.shorten(registered.stats_if_called(), planned) else { return planned };
    frame.scheduling(|facts| facts.adaptive_timeout = Some(timeout));
    timeout
}

/// The deadline: the request's, else the tool's, else the general one. A request above the tool's maximum or the
/// parent's is refused, naming both; a default is lowered to fit.
fn resolve_timeout(
    requested: Option<Duration>,
    tool_default: Option<Duration>,
    tool_most: Duration,
    parent_most: Option<Duration>,
    general: Duration,
) -> Result<Duration, ToolError> {
    let most = parent_most.map_or(tool_most, |parent| parent.min(tool_most));
    match requested {
        Some(requested) if requested > most => {
            let owner = if most == tool_most { "the tool" } else { "the sandbox around it" };
            let text = format!(
                "A timeout of {} is above the {} that {owner} allows. Ask for less",
                iso_duration::format(requested),
                iso_duration::format(most),
            );
            Err(ToolError::new(ErrorCode::ValidationFailed, text))
        }
        Some(requested) => Ok(requested),
        None => Ok(tool_default.unwrap_or(general).min(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_comes_from_the_request_then_the_tool_then_the_default() {
        let seconds = Duration::from_secs;
        let cases = [
            ((None, None, 60, None), Ok(30)),
            ((None, Some(10), 60, None), Ok(10)),
            ((Some(20), Some(10), 60, None), Ok(20)),
            ((None, None, 20, None), Ok(20)),
            ((None, None, 60, Some(5)), Ok(5)),
            ((Some(60), None, 60, None), Ok(60)),
            (
                (Some(61), None, 60, None),
                Err("A timeout of PT1M1S is above the PT1M that the tool allows. Ask for less"),
            ),
            (
                (Some(9), None, 60, Some(5)),
                Err("A timeout of PT9S is above the PT5S that the sandbox around it allows. Ask for less"),
            ),
        ];
        for ((requested, default, most, parent), expected) in cases {
            let resolved = resolve_timeout(
                requested.map(seconds),
                default.map(seconds),
                seconds(most),
                parent.map(seconds),
                seconds(30),
            );
            let expected = expected.map(seconds).map_err(str::to_owned);
            assert_eq!(resolved.map_err(|error| error.message), expected);
        }
    }
}
