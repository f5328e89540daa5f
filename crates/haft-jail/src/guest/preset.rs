//! What toolchains need besides the paths that a call names. Of the user's own, programs and caches only, and
//! read-only: a guest that could change a compiler or a cached crate would reach out of its jail the next time somebody
//! builds. What guests fetch and build goes to a cache of their workspace.
//!
//! Files with tokens in them are left out; of git's settings a guest gets those that say how git behaves, and no file.

use haft_core::port::Preset;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// What a preset adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extras {
    /// Paths to read, where they are there.
    pub(crate) readable: Vec<PathBuf>,
    /// Names and values, where the guest has none of its own.
    pub(crate) environment: Vec<(String, String)>,
    /// Folders with programs, before the others.
    pub(crate) programs: Vec<PathBuf>,
}

/// What that toolchain needs for a user whose home is `home`.
pub(crate) fn extras(preset: Preset, home: &Path) -> Extras {
    let text = |path: &str| home.join(path).to_string_lossy().into_owned();
    let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(|name| home.join(name)).collect() };
    let named = |pairs: Vec<(&str, String)>| {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    match preset {
        Preset::Rust => Extras {
            readable: paths(&[".cargo/bin", ".cargo/env", ".cargo/registry", ".cargo/git", ".rustup"])
                .into_iter()
                // Some keep the token of a registry in there.
                .chain(paths(&[".cargo/config.toml"]).into_iter().filter(|file| !may_hold_credentials(file)))
                .collect(),
            environment: named(vec![("CARGO_HOME", text(".cargo")), ("RUSTUP_HOME", text(".rustup"))]),
            programs: paths(&[".cargo/bin"]),
        },
        Preset::Node => Extras {
            readable: paths(&[".nvm", ".volta", ".fnm", ".local/share/pnpm", ".bun/bin", ".deno/bin"]),
            environment: named(vec![("NVM_DIR", text(".nvm")), ("VOLTA_HOME", text(".volta"))]),
            programs: paths(&[".volta/bin", ".local/share/pnpm", ".bun/bin", ".deno/bin"]),
        },
        Preset::Python => Extras {
            // Beside these uv keeps what people log in with.
            readable: paths(&[
                ".pyenv",
                ".local/bin",
                ".local/lib",
                ".local/share/uv/python",
                ".local/share/uv/tools",
                ".local/pipx/venvs",
            ]),
            environment: named(vec![
                ("PYENV_ROOT", text(".pyenv")),
                ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ]),
            programs: paths(&[".pyenv/shims", ".pyenv/bin", ".local/bin"]),
        },
        Preset::Worker => {
            Extras { readable: std::env::current_exe().into_iter().collect(), ..Extras::default() }
        }
        Preset::Git => Extras {
            readable: paths(&[".config/git/ignore", ".config/git/attributes"]),
            environment: {
                let files =
                    [".config/git/config", ".gitconfig"].map(|name| fs::read_to_string(home.join(name)));
                let settings: Vec<_> =
                    files.into_iter().flatten().flat_map(|text| git_settings(&text)).collect();
                let mut all = named(vec![
                    ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
                    ("GIT_TERMINAL_PROMPT", "0".to_owned()),
                    ("GIT_CONFIG_COUNT", settings.len().to_string()),
                ]);
                for (number, (key, value)) in settings.into_iter().enumerate() {
                    all.push((format!("GIT_CONFIG_KEY_{number}"), key));
                    all.push((format!("GIT_CONFIG_VALUE_{number}"), value));
                }
                all
            },
            programs: Vec::new(),
        },
    }
}

/// Variables by which a toolchain keeps what it fetched and built in `folder`. What a person runs later stays in the
/// workspace, and is looked at as ever: cargo's finished programs in `target`, `node_modules`, environments of python.
pub(crate) fn caches(
    preset: Preset,
    folder: &Path,
    home: &Path,
    has_network: bool,
) -> Vec<(&'static str, String)> {
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let mut all = match preset {
        Preset::Rust => {
            // cargo 1.91 and later; older ones do not know it, and build in `target`.
            let mut all = vec![("CARGO_BUILD_BUILD_DIR", at("cargo-build/{workspace-path-hash}"))];
            // Without network, what the user has fetched is all there is.
            if has_network || !home.join(".cargo").is_dir() {
                all.push(("CARGO_HOME", at("cargo")));
            }
            all
        }
        Preset::Node => vec![
            ("npm_config_cache", at("npm")),
            ("npm_config_store_dir", at("pnpm")),
            ("YARN_CACHE_FOLDER", at("yarn")),
            ("BUN_INSTALL_CACHE_DIR", at("bun")),
            ("DENO_DIR", at("deno")),
        ],
        Preset::Python => vec![
            ("PIP_CACHE_DIR", at("pip")),
            ("UV_CACHE_DIR", at("uv")),
            // Nothing of the workspace is a second name of a file in the cache.
            ("UV_LINK_MODE", "copy".to_owned()),
        ],
        Preset::Git | Preset::Worker => return Vec::new(),
    };
    all.push(("XDG_CACHE_HOME", at("xdg")));
    all
}

