//! Finds test data that is too large, or too foreign, for the repository.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder with the test data.
///
/// ```
/// assert_eq!(haft_testkit::DATA_VAR, "HAFT_TEST_DATA");
/// ```
pub const DATA_VAR: &str = "HAFT_TEST_DATA";

/// The environment variable that names the folder with what packages of registries carry. `cargo xtask test` sets it.
///
/// ```
/// assert_eq!(haft_testkit::DATA_KIT_VAR, "HAFT_DATA_KIT");
/// ```
pub const DATA_KIT_VAR: &str = "HAFT_DATA_KIT";

/// A file or folder of the shared test data, or `None` where this machine does not have it.
///
/// The data is looked for in the folder that `HAFT_TEST_DATA` names; when that is not set, in `shared/data` beside
/// the workspace. What is not there is looked for in the folder that `HAFT_DATA_KIT` names. A test that gets `None`
/// calls [`not_run`](crate::not_run()) and returns.
///
/// ```
/// assert!(haft_testkit::shared_data("no such folder").is_none());
/// if let Some(suite) = haft_testkit::shared_data("jsontestsuite") {
///     assert!(suite.exists());
/// }
/// ```
#[must_use]
pub fn shared_data(relative: &str) -> Option<PathBuf> {
    let kit = env::var_os(DATA_KIT_VAR).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    first_of([Some(data_folder(env::var_os(DATA_VAR))), kit], relative)
}

fn first_of(folders: [Option<PathBuf>; 2], relative: &str) -> Option<PathBuf> {
    folders.into_iter().flatten().map(|folder| folder.join(relative)).find(|path| path.exists())
}

/// A variable that is set but empty counts as not set, as in a shell's `${HAFT_TEST_DATA:-…}`.
fn data_folder(named: Option<OsString>) -> PathBuf {
    match named.filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => workspace_root().join("../shared/data"),
    }
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_over_the_folder_beside_the_workspace() {
        assert_eq!(data_folder(Some("/some/data".into())), Path::new("/some/data"));
        let beside = workspace_root().join("../shared/data");
        assert_eq!(data_folder(None), beside);
        assert_eq!(data_folder(Some(OsString::new())), beside);
    }

    #[test]
    fn the_workspace_root_is_where_the_workspace_manifest_is() {
        let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn what_the_first_folder_lacks_is_taken_from_the_kit() {
        let (first, kit) = (workspace_root().join("crates"), workspace_root());
        let found = |relative| first_of([Some(first.clone()), Some(kit.clone())], relative);
        assert_eq!(found("haft-core"), Some(first.join("haft-core")));
        assert_eq!(found("Cargo.toml"), Some(kit.join("Cargo.toml")));
        assert_eq!(first_of([Some(first.clone()), None], "Cargo.toml"), None);
    }

    #[test]
    fn absent_data_is_none() {
        assert_eq!(shared_data("surely/absent"), None);
    }
}
