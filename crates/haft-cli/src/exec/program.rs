//! Where a program is, and what it has to read in order to start.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Folders that every jail shows.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt"];

/// A program that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Its path, as the search found it.
    pub(super) path: PathBuf,
    /// What it has to read besides what every jail shows.
    pub(super) readable: Vec<PathBuf>,
}

/// Finds a program as a shell does. `None` where there is none.
pub(super) fn find(name: &str, working_folder: &Path, path: &OsStr) -> Option<Program> {
    let found = match name.contains('/') {
        true => Some(working_folder.join(name)).filter(|file| is_program(file)),
        false => search(name, path),
    }?;
    let mut readable = Vec::new();
    needs(&found, path, &mut readable);
    Some(Program { path: found, readable })
}

fn search(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What a program has to read: itself, the package that it is a part of, and its interpreter with what that needs.
fn needs(program: &Path, path: &OsStr, readable: &mut Vec<PathBuf>) {
    let Ok(real) = program.canonicalize() else { return };
    for file in [program, &real] {
        if !is_of_the_system(file) {
            let unit = unit(file);
            if readable.contains(&unit) {
                continue;
            }
            readable.push(unit);
        }
    }
    if let Some(interpreter) = interpreter(&real) {
        let found = match interpreter.is_absolute() {
            true => Some(interpreter),
            false => interpreter.to_str().and_then(|name| search(name, path)),
        };
        // An interpreter that is a script of the same kind leads nowhere.
        if let Some(found) = found.filter(|found| found.canonicalize().is_ok_and(|found| found != real)) {
            needs(&found, path, readable);
        }
    }
}

fn is_of_the_system(file: &Path) -> bool {
    SYSTEM.iter().any(|folder| file.starts_with(folder))
}

/// The least folder that makes sense of a program: a virtual environment, a tree of packages, an installation of a
/// toolchain, or else the file alone. Never a folder in which other things of its owner are, such as `~/.local`.
fn unit(file: &Path) -> PathBuf {
    let folders = || file.ancestors().skip(1);
    if let Some(environment) = folders().find(|folder| folder.join("pyvenv.cfg").is_file()) {
        return environment.to_path_buf();
    }
    // The outermost: packages use each other.
    if let Some(packages) = folders().filter(|folder| folder.ends_with("node_modules")).last() {
        return packages.to_path_buf();
    }
    let bin = folders().next().filter(|folder| folder.ends_with("bin"));
    if let Some(prefix) = bin.and_then(Path::parent)
        && prefix.join("bin/node").exists()
        && prefix.join("lib/node_modules").is_dir()
    {
        return prefix.to_path_buf();
    }
    if let Some(prefix) = bin.and_then(Path::parent).filter(|prefix| has_python(prefix)) {
        return prefix.to_path_buf();
    }
    file.to_path_buf()
}

/// Whether a folder is an installation of Python, as pyenv and uv make them.
fn has_python(prefix: &Path) -> bool {
    let Ok(entries) = fs::read_dir(prefix.join("lib")) else { return false };
    entries.flatten().any(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with("python3."))
            && entry.path().join("os.py").is_file()
    })
}

/// The interpreter that the first line of a script names; of `env`, the program that it looks for.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(script).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let first = words.next()?;
    if !first.ends_with("/env") {
        return Some(first.into());
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files, each with its text; those whose text begins with `#!` or `\x7f` are programs.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            let mode = if text.starts_with(['#', '\x7f']) { 0o755 } else { 0o644 };
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        folder
    }

    #[test]
    fn a_script_of_node_needs_its_packages_and_its_node_and_nothing_beside_them() {
        let home = tree(&[
            (".nvm/v20/bin/node", "\x7fELF"),
            (".nvm/v20/lib/node_modules/agent/cli.js", "#!/usr/bin/env node\n"),
            (".local/share/keyring", "secret"),
        ]);
        let root = home.path().canonicalize().unwrap();
        let bin = root.join(".nvm/v20/bin");
        std::os::unix::fs::symlink("../lib/node_modules/agent/cli.js", bin.join("agent")).unwrap();
        let found = find("agent", &root, bin.as_os_str()).unwrap();
        assert_eq!(found.path, bin.join("agent"));
        assert_eq!(found.readable, [root.join(".nvm/v20"), root.join(".nvm/v20/lib/node_modules")]);
    }

    #[test]
    fn a_virtual_environment_is_granted_with_the_python_that_it_uses() {
        let home = tree(&[
            ("python/bin/python3.12", "\x7fELF"),
            ("python/lib/python3.12/os.py", ""),
            ("venv/pyvenv.cfg", "home = ..."),
        ]);
        let root = home.path().canonicalize().unwrap();
        fs::create_dir(root.join("venv/bin")).unwrap();
        std::os::unix::fs::symlink(root.join("python/bin/python3.12"), root.join("venv/bin/python")).unwrap();
        let script = root.join("venv/bin/aider");
        fs::write(&script, format!("#!{}\n", root.join("venv/bin/python").display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let found = find("venv/bin/aider", &root, OsStr::new("/usr/bin")).unwrap();
        assert_eq!(found.readable, [root.join("venv"), root.join("python")]);
    }

    #[test]
    fn a_program_in_a_folder_of_many_things_is_granted_alone() {
        let home = tree(&[(".local/bin/tool", "\x7fELF"), (".local/share/keyring", "secret")]);
        let root = home.path().canonicalize().unwrap();
        let found = find("tool", &root, root.join(".local/bin").as_os_str()).unwrap();
        assert_eq!(found.readable, [root.join(".local/bin/tool")]);
        assert_eq!(find("tool", &root, OsStr::new("/nowhere")), None);
        assert_eq!(find("true", &root, OsStr::new("/usr/bin:/bin")).unwrap().readable, Vec::<PathBuf>::new());
    }
}
