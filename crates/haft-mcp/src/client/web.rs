//! A server over HTTP. Every request goes through the gate, which decides on hosts and addresses.

use super::{
    connection::{Begin, Connection, LONGEST_MESSAGE},
    upstreams::Shared,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use haft_core::{ErrorCode, McpSource, ToolError, text};
use haft_sdk::capability::{Http, HttpBody, HttpRequest, HttpStream};
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::{
    ErrorData,
    model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpClientTransport,
        StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};
use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, PoisonError},
};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "Mcp-Session-Id";
/// The most that is read of an answer that says what went wrong.
const LONGEST_REFUSAL: usize = 64 << 10;

/// Begins a conversation with a server over HTTP.
pub(super) async fn connect(
    shared: &Shared,
    server: &McpSource,
) -> Result<Result<Connection, String>, ToolError> {
    let url = server.url.as_deref().unwrap_or_default();
    let gate = Gate {
        http: Arc::clone(&shared.reach.http),
        own: headers(shared, server).await?.into(),
        refused: Arc::default(),
    };
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_sse_event_size(LONGEST_MESSAGE)
        // Another session may have other tools: it is begun again, and they are compared.
        .reinit_on_expired_session(false);
    let transport = || StreamableHttpClientTransport::with_client(gate.clone(), config.clone());
    let mut begun = Connection::begin(server, transport(), Begin::Any).await;
    let was_reached = gate.refused.lock().unwrap_or_else(PoisonError::into_inner).is_none();
    if begun.is_err() && was_reached {
        // Some servers of earlier revisions answer anything with an empty object. Once more, as they expect it.
        begun = Connection::begin(server, transport(), Begin::Initialize).await;
    }
    match begun {
        Ok(connection) => Ok(Ok(connection)),
        // What the gate refused is said in its own words.
        Err(why) => match gate.refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(refused) if refused.code == ErrorCode::NetworkPolicyViolation => Err(refused),
            Some(refused) => Ok(Err(refused.message)),
            None => Ok(Err(why)),
        },
    }
}

/// The server's own headers, with secrets from where they are kept.
async fn headers(shared: &Shared, server: &McpSource) -> Result<Vec<(String, String)>, ToolError> {
    let name = text::one_line(&server.server, 80);
    let unusable = |what: String| ToolError::new(ErrorCode::ToolDisabled, what);
    let mut headers = Vec::new();
    for (header, value) in &server.headers {
        let value = if let Some(variable) = value.strip_prefix("env:") {
            (shared.settings.secret)(variable).ok_or_else(|| {
                let variable = text::one_line(variable, 80);
                unusable(format!("The MCP server `{name}` needs the environment variable {variable}"))
            })?
        } else if let Some(path) = value.strip_prefix("file:") {
            let own = path.to_owned();
            let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(own)).await;
            let kept = read
                .map_err(|error| error.to_string())
                .and_then(|read| read.map_err(|error| error.to_string()));
            let kept = kept.map_err(|error| {
                unusable(format!("The MCP server `{name}` needs a header from a file that cannot be read"))
                    .with_diagnostics(format!("{path}: {error}"))
            })?;
            kept.lines().next().unwrap_or_default().trim().to_owned()
        } else {
            value.clone()
        };
        headers.push((header.clone(), value));
    }
    Ok(headers)
}

/// The protocol library's way out, through the gate.
#[derive(Clone)]
struct Gate {
    http: Arc<dyn Http>,
    own: Arc<[(String, String)]>,
    /// What it refused last, to say why a conversation did not begin.
    refused: Arc<std::sync::Mutex<Option<ToolError>>>,
}

/// What the gate said of one request.
#[derive(Debug, thiserror::Error)]
#[error("{said}")]
pub(super) struct GateError {
    said: String,
    /// Whether the server got nothing of it.
    unreached: bool,
}

impl GateError {
    fn of(error: &ToolError) -> Self {
        let data = error.data.as_ref();
        let unreached = data.is_some_and(|data| data.get("reached") == Some(&serde_json::Value::Bool(false)))
            || error.code == ErrorCode::NetworkPolicyViolation;
        GateError { said: error.message.clone(), unreached }
    }

