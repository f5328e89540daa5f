//! Encryption on the way to a server, with the words that every program with PostgreSQL knows.
//!
//! | `sslmode` | encrypted | whose certificate |
//! |---|---|---|
//! | `disable` | no | – |
//! | `require` | yes | anybody's; with `sslrootcert`, as `verify-ca` |
//! | `verify-ca` | yes | one of a known authority |
//! | `verify-full` | yes | one of a known authority, for the host that was named |
//!
//! Known authorities are those in the file `sslrootcert`, else those of this machine. Without a word, a server on this
//! machine is spoken to in the open, and one elsewhere as with `verify-full`. Words that would do without encryption
//! where it cannot be had (`allow`, `prefer`) are refused for servers elsewhere. A socket in the file system is never
//! encrypted.

use super::value::Fault;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
    server::ParsedCertificate,
};
use std::{path::PathBuf, sync::Arc};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a connection is protected.
#[derive(Clone)]
pub(crate) enum Protection {
    /// Not at all.
    Open,
    /// By TLS.
    Tls(MakeRustlsConnect),
}

/// What an address says about encryption, taken out of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    mode: Option<String>,
    root: Option<PathBuf>,
}

impl Words {
    /// What an address says, and the rest of it, for a parser that does not know all of these words.
    pub(crate) fn take(address: &str) -> (Words, String) {
        let mut words = Words::default();
        let mut note = |key: &str, value: String| {
            match key {
                "sslmode" => words.mode = Some(value),
                "sslrootcert" => words.root = Some(value.into()),
                _ => return false,
            }
            true
        };
        let is_url = address.starts_with("postgres://") || address.starts_with("postgresql://");
        let rest = match (is_url, address.split_once('?')) {
            (true, Some((before, parameters))) => {
                let other = |parameter: &&str| {
                    let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                    !note(key, decoded(value))
                };
                let kept: Vec<&str> = parameters.split('&').filter(other).collect();
                if kept.is_empty() { before.to_owned() } else { format!("{before}?{}", kept.join("&")) }
            }
            (true, None) => address.to_owned(),
            (false, _) => {
                let kept = pairs(address).into_iter().filter(|pair| !note(pair.key, pair.value.clone()));
                kept.map(|pair| pair.whole).collect::<Vec<_>>().join(" ")
            }
        };
        (words, rest)
    }

    /// What they ask for, for a server on this machine or elsewhere.
    pub(crate) fn protection(&self, is_local: bool) -> Result<Protection, Fault> {
        let trust = match (self.mode.as_deref(), is_local) {
            (Some("disable"), _) | (None | Some("allow" | "prefer"), true) => return Ok(Protection::Open),
            (Some("require"), _) if self.root.is_none() => Trust::Anybody,
            (Some("require" | "verify-ca"), _) => Trust::Authority(self.roots()?),
            (Some("verify-full"), _) | (None, false) => Trust::Host(self.roots()?),
            (Some("allow" | "prefer"), false) => {
                return Err(Fault::refused(
                    "`sslmode` must say `require`, `verify-ca` or `verify-full` for a server on another machine, or \
                     `disable` if the network between is safe",
                ));
            }
            (Some(other), _) => {
                return Err(Fault::refused(format!(
                    "`sslmode={other}` is not known; it can be disable, require, verify-ca or verify-full"
                )));
            }
        };
        Ok(Protection::Tls(MakeRustlsConnect::new(trust.config()?)))
    }

    fn roots(&self) -> Result<RootCertStore, Fault> {
        let mut roots = RootCertStore::empty();
        let file = self.root.as_ref().filter(|path| path.as_os_str() != "system");
        let Some(path) = file else {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            return match roots.is_empty() {
                true => Err(Fault::refused(
                    "this machine knows no certificate authorities; name that of the server with `sslrootcert=PATH`",
                )),
                false => Ok(roots),
            };
        };
        let refuse = |why: String| Fault::refused(format!("`sslrootcert`: {}: {why}", path.display()));
        let found = CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
        for certificate in found {
            let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
            roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
        }
        if roots.is_empty() { Err(refuse("it holds no certificate".to_owned())) } else { Ok(roots) }
    }
}

