//! What is at a path.

use haft_sdk::files::{Kind, Metadata};
use std::time::SystemTime;

/// What the system knows about a file, a folder, a link, without following it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) len: u64,
    pub(crate) modified: Option<SystemTime>,
    /// The permission bits, where the system has them.
    pub(crate) mode: u32,
    /// Who owns it: user and group, where the system has them.
    pub(crate) owner: (u32, u32),
    /// Which file it is, on the same machine: device and number.
    pub(crate) id: (u64, u64),
}

impl Entry {
    pub(crate) fn metadata(&self) -> Metadata {
        Metadata { kind: self.kind, len: self.len, modified: self.modified }
    }
}
