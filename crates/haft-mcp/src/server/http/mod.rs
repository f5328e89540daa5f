//! The way in through HTTP: a service to be mounted, and a listener for one machine.
//!
//! ```no_run
//! use haft_mcp::server::{McpServer, http::{HttpOptions, Token, listen, service}};
//! # async fn serve(server: McpServer, owner: std::sync::Arc<haft_core::CallContext>) -> std::io::Result<()> {
//! let token = Token::random(owner);
//! println!("Authorization: Bearer {}", token.as_str());
//! let guarded = token.guard(service(&server, HttpOptions::default()));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8787").await?;
//! listen(listener, guarded, Default::default()).await
//! # }
//! ```
//!
//! # What stands before a request
//!
//! - The `Host` header must name this machine, or one of [`HttpOptions::hosts`]: a web page that lets its own name lead
//!   here is refused. An `Origin`, which browsers send, must be one of [`HttpOptions::origins`].
//! - Who asks is found by whatever is mounted around the service ([`Caller`] in the request's extensions), or is
//!   always the same ([`Callers::One`]).
//! - Sessions have [bounds](SessionLimits): of one caller, of one tenant, in all.
//! - A session (up to 2025-11-25) belongs to the caller that began it: its id carries a seal over the caller. For
//!   anybody else it is not there.

mod listener;
mod owned;
mod sessions;
mod token;

pub use listener::listen;
pub use sessions::SessionLimits;
pub use token::{Guarded, Token};

use super::{
    builder::McpServer,
    callers::Caller,
    callers::Callers,
    refusal::{Refusal, To, refusal},
};
use ::http::{Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use haft_http::{Bodies, BodyLimits, BodyProblem, Full as NoRoom};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use owned::Owners;
use rmcp::{
    ErrorData,
    model::ServerJsonRpcMessage,
    transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService},
};
use sessions::{Beginning, Sessions};
use std::{
    convert::Infallible,
    fmt::Display,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// What is answered.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

/// How a service behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Names and `name:port` that the `Host` header may have. By default those of this machine's loopback.
    pub hosts: Vec<String>,
    /// What the `Origin` header may be where there is one, such as `https://app.example.com:443` or
    /// `http://localhost:*`. By default none.
    pub origins: Vec<String>,
    /// The most bytes of a request.
    pub max_body_bytes: usize,
    /// How many sessions (up to 2025-11-25) there may be.
    pub sessions: SessionLimits,
    /// Ends everything.
    pub stop: CancellationToken,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            hosts: ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec(),
            origins: Vec::new(),
            max_body_bytes: 4 << 20,
            sessions: SessionLimits::default(),
            stop: CancellationToken::new(),
        }
    }
}

