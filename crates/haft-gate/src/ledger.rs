//! What went through, and what did not.

use super::refusal::Refusal;
use haft_core::Violation;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// The most violations that are told apart; the others are only counted.
const MAX_VIOLATIONS: usize = 100;

/// Told of each violation when it is first seen.
pub type ViolationSink = Arc<dyn Fn(&Violation) + Send + Sync>;

/// What a gate let through and what it refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateReport {
    /// Requests and tunnels that were let through, whether or not their host answered.
    pub requests: u64,
    /// Requests and tunnels that were refused.
    pub refused: u64,
    /// Bytes that came from other machines.
    pub bytes_in: u64,
    /// Bytes that went to other machines.
    pub bytes_out: u64,
    /// What was refused: each thing once, when it was first seen, with the number of times in its description.
    pub violations: Vec<Violation>,
}

#[derive(Default)]
struct Seen {
    violations: Vec<(Violation, u64)>,
    places: HashMap<(String, String), usize>,
    uncounted: Option<(Violation, u64)>,
}

/// Counts for all connections of a gate.
pub(crate) struct Ledger {
    requests: AtomicU64,
    refused: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    seen: Mutex<Seen>,
    sink: ViolationSink,
}

impl Ledger {
    pub(crate) fn new(sink: ViolationSink) -> Self {
        Ledger {
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            seen: Mutex::default(),
            sink,
        }
    }

    /// Counts a request, unless that would be more than `limit`.
    pub(crate) fn count_request(&self, limit: Option<u64>) -> Result<(), Refusal> {
        let within = |count: u64| (limit.is_none_or(|limit| count < limit)).then(|| count.saturating_add(1));
        match self.requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            Ok(_) => Ok(()),
            Err(_) => Err(Refusal::TooManyRequests { limit: limit.unwrap_or(u64::MAX) }),
        }
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Keeps a refusal. The same again is only counted: a loop in the jail must not fill haft's memory.
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let violation = refusal.violation();
        let new = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.add(violation)
        };
        // Outside the lock: the sink is not ours and may take its time.
        if let Some(violation) = new {
            (self.sink)(&violation);
        }
    }

    pub(crate) fn report(&self) -> GateReport {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let with_count = |(violation, count): &(Violation, u64)| {
            let mut violation = violation.clone();
            if *count > 1 {
                violation.description.push_str(&format!(" ({count} times)"));
            }
            violation
        };
        GateReport {
            requests: self.requests.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            violations: seen.violations.iter().chain(&seen.uncounted).map(with_count).collect(),
        }
    }
}

impl Seen {
    /// The violation, if it is one that was not seen before and is told apart.
    fn add(&mut self, violation: Violation) -> Option<Violation> {
        let key = (violation.resource.clone(), violation.description.clone());
        if let Some((_, count)) = self.places.get(&key).and_then(|place| self.violations.get_mut(*place)) {
            *count = count.saturating_add(1);
            return None;
        }
        if self.violations.len() < MAX_VIOLATIONS {
            self.places.insert(key, self.violations.len());
            self.violations.push((violation.clone(), 1));
            return Some(violation);
        }
        match &mut self.uncounted {
            Some((_, count)) => {
                *count = count.saturating_add(1);
                None
            }
            None => {
                let rest = Violation {
                    resource: "network".to_owned(),
                    description: format!("further refusals after the first {MAX_VIOLATIONS} different ones"),
                    ..violation
                };
                self.uncounted = Some((rest.clone(), 1));
                Some(rest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostList, decide};

    #[test]
    fn the_same_refusal_is_one_violation_with_a_count_and_told_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let ledger = Ledger::new(Arc::new(move |violation: &Violation| {
            sink.lock().unwrap().push(violation.resource.clone());
        }));
        let refusal = |host: &str| decide(host, 443, &HostList::default()).unwrap_err();
        for _ in 0..5 {
            ledger.refuse(&refusal("a.example"));
        }
        ledger.refuse(&refusal("b.example"));
        let report = ledger.report();
        assert_eq!(report.refused, 6);
        let seen: Vec<_> =
            report.violations.iter().map(|seen| (&*seen.resource, &*seen.description)).collect();
        assert_eq!(
            seen,
            [
                ("a.example:443", "the host `a.example` is not allowed on port 443 (5 times)"),
                ("b.example:443", "the host `b.example` is not allowed on port 443"),
            ]
        );
        assert_eq!(*told.lock().unwrap(), ["a.example:443", "b.example:443"]);
        assert!(
            report.violations.iter().all(|seen| seen.was_blocked && seen.kind == "UnauthorizedNetworkAccess")
        );
    }

    #[test]
    fn a_flood_of_different_refusals_stays_bounded_and_counted() {
        let ledger = Ledger::new(Arc::new(|_: &Violation| {}));
        for number in 0..10_000 {
            ledger.refuse(&decide(&format!("h{number}.example"), 443, &HostList::default()).unwrap_err());
        }
        let report = ledger.report();
        assert_eq!((report.refused, report.violations.len()), (10_000, MAX_VIOLATIONS + 1));
        assert_eq!(
            report.violations[MAX_VIOLATIONS].description,
            "further refusals after the first 100 different ones (9900 times)"
        );
    }

    #[test]
    fn requests_are_counted_up_to_the_limit() {
        let ledger = Ledger::new(Arc::new(|_: &Violation| {}));
        assert!(ledger.count_request(Some(2)).is_ok());
        assert!(ledger.count_request(Some(2)).is_ok());
        let refusal = ledger.count_request(Some(2)).unwrap_err();
        assert_eq!(refusal.kind(), "NetworkRequestLimitExceeded");
        assert_eq!(ledger.report().requests, 2);
    }
}
