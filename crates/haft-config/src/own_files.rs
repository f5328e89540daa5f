//! The owner's own files: those that decide what haft does, wherever they lie. No tool reaches them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::discover::{Surroundings, real_path};
use super::keys::{Config, LicenseConfig};

/// How many links one path may go through, as the system has it.
const MOST_LINKS: usize = 40;

/// The files and folders that are the owner's own under this configuration: the configuration itself and its folder,
/// what it names (licence, keys, certificates, the address of a server), those that would be read if they were there,
/// and what haft remembers. A path that leads through links is there under each of its names.
///
/// ```
/// use haft_config::{Config, Surroundings, own_files};
///
/// let surroundings = Surroundings {
///     working_folder: "/repo".into(),
///     home: Some("/home/ada".into()),
///     env: vec![("HAFT_CONFIG".into(), "mine.toml".into())],
///     ..Surroundings::default()
/// };
/// let own = own_files(&surroundings, &Config::default());
/// assert!(own.contains(&"/repo/mine.toml".into()), "the one that was named");
/// assert!(own.contains(&"/home/ada/.config/haft".into()), "and the one that is read without it");
/// assert!(!own.contains(&"/repo".into()), "but not all that is beside it");
/// ```
#[must_use]
pub fn own_files(surroundings: &Surroundings, config: &Config) -> Vec<PathBuf> {
    let mut own = Vec::new();
    let working = real_path(&surroundings.working_folder);
    let holds_work = |folder: &Path| {
        surroundings.working_folder.starts_with(folder)
            || match (real_path(folder), &working) {
                (Some(folder), Some(working)) => working.starts_with(folder),
                // What cannot be told is not hidden whole: that would hide the work as well.
                _ => true,
            }
    };
    for file in surroundings.user_files() {
        // The folder of a file that was named may well be the one that is worked in; the file is hidden all the same.
        if let Some(folder) = file.parent().filter(|folder| !holds_work(folder)) {
            own.push(folder.to_path_buf());
        }
        own.push(file);
    }
    own.extend(surroundings.state_folders());
    own.extend(surroundings.credentials_folder());
    own.extend(named(surroundings, config));
    let mut all: Vec<PathBuf> = own.iter().flat_map(|path| names_of(path)).collect();
    all.sort();
    all.dedup();
    all
}

/// The files that the configuration names.
impl LicenseConfig {
    /// Where the licence is: the file that is configured, or `license.json` beside the user's own configuration.
    pub fn path(&self, beside: &Path) -> PathBuf {
        beside.join(if self.file.is_empty() { "license.json" } else { &self.file })
    }
}

fn named(surroundings: &Surroundings, config: &Config) -> Vec<PathBuf> {
    // Every section is listed here, so that a new key is looked at: does it name a file?
    let Config {
        tools,
        policy: _,
        redaction,
        permissions: _,
        license,
        store,
        audit,
        mcp: _,
        tasks: _,
        telemetry,
        scheduling: _,
        server,
        from_folder: _,
    } = config;
    let working = &surroundings.working_folder;
    let beside = surroundings.user_file().and_then(|file| Some(file.parent()?.to_path_buf()));
    let beside = beside.as_ref().unwrap_or(working);
    let mut files = vec![license.path(beside)];
    let from_working =
        [&server.tls_certificate, &server.tls_key, &server.oidc.jwks_file, &redaction.values_file]
            .into_iter()
            .chain([&tools.commands.sandbox_base_dir, &telemetry.otlp_ca_file, &telemetry.otlp_headers_file])
            .filter(|file| !file.is_empty());
    files.extend(from_working.map(|file| working.join(file)));
    let state = surroundings.state_folder();
    if let (Some(path), Some(state)) = (store.url.strip_prefix("file:"), &state) {
        files.push(state.join(path));
    }
    files.extend(surroundings.audit_key_file(audit));
    files.extend(surroundings.audit_head_file(audit));
    files
}

