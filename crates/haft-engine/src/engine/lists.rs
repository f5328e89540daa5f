//! Lists of the tools, and looking for some of them.
//!
//! All lists are taken from one snapshot in the order of names. A page of a list is found by the name that it begins
//! after, and looks at no more tools than it shows and leaves out.

use super::tools::{Registration, Tools};
use crate::registry::{MOST_RESULTS, Origin, Registered, ToolQuery, is_available, within_licence};
use haft_core::{
    CallContext, Category, SearchFilter, Tier, ToolDefinition, ToolError, ToolsMode, port::Authorisation,
};
use std::sync::Arc;

/// A part of a list: the tools after a name, or all from the beginning.
#[derive(Clone, Copy, Debug)]
pub struct ToolsPart<'a> {
    /// The name that the part before ended with.
    pub after: Option<&'a str>,
    /// How many at most.
    pub most: usize,
}

impl ToolsPart<'_> {
    /// Everything.
    pub const ALL: ToolsPart<'static> = ToolsPart { after: None, most: usize::MAX };
}

impl Tools<'_> {
    /// How many there are: all, or those that a caller of that tier may call.
    pub fn count(&self, available_to: Option<Tier>) -> usize {
        match available_to {
            None => self.0.ports.registry.count(),
            Some(tier) => {
                self.0.ports.registry.all().iter().filter(|registered| is_available(registered, tier)).count()
            }
        }
    }

    /// All tools at one moment, by name.
    pub fn all(&self) -> Vec<Registration> {
        self.0.ports.registry.all().iter().map(|registered| Registration::of(registered)).collect()
    }

    /// Those that a caller may call, and so may be told about: switched on, within the tier, permitted. A guard that
    /// errors hides the tool; in disabled mode there are none.
    pub async fn available(&self, context: &CallContext) -> Vec<Arc<ToolDefinition>> {
        self.available_part(context, ToolsPart::ALL, |_| true).await
    }

    /// A part of [`available`](Self::available), of those that are `wanted`.
    pub async fn available_part(
        &self,
        context: &CallContext,
        part: ToolsPart<'_>,
        wanted: impl Fn(&ToolDefinition) -> bool,
    ) -> Vec<Arc<ToolDefinition>> {
        self.part(context, part, |registered| wanted(&registered.definition)).await
    }

    async fn part(
        &self,
        context: &CallContext,
        part: ToolsPart<'_>,
        wanted: impl Fn(&Registered) -> bool,
    ) -> Vec<Arc<ToolDefinition>> {
        let mut available = Vec::new();
        if self.0.ports.settings.mode == ToolsMode::Disabled {
            return available;
        }
        let all = self.snapshot().await;
        let first =
            part.after.map_or(0, |after| all.partition_point(|registered| &*registered.name <= after));
        for registered in all.iter().skip(first) {
            if available.len() >= part.most {
                break;
            }
            if wanted(registered) && self.may_call(context, registered).await {
                available.push(Arc::clone(&registered.definition));
            }
        }
        available
    }

    /// The definition of a tool that a caller may call, by name or alias.
    pub async fn available_one(&self, context: &CallContext, name: &str) -> Option<Arc<ToolDefinition>> {
        if self.0.ports.settings.mode == ToolsMode::Disabled {
            return None;
        }
        let registered = self.0.ports.registry.lookup(name)?;
        self.may_call(context, &registered).await.then(|| Arc::clone(&registered.definition))
    }

    async fn may_call(&self, context: &CallContext, registered: &Registered) -> bool {
        is_available(registered, context.tier)
            && self.0.ports.authoriser.authorise(context, &registered.definition).await
                == Ok(Authorisation::Granted)
    }

    /// All tools, in one snapshot. Where they are not here yet they are brought beside the runtime's own threads: there
    /// may be very many.
    async fn snapshot(&self) -> Arc<[Arc<Registered>]> {
        let registry = &self.0.ports.registry;
        if registry.lacks_some() && tokio::runtime::Handle::try_current().is_ok() {
            let registry = Arc::clone(registry);
            // A failure is said there; then the list has what is here.
            let _ = tokio::task::spawn_blocking(move || drop(registry.all())).await;
        }
        registry.all()
    }

    /// Those that a model is listed: all that the caller may call, or, where that is more than
    /// [`max_listed_tools`](crate::Settings::max_listed_tools), those that come with the program. The others are found
    /// by `search_tools` and called by `call_tool`; where the caller may not call these two, all are listed.
    pub async fn listed(&self, context: &CallContext) -> Vec<Arc<ToolDefinition>> {
        match self.lists_all(context).await {
            true => self.available(context).await,
            false => self.built_in_part(context, ToolsPart::ALL).await,
        }
    }

    /// A part of [`available`](Self::available), of those that come with the program.
    pub async fn built_in_part(
        &self,
        context: &CallContext,
        part: ToolsPart<'_>,
    ) -> Vec<Arc<ToolDefinition>> {
        self.part(context, part, |registered| registered.origin == Origin::BuiltIn).await
    }

    /// Whether [`listed`](Self::listed) has all tools that a caller may call, or only those that come with the program.
    pub async fn lists_all(&self, context: &CallContext) -> bool {
        let most = self.0.ports.settings.max_listed_tools;
        if self.snapshot().await.len() <= most {
            return true;
        }
        for name in ["search_tools", "call_tool"] {
            let found = self.available_one(context, name).await;
            if found.is_none_or(|definition| definition.name != name) {
                return true;
            }
        }
        let more = ToolsPart { after: None, most: most.saturating_add(1) };
        self.part(context, more, |_| true).await.len() <= most
    }

    /// Those of a category that a caller of that tier may call.
    pub fn by_category(&self, category: Category, tier: Tier) -> Vec<Arc<ToolDefinition>> {
        let query =
            ToolQuery { categories: vec![category], max_results: MOST_RESULTS, ..ToolQuery::default() };
        self.matching(&query, tier)
    }

    /// Those that fit every condition, by name; refused where the tier does not include such a search.
    pub fn find(&self, query: &ToolQuery, tier: Tier) -> Result<Vec<Arc<ToolDefinition>>, ToolError> {
        query.check(tier)?;
        Ok(self.matching(query, tier))
    }

    fn matching(&self, query: &ToolQuery, tier: Tier) -> Vec<Arc<ToolDefinition>> {
        self.searched();
        let all = self.0.ports.registry.all();
        let found = all.iter().filter(|registered| query.matches(registered, tier));
        found.take(query.max_results.min(MOST_RESULTS)).map(|found| Arc::clone(&found.definition)).collect()
    }

    /// Those that fit a question in words, best first, with how well they fit; refused where the tier does not include
    /// such a search.
    pub fn rank(
        &self,
        question: &str,
        most: usize,
        tier: Tier,
    ) -> Result<Vec<(f32, Arc<ToolDefinition>)>, ToolError> {
        within_licence(SearchFilter::Name, tier)?;
        self.searched();
        let ranked = self.0.ports.registry.rank(question, most, |registered| is_available(registered, tier));
        Ok(ranked
            .into_iter()
            .map(|(score, registered)| (score, Arc::clone(&registered.definition)))
            .collect())
    }

    fn searched(&self) {
        self.0.ports.registry.counts.searches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}
