//! The tools at one moment. A change makes another one, which shares nearly all of it.

use super::{Origin, RegisterError, Registered};
use haft_core::suggest;
use rpds::HashTrieMapSync;
use std::sync::{Arc, OnceLock};

type Hashing = foldhash::fast::RandomState;
type ByName<T> = HashTrieMapSync<Box<str>, T, Hashing>;

pub(super) struct Snapshot {
    /// By canonical name.
    pub(super) tools: ByName<Arc<Registered>>,
    /// Canonical names by alias, in lower case.
    pub(super) aliases: ByName<Arc<str>>,
    /// In the order of their names; made when somebody asks.
    sorted: OnceLock<Arc<[Arc<Registered>]>>,
    pub(super) custom: usize,
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
    pub(super) fn find(&self, name: &str) -> Option<&Arc<Registered>> {
        self.tools.get(name).or_else(|| self.aliases.get(name).and_then(|name| self.tools.get(&**name)))
    }

    pub(super) fn sorted(&self) -> &Arc<[Arc<Registered>]> {
        self.sorted.get_or_init(|| {
            let mut sorted: Vec<_> = self.tools.values().cloned().collect();
            sorted.sort_by(|a, b| a.name.cmp(&b.name));
            sorted.into()
        })
    }

    /// The same, to be changed. It shares everything with this one until then.
    pub(super) fn again(&self) -> Snapshot {
        Snapshot {
            tools: self.tools.clone(),
            aliases: self.aliases.clone(),
            sorted: OnceLock::new(),
            custom: self.custom,
        }
    }

    /// One more tool. Where that cannot be, nothing has changed.
    pub(super) fn add(&mut self, registered: &Arc<Registered>) -> Result<(), RegisterError> {
        let definition = &registered.definition;
        let mut keys: Vec<String> = Vec::with_capacity(definition.aliases.len());
        for alias in &definition.aliases {
            let key = alias.to_ascii_lowercase();
            if self.find(&key).is_some() || keys.contains(&key) || key == *registered.name {
                return Err(RegisterError::Duplicate { name: alias.clone() });
            }
            keys.push(key);
        }
        if self.find(&registered.name).is_some() {
            return Err(RegisterError::Duplicate { name: definition.name.clone() });
        }
        for key in keys {
            self.aliases.insert_mut(key.into(), Arc::clone(&registered.name));
        }
        self.tools.insert_mut((&*registered.name).into(), Arc::clone(registered));
        self.custom += usize::from(registered.origin != Origin::BuiltIn);
        Ok(())
    }

    /// One tool less.
    pub(super) fn remove(&mut self, registered: &Registered) {
        for alias in &registered.definition.aliases {
            self.aliases.remove_mut(alias.to_ascii_lowercase().as_str());
        }
        self.tools.remove_mut(&*registered.name);
        self.custom -= usize::from(registered.origin != Origin::BuiltIn);
    }
}

impl Snapshot {
    /// The tool of that name, if somebody added it.
    pub(super) fn custom(&self, name: &str) -> Result<&Arc<Registered>, RegisterError> {
        let found = self.any(name)?;
        match found.origin {
            Origin::BuiltIn => Err(RegisterError::BuiltIn { name: found.name.to_string() }),
            Origin::Custom { .. } => Ok(found),
        }
    }

    /// The tool of that name, built in or added.
    pub(super) fn any(&self, name: &str) -> Result<&Arc<Registered>, RegisterError> {
        let found = self.find(name).or_else(|| self.find(&name.to_ascii_lowercase()));
        found.ok_or_else(|| RegisterError::Unknown { name: name.to_owned(), near: self.nearest(name, &[]) })
    }

    /// The name that was probably meant, of those here and others.
    pub(super) fn nearest(&self, name: &str, others: &[String]) -> Option<String> {
        let here = self.tools.keys().chain(self.aliases.keys()).map(|name| &**name);
        let near = suggest::nearest(name, here.chain(others.iter().map(String::as_str)))?;
        Some(self.find(near).map_or_else(|| near.to_owned(), |registered| registered.definition.name.clone()))
    }
}
