//! Tools that are remembered and not here yet: each comes in when somebody asks for it, and all of them when somebody
//! asks for a list.

use super::{Origin, RegisterError, Registered, Registry, Schemas};
use haft_core::{
    ToolDefinition,
    port::{Clock, StoreError, StoredTool, ToolShelf},
};
use haft_sdk::Tool;
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

type Make = Box<dyn Fn(ToolDefinition) -> Result<Box<dyn Tool>, String> + Send + Sync>;
type Say = Box<dyn Fn(&[String]) + Send + Sync>;

/// No name or alias is longer, so nothing longer is asked for.
const LONGEST_NAME: usize = 64;
/// Of how many tools it is known that somebody was told of them.
const MOST_SAID: usize = 1024;

/// Where remembered tools are, and how they come here.
pub(crate) struct Shelf {
    pub(crate) tools: Arc<dyn ToolShelf>,
    pub(crate) make: Make,
    /// Told what is remembered and cannot be used.
    pub(crate) say: Say,
    pub(crate) clock: Arc<dyn Clock>,
    /// What is read is here before somebody else reads, or follows a change of it.
    pub(crate) taking: Mutex<()>,
    /// Switches and settings of the tools that come with the program are here.
    pub(crate) has_switches: AtomicBool,
    /// Everything is here.
    pub(crate) is_complete: AtomicBool,
    pub(crate) said: Mutex<HashSet<String>>,
}

impl Shelf {
    pub(crate) fn new(tools: Arc<dyn ToolShelf>, make: Make, say: Say, clock: Arc<dyn Clock>) -> Self {
        Shelf {
            tools,
            make,
            say,
            clock,
            taking: Mutex::default(),
            has_switches: AtomicBool::new(false),
            is_complete: AtomicBool::new(false),
            said: Mutex::default(),
        }
    }

    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    /// Tells of each once.
    fn tell(&self, skipped: Vec<(String, String)>) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let new = skipped.into_iter().filter(|(name, _)| said.len() < MOST_SAID && said.insert(name.clone()));
        let new: Vec<String> = new.map(|(name, why)| format!("`{name}`: {why}")).collect();
        drop(said);
        if !new.is_empty() {
            (self.say)(&new);
        }
    }
}

impl Registry {
    /// From now on remembered tools come from there.
    pub(crate) fn set_shelf(&self, shelf: Shelf) {
        // There is one for the life of an engine: the first stays.
        let _ = self.shelf.set(shelf);
    }

    pub(crate) fn shelf(&self) -> Option<&Shelf> {
        self.shelf.get()
    }

