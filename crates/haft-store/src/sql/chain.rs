//! The chain that ties audit records together.
//!
//! Record `n` has the key `k(n)` and the seal `mac(n) = HMAC-SHA256(k(n), n ‖ mac(n-1) ‖ SHA-256(body))`. After it the
//! key moves on, `k(n+1) = HMAC-SHA256(k(n), label)`, and the old one is let go. So an attacker who gets hold of the
//! database at some time can add records from then on, but cannot change, drop or reorder those before: for that one
//! would need a key that is nowhere any more. Who has the first key, which is kept in a file of its own, can check
//! everything.
//!
//! Pure: bytes in, bytes out.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// A key or a seal.
pub(crate) type Bytes32 = [u8; 32];

const RATCHET: &[u8] = b"haft audit: next key, version 1";
const GENESIS: &[u8] = b"haft audit: before the first record, version 1";

/// The end of a chain: what the next record is tied to, and its key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The number of the last record; 0 before the first.
    pub(crate) seq: i64,
    /// The seal of the last record.
    pub(crate) mac: Bytes32,
    /// The key of the next one.
    pub(crate) key: Bytes32,
}

impl Link {
    /// Before the first record.
    pub(crate) fn genesis(chain_id: &str, first_key: Bytes32) -> Self {
        Link { seq: 0, mac: genesis_mac(chain_id), key: first_key }
    }

    /// Adds a record with that digest of its body.
    pub(crate) fn advance(&mut self, digest: &Bytes32) {
        self.seq += 1;
        self.mac = seal(&self.key, self.seq, &self.mac, digest);
        self.key = next_key(&self.key);
    }
}

/// What the first record is tied to. Other for every chain, so that no two can be exchanged.
pub(crate) fn genesis_mac(chain_id: &str) -> Bytes32 {
    let mut hash = Sha256::new();
    hash.update(GENESIS);
    hash.update(chain_id.as_bytes());
    hash.finalize().into()
}

/// The digest of a record's body.
pub(crate) fn digest(body: &[u8]) -> Bytes32 {
    Sha256::digest(body).into()
}

/// The seal of a record.
pub(crate) fn seal(key: &Bytes32, seq: i64, previous: &Bytes32, digest: &Bytes32) -> Bytes32 {
    keyed(key, &[&seq.to_be_bytes(), previous, digest])
}

/// The key of the record after.
pub(crate) fn next_key(key: &Bytes32) -> Bytes32 {
    keyed(key, &[RATCHET])
}

fn keyed(key: &Bytes32, parts: &[&[u8]]) -> Bytes32 {
    // A key of any length will do, so this cannot fail; if it could, the seal would just never verify.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// In hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// 32 bytes from hex.
pub(crate) fn from_hex(text: &str) -> Option<Bytes32> {
    let text = text.as_bytes();
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_record_is_in_its_seal() {
        let (key, previous, body) = ([1; 32], [2; 32], digest(b"body"));
        let sealed = seal(&key, 7, &previous, &body);
        assert_ne!(sealed, seal(&[9; 32], 7, &previous, &body), "the key");
        assert_ne!(sealed, seal(&key, 8, &previous, &body), "the number");
        assert_ne!(sealed, seal(&key, 7, &[9; 32], &body), "the one before");
        assert_ne!(sealed, seal(&key, 7, &previous, &digest(b"bodz")), "the body");
    }

    #[test]
    fn the_key_moves_on_and_does_not_repeat() {
        let mut link = Link::genesis("chain", [3; 32]);
        let mut seen = std::collections::HashSet::from([link.key]);
        for _ in 0..1000 {
            link.advance(&digest(b"same"));
            assert!(seen.insert(link.key));
        }
        assert_eq!(link.seq, 1000);
        assert_ne!(Link::genesis("chain", [3; 32]).mac, Link::genesis("other", [3; 32]).mac);
    }

    #[test]
    fn hex_goes_there_and_back() {
        let bytes: Bytes32 = std::array::from_fn(|place| u8::try_from(place * 8).unwrap());
        assert_eq!(from_hex(&hex(&bytes)), Some(bytes));
        assert_eq!(from_hex("00"), None);
        assert_eq!(from_hex(&"é".repeat(32)), None);
        assert_eq!(from_hex(&"zz".repeat(32)), None);
    }
}
