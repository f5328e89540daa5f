//! The edge: finds the files and reads them. Environment, home folder and user come in; nothing is asked of
//! the process.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use super::keys::{AuditConfig, ENV_PREFIX, keys};
use super::note::Note;
use super::own_files;
use super::place::{self, Owner, Place};
use super::problem::{ConfigError, Problem};
use super::read::MAX_FILE_BYTES;
use super::resolve::{FolderSource, Inputs, Resolved, SourceText, resolve};
use super::trust::{TrustError, TrustStore};

/// The name of a configuration file.
pub const FILE_NAME: &str = "haft.toml";

/// Where haft runs, and for whom. `main` fills it in.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The working folder, absolute.
    pub working_folder: PathBuf,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The environment variables.
    pub env: Vec<(OsString, OsString)>,
    /// On Unix, the effective user id. Without it no folder is trusted.
    pub user_id: Option<u32>,
}

impl Surroundings {
    /// The user's own configuration file, whether it is there or not: `HAFT_CONFIG`, else `haft/haft.toml` in
    /// `XDG_CONFIG_HOME` or `~/.config`.
    ///
    /// ```
    /// let surroundings = haft_config::Surroundings { home: Some("/home/ada".into()), ..Default::default() };
    /// assert_eq!(surroundings.user_file().unwrap(), std::path::Path::new("/home/ada/.config/haft/haft.toml"));
    /// ```
    #[must_use]
    pub fn user_file(&self) -> Option<PathBuf> {
        if let Some(path) = self.var("HAFT_CONFIG") {
            return Some(self.working_folder.join(path));
        }
        Some(self.base_folder("XDG_CONFIG_HOME", ".config")?.join("haft").join(FILE_NAME))
    }

    /// The folder for what haft remembers: `HAFT_STATE_DIR`, else `haft` in `XDG_STATE_HOME` or
    /// `~/.local/state`.
    ///
    /// ```
    /// let surroundings = haft_config::Surroundings { home: Some("/home/ada".into()), ..Default::default() };
    /// assert_eq!(surroundings.state_folder().unwrap(), std::path::Path::new("/home/ada/.local/state/haft"));
    /// ```
    #[must_use]
    pub fn state_folder(&self) -> Option<PathBuf> {
        if let Some(path) = self.var("HAFT_STATE_DIR") {
            return Some(self.working_folder.join(path));
        }
        Some(self.base_folder("XDG_STATE_HOME", ".local/state")?.join("haft"))
    }

    /// The folder below which programs keep their data: `XDG_DATA_HOME`, else `~/.local/share`.
    ///
    /// ```
    /// let surroundings = haft_config::Surroundings { home: Some("/home/ada".into()), ..Default::default() };
    /// assert_eq!(surroundings.data_folder().unwrap(), std::path::Path::new("/home/ada/.local/share"));
    /// ```
    #[must_use]
    pub fn data_folder(&self) -> Option<PathBuf> {
        self.base_folder("XDG_DATA_HOME", ".local/share")
    }

    /// Every file that is the user's own configuration, here or where `HAFT_CONFIG` is not set.
    pub(super) fn user_files(&self) -> Vec<PathBuf> {
        let usual =
            self.base_folder("XDG_CONFIG_HOME", ".config").map(|base| base.join("haft").join(FILE_NAME));
        self.user_file().into_iter().chain(usual).collect()
    }

    /// Every folder in which haft remembers, here or where `HAFT_STATE_DIR` is not set.
    pub(super) fn state_folders(&self) -> Vec<PathBuf> {
        let usual = self.base_folder("XDG_STATE_HOME", ".local/state").map(|base| base.join("haft"));
        self.state_folder().into_iter().chain(usual).collect()
    }

    /// Where a service manager puts what only this service may read.
    pub(super) fn credentials_folder(&self) -> Option<PathBuf> {
        self.var("CREDENTIALS_DIRECTORY").map(PathBuf::from).filter(|folder| folder.is_absolute())
    }

    /// The first key of the audit chain, where it is not beside the database.
    pub fn audit_key_file(&self, audit: &AuditConfig) -> Option<PathBuf> {
        own_files::place(&audit.key_file, &self.state_folder()?, self.credentials_folder().as_deref())
    }

    /// The file to which ends of the audit chain are added.
    pub fn audit_head_file(&self, audit: &AuditConfig) -> Option<PathBuf> {
        match &*audit.head_sink {
            "" | AuditConfig::STDERR => None,
            file => Some(self.state_folder()?.join(file)),
        }
    }

