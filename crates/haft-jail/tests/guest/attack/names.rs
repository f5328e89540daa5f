//! Attacks through names: files that the owner's own programs run later, and files that a mask should hide.
//!
//! Each attack on what runs later is a script. It runs in a workspace in a jail, and, as the control, in another
//! without one. Then the owner goes through the workspace as people do: `git status`, `git commit`,
//! `git submodule update`, a shell in each folder. Whatever of the attacker's runs then leaves a mark.

use crate::world::{House, block_on, has_runtime, is_root, run as run_guest, sh};
use haft_core::port::{GuestEnd, GuestSpec, Preset};
use libtest_mimic::Trial;
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// One way to have something run later. `$MARK` is what has to be made outside.
struct Later {
    name: &'static str,
    script: &'static str,
    /// Whether the owner's `git` and `bash` run it. For others (editors, agents, direnv) that it is there is enough.
    is_run: bool,
    /// What must not be there afterwards, or must be as it was.
    left: &'static str,
}

const fn run_by_owner(name: &'static str, left: &'static str, script: &'static str) -> Later {
    Later { name, script, is_run: true, left }
}

const fn left_behind(name: &'static str, left: &'static str, script: &'static str) -> Later {
    Later { name, script, is_run: false, left }
}

const LATER: &[Later] = &[
    run_by_owner("git_config", "", "git config core.fsmonitor \"touch $MARK; false\""),
    run_by_owner(
        "git_hook",
        "",
        "printf '#!/bin/sh\\ntouch %s\\n' $MARK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    ),
    run_by_owner(
        "git_commondir",
        ".git/commondir",
        "cp -a .git evil; git config -f evil/config core.fsmonitor \"touch $MARK; false\"; echo ../evil > .git/commondir",
    ),
    run_by_owner(
        "git_config_worktree",
        ".git/config.worktree",
        "git config -f .git/config.worktree core.fsmonitor \"touch $MARK; false\"",
    ),
    run_by_owner(
        "git_moved_away",
        "",
        "mv .git old; cp -a old .git; git config -f .git/config core.fsmonitor \"touch $MARK; false\"",
    ),
    run_by_owner(
        "git_submodule_config",
        "",
        "git config -f .git/modules/sub/config core.fsmonitor \"touch $MARK; false\"",
    ),
    run_by_owner(
        "git_submodule_hook",
        "",
        "printf '#!/bin/sh\\ntouch %s\\n' $MARK > .git/modules/sub/hooks/pre-commit; chmod +x .git/modules/sub/hooks/*",
    ),
    run_by_owner(
        "git_submodule_elsewhere",
        "",
        "cp -a .git/modules/sub evil; git config -f evil/config core.fsmonitor \"touch $MARK; false\"; \
         git config -f evil/config core.worktree ../sub; rm -f sub/.git; echo 'gitdir: ../evil' > sub/.git",
    ),
    run_by_owner(
        "git_init",
        "nested/.git",
        "git init -q nested; git -C nested config core.fsmonitor \"touch $MARK; false\"",
    ),
    run_by_owner(
        "git_init_with_a_hook",
        "nested/.git",
        "git init -q nested; printf '#!/bin/sh\\ntouch %s\\n' $MARK > nested/.git/hooks/pre-commit; \
         chmod +x nested/.git/hooks/pre-commit",
    ),
    run_by_owner(
        "git_file",
        "nested/.git",
        "mkdir -p nested store; cp -a .git store/g; git config -f store/g/config core.fsmonitor \"touch $MARK; false\"; \
         git config -f store/g/config core.worktree ../../nested; echo 'gitdir: ../store/g' > nested/.git",
    ),
    run_by_owner(
        "git_link",
        "nested/.git",
        "mkdir -p nested store; cp -a .git store/g; git config -f store/g/config core.fsmonitor \"touch $MARK; false\"; \
         ln -s ../store/g nested/.git",
    ),
    run_by_owner(
        "git_bare_layout",
        "nested/HEAD",
        "git init -q --bare nested; git -C nested config core.bare false; git -C nested config core.worktree ..; \
         git -C nested config core.fsmonitor \"touch $MARK; false\"",
    ),
    run_by_owner(
        "git_worktree",
        "nested/.git",
        "mkdir -p nested .git/worktrees/w; cp -a .git evil; git config -f evil/config core.fsmonitor \"touch $MARK; false\"; \
         cp .git/HEAD .git/worktrees/w/HEAD; echo ../../../evil > .git/worktrees/w/commondir; \
         echo $PWD/nested/.git > .git/worktrees/w/gitdir; echo 'gitdir: ../.git/worktrees/w' > nested/.git",
    ),
    run_by_owner(
        "git_hook_elsewhere",
        "",
        "printf '#!/bin/sh\\ntouch %s\\n' $MARK > tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit",
    ),
    run_by_owner(
        "git_included_settings",
        "",
        "git config -f shared.inc core.fsmonitor \"touch $MARK; false\"",
    ),
    run_by_owner("bashrc", ".bashrc", "echo \"touch $MARK\" > .bashrc"),
    run_by_owner("bash_profile", ".bash_profile", "echo \"touch $MARK\" > .bash_profile"),
    run_by_owner("profile", "nested/.profile", "mkdir nested; echo \"touch $MARK\" > nested/.profile"),
    left_behind("envrc", ".envrc", "echo \"touch $MARK\" > .envrc"),
    left_behind("envrc_in_another_case", "nested/.EnvRC", "mkdir nested; echo x > nested/.EnvRC"),
    left_behind("envrc_as_a_link", "nested/.envrc", "mkdir nested; echo x > y; ln -s ../y nested/.envrc"),
    left_behind("envrc_as_a_hard_link", ".envrc", "echo x > y; ln y .envrc"),
    left_behind(
        "envrc_in_a_shut_folder",
        "nested/.envrc",
        "mkdir nested; echo x > nested/.envrc; chmod 000 nested",
    ),
    left_behind(
        "envrc_in_a_read_only_folder",
        "nested/.envrc",
        "mkdir nested; echo x > nested/.envrc; chmod 555 nested",
    ),
    left_behind(
        "envrc_in_a_denied_folder",
        "nested.pem/.envrc",
        "mkdir nested.pem; echo x > nested.pem/.envrc",
    ),
    left_behind("bisection", ".git/BISECT_NAMES", "echo \"\\$(touch $MARK)\" > .git/BISECT_NAMES"),
    left_behind("attributes", ".git/info/attributes", "echo '* filter=x' > .git/info/attributes"),
    left_behind(
        "alternates",
        ".git/objects/info/alternates",
        "mkdir -p .git/objects/info; echo /tmp > .git/objects/info/alternates",
    ),
    left_behind("vscode", ".vscode", "mkdir .vscode; echo '{}' > .vscode/tasks.json"),
    left_behind("vscode_renamed", ".vscode", "mkdir v; echo '{}' > v/tasks.json; mv v .vscode"),
    left_behind("workspace_file", "a.code-workspace", "echo '{}' > a.code-workspace"),
    left_behind("idea", ".idea", "mkdir .idea; echo x > .idea/workspace.xml"),
    left_behind("mcp", ".mcp.json", "echo '{}' > .mcp.json"),
    left_behind("claude", ".claude", "mkdir .claude; echo '{}' > .claude/settings.json"),
    left_behind("codex", ".codex", "mkdir .codex; echo x > .codex/config.toml"),
    left_behind("cursor", ".cursor", "mkdir .cursor; echo '{}' > .cursor/mcp.json"),
    left_behind("gemini", ".gemini", "mkdir .gemini; echo '{}' > .gemini/settings.json"),
    left_behind("haft_toml", "haft.toml", "echo '[tools]' > haft.toml"),
    left_behind("husky", ".husky", "mkdir .husky; echo x > .husky/pre-commit"),
];

fn git(folder: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(["-c", "protocol.file.allow=always", "-c", "user.name=o", "-c", "user.email=o@example.com"]);
    command
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

/// The owner's repository, with a submodule and a file for direnv.
struct Workspace {
    folder: tempfile::TempDir,
    mark: PathBuf,
    _origin: tempfile::TempDir,
    _outside: tempfile::TempDir,
}

impl Workspace {
    fn new() -> Self {
        let origin = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let mark = outside.path().join("mark");
        for (at, file) in [(origin.path(), "library"), (folder.path(), "own")] {
            assert!(git(at, &["init", "-q", "-b", "main"]), "git is needed");
            fs::write(at.join(file), "mine\n").unwrap();
            assert!(git(at, &["add", "."]) && git(at, &["commit", "-qm", "first"]));
        }
        assert!(git(folder.path(), &["submodule", "add", "-q", origin.path().to_str().unwrap(), "sub"]));
        // So that worktrees may have settings of their own, as some people want.
        assert!(git(folder.path(), &["config", "extensions.worktreeConfig", "true"]));
        // Hooks and settings that are kept among the project's files.
        fs::create_dir_all(folder.path().join("tools/hooks")).unwrap();
        fs::write(folder.path().join("tools/hooks/readme"), "").unwrap();
        fs::write(folder.path().join("shared.inc"), "").unwrap();
        assert!(git(folder.path(), &["config", "include.path", "../shared.inc"]));
        assert!(
            git(folder.path(), &["add", "."]) && git(folder.path(), &["commit", "-qm", "with a library"])
        );
        Workspace { folder, mark, _origin: origin, _outside: outside }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What people do in a folder.
    fn owner_works(&self) {
        open_up(self.path());
        for folder in ["", "sub", "nested", "nested.pem"].map(|name| self.path().join(name)) {
            if !folder.is_dir() {
                continue;
            }
            git(&folder, &["status"]);
            fs::write(folder.join("new-of-owner"), "x").unwrap();
            git(&folder, &["add", "new-of-owner"]);
            git(&folder, &["commit", "-m", "more"]);
            git(&folder, &["submodule", "update", "--init"]);
            git(&folder, &["worktree", "list"]);
            for arguments in [["-i", "-c", ":"], ["-l", "-c", ":"]] {
                let mut shell = Command::new("bash");
                shell.args(arguments).current_dir(&folder).env("HOME", &folder).stdin(Stdio::null());
                let _ = shell.stderr(Stdio::null()).output();
            }
        }
    }
}

fn open_up(folder: &Path) {
    let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(folder).output();
}

fn spec(script: &str, workspace: &Path) -> GuestSpec {
    let mut spec = sh(script);
    spec.writable = vec![workspace.to_owned()];
    spec.presets = vec![Preset::Git];
    spec.denied = haft_files::DEFAULT_DENIES
        .iter()
        .filter(|pattern| **pattern != "**/.git/**")
        .map(|pattern| (*pattern).to_owned())
        .collect();
    spec.limits.wall_time = Some(Duration::from_secs(30));
    spec
}

fn in_jail(house: &House, jail: &str, script: &str, workspace: &Path) -> (GuestEnd, String) {
    let (end, heard) = block_on(run_guest(&*house.jail(jail), spec(script, workspace))).unwrap();
    (end, format!("{}{}", heard.out, heard.err))
}

impl Later {
    /// Some owners keep hooks among their files; git then looks at no others.
    fn arrange(&self, workspace: &Workspace) {
        if self.name == "git_hook_elsewhere" {
            assert!(git(workspace.path(), &["config", "core.hooksPath", "tools/hooks"]));
        }
    }
}

fn later(attack: &Later, jail: &str) {
    let script =
        |workspace: &Workspace| format!("MARK={}\n{}\ntrue", workspace.mark.display(), attack.script);
    let control = Workspace::new();
    let _ = Command::new("sh").args(["-c", &script(&control)]).current_dir(control.path()).output();
    open_up(control.path());
    let is_left = !attack.left.is_empty() && control.path().join(attack.left).symlink_metadata().is_ok();
    attack.arrange(&control);
    control.owner_works();
    match attack.is_run {
        true => assert!(control.mark.exists(), "without a jail the attack has to succeed"),
        false => assert!(is_left, "without a jail the attack has to succeed"),
    }
    let (house, workspace) = (House::new(), Workspace::new());
    attack.arrange(&workspace);
    let (end, said) = in_jail(&house, jail, &script(&workspace), workspace.path());
    open_up(workspace.path());
    if !attack.left.is_empty() {
        let left = workspace.path().join(attack.left).symlink_metadata();
        assert!(left.is_err(), "{} is still there: {said} {end:?}", attack.left);
        let told = end.violations.iter().find(|violation| violation.resource.ends_with(attack.left));
        let told = told.unwrap_or_else(|| panic!("nobody was told: {said} {end:?}"));
        assert!(told.was_blocked && told.description.contains("puts it back"), "{told:?}");
        let kept = house.state.path().join("quarantine");
        assert!(told.description.contains(kept.to_str().unwrap()), "{told:?}");
    }
    workspace.owner_works();
    assert!(!workspace.mark.exists(), "it ran: {said} {end:?}");
    assert!(fs::read_dir(house.state.path().join("watch")).unwrap().next().is_none(), "a record is left");
}

/// What exists stays as it is, whatever is tried, and is still the owner's to use.
fn existing_names_stay(jail: &str) {
    let (house, workspace) = (House::new(), Workspace::new());
    let at = workspace.path();
    fs::write(at.join(".envrc"), "mine").unwrap();
    fs::create_dir(at.join(".vscode")).unwrap();
    fs::write(at.join(".vscode/tasks.json"), "mine").unwrap();
    fs::write(at.join("shared"), "mine").unwrap();
    symlink("shared", at.join(".profile")).unwrap();
    let script = "for f in .envrc .vscode/tasks.json .git/config .git/modules/sub/config sub/.git shared; do \
                  echo evil >> $f; rm -f $f; mv $f gone; echo evil > new; mv -f new $f; done; \
                  rm -rf .vscode; mv .vscode v; touch .vscode/more; mv .git g; cat .envrc";
    let config = fs::read(at.join(".git/config")).unwrap();
    let (end, said) = in_jail(&house, jail, script, at);
    for file in [".envrc", ".vscode/tasks.json", "shared"] {
        assert_eq!(fs::read_to_string(at.join(file)).unwrap(), "mine", "{file}: {said}");
    }
    assert_eq!(fs::read(at.join(".git/config")).unwrap(), config);
    assert!(said.contains("mine"), "reading is allowed: {said}");
    assert!(!at.join(".vscode/more").exists() && !at.join("v").exists() && !at.join("g").exists());
    assert!(end.violations.is_empty(), "nothing is new: {end:?}");
    workspace.owner_works();
}

/// Commits, branches, merges, moves: what a person does with git goes on.
fn git_goes_on(jail: &str) {
    let (house, workspace) = (House::new(), Workspace::new());
    let script = "set -e; export GIT_AUTHOR_NAME=g GIT_AUTHOR_EMAIL=g@e GIT_COMMITTER_NAME=g GIT_COMMITTER_EMAIL=g@e; \
        git checkout -q -b feature; mkdir -p a b; echo 1 > a/one; git add .; git commit -qm one; \
        git mv a/one b/one; git commit -qm moved; git mv b c; git commit -qm 'moved more'; \
        git checkout -q main; echo 2 > two; git add two; git commit -qm two; git merge -q --no-edit feature; \
        git branch -d feature; git tag v1; git stash list; git status --porcelain; git log --oneline | wc -l; \
        git gc -q; (cd sub; echo 3 > three; git add three; git commit -qm three); git init -q fresh; \
        (cd fresh; git add -A; git commit -qm empty --allow-empty); echo fine";
    let (end, said) = in_jail(&house, jail, script, workspace.path());
    assert!(said.contains("\nfine\n"), "{said} {end:?}");
    assert!(end.violations.is_empty(), "{end:?}");
    assert!(workspace.path().join("c/one").exists() && workspace.path().join("fresh/.git/HEAD").exists());
    assert!(git(workspace.path(), &["fsck"]));
    workspace.owner_works();
}

/// Masks: what is hidden in one call is hidden in the next, whatever the first one did.
fn masks_hold(jail: &str) {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let secret = "planted-secret";
    let files = [
        ".aws/credentials",
        "deep/er/.env",
        ".ENV",
        "Server.PEM",
        "home/.ssh/config",
        "home/.kube/config",
        "home/.docker/config.json",
        "shut/.env",
        "half/inner/.env",
        "home/.e\u{200c}nv",
    ];
    for file in files {
        fs::create_dir_all(at.join(file).parent().unwrap()).unwrap();
        fs::write(at.join(file), secret).unwrap();
    }
    for (name, mode) in [("shut", 0o000), ("half", 0o444)] {
        fs::set_permissions(at.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let find =
        "chmod -R 755 . 2>/dev/null; grep -r planted . 2>/dev/null; cat $(find . -type f) 2>/dev/null; true";
    let moves = "for d in .aws deep deep/er home home/.ssh home/.kube home/.docker shut half half/inner; do mv $d $d.x; \
                 chmod 755 $d; done; mv deep/er x; rm -rf .aws; for f in .ENV Server.PEM; do mv $f y; ln $f z; done; true";
    let control = Command::new("sh").args(["-c", find]).current_dir(at).output().unwrap();
    assert!(String::from_utf8_lossy(&control.stdout).contains(secret), "without a jail it is found");
    for (name, mode) in [("shut", 0o000), ("half", 0o444)] {
        fs::set_permissions(at.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for script in [find, moves, find] {
        let (_, said) = in_jail(&house, jail, script, at);
        assert!(!said.contains(secret), "{said}");
    }
    let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(at).output();
    for file in files {
        assert_eq!(fs::read_to_string(at.join(file)).unwrap_or_default(), secret, "{file} is where it was");
    }
    // Elsewhere files are moved as before.
    let (_, said) = in_jail(&house, jail, "mkdir p q; echo 1 > p/f; mv p/f q/f; mv q r; cat r/f", at);
    assert_eq!(said.trim(), "1");
}

/// With a granted home, what is haft's own stays out of reach, and so does the place where it would be.
fn hafts_own_folders_stay(jail: &str) {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().canonicalize().unwrap();
    let (config, state) = (at.join(".config/haft"), at.join(".local/state/haft"));
    fs::create_dir_all(&state).unwrap();
    fs::create_dir_all(at.join(".config")).unwrap();
    let house = House::with(|options| {
        options.state = state.clone();
        options.protected = vec![config.clone()];
    });
    fs::write(state.join("audit"), "sealed").unwrap();
    let script = "mv .config c; mv .local l; mv .local/state s; rm -rf .local .config; mkdir -p .config/haft .local/state/haft; \
                  echo evil > .config/haft/haft.toml; echo evil > .local/state/haft/audit; ls -R . ; true";
    let control = tempfile::tempdir().unwrap();
    fs::create_dir_all(control.path().join(".local/state/haft")).unwrap();
    let _ = Command::new("sh").args(["-c", script]).current_dir(control.path()).output();
    assert!(control.path().join(".config/haft/haft.toml").exists(), "without a jail it is there");
    for script in [script, script] {
        let (_, said) = in_jail(&house, jail, script, &at);
        assert!(!said.contains("sealed"), "{said}");
    }
    assert!(!config.join("haft.toml").exists());
    assert_eq!(fs::read_to_string(state.join("audit")).unwrap(), "sealed");
}

/// A guest that moves folders about while others start: none of those sees what is hidden.
fn starts_while_folders_move(jail: &str) {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["one", "two", "three"] {
        fs::create_dir_all(at.join(name).join("inner")).unwrap();
        fs::write(at.join(name).join("inner/.env"), "planted-secret").unwrap();
    }
    let moves = "while :; do for d in one two three; do mv $d $d.x && echo moved; mv $d/inner $d/i && echo moved; mv $d.x $d; \
                 mv $d/i $d/inner; mkdir -p n/$d; mv n m; mv m n; rm -rf n; done; done";
    let time = Duration::from_millis(
        std::env::var("HAFT_RACE_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(3000),
    );
    // The control: where nothing is hidden, the same folders move.
    let mut control = spec(moves, at);
    control.denied.clear();
    control.limits.wall_time = Some(Duration::from_millis(700));
    let (_, heard) = block_on(run_guest(&*house.jail(jail), control)).unwrap();
    assert!(heard.out.contains("moved"), "{heard:?}");
    for name in ["one", "two", "three"] {
        for (moved, usual) in
            [(format!("{name}.x"), name.to_owned()), (format!("{name}/i"), format!("{name}/inner"))]
        {
            let _ = fs::rename(at.join(moved), at.join(usual));
        }
    }
    let mut mover = spec(moves, at);
    mover.limits.wall_time = Some(time);
    let (ended, leaks, starts) = block_on(async {
        let jail = house.jail(jail);
        let moving = run_guest(&*jail, mover);
        let reading = async {
            let until = Instant::now() + time;
            let (mut leaks, mut starts) = (0, 0);
            while Instant::now() < until {
                let find = "cat */.env */*/.env */*/*/.env 2>/dev/null; true";
                match run_guest(&*jail, spec(find, at)).await {
                    Ok((_, heard)) => leaks += usize::from(heard.out.contains("planted")),
                    // It was refused, which is safe, and must be rare.
                    Err(_) => continue,
                }
                starts += 1;
            }
            (leaks, starts)
        };
        let (ended, (leaks, starts)) = tokio::join!(moving, reading);
        (ended, leaks, starts)
    });
    let (_, heard) = ended.unwrap();
    assert_eq!(leaks, 0, "of {starts}");
    assert!(starts > 3, "{starts}");
    assert!(!heard.out.contains("moved"), "what is around hidden files stays in place");
}

/// A mount holds a name. A guest that made another one while the file was nothing special still cannot use it.
fn second_names_are_no_way_round(jail: &str) {
    let (house, workspace) = (House::new(), Workspace::new());
    let at = workspace.path();
    let append = |name: &str| fs::OpenOptions::new().append(true).open(at.join(name)).unwrap();
    let making = "echo ok > x; ln x y; echo ok > p; ln p q; touch .env; ln .env keep; mkdir d; echo ok > d/t; ln d/t u; \
                  git init -q n; ln n/.git/config cfg; mkdir c; ln -s c .config; mkdir h; ln -s h .hg; true";
    in_jail(&house, jail, making, at);
    // A repository whose settings have another name is none that `git init` made.
    assert!(!at.join("n/.git").exists() && at.join("cfg").exists());
    for link in [".config", ".hg"] {
        assert!(at.join(link).symlink_metadata().is_err(), "{link} is the way to protected names");
    }
    let taken =
        walk(&house.state.path().join("quarantine")).into_iter().find(|path| path.ends_with("config"));
    let nlink = |path: &Path| std::os::unix::fs::MetadataExt::nlink(&fs::metadata(path).unwrap());
    assert_eq!(taken.map(|path| nlink(&path)), Some(1), "what is in quarantine is its own");
    // The owner says yes to these, and fills the other.
    fs::rename(at.join("x"), at.join(".envrc")).unwrap();
    fs::rename(at.join("d"), at.join(".vscode")).unwrap();
    std::io::Write::write_all(&mut append(".env"), b"planted-secret").unwrap();
    let using = "echo evil >> y; echo evil >> u; echo evil >> q; cat keep";
    let (_, said) = in_jail(&house, jail, using, at);
    assert!(!said.contains("planted-secret"), "{said}");
    let text = |name: &str| fs::read_to_string(at.join(name)).unwrap();
    assert_eq!((&*text(".envrc"), &*text(".vscode/t")), ("ok\n", "ok\n"));
    assert_eq!(text("p"), "ok\nevil\n", "the control: of a file that nothing runs");
    let control = Command::new("sh").args(["-c", using]).current_dir(at).output().unwrap();
    assert!(
        String::from_utf8_lossy(&control.stdout).contains("planted-secret"),
        "without a jail it is found"
    );
    assert_eq!(text(".envrc"), "ok\nevil\n", "and the other name works");
}

/// Every file below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(walk(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}

/// A guest that is ended in the middle, or let go of, leaves nothing that runs either.
fn cut_short(jail: &str) {
    let (house, workspace) = (House::new(), Workspace::new());
    let at = workspace.path();
    let script = "echo evil > .envrc; echo made; sleep 100";
    let mut timed = spec(script, at);
    timed.limits.wall_time = Some(Duration::from_millis(1500));
    let (end, _) = block_on(run_guest(&*house.jail(jail), timed)).unwrap();
    assert!(end.exceeded.is_some() && !at.join(".envrc").exists(), "{end:?}");
    block_on(async {
        let mut guest = house.jail(jail).start(spec(script, at)).await.unwrap();
        let (sink, heard) = crate::world::keeping();
        {
            let waiting = guest.wait(sink);
            tokio::pin!(waiting);
            while !heard.lock().unwrap().out.contains("made") {
                let _ = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
            }
        }
        assert!(at.join(".envrc").exists());
        drop(guest);
        let until = Instant::now() + Duration::from_secs(20);
        while at.join(".envrc").exists() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(!at.join(".envrc").exists(), "it was let go of");
}

/// Where haft itself is killed, the next one on the same state folder does it.
fn haft_is_killed(jail: &str) {
    let (state, workspace) = (tempfile::tempdir().unwrap(), Workspace::new());
    let at = workspace.path();
    let mut haft = Command::new(crate::world::own_program());
    haft.arg("--hold").args([jail]).args([state.path(), at]).stdin(Stdio::null());
    let mut haft = haft.spawn().unwrap();
    // Until the program says that it made the name, or haft ended; the time is only for a test that hangs.
    let until = Instant::now() + Duration::from_secs(300);
    while !at.join("made").exists() && Instant::now() < until {
        assert_eq!(haft.try_wait().unwrap(), None, "haft ended before its program had made the name");
        std::thread::sleep(Duration::from_millis(20));
    }
    haft.kill().unwrap();
    haft.wait().unwrap();
    assert!(at.join(".envrc").exists(), "it was made");
    let house = House::on(state);
    assert!(!at.join(".envrc").exists(), "the next haft took it away");
    assert_eq!(house.host.recovered().len(), 1, "{:?}", house.host.recovered());
}

/// Runs as a haft whose guest makes a name and stays.
pub fn hold(arguments: &[String]) -> i32 {
    let [jail, state, workspace] = arguments else { return 2 };
    let house = House::with(|options| options.state = state.into());
    let script = "echo evil > .envrc && : > made && sleep 1000";
    let _ = block_on(run_guest(&*house.jail(jail), spec(script, Path::new(workspace))));
    0
}

/// A test of one jail.
type Test = fn(&str);

pub fn trials() -> Vec<Trial> {
    let installed = [("runc", "runc"), ("crun", "crun"), ("gvisor", "runsc")];
    let others =
        installed.into_iter().filter(|(_, program)| is_root() && has_runtime(program)).map(|(jail, _)| jail);
    let tests: [(&str, Test); 8] = [
        ("second_names_are_no_way_round", second_names_are_no_way_round),
        ("existing_names_stay", existing_names_stay),
        ("git_goes_on", git_goes_on),
        ("masks_hold", masks_hold),
        ("hafts_own_folders_stay", hafts_own_folders_stay),
        ("starts_while_folders_move", starts_while_folders_move),
        ("cut_short", cut_short),
        ("haft_is_killed", haft_is_killed),
    ];
    let mut trials = Vec::new();
    for jail in ["namespace"].into_iter().chain(others) {
        for (name, test) in SETTLED {
            trials.push(Trial::test(format!("attack::names::{jail}::settled::{name}"), move || {
                test(jail);
                Ok(())
            }));
        }
        for attack in LATER.iter().chain(PLACES) {
            trials.push(Trial::test(format!("attack::names::{jail}::later::{}", attack.name), move || {
                later(attack, jail);
                Ok(())
            }));
        }
        for (name, test) in tests {
            trials.push(Trial::test(format!("attack::names::{jail}::{name}"), move || {
                test(jail);
                Ok(())
            }));
        }
    }
    trials
}

/// Places in which nobody looked, because a folder looked like a repository.
const PLACES: &[Later] = &[
    run_by_owner(
        "git_among_objects",
        "x/objects/pack/sub/.git",
        "mkdir -p x/objects/pack x/refs; echo 'ref: refs/heads/main' > x/HEAD; s=x/objects/pack/sub; git init -q $s; \
         git -C $s -c user.name=a -c user.email=a commit -q --allow-empty -m x; \
         git -C $s config core.fsmonitor \"touch $MARK; false\"; \
         git update-index --add --cacheinfo 160000,$(git -C $s rev-parse HEAD),$s",
    ),
    left_behind(
        "vscode_among_branches",
        "x/refs/.vscode",
        "mkdir -p x/objects x/refs/.vscode; echo 'ref: refs/heads/main' > x/HEAD; echo '{}' > x/refs/.vscode/tasks.json",
    ),
    left_behind(
        "haft_toml_among_branches",
        "x/refs/haft.toml",
        "mkdir -p x/objects x/refs; echo 'ref: refs/heads/main' > x/HEAD; echo '[tools]' > x/refs/haft.toml",
    ),
    left_behind(
        "envrc_among_logs",
        "x/logs/.envrc",
        "mkdir -p x/objects x/refs x/logs; echo 'ref: refs/heads/main' > x/HEAD; echo evil > x/logs/.envrc",
    ),
    left_behind(
        "envrc_in_a_new_repository",
        "nested/.git/more/.envrc",
        "git init -q nested; mkdir nested/.git/more; echo evil > nested/.git/more/.envrc",
    ),
    left_behind("envrc_among_branches_of_the_owner", ".git/refs/.envrc", "echo evil > .git/refs/.envrc"),
];

/// What is looked at when a guest has ended.
const SETTLED: [(&str, Test); 6] = [
    ("long_names", long_names),
    ("deep_folders", deep_folders),
    ("known_file_under_another_name", known_file_under_another_name),
    ("number_of_a_known_link", number_of_a_known_link),
    ("passed_on_by_three", passed_on_by_three),
    ("thousands_are_counted", thousands_are_counted),
];

/// A name that is as long as one can be is taken away like any other.
fn long_names(jail: &str) {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let name = format!("{}.code-workspace", "e".repeat(240));
    let script = format!("echo '{{}}' > {name}");
    assert!(Command::new("sh").args(["-c", &script]).current_dir(folder.path()).status().unwrap().success());
    assert!(folder.path().join(&name).exists(), "without a jail it is there");
    fs::remove_file(folder.path().join(&name)).unwrap();
    let (end, said) = in_jail(&house, jail, &script, folder.path());
    assert!(!folder.path().join(&name).exists(), "{said} {end:?}");
    assert!(end.violations.len() == 1 && end.violations[0].was_blocked, "{end:?}");
}

/// A folder that is too deep to be looked into is taken away, whatever its name.
fn deep_folders(jail: &str) {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let deep = format!("{}{}", "d/".repeat(128), "e".repeat(255));
    let (end, said) =
        in_jail(&house, jail, &format!("mkdir -p {deep}; echo evil > {deep}/.envrc"), folder.path());
    assert!(!folder.path().join(&deep).exists(), "{said} {end:?}");
    assert!(end.violations.len() == 1 && end.violations[0].was_blocked, "{end:?}");
}

/// What was there under one name is new under another.
fn known_file_under_another_name(jail: &str) {
    let (house, workspace) = (House::new(), Workspace::new());
    let at = workspace.path();
    assert!(git(at, &["init", "-q", "--bare", "bare.git"]));
    let (end, said) = in_jail(&house, jail, "echo evil >> bare.git/HEAD; mv bare.git/HEAD .envrc; ls -a", at);
    assert!(said.contains(".envrc"), "it was made: {said}");
    assert!(!at.join(".envrc").exists() && end.violations.len() == 1, "{end:?}");
}

/// The number of a file that was removed is given to another one.
fn number_of_a_known_link(jail: &str) {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let at = folder.path();
    symlink("nothing", at.join(".envrc")).unwrap();
    let script = "i0=$(stat -c %i .envrc); rm .envrc; for i in $(seq 1 200); do echo evil > f$i; \
                  if [ $(stat -c %i f$i) = $i0 ]; then mv f$i .envrc; break; fi; done; rm -f f*; \
                  [ -e .envrc ] || echo evil > .envrc";
    let (end, said) = in_jail(&house, jail, script, at);
    assert!(at.join(".envrc").symlink_metadata().is_err(), "{said} {end:?}");
    assert_eq!(end.violations.len(), 1, "{end:?}");
}

/// Three guests hide from each other's ends what one of them made.
fn passed_on_by_three(jail: &str) {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let at = folder.path();
    let until = |name: &str| format!("while [ ! -e {name} ]; do sleep 0.05; done");
    let first = format!("mkdir x.pem; touch c1; {}; mv x.pem q; touch c2", until("bs"));
    let second =
        format!("touch bs; {}; mkdir z; echo evil > z/.envrc; touch b1; {}", until("c3"), until("a1"));
    let third = format!("mkdir x.pem && mv z x.pem/z; touch a1; {}; mv x.pem/z z; ls z/.envrc", until("a2"));
    let wait_for = async |name: &str| {
        let until = Instant::now() + Duration::from_secs(20);
        while !at.join(name).exists() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let jail = house.jail(jail);
    block_on(async {
        let one = async {
            run_guest(&*jail, spec(&first, at)).await.unwrap();
            fs::write(at.join("c3"), "").unwrap();
        };
        let two = async {
            wait_for("c1").await;
            run_guest(&*jail, spec(&second, at)).await.unwrap();
            fs::write(at.join("a2"), "").unwrap();
        };
        let three = async {
            wait_for("b1").await;
            run_guest(&*jail, spec(&third, at)).await.unwrap();
        };
        tokio::join!(one, two, three);
    });
    assert!(!at.join("z/.envrc").exists());
}

/// However many there are, the result stays short.
fn thousands_are_counted(jail: &str) {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let at = folder.path();
    let script = "for i in $(seq 300); do mkdir d$i; : > d$i/.envrc; done";
    let (end, _) = in_jail(&house, jail, script, at);
    assert!((1..=300).all(|number| !at.join(format!("d{number}/.envrc")).exists()));
    assert_eq!(end.violations.len(), 21, "{end:?}");
    assert!(end.violations[20].description.contains("280 more"), "{end:?}");
}
