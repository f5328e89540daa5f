//! Which files were read, and what was in them.

use super::StoreError;
use jiff::Timestamp;

/// A file as it was when it was last read or written by a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRecord {
    /// SHA-256 of all its bytes, in hex.
    pub sha256: String,
    /// When the file was read or written.
    pub at: Timestamp,
}

/// Remembers, for each conversation, what was in the files that it read: nobody edits what they have not seen.
///
/// These wait for a disk: they are called where waiting is allowed.
pub trait ReadHashes: Send + Sync {
    /// Remembers a file, by its resolved path.
    fn remember(
        &self,
        tenant: &str,
        conversation: &str,
        path: &str,
        record: &ReadRecord,
    ) -> Result<(), StoreError>;

    /// What is remembered of a file.
    fn recall(&self, tenant: &str, conversation: &str, path: &str) -> Result<Option<ReadRecord>, StoreError>;
}
