//! Folders that a client works in.

#![allow(deprecated, reason = "2025-06-18 and 2025-11-25 have roots; 2026-07-28 keeps them for a while")]

use rmcp::model::ListRootsResult;
use serde_json::Value;
use std::path::PathBuf;

/// The folders of an answer to `roots/list`.
pub(super) fn folders(answer: Value) -> Option<Vec<PathBuf>> {
    let ListRootsResult { roots, .. } = serde_json::from_value(answer).ok()?;
    Some(roots.iter().filter_map(|root| folder(&root.uri)).collect())
}

/// Folders as a call's context has them. What is no text leads nowhere.
pub(super) fn as_text(folders: &[PathBuf]) -> Vec<String> {
    folders.iter().filter_map(|folder| folder.to_str().map(str::to_owned)).collect()
}

/// The path of a `file:` address on this machine.
fn folder(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        // Another machine.
        return None;
    }
    let path = percent_decoded(rest)?;
    if path.contains('\0') {
        return None;
    }
    // `file:///C:/work` is `C:/work`.
    let drive = path.as_bytes();
    let has_drive = cfg!(windows) && drive.get(2) == Some(&b':');
    Some(PathBuf::from(if has_drive { &path[1..] } else { &path }))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_this_machine_are_taken() {
        for (uri, expected) in [
            ("file:///home/ada/project", Some("/home/ada/project")),
            ("file://localhost/home/ada", Some("/home/ada")),
            ("file:///with%20space/%C3%A9", Some("/with space/é")),
            ("file://elsewhere/share", None),
            ("https://example.com/x", None),
            ("file:///a%00b", None),
            ("file:///a%zz", None),
            ("file:///a%4", None),
            ("file:///%ff", None),
            ("file:relative", None),
            ("", None),
        ] {
            assert_eq!(folder(uri), expected.map(PathBuf::from), "{uri}");
        }
    }
}
