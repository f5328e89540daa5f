//! The token of `haft mcp --http`, in a file that only the user can read.

use super::Failure;
use haft::CallContext;
use haft_mcp::server::http::Token;
use haft_store::private_file;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

const FILE: &str = "mcp-token";

/// The token, and where it is. One that is not there, or that others could have read, is replaced with a new one.
pub(super) fn of(state: &Path, caller: Arc<CallContext>) -> Result<(Token, PathBuf), Failure> {
    let path = state.join(FILE);
    let cannot = |reason| Failure::CannotWrite { path: path.clone(), reason };
    private_file::create_folder(state).map_err(cannot)?;
    let _lock = private_file::lock(&state.join("mcp-token.lock")).map_err(cannot)?;
    if let Some(secret) = private(&path)
        && let Some(token) = Token::known(secret.trim(), Arc::clone(&caller))
    {
        return Ok((token, path));
    }
    let token = Token::random(caller);
    private_file::replace(&path, format!("{}\n", token.as_str()).as_bytes()).map_err(cannot)?;
    Ok((token, path))
}

/// What is in a file that nobody else can read.
fn private(path: &Path) -> Option<String> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0 {
        return None;
    }
    if !metadata.is_file() || metadata.len() > 4096 {
        return None;
    }
    std::fs::read_to_string(path).ok()
}
