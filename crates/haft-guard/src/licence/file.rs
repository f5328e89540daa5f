//! Signed licence files.

use crate::keys::{KeyError, SecretKey, TrustedKeys};
use base64::{Engine, prelude::BASE64_STANDARD};
use haft_core::Tier;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a licence says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Licence {
    /// The number of the licence.
    pub id: String,
    /// Whose it is.
    pub holder: String,
    /// The tier.
    pub tier: Tier,
    /// From when on it holds.
    pub valid_from: Timestamp,
    /// Until when; absent: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The tenant that it is for; absent: all of an installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// A licence as it stands in a file: its bytes in base64, so that what was signed is what is read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LicenceFile {
    licence: String,
    key: String,
    signature: String,
}

/// Why a licence does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LicenceProblem {
    /// It cannot be read.
    #[error("the licence cannot be read: {0}")]
    Unreadable(String),
    /// The signature does not count.
    #[error("the licence does not count: {0}")]
    Key(#[from] KeyError),
    /// It held until then.
    #[error("the licence {id} expired on {at}")]
    Expired {
        /// The number of the licence.
        id: String,
        /// When the licence expired.
        at: Timestamp,
    },
    /// It holds only from then on.
    #[error("the licence {id} begins on {at}")]
    NotYet {
        /// The number of the licence.
        id: String,
        /// When the licence begins.
        at: Timestamp,
    },
    /// It is for somebody else.
    #[error("the licence {id} is for another tenant")]
    OtherTenant {
        /// The number of the licence.
        id: String,
    },
}

/// Says what is signed, so that a signature of something else never counts as one of a licence.
fn message(payload: &[u8]) -> Vec<u8> {
    [b"haft-licence-1\0", payload].concat()
}

impl Licence {
    /// The text of a signed licence file.
    ///
    /// ```
    /// use haft_core::Tier;
    /// use haft_guard::{Licence, SecretKey, TrustedKeys};
    /// let key = SecretKey::from_seed([7; 32]);
    /// let licence = Licence {
    ///     id: "L-1".into(), holder: "ACME".into(), tier: Tier::Teams,
    ///     valid_from: jiff::Timestamp::UNIX_EPOCH, expires: None, tenant: None,
    /// };
    /// let file = licence.sign(&key)?;
    /// let read = Licence::read(&file, &TrustedKeys::new([key.public()]))?;
    /// assert_eq!(read, licence);
    /// # Ok::<(), haft_guard::LicenceProblem>(())
    /// ```
    pub fn sign(&self, key: &SecretKey) -> Result<String, LicenceProblem> {
        let unreadable = |error: serde_json::Error| LicenceProblem::Unreadable(error.to_string());
        let payload = serde_json::to_vec(self).map_err(unreadable)?;
        let file = LicenceFile {
            licence: BASE64_STANDARD.encode(&payload),
            key: key.public().id(),
            signature: key.sign(&message(&payload)),
        };
        serde_json::to_string_pretty(&file).map_err(unreadable)
    }

    /// Reads a licence file. The signature is checked before a word of the licence is believed.
    pub fn read(text: &str, authority: &TrustedKeys) -> Result<Licence, LicenceProblem> {
        let unreadable = |error: &dyn fmt::Display| LicenceProblem::Unreadable(error.to_string());
        let file: LicenceFile = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        let payload = BASE64_STANDARD.decode(&file.licence).map_err(|error| unreadable(&error))?;
        authority.verify(&file.key, &message(&payload), &file.signature)?;
        serde_json::from_slice(&payload).map_err(|error| unreadable(&error))
    }

    /// Whether it holds at a time, for a tenant.
    pub fn holds(&self, now: Timestamp, tenant: &str) -> Result<(), LicenceProblem> {
        let id = || self.id.clone();
        if now < self.valid_from {
            return Err(LicenceProblem::NotYet { id: id(), at: self.valid_from });
        }
        if let Some(at) = self.expires.filter(|at| now >= *at) {
            return Err(LicenceProblem::Expired { id: id(), at });
        }
        match &self.tenant {
            Some(own) if own != tenant => Err(LicenceProblem::OtherTenant { id: id() }),
            _ => Ok(()),
        }
    }
}

/// Why a caller has the tier that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierSource {
    /// Nobody gives out licences here: the owner is not limited.
    Owner,
    /// By this licence.
    Licence(String),
    /// There is no licence.
    None,
    /// There is one, and it does not count.
    Refused(LicenceProblem),
}

/// How tiers are given here.
#[derive(Clone, Debug, Default)]
pub enum Licensing {
    /// Nobody gives out licences: the owner is not limited.
    #[default]
    Unlimited,
    /// A licence decides; without one that counts, the tier is Core.
    ByLicence(Result<Option<Licence>, LicenceProblem>),
}

