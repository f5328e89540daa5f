//! Where tools work: the folders they reach, as files and from programs, and keeping them to fewer.

use crate::{
    commands,
    config::Config,
    wiring::{self, Folders},
};
#[cfg(target_os = "linux")]
use haft_core::port::ChangeSets;
use haft_core::{
    ExecutionId, Footprint, Limits, ToolError,
    port::{BoxFuture, Guest, GuestSpec, Jail, Store},
};
use haft_files::{Files, RootSpec};
use haft_sdk::{
    capability::{Commands, Roots, Workspace},
    files::{
        Access, ChangeSet, Changed, FolderView, Metadata, OpenFile, Place, Reader, Scope, Visitor, Walk,
    },
};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Files and programs, in the same folders.
pub(crate) struct FolderOfCalls {
    config: Config,
    folders: Folders,
    jail: Arc<dyn Jail>,
    files: Arc<Files>,
    /// What programs are granted.
    template: GuestSpec,
    /// What staged programs wrote.
    #[cfg(target_os = "linux")]
    change_sets: Option<Arc<dyn ChangeSets>>,
    /// Where it is recorded what becomes of that.
    store: Arc<dyn Store>,
    /// Those of single calls, by their folders, the oldest first.
    kept: Mutex<Vec<(Vec<String>, Arc<FolderOfCalls>)>>,
}

/// For how many sets of folders files are kept open.
const MOST_KEPT: usize = 32;

impl FolderOfCalls {
    pub(crate) fn new(
        config: &Config,
        folders: &Folders,
        files: Files,
        template: GuestSpec,
        jail: Arc<dyn Jail>,
        store: Arc<dyn Store>,
    ) -> Self {
        let files = Arc::new(files);
        #[cfg(target_os = "linux")]
        let journal = crate::change_sets::Journal(Arc::clone(&store));
        FolderOfCalls {
            // Without them no program is staged.
            #[cfg(target_os = "linux")]
            change_sets: wiring::change_sets(config, folders, &files, &template, &journal).ok(),
            store,
            config: config.clone(),
            folders: folders.clone(),
            jail,
            files,
            template,
            kept: Mutex::default(),
        }
    }

    /// What these folders and the configured roots have in common: files and programs there. `None` where that is
    /// nothing.
    fn common_ground(&self, folders: &[PathBuf]) -> Result<Option<(Files, GuestSpec)>, String> {
        let real = |path: &PathBuf| path.canonicalize().ok().filter(|path| path.is_dir());
        let wanted: Vec<PathBuf> = folders.iter().filter_map(real).collect();
        let (configured, _) = wiring::present(wiring::roots(&self.config, &self.folders));
        let granted: Vec<RootSpec> = configured
            .iter()
            .filter_map(|root| Some(RootSpec { path: real(&root.path)?, read_only: root.read_only }))
            .collect();
        let roots = common(&wanted, &granted);
        if roots.is_empty() {
            return Ok(None);
        }
        let paths = |read_only| {
            let those = roots.iter().filter(move |root| root.read_only == read_only);
            those.map(|root| root.path.clone()).collect::<Vec<_>>()
        };
        let mut template = self.template.clone();
        template.writable = paths(false);
        template.readable = paths(true);
        template.working_dir = roots.first().map(|root| root.path.clone());
        let files = wiring::files(&self.config, &self.folders, roots).map_err(|error| error.to_string())?;
        Ok(Some((files, template)))
    }
}

/// Single calls that keep to fewer folders than all others.
impl Roots for FolderOfCalls {
    fn keep_to(&self, folders: &[String]) -> Option<(Arc<dyn Workspace>, Arc<dyn Commands>)> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, place)) = kept.iter().find(|(known, _)| known == folders) {
            return Some((Arc::clone(place) as _, Arc::clone(place) as _));
        }
        let paths: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
        let common = self.common_ground(&paths).unwrap_or_else(|problem| {
            tracing::warn!(problem, "the folders of a call cannot be used");
            None
        });
        let Some((files, template)) = common else {
            tracing::warn!(
                ?folders,
                "these are outside of tools.files.allowed_roots: no files are reached in them"
            );
            return None;
        };
        let jail = Arc::clone(&self.jail);
        let store = Arc::clone(&self.store);
        let place = FolderOfCalls::new(&self.config, &self.folders, files, template, jail, store);
        let place = Arc::new(place);
        if kept.len() >= MOST_KEPT {
            kept.remove(0);
        }
        kept.push((folders.to_vec(), Arc::clone(&place)));
        Some((Arc::clone(&place) as _, place as _))
    }
}

