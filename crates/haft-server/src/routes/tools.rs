//! The tools that there are for a caller.

use crate::{
    extract::{Json as Taken, Named, QueryParams, Who, some_integer},
    problem::Problem,
    server::App,
};
use axum::{Json, extract::State};
use haft_core::{Category, ErrorCode, ToolDefinition};
use haft_engine::{ToolQuery, ToolsPart};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which tools.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Somewhere in the name or the description, in any case.
    text: Option<String>,
    /// Of this category, such as `FileSystem`.
    #[param(value_type = Option<CategoryName>)]
    category: Option<Category>,
    /// Only what comes after this name: `next` of the page before.
    after: Option<String>,
    /// Length of the list.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// What a tool is about.
#[allow(dead_code, reason = "a description")]
#[derive(Serialize, ToSchema)]
pub(crate) enum CategoryName {
    FileSystem,
    Network,
    Database,
    CodeExecution,
    ExternalApi,
    Knowledge,
    Communication,
    System,
}

/// Tools, by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolPage {
    /// What they say about themselves.
    #[schema(value_type = Vec<Object>)]
    tools: Vec<ToolDefinition>,
    /// Where the next page begins: the parameter `after`.
    #[schema(required = true)]
    next: Option<String>,
}

/// The tools that I may call
#[utoipa::path(get, path = "/v1/tools", tag = "tools", params(Which), responses((status = 200, body = ToolPage)))]
pub(crate) async fn list(
    State(app): State<App>,
    Who(who): Who,
    QueryParams(which): QueryParams<Which>,
) -> Result<Json<ToolPage>, Problem> {
    let limit = limit(which.limit, 100, 1000)?;
    let query = ToolQuery { text: which.text, ..ToolQuery::default() };
    query.check(who.base().tier)?;
    let text = query.text.unwrap_or_default().to_lowercase();
    let wanted = |tool: &ToolDefinition| {
        which.category.is_none_or(|category| tool.category == category)
            && (tool.name.contains(&text) || tool.description.to_lowercase().contains(&text))
    };
    let part = ToolsPart { after: which.after.as_deref(), most: limit + 1 };
    let tools = app.engine.tools().available_part(who.base(), part, wanted).await;
    let next = (tools.len() > limit).then(|| tools[limit - 1].name.to_string());
    let tools = tools.iter().take(limit).map(|tool| tool.shown()).collect();
    Ok(Json(ToolPage { tools, next }))
}

/// A number that may be asked for.
pub(crate) fn limit(asked: Option<u16>, usual: usize, most: usize) -> Result<usize, Problem> {
    match asked.map(usize::from) {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(_) => Err(Problem::bad_request(format!("`limit` must be 1 to {most}"))),
    }
}

/// One tool, by name or alias
#[utoipa::path(
    get, path = "/v1/tools/{name}", tag = "tools", params(("name" = String, Path)),
    responses((status = 200, description = "The tool's definition", body = Object))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Who(who): Who,
    Named(name): Named,
) -> Result<Json<ToolDefinition>, Problem> {
    let unknown = || {
        let name = haft_core::text::one_line(&name, 80);
        Problem::new(ErrorCode::ToolNotFound, format!("There is no tool {name}, or not for you"))
    };
    let definition = app.engine.tools().available_one(who.base(), &name).await.ok_or_else(unknown)?;
    Ok(Json(definition.shown()))
}

/// What is looked for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    /// In words.
    #[schema(max_length = 500)]
    query: String,
    /// Length of the list.
    #[serde(default, deserialize_with = "some_integer")]
    #[schema(minimum = 1, maximum = 100)]
    limit: Option<u16>,
}

/// A tool that was found.
#[derive(Serialize, ToSchema)]
pub(crate) struct Found {
    /// How well it fits; more is better.
    score: f32,
    /// What it says about itself.
    #[schema(value_type = Object)]
    tool: ToolDefinition,
}

/// What was found, best first.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundTools {
    tools: Vec<Found>,
}

/// Tools that fit some words, best first
#[utoipa::path(post, path = "/v1/tools/search", tag = "tools", request_body = Search, responses((status = 200, body = FoundTools)))]
pub(crate) async fn search(
    State(app): State<App>,
    Who(who): Who,
    Taken(search): Taken<Search>,
) -> Result<Json<FoundTools>, Problem> {
    let most = limit(search.limit, 10, 100)?;
    if search.query.chars().count() > 500 {
        return Err(Problem::bad_request("`query` must be 500 characters at most"));
    }
    let mut tools = Vec::new();
    for (score, tool) in app.engine.tools().rank(&search.query, usize::MAX, who.base().tier)? {
        if tools.len() >= most {
            break;
        }
        if app.engine.tools().available_one(who.base(), &tool.name).await.is_some() {
            tools.push(Found { score, tool: tool.shown() });
        }
    }
    Ok(Json(FoundTools { tools }))
}