/// A server as a service over HTTP: mount it at one path, such as `/mcp`.
pub fn service(server: &McpServer, options: HttpOptions) -> HttpService {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(options.hosts)
        .with_allowed_origins(options.origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(options.max_body_bytes)
        .with_json_response(true)
        .with_cancellation_token(options.stop);
    let (sessions, bounds) = (server.clone(), Arc::new(Sessions::new(options.sessions)));
    let service = StreamableHttpService::new(move || Ok(sessions.session()), Arc::clone(&bounds), config);
    let bodies = Bodies::new(BodyLimits {
        bytes: options.max_body_bytes,
        bytes_of_holder: (256 << 20).max(options.max_body_bytes),
        bytes_of_all: (256 << 20).max(options.max_body_bytes),
        ..BodyLimits::default()
    });
    HttpService { server: server.clone(), service, sessions: bounds, owners: Owners::new(), bodies }
}

/// What [`service`] gives. It implements [`tower_service::Service`].
#[derive(Clone)]
pub struct HttpService {
    server: McpServer,
    service: StreamableHttpService<super::Session, Sessions>,
    sessions: Arc<Sessions>,
    owners: Owners,
    /// By tenant.
    bodies: Bodies<Arc<str>>,
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Error: Display,
    B::Data: Send + 'static,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let caller = match &self.server.0.callers {
            Callers::One(caller) => Some(Arc::clone(caller)),
            Callers::PerRequest => {
                request.extensions().get::<Caller>().map(|caller| Arc::clone(&caller.context))
            }
        };
        let Some(caller) = caller else {
            return Box::pin(async {
                Ok(refused(StatusCode::UNAUTHORIZED, "The request has no valid key or token"))
            });
        };
        let owners = self.owners.clone();
        if !owners.unseal(request.headers_mut(), &caller) {
            return Box::pin(async { Ok(refused(StatusCode::NOT_FOUND, "There is no such session")) });
        }
        let (mut service, bodies) = (self.service.clone(), self.bodies.clone());
        let sessions = Arc::clone(&self.sessions);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let whole = match bodies.whole(body, Arc::clone(&caller.tenant)).await {
                Ok(whole) => whole,
                Err(problem) => return Ok(no_body(&problem)),
            };
            let (is_end, is_post) = (parts.method == Method::DELETE, parts.method == Method::POST);
            if let Some(refusal) = is_post.then(|| refusal_of_post(&whole.bytes)).flatten() {
                return Ok(not_taken(refusal));
            }
            if is_end && !sessions.is_there(&parts.headers).await {
                return Ok(refused(StatusCode::NOT_FOUND, "There is no such session"));
            }
            let request = Request::from_parts(parts, Full::new(whole.bytes));
            let (answer, refused) = Beginning::new(Arc::clone(&caller)).scope(service.call(request)).await;
            if let Some(full) = refused {
                return Ok(too_many(full));
            }
            let mut answer = answer?;
            if is_end && answer.status() == StatusCode::ACCEPTED {
                // The session has ended: 202 would say that it is still to come.
                *answer.status_mut() = StatusCode::NO_CONTENT;
            }
            owners.seal(answer.headers_mut(), &caller);
            Ok(answer)
        })
    }
}

/// Why a body is not taken. Over HTTP an empty one is no message either.
fn refusal_of_post(body: &[u8]) -> Option<Refusal> {
    match body.trim_ascii().is_empty() {
        true => {
            let error = ErrorData::parse_error("The message is not JSON: the body is empty", None);
            Some(Refusal { to: To::Unnamed, error })
        }
        false => refusal(body),
    }
}

/// A message that is not taken, answered as the protocol answers.
fn not_taken(Refusal { to, error }: Refusal) -> Answer {
    let id = match to {
        To::Request(id) => Some(id),
        To::Nobody | To::Unnamed => None,
    };
    let answer = ServerJsonRpcMessage::error(error, id);
    let mut answer = refused(StatusCode::BAD_REQUEST, &serde_json::to_string(&answer).unwrap_or_default());
    let kind = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// What came of a request was no body. Nothing more is read on its connection.
fn no_body(problem: &BodyProblem) -> Answer {
    let status = match problem {
        BodyProblem::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
        BodyProblem::TooSlow => StatusCode::REQUEST_TIMEOUT,
        BodyProblem::NoRoom(NoRoom::Own) => StatusCode::TOO_MANY_REQUESTS,
        BodyProblem::NoRoom(NoRoom::All) => StatusCode::SERVICE_UNAVAILABLE,
        BodyProblem::Broken(_) => StatusCode::BAD_REQUEST,
    };
    let mut answer = refused(status, &problem.to_string());
    let headers = answer.headers_mut();
    headers.insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    if matches!(problem, BodyProblem::NoRoom(_)) {
        headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    answer
}

/// The head of a request is too large.
fn large_head() -> Answer {
    let mut answer = refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "");
    answer.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    answer
}

/// There is no room for another session now.
fn too_many(full: NoRoom) -> Answer {
    let (status, why) = match full {
        NoRoom::Own => (
            StatusCode::TOO_MANY_REQUESTS,
            "You have too many sessions; end some (DELETE), or wait until idle ones end",
        ),
        NoRoom::All => (StatusCode::SERVICE_UNAVAILABLE, "There are too many sessions; try again in a while"),
    };
    let mut answer = refused(status, why);
    answer.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("10"));
    answer
}

/// An answer that says why there is none.
fn refused(status: StatusCode, why: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(why.to_owned())).boxed());
    *answer.status_mut() = status;
    if status == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    answer
}
