//! Where the workspace is, and how cargo is called in it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders of the workspace this program belongs to.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    pub(crate) fn of_this_program() -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = own.parent().unwrap_or(own).to_owned();
        let target = target_folder(&root, env::var_os("CARGO_TARGET_DIR"));
        Self { root, target }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// A command that starts in the workspace root, without what `cargo run` told this program about itself:
    /// build scripts that look at those variables would run again for every change between the two ways to build.
    pub(crate) fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.current_dir(&self.root);
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(is_about_this_package) {
                command.env_remove(name);
            }
        }
        command
    }

    /// The cargo that started this program.
    pub(crate) fn cargo(&self) -> Command {
        self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }
}

/// A relative folder counts from the root, because that is where cargo is started.
fn target_folder(root: &Path, named: Option<OsString>) -> PathBuf {
    match named.filter(|folder| !folder.is_empty()) {
        Some(folder) => root.join(folder),
        None => root.join("target"),
    }
}

fn is_about_this_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_")
        || variable.starts_with("CARGO_MANIFEST_")
        || matches!(variable, "CARGO_BIN_NAME" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_folder_follows_the_variable() {
        let root = Path::new("/w");
        for (named, expected) in
            [(None, "/w/target"), (Some(""), "/w/target"), (Some("out"), "/w/out"), (Some("/out"), "/out")]
        {
            assert_eq!(target_folder(root, named.map(OsString::from)), Path::new(expected), "{named:?}");
        }
    }

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        assert!(Workspace::of_this_program().root().join("Cargo.toml").is_file());
    }
}
