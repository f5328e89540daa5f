//! What went wrong, as RFC 9457 has it: `application/problem+json` with the code of the error table.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use haft_core::{BadOption, ErrorCode, Problem as Single, ToolError, ToolResult, port::StoreError};
use haft_engine::ApprovalError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// The media type of what went wrong.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// What went wrong.
#[derive(Debug)]
pub(crate) struct Problem(Box<Facts>);

#[derive(Debug)]
struct Facts {
    status: StatusCode,
    code: ErrorCode,
    detail: Cow<'static, str>,
    problems: Vec<Single>,
    data: Option<Value>,
    result: Option<Box<ToolResult>>,
    /// Who asks must say who they are, and how.
    challenge: Option<HeaderValue>,
    /// After how many seconds to ask again.
    come_again: Option<u32>,
}

/// What went wrong (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Body<'a> {
    /// Always `about:blank`: the code says what it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// In general.
    title: &'static str,
    /// The HTTP status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// In this case.
    detail: &'a str,
    /// The row of the error table.
    #[schemars(example = &"NOT_FOUND")]
    code: ErrorCode,
    /// The number in the E3000 range.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<&'static str>,
    /// Whether the same request may succeed when sent again unchanged.
    retryable: bool,
    /// The single problems.
    #[serde(skip_serializing_if = "<[Single]>::is_empty")]
    problems: &'a [Single],
    /// Facts for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    /// The whole result, where it is a call that did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a ToolResult>,
}

impl Problem {
    /// The problem of that row of the table, in these words.
    pub(crate) fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Problem(Box::new(Facts {
            status: StatusCode::from_u16(code.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code,
            detail: detail.into(),
            problems: Vec::new(),
            data: None,
            result: None,
            challenge: None,
            come_again: None,
        }))
    }

    /// A request that cannot be understood.
    pub(crate) fn bad_request(detail: impl Into<Cow<'static, str>>) -> Self {
        Problem::new(ErrorCode::BadRequest, detail)
    }

    /// There is no such resource, or another tenant has it: the answer is the same.
    pub(crate) fn not_found(what: &'static str) -> Self {
        Problem::new(ErrorCode::NotFound, format!("There is no such {what}"))
    }

    /// The request has no valid credentials.
    pub(crate) fn unauthenticated(detail: &'static str, challenge: HeaderValue) -> Self {
        let mut problem = Problem::new(ErrorCode::Unauthenticated, detail);
        problem.0.challenge = Some(challenge);
        problem
    }

    /// This problem with another status than the table's: for what HTTP itself has a status for.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// This problem with the number of seconds after which to ask again.
    pub(crate) fn come_again(mut self, seconds: u32) -> Self {
        self.0.come_again = Some(seconds);
        self
    }

    /// This problem with when to ask again, where this server ends: mostly another one begins.
    fn at_the_end(self) -> Self {
        if self.0.code == ErrorCode::ShuttingDown { self.come_again(1) } else { self }
    }

    /// What it says of an error.
    pub(crate) fn info(&self) -> haft_core::ErrorInfo {
        let facts = &*self.0;
        haft_core::ErrorInfo {
            code: facts.code,
            number: facts.code.e_number().map(str::to_owned),
            message: facts.detail.to_string(),
            retryable: facts.code.is_retryable(),
            problems: facts.problems.clone(),
            data: facts.data.clone().map(Box::new),
        }
    }

    /// This problem with a list of single problems.
    pub(crate) fn with_problems(mut self, problems: Vec<Single>) -> Self {
        self.0.problems = problems;
        self
    }

    /// A call that did not succeed, where the table has another status for it than 200.
    pub(crate) fn of_result(result: ToolResult) -> Result<ToolResult, Self> {
        let Some(error) = result.error.as_deref() else { return Ok(result) };
        let status = StatusCode::from_u16(error.code.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_success() {
            return Ok(result);
        }
        let mut problem = Problem::new(error.code, error.message.clone()).at_the_end();
        problem.0.problems.clone_from(&error.problems);
        problem.0.data = error.data.as_deref().cloned();
        problem.0.result = Some(Box::new(result));
        Err(problem)
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        if let Some(diagnostics) = &error.diagnostics {
            tracing::warn!(code = error.code.as_str(), %diagnostics, "a request could not be answered");
        }
        let mut problem = Problem::new(error.code, error.message).at_the_end();
        problem.0.problems = error.problems;
        problem.0.data = error.data.map(|data| *data);
        problem
    }
}

impl From<BadOption> for Problem {
    fn from(bad: BadOption) -> Self {
        Problem::bad_request(bad.0)
    }
}

impl From<ApprovalError> for Problem {
    fn from(error: ApprovalError) -> Self {
        ToolError::from(error).into()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        // What the store says is for the operator: it may name places.
        tracing::warn!(%error, "the store could not be asked");
        Problem::new(ErrorCode::StoreUnavailable, "The database is not available now. Try again later")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let facts = *self.0;
        let body = Body {
            kind: "about:blank",
            title: facts.code.model_text(),
            status: facts.status.as_u16(),
            detail: &facts.detail,
            code: facts.code,
            number: facts.code.e_number(),
            retryable: facts.code.is_retryable(),
            problems: &facts.problems,
            data: facts.data.as_ref(),
            result: facts.result.as_deref(),
        };
        let text = serde_json::to_vec(&body).unwrap_or_else(|error| {
            tracing::error!(%error, "a problem could not be written");
            b"{}".to_vec()
        });
        let mut response = (facts.status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(challenge) = facts.challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = facts.come_again {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
