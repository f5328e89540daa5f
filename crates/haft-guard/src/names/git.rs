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
    match names {
        ["config" | "config.worktree" | "commondir" | "gitdir"] => true,
        ["hooks", ..] => true,
        ["info", "attributes" | "grafts"] => true,
        ["objects", "info", "alternates"] => true,
        _ => false,
    }
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
