//! How far calls came with what their commands wrote apart from the files, for as long as the process lives.

use haft_core::{
    ChangesState, ExecutionId, ResultMetadata,
    port::{ChangesStep, StoreError},
};
use std::{collections::BTreeMap, sync::Arc};

/// The last step of each call, with its tenant; the oldest ids first.
#[derive(Default)]
pub(crate) struct ChangeSteps(BTreeMap<ExecutionId, (Arc<str>, ChangesStep)>);

impl ChangeSteps {
    /// Takes a step down. What was applied stays applied, whatever a late word says.
    pub(crate) fn step(
        &mut self,
        id: ExecutionId,
        tenant: Arc<str>,
        step: ChangesStep,
        most: usize,
    ) -> Result<(), StoreError> {
        if let Some((of, before)) = self.0.get(&id) {
            let is_applied = *before == ChangesStep::Settled(ChangesState::Applied) && step != *before;
            if *of != tenant || is_applied {
                let text = format!("what {id} changed was applied before, or is not of this tenant");
                return Err(StoreError(text));
            }
        }
        self.0.insert(id, (tenant, step));
        while self.0.len() > most.max(1) {
            self.0.pop_first();
        }
        Ok(())
    }

    pub(crate) fn find(&self, tenant: &str, id: ExecutionId) -> Option<ChangesStep> {
        self.0.get(&id).filter(|(of, _)| **of == *tenant).map(|(_, step)| *step)
    }

    /// The outcome of a call says what became of its changes. What is kept can still be applied.
    pub(crate) fn ended(&mut self, call: &ResultMetadata) {
        if call.changes.as_ref().is_some_and(|settled| settled.state != ChangesState::Kept) {
            self.0.remove(&call.execution_id);
        }
    }
}
