//! What in a repository runs programs on its owner's behalf.

use super::{
    git_config::{self, Setting},
    git_scripts::scripts,
};

/// Whether a path inside a folder that git takes for a repository names something that makes git run programs, or read
/// its settings from elsewhere. The path is below that folder, with forward slashes.
///
/// What commits, branches and merges write is not among them. `.gitattributes` and `.gitmodules` are not either: a
/// filter runs only where settings name its program, and git takes no command from `.gitmodules`.
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
            // Old ways to name remotes.
            | ["remotes" | "branches", _, ..]
            // What a rebase or cherry-pick goes on with: programs and ways to merge.
            | ["rebase-merge" | "rebase-apply" | "sequencer", ..]
            // Up to git 2.39 a shell reads it.
            | ["bisect_names"]
    )
}

/// What was met in a folder, as far as git looks at it to tell whether the folder is a repository.
///
/// ```
/// let mut found = haft_guard::names::GitEntries::default();
/// ["HEAD", "objects", "refs", "config"].iter().for_each(|name| found.meet(name.as_bytes()));
/// assert!(found.is_repository());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

    /// Whether a new entry of that name could make the folder a repository, alone or with others that are made beside
    /// it: a head, or anything that a head needs where there is one.
    ///
    /// ```
    /// let mut found = haft_guard::names::GitEntries::default();
    /// assert!(found.may_be_completed_by(b"HEAD") && !found.may_be_completed_by(b"refs"));
    /// found.meet(b"HEAD");
    /// assert!(!found.may_be_completed_by(b"HEAD") && found.may_be_completed_by(b"refs"));
    /// ```
    pub fn may_be_completed_by(self, name: &[u8]) -> bool {
        let mut with = self;
        with.meet(name);
        with != self && with.head
    }

    /// Whether git would take the folder for a repository, whatever its name.
    pub fn is_repository(self) -> bool {
        self.head && (self.commondir || (self.objects && self.refs))
    }
}

/// Whether a repository's settings are such as `git init` and `git clone` write: none of them makes git run a program
/// or read settings from elsewhere. What cannot be read simply is not.
///
/// ```
/// use haft_guard::names::is_harmless_git_config;
/// assert!(is_harmless_git_config("[core]\n\trepositoryformatversion = 0\n\tbare = false\n"));
/// assert!(!is_harmless_git_config("[core]\n\tfsmonitor = ./run-me\n"));
/// ```
pub fn is_harmless_git_config(text: &str) -> bool {
    git_config::read(text).is_some_and(|read| read.is_plain && read.all.iter().all(is_harmless_setting))
}

/// What a repository's settings name that git runs or reads.
///
/// ```
/// let text = "[core]\n\thooksPath = th # mine\n[include]\n\tpath = more\n[filter \"f\"]\n\tclean = python3 clean.py\n";
/// let named = haft_guard::names::git_config_names(text);
/// assert_eq!((named.paths, named.includes), (vec!["th".to_owned()], vec!["more".to_owned()]));
/// assert!(named.words.contains(&"clean.py".to_owned()) && named.scripts == ["clean.py"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitConfigNames {
    /// Folders and files of hooks and attributes. Relative ones start at the work tree.
    pub paths: Vec<String>,
    /// More settings. Relative ones start at the folder of these.
    pub includes: Vec<String>,
    /// Where the work tree is, if that is said. A relative one starts at the repository.
    pub worktree: Option<String>,
    /// Words of commands: those that are names of files are run, or read by what is run.
    pub words: Vec<String>,
    /// Those of them that an interpreter takes for a file to run, whatever they look like: `clean` in `sh clean`.
    pub scripts: Vec<String>,
}

/// Reads what settings name. Of a file that git would refuse every word counts.
pub fn git_config_names(text: &str) -> GitConfigNames {
    let mut names = GitConfigNames::default();
    let Some(read) = git_config::read(text) else {
        for line in text.lines() {
            words(line, &mut names.words);
            scripts(line.split_once('=').map_or(line, |(_, value)| value), &mut names.scripts);
        }
        names.includes.clone_from(&names.words);
        return names;
    };
    for setting in read.all {
        let Some(value) = setting.value.as_deref().filter(|value| !value.is_empty()) else { continue };
        match (&*setting.section, &*setting.key) {
            ("include" | "includeif", "path") => names.includes.push(value.to_owned()),
            ("core", "worktree") => names.worktree = Some(value.to_owned()),
            ("core", "hookspath" | "attributesfile") => names.paths.push(value.to_owned()),
            // Git only reads these, and takes no command from them.
            ("core", "excludesfile")
            | ("commit", "template")
            | ("blame", "ignorerevsfile")
            | ("mailmap", "file")
            | ("submodule", "url" | "path" | "active" | "branch")
            | ("remote", "pushurl" | "push")
            | ("branch", "pushremote" | "description")
            | ("url", _)
                if !value.contains("::") => {}
            _ if is_harmless_setting(&setting) => {}
            _ => {
                words(value, &mut names.words);
                scripts(value, &mut names.scripts);
            }
        }
    }
    names
}

