//! One token for one caller.

use super::{Answer, refused};
use crate::server::callers::Caller;
use ::http::{Request, StatusCode, header};
use haft_core::CallContext;
use sha2::{Digest as _, Sha256};
use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;
use uuid::Uuid;

/// What somebody has to know to be taken for a caller.
#[derive(Clone)]
pub struct Token {
    secret: Arc<str>,
    caller: Arc<CallContext>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl Token {
    /// A new one, which cannot be guessed.
    pub fn random(caller: Arc<CallContext>) -> Self {
        let secret = format!("haft_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Token { secret: secret.into(), caller }
    }

    /// One that is known already; `None` where it is too short to keep anybody out.
    pub fn known(secret: &str, caller: Arc<CallContext>) -> Option<Self> {
        (secret.len() >= 32).then(|| Token { secret: secret.into(), caller })
    }

    /// The secret, to be handed to a client.
    pub fn as_str(&self) -> &str {
        &self.secret
    }

    /// A service that lets in only who has the token, and takes them for its caller.
    pub fn guard<S>(self, service: S) -> Guarded<S> {
        Guarded { token: self, service }
    }

    fn is(&self, offered: &str) -> bool {
        // Of hashes: how long a comparison takes tells nothing about the secret.
        Sha256::digest(offered) == Sha256::digest(&*self.secret)
    }
}

/// A service behind a [`Token`].
#[derive(Clone)]
pub struct Guarded<S> {
    token: Token,
    service: S,
}

impl<S, B> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>, Response = Answer, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let mut offered = request.headers().get_all(header::AUTHORIZATION).iter();
        let known = match (offered.next(), offered.next()) {
            (Some(only), None) => {
                only.to_str().ok().and_then(bearer).is_some_and(|offered| self.token.is(offered))
            }
            _ => false,
        };
        if !known {
            return Box::pin(async {
                Ok(refused(StatusCode::UNAUTHORIZED, "Send the token as Authorization: Bearer TOKEN"))
            });
        }
        // It has done its part: nobody further in needs it.
        request.headers_mut().remove(header::AUTHORIZATION);
        // A caller with the token has every permission of the user who made it.
        request.extensions_mut().insert(Caller::new(Arc::clone(&self.token.caller)).and_approves());
        Box::pin(self.service.call(request))
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
