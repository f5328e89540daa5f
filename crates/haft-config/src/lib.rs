//! Configuration: one table of keys, layers of files, variables and flags, and trust.
//!
//! - [`keys()`]: the table. Reading, suggestions, variable names, the [`template()`] and the tightening rule
//!   come from it.
//! - [`resolve()`]: the pure core. Text goes in; the [`Config`] in effect, [notes](Note) and origins come
//!   out.
//! - [`load()`]: the edge. It finds the files, reads each once and asks the [`TrustStore`].
//!
//! # What a folder may do
//!
//! A `haft.toml` in the working folder may have come with a cloned repository, or a tool may have written it. So it
//! *may only tighten*: add denials, lower limits, choose stricter levels. What loosens counts only from the user's own
//! file, a variable or a flag, or after `haft trust` has pinned the file's hash; what did not count is said once. Which
//! folders tools reach is no matter of less or more: a root grants, and it is also what patterns, read-only parts and a
//! repository's protection are counted from. So a folder has no say in roots, nor in anything that other folders share,
//! such as what is kept for undo. A file that cannot be understood is an error, trusted or not, since nobody knows what
//! it would have forbidden; `--no-folder-config` goes on without it.
//!
//! Not stopped here: an attacker who can write the user's own file or the record of trusted files, or set variables,
//! has the user's rights already. The tests in `tests/config_layers.rs` and `tests/config_files.rs` show each
//! of these.
//!
//! ```
//! use haft_config::parse;
//! use haft_core::ApprovalMode;
//!
//! let config = parse("[tools.approval]\nmode = 'deny'\n")?;
//! assert_eq!(config.tools.approval.mode, ApprovalMode::Deny);
//! // What the file does not mention keeps its default.
//! assert_eq!(config.tools.approval.denylist, ["run_command", "start_command", "execute_code"]);
//! # Ok::<(), haft_config::ConfigError>(())
//! ```

mod agents;
mod declared;
mod discover;
mod entries;
mod explain;
mod from_folder;
mod keys;
mod layer;
mod note;
mod own_files;
mod place;
mod problem;
mod profile;
mod read;
mod resolve;
mod rule;
mod suggest;
mod template;
mod toml_text;
mod trust;
mod value;
mod visible;

pub use discover::{
    FILE_NAME, FolderConfig, LoadOptions, Surroundings, find_folder_file, gather, lexical_path, load,
    read_folder_file, real_path,
};
pub use entries::{parse_quota, parse_rate};
pub use explain::{Change, Explanation, explain};
pub use from_folder::FromFolder;
pub use keys::{
    ApplyPatchConfig, ApprovalConfig, AuditConfig, CommandsConfig, Config, EnvironmentConfig, FilesConfig,
    Key, LicenseConfig, OidcConfig, OutputConfig, PermissionsConfig, PolicyConfig, ReadFileConfig,
    RedactionConfig, SchedulingConfig, ServerConfig, SignaturesConfig, StoreConfig, TasksConfig,
    TelemetryConfig, TimeoutsConfig, ToolsConfig, key, keys,
};
pub use note::{Ignored, Note};
pub use own_files::{exposed_links, own_files};
pub use place::{Owner, Place, Position};
pub use problem::{ConfigError, EntryFault, MAX_PROBLEMS, Problem};
pub use profile::Profile;
pub use read::MAX_FILE_BYTES;
pub use resolve::{FolderSource, Inputs, Origin, Resolved, SourceText, parse, resolve};
pub use rule::{Configured, Effect, Kind, Rule, Tighter};
pub use template::template;
pub use trust::{Pin, TrustError, TrustStore};
pub use value::{DeclaredTool, IsolationTechnology, McpApprovals, StoreBackend, StoreDurability, Value};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
