//! Lets requests in: who asks is known, they have not too many open, and what they say is here as a whole.
//!
//! A request stays let in only while its caller is valid: once their key is revoked, their time is over or they may
//! less, a call that is waited for is cancelled as if they had hung up, and a stream ends.

use crate::{
    backend::ServerBackend,
    identity::{CameIn, Identity, Peer, SameUser},
    problem::Problem,
    server::{App, Limits},
};
use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use haft_core::ErrorCode;
use haft_http::{Bodies, BodyProblem, Full, Slot, Slots};
use hyper::body::{Frame, SizeHint};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// After how many seconds one who was sent away may come again.
const COME_AGAIN: u32 = 1;

/// What is counted of everybody's requests.
pub(crate) struct Admission {
    /// By key or person.
    holders: Slots<Arc<str>>,
    tenants: Slots<Arc<str>>,
    bodies: Bodies<Arc<str>>,
}

/// An open request.
struct Open {
    _holder: Slot<Arc<str>>,
    _tenant: Slot<Arc<str>>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        // All together are bounded by connections: each has one request at a time.
        Admission {
            holders: Slots::new(limits.requests_per_key, usize::MAX),
            tenants: Slots::new(limits.requests_per_tenant, usize::MAX),
            bodies: Bodies::new(limits.bodies()),
        }
    }

    fn open(&self, who: &Identity) -> Result<Open, Problem> {
        let full = |whose: &str| {
            let text =
                format!("{whose} has as many requests open as it may have. Wait until some have ended");
            Problem::new(ErrorCode::ConcurrentLimitExceeded, text).come_again(COME_AGAIN)
        };
        let holder = self.holders.take(Arc::clone(who.holder()), 1).map_err(|_| full(who.name()))?;
        let tenant = self.tenants.take(Arc::clone(&who.base().tenant), 1).map_err(|_| full("The tenant"))?;
        Ok(Open { _holder: holder, _tenant: tenant })
    }
}

/// What is wrong with a body, and whether more of it may come on this connection.
fn refused(problem: &BodyProblem) -> Problem {
    match problem {
        BodyProblem::TooLong(most) => {
            let text = format!("The body is longer than the {most} bytes that this server takes");
            Problem::new(ErrorCode::LimitExceeded, text)
        }
        BodyProblem::TooSlow => Problem::bad_request("The body took too long to come. Send it again, faster")
            .with_status(StatusCode::REQUEST_TIMEOUT),
        BodyProblem::NoRoom(full) => {
            let status = match full {
                Full::Own => StatusCode::TOO_MANY_REQUESTS,
                Full::All => StatusCode::SERVICE_UNAVAILABLE,
            };
            let text = "The server reads as much as it has room for. Send the request again in a moment";
            Problem::new(ErrorCode::ConcurrentLimitExceeded, text).with_status(status).come_again(COME_AGAIN)
        }
        BodyProblem::Broken(_) => Problem::bad_request("The body could not be read"),
    }
}

/// Answers, and takes nothing more on the connection: what is left of the body is not read.
fn and_close(problem: Problem) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Lets in only who is known, within bounds, and only while they count.
pub(crate) async fn admitted(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let peer = request.extensions().get::<Peer>().copied();
    let is_same_user = request.extensions().get::<SameUser>().is_some();
    let came_in = CameIn { path: &path, is_same_user, peer };
    let identity = match app.identifier.identify(request.headers(), came_in, &*app.backend).await {
        Ok(identity) => identity,
        Err(problem) => return problem.into_response(),
    };
    let open = match app.admission.open(&identity) {
        Ok(open) => open,
        Err(problem) => return and_close(problem),
    };
    // It has done its part: nobody further in needs it.
    request.headers_mut().remove(header::AUTHORIZATION);
    request.extensions_mut().insert::<Identity>(identity.clone());
    let (parts, body) = request.into_parts();
    let whole = match app.admission.bodies.whole(body, Arc::clone(identity.holder())).await {
        Ok(whole) => whole,
        Err(problem) => return and_close(refused(&problem)),
    };
    // Its room is taken for as long as it is worked on: what is made of it is larger than it.
    let _room = whole.room;
    let request = Request::from_parts(parts, Body::from(whole.bytes));
    let response = tokio::select! {
        biased;
        response = next.run(request) => response,
        () = app.identifier.lost(&identity, &*app.backend) => {
            return and_close(app.identifier.lost_problem(&path, peer));
        }
    };
    response.map(|body| Body::new(Standing::new(body, app, identity, open)))
}

/// An answer on its way, while its caller is valid.
struct Standing {
    body: Body,
    /// Comes true when they do not any more. Only for what has no length: a short answer is as good as sent.
    lost: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _open: Open,
}

impl Standing {
    fn new(body: Body, app: App, identity: Identity, open: Open) -> Self {
        let is_stream = HttpBody::size_hint(&body).exact().is_none();
        let lost = is_stream.then(|| {
            let watch = async move {
                let backend: &dyn ServerBackend = &*app.backend;
                app.identifier.lost(&identity, backend).await;
            };
            Box::pin(watch) as Pin<Box<dyn Future<Output = ()> + Send>>
        });
        Standing { body, lost, _open: open }
    }
}

impl HttpBody for Standing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(lost) = &mut self.lost
            && lost.as_mut().poll(cx).is_ready()
        {
            self.lost = None;
            // What it showed, and a call that it waits for, end here.
            self.body = Body::empty();
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}
