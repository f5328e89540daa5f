//! What an engine is given around every start.

use crate::{AdaptiveTimeout, Breaker, Lanes, Quotas, RateLimit, RepeatGuard, ResultCache};
use haft_engine::EngineBuilder;

/// What decides when a call starts, and whether it is run at all: lanes, circuit breakers, caches, limits.
#[derive(Debug, PartialEq)]
pub(crate) struct AdmissionControls {
    pub(crate) lanes: Option<Lanes>,
    pub(crate) breaker: Option<Breaker>,
    pub(crate) cache: Option<ResultCache>,
    pub(crate) repeat_guard: Option<RepeatGuard>,
    pub(crate) adaptive_timeout: Option<AdaptiveTimeout>,
    pub(crate) rate_limits: Vec<RateLimit>,
    pub(crate) quotas: Option<Quotas>,
}

impl Default for AdmissionControls {
    fn default() -> Self {
        AdmissionControls {
            lanes: Some(Lanes::default()),
            breaker: Some(Breaker::default()),
            cache: Some(ResultCache::default()),
            repeat_guard: Some(RepeatGuard::default()),
            adaptive_timeout: None,
            rate_limits: Vec::new(),
            quotas: None,
        }
    }
}

impl AdmissionControls {
    pub(crate) fn put(self, mut builder: EngineBuilder) -> EngineBuilder {
        if let Some(lanes) = self.lanes {
            builder = builder.lanes(lanes);
        }
        if let Some(breaker) = self.breaker {
            builder = builder.breaker(breaker);
        }
        if let Some(cache) = self.cache {
            builder = builder.cache(cache);
        }
        if let Some(guard) = self.repeat_guard {
            builder = builder.repeat_guard(guard);
        }
        if let Some(adaptive) = self.adaptive_timeout {
            builder = builder.adaptive_timeout(adaptive);
        }
        if !self.rate_limits.is_empty() {
            builder = builder.rate_limits(self.rate_limits);
        }
        if let Some(quotas) = self.quotas {
            builder = builder.quotas(quotas);
        }
        builder
    }
}
