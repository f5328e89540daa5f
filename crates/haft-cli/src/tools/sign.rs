//! `haft tools sign` and `haft tools verify`: signatures beside files that describe tools.

use super::super::{
    console::{BAD, Console, GOOD, STRONG},
    definition_file::{self, Format},
    failure::{Failure, USAGE},
    input::Input,
    keys,
    setup::CliContext,
    words,
};
use haft::assembly::{Payload, Signatures, Source};
use haft_core::text::one_line;
use haft_guard::sign_tool;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Where the signature of a file stands.
pub(super) fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

/// A file of definitions with what stands beside it.
pub(super) fn source(file: &Path, input: &mut Input, working_folder: &Path) -> Result<Source, Failure> {
    let text = input.text(file, working_folder)?;
    let is_json = definition_file::format(file, &text) == Format::Json;
    let path = working_folder.join(file);
    let is_stdin = file.as_os_str() == "-";
    let folder = if is_stdin { Some(working_folder) } else { path.parent() };
    let signature_file = beside(&path);
    let signature = match !is_stdin && signature_file.exists() {
        true => Some(input.text(&signature_file, working_folder)?),
        false => None,
    };
    Ok(Source { text, is_json, folder: folder.unwrap_or(working_folder).to_path_buf(), signature })
}

pub(super) fn sign(
    file: &Path,
    key: Option<&Path>,
    json: bool,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let working_folder = &surroundings.working_folder;
    let key = keys::read(&keys::place(key, &surroundings)?)?;
    let source = source(file, &mut Input::default(), working_folder)?;
    let bad = |problem: String| Failure::BadDefinitions {
        name: words::path(file),
        list: format!("  {}", one_line(&problem, 4000)),
    };
    let definitions = source.definitions().map_err(bad)?;
    let payload = Payload::of(&definitions).map_err(|error| bad(error.to_string()))?;
    let signature = sign_tool(&key, source.text.as_bytes(), payload.digest.as_deref());
    let path = beside(&working_folder.join(file));
    let text = serde_json::to_string_pretty(&signature).map_err(Failure::Unwritable)?;
    std::fs::write(&path, format!("{text}\n"))
        .map_err(|reason| Failure::CannotWrite { path: path.clone(), reason })?;
    let shown = words::relative(&path, working_folder);
    if json {
        console.print_json(&json!({"signature": shown, "key": signature.key}))?;
    } else {
        let covers = if payload.digest.is_some() { ", with what it runs" } else { "" };
        console.print(format!("signed by {}{covers}: {}\n", signature.key, words::path(&shown)))?;
    }
    Ok(0)
}

pub(super) fn verify(
    files: &[PathBuf],
    json: bool,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let configured = ground.configured(console)?;
    let signatures = Signatures::new(&configured.resolved.config, None).map_err(Failure::Build)?;
    let mut input = Input::default();
    let mut all_count = true;
    let mut found = Vec::new();
    for file in files {
        let source = source(file, &mut input, &configured.surroundings.working_folder)?;
        let answer = match source.signature {
            // Not being signed is no signature that counts, whatever is required.
            None => Err("it is not signed; sign it with `haft tools sign`".to_owned()),
            Some(_) => signatures.admit(&source),
        };
        let name = words::path(file);
        all_count &= answer.is_ok();
        match answer {
            Ok(admitted) if !json => {
                let names: Vec<&str> = admitted.definitions.iter().map(|one| one.name.as_str()).collect();
                let key = admitted.key.unwrap_or_default();
                console.print(format!(
                    "{GOOD}ok{GOOD:#}  {STRONG}{name}{STRONG:#}: {}, signed by {key}\n",
                    one_line(&names.join(", "), 400)
                ))?;
            }
            Err(problem) if !json => {
                console.print(format!(
                    "{BAD}bad{BAD:#} {STRONG}{name}{STRONG:#}: {}\n",
                    one_line(&problem, 1000)
                ))?;
            }
            Ok(admitted) => found.push(json!({"file": name, "ok": true, "key": admitted.key})),
            Err(problem) => found.push(json!({"file": name, "ok": false, "problem": problem})),
        }
    }
    if json {
        console.print_json(&json!({"files": found}))?;
    }
    Ok(if all_count { 0 } else { USAGE })
}
