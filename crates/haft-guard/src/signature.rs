//! Signed tools: a definition's exact bytes, and the digest of what it runs.

use crate::keys::{KeyError, SecretKey, TrustedKeys};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A signature as it stands in a file beside a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolSignature {
    /// The id of the key that signed.
    pub key: String,
    /// SHA-256, in hex, of what the tool runs: a program, a module. Absent where it runs nothing of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_sha256: Option<String>,
    /// Ed25519, in base64, over both.
    pub signature: String,
}

/// Why a tool is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureProblem {
    /// There is no signature, and one is required.
    #[error("the definition is not signed, and `require_signatures` is on; sign it with `haft tools sign`")]
    Missing,
    /// The text of the signature cannot be read.
    #[error("the signature cannot be read: {0}")]
    Unreadable(String),
    /// The key or the signature does not count.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// What the tool runs is not what was signed.
    #[error("what the tool runs was changed after it was signed")]
    PayloadChanged,
    /// The tool runs something, and the signature does not cover it.
    #[error("the signature does not cover what the tool runs")]
    PayloadNotSigned,
}

/// A definition whose bytes were checked. Only these bytes are to be read as a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<'a> {
    /// The bytes that were signed.
    pub definition: &'a [u8],
    /// The key that signed them; `None` where nothing was signed and nothing had to be.
    pub key: Option<String>,
}

/// SHA-256 of what a tool runs, in hex, as signatures have it.
pub fn payload_digest(payload: &[u8]) -> String {
    crate::hex(&Sha256::digest(payload))
}

/// What is signed: both lengths stand before, so that nothing can move from one part into the other.
fn message(definition: &[u8], payload_sha256: Option<&str>) -> Vec<u8> {
    let payload = payload_sha256.unwrap_or_default();
    let mut message = b"haft-tool-1\0".to_vec();
    for part in [definition, payload.as_bytes()] {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
    message
}

/// Signs a definition's bytes and the digest of what it runs.
///
/// ```
/// use haft_guard::{SecretKey, TrustedKeys, payload_digest, sign_tool, verify_tool};
/// let key = SecretKey::from_seed([7; 32]);
/// let definition = br#"{"name": "greet", "description": "Greets"}"#;
/// let payload = payload_digest(b"#!/bin/sh\necho hello\n");
/// let signature = sign_tool(&key, definition, Some(&payload));
///
/// let trusted = TrustedKeys::new([key.public()]);
/// assert!(verify_tool(&trusted, definition, Some(&payload), &signature).is_ok());
/// let other = payload_digest(b"#!/bin/sh\nrm -rf ~\n");
/// let refused = verify_tool(&trusted, definition, Some(&other), &signature).unwrap_err();
/// assert_eq!(refused.to_string(), "what the tool runs was changed after it was signed");
/// ```
pub fn sign_tool(key: &SecretKey, definition: &[u8], payload_sha256: Option<&str>) -> ToolSignature {
    ToolSignature {
        key: key.public().id(),
        payload_sha256: payload_sha256.map(str::to_owned),
        signature: key.sign(&message(definition, payload_sha256)),
    }
}

/// Checks a signature against the definition's bytes and the digest of what would really run.
pub fn verify_tool<'a>(
    trusted: &TrustedKeys,
    definition: &'a [u8],
    payload_sha256: Option<&str>,
    signature: &ToolSignature,
) -> Result<Verified<'a>, SignatureProblem> {
    let signed = signature.payload_sha256.as_deref();
    trusted.verify(&signature.key, &message(definition, signed), &signature.signature)?;
    match (signed, payload_sha256) {
        (None, Some(_)) => Err(SignatureProblem::PayloadNotSigned),
        (Some(signed), Some(real)) if signed.eq_ignore_ascii_case(real) => Ok(()),
        (Some(_), _) => Err(SignatureProblem::PayloadChanged),
        (None, None) => Ok(()),
    }?;
    Ok(Verified { definition, key: Some(signature.key.clone()) })
}

