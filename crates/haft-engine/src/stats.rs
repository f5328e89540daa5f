//! Counts and times, without locks.

use haft_core::Status;
use serde_json::{Value, json};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Each power of two of microseconds is split into four, so that a percentile is off by at most a fifth.
const BUCKETS: usize = 128;

/// Counts and times of one tool. Laid out so that a success touches one cache line and one bucket.
#[repr(C, align(64))]
pub(crate) struct Stats {
    duration_micros: AtomicU64,
    output_bytes: AtomicU64,
    by_status: [AtomicU64; 8],
    histogram: [AtomicU64; BUCKETS],
}

impl Default for Stats {
    fn default() -> Self {
        Stats {
            by_status: std::array::from_fn(|_| AtomicU64::new(0)),
            duration_micros: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            histogram: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

fn bucket(micros: u64) -> usize {
    if micros < 4 {
        return usize::try_from(micros).unwrap_or(0);
    }
    let power = 63 - micros.leading_zeros() as usize;
    let quarter = (micros >> (power - 2)) as usize & 3;
    ((power - 1) * 4 + quarter).min(BUCKETS - 1)
}

/// The largest number of microseconds that falls into a bucket.
fn upper(bucket: usize) -> u64 {
    match bucket {
        0..4 => bucket as u64,
        _ => ((bucket as u64 % 4 + 5) << (bucket / 4 - 1)) - 1,
    }
}

impl Stats {
    pub(crate) fn record(&self, status: Status, duration: Duration, output_bytes: u64) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.by_status[status as usize].fetch_add(1, Ordering::Relaxed);
        self.duration_micros.fetch_add(micros, Ordering::Relaxed);
        self.output_bytes.fetch_add(output_bytes, Ordering::Relaxed);
        self.histogram[bucket(micros)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_to(&self, sum: &mut Snapshot) {
        let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        for (sum, cell) in sum.by_status.iter_mut().zip(&self.by_status) {
            *sum += load(cell);
        }
        sum.duration_micros += load(&self.duration_micros);
        sum.output_bytes += load(&self.output_bytes);
        for (sum, cell) in sum.histogram.iter_mut().zip(&self.histogram) {
            *sum += load(cell);
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.add_to(&mut snapshot);
        snapshot
    }
}

/// The counts at one moment.
pub(crate) struct Snapshot {
    by_status: [u64; 8],
    duration_micros: u64,
    output_bytes: u64,
    histogram: [u64; BUCKETS],
}

impl Default for Snapshot {
    fn default() -> Self {
        Snapshot { by_status: [0; 8], duration_micros: 0, output_bytes: 0, histogram: [0; BUCKETS] }
    }
}

impl Snapshot {
    /// Counts another one, too.
    pub(crate) fn add(&mut self, other: &Snapshot) {
        let Snapshot { by_status, duration_micros, output_bytes, histogram } = other;
        for (sum, count) in self.by_status.iter_mut().zip(by_status) {
            *sum += count;
        }
        self.duration_micros += duration_micros;
        self.output_bytes += output_bytes;
        for (sum, count) in self.histogram.iter_mut().zip(histogram) {
            *sum += count;
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.by_status.iter().sum()
    }

    /// The calls that ended so.
    pub(crate) fn of_status(&self, status: Status) -> u64 {
        self.by_status[status as usize]
    }

    /// All times together, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.duration_micros as f64 / 1e6
    }

    /// Bytes of all outputs together.
    pub(crate) fn output_bytes(&self) -> u64 {
        self.output_bytes
    }

    /// The calls that surely took no longer.
    pub(crate) fn within_micros(&self, micros: u64) -> u64 {
        let within = self.histogram.iter().enumerate().take_while(|(index, _)| upper(*index) <= micros);
        within.map(|(_, count)| count).sum()
    }

    /// The time below which that share of the calls stayed, in milliseconds.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let wanted = (self.total() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.histogram.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return upper(index) as f64 / 1000.0;
            }
        }
        0.0
    }

    pub(crate) fn to_json(&self) -> Value {
        let total = self.total();
        let statuses: serde_json::Map<String, Value> = Status::ALL
            .iter()
            .filter(|&&status| self.by_status[status as usize] > 0)
            .map(|&status| (status.as_str().to_owned(), self.by_status[status as usize].into()))
            .collect();
        let mean = if total == 0 { 0.0 } else { self.duration_micros as f64 / total as f64 / 1000.0 };
        json!({
            "total": total,
            "byStatus": statuses,
            "durationMs": {
                "mean": (mean * 1000.0).round() / 1000.0,
                "p50": self.percentile(0.50),
                "p95": self.percentile(0.95),
                "p99": self.percentile(0.99),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_hold_what_they_say() {
        let mut last = 0;
        for micros in (0..5_000).chain([1 << 20, 1 << 30, u64::MAX]) {
            let bucket = bucket(micros);
            assert!(bucket >= last && bucket < BUCKETS, "{micros}");
            assert!(upper(bucket) >= micros || bucket == BUCKETS - 1, "{micros} is above {}", upper(bucket));
            last = bucket;
        }
    }

    #[test]
    fn percentiles_are_off_by_at_most_a_quarter() {
        let stats = Stats::default();
        for millis in 1..=100 {
            stats.record(Status::Success, Duration::from_millis(millis), 10);
        }
        let snapshot = stats.snapshot();
        assert_eq!(snapshot.output_bytes(), 1000);
        for (share, exact) in [(0.50, 50.0), (0.95, 95.0), (0.99, 99.0)] {
            let measured = snapshot.percentile(share);
            assert!(measured >= exact && measured <= exact * 1.25, "{share}: {measured}");
        }
    }
}
