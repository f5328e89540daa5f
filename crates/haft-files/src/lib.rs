//! The path jail: files below roots that cannot be left, and changes that are whole.

mod changes;
mod entry;
mod error;
mod files;
mod folder;
#[cfg(unix)]
mod folder_unix;
mod held;
mod ignore_rules;
mod jail;
mod lexical;
mod portable;
mod protect;
#[cfg(target_os = "linux")]
mod staged;
#[cfg(target_os = "linux")]
mod tree;
mod view;
mod walk;
mod worker;

#[cfg(target_os = "linux")]
pub use changes::ApplyStaged;
pub use changes::{Became, Keep, TakenBack, became_of, take_back_cut};
pub use error::PathError;
pub use files::{Files, Gate};
pub use haft_guard::names::{BadPattern, DEFAULT_DENIES};
pub use jail::{JailError, JailSpec, Opened, PathJail, RootSpec};
pub use lexical::{MAX_NAME_BYTES, MAX_PATH_BYTES};
#[cfg(target_os = "linux")]
pub use staged::{
    Ask, Conflict, Findings, Listed, Restored, StageRules, StagedKeep, StagedSet, UndoFit, Violation,
    ViolationKind, discard, outdated,
};
pub use worker::reopened;
