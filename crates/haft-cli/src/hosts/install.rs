//! `haft install` and `haft uninstall`: what makes haft known to a host, written and taken out again.

use super::{
    host::Host,
    json_edit::Unfit,
    manifest::{Manifests, Written, digest},
    plan::{FileChanges, Mode, Wish, plan},
    settings::{self, Change},
};
use crate::{
    console::Console, failure::Failure, hook::HookFlags, mcp::ApprovalsBy, setup::CliContext, words,
};
use clap::{Args, ValueEnum as _};
use serde_json::{Value, json};
use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// The host: the program that calls tools for a model
    #[arg(value_name = "HOST")]
    host: Host,
    /// How the host uses haft: haft's tools (mcp), policy for its own (hook), or with its commands in jails (exec)
    #[arg(long, value_name = "MODE", default_value = "mcp")]
    mode: Mode,
    /// Also deny the host's own tools, so that only haft's remain
    #[arg(long)]
    only_haft: bool,
    /// Write to the settings of the working folder's project, not to your own
    #[arg(long)]
    project: bool,
    #[command(flatten)]
    flags: HookFlags,
    #[command(flatten)]
    common: McpInstallArgs,
}

/// What `haft mcp install` takes beside the host.
#[derive(Debug, Args)]
pub(crate) struct McpInstallArgs {
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

#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// The host
    #[arg(value_name = "HOST")]
    host: Host,
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

pub(crate) fn run(args: &InstallArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let what = What { host: args.host, mode: args.mode, only_haft: args.only_haft, project: args.project };
    install(what, &args.flags, &args.common, ground, console)
}

/// `haft mcp install HOST`: an alias.
pub(crate) fn run_mcp(
    host: Host,
    args: &McpInstallArgs,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let what = What { host, mode: Mode::Mcp, only_haft: false, project: false };
    install(what, &HookFlags::default(), args, ground, console)
}

#[derive(Clone, Copy)]
struct What {
    host: Host,
    mode: Mode,
    only_haft: bool,
    project: bool,
}

fn install(
    what: What,
    flags: &HookFlags,
    args: &McpInstallArgs,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let program = std::env::current_exe()
        .map_err(|reason| Failure::Unreadable { name: "the path of this program".to_owned(), reason })?;
    let arguments = arguments(what, flags, args, ground);
    let wish = Wish {
        host: what.host,
        mode: what.mode,
        only_haft: what.only_haft,
        project: what.project,
        name: &args.name,
        program: &program.to_string_lossy(),
        arguments: &arguments,
    };
    let help = || "`haft hosts` lists the hosts, and what each can do".to_owned();
    let files = plan(&wish, &surroundings).map_err(|what| Failure::Mcp { what, help: help() })?;
    if args.print {
        return print(what, &files, args.json, console);
    }
    let manifests = Manifests::new(&surroundings.state_folder().ok_or(Failure::NoStateFolder)?);
    let mut done = Vec::with_capacity(files.len());
    for file in &files {
        done.push(write(what, file, &manifests)?);
    }
    report(what, &files, &done, args.json, console)
}

/// What haft is started with: this command line's own settings stay in effect.
fn arguments(what: What, flags: &HookFlags, args: &McpInstallArgs, ground: &CliContext) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(config) = &ground.global.config {
        let path = ground.surroundings.working_folder.join(config);
        arguments.extend(["--config".to_owned(), path.to_string_lossy().into_owned()]);
    }
    for (key, value) in &ground.global.settings {
        arguments.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    if what.mode != Mode::Mcp {
        arguments.extend(["hook".to_owned(), what.host.name()]);
        arguments.extend((what.mode == Mode::Exec).then(|| "--exec".to_owned()));
        arguments.extend(flags.words());
        return arguments;
    }
    arguments.push("mcp".to_owned());
    if let Some(by) = args.approvals.and_then(|by| by.to_possible_value()) {
        arguments.extend(["--approvals".to_owned(), by.get_name().to_owned()]);
    }
    arguments
}

fn print(what: What, files: &[FileChanges], json: bool, console: &mut Console) -> Result<u8, Failure> {
    if json {
        let entry = files.first().and_then(|file| entry_of(&file.changes));
        let listed = files.iter().map(|file| json!({"file": file.file, "changes": file.changes}));
        let file = files.first().map(|file| &file.file);
        console.print_json(&json!({
            "host": what.host.title(), "file": file, "entry": entry, "files": listed.collect::<Vec<_>>(),
        }))?;
        return Ok(0);
    }
    for file in files {
        let text =
            settings::apply(file.form, "", &file.changes).map_err(|unfit| unfit_of(&file.file, unfit))?;
        console.say(format!("for {}:", words::path(&file.file)));
        console.print_raw(&format!("{}\n", text.trim_end()))?;
    }
    Ok(0)
}

/// The value that makes haft known, where it is one.
fn entry_of(changes: &[Change]) -> Option<&Value> {
    changes.iter().find_map(|change| match change {
        Change::Member { value, .. } if value.is_object() => Some(value),
        _ => None,
    })
}

/// What became of one file.
struct Done {
    changed: bool,
    backup: Option<PathBuf>,
}

fn write(what: What, wanted: &FileChanges, manifests: &Manifests) -> Result<Done, Failure> {
    // Many keep these files elsewhere and link to them.
    let file = &wanted.file.canonicalize().unwrap_or_else(|_| wanted.file.clone());
    let before = read(file)?;
    let text = before.as_deref().unwrap_or_default();
    let after = settings::apply(wanted.form, text, &wanted.changes).map_err(|unfit| unfit_of(file, unfit))?;
    if after == text {
        return Ok(Done { changed: false, backup: None });
    }
    let earlier = manifests.of(file)?;
    let mut written = Written {
        host: what.host,
        mode: what.mode,
        only_haft: what.only_haft,
        file: file.clone(),
        form: wanted.form,
        changes: settings::with_old(wanted.form, text, &wanted.changes),
        made: settings::to_make(wanted.form, text, &wanted.changes),
        made_file: before.is_none(),
        before: before.clone(),
        after: digest(after.as_bytes()),
    };
    if let Some(earlier) = earlier {
        // What was there before haft came is what it found the first time.
        let untouched = earlier.after == digest(text.as_bytes());
        written.before = earlier.before.filter(|_| untouched);
        written.made_file = earlier.made_file && untouched;
        let fresh = std::mem::take(&mut written.changes);
        let is_new = |made: &settings::Made| !earlier.changes.iter().any(|known| known.change == made.change);
        written.changes = earlier.changes.iter().cloned().chain(fresh.into_iter().filter(is_new)).collect();
        written.made.extend(earlier.made);
        written.only_haft |= earlier.only_haft;
    }
    // Remembered first: what is written and not remembered could never be taken out.
    manifests.keep(&written)?;
    let backup = before.is_some().then(|| back_up(file)).transpose()?.flatten();
    replace(file, &after).map_err(|reason| Failure::CannotWrite { path: file.clone(), reason })?;
    Ok(Done { changed: true, backup })
}

/// Copies the file as it is before haft's first change. A copy that is there stays: it is older.
fn back_up(file: &Path) -> Result<Option<PathBuf>, Failure> {
    let mut backup = file.as_os_str().to_owned();
    backup.push(".before-haft");
    let backup = PathBuf::from(backup);
    if backup.exists() {
        return Ok(None);
    }
    fs::copy(file, &backup).map_err(|reason| Failure::CannotWrite { path: backup.clone(), reason })?;
    Ok(Some(backup))
}

fn read(file: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(reason) => Err(Failure::Unreadable { name: words::path(file), reason }),
    }
}

