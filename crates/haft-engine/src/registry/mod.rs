//! Which tools there are. Reading never waits for a writer: a change makes a new snapshot, which shares nearly all
//! of the old one.

mod event;
mod query;
mod registered;
mod retired;
mod settings;
mod terms;

pub use event::ToolsEvent;
pub use query::ToolQuery;
pub(crate) use query::{MOST_RESULTS, is_available, within_licence};
pub(crate) use registered::{Origin, Registered, Schemas};

use crate::stats;
use arc_swap::ArcSwap;
use haft_core::{DefinitionProblem, ErrorCode, Tier, Tightening, suggest};
use haft_sdk::Tool;
use jiff::Timestamp;
use rpds::HashTrieMapSync;
use serde_json::{Map, Value};
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
            RegisterError::NotRemembered(_) => ErrorCode::StoreUnavailable,
        }
    }
}

fn list(problems: &[DefinitionProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

type Hashing = foldhash::fast::RandomState;
type ByName<T> = HashTrieMapSync<Box<str>, T, Hashing>;

struct Snapshot {
    /// By canonical name.
    tools: ByName<Arc<Registered>>,
    /// Canonical names by alias, in lower case.
    aliases: ByName<Arc<str>>,
    /// In the order of their names; made when somebody asks.
    sorted: OnceLock<Vec<Arc<Registered>>>,
    custom: usize,
}

impl Default for Snapshot {
    fn default() -> Self {
        Snapshot {
            tools: HashTrieMapSync::new_with_hasher_and_ptr_kind(Hashing::default()),
            aliases: HashTrieMapSync::new_with_hasher_and_ptr_kind(Hashing::default()),
            sorted: OnceLock::new(),
            custom: 0,
        }
    }
}

impl Snapshot {
    fn find(&self, name: &str) -> Option<&Arc<Registered>> {
        self.tools.get(name).or_else(|| self.aliases.get(name).and_then(|name| self.tools.get(&**name)))
    }

    fn sorted(&self) -> &[Arc<Registered>] {
        self.sorted.get_or_init(|| {
            let mut sorted: Vec<_> = self.tools.values().cloned().collect();
            sorted.sort_by(|a, b| a.name.cmp(&b.name));
            sorted
        })
    }

    fn with(&self, registered: &Arc<Registered>) -> Result<Snapshot, RegisterError> {
        let definition = &registered.definition;
        let mut aliases = self.aliases.clone();
        for alias in &definition.aliases {
            let key = alias.to_ascii_lowercase();
            if self.find(&key).is_some() || aliases.contains_key(key.as_str()) || key == *registered.name {
                return Err(RegisterError::Duplicate { name: alias.clone() });
            }
            aliases.insert_mut(key.into(), Arc::clone(&registered.name));
        }
        if self.find(&registered.name).is_some() {
            return Err(RegisterError::Duplicate { name: definition.name.clone() });
        }
        Ok(Snapshot {
            tools: self.tools.insert((&*registered.name).into(), Arc::clone(registered)),
            aliases,
            sorted: OnceLock::new(),
            custom: self.custom + usize::from(registered.origin != Origin::BuiltIn),
        })
    }

    fn without(&self, registered: &Registered) -> Snapshot {
        let mut aliases = self.aliases.clone();
        for alias in &registered.definition.aliases {
            aliases.remove_mut(alias.to_ascii_lowercase().as_str());
        }
        Snapshot {
            tools: self.tools.remove(&*registered.name),
            aliases,
            sorted: OnceLock::new(),
            custom: self.custom - usize::from(registered.origin != Origin::BuiltIn),
        }
    }
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
        most_custom: Option<(Tier, usize)>,
    ) -> Result<Arc<Registered>, RegisterError> {
        self.register_switched(tool, origin, at, most_custom, true)
    }

    /// Adds a tool whose schemas were checked before.
    pub(crate) fn register_checked(
        &self,
        tool: Box<dyn Tool>,
        origin: Origin,
        at: Timestamp,
    ) -> Result<Arc<Registered>, RegisterError> {
        let registered = self.make(tool, origin, at, Schemas::CheckedBefore).and_then(|registered| {
            self.change(|current| Ok((current.with(&registered)?, Arc::clone(&registered))))
        });
        self.counts.registered(&registered);
        registered
    }

    /// Adds a tool that is switched on or off before anybody can call it.
    pub(crate) fn register_switched(
        &self,
        tool: Box<dyn Tool>,
        origin: Origin,
        at: Timestamp,
        most_custom: Option<(Tier, usize)>,
        enabled: bool,
    ) -> Result<Arc<Registered>, RegisterError> {
        let registered = self.make(tool, origin, at, Schemas::Unknown).and_then(|registered| {
            registered.set_enabled(enabled);
            self.change(|current| {
                let next = current.with(&registered)?;
                match most_custom {
                    Some((tier, most)) if next.custom > most => Err(RegisterError::TooMany { tier, most }),
                    _ => Ok((next, Arc::clone(&registered))),
                }
            })
        });
        self.counts.registered(&registered);
        registered
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
        let registered = self.make(tool, origin, at, Schemas::Unknown).and_then(|registered| {
            self.change(|current| {
                let old = current.custom(self, &registered.name)?;
                registered.set_enabled(old.is_enabled());
                // What another definition does not have is gone with the old one; what it tightens stays.
                let settings = kept(&registered, &old.settings);
                let registered = Arc::new(registered.configured(settings)?);
                let next = current.without(old).with(&registered)?;
                self.retired.add(old);
                Ok((next, registered))
            })
        });
        self.counts.registered(&registered);
        registered
    }

    /// Sets a tool up otherwise. Calls that were planned before see the new definition when they begin.
    pub(crate) fn configure(
        &self,
        name: &str,
        settings: Map<String, Value>,
    ) -> Result<Arc<Registered>, RegisterError> {
        self.change(|current| {
            let old = current.any(self, name)?;
            let registered = Arc::new(old.configured(settings)?);
            let next = current.without(old).with(&registered)?;
            Ok((next, registered))
        })
    }

    /// Takes a custom tool away.
    pub(crate) fn unregister(&self, name: &str) -> Result<Arc<Registered>, RegisterError> {
        self.change(|current| {
            let old = current.custom(self, name)?;
            self.retired.add(old);
            Ok((current.without(old), Arc::clone(old)))
        })
    }

    /// The tool of that name or alias, in any case.
    pub(crate) fn lookup(&self, name: &str) -> Option<Arc<Registered>> {
        let current = self.current.load();
        if let Some(found) = current.find(name) {
            return Some(Arc::clone(found));
        }
        if name.len() <= 64 && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return current.find(&name.to_ascii_lowercase()).cloned();
        }
        None
    }

    /// The tool of a name; where there is none, an error with a suggestion.
    pub(crate) fn require(&self, name: &str) -> Result<Arc<Registered>, RegisterError> {
        self.lookup(name)
            .ok_or_else(|| RegisterError::Unknown { name: name.to_owned(), near: self.nearest(name) })
    }

    /// All tools at one moment, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Registered>> {
        self.current.load().sorted().to_vec()
    }

    /// What calls came to since the engine was built, by tool: also of tools that are gone.
    pub(crate) fn totals(&self) -> BTreeMap<String, stats::Snapshot> {
        let present = self.all();
        let mut by_tool: BTreeMap<String, stats::Snapshot> = BTreeMap::new();
        for tool in present.iter().filter(|tool| tool.stats_if_called().is_some()) {
            by_tool.insert(tool.name.to_string(), tool.state().counts());
        }
        self.retired.add_to(&mut by_tool, &present);
        by_tool
    }

    pub(crate) fn count(&self) -> usize {
        self.current.load().tools.size()
    }

    /// The best tools for a question, of those that `may` be shown.
    pub(crate) fn rank(
        &self,
        question: &str,
        most: usize,
        may: impl Fn(&Registered) -> bool,
    ) -> Vec<(f32, Arc<Registered>)> {
        let current = self.current.load();
        let ranked = terms::rank(question, current.sorted(), |registered| &registered.terms, usize::MAX);
        let shown = ranked.into_iter().filter(|(_, registered)| may(registered));
        shown.take(most).map(|(score, registered)| (score, Arc::clone(registered))).collect()
    }

    /// The name that was probably meant.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let current = self.current.load();
        let names = current.tools.keys().chain(current.aliases.keys()).map(|name| &**name);
        let near = suggest::nearest(name, names)?;
        current.find(near).map(|registered| registered.definition.name.clone())
    }
}

impl Snapshot {
    /// The tool of that name, if somebody added it.
    fn custom(&self, registry: &Registry, name: &str) -> Result<&Arc<Registered>, RegisterError> {
        let found = self.any(registry, name)?;
        match found.origin {
            Origin::BuiltIn => Err(RegisterError::BuiltIn { name: found.name.to_string() }),
            Origin::Custom { .. } => Ok(found),
        }
    }

    /// The tool of that name, built in or added.
    fn any(&self, registry: &Registry, name: &str) -> Result<&Arc<Registered>, RegisterError> {
        let found = self.find(name).or_else(|| self.find(&name.to_ascii_lowercase()));
        found.ok_or_else(|| RegisterError::Unknown { name: name.to_owned(), near: registry.nearest(name) })
    }
}