/// Whether a file of settings could have a token or a password in it. One that cannot be read could.
fn may_hold_credentials(file: &Path) -> bool {
    match fs::read_to_string(file) {
        Ok(text) => names_credentials(&text),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

fn names_credentials(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let words = ["token", "secret", "passw", "credential", "authorization", "api-key", "api_key", "apikey"];
    let has_password = text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '"', '\'', ' ', '\n']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    });
    has_password || words.iter().any(|word| text.contains(word))
}

/// Settings of git that only say how it behaves: none runs a program, none holds a token.
const GIT_SETTINGS: &[&str] = &[
    "branch.autosetuprebase",
    "branch.sort",
    "color.ui",
    "commit.cleanup",
    "commit.verbose",
    "core.abbrev",
    "core.autocrlf",
    "core.eol",
    "core.quotepath",
    "core.safecrlf",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.mnemonicprefix",
    "diff.renames",
    "fetch.prune",
    "init.defaultbranch",
    "log.abbrevcommit",
    "log.date",
    "merge.conflictstyle",
    "merge.ff",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "rebase.autosquash",
    "rebase.autostash",
    "rerere.enabled",
    "tag.sort",
    "user.email",
    "user.name",
];

/// Those of a file that a guest may have. What is not written simply is left out.
fn git_settings(text: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            section = head.strip_suffix(']').unwrap_or_default().trim().to_ascii_lowercase();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = format!("{section}.{}", key.trim().to_ascii_lowercase());
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        let is_plain = !value.contains(['"', '\\', '#', ';']);
        if is_plain && GIT_SETTINGS.contains(&&*key) {
            found.push((key, value.to_owned()));
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn presets_show_no_credentials() {
        let home = tempfile::tempdir().unwrap();
        let files = [
            (
                ".gitconfig",
                "[user]\n\tname = Ada L\n[url \"https://x:planted@e.com\"]\n\tinsteadOf = https://e.com\n\
                 [http]\n\textraheader = Authorization: planted\n[pull]\nrebase = true\n[github]\ntoken = planted\n\
                 [alias]\nst = \"!curl planted\"\n",
            ),
            (".config/git/config", "[core]\n\tsshCommand = planted\n\tautocrlf = \"input\"\n"),
            (".config/git/ignore", "*.o"),
            (".config/git/credentials", "planted"),
            (".cargo/config.toml", "[registries.own]\ntoken = \"planted\"\n"),
            (".cargo/credentials", "planted"),
            (".cargo/credentials.toml", "planted"),
            (".cargo/registry/x", ""),
            (".local/share/uv/credentials/credentials.toml", "planted"),
            (".local/share/uv/python/x", ""),
            (".npmrc", "planted"),
            (".local/share/pnpm/x", ""),
        ];
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for preset in [Preset::Rust, Preset::Node, Preset::Python, Preset::Git] {
            let extras = extras(preset, home.path());
            let shown =
                |name: &str| extras.readable.iter().any(|path| home.path().join(name).starts_with(path));
            for (name, text) in files {
                assert!(!(shown(name) && text.contains("planted")), "{preset:?} shows {name}");
            }
            assert!(!format!("{:?}", extras.environment).contains("planted"), "{:?}", extras.environment);
        }
        let git = extras(Preset::Git, home.path()).environment;
        let has = |value: &str| git.iter().any(|(_, found)| found == value);
        assert!(
            has("user.name") && has("Ada L") && has("core.autocrlf") && has("input") && has("3"),
            "{git:?}"
        );
    }

    #[test]
    fn settings_of_cargo_are_shown_unless_they_name_credentials() {
        assert!(!names_credentials(
            "[build]\njobs = 2\n[source.x]\nregistry = \"ssh://git@example.com/x\"\n"
        ));
        assert!(names_credentials("[registry]\nTOKEN = \"x\"\n"));
        assert!(names_credentials("[http]\nproxy = \"http://me:word@proxy:80\"\n"));
    }
}
