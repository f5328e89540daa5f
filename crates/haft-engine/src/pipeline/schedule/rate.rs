//! Rates: so many calls in so much time.

use super::retry::with_retry_after;
use governor::{Quota, RateLimiter, clock::Clock, state::keyed::HashMapStateStore};
use haft_core::{CallContext, ErrorCode, RateLimit, RateScope, ToolError, iso_duration};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// tokio's clock, so that a test can move it.
#[derive(Clone, Copy, Debug, Default)]
struct TokioClock;

impl Clock for TokioClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

type Key = (Arc<str>, Arc<str>);

struct Limiter {
    limit: RateLimit,
    limiter: RateLimiter<Key, HashMapStateStore<Key>, TokioClock>,
}

/// All limits of an engine.
pub(crate) struct Rates {
    limiters: Vec<Limiter>,
    checks: AtomicU32,
    refused: AtomicU64,
}

/// Keys that were not used for long are forgotten every so many checks.
const TIDY_EVERY: u32 = 4096;

impl Rates {
    pub(crate) fn new(limits: Vec<RateLimit>) -> Self {
        let limiter = |limit: RateLimit| {
            let quota = Quota::with_period(limit.period())?.allow_burst(limit.calls());
            Some(Limiter { limit, limiter: RateLimiter::hashmap_with_clock(quota, TokioClock) })
        };
        Rates {
            limiters: limits.into_iter().filter_map(limiter).collect(),
            checks: AtomicU32::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Counts a call, or says when it may come again.
    pub(crate) fn check(&self, context: &CallContext, tool: &Arc<str>) -> Result<(), ToolError> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % TIDY_EVERY == TIDY_EVERY - 1 {
            self.tidy();
        }
        for Limiter { limit, limiter } in &self.limiters {
            let none = || Arc::from("");
            let tenant = || Arc::clone(&context.tenant);
            let key = match limit.scope() {
                RateScope::Global => (none(), none()),
                RateScope::Tenant => (tenant(), none()),
                RateScope::Agent => (tenant(), Arc::clone(&context.agent)),
                RateScope::Tool => (tenant(), Arc::clone(tool)),
                RateScope::NamedTool(name) if **name == **tool => (tenant(), Arc::clone(tool)),
                RateScope::NamedTool(_) => continue,
            };
            if let Err(not_until) = limiter.check_key(&key) {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(limited(limit, tool, not_until.wait_time_from(TokioClock.now())));
            }
        }
        Ok(())
    }

    fn tidy(&self) {
        for Limiter { limiter, .. } in &self.limiters {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }

    /// Calls that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    fn keys(&self) -> usize {
        self.limiters.iter().map(|limiter| limiter.limiter.len()).sum()
    }
}

fn limited(limit: &RateLimit, tool: &str, wait: Duration) -> ToolError {
    let whose = match limit.scope() {
        RateScope::Global => "in all".to_owned(),
        RateScope::Tenant => "for one tenant".to_owned(),
        RateScope::Agent => "for one agent".to_owned(),
        RateScope::Tool | RateScope::NamedTool(_) => format!("to `{tool}`"),
    };
    let text = format!(
        "Too many calls {whose}: {} are allowed in {}. Try again in {} s",
        limit.calls(),
        iso_duration::format(limit.per()),
        wait.as_millis().div_ceil(100) as f64 / 10.0,
    );
    with_retry_after(ToolError::new(ErrorCode::RateLimited, text), wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(scope: RateScope, calls: u32, seconds: u64) -> Rates {
        Rates::new(vec![RateLimit::new(scope, calls, Duration::from_secs(seconds)).expect("a rate")])
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_calls_and_then_one_by_one_as_time_passes() {
        let rates = rates(RateScope::Agent, 3, 60);
        let (ada, bob, tool) = (CallContext::new("t", "ada"), CallContext::new("t", "bob"), Arc::from("x"));
        for _ in 0..3 {
            assert!(rates.check(&ada, &tool).is_ok());
        }
        let refused = rates.check(&ada, &tool).expect_err("a fourth");
        assert_eq!(refused.code, ErrorCode::RateLimited);
        assert_eq!(refused.message, "Too many calls for one agent: 3 are allowed in PT1M. Try again in 20 s");
        assert!(rates.check(&bob, &tool).is_ok(), "another agent has a count of its own");
        tokio::time::advance(Duration::from_secs(21)).await;
        assert!(rates.check(&ada, &tool).is_ok());
        assert!(rates.check(&ada, &tool).is_err());
        assert_eq!(rates.refused(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_named_tool_is_limited_and_others_are_not() {
        let rates = rates(RateScope::NamedTool("slow".into()), 1, 60);
        let ada = CallContext::new("t", "ada");
        assert!(rates.check(&ada, &"slow".into()).is_ok());
        assert!(rates.check(&ada, &"slow".into()).is_err());
        assert!((0..10).all(|_| rates.check(&ada, &"quick".into()).is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn agents_that_are_gone_are_forgotten() {
        let rates = rates(RateScope::Agent, 1, 1);
        let tool = Arc::from("x");
        for number in 0..100 {
            assert!(rates.check(&CallContext::new("t", number.to_string()), &tool).is_ok());
        }
        assert_eq!(rates.keys(), 100);
        tokio::time::advance(Duration::from_secs(10)).await;
        let ada = CallContext::new("t", "ada");
        for _ in 0..TIDY_EVERY {
            let _ = rates.check(&ada, &tool);
        }
        assert_eq!(rates.keys(), 1);
    }
}
