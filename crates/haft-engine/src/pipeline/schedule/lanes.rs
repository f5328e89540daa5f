//! Lanes: how many calls run at once, for an agent, for a tenant, in all; and who is next when a slot is free.
//!
//! One lock around small tables. Tenants take turns: a free slot goes to the tenant that was served longest ago,
//! however much another one has queued. Within a tenant the call with the highest priority is next, and waiting raises
//! it: one step for each [`Lanes::ageing`]. Both grow alike for everybody who waits, so the order of two waiting calls
//! never changes, and a place in the queue is found once.

use haft_core::{CallContext, ErrorCode, ToolError};
use serde::Serialize;
use slab::Slab;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};

/// The priority of a call that names none.
const USUAL_PRIORITY: u8 = 5;
const HIGHEST_PRIORITY: u8 = 10;
/// Agents for which a tenant has room that is kept for the next one.
const MOST_SPARE: usize = 64;

/// How many calls run at once, and how many may wait.
///
/// ```
/// let lanes = haft_engine::Lanes::default();
/// assert_eq!((lanes.per_agent, lanes.per_tenant, lanes.global), (Some(10), None, None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Calls of one agent of one tenant.
    pub per_agent: Option<usize>,
    /// Calls of one tenant.
    pub per_tenant: Option<usize>,
    /// All calls.
    pub global: Option<usize>,
    /// Calls of one tenant that may wait; one more is refused with `CONCURRENT_LIMIT_EXCEEDED`.
    pub queue_per_tenant: usize,
    /// Calls that may wait in all.
    pub queue_total: usize,
    /// How long a call waits until it counts as one step of priority higher.
    pub ageing: Duration,
}

impl Default for Lanes {
    fn default() -> Self {
        Lanes {
            per_agent: Some(10),
            per_tenant: None,
            global: None,
            queue_per_tenant: 1024,
            queue_total: 65_536,
            ageing: Duration::from_secs(1),
        }
    }
}

impl Lanes {
    /// The most calls of one batch that can have a slot at once, and the lane that says so.
    pub(crate) fn narrowest(&self) -> Option<(usize, &'static str)> {
        let lanes = [(self.per_agent, "per_agent"), (self.per_tenant, "per_tenant"), (self.global, "global")];
        let widths = lanes.into_iter().filter_map(|(width, name)| Some((width?.max(1), name)));
        widths.min_by_key(|(width, _)| *width)
    }

    fn limit(of: Option<usize>) -> usize {
        // A lane of no width would hold everything up for ever.
        of.map_or(usize::MAX, |limit| limit.max(1))
    }
}

/// What the lanes hold at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LaneStats {
    /// Calls that have a slot.
    pub running: usize,
    /// Calls that wait for one.
    pub queued: usize,
    /// Calls that were refused because too many waited.
    pub refused: u64,
    /// What runs and waits of each tenant that has any.
    pub tenants: BTreeMap<String, TenantStats>,
}

/// What the lanes hold for one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantStats {
    /// Calls that have a slot.
    pub running: usize,
    /// Calls that wait for one.
    pub queued: usize,
}

/// Where a call stands in the queue of its agent: smaller is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// When it came, moved back by its priority.
    rank: u64,
    number: u64,
}

#[derive(Default)]
struct Agent {
    name: Arc<str>,
    running: usize,
    waiting: BTreeMap<Place, oneshot::Sender<Slot>>,
}

#[derive(Default)]
struct Tenant {
    name: Arc<str>,
    running: usize,
    queued: usize,
    agents: Slab<Agent>,
    by_name: HashMap<Arc<str>, usize, foldhash::fast::RandomState>,
    /// Agents that wait and have room, by the call that is next.
    ready: BTreeSet<(Place, usize)>,
    /// When it was last served.
    served: u64,
}

#[derive(Default)]
struct State {
    running: usize,
    queued: usize,
    refused: u64,
    tenants: Slab<Tenant>,
    by_name: HashMap<Arc<str>, usize, foldhash::fast::RandomState>,
    /// Tenants that have a call that could start, by when they were last served.
    ready: BTreeSet<(u64, usize)>,
    count: u64,
    /// A tenant that has nothing, for the next one: most come back at once, and its tables need not be made again.
    spare: Option<Tenant>,
}

/// The lanes of an engine.
pub(crate) struct LaneTable {
    lanes: Lanes,
    began: Instant,
    state: Mutex<State>,
}

/// The right to run. Dropping it frees the slot, and the next call gets it.
pub(crate) struct Slot {
    table: Arc<LaneTable>,
    tenant: usize,
    agent: usize,
    is_mine: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.is_mine {
            self.table.release(self.tenant, self.agent);
        }
    }
}

/// What asking for a slot came to.
pub(crate) enum SlotOffer {
    Now(Slot),
    Wait(Waiting),
}

