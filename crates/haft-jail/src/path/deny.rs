//! Patterns of files that are never touched, wherever they are.

use super::suspects::Suspects;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::{
    borrow::Cow,
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// What is denied unless somebody says otherwise: keys and credentials, and the inner parts of repositories.
///
/// ```
/// assert!(haft_jail::path::DEFAULT_DENIES.contains(&"**/.ssh/**"));
/// ```
pub const DEFAULT_DENIES: &[&str] = &[
    "**/.ssh/**",
    "**/.gnupg/**",
    "**/.aws/**",
    "**/.azure/**",
    "**/.config/gcloud/**",
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
];

/// Where the kernel shows processes and itself: never files that a tool is after.
const SYSTEM: &[&str] = &["/proc", "/sys"];

/// A pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("'{pattern}' is not a pattern for paths: {reason}. An example of one is **/*.pem")]
pub struct BadPattern {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Which paths are denied. Case does not matter: some file systems do not mind it either.
#[derive(Debug)]
pub(crate) struct Denied {
    /// Patterns that are matched with the whole path.
    anywhere: Patterns,
    /// Patterns that are matched with the path below its root.
    below_root: Patterns,
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

#[derive(Debug, Default)]
struct Patterns {
    set: GlobSet,
    /// The pattern as it was written, for each one of the set.
    written: Vec<String>,
}

impl Denied {
    pub(crate) fn new<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
        private: Vec<PathBuf>,
    ) -> Result<Self, BadPattern> {
        let (anywhere, below_root): (Vec<_>, Vec<_>) =
            patterns.into_iter().partition(|pattern| pattern.starts_with("**/") || pattern.starts_with('/'));
        let private: Vec<_> = private.into_iter().chain(SYSTEM.iter().map(PathBuf::from)).collect();
        let mut suspects = Suspects::default();
        anywhere.iter().chain(&below_root).for_each(|pattern| suspects.add_pattern(&fold(pattern)));
        private.iter().for_each(|folder| suspects.add_folder(folder));
        // As they were written first: the same may be among the others in a longer form.
        let below_root = Patterns::new(&below_root)?;
        Ok(Denied {
            anywhere: Patterns::new(&anywhere)?,
            below_root,
            private: private.iter().map(|folder| Private::new(folder)).collect(),
            suspects,
        })
    }

    /// Whether something of that name can be denied in a folder that is not denied itself. Far cheaper than looking
    /// at the whole path, and right for nearly every name that a walk meets.
    pub(crate) fn suspects(&self, name: &OsStr) -> bool {
        self.suspects.may_be_denied(name.as_encoded_bytes())
    }

    /// The pattern or folder that denies a path; `below` is the path without its root, for each root that it is below.
    pub(crate) fn pattern<'p>(&self, path: &Path, below: impl IntoIterator<Item = &'p Path>) -> Option<&str> {
        let text = slashed(path);
        let folded = fold(&text);
        let private = self.private.iter().find(|private| private.holds(&folded));
        let found = private.map(|private| &*private.written).or_else(|| self.anywhere.first(&folded));
        if found.is_some() || self.below_root.set.is_empty() {
            return found;
        }
        below.into_iter().find_map(|below| self.below_root.first(&fold(&slashed(below))))
    }
}

impl Patterns {
    fn new(patterns: &[&str]) -> Result<Self, BadPattern> {
        let mut set = GlobSetBuilder::new();
        let mut written = Vec::new();
        for &pattern in patterns {
            let folded = fold(pattern);
            // Where all that is in a folder is denied, so is the folder: its listing would tell what is in it.
            let folder = folded.strip_suffix("/**");
            for glob in std::iter::once(&*folded).chain(folder) {
                let built = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
                set.add(built.map_err(|error| bad(pattern, &error))?);
                written.push(pattern.to_owned());
            }
        }
        let set = set.build().map_err(|error| bad(&patterns.join(", "), &error))?;
        Ok(Patterns { set, written })
    }

    fn first(&self, folded: &str) -> Option<&str> {
        if self.set.is_empty() {
            return None;
        }
        let place = *self.set.matches(folded).first()?;
        self.written.get(place).map(String::as_str)
    }
}

fn bad(pattern: &str, error: &globset::Error) -> BadPattern {
    BadPattern { pattern: pattern.to_owned(), reason: error.kind().to_string() }
}

fn slashed(path: &Path) -> Cow<'_, str> {
    let text = path.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/").into() } else { text }
}

/// Text as file systems that ignore case see it: the long s is an s, the Kelvin sign a k, and what Unicode says may
/// be left out is not there, so that `.e<U+200C>nv` names the same file as `.env`.
fn fold(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    let fold = |c: char| c.to_uppercase().flat_map(char::to_lowercase);
    Cow::Owned(text.chars().filter(|c| !is_ignorable(*c)).flat_map(fold).collect())
}

/// Unicode's `Default_Ignorable_Code_Point`: file systems that ignore case ignore these as well.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(patterns: &[&str]) -> Denied {
        Denied::new(patterns.iter().copied(), vec![PathBuf::from("/home/u/.local/state/haft")]).unwrap()
    }

    fn hit<'a>(denied: &'a Denied, below: &str) -> Option<&'a str> {
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
        let denied = Denied::new([], vec![folder.clone()]).unwrap();
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
            path in "([abABckK.ſ]{1,3}|\\.env|\\.SSH|x\\.Pem|id_rsa2|gcloud|\\.config)(/([abc.]{1,2}|\\.aws|gcloud)){0,3}",
        ) {
            if defaults {
                patterns.extend(DEFAULT_DENIES.iter().map(|&pattern| pattern.to_owned()));
            }
            let private = vec![PathBuf::from("/work/a/b"), PathBuf::from("/work/c")];
            let Ok(denied) = Denied::new(patterns.iter().map(String::as_str), private) else { return Ok(()) };
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
        let error = Denied::new(["a/{b"], Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("'a/{b' is not a pattern"), "{error}");
    }
}
