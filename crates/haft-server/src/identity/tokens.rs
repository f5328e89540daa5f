//! Tokens of an identity provider: JWTs (RFC 7519) with its signature.
//!
//! What must be so: a signature by a key of the provider, its issuer, this server's audience, a time that is not over,
//! a tenant. Rights are among the scopes (`haft:invoke`, `haft:approve`, `haft:operate`); without one the token may
//! only look. A token goes no further than here.

use super::{
    Claimed,
    fetch::{self, Fetcher},
    jwks::{self, Jwk},
};
use crate::problem::Problem;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use haft_core::{
    CallContext, ErrorCode,
    port::{BoxFuture, Right},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

/// How far the provider's clock may be off.
const LEEWAY: i64 = 30;
/// The longest token.
const LONGEST: usize = 16 << 10;
/// How often keys are looked for again, for a token by a key that is not known.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long keys count without a look.
const STALE: Duration = Duration::from_secs(10 * 60);
/// How long keys count where every look failed. A provider that is away for an hour locks nobody out; what it took back
/// a day ago counts no more.
const LAST: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the public keys of a provider are.
#[derive(Clone)]
pub enum JwksSource {
    /// In a file.
    File(PathBuf),
    /// At an address, which is asked over HTTPS; without encryption only where it is this machine.
    Url(String),
    /// Where the issuer itself says (OpenID Connect Discovery).
    Discover,
    /// Wherever this function gets them.
    Fetch(Arc<dyn Fn() -> BoxFuture<'static, Result<Vec<u8>, String>> + Send + Sync>),
}

impl fmt::Debug for JwksSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JwksSource::File(path) => f.debug_tuple("File").field(path).finish(),
            JwksSource::Url(address) => f.debug_tuple("Url").field(address).finish(),
            JwksSource::Discover => f.write_str("Discover"),
            JwksSource::Fetch(_) => f.write_str("Fetch"),
        }
    }
}

/// Whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct TokenOptions {
    /// The provider, exactly as `iss` has it.
    pub issuer: String,
    /// What `aud` must have: this server.
    pub audience: String,
    /// Its public keys.
    pub jwks: JwksSource,
    /// The claim with the tenant.
    pub tenant_claim: String,
    /// The claim with the roles, a list of texts.
    pub roles_claim: String,
    /// The address of this server as its clients know it, for the metadata of RFC 9728.
    pub resource: Option<String>,
}

impl TokenOptions {
    /// Whether the keys can be looked for at all, before anybody sends a token. The words say what is wrong with the
    /// address.
    pub fn check(&self) -> Result<(), String> {
        match &self.jwks {
            JwksSource::File(_) | JwksSource::Fetch(_) => Ok(()),
            JwksSource::Url(address) => fetch::check(address),
            JwksSource::Discover => fetch::check(&self.issuer),
        }
    }

    /// This server as its clients know it, or what is below it.
    pub(crate) fn resource(&self, below: &str) -> Option<String> {
        Some(format!("{}{below}", self.resource.as_deref()?.trim_end_matches('/')))
    }

    /// Where RFC 9728 has the metadata of this server, or of what is below it: between the host and the path.
    pub(crate) fn metadata_url(&self, below: &str) -> Option<String> {
        let resource = self.resource(below)?;
        let (scheme, rest) = resource.split_once("://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        resource
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'"')
            .then(|| format!("{scheme}://{host}/.well-known/oauth-protected-resource{path}"))
    }
}

/// The provider's keys, as they were last seen.
#[derive(Default)]
struct Seen {
    keys: Arc<Vec<Jwk>>,
    /// When they were found.
    found: Option<Instant>,
    /// When they were last looked for, in vain or not.
    looked: Option<Instant>,
}

impl Seen {
    /// The keys, where they were looked for so recently that nobody has to look again. None of them are known where
    /// every look failed: a caller with a token is told so at once, and the provider is not asked by each of them.
    fn fresh(&self, age: Duration) -> Option<Option<Arc<Vec<Jwk>>>> {
        let age = if self.keys.is_empty() { age.min(LOOK_AGAIN) } else { age };
        let is_fresh = self.looked.is_some_and(|at| at.elapsed() < age);
        is_fresh.then(|| self.usable())
    }

    fn usable(&self) -> Option<Arc<Vec<Jwk>>> {
        self.found.is_some_and(|at| at.elapsed() < LAST).then(|| Arc::clone(&self.keys))
    }
}

pub(super) struct Tokens {
    options: TokenOptions,
    seen: RwLock<Seen>,
    looking: tokio::sync::Mutex<()>,
    fetcher: Fetcher,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    /// Extensions that must be understood. None is.
    crit: Option<Value>,
}

impl Tokens {
    pub(super) fn new(options: TokenOptions) -> Self {
        Tokens {
            options,
            seen: RwLock::default(),
            looking: tokio::sync::Mutex::default(),
            fetcher: Fetcher::default(),
        }
    }

