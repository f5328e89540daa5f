//! Outputs that were too long for a result.

use crate::{
    extract::{Named, QueryParams, Who},
    problem::Problem,
    server::App,
};
use axum::{
    Json,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use haft_core::{
    OutputHandle,
    port::{OutputRange, OutputSearch},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::tools::limit;

/// Bytes of one answer.
const MOST: u64 = 4 << 20;

/// Which part.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// The first byte.
    #[param(minimum = 0)]
    offset: Option<u64>,
    /// The most bytes to return, at most 4 MiB.
    #[param(minimum = 1, maximum = 4194304)]
    length: Option<u64>,
}

/// A part of a stored output, as it is
///
/// `Haft-Output-Total` has the bytes of the whole.
#[utoipa::path(
    get, path = "/v1/outputs/{handle}", tag = "outputs", params(("handle" = String, Path), Part),
    responses((status = 200, description = "The bytes", body = String, content_type = "application/octet-stream",
        headers(("Haft-Output-Total" = u64, description = "Bytes of the whole"))))
)]
pub(crate) async fn read(
    State(app): State<App>,
    Who(who): Who,
    Named(handle): Named,
    QueryParams(part): QueryParams<Part>,
) -> Result<Response, Problem> {
    let length = part.length.unwrap_or(MOST);
    if !(1..=MOST).contains(&length) {
        return Err(Problem::bad_request(format!("`length` must be 1 to {MOST}")));
    }
    // What a database counts with ends there.
    let offset = part.offset.unwrap_or(0);
    if i64::try_from(offset).is_err() {
        return Err(Problem::bad_request("`offset` is beyond any output"));
    }
    let handle = OutputHandle::from_text(handle);
    let found =
        app.engine.store().for_tenant(who.tenant()).output(&handle, OutputRange { offset, length }).await?;
    let (bytes, total) = found.ok_or_else(|| Problem::not_found("output"))?;
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("haft-output-total", HeaderValue::from(total));
    Ok(response)
}

/// Which lines.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Lines {
    /// The first line to look at, from 1.
    #[param(minimum = 1)]
    from: Option<u64>,
    /// Only lines that match this regular expression.
    #[param(max_length = 1000)]
    pattern: Option<String>,
    /// The most lines to return.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// One line.
#[derive(Serialize, ToSchema)]
pub(crate) struct Line {
    /// Its number, from 1.
    number: u64,
    /// Its text; bytes that are no text are replaced.
    text: String,
}

/// Lines of a stored output.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoundLines {
    lines: Vec<Line>,
    /// Where to go on: the parameter `from`.
    #[schema(required = true)]
    next: Option<u64>,
    /// Bytes of the whole.
    total: u64,
}

/// Lines of a stored output, by number or by what is in them
#[utoipa::path(
    get, path = "/v1/outputs/{handle}/lines", tag = "outputs", params(("handle" = String, Path), Lines),
    responses((status = 200, body = FoundLines))
)]
pub(crate) async fn lines(
    State(app): State<App>,
    Who(who): Who,
    Named(handle): Named,
    QueryParams(asked): QueryParams<Lines>,
) -> Result<Json<FoundLines>, Problem> {
    let is_line = |from: u64| from > 0 && i64::try_from(from).is_ok();
    if !asked.from.is_none_or(is_line)
        || asked.pattern.as_ref().is_some_and(|pattern| pattern.chars().count() > 1000)
    {
        return Err(Problem::bad_request(
            "`from` must be a line, from 1 on, and `pattern` have 1000 characters at most",
        ));
    }
    let handle = OutputHandle::from_text(handle);
    let store = app.engine.store().for_tenant(who.tenant());
    // Whether it is there comes first: what is wrong with a pattern is told to those who may read.
    let is_there = store.output(&handle, OutputRange { offset: 0, length: 1 }).await?;
    is_there.ok_or_else(|| Problem::not_found("output"))?;
    let search = OutputSearch {
        from_line: asked.from.unwrap_or(1),
        pattern: asked.pattern,
        max_lines: limit(asked.limit, 200, 1000)?,
        ..OutputSearch::default()
    };
    let has_pattern = search.pattern.is_some();
    let found = match store.search_output(&handle, search).await {
        Err(error) if has_pattern => {
            tracing::debug!(%error, "a search was refused");
            return Err(Problem::bad_request(
                "`pattern` is not a regular expression that can be searched for",
            ));
        }
        found => found?.ok_or_else(|| Problem::not_found("output"))?,
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Json(FoundLines {
        lines: found.lines.into_iter().map(|(number, bytes)| Line { number, text: text(bytes) }).collect(),
        next: found.next_line,
        total: found.total,
    }))
}
