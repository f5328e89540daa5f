//! Breakers: a tool that fails most of the time is left alone for a while, for the tenant for which it fails.

use super::retry::with_retry_after;
use haft_core::{Category, ErrorCode, EventPayload, Source, ToolDefinition, ToolError};
use serde::Serialize;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// When a tool is left alone, and for how long.
///
/// ```
/// let breaker = haft_engine::Breaker::default();
/// assert_eq!((breaker.percent, breaker.window, breaker.min_calls), (50, 100, 10));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// The share of failures at which it opens, in percent.
    pub percent: u32,
    /// How many of the last calls are looked at.
    pub window: usize,
    /// How many there must be.
    pub min_calls: usize,
    /// How long it stays open.
    pub open_for: Duration,
    /// How many calls are then let through to see.
    pub trials: u32,
}

impl Default for Breaker {
    fn default() -> Self {
        Breaker { percent: 50, window: 100, min_calls: 10, open_for: Duration::from_secs(60), trials: 10 }
    }
}

/// How a breaker stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakerStats {
    /// The tool.
    pub tool: String,
    /// The tenant.
    pub tenant: String,
    /// `closed`, `open` or `half_open`.
    pub state: &'static str,
    /// Failures among the calls that it looks at.
    pub failures: u32,
    /// The calls that it looks at.
    pub calls: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Instant },
    HalfOpen { let_through: u32, ended: u32, failed: u32 },
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Closed => "closed",
            State::Open { .. } => "open",
            State::HalfOpen { .. } => "half_open",
        }
    }
}

/// One tool for one tenant. Pure: it is told what time it is.
struct Cell {
    state: State,
    /// The last outcomes: whether each failed.
    window: VecDeque<bool>,
    failures: u32,
    /// Changes with every change of state: what began before one does not count after it.
    age: u64,
    last: Instant,
}

/// A change that is worth telling.
pub(crate) type Change = Option<EventPayload>;

impl Cell {
    fn new(now: Instant) -> Self {
        Cell { state: State::Closed, window: VecDeque::new(), failures: 0, age: 0, last: now }
    }

    fn change(&mut self, state: State) -> Change {
        let failures = match self.state {
            State::HalfOpen { failed, .. } => failed,
            State::Closed | State::Open { .. } => self.failures,
        };
        let calls = match self.state {
            State::HalfOpen { ended, .. } => ended,
            State::Closed | State::Open { .. } => u32::try_from(self.window.len()).unwrap_or(u32::MAX),
        };
        self.state = state;
        self.age += 1;
        if state == State::Closed {
            self.window.clear();
            self.failures = 0;
        }
        Some(EventPayload::CircuitChanged { state: state.name(), failures, calls })
    }

    /// Whether a call may go, or how long none may.
    fn enter(&mut self, breaker: &Breaker, now: Instant) -> (Result<(), Duration>, Change) {
        self.last = now;
        let mut change = None;
        if let State::Open { until } = self.state {
            if now < until {
                return (Err(until - now), None);
            }
            change = self.change(State::HalfOpen { let_through: 0, ended: 0, failed: 0 });
        }
        match &mut self.state {
            State::HalfOpen { let_through, .. } if *let_through >= breaker.trials.max(1) => {
                // The trials are under way; they will not take longer than a call does.
                (Err(Duration::from_secs(1)), change)
            }
            State::HalfOpen { let_through, .. } => {
                *let_through += 1;
                (Ok(()), change)
            }
            State::Closed | State::Open { .. } => (Ok(()), change),
        }
    }

    /// Counts how a call ended; `None` where that says nothing about the tool.
    fn leave(&mut self, breaker: &Breaker, age: u64, has_failed: Option<bool>, now: Instant) -> Change {
        if age != self.age {
            return None;
        }
        match (&mut self.state, has_failed) {
            (State::Open { .. }, _) | (State::Closed, None) => None,
            (State::HalfOpen { let_through, .. }, None) => {
                *let_through = let_through.saturating_sub(1);
                None
            }
            (State::HalfOpen { ended, failed, .. }, Some(has_failed)) => {
                *ended += 1;
                *failed += u32::from(has_failed);
                let (ended, failed, trials) = (*ended, *failed, breaker.trials.max(1));
                if reaches(breaker.percent, failed, trials) {
                    self.change(State::Open { until: now + breaker.open_for })
                } else if ended >= trials {
                    self.change(State::Closed)
                } else {
                    None
                }
            }
            (State::Closed, Some(has_failed)) => {
                self.window.push_back(has_failed);
                self.failures += u32::from(has_failed);
                if self.window.len() > breaker.window.max(1) {
                    self.failures -= u32::from(self.window.pop_front() == Some(true));
                }
                let calls = u32::try_from(self.window.len()).unwrap_or(u32::MAX);
                let enough = self.window.len() >= breaker.min_calls.max(1);
                (enough && has_failed && reaches(breaker.percent, self.failures, calls))
                    .then(|| self.change(State::Open { until: now + breaker.open_for }))
                    .flatten()
            }
        }
    }
}