    pub(super) fn options(&self) -> &TokenOptions {
        &self.options
    }

    /// Whom a token stands for, if it is valid.
    pub(super) async fn known(self: &Arc<Self>, token: &str) -> Result<Option<Claimed>, Problem> {
        let Some(parts) = Parts::of(token) else { return Ok(None) };
        let kid = parts.header.kid.as_deref();
        let mut keys = self.keys(STALE).await?;
        if !keys.iter().any(|key| fits(key, kid)) {
            keys = self.keys(LOOK_AGAIN).await?;
        }
        let is_signed = keys
            .iter()
            .filter(|key| fits(key, kid))
            .any(|key| key.verifies(&parts.header.alg, parts.message, &parts.signature));
        if !is_signed {
            return Ok(None);
        }
        Ok(claimed(&parts.claims, &self.options, jiff::Timestamp::now().as_second()))
    }

    /// The keys, not older than that.
    async fn keys(self: &Arc<Self>, age: Duration) -> Result<Arc<Vec<Jwk>>, Problem> {
        if let Some(keys) = self.seen().fresh(age) {
            return keys.ok_or_else(unreachable);
        }
        // In a task of its own: one who hangs up must not have the provider asked again and again.
        let this = Arc::clone(self);
        tokio::spawn(async move { this.look(age).await }).await.unwrap_or_else(|_| Err(unreachable()))
    }

    async fn look(&self, age: Duration) -> Result<Arc<Vec<Jwk>>, Problem> {
        // One looks; the others wait and use what it found.
        let _looking = self.looking.lock().await;
        if let Some(keys) = self.seen().fresh(age) {
            return keys.ok_or_else(unreachable);
        }
        let found = match &self.options.jwks {
            JwksSource::File(path) => tokio::fs::read(path).await.map_err(|error| error.to_string()),
            JwksSource::Url(address) => self.fetcher.get(address).await,
            JwksSource::Discover => self.fetcher.discover(&self.options.issuer).await,
            JwksSource::Fetch(fetch) => fetch().await,
        };
        let found = found.and_then(|text| jwks::read(&text).map_err(|error| error.to_string()));
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        let now = Some(Instant::now());
        seen.looked = now;
        match found {
            Ok(keys) => (seen.keys, seen.found) = (Arc::new(keys), now),
            // The keys of before still count for a while: a provider that is away for a moment locks nobody out.
            Err(error) => tracing::warn!(%error, "the keys of the identity provider were not found"),
        }
        seen.usable().ok_or_else(unreachable)
    }

    fn seen(&self) -> std::sync::RwLockReadGuard<'_, Seen> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreachable() -> Problem {
    let text = "The keys of the identity provider cannot be reached now. Try again later";
    Problem::new(ErrorCode::StoreUnavailable, text)
}

fn fits(key: &Jwk, kid: Option<&str>) -> bool {
    kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
}

/// A token, taken apart.
struct Parts<'a> {
    header: Header,
    claims: Map<String, Value>,
    message: &'a [u8],
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Option<Self> {
        if token.len() > LONGEST {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
        let typ = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        if header.crit.is_some() || !matches!(typ.as_str(), "jwt" | "at+jwt" | "application/at+jwt") {
            return None;
        }
        let claims = serde_json::from_slice(&decode(claims)?).ok()?;
        Some(Parts { header, claims, message: message.as_bytes(), signature: decode(signature)? })
    }
}

/// For the fuzz target: a token that can be taken apart is made of its own bytes. Only built with `--cfg fuzzing`.
#[cfg(fuzzing)]
pub fn fuzz_token(token: &str) {
    if let Some(parts) = Parts::of(token) {
        assert!(parts.message.len() < token.len() && token.as_bytes().starts_with(parts.message));
        assert!(parts.header.crit.is_none() && parts.signature.len() < token.len());
        assert!(parts.claims.len() <= token.len());
    }
}

