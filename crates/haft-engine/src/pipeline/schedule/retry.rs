//! Retries: which failures are followed by another attempt, and when it comes. A pure decision; the loop is in
//! `attempts`.

use haft_core::{Retry, ToolError};
use std::time::Duration;

/// No single wait is longer.
const LONGEST: Duration = Duration::from_secs(60);
/// A refusal that says how long to wait is waited for at most so long.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// What is known when an attempt has failed.
#[derive(Clone, Copy)]
pub(crate) struct Failed<'a> {
    /// Whether running the call twice does no harm.
    pub(crate) may_run_again: bool,
    /// Attempts that failed before this one.
    pub(crate) before: u32,
    /// Why this one failed.
    pub(crate) error: &'a ToolError,
    /// What is left of the time that all attempts share.
    pub(crate) time_left: Duration,
}

/// How long to wait before the next attempt, or `None` where none follows. `random` is from 0 to 1: with full jitter
/// the wait is any part of a ceiling that doubles each time.
pub(crate) fn next_delay(policy: &Retry, failed: Failed<'_>, random: f64) -> Option<Duration> {
    let Failed { may_run_again, before, error, time_left } = failed;
    if before >= policy.max_retries || !may_run_again || !policy.wants(error.code) {
        return None;
    }
    let ceiling = policy.base.saturating_mul(2_u32.saturating_pow(before)).min(LONGEST);
    let delay = ceiling.mul_f64(random.clamp(0.0, 1.0));
    let delay = match retry_after(error) {
        Some(after) if after > MOST_PATIENCE => return None,
        Some(after) => delay.max(after),
        None => delay,
    };
    // An attempt that begins when the time is over can only fail.
    (delay < time_left).then_some(delay)
}

/// How a call is retried: as it asks for, else as its tool says, else as usual. A tool that stops retries stops them for
/// every call.
pub(crate) fn policy<'a>(call: Option<&'a Retry>, tool: Option<&'a Retry>, usual: &'a Retry) -> &'a Retry {
    match tool {
        Some(tool) if tool.max_retries == 0 => tool,
        tool => call.or(tool).unwrap_or(usual),
    }
}

/// An error that says when the same call may be sent again.
pub(crate) fn with_retry_after(error: ToolError, after: Duration) -> ToolError {
    let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    error.with_data(serde_json::json!({"retryAfterMs": millis}))
}

fn retry_after(error: &ToolError) -> Option<Duration> {
    error.data.as_ref()?.get("retryAfterMs")?.as_u64().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::ErrorCode;

    fn after(before: u32, error: &ToolError) -> Failed<'_> {
        Failed { may_run_again: true, before, error, time_left: Duration::MAX }
    }

    fn delay(before: u32, error: &ToolError, random: f64) -> Option<u128> {
        next_delay(&Retry::default(), after(before, error), random).map(|delay| delay.as_millis())
    }

    #[test]
    fn waits_double_with_full_jitter_and_end() {
        let timeout = ErrorCode::Timeout.into();
        assert_eq!(
            [0.0, 0.5, 1.0].map(|random| delay(0, &timeout, random)),
            [Some(0), Some(500), Some(1000)]
        );
        assert_eq!(
            [0.0, 0.5, 1.0].map(|random| delay(1, &timeout, random)),
            [Some(0), Some(1000), Some(2000)]
        );
        assert_eq!(delay(2, &timeout, 0.5), None);
        let many = Retry { max_retries: 40, ..Retry::default() };
        assert_eq!(next_delay(&many, after(39, &timeout), 1.0), Some(LONGEST));
    }

    #[test]
    fn only_what_is_retryable_and_wanted_and_may_run_again() {
        let timeout: ToolError = ErrorCode::Timeout.into();
        assert_eq!(delay(0, &ToolError::failed("no"), 1.0), None);
        let not_again = Failed { may_run_again: false, ..after(0, &timeout) };
        assert_eq!(next_delay(&Retry::default(), not_again, 1.0), None);
        let only = Retry { on: vec![ErrorCode::RateLimited], ..Retry::default() };
        assert_eq!(next_delay(&only, after(0, &timeout), 1.0), None);
        assert!(next_delay(&only, after(0, &ErrorCode::RateLimited.into()), 1.0).is_some());
    }

    #[test]
    fn retry_on_widens_to_failures_and_never_to_refusals() {
        let on = |code| Retry { on: vec![code], ..Retry::default() };
        let failed = ToolError::failed("no");
        assert!(next_delay(&on(ErrorCode::ExecutionFailed), after(0, &failed), 1.0).is_some());
        let denied = ErrorCode::PermissionDenied.into();
        assert_eq!(next_delay(&on(ErrorCode::PermissionDenied), after(0, &denied), 1.0), None);
    }

    #[test]
    fn no_attempt_follows_when_the_time_is_over() {
        let timeout = ErrorCode::Timeout.into();
        for (left, expected) in [(0, None), (400, None), (500, None), (501, Some(500))] {
            let failed = Failed { time_left: Duration::from_millis(left), ..after(0, &timeout) };
            let delay = next_delay(&Retry::default(), failed, 0.5).map(|delay| delay.as_millis());
            assert_eq!(delay, expected, "{left} ms are left");
        }
    }

    #[test]
    fn a_call_overrides_its_tool_unless_the_tool_stops_retries() {
        let [call, tool, usual, none] =
            [5, 4, 2, 0].map(|max_retries| Retry { max_retries, ..Retry::default() });
        let retries = |call, tool| policy(call, tool, &usual).max_retries;
        assert_eq!(retries(None, None), 2);
        assert_eq!(retries(None, Some(&tool)), 4);
        assert_eq!(retries(Some(&call), Some(&tool)), 5);
        assert_eq!(retries(Some(&call), Some(&none)), 0);
        assert_eq!(retries(Some(&none), Some(&tool)), 0);
    }

    #[test]
    fn a_refusal_that_says_how_long_is_believed_but_not_for_ever() {
        let limited = |after| with_retry_after(ErrorCode::RateLimited.into(), Duration::from_millis(after));
        assert_eq!(delay(0, &limited(3000), 0.5), Some(3001));
        assert_eq!(delay(0, &limited(100), 1.0), Some(1000));
        assert_eq!(delay(0, &limited(59_000), 0.5), None);
    }
}
