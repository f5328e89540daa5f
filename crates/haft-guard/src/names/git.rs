//! What in a repository runs programs on its owner's behalf.

/// Whether a path inside a folder that git takes for a repository names something that makes git run programs, or read its
/// settings from elsewhere. The path is below that folder, with forward slashes.
///
/// What commits, branches and merges write is not among them. `.gitattributes` and `.gitmodules` are not either: a filter runs
/// only where settings name its program, and git takes no command from `.gitmodules`.
///
/// ```
/// use haft_guard::names::is_git_part;
/// assert!(is_git_part("config") && is_git_part("hooks/pre-commit") && is_git_part("modules/lib/config"));
/// assert!(!is_git_part("index") && !is_git_part("refs/heads/config") && !is_git_part("modules/lib/HEAD"));
/// ```
pub fn is_git_part(inside: &str) -> bool {
    let inside = super::fold::fold(inside);
    let names: Vec<&str> = inside.split('/').filter(|name| !name.is_empty()).collect();
    // A submodule's repository and a worktree's are inside of the first one; their names may have several parts.
    match names.as_slice() {
        ["modules", rest @ ..] => (0..rest.len()).any(|from| is_own_part(&rest[from..])),
        ["worktrees", _, rest @ ..] => is_own_part(rest),
        own => is_own_part(own),
    }
}

fn is_own_part(names: &[&str]) -> bool {
    matches!(
        names,
        ["config" | "config.worktree" | "commondir" | "gitdir"]
            | ["hooks", ..]
            | ["info", "attributes" | "grafts"]
            | ["objects", "info", "alternates"]
    )
}

/// What was met in a folder, as far as git looks at it to tell whether the folder is a repository.
///
/// ```
/// let mut found = haft_guard::names::GitEntries::default();
/// ["HEAD", "objects", "refs", "config"].iter().for_each(|name| found.meet(name.as_bytes()));
/// assert!(found.is_repository());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct GitEntries {
    head: bool,
    objects: bool,
    refs: bool,
    commondir: bool,
}

impl GitEntries {
    /// Notes a name.
    pub fn meet(&mut self, name: &[u8]) {
        match name {
            _ if name.eq_ignore_ascii_case(b"HEAD") => self.head = true,
            _ if name.eq_ignore_ascii_case(b"objects") => self.objects = true,
            _ if name.eq_ignore_ascii_case(b"refs") => self.refs = true,
            _ if name.eq_ignore_ascii_case(b"commondir") => self.commondir = true,
            _ => {}
        }
    }

    /// Whether git would take the folder for a repository, whatever its name.
    pub fn is_repository(self) -> bool {
        self.head && (self.commondir || (self.objects && self.refs))
    }
}

/// Whether a repository's settings are such as `git init` and `git clone` write: none of them makes git run a program or
/// read settings from elsewhere. What cannot be read simply is not.
///
/// ```
/// use haft_guard::names::is_harmless_git_config;
/// assert!(is_harmless_git_config("[core]\n\trepositoryformatversion = 0\n\tbare = false\n"));
/// assert!(!is_harmless_git_config("[core]\n\tfsmonitor = ./run-me\n"));
/// ```
pub fn is_harmless_git_config(text: &str) -> bool {
    let mut section = String::new();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| {
        if let Some(head) = line.strip_prefix('[') {
            // One that goes on behind the bracket is not taken apart here.
            let Some(name) = head.strip_suffix(']') else { return false };
            section = name.split([' ', '"']).next().unwrap_or_default().to_ascii_lowercase();
            return true;
        }
        if line.ends_with('\\') {
            return false;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        is_harmless_setting(&section, &key.trim().to_ascii_lowercase(), value.trim())
    })
}

