//! Names of files that run programs later, when their owner opens a shell, an editor or an agent, or uses git.

use super::{
    fold::{fold, slashed},
    git::is_git_part,
    patterns::{BadPattern, Patterns},
    suspects::Suspects,
};
use std::{
    ffi::OsStr,
    path::Path,
    sync::{Arc, LazyLock},
};

/// A pattern of protected names, and why they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The pattern.
    pub pattern: &'static str,
    /// What runs what is in there.
    pub why: &'static str,
}

const fn by(why: &'static str, pattern: &'static str) -> Protected {
    Protected { pattern, why }
}

const GIT: &str = "git runs programs that it names, when the owner next uses git";
const HOOKS: &str = "programs in it run with the owner's next commit";
const HG: &str = "version control runs programs that it names, when the owner next uses it";
const SSH: &str = "ssh runs programs that it names, and lets in whom it names";
const SHELL: &str = "the owner's next shell, or another program with a prompt, runs it";
const EDITOR: &str = "the owner's editor runs what it names";
const AGENT: &str = "the owner's agents run what it names";
const DESKTOP: &str = "it runs when the owner next logs in";
const HAFT: &str = "it is haft's own configuration";

/// What is protected unless somebody says otherwise, besides the parts of repositories ([`is_git_part`]).
///
/// ```
/// assert!(haft_guard::names::PROTECTED_NAMES.iter().any(|name| name.pattern == "**/.envrc"));
/// ```
pub const PROTECTED_NAMES: &[Protected] = &[
    by(GIT, "**/.git"),
    by(GIT, "**/.gitconfig"),
    by(GIT, "**/.config/git"),
    by(HOOKS, "**/.husky"),
    by(HOOKS, "**/.githooks"),
    by(HOOKS, "**/.pre-commit-config.yaml"),
    by(HOOKS, "**/.overcommit.yml"),
    by(HOOKS, "**/.lintstagedrc"),
    by(HOOKS, "**/.lintstagedrc.*"),
    by(HOOKS, "**/lefthook.yml"),
    by(HOOKS, "**/lefthook.yaml"),
    by(HOOKS, "**/lefthook.toml"),
    by(HOOKS, "**/lefthook.json"),
    by(HOOKS, "**/lefthook-local.*"),
    by(HOOKS, "**/.lefthook.*"),
    by(HOOKS, "**/.lefthook-local.*"),
    by(HOOKS, "**/.lefthook"),
    by(HOOKS, "**/.lefthook-local"),
    by(HG, "**/.hg/hgrc"),
    by(HG, "**/.hg/hgrc-not-shared"),
    by(HG, "**/.hg/sharedpath"),
    by(HG, "**/.hgrc"),
    by(HG, "**/.jj/repo/config.toml"),
    by(SSH, "**/.ssh"),
    by(SHELL, "**/.envrc"),
    by(SHELL, "**/.direnv"),
    by(SHELL, "**/.direnvrc"),
    by(SHELL, "**/.config/direnv"),
    by(SHELL, "**/.autoenv"),
    by(SHELL, "**/.autoenv.zsh"),
    by(SHELL, "**/.bashrc"),
    by(SHELL, "**/.bash_profile"),
    by(SHELL, "**/.bash_login"),
    by(SHELL, "**/.bash_logout"),
    by(SHELL, "**/.bash_aliases"),
    by(SHELL, "**/.bash_completion"),
    by(SHELL, "**/.profile"),
    by(SHELL, "**/.zshrc"),
    by(SHELL, "**/.zshenv"),
    by(SHELL, "**/.zprofile"),
    by(SHELL, "**/.zlogin"),
    by(SHELL, "**/.zlogout"),
    by(SHELL, "**/.kshrc"),
    by(SHELL, "**/.cshrc"),
    by(SHELL, "**/.tcshrc"),
    by(SHELL, "**/.login"),
    by(SHELL, "**/.inputrc"),
    by(SHELL, "**/.pam_environment"),
    by(SHELL, "**/.tmux.conf"),
    by(SHELL, "**/.config/tmux"),
    by(SHELL, "**/.screenrc"),
    by(SHELL, "**/.Rprofile"),
    by(SHELL, "**/.pdbrc"),
    by(SHELL, "**/.irbrc"),
    by(SHELL, "**/.pryrc"),
    by(SHELL, "**/.ghci"),
    by(SHELL, "**/.rvmrc"),
    by(SHELL, "**/mise.toml"),
    by(SHELL, "**/mise.*.toml"),
    by(SHELL, "**/.mise.toml"),
    by(SHELL, "**/.mise.*.toml"),
    by(SHELL, "**/.mise"),
    by(SHELL, "**/.config/mise"),
    by(SHELL, "**/.config/mise.toml"),
    by(SHELL, "**/.config/fish"),
    by(SHELL, "**/.config/environment.d"),
    by(DESKTOP, "**/.xprofile"),
    by(DESKTOP, "**/.xinitrc"),
    by(DESKTOP, "**/.xsession"),
    by(DESKTOP, "**/.xsessionrc"),
    by(DESKTOP, "**/.config/autostart"),
    by(DESKTOP, "**/.config/systemd"),
    by(DESKTOP, "**/.local/share/systemd"),
    by(EDITOR, "**/.vscode"),
    by(EDITOR, "**/*.code-workspace"),
    by(EDITOR, "**/*.sublime-project"),
    by(EDITOR, "**/.idea"),
    by(EDITOR, "**/.fleet"),
    by(EDITOR, "**/.zed"),
    by(EDITOR, "**/.devcontainer"),
    by(EDITOR, "**/.devcontainer.json"),
    by(EDITOR, "**/.exrc"),
    by(EDITOR, "**/.vimrc"),
    by(EDITOR, "**/.gvimrc"),
    by(EDITOR, "**/.vim"),
    by(EDITOR, "**/.emacs"),
    by(EDITOR, "**/.emacs.el"),
    by(EDITOR, "**/.emacs.d"),
    by(EDITOR, "**/.config/emacs"),
    by(EDITOR, "**/.dir-locals-2.el"),
    by(EDITOR, "**/.lvimrc"),
    by(EDITOR, "**/.nvimrc"),
    by(EDITOR, "**/.nvim.lua"),
    by(EDITOR, "**/.config/nvim"),
    by(EDITOR, "**/.helix"),
    by(EDITOR, "**/.dir-locals.el"),
    by(EDITOR, "**/.gdbinit"),
    by(EDITOR, "**/.lldbinit"),
    by(AGENT, "**/.mcp.json"),
    by(AGENT, "**/.claude"),
    by(AGENT, "**/.claude.json"),
    by(AGENT, "**/.codex"),
    by(AGENT, "**/.cursor"),
    by(AGENT, "**/.gemini"),
    by(AGENT, "**/.qwen"),
    by(AGENT, "**/.aider.conf.yml"),
    by(AGENT, "**/.continue"),
    by(AGENT, "**/.windsurf"),
    by(AGENT, "**/.cline"),
    by(AGENT, "**/.roo"),
    by(AGENT, "**/.kiro"),
    by(AGENT, "**/.amazonq"),
    by(AGENT, "**/.augment"),
    by(AGENT, "**/.junie"),
    by(AGENT, "**/.opencode"),
    by(AGENT, "**/opencode.json"),
    by(AGENT, "**/opencode.jsonc"),
    by(AGENT, "**/.crush.json"),
    by(AGENT, "**/crush.json"),
    by(AGENT, "**/.goose"),
    by(AGENT, "**/.trae"),
    by(AGENT, "**/.kilocode"),
    by(AGENT, "**/.factory"),
    by(AGENT, "**/.copilot"),
    by(AGENT, "**/.agents"),
    by(HAFT, "**/haft.toml"),
    by(HAFT, "**/.haft"),
];