/// The scopes of a token: a text with blanks between them, or, as some issuers have it, a list.
fn scopes(claim: Option<&Value>) -> Vec<&str> {
    match claim {
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// What a signed token says, if it counts now.
fn claimed(claims: &Map<String, Value>, options: &TokenOptions, now: i64) -> Option<Claimed> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    // Seconds, which some providers write with a fraction.
    let time = |name: &str| claims.get(name).map(|value| value.as_f64().map(|seconds| seconds as i64));
    let listed = |value: &Value, wanted: &str| match value {
        Value::String(only) => only == wanted,
        Value::Array(several) => several.iter().any(|one| one.as_str() == Some(wanted)),
        _ => false,
    };
    let is_for_us = text("iss") == Some(&options.issuer)
        && claims.get("aud").is_some_and(|audience| listed(audience, &options.audience));
    let is_now = now < time("exp")??.saturating_add(LEEWAY)
        && match time("nbf") {
            None => true,
            Some(from) => now >= from?.saturating_sub(LEEWAY),
        };
    if !is_for_us || !is_now {
        return None;
    }
    let (subject, tenant) = (text("sub")?, text(&options.tenant_claim)?);
    let rights = scopes(claims.get("scope").or_else(|| claims.get("scp")))
        .into_iter()
        .filter_map(|scope| scope.strip_prefix("haft:")?.parse::<Right>().ok())
        .collect();
    let roles = match claims.get(&options.roles_claim) {
        Some(Value::Array(roles)) => {
            roles.iter().filter_map(|role| Some(role.as_str()?.to_owned())).collect()
        }
        Some(Value::String(role)) => vec![role.clone()],
        _ => Vec::new(),
    };
    let agent = text("azp").or_else(|| text("client_id")).unwrap_or(subject);
    // Nobody is the owner, a client of theirs or a key because an issuer lets them be called so.
    if [subject, agent].into_iter().any(super::is_reserved) {
        return None;
    }
    let base = CallContext { user: Some(subject.into()), roles, ..CallContext::new(tenant, agent) };
    let name = format!("token of {}", haft_core::text::one_line(subject, 80));
    let holder = format!("token {tenant}/{subject}").into();
    Some(Claimed { base, may_name_agent: false, rights, name, holder })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn options() -> TokenOptions {
        TokenOptions {
            issuer: "https://id.example".into(),
            audience: "haft".into(),
            jwks: JwksSource::File("none".into()),
            tenant_claim: "tenant".into(),
            roles_claim: "roles".into(),
            resource: Some("https://haft.example/".into()),
        }
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_token_counts_only_with_everything_it_must_say() {
        let good = json!({"iss": "https://id.example", "aud": ["x", "haft"], "exp": 1000, "sub": "ada", "tenant": "acme",
            "scope": "openid haft:invoke haft:fly", "roles": ["editor"], "azp": "ci"});
        let who = claimed(&map(good.clone()), &options(), 900).unwrap();
        assert_eq!(
            (&*who.base.tenant, &*who.base.agent, who.base.user.as_deref()),
            ("acme", "ci", Some("ada"))
        );
        assert_eq!((who.rights, who.base.roles), (vec![Right::Invoke], vec!["editor".to_owned()]));
        for (name, value, expected) in [
            ("scp", json!("openid haft:invoke"), vec![Right::Invoke]),
            ("scp", json!(["openid", "haft:invoke", "haft:approve", 7]), vec![Right::Invoke, Right::Approve]),
            ("scp", json!(["openid haft:invoke"]), vec![]),
            ("scope", json!(["haft:operate"]), vec![Right::Operate]),
            ("scp", json!({"haft:invoke": true}), vec![]),
        ] {
            let mut other = map(good.clone());
            other.remove("scope");
            other.insert(name.to_owned(), value.clone());
            assert_eq!(claimed(&other, &options(), 900).unwrap().rights, expected, "{name} {value}");
        }
        for missing in ["iss", "aud", "exp", "sub", "tenant"] {
            let mut less = map(good.clone());
            less.remove(missing);
            assert!(claimed(&less, &options(), 900).is_none(), "{missing}");
        }
        for (name, value) in [
            ("iss", json!("https://evil.example")),
            ("aud", json!("haft2")),
            ("exp", json!("1000")),
            ("exp", json!(null)),
            ("nbf", json!(2000)),
            ("nbf", json!("soon")),
            ("tenant", json!("")),
            ("tenant", json!(["acme"])),
        ] {
            let mut other = map(good.clone());
            other.insert(name.to_owned(), value.clone());
            assert!(claimed(&other, &options(), 900).is_none(), "{name} {value}");
        }
        assert!(claimed(&map(good.clone()), &options(), 1029).is_some(), "clocks differ a little");
        assert!(claimed(&map(good), &options(), 1030).is_none());
    }

    #[test]
    fn what_is_no_token_is_none() {
        let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = part(json!({}));
        let with = |header: Value| format!("{}.{claims}.c2ln", part(header));
        assert!(Parts::of(&with(json!({"alg": "RS256"}))).is_some());
        for bad in [
            String::new(),
            "a.b.c".into(),
            format!("{claims}.c2ln"),
            with(json!({"alg": "RS256", "crit": ["b64"]})),
            with(json!({"alg": "RS256", "typ": "dpop+jwt"})),
            with(json!({"typ": "JWT"})),
            "a".repeat(LONGEST + 1),
        ] {
            assert!(Parts::of(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_metadata_is_between_host_and_path() {
        let place = "https://haft.example/.well-known/oauth-protected-resource";
        assert_eq!(options().metadata_url("").as_deref(), Some(place));
        assert_eq!(options().metadata_url("/mcp"), Some(format!("{place}/mcp")));
        let below = TokenOptions { resource: Some("https://haft.example/tools".into()), ..options() };
        assert_eq!(below.metadata_url("/mcp"), Some(format!("{place}/tools/mcp")));
        let odd = TokenOptions { resource: Some("https://x\"\r\n".into()), ..options() };
        assert_eq!(odd.metadata_url(""), None);
    }
}
