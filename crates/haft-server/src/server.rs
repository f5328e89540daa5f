//! What a server is made of.

use crate::{
    admission::{Admission, admitted},
    backend::{NoBackend, ServerBackend},
    identity::{Identifier, TokenOptions},
    listen::{Listener, Shared},
    problem::Problem,
    routes,
};
use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::StatusCode,
    middleware,
    response::{IntoResponse as _, Response},
};
use haft_core::{CallContext, ErrorCode, port::KeyStore};
use haft_engine::Engine;
use haft_http::{BodyLimits, Slots};
use std::{any::Any, io, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_http::{catch_panic::CatchPanicLayer, compression::CompressionLayer};

/// Bounds of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one request's body.
    pub body_bytes: usize,
    /// Bytes of all bodies at once, of all callers. One key or person has a quarter of it.
    pub bodies_bytes: usize,
    /// How long a body may stay silent while it is sent.
    pub body_silence: Duration,
    /// How long a body may take, before what has come of it counts: then each [`body_rate`](Self::body_rate) bytes are
    /// worth a second more.
    pub body_grace: Duration,
    /// Bytes a second that a body must have come to once its grace is over.
    pub body_rate: usize,
    /// How long the head of a request may take.
    pub head_time: Duration,
    /// Connections at once; more wait.
    pub connections: usize,
    /// Connections at once from one address, or one network of 64 bits of IPv6; more are sent away.
    pub connections_per_address: usize,
    /// Requests that one key or person may have open at once, streams among them; more are answered with 429.
    pub requests_per_key: usize,
    /// The same number for one tenant, with all its keys.
    pub requests_per_tenant: usize,
    /// How long a client may take nothing of its answer before the connection is closed.
    pub write_silence: Duration,
    /// How long connections may take to end, once the server is to stop.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let body = BodyLimits::default();
        Limits {
            body_bytes: body.bytes,
            bodies_bytes: body.bytes_of_all,
            body_silence: body.silence,
            body_grace: body.grace,
            body_rate: body.least_rate,
            head_time: Duration::from_secs(15),
            connections: 4096,
            connections_per_address: 1024,
            requests_per_key: 256,
            requests_per_tenant: 1024,
            write_silence: Duration::from_secs(60),
            grace: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// Those of bodies. One body of the largest size always has room.
    pub(crate) fn bodies(&self) -> BodyLimits {
        let all = self.bodies_bytes.max(self.body_bytes);
        BodyLimits {
            bytes: self.body_bytes,
            bytes_of_holder: (all / 4).max(self.body_bytes),
            bytes_of_all: all,
            silence: self.body_silence,
            grace: self.body_grace,
            least_rate: self.body_rate,
        }
    }
}

/// What every route stands on.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) backend: Arc<dyn ServerBackend>,
    pub(crate) identifier: Identifier,
    pub(crate) admission: Admission,
    /// Ends streams, so that a stop does not wait for those who watch.
    pub(crate) stop: CancellationToken,
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// haft over HTTP.
pub struct Server {
    router: Router,
    app: App,
    limits: Limits,
    stop: CancellationToken,
}

impl Server {
    /// Puts one together for that engine. Without further words it knows nobody, and answers only whether it is there.
    pub fn builder(engine: Engine) -> Builder {
        Builder {
            engine,
            backend: Arc::new(NoBackend),
            owner: None,
            keys: None,
            tokens: None,
            both_rights: false,
            limits: Limits::default(),
            #[cfg(feature = "mcp")]
            mcp: None,
        }
    }

    /// The routes, to be mounted somewhere else. Nobody is known by a unix socket then, and nobody who is refused is
    /// [recorded](ServerBackend::refused).
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Serves until `stop` says so: nothing new is taken then, streams of events end, and what was begun may end for a
    /// while. The engine is the caller's to shut down, before or after.
    pub async fn serve(self, listeners: Vec<Listener>, stop: CancellationToken) -> io::Result<()> {
        let shared = Shared {
            router: self.router,
            slots: Arc::new(Semaphore::new(self.limits.connections.min(Semaphore::MAX_PERMITS))),
            addresses: Slots::new(self.limits.connections_per_address, usize::MAX),
            connections: TaskTracker::new(),
            head_time: self.limits.head_time,
            write_silence: self.limits.write_silence,
            stop: stop.clone(),
            cut: CancellationToken::new(),
        };
        let running: Vec<_> =
            listeners.into_iter().map(|listener| tokio::spawn(listener.run(shared.clone()))).collect();
        let refusals = Arc::clone(&self.app.identifier.refusals);
        // Its own end: who was refused while connections end is recorded, too.
        let quiet = CancellationToken::new();
        let _at_last = quiet.clone().drop_guard();
        let telling = tokio::spawn(refusals.tell(Arc::clone(&self.app.backend), quiet.clone()));
        stop.cancelled().await;
        self.stop.cancel();
        for listener in running {
            listener.await.map_err(io::Error::other)?;
        }
        shared.connections.close();
        if tokio::time::timeout(self.limits.grace, shared.connections.wait()).await.is_err() {
            shared.cut.cancel();
            shared.connections.wait().await;
        }
        quiet.cancel();
        telling.await.map_err(io::Error::other)
    }
}

/// Puts a [`Server`] together.
#[must_use]
pub struct Builder {
    engine: Engine,
    backend: Arc<dyn ServerBackend>,
    owner: Option<Arc<CallContext>>,
    keys: Option<Arc<dyn KeyStore>>,
    tokens: Option<TokenOptions>,
    both_rights: bool,
    limits: Limits,
    #[cfg(feature = "mcp")]
    mcp: Option<haft_mcp::server::http::HttpService>,
}

impl Builder {
    /// What the engine does not know: tiers, explanations, answers.
    pub fn backend(mut self, backend: impl ServerBackend + 'static) -> Self {
        self.backend = Arc::new(backend);
        self
    }

    /// Who comes in on a unix socket, with every right, where their process belongs to the same user as this one.
    pub fn owner(mut self, owner: Arc<CallContext>) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Where API keys are.
    pub fn keys(mut self, keys: Arc<dyn KeyStore>) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Whose tokens count.
    pub fn tokens(mut self, tokens: TokenOptions) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Lets a key or token that may make calls approve them, too. Without it, the right to approve does not count
    /// beside the right to invoke.
    pub fn invoke_and_approve(mut self) -> Self {
        self.both_rights = true;
        self
    }

    /// Bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves the Model Context Protocol at `/mcp`, to callers with the right to invoke. The service must be one that
    /// takes its [caller](haft_mcp::server::Callers::PerRequest) from each request.
    #[cfg(feature = "mcp")]
    pub fn mcp(mut self, service: haft_mcp::server::http::HttpService) -> Self {
        self.mcp = Some(service);
        self
    }

    /// The server.
    pub fn build(self) -> Server {
        let stop = CancellationToken::new();
        let app = App(Arc::new(Inner {
            engine: self.engine,
            backend: self.backend,
            identifier: Identifier::new(self.owner, self.keys, self.tokens, self.both_rights),
            admission: Admission::new(&self.limits),
            stop: stop.clone(),
        }));
        let (known, _) = routes::known().split_for_parts();
        #[cfg(feature = "mcp")]
        let known = match self.mcp {
            Some(service) => known.route_service("/mcp", routes::mcp::service(service)),
            None => known,
        };
        let (public, _) = routes::public().split_for_parts();
        let known = known
            .fallback(routes::nothing_here)
            .method_not_allowed_fallback(routes::no_such_method)
            // Around the fallback, too: who is not known is not told what is there.
            .layer(middleware::from_fn_with_state(app.clone(), admitted));
        let router = known
            .merge(public.method_not_allowed_fallback(routes::no_such_method))
            .layer(DefaultBodyLimit::max(self.limits.body_bytes))
            .layer(CompressionLayer::new())
            .layer(CatchPanicLayer::custom(panicked))
            .with_state(app.clone());
        Server { router, app, limits: self.limits, stop }
    }
}

/// A mistake of haft's own: said as such, without a word of what it was.
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let words = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = words.unwrap_or("unknown"), "a route panicked");
    Problem::new(ErrorCode::Panicked, "The server made a mistake")
        .with_status(StatusCode::INTERNAL_SERVER_ERROR)
        .into_response()
}
