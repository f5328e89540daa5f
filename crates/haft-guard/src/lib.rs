//! Decisions: what policy says about a call, what a person agreed to earlier, what a caller is permitted, what a
//! licence includes, whose signature counts, what must not be shown, what a program gets to know.
//!
//! Pure: nothing here reads a file, asks a person or looks at the clock.
//!
//! | module | decides |
//! |---|---|
//! | [`policy`] | allow, ask or deny: lists, rules with examples, grants; why |
//! | [`command`] | which commands are in a line of shell, and what of it cannot be known |
//! | grants: [`Grant`], [`Covers`], [`GrantSource`] | what is remembered of a person's answer |
//! | permissions: [`Permissions`], [`PermissionStrings`] | whether a caller has what a tool requires |
//! | licence: [`Licensing`], [`check_licence`] | the tier, and what it includes |
//! | signatures: [`admit_tool`], [`DefinitionChanges`] | whether a definition is the one that was signed, or accepted |
//! | [`names`] | which files nobody may see, and which run programs later |
//! | redaction: [`Secrets`], [`KnownSecrets`], [`SecretPatterns`] | what is a secret |
//! | [`EnvironmentFilter`] | which variables a program gets |

mod changed;
pub mod command;
mod environment;
mod fixed;
mod grant;
mod grant_source;
mod keys;
mod licence;
pub mod names;
mod permission;
pub mod policy;
mod redact;
mod signature;
mod wildcard;

pub use changed::{Change, DefinitionChanges};
pub use environment::{DENIED_VARIABLES, EnvironmentFilter, NameCase, Variables};
pub use fixed::Fixed;
pub use grant::{Covers, Grant, Lasts, PastPrompt, covers_how_many, spared};
pub use grant_source::{GrantSource, MemoryGrants};
pub use keys::{KeyError, PublicKey, SecretKey, TrustedKeys};
pub use licence::{
    Allowance, LIMITS, Licence, LicenceProblem, LicenceRefusal, Licensing, LimitRow, Need, RoleSupport,
    SchemaValidation, SearchFilter, TierSource, allowed_parallelism, built_in_tier, check_licence,
};
pub use permission::{AgentTools, PermissionStrings, Permissions, Role};
pub use policy::{ListPolicy, LivePolicy, PolicySet};
pub use redact::{KnownSecrets, PatternProblem, SecretPatterns, Secrets};
pub use signature::{
    SignatureProblem, ToolSignature, Verified, admit_tool, payload_digest, sign_tool, verify_tool,
};
pub use wildcard::wildcard;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        use std::fmt::Write;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
