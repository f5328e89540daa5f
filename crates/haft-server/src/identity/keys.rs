//! API keys.

use super::Claimed;
use crate::problem::Problem;
use haft_core::{
    CallContext, ErrorCode, ToolError,
    port::{ApiKey, KeyStore, SecretHash},
};
use moka::sync::Cache;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};
use std::{fmt, fmt::Write as _, sync::Arc, time::Duration};

/// What every secret begins with, so that it is recognised where it must not be.
const PREFIX: &str = "haft_";
/// How long a key that was found is taken for granted. With [`LOOK`](super::LOOK) it is less than the two seconds
/// within which a revoked key must stop counting, for what is open, too.
pub(super) const REMEMBERED: Duration = Duration::from_secs(1);
/// How many keys are remembered.
const MOST: u64 = 10_000;

/// The secret of an API key: 256 random bits. It is shown once, and nobody keeps it.
///
/// ```
/// let secret = haft_server::ApiSecret::random().unwrap();
/// assert!(secret.as_str().starts_with("haft_"));
/// assert_eq!(secret.as_str().len(), 5 + 64);
/// ```
pub struct ApiSecret(String);

impl ApiSecret {
    /// A new one, from the system's randomness.
    pub fn random() -> Result<Self, ToolError> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| {
            ToolError::new(ErrorCode::NotSupported, "The system has no randomness to make a key from")
        })?;
        let mut text = String::with_capacity(PREFIX.len() + 64);
        text.push_str(PREFIX);
        for byte in bytes {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(ApiSecret(text))
    }

    /// The secret, for the program that gets the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What is kept of it. The secret has as many bits as the hash, so no salt and no slow hash is needed.
    pub fn hash(&self) -> SecretHash {
        hash(&self.0)
    }

    pub(super) fn is_one(bearer: &str) -> bool {
        bearer.starts_with(PREFIX)
    }
}

impl fmt::Debug for ApiSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiSecret(…)")
    }
}

pub(super) fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret).into()
}

/// The keys of a store, remembered for a moment.
pub(super) struct Keys {
    store: Arc<dyn KeyStore>,
    found: Cache<SecretHash, Arc<ApiKey>>,
}

impl Keys {
    pub(super) fn new(store: Arc<dyn KeyStore>) -> Self {
        Keys { store, found: Cache::builder().max_capacity(MOST).time_to_live(REMEMBERED).build() }
    }

    /// Whom the secret with that hash stands for, if it is valid.
    pub(super) async fn known(&self, hash: SecretHash) -> Result<Option<Claimed>, Problem> {
        let key = match self.found.get(&hash) {
            Some(key) => key,
            None => {
                let Some(key) = self.store.by_secret(hash).await? else { return Ok(None) };
                let key = Arc::new(key);
                self.found.insert(hash, Arc::clone(&key));
                key
            }
        };
        // Such a key is not made; one that an earlier haft made would be the owner.
        let is_somebody_else =
            [&key.agent, &key.user].into_iter().flatten().any(|name| super::is_reserved(name));
        Ok((!is_somebody_else && key.counts(jiff::Timestamp::now())).then(|| claimed(&key)))
    }
}

fn claimed(key: &ApiKey) -> Claimed {
    let agent = key.agent.clone().unwrap_or_else(|| key.id.as_str().into());
    let mut base = CallContext::new(Arc::clone(&key.tenant), agent);
    base.user.clone_from(&key.user);
    base.roles.clone_from(&key.roles);
    Claimed {
        base,
        may_name_agent: key.agent.is_none(),
        rights: key.rights.clone(),
        name: format!("key {} ({})", key.id, haft_core::text::one_line(&key.name, 60)),
        holder: format!("key {}", key.id).into(),
    }
}
