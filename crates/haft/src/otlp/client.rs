//! How telemetry gets to a collector: one request on a connection of its own, encrypted where the address says so.
//!
//! The threads that send have no runtime of their own, so each request brings one. What went wrong the last time is kept
//! here for all that is sent: the library keeps it to itself.

use super::{OtlpError, PATIENCE};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::{
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

/// An answer is a few words.
const LONGEST_ANSWER: usize = 1 << 20;

/// Why telemetry could not be sent the last time, if that was so.
pub(super) type Failed = Arc<Mutex<Option<String>>>;

/// Sends to one collector.
pub(super) struct Client {
    /// Where the address begins with `https://`.
    pub(super) tls: Option<TlsConnector>,
    /// Sent with every request. They are secrets.
    pub(super) headers: HeaderMap,
    pub(super) failed: Failed,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>();
        to.debug_struct("Client").field("encrypted", &self.tls.is_some()).field("headers", &names).finish()
    }
}

/// Trusts what the machine trusts, and the certificates of a file.
pub(super) fn trusting(ca_file: Option<&Path>) -> Result<TlsConnector, OtlpError> {
    let mut roots = RootCertStore::empty();
    let (of_machine, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let refuse = |why: String| {
            OtlpError(format!("the certificates of the OTLP collector in {}: {why}", path.display()))
        };
        let found = CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
        let mut added = 0;
        for certificate in found {
            let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
            roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
            added += 1;
        }
        if added == 0 {
            return Err(refuse("there is none in the file".to_owned()));
        }
    } else if of_machine == 0 {
        let text = "this machine trusts no certificate, so no OTLP collector can be known over https://; install \
                    ca-certificates, or set telemetry.otlp_ca_file";
        return Err(OtlpError(text.to_owned()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| OtlpError(format!("TLS cannot be used: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The headers of a file: a name, a colon and a value on each line. Errors hold no value.
pub(super) fn headers(path: &Path) -> Result<HeaderMap, OtlpError> {
    let refuse =
        |why: String| OtlpError(format!("the headers of the OTLP collector in {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let found = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
        if found.permissions().mode() & 0o077 != 0 {
            return Err(refuse("others can read the file; `chmod 600` keeps it to you".to_owned()));
        }
    }
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let mut headers = HeaderMap::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let wrong = || refuse(format!("line {number} is not `name: value`"));
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let answer = self.send(request);
            let failure = match &answer {
                Ok(answer) if answer.status().is_success() => None,
                Ok(answer) => Some(format!("the collector answers {}", answer.status())),
                Err(error) => Some(in_words(&**error)),
            };
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failure;
            answer
        })
    }
}

/// An error with what caused it.
fn in_words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let mut text = error.to_string();
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

impl Client {
    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let late = |_| format!("no answer within {} s", PATIENCE.as_secs());
        // The clock is the runtime's.
        let timed = async { tokio::time::timeout(PATIENCE, self.exchange(request)).await };
        runtime.block_on(timed).map_err(late)?
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (mut parts, body) = request.into_parts();
        let host = parts.uri.host().ok_or("the address names no host")?.trim_matches(['[', ']']).to_owned();
        let port = parts.uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let authority = parts.uri.authority().map(ToString::to_string).unwrap_or_default();
        parts.headers.insert(HOST, HeaderValue::from_str(&authority)?);
        parts.headers.extend(self.headers.clone());
        parts.uri = parts.uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
        let request = Request::from_parts(parts, Full::new(body));
        let stream = TcpStream::connect((&*host, port)).await?;
        match &self.tls {
            Some(tls) => talk(tls.connect(ServerName::try_from(host)?, stream).await?, request).await,
            None => talk(stream, request).await,
        }
    }
}

async fn talk(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, HttpError> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the runtime of this request.
    tokio::spawn(connection);
    let (parts, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
    Ok(Response::from_parts(parts, body))
}
