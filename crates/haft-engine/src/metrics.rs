//! Counts of an engine as Prometheus reads them. Their names are those of the sources, with `_` for each dot.

use crate::{
    registry::Registry,
    stats::{Snapshot, Stats},
};
use haft_core::{ErrorCode, Status, ToolResult};
use std::{
    collections::BTreeMap,
    fmt::{Display, Write as _},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Upper ends of the buckets of times, in seconds.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0];
/// Upper ends of the buckets of batches, in calls.
const CALLS: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];

/// The label of calls that were refused before a tool was known, in place of a name that anybody could make up.
const NO_TOOL: &str = "(none)";

/// What the parts around a call have counted, and what they hold now.
#[derive(Default)]
pub(crate) struct Around {
    pub(crate) running: usize,
    pub(crate) retries: u64,
    pub(crate) rate_limited: u64,
    pub(crate) circuit_refused: u64,
    /// Breakers that are closed, open and half open.
    pub(crate) breakers: [(&'static str, usize); 3],
    pub(crate) cache_entries: u64,
    pub(crate) cache_hits: u64,
    pub(crate) cache_misses: u64,
    pub(crate) cache_shared: u64,
    pub(crate) queued: usize,
    pub(crate) queue_refused: u64,
}

/// What is counted beside the tools' own numbers. All of it is rare, so that a plain success touches none.
#[derive(Default)]
pub(crate) struct Counters {
    /// Calls that were refused before a tool was known.
    refused: Stats,
    truncated: AtomicU64,
    invalid_output: AtomicU64,
    side_effects: AtomicU64,
    stored: AtomicU64,
    violations: AtomicU64,
    violations_by_type: Mutex<BTreeMap<String, u64>>,
    contained: AtomicU64,
    contained_micros: AtomicU64,
    contained_timeouts: AtomicU64,
    peak_memory: AtomicU64,
    unknown_tools: AtomicU64,
    batches: AtomicU64,
    batch_calls: AtomicU64,
    batch_sizes: [AtomicU64; CALLS.len()],
}

fn add(cell: &AtomicU64, number: usize) {
    cell.fetch_add(number as u64, Ordering::Relaxed);
}

impl Counters {
    /// A call has ended.
    pub(crate) fn call(&self, result: &ToolResult) {
        let facts = &result.metadata;
        if facts.output_truncated {
            add(&self.truncated, 1);
        }
        if !facts.side_effects.is_empty() {
            add(&self.side_effects, facts.side_effects.len());
        }
        if !facts.violations.is_empty() {
            add(&self.violations, facts.violations.len());
            let mut by_type = self.violations_by_type.lock().unwrap_or_else(PoisonError::into_inner);
            for violation in &facts.violations {
                *by_type.entry(violation.kind.clone()).or_default() += 1;
            }
        }
        if facts.sandbox_id.is_some() {
            self.contained(result);
        }
        match result.error_code() {
            Some(ErrorCode::OutputValidationFailed) => add(&self.invalid_output, 1),
            Some(ErrorCode::ToolNotFound) => add(&self.unknown_tools, 1),
            Some(_) | None => {}
        }
    }

    /// A call has ended before a tool was known.
    pub(crate) fn refused(&self, result: &ToolResult) {
        self.refused.record(result.status, result.metadata.duration, result.metadata.output_size);
    }

    /// A call that ran programs in a jail has ended.
    fn contained(&self, result: &ToolResult) {
        let facts = &result.metadata;
        add(&self.contained, 1);
        let micros = u64::try_from(facts.duration.as_micros()).unwrap_or(u64::MAX);
        self.contained_micros.fetch_add(micros, Ordering::Relaxed);
        if result.status == Status::Timeout {
            add(&self.contained_timeouts, 1);
        }
        let peak = facts.metrics.as_ref().and_then(|metrics| metrics.peak_memory_bytes);
        self.peak_memory.fetch_max(peak.unwrap_or(0), Ordering::Relaxed);
    }

    /// A result is in the store.
    pub(crate) fn stored(&self) {
        add(&self.stored, 1);
    }

    /// A batch of so many calls has ended.
    pub(crate) fn batch(&self, calls: usize) {
        add(&self.batches, 1);
        add(&self.batch_calls, calls);
        if let Some(place) = CALLS.iter().position(|most| calls as u64 <= *most) {
            add(&self.batch_sizes[place], 1);
        }
    }
}

/// All of it, in the text format of Prometheus.
pub(crate) fn text(registry: &Registry, counters: &Counters, around: &Around) -> String {
    let mut by_tool = registry.totals();
    let known: u64 = by_tool.values().map(Snapshot::total).sum();
    let refused = counters.refused.snapshot();
    if refused.total() > 0 {
        by_tool.entry(NO_TOOL.to_owned()).or_default().add(&refused);
    }
    let mut sum = Snapshot::default();
    by_tool.values().for_each(|counts| sum.add(counts));
    let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
    let mut page = Page::default();
    page.counter("tools_executions_total", "Calls that have ended.", sum.total());
    page.head("tools_executions_duration", "How long calls took, in seconds.", "histogram");
    for le in SECONDS {
        page.line("tools_executions_duration_bucket", &[("le", &le)], sum.within_micros((le * 1e6) as u64));
    }
    page.line("tools_executions_duration_bucket", &[("le", &"+Inf")], sum.total());
    page.line("tools_executions_duration_sum", &[], sum.seconds());
    page.line("tools_executions_duration_count", &[], sum.total());
    page.head("tools_executions_by_status", "Calls by how they ended.", "counter");
    for status in Status::ALL {
        page.line("tools_executions_by_status", &[("status", &status.as_str())], sum.of_status(status));
    }
    page.head("tools_executions_by_tool", "Calls by tool.", "counter");
    for (tool, counts) in &by_tool {
        page.line("tools_executions_by_tool", &[("tool", tool)], counts.total());
    }
    page.counter("tools_executions_timeouts", "Calls that took too long.", sum.of_status(Status::Timeout));
    page.counter("tools_batches_total", "Batches that have ended.", load(&counters.batches));
    page.head("tools_batches_size", "Calls of a batch.", "histogram");
    let mut within = 0;
    for (most, cell) in CALLS.iter().zip(&counters.batch_sizes) {
        within += load(cell);
        page.line("tools_batches_size_bucket", &[("le", most)], within);
    }
    page.line("tools_batches_size_bucket", &[("le", &"+Inf")], load(&counters.batches));
    page.line("tools_batches_size_sum", &[], load(&counters.batch_calls));
    page.line("tools_batches_size_count", &[], load(&counters.batches));
    page.counter("tools_results_stored", "Results that are kept.", load(&counters.stored));
    page.head("tools_results_by_status", "Results by how their calls ended.", "counter");
    for status in Status::ALL {
        page.line("tools_results_by_status", &[("status", &status.as_str())], sum.of_status(status));
    }
    page.sum("tools_results_output_size", "Bytes of outputs.", sum.output_bytes(), sum.total());
    page.counter("tools_results_truncated", "Results that were cut to size.", load(&counters.truncated));
    page.counter(
        "tools_results_validation_failures",
        "Outputs that did not fit what their tool promised.",
        load(&counters.invalid_output),
    );
    page.counter(
        "tools_results_side_effects",
        "Side effects that results name.",
        load(&counters.side_effects),
    );
    page.counter(
        "tools_registry_lookups",
        "Tools that were looked up for calls.",
        known + load(&counters.unknown_tools),
    );
    page.counter(
        "tools_registry_lookups_misses",
        "Calls of tools that are not there.",
        load(&counters.unknown_tools),
    );
    page.counter(
        "sandbox_violations_total",
        "What containment stopped or noticed.",
        load(&counters.violations),
    );
    page.head("sandbox_violations_by_type", "The same by what it was.", "counter");
    let by_type = counters.violations_by_type.lock().unwrap_or_else(PoisonError::into_inner);
    for (kind, count) in &*by_type {
        page.line("sandbox_violations_by_type", &[("type", kind)], count);
    }
    let contained = load(&counters.contained);
    page.counter("sandbox_executions_total", "Calls that ran programs in a jail.", contained);
    let seconds = load(&counters.contained_micros) as f64 / 1e6;
    page.sum("sandbox_executions_duration", "How long those took, in seconds.", seconds, contained);
    page.counter("sandbox_timeouts", "Those that took too long.", load(&counters.contained_timeouts));
    page.head("sandbox_memory_peak", "The most bytes of memory that a call in a jail had.", "gauge");
    page.line("sandbox_memory_peak", &[], load(&counters.peak_memory));
    tools(&mut page, registry);
    admission(&mut page, around);
    page.0
}

/// What holds calls back, or answers for them.
fn admission(page: &mut Page, around: &Around) {
    for (name, help, value) in [
        ("tools_retries_total", "Attempts that followed one that failed.", around.retries),
        ("tools_rate_limited_total", "Calls that a rate limit refused.", around.rate_limited),
        (
            "tools_circuit_refused_total",
            "Calls that an open circuit breaker refused.",
            around.circuit_refused,
        ),
        ("tools_cache_hits_total", "Calls that a stored result answered.", around.cache_hits),
        ("tools_cache_misses_total", "Calls that no stored result answered.", around.cache_misses),
        ("tools_cache_shared_total", "Calls that shared the run of another one.", around.cache_shared),
        (
            "tools_queue_refused_total",
            "Calls that were refused because too many waited.",
            around.queue_refused,
        ),
    ] {
        page.counter(name, help, value);
    }
    page.head("tools_circuit_breakers", "Circuit breakers by state.", "gauge");
    for (state, count) in &around.breakers {
        page.line("tools_circuit_breakers", &[("state", state)], count);
    }
    for (name, help, value) in [
        ("tools_cache_entries", "Results that are stored.", around.cache_entries),
        ("tools_queue_waiting", "Calls that wait for a slot.", around.queued as u64),
        ("tools_executions_running", "Calls that have no result yet.", around.running as u64),
    ] {
        page.head(name, help, "gauge");
        page.line(name, &[], value);
    }
}

/// What is known about the tools themselves.
fn tools(page: &mut Page, registry: &Registry) {
    let counts = &registry.counts;
    let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
    let (mut by_category, mut by_tier) = (BTreeMap::new(), BTreeMap::new());
    for registered in registry.all().iter() {
        let definition = &registered.definition;
        *by_category.entry(format!("{:?}", definition.category)).or_insert(0_u64) += 1;
        *by_tier.entry(format!("{:?}", definition.tier)).or_insert(0_u64) += 1;
    }
    let seconds = load(&counts.validation_nanos) as f64 / 1e9;
    page.sum(
        "tools_definitions_validation_duration",
        "How long definitions were looked at, in seconds.",
        seconds,
        load(&counts.validations),
    );
    let registrations = load(&counts.registrations);
    for (name, help, value) in [
        ("tools_definitions_validation_failures", "Definitions that break rules.", load(&counts.invalid)),
        ("tools_definitions_created", "Definitions of tools that came in.", registrations),
        ("tools_registry_registrations_total", "Tools that came in.", registrations),
        ("tools_registry_registrations_failures", "Tools that were not let in.", load(&counts.refused)),
        ("tools_registry_searches", "Searches for tools.", load(&counts.searches)),
    ] {
        page.counter(name, help, value);
    }
    for (name, label, values) in [
        ("tools_definitions_by_category", "category", &by_category),
        ("tools_registry_tools_by_category", "category", &by_category),
        ("tools_registry_tools_by_tier", "tier", &by_tier),
    ] {
        page.head(name, "Tools that are there.", "gauge");
        for (value, count) in values {
            page.line(name, &[(label, value)], count);
        }
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.line(name, &[], value);
    }

    /// How much in all, over how many.
    fn sum(&mut self, name: &str, help: &str, sum: impl Display, count: u64) {
        self.head(name, help, "summary");
        self.line(&format!("{name}_sum"), &[], sum);
        self.line(&format!("{name}_count"), &[], count);
    }

    fn line(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        let label =
            |(name, value): &(&str, &dyn Display)| format!("{name}=\"{}\"", escaped(&value.to_string()));
        let labels: Vec<String> = labels.iter().map(label).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

/// A value between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_fall_into_buckets_that_add_up() {
        let counters = Counters::default();
        for calls in [1, 3, 3, 500] {
            counters.batch(calls);
        }
        let text = text(&Registry::default(), &counters, &Around::default());
        for line in [
            "tools_batches_size_bucket{le=\"1\"} 1",
            "tools_batches_size_bucket{le=\"2\"} 1",
            "tools_batches_size_bucket{le=\"5\"} 3",
            "tools_batches_size_bucket{le=\"100\"} 3",
            "tools_batches_size_bucket{le=\"+Inf\"} 4",
            "tools_batches_size_sum 507",
            "tools_batches_total 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert_eq!(escaped("a\"\\\n"), "a\\\"\\\\\\n");
    }
}
