//! Licences: which tier a caller has, and what that tier includes. Offline.

mod file;
mod table;

pub use file::{Licence, LicenceProblem, Licensing, TierSource};
pub use haft_core::{RoleSupport, SchemaValidation, SearchFilter};
pub use table::{
    Allowance, LIMITS, LicenceRefusal, LimitRow, Need, allowed_parallelism, built_in_tier, check_licence,
};
