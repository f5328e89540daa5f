//! haft's own requests, under the same decisions as those of a program in a jail.
//!
//! A tool that asks an HTTP service runs in haft's own process. So what the gate decides for a jail is decided here:
//! the name on the list, the address that it leads to, and that the connection goes to that very address. Redirects are
//! not followed: they come back as what they are, because where they lead nobody has granted.

use super::{
    HostList, HostName, Refusal, Resolve, SystemResolver, decide,
    name::split_port,
    resolve::{Dialler, NoRoute},
};
use haft_core::{ErrorCode, ToolError, port::BoxFuture, text};
use haft_sdk::capability::{Http, HttpBody, HttpRequest, HttpResponse, HttpStream};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Uri,
    body::{Bytes, Incoming},
    client::conn::http1,
    header::{HOST, HeaderValue, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// The longest body that is taken from a server.
const MAX_BODY: usize = 100 << 20;

/// For finding an address, for connecting to it, and for greeting: each.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// A client for HTTP services.
///
/// ```
/// use haft_gate::{Client, HostList};
/// let client = Client::new(HostList::parse(&["api.example.com"]).unwrap()).with_private(&["localhost:8080"])?;
/// # Ok::<(), haft_gate::BadPrivateHost>(())
/// ```
pub struct Client {
    hosts: HostList,
    private: Vec<(String, u16)>,
    resolver: Arc<dyn Resolve>,
    dialler: Dialler,
    /// Reading this machine's certificates takes milliseconds, which only requests over TLS have to pay.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("hosts", &self.hosts).field("private", &self.private).finish()
    }
}

/// What was wrong with a host that may be private.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be in a list of private hosts; write `host:port`, such as `localhost:8080`")]
pub struct BadPrivateHost(String);

/// Where a request goes.
struct Target {
    is_tls: bool,
    host: String,
    port: u16,
}

impl Client {
    /// One that reaches these hosts, on the public internet.
    pub fn new(hosts: HostList) -> Self {
        Client {
            hosts,
            private: Vec::new(),
            resolver: Arc::new(SystemResolver),
            dialler: Dialler::default(),
            tls: OnceLock::new(),
        }
    }

    /// Reaches these, too, wherever they are: services of this machine or of a private network. Each names its port,
    /// and may be an address.
    pub fn with_private<S: AsRef<str>>(mut self, hosts: &[S]) -> Result<Self, BadPrivateHost> {
        for entry in hosts.iter().map(AsRef::as_ref) {
            let bad = || BadPrivateHost(text::one_line(entry, 100));
            let (host, port) = split_port(entry).ok_or_else(bad)?;
            let host = host.to_ascii_lowercase();
            let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
            if address.parse::<IpAddr>().is_err() && HostName::parse(&host).is_err() {
                return Err(bad());
            }
            self.private.push((host, port));
        }
        Ok(self)
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, ToolError> {
        let HttpStream { status, headers, mut body } = self.answer(request).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = body.next().await? {
            if bytes.len() + piece.len() > MAX_BODY {
                return Err(failed(format!("The answer is longer than {} MB", MAX_BODY >> 20)));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(HttpResponse { status, headers, body: bytes })
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpStream, ToolError> {
        let uri: Uri = request.url.parse().map_err(|_| bad_request("its address cannot be read"))?;
        let target = target(&uri)?;
        let message = message(&request, &uri)?;
        let stream = self.connect(&target).await?;
        match target.is_tls {
            false => converse(stream, message).await,
            true => converse(self.greet(&target, stream).await?, message).await,
        }
    }

    async fn connect(&self, target: &Target) -> Result<TcpStream, ToolError> {
        let Target { host, port, .. } = target;
        if self.private.iter().any(|(own, own_port)| own == host && own_port == port) {
            return within(TcpStream::connect(self.private_address(host, *port).await?))
                .await
                .ok_or_else(|| no_answer(host, *port, "nobody answers there"));
        }
        let name = decide(host, *port, &self.hosts).map_err(|refusal| refused(&refusal))?;
        let answer = within(self.resolver.resolve(&name, *port)).await;
        let answer = answer.ok_or_else(|| no_answer(host, *port, "its name has no address"))?;
        let open = async {
            let permitted = self.dialler.permitted(&name, *port, &answer)?;
            self.dialler.connect(&name, *port, &permitted, CONNECT_TIME).await
        };
        open.await.map_err(|problem| match problem {
            NoRoute::Forbidden(refusal) => refused(&refusal),
            NoRoute::Unresolved => no_answer(host, *port, "its name has no address"),
            NoRoute::ConnectionRefused => no_answer(host, *port, "nobody listens there"),
            NoRoute::Unreachable => no_answer(host, *port, "nobody answers there"),
        })
    }

    async fn private_address(&self, host: &str, port: u16) -> Result<SocketAddr, ToolError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok((address, port).into());
        }
        let found = within(tokio::net::lookup_host((bare.to_owned(), port))).await;
        found
            .and_then(|mut found| found.next())
            .ok_or_else(|| no_answer(host, port, "its name has no address"))
    }

    async fn greet(
        &self,
        target: &Target,
        stream: TcpStream,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ToolError> {
        let config = match self.tls.get_or_init(tls) {
            Ok(config) => Arc::clone(config),
            Err(problem) => return Err(failed(problem.clone())),
        };
        let bare = target.host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned())
            .map_err(|_| bad_request("its host cannot be named to a server"))?;
        match timeout(CONNECT_TIME, TlsConnector::from(config).connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                Err(failed(format!("{}:{} was not trusted: {error}", target.host, target.port)))
            }
            Err(_) => Err(no_answer(&target.host, target.port, "it does not greet")),
        }
    }
}

impl Http for Client {
    fn send<'a>(&'a self, request: HttpRequest) -> BoxFuture<'a, Result<HttpResponse, ToolError>> {
        Box::pin(self.exchange(request))
    }

    fn open<'a>(&'a self, request: HttpRequest) -> BoxFuture<'a, Result<HttpStream, ToolError>> {
        Box::pin(self.answer(request))
    }
}