    /// Under way, so the server may have got all of it.
    fn under_way(said: impl Into<String>) -> Self {
        GateError { said: said.into(), unreached: false }
    }
}

/// Why a request never got to its server, where that is certain. It is asked of the request's own error: others of the
/// same server may have failed in other ways.
pub(super) fn not_sent(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    match error.downcast_ref::<StreamableHttpError<GateError>>()? {
        StreamableHttpError::Client(gate) if gate.unreached => Some(gate.said.clone()),
        _ => None,
    }
}

type Answer<T> = Result<T, StreamableHttpError<GateError>>;

impl Gate {
    async fn open(
        &self,
        method: &str,
        url: &str,
        more: Vec<(&str, String)>,
        custom: HashMap<HeaderName, HeaderValue>,
        body: Vec<u8>,
    ) -> Answer<HttpStream> {
        let mut headers: Vec<(String, String)> =
            more.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for (name, value) in &custom {
            let value = value.to_str().map_err(|_| unexpected("a header of the protocol is not text"))?;
            headers.push((name.as_str().to_owned(), value.to_owned()));
        }
        // What the protocol says counts more than what the definition says.
        for (name, value) in self.own.iter() {
            if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                headers.push((name.clone(), value.clone()));
            }
        }
        let request = HttpRequest { method: method.to_owned(), url: url.to_owned(), headers, body };
        self.http.open(request).await.map_err(|error| {
            let said = GateError::of(&error);
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            StreamableHttpError::Client(said)
        })
    }
}

fn unexpected(what: impl Into<Cow<'static, str>>) -> StreamableHttpError<GateError> {
    StreamableHttpError::UnexpectedServerResponse(what.into())
}

fn header<'a>(answer: &'a HttpStream, name: &str) -> Option<&'a str> {
    let found = answer.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

fn is_kind(answer: &HttpStream, kind: &str) -> bool {
    header(answer, "content-type").is_some_and(|said| said.to_ascii_lowercase().starts_with(kind))
}

