//! What a change set does to texts, as a unified diff.

use super::{
    Restored,
    walk::{At, Layer, Next, Touch, Visitor, lower_tree},
};
use crate::{
    folder::{Folder, Opener},
    tree::{Known, What},
};
use std::{
    ffi::OsStr,
    io::{self, Read as _},
    path::Path,
};

/// The largest file that is compared; of larger ones, and of those that are no text, only the size is told.
const MOST_COMPARED: u64 = 1 << 20;

/// The diff of all layers, cut at a file once it is longer than that.
pub(super) fn diff(layers: &[Layer], restored: &Restored, most_bytes: usize) -> io::Result<String> {
    let mut text = String::new();
    let mut left_out = 0;
    for layer in layers {
        let mut differ = Differ { layer, restored, text: &mut text, most_bytes, left_out: &mut left_out };
        layer.walk(&mut differ)?;
    }
    if left_out > 0 {
        text.push_str(&format!("{left_out} more changes are not shown\n"));
    }
    Ok(text)
}

struct Differ<'a> {
    layer: &'a Layer,
    restored: &'a Restored,
    text: &'a mut String,
    most_bytes: usize,
    left_out: &'a mut u64,
}

impl Visitor for Differ<'_> {
    fn meet(&mut self, at: &At<'_>, touch: &Touch<'_>) -> io::Result<Next> {
        match touch {
            Touch::Put { up, low, .. } => {
                if let (Some(low), Some(_)) = (low, at.lower)
                    && (low.is_folder() || up.is_folder())
                {
                    self.removed(at, low)?;
                }
                let low = low.filter(|low| !low.is_folder()).zip(at.lower);
                if !up.is_folder() || low.is_some() {
                    let up = (!up.is_folder()).then_some((*up, at.upper));
                    self.compare((at.path, at.lower_path), at.name, low, up)?;
                }
            }
            Touch::Gone { low } => self.removed(at, low)?,
            Touch::Meta { up, low } if up.mode != low.mode => {
                let path = at.path.display();
                let line = format!(
                    "diff --git a/{path} b/{path}\nold mode {:o}\nnew mode {:o}\n",
                    low.mode, up.mode
                );
                self.add(&line);
            }
            Touch::Moved { from, low, .. } => {
                if let Some(low) = low {
                    self.removed(at, low)?;
                }
                let line = format!("rename from {}\nrename to {}\n", from.display(), at.path.display());
                self.add(&line);
            }
            Touch::Meta { .. } | Touch::Lost { .. } | Touch::Unknown { .. } => {}
        }
        Ok(Next::Inside)
    }
}

impl Differ<'_> {
    fn add(&mut self, text: &str) {
        match self.text.len().saturating_add(text.len()) <= self.most_bytes {
            true => self.text.push_str(text),
            false => *self.left_out += 1,
        }
    }

    fn removed(&mut self, at: &At<'_>, low: &Known) -> io::Result<()> {
        let (Some(lower), Some(below)) = (at.lower, at.lower_path) else { return Ok(()) };
        if !low.is_folder() {
            return self.compare((at.path, Some(below)), at.name, Some((low, lower)), None);
        }
        let folder = lower.folder(Path::new(at.name), Opener::best())?;
        let layer = self.layer;
        lower_tree(layer, &folder, (at.path, below), &mut |path, below, folder, name, known| match known
            .is_folder()
        {
            true => Ok(()),
            false => self.compare((path, Some(below)), name, Some((known, folder)), None),
        })
    }

    /// Whether the command could not see what is below: it was hidden, or came after the command had begun. A diff goes
    /// to the sender of the command, who must not learn more by it than the command did.
    fn is_unseen(&self, below: Option<&Path>, low: &Known) -> bool {
        let spec = &self.layer.spec;
        let is_hidden =
            |below: &Path| below.ancestors().any(|at| spec.hidden.iter().any(|hidden| hidden == at));
        let is_ours = self.restored.contains(&(low.number, low.changed));
        below.is_none_or(is_hidden) || (low.changed > spec.since && !is_ours)
    }

    fn compare(
        &mut self,
        (path, below): (&Path, Option<&Path>),
        name: &OsStr,
        before: Option<(&Known, &Folder)>,
        after: Option<(&Known, &Folder)>,
    ) -> io::Result<()> {
        // Reading on for a text that is not shown would cost as much as showing it.
        if self.text.len() >= self.most_bytes {
            *self.left_out += 1;
            return Ok(());
        }
        let shown = path.to_string_lossy();
        if before.is_some_and(|(low, _)| self.is_unseen(below, low)) {
            let why = "what was there before was hidden from the command, and is not shown";
            self.add(&format!("diff --git a/{shown} b/{shown}\n{why}\n"));
            return Ok(());
        }
        let read = |side: Option<(&Known, &Folder)>| {
            side.map(|(known, folder)| bytes(folder, name, known)).transpose()
        };
        let (old, new) = (read(before)?, read(after)?);
        let text = match (&old, &new) {
            (None | Some(Some(_)), None | Some(Some(_))) => {
                let side = |side: &Option<Option<Vec<u8>>>| side.clone().flatten();
                haft_patch::diff(side(&old).as_deref(), side(&new).as_deref(), &shown, &shown)
            }
            _ => {
                let len = |side: Option<(&Known, &Folder)>| side.map_or(0, |(known, _)| known.len);
                let (old, new) = (len(before), len(after));
                format!(
                    "diff --git a/{shown} b/{shown}\nFiles differ: {old} bytes before, {new} bytes after\n"
                )
            }
        };
        self.add(&text);
        Ok(())
    }
}

/// The bytes of a file or the target of a link; `None` where they are too many, or cannot be read.
fn bytes(folder: &Folder, name: &OsStr, known: &Known) -> io::Result<Option<Vec<u8>>> {
    match known.what {
        What::Link => Ok(Some(folder.link_target(name)?.into_encoded_bytes())),
        What::File if known.len <= MOST_COMPARED => {
            let Ok(file) = folder.read(name) else { return Ok(None) };
            let mut bytes = Vec::new();
            file.take(MOST_COMPARED + 1).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }
        _ => Ok(None),
    }
}
