//! Public keys of an identity provider (RFC 7517), and signatures by them.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Written {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// One public key.
#[derive(Debug)]
pub(super) struct Jwk {
    pub(super) kid: Option<String>,
    /// The only algorithm that it is used with, where it says so.
    alg: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The keys of a document. Those of other kinds, or for encryption, are passed over.
pub(super) fn read(text: &[u8]) -> Result<Vec<Jwk>, serde_json::Error> {
    let document: Document = serde_json::from_slice(text)?;
    Ok(document.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).filter_map(jwk).collect())
}

fn jwk(written: Written) -> Option<Jwk> {
    if written.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let bytes = |text: &Option<String>| BASE64_URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
    // An uncompressed point, as SEC 1 has it.
    let point = |length: usize| {
        let (x, y) = (bytes(&written.x)?, bytes(&written.y)?);
        (x.len() == length && y.len() == length).then(|| [&[4], &*x, &*y].concat())
    };
    let material = match (written.kty.as_str(), written.crv.as_deref()) {
        ("RSA", _) => Material::Rsa { n: bytes(&written.n)?, e: bytes(&written.e)? },
        ("EC", Some("P-256")) => Material::P256(point(32)?),
        ("EC", Some("P-384")) => Material::P384(point(48)?),
        ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(&written.x)?),
        _ => return None,
    };
    Some(Jwk { kid: written.kid, alg: written.alg, material })
}

impl Jwk {
    /// Whether the signature is this key's, by that algorithm. The key decides what algorithms there are: a token
    /// cannot choose one that does not belong to it.
    pub(super) fn verifies(&self, alg: &str, message: &[u8], signature: &[u8]) -> bool {
        if self.alg.as_deref().is_some_and(|only| only != alg) {
            return false;
        }
        let plain = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
        };
        match (&self.material, alg) {
            (Material::Rsa { n, e }, alg) => {
                let parameters = match alg {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                    "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
                    "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
            (Material::P256(point), "ES256") => plain(&signature::ECDSA_P256_SHA256_FIXED, point),
            (Material::P384(point), "ES384") => plain(&signature::ECDSA_P384_SHA384_FIXED, point),
            (Material::Ed25519(key), "EdDSA") => plain(&signature::ED25519, key),
            (Material::P256(_) | Material::P384(_) | Material::Ed25519(_), _) => false,
        }
    }
}
