//! What a command changed, in words for a model: it does not see that in what the command put out.

use haft_core::{ChangedEntry, ChangesState, ContentPart, EntryChange, EntryKind, SettledChanges};

/// How many changes are named.
const SAID: usize = 20;

/// What became of the changes of a command; nothing where there were none.
pub(super) fn say(settled: &SettledChanges) -> Option<ContentPart> {
    let summary = &settled.summary;
    let first = match settled.state {
        ChangesState::Nothing => return None,
        ChangesState::Applied => format!("haft: changes applied: {summary}"),
        ChangesState::Kept => format!("haft: changes NOT applied, kept apart: {summary}"),
        ChangesState::Discarded => format!("haft: changes NOT applied, thrown away: {summary}"),
        ChangesState::Live => {
            let why = settled.reason.as_deref().unwrap_or("they could not be staged");
            return Some(ContentPart::text(format!(
                "haft: changes were made to the files themselves: {why}"
            )));
        }
    };
    let mut lines = vec![first];
    lines.extend(summary.changes.iter().take(SAID).map(line));
    let listed = summary.changes.len().min(SAID) as u64;
    let more = summary.omitted + (summary.changes.len() as u64).saturating_sub(listed);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    Some(ContentPart::text(lines.join("\n")))
}

fn line(entry: &ChangedEntry) -> String {
    let what = match &entry.change {
        EntryChange::Created => "created",
        EntryChange::Modified => "modified",
        EntryChange::Deleted => "deleted",
        EntryChange::Moved(_) => "moved",
    };
    let slash = if entry.kind == EntryKind::Folder { "/" } else { "" };
    let path = haft_core::text::one_line(&entry.path, 500);
    match &entry.change {
        EntryChange::Moved(from) => {
            format!("  {what} {} to {path}{slash}", haft_core::text::one_line(from, 500))
        }
        EntryChange::Created | EntryChange::Modified | EntryChange::Deleted => {
            format!("  {what} {path}{slash}")
        }
    }
}