    /// The record of trusted files.
    ///
    /// # Errors
    ///
    /// When there is no state folder.
    pub fn trust_store(&self) -> Result<TrustStore, TrustError> {
        let folder = self.state_folder().ok_or(TrustError::NoFolder)?;
        Ok(TrustStore::new(folder, self.user_id))
    }

    /// A variable that is set and not empty.
    fn var(&self, name: &str) -> Option<&OsStr> {
        let (_, value) = self.env.iter().find(|(var, _)| var == name)?;
        (!value.is_empty()).then_some(value.as_os_str())
    }

    /// As the XDG rules have it, a path that is not absolute is passed over.
    fn base_folder(&self, name: &str, below_home: &str) -> Option<PathBuf> {
        match self.var(name).map(Path::new) {
            Some(path) if path.is_absolute() => Some(path.to_path_buf()),
            Some(_) | None => Some(self.home.as_ref()?.join(below_home)),
        }
    }
}

/// What the command line says about configuration.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Whether to look for a file in the folder.
    pub folder_config: FolderConfig,
    /// Keys set on the command line, with their values as text.
    pub flags: Vec<(String, String)>,
}

/// Whether to look for a file in the working folder and above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FolderConfig {
    /// Look for one.
    #[default]
    Search,
    /// Do without (`--no-folder-config`).
    Skip,
}

/// Finds, reads and resolves the configuration.
///
/// ```
/// use haft_config::{LoadOptions, Surroundings, load};
/// # let folder = tempfile::tempdir()?;
/// # let working_folder = folder.path().to_path_buf();
///
/// std::fs::write(working_folder.join("haft.toml"), "[tools]\nmode = 'disabled'\n")?;
/// let surroundings = Surroundings { working_folder, ..Surroundings::default() };
/// let resolved = load(&surroundings, &LoadOptions::default())?;
/// assert_eq!(resolved.origins("tools.mode")[1].to_string(), "haft.toml:2:8");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Everything that is wrong with the files, the variables and the flags.
pub fn load(surroundings: &Surroundings, options: &LoadOptions) -> Result<Resolved, ConfigError> {
    let (inputs, mut notes) = gather(surroundings, options)?;
    let mut resolved = resolve(&inputs)?;
    notes.append(&mut resolved.notes);
    resolved.notes = notes;
    Ok(resolved)
}

/// Finds and reads the files, once each, and looks up whether the folder's is trusted.
///
/// # Errors
///
/// When a file is there but cannot be read.
pub fn gather(
    surroundings: &Surroundings,
    options: &LoadOptions,
) -> Result<(Inputs, Vec<Note>), ConfigError> {
    let mut notes = Vec::new();
    let user_path = surroundings.user_file();
    let user = match &user_path {
        Some(path) => read_user(surroundings, path)?,
        None => None,
    };
    let folder_path = match options.folder_config {
        FolderConfig::Search => find_folder_file(&surroundings.working_folder, surroundings.home.as_deref()),
        FolderConfig::Skip => None,
    };
    let folder = match folder_path {
        // A user whose working folder is the configuration folder still has their own configuration.
        Some(path) if user.is_some() && user_path.is_some_and(|user| same_file(&user, &path)) => None,
        Some(path) => {
            let source = read_file(surroundings, &path, Owner::Folder)?;
            let trusted = surroundings.trust_store().and_then(|store| store.is_trusted(&path, &source.bytes));
            let pinned = trusted.unwrap_or_else(|why| {
                // Somebody without a home folder has trusted nothing: no need to tell them.
                if why != TrustError::NoFolder {
                    notes.push(Note::NothingTrusted { why });
                }
                false
            });
            Some(FolderSource { source, pinned })
        }
        None => None,
    };
    let chosen = surroundings.trust_store().and_then(|store| store.profile_of(&surroundings.working_folder));
    let chosen = chosen.unwrap_or_else(|why| {
        if why != TrustError::NoFolder {
            notes.push(Note::NothingTrusted { why });
        }
        None
    });
    let inputs = Inputs {
        user,
        folder,
        chosen,
        env: variables(surroundings)?,
        flags: options.flags.clone(),
        working_folder: surroundings.working_folder.clone(),
        home: surroundings.home.clone(),
        real_path,
    };
    Ok((inputs, notes))
}