fn reaches(percent: u32, failures: u32, calls: u32) -> bool {
    failures > 0 && u64::from(failures) * 100 >= u64::from(percent) * u64::from(calls)
}

/// Whether a failure says that the tool is out of order, rather than that it was asked for the wrong thing. Where a
/// tool works on files or runs programs, that it failed is usually the answer.
pub(crate) fn is_fault(definition: &ToolDefinition, code: ErrorCode) -> Option<bool> {
    match code {
        ErrorCode::Timeout
        | ErrorCode::Panicked
        | ErrorCode::SandboxCrashed
        | ErrorCode::SandboxCreationFailed
        | ErrorCode::RateLimited => Some(true),
        // An MCP server that does not begin is left alone longer each time by its own client: two pauses on top of
        // each other would keep it away long after it is back.
        ErrorCode::UpstreamUnavailable => (definition.source != Source::Mcp).then_some(true),
        ErrorCode::ExecutionFailed => match definition.category {
            Category::FileSystem | Category::CodeExecution => Some(false),
            Category::Network
            | Category::Database
            | Category::ExternalApi
            | Category::Knowledge
            | Category::Communication
            | Category::System => Some(true),
        },
        ErrorCode::NonZeroExit | ErrorCode::StaleFile | ErrorCode::PatchFailed => Some(false),
        // Cancelled, refused, not recorded: it says nothing about the tool.
        _ => None,
    }
}

type ByTenant = HashMap<Arc<str>, Cell, foldhash::fast::RandomState>;

/// The breakers of an engine.
pub(crate) struct Breakers {
    breaker: Breaker,
    cells: Mutex<HashMap<Arc<str>, ByTenant, foldhash::fast::RandomState>>,
    refused: AtomicU64,
}

/// Tenants of one tool at which those that were quiet for long are forgotten.
const MANY: usize = 1024;

impl Breakers {
    pub(crate) fn new(breaker: Breaker) -> Self {
        Breakers { breaker, cells: Mutex::default(), refused: AtomicU64::new(0) }
    }

    fn cells(&self) -> MutexGuard<'_, HashMap<Arc<str>, ByTenant, foldhash::fast::RandomState>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call through, or says when one may come again.
    pub(crate) fn enter(
        &self,
        tool: &Arc<str>,
        tenant: &Arc<str>,
    ) -> (Result<Permit<'_>, ToolError>, Change) {
        let now = Instant::now();
        let mut cells = self.cells();
        if !cells.contains_key(tool) {
            cells.insert(Arc::clone(tool), ByTenant::default());
        }
        let Some(tenants) = cells.get_mut(tool) else { unreachable!("it was just put there") };
        if !tenants.contains_key(tenant) {
            if tenants.len() >= MANY {
                let quiet = self.breaker.open_for.saturating_mul(2);
                tenants.retain(|_, cell| now.duration_since(cell.last) < quiet);
            }
            tenants.insert(Arc::clone(tenant), Cell::new(now));
        }
        let Some(cell) = tenants.get_mut(tenant) else { unreachable!("it was just put there") };
        let (entered, change) = cell.enter(&self.breaker, now);
        let age = cell.age;
        drop(cells);
        let entered = entered.map_err(|wait| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            paused(tool, wait)
        });
        let permit = || Permit {
            breakers: self,
            tool: Arc::clone(tool),
            tenant: Arc::clone(tenant),
            age,
            has_left: false,
        };
        (entered.map(|()| permit()), change)
    }

    fn leave(&self, tool: &str, tenant: &str, age: u64, has_failed: Option<bool>) -> Change {
        let mut cells = self.cells();
        let cell = cells.get_mut(tool)?.get_mut(tenant)?;
        cell.leave(&self.breaker, age, has_failed, Instant::now())
    }

    /// Those that have counted anything, by tool and tenant.
    pub(crate) fn stats(&self) -> Vec<BreakerStats> {
        let cells = self.cells();
        let mut stats: Vec<_> = cells
            .iter()
            .flat_map(|(tool, tenants)| tenants.iter().map(move |(tenant, cell)| (tool, tenant, cell)))
            .map(|(tool, tenant, cell)| BreakerStats {
                tool: tool.to_string(),
                tenant: tenant.to_string(),
                state: cell.state.name(),
                failures: cell.failures,
                calls: u32::try_from(cell.window.len()).unwrap_or(u32::MAX),
            })
            .collect();
        stats.sort_by(|a, b| (&a.tool, &a.tenant).cmp(&(&b.tool, &b.tenant)));
        stats
    }

    /// Calls that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// A call that was let through. Dropped without a word, it counts as one that says nothing.
