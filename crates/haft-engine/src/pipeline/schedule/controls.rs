//! What holds calls back, as it is configured: stored results, rates and quotas, breakers, lanes, the repeat guard.

use super::{
    breaker::Breakers, cache::Cache, lanes::LaneTable, quota::QuotaTable, rate::Rates, repeat::Repeats,
};
use crate::{
    pipeline::types::{CallRecord, CallState, RunOutcome},
    ports::Ports,
};
use haft_core::ToolResult;
use std::sync::{Arc, atomic::AtomicU64};

/// What is configured to hold calls back: each part is absent where nobody configured it.
#[derive(Default)]
pub(crate) struct AdmissionControls {
    pub(crate) cache: Option<Cache>,
    pub(crate) rates: Option<Rates>,
    pub(crate) quotas: Option<QuotaTable>,
    pub(crate) breakers: Option<Breakers>,
    pub(crate) lanes: Option<Arc<LaneTable>>,
    pub(crate) repeats: Option<Repeats>,
    pub(crate) retries: AtomicU64,
}

impl AdmissionControls {
    /// Whether nothing holds an attempt back: then it just runs.
    pub(crate) fn are_open(&self) -> bool {
        self.rates.is_none() && self.quotas.is_none() && self.breakers.is_none() && self.lanes.is_none()
    }

    /// The most calls of one batch that can run at once, and the lane that says so.
    pub(crate) fn narrowest_lane(&self) -> Option<(usize, &'static str)> {
        self.lanes.as_ref().and_then(|lanes| lanes.narrowest())
    }

    /// Counts how a call ended, and says so where it fails again and again.
    pub(crate) fn note(&self, call: &mut CallRecord, mut outcome: RunOutcome) -> RunOutcome {
        if let Some(repeats) = &self.repeats {
            match &mut outcome {
                RunOutcome::Returned(_) => repeats.note(call, Ok(())),
                RunOutcome::Error(error) => repeats.note(call, Err(error)),
                RunOutcome::Replay(_) | RunOutcome::HandedOver => {}
            }
        }
        outcome
    }

    /// Counts what a call used.
    pub(crate) fn ended(&self, ports: &Ports, call: &CallState, result: &ToolResult) {
        if let Some(quotas) = &self.quotas {
            quotas.used(&call.context, &result.metadata, ports.clock.now());
        }
    }
}