/// Why a link is protected on the way to protected names.
const WAY: &str = "protected names such as .hg/hgrc or .config/fish would be found through it";

/// Why names are protected that an operator added.
const ADDED: &str = "it is on the list of protected names in haft's configuration";

/// Which names are protected: programs and tools may read them, and change them only with an approval.
///
/// ```
/// use haft_guard::names::ProtectedNames;
/// let names = ProtectedNames::default();
/// assert!(names.reason("sub/.EnvRC".as_ref()).is_some());
/// assert!(names.reason(".git/hooks/pre-commit".as_ref()).is_some());
/// assert!(names.reason(".git/index".as_ref()).is_none() && names.reason("src/main.rs".as_ref()).is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProtectedNames {
    /// Where an operator added or allowed some; else those that are built in.
    own: Option<Arc<Names>>,
}

/// Those that are built in: compiled when the first path is looked at, once for a process.
static BUILT_IN: LazyLock<Names> = LazyLock::new(|| {
    Names::new(&[], &[]).unwrap_or_else(|_| Names {
        patterns: None,
        allowed: Patterns::default(),
        why: Vec::new(),
        ways: Patterns::default(),
        suspects: Suspects::every_name(),
    })
});

#[derive(Debug)]
struct Names {
    /// `None` where they could not be read: then everything is.
    patterns: Option<Patterns>,
    allowed: Patterns,
    why: Vec<&'static str>,
    /// The folders on the way to names of several parts: a link there would lead those elsewhere.
    ways: Patterns,
    suspects: Suspects,
}

