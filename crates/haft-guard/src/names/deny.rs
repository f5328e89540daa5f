//! Patterns of files that are never touched, wherever they are.

use super::{
    fold::{fold, slashed},
    patterns::{BadPattern, Patterns},
    suspects::Suspects,
};
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// What is denied unless somebody says otherwise: keys and credentials of users and of the system, and the inner parts
/// of repositories.
///
/// ```
/// assert!(haft_guard::names::DEFAULT_DENIES.contains(&"**/.ssh/**"));
/// ```
pub const DEFAULT_DENIES: &[&str] = &[
    "**/.ssh/**",
    "**/.gnupg/**",
    "**/.aws/**",
    "**/.azure/**",
    "**/.config/gcloud/**",
    "**/.config/gh/hosts.yml",
    "**/.kube/config",
    "**/.docker/config.json",
    "**/.cargo/credentials*",
    "**/.local/share/uv/credentials/**",
    "**/.terraform.d/credentials.tfrc.json",
    "**/.pgpass",
    "**/.my.cnf",
    "**/.git/**",
    "**/.git-credentials",
    "**/.npmrc",
    "**/.pypirc",
    "**/.netrc",
    "**/.env",
    "**/.env.*",
    "**/*.env",
    "**/id_rsa*",
    "**/id_ed25519*",
    "**/id_ecdsa*",
    "**/*.pem",
    "**/*.key",
    "**/*.p12",
    "**/*.pfx",
    "**/*.der",
    "**/etc/shadow",
    "**/etc/shadow-",
    "**/etc/gshadow",
    "**/etc/gshadow-",
    "**/etc/master.passwd",
    "**/etc/spwd.db",
    "**/etc/security/opasswd",
    "**/etc/sudoers",
    "**/etc/sudoers.d/**",
    "**/etc/krb5.keytab",
];

/// Where the kernel shows processes and itself: never files that a tool is after.
const SYSTEM: &[&str] = &["/proc", "/sys"];

/// What a pattern with a slash inside means that starts neither with `**/` nor with `/`. One without is about a name,
/// at any depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchoring {
    /// A path below one of the roots.
    AtRoots,
    /// Such a path at any depth: for jails, which may be granted only a part of a root.
    AnyDepth,
}

/// Which paths are denied. Case does not matter: some file systems do not mind it either. What is in a folder that is
/// denied is denied as well.
///
/// ```
/// use haft_guard::names::{Anchoring, DeniedPaths};
/// let denied = DeniedPaths::new(["*.pem", "secrets/"], Vec::new(), Anchoring::AtRoots).unwrap();
/// let hit = |below: &str| denied.pattern(&std::path::Path::new("/work").join(below), [below.as_ref()]);
/// assert_eq!(hit("a/Server.PEM"), Some("*.pem"));
/// assert_eq!(hit("a/secrets/one"), Some("secrets/"));
/// assert_eq!(hit("src/main.rs"), None);
/// ```
#[derive(Debug)]
pub struct DeniedPaths {
    /// Patterns that are matched with the whole path, and as they were written.
    anywhere: (Patterns, Vec<String>),
    /// Patterns that are matched with the path below its root.
    below_root: (Patterns, Vec<String>),
    /// Folders that are denied with all that is in them, such as haft's own state.
    private: Vec<Private>,
    /// Which names are worth a look at their whole path.
    suspects: Suspects,
}

/// A folder that is denied with all that is in it.
#[derive(Debug)]
struct Private {
    /// Without its case.
    folded: String,
    written: String,
}

impl Private {
    fn new(path: &Path) -> Self {
        let written = slashed(path).into_owned();
        Private { folded: fold(&written).trim_end_matches('/').to_owned(), written }
    }

