//! The same files in a worker: a process of haft's own in a jail, which opens them again by the same rules.
//!
//! The kernel holds the worker to the roots. The rules of the path jail (denied patterns, haft's own files, links, what
//! was decided on) hold in there as well, so that a tool finds and is refused the same as in haft's own process.

use super::{
    changes::Keep,
    files::Files,
    held::Held,
    jail::{JailSpec, PathJail, RootSpec},
};
use haft_core::{
    ErrorCode, ToolError,
    port::{ReadHashes, ReadRecord, StoreError},
};
use haft_sdk::files::Workspace;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What is denied, as it was said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Described {
    pub(crate) denied_patterns: Vec<String>,
    pub(crate) private: Vec<PathBuf>,
    pub(crate) step_by_step: bool,
}

/// A path jail, in JSON.
#[derive(Serialize, Deserialize)]
struct Grant {
    roots: Vec<RootSpec>,
    allow_absolute: bool,
    rules: Described,
    held: Option<Held>,
}

/// What a worker makes the same path jail of.
pub(crate) fn described(jail: &PathJail) -> Result<Value, ToolError> {
    let (roots, allow_absolute, rules, held) = jail.parts_for_worker();
    let grant = Grant { roots, allow_absolute, rules: rules.clone(), held: held.cloned() };
    serde_json::to_value(grant).map_err(|error| refused(&error.to_string()))
}

/// The files that a workspace described to its worker ([`Workspace::for_worker`]): to look at and to read. What they
/// change and what is remembered about them is a matter of the process outside.
///
/// # Errors
///
/// A root cannot be opened from in there, or the description is not one.
pub fn reopened(described: Value) -> Result<Arc<dyn Workspace>, ToolError> {
    let grant: Grant = serde_json::from_value(described).map_err(|error| refused(&error.to_string()))?;
    let Described { denied_patterns, private, step_by_step } = grant.rules;
    let spec = JailSpec {
        roots: grant.roots,
        denied_patterns,
        allow_absolute: grant.allow_absolute,
        private,
        step_by_step,
        only_pass_through: true,
        ..JailSpec::default()
    };
    let jail = PathJail::new(spec).map_err(|error| refused(&error.to_string()))?.holding(grant.held);
    // Nothing is ever recorded there: whoever asks for that is told that it is not remembered.
    let nowhere = Path::new("/nonexistent");
    Ok(Arc::new(Files::new(Arc::new(jail), Arc::new(Forgetful), nowhere, Keep::default())))
}

fn refused(why: &str) -> ToolError {
    let text = format!("The files cannot be opened in a jail: {why}");
    ToolError::new(ErrorCode::SandboxCreationFailed, text)
}

/// Remembers nothing, and says so.
struct Forgetful;

impl ReadHashes for Forgetful {
    fn remember(&self, _: &str, _: &str, _: &str, _: &ReadRecord) -> Result<(), StoreError> {
        Err(StoreError("a worker remembers nothing".to_owned()))
    }

    fn recall(&self, _: &str, _: &str, _: &str) -> Result<Option<ReadRecord>, StoreError> {
        Err(StoreError("a worker remembers nothing".to_owned()))
    }
}
