//! A host's tool as a call of haft's.

use super::event::{Event, text};
use serde_json::{Value, json};

/// What a host's tool is to haft.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mapped {
    /// A tool that haft has, too.
    Known(&'static str, Value),
    /// A shell command: haft's `run_command`, and it can be made to run through `haft exec`.
    Command(Value),
    /// A tool that only the host has, decided about under its own name.
    Foreign(Foreign),
}

/// A tool that only the host has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Foreign {
    pub(crate) name: String,
    pub(crate) touches: Touches,
    pub(crate) arguments: Value,
}

/// What a tool that only the host has can reach, as far as haft knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touches {
    /// Nothing outside of the conversation.
    Nothing,
    /// A host on the network.
    Network(String),
    /// Nobody knows.
    Anything,
}

/// A command in a shell.
pub(crate) fn command(event: &Event, line: &str) -> Mapped {
    let mut arguments = json!({"command": line});
    let folder = path(event, &event.cwd.to_string_lossy());
    if folder != "." {
        arguments["working_dir"] = json!(folder);
    }
    Mapped::Command(arguments)
}

/// A file that is read.
pub(crate) fn read(event: &Event, file: &str) -> Mapped {
    Mapped::Known("read_file", json!({"path": path(event, file)}))
}

/// A file that is written whole.
pub(crate) fn write(event: &Event, file: &str, content: &str) -> Mapped {
    Mapped::Known("write_file", json!({"path": path(event, file), "content": content, "mode": "overwrite"}))
}

/// A piece of a file that is replaced.
pub(crate) fn edit(event: &Event, file: &str, old: &str, new: &str, all: bool) -> Mapped {
    match old {
        // Hosts make a file in this way.
        "" => write(event, file, new),
        _ => Mapped::Known(
            "edit_file",
            json!({"path": path(event, file), "old_text": old, "new_text": new, "all": all}),
        ),
    }
}

/// A pattern of paths.
pub(crate) fn glob(event: &Event, pattern: &str, folder: Option<&str>) -> Mapped {
    let folder = folder.map_or_else(|| ".".to_owned(), |folder| path(event, folder));
    Mapped::Known("glob", json!({"pattern": pattern, "path": folder}))
}

/// A search in files.
pub(crate) fn search(event: &Event, pattern: &str, folder: Option<&str>) -> Mapped {
    let folder = folder.map_or_else(|| ".".to_owned(), |folder| path(event, folder));
    // How the host searches is its own; what it looks at is what is decided about.
    Mapped::Known("search_files", json!({"pattern": pattern, "path": folder, "literal": true}))
}

/// A folder that is listed.
pub(crate) fn list(event: &Event, folder: &str) -> Mapped {
    Mapped::Known("list_directory", json!({"path": path(event, folder)}))
}

/// A page of the web.
pub(crate) fn web(event: &Event, url: Option<&str>) -> Mapped {
    let host = url.and_then(|url| {
        let rest = url.split_once("://")?.1;
        let authority = rest.split(['/', '?', '#']).next()?;
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.strip_prefix('[') {
            Some(six) => six.split(']').next()?,
            None => host.split(':').next()?,
        };
        (!host.is_empty()).then(|| host.to_ascii_lowercase())
    });
    foreign(event, host.map_or(Touches::Anything, Touches::Network))
}

/// A tool that only the host has.
pub(crate) fn foreign(event: &Event, touches: Touches) -> Mapped {
    let arguments = if event.input.is_object() { event.input.clone() } else { json!({"input": event.input}) };
    Mapped::Foreign(Foreign { name: snake(&event.tool), touches, arguments })
}

/// The name as haft's names are: `WebFetch` is `web_fetch`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for c in name.chars() {
        let fits = c.is_ascii_alphanumeric() || c == '_';
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            snake.push('_');
        }
        snake.push(if fits { c.to_ascii_lowercase() } else { '_' });
        before = c;
    }
    match snake.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => snake,
        false => format!("host_{}", snake.trim_start_matches('_')),
    }
}

/// The path as haft's tools take it: relative to the project, where it is inside. Hosts give whole paths, or paths
/// relative to where they stand.
fn path(event: &Event, file: &str) -> String {
    let whole = event.cwd.join(file);
    let real = event.folder.canonicalize().unwrap_or_else(|_| event.folder.clone());
    let found = [&event.folder, &real].into_iter().find_map(|folder| whole.strip_prefix(folder).ok());
    match found.map(|found| found.to_string_lossy()) {
        Some(inside) if inside.is_empty() => ".".to_owned(),
        Some(inside) => inside.into_owned(),
        // Outside, or nobody knows: as it is, and haft's own check of paths says no.
        None => whole.to_string_lossy().into_owned(),
    }
}

/// A member of the input that is a text.
pub(crate) fn field<'a>(event: &'a Event, names: &[&str]) -> Option<&'a str> {
    text(&event.input, names)
}

/// A member of the input that is a text, which may be empty.
pub(crate) fn any<'a>(event: &'a Event, names: &[&str]) -> &'a str {
    names.iter().find_map(|name| event.input.get(name)?.as_str()).unwrap_or_default()
}

/// A member of the input that is a truth value.
pub(crate) fn flag(event: &Event, name: &str) -> bool {
    event.input.get(name).and_then(Value::as_bool).unwrap_or_default()
}
