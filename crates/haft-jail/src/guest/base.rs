//! Which folder will do for the folders of programs.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Others may put names into a folder, and may not rename or remove those of others.
const STICKY: u32 = 0o1000;
/// Others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// The real place of a folder in which jails may make folders for programs, or why it is none: it has to be an absolute
/// path to a folder of the user whom haft runs as, to which nobody else can write, and which nobody else can replace.
///
/// ```
/// let problem = haft_jail::guest::check_base("sandboxes".as_ref()).unwrap_err();
/// assert_eq!(problem, "sandboxes is not an absolute path");
/// ```
pub fn check_base(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!("{shown} is not an absolute path"));
    }
    let real = fs::canonicalize(path).map_err(|error| format!("{shown} cannot be used: {error}"))?;
    let found = fs::metadata(&real).map_err(|error| format!("{shown} cannot be used: {error}"))?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_dir() {
        return Err(format!("{shown} is not a folder"));
    }
    if found.uid() != own {
        return Err(format!("{shown} belongs to user {}, and haft runs as user {own}", found.uid()));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(format!("{shown} can be written by others (mode {:o})", found.mode() & 0o7777));
    }
    for around in real.ancestors().skip(1) {
        let found =
            fs::metadata(around).map_err(|error| format!("{} cannot be read: {error}", around.display()))?;
        let is_trusted = [0, own].contains(&found.uid());
        let is_open = found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0;
        if !is_trusted || is_open {
            return Err(format!("{shown} can be replaced by others, who can write to {}", around.display()));
        }
    }
    Ok(real)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_a_folder_of_ones_own_that_nobody_else_can_change_will_do() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str, mode: u32| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let good = folder("good", 0o700);
        assert_eq!(check_base(&good).unwrap(), good.canonicalize().unwrap());
        // A link leads to what is looked at.
        std::os::unix::fs::symlink(&good, place.path().join("link")).unwrap();
        assert_eq!(check_base(&place.path().join("link")).unwrap(), good.canonicalize().unwrap());
        fs::write(place.path().join("file"), "").unwrap();
        let inner = folder("open", 0o777).join("inner");
        fs::create_dir(&inner).unwrap();
        let cases = [
            (PathBuf::from("relative"), "is not an absolute path"),
            (place.path().join("missing"), "cannot be used: No such file"),
            (place.path().join("file"), "is not a folder"),
            (folder("group", 0o770), "can be written by others (mode 770)"),
            (folder("world", 0o707), "can be written by others (mode 707)"),
            (folder("sticky", 0o1777), "can be written by others (mode 1777)"),
            (inner, "can be replaced by others"),
        ];
        for (path, why) in cases {
            let said = check_base(&path).unwrap_err();
            assert!(said.contains(why), "{}: {said}", path.display());
        }
        if rustix::process::geteuid().is_root() {
            let other = folder("other", 0o700);
            std::os::unix::fs::chown(&other, Some(54_321), None).unwrap();
            let said = check_base(&other).unwrap_err();
            assert!(said.contains("belongs to user 54321, and haft runs as user 0"), "{said}");
        } else {
            assert!(check_base(Path::new("/usr")).unwrap_err().contains("belongs to user 0"));
        }
    }
}
