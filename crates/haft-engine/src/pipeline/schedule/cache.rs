//! Stored results, and calls that share the run of another one.
//!
//! Only tools that say so, that have no side effects and whose call writes nothing. The key is exact: no digest stands
//! for anything, so no two calls are ever mistaken for one another. It holds the registration itself, so a tool that
//! was replaced or configured starts with nothing stored.

use crate::{
    pipeline::types::{AttemptOutcome, CallRecord, Ready, Start, cancelled},
    registry::Registered,
};
use haft_core::{
    CacheUse, CallContext, ContentPart, ErrorCode, EventPayload, ExecutionId, FromCache, ToolError,
    ToolOutput,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// How much is stored, and for how long.
///
/// ```
/// assert_eq!(haft_engine::ResultCache::default().ttl.as_secs(), 300);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultCache {
    /// How long a result answers.
    pub ttl: Duration,
    /// Bytes of all stored results, with their arguments.
    pub max_bytes: u64,
    /// Bytes of one of them; a larger one is not stored.
    pub max_result_bytes: u32,
}

impl Default for ResultCache {
    fn default() -> Self {
        ResultCache { ttl: Duration::from_secs(300), max_bytes: 64 << 20, max_result_bytes: 1 << 20 }
    }
}

/// What the cache holds and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheStats {
    /// Results that are stored.
    pub entries: u64,
    /// Their bytes, about.
    pub bytes: u64,
    /// Calls that a stored result answered.
    pub hits: u64,
    /// Calls that had to run.
    pub misses: u64,
    /// Calls that shared the run of another one.
    pub shared: u64,
    /// Hits and shared runs among all, from 0 to 1.
    pub hit_rate: f64,
}

/// What must be the same for one result to answer another call.
struct Key {
    registered: Arc<Registered>,
    settings: Arc<Map<String, Value>>,
    context: Arc<CallContext>,
    /// Canonical: members are sorted, defaults are filled in, there is no white space.
    arguments: Box<str>,
    hash: u64,
}

impl Key {
    fn of(
        hashing: &impl std::hash::BuildHasher,
        registered: &Arc<Registered>,
        ready: &Ready,
    ) -> Option<Self> {
        // What a tool gets beside its arguments may change what it answers.
        if !ready.call.passed().is_null() {
            return None;
        }
        let context = &ready.call.context;
        let arguments = serde_json::to_string(&ready.arguments.value).ok()?.into_boxed_str();
        let hash = hashing.hash_one((&*registered.name, &*context.tenant, &arguments));
        Some(Key {
            registered: Arc::clone(registered),
            settings: registered.settings(),
            context: Arc::clone(context),
            arguments,
            hash,
        })
    }

    /// Tenant and person, and what decides about roots, hosts and permissions.
    fn same_caller(&self, other: &Key) -> bool {
        let (a, b) = (&*self.context, &*other.context);
        if std::ptr::eq(a, b) {
            return true;
        }
        // Without `..`: what is added to a context has to be looked at here.
        let CallContext {
            tenant,
            user,
            roles,
            permissions,
            parent,
            roots,
            tier,
            agent: _,
            session: _,
            conversation: _,
            correlation_id: _,
            extra: _,
        } = a;
        *tenant == b.tenant
            && *user == b.user
            && *roles == b.roles
            && *permissions == b.permissions
            && *parent == b.parent
            && *roots == b.roots
            && *tier == b.tier
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.hash == other.hash
            && self.arguments == other.arguments
            && Arc::ptr_eq(&self.registered, &other.registered)
            && (Arc::ptr_eq(&self.settings, &other.settings) || self.settings == other.settings)
            && self.same_caller(other)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A result, with where it came from.
#[derive(Clone)]
struct Stored {
    output: Arc<ToolOutput>,
    by: ExecutionId,
    at: Instant,
    bytes: u32,
}

/// What those who wait for a run get of it.
type Shared = Result<Stored, Failed>;

/// Why the run of another call failed.
#[derive(Clone)]
struct Failed {
    error: ToolError,
    /// The deadline that passed, where that was it: a call with a longer one tries by itself.
    deadline: Option<Duration>,
}

/// The cache of an engine.
pub(crate) struct Cache {
    cache: ResultCache,
    hashing: foldhash::fast::RandomState,
    stored: moka::sync::Cache<Arc<Key>, Stored, foldhash::fast::RandomState>,
    running: Mutex<HashMap<Arc<Key>, watch::Receiver<Option<Shared>>, foldhash::fast::RandomState>>,
    hits: AtomicU64,
    misses: AtomicU64,
    shared: AtomicU64,
}

/// The run that others may wait for. Dropped without a result, one of them takes over.
struct Lead<'a> {
    cache: &'a Cache,
    key: Arc<Key>,
    result: watch::Sender<Option<Shared>>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.cache.running().remove(&self.key);
    }
}

