//! Documents of an identity provider, over HTTPS: one GET, within bounds.
//!
//! What the operator wrote into their own configuration is asked, and nothing else: no redirect is followed, no proxy
//! is used, nothing of a request that came in is sent along. Without TLS only this machine is asked.

use axum::http::{Request, StatusCode, Uri, header, uri::Scheme};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use serde::Deserialize;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OnceCell,
};
use tokio_rustls::TlsConnector;

/// The longest document. A provider has a handful of keys.
const LONGEST: usize = 1 << 20;
/// How long one may take, from the name to the last byte.
const TIME: Duration = Duration::from_secs(10);

/// What trusts whom this machine trusts; made when it is first needed.
#[derive(Default)]
pub(super) struct Fetcher {
    tls: OnceCell<Arc<ClientConfig>>,
}

/// What a provider says about itself (OpenID Connect Discovery).
#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

impl Fetcher {
    /// The document at that address.
    pub(super) async fn get(&self, address: &str) -> Result<Vec<u8>, String> {
        let target = Target::of(address)?;
        let fetched = tokio::time::timeout(TIME, self.fetch(&target));
        fetched.await.unwrap_or_else(|_| Err(format!("{address} took longer than {} s", TIME.as_secs())))
    }

    /// The keys of an issuer, from where it says that they are.
    pub(super) async fn discover(&self, issuer: &str) -> Result<Vec<u8>, String> {
        let place = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let text = self.get(&place).await?;
        let found: Discovered = serde_json::from_slice(&text)
            .map_err(|error| format!("{place} is not what it should be: {error}"))?;
        // A document that names another issuer is not from this issuer.
        if found.issuer != issuer {
            return Err(format!("{place} names another issuer than {issuer}"));
        }
        self.get(&found.jwks_uri).await
    }

    async fn fetch(&self, target: &Target) -> Result<Vec<u8>, String> {
        let unreachable = |error: std::io::Error| format!("{} cannot be reached: {error}", target.host);
        let stream = TcpStream::connect((target.host.as_str(), target.port)).await.map_err(unreachable)?;
        if !target.is_tls {
            return exchange(stream, target).await;
        }
        let tls = self.tls.get_or_try_init(|| async { trusted() }).await?;
        let name = ServerName::try_from(target.host.clone())
            .map_err(|_| format!("{} is no name that a certificate has", target.host))?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
        exchange(stream.map_err(unreachable)?, target).await
    }
}

/// TLS as this machine trusts it.
fn trusted() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err("this machine trusts no certificates; install `ca-certificates`".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    target: &Target,
) -> Result<Vec<u8>, String> {
    let broken = |error: hyper::Error| format!("{} ended early: {error}", target.host);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::get(target.path.as_str())
        .header(header::HOST, target.authority.as_str())
        .header(header::ACCEPT, "application/json")
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let asking = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        if response.status() != StatusCode::OK {
            return Err(format!("{} answers {}", target.host, response.status()));
        }
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        body.map(|body| body.to_bytes().to_vec()).map_err(|error| format!("{}: {error}", target.host))
    };
    tokio::pin!(asking, connection);
    // The connection carries the answer: it is driven until that is there.
    tokio::select! {
        answered = &mut asking => answered,
        _ = &mut connection => asking.await,
    }
}

/// Whom to ask for what.
#[derive(Debug, PartialEq)]
struct Target {
    host: String,
    authority: String,
    port: u16,
    path: String,
    is_tls: bool,
}

impl Target {
    fn of(address: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{} {why}", haft_core::text::one_line(address, 200));
        let uri: Uri = address.parse().map_err(|_| wrong("is no address"))?;
        let authority = uri.authority().ok_or_else(|| wrong("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has a password in it, which is never sent"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP && is_this_machine(&host) => false,
            Some(scheme) if *scheme == Scheme::HTTP => {
                return Err(wrong("would not be encrypted: write https"));
            }
            _ => return Err(wrong("must begin with https://")),
        };
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Target { host, authority: authority.to_string(), port, path, is_tls })
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a document could be fetched from that address at all.
pub(super) fn check(address: &str) -> Result<(), String> {
    Target::of(address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_encrypted_or_this_machine() {
        let target = Target::of("https://id.example/keys?a=b").unwrap();
        assert_eq!(
            (&*target.host, target.port, &*target.path, target.is_tls),
            ("id.example", 443, "/keys?a=b", true)
        );
        let own = Target::of("http://[::1]:81").unwrap();
        assert_eq!((&*own.host, own.port, &*own.path, own.is_tls), ("::1", 81, "/", false));
        assert!(Target::of("http://127.0.0.1:81/x").is_ok() && Target::of("http://localhost/x").is_ok());
        for bad in [
            "",
            "/keys",
            "id.example",
            "http://id.example/",
            "http://127.0.0.1.evil.example/",
            "ftp://x/",
            "https://ada:secret@id.example/",
            "http://10.0.0.1/",
            "https://",
        ] {
            assert!(Target::of(bad).is_err(), "{bad}");
        }
    }
}