/// The `haft.toml` in the working folder or the nearest parent that has one. The search ends at a folder with
/// `.git`, which is still looked into, and before the home folder, unless one stands in it.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let root = folder.path();
/// std::fs::create_dir_all(root.join("repo/.git"))?;
/// std::fs::create_dir_all(root.join("repo/src/deep"))?;
/// std::fs::write(root.join("repo/haft.toml"), "")?;
/// let found = haft_config::find_folder_file(&root.join("repo/src/deep"), None);
/// assert_eq!(found, Some(root.join("repo/haft.toml")));
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn find_folder_file(working_folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let real_home = home.and_then(|home| fs::canonicalize(home).ok());
    let is_home = |folder: &Path| Some(folder) == home || Some(folder) == real_home.as_deref();
    for folder in working_folder.ancestors() {
        if is_home(folder) && folder != working_folder {
            return None;
        }
        let path = folder.join(FILE_NAME);
        // A parent that may not be searched holds nothing that is meant for this user.
        if is_there(&path) && (folder == working_folder || !is_denied(&path)) {
            return Some(path);
        }
        if is_there(&folder.join(".git")) {
            return None;
        }
    }
    None
}

/// Where a path really leads, asking the disk: links are followed as far as the path exists. `None` when that
/// cannot be told: a link to nowhere, a folder that may not be searched, a `..` behind something that is not
/// there.
#[must_use]
pub fn real_path(path: &Path) -> Option<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(_) => fs::canonicalize(path).ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name()?;
            Some(real_path(path.parent()?)?.join(name))
        }
        Err(_) => None,
    }
}

/// Where a path leads if nothing in it is a link. For tests and for callers without a disk.
///
/// ```
/// use std::path::Path;
///
/// let path = haft_config::lexical_path(Path::new("/repo/./src/../docs"));
/// assert_eq!(path.as_deref(), Some(Path::new("/repo/docs")));
/// assert_eq!(haft_config::lexical_path(Path::new("../up")), None);
/// ```
#[must_use]
pub fn lexical_path(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(component),
        }
    }
    Some(out)
}

/// Reads a file in a folder, for `haft trust FILE`: the same checks as for one that was found.
///
/// # Errors
///
/// When it cannot be read.
pub fn read_folder_file(surroundings: &Surroundings, path: &Path) -> Result<SourceText, ConfigError> {
    read_file(surroundings, &surroundings.working_folder.join(path), Owner::Folder)
}

fn read_user(surroundings: &Surroundings, path: &Path) -> Result<Option<SourceText>, ConfigError> {
    let is_named = surroundings.var("HAFT_CONFIG").is_some();
    // A file that somebody names must be there; the usual one need not be.
    if !is_named && !is_there(path) {
        return Ok(None);
    }
    read_file(surroundings, path, Owner::User).map(Some)
}

fn read_file(surroundings: &Surroundings, path: &Path, owner: Owner) -> Result<SourceText, ConfigError> {
    let shown = place::shown(path, &surroundings.working_folder);
    let place = Place::File { path: shown, owner, position: None };
    let unreadable = |error: io::Error| Problem::Unreadable { reason: error.kind(), place: place.clone() };
    // Before opening: to open a pipe is to wait for its other end.
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a folder" } else { "a device or a pipe" };
        return Err(Problem::NotAFile { found, place }.into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Problem::TooBig { limit: MAX_FILE_BYTES, place }.into());
    }
    Ok(SourceText { path: path.to_path_buf(), bytes })
}

fn variables(surroundings: &Surroundings) -> Result<Vec<(String, String)>, ConfigError> {
    let mut variables = Vec::new();
    for (name, value) in &surroundings.env {
        let Some(name) = name.to_str().filter(|name| name.starts_with(ENV_PREFIX)) else {
            continue;
        };
        match value.to_str() {
            Some(value) => variables.push((name.to_owned(), value.to_owned())),
            None if keys().iter().any(|key| key.is_set_by(name)) => {
                return Err(Problem::NotText { place: Place::Variable { name: name.to_owned() } }.into());
            }
            None => {}
        }
    }
    Ok(variables)
}

/// Whether something has this name. What cannot be told counts as there, so that reading it says why.
fn is_there(path: &Path) -> bool {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    fs::symlink_metadata(path).map_or_else(|error| !missing.contains(&error.kind()), |_| true)
}

fn is_denied(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
