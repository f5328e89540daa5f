//! Retries: which failures are followed by another attempt, and when it comes. A pure decision; the loop is in
//! `attempts`.

use haft_core::{Retry, ToolError};
use std::time::Duration;

/// No single wait is longer.
const LONGEST: Duration = Duration::from_secs(60);
/// A refusal that says how long to wait is waited for at most so long.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before the next attempt, or `None` where none follows. `failed` attempts have failed before this
/// one; `random` is from 0 to 1: with full jitter the wait is any part of a ceiling that doubles each time.
pub(crate) fn next_delay(
    policy: &Retry,
    may_run_again: bool,
    failed: u32,
    error: &ToolError,
    random: f64,
) -> Option<Duration> {
    let is_wanted = policy.on.is_empty() || policy.on.contains(&error.code);
    if failed >= policy.max_retries || !may_run_again || !error.code.is_retryable() || !is_wanted {
        return None;
    }
    let ceiling = policy.base.saturating_mul(2_u32.saturating_pow(failed)).min(LONGEST);
    let delay = ceiling.mul_f64(random.clamp(0.0, 1.0));
    match retry_after(error) {
        Some(after) if after > MOST_PATIENCE => None,
        Some(after) => Some(delay.max(after)),
        None => Some(delay),
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

    fn delay(failed: u32, error: &ToolError, random: f64) -> Option<u128> {
        next_delay(&Retry::default(), true, failed, error, random).map(|delay| delay.as_millis())
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
        assert_eq!(next_delay(&many, true, 39, &timeout, 1.0), Some(LONGEST));
    }

    #[test]
    fn only_what_is_retryable_and_wanted_and_may_run_again() {
        let timeout: ToolError = ErrorCode::Timeout.into();
        assert_eq!(delay(0, &ToolError::failed("no"), 1.0), None);
        assert_eq!(next_delay(&Retry::default(), false, 0, &timeout, 1.0), None);
        let only = Retry { on: vec![ErrorCode::RateLimited], ..Retry::default() };
        assert_eq!(next_delay(&only, true, 0, &timeout, 1.0), None);
        assert!(next_delay(&only, true, 0, &ErrorCode::RateLimited.into(), 1.0).is_some());
    }

    #[test]
    fn a_refusal_that_says_how_long_is_believed_but_not_for_ever() {
        let limited = |after| with_retry_after(ErrorCode::RateLimited.into(), Duration::from_millis(after));
        assert_eq!(delay(0, &limited(3000), 0.5), Some(3001));
        assert_eq!(delay(0, &limited(100), 1.0), Some(1000));
        assert_eq!(delay(0, &limited(59_000), 0.5), None);
    }
}
