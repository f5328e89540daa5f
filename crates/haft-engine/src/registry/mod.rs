//! Which tools there are. Reading never waits for a writer: a change makes a new snapshot, which shares nearly all
//! of the old one.

mod event;
mod query;
mod registered;
mod retired;
mod settings;
mod shelf;
mod snapshot;
mod terms;

pub use event::ToolsEvent;
pub use query::ToolQuery;
pub(crate) use query::{MOST_RESULTS, is_available, within_licence};
pub(crate) use registered::{Origin, Registered, Schemas};
pub(crate) use shelf::Shelf;

use crate::stats;
use arc_swap::ArcSwap;
use haft_core::{DefinitionProblem, ErrorCode, Tier, Tightening};
use haft_sdk::Tool;
use jiff::Timestamp;
use serde_json::{Map, Value};
use snapshot::Snapshot;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// Why a change of the registry was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The definition breaks rules.
    #[error("the definition of `{name}` is not valid: {}", list(problems))]
    BadDefinition {
        /// The tool.
        name: String,
        /// Each rule that it breaks.
        problems: Vec<DefinitionProblem>,
    },
    /// A tool has that name or alias already.
    #[error("`{name}` is already registered; choose another name, or remove the other tool first")]
    Duplicate {
        /// The name or alias.
        name: String,
    },
    /// There is no such tool.
    #[error("there is no tool named `{name}`{}", near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        near: Option<String>,
    },
    /// It has no such setting, or not with that value.
    #[error("`{name}` cannot be set up so: {problem}")]
    BadSetting {
        /// The tool.
        name: String,
        /// What is wrong, and what would do.
        problem: String,
    },
    /// It comes with the program and stays as it is.
    #[error("`{name}` is built in, so it cannot be changed or removed; it can be disabled")]
    BuiltIn {
        /// The tool.
        name: String,
    },
    /// The tier does not allow more.
    #[error("Custom tool limit ({most}) reached for {tier:?} tier")]
    TooMany {
        /// The tier.
        tier: Tier,
        /// How many it allows.
        most: usize,
    },
    /// The tier does not include what the definition uses.
    #[error("{0}")]
    Unlicensed(String),
    /// What should be remembered could not be, so nothing was changed.
    #[error("the change could not be remembered, so it was not made: {0}")]
    NotRemembered(String),
    /// What is remembered cannot be read.
    #[error("what is remembered about the tools cannot be read: {0}")]
    Unreadable(String),
}

impl RegisterError {
    /// The row of the error table.
    pub fn code(&self) -> ErrorCode {
        match self {
            RegisterError::BadDefinition { .. } => ErrorCode::BadDefinition,
            RegisterError::Duplicate { .. } => ErrorCode::DuplicateTool,
            RegisterError::Unknown { .. } => ErrorCode::ToolNotFound,
            RegisterError::BuiltIn { .. } => ErrorCode::PermissionDenied,
            RegisterError::TooMany { .. } | RegisterError::Unlicensed(_) => ErrorCode::LicenseRequired,
            RegisterError::BadSetting { .. } => ErrorCode::ValidationFailed,
            RegisterError::NotRemembered(_) | RegisterError::Unreadable(_) => ErrorCode::StoreUnavailable,
        }
    }
}