fn unfit_of(file: &Path, unfit: Unfit) -> Failure {
    let name = words::path(file);
    let what = match unfit {
        Unfit::NotJson => {
            format!("{name} is not in the form that haft knows (JSON or TOML), so haft did not change it")
        }
        Unfit::WrongKind(what) => {
            format!("{what} in {name} is not an object or a list as haft knows it, so haft did not change it")
        }
    };
    Failure::Mcp { what, help: "--print shows the entry; add it by hand".to_owned() }
}

fn report(
    what: What,
    files: &[FileChanges],
    done: &[Done],
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let changed = done.iter().any(|done| done.changed);
    if json {
        let each = files.iter().zip(done);
        let each = each
            .map(|(file, done)| json!({"file": file.file, "changed": done.changed, "backup": done.backup}));
        console.print_json(&json!({
            "host": what.host.title(),
            "mode": what.mode,
            "file": files.first().map(|file| &file.file),
            "entry": files.first().and_then(|file| entry_of(&file.changes)),
            "changed": changed,
            "backup": done.first().and_then(|done| done.backup.as_ref()),
            "files": each.collect::<Vec<_>>(),
        }))?;
        return Ok(0);
    }
    for (file, done) in files.iter().zip(done) {
        let shown = words::path(&file.file);
        match done.changed {
            false => console.print(format!("{shown} already has haft\n"))?,
            true => console.print(format!("added haft to {shown}. Restart {}.\n", what.host.title()))?,
        }
        if let Some(backup) = &done.backup {
            console.print(format!("the file as it was is in {}\n", words::path(backup)))?;
        }
    }
    if what.mode != Mode::Mcp {
        console.say(format!(
            "{}\n{}",
            super::list::HOOK_IS_NOT_CONTAINMENT,
            super::list::holds(what.host, what.mode, what.only_haft)
        ));
    }
    Ok(0)
}

