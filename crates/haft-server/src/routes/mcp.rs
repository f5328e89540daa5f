//! The Model Context Protocol, for callers that may make calls.

use crate::{identity::Identity, problem::Problem};
use axum::{
    body::Body,
    http::{Request, Response},
    response::IntoResponse as _,
};
use haft_core::port::Right;
use haft_mcp::server::{Caller, http::HttpService};
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;

pub(crate) fn service(service: HttpService) -> Mounted {
    Mounted(service)
}

fn caller(who: &Identity) -> Caller {
    let caller = Caller::new(Arc::clone(who.base()));
    match who.may(Right::Approve) {
        true => caller.and_approves(),
        false => caller,
    }
}

/// The service, told who asks.
#[derive(Clone)]
pub(crate) struct Mounted(HttpService);

impl Service<Request<Body>> for Mounted {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let known = request.extensions().get::<Identity>().cloned();
        let caller = match known.map(|who| who.needs(Right::Invoke).map(|()| caller(&who))) {
            Some(Ok(caller)) => caller,
            Some(Err(problem)) => return Box::pin(async { Ok(problem.into_response()) }),
            None => {
                let nobody = Problem::new(
                    haft_core::ErrorCode::Unauthenticated,
                    "The request has no valid key or token",
                );
                return Box::pin(async { Ok(nobody.into_response()) });
            }
        };
        request.extensions_mut().insert(caller);
        let answering = self.0.call(request);
        Box::pin(async move { answering.await.map(|answer| answer.map(Body::new)) })
    }
}
