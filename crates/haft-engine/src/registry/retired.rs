//! The counts of tools that are gone: a counter that falls is read as a restart.

use super::registered::{Registered, ToolState};
use crate::stats::Snapshot;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// For how many names counts are kept apart. Further ones are counted together, under no name.
const MOST_NAMES: usize = 4096;

/// What calls of tools came to that were removed or replaced.
#[derive(Default)]
pub(crate) struct Retired(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Those that a call may still run of, and count itself there.
    states: Vec<(Arc<str>, Arc<ToolState>)>,
    folded: BTreeMap<String, Snapshot>,
}

impl Kept {
    /// Keeps only numbers of what nobody else has any more.
    fn fold(&mut self) {
        let states = std::mem::take(&mut self.states);
        for (name, state) in states {
            match Arc::try_unwrap(state) {
                Ok(state) => add(&mut self.folded, &name, &state.counts()),
                Err(state) => self.states.push((name, state)),
            }
        }
    }
}

fn add(by_tool: &mut BTreeMap<String, Snapshot>, name: &str, counts: &Snapshot) {
    if counts.total() == 0 {
        return;
    }
    let name = if by_tool.len() < MOST_NAMES || by_tool.contains_key(name) { name } else { "" };
    by_tool.entry(name.to_owned()).or_default().add(counts);
}

impl Retired {
    /// A tool is about to go, or another one to take its place.
    pub(super) fn add(&self, gone: &Registered) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.states.push((Arc::clone(&gone.name), Arc::clone(gone.state())));
        kept.fold();
    }

    /// Adds their counts, by name, but for those of a tool that is just on its way out and among the `present` ones.
    pub(super) fn add_to(&self, by_tool: &mut BTreeMap<String, Snapshot>, present: &[Arc<Registered>]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.fold();
        let is_gone = |state: &Arc<ToolState>| !present.iter().any(|tool| Arc::ptr_eq(tool.state(), state));
        for (name, state) in kept.states.iter().filter(|(_, state)| is_gone(state)) {
            add(by_tool, name, &state.counts());
        }
        for (name, counts) in &kept.folded {
            by_tool.entry(name.clone()).or_default().add(counts);
        }
    }
}
