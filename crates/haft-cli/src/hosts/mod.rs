//! `haft install`, `haft uninstall`, `haft hosts`: programs that call tools for a model, and how haft is known to them.
//!
//! | file | what |
//! |---|---|
//! | `host` | the programs, and where each keeps its settings |
//! | `plan` | what has to be in which file, for each mode |
//! | `settings`, `json_edit`, `json_text` | settings as text: changes that keep everything else, and their undoing |
//! | `manifest` | what haft wrote, remembered |
//! | `install`, `list` | the commands |

pub(crate) mod examples;
mod host;
mod install;
mod json_edit;
mod json_text;
mod list;
mod manifest;
mod plan;
mod settings;

pub(crate) use host::Host;
pub(crate) use install::{InstallArgs, McpInstallArgs, UninstallArgs, run as install, run_mcp, uninstall};
pub(crate) use list::{HostsArgs, run as list};
pub(crate) use manifest::digest;
pub(crate) use plan::command_line;
