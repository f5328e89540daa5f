//! Who asks.
//!
//! The threat: anybody who reaches the socket. What is defended: every route but health. A request is known by exactly
//! one `Authorization` header, or, without one, by the unix socket that it came in on. Whatever is unclear is nobody.

mod fetch;
mod jwks;
mod keys;
mod refusals;
mod tokens;

pub use keys::ApiSecret;
pub(crate) use refusals::{Peer, Refusals, Why};
#[cfg(fuzzing)]
pub use tokens::fuzz_token;
pub use tokens::{JwksSource, TokenOptions};

use crate::{backend::ServerBackend, problem::Problem};
use axum::http::{HeaderMap, HeaderValue, header};
use haft_core::{
    CallContext, ErrorCode, Tier,
    port::{KeyStore, Right, SecretHash},
};
use keys::Keys;
use std::{fmt, sync::Arc, time::Duration};
use tokens::Tokens;

/// How often it is looked whether somebody whose request is still open still counts.
const LOOK: Duration = Duration::from_millis(750);

/// The process at the other end of a unix socket belongs to the user who runs this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SameUser;

/// Who asks, and what they may.
#[derive(Clone, Debug)]
pub(crate) struct Identity(Arc<Known>);

#[derive(Debug)]
struct Known {
    base: Arc<CallContext>,
    /// Whether a request may say which agent it is for.
    may_name_agent: bool,
    rights: Vec<Right>,
    /// In a word, for records of who did something.
    name: String,
    /// In a word, for counts: one key or one person of one tenant.
    holder: Arc<str>,
    proof: Proof,
}

/// What somebody showed, to look at again while their request is open.
enum Proof {
    /// The process at the other end of a socket: it stays who it is.
    Owner,
    Key(SecretHash),
    Token(Box<str>),
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Proof::Owner => "Owner",
            Proof::Key(_) => "Key(…)",
            Proof::Token(_) => "Token(…)",
        })
    }
}

/// Whether somebody is who they were, and may all that they could. What a key says of itself in words is free to
/// change.
fn still_counts(before: &Known, now: &Claimed, tier: Tier) -> bool {
    let Claimed { base, may_name_agent, rights, name: _, holder } = now;
    *before.base == (CallContext { tier, ..base.clone() })
        && before.may_name_agent == *may_name_agent
        && before.holder == *holder
        && before.rights.iter().all(|right| rights.contains(right))
}

impl Identity {
    pub(crate) fn tenant(&self) -> &str {
        &self.0.base.tenant
    }

    pub(crate) fn base(&self) -> &Arc<CallContext> {
        &self.0.base
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// For counts: one key or one person of one tenant.
    pub(crate) fn holder(&self) -> &Arc<str> {
        &self.0.holder
    }

    /// The agent that a call is made for, where the request names that one. The only place in which it is decided: what
    /// a request says never makes it somebody else's, so a name that comes with a key stands behind that key's id.
    pub(crate) fn agent(&self, named: Option<Arc<str>>) -> Result<Arc<str>, Problem> {
        let own = &self.0.base.agent;
        let Some(named) = named.filter(|named| named != own) else { return Ok(Arc::clone(own)) };
        if !self.0.may_name_agent {
            let text = "This key is bound to one agent, and the request names another";
            return Err(Problem::new(ErrorCode::PermissionDenied, text));
        }
        if is_reserved(&named) {
            let text = "A request cannot name the agents `owner`, `mcp:…` and `key_…`, which haft gives out itself: name \
                        another one, or none";
            return Err(Problem::new(ErrorCode::PermissionDenied, text));
        }
        Ok(match self.0.proof {
            Proof::Owner => named,
            Proof::Key(_) | Proof::Token(_) => format!("{own}/{named}").into(),
        })
    }

    pub(crate) fn rights(&self) -> &[Right] {
        &self.0.rights
    }

    pub(crate) fn may(&self, right: Right) -> bool {
        self.0.rights.contains(&right)
    }

    /// Refuses a caller without that right.
    pub(crate) fn needs(&self, right: Right) -> Result<(), Problem> {
        if self.may(right) {
            return Ok(());
        }
        let detail = format!("This needs the right `{right}`, which {} does not have", self.0.name);
        Err(Problem::new(ErrorCode::PermissionDenied, detail))
    }
}

/// How a server knows who asks.
pub(crate) struct Identifier {
    pub(crate) owner: Option<Arc<CallContext>>,
    keys: Option<Keys>,
    tokens: Option<Arc<Tokens>>,
    /// Whether one key may both call and approve.
    both_rights: bool,
    pub(crate) refusals: Arc<Refusals>,
}

/// Where a request came in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CameIn<'a> {
    /// Its path: the metadata of RFC 9728 is that of the service there.
    pub(crate) path: &'a str,
    /// On a unix socket, by a process of the user who runs this.
    pub(crate) is_same_user: bool,
    /// From that address.
    pub(crate) peer: Option<Peer>,
}