/// Paths that a repository's settings name and that git runs or reads settings from: hooks elsewhere, included files, programs.
/// Relative ones start at the repository or at its folder `.git`.
///
/// ```
/// let text = "[core]\n\thooksPath = tools/hooks\n\tfsmonitor = \"sh ./watch.sh\"\n[remote \"o\"]\n\turl = ../o\n";
/// assert_eq!(haft_guard::names::git_config_paths(text), ["tools/hooks", "./watch.sh"]);
/// ```
pub fn git_config_paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for line in text.lines().map(str::trim) {
        // A setting may stand behind the name of its section.
        let line =
            line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(line, |(_, rest)| rest);
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().to_ascii_lowercase();
        let value = value.trim().trim_matches('"');
        match &*key {
            "url" | "pushurl" | "fetch" | "push" | "merge" | "remote" | "worktree" | "name" | "email" => {}
            "hookspath" | "path" | "attributesfile" => paths.push(value.to_owned()),
            // Anything else may be a command.
            _ => paths.extend(
                value
                    .split([' ', '\t', '"', '\'', ';', '&', '|', '!', '(', ')', '='])
                    .filter(|word| word.contains('/') && !word.contains("://"))
                    .map(str::to_owned),
            ),
        }
    }
    paths
}

fn is_harmless_setting(section: &str, key: &str, value: &str) -> bool {
    match (section, key) {
        (
            "core",
            "repositoryformatversion"
            | "filemode"
            | "bare"
            | "logallrefupdates"
            | "ignorecase"
            | "precomposeunicode"
            | "symlinks",
        ) => value.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        ("extensions", "objectformat" | "refstorage") => {
            value.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
        ("user", "name" | "email") => true,
        ("remote", "fetch") | ("branch", "remote" | "merge") => true,
        ("remote", "url") => {
            ["https://", "http://", "ssh://", "git@"].iter().any(|way| value.starts_with(way))
        }
        ("init", "defaultbranch") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_run_programs_are_told_from_those_that_commits_write() {
        for part in [
            "config",
            "CONFIG",
            "config.worktree",
            "hooks",
            "hooks/post-checkout",
            "commondir",
            "gitdir",
            "info/attributes",
            "info/grafts",
            "objects/info/alternates",
            "modules/a/config",
            "modules/a/b/hooks/pre-commit",
            "modules/a/modules/b/config",
            "worktrees/w/commondir",
            "worktrees/w/config.worktree",
        ] {
            assert!(is_git_part(part), "{part}");
        }
        for part in [
            "",
            "HEAD",
            "index",
            "index.lock",
            "refs/heads/config",
            "refs/heads/hooks/x",
            "logs/refs/heads/config",
            "objects/ab/cdef",
            "info/exclude",
            "COMMIT_EDITMSG",
            "modules/a/HEAD",
            "worktrees/w/HEAD",
        ] {
            assert!(!is_git_part(part), "{part}");
        }
    }

    #[test]
    fn settings_of_a_new_repository_are_told_from_those_that_run_programs() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
        let cloned = format!(
            "{plain}[remote \"origin\"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
             [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = Ada\n"
        );
        assert!(
            is_harmless_git_config(plain) && is_harmless_git_config(&cloned) && is_harmless_git_config("")
        );
        for evil in [
            "[core]\n\tfsmonitor = x\n",
            "[core] fsmonitor = x\n",
            "[core]\n\tbare = false\\\n\tfsmonitor = x\n",
            "[CORE]\n\tSSHCommand = x\n",
            "[core]\n\thooksPath = x\n",
            "[core]\n\tworktree = /\n",
            "[alias]\n\tst = !x\n",
            "[filter \"x\"]\n\tclean = x\n",
            "[include]\n\tpath = x\n",
            "[includeIf \"gitdir:/\"]\n\tpath = x\n",
            "[remote \"o\"]\n\turl = ext::sh -c x\n",
            "[remote \"o\"]\n\tuploadpack = x\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "[submodule \"x\"]\n\tupdate = !x\n",
            "[gpg]\n\tprogram = x\n",
            "[core]\n\tbare = false ; x\n",
        ] {
            assert!(!is_harmless_git_config(evil), "{evil}");
        }
    }

    #[test]
    fn a_folder_is_a_repository_by_what_is_in_it() {
        let met = |names: &[&str]| {
            let mut found = GitEntries::default();
            names.iter().for_each(|name| found.meet(name.as_bytes()));
            found.is_repository()
        };
        assert!(met(&["HEAD", "objects", "refs"]) && met(&["head", "commondir"]));
        assert!(!met(&["HEAD", "objects"]) && !met(&["objects", "refs"]) && !met(&["commondir"]));
    }
}
