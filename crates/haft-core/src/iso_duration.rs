//! Serde for durations as ISO 8601 texts (`PT30S`), the form of tool definitions.

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// The text of a duration.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(haft_core::iso_duration::format(Duration::from_secs(90)), "PT1M30S");
/// ```
pub fn format(duration: Duration) -> String {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX).to_string()
}

/// The duration of a text, if it is one and not negative. Short forms such as `30s` are taken, too.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(haft_core::iso_duration::parse("PT30S"), Ok(Duration::from_secs(30)));
/// assert!(haft_core::iso_duration::parse("-PT1S").is_err());
/// ```
pub fn parse(text: &str) -> Result<Duration, String> {
    let signed: SignedDuration = text
        .parse()
        .map_err(|error| format!("`{text}` is not an ISO 8601 duration such as PT30S ({error})"))?;
    Duration::try_from(signed).map_err(|_| format!("`{text}` is negative, and a duration here cannot be"))
}

/// Writes it.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    format(*duration).serialize(serializer)
}

/// Reads it.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// For durations that may be absent.
pub mod option {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    /// Writes it.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(super::format).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Option::<String>::deserialize(deserializer)?
            .map(|text| super::parse(&text).map_err(serde::de::Error::custom))
            .transpose()
    }
}
