//! What toolchains need besides the paths that a call names. Programs and caches only, and read-only: a guest that
//! could change a compiler or a cached crate would reach out of its jail the next time somebody builds. Files with
//! tokens in them are left out.

use haft_core::port::Preset;
use std::path::{Path, PathBuf};

/// What a preset adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extras {
    /// Paths to read, where they are there.
    pub(crate) readable: Vec<PathBuf>,
    /// Names and values, where the guest has none of its own.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Folders with programs, before the others.
    pub(crate) programs: Vec<PathBuf>,
}

/// What that toolchain needs for a user whose home is `home`.
pub(crate) fn extras(preset: Preset, home: &Path) -> Extras {
    let text = |path: &str| home.join(path).to_string_lossy().into_owned();
    let paths = |names: &[&str]| names.iter().map(|name| home.join(name)).collect();
    match preset {
        Preset::Rust => Extras {
            readable: paths(&[
                ".cargo/bin",
                ".cargo/env",
                ".cargo/config.toml",
                ".cargo/registry",
                ".cargo/git",
                ".rustup",
            ]),
            environment: vec![("CARGO_HOME", text(".cargo")), ("RUSTUP_HOME", text(".rustup"))],
            programs: paths(&[".cargo/bin"]),
        },
        Preset::Node => Extras {
            readable: paths(&[".nvm", ".volta", ".fnm", ".local/share/pnpm", ".bun/bin", ".deno/bin"]),
            environment: vec![("NVM_DIR", text(".nvm")), ("VOLTA_HOME", text(".volta"))],
            programs: paths(&[".volta/bin", ".local/share/pnpm", ".bun/bin", ".deno/bin"]),
        },
        Preset::Python => Extras {
            readable: paths(&[".pyenv", ".local/bin", ".local/lib", ".local/share/uv", ".local/pipx/venvs"]),
            environment: vec![("PYENV_ROOT", text(".pyenv")), ("PYTHONDONTWRITEBYTECODE", "1".to_owned())],
            programs: paths(&[".pyenv/shims", ".pyenv/bin", ".local/bin"]),
        },
        Preset::Git => Extras {
            readable: paths(&[
                ".gitconfig",
                ".config/git/config",
                ".config/git/ignore",
                ".config/git/attributes",
            ]),
            environment: vec![
                ("GIT_CONFIG_GLOBAL", text(".gitconfig")),
                ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ],
            programs: Vec::new(),
        },
    }
}