impl Names {
    fn new(added: &[String], allowed: &[String]) -> Result<Self, BadPattern> {
        let built_in = PROTECTED_NAMES.iter().map(|name| (name.pattern.to_owned(), name.why));
        let (patterns, why): (Vec<String>, Vec<&'static str>) =
            built_in.chain(added.iter().map(|pattern| (anywhere(pattern), ADDED))).unzip();
        let mut suspects = Suspects::default();
        let ways: Vec<String> = patterns.iter().flat_map(|pattern| ways(pattern)).collect();
        patterns.iter().chain(&ways).for_each(|pattern| suspects.add_pattern(&fold(pattern)));
        let allowed: Vec<String> = allowed.iter().map(|pattern| anywhere(pattern)).collect();
        Ok(Names {
            patterns: Some(Patterns::new(&patterns)?),
            allowed: Patterns::new(&allowed)?,
            why,
            ways: Patterns::new(&ways)?,
            suspects,
        })
    }
}

impl ProtectedNames {
    /// Those that are built in and `added`, but for `allowed`. All are patterns as for denied files; one without a
    /// slash is about a name at any depth.
    pub fn new(added: &[String], allowed: &[String]) -> Result<Self, BadPattern> {
        if added.is_empty() && allowed.is_empty() {
            return Ok(ProtectedNames::default());
        }
        Ok(ProtectedNames { own: Some(Arc::new(Names::new(added, allowed)?)) })
    }

    fn names(&self) -> &Names {
        self.own.as_deref().unwrap_or_else(|| &BUILT_IN)
    }

    /// Whether something of that name can be protected in a folder that is not. Parts of repositories are not asked
    /// about here.
    pub fn suspects(&self, name: &OsStr) -> bool {
        self.names().suspects.may_fit(name.as_encoded_bytes())
    }

    /// Why a path is protected, by itself or by a folder around it; `None` where it is not. The path is below a root:
    /// what is above was granted by somebody.
    ///
    /// Of a repository only those parts are that make git run programs, and the repository itself.
    pub fn reason(&self, below: &Path) -> Option<&'static str> {
        let text = slashed(below);
        let folded = fold(&text);
        let (front, inside) = split_at_repository(&folded);
        match inside {
            Some("") => self.of(front),
            Some(inside) if is_git_part(inside) => {
                self.names().allowed.first(&folded).is_none().then_some(GIT)
            }
            // What commits write is not protected, whatever it is called there.
            Some(_) => None,
            None => self.of(front),
        }
    }

