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
