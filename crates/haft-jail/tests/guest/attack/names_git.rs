//! Attacks through what git and protected names lead to: settings that are written oddly, links, folders around, a
//! rebase.
//!
//! Each is a script that runs in the owner's folder, without a jail first. Then the owner works there. What was made to
//! run leaves a mark.

use crate::world::{House, block_on, run as run_guest, sh};
use haft_core::port::{GuestEnd, Preset};
use libtest_mimic::Trial;
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

struct Attack {
    name: &'static str,
    /// What the owner has there.
    owner: &'static str,
    guest: &'static str,
    /// What the owner does afterwards. It makes `$MARK` if the attack was one.
    later: &'static str,
}

const HOOK: &str = "hook() { printf '#!/bin/sh\\ntouch %s\\n' $MARK > $1; chmod +x $1; }\n";
const COMMIT: &str = "git commit -q --allow-empty -m more; true";

const ATTACKS: &[Attack] = &[
    Attack {
        name: "settings_that_look_like_a_header",
        owner: "",
        guest: "git init -q sub; git -C sub commit -q --allow-empty -m x; \
                printf '[core] fsmonitor = touch %s; false #]\\n' $MARK >> sub/.git/config; git add sub",
        later: "git status; true",
    },
    Attack {
        name: "a_program_that_is_not_there_yet",
        owner: "git config core.fsmonitor tools/monitor",
        guest: "mkdir tools; hook tools/monitor",
        later: "git status; true",
    },
    Attack {
        name: "a_script_that_is_not_there_yet",
        owner: "git config filter.x.clean 'sh clean.sh'; echo '*.t filter=x' > .gitattributes",
        guest: "printf 'touch %s; cat' $MARK > clean.sh",
        later: "echo 1 > a.t; git add a.t; true",
    },
    Attack {
        name: "a_script_without_an_ending_that_is_not_there_yet",
        owner: "git config filter.x.clean 'sh clean'; echo '*.t filter=x' > .gitattributes",
        guest: "printf 'touch %s; cat' $MARK > clean",
        later: "echo 1 > a.t; git add a.t; true",
    },
    Attack {
        name: "a_script_behind_options_that_is_not_there_yet",
        owner: "git config core.fsmonitor '/usr/bin/env sh -e monitor'",
        guest: "printf 'touch %s' $MARK > monitor",
        later: "git status; true",
    },
    Attack {
        name: "a_folder_that_becomes_a_link",
        owner: "git config core.fsmonitor tools/monitor",
        guest: "mkdir other; hook other/monitor; ln -s other tools",
        later: "git status; true",
    },
    Attack {
        name: "a_work_tree_with_settings",
        owner: "git config extensions.worktreeConfig true",
        guest: "git worktree add -q more; git -C more config --worktree core.fsmonitor \"touch $MARK; false\"",
        later: "git -C more status; git status; git worktree prune; git worktree list; true",
    },
    Attack {
        name: "a_hook_that_is_a_link",
        owner: "mkdir scripts; printf '#!/bin/sh\\n' > scripts/pc.sh; chmod +x scripts/pc.sh; \
                ln -s ../../scripts/pc.sh .git/hooks/pre-commit",
        guest: "hook scripts/pc.sh; rm -f scripts/pc.sh; mv scripts s2; mkdir scripts; hook scripts/pc.sh",
        later: COMMIT,
    },
    Attack {
        name: "a_link_in_a_protected_folder",
        owner: "mkdir .vscode tools; echo mine > tools/t.json; ln -s ../tools/t.json .vscode/tasks.json",
        guest: "echo evil > tools/t.json; mv tools t2; mkdir tools; echo evil > tools/t.json",
        later: "grep -q evil .vscode/tasks.json && touch $MARK; true",
    },
    Attack {
        name: "a_link_over_a_link",
        owner: "echo mine > b; ln -s b a; ln -s a .envrc",
        guest: "rm a; echo evil > a",
        later: "grep -q evil .envrc && touch $MARK; true",
    },
    Attack {
        name: "a_link_to_nothing",
        owner: "ln -s envrc.local .envrc",
        guest: "echo evil > envrc.local",
        later: "grep -q evil .envrc && touch $MARK; true",
    },
    Attack {
        name: "a_link_to_nothing_by_a_linked_folder",
        owner: "ln -s conf/envrc .envrc",
        guest: "mkdir c; echo evil > c/envrc; ln -s c conf",
        later: "grep -q evil .envrc && touch $MARK; true",
    },
    Attack {
        name: "the_folder_around_hooks",
        owner: "mkdir -p tools/hooks; printf '#!/bin/sh\\n' > tools/hooks/pre-commit; git config core.hooksPath tools/hooks",
        guest: "mv tools t2; mkdir -p tools/hooks; hook tools/hooks/pre-commit",
        later: COMMIT,
    },
    Attack {
        name: "the_folder_around_a_linked_one",
        owner: "mkdir -p conf/vs; echo mine > conf/vs/tasks.json; ln -s conf/vs .vscode",
        guest: "mv conf c2; mkdir -p conf/vs; echo evil > conf/vs/tasks.json",
        later: "grep -q evil .vscode/tasks.json && touch $MARK; true",
    },
    Attack {
        name: "hooks_with_a_comment_behind",
        owner: "mkdir th; echo > th/readme; printf '[core]hooksPath = th # x\\n' >> .git/config",
        guest: "hook th/pre-commit",
        later: COMMIT,
    },
    Attack {
        name: "hooks_that_are_not_there_yet",
        owner: "git config core.hooksPath th",
        guest: "mkdir th; hook th/pre-commit",
        later: COMMIT,
    },
    Attack {
        name: "hooks_in_the_root",
        owner: "git config core.hooksPath $PWD",
        guest: "hook pre-commit",
        later: COMMIT,
    },
    Attack {
        name: "a_program_that_settings_name",
        owner: "echo > clean.sh; git config filter.f.clean 'sh clean.sh'; echo '*.c filter=f' > .gitattributes",
        guest: "echo \"touch $MARK; cat\" > clean.sh",
        later: "echo 1 > a.c; git add a.c; true",
    },
    Attack {
        name: "settings_that_included_ones_include",
        owner: "printf '[include]\\n\\tpath = second\\n' > first; echo > second; git config include.path ../first",
        guest: "git config -f second core.fsmonitor \"touch $MARK; false\"",
        later: "git status; true",
    },
    Attack {
        name: "a_rebase_that_goes_on",
        owner: "",
        guest: "mkdir .git/rebase-merge; cd .git/rebase-merge; echo refs/heads/main > head-name; git rev-parse HEAD > onto; \
                git rev-parse HEAD > orig-head; echo \"exec touch $MARK\" > git-rebase-todo; : > interactive; \
                echo 1 > end; echo 0 > msgnum; : > done",
        later: "git rebase --continue; true",
    },
    Attack {
        name: "a_rebase_of_the_owner",
        owner: "echo 1 > f; git add f; git commit -qm 1; echo 2 > f; git commit -qam 2; git checkout -q -b o HEAD~1; echo 3 > f; \
                git commit -qam 3; git rebase main; git checkout -q --theirs f; git add f",
        guest: "echo \"exec touch $MARK\" >> .git/rebase-merge/git-rebase-todo",
        later: "GIT_EDITOR=true git rebase --continue; true",
    },
];