    fn holds(&self, folded: &str) -> bool {
        folded.strip_prefix(&self.folded).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// How a pattern is matched.
enum Reach {
    Anywhere(String),
    BelowRoot(String),
}

/// A pattern without a slash is about a name, wherever it is; one that ends with a slash about a folder, which is the
/// same here.
fn reach(pattern: &str, anchoring: Anchoring) -> Reach {
    let plain = pattern.trim_end_matches('/');
    match anchoring {
        _ if plain.starts_with("**/") || plain.starts_with('/') => Reach::Anywhere(plain.to_owned()),
        _ if !plain.contains('/') => Reach::Anywhere(format!("**/{plain}")),
        Anchoring::AnyDepth => Reach::Anywhere(format!("**/{plain}")),
        Anchoring::AtRoots => Reach::BelowRoot(plain.to_owned()),
    }
}

impl DeniedPaths {
    /// What these patterns deny, and these folders with all that is in them.
    pub fn new<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
        private: Vec<PathBuf>,
        anchoring: Anchoring,
    ) -> Result<Self, BadPattern> {
        let private: Vec<_> = private.into_iter().chain(SYSTEM.iter().map(PathBuf::from)).collect();
        let mut suspects = Suspects::default();
        let (mut anywhere, mut below_root) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        for pattern in patterns {
            let (side, glob) = match reach(pattern, anchoring) {
                Reach::Anywhere(glob) => (&mut anywhere, glob),
                Reach::BelowRoot(glob) => (&mut below_root, glob),
            };
            suspects.add_pattern(&fold(&glob));
            side.0.push(glob);
            side.1.push(pattern.to_owned());
        }
        private.iter().for_each(|folder| suspects.add_folder(folder));
        // As they were written first: the same may be among the others in a longer form.
        let below_root = (Patterns::new(&below_root.0)?, below_root.1);
        Ok(DeniedPaths {
            anywhere: (Patterns::new(&anywhere.0)?, anywhere.1),
            below_root,
            private: private.iter().map(|folder| Private::new(folder)).collect(),
            suspects,
        })
    }

    /// Whether something of that name can be denied in a folder that is not denied itself. Far cheaper than looking
    /// at the whole path, and right for nearly every name that a walk meets.
    pub fn suspects(&self, name: &OsStr) -> bool {
        self.suspects.may_fit(name.as_encoded_bytes())
    }

    /// The pattern or folder that denies a path; `below` is the path without its root, for each root that it is below.
    pub fn pattern<'p>(&self, path: &Path, below: impl IntoIterator<Item = &'p Path>) -> Option<&str> {
        let text = slashed(path);
        let folded = fold(&text);
        let private = self.private.iter().find(|private| private.holds(&folded));
        let found = private.map(|private| &*private.written).or_else(|| first(&self.anywhere, &folded));
        if found.is_some() || self.below_root.0.is_empty() {
            return found;
        }
        below.into_iter().find_map(|below| first(&self.below_root, &fold(&slashed(below))))
    }
}

