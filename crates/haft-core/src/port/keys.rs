//! Keys by which programs are known to a server, as a store keeps them.

use super::{BoxFuture, StoreError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, sync::Arc};

/// Something that a caller with an identity may do at a server, besides looking at what is its tenant's.
///
/// ```
/// use haft_core::port::Right;
/// assert_eq!("approve".parse(), Ok(Right::Approve));
/// assert_eq!(serde_json::to_string(&Right::Invoke).unwrap(), "\"invoke\"");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Make calls, end them, make sandboxes.
    Invoke,
    /// Answer questions, take grants back.
    Approve,
    /// See what concerns the whole server: numbers of all tenants, what the machine can hold in.
    Operate,
}

impl Right {
    /// All three.
    pub const ALL: [Right; 3] = [Right::Invoke, Right::Approve, Right::Operate];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Right::Invoke => "invoke",
            Right::Approve => "approve",
            Right::Operate => "operate",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Right {
    type Err = NotARight;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Right::ALL.into_iter().find(|right| right.as_str() == text).ok_or(NotARight)
    }
}

/// Text that is no right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a right: there are invoke, approve and operate")]
pub struct NotARight;

/// A key, without its secret, which nobody keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// By which it is revoked. No secret.
    pub id: String,
    /// What it is for, in words.
    pub name: String,
    /// The tenant that it belongs to: it reaches nothing of any other.
    pub tenant: Arc<str>,
    /// The agent that it stands for. Where absent, a request may say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The person behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// Its roles, which decide about tools.
    #[serde(default)]
    pub roles: Vec<String>,
    /// What it may do.
    pub rights: Vec<Right>,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// Until when it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Since when it does not count any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl ApiKey {
    /// Whether it counts at that time.
    ///
    /// ```
    /// use haft_core::port::{ApiKey, Right};
    /// # let now = jiff::Timestamp::from_second(100).unwrap();
    /// let key = ApiKey {
    ///     id: "key_1".into(), name: "ci".into(), tenant: "acme".into(), agent: None, user: None, roles: vec![],
    ///     rights: vec![Right::Invoke], created_at: now, created_by: "ada".into(), expires_at: Some(now), revoked_at: None,
    /// };
    /// assert!(key.counts(jiff::Timestamp::from_second(99).unwrap()) && !key.counts(now));
    /// ```
    pub fn counts(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// SHA-256 of a key's secret: all that is kept of it.
pub type SecretHash = [u8; 32];

/// Where keys are kept.
pub trait KeyStore: Send + Sync {
    /// Keeps a new key. A store with an audit records who made it.
    fn add<'a>(&'a self, key: ApiKey, hash: SecretHash) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The key with that secret, whether it still counts or not.
    fn by_secret<'a>(&'a self, hash: SecretHash) -> BoxFuture<'a, Result<Option<ApiKey>, StoreError>>;

    /// All keys, or those of a tenant, oldest first.
    fn all<'a>(&'a self, tenant: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ApiKey>, StoreError>>;

    /// Lets a key count no longer; `by` is who says so, for the audit. False where there is none of that id, or it was
    /// revoked before.
    fn revoke<'a>(&'a self, id: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;
}
