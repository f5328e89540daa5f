//! HTTP tools: any HTTP service as a tool.
//!
//! A definition whose source is `http` says in its `http` table where a request goes and where each argument stands in
//! it. The request goes through [`ToolCtx::http`], which decides on hosts and addresses.

mod request;

use crate::commands::Variables;
use haft_core::{
    DefinitionProblem, ErrorCode, Footprint, HttpSource, IsolationLevel, Resource, Source, ToolDefinition,
    ToolError, ToolOutput, text,
};
use haft_sdk::{
    Args, Prepared, Tool, ToolCtx, ToolFuture,
    capability::{HttpRequest, HttpResponse},
};
use request::Wanted;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The header that carries the name of the effect, so that a service can tell a second try from a second wish.
pub const EFFECT_HEADER: &str = "Idempotency-Key";

/// An HTTP service as a tool.
///
/// ```
/// use haft_core::{HttpSource, Source, ToolDefinition};
/// use haft_sdk::Tool;
/// let mut definition = ToolDefinition::new("weather", "Says how the weather is");
/// definition.source = Source::Http;
/// definition.http = Some(Box::new(HttpSource::new("https://weather.example.com/now")));
/// let tool = haft_tools::HttpTool::new(definition, haft_tools::commands::Variables::default())?;
/// assert_eq!(tool.definition().name, "weather");
/// # Ok::<(), haft_core::DefinitionProblem>(())
/// ```
#[derive(Clone, Debug)]
pub struct HttpTool {
    definition: Arc<ToolDefinition>,
    http: Arc<HttpSource>,
    variables: Variables,
}

impl HttpTool {
    /// The tool of that definition. Headers take the values of `env:NAME` from these variables.
    ///
    /// # Errors
    ///
    /// Its source is not `http`, or it names no address.
    pub fn new(mut definition: ToolDefinition, variables: Variables) -> Result<Self, DefinitionProblem> {
        let (Source::Http, Some(http)) = (definition.source, &definition.http) else {
            return Err(DefinitionProblem {
                place: "http".to_owned(),
                problem: format!("`{}` names no address", text::one_line(&definition.name, 80)),
                fix: "set source to `http`, and add a table `http` with `url`".to_owned(),
            });
        };
        let http = Arc::new(HttpSource::clone(http));
        // No code of somebody else's runs here: only the request leaves.
        definition.constraints.required_isolation = IsolationLevel::None;
        Ok(HttpTool { definition: Arc::new(definition), http, variables })
    }

    /// The value of a header: as it stands there, or where it is kept.
    fn header(&self, value: &str) -> Result<String, ToolError> {
        let unusable = |what: String| ToolError::new(ErrorCode::ToolDisabled, what);
        if let Some(name) = value.strip_prefix("env:") {
            return self.variables.get(name).ok_or_else(|| {
                let tool = &self.definition.name;
                unusable(format!("`{tool}` needs the environment variable {}", text::one_line(name, 80)))
            });
        }
        let Some(path) = value.strip_prefix("file:") else { return Ok(value.to_owned()) };
        let kept = std::fs::read_to_string(path).map_err(|error| {
            let tool = &self.definition.name;
            unusable(format!("`{tool}` needs a header from a file that cannot be read"))
                .with_diagnostics(format!("{path}: {error}"))
        })?;
        Ok(kept.lines().next().unwrap_or_default().trim().to_owned())
    }
}

impl Tool for HttpTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        let wanted = request::wanted(&self.http, &args.value)?;
        Ok(Box::new(HttpArguments { tool: self.clone(), wanted }))
    }
}

struct HttpArguments {
    tool: HttpTool,
    wanted: Wanted,
}

impl Prepared for HttpArguments {
    fn confirm(&self) -> Option<String> {
        None
    }

    fn footprint(&self) -> Footprint {
        let host = self.tool.http.host().map(Resource::Host);
        match self.tool.definition.has_side_effects() {
            true => Footprint::writes(host),
            false => Footprint::reads(host),
        }
    }

    fn summary(&self) -> String {
        let body = self.wanted.body.as_ref().map(|(_, body)| format!(" {}", String::from_utf8_lossy(body)));
        let method = self.tool.http.method.as_str();
        format!("{}: {method} {}{}", self.tool.definition.name, self.wanted.url, body.unwrap_or_default())
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture {
        Box::pin(async move {
            let HttpArguments { tool, wanted: Wanted { url, body } } = *self;
            let own = tool.clone();
            let mut headers = cx.blocking(move |_| own.headers()).await?;
            let mut add = |name: &str, value: String| {
                if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                    headers.push((name.to_owned(), value));
                }
            };
            add("Accept", "application/json, text/*;q=0.9, */*;q=0.1".to_owned());
            if tool.definition.has_side_effects() {
                add(EFFECT_HEADER, cx.execution_id().to_string());
            }
            for (name, value) in cx.passed_on().headers()? {
                add(name, value);
            }
            let body = body.map(|(kind, body)| {
                add("Content-Type", kind.to_owned());
                body
            });
            let method = tool.http.method.as_str().to_owned();
            let request = HttpRequest { method, url, headers, body: body.unwrap_or_default() };
            let outcome = cx.http().send(request).await.and_then(answered);
            outcome.map_err(|error| transient(error, tool.may_run_twice()))
        })
    }
}

impl HttpTool {
    /// Whether the same request may be sent twice.
    fn may_run_twice(&self) -> bool {
        !self.definition.has_side_effects() || self.definition.idempotent
    }

