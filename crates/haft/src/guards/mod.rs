//! What guards calls, put together from a configuration: policy, permissions, licence, redaction, signatures.

mod callers;
mod licence;
mod policing;
mod reload;
mod secrets;
mod signing;

pub use callers::local;
pub(crate) use callers::permissions;
pub use licence::licensing;
pub(crate) use policing::{Policing, policy_set};
pub use reload::{PolicyReload, Reloaded};
pub(crate) use secrets::Redacting;
pub use secrets::environment;
pub use signing::{Admitted, Payload, Signatures, Source};
