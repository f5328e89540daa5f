//! `haft mcp install`: the entry that makes haft known to a program.

use super::{
    ApprovalsBy,
    hosts::{Form, Host},
    json_edit::{self, Unfit},
};
use crate::{console::Console, failure::Failure, setup::CliContext, words};
use clap::{Args, ValueEnum as _};
use serde_json::{Value, json};
use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// The MCP client
    #[arg(value_name = "HOST")]
    host: Host,
    /// Print the configuration entry, and write nothing
    #[arg(long)]
    print: bool,
    /// The name of haft in the client
    #[arg(long, value_name = "NAME", default_value = "haft", value_parser = entry_name)]
    name: String,
    /// Who approves calls of this client: queue, client or host [default: mcp.approvals]
    #[arg(long, value_name = "WHO", hide_possible_values = true)]
    approvals: Option<ApprovalsBy>,
    /// Print one JSON document only
    #[arg(long)]
    json: bool,
}

/// Letters, digits, `-` and `_`: a name that every host takes.
fn entry_name(typed: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !typed.is_empty() && typed.len() <= 64 && typed.chars().all(fits) {
        true => Ok(typed.to_owned()),
        false => Err("a name has letters, digits, - and _".to_owned()),
    }
}

pub(super) fn run(args: &InstallArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let program = std::env::current_exe()
        .map_err(|reason| Failure::Unreadable { name: "the path of this program".to_owned(), reason })?;
    let arguments = arguments(args, ground);
    let entry = args.host.entry(&program.to_string_lossy(), &arguments);
    let file = args.host.file(&surroundings).ok_or(Failure::NoUserFolder)?;
    if args.print {
        let text = match args.host.form() {
            Form::Json(section) => pretty(&json!({section: {args.name.as_str(): entry}})),
            Form::Toml(section) => toml_entry(section, &args.name, &entry),
        };
        match args.json {
            true => console.print_json(&json!({"host": args.host.title(), "file": file, "entry": entry}))?,
            false => {
                console.say(format!("for {}:", words::path(&file)));
                console.print_raw(&format!("{}\n", text.trim_end()))?;
            }
        }
        return Ok(0);
    }
    let done = write(args, &file, &entry)?;
    if args.json {
        console.print_json(&json!({
            "host": args.host.title(), "file": file, "entry": entry, "changed": done.changed, "backup": done.backup,
        }))?;
        return Ok(0);
    }
    let shown = words::path(&file);
    match done.changed {
        false => console.print(format!("{shown} already has haft\n"))?,
        true => console.print(format!("added haft to {shown}. Restart {}.\n", args.host.title()))?,
    }
    if let Some(backup) = done.backup {
        console.print(format!("the file as it was is in {}\n", words::path(&backup)))?;
    }
    Ok(0)
}

/// What haft is started with: this command line's own settings stay in effect.
fn arguments(args: &InstallArgs, ground: &CliContext) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(config) = &ground.global.config {
        let path = ground.surroundings.working_folder.join(config);
        arguments.extend(["--config".to_owned(), path.to_string_lossy().into_owned()]);
    }
    for (key, value) in &ground.global.settings {
        arguments.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    arguments.push("mcp".to_owned());
    if let Some(by) = args.approvals.and_then(|by| by.to_possible_value()) {
        arguments.extend(["--approvals".to_owned(), by.get_name().to_owned()]);
    }
    arguments
}

struct Done {
    changed: bool,
    backup: Option<PathBuf>,
}

fn write(args: &InstallArgs, file: &Path, entry: &Value) -> Result<Done, Failure> {
    // Many keep these files elsewhere and link to them.
    let file = &file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let name = words::path(file);
    let before = match fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => None,
        Err(reason) => return Err(Failure::Unreadable { name, reason }),
    };
    let text = before.as_deref().unwrap_or_default();
    let after = match args.host.form() {
        Form::Json(section) => json_edit::set(text, section, &args.name, entry).map_err(|unfit| {
            let what = match unfit {
                Unfit::NotJson => format!("{name} is not JSON, so haft did not change it"),
                Unfit::NotAnObject(what) => {
                    format!("{what} in {name} is not an object, so haft did not change it")
                }
            };
            by_hand(what)
        })?,
        Form::Toml(section) => toml_set(text, section, &args.name, entry).ok_or_else(|| {
            by_hand(format!(
                "{name} already has `{section}.{}`, or is not TOML; haft did not change it",
                args.name
            ))
        })?,
    };
    if after == text {
        return Ok(Done { changed: false, backup: None });
    }
    let cannot = |reason| Failure::CannotWrite { path: file.clone(), reason };
    let backup = match before {
        Some(_) => {
            let mut backup = file.as_os_str().to_owned();
            backup.push(".before-haft");
            let backup = PathBuf::from(backup);
            fs::copy(file, &backup)
                .map_err(|reason| Failure::CannotWrite { path: backup.clone(), reason })?;
            Some(backup)
        }
        None => None,
    };
    replace(file, &after).map_err(cannot)?;
    Ok(Done { changed: true, backup })
}

fn by_hand(what: String) -> Failure {
    Failure::Mcp { what, help: "--print shows the entry; add it by hand".to_owned() }
}

/// A reader sees the old file or the new one. Who may read it stays as it was.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = file.as_os_str().to_owned();
    fresh.push(format!(".{}.new", std::process::id()));
    let fresh = PathBuf::from(fresh);
    let written = (|| {
        let mut options = fs::File::options();
        options.write(true).create_new(true);
        // Entries of other servers may have secrets in them.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut new = options.open(&fresh)?;
        if let Ok(metadata) = fs::metadata(file) {
            new.set_permissions(metadata.permissions())?;
        }
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        fs::rename(&fresh, file)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

fn toml_entry(section: &str, name: &str, entry: &Value) -> String {
    let mut text = format!("[{section}.{name}]\n");
    // A JSON string is a TOML string, and a list of them a list of them.
    for (key, value) in entry.as_object().into_iter().flatten() {
        text.push_str(&format!("{key} = {value}\n"));
    }
    text
}

/// The text with one more table at its end; as it is, where it is there just so; `None` where it is there otherwise, or
/// where the text is not TOML.
fn toml_set(text: &str, section: &str, name: &str, entry: &Value) -> Option<String> {
    let there = |text: &str| {
        let table: toml::Table = toml::from_str(text).ok()?;
        let found = table.get(section).and_then(|servers| servers.get(name)).cloned();
        Some(found.and_then(|found| serde_json::to_value(found).ok()))
    };
    match there(text)? {
        Some(known) => (known == *entry).then(|| text.to_owned()),
        None => {
            let gap = match text {
                "" => "",
                text if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            let after = format!("{text}{gap}{}", toml_entry(section, name, entry));
            (there(&after)?.as_ref() == Some(entry)).then_some(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_added_and_the_rest_stays() {
        let entry = json!({"command": "/bin/ha\"ft", "args": ["mcp", "--approvals", "host"]});
        let before = "# mine\nmodel = 'x' # yes\n";
        let after = toml_set(before, "mcp_servers", "haft", &entry).unwrap();
        assert!(after.starts_with(before));
        assert_eq!(toml_set(&after, "mcp_servers", "haft", &entry).as_ref(), Some(&after), "twice is once");
        assert_eq!(toml_set(&after, "mcp_servers", "haft", &json!({"command": "y"})), None);
        assert_eq!(toml_set("= not toml", "mcp_servers", "haft", &entry), None);
        assert_eq!(toml_set("mcp_servers = 3", "mcp_servers", "haft", &entry), None);
    }
}
