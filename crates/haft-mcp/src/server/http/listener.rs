//! A listener for one machine.

use super::Answer;
use ::http::Request;
use futures_util::future::Either;
use haft_http::{LARGEST_HEAD, Patient, head_bytes};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_service::Service;

/// How many connections there are at once.
const MOST_CONNECTIONS: usize = 512;
/// How long a client may take to say what it wants.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// How long a client may take nothing of its answer.
const WRITE_SILENCE: Duration = Duration::from_secs(60);
/// How long connections may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// A service that is asked nothing with too large a head.
#[derive(Clone)]
struct WithHead<S>(S);

impl<S> Service<Request<Incoming>> for WithHead<S>
where
    S: Service<Request<Incoming>, Response = Answer, Error = Infallible>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Answer, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        match head_bytes(request.method(), request.uri(), request.headers()) > LARGEST_HEAD {
            false => Either::Left(self.0.call(request)),
            true => Either::Right(ready(Ok(super::large_head()))),
        }
    }
}

/// Serves HTTP/1 until `stop` says so; then lets connections end for a while.
pub async fn listen<S>(listener: TcpListener, service: S, stop: CancellationToken) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Answer, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        let taken = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            taken = taken => taken,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, or a client that was gone at once: the next one may do.
                tracing::warn!(%error, "a connection was not taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(
                TokioIo::new(Patient::new(stream, WRITE_SILENCE)),
                TowerToHyperService::new(WithHead(service.clone())),
            );
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(slot);
        });
    }
    connections.close();
    let _ = tokio::time::timeout(GRACE, connections.wait()).await;
    Ok(())
}
