//! Listeners: connections with deadlines and bounds.

use crate::identity::{Peer, SameUser};
use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{io, net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;

/// How long a client may take to say what it wants.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// How long a greeting of TLS may take.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// How long nothing is accepted after a failure, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a server listens.
#[non_exhaustive]
pub enum Listener {
    /// On a port, without encryption: for one machine, or behind something that encrypts.
    Tcp(TcpListener),
    /// On a port, with TLS: see [`tls`](crate::tls).
    Tls(TcpListener, TlsAcceptor),
    /// On a unix socket. Whoever runs this process is known there as its owner, by the credentials of their process.
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
}

/// What all listeners of a server share.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) router: Router,
    pub(crate) seats: Arc<Semaphore>,
    pub(crate) connections: TaskTracker,
    /// Nothing new is taken.
    pub(crate) stop: CancellationToken,
    /// Whatever is still open is closed.
    pub(crate) cut: CancellationToken,
}

/// Bytes of a request's head, and of what waits to be written.
const LARGEST_HEAD: usize = 64 << 10;
/// Connections at once on a socket of this machine's owner, which strangers on an address cannot take.
const OWN_SEATS: usize = 256;

impl Listener {
    pub(crate) async fn run(self, mut desk: Desk) {
        if matches!(self, Listener::Unix(_)) {
            desk.seats = Arc::new(Semaphore::new(OWN_SEATS));
        }
        loop {
            let taken = async {
                let seat = Arc::clone(&desk.seats).acquire_owned().await;
                (seat, self.accept(&desk).await)
            };
            let (seat, accepted) = tokio::select! {
                taken = taken => taken,
                () = desk.stop.cancelled() => return,
            };
            match accepted {
                Ok(connection) => drop(desk.connections.spawn(async move {
                    connection.await;
                    drop(seat);
                })),
                Err(error) => {
                    // Too many open files, or a client that was gone at once: the next one may do.
                    tracing::warn!(%error, "a connection was not taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn accept(&self, desk: &Desk) -> io::Result<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> {
        let desk = desk.clone();
        Ok(match self {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Box::pin(serve(stream, desk, Way::Address(from.ip())))
            }
            Listener::Tls(listener, tls) => {
                let (stream, from) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                let greeting = tls.accept(stream);
                Box::pin(async move {
                    match tokio::time::timeout(GREETING_TIME, greeting).await {
                        Ok(Ok(stream)) => serve(stream, desk, Way::Address(from.ip())).await,
                        Ok(Err(error)) => tracing::debug!(%error, "no TLS came about"),
                        Err(_) => tracing::debug!("a greeting of TLS took too long"),
                    }
                })
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let own = rustix::process::geteuid().as_raw();
                // Where the system does not say who it is, it is nobody.
                let is_same_user = stream.peer_cred().is_ok_and(|peer| peer.uid() == own);
                Box::pin(serve(stream, desk, if is_same_user { Way::SameUser } else { Way::OtherUser }))
            }
        })
    }
}

/// Who is at the other end, as far as a connection says.
#[derive(Clone, Copy)]
enum Way {
    Address(IpAddr),
    SameUser,
    OtherUser,
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send, desk: Desk, from: Way) {
    let Desk { router, stop, cut, .. } = desk;
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        match from {
            Way::Address(address) => drop(request.extensions_mut().insert(Peer(address))),
            Way::SameUser => drop(request.extensions_mut().insert(SameUser)),
            Way::OtherUser => {}
        }
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = cut.cancelled() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
