//! `haft trust`: what a folder's haft.toml would loosen, and a person's word that it may.

use super::{args::TrustArgs, console::Console, failure::Failure, setup::CliContext, words};
use haft::config::{
    self, FILE_NAME, FolderConfig, FolderSource, LoadOptions, SourceText, Surroundings, TrustStore,
};
use std::{
    io::{self, BufRead as _, IsTerminal as _},
    path::{Path, PathBuf},
};

pub(super) fn run(args: &TrustArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let store = surroundings.trust_store()?;
    if args.list {
        return list(&store, console);
    }
    let path = path(args, &surroundings)?;
    if args.remove {
        let was_trusted = store.untrust(&path)?;
        let outcome = if was_trusted { "is no longer trusted" } else { "was not trusted" };
        console.print(format!("{} {outcome}\n", shown(&path, &surroundings)))?;
        return Ok(0);
    }
    // Read once: what is shown is what is trusted.
    let source = config::read_folder_file(&surroundings, &path)?;
    if store.is_trusted(&path, &source.bytes)? {
        console.print(format!("{} is already trusted\n", shown(&path, &surroundings)))?;
        return Ok(0);
    }
    let explanation = explain(&surroundings, source.clone())?;
    console.print(format!("{explanation}\n"))?;
    if explanation.loosens().next().is_none() {
        return Ok(0);
    }
    if !args.yes && !agrees(&path, &surroundings, console)? {
        console.print("nothing was changed\n")?;
        return Ok(1);
    }
    store.trust(&path, &source.bytes, jiff::Timestamp::now())?;
    console.print(format!("{} is trusted, until it changes\n", shown(&path, &surroundings)))?;
    Ok(0)
}

fn list(store: &TrustStore, console: &mut Console) -> Result<u8, Failure> {
    let pins = store.list()?;
    if pins.is_empty() {
        console.print("no file is trusted\n")?;
    }
    for pin in pins {
        let (day, sha) = (pin.trusted_at.to_string(), pin.sha256.get(..12).unwrap_or(&pin.sha256).to_owned());
        let day = day.get(..10).unwrap_or(&day);
        console.print(format!("{}  since {day}  sha256 {sha}…\n", words::path(&pin.path)))?;
    }
    Ok(0)
}

/// The file that is meant: the named one, the one in the named folder, or the one in effect here.
fn path(args: &TrustArgs, surroundings: &Surroundings) -> Result<PathBuf, Failure> {
    match &args.file {
        Some(named) => {
            let path = surroundings.working_folder.join(named);
            Ok(if path.is_dir() { path.join(FILE_NAME) } else { path })
        }
        None => config::find_folder_file(&surroundings.working_folder, surroundings.home.as_deref())
            .ok_or(Failure::NothingToTrust),
    }
}

/// What trusting the file would change. Variables and flags of this moment have no say in it.
fn explain(surroundings: &Surroundings, source: SourceText) -> Result<config::Explanation, Failure> {
    let options = LoadOptions { folder_config: FolderConfig::Skip, ..LoadOptions::default() };
    let (mut inputs, _) = config::gather(surroundings, &options)?;
    inputs.env.clear();
    inputs.folder = Some(FolderSource { source, pinned: false });
    Ok(config::explain(&inputs)?)
}

fn agrees(path: &Path, surroundings: &Surroundings, console: &Console) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let path = words::relative(path, &surroundings.working_folder);
        return Err(Failure::NobodyToAsk { path });
    }
    console.say(format!("\nTrust {}? Type y for yes, anything else for no.", shown(path, surroundings)));
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|reason| Failure::Unreadable { name: "standard input".to_owned(), reason })?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn shown(path: &Path, surroundings: &Surroundings) -> String {
    words::path(&words::relative(path, &surroundings.working_folder))
}
