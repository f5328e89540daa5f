//! A session belongs to the caller that began it.
//!
//! The id of a session is all that a request needs to be part of it. So that an id that leaked is worth nothing to
//! somebody else, it goes out with a seal over who began the session, and comes in only with the seal of its sender.
//! Nothing is remembered for that.

use ::http::{HeaderMap, HeaderName, HeaderValue};
use haft_core::CallContext;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::{fmt::Write as _, sync::Arc};
use uuid::Uuid;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Between the id and its seal. Ids are UUIDs.
const BETWEEN: char = '.';

/// Seals session ids, with a key of this process.
#[derive(Clone)]
pub(super) struct Owners(Arc<[u8]>);

impl Owners {
    pub(super) fn new() -> Self {
        Owners([Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat().into())
    }

    fn mac(&self, id: &str, caller: &CallContext) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        let user = caller.user.as_deref().unwrap_or_default();
        for part in [id, &*caller.tenant, user, &*caller.agent] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        Some(mac)
    }

    /// Puts the seal on an id that goes out. One that cannot be sealed does not go out.
    pub(super) fn seal(&self, headers: &mut HeaderMap, caller: &CallContext) {
        let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) else { return };
        let sealed = self.mac(id, caller).and_then(|mac| {
            let seal = mac.finalize().into_bytes().iter().fold(String::new(), |mut hex, byte| {
                // Writing to a String cannot fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            HeaderValue::try_from(format!("{id}{BETWEEN}{seal}")).ok()
        });
        match sealed {
            Some(sealed) => headers.insert(SESSION, sealed),
            None => headers.remove(SESSION),
        };
    }

    /// Takes the seal off an id that comes in. False where it is not the sender's.
    pub(super) fn unseal(&self, headers: &mut HeaderMap, caller: &CallContext) -> bool {
        let mut ids = headers.get_all(SESSION).iter();
        let Some(sealed) = ids.next() else { return true };
        if ids.next().is_some() {
            return false;
        }
        let opened = || {
            let (id, seal) = sealed.to_str().ok()?.rsplit_once(BETWEEN)?;
            let seal = unhex(seal)?;
            self.mac(id, caller)?.verify_slice(&seal).ok()?;
            HeaderValue::try_from(id).ok()
        };
        match opened() {
            Some(id) => {
                headers.insert(SESSION, id);
                true
            }
            None => false,
        }
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(id: &str) -> HeaderMap {
        HeaderMap::from_iter([(SESSION, HeaderValue::try_from(id).unwrap())])
    }

    #[test]
    fn a_session_comes_back_to_its_owner_only() {
        let owners = Owners::new();
        let ada = CallContext::new("acme", "ada");
        let mut out = headers("3f0c-1");
        owners.seal(&mut out, &ada);
        let sealed = out.get(SESSION).unwrap().to_str().unwrap().to_owned();
        let mut back = headers(&sealed);
        assert!(owners.unseal(&mut back, &ada));
        assert_eq!(back.get(SESSION).unwrap(), "3f0c-1");
        let with_user =
            |user: &str| CallContext { user: Some(user.into()), ..CallContext::new("acme", "ada") };
        let others = [
            CallContext::new("acme", "bob"),
            CallContext::new("evil", "ada"),
            CallContext::new("", "ada"),
            CallContext::new("acmea", "da"),
            with_user("eve"),
        ];
        for other in others {
            assert!(!owners.unseal(&mut headers(&sealed), &other), "{other:?}");
        }
        let mut eves = headers("3f0c-1");
        owners.seal(&mut eves, &with_user("eve"));
        assert!(!owners.unseal(&mut eves.clone(), &with_user("bob")), "another person with the same program");
        assert!(owners.unseal(&mut eves, &with_user("eve")));
        assert!(!Owners::new().unseal(&mut headers(&sealed), &ada), "another process");
        for wrong in
            ["3f0c-1", "3f0c-1.", ".", &sealed[1..], &sealed[..sealed.len() - 2], &format!("{sealed}00")]
        {
            assert!(!owners.unseal(&mut headers(wrong), &ada), "{wrong}");
        }
        assert!(owners.unseal(&mut HeaderMap::new(), &ada), "no session, no owner");
        let mut twice = headers(&sealed);
        twice.append(SESSION, HeaderValue::try_from(sealed.as_str()).unwrap());
        assert!(!owners.unseal(&mut twice, &ada));
    }
}