impl Identifier {
    pub(crate) fn new(
        owner: Option<Arc<CallContext>>,
        keys: Option<Arc<dyn KeyStore>>,
        tokens: Option<TokenOptions>,
        both_rights: bool,
    ) -> Self {
        Identifier {
            owner,
            keys: keys.map(Keys::new),
            tokens: tokens.map(Tokens::new).map(Arc::new),
            both_rights,
            refusals: Arc::default(),
        }
    }

    pub(crate) fn token_options(&self) -> Option<&TokenOptions> {
        self.tokens.as_deref().map(Tokens::options)
    }

    /// Lets nobody in, and says how one becomes known (RFC 6750, RFC 9728).
    fn nobody(&self, why: Why, detail: &'static str, came_in: CameIn<'_>) -> Problem {
        self.refusals.count(why, came_in.peer);
        let below = if came_in.path == "/mcp" { "/mcp" } else { "" };
        let mut challenge = "Bearer realm=\"haft\"".to_owned();
        if matches!(why, Why::Unknown) {
            challenge.push_str(", error=\"invalid_token\"");
        }
        if let Some(url) = self.token_options().and_then(|tokens| tokens.metadata_url(below)) {
            challenge.push_str(&format!(", resource_metadata=\"{url}\""));
        }
        let plain = HeaderValue::from_static("Bearer realm=\"haft\"");
        Problem::unauthenticated(detail, HeaderValue::try_from(challenge).unwrap_or(plain))
    }