/// A word of an address like `host=db user='a b'`.
struct Pair<'a> {
    whole: &'a str,
    key: &'a str,
    value: String,
}

/// The words of an address. What is not like that is passed on as it is, for the parser to complain about.
fn pairs(address: &str) -> Vec<Pair<'_>> {
    let mut pairs = Vec::new();
    let mut rest = address.trim_start();
    while !rest.is_empty() {
        let (mut value, mut quoted, mut escaped, mut in_value) = (String::new(), false, false, false);
        let mut end = rest.len();
        for (place, sign) in rest.char_indices() {
            match sign {
                _ if escaped => {
                    value.push(sign);
                    escaped = false;
                }
                '=' if !in_value => in_value = true,
                '\\' if in_value => escaped = true,
                '\'' if in_value => quoted = !quoted,
                sign if sign.is_whitespace() && !quoted => {
                    end = place;
                    break;
                }
                sign if in_value => value.push(sign),
                _ => {}
            }
        }
        let (whole, after) = rest.split_at(end);
        let key = whole.split('=').next().unwrap_or_default();
        pairs.push(Pair { whole, key, value });
        rest = after.trim_start();
    }
    pairs
}

/// A value of a URL.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = (byte == b'%').then(|| after.get(..2)).flatten();
        let number = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        (rest, bytes) = match number {
            Some(number) => (&after[2..], [bytes, vec![number]].concat()),
            None => (after, [bytes, vec![byte]].concat()),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whose certificate is taken.
enum Trust {
    Anybody,
    Authority(RootCertStore),
    Host(RootCertStore),
}

impl Trust {
    fn config(self) -> Result<ClientConfig, Fault> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::refused(format!("no TLS here: {error}")))?;
        Ok(match self {
            Trust::Host(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyName { roots: None, provider }))
                .with_no_client_auth(),
            Trust::Authority(roots) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyName { roots: Some(roots), provider }))
                .with_no_client_auth(),
        })
    }
}

/// Takes a certificate for whatever name; where there are roots, only one that leads to them. That the server which
/// answers holds its key is always checked.
#[derive(Debug)]
struct AnyName {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let known = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, known)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_found_wherever_they_stand() {
        let words = |mode: Option<&str>, root: Option<&str>| Words {
            mode: mode.map(str::to_owned),
            root: root.map(Into::into),
        };
        for (address, expected, rest) in [
            ("postgres://u@h/d", words(None, None), "postgres://u@h/d"),
            ("postgres://u@h/d?sslmode=require", words(Some("require"), None), "postgres://u@h/d"),
            (
                "postgresql://u@h/d?a=1&sslrootcert=/my%20ca.pem&sslmode=verify-full&b=2",
                words(Some("verify-full"), Some("/my ca.pem")),
                "postgresql://u@h/d?a=1&b=2",
            ),
            ("host=h sslmode=disable user=u", words(Some("disable"), None), "host=h user=u"),
            (
                "host=h password='a sslmode=x \\' b' sslrootcert='/my ca'  sslmode=verify-ca",
                words(Some("verify-ca"), Some("/my ca")),
                "host=h password='a sslmode=x \\' b'",
            ),
            ("", words(None, None), ""),
            ("host", words(None, None), "host"),
        ] {
            assert_eq!(Words::take(address), (expected, rest.to_owned()), "{address}");
        }
        assert_eq!(decoded("a%2Fb%zz%2"), "a/b%zz%2");
    }

    #[test]
    fn nothing_falls_back_to_the_open_network() {
        let asks = |mode: Option<&str>, is_local| {
            let words = Words { mode: mode.map(str::to_owned), root: None };
            words.protection(is_local).map(|protection| matches!(protection, Protection::Tls(_)))
        };
        for (mode, is_local, encrypted) in [
            (None, true, Some(false)),
            (Some("prefer"), true, Some(false)),
            (Some("require"), true, Some(true)),
            (Some("require"), false, Some(true)),
            (Some("disable"), false, Some(false)),
            (Some("prefer"), false, None),
            (Some("allow"), false, None),
            (Some("verify_full"), true, None),
            (Some(""), true, None),
        ] {
            assert_eq!(asks(mode, is_local).ok(), encrypted, "{mode:?} {is_local}");
        }
    }
}