    /// Why something is protected in a folder that is not, by its own path.
    pub fn reason_of_entry(&self, below: &Path) -> Option<&'static str> {
        let text = slashed(below);
        let folded = fold(&text);
        let Some(patterns) = &self.names().patterns else { return Some(ADDED) };
        let place = patterns.of_entry(&folded)?;
        self.names()
            .allowed
            .first(&folded)
            .is_none()
            .then(|| self.names().why.get(place).copied().unwrap_or(ADDED))
    }

    /// Why a link is protected in a folder that is not: by its own path, or because protected names would be found
    /// through it.
    ///
    /// ```
    /// let names = haft_guard::names::ProtectedNames::default();
    /// assert!(names.reason_of_link("sub/.config".as_ref()).is_some(), "the way to .config/fish");
    /// assert!(names.reason_of_entry("sub/.config".as_ref()).is_none(), "a folder of that name is not");
    /// ```
    pub fn reason_of_link(&self, below: &Path) -> Option<&'static str> {
        let by_way = || {
            let text = slashed(below);
            let folded = fold(&text);
            self.names()
                .ways
                .of_entry(&folded)
                .filter(|_| self.names().allowed.first(&folded).is_none())
                .map(|_| WAY)
        };
        self.reason_of_entry(below).or_else(by_way)
    }

    /// Why a part of a repository is protected, unless an operator allowed it.
    pub fn reason_of_git_part(&self, below: &Path) -> Option<&'static str> {
        self.names().allowed.first(&fold(&slashed(below))).is_none().then_some(GIT)
    }

    fn of(&self, folded: &str) -> Option<&'static str> {
        let Some(patterns) = &self.names().patterns else { return Some(ADDED) };
        let place = patterns.first(folded)?;
        self.names()
            .allowed
            .first(folded)
            .is_none()
            .then(|| self.names().why.get(place).copied().unwrap_or(ADDED))
    }
}

/// The folders on the way to what a pattern means: `**/.config` for `**/.config/git`.
fn ways(pattern: &str) -> Vec<String> {
    let inner = pattern.strip_prefix("**/").unwrap_or(pattern).trim_end_matches("/**");
    let front = &pattern[..pattern.len() - pattern.strip_prefix("**/").map_or(pattern.len(), str::len)];
    let ends = inner.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
    ends.map(|at| format!("{front}{}", &inner[..at])).collect()
}

fn anywhere(pattern: &str) -> String {
    let plain = pattern.trim_end_matches('/');
    match plain.starts_with("**/") || plain.starts_with('/') {
        true => plain.to_owned(),
        false => format!("**/{plain}"),
    }
}