impl Licensing {
    /// By a licence file, where an authority is configured. Without an authority a file says nothing.
    ///
    /// ```
    /// use haft_core::Tier;
    /// use haft_guard::{Licensing, TrustedKeys};
    /// let owner = Licensing::new(&TrustedKeys::default(), None);
    /// assert_eq!(owner.tier(jiff::Timestamp::UNIX_EPOCH, "local").0, Tier::Enterprise);
    /// ```
    pub fn new(authority: &TrustedKeys, file: Option<&str>) -> Self {
        match authority.is_empty() {
            true => Licensing::Unlimited,
            false => Licensing::ByLicence(file.map(|text| Licence::read(text, authority)).transpose()),
        }
    }

    /// The tier of a tenant at a time, and why.
    pub fn tier(&self, now: Timestamp, tenant: &str) -> (Tier, TierSource) {
        match self {
            Licensing::Unlimited => (Tier::Enterprise, TierSource::Owner),
            Licensing::ByLicence(Ok(None)) => (Tier::Core, TierSource::None),
            Licensing::ByLicence(Err(problem)) => (Tier::Core, TierSource::Refused(problem.clone())),
            Licensing::ByLicence(Ok(Some(licence))) => match licence.holds(now, tenant) {
                Ok(()) => (licence.tier, TierSource::Licence(licence.id.clone())),
                Err(problem) => (Tier::Core, TierSource::Refused(problem)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn licence() -> Licence {
        Licence {
            id: "L-7".into(),
            holder: "ACME".into(),
            tier: Tier::Teams,
            valid_from: at(100),
            expires: Some(at(200)),
            tenant: None,
        }
    }

    fn authority() -> (SecretKey, TrustedKeys) {
        let key = SecretKey::from_seed([5; 32]);
        let trusted = TrustedKeys::new([key.public()]);
        (key, trusted)
    }

    #[test]
    fn the_tier_comes_from_a_licence_that_counts() {
        let (key, trusted) = authority();
        let file = licence().sign(&key).unwrap();
        let tier = |file: Option<&str>, second| Licensing::new(&trusted, file).tier(at(second), "acme");
        assert_eq!(tier(Some(&file), 150), (Tier::Teams, TierSource::Licence("L-7".into())));
        assert_eq!(tier(Some(&file), 100).0, Tier::Teams);
        assert_eq!(tier(None, 150), (Tier::Core, TierSource::None));
        let refused = |answer: (Tier, TierSource)| match answer {
            (Tier::Core, TierSource::Refused(problem)) => problem.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(tier(Some(&file), 200)), "the licence L-7 expired on 1970-01-01T00:03:20Z");
        assert_eq!(refused(tier(Some(&file), 99)), "the licence L-7 begins on 1970-01-01T00:01:40Z");
        let theirs = Licence { tenant: Some("other".into()), ..licence() }.sign(&key).unwrap();
        assert_eq!(refused(tier(Some(&theirs), 150)), "the licence L-7 is for another tenant");
        assert_eq!(Licensing::new(&TrustedKeys::default(), Some(&file)).tier(at(0), "x").0, Tier::Enterprise);
    }

    #[test]
    fn a_licence_that_was_tampered_with_is_refused() {
        let (key, trusted) = authority();
        let file = licence().sign(&key).unwrap();
        let better = Licence { tier: Tier::Enterprise, expires: None, ..licence() };
        let payload = |licence: &Licence| BASE64_STANDARD.encode(serde_json::to_vec(licence).unwrap());
        let tampered = file.replace(&payload(&licence()), &payload(&better));
        assert_ne!(tampered, file);
        assert_eq!(Licence::read(&tampered, &trusted), Err(KeyError::Changed(key.public().id()).into()));
        let stranger = SecretKey::from_seed([6; 32]);
        let own = better.sign(&stranger).unwrap();
        assert_eq!(Licence::read(&own, &trusted), Err(KeyError::Untrusted(stranger.public().id()).into()));
        let posing = own.replace(&stranger.public().id(), &key.public().id());
        assert!(matches!(Licence::read(&posing, &trusted), Err(LicenceProblem::Key(KeyError::Changed(_)))));
        for broken in ["", "{}", "[]", &file.replace("licence", "license"), &file[..file.len() - 2]] {
            assert!(
                matches!(Licence::read(broken, &trusted), Err(LicenceProblem::Unreadable(_))),
                "{broken}"
            );
        }
    }

    #[test]
    fn a_signed_tool_is_no_licence() {
        let (key, trusted) = authority();
        let payload = serde_json::to_vec(&licence()).unwrap();
        let tool = crate::sign_tool(&key, &payload, None);
        let file = serde_json::json!({
            "licence": BASE64_STANDARD.encode(&payload), "key": tool.key, "signature": tool.signature,
        });
        assert!(Licence::read(&file.to_string(), &trusted).is_err());
    }
}