/// What is in both, in the order of what is wanted. Read-only where any grant of it is.
fn common(wanted: &[PathBuf], granted: &[RootSpec]) -> Vec<RootSpec> {
    let mut roots: Vec<RootSpec> = Vec::new();
    for wanted in wanted {
        for grant in granted {
            let path = if let Ok(below) = wanted.strip_prefix(&grant.path) {
                // A repository is protected where it lies in a root, not where its inside is the root.
                if below.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
                    continue;
                }
                wanted
            } else if grant.path.starts_with(wanted) {
                &grant.path
            } else {
                continue;
            };
            match roots.iter_mut().find(|root| root.path == *path) {
                Some(known) => known.read_only |= grant.read_only,
                None => roots.push(RootSpec { path: path.clone(), read_only: grant.read_only }),
            }
        }
    }
    roots
}

impl Workspace for FolderOfCalls {
    fn for_worker(&self) -> Result<serde_json::Value, ToolError> {
        self.files.for_worker()
    }

    fn locate(&self, path: &str, access: Access) -> Result<Place, ToolError> {
        self.files.locate(path, access)
    }

    fn look(&self, path: &str) -> Result<Option<(Place, Metadata)>, ToolError> {
        self.files.look(path)
    }

    fn working_folder(&self, path: &str) -> Result<Place, ToolError> {
        self.files.working_folder(path)
    }

    fn open(&self, path: &str) -> Result<OpenFile, ToolError> {
        self.files.open(path)
    }

    fn folder(&self, path: &str) -> Result<(Place, Box<dyn FolderView>), ToolError> {
        self.files.folder(path)
    }

    fn walk(&self, walk: &Walk<'_>, visitor: &Visitor<'_>) -> Result<Place, ToolError> {
        self.files.walk(walk, visitor)
    }

    fn protects(&self, path: &str, scope: Scope) -> Result<Option<String>, ToolError> {
        self.files.protects(path, scope)
    }

    fn change(&self, set: ChangeSet) -> Result<Vec<Changed>, ToolError> {
        self.files.change(set)
    }

    fn changed_by(&self, of: ExecutionId, tenant: &str) -> Result<Option<Vec<String>>, ToolError> {
        self.files.changed_by(of, tenant)
    }

    fn undo(&self, of: ExecutionId, by: ExecutionId, reader: &Reader) -> Result<Vec<Changed>, ToolError> {
        self.files.undo(of, by, reader)
    }

    fn last_read(&self, reader: &Reader, place: &Place) -> Result<Option<String>, ToolError> {
        self.files.last_read(reader, place)
    }

    fn remember(&self, reader: &Reader, place: &Place, sha256: &str) -> Result<(), ToolError> {
        self.files.remember(reader, place, sha256)
    }

    fn held_to(&self, footprint: &Footprint) -> Arc<dyn Workspace> {
        self.files.held_to(footprint)
    }
}

impl Commands for FolderOfCalls {
    fn template(&self) -> &GuestSpec {
        &self.template
    }

    fn ceiling(&self) -> Limits {
        commands::ceiling(&self.config.tools.commands)
    }

    #[cfg(target_os = "linux")]
    fn change_sets(&self) -> Option<Arc<dyn ChangeSets>> {
        self.change_sets.clone()
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        self.jail.start(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(path: &str, read_only: bool) -> RootSpec {
        RootSpec { path: path.into(), read_only }
    }

    #[test]
    fn only_what_both_have_is_left() {
        let granted = [root("/work", false), root("/lib", true), root("/work/docs", true)];
        let shown = |wanted: &[&str]| {
            let wanted: Vec<PathBuf> = wanted.iter().map(PathBuf::from).collect();
            let roots = common(&wanted, &granted);
            roots
                .into_iter()
                .map(|root| (root.path.display().to_string(), root.read_only))
                .collect::<Vec<_>>()
        };
        let owned = |list: &[(&str, bool)]| {
            list.iter().map(|(path, read_only)| ((*path).to_owned(), *read_only)).collect::<Vec<_>>()
        };
        assert_eq!(shown(&["/work/a"]), owned(&[("/work/a", false)]));
        assert_eq!(
            shown(&["/lib/x", "/work"]),
            owned(&[("/lib/x", true), ("/work", false), ("/work/docs", true)])
        );
        assert_eq!(shown(&["/"]), owned(&[("/work", false), ("/lib", true), ("/work/docs", true)]));
        assert_eq!(shown(&["/elsewhere", "/workshop"]), owned(&[]));
        assert_eq!(
            shown(&["/work/.git", "/work/a/.GIT/hooks"]),
            owned(&[]),
            "the inside of a repository is no root"
        );
        assert_eq!(shown(&[]), owned(&[]));
    }
}
