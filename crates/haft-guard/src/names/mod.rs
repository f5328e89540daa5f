//! Names of files that matter wherever they are: those that nobody may see, and those that run programs later.
//!
//! One matcher for file tools and jails. Case does not matter, nor do characters that Unicode says may be left out.
//!
//! | | what | tools and programs |
//! |---|---|---|
//! | [`DeniedPaths`] | keys and credentials | neither read nor change them |
//! | [`ProtectedNames`] | what the owner's shell, git, editor or agent runs without being asked | read them; changing one needs an approval |
//!
//! Pure: nothing here looks at a disk.

mod deny;
mod fold;
mod git;
mod git_config;
mod git_scripts;
mod patterns;
mod protect;
mod suspects;

pub use deny::{Anchoring, DEFAULT_DENIES, DeniedPaths};
pub use git::{
    GitConfigNames, GitEntries, git_config_names, is_git_part, is_harmless_git_bisect_names,
    is_harmless_git_config, is_harmless_git_todo,
};
pub use patterns::BadPattern;
pub use protect::{PROTECTED_NAMES, Protected, ProtectedNames};
