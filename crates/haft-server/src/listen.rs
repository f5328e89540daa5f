//! Listeners: connections with deadlines and bounds.

use crate::identity::{Peer, SameUser};
use axum::{
    Router,
    body::Body,
    http::{StatusCode, header},
    response::IntoResponse as _,
};
use haft_http::{LARGEST_HEAD, Patient, Slots, head_bytes};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;

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
    /// On a unix socket. The user who runs this process is known there as its owner, by the credentials of their
    /// process.
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
}

/// Connections that may wait to be taken; the system may allow fewer.
const WAITING: u32 = 4096;

/// A port on which many clients may come at the same moment: more of them wait there than usual, where a system would
/// reset their connections.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let listener = haft_server::bind("127.0.0.1:0".parse().unwrap())?;
/// assert_ne!(listener.local_addr()?.port(), 0);
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As for other servers: a port whose last server ended a moment ago is free. On Windows it would be shared.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// What all listeners of a server share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) router: Router,
    pub(crate) slots: Arc<Semaphore>,
    /// By network.
    pub(crate) addresses: Slots<IpAddr>,
    /// How long the head of a request may take.
    pub(crate) head_time: Duration,
    /// How long a client may take nothing of its answer.
    pub(crate) write_silence: Duration,
    pub(crate) connections: TaskTracker,
    /// Nothing new is taken.
    pub(crate) stop: CancellationToken,
    /// Whatever is still open is closed.
    pub(crate) cut: CancellationToken,
}

/// Connections at once on a socket of this machine's owner, which strangers on an address cannot take.
const OWN_SLOTS: usize = 256;

impl Listener {
    pub(crate) async fn run(self, mut shared: Shared) {
        if matches!(self, Listener::Unix(_)) {
            shared.slots = Arc::new(Semaphore::new(OWN_SLOTS));
        }
        loop {
            let taken = async {
                let slot = Arc::clone(&shared.slots).acquire_owned().await;
                (slot, self.accept(&shared).await)
            };
            let (slot, accepted) = tokio::select! {
                taken = taken => taken,
                () = shared.stop.cancelled() => return,
            };
            match accepted {
                Ok(connection) => drop(shared.connections.spawn(async move {
                    connection.await;
                    drop(slot);
                })),
                Err(error) => {
                    // Too many open files, or a client that was gone at once: the next one may do.
                    tracing::warn!(%error, "a connection was not taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn accept(
        &self,
        shared: &Shared,
    ) -> io::Result<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> {
        let shared = shared.clone();
        Ok(match self {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                let Ok(slot) = shared.addresses.take(network(from), 1) else {
                    return Ok(Box::pin(async move { send_away(&stream) }));
                };
                Box::pin(async move {
                    serve(stream, shared, Way::Address(from.ip())).await;
                    drop(slot);
                })
            }
            Listener::Tls(listener, tls) => {
                let (stream, from) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                // Nothing can be said before TLS is spoken, and that would cost what is spared here.
                let Ok(slot) = shared.addresses.take(network(from), 1) else {
                    return Ok(Box::pin(async move { drop(stream) }));
                };
                let greeting = tls.accept(stream);
                Box::pin(async move {
                    let _seat = slot;
                    match tokio::time::timeout(GREETING_TIME, greeting).await {
                        Ok(Ok(stream)) => serve(stream, shared, Way::Address(from.ip())).await,
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
                Box::pin(serve(stream, shared, if is_same_user { Way::SameUser } else { Way::OtherUser }))
            }
        })
    }
}

/// What addresses are counted by: somebody who has one address of IPv6 mostly has all of its network.
fn network(from: SocketAddr) -> IpAddr {
    match from.ip().to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// Says that there are too many, where that costs nothing.
fn send_away(stream: &TcpStream) {
    let answer = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    // A fresh connection takes that much without waiting; one that does not gets nothing.
    let _ = stream.try_write(answer);
}

/// The answer to a head that is too large, as the parser gives it where it sees that itself.
fn large_head() -> axum::response::Response {
    (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, [(header::CONNECTION, "close")]).into_response()
}

/// Who is at the other end, as far as a connection says.
#[derive(Clone, Copy)]
enum Way {
    Address(IpAddr),
    SameUser,
    OtherUser,
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send, shared: Shared, from: Way) {
    let Shared { router, head_time, write_silence, stop, cut, slots: _, addresses: _, connections: _ } =
        shared;
    let stream = Patient::new(stream, write_silence);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let is_large = head_bytes(request.method(), request.uri(), request.headers()) > LARGEST_HEAD;
        let mut request = request.map(Body::new);
        match from {
            Way::Address(address) => drop(request.extensions_mut().insert(Peer(address))),
            Way::SameUser => drop(request.extensions_mut().insert(SameUser)),
            Way::OtherUser => {}
        }
        let router = (!is_large).then(|| router.clone());
        async move {
            match router {
                Some(router) => router.oneshot(request).await,
                None => Ok(large_head()),
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_with_its_network() {
        let counted = |from: &str| network(from.parse().unwrap()).to_string();
        assert_eq!(counted("192.0.2.7:1"), "192.0.2.7");
        assert_eq!(counted("[::ffff:192.0.2.7]:1"), "192.0.2.7", "the same machine");
        assert_eq!(counted("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::");
        assert_eq!(counted("[2001:db8:1:2:ffff::1]:9"), "2001:db8:1:2::");
        assert_ne!(counted("[2001:db8:1:3::1]:9"), "2001:db8:1:2::");
    }
}
