//! The tools of an engine: what can be asked about them, and how they are changed.

use crate::{
    inner::Inner,
    registry::{
        MOST_RESULTS, Origin, RegisterError, Registered, ToolQuery, ToolsEvent, is_available, within_licence,
    },
};
use haft_core::{
    CallContext, Category, SchemaValidation, SearchFilter, Tier, ToolDefinition, ToolError, ToolsMode,
    port::{Authorisation, StoredTool},
};
use haft_sdk::Tool;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::broadcast;

/// What is known about a registered tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// What it says about itself.
    pub definition: Arc<ToolDefinition>,
    /// Whether it came with the program, and stays.
    pub is_built_in: bool,
    /// Whether it may be called.
    pub enabled: bool,
    /// What it was configured with.
    pub settings: Arc<Map<String, Value>>,
    /// Who added it.
    pub registered_by: Option<Arc<str>>,
    /// When it was added.
    pub registered_at: Timestamp,
}

impl Registration {
    fn of(registered: &Registered) -> Self {
        Registration {
            definition: Arc::clone(&registered.definition),
            is_built_in: registered.origin == Origin::BuiltIn,
            enabled: registered.is_enabled(),
            settings: registered.settings(),
            registered_by: match &registered.origin {
                Origin::BuiltIn => None,
                Origin::Custom { by } => Some(Arc::clone(by)),
            },
            registered_at: registered.registered_at,
        }
    }
}

/// The tools of an engine. Names are taken in any case, and aliases count as names.
///
/// Every change is remembered first (see [`Registrations`](haft_core::port::Registrations)) and made then; one that
/// cannot be remembered is not made.
#[derive(Clone, Copy)]
pub struct Tools<'a>(pub(crate) &'a Inner);

