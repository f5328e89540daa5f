//! The way back of steps that were made.

use super::*;

impl Planner<'_> {
    /// The way back of a step that was made, where what it left is still there.
    pub(in crate::changes) fn undo(&mut self, step: &Step, images: &Images) -> Result<(), ToolError> {
        let touched = match step {
            Step::Move { from, to, .. } => vec![from, to],
            Step::Turn { path, .. } => vec![path],
        };
        for path in touched {
            self.refuse_protected(path)?;
        }
        match step {
            Step::Move { from, to, bytes } => {
                if !self.is_there(to)? || self.is_there(from)? {
                    return Err(changed_since(to));
                }
                let step = Step::Move { from: to.clone(), to: from.clone(), bytes: bytes.clone() };
                self.steps.push(Planned { step, bytes: None, old: None, seen: None });
            }
            Step::Turn { path, before, after, .. } => {
                self.undo_turn(path, before, after, images)?;
            }
        }
        Ok(())
    }

    /// A yes to undo a call says nothing of what is in the files. Those that run programs later are changed by name
    /// only: where the decision was about that path.
    fn refuse_protected(&self, path: &Path) -> Result<(), ToolError> {
        match self.jail.reason(path).filter(|_| !self.jail.is_named(path)) {
            Some(why) => {
                let text = format!(
                    "'{}' is protected: {why}. Undoing does not change it; use write_file or delete_file, which asks",
                    path.display()
                );
                Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text))
            }
            None => Ok(()),
        }
    }

    /// Whether something is at a path after the steps so far; `None` where none of them touches it.
    fn will_be_there(&self, path: &Path) -> Option<bool> {
        self.steps.iter().rev().find_map(|planned| match &planned.step {
            Step::Turn { path: turned, after, .. } => (turned == path).then(|| *after != State::Absent),
            Step::Move { from, to, .. } => (to == path).then_some(true).or((from == path).then_some(false)),
        })
    }

    /// Whether something is at a path, after the steps so far.
    fn is_there(&self, path: &Path) -> Result<bool, ToolError> {
        if let Some(known) = self.will_be_there(path) {
            return Ok(known);
        }
        if self.has_new_folder(path) {
            return Ok(false);
        }
        let (folder, name) = self.still_at(path)?;
        Ok(folder.entry(name).is_ok())
    }

    /// Whether a step so far makes the folder that a path is in.
    pub(super) fn has_new_folder(&self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| self.folders.contains(parent))
    }

    /// The folder of a path that a call changed; without it, somebody changed it since.
    fn still_at<'p>(&self, path: &'p Path) -> Result<(Folder, &'p OsStr), ToolError> {
        apply::at(self.jail, path).map_err(|error| match error {
            PathError::NotFound { .. } | PathError::NotFolder { .. } => changed_since(path),
            other => other.into(),
        })
    }

    fn undo_turn(
        &mut self,
        path: &Path,
        before: &State,
        after: &State,
        images: &Images,
    ) -> Result<(), ToolError> {
        let text = path.to_string_lossy();
        let fail = |error| ToolError::from(PathError::io(&text, error));
        // A step before makes the folder that it was in, or moves away what is there now.
        if self.has_new_folder(path) || self.will_be_there(path) == Some(false) {
            return self.put_back(path, before, &State::Absent, images, None);
        }
        let (folder, name) = self.still_at(path)?;
        let is_after = apply::is(&folder, name, after).map_err(fail)?;
        match (before, after) {
            // Others may have put files into a folder that was made on the way: then it stays.
            (State::Absent, State::Folder { .. }) => {
                if is_after && self.would_be_empty(&folder, name, path).map_err(fail)? {
                    self.turn(path.to_path_buf(), after.clone(), State::Absent);
                }
                return Ok(());
            }
            _ if !is_after => return Err(changed_since(path)),
            _ => {}
        }
        let there = match after {
            State::File { .. } => Some(self.read(&text, &folder, name)?),
            State::Absent | State::Folder { .. } | State::Link { .. } => None,
        };
        self.put_back(path, before, after, images, there)
    }

    fn put_back(
        &mut self,
        path: &Path,
        before: &State,
        now: &State,
        images: &Images,
        there: Option<There>,
    ) -> Result<(), ToolError> {
        let path = path.to_path_buf();
        match before {
            State::File { sha256, len, mode, owner, image } => {
                let text = path.to_string_lossy();
                let image = image.as_ref().ok_or_else(|| changed_since(&path))?;
                let file = images.open(image).map_err(|error| PathError::io(&text, error))?;
                let after = State::File {
                    sha256: sha256.clone(),
                    len: *len,
                    mode: *mode,
                    owner: *owner,
                    image: None,
                };
                self.turn_file(path, there, after, Some(Bytes::File(file)));
            }
            State::Absent if there.is_some() => self.turn_file(path, there, State::Absent, None),
            State::Absent => self.turn(path, now.clone(), State::Absent),
            State::Folder { .. } | State::Link { .. } => {
                if matches!(before, State::Folder { .. }) {
                    self.folders.insert(path.clone());
                }
                self.turn(path, State::Absent, before.clone());
            }
        }
        Ok(())
    }

    /// Whether a folder would be empty after the steps so far.
    fn would_be_empty(&self, parent: &Folder, name: &OsStr, path: &Path) -> io::Result<bool> {
        let folder = parent.folder(Path::new(name), self.jail.opener())?;
        let mut left = 0usize;
        let goes = |inner: &OsStr| {
            self.steps.iter().any(|planned| match &planned.step {
                Step::Turn { path: gone, after: State::Absent, .. } | Step::Move { from: gone, .. } => {
                    gone.parent() == Some(path) && gone.file_name() == Some(inner)
                }
                Step::Turn { .. } => false,
            })
        };
        folder.names(|inner, _| left += usize::from(!goes(inner)))?;
        Ok(left == 0)
    }
}
