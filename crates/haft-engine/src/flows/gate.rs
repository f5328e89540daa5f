//! Nodes whose turn has come. Those that must not overlap wait for each other; the rest starts, as far as there is
//! room.

use crate::pipeline::{schedule::order::conflict, types::Decided};
use haft_core::Footprint;

/// What runs, and what waits.
pub(super) struct Gate {
    at_once: usize,
    running: Vec<(usize, Footprint, bool)>,
    waiting: Vec<(usize, Decided)>,
}

impl Gate {
    pub(super) fn new(at_once: usize) -> Self {
        Gate { at_once: at_once.max(1), running: Vec::new(), waiting: Vec::new() }
    }

    /// A node whose turn has come, behind those that came before it.
    pub(super) fn wait(&mut self, place: usize, decided: Decided) {
        self.waiting.push((place, decided));
    }

    /// A node has ended.
    pub(super) fn leave(&mut self, place: usize) {
        self.running.retain(|(running, ..)| *running != place);
    }

    /// Those that start now, in the order in which they came. One that conflicts with one that runs, or with one that
    /// waits before it, waits. What runs nothing needs no room.
    pub(super) fn start(&mut self) -> Vec<(usize, Decided)> {
        let mut starting = Vec::new();
        let mut held: Vec<(usize, Decided)> = Vec::new();
        for (place, decided) in std::mem::take(&mut self.waiting) {
            let Decided::Go(ready) = &decided else {
                starting.push((place, decided));
                continue;
            };
            let mine = (&ready.footprint, ready.has_side_effects);
            let runs = self.running.iter().map(|(_, footprint, effects)| (footprint, *effects));
            let waits = held.iter().filter_map(|(_, decided)| match decided {
                Decided::Go(other) => Some((&other.footprint, other.has_side_effects)),
                Decided::Follows(..) | Decided::AwaitingResult(_) | Decided::Resolved(..) => None,
            });
            if self.running.len() >= self.at_once || runs.chain(waits).any(|other| conflict(mine, other)) {
                held.push((place, decided));
            } else {
                self.running.push((place, ready.footprint.clone(), ready.has_side_effects));
                starting.push((place, decided));
            }
        }
        self.waiting = held;
        starting
    }

    /// All that wait: nothing more starts.
    pub(super) fn give_up(&mut self) -> Vec<(usize, Decided)> {
        std::mem::take(&mut self.waiting)
    }
}
