//! Ed25519 keys and signatures.

use base64::{Engine, prelude::BASE64_STANDARD};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use std::fmt;

/// Why a key or a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is no key as haft writes them.
    #[error("`{0}` is no key: it must be `ed25519:` and 32 bytes in base64")]
    BadKey(String),
    /// It is no signature as haft writes them.
    #[error("the signature is not 64 bytes in base64")]
    BadSignature,
    /// Nobody trusts the key.
    #[error("it is signed with the key {0}, which is not among the trusted ones")]
    Untrusted(String),
    /// The bytes are not those that were signed.
    #[error("the signature of the key {0} does not fit: the bytes were changed after they were signed")]
    Changed(String),
}

/// A public key: who signed is known by it. Its text is `ed25519:` and base64.
///
/// ```
/// use haft_guard::{PublicKey, SecretKey};
/// let key = SecretKey::from_seed([7; 32]).public();
/// assert_eq!(key.to_string().parse::<PublicKey>().unwrap(), key);
/// assert_eq!(key.id().len(), 16);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// A short name: the first 16 hex digits of the key's SHA-256.
    pub fn id(&self) -> String {
        let mut id = crate::hex(&Sha256::digest(self.0.as_bytes()));
        id.truncate(16);
        id
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ed25519:{}", BASE64_STANDARD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id())
    }
}

impl std::str::FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bad = || KeyError::BadKey(text.chars().take(80).collect());
        let encoded = text.trim().strip_prefix("ed25519:").ok_or_else(bad)?;
        let bytes: [u8; 32] =
            BASE64_STANDARD.decode(encoded).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(bad)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| bad())?;
        // A key of small order verifies signatures that nobody made.
        if key.is_weak() { Err(bad()) } else { Ok(PublicKey(key)) }
    }
}

/// A secret key, for those who sign. Where its 32 random bytes come from and where they are kept is not decided here.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key of these bytes, which must be random.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        SecretKey(SigningKey::from_bytes(&seed))
    }

    /// The key that others check with.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> String {
        BASE64_STANDARD.encode(self.0.sign(message).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public().id())
    }
}

/// Keys whose signatures count.
///
/// ```
/// use haft_guard::{SecretKey, TrustedKeys};
/// let ours = SecretKey::from_seed([7; 32]).public();
/// let trusted = TrustedKeys::new([ours]);
/// assert!(!trusted.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys(Vec<(String, PublicKey)>);

impl TrustedKeys {
    /// These.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        TrustedKeys(keys.into_iter().map(|key| (key.id(), key)).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks a signature over a message by the key of that id. Strict: what one implementation accepts, all do.
    pub(crate) fn verify(&self, key: &str, message: &[u8], signature: &str) -> Result<(), KeyError> {
        let shown = || key.chars().take(32).collect::<String>();
        let trusted = self.0.iter().find(|(id, _)| id == key);
        let (_, trusted) = trusted.ok_or_else(|| KeyError::Untrusted(shown()))?;
        let bytes: [u8; 64] = BASE64_STANDARD
            .decode(signature)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(KeyError::BadSignature)?;
        trusted
            .0
            .verify_strict(message, &Signature::from_bytes(&bytes))
            .map_err(|_| KeyError::Changed(shown()))
    }
}
