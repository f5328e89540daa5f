//! Decisions: what policy says about a call, what a person agreed to earlier, what a caller is permitted, what a licence
//! includes, whose signature counts, what must not be shown, what a program gets to know.
//!
//! Pure: nothing here reads a file, asks a person or looks at the clock.

pub mod command;
mod grant;
mod permission;
pub mod policy;
mod redact;
mod wildcard;

pub use grant::{Covers, Grant, Lasts, PastPrompt, covers_how_many};
pub use permission::PermissionStrings;
pub use policy::{ListPolicy, LivePolicy, PolicySet};
pub use redact::KnownSecrets;
pub use wildcard::wildcard;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        use std::fmt::Write;
        let _ = write!(text, "{byte:02x}");
        text
    })
}