/// A path up to the first repository on it, and what is inside of that.
fn split_at_repository(folded: &str) -> (&str, Option<&str>) {
    let mut from = 0;
    for name in folded.split('/') {
        let end = from + name.len();
        if name == ".git" {
            let inside = folded.get(end..).unwrap_or_default().trim_start_matches('/');
            return (folded.get(..end).unwrap_or(folded), Some(inside));
        }
        from = end + 1;
    }
    (folded, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_built_in_can_be_read() {
        assert!(BUILT_IN.patterns.is_some());
        assert_eq!(BUILT_IN.why.len(), PROTECTED_NAMES.len());
    }

    fn why(names: &ProtectedNames, path: &str) -> Option<&'static str> {
        names.reason(Path::new(path))
    }

    #[test]
    fn a_link_on_the_way_to_protected_names_is_protected_and_a_folder_is_not() {
        let names = ProtectedNames::default();
        for way in [".hg", "sub/.Config", ".local", ".local/share", ".jj", ".jj/repo"] {
            assert!(names.reason_of_link(way.as_ref()).is_some(), "{way}");
            assert!(names.reason(way.as_ref()).is_none(), "{way}");
            assert!(names.suspects(Path::new(way).file_name().unwrap()), "a walk would not look at {way}");
        }
        for other in ["share", "src", "repo", "sub/link"] {
            assert!(names.reason_of_link(other.as_ref()).is_none(), "{other}");
        }
        let allowed = ProtectedNames::new(&["a/b/c".into()], &[".hg".into()]).unwrap();
        assert!(allowed.reason_of_link("x/a/b".as_ref()).is_some());
        assert!(allowed.reason_of_link(".hg".as_ref()).is_none());
    }

    #[test]
    fn what_runs_later_is_protected_wherever_it_is_and_in_any_case() {
        let names = ProtectedNames::default();
        for path in [
            ".git",
            "sub/.git",
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/modules/a/config",
            ".git/worktrees/w/gitdir",
            ".envrc",
            "deep/er/.EnvRc",
            ".vscode/tasks.json",
            ".VSCode",
            "x.code-workspace",
            ".idea/workspace.xml",
            ".mcp.json",
            ".claude/settings.json",
            ".codex/config.toml",
            ".cursor/mcp.json",
            ".gemini/settings.json",
            ".husky/pre-commit",
            "sub/.hg/hgrc",
            ".ssh/authorized_keys",
            "lefthook.toml",
            "lefthook-local.json",
            ".lefthook.yaml",
            ".emacs",
            ".emacs.d/init.el",
            ".vim/plugin/x.vim",
            ".gvimrc",
            "mise.toml",
            ".mise.local.toml",
            ".rvmrc",
            ".bash_completion",
            ".trae/mcp.json",
            ".kilocode/mcp.json",
            ".factory/mcp.json",
            ".copilot/mcp-config.json",
            ".git/rebase-merge/git-rebase-todo",
            "home/.bashrc",
            ".config/fish/config.fish",
            "haft.toml",
            ".jj/repo/config.toml",
            "sub/.Rprofile",
            "a/Haft.TOML",
            ".e\u{200c}nvrc",
        ] {
            assert!(why(&names, path).is_some(), "{path}");
            assert!(
                Path::new(path).iter().any(|name| names.suspects(name)),
                "a walk would not look at {path}"
            );
        }
        for path in [
            "src/main.rs",
            ".git/index",
            ".git/refs/heads/.vscode",
            ".git/HEAD",
            ".gitignore",
            ".gitattributes",
            ".gitmodules",
            ".github/workflows/ci.yml",
            "CLAUDE.md",
            "vscode/x",
            "Makefile",
        ] {
            assert_eq!(why(&names, path), None, "{path}");
        }
    }

    #[test]
    fn operators_add_names_and_allow_names() {
        let names =
            ProtectedNames::new(&["deploy.sh".into(), "ops/**".into()], &[".vscode".into(), ".git".into()]);
        let names = names.unwrap();
        assert_eq!(why(&names, "a/deploy.sh"), Some(ADDED));
        assert_eq!(why(&names, "a/ops/x"), Some(ADDED));
        assert_eq!(why(&names, ".vscode/tasks.json"), None);
        assert_eq!(why(&names, "new/.git"), None);
        assert_eq!(why(&names, "new/.git/config"), None);
        assert!(why(&names, ".envrc").is_some());
        assert!(ProtectedNames::new(&["a[".into()], &[]).is_err());
    }

    #[test]
    fn the_list_could_be_read_and_names_nothing_twice() {
        assert!(ProtectedNames::default().names().patterns.is_some());
        let mut all: Vec<_> = PROTECTED_NAMES.iter().map(|name| name.pattern).collect();
        all.sort_unstable();
        let before = all.len();
        all.dedup();
        assert_eq!(all.len(), before);
    }
}
