//! From everything that was written to what is in effect. Pure: files, variables and flags come in as text.
//!
//! From weakest to strongest: defaults, the user's own file, a *trusted* file in the folder, environment
//! variables, flags. An *untrusted* file in the folder comes last of all and may only tighten what the others
//! gave: a cloned repository, or a tool that writes files, cannot open the door.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_core::{IsolationLevel, ToolsMode};

use super::entries;
use super::from_folder::FromFolder;
use super::keys::Config;
use super::layer::{Layers, Stack};
use super::note::Note;
use super::place::{self, Place};
use super::problem::ConfigError;
use super::profile::Profile;
use super::rule::FolderComparison;

/// A file as it was read: once, so that what is hashed is what is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// Where it lies.
    pub path: PathBuf,
    /// Exactly what is in it.
    pub bytes: Vec<u8>,
}

impl SourceText {
    /// A file with this path and content.
    ///
    /// ```
    /// let source = haft_config::SourceText::new("haft.toml", "[tools]\n");
    /// assert_eq!(source.bytes, b"[tools]\n");
    /// ```
    pub fn new(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into() }
    }
}

/// The file found in the working folder or above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderSource {
    /// The file.
    pub source: SourceText,
    /// Whether its owner ran `haft trust` on exactly these bytes.
    pub pinned: bool,
}

/// Everything that a configuration is made of.
///
/// ```
/// use haft_config::{Inputs, SourceText, resolve};
/// use haft_core::ToolsMode;
///
/// let inputs = Inputs {
///     user: Some(SourceText::new("/home/ada/.config/haft/haft.toml", "[tools]\nmode = 'parse_only'\n")),
///     env: vec![("HAFT_TOOLS_MODE".into(), "disabled".into())],
///     ..Inputs::default()
/// };
/// assert_eq!(resolve(&inputs)?.config.tools.mode, ToolsMode::Disabled);
/// # Ok::<(), haft_config::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The user's own file.
    pub user: Option<SourceText>,
    /// The file in the working folder or above it.
    pub folder: Option<FolderSource>,
    /// The profile that was chosen for the working folder or one around it, with that folder.
    pub chosen: Option<(Profile, PathBuf)>,
    /// Environment variables; those that are none of haft's are passed over.
    pub env: Vec<(String, String)>,
    /// Keys set on the command line, with their values as text.
    pub flags: Vec<(String, String)>,
    /// Where relative folders start. Absolute.
    pub working_folder: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// The path with all links followed; `None` when that cannot be told, and then an untrusted file's folder
    /// does not count. [`real_path`](super::real_path) asks the disk; [`lexical_path`](super::lexical_path)
    /// does not.
    pub real_path: fn(&Path) -> Option<PathBuf>,
}

impl Inputs {
    pub(super) fn ground(&self) -> FolderComparison<'_> {
        FolderComparison { working_folder: &self.working_folder, real_path: self.real_path }
    }

    /// The path as messages show it.
    pub(super) fn shown(&self, path: &Path) -> PathBuf {
        place::shown(path, &self.working_folder)
    }
}

impl Default for Inputs {
    /// Nothing but the defaults, in a folder about which nothing is known.
    fn default() -> Self {
        Self {
            user: None,
            folder: None,
            chosen: None,
            env: Vec::new(),
            flags: Vec::new(),
            working_folder: PathBuf::from("/"),
            home: None,
            real_path: |_| None,
        }
    }
}

/// The configuration in effect, and how it came about.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Resolved {
    /// What is in effect.
    pub config: Config,
    /// What a person should hear about, each once.
    pub notes: Vec<Note>,
    origins: BTreeMap<&'static str, Vec<Origin>>,
}

