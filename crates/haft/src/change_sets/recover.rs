//! What a killed haft left of its change sets.

use super::{
    Journal, STAGED,
    inner::{KILLED, lock, names, remove_leftover, throw_away},
    record::{Record, State},
};
use crate::{Unsettled, wiring::CHANGES};
use haft_core::{ChangesState, port::ChangesStep};
use haft_files::Became;
use std::{io, path::Path};

/// Settles what a killed haft left: nothing of it was applied, unless all of it was, and the journal is told which. To
/// be called when cut changes of files have been taken back.
pub(crate) fn recover(state: &Path, journal: &Journal) -> io::Result<Vec<Unsettled>> {
    let folder = state.join(STAGED);
    let mut recovered = Vec::new();
    for name in names(&folder)? {
        let place = folder.join(&name);
        // Its process lives, or another one looks after it just now.
        let Ok(Some(_lock)) = lock(&place) else { continue };
        let Some(record) = Record::read(&place)? else {
            remove_leftover(&place);
            continue;
        };
        let applied = match record.state {
            State::Kept { .. } => continue,
            State::Running | State::Ran => false,
            State::Applying => match haft_files::became_of(&state.join(CHANGES), record.execution_id)? {
                Became::Made => true,
                Became::Nothing => false,
                // It could not be taken back, and that was said. The next start tries again.
                Became::Cut => continue,
            },
        };
        let (execution_id, summary) = (record.execution_id, record.summary.clone());
        recovered.push(Unsettled { execution_id, summary, applied });
        settle(&place, record, applied, journal);
    }
    Ok(recovered)
}

/// What cannot be written down now, because the disk is full say, is tried again at the next start: until then the set
/// stays as it is, and nobody takes it for another one.
fn settle(place: &Path, mut record: Record, applied: bool, journal: &Journal) {
    if applied {
        let told = journal.tell_now(&record, ChangesStep::Settled(ChangesState::Applied));
        if told.is_ok() {
            let _ = throw_away(place);
        }
        return;
    }
    let told = journal.tell_now(&record, ChangesStep::Settled(ChangesState::Kept));
    if told.is_ok() {
        record.state = State::Kept { why: KILLED.to_owned() };
        let _ = record.write(place);
    }
}