/// The words of a command, as a shell or git may take it apart.
fn words(value: &str, into: &mut Vec<String>) {
    let mut add = |word: &str| {
        let word = word.trim();
        if !word.is_empty() && !into.iter().any(|known| known == word) {
            into.push(word.to_owned());
        }
    };
    add(value);
    add(value.trim_start_matches('!'));
    value.split(['"', '\'']).for_each(&mut add);
    let ends = |c: char| c.is_whitespace() || "\"'`;&|!()=<>{}$,".contains(c);
    value.split(ends).for_each(&mut add);
    // A name with a space in it.
    value.replace("\\ ", "\u{0}").split(ends).for_each(|word| add(&word.replace('\u{0}', " ")));
}

fn is_harmless_setting(setting: &Setting) -> bool {
    let Setting { section, part, key, value } = setting;
    let value = value.as_deref().unwrap_or_default();
    if value.chars().any(char::is_control) {
        return false;
    }
    let is_word = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match (&**section, part.is_some(), &**key) {
        (
            "core",
            false,
            "repositoryformatversion"
            | "filemode"
            | "bare"
            | "logallrefupdates"
            | "ignorecase"
            | "precomposeunicode"
            | "symlinks",
        )
        | ("extensions", false, "objectformat" | "refstorage") => is_word(value),
        ("user", false, "name" | "email") | ("init", false, "defaultbranch") => true,
        ("remote", true, "fetch") | ("branch", true, "merge") => !value.starts_with('-'),
        ("remote", true, "tagopt") => matches!(value, "--tags" | "--no-tags"),
        // It may be a URL as well.
        ("branch", true, "remote") => {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
            !value.starts_with('-') && value.bytes().all(is_plain)
        }
        ("remote", true, "url") => is_harmless_url(value),
        _ => false,
    }
}

/// Whether git fetches from there by itself, without a program that the URL names. Paths are among them.
fn is_harmless_url(url: &str) -> bool {
    // `name::rest` runs the program `git-remote-name`, and so does a scheme that git does not know. What begins with a
    // dash could be taken for an option.
    if url.is_empty() || url.starts_with('-') || url.contains("::") {
        return false;
    }
    match url.split_once("://") {
        None => !url.contains("@-"),
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            let is_known = ["https", "http", "ssh", "git", "file"].contains(&scheme);
            is_known && !rest.starts_with('-') && !host.starts_with('-')
        }
    }
}

/// Whether what is left of a rebase runs no program when it goes on: `exec` does.
///
/// ```
/// use haft_guard::names::is_harmless_git_todo;
/// assert!(is_harmless_git_todo("pick 1234 words\n# exec nothing\n\nfixup 5678\n"));
/// assert!(!is_harmless_git_todo("pick 1234\nexec make\n") && !is_harmless_git_todo("x make\n"));
/// ```
pub fn is_harmless_git_todo(text: &str) -> bool {
    const HARMLESS: [&str; 25] = [
        "pick",
        "p",
        "reword",
        "r",
        "edit",
        "e",
        "squash",
        "s",
        "fixup",
        "f",
        "drop",
        "d",
        "label",
        "l",
        "reset",
        "t",
        "merge",
        "m",
        "noop",
        "break",
        "b",
        "update-ref",
        "u",
        "revert",
        "#",
    ];
    text.lines().all(|line| {
        let line = line.trim_start();
        let first = line.split([' ', '\t']).next().unwrap_or_default();
        line.is_empty() || line.starts_with('#') || HARMLESS.contains(&first)
    })
}

