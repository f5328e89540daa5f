//! What guards calls, put together from a configuration: policy, permissions, licence, redaction, signatures.

mod callers;
mod licence;
mod policing;
mod reload;
mod secrets;
mod signing;

pub(crate) use callers::{local, permissions};
pub(crate) use licence::licensing;
pub(crate) use policing::{Policing, policy_set};
pub use reload::{PolicyReload, Reloaded};
pub(crate) use secrets::{Redacting, environment};
pub(crate) use signing::{Payload, Signatures, Source};