/// Whether a definition may be added: with a signature that counts, or without one where none is required. A signature
/// that is there and does not count refuses it either way.
pub fn admit_tool<'a>(
    trusted: &TrustedKeys,
    require_signatures: bool,
    definition: &'a [u8],
    payload_sha256: Option<&str>,
    signature: Option<&str>,
) -> Result<Verified<'a>, SignatureProblem> {
    match signature {
        None if require_signatures => Err(SignatureProblem::Missing),
        None => Ok(Verified { definition, key: None }),
        Some(text) => {
            let signature: ToolSignature = serde_json::from_str(text)
                .map_err(|error| SignatureProblem::Unreadable(error.to_string()))?;
            verify_tool(trusted, definition, payload_sha256, &signature)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &[u8] = br#"{"name": "greet", "description": "Greets"}"#;

    fn keys() -> (SecretKey, TrustedKeys) {
        let key = SecretKey::from_seed([3; 32]);
        let trusted = TrustedKeys::new([SecretKey::from_seed([4; 32]).public(), key.public()]);
        (key, trusted)
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let (key, trusted) = keys();
        let payload = payload_digest(b"payload");
        let signature = sign_tool(&key, DEFINITION, Some(&payload));
        assert!(verify_tool(&trusted, DEFINITION, Some(&payload), &signature).is_ok());
        for place in 0..DEFINITION.len() {
            let mut changed = DEFINITION.to_vec();
            changed[place] ^= 1;
            let problem = verify_tool(&trusted, &changed, Some(&payload), &signature).unwrap_err();
            assert_eq!(problem, KeyError::Changed(key.public().id()).into(), "{place}");
        }
        for place in 0..signature.signature.len() - 2 {
            let mut text = signature.signature.clone().into_bytes();
            text[place] = if text[place] == b'A' { b'B' } else { b'A' };
            let changed = ToolSignature { signature: String::from_utf8(text).unwrap(), ..signature.clone() };
            assert!(verify_tool(&trusted, DEFINITION, Some(&payload), &changed).is_err(), "{place}");
        }
    }

    #[test]
    fn what_runs_must_be_what_was_signed() {
        let (key, trusted) = keys();
        let (one, two) = (payload_digest(b"one"), payload_digest(b"two"));
        let signed = sign_tool(&key, DEFINITION, Some(&one));
        let bare = sign_tool(&key, DEFINITION, None);
        let check = |signature: &ToolSignature, real: Option<&str>| {
            verify_tool(&trusted, DEFINITION, real, signature).map(|_| ())
        };
        assert_eq!(check(&signed, Some(&one)), Ok(()));
        assert_eq!(check(&signed, Some(&two)), Err(SignatureProblem::PayloadChanged));
        assert_eq!(check(&signed, None), Err(SignatureProblem::PayloadChanged));
        assert_eq!(check(&bare, None), Ok(()));
        assert_eq!(check(&bare, Some(&one)), Err(SignatureProblem::PayloadNotSigned));
        // The digest on the signature is signed, too.
        let swapped = ToolSignature { payload_sha256: Some(two.clone()), ..signed };
        assert!(matches!(check(&swapped, Some(&two)), Err(SignatureProblem::Key(KeyError::Changed(_)))));
    }

    #[test]
    fn a_key_counts_only_where_it_is_trusted() {
        let (_, trusted) = keys();
        let stranger = SecretKey::from_seed([9; 32]);
        let signature = sign_tool(&stranger, DEFINITION, None);
        let problem = verify_tool(&trusted, DEFINITION, None, &signature).unwrap_err();
        assert_eq!(problem, KeyError::Untrusted(stranger.public().id()).into());
        // Its own signature under the name of a trusted key.
        let (key, _) = keys();
        let posing = ToolSignature { key: key.public().id(), ..signature };
        assert!(matches!(
            verify_tool(&trusted, DEFINITION, None, &posing),
            Err(SignatureProblem::Key(KeyError::Changed(_)))
        ));
        assert!(matches!(
            verify_tool(&TrustedKeys::default(), DEFINITION, None, &posing),
            Err(SignatureProblem::Key(KeyError::Untrusted(_)))
        ));
    }

    #[test]
    fn unsigned_tools_are_admitted_only_where_that_is_allowed() {
        let (key, trusted) = keys();
        let signed = serde_json::to_string(&sign_tool(&key, DEFINITION, None)).unwrap();
        let admit =
            |required, signature: Option<&str>| admit_tool(&trusted, required, DEFINITION, None, signature);
        assert_eq!(admit(true, None), Err(SignatureProblem::Missing));
        assert_eq!(admit(false, None).unwrap().key, None);
        let broken = signed.replace("\"signature\":\"", "\"signature\":\"A");
        for required in [true, false] {
            assert_eq!(admit(required, Some(&signed)).unwrap().key, Some(key.public().id()));
            assert!(matches!(admit(required, Some("{}")), Err(SignatureProblem::Unreadable(_))));
            assert_eq!(admit(required, Some(&broken)), Err(KeyError::BadSignature.into()));
        }
    }

    #[test]
    fn weak_and_broken_keys_are_none() {
        let zero = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        for text in [zero, "ed25519:", "ed25519:AAAA", "rsa:AAAA", "", "ed25519:!!!!"] {
            assert!(text.parse::<crate::PublicKey>().is_err(), "{text}");
        }
    }
}