/// A place in the queue. Dropping it gives it up.
pub(crate) struct Waiting {
    table: Arc<LaneTable>,
    granted: oneshot::Receiver<Slot>,
    tenant: usize,
    agent: usize,
    place: Place,
    has_slot: bool,
    /// Whose slots are all taken.
    pub(crate) lane: &'static str,
    /// Calls of the tenant that waited already.
    pub(crate) ahead: usize,
}

impl Waiting {
    /// Waits for the slot. `None` where the lanes are gone.
    pub(crate) async fn granted(&mut self) -> Option<Slot> {
        let slot = (&mut self.granted).await.ok();
        self.has_slot = true;
        slot
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.has_slot {
            // Where it was granted meanwhile, the receiver frees the slot when it is dropped after this.
            self.table.give_up(self.tenant, self.agent, self.place);
        }
    }
}

impl LaneTable {
    pub(crate) fn new(lanes: Lanes) -> Arc<Self> {
        Arc::new(LaneTable { lanes, began: Instant::now(), state: Mutex::default() })
    }

    /// The most calls of one batch that can have a slot at once, and the lane that says so.
    pub(crate) fn narrowest(&self) -> Option<(usize, &'static str)> {
        self.lanes.narrowest()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a slot. The error says that too many wait.
    pub(crate) fn ask(
        self: &Arc<Self>,
        context: &CallContext,
        priority: Option<u8>,
    ) -> Result<SlotOffer, ToolError> {
        let mut guard = self.state();
        let state = &mut *guard;
        let tenant = state.tenant(&context.tenant);
        let Some(lane) = state.tenants.get_mut(tenant) else { return Err(full("here")) };
        let agent = lane.agent(&context.agent);
        let full_lane = self.full_lane(state, tenant, agent);
        let Some(lane) = state.tenants.get_mut(tenant) else { return Err(full("here")) };
        let Some(mine) = lane.agents.get_mut(agent) else { return Err(full("here")) };
        let Some(full_lane) = full_lane.or_else(|| (!mine.waiting.is_empty()).then_some("agent")) else {
            mine.running += 1;
            lane.running += 1;
            state.running += 1;
            state.count += 1;
            state.serve(tenant);
            return Ok(SlotOffer::Now(self.slot(tenant, agent)));
        };
        if lane.queued >= self.lanes.queue_per_tenant || state.queued >= self.lanes.queue_total {
            let whose = if lane.queued >= self.lanes.queue_per_tenant { "for this tenant" } else { "here" };
            state.refused += 1;
            state.tidy(tenant, agent);
            return Err(full(whose));
        }
        let (grant, granted) = oneshot::channel();
        state.count += 1;
        let place = Place { rank: self.rank(priority), number: state.count };
        mine.waiting.insert(place, grant);
        let ahead = lane.queued;
        lane.queued += 1;
        state.queued += 1;
        self.relist(state, tenant, agent, None);
        Ok(SlotOffer::Wait(Waiting {
            table: Arc::clone(self),
            granted,
            tenant,
            agent,
            place,
            has_slot: false,
            lane: full_lane,
            ahead,
        }))
    }

    /// Each step of priority counts as if the call had come so much earlier.
    fn rank(&self, priority: Option<u8>) -> u64 {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let priority = priority.unwrap_or(USUAL_PRIORITY).clamp(1, HIGHEST_PRIORITY);
        let behind = nanos(self.lanes.ageing).saturating_mul(u64::from(HIGHEST_PRIORITY - priority));
        nanos(self.began.elapsed()).saturating_add(behind)
    }

    fn slot(self: &Arc<Self>, tenant: usize, agent: usize) -> Slot {
        Slot { table: Arc::clone(self), tenant, agent, is_mine: true }
    }

    /// Whose slots are all taken, if anybody's.
    fn full_lane(&self, state: &State, tenant: usize, agent: usize) -> Option<&'static str> {
        let lane = state.tenants.get(tenant)?;
        if state.running >= Lanes::limit(self.lanes.global) {
            Some("global")
        } else if lane.running >= Lanes::limit(self.lanes.per_tenant) {
            Some("tenant")
        } else if lane.agents.get(agent)?.running >= Lanes::limit(self.lanes.per_agent) {
            Some("agent")
        } else {
            None
        }
    }

    /// Puts an agent and its tenant on the lists of those that could be served, or takes them off.
    fn relist(&self, state: &mut State, tenant: usize, agent: usize, was_next: Option<Place>) {
        let Some(lane) = state.tenants.get_mut(tenant) else { return };
        if let Some(place) = was_next {
            lane.ready.remove(&(place, agent));
        }
        if let Some(mine) = lane.agents.get(agent) {
            let mut places = mine.waiting.keys();
            if let Some(next) = places.next() {
                // One that came in before it is not next any more.
                if let Some(second) = places.next() {
                    lane.ready.remove(&(*second, agent));
                }
                if mine.running < Lanes::limit(self.lanes.per_agent) {
                    lane.ready.insert((*next, agent));
                } else {
                    lane.ready.remove(&(*next, agent));
                }
            }
        }
        let could = !lane.ready.is_empty() && lane.running < Lanes::limit(self.lanes.per_tenant);
        let key = (lane.served, tenant);
        match could {
            true => state.ready.insert(key),
            false => state.ready.remove(&key),
        };
    }

