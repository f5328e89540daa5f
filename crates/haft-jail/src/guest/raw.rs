//! Paths in JSON: as text where they are UTF-8, else as bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

/// A path that can be written as JSON, whatever is in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Raw(pub(crate) PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Either {
    Text(String),
    Bytes(Vec<u8>),
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Raw)
    }
}

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => serializer.collect_seq(path.as_os_str().as_bytes()),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match Either::deserialize(deserializer)? {
        Either::Text(text) => text.into(),
        Either::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_path_comes_back_as_it_was() {
        for bytes in [&b"/w/plain"[..], b"/w/\xff\xfe/.env", "/w/gr\u{fc}n".as_bytes(), b"", b"[1]"] {
            let path = Raw(OsString::from_vec(bytes.to_vec()).into());
            let text = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<Raw>(&text).unwrap(), path, "{text}");
        }
    }
}