/// Every name under which a path can be changed: as it was written, in its real folder, and so for each link that it
/// leads through. Replacing a link is as good as writing what it leads to.
fn names_of(path: &Path) -> Vec<PathBuf> {
    let mut names = vec![path.to_path_buf()];
    let mut at = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let located = match (at.parent().and_then(real_path), at.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => break,
        };
        names.push(located.clone());
        match fs::read_link(&located) {
            Ok(target) => at = located.parent().map_or_else(|| target.clone(), |folder| folder.join(&target)),
            Err(_) => break,
        }
    }
    names.extend(real_path(path));
    names
}

/// The links among the owner's files that lie in one of these folders and in no folder that is hidden whole: a program
/// that can write there can make them lead elsewhere.
pub fn exposed_links(own: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
    let is_link = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let is_hidden =
        |path: &Path| own.iter().any(|folder| path != folder && path.starts_with(folder) && folder.is_dir());
    own.iter()
        .filter(is_link)
        .filter(|path| writable.iter().any(|root| path.starts_with(root)) && !is_hidden(path))
        .cloned()
        .collect()
}

/// Where a file that a key names is: below a folder, or among the credentials of the service (`credential:NAME`).
pub(super) fn place(text: &str, folder: &Path, credentials: Option<&Path>) -> Option<PathBuf> {
    match text.strip_prefix("credential:") {
        _ if text.is_empty() => None,
        Some(name) => {
            // A name, and not a way out of the folder.
            let is_name = Path::new(name).file_name() == Some(OsStr::new(name));
            // Without such a folder there is no such file, and reading it says so.
            let folder = credentials.unwrap_or(Path::new("/run/credentials/none"));
            Some(folder.join(if is_name { name } else { "none" }))
        }
        None => Some(folder.join(text)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_there_under_each_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["real", "work"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("real/conf.toml"), "").unwrap();
        symlink(root.join("work"), root.join("alias")).unwrap();
        symlink("second.toml", root.join("work/first.toml")).unwrap();
        symlink("../real/conf.toml", root.join("work/second.toml")).unwrap();
        let names = names_of(&root.join("alias/first.toml"));
        for expected in ["alias/first.toml", "work/first.toml", "work/second.toml", "real/conf.toml"] {
            assert!(names.contains(&root.join(expected)), "{expected}: {names:?}");
        }
        let writable = [root.join("work")];
        let links: Vec<PathBuf> = ["work/first.toml", "work/second.toml"].map(|name| root.join(name)).into();
        assert_eq!(exposed_links(&links, &writable), links);
        assert!(exposed_links(&names, &[root.join("real")]).is_empty(), "a file is no link");
        let hidden = [&links[..], &[root.join("work")]].concat();
        assert!(exposed_links(&hidden, &[root]).is_empty(), "what lies in a folder that is hidden is safe");
    }

    #[test]
    fn a_link_to_itself_ends() {
        let folder = tempfile::tempdir().unwrap();
        symlink("loop", folder.path().join("loop")).unwrap();
        assert!(!names_of(&folder.path().join("loop")).is_empty());
    }

    #[test]
    fn a_credential_is_a_name_in_its_folder() {
        let (state, given) = (Path::new("/state"), Path::new("/run/credentials/haft.service"));
        let at = |text: &str| place(text, state, Some(given));
        assert_eq!(at(""), None);
        assert_eq!(at("audit.key"), Some("/state/audit.key".into()));
        assert_eq!(at("/elsewhere/key"), Some("/elsewhere/key".into()));
        assert_eq!(at("credential:audit"), Some("/run/credentials/haft.service/audit".into()));
        for wrong in ["credential:", "credential:../x", "credential:a/b", "credential:/etc/x"] {
            assert_eq!(at(wrong), Some("/run/credentials/haft.service/none".into()), "{wrong}");
        }
    }
}