    /// Who makes a request with these headers.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        came_in: CameIn<'_>,
        backend: &dyn ServerBackend,
    ) -> Result<Identity, Problem> {
        let mut offered = headers.get_all(header::AUTHORIZATION).iter();
        let bearer = match (offered.next(), offered.next()) {
            (None, _) => {
                let owner = self.owner.as_ref().filter(|_| came_in.is_same_user);
                return owner.map(owner_identity).ok_or_else(|| {
                    let detail =
                        "Send a key or a token, as Authorization: Bearer …; `haft keys create` makes a key";
                    self.nobody(Why::Nothing, detail, came_in)
                });
            }
            (Some(only), None) => only.to_str().ok().and_then(bearer),
            (Some(_), Some(_)) => None,
        };
        let Some(bearer) = bearer else {
            let detail = "Send exactly one Authorization header, of the form Bearer …";
            return Err(self.nobody(Why::Unknown, detail, came_in));
        };
        let unknown = || {
            let detail = "The key or token is not known here, has expired, or was revoked";
            self.nobody(Why::Unknown, detail, came_in)
        };
        let proof = match ApiSecret::is_one(bearer) {
            true => Proof::Key(keys::hash(bearer)),
            false => Proof::Token(bearer.into()),
        };
        let known = self.claimed(&proof).await?.ok_or_else(unknown)?;
        let context = CallContext { tier: backend.tier(&known.base.tenant), ..known.base };
        if context.check().is_err() {
            return Err(unknown());
        }
        Ok(Identity(Arc::new(Known {
            base: Arc::new(context),
            may_name_agent: known.may_name_agent,
            rights: known.rights,
            name: known.name,
            holder: known.holder,
            proof,
        })))
    }

    /// What is claimed with that, if it counts now.
    async fn claimed(&self, proof: &Proof) -> Result<Option<Claimed>, Problem> {
        let claimed = match (proof, &self.keys, &self.tokens) {
            (Proof::Key(hash), Some(keys), _) => keys.known(*hash).await?,
            (Proof::Token(token), _, Some(tokens)) => tokens.known(token).await?,
            (Proof::Owner, ..) | (Proof::Key(_), None, _) | (Proof::Token(_), _, None) => None,
        };
        Ok(claimed.map(|mut claimed| {
            if !self.both_rights && claimed.rights.contains(&Right::Invoke) {
                // A caller does not approve its own calls, unless the operator said so.
                claimed.rights.retain(|right| *right != Right::Approve);
            }
            claimed
        }))
    }

    /// Waits until somebody does not count any more as they did: their key was revoked, their time is over, or they may
    /// less. Where that cannot be found out, they do not count.
    pub(crate) async fn lost(&self, identity: &Identity, backend: &dyn ServerBackend) {
        let before = &*identity.0;
        if matches!(before.proof, Proof::Owner) {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            let tier = backend.tier(&before.base.tenant);
            match self.claimed(&before.proof).await {
                Ok(Some(now)) if still_counts(before, &now, tier) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// What is said to somebody who counted when they asked, and does not any more.
    pub(crate) fn lost_problem(&self, path: &str, peer: Option<Peer>) -> Problem {
        let detail = "The key or token has expired or was revoked while the request was open";
        self.nobody(Why::Unknown, detail, CameIn { path, is_same_user: false, peer })
    }
}

/// Whether haft itself gives that name: to the owner, to MCP clients of the owner, to keys. However it is written. No
/// key and no token stands for such a one.
///
/// ```
/// use haft_server::is_reserved;
/// assert!(is_reserved("owner") && is_reserved(" Owner/x") && is_reserved("mcp:Code") && is_reserved("key_1"));
/// assert!(!is_reserved("builder"));
/// ```
pub fn is_reserved(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    name == "owner" || ["owner/", "mcp:", "key_"].iter().any(|start| name.starts_with(start))
}

/// What a key or a token says, before the tier is known.
pub(crate) struct Claimed {
    pub(crate) base: CallContext,
    pub(crate) may_name_agent: bool,
    pub(crate) rights: Vec<Right>,
    pub(crate) name: String,
    /// For counts: one key or one person of one tenant.
    pub(crate) holder: Arc<str>,
}

fn owner_identity(owner: &Arc<CallContext>) -> Identity {
    let name = owner.user.as_deref().unwrap_or(&owner.agent).to_owned();
    Identity(Arc::new(Known {
        base: Arc::clone(owner),
        may_name_agent: true,
        rights: Right::ALL.to_vec(),
        name,
        holder: "owner".into(),
        proof: Proof::Owner,
    }))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_is_one_word_after_its_scheme() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        for nothing in ["Bearer", "Bearer ", "Basic abc", "abc", ""] {
            assert_eq!(bearer(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn whoever_is_another_or_may_less_counts_no_more() {
        let claimed = || Claimed {
            base: CallContext { roles: vec!["editor".into()], ..CallContext::new("acme", "ci") },
            may_name_agent: false,
            rights: vec![Right::Invoke, Right::Operate],
            name: "key k (ci)".into(),
            holder: "key k".into(),
        };
        let Claimed { base, may_name_agent, rights, name, holder } = claimed();
        let known = Known { base: Arc::new(base), may_name_agent, rights, name, holder, proof: Proof::Owner };
        let counts = |change: fn(&mut Claimed)| {
            let mut now = claimed();
            change(&mut now);
            still_counts(&known, &now, Tier::Core)
        };
        assert!(counts(|_| {}));
        assert!(counts(|now| now.name = "key k (another name)".into()));
        assert!(counts(|now| now.rights.push(Right::Approve)), "more is not less");
        assert!(!still_counts(&known, &claimed(), Tier::Enterprise), "another tier");
        let less: [fn(&mut Claimed); 8] = [
            |now| now.rights.truncate(1),
            |now| now.rights.clear(),
            |now| now.base.roles.clear(),
            |now| now.base.tenant = "rival".into(),
            |now| now.base.agent = "other".into(),
            |now| now.base.user = Some("eve".into()),
            |now| now.may_name_agent = true,
            |now| now.holder = "key other".into(),
        ];
        for (place, change) in less.into_iter().enumerate() {
            assert!(!counts(change), "{place}");
        }
    }

    fn known(agent: &str, may_name_agent: bool, proof: Proof) -> Identity {
        Identity(Arc::new(Known {
            base: Arc::new(CallContext::new("acme", agent)),
            may_name_agent,
            rights: Vec::new(),
            name: "k".into(),
            holder: "k".into(),
            proof,
        }))
    }

    #[test]
    fn whatever_a_request_names_the_agent_is_that_of_its_key() {
        let names = ["owner", " Owner", "mcp:Code", "MCP:x", "key_b", "KEY_b/x", "owner/x"];
        let more = ["a", "did:agent:7", "a/b", "key", "owners", "../owner", "key_a", "ö"];
        let key = known("key_a", true, Proof::Key([0; 32]));
        for name in names.into_iter().chain(more) {
            match key.agent(Some(name.into())) {
                Ok(agent) => assert!(&*agent == "key_a" || agent.starts_with("key_a/"), "{name}: {agent}"),
                Err(_) => assert!(names.contains(&name), "{name}"),
            }
            let owner = known("owner", true, Proof::Owner);
            assert_eq!(
                owner.agent(Some(name.into())).is_err(),
                names[1..].contains(&name) || name == "key_a",
                "{name}"
            );
            let bound = known("ci", false, Proof::Key([0; 32]));
            assert!(bound.agent(Some(name.into())).is_err(), "{name}");
        }
        assert_eq!(&*key.agent(None).unwrap(), "key_a");
        assert_eq!(&*key.agent(Some("x".into())).unwrap(), "key_a/x");
    }

    #[test]
    fn a_revoked_key_is_noticed_within_two_seconds() {
        assert!(LOOK + keys::REMEMBERED < Duration::from_secs(2));
    }
}