impl Tools<'_> {
    /// Adds a tool for somebody, within what their licence tier allows, and remembers it.
    pub async fn add(&self, tool: impl Tool, by: &CallContext) -> Result<Registration, RegisterError> {
        let at = self.0.ports.clock.now();
        let origin = Origin::Custom { by: Arc::clone(by.user.as_ref().unwrap_or(&by.agent)) };
        let most = by.tier.max_custom_tools().map(|most| (by.tier, most));
        licensed(tool.definition(), by.tier)?;
        let registered = self.0.ports.registry.register(Box::new(tool), origin, at, most)?;
        if let Err(error) = self.remember(&registered).await {
            // Not remembered, so not made. Nobody else could have changed it in between: it is the newest there is.
            let _ = self.0.ports.registry.unregister(&registered.name);
            return Err(error);
        }
        self.tell(ToolsEvent::Registered { name: Arc::clone(&registered.name) });
        Ok(Registration::of(&registered))
    }

    /// Puts a tool in the place of a custom one of the same name. Whether it is enabled and its settings stay.
    pub async fn replace(&self, tool: impl Tool, by: &CallContext) -> Result<Registration, RegisterError> {
        let at = self.0.ports.clock.now();
        let origin = Origin::Custom { by: Arc::clone(by.user.as_ref().unwrap_or(&by.agent)) };
        let old = self.0.ports.registry.require(&tool.definition().name)?;
        if old.origin == Origin::BuiltIn {
            return Err(RegisterError::BuiltIn { name: old.name.to_string() });
        }
        licensed(tool.definition(), by.tier)?;
        let mut stored = stored(&old);
        stored.definition = Some(Box::new(ToolDefinition::clone(tool.definition())));
        self.save(stored).await?;
        let registered = self.0.ports.registry.replace(Box::new(tool), origin, at)?;
        self.tell(ToolsEvent::Replaced { name: Arc::clone(&registered.name) });
        Ok(Registration::of(&registered))
    }

    /// Takes a custom tool away. What comes with the program can only be disabled.
    pub async fn remove(&self, name: &str) -> Result<(), RegisterError> {
        let registered = self.0.ports.registry.require(name)?;
        if registered.origin == Origin::BuiltIn {
            return Err(RegisterError::BuiltIn { name: registered.name.to_string() });
        }
        let removed = self.0.ports.registrations.remove(&registered.name).await;
        removed.map_err(|error| RegisterError::NotRemembered(error.to_string()))?;
        self.0.ports.registry.unregister(&registered.name)?;
        self.tell(ToolsEvent::Unregistered { name: Arc::clone(&registered.name) });
        Ok(())
    }

    /// Switches a tool on or off. A call of one that is off is refused.
    pub async fn set_enabled(&self, name: &str, enabled: bool) -> Result<(), RegisterError> {
        let registered = self.0.ports.registry.require(name)?;
        self.save(StoredTool { enabled, ..stored(&registered) }).await?;
        registered.set_enabled(enabled);
        let name = Arc::clone(&registered.name);
        self.tell(if enabled { ToolsEvent::Enabled { name } } else { ToolsEvent::Disabled { name } });
        Ok(())
    }

    /// Sets a tool up: what is [tightened](haft_core::Tightening) on it, built-in or not, and what its definition says that
    /// it can be set up with, which it finds on its context.
    ///
    /// # Errors
    ///
    /// There is no such tool, it has no such setting, the value is none or looser than what the tool says itself, or it
    /// could not be remembered: then nothing is changed.
    pub async fn configure(&self, name: &str, settings: Map<String, Value>) -> Result<(), RegisterError> {
        let registered = self.0.ports.registry.require(name)?;
        registered.check_settings(&settings)?;
        self.save(StoredTool { settings: settings.clone(), ..stored(&registered) }).await?;
        let registered = self.0.ports.registry.configure(&registered.name, settings)?;
        self.tell(ToolsEvent::Configured { name: Arc::clone(&registered.name) });
        Ok(())
    }

    /// What is known about a tool.
    pub fn get(&self, name: &str) -> Option<Registration> {
        self.0.ports.registry.lookup(name).map(|registered| Registration::of(&registered))
    }

    /// Whether there is a tool of that name or alias.
    pub fn exists(&self, name: &str) -> bool {
        self.0.ports.registry.lookup(name).is_some()
    }

    /// How many there are: all, or those that a caller of that tier may call.
    pub fn count(&self, available_to: Option<Tier>) -> usize {
        match available_to {
            None => self.0.ports.registry.count(),
            Some(tier) => {
                self.0.ports.registry.all().iter().filter(|registered| is_available(registered, tier)).count()
            }
        }
    }

    /// All tools at one moment, by name.
    pub fn all(&self) -> Vec<Registration> {
        self.0.ports.registry.all().iter().map(|registered| Registration::of(registered)).collect()
    }

    /// Those that a caller may call, and so may be told about: switched on, within the tier, permitted. A guard that
    /// errors hides the tool; in disabled mode there are none.
    pub async fn available(&self, context: &CallContext) -> Vec<Arc<ToolDefinition>> {
        let mut available = Vec::new();
        if self.0.ports.settings.mode == ToolsMode::Disabled {
            return available;
        }
        for registered in self.0.ports.registry.all() {
            let definition = &registered.definition;
            if is_available(&registered, context.tier)
                && self.0.ports.authoriser.authorise(context, definition).await == Ok(Authorisation::Granted)
            {
                available.push(Arc::clone(definition));
            }
        }
        available
    }

    /// Those that a model is listed: all that the caller may call, or, where that is more than
    /// [`max_listed_tools`](crate::Settings::max_listed_tools), those that come with the program. The others are found
    /// by `search_tools` and called by `call_tool`; where the caller may not call these two, all are listed.
    pub async fn listed(&self, context: &CallContext) -> Vec<Arc<ToolDefinition>> {
        let mut listed = self.available(context).await;
        let is_there = |name: &str| listed.iter().any(|definition| definition.name == name);
        if listed.len() > self.0.ports.settings.max_listed_tools
            && is_there("search_tools")
            && is_there("call_tool")
        {
            let is_built_in = |definition: &Arc<ToolDefinition>| {
                let registered = self.0.ports.registry.lookup(&definition.name);
                registered.is_some_and(|registered| registered.origin == Origin::BuiltIn)
            };
            listed.retain(is_built_in);
        }
        listed
    }

    /// Says that a tool is not there for now, or that it is back: while it is withdrawn nobody is told of it. That is
    /// not remembered, and a call of it goes its way, to be refused by whatever it comes from.
    pub fn set_withdrawn(&self, name: &str, withdrawn: bool) -> Result<(), RegisterError> {
        let registered = self.0.ports.registry.require(name)?;
        if registered.set_withdrawn(withdrawn) != withdrawn {
            let name = Arc::clone(&registered.name);
            self.tell(match withdrawn {
                true => ToolsEvent::Unregistered { name },
                false => ToolsEvent::Registered { name },
            });
        }
        Ok(())
    }

    /// Those of a category that a caller of that tier may call.
    pub fn by_category(&self, category: Category, tier: Tier) -> Vec<Arc<ToolDefinition>> {
        let query =
            ToolQuery { categories: vec![category], max_results: MOST_RESULTS, ..ToolQuery::default() };
        self.matching(&query, tier)
    }

    /// Those that fit every condition, by name; refused where the tier does not include such a search.
    pub fn find(&self, query: &ToolQuery, tier: Tier) -> Result<Vec<Arc<ToolDefinition>>, ToolError> {
        query.check(tier)?;
        Ok(self.matching(query, tier))
    }

    fn matching(&self, query: &ToolQuery, tier: Tier) -> Vec<Arc<ToolDefinition>> {
        self.searched();
        let all = self.0.ports.registry.all();
        let found = all.iter().filter(|registered| query.matches(registered, tier));
        found.take(query.max_results.min(MOST_RESULTS)).map(|found| Arc::clone(&found.definition)).collect()
    }

    /// Those that fit a question in words, best first, with how well they fit; refused where the tier does not include
    /// such a search.
    pub fn rank(
        &self,
        question: &str,
        most: usize,
        tier: Tier,
    ) -> Result<Vec<(f32, Arc<ToolDefinition>)>, ToolError> {
        within_licence(SearchFilter::Name, tier)?;
        self.searched();
        let ranked = self.0.ports.registry.rank(question, most, |registered| is_available(registered, tier));
        Ok(ranked
            .into_iter()
            .map(|(score, registered)| (score, Arc::clone(&registered.definition)))
            .collect())
    }

    fn searched(&self) {
        self.0.ports.registry.counts.searches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// What changes from now on. One who is slow misses the oldest, and is told how many.
    pub fn events(&self) -> broadcast::Receiver<ToolsEvent> {
        self.0.tools_events.subscribe()
    }

    /// Brings back what is remembered: switches and settings of tools that are here, and tools that somebody added,
    /// which `make` makes of their definitions. What cannot be brought back is skipped and named, and stays
    /// remembered.
    pub async fn restore(
        &self,
        make: impl Fn(ToolDefinition) -> Result<Box<dyn Tool>, String>,
    ) -> Result<Vec<String>, RegisterError> {
        let remembered = self.0.ports.registrations.load().await;
        let remembered = remembered.map_err(|error| RegisterError::NotRemembered(error.to_string()))?;
        let mut skipped = Vec::new();
        for stored in remembered {
            if let Err(why) = self.bring_back(&stored, &make) {
                skipped.push(format!("`{}`: {why}", stored.name));
            }
        }
        Ok(skipped)
    }

    fn bring_back(
        &self,
        stored: &StoredTool,
        make: &impl Fn(ToolDefinition) -> Result<Box<dyn Tool>, String>,
    ) -> Result<(), String> {
        let registry = &self.0.ports.registry;
        let registered = match &stored.definition {
            None => registry.require(&stored.name),
            Some(definition) => {
                let by = stored.registered_by.as_deref().unwrap_or("unknown").into();
                let at = stored.registered_at.unwrap_or_else(|| self.0.ports.clock.now());
                // It was checked when it was remembered.
                registry.register_checked(make(ToolDefinition::clone(definition))?, Origin::Custom { by }, at)
            }
        };
        let registered = registered.map_err(|error| error.to_string())?;
        registered.set_enabled(stored.enabled);
        // A setting that does not fit any more must not become a tool that is not tightened: it is switched off, and named.
        if let Err(error) = registry.configure(&registered.name, stored.settings.clone()) {
            registered.set_enabled(false);
            return Err(format!("{error}; it is disabled until `haft tools config` is right"));
        }
        Ok(())
    }

    async fn remember(&self, registered: &Registered) -> Result<(), RegisterError> {
        self.save(stored(registered)).await
    }

    async fn save(&self, stored: StoredTool) -> Result<(), RegisterError> {
        let saved = self.0.ports.registrations.save(stored).await;
        saved.map_err(|error| RegisterError::NotRemembered(error.to_string()))
    }

    pub(crate) fn tell(&self, event: ToolsEvent) {
        // An error only says that nobody listens.
        let _ = self.0.tools_events.send(event);
    }
}

/// Refuses a definition whose schemas use more than a licence tier includes.
fn licensed(definition: &ToolDefinition, tier: Tier) -> Result<(), RegisterError> {
    let Some((place, keyword)) = haft_schema::beyond_basic(definition) else { return Ok(()) };
    let what = format!("`{keyword}` in the {place} of `{}`", definition.name);
    tier.require(what, |tier| tier.schema_validation() >= SchemaValidation::Advanced)
        .map_err(|error| RegisterError::Unlicensed(error.message))
}

/// What is to be remembered of a tool.
pub(crate) fn stored(registered: &Registered) -> StoredTool {
    let mut stored = StoredTool::new(&*registered.name);
    stored.enabled = registered.is_enabled();
    stored.settings = Map::clone(&registered.settings());
    if let Origin::Custom { by } = &registered.origin {
        stored.definition = Some(Box::new(ToolDefinition::clone(registered.tool.definition())));
        stored.registered_by = Some(by.to_string());
        stored.registered_at = Some(registered.registered_at);
    }
    stored
}
