//! A compiler for targets whose standard library the workspace's own toolchain lacks, made of Debian's packages.
//!
//! Debian's testing suite has rustc together with the source of exactly its standard library. Both are unpacked, not
//! installed: rustc runs with the libraries that it came with, beside an older system. The standard library is then
//! checked, which makes the metadata that `cargo check` of anything else reads. All of it is kept in the user's cache.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

/// Always there, and newer than what the workspace asks for.
const SUITE: &str = "testing";

/// What Debian signs its suites with, as every Debian has it.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// With the packages that they depend on.
const WITH_LIBRARIES: [&str; 2] = ["libstd-rust-dev", "rust-src"];

/// Without them: it asks for a C compiler, and the machine's own does.
const ALONE: [&str; 1] = ["rustc"];

/// Runs the unpacked compiler with the unpacked libraries, wherever the folder is.
const RUSTC: &str = r#"#!/bin/sh
usr=${0%/*}/usr
for libraries in "$usr"/lib/*-linux-gnu; do :; done
exec "$libraries"/ld-linux*.so.* --library-path "$libraries" "$usr/bin/rustc" --sysroot "$usr" "$@"
"#;

/// The path of a rustc that can check crates for these targets; the first time, it is fetched and put together.
pub(crate) fn rustc(workspace: &Workspace, targets: &[&str]) -> Result<PathBuf, Error> {
    let (cache, _lock) = locked_cache(workspace)?;

    let finished = cache.join(name(env!("CARGO_PKG_RUST_VERSION"), targets));
    if !finished.is_dir() {
        let unfinished = cache.join("unfinished");
        remove(&unfinished)?;
        assemble(workspace, &unfinished, targets)?;
        // Only what is whole gets the name that is looked for.
        at(&finished, "create", |path| fs::rename(&unfinished, path))?;
    }
    Ok(finished.join("rustc"))
}

/// Where fetched things are kept. Another run may be fetching the same just now: this one waits, and finds it done.
pub(crate) fn locked_cache(workspace: &Workspace) -> Result<(PathBuf, File), Error> {
    let cache = cache(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"));
    let cache = cache.unwrap_or_else(|| workspace.target().to_owned()).join("haft-xtask");
    at(&cache, "create", |path| fs::create_dir_all(path))?;
    let lock = at(&cache.join("lock"), "lock", |path| {
        File::create(path).and_then(|file| file.lock().map(|()| file))
    })?;
    Ok((cache, lock))
}

/// The user's cache folder: a fresh clone finds what an earlier one fetched.
fn cache(named: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |folder: OsString| Some(PathBuf::from(folder)).filter(|path| path.is_absolute());
    named.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".cache")))
}

/// Asking for a newer Rust, or for other targets, makes a new one.
fn name(rust_version: &str, targets: &[&str]) -> String {
    format!("rust-{rust_version}-{}", targets.join("+"))
}

fn assemble(workspace: &Workspace, folder: &Path, targets: &[&str]) -> Result<(), Error> {
    let archives = fetch(workspace, &folder.join("apt"))?;
    for archive in files(&archives, "deb")? {
        // Not announced: there are some twenty of them.
        step::must_succeed(workspace.command("dpkg-deb").arg("-x").args([&archive, folder]))?;
    }
    remove(&folder.join("apt"))?;

    let rustc = folder.join("rustc");
    at(&rustc, "write", |path| fs::write(path, RUSTC))?;
    at(&rustc, "make executable", |path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))?;

    check_standard_library(workspace, folder, targets)?;
    // Half of all there is, and not needed any more.
    remove(&folder.join("usr/src"))
}

/// Lets apt fetch the packages, so that signatures and hashes are verified, and says where they are.
///
/// It works in a folder of its own: what is installed on this machine is neither looked at nor touched.
fn fetch(workspace: &Workspace, folder: &Path) -> Result<PathBuf, Error> {
    let archives = folder.join("cache/archives");
    for needed in [archives.join("partial"), folder.join("state/lists/partial")] {
        at(&needed, "create", |path| fs::create_dir_all(path))?;
    }
    let mirror = mirror(workspace)?;
    let sources = format!("deb [target=Packages signed-by={KEYRING}] {mirror} {SUITE} main\n");
    let configuration = folder.join("apt.conf");
    for (file, text) in [
        (folder.join("sources.list"), sources),
        (folder.join("status"), String::new()),
        (configuration.clone(), settings(folder)),
    ] {
        at(&file, "write", |path| fs::write(path, text))?;
    }
    let apt = |arguments: &[&str], packages: &[&str]| {
        let mut apt = workspace.command("apt-get");
        apt.args(arguments).args(packages).env("APT_CONFIG", &configuration).current_dir(&archives);
        step::announce("portable", &apt);
        step::must_succeed(&mut apt)
    };
    apt(&["update"], &[])?;
    apt(&["install", "--download-only", "-y", "--no-install-recommends"], &WITH_LIBRARIES)?;
    apt(&["download"], &ALONE)?;
    Ok(archives)
}

fn settings(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"Dir::Etc::SourceList "{folder}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Acquire::Languages "none";
Acquire::Retries "3";
// A mirror that lags is still signed, and nothing from it is installed.
Acquire::Check-Valid-Until "false";
// The user that apt would change to may not write here; and there is nothing to lock.
APT::Sandbox::User "root";
Debug::NoLocking "true";
quiet "1";
"#
    )
}

/// The mirror that this machine already uses.
fn mirror(workspace: &Workspace) -> Result<String, Error> {
    let mut apt = workspace.command("apt-get");
    let listed = apt.args(["indextargets", "--format", "$(SITE)"]).output();
    let listed = listed.map_err(|source| Error::Start { program: "apt-get".to_owned(), source })?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    listed.lines().find(|site| is_debian(site)).map(str::to_owned).ok_or(Error::NoDebianMirror)
}

/// Debian's own archive, which by custom has this name; not its security updates, nor anyone else's packages.
/// With `.list` it is a list of mirrors, as in images for clouds.
fn is_debian(site: &str) -> bool {
    matches!(site.trim_end_matches('/').rsplit('/').next(), Some("debian" | "debian.list"))
}

/// Checks the standard library for each target, and puts its metadata where the compiler looks for it.
fn check_standard_library(workspace: &Workspace, folder: &Path, targets: &[&str]) -> Result<(), Error> {
    let built = folder.join("built");
    let mut cargo = workspace.cargo();
    // The source brings its dependencies, and in this folder the configuration that makes cargo use them.
    cargo.current_dir(folder.join("usr/lib/rustlib/src/rust/library"));
    cargo.args(["check", "--locked", "--offline", "--manifest-path", "sysroot/Cargo.toml"]);
    // Without backtraces, which change nothing in the API and take long.
    cargo.args(["--no-default-features", "--features", "panic-unwind"]);
    cargo.args(targets.iter().flat_map(|target| ["--target", target])).arg("--target-dir").arg(&built);
    // As the build of Rust itself has it: only the standard library may use its own unstable parts, and the crates
    // that it is made of cannot be used by others.
    cargo.env("RUSTC", folder.join("rustc")).env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", "-Zforce-unstable-if-unmarked");
    step::announce("portable", &cargo);
    step::must_succeed(&mut cargo)?;

    for target in targets {
        let libraries = folder.join("usr/lib/rustlib").join(target).join("lib");
        at(&libraries, "create", |path| fs::create_dir_all(path))?;
        for metadata in files(&built.join(target).join("debug/deps"), "rmeta")? {
            let name = metadata.file_name().unwrap_or_default();
            at(&libraries.join(name), "write", |path| fs::copy(&metadata, path))?;
        }
    }
    remove(&built)
}

/// The files of a folder whose names end so.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    at(folder, "read", |path| {
        let paths = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
        let paths: io::Result<Vec<PathBuf>> = paths.collect();
        Ok(paths?.into_iter().filter(|path| path.extension() == Some(OsStr::new(extension))).collect())
    })
}

pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
    at(folder, "remove", |path| match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    })
}

/// Names the path in the error.
pub(crate) fn at<T>(
    path: &Path,
    action: &'static str,
    work: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<T, Error> {
    work(path).map_err(|source| Error::File { action, path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_the_users() {
        for (named, home, expected) in [
            (Some("/c"), Some("/h"), Some("/c")),
            (None, Some("/h"), Some("/h/.cache")),
            (Some(""), Some("/h"), Some("/h/.cache")),
            (Some("relative"), Some("/h"), Some("/h/.cache")),
            (None, Some(""), None),
            (None, None, None),
        ] {
            let found = cache(named.map(OsString::from), home.map(OsString::from));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{named:?} {home:?}");
        }
    }

    #[test]
    fn another_version_or_target_is_another_compiler() {
        assert_eq!(name("1.95", &["a", "b"]), "rust-1.95-a+b");
        assert_ne!(name("1.95", &["a"]), name("1.96", &["a"]));
    }

    #[test]
    fn only_debians_own_archive_is_taken_for_a_mirror() {
        for (site, expected) in [
            ("http://mirror.example/debian", true),
            ("https://mirror.example/pub/debian/", true),
            ("mirror+file:/etc/apt/mirrors/debian.list", true),
            ("http://mirror.example/debian-security", false),
            ("mirror+file:/etc/apt/mirrors/debian-security.list", false),
            ("http://mirror.example/ubuntu", false),
            ("https://debian.example/packages", false),
            ("", false),
        ] {
            assert_eq!(is_debian(site), expected, "{site}");
        }
    }
}