    fn headers(&self) -> Result<Vec<(String, String)>, ToolError> {
        self.http.headers.iter().map(|(name, value)| Ok((name.clone(), self.header(value)?))).collect()
    }
}

/// What an answer is: JSON as a value, anything else as text, and an error where the service says so.
fn answered(response: HttpResponse) -> Result<ToolOutput, ToolError> {
    let header = |name: &str| {
        let found = response.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    let status = response.status;
    let said = String::from_utf8_lossy(&response.body);
    if (200..300).contains(&status) {
        let kind = header("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let is_json =
            kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json");
        return Ok(match haft_core::json::parse(&said) {
            Ok(value) if is_json => ToolOutput::structured(value),
            _ => ToolOutput::text(said),
        });
    }
    if (300..400).contains(&status) {
        let to = text::one_line(header("location").unwrap_or("nowhere"), 300);
        let text = format!(
            "The service answered {status}, and points to {to}. haft follows no redirects: \
             the tool's definition has to name the address itself"
        );
        return Err(ToolError::new(ErrorCode::ExecutionFailed, text));
    }
    let code = match status {
        429 => ErrorCode::RateLimited,
        502..=504 => ErrorCode::UpstreamUnavailable,
        _ => ErrorCode::ExecutionFailed,
    };
    // A service that says what is wrong as a JSON object is heard as it spoke.
    let error = match serde_json::from_str::<Map<String, Value>>(said.trim()) {
        Ok(_) => ToolError::new(code, said.trim()),
        Err(_) if said.trim().is_empty() => ToolError::new(code, format!("The service answered {status}")),
        Err(_) => ToolError::new(code, format!("The service answered {status}: {}", said.trim())),
    };
    let mut data = json!({"httpStatus": status});
    if let (429 | 502..=504, Some(after)) = (status, header("retry-after").and_then(seconds)) {
        data["retryAfterMs"] = after.saturating_mul(1000).into();
    }
    Err(ToolError { data: Some(Box::new(data)), ..error })
}

/// The seconds of `Retry-After`. A date there is not believed: the clocks may differ.
fn seconds(value: &str) -> Option<u64> {
    value.trim().parse().ok()
}

/// An error that passes with time says so only where the request may be sent twice, or never reached the service. A
/// caller that sends again what may have taken effect would have the effect twice.
fn transient(error: ToolError, may_run_twice: bool) -> ToolError {
    let was_sent = error.data.as_ref().and_then(|data| data.get("reached")) != Some(&Value::Bool(false));
    match error.code == ErrorCode::UpstreamUnavailable && was_sent && !may_run_twice {
        true => ToolError { code: ErrorCode::ExecutionFailed, ..error },
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, kind: &str, body: &str) -> Result<ToolOutput, ToolError> {
        answered(HttpResponse {
            status,
            headers: vec![("content-type".into(), kind.into()), ("location".into(), "http://x/".into())],
            body: body.into(),
        })
    }

    #[test]
    fn an_answer_is_a_value_a_text_or_an_error() {
        let value = json!({"a": 1});
        for kind in ["application/json; charset=utf-8", "application/problem+json", "Application/JSON"] {
            assert_eq!(answer(200, kind, "{\"a\": 1}").unwrap().structured, Some(value.clone()), "{kind}");
        }
        assert_eq!(answer(200, "text/plain", "{\"a\": 1}").unwrap().text.as_deref(), Some("{\"a\": 1}"));
        assert_eq!(answer(200, "application/json", "no").unwrap().text.as_deref(), Some("no"));
        assert_eq!(answer(404, "application/json", " {\"e\":1}\n").unwrap_err().message, "{\"e\":1}");
        assert_eq!(answer(500, "text/plain", "oh").unwrap_err().message, "The service answered 500: oh");
        assert_eq!(answer(500, "text/plain", "").unwrap_err().message, "The service answered 500");
        assert_eq!(answer(429, "", "").unwrap_err().code, ErrorCode::RateLimited);
        for status in [502, 503, 504] {
            assert_eq!(answer(status, "", "").unwrap_err().code, ErrorCode::UpstreamUnavailable);
        }
        let redirect = answer(302, "", "").unwrap_err();
        assert!(redirect.message.contains("points to http://x/"), "{}", redirect.message);
        assert_eq!(answer(404, "", "").unwrap_err().data, Some(Box::new(json!({"httpStatus": 404}))));
    }

    #[test]
    fn retry_after_of_429_and_503_is_passed_on_in_milliseconds() {
        let said = |status, after: &str| {
            let headers = vec![("Retry-After".into(), after.into())];
            let error = answered(HttpResponse { status, headers, body: Vec::new() }).unwrap_err();
            error.data.unwrap().get("retryAfterMs").and_then(Value::as_u64)
        };
        assert_eq!((said(429, "2"), said(503, " 3 "), said(404, "2")), (Some(2000), Some(3000), None));
        assert_eq!(said(429, "Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }

    #[test]
    fn what_may_have_taken_effect_is_not_called_retryable() {
        let broke = |reached: bool| {
            ToolError::from(ErrorCode::UpstreamUnavailable).with_data(json!({"reached": reached}))
        };
        assert_eq!(transient(broke(true), false).code, ErrorCode::ExecutionFailed);
        assert_eq!(transient(broke(false), false).code, ErrorCode::UpstreamUnavailable);
        assert_eq!(transient(broke(true), true).code, ErrorCode::UpstreamUnavailable);
    }
}
