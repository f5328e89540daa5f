//! What a program says it touches.

use haft_core::{CommandSource, Footprint, Resource, ToolError, Touched};
use haft_sdk::{
    ToolCtx,
    files::{Access, Kind},
};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// What a call would read and write, where the definition says so. It is held to what it writes, so what it does not
/// name there it does not write; it may read whatever it sees, unless it says. Hosts are written to.
pub(super) fn declared(command: &CommandSource, args: &Map<String, Value>) -> Option<Footprint> {
    if command.reads.is_none() && command.writes.is_none() {
        return None;
    }
    let dir = command.working_dir.as_deref();
    let resources = |entries: &Option<Vec<String>>| -> Vec<Resource> {
        entries.iter().flatten().flat_map(|entry| resources(entry, dir, args)).collect()
    };
    let reads = match &command.reads {
        Some(_) => resources(&command.reads),
        None => vec![Resource::Anything],
    };
    let mut footprint = Footprint { reads, writes: resources(&command.writes) };
    footprint.writes.extend(command.hosts.iter().cloned().map(Resource::Host));
    Some(footprint)
}

fn resources(entry: &str, dir: Option<&str>, args: &Map<String, Value>) -> Vec<Resource> {
    match Touched::read(entry) {
        Touched::Named(name) => vec![Resource::named(name)],
        touched => paths(touched, dir, args).into_iter().map(Resource::Path).collect(),
    }
}

/// The paths that an entry stands for. Relative ones start where the program does.
fn paths(touched: Touched<'_>, dir: Option<&str>, args: &Map<String, Value>) -> Vec<String> {
    let found: Vec<&str> = match touched {
        Touched::Named(_) => Vec::new(),
        Touched::Path(path) => vec![path],
        Touched::Parameter(name) => match args.get(name) {
            Some(Value::String(path)) => vec![path],
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        },
    };
    let from_start = |path: &str| match dir {
        Some(dir) if !path.starts_with('/') => format!("{}/{path}", dir.trim_end_matches('/')),
        _ => path.to_owned(),
    };
    found.into_iter().map(from_start).collect()
}

/// What a call writes to, as far as the definition says.
pub(super) fn written(command: &CommandSource, args: &Map<String, Value>) -> Written {
    if command.reads.is_none() && command.writes.is_none() {
        return Written::Anything;
    }
    let mut all = Vec::new();
    for entry in command.writes.iter().flatten() {
        match Touched::read(entry) {
            Touched::Named(_) => return Written::Anything,
            touched => all.extend(paths(touched, command.working_dir.as_deref(), args)),
        }
    }
    Written::Paths(all)
}

/// What a program writes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It does not say, or names something whose files nobody knows.
    Anything,
    /// These.
    Paths(Vec<String>),
}

/// The folders that must be writable for these paths to be: programs write new files beside the old ones.
pub(super) fn folders(cx: &ToolCtx, paths: &[String]) -> Result<Vec<PathBuf>, ToolError> {
    let mut folders = Vec::new();
    for path in paths {
        let place = cx.workspace().locate(path, Access::Write)?;
        let is_folder = matches!(cx.workspace().look(path)?, Some((_, found)) if found.kind == Kind::Folder);
        let mut folder = PathBuf::from(place.path);
        if !is_folder {
            folder.pop();
        }
        // What is not there yet is made in the nearest folder that is.
        while !folder.is_dir() && folder.pop() {}
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn command(reads: Option<&[&str]>, writes: Option<&[&str]>) -> CommandSource {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        CommandSource { reads: reads.map(owned), writes: writes.map(owned), ..CommandSource::new("x") }
    }

    #[test]
    fn what_is_declared_is_what_counts() {
        let args = json!({"path": "a.txt", "more": ["b", "c"], "n": 1});
        let args = args.as_object().unwrap();
        assert_eq!(declared(&command(None, None), args), None);
        assert_eq!(declared(&command(Some(&[]), None), args), Some(Footprint::default()));
        let footprint =
            declared(&command(Some(&["path", "./lib"]), Some(&["more", "git-index:"])), args).unwrap();
        assert_eq!(footprint.reads, [Resource::path("a.txt"), Resource::path("./lib")]);
        let writes = [Resource::path("b"), Resource::path("c"), Resource::named("git-index:")];
        assert_eq!(footprint.writes, writes);
        let inside = CommandSource { working_dir: Some("sub/".to_owned()), ..command(Some(&["path"]), None) };
        assert_eq!(declared(&inside, args).unwrap().reads, [Resource::path("sub/a.txt")]);
    }

    #[test]
    fn a_program_is_held_to_the_paths_that_it_names() {
        let args = json!({"path": "a.txt"});
        let args = args.as_object().unwrap();
        let cases = [
            (command(None, None), Written::Anything),
            (command(Some(&["path"]), None), Written::Paths(vec![])),
            (command(None, Some(&[])), Written::Paths(vec![])),
            (command(None, Some(&["path"])), Written::Paths(vec!["a.txt".to_owned()])),
            (command(None, Some(&["path", "git-index:"])), Written::Anything),
        ];
        for (command, expected) in cases {
            assert_eq!(written(&command, args), expected, "{command:?}");
        }
    }
}