async fn within<T, E>(future: impl Future<Output = Result<T, E>>) -> Option<T> {
    timeout(CONNECT_TIME, future).await.ok()?.ok()
}

fn refused(refusal: &Refusal) -> ToolError {
    let text = match refusal {
        Refusal::NotListed { .. } => format!("{refusal}; hosts are granted in tools.http.hosts"),
        Refusal::ForbiddenAddress { .. } | Refusal::Literal { .. } => {
            format!("{refusal}; private hosts are granted in tools.http.private_hosts")
        }
        _ => refusal.to_string(),
    };
    ToolError::new(ErrorCode::NetworkPolicyViolation, text)
}

fn no_answer(host: &str, port: u16, why: &str) -> ToolError {
    // Nothing was sent, so nothing took effect.
    let text = format!("{}:{port} was not reached: {why}", text::one_line(host, 260));
    ToolError::new(ErrorCode::UpstreamUnavailable, text).with_data(serde_json::json!({"reached": false}))
}

fn failed(text: String) -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, text)
}

fn bad_request(why: &str) -> ToolError {
    failed(format!("The request was not sent: {why}"))
}

fn target(uri: &Uri) -> Result<Target, ToolError> {
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(bad_request("its address does not begin with http:// or https://")),
    };
    let authority = uri.authority().ok_or_else(|| bad_request("its address names no host"))?;
    if authority.as_str().contains('@') {
        return Err(bad_request("its address has a name or password before the host"));
    }
    let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    Ok(Target { is_tls, host: authority.host().to_ascii_lowercase(), port })
}

fn message(request: &HttpRequest, uri: &Uri) -> Result<Request<Full<Bytes>>, ToolError> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let mut built = Request::builder().method(request.method.as_str()).uri(path).header(HOST, host);
    for (name, value) in &request.headers {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| bad_request(&format!("the header `{}` cannot be sent", text::one_line(name, 60))))?;
        value.set_sensitive(true);
        built = built.header(name.as_str(), value);
    }
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        built = built.header(USER_AGENT, concat!("haft/", env!("CARGO_PKG_VERSION")));
    }
    built
        .body(Full::new(Bytes::from(request.body.clone())))
        .map_err(|_| bad_request("its method, address or headers cannot be sent"))
}

/// One request and its answer, on a connection of its own.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    message: Request<Full<Bytes>>,
) -> Result<HttpStream, ToolError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut connection: Connecting = Box::pin(async move { drop(connection.await) });
    let mut is_open = true;
    let answer = {
        let mut answer = std::pin::pin!(sender.send_request(message));
        tokio::select! {
            answer = &mut answer => answer,
            // The connection may be done before the answer is taken.
            () = &mut connection => {
                is_open = false;
                answer.await
            }
        }
        .map_err(broken)?
    };
    let (head, body) = answer.into_parts();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let body = Box::new(Body { body, connection: is_open.then_some(connection) });
    Ok(HttpStream { status: head.status.as_u16(), headers, body })
}

fn broken(error: hyper::Error) -> ToolError {
    ToolError::new(ErrorCode::UpstreamUnavailable, format!("The connection broke: {error}"))
        .with_data(serde_json::json!({"reached": true}))
}

type Connecting = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// A body with the connection that it comes on: dropping the body closes the connection.
struct Body {
    body: Incoming,
    connection: Option<Connecting>,
}

impl Body {
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, ToolError> {
        loop {
            let frame = match &mut self.connection {
                Some(connection) => tokio::select! {
                    biased;
                    frame = self.body.frame() => frame,
                    () = connection => {
                        self.connection = None;
                        continue;
                    }
                },
                None => self.body.frame().await,
            };
            match frame {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame.map_err(broken)?.into_data() {
                        return Ok(Some(data.to_vec()));
                    }
                }
            }
        }
    }
}

impl HttpBody for Body {
    fn next<'a>(&'a mut self) -> BoxFuture<'a, Result<Option<Vec<u8>>, ToolError>> {
        Box::pin(self.piece())
    }
}

/// TLS as this machine trusts it.
fn tls() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(
            "No server can be trusted: this machine has no certificates; install `ca-certificates`".into()
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
