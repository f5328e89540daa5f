//! The engine in numbers.

use crate::{
    inner::Inner,
    metrics::Around,
    pipeline::schedule::{
        breaker::BreakerStats,
        cache::{Cache, CacheStats},
        lanes::LaneStats,
    },
    stats::Snapshot,
};
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeMap, sync::atomic::Ordering};

/// The engine in numbers, at one moment. For operators: it spans all tenants.
///
/// ```
/// # fn show(engine: &haft_engine::Engine) {
/// let stats = engine.stats();
/// println!("{} running, {} queued", stats.running, stats.lanes.map_or(0, |lanes| lanes.queued));
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineStats {
    /// The deadline where nobody names one, in milliseconds.
    pub default_timeout: f64,
    /// Attempts after the first one, for a single call.
    pub max_retries: u32,
    /// Attempts after the first one, for a call of a batch.
    pub max_batch_retries: u32,
    /// Calls that have no result yet, those that wait included.
    pub running: usize,
    /// Attempts that followed one that failed.
    pub retries: u64,
    /// Calls that a rate refused.
    pub rate_limited: u64,
    /// Calls that a breaker refused.
    pub circuit_refused: u64,
    /// Counts by status, and times, of all calls to known tools.
    pub all: Value,
    /// Counts by status, and times, of each tool that was called.
    pub tools: BTreeMap<String, Value>,
    /// Slots, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<LaneStats>,
    /// Breakers that have counted anything.
    pub breakers: Vec<BreakerStats>,
    /// Stored results, where any are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheStats>,
}

/// What is counted around calls, for the metrics.
pub(crate) fn around(engine: &Inner) -> Around {
    let controls = &engine.controls;
    let breakers = controls.breakers.as_ref().map(|breakers| breakers.stats()).unwrap_or_default();
    let in_state =
        |state: &'static str| (state, breakers.iter().filter(|breaker| breaker.state == state).count());
    let cache = controls.cache.as_ref().map(Cache::stats);
    let cached = |number: fn(&CacheStats) -> u64| cache.as_ref().map_or(0, number);
    let lanes = controls.lanes.as_ref().map(|lanes| lanes.stats());
    Around {
        running: engine.live.executions.running(),
        retries: controls.retries.load(Ordering::Relaxed),
        rate_limited: controls.rates.as_ref().map_or(0, |rates| rates.refused()),
        circuit_refused: controls.breakers.as_ref().map_or(0, |breakers| breakers.refused()),
        breakers: ["closed", "open", "half_open"].map(in_state),
        cache_entries: cached(|cache| cache.entries),
        cache_hits: cached(|cache| cache.hits),
        cache_misses: cached(|cache| cache.misses),
        cache_shared: cached(|cache| cache.shared),
        queued: lanes.as_ref().map_or(0, |lanes| lanes.queued),
        queue_refused: lanes.as_ref().map_or(0, |lanes| lanes.refused),
    }
}

pub(crate) fn statistics(engine: &Inner) -> EngineStats {
    let ports = &engine.ports;
    let mut sum = Snapshot::default();
    let mut tools = BTreeMap::new();
    for registered in ports.registry.present().iter() {
        if let Some(stats) = registered.stats_if_called() {
            stats.add_to(&mut sum);
            tools.insert(registered.name.to_string(), stats.snapshot().to_json());
        }
    }
    let controls = &engine.controls;
    EngineStats {
        default_timeout: ports.settings.default_timeout.as_micros() as f64 / 1000.0,
        max_retries: ports.settings.retry.max_retries,
        max_batch_retries: ports.settings.batch_retry.max_retries,
        running: engine.live.executions.running(),
        retries: controls.retries.load(Ordering::Relaxed),
        rate_limited: controls.rates.as_ref().map_or(0, |rates| rates.refused()),
        circuit_refused: controls.breakers.as_ref().map_or(0, |breakers| breakers.refused()),
        all: sum.to_json(),
        tools,
        lanes: controls.lanes.as_ref().map(|lanes| lanes.stats()),
        breakers: controls.breakers.as_ref().map(|breakers| breakers.stats()).unwrap_or_default(),
        cache: controls.cache.as_ref().map(Cache::stats),
    }
}