    fn release(self: &Arc<Self>, tenant: usize, agent: usize) {
        let mut state = self.state();
        self.free(&mut state, tenant, agent);
        self.hand_out(&mut state);
        state.tidy(tenant, agent);
    }

    fn free(&self, state: &mut State, tenant: usize, agent: usize) {
        let Some(lane) = state.tenants.get_mut(tenant) else { return };
        let Some(mine) = lane.agents.get_mut(agent) else { return };
        mine.running -= 1;
        lane.running -= 1;
        state.running -= 1;
        if lane.queued > 0 {
            self.relist(state, tenant, agent, None);
        }
    }

    /// Gives free slots to those who are next, until there is none of either.
    fn hand_out(self: &Arc<Self>, state: &mut State) {
        while state.running < Lanes::limit(self.lanes.global) {
            let Some(&(_, tenant)) = state.ready.first() else { return };
            let Some(lane) = state.tenants.get_mut(tenant) else { return };
            let Some((place, agent)) = lane.ready.first().copied() else { return };
            let Some(mine) = lane.agents.get_mut(agent) else { return };
            let Some(grant) = mine.waiting.remove(&place) else { return };
            mine.running += 1;
            lane.running += 1;
            lane.queued -= 1;
            state.running += 1;
            state.queued -= 1;
            state.serve(tenant);
            self.relist(state, tenant, agent, Some(place));
            if let Err(mut slot) = grant.send(self.slot(tenant, agent)) {
                // The call that waited has gone in this very moment. Its guard must not take the lock that is held
                // here.
                slot.is_mine = false;
                self.free(state, tenant, agent);
                state.tidy(tenant, agent);
            }
        }
    }

    fn give_up(self: &Arc<Self>, tenant: usize, agent: usize, place: Place) {
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(lane) = state.tenants.get_mut(tenant) else { return };
        let Some(mine) = lane.agents.get_mut(agent) else { return };
        // The index may belong to somebody else by now; the place never does.
        let Some(grant) = mine.waiting.remove(&place) else { return };
        lane.queued -= 1;
        state.queued -= 1;
        self.relist(state, tenant, agent, Some(place));
        state.tidy(tenant, agent);
        drop(guard);
        drop(grant);
    }

    pub(crate) fn stats(&self) -> LaneStats {
        let state = self.state();
        let tenants = state.tenants.iter().map(|(_, tenant)| {
            (tenant.name.to_string(), TenantStats { running: tenant.running, queued: tenant.queued })
        });
        LaneStats {
            running: state.running,
            queued: state.queued,
            refused: state.refused,
            tenants: tenants.collect(),
        }
    }
}

impl State {
    fn tenant(&mut self, name: &Arc<str>) -> usize {
        if let Some(tenant) = self.by_name.get(name) {
            return *tenant;
        }
        let spare = self.spare.take().unwrap_or_default();
        let tenant = self.tenants.insert(Tenant { name: Arc::clone(name), ..spare });
        self.by_name.insert(Arc::clone(name), tenant);
        tenant
    }

    /// It is that tenant's turn last, from now on.
    fn serve(&mut self, tenant: usize) {
        self.count += 1;
        let Some(lane) = self.tenants.get_mut(tenant) else { return };
        let was_ready = self.ready.remove(&(lane.served, tenant));
        lane.served = self.count;
        if was_ready {
            self.ready.insert((lane.served, tenant));
        }
    }

    /// Forgets an agent and a tenant that have nothing any more: there may be very many over time.
    fn tidy(&mut self, tenant: usize, agent: usize) {
        let Some(lane) = self.tenants.get_mut(tenant) else { return };
        if lane.agents.get(agent).is_some_and(|agent| agent.running == 0 && agent.waiting.is_empty()) {
            let gone = lane.agents.remove(agent);
            lane.by_name.remove(&gone.name);
        }
        if lane.agents.is_empty() {
            self.ready.remove(&(lane.served, tenant));
            let gone = self.tenants.remove(tenant);
            self.by_name.remove(&gone.name);
            let (agents, by_name) = (gone.agents, gone.by_name);
            if agents.capacity() <= MOST_SPARE {
                self.spare = Some(Tenant { agents, by_name, ..Tenant::default() });
            }
        }
    }
}

impl Tenant {
    fn agent(&mut self, name: &Arc<str>) -> usize {
        if let Some(agent) = self.by_name.get(name) {
            return *agent;
        }
        let agent = self.agents.insert(Agent { name: Arc::clone(name), ..Agent::default() });
        self.by_name.insert(Arc::clone(name), agent);
        agent
    }
}

fn full(whose: &str) -> ToolError {
    let text =
        format!("Too many tool calls are running and waiting {whose}. Try again later, with fewer at once");
    ToolError::new(ErrorCode::ConcurrentLimitExceeded, text)
}

#[cfg(test)]
mod tests;
