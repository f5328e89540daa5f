//! What a server is made of.

use crate::{
    host::{Host, NoHost},
    identity::{CameIn, Identifier, Identity, Peer, SameUser, TokenOptions},
    listen::{Desk, Listener},
    problem::Problem,
    routes,
};
use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use haft_core::{CallContext, ErrorCode, port::KeyStore};
use haft_engine::Engine;
use std::{any::Any, io, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_http::{
    catch_panic::CatchPanicLayer, compression::CompressionLayer, timeout::RequestBodyTimeoutLayer,
};

/// Bounds of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one request's body.
    pub body_bytes: usize,
    /// Connections at once; more wait.
    pub connections: usize,
    /// How long a body may stay silent while it is sent.
    pub body_silence: Duration,
    /// How long connections may take to end, once the server is to stop.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 4 << 20,
            connections: 4096,
            body_silence: Duration::from_secs(30),
            grace: Duration::from_secs(5),
        }
    }
}

/// What every route stands on.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) identifier: Identifier,
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
            host: Arc::new(NoHost),
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
    /// [recorded](Host::refused).
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Serves until `stop` says so: nothing new is taken then, streams of events end, and what was begun may end for a while.
    /// The engine is the caller's to shut down, before or after.
    pub async fn serve(self, listeners: Vec<Listener>, stop: CancellationToken) -> io::Result<()> {
        let desk = Desk {
            router: self.router,
            seats: Arc::new(Semaphore::new(self.limits.connections.min(Semaphore::MAX_PERMITS))),
            connections: TaskTracker::new(),
            stop: stop.clone(),
            cut: CancellationToken::new(),
        };
        let running: Vec<_> =
            listeners.into_iter().map(|listener| tokio::spawn(listener.run(desk.clone()))).collect();
        let refusals = Arc::clone(&self.app.identifier.refusals);
        // Its own end: who was refused while connections end is recorded, too.
        let quiet = CancellationToken::new();
        let _at_last = quiet.clone().drop_guard();
        let telling = tokio::spawn(refusals.tell(Arc::clone(&self.app.host), quiet.clone()));
        stop.cancelled().await;
        self.stop.cancel();
        for listener in running {
            listener.await.map_err(io::Error::other)?;
        }
        desk.connections.close();
        if tokio::time::timeout(self.limits.grace, desk.connections.wait()).await.is_err() {
            desk.cut.cancel();
            desk.connections.wait().await;
        }
        quiet.cancel();
        telling.await.map_err(io::Error::other)
    }
}

/// Puts a [`Server`] together.
#[must_use]
pub struct Builder {
    engine: Engine,
    host: Arc<dyn Host>,
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
    pub fn host(mut self, host: impl Host + 'static) -> Self {
        self.host = Arc::new(host);
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

    /// Lets a key or token that may make calls approve them, too. Without it, the right to approve does not count beside the
    /// right to invoke.
    pub fn invoke_and_approve(mut self) -> Self {
        self.both_rights = true;
        self
    }

    /// Bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves the Model Context Protocol at `/mcp`, to whoever has the right to invoke. The service must be one that takes its
    /// [caller](haft_mcp::server::Callers::PerRequest) from each request.
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
            host: self.host,
            identifier: Identifier::new(self.owner, self.keys, self.tokens, self.both_rights),
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
            .layer(middleware::from_fn_with_state(app.clone(), identified));
        let router = known
            .merge(public.method_not_allowed_fallback(routes::no_such_method))
            .layer(DefaultBodyLimit::max(self.limits.body_bytes))
            .layer(RequestBodyTimeoutLayer::new(self.limits.body_silence))
            .layer(CompressionLayer::new())
            .layer(CatchPanicLayer::custom(panicked))
            .with_state(app.clone());
        Server { router, app, limits: self.limits, stop }
    }
}

/// Lets in only who is known.
async fn identified(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let came_in = CameIn {
        path: request.uri().path(),
        is_same_user: request.extensions().get::<SameUser>().is_some(),
        peer: request.extensions().get::<Peer>().copied(),
    };
    match app.identifier.identify(request.headers(), came_in, &*app.host).await {
        Ok(identity) => {
            // It has done its part: nobody further in needs it.
            request.headers_mut().remove(axum::http::header::AUTHORIZATION);
            request.extensions_mut().insert::<Identity>(identity);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
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
