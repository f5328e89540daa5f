//! How long a call may take, how much it may use and put out, and what of that its licence includes.

use crate::{
    pipeline::types::{Bounds, CallState, Facts},
    ports::Ports,
    registry::Registered,
};
use haft_core::{ErrorCode, IsolationLevel, Tier, ToolError, iso_duration};
use std::time::Duration;

/// What a call asks for beyond what its caller's tier includes.
pub(super) fn within_licence(
    ports: &Ports,
    call: &CallState,
    registered: &Registered,
    level: IsolationLevel,
) -> Result<(), ToolError> {
    let tier = call.context.tier;
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
    if let Some(asked) = &call.options.limits
        && let Some((name, mine, most)) = asked.exceeds(&tier.limits())
    {
        let what = format_args!("{name} of {mine}, where at most {most} are included,");
        tier.require(what, |tier| asked.exceeds(&tier.limits()).is_none())?;
    }
    Ok(())
}

/// The deadline of a call that a person sits in front of: longer than anybody sits.
const ATTENDED: Duration = Duration::from_secs(30 * 24 * 3600);

/// The deadline and the room for output, or why the call cannot have them.
pub(super) fn bounds(
    ports: &Ports,
    call: &CallState,
    facts: &mut Facts,
    registered: &Registered,
    requested: Option<Duration>,
) -> Result<Bounds, ToolError> {
    let constraints = &registered.definition.constraints;
    let parent_limits = call.parent_limits();
    let mut timeout = match call.options.attended {
        true => resolve_timeout(requested, None, ATTENDED, parent_limits.wall_time, ATTENDED)?,
        false => {
            let timeout = resolve_timeout(
                requested,
                constraints.default_timeout.or_else(|| constraints.stated_execution_time()),
                constraints.max_execution_time,
                parent_limits.wall_time,
                ports.settings.default_timeout,
            )?;
            adapted(ports, call, facts, registered, timeout)
        }
    };
    let tool_most = usize::try_from(constraints.max_output_size).unwrap_or(usize::MAX);
    let mut output = tool_most.min(ports.settings.max_output_bytes);
    // A program is held to these by its jail, which knows what it put out.
    if let (Some(limits), true) = (&call.options.limits, registered.is_own_code()) {
        timeout = limits.wall_time.map_or(timeout, |most| most.min(timeout));
        let most = limits.output_bytes.and_then(|most| usize::try_from(most).ok());
        output = most.map_or(output, |most| most.min(output));
    }
    if let Some(limits) = &call.options.limits {
        limits.check_ceiling(&call.reach().commands.ceiling())?;
    }
    if let Some(limits) = &call.options.limits
        && let Some((name, mine, theirs)) = limits.exceeds(&parent_limits)
    {
        let owner = match &call.context.parent {
            Some(parent) => format!("the sandbox {}", parent.sandbox_id),
            None => format!("the agent `{}`", call.context.agent),
        };
        let text = format!("{name} of {mine} is above the {theirs} of {owner}");
        return Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text));
    }
    Ok(Bounds { timeout, output })
}

/// A shorter deadline where nobody named one and the tool's history suggests it.
fn adapted(
    ports: &Ports,
    call: &CallState,
    facts: &mut Facts,
    registered: &Registered,
    planned: Duration,
) -> Duration {
    let (Some(adaptive), None) = (&ports.adaptive, call.options.timeout) else { return planned };
    let Some(timeout) = adaptive.shorten(registered.stats_if_called(), planned) else { return planned };
    facts.scheduling.get_or_insert_default().adaptive_timeout = Some(timeout);
    timeout
}

/// The deadline: the request's, else the tool's (`defaultTimeout`, else the `maxExecutionTime` that it states), else
/// the general one. A request above the tool's maximum or the
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
