//! Quotas: what a tenant may use in a day.

use haft_core::{CallContext, ErrorCode, Quota, ResultMetadata, ToolError};
use jiff::Timestamp;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

const SECONDS_PER_DAY: i64 = 86_400;

/// The quotas of all tenants. Counted in this process, from its start.
///
/// ```
/// use haft_engine::{Quota, Quotas};
/// let mut quotas = Quotas { everybody: Quota { calls: Some(10_000), ..Quota::default() }, ..Quotas::default() };
/// quotas.tenants.insert("acme".into(), Quota::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// For tenants without one of their own.
    pub everybody: Quota,
    /// For single tenants.
    pub tenants: HashMap<String, Quota>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    calls: u64,
    cpu_millis: u64,
    bytes: u64,
}

#[derive(Default)]
struct Day {
    number: i64,
    used: HashMap<Arc<str>, Used>,
}

/// What was used.
pub(crate) struct QuotaTable {
    quotas: Quotas,
    day: Mutex<Day>,
}

impl QuotaTable {
    pub(crate) fn new(quotas: Quotas) -> Self {
        QuotaTable { quotas, day: Mutex::default() }
    }

    /// Today's counts. Those of yesterday are forgotten, and with them tenants that are gone.
    fn today(&self, now: Timestamp) -> MutexGuard<'_, Day> {
        let number = now.as_second().div_euclid(SECONDS_PER_DAY);
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        if day.number != number {
            *day = Day { number, used: HashMap::new() };
        }
        day
    }

    /// Counts a start, or says what is used up.
    pub(crate) fn start(&self, context: &CallContext, now: Timestamp) -> Result<(), ToolError> {
        let quota = self.quotas.tenants.get(&*context.tenant).unwrap_or(&self.quotas.everybody);
        let mut day = self.today(now);
        let used = day.used.entry(Arc::clone(&context.tenant)).or_default();
        let over = [
            ("calls", used.calls, quota.calls),
            ("CPU-seconds", used.cpu_millis / 1000, quota.cpu_seconds),
            ("bytes", used.bytes, quota.bytes),
        ];
        for (what, used, most) in over {
            if let Some(most) = most.filter(|most| used >= *most) {
                let left = SECONDS_PER_DAY - now.as_second().rem_euclid(SECONDS_PER_DAY);
                let text = format!(
                    "This tenant has used the {most} {what} that it may use in a day. That starts again in {} min",
                    (left + 59) / 60
                );
                let data = serde_json::json!({"quota": what, "most": most, "retryAfterMs": left * 1000});
                return Err(ToolError::new(ErrorCode::QuotaExceeded, text).with_data(data));
            }
        }
        used.calls += 1;
        Ok(())
    }

    /// Counts what a call used that has ended.
    pub(crate) fn used(&self, context: &CallContext, metadata: &ResultMetadata, now: Timestamp) {
        if metadata.attempts == 0 {
            return;
        }
        let mut day = self.today(now);
        let used = day.used.entry(Arc::clone(&context.tenant)).or_default();
        used.bytes = used.bytes.saturating_add(metadata.output_size);
        if let Some(metrics) = &metadata.metrics {
            let network = [metrics.network_bytes_received, metrics.network_bytes_sent];
            used.bytes = network.into_iter().flatten().fold(used.bytes, u64::saturating_add);
            used.cpu_millis =
                used.cpu_millis.saturating_add(metrics.cpu_time_ms.unwrap_or(0.0).max(0.0) as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::{ExecutionId, Metrics};
    use std::time::Duration;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn ended(output_size: u64, metrics: Option<Metrics>) -> ResultMetadata {
        let now = Timestamp::UNIX_EPOCH;
        ResultMetadata {
            execution_id: ExecutionId::at(now),
            batch_id: None,
            batch_index: None,
            parallel: None,
            started_at: now,
            completed_at: now,
            duration: Duration::ZERO,
            attempts: 1,
            attempt_records: Vec::new(),
            output_size,
            output_truncated: false,
            output_handle: None,
            scheduling: None,
            sandbox_id: None,
            enforcement: None,
            metrics: metrics.map(Box::new),
            violations: Vec::new(),
            side_effects: Vec::new(),
            changes: None,
            coercions: Vec::new(),
            correlation_id: None,
        }
    }

    #[test]
    fn calls_are_counted_for_each_tenant_and_day() {
        let everybody = Quota { calls: Some(2), ..Quota::default() };
        let tenants = HashMap::from([("free".to_owned(), Quota::default())]);
        let table = QuotaTable::new(Quotas { everybody, tenants });
        let (acme, free) = (CallContext::new("acme", "a"), CallContext::new("free", "a"));
        let noon = at("2026-11-15T12:00:00Z");
        assert!(table.start(&acme, noon).is_ok() && table.start(&acme, noon).is_ok());
        let refused = table.start(&acme, noon).expect_err("a third");
        assert_eq!(refused.code, ErrorCode::QuotaExceeded);
        let expected =
            "This tenant has used the 2 calls that it may use in a day. That starts again in 720 min";
        assert_eq!(refused.message, expected);
        assert!((0..10).all(|_| table.start(&free, noon).is_ok()), "this one has no limit");
        assert!(table.start(&acme, at("2026-11-16T00:00:00Z")).is_ok(), "a new day");
    }

    #[test]
    fn bytes_and_seconds_on_a_core_are_counted_when_a_call_ends() {
        let now = at("2026-11-15T12:00:00Z");
        let acme = CallContext::new("acme", "a");
        let of = |quota| QuotaTable::new(Quotas { everybody: quota, ..Quotas::default() });
        let bytes = of(Quota { bytes: Some(100), ..Quota::default() });
        let received = Metrics { network_bytes_received: Some(40), ..Metrics::default() };
        bytes.used(&acme, &ended(59, Some(received.clone())), now);
        assert!(bytes.start(&acme, now).is_ok());
        bytes.used(&acme, &ended(1, None), now);
        assert!(bytes.start(&acme, now).is_err());

        let cpu = of(Quota { cpu_seconds: Some(2), ..Quota::default() });
        let busy = Metrics { cpu_time_ms: Some(1_999.0), ..Metrics::default() };
        cpu.used(&acme, &ended(0, Some(busy)), now);
        assert!(cpu.start(&acme, now).is_ok());
        let busy = Metrics { cpu_time_ms: Some(1.0), ..Metrics::default() };
        cpu.used(&acme, &ended(0, Some(busy)), now);
        assert!(cpu.start(&acme, now).is_err());
    }
}
