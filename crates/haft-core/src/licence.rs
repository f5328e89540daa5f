//! What a licence tier includes beyond numbers, and the words in which everything that it does not include is refused.

use crate::{ErrorCode, Tier, ToolError};
use std::{fmt::Display, time::Duration};

/// How much of JSON Schema the tools of one's own may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchemaValidation {
    /// Types, required members, choices.
    Basic,
    /// All of JSON Schema.
    Advanced,
    /// With rules of one's own.
    Custom,
}

/// How tools are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SearchFilter {
    /// By category.
    Category,
    /// Also by words of name and description.
    Name,
    /// By everything.
    Full,
    /// By filters of one's own.
    Custom,
}

/// How callers are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleSupport {
    /// By the roles that come with haft.
    Basic,
    /// Also by roles of one's own.
    Full,
    /// Also rules on attributes: who calls, and for whom.
    Attributes,
}

impl Tier {
    /// All of them, the lowest first.
    pub const ALL: [Tier; 4] = [Tier::Core, Tier::WriterPro, Tier::Teams, Tier::Enterprise];

    /// How much of JSON Schema the tools of one's own may use.
    pub const fn schema_validation(self) -> SchemaValidation {
        match self {
            Tier::Core | Tier::WriterPro => SchemaValidation::Basic,
            Tier::Teams => SchemaValidation::Advanced,
            Tier::Enterprise => SchemaValidation::Custom,
        }
    }

    /// How tools may be searched for.
    pub const fn search_filter(self) -> SearchFilter {
        match self {
            Tier::Core => SearchFilter::Category,
            Tier::WriterPro => SearchFilter::Name,
            Tier::Teams => SearchFilter::Full,
            Tier::Enterprise => SearchFilter::Custom,
        }
    }

    /// Which roles callers may have.
    pub const fn role_support(self) -> RoleSupport {
        match self {
            Tier::Core | Tier::WriterPro => RoleSupport::Basic,
            Tier::Teams => RoleSupport::Full,
            Tier::Enterprise => RoleSupport::Attributes,
        }
    }

    /// How long results may be kept, beyond the session; `None` for as long as the configuration says.
    ///
    /// ```
    /// use haft_core::Tier;
    /// assert_eq!(Tier::Teams.longest_retention().map(|kept| kept.as_secs() / 86_400), Some(30));
    /// assert_eq!(Tier::Enterprise.longest_retention(), None);
    /// ```
    pub const fn longest_retention(self) -> Option<Duration> {
        const DAY: u64 = 24 * 60 * 60;
        match self {
            Tier::Core => Some(Duration::ZERO),
            Tier::WriterPro => Some(Duration::from_secs(7 * DAY)),
            Tier::Teams => Some(Duration::from_secs(30 * DAY)),
            Tier::Enterprise => None,
        }
    }

    /// Whether programs may be held by a jail that did not come with haft.
    pub const fn allows_own_jails(self) -> bool {
        matches!(self, Tier::Enterprise)
    }

    /// Whether sandboxes may be made, with limits, paths and hosts of one's own.
    pub const fn allows_sandboxes(self) -> bool {
        matches!(self, Tier::Teams | Tier::Enterprise)
    }

    /// Refuses what this tier does not include, with the lowest one that does. `what` is the beginning of a sentence.
    ///
    /// ```
    /// use haft_core::{SearchFilter, Tier};
    /// let may_search = |tier: Tier| tier.search_filter() >= SearchFilter::Name;
    /// assert!(Tier::WriterPro.require("a search in words", may_search).is_ok());
    /// assert_eq!(
    ///     Tier::Core.require("a search in words", may_search).unwrap_err().message,
    ///     "a search in words needs the WriterPro tier, and this caller has Core"
    /// );
    /// ```
    pub fn require(self, what: impl Display, includes: impl Fn(Tier) -> bool) -> Result<(), ToolError> {
        if includes(self) {
            return Ok(());
        }
        let needed = Tier::ALL.into_iter().find(|tier| includes(*tier));
        let text = match needed {
            Some(needed) => format!("{what} needs the {needed:?} tier, and this caller has {self:?}"),
            None => format!("{what} is more than any tier has, and this caller has {self:?}"),
        };
        let data = serde_json::json!({"needed": needed, "has": self});
        Err(ToolError::new(ErrorCode::LicenseRequired, text).with_data(data))
    }
}
