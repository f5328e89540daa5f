//! Finds the programs of others that speak MCP.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The environment variable that names the folder with the MCP SDKs. `cargo xtask test` sets it.
///
/// ```
/// assert_eq!(haft_testkit::MCP_KIT_VAR, "HAFT_MCP_KIT");
/// ```
pub const MCP_KIT_VAR: &str = "HAFT_MCP_KIT";

/// The official SDKs, and what runs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpKit {
    /// A Python that has the package `mcp`.
    pub python: PathBuf,
    /// A Node.js that the packages of npm run on.
    pub node: PathBuf,
    /// The folder that `node_modules` is in.
    pub modules: PathBuf,
}

/// The official SDKs, or `None` where they are not installed: `cargo xtask test` does that.
///
/// ```
/// if let Some(kit) = haft_testkit::mcp_kit() {
///     assert!(kit.python.is_file() && kit.node.is_file());
/// }
/// ```
#[must_use]
pub fn mcp_kit() -> Option<McpKit> {
    let folder = env::var_os(MCP_KIT_VAR).filter(|folder| !folder.is_empty())?;
    kit_in(Path::new(&folder))
}

fn kit_in(folder: &Path) -> Option<McpKit> {
    let python = folder.join("python/bin/python");
    let node = folder.join("node");
    let is_there = python.is_file() && node.is_file() && folder.join("node_modules").is_dir();
    is_there.then(|| McpKit { python, node, modules: folder.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_is_none() {
        assert_eq!(kit_in(Path::new("/surely/absent")), None);
    }
}
