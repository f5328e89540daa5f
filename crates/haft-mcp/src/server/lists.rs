//! A page of the tools, and of what can be read. Each looks at the tools that it shows, not at all of them.

use super::{
    builder::Inner,
    page::{after, cut, encode},
    resources::{self, TOOLS},
};
use haft_core::{CallContext, ToolDefinition};
use haft_engine::ToolsPart;
use rmcp::{
    ErrorData,
    model::{PaginatedRequestParams, Resource},
};
use std::sync::Arc;

/// Stands before the name in a cursor of a list that has all tools, so that its pages stay those of one list.
const ALL: char = '+';

type Page<T> = (Vec<T>, Option<String>);

pub(super) async fn tools(
    server: &Inner,
    caller: &CallContext,
    request: Option<PaginatedRequestParams>,
) -> Result<Page<Arc<ToolDefinition>>, ErrorData> {
    let tools = server.engine.tools();
    let after = after(request)?;
    let (lists_all, after) = match after.as_deref().map(|after| (after.strip_prefix(ALL), after)) {
        None => {
            server.shown.keep_only(|name| tools.exists(name));
            (tools.lists_all(caller).await, None)
        }
        Some((Some(after), _)) => (true, Some(after)),
        Some((None, after)) => (false, Some(after)),
    };
    let part = ToolsPart { after, most: server.page.saturating_add(1) };
    let listed = match lists_all {
        true => tools.available_part(caller, part, |_| true).await,
        false => tools.built_in_part(caller, part).await,
    };
    let (page, last) = cut(listed.into_iter(), |definition| &definition.name, server.page);
    let cursor = |last: String| if lists_all { encode(&format!("{ALL}{last}")) } else { encode(&last) };
    Ok((page, last.map(cursor)))
}

pub(super) async fn resources(
    server: &Inner,
    caller: &CallContext,
    request: Option<PaginatedRequestParams>,
) -> Result<Page<Resource>, ErrorData> {
    let after = after(request)?;
    let is_next = |uri: &str| after.as_deref().is_none_or(|after| uri > after);
    let mut next = server.extension.resources(caller);
    next.retain(|resource| is_next(&resource.uri));
    let after_name = after.as_deref().and_then(|after| after.strip_prefix(TOOLS));
    // All addresses of tools begin in the same way: those after another address are all of them, or none.
    if after_name.is_some() || is_next(TOOLS) {
        let part = ToolsPart { after: after_name, most: server.page.saturating_add(1) };
        let tools = server.engine.tools().available_part(caller, part, |_| true).await;
        next.extend(tools.iter().map(|definition| resources::definition(definition)));
    }
    next.sort_by(|one, other| one.uri.cmp(&other.uri));
    let (page, last) = cut(next.into_iter(), |resource| &resource.uri, server.page);
    Ok((page, last.map(|last| encode(&last))))
}
