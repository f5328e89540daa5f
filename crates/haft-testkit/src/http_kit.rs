//! Finds the programs of others that speak to an HTTP API.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The environment variable that names the folder with schemathesis and the SDKs of model providers. `cargo xtask test`
/// sets it.
///
/// ```
/// assert_eq!(haft_testkit::HTTP_KIT_VAR, "HAFT_HTTP_KIT");
/// ```
pub const HTTP_KIT_VAR: &str = "HAFT_HTTP_KIT";

/// A Python environment with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpKit {
    /// A Python that has the packages `openai`, `anthropic`, `requests`, `openapi_spec_validator`,
    /// `openapi_python_client`, and what the tests of the Python client need.
    pub python: PathBuf,
    /// The program that tries out an API by its OpenAPI document.
    pub schemathesis: PathBuf,
    /// A folder with `httpx` and what it needs, from which pip installs without a network.
    pub wheels: PathBuf,
}

/// The programs, or `None` where they are not installed: `cargo xtask test` does that.
///
/// ```
/// if let Some(kit) = haft_testkit::http_kit() {
///     assert!(kit.python.is_file() && kit.schemathesis.is_file());
/// }
/// ```
#[must_use]
pub fn http_kit() -> Option<HttpKit> {
    let folder = env::var_os(HTTP_KIT_VAR).filter(|folder| !folder.is_empty())?;
    kit_in(Path::new(&folder))
}

fn kit_in(folder: &Path) -> Option<HttpKit> {
    let (python, schemathesis) = (folder.join("bin/python"), folder.join("bin/schemathesis"));
    let wheels = folder.join("wheels");
    let is_whole = python.is_file() && schemathesis.is_file() && wheels.is_dir();
    is_whole.then_some(HttpKit { python, schemathesis, wheels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_is_none() {
        assert_eq!(kit_in(Path::new("/surely/absent")), None);
    }
}