/// A body as a whole, unless it is longer than that.
async fn whole(body: &mut Box<dyn HttpBody>, most: usize) -> Answer<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) =
        body.next().await.map_err(|error| StreamableHttpError::Client(GateError::under_way(error.message)))?
    {
        if bytes.len() + piece.len() > most {
            return Err(unexpected(format!("it is longer than {most} bytes")));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

impl StreamableHttpClient for Gate {
    type Error = GateError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<StreamableHttpPostResponse> {
        let body = serde_json::to_vec(&message)?;
        let mut more = vec![("Content-Type", JSON.to_owned()), ("Accept", format!("{JSON}, {EVENTS}"))];
        let had_session = session_id.is_some();
        more.extend(session_id.map(|session| (SESSION, session.to_string())));
        let mut answer = self.open("POST", &uri, more, custom_headers, body).await?;
        let status = StatusCode::from_u16(answer.status).map_err(|_| unexpected("its status is none"))?;
        let expects_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if had_session => return Err(StreamableHttpError::SessionExpired),
            StatusCode::UNAUTHORIZED => {
                let asked =
                    header(&answer, "www-authenticate").unwrap_or("it wants to know who asks").to_owned();
                let asked = AuthRequiredError::new(text::one_line(&asked, 300));
                return Err(StreamableHttpError::AuthRequired(asked));
            }
            _ => {}
        }
        if !status.is_success() {
            return refusal(&message, had_session, status, answer).await;
        }
        let session = header(&answer, SESSION).map(str::to_owned);
        if is_kind(&answer, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(answer.body, LONGEST_MESSAGE), session));
        }
        if !expects_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is_kind(&answer, JSON) {
            let kind = header(&answer, "content-type").map(str::to_owned);
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let body = whole(&mut answer.body, LONGEST_MESSAGE).await?;
        let message: ServerJsonRpcMessage = serde_json::from_slice(&body)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<()> {
        let more = vec![(SESSION, session_id.to_string())];
        let answer = self.open("DELETE", &uri, more, custom_headers, Vec::new()).await?;
        // A server need not end sessions on request.
        match answer.status {
            200..300 | 404 | 405 => Ok(()),
            other => Err(unexpected(format!("the session was not ended: HTTP {other}"))),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<BoxStream<'static, Result<Sse, SseError>>> {
        let mut more = vec![("Accept", EVENTS.to_owned())];
        more.extend(session_id.map(|session| (SESSION, session.to_string())));
        more.extend(last_event_id.map(|last| ("Last-Event-ID", last)));
        let answer = self.open("GET", &uri, more, custom_headers, Vec::new()).await?;
        match answer.status {
            405 => return Err(StreamableHttpError::ServerDoesNotSupportSse),
            404 => return Err(StreamableHttpError::SessionExpired),
            200..300 if is_kind(&answer, EVENTS) => {}
            200..300 => {
                let kind = header(&answer, "content-type").map(str::to_owned);
                return Err(StreamableHttpError::UnexpectedContentType(kind));
            }
            status => return Err(StreamableHttpError::HttpStatus(HttpStatusError::new(status, None))),
        }
        Ok(events(answer.body, LONGEST_MESSAGE))
    }
}

/// An answer that refuses. What it says as JSON-RPC is an answer of the protocol; anything else is a failure, but for a
/// first question that an older server does not know.
async fn refusal(
    message: &ClientJsonRpcMessage,
    had_session: bool,
    status: StatusCode,
    mut answer: HttpStream,
) -> Answer<StreamableHttpPostResponse> {
    let body = whole(&mut answer.body, LONGEST_REFUSAL).await.unwrap_or_default();
    let said = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok();
    let said = said.and_then(|said| match said {
        ServerJsonRpcMessage::Error(error) => Some(error.error),
        _ => None,
    });
    if let ClientJsonRpcMessage::Request(request) = message {
        let is_first = matches!(request.request, ClientRequest::DiscoverRequest(_)) && !had_session;
        let is_old = is_first && status.is_client_error() && status != StatusCode::FORBIDDEN;
        let error = said.or_else(|| {
            is_old.then(|| {
                ErrorData::invalid_request(format!("server/discover is not known: HTTP {status}"), None)
            })
        });
        if let Some(error) = error {
            let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
    }
    let words = text::one_line(&String::from_utf8_lossy(&body), 300);
    Err(unexpected(format!("HTTP {status}: {words}")))
}

/// Events as they come, none of them longer than that.
fn events(body: Box<dyn HttpBody>, most: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let pieces =
        stream::unfold((body, EventSize::default(), false), move |(mut body, mut size, failed)| async move {
            if failed {
                return None;
            }
            let piece = match body.next().await {
                Ok(None) => return None,
                Ok(Some(piece)) if size.stays_below(most, &piece) => Ok(Bytes::from(piece)),
                Ok(Some(_)) => Err(GateError::under_way(format!("an event is longer than {most} bytes"))),
                Err(error) => Err(GateError::under_way(error.message)),
            };
            let failed = piece.is_err();
            Some((piece, (body, size, failed)))
        });
    SseStream::from_bytes_stream(pieces.boxed()).boxed()
}

/// How long the event is that is being read.
#[derive(Default)]
struct EventSize {
    event: usize,
    line: usize,
    after_return: bool,
}

impl EventSize {
    fn stays_below(&mut self, most: usize, piece: &[u8]) -> bool {
        for byte in piece {
            self.event += 1;
            // Both together end one line.
            let is_rest = *byte == b'\n' && self.after_return;
            self.after_return = *byte == b'\r';
            match byte {
                _ if is_rest => {}
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => self.line += 1,
            }
            if self.event > most {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_size_and_a_stream_has_none() {
        let mut size = EventSize::default();
        for _ in 0..1000 {
            assert!(size.stays_below(20, b"data: 12345\n\n"));
            assert!(size.stays_below(20, b"data: 12345\r\n\r\n"));
        }
        assert!(!size.stays_below(20, b"data: 1234567890123456"));
        let mut size = EventSize::default();
        assert!(!(0..10).all(|_| size.stays_below(20, b"data: 1\n")), "lines of one event count together");
        let mut size = EventSize::default();
        assert!(!(0..10).all(|_| size.stays_below(20, b"data: 1\r\n")));
    }
}
