//! The tools of an engine: what can be asked about them, and how they are changed.

use crate::{
    inner::Inner,
    registry::{Incoming, Origin, RegisterError, Registered, Shelf, ToolsEvent},
};
use haft_core::{
    CallContext, SchemaValidation, Tier, ToolDefinition,
    port::{StoredTool, ToolShelf},
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
    pub(crate) fn of(registered: &Registered) -> Self {
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
        self.take_one(Box::new(tool), by, false).await
    }

    /// Puts a tool in the place of a custom one of the same name. Whether it is enabled and its settings stay.
    pub async fn replace(&self, tool: impl Tool, by: &CallContext) -> Result<Registration, RegisterError> {
        self.take_one(Box::new(tool), by, true).await
    }

    async fn take_one(
        &self,
        tool: Box<dyn Tool>,
        by: &CallContext,
        replaces: bool,
    ) -> Result<Registration, RegisterError> {
        let name = tool.definition().name.clone();
        let taken = self.take(vec![(tool, replaces)], by).await?.pop();
        taken.ok_or(RegisterError::Unknown { name, near: None })
    }

    /// Adds tools for somebody or, where `true` is beside one, puts it in the place of the custom one of the same name:
    /// all of them or none, and remembered as one change.
    pub async fn take(
        &self,
        tools: Vec<(Box<dyn Tool>, bool)>,
        by: &CallContext,
    ) -> Result<Vec<Registration>, RegisterError> {
        let registry = &self.0.ports.registry;
        let at = self.0.ports.clock.now();
        let origin = Origin::Custom { by: Arc::clone(by.user.as_ref().unwrap_or(&by.agent)) };
        let most = by.tier.max_custom_tools().map(|most| (by.tier, most));
        let mut incoming = Vec::with_capacity(tools.len());
        for (tool, replaces) in tools {
            let definition = tool.definition();
            // What is remembered under one of its names comes here, and is then seen to have it.
            for name in std::iter::once(&definition.name).chain(&definition.aliases) {
                registry.find(name).map_err(|error| RegisterError::Unreadable(error.to_string()))?;
            }
            if replaces && registry.require(&definition.name)?.origin == Origin::BuiltIn {
                return Err(RegisterError::BuiltIn { name: definition.name.clone() });
            }
            licensed(definition, by.tier)?;
            incoming.push(Incoming { tool, origin: origin.clone(), replaces });
        }
        let replaced: Vec<bool> = incoming.iter().map(|incoming| incoming.replaces).collect();
        let made = registry.prepare(incoming, at)?;
        let there = registry.with_all(&made, most)?;
        let saved = self.0.ports.registrations.save_all(there.iter().map(|there| stored(there)).collect());
        saved.await.map_err(|error| RegisterError::NotRemembered(error.to_string()))?;
        let there = registry.put_all(&made)?;
        for (there, replaced) in there.iter().zip(replaced) {
            let name = Arc::clone(&there.name);
            self.tell(match replaced {
                true => ToolsEvent::Replaced { name },
                false => ToolsEvent::Registered { name },
            });
        }
        Ok(there.iter().map(|there| Registration::of(there)).collect())
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

    /// What changes from now on. One who is slow misses the oldest, and is told how many.
    pub fn events(&self) -> broadcast::Receiver<ToolsEvent> {
        self.0.tools_events.subscribe()
    }

    /// Lets remembered tools come here when they are needed: one when it is called or asked for by name, all of them for
    /// a list. `make` makes each of its definition; `say` is told what is remembered and cannot be used, which stays
    /// remembered. An engine has one such place.
    pub fn restore_when_needed(
        &self,
        from: Arc<dyn ToolShelf>,
        make: impl Fn(ToolDefinition) -> Result<Box<dyn Tool>, String> + Send + Sync + 'static,
        say: impl Fn(&[String]) + Send + Sync + 'static,
    ) {
        let clock = Arc::clone(&self.0.ports.clock);
        self.0.ports.registry.set_shelf(Shelf::new(from, Box::new(make), Box::new(say), clock));
    }

    /// Brings everything here that is remembered. Blocks; lists do it by themselves, and leave out what cannot be had.
    pub fn bring_all(&self) -> Result<(), RegisterError> {
        let done = self.0.ports.registry.bring_all();
        done.map_err(|error| RegisterError::Unreadable(error.to_string()))
    }

    /// Brings back all that is remembered, now: switches and settings of tools that are here, and tools that somebody
    /// added, which `make` makes of their definitions. What cannot be brought back is skipped and named, and stays
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