/// Whether the paths of a bisection are quoted words, as git writes them: a shell that reads them runs nothing.
///
/// ```
/// use haft_guard::names::is_harmless_git_bisect_names;
/// assert!(is_harmless_git_bisect_names(" 'src' 'it'\\''s'\n") && is_harmless_git_bisect_names("\n"));
/// assert!(!is_harmless_git_bisect_names("'src'; make\n") && !is_harmless_git_bisect_names("$(make)"));
/// ```
pub fn is_harmless_git_bisect_names(text: &str) -> bool {
    let mut is_quoted = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, is_quoted) {
            ('\'', _) => is_quoted = !is_quoted,
            (_, true) | (' ' | '\n', false) => {}
            // What a quoted word cannot have in it.
            ('\\', false) if matches!(letters.next(), Some('\'' | '!')) => {}
            _ => return false,
        }
    }
    !is_quoted
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
            "rebase-merge",
            "rebase-merge/git-rebase-todo",
            "rebase-apply",
            "rebase-apply/patch",
            "BISECT_NAMES",
            "branches/origin",
            "worktrees/w/rebase-merge/git-rebase-todo",
            "sequencer/todo",
            "remotes/origin",
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
            "remotes",
            "branches",
            "refs/remotes/origin",
            "refs/heads/rebase-merge",
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
        let local = plain.to_owned()
            + "[remote \"origin\"]\n\turl = /srv/a b.git\n\tfetch = +refs/*:refs/*\n# more\n";
        assert!(is_harmless_git_config(&local));
        for evil in [
            "[core] fsmonitor = touch X; false #]\n",
            "[core]\n[x] [core] fsmonitor = touch X; false #\"]\n",
            "[core]fsmonitor=x\n",
            "[core \"]\n\tbare = false\n",
            "[core]\n\tbare = false \\\n",
            "[core]\n# \\\n\tbare = false\n",
            "[core]\n\tbare = \"false\n\tfsmonitor = x\"\n",
            "[core]\rfsmonitor = x\n",
            "[core]\n\tbare = false\r\tfsmonitor = x\n",
            "[core.fsmonitor]\n\tbare = x\n",
            "bare = false\n",
            "[branch \"main\"]\n\tremote = ext::sh -c x\n",
            "[remote \"o\"]\n\turl = -oProxyCommand=x\n",
            "[remote \"o\"]\n\turl = ssh://-oProxyCommand=x/y\n",
            "[remote \"o\"]\n\turl = ssh://a@-oProxyCommand=x/y\n",
            "[remote \"o\"]\n\turl = evil://x\n",
            "[remote \"o\"]\n\turl = https://a\n\turl = ext::sh\n",
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
    fn what_settings_name_is_found_however_it_is_written() {
        let named = |text: &str| git_config_names(text);
        for text in [
            "[core]\n\thooksPath = th # x\n",
            "[CORE] HooksPath=\"th\" ; x\n",
            "[core]hookspath = \\\nth\n",
            "[core]\n\tattributesFile = th\n",
            "[core \"\"]\n[core]\n\thookspath\t=\tth\n",
        ] {
            assert_eq!(named(text).paths, ["th"], "{text}");
        }
        for (text, word) in [
            ("[filter \"x\"]\n\tclean = python3 clean.py\n", "clean.py"),
            ("[core]\n\tfsmonitor = \"sh ./watch.sh\"\n", "./watch.sh"),
            ("[core]\n\tfsmonitor = watch.sh;false\n", "watch.sh"),
            ("[alias]\n\tst = !run.sh \\\"$@\\\"\n", "run.sh"),
            ("[alias]\n\tst = \"!f() { tools/go; }; f\"\n", "tools/go"),
            ("[diff \"x\"]\n\ttextconv = \\\"my dir/conv\\\"\n", "my dir/conv"),
            ("[diff \"x\"]\n\ttextconv = my\\\\ dir/conv\n", "my dir/conv"),
            ("[remote \"o\"]\n\turl = ext::sh go.sh\n", "go.sh"),
            ("[remote \"o\"]\n\tpushurl = ext::sh go.sh\n", "go.sh"),
            ("[submodule \"o\"]\n\turl = ext::sh go.sh\n", "go.sh"),
            ("[branch \"o\"]\n\tpushRemote = ext::sh go.sh\n", "go.sh"),
            ("[url \"ext::sh go.sh\"]\n\tinsteadOf = ext::x go.sh\n", "go.sh"),
            ("broken\n[core]\n\tfsmonitor = go.sh\n", "go.sh"),
        ] {
            assert!(named(text).words.iter().any(|found| found == word), "{text}: {:?}", named(text));
        }
        let text =
            "[include]\n\tpath = a\n[includeIf \"gitdir:/x/\"]\n\tpath = b\n[core]\n\tworktree = ../w\n";
        assert_eq!(
            (named(text).includes, named(text).worktree),
            (vec!["a".into(), "b".into()], Some("../w".into()))
        );
        let text = "[core]\n\texcludesFile = .ignore\n[remote \"o\"]\n\turl = ../o\n[user]\n\tname = src\n";
        assert_eq!(named(text), GitConfigNames::default());
    }

    #[test]
    fn what_is_left_of_a_rebase_is_harmless_without_programs() {
        for evil in ["exec x", " x touch y", "pick 1\n\texec z", "unknown 1", "merge -C 1 x\nexec y"] {
            assert!(!is_harmless_git_todo(evil), "{evil}");
        }
        assert!(is_harmless_git_todo("") && is_harmless_git_todo("label onto\nreset onto\nmerge -C 1 x\n"));
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