pub(crate) struct Permit<'a> {
    breakers: &'a Breakers,
    tool: Arc<str>,
    tenant: Arc<str>,
    age: u64,
    has_left: bool,
}

impl Permit<'_> {
    pub(crate) fn leave(mut self, has_failed: Option<bool>) -> Change {
        self.has_left = true;
        self.breakers.leave(&self.tool, &self.tenant, self.age, has_failed)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if !self.has_left {
            self.breakers.leave(&self.tool, &self.tenant, self.age, None);
        }
    }
}

fn paused(tool: &str, wait: Duration) -> ToolError {
    let text = format!(
        "`{tool}` failed too often lately and is paused for another {} s. Use another tool, or try again then",
        wait.as_millis().div_ceil(1000)
    );
    with_retry_after(ToolError::new(ErrorCode::CircuitOpen, text), wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Play {
        cell: Cell,
        breaker: Breaker,
        now: Instant,
    }

    impl Play {
        fn new() -> Self {
            let now = Instant::now();
            Play { cell: Cell::new(now), breaker: Breaker::default(), now }
        }

        fn call(&mut self, has_failed: bool) -> bool {
            let (entered, _) = self.cell.enter(&self.breaker, self.now);
            let age = self.cell.age;
            if entered.is_ok() {
                self.cell.leave(&self.breaker, age, Some(has_failed), self.now);
            }
            entered.is_ok()
        }

        fn state(&self) -> &'static str {
            self.cell.state.name()
        }
    }

    #[test]
    fn it_opens_at_half_of_at_least_ten() {
        let mut play = Play::new();
        (0..9).for_each(|_| assert!(play.call(true)));
        assert_eq!(play.state(), "closed", "nine are too few");
        play.call(true);
        assert_eq!(play.state(), "open");
        assert!(!play.call(false));

        let mut play = Play::new();
        (0..40).for_each(|number| assert!(play.call(number % 5 > 2), "40 % is below half"));
        assert_eq!(play.state(), "closed");
    }

    #[test]
    fn only_the_last_hundred_count() {
        let mut play = Play::new();
        (0..1000).for_each(|_| assert!(play.call(false)));
        (0..49).for_each(|_| assert!(play.call(true)));
        assert_eq!(play.state(), "closed");
        play.call(true);
        assert_eq!((play.state(), play.cell.window.len()), ("open", 100));
    }

    #[test]
    fn after_a_minute_trials_decide() {
        for (failing, expected) in [(0, "closed"), (4, "closed"), (5, "open"), (10, "open")] {
            let mut play = Play::new();
            (0..10).for_each(|_| {
                play.call(true);
            });
            play.now += Duration::from_millis(59_999);
            assert!(!play.call(false), "still open");
            play.now += Duration::from_millis(1);
            for trial in 0..10 {
                play.call(trial < failing);
            }
            assert_eq!(play.state(), expected, "{failing} of 10 trials failed");
        }
    }

    #[test]
    fn no_more_trials_than_that_at_once_and_one_that_says_nothing_is_given_back() {
        let mut play = Play::new();
        (0..10).for_each(|_| {
            play.call(true);
        });
        play.now += Duration::from_secs(60);
        let ages: Vec<u64> = (0..10)
            .map(|_| {
                assert!(play.cell.enter(&play.breaker, play.now).0.is_ok());
                play.cell.age
            })
            .collect();
        assert!(play.cell.enter(&play.breaker, play.now).0.is_err(), "an eleventh");
        play.cell.leave(&play.breaker, ages[0], None, play.now);
        assert!(play.cell.enter(&play.breaker, play.now).0.is_ok(), "its place is free again");
    }

    #[test]
    fn a_call_that_began_before_it_opened_does_not_count_after() {
        let mut play = Play::new();
        assert!(play.cell.enter(&play.breaker, play.now).0.is_ok());
        let before = play.cell.age;
        (0..10).for_each(|_| {
            play.call(true);
        });
        play.now += Duration::from_secs(60);
        assert!(play.cell.enter(&play.breaker, play.now).0.is_ok());
        assert_eq!(play.cell.leave(&play.breaker, before, Some(true), play.now), None);
        assert_eq!(play.cell.state, State::HalfOpen { let_through: 1, ended: 0, failed: 0 });
    }

    #[test]
    fn what_is_the_callers_fault_is_not_the_tools() {
        let mut definition = ToolDefinition::new("x", "y");
        assert_eq!(is_fault(&definition, ErrorCode::ExecutionFailed), Some(true));
        definition.category = Category::FileSystem;
        assert_eq!(is_fault(&definition, ErrorCode::ExecutionFailed), Some(false));
        assert_eq!(is_fault(&definition, ErrorCode::Timeout), Some(true));
        assert_eq!(is_fault(&definition, ErrorCode::Cancelled), None);
        assert_eq!(is_fault(&definition, ErrorCode::ConcurrentLimitExceeded), None);
    }
}