    /// The tool of that name or alias, in any case. An error says that it cannot be known whether there is one, or how
    /// it is set up: it must not be called.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Arc<Registered>>, StoreError> {
        let Some(shelf) = self.shelf() else { return Ok(self.here(name)) };
        self.bring_switches(shelf)?;
        if let Some(here) = self.here(name) {
            return Ok(Some(here));
        }
        if shelf.is_complete() || name.is_empty() || name.len() > LONGEST_NAME {
            return Ok(None);
        }
        let _turn = shelf.turn();
        // Somebody else may have asked for it a moment ago.
        if let Some(here) = self.here(name) {
            return Ok(Some(here));
        }
        let Some(stored) = shelf.tools.find(&name.to_ascii_lowercase())? else { return Ok(None) };
        self.bring_others(shelf, &stored)?;
        match self.bring_back(shelf, &stored) {
            Ok(registered) => Ok(registered),
            Err(why) => {
                shelf.tell(vec![(stored.name, why)]);
                Ok(None)
            }
        }
    }

    /// Brings the other tools of an MCP server: what the server says that it has is compared with all of them, and one
    /// that is not here would be taken for a new one.
    fn bring_others(&self, shelf: &Shelf, stored: &StoredTool) -> Result<(), StoreError> {
        let mcp = stored.definition.as_ref().and_then(|definition| definition.mcp.as_ref());
        let Some(mcp) = mcp else { return Ok(()) };
        let mut skipped = Vec::new();
        for other in shelf.tools.of_server(&mcp.server)? {
            if other.name == stored.name || self.here(&other.name).is_some() {
                continue;
            }
            if let Err(why) = self.bring_back(shelf, &other) {
                skipped.push((other.name, why));
            }
        }
        shelf.tell(skipped);
        Ok(())
    }

    /// As [`find`](Self::find), for those who only look: what cannot be known is not there.
    pub(crate) fn lookup(&self, name: &str) -> Option<Arc<Registered>> {
        self.find(name).unwrap_or_default()
    }

    /// The tool of a name; where there is none, an error with a suggestion.
    pub(crate) fn require(&self, name: &str) -> Result<Arc<Registered>, RegisterError> {
        let found = self.find(name).map_err(|error| RegisterError::Unreadable(error.to_string()))?;
        found.ok_or_else(|| RegisterError::Unknown { name: name.to_owned(), near: self.nearest(name) })
    }

    /// The name that was probably meant.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let elsewhere = self.shelf().filter(|shelf| !shelf.is_complete());
        let others = elsewhere.and_then(|shelf| shelf.tools.names().ok()).unwrap_or_default();
        let near = self.current.load().nearest(name, &others)?;
        // Where it is an alias of one that is not here yet.
        Some(self.lookup(&near).map_or(near, |registered| registered.definition.name.clone()))
    }

    /// All tools at one moment, by name.
    pub(crate) fn all(&self) -> Arc<[Arc<Registered>]> {
        self.say_unless(self.bring_all());
        self.present()
    }

    /// Whether some of the tools are remembered and not here.
    pub(crate) fn lacks_some(&self) -> bool {
        self.shelf().is_some_and(|shelf| !shelf.is_complete())
    }

    /// How many tools somebody added, here or not.
    pub(super) fn added(&self) -> Result<usize, RegisterError> {
        let here = self.current.load().custom;
        match self.shelf().filter(|shelf| !shelf.is_complete()) {
            None => Ok(here),
            Some(shelf) => {
                let count = shelf.tools.count();
                count
                    .map(|count| count.max(here))
                    .map_err(|error| RegisterError::Unreadable(error.to_string()))
            }
        }
    }

    pub(super) fn say_unless(&self, done: Result<(), StoreError>) {
        if let (Some(shelf), Err(error)) = (self.shelf(), done) {
            (shelf.say)(&[error.to_string()]);
        }
    }

    /// Brings everything here that is remembered.
    pub(crate) fn bring_all(&self) -> Result<(), StoreError> {
        let Some(shelf) = self.shelf() else { return Ok(()) };
        self.bring_switches(shelf)?;
        if shelf.is_complete() {
            return Ok(());
        }
        let _turn = shelf.turn();
        if shelf.is_complete() {
            return Ok(());
        }
        let (mut back, mut skipped) = (Vec::new(), Vec::new());
        for stored in shelf.tools.all()? {
            let is_it = |here: Arc<Registered>| *here.name == *stored.name && here.origin != Origin::BuiltIn;
            let is_here = self.here(&stored.name).is_some_and(is_it);
            if stored.definition.is_none() || is_here {
                continue;
            }
            match self.returned(shelf, &stored) {
                Ok(registered) => back.push((Arc::new(registered), stored.name)),
                Err(why) => skipped.push((stored.name, why)),
            }
        }
        let added = self.change(|current| {
            let mut next = current.again();
            for (registered, name) in back {
                let added = next.add(&registered);
                self.counts.registered(&added);
                if let Err(error) = added {
                    skipped.push((name, error.to_string()));
                }
            }
            Ok((next, ()))
        });
        debug_assert!(added.is_ok(), "it was not refused");
        shelf.is_complete.store(true, Ordering::Release);
        shelf.tell(skipped);
        Ok(())
    }

    /// Brings the switches and settings of tools that come with the program: before any of them is called.
    fn bring_switches(&self, shelf: &Shelf) -> Result<(), StoreError> {
        if shelf.has_switches.load(Ordering::Acquire) {
            return Ok(());
        }
        let _turn = shelf.turn();
        if shelf.has_switches.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut skipped = Vec::new();
        for stored in shelf.tools.switched()? {
            let done = match self.here(&stored.name).filter(|here| *here.name == *stored.name) {
                Some(here) => self.switch(&here, &stored),
                None => Err(format!("there is no tool named `{}`", stored.name)),
            };
            if let Err(why) = done {
                skipped.push((stored.name, why));
            }
        }
        shelf.has_switches.store(true, Ordering::Release);
        shelf.tell(skipped);
        Ok(())
    }

    fn switch(&self, here: &Registered, stored: &StoredTool) -> Result<(), String> {
        here.set_enabled(stored.enabled);
        if stored.settings.is_empty() {
            return Ok(());
        }
        self.configure(&here.name, stored.settings.clone()).map(drop).map_err(|error| {
            here.set_enabled(false);
            unfit(&error)
        })
    }

    /// Brings one back; it is here, or the reason why it cannot be used. `None` where it is not one that somebody added.
    fn bring_back(&self, shelf: &Shelf, stored: &StoredTool) -> Result<Option<Arc<Registered>>, String> {
        if stored.definition.is_none() {
            return Ok(None);
        }
        let registered = Arc::new(self.returned(shelf, stored)?);
        let registered = self.insert(registered);
        self.counts.registered(&registered);
        registered.map(Some).map_err(|error| error.to_string())
    }

    /// A remembered tool as it was, switched and set up before anybody sees it.
    fn returned(&self, shelf: &Shelf, stored: &StoredTool) -> Result<Registered, String> {
        let definition = stored.definition.as_deref().ok_or("nobody added it")?;
        let by = stored.registered_by.as_deref().unwrap_or("unknown").into();
        let at = stored.registered_at.unwrap_or_else(|| shelf.clock.now());
        let tool = (shelf.make)(definition.clone())?;
        // It was checked when it was remembered.
        let registered = self
            .counts
            .validated(|| Registered::new(tool.into(), Origin::Custom { by }, at, Schemas::CheckedBefore))
            .map_err(|error| error.to_string())?;
        registered.set_enabled(stored.enabled);
        if stored.settings.is_empty() {
            return Ok(registered);
        }
        match registered.configured(stored.settings.clone()) {
            Ok(registered) => Ok(registered),
            // A setting that does not fit any more must not become a tool that is not tightened: it is switched off.
            Err(error) => {
                registered.set_enabled(false);
                shelf.tell(vec![(stored.name.clone(), unfit(&error))]);
                Ok(registered)
            }
        }
    }
}

fn unfit(error: &RegisterError) -> String {
    format!("{error}; it is disabled until `haft tools config` is right")
}
