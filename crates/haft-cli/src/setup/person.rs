//! Who runs this, and what is theirs: name, editor, own file.

use crate::words;
use haft::{CallContext, config::Surroundings};
use std::sync::Arc;

/// With what the person changes arguments.
#[cfg(unix)]
pub(crate) fn editor(surroundings: &Surroundings) -> Option<crate::prompt::editor::Editor> {
    let named = |name: &str| {
        let (_, value) = surroundings.env.iter().find(|(known, _)| known == name)?;
        value.to_str().map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
    };
    let command = named("VISUAL").or_else(|| named("EDITOR"));
    Some(crate::prompt::editor::Editor { command, folder: surroundings.state_folder()?.join("edits") })
}

/// The person whose machine this is, under the name that the system knows.
pub(crate) fn owner(surroundings: &Surroundings) -> Arc<CallContext> {
    let owner = CallContext::owner();
    let known = ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| surroundings.env.iter().find(|(known, _)| known == name))
        .and_then(|(_, value)| value.to_str())
        .filter(|name| !name.is_empty());
    match known {
        Some(name) => Arc::new(CallContext { user: Some(name.into()), ..CallContext::clone(&owner) }),
        None => owner,
    }
}

/// The user's own configuration file, as a person writes it.
pub(super) fn own_file(surroundings: &Surroundings) -> String {
    let Some(path) = surroundings.user_file() else {
        return "your own haft.toml".to_owned();
    };
    match surroundings.home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", words::path(below)),
        None => words::path(&path),
    }
}
