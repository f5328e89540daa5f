//! Tools as a model's provider takes them.

use crate::{
    extract::{QueryParams, Who},
    problem::Problem,
    server::App,
};
use axum::{Json, extract::State};
use haft_core::{ErrorCode, ToolDefinition};
use haft_dialect::{Dialect, Remark, export};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// Which tools, and in which form.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Whose form.
    #[param(inline)]
    dialect: DialectName,
    /// Only these tools: names or aliases, with a comma between two. Where absent, those that a model is listed
    /// (`tools.max_listed`).
    #[param(min_length = 1, max_length = 2000, pattern = "^[A-Za-z0-9_]+(,[A-Za-z0-9_]+)*$")]
    names: Option<String>,
}

/// Characters of a list of names. A longer one would not leave room for the rest of a request's head.
const LONGEST: usize = 2000;

/// A form of definitions.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DialectName {
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Anthropic,
    Gemini,
    Mcp,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::OpenAiChat => Dialect::OpenAiChat,
            DialectName::OpenAiResponses => Dialect::OpenAiResponses,
            DialectName::Anthropic => Dialect::Anthropic,
            DialectName::Gemini => Dialect::Gemini,
            DialectName::Mcp => Dialect::Mcp,
        }
    }
}

/// Tools in the form of a provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct Definitions {
    /// What goes under `tools` in a request to the provider.
    #[schema(value_type = Vec<Object>)]
    tools: Value,
    /// Parameters that have another name in this form: by the tool's name here, from the name here to the tool's own.
    /// Put the own names back before you make the call.
    renamed: BTreeMap<String, BTreeMap<String, String>>,
    /// What else this form cannot say. haft checks every call against the whole definition.
    remarks: Vec<RemarkBody>,
    /// How many tools I may call that are not in the list. A model finds them with `search_tools`.
    unlisted: usize,
}

/// One change of a definition.
#[derive(Serialize, ToSchema)]
pub(crate) struct RemarkBody {
    /// The tool; empty where the whole list is meant.
    tool: String,
    /// JSON pointer into its definition.
    pointer: String,
    /// The kind of change, such as `renamed` or `loosened`.
    change: &'static str,
    /// What became of it.
    what: String,
    /// Why it could not stay.
    why: String,
}

impl From<Remark> for RemarkBody {
    fn from(remark: Remark) -> Self {
        let Remark { tool, pointer, change, what, why } = remark;
        RemarkBody { tool, pointer, change: change.name(), what, why }
    }
}

/// Tools that I may call, as a model's provider takes them
#[utoipa::path(
    get, path = "/v1/definitions", tag = "tools", params(Which), responses((status = 200, body = Definitions))
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(who): Who,
    QueryParams(which): QueryParams<Which>,
) -> Result<Json<Definitions>, Problem> {
    let available = app.engine.tools().available(who.base()).await;
    let chosen = match &which.names {
        None => app.engine.tools().listed(who.base()).await,
        Some(names) => chosen(&app, &available, names)?,
    };
    let export = export(which.dialect.into(), chosen.iter().map(|definition| &**definition));
    let unlisted = available.len().saturating_sub(chosen.len());
    Ok(Json(Definitions {
        tools: export.to_value(),
        renamed: export.renamed_parameters(),
        remarks: export.remarks.into_iter().map(RemarkBody::from).collect(),
        unlisted,
    }))
}

/// The tools of that list of names, each once.
fn chosen(
    app: &App,
    available: &[Arc<ToolDefinition>],
    names: &str,
) -> Result<Vec<Arc<ToolDefinition>>, Problem> {
    if names.chars().count() > LONGEST {
        return Err(Problem::bad_request(format!("`names` must be {LONGEST} characters at most")));
    }
    let mut chosen: BTreeMap<&str, Arc<ToolDefinition>> = BTreeMap::new();
    for name in names.split(',') {
        let found = app.engine.definition(name);
        let found = found.and_then(|known| available.iter().find(|one| one.name == known.name));
        let definition = found.ok_or_else(|| {
            let name = haft_core::text::one_line(name, 80);
            Problem::new(ErrorCode::ToolNotFound, format!("There is no tool {name}, or not for you"))
        })?;
        chosen.insert(&definition.name, Arc::clone(definition));
    }
    Ok(chosen.into_values().collect())
}
