//! Decisions: what policy says about a call, what a caller is permitted, what must not be shown.
//!
//! Pure: nothing here reads a file, asks a person or looks at the clock.

mod permission;
mod policy;
mod redact;

pub use permission::PermissionStrings;
pub use policy::ListPolicy;
pub use redact::KnownSecrets;
