//! How long a server that failed is left alone.

use std::time::Duration;

/// The first wait.
const BASE: Duration = Duration::from_millis(500);
/// The longest.
const MOST: Duration = Duration::from_secs(60);
/// A server that ran for so long was fine: its end is its first one.
const STEADY: Duration = Duration::from_secs(60);

/// How long to wait after so many failures in a row: nothing after none, then twice as long each time, up to a minute.
///
/// ```
/// use haft_mcp::client::backoff_delay;
/// use std::time::Duration;
/// let waits = [0, 1, 2, 3, 7, 8, 9, u32::MAX].map(|failures| backoff_delay(failures).as_millis());
/// assert_eq!(waits, [0, 500, 1000, 2000, 32_000, 60_000, 60_000, 60_000]);
/// ```
pub fn backoff_delay(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => BASE.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(MOST),
    }
}

/// How many failures in a row there are, once a server has ended that ran for so long after so many.
pub(super) fn failures_after(before: u32, ran: Duration) -> u32 {
    if ran >= STEADY { 0 } else { before.saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ran_long_begins_anew() {
        assert_eq!(failures_after(5, STEADY), 0);
        assert_eq!(failures_after(5, STEADY - Duration::from_millis(1)), 6);
        assert_eq!(failures_after(u32::MAX, Duration::ZERO), u32::MAX);
    }

    #[test]
    fn waits_never_shrink_and_have_an_end() {
        let waits: Vec<_> = (0..200).map(backoff_delay).collect();
        assert!(waits.is_sorted() && waits.iter().all(|wait| *wait <= MOST));
        assert_eq!(backoff_delay(33), MOST, "more doublings than a number has digits");
    }
}
