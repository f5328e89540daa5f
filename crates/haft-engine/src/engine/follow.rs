//! Changes of the tools that another process has made and remembered.

use super::tools::{Tools, stored};
use crate::registry::{Origin, Registered, ToolsEvent};
use haft_core::{ToolDefinition, port::StoredTool};
use haft_sdk::Tool;
use std::{collections::BTreeSet, sync::Arc};

impl Tools<'_> {
    /// Follows what another process has changed: what is different between two loads of the
    /// [`Registrations`](haft_core::port::Registrations) is changed here, too, and told as if it had been changed here.
    /// What is so already stays as it is. What cannot be followed is named.
    ///
    /// ```
    /// # use haft_core::port::StoredTool;
    /// # fn look(engine: haft_engine::Engine) {
    /// let now = vec![StoredTool { enabled: false, ..StoredTool::new("read_file") }];
    /// let skipped = engine.tools().follow(&[], &now, |_| Err("nothing is made here".to_owned()));
    /// # }
    /// ```
    pub fn follow(
        &self,
        before: &[StoredTool],
        now: &[StoredTool],
        make: impl Fn(ToolDefinition) -> Result<Box<dyn Tool>, String>,
    ) -> Vec<String> {
        let names: BTreeSet<&str> = before.iter().chain(now).map(|stored| stored.name.as_str()).collect();
        let find = |list: &[StoredTool], name: &str| list.iter().find(|stored| stored.name == name).cloned();
        let mut skipped = Vec::new();
        for name in names {
            let (before, now) = (find(before, name), find(now, name));
            if before == now {
                continue;
            }
            let was_added = before.is_some_and(|before| before.definition.is_some());
            // What is not remembered any more is ordinary again.
            let now = now.unwrap_or_else(|| StoredTool::new(name));
            let done = match was_added && now.definition.is_none() {
                true => self.follow_removal(name),
                false => self.follow_change(&now, &make),
            };
            if let Err(why) = done {
                skipped.push(format!("`{name}`: {why}"));
            }
        }
        skipped
    }

    fn follow_removal(&self, name: &str) -> Result<(), String> {
        let registry = &self.0.ports.registry;
        if registry.lookup(name).is_none_or(|registered| registered.origin == Origin::BuiltIn) {
            return Ok(());
        }
        let gone = registry.unregister(name).map_err(|error| error.to_string())?;
        self.tell(ToolsEvent::Unregistered { name: Arc::clone(&gone.name) });
        Ok(())
    }

    fn follow_change(
        &self,
        now: &StoredTool,
        make: &impl Fn(ToolDefinition) -> Result<Box<dyn Tool>, String>,
    ) -> Result<(), String> {
        let registry = &self.0.ports.registry;
        let here = registry.lookup(&now.name);
        if here.as_ref().is_some_and(|here| stored(here) == *now) {
            return Ok(());
        }
        let registered = match (&now.definition, here) {
            (Some(definition), Some(here)) if **here.tool.definition() == **definition => here,
            (None, Some(here)) => here,
            (None, None) => registry.require(&now.name).map_err(|error| error.to_string())?,
            (Some(definition), here) => {
                let by = now.registered_by.as_deref().unwrap_or("unknown").into();
                let at = now.registered_at.unwrap_or_else(|| self.0.ports.clock.now());
                let (tool, origin) = (make(ToolDefinition::clone(definition))?, Origin::Custom { by });
                let is_new = here.is_none();
                let registered = match here {
                    None => registry.register_switched(tool, origin, at, None, now.enabled),
                    Some(old) => {
                        // The new one is switched as the old one was. What is off is at no moment on.
                        old.set_enabled(old.is_enabled() && now.enabled);
                        registry.replace(tool, origin, at)
                    }
                };
                let registered = registered.map_err(|error| error.to_string())?;
                let name = Arc::clone(&registered.name);
                self.tell(match is_new {
                    true => ToolsEvent::Registered { name },
                    false => ToolsEvent::Replaced { name },
                });
                registered
            }
        };
        self.follow_switches(&registered, now)
    }

    fn follow_switches(&self, registered: &Registered, now: &StoredTool) -> Result<(), String> {
        let name = || Arc::clone(&registered.name);
        if registered.is_enabled() != now.enabled {
            registered.set_enabled(now.enabled);
            self.tell(match now.enabled {
                true => ToolsEvent::Enabled { name: name() },
                false => ToolsEvent::Disabled { name: name() },
            });
        }
        if *registered.settings() != now.settings {
            let set_up = self.0.ports.registry.configure(&registered.name, now.settings.clone());
            set_up.map_err(|error| {
                registered.set_enabled(false);
                error.to_string()
            })?;
            self.tell(ToolsEvent::Configured { name: name() });
        }
        Ok(())
    }
}