const AS_OWNER: &str = "export GIT_AUTHOR_NAME=o GIT_AUTHOR_EMAIL=o@e GIT_COMMITTER_NAME=o GIT_COMMITTER_EMAIL=o@e \
                        GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1\n";

struct Workspace {
    folder: tempfile::TempDir,
    outside: tempfile::TempDir,
}

impl Workspace {
    fn new(owner: &str) -> Self {
        let workspace =
            Workspace { folder: tempfile::tempdir().unwrap(), outside: tempfile::tempdir().unwrap() };
        workspace.sh("git init -q -b main .; git commit -q --allow-empty -m first");
        workspace.sh(owner);
        workspace
    }

    fn mark(&self) -> PathBuf {
        self.outside.path().join("mark")
    }

    fn script(&self, script: &str) -> String {
        format!("{AS_OWNER}{HOOK}MARK={}\n{script}", self.mark().display())
    }

    fn sh(&self, script: &str) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.script(script)]).current_dir(self.folder.path()).stdin(Stdio::null());
        shell.output().unwrap();
    }
}

fn in_jail(house: &House, script: &str, workspace: &Path) -> (GuestEnd, String) {
    let mut spec = sh(script);
    spec.writable = vec![workspace.to_owned()];
    spec.presets = vec![Preset::Git];
    spec.limits.wall_time = Some(Duration::from_secs(30));
    let (end, heard) = block_on(run_guest(&*house.jail("namespace"), spec)).unwrap();
    (end, format!("{}{}", heard.out, heard.err))
}

