//! Licences: which tier a caller has, and what that tier includes. Offline.

mod file;
mod table;

pub use file::{Licence, LicenceProblem, Licensing, TierSource};
pub use table::{
    Allowance, LIMITS, LicenceRefusal, LimitRow, Need, RoleSupport, SchemaValidation, SearchFilter,
    allowed_parallelism, built_in_tier, check_licence,
};
