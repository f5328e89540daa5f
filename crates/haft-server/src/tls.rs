//! TLS, by rustls.

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use std::{path::Path, sync::Arc};
use tokio_rustls::TlsAcceptor;

/// Why TLS cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum TlsProblem {
    /// A file cannot be read as PEM.
    #[error("{file} cannot be read: {reason}")]
    File {
        /// Which.
        file: String,
        /// Why the file cannot be read.
        reason: String,
    },
    /// They do not fit each other, or are not usable.
    #[error("the certificate and the key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// What accepts TLS connections with that certificate chain and key, both in PEM.
pub fn tls(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsProblem> {
    let problem = |file: &Path, reason: String| TlsProblem::File { file: file.display().to_string(), reason };
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| problem(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(problem(certificate, "there is no certificate in it".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| problem(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, secret)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