fn first<'a>((patterns, written): &'a (Patterns, Vec<String>), folded: &str) -> Option<&'a str> {
    written.get(patterns.first(folded)?).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(patterns: &[&str]) -> DeniedPaths {
        let private = vec![PathBuf::from("/home/u/.local/state/haft")];
        DeniedPaths::new(patterns.iter().copied(), private, Anchoring::AtRoots).unwrap()
    }

    fn hit<'a>(denied: &'a DeniedPaths, below: &str) -> Option<&'a str> {
        denied.pattern(&Path::new("/work").join(below), [Path::new(below)])
    }

    #[test]
    fn defaults_deny_keys_and_credentials_in_any_case() {
        let denied = denied(DEFAULT_DENIES);
        for path in [
            ".ssh/config",
            "a/.SSH/known_hosts",
            ".ssh",
            ".git/config",
            "sub/.git",
            ".env",
            ".ENV.local",
            "prod.env",
            "id_rsa",
            "keys/ID_RSA.pub",
            "x.PEM",
            "deep/er/x.key",
            ".aws/credentials",
            ".config/gcloud/x",
            ".ſſh/config",
            "x.\u{212a}ey",
            ".e\u{200c}nv",
            ".s\u{ad}sh/config",
            "x.p\u{feff}em",
            "home/.kube/config",
            "home/.docker/Config.JSON",
            ".cargo/credentials.toml",
            ".local/share/uv/credentials/x",
            "rootfs/etc/shadow",
            "etc/sudoers.d/x",
        ] {
            assert!(hit(&denied, path).is_some(), "{path}");
        }
        for path in [
            "src/main.rs",
            ".gitignore",
            ".github/x.yml",
            "environment",
            "keyboard.rs",
            "ssh/config",
            "a.pem.txt",
            ".kube/cache",
            ".cargo/config.toml",
            "shadow",
            "etc/passwd",
        ] {
            assert_eq!(hit(&denied, path), None, "{path}");
        }
    }

    #[test]
    fn a_pattern_without_stars_in_front_starts_at_the_root() {
        let denied = denied(&["secrets/**", "/etc/**"]);
        assert_eq!(hit(&denied, "secrets/a"), Some("secrets/**"));
        assert_eq!(hit(&denied, "secrets"), Some("secrets/**"));
        assert_eq!(hit(&denied, "other/secrets/a"), None);
        assert_eq!(denied.pattern(Path::new("/etc/shadow"), [Path::new("etc/shadow")]), Some("/etc/**"));
    }

    #[test]
    fn a_name_is_meant_at_any_depth_and_a_folder_with_all_that_is_in_it() {
        let files = denied(&[".env", "private/", "**/x.d", "a/b"]);
        let patterns = [".env", "private/", "**/x.d", "a/b"];
        let jails = DeniedPaths::new(patterns, Vec::new(), Anchoring::AnyDepth).unwrap();
        for path in [".env", "deep/er/.ENV", "private", "d/Private/key", "x.d/one/two", "a/b", "a/b/c"] {
            assert!(hit(&files, path).is_some() && hit(&jails, path).is_some(), "{path}");
        }
        assert!(
            hit(&files, "c/a/b").is_none() && hit(&jails, "c/a/b").is_some(),
            "jails may get a part of a root"
        );
        for path in ["env", "privates", "x.de", "b", "a/c"] {
            assert!(hit(&files, path).is_none() && hit(&jails, path).is_none(), "{path}");
        }
    }

    #[test]
    fn haft_s_own_folders_and_the_system_s_are_denied() {
        let denied = denied(&[]);
        assert!(denied.pattern(Path::new("/home/u/.local/state/haft/x"), [Path::new("x")]).is_some());
        assert!(denied.pattern(Path::new("/proc/self/environ"), [Path::new("proc/self/environ")]).is_some());
        assert!(denied.pattern(Path::new("/processes/x"), [Path::new("x")]).is_none());
        assert!(
            denied.pattern(Path::new("/Home/u/.LOCAL/state/haft"), [Path::new("x")]).is_some(),
            "in any case"
        );
        assert!(denied.pattern(Path::new("/home/u/.local/state/haft2"), [Path::new("x")]).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_haft_s_own_need_not_be_unicode() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
        let folder = PathBuf::from(OsStr::from_bytes(b"/home/\xff/haft"));
        let denied = DeniedPaths::new([], vec![folder.clone()], Anchoring::AtRoots).unwrap();
        assert!(denied.pattern(&folder.join("x"), [Path::new("x")]).is_some());
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config {
            cases: 2000,
            rng_seed: proptest::test_runner::RngSeed::Fixed(7),
            ..Default::default()
        })]
        /// A walk looks at the whole path only of names that are suspected. It must meet every path that is denied.
        #[test]
        fn what_is_denied_in_a_folder_that_is_not_has_a_suspected_name(
            mut patterns in proptest::collection::vec(
                "(\\*\\*/)?([ab.*?]{1,3}|[a-c]|\\{a,b/c\\}|\\[ab\\]|\\*\\*|\\\\a|\u{17f}|\u{212a}.)(/([ab*]{1,2}|b.a|\\*\\*)){0,2}",
                1..4,
            ),
            defaults in proptest::bool::ANY,
            anywhere in proptest::bool::ANY,
            path in "([abABckK.ſ]{1,3}|\\.env|\\.SSH|x\\.Pem|id_rsa2|gcloud|\\.config)(/([abc.]{1,2}|\\.aws|gcloud)){0,3}",
        ) {
            if defaults {
                patterns.extend(DEFAULT_DENIES.iter().map(|&pattern| pattern.to_owned()));
            }
            let private = vec![PathBuf::from("/work/a/b"), PathBuf::from("/work/c")];
            let anchoring = if anywhere { Anchoring::AnyDepth } else { Anchoring::AtRoots };
            let Ok(denied) = DeniedPaths::new(patterns.iter().map(String::as_str), private, anchoring) else { return Ok(()) };
            let mut below = PathBuf::new();
            for name in path.split('/') {
                below.push(name);
                if denied.pattern(&Path::new("/work").join(&below), [&*below]).is_some() {
                    proptest::prop_assert!(denied.suspects(OsStr::new(name)), "{patterns:?} deny {below:?}");
                    break;
                }
            }
        }
    }

    #[test]
    fn ordinary_names_are_not_suspected() {
        let denied = denied(DEFAULT_DENIES);
        for name in
            ["main.rs", "README.md", "index.ts", "Makefile", "a", ".gitignore", "image.png", "package.json"]
        {
            assert!(!denied.suspects(OsStr::new(name)), "{name}");
        }
        for name in ["grüße", ".env", "X.PEM", "ID_RSA.pub", "gcloud", "haft", "proc"] {
            assert!(denied.suspects(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_read_is_an_error() {
        let error = DeniedPaths::new(["a/{b"], Vec::new(), Anchoring::AtRoots).unwrap_err();
        assert!(error.to_string().starts_with("'a/{b' is not a pattern"), "{error}");
    }
}
