//! Changes of the tools that another process has made and remembered.

use super::tools::{Tools, stored};
use crate::registry::{Origin, Registered, Shelf, ToolsEvent};
use haft_core::{
    ToolDefinition,
    port::{StoredTool, ToolChanges},
};
use std::{collections::BTreeSet, sync::Arc};

impl Tools<'_> {
    /// Follows what another process has changed in the place that tools come from
    /// ([`restore_when_needed`](Tools::restore_when_needed)): it is changed here, too, and told as if it had been changed
    /// here. What is so already stays as it is, and what is not here yet stays where it is. What cannot be followed is
    /// named.
    ///
    /// ```
    /// # use haft_core::port::{StoredTool, ToolChanges};
    /// # fn look(engine: haft_engine::Engine) {
    /// let off = StoredTool { enabled: false, ..StoredTool::new("read_file") };
    /// let skipped = engine.tools().follow(&ToolChanges { changed: vec![off], left: None });
    /// # }
    /// ```
    pub fn follow(&self, changes: &ToolChanges) -> Vec<String> {
        let registry = &self.0.ports.registry;
        let Some(shelf) = registry.shelf() else { return Vec::new() };
        let _turn = shelf.turn();
        let mut skipped = Vec::new();
        let gone = changes.left.as_ref().map(|left| self.no_longer(left)).unwrap_or_default();
        for name in gone {
            // Asked once more: somebody here may have added it after the others were counted.
            let done = match shelf.tools.find(&name) {
                Ok(None) => self.follow_removal(&name, shelf),
                Ok(Some(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            };
            skipped.extend(done.err().map(|why| format!("`{name}`: {why}")));
        }
        for now in &changes.changed {
            if let Err(why) = self.follow_change(now, shelf) {
                skipped.push(format!("`{}`: {why}", now.name));
            }
        }
        skipped
    }

    /// What is here and was remembered, and is not any more.
    fn no_longer(&self, left: &BTreeSet<String>) -> Vec<String> {
        let present = self.0.ports.registry.present();
        let gone = present.iter().filter(|here| !left.contains(&*here.name) && !stored(here).is_ordinary());
        gone.map(|here| here.name.to_string()).collect()
    }

    fn follow_removal(&self, name: &str, shelf: &Shelf) -> Result<(), String> {
        let registry = &self.0.ports.registry;
        match registry.here(name) {
            None => return Ok(()),
            // What is not remembered any more is ordinary again.
            Some(here) if here.origin == Origin::BuiltIn => {
                return self.follow_change(&StoredTool::new(name), shelf);
            }
            Some(_) => {}
        }
        let gone = registry.unregister(name).map_err(|error| error.to_string())?;
        self.tell(ToolsEvent::Unregistered { name: Arc::clone(&gone.name) });
        Ok(())
    }

    fn follow_change(&self, now: &StoredTool, shelf: &Shelf) -> Result<(), String> {
        let registry = &self.0.ports.registry;
        let here = registry.here(&now.name);
        if here.as_ref().is_some_and(|here| stored(here) == *now) {
            return Ok(());
        }
        let registered = match (&now.definition, here) {
            (Some(definition), Some(here)) if **here.tool.definition() == **definition => here,
            (None, Some(here)) => here,
            (None, None) => return Err(format!("there is no tool named `{}`", now.name)),
            // It comes here when somebody asks for it, as it is then. One of an MCP server comes now: what the server says
            // is compared with those that are here.
            (Some(definition), None) if !shelf.is_complete() && definition.mcp.is_none() => {
                self.tell(ToolsEvent::Registered { name: now.name.as_str().into() });
                return Ok(());
            }
            (Some(definition), here) => {
                let by = now.registered_by.as_deref().unwrap_or("unknown").into();
                let at = now.registered_at.unwrap_or_else(|| self.0.ports.clock.now());
                let (tool, origin) =
                    ((shelf.make)(ToolDefinition::clone(definition))?, Origin::Custom { by });
                let is_new = here.is_none();
                let registered = match here {
                    None => registry.register_switched(tool, origin, at, now.enabled),
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
