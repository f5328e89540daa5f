//! How much callers may use: rates and quotas, as operators write them.

use std::{num::NonZeroU32, time::Duration};

/// Whose calls are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateScope {
    /// Everybody's.
    Global,
    /// Those of one tenant.
    Tenant,
    /// Those of one agent of one tenant.
    Agent,
    /// Those of one tenant to one tool.
    Tool,
    /// Those of one tenant to the tool of that name; others are not counted.
    NamedTool(String),
}

/// So many calls in so much time.
///
/// ```
/// use haft_core::{RateLimit, RateScope};
/// use std::time::Duration;
/// let limit = RateLimit::new(RateScope::Agent, 100, Duration::from_secs(60));
/// assert!(limit.is_some());
/// assert!(RateLimit::new(RateScope::Agent, 0, Duration::from_secs(60)).is_none(), "that would never let anything run");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    scope: RateScope,
    calls: NonZeroU32,
    per: Duration,
}

impl RateLimit {
    /// So many calls in so much time; all of them may come at once. `None` where either is zero.
    pub fn new(scope: RateScope, calls: u32, per: Duration) -> Option<Self> {
        let limit = RateLimit { scope, calls: NonZeroU32::new(calls)?, per };
        (!limit.period().is_zero()).then_some(limit)
    }

    /// Whose calls are counted together.
    pub fn scope(&self) -> &RateScope {
        &self.scope
    }

    /// How many calls.
    pub fn calls(&self) -> NonZeroU32 {
        self.calls
    }

    /// In how much time.
    pub fn per(&self) -> Duration {
        self.per
    }

    /// The time after which one more call may start. Never zero.
    pub fn period(&self) -> Duration {
        self.per / self.calls.get()
    }
}

/// What one tenant may use in a day, from midnight to midnight UTC. Absent means any amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Attempts of calls that start.
    pub calls: Option<u64>,
    /// Seconds on a core, as far as they are measured.
    pub cpu_seconds: Option<u64>,
    /// Bytes that tools put out, and those that went over the network as far as they are measured.
    pub bytes: Option<u64>,
}
