//! Landlock: which files a guest may reach, and that it signals nobody outside.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use std::os::fd::{AsFd, OwnedFd};

/// The newest version of which every right is asked for where the kernel has it.
const NEWEST: ABI = ABI::V9;

/// The version of Landlock here; 0 where there is none.
pub(crate) fn version() -> u8 {
    super::sys::landlock_version()
}

/// What may be done below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Read and run.
    Read,
    /// Read and write the file, but not make or remove any: for devices.
    Use,
    /// Everything but what has effects beyond files: devices, and sockets, behind which is another program.
    Write,
    /// Everything in a folder that is the guest's alone: what is behind its sockets is the guest's own, too.
    Own,
}

impl Right {
    fn rights(self, is_dir: bool) -> BitFlags<AccessFs> {
        let rights = match self {
            Right::Read => AccessFs::from_read(NEWEST),
            Right::Use => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
            Right::Write => Right::Own.rights(true) & !AccessFs::ResolveUnix,
            Right::Own => AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
        };
        if is_dir { rights } else { rights & AccessFs::from_file(NEWEST) }
    }
}

/// Rules in the making. Nothing is allowed but what is added.
pub(crate) struct Rules(RulesetCreated);

impl Rules {
    /// Rules that allow nothing.
    pub(crate) fn new(network: bool) -> Result<Self, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?;
        if !network {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
        }
        Ok(Rules(ruleset.create()?))
    }

    /// Allows something below an open path.
    pub(crate) fn allow(self, path: impl AsFd, right: Right, is_dir: bool) -> Result<Self, RulesetError> {
        Ok(Rules(self.0.add_rule(PathBeneath::new(path, right.rights(is_dir)))?))
    }

    /// Allows something below a path, where there is such a path.
    pub(crate) fn allow_path(self, path: &str, right: Right) -> Result<Self, RulesetError> {
        let is_dir = std::path::Path::new(path).is_dir();
        match PathFd::new(path) {
            Ok(open) => self.allow(open, right, is_dir),
            Err(_) => Ok(self),
        }
    }

    /// The ruleset as the kernel knows it; nothing where there is no Landlock.
    pub(crate) fn descriptor(self) -> Option<OwnedFd> {
        self.0.into()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::guest::sys;
    use std::{fs, path::Path};

    /// What a thread reaches in three folders: whether it lists them, reads a file in them, and makes one.
    fn reached(folders: &[&Path; 3]) -> [[bool; 3]; 3] {
        folders.map(|folder| {
            let made = fs::write(folder.join("new"), "x").is_ok();
            [fs::read_dir(folder).is_ok(), fs::read(folder.join("file")).is_ok(), made]
        })
    }

    /// This layer alone: the thread runs as the user of the tests, in the machine's own tree, without a filter.
    #[test]
    fn landlock_alone_keeps_to_what_is_allowed() {
        if version() == 0 {
            return haft_testkit::not_run(
                "landlock_alone_keeps_to_what_is_allowed",
                "this kernel has no Landlock",
            );
        }
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let paths = [0, 1, 2].map(|at| folders[at].path());
        for path in paths {
            fs::write(path.join("file"), "x").unwrap();
        }
        assert_eq!(reached(&paths), [[true; 3]; 3]);
        let text = |at: usize| paths[at].to_str().unwrap();
        let rules = Rules::new(true).unwrap().allow_path(text(0), Right::Write).unwrap();
        let ruleset = rules.allow_path(text(1), Right::Read).unwrap().descriptor().unwrap();
        let seen = std::thread::scope(|scope| {
            let held = scope.spawn(|| {
                rustix::thread::set_no_new_privs(true).unwrap();
                sys::landlock_restrict(ruleset.as_fd()).unwrap();
                reached(&paths)
            });
            held.join().unwrap()
        });
        assert_eq!(seen, [[true; 3], [true, true, false], [false; 3]]);
    }

    #[test]
    fn a_socket_in_a_granted_folder_is_not_part_of_the_grant() {
        let has = |right: Right| right.rights(true).contains(AccessFs::ResolveUnix);
        assert_eq!([Right::Read, Right::Use, Right::Write, Right::Own].map(has), [false, false, false, true]);
        for right in [Right::Read, Right::Use, Right::Write, Right::Own] {
            assert!(!right.rights(true).intersects(AccessFs::MakeChar | AccessFs::MakeBlock), "{right:?}");
        }
    }
}