fn list(problems: &[DefinitionProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The settings of a tool that hold for another definition of it, too: all, or those that still tighten something.
fn kept(new: &Registered, old: &Map<String, Value>) -> Map<String, Value> {
    let written = new.tool.definition();
    if settings::check(&*new.tool, old).is_ok() {
        return old.clone();
    }
    let one = |(key, value): (&String, &Value)| Map::from_iter([(key.clone(), value.clone())]);
    let tightens = |(key, _): &(&String, &Value)| Tightening::KEYS.contains(&key.as_str());
    let each = old.iter().filter(tightens).map(one);
    each.filter(|one| Tightening::read(one, written, new.tool.works_in_jail()).is_ok()).flatten().collect()
}

/// The tools of an engine.
#[derive(Default)]
pub(crate) struct Registry {
    current: ArcSwap<Snapshot>,
    /// Changes follow each other; readers never take this.
    changing: Mutex<()>,
    pub(crate) counts: Counts,
    retired: retired::Retired,
    /// Tools that are remembered and come here when somebody asks for them.
    shelf: OnceLock<Shelf>,
}

/// A tool that is to be put in, and whether it takes the place of one of its name.
pub(crate) struct Incoming {
    pub(crate) tool: Box<dyn Tool>,
    pub(crate) origin: Origin,
    pub(crate) replaces: bool,
}

/// A tool that can be put in, as far as it can be known by itself.
pub(crate) struct Made {
    registered: Arc<Registered>,
    replaces: bool,
}

/// What happened to the registry, for those who watch it.
#[derive(Default)]
pub(crate) struct Counts {
    /// Definitions that were looked at, and how long that took in all.
    pub(crate) validations: AtomicU64,
    pub(crate) validation_nanos: AtomicU64,
    pub(crate) invalid: AtomicU64,
    /// Tools that came in, and those that did not.
    pub(crate) registrations: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) searches: AtomicU64,
}

impl Counts {
    /// Makes a registration, with what that took.
    fn validated(
        &self,
        make: impl FnOnce() -> Result<Registered, RegisterError>,
    ) -> Result<Registered, RegisterError> {
        let begun = Instant::now();
        let made = make();
        let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.validations.fetch_add(1, Ordering::Relaxed);
        self.validation_nanos.fetch_add(nanos, Ordering::Relaxed);
        if made.is_err() {
            self.invalid.fetch_add(1, Ordering::Relaxed);
        }
        made
    }

    fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn registered<T>(&self, done: &Result<T, RegisterError>) {
        let cell = if done.is_ok() { &self.registrations } else { &self.refused };
        cell.fetch_add(1, Ordering::Relaxed);
    }
}

impl Registry {
    fn change<T>(
        &self,
        change: impl FnOnce(&Snapshot) -> Result<(Snapshot, T), RegisterError>,
    ) -> Result<T, RegisterError> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, value) = change(&self.current.load())?;
        self.current.store(Arc::new(next));
        Ok(value)
    }

    /// Adds a tool.
    pub(crate) fn register(
        &self,
        tool: Box<dyn Tool>,
        origin: Origin,
        at: Timestamp,
    ) -> Result<Arc<Registered>, RegisterError> {
        self.register_switched(tool, origin, at, true)
    }

    /// Adds a tool whose schemas were checked before.
    pub(crate) fn register_checked(
        &self,
        tool: Box<dyn Tool>,
        origin: Origin,
        at: Timestamp,
    ) -> Result<Arc<Registered>, RegisterError> {
        let made = self.make(tool, origin, at, Schemas::CheckedBefore);
        let registered = made.and_then(|registered| self.insert(registered));
        self.counts.registered(&registered);
        registered
    }

    /// Adds a tool that is switched on or off before anybody can call it.
    pub(crate) fn register_switched(
        &self,
        tool: Box<dyn Tool>,
        origin: Origin,
        at: Timestamp,
        enabled: bool,
    ) -> Result<Arc<Registered>, RegisterError> {
        let registered = self.make(tool, origin, at, Schemas::Unknown).and_then(|registered| {
            registered.set_enabled(enabled);
            self.insert(registered)
        });
        self.counts.registered(&registered);
        registered
    }

    fn insert(&self, registered: Arc<Registered>) -> Result<Arc<Registered>, RegisterError> {
        self.change(|current| {
            let mut next = current.again();
            next.add(&registered)?;
            Ok((next, Arc::clone(&registered)))
        })
    }

    /// Looks at tools that are to be put in. Their schemas are compiled: that is the slow part.
    pub(crate) fn prepare(&self, incoming: Vec<Incoming>, at: Timestamp) -> Result<Vec<Made>, RegisterError> {
        let make = |Incoming { tool, origin, replaces }: Incoming| {
            let registered = self.make(tool, origin, at, Schemas::Unknown);
            Ok(Made { registered: registered.inspect_err(|_| self.counts.refuse())?, replaces })
        };
        incoming.into_iter().map(make).collect()
    }

    /// What would be there once these were put in, which they are not. They may be no more custom tools than that,
    /// together with those that are here and elsewhere.
    pub(crate) fn with_all(
        &self,
        made: &[Made],
        most_custom: Option<(Tier, usize)>,
    ) -> Result<Vec<Arc<Registered>>, RegisterError> {
        let before = self.added()?;
        let (_, _, there) = put(&self.current.load(), made).inspect_err(|_| self.counts.refuse())?;
        let new = made.iter().filter(|made| !made.replaces).count();
        match most_custom {
            Some((tier, most)) if new > 0 && before + new > most => {
                self.counts.refuse();
                Err(RegisterError::TooMany { tier, most })
            }
            _ => Ok(there),
        }
    }

    /// Puts tools in, all of them or none.
    pub(crate) fn put_all(&self, made: &[Made]) -> Result<Vec<Arc<Registered>>, RegisterError> {
        let there = self.change(|current| {
            let (next, old, there) = put(current, made)?;
            old.iter().for_each(|old| self.retired.add(old));
            Ok((next, there))
        });
        match &there {
            Ok(there) => self.counts.registrations.fetch_add(there.len() as u64, Ordering::Relaxed),
            Err(_) => self.counts.refused.fetch_add(1, Ordering::Relaxed),
        };
        there
    }

    /// A registration that is not in yet. Compiled before the lock: that is the slow part.
    fn make(
        &self,
        tool: Box<dyn Tool>,
        origin: Origin,
        at: Timestamp,
        schemas: Schemas,
    ) -> Result<Arc<Registered>, RegisterError> {
        self.counts.validated(|| Registered::new(tool.into(), origin, at, schemas)).map(Arc::new)
    }

    /// Puts a tool in the place of a custom one of the same name.
    pub(crate) fn replace(
        &self,
        tool: Box<dyn Tool>,
        origin: Origin,
        at: Timestamp,
    ) -> Result<Arc<Registered>, RegisterError> {
        let made = self.prepare(vec![Incoming { tool, origin, replaces: true }], at)?;
        let mut there = self.put_all(&made)?;
        there.pop().ok_or_else(|| RegisterError::Unknown { name: String::new(), near: None })
    }

    /// Sets a tool up otherwise. Calls that were planned before see the new definition when they begin.
    pub(crate) fn configure(
        &self,
        name: &str,
        settings: Map<String, Value>,
    ) -> Result<Arc<Registered>, RegisterError> {
        self.change(|current| {
            let old = current.any(name)?;
            let registered = Arc::new(old.configured(settings)?);
            let mut next = current.again();
            next.remove(old);
            next.add(&registered)?;
            Ok((next, registered))
        })
    }

    /// Takes a custom tool away.
    pub(crate) fn unregister(&self, name: &str) -> Result<Arc<Registered>, RegisterError> {
        self.change(|current| {
            let old = current.custom(name)?;
            self.retired.add(old);
            let mut next = current.again();
            next.remove(old);
            Ok((next, Arc::clone(old)))
        })
    }

    /// The tool of that name or alias, in any case, where it is here already.
    pub(crate) fn here(&self, name: &str) -> Option<Arc<Registered>> {
        let current = self.current.load();
        if let Some(found) = current.find(name) {
            return Some(Arc::clone(found));
        }
        if name.len() <= 64 && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return current.find(&name.to_ascii_lowercase()).cloned();
        }
        None
    }

    /// The tools that are here already, by name.
    pub(crate) fn present(&self) -> Arc<[Arc<Registered>]> {
        Arc::clone(self.current.load().sorted())
    }

    /// What calls came to since the engine was built, by tool: also of tools that are gone.
    pub(crate) fn totals(&self) -> BTreeMap<String, stats::Snapshot> {
        let present = self.present();
        let mut by_tool: BTreeMap<String, stats::Snapshot> = BTreeMap::new();
        for tool in present.iter().filter(|tool| tool.stats_if_called().is_some()) {
            by_tool.insert(tool.name.to_string(), tool.state().counts());
        }
        self.retired.add_to(&mut by_tool, &present);
        by_tool
    }

    pub(crate) fn count(&self) -> usize {
        self.say_unless(self.bring_all());
        self.current.load().tools.size()
    }

    /// The best tools for a question, of those that `may` be shown.
    pub(crate) fn rank(
        &self,
        question: &str,
        most: usize,
        may: impl Fn(&Registered) -> bool,
    ) -> Vec<(f32, Arc<Registered>)> {
        self.say_unless(self.bring_all());
        let current = self.current.load();
        let ranked = terms::rank(question, current.sorted(), |registered| registered.terms(), usize::MAX);
        let shown = ranked.into_iter().filter(|(_, registered)| may(registered));
        shown.take(most).map(|(score, registered)| (score, Arc::clone(registered))).collect()
    }
}

type Put = (Snapshot, Vec<Arc<Registered>>, Vec<Arc<Registered>>);

/// A snapshot with these put in: it, those that were replaced, and those that are there instead.
fn put(current: &Snapshot, made: &[Made]) -> Result<Put, RegisterError> {
    let (mut next, mut gone, mut there) = (current.again(), Vec::new(), Vec::with_capacity(made.len()));
    for Made { registered, replaces } in made {
        let mut registered = Arc::clone(registered);
        if *replaces {
            let old = Arc::clone(next.custom(&registered.name)?);
            registered.set_enabled(old.is_enabled());
            // What another definition does not have is gone with the old one; what it tightens stays.
            let settings = kept(&registered, &old.settings);
            registered = Arc::new(registered.configured(settings)?);
            next.remove(&old);
            gone.push(old);
        }
        next.add(&registered)?;
        there.push(registered);
    }
    Ok((next, gone, there))
}
