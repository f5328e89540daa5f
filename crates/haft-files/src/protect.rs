//! Which changes need an approval of their own: those of files that run programs later.

use super::jail::{PathJail, Spot};
use haft_guard::names::{GitEntries, is_git_part};
use haft_sdk::files::{Kind, Scope};
use std::path::Path;

/// A folder with more than this in it is not looked through: then somebody is asked.
const MOST_ENTRIES: usize = 200_000;

const BY_GIT: &str = "git runs programs that it names, when the owner next uses git";

impl PathJail {
    /// Why changing what is at a resolved path needs an approval of its own.
    pub(crate) fn protects(&self, full: &Path, scope: Scope) -> Option<String> {
        if let Some(why) = self.reason(full) {
            return Some(format!("{} is protected: {why}", full.display()));
        }
        let spot = self.spot_of(full)?;
        let kind = self.entry_at("", &spot).ok().flatten()?.kind;
        match (scope, kind) {
            (Scope::Everything, Kind::Folder) => self.protects_inside(full, spot),
            (Scope::Everything | Scope::Entry, _) => None,
        }
    }

    /// Why a resolved path is protected, by its names and by the repositories around it.
    pub(crate) fn reason(&self, full: &Path) -> Option<&'static str> {
        let by_name = self.below_roots(full).find_map(|below| self.names().reason(below));
        by_name.or_else(|| self.is_part_of_bare_repository(full).then_some(BY_GIT))
    }

    /// Whether git takes a folder around it for a repository, whatever that is called, and would run what it names; or
    /// would, with this in it. What else the same call makes is not looked at, so a part of a repository is enough.
    fn is_part_of_bare_repository(&self, full: &Path) -> bool {
        let is_own = |below: &Path| below.iter().any(|name| name.eq_ignore_ascii_case(".git"));
        if self.below_roots(full).any(is_own) {
            return false;
        }
        let is_head = full
            .file_name()
            .is_some_and(|name| ["HEAD", "commondir"].iter().any(|head| name.eq_ignore_ascii_case(head)));
        full.ancestors().skip(1).any(|folder| {
            let (Ok(inside), Some(entries)) = (full.strip_prefix(folder), self.git_entries(folder)) else {
                return false;
            };
            // Folders on the way are made with it.
            let entry = inside.iter().next().unwrap_or_default();
            let is_part = is_head || is_git_part(inside.to_str().unwrap_or_default());
            (is_part && entries.is_repository()) || entries.may_be_completed_by(entry.as_encoded_bytes())
        })
    }

    fn git_entries(&self, folder: &Path) -> Option<GitEntries> {
        let spot = self.spot_of(folder)?;
        let mut entries = GitEntries::default();
        for name in ["HEAD", "objects", "refs", "commondir"] {
            if self.entry_at("", &spot.join(name)).ok().flatten().is_some() {
                entries.meet(name.as_bytes());
            }
        }
        Some(entries)
    }

    fn protects_inside(&self, full: &Path, spot: Spot) -> Option<String> {
        let mut left = MOST_ENTRIES;
        let mut folders = vec![spot];
        let unseen = || Some(format!("{} could not be looked through for protected files", full.display()));
        while let Some(spot) = folders.pop() {
            let Ok(folder) = self.folder_at(&spot) else { return unseen() };
            let mut names = Vec::new();
            if folder.names(|name, kind| names.push((name.to_owned(), kind))).is_err() || names.len() > left {
                return unseen();
            }
            left -= names.len();
            for (name, kind) in names {
                let inside = spot.join(&name);
                if self.names().suspects(&name) || name.eq_ignore_ascii_case("HEAD") {
                    let path = self.full(&inside);
                    if let Some(why) = self.reason(&path) {
                        return Some(format!(
                            "{} holds {}, which is protected: {why}",
                            full.display(),
                            path.display()
                        ));
                    }
                }
                let kind = match kind {
                    Some(kind) => kind,
                    None => match folder.entry(&name) {
                        Ok(entry) => entry.kind,
                        Err(_) => return unseen(),
                    },
                };
                if kind == Kind::Folder {
                    folders.push(inside);
                }
            }
        }
        None
    }
}