impl Resolved {
    /// Where a key's value comes from: the last place that replaced it, then those that added to it or
    /// tightened it.
    ///
    /// ```
    /// use haft_config::{Inputs, Origin, resolve};
    ///
    /// let inputs = Inputs { env: vec![("HAFT_TOOLS_MODE".into(), "disabled".into())], ..Inputs::default() };
    /// let resolved = resolve(&inputs)?;
    /// assert_eq!(resolved.origins("tools.mode")[0].to_string(), "HAFT_TOOLS_MODE");
    /// assert_eq!(resolved.origins("tools.output.max_bytes"), [Origin::Default]);
    /// # Ok::<(), haft_config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn origins(&self, key: &str) -> &[Origin] {
        self.origins.get(key).map_or(&[Origin::Default], Vec::as_slice)
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// Somebody wrote it here.
    Set(Place),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Set(place) => place.fmt(f),
        }
    }
}

/// Puts the layers together.
///
/// ```
/// use haft_config::{FolderSource, Inputs, Note, SourceText, resolve};
///
/// // It came with a repository: it asks for less, and for more.
/// let text = "[tools]\nmax_tool_calls_per_batch = 2\nmax_tool_iterations_per_user_turn = 100\n";
/// let folder = FolderSource { source: SourceText::new("/repo/haft.toml", text), pinned: false };
/// let resolved = resolve(&Inputs { folder: Some(folder), ..Inputs::default() })?;
/// assert_eq!(resolved.config.tools.max_tool_calls_per_batch, 2);
/// assert_eq!(resolved.config.tools.max_tool_iterations_per_user_turn, 4);
/// assert!(matches!(&resolved.notes[..], [Note::Ignored { .. }]));
/// # Ok::<(), haft_config::ConfigError>(())
/// ```
///
/// # Errors
///
/// Everything that is wrong in any of the sources. An untrusted file that cannot be understood is an error
/// too: what it would have forbidden is not known.
pub fn resolve(inputs: &Inputs) -> Result<Resolved, ConfigError> {
    let layers = Layers::read(inputs)?;
    let pinned = inputs.folder.as_ref().is_some_and(|folder| folder.pinned);
    let mut stack = Stack::default();
    stack.apply(&layers.profile(pinned));
    stack.apply(&layers.user);
    stack.apply(&layers.chosen);
    if pinned {
        stack.apply(&layers.folder);
    }
    stack.apply(&layers.env);
    stack.apply(&layers.flags);
    // Before an untrusted file has its say: by lowering one number it must not make another one wrong.
    let owners = stack.config()?;
    entries::together(&owners, |key| stack.origins.get(key).cloned().unwrap_or_default())?;
    let mut notes = layers.notes;
    if !pinned {
        let ignored = stack.tighten(&layers.folder, &inputs.ground());
        if let (Some(folder), false) = (&inputs.folder, ignored.is_empty()) {
            notes.insert(0, Note::Ignored { path: inputs.shown(&folder.source.path), ignored });
        }
    }
    let mut config = stack.config()?;
    config.from_folder = FromFolder::between(&owners, &config);
    if !config.tools.definitions.is_empty() && config.tools.mode == ToolsMode::Enabled {
        notes.push(Note::DefinitionsUnused { count: config.tools.definitions.len() });
    }
    if config.tools.commands.hosts == ["*"] {
        let is_given = config.tools.commands.isolation <= IsolationLevel::Standard;
        notes.push(Note::EveryHost { is_given });
    }
    Ok(Resolved { config, notes, origins: stack.origins })
}

/// Reads one text as the user's own `haft.toml`, over the defaults.
///
/// ```
/// let config = haft_config::parse("[tools.output]\nmax_bytes = 4096\n")?;
/// assert_eq!(config.tools.output.max_bytes, 4096);
/// # Ok::<(), haft_config::ConfigError>(())
/// ```
///
/// # Errors
///
/// Everything that is wrong with the text.
pub fn parse(text: &str) -> Result<Config, ConfigError> {
    let inputs = Inputs { user: Some(SourceText::new("haft.toml", text)), ..Inputs::default() };
    resolve(&inputs).map(|resolved| resolved.config)
}
