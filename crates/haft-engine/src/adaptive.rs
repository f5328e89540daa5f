//! Deadlines from history: a tool that has always answered within a second is not waited for half a minute.

use crate::stats::Stats;
use std::time::Duration;

/// Where a caller names no deadline, a tool that was called often enough gets one from how long its calls took.
///
/// ```
/// let adaptive = haft_engine::AdaptiveTimeout::default();
/// assert_eq!((adaptive.min_calls, adaptive.factor), (50, 4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveTimeout {
    /// Calls that must have been made before it counts.
    pub min_calls: u64,
    /// How many times the time below which 99 of 100 calls stayed.
    pub factor: u32,
    /// Never less than this.
    pub floor: Duration,
}

impl Default for AdaptiveTimeout {
    fn default() -> Self {
        AdaptiveTimeout { min_calls: 50, factor: 4, floor: Duration::from_secs(1) }
    }
}

impl AdaptiveTimeout {
    /// A deadline that is shorter than the planned one, if history suggests it.
    pub(crate) fn shorten(&self, stats: Option<&Stats>, planned: Duration) -> Option<Duration> {
        let snapshot = stats?.snapshot();
        if snapshot.total() < self.min_calls {
            return None;
        }
        let usual = Duration::from_secs_f64(snapshot.percentile(0.99) / 1000.0);
        let timeout = usual.saturating_mul(self.factor).max(self.floor);
        (timeout < planned).then_some(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::Status;

    #[test]
    fn history_shortens_a_deadline_and_never_lengthens_it() {
        let adaptive = AdaptiveTimeout::default();
        let stats = Stats::default();
        let planned = Duration::from_secs(30);
        for _ in 0..49 {
            stats.record(Status::Success, Duration::from_millis(500), 0);
        }
        assert_eq!(adaptive.shorten(Some(&stats), planned), None, "too few calls");
        stats.record(Status::Success, Duration::from_millis(500), 0);
        let shortened = adaptive.shorten(Some(&stats), planned).expect("a deadline");
        assert!((2000..=2500).contains(&shortened.as_millis()), "{shortened:?}");
        assert_eq!(adaptive.shorten(Some(&stats), Duration::from_secs(2)), None);
        assert_eq!(adaptive.shorten(None, planned), None);
        let quick = Stats::default();
        (0..50).for_each(|_| quick.record(Status::Success, Duration::from_micros(80), 0));
        assert_eq!(adaptive.shorten(Some(&quick), planned), Some(adaptive.floor));
    }
}