fn test(attack: &Attack) {
    let control = Workspace::new(attack.owner);
    control.sh(attack.guest);
    control.sh(attack.later);
    assert!(control.mark().exists(), "without a jail the attack has to succeed");
    let (house, workspace) = (House::new(), Workspace::new(attack.owner));
    let (end, said) = in_jail(&house, &workspace.script(attack.guest), workspace.folder.path());
    workspace.sh(attack.later);
    assert!(!workspace.mark().exists(), "it ran: {said} {end:?}");
}

/// Rebases, also over several calls, clones of a folder, and renames elsewhere.
fn honest_git_goes_on() {
    let house = House::new();
    let owner = "mkdir -p tools/hooks src; echo > tools/hooks/readme; echo > src/a; echo 1 > f; git add .; git commit -qm 1; \
                 git checkout -q -b other; echo 2 > f; git commit -qam 2; git checkout -q main; echo 3 > f; git commit -qam 3; \
                 git config core.hooksPath tools/hooks; git config alias.st status; git config alias.o '!ls out/log'";
    let workspace = Workspace::new(owner);
    let at = workspace.folder.path();
    let calls = [
        "git checkout -q -b third HEAD; echo 4 > g; git add g; git commit -qm g; git rebase -q main && git rebase -q -x true main && echo fine",
        "git checkout -q other; git rebase -q main; test -d .git/rebase-merge && echo fine",
        "echo 5 > f; git add f; GIT_EDITOR=true git rebase --continue && test ! -e .git/rebase-merge && echo fine",
        "git clone -q . copy && git clone -q $PWD another && git -C copy pull -q && echo fine",
        "git bisect start HEAD HEAD~1 -- f src && test -s .git/BISECT_NAMES && echo fine",
        "git bisect log | grep -q start && git bisect reset && echo fine",
        "echo > status; mkdir out; mkdir out/log; echo fine",
        "git mv src/a src/b && git mv src lib && mv lib more && echo fine",
    ];
    for call in calls {
        let (end, said) = in_jail(&house, &workspace.script(call), at);
        assert!(said.contains("fine"), "{call}: {said} {end:?}");
        assert!(end.violations.is_empty(), "{call}: {end:?}");
    }
    assert!(at.join("copy/.git/config").exists() && at.join("another/.git/config").exists());
}

pub fn trials() -> Vec<Trial> {
    let attacks = ATTACKS.iter().map(|attack| {
        Trial::test(format!("attack::names_git::{}", attack.name), move || {
            test(attack);
            Ok(())
        })
    });
    let honest = Trial::test("attack::names_git::honest_git_goes_on", || {
        honest_git_goes_on();
        Ok(())
    });
    attacks.chain([honest]).collect()
}
