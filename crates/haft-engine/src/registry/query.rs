//! Looking for tools by what they say about themselves.

use super::Registered;
use haft_core::{Category, SearchFilter, Tier, ToolError};

/// Which tools are looked for. Each condition narrows; the default takes all that are available.
///
/// ```
/// use haft_core::Category;
/// use haft_engine::ToolQuery;
/// let query = ToolQuery { text: Some("json".into()), categories: vec![Category::System], ..ToolQuery::default() };
/// assert_eq!(query.max_results, 100);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolQuery {
    /// Somewhere in the name or the description, in any case.
    pub text: Option<String>,
    /// In one of these; empty for any.
    pub categories: Vec<Category>,
    /// Requires all of these permissions.
    pub permissions: Vec<String>,
    /// Always asks a person, or does not.
    pub requires_confirmation: Option<bool>,
    /// Also those that are disabled or above the caller's tier.
    pub include_unavailable: bool,
    /// How many at most; never more than 1000.
    pub max_results: usize,
}

impl Default for ToolQuery {
    fn default() -> Self {
        ToolQuery {
            text: None,
            categories: Vec::new(),
            permissions: Vec::new(),
            requires_confirmation: None,
            include_unavailable: false,
            max_results: 100,
        }
    }
}

/// However many are asked for, no more than these are given.
pub(crate) const MOST_RESULTS: usize = 1000;

/// Refuses a search that a licence tier does not include.
pub(crate) fn within_licence(needs: SearchFilter, tier: Tier) -> Result<(), ToolError> {
    let what = match needs {
        SearchFilter::Category => "Looking for tools by category",
        SearchFilter::Name => "Looking for tools in words",
        SearchFilter::Full | SearchFilter::Custom => "Looking for tools by permission or confirmation",
    };
    tier.require(what, |tier| tier.search_filter() >= needs)
}

impl ToolQuery {
    /// Refuses what a caller of that tier may not look for: the lowest may go by category, the next also by words, the
    /// others by everything.
    ///
    /// ```
    /// use haft_core::{Category, Tier};
    /// use haft_engine::ToolQuery;
    /// let mut query = ToolQuery { categories: vec![Category::System], ..ToolQuery::default() };
    /// assert!(query.check(Tier::Core).is_ok());
    /// query.text = Some("json".into());
    /// assert_eq!(query.check(Tier::Core).unwrap_err().code, haft_core::ErrorCode::LicenseRequired);
    /// ```
    pub fn check(&self, tier: Tier) -> Result<(), ToolError> {
        let has_text = self.text.as_ref().is_some_and(|text| !text.is_empty());
        let needs = match (has_text, self.permissions.is_empty() && self.requires_confirmation.is_none()) {
            (_, false) => SearchFilter::Full,
            (true, true) => SearchFilter::Name,
            (false, true) => SearchFilter::Category,
        };
        within_licence(needs, tier)
    }

    /// Whether a tool is one of those, for a caller of that tier.
    pub(crate) fn matches(&self, registered: &Registered, tier: Tier) -> bool {
        let definition = &registered.definition;
        let text = self.text.as_deref().unwrap_or_default().to_lowercase();
        let has_text =
            || definition.name.contains(&text) || definition.description.to_lowercase().contains(&text);
        let requires = |permission: &String| definition.required_permissions.contains(permission);
        (text.is_empty() || has_text())
            && (self.categories.is_empty() || self.categories.contains(&definition.category))
            && self.permissions.iter().all(requires)
            && self.requires_confirmation.is_none_or(|wanted| wanted == definition.requires_confirmation)
            && (self.include_unavailable || is_available(registered, tier))
    }
}

/// Whether a tool is there, switched on and within the tier.
pub(crate) fn is_available(registered: &Registered, tier: Tier) -> bool {
    registered.is_enabled() && !registered.is_withdrawn() && registered.definition.tier <= tier
}