/// Takes out exactly what haft wrote into the host's files, and says what somebody changed since.
pub(crate) fn uninstall(
    args: &UninstallArgs,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let manifests = Manifests::new(&surroundings.state_folder().ok_or(Failure::NoStateFolder)?);
    let written: Vec<Written> =
        manifests.all()?.into_iter().filter(|written| written.host == args.host).collect();
    let mut files = Vec::new();
    for written in &written {
        let left = take_out(written)?;
        manifests.forget(&written.file)?;
        files.push(json!({"file": written.file, "left": left}));
        if !args.json {
            let shown = words::path(&written.file);
            console.print(format!("removed haft from {shown}. Restart {}.\n", args.host.title()))?;
            if left > 0 {
                let entries = if left == 1 { "1 entry".to_owned() } else { format!("{left} entries") };
                console.warn(&format!("{entries} in {shown} changed since haft wrote it, so haft left it"));
            }
        }
    }
    match (args.json, written.is_empty()) {
        (true, _) => console.print_json(&json!({"host": args.host.title(), "files": files}))?,
        (false, true) => {
            console.print(format!("haft wrote nothing into files of {}\n", args.host.title()))?
        }
        (false, false) => {}
    }
    Ok(0)
}

/// How many of the changes somebody changed since, and are left.
fn take_out(written: &Written) -> Result<usize, Failure> {
    let file = &written.file;
    let Some(text) = read(file)? else { return Ok(0) };
    let cannot = |reason| Failure::CannotWrite { path: file.clone(), reason };
    if digest(text.as_bytes()) == written.after {
        // Nobody changed it since: it becomes what it was, to the byte.
        match (&written.before, written.made_file) {
            (Some(before), _) => return replace(file, before).map_err(cannot).map(|()| 0),
            (None, true) => return fs::remove_file(file).map_err(cannot).map(|()| 0),
            (None, false) => {}
        }
    }
    let (without, left) = settings::take_out(written.form, &text, &written.changes, &written.made)
        .map_err(|unfit| unfit_of(file, unfit))?;
    replace(file, &without).map_err(cannot)?;
    Ok(left)
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
