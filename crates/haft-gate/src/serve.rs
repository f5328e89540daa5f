//! The gate as a whole: from a listening socket to connections, and to its end.

use super::{
    HostList, HostName, Resolve, SystemResolver, http,
    ledger::{GateReport, Ledger, ViolationSink},
    refusal::Refusal,
    resolve::{Dialler, NoRoute},
    socks,
    tunnel::Route,
    wire::{End, last_word},
};
use haft_core::Violation;
use std::{convert::Infallible, fmt, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, oneshot},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep, timeout},
};

/// How much of what a gate takes from the program behind it.
///
/// ```
/// use haft_gate::GateLimits;
/// let limits = GateLimits { requests: Some(100), ..GateLimits::default() };
/// assert_eq!(limits.connections, 128);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// Connections at once; further ones wait until one ends. 128 unless set.
    pub connections: usize,
    /// Requests and tunnels in all; no limit unless set.
    pub requests: Option<u64>,
    /// Bytes of the head of a request or an answer. 32 KiB unless set.
    pub head_bytes: usize,
    /// From the first byte of a request's head, or of a TLS greeting, to its last. 10 s unless set.
    pub head_time: Duration,
    /// For finding an address, and again for connecting to it. 10 s unless set.
    pub connect_time: Duration,
    /// How long nothing may move on a connection. 5 min unless set.
    pub idle: Duration,
}

impl Default for GateLimits {
    fn default() -> Self {
        GateLimits {
            connections: 128,
            requests: None,
            head_bytes: 32 * 1024,
            head_time: Duration::from_secs(10),
            connect_time: Duration::from_secs(10),
            idle: Duration::from_secs(300),
        }
    }
}

/// What all connections of a gate share.
pub(crate) struct Shared {
    pub(crate) hosts: HostList,
    pub(crate) limits: GateLimits,
    pub(crate) ledger: Ledger,
    resolver: Arc<dyn Resolve>,
    dialler: Dialler,
}

impl Shared {
    /// Resolves an allowed name, decides on its addresses, and connects to one of them.
    pub(crate) async fn open(&self, host: &HostName, port: u16) -> Result<(Route, End), NoRoute> {
        self.ledger.count_request(self.limits.requests).map_err(NoRoute::Forbidden)?;
        let answer = match timeout(self.limits.connect_time, self.resolver.resolve(host, port)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => return Err(NoRoute::Unresolved),
        };
        let permitted = self.dialler.permitted(host, port, &answer)?;
        let stream = self.dialler.connect(host, port, &permitted, self.limits.connect_time).await?;
        let address = stream.peer_addr().map_err(|_| NoRoute::Unreachable)?;
        Ok((Route { host: host.clone(), port, address }, End::new(stream)))
    }

    /// Another connection to where a route led before: the name is not asked again.
    pub(crate) async fn open_again(&self, route: &Route) -> Result<End, NoRoute> {
        self.ledger.count_request(self.limits.requests).map_err(NoRoute::Forbidden)?;
        let address = [route.address];
        let stream =
            self.dialler.connect(&route.host, route.port, &address, self.limits.connect_time).await?;
        Ok(End::new(stream))
    }
}

/// A gate that is not open yet.
pub struct Gate {
    hosts: HostList,
    limits: GateLimits,
    resolver: Arc<dyn Resolve>,
    sink: ViolationSink,
    dialler: Dialler,
}

impl Gate {
    /// A gate to these hosts, found by this machine's resolver.
    pub fn new(hosts: HostList) -> Self {
        Gate {
            hosts,
            limits: GateLimits::default(),
            resolver: Arc::new(SystemResolver),
            sink: Arc::new(|_: &Violation| {}),
            dialler: Dialler::default(),
        }
    }

    /// Finds addresses by another resolver.
    #[must_use]
    pub fn resolver(self, resolver: Arc<dyn Resolve>) -> Self {
        Gate { resolver, ..self }
    }

    /// Tells `sink` of each violation when it is first seen. It must not block: connections wait for it.
    #[must_use]
    pub fn sink(self, sink: ViolationSink) -> Self {
        Gate { sink, ..self }
    }

    /// Takes more or less from the program behind it.
    #[must_use]
    pub fn limits(self, limits: GateLimits) -> Self {
        Gate { limits, ..self }
    }

    /// Treats exactly these socket addresses as public, so that a test can have servers on loopback.
    #[doc(hidden)]
    #[must_use]
    pub fn treat_as_public_for_tests(self, addresses: &[SocketAddr]) -> Self {
        Gate { dialler: Dialler { public_for_tests: addresses.to_vec() }, ..self }
    }

    /// Opens the gate on a socket that already listens, on the current tokio runtime, which must have its I/O and time
    /// enabled.
    pub fn start(self, listener: std::net::TcpListener) -> io::Result<GateHandle> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let shared = Arc::new(Shared {
            hosts: self.hosts,
            limits: self.limits,
            ledger: Ledger::new(self.sink),
            resolver: self.resolver,
            dialler: self.dialler,
        });
        let (open, closed) = oneshot::channel();
        let task = runtime.spawn(accept(listener, Arc::clone(&shared), closed));
        Ok(GateHandle { shared, task, open })
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("hosts", &self.hosts)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// An open gate. Dropping it closes it, with every connection through it.
pub struct GateHandle {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
    /// The gate closes when this is dropped.
    open: oneshot::Sender<Infallible>,
}

impl GateHandle {
    /// What went through so far, and what did not.
    pub fn report(&self) -> GateReport {
        self.shared.ledger.report()
    }

    /// Closes the gate and every connection, and says what went through. Nothing is counted after it.
    pub async fn stop(self) -> GateReport {
        let GateHandle { shared, task, open } = self;
        drop(open);
        // It cannot panic; were it to, its connections would be gone with it all the same.
        let _ = task.await;
        shared.ledger.report()
    }
}

impl fmt::Debug for GateHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateHandle").field("hosts", &self.shared.hosts).finish_non_exhaustive()
    }
}

/// Takes connections in, as many at once as allowed, until the gate is closed.
async fn accept(listener: TcpListener, shared: Arc<Shared>, mut closed: oneshot::Receiver<Infallible>) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((listener.accept().await?.0, place))
        };
        tokio::select! {
            // Nothing is ever sent: the sender was dropped.
            _ = &mut closed => break,
            next = next => match next {
                Ok((stream, place)) => {
                    let _ = stream.set_nodelay(true);
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        serve(&shared, End::new(stream)).await;
                        drop(place);
                    });
                }
                // A client that left again, or no descriptor to spare: neither ends the gate, nor may it spin.
                Err(_) => sleep(Duration::from_millis(20)).await,
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// Serves one connection: its first byte says what it speaks.
async fn serve(shared: &Shared, mut client: End) {
    let deadline = Instant::now() + shared.limits.idle;
    if !matches!(client.input.more_until(deadline).await, Ok(1..)) {
        return;
    }
    match client.input.bytes().first() {
        Some(&socks::VERSION) => socks::serve(shared, client).await,
        Some(4) => {
            shared.ledger.refuse(&Refusal::Unsupported { what: "SOCKS4: use SOCKS5 with names, or HTTP" });
            // Version 0, "request rejected".
            last_word(&mut client, &[0, 91, 0, 0, 0, 0, 0, 0]).await;
        }
        _ => http::serve_proxy(shared, client).await,
    }
}