enum Joined<'a> {
    Lead(Lead<'a>),
    Follow(watch::Receiver<Option<Shared>>),
}

impl Cache {
    pub(crate) fn new(cache: ResultCache) -> Self {
        let stored = moka::sync::Cache::builder()
            .max_capacity(cache.max_bytes)
            .weigher(|key: &Arc<Key>, stored: &Stored| {
                stored.bytes.saturating_add(u32::try_from(key.arguments.len()).unwrap_or(u32::MAX)).max(64)
            })
            .time_to_live(cache.ttl)
            .build_with_hasher(foldhash::fast::RandomState::default());
        Cache {
            cache,
            hashing: foldhash::fast::RandomState::default(),
            stored,
            running: Mutex::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            shared: AtomicU64::new(0),
        }
    }

    fn running(
        &self,
    ) -> MutexGuard<'_, HashMap<Arc<Key>, watch::Receiver<Option<Shared>>, foldhash::fast::RandomState>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has anything to do with a call.
    pub(crate) fn is_for(ready: &Ready) -> bool {
        let registered = ready.call.registered.get();
        registered.is_some_and(|registered| registered.definition.cacheable)
            && ready.only_reads()
            && ready.call.options.cache != CacheUse::Off
    }

    /// Answers a call with a stored result, with that of a call that runs, or by starting it.
    pub(crate) async fn answer<S: Start>(&self, ready: &mut Ready, start: &S) -> AttemptOutcome {
        let key =
            ready.call.registered.get().and_then(|registered| Key::of(&self.hashing, registered, ready));
        let Some(key) = key.map(Arc::new) else { return Box::pin(start.start(ready)).await };
        let may_read = ready.call.options.cache == CacheUse::Allowed;
        loop {
            if may_read && let Some(stored) = self.fresh(&key) {
                self.hits.fetch_add(1, Ordering::Relaxed);
                return Ok(hit(&mut ready.call, &stored, false));
            }
            match self.join(&key) {
                Joined::Follow(run) if may_read => match Box::pin(self.follow(ready, run)).await? {
                    Some(outcome) => return outcome,
                    // The call that ran it went away: perhaps it is this one's turn.
                    None => continue,
                },
                // A result that is to be fresh is not one whose run began before it was asked for.
                Joined::Follow(_) => return Box::pin(start.start(ready)).await,
                Joined::Lead(lead) => {
                    self.misses.fetch_add(1, Ordering::Relaxed);
                    // Boxed: a stored result needs none of it.
                    let outcome = Box::pin(start.start(ready)).await;
                    self.keep(lead, &ready.call, &outcome);
                    return outcome;
                }
            }
        }
    }

    fn fresh(&self, key: &Arc<Key>) -> Option<Stored> {
        self.stored.get(key).filter(|stored| stored.at.elapsed() < self.cache.ttl)
    }

    fn join(&self, key: &Arc<Key>) -> Joined<'_> {
        let mut running = self.running();
        if let Some(run) = running.get(key) {
            return Joined::Follow(run.clone());
        }
        let (result, run) = watch::channel(None);
        running.insert(Arc::clone(key), run);
        Joined::Lead(Lead { cache: self, key: Arc::clone(key), result })
    }

    /// What the run of another call came to; `None` where it came to nothing that this call can use.
    async fn follow(
        &self,
        ready: &mut Ready,
        mut run: watch::Receiver<Option<Shared>>,
    ) -> Result<Option<Result<ToolOutput, ToolError>>, ToolError> {
        let cancel = &ready.cancel;
        let shared = tokio::select! {
            biased;
            ended = run.wait_for(Option::is_some) => ended.ok().and_then(|shared| shared.clone()),
            reason = cancel.cancelled() => return Err(cancelled(cancel, reason)),
        };
        Ok(match shared {
            Some(Ok(stored)) => {
                self.shared.fetch_add(1, Ordering::Relaxed);
                Some(Ok(hit(&mut ready.call, &stored, true)))
            }
            Some(Err(failed)) if failed.deadline.is_none_or(|deadline| ready.call.timeout() <= deadline) => {
                self.shared.fetch_add(1, Ordering::Relaxed);
                Some(Err(failed.error))
            }
            Some(Err(_)) | None => None,
        })
    }

    /// Stores what came of a run, and tells those who wait for it.
    fn keep(&self, lead: Lead<'_>, call: &CallRecord, outcome: &Result<ToolOutput, ToolError>) {
        let shared = match outcome {
            Ok(output) => {
                // What was only streamed is in the spool of this call and in no other's.
                let is_whole = output.text.is_some() || output.structured.is_some() || !call.has_spooled();
                let is_valid = match (call.registered.get(), &output.structured) {
                    (Some(registered), Some(value)) => {
                        registered.output.check(&registered.definition, value).is_ok()
                    }
                    _ => true,
                };
                if !is_whole || !is_valid {
                    return;
                }
                let bytes = weight(output);
                let at = Instant::now();
                let stored = Stored { output: Arc::new(output.clone()), by: call.id, at, bytes };
                if bytes <= self.cache.max_result_bytes {
                    self.stored.insert(Arc::clone(&lead.key), stored.clone());
                }
                Ok(stored)
            }
            // The end of one call is not the end of another.
            Err(error) if error.code == ErrorCode::Cancelled => return,
            Err(error) => {
                let deadline = (error.code == ErrorCode::Timeout).then(|| call.timeout());
                Err(Failed { error: error.clone(), deadline })
            }
        };
        let _ = lead.result.send(Some(shared));
    }

    /// Forgets everything, or everything of one tool.
    pub(crate) fn clear(&self, tool: Option<&str>) {
        match tool {
            None => self.stored.invalidate_all(),
            Some(tool) => {
                let stale: Vec<_> = self
                    .stored
                    .iter()
                    .filter(|(key, _)| key.registered.name.eq_ignore_ascii_case(tool))
                    .map(|(key, _)| Arc::clone(&*key))
                    .collect();
                stale.iter().for_each(|key| self.stored.invalidate(key));
            }
        }
    }

    pub(crate) fn stats(&self) -> CacheStats {
        self.stored.run_pending_tasks();
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (hits, misses, shared) = (load(&self.hits), load(&self.misses), load(&self.shared));
        let all = hits + misses + shared;
        CacheStats {
            entries: self.stored.entry_count(),
            bytes: self.stored.weighted_size(),
            hits,
            misses,
            shared,
            hit_rate: if all == 0 { 0.0 } else { (hits + shared) as f64 / all as f64 },
        }
    }
}

/// Puts on record that a result is another call's.
fn hit(call: &mut CallRecord, stored: &Stored, shared: bool) -> ToolOutput {
    let age = if shared { Duration::ZERO } else { stored.at.elapsed() };
    call.emit(EventPayload::CacheHit { age, shared });
    call.scheduling().cache = Some(FromCache { execution_id: stored.by, age, shared });
    (*stored.output).clone()
}

fn weight(output: &ToolOutput) -> u32 {
    let text = output.text.as_ref().map_or(0, String::len);
    let structured = output.structured.as_ref().map_or(0, |value| value.to_string().len());
    let parts: usize = output
        .parts
        .iter()
        .map(|part| match part {
            ContentPart::Text { text } => text.len(),
            part => serde_json::to_string(part).map_or(usize::MAX, |json| json.len()),
        })
        .fold(0, usize::saturating_add);
    u32::try_from(text.saturating_add(structured).saturating_add(parts)).unwrap_or(u32::MAX)
}
