//! Lists that keep something safe, written down once more: an entry that goes missing fails here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::port::Redactor as _;
use haft_guard::{
    DENIED_VARIABLES, EnvironmentFilter, KnownSecrets, NameCase, Secrets,
    names::{Anchoring, DEFAULT_DENIES, DeniedPaths, PROTECTED_NAMES, ProtectedNames},
};
use std::{collections::BTreeSet, path::Path};

/// Every one of them begins with `**/`.
const PROTECTED: &str = "\
    .git .gitconfig .config/git .husky .githooks .pre-commit-config.yaml .overcommit.yml .lintstagedrc \
    .lintstagedrc.* lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook-local.* .lefthook.* \
    .lefthook-local.* .lefthook .lefthook-local .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .hgrc \
    .jj/repo/config.toml .ssh .envrc .direnv .direnvrc .config/direnv .autoenv .autoenv.zsh .bashrc \
    .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .zshrc .zshenv .zprofile \
    .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .pam_environment .tmux.conf .config/tmux .screenrc \
    .Rprofile .pdbrc .irbrc .pryrc .ghci .rvmrc mise.toml mise.*.toml .mise.toml .mise.*.toml .mise .config/mise \
    .config/mise.toml .config/fish .config/environment.d .xprofile .xinitrc .xsession .xsessionrc \
    .config/autostart .config/systemd .local/share/systemd .vscode *.code-workspace *.sublime-project .idea \
    .fleet .zed .devcontainer .devcontainer.json .exrc .vimrc .gvimrc .vim .emacs .emacs.el .emacs.d \
    .config/emacs .dir-locals-2.el .lvimrc .nvimrc .nvim.lua .config/nvim .helix .dir-locals.el .gdbinit \
    .lldbinit .mcp.json .claude .claude.json .codex .cursor .gemini .qwen .aider.conf.yml .continue .windsurf \
    .cline .roo .kiro .amazonq .augment .junie .opencode opencode.json opencode.jsonc .crush.json crush.json \
    .goose .trae .kilocode .factory .copilot .agents haft.toml .haft";

const DENIED: &str = "\
    **/.ssh/** **/.gnupg/** **/.aws/** **/.azure/** **/.config/gcloud/** **/.config/gh/hosts.yml **/.kube/config \
    **/.docker/config.json **/.cargo/credentials* **/.local/share/uv/credentials/** \
    **/.terraform.d/credentials.tfrc.json **/.pgpass **/.my.cnf **/.git/** **/.git-credentials **/.npmrc \
    **/.pypirc **/.netrc **/.env **/.env.* **/*.env **/id_rsa* **/id_ed25519* **/id_ecdsa* **/*.pem **/*.key \
    **/*.p12 **/*.pfx **/*.der **/etc/shadow **/etc/shadow- **/etc/gshadow **/etc/gshadow- **/etc/master.passwd \
    **/etc/spwd.db **/etc/security/opasswd **/etc/sudoers **/etc/sudoers.d/** **/etc/krb5.keytab";

const MEMBERS: &str = "\
    password passwd passphrase secret apikey accesstoken authtoken refreshtoken sessiontoken clientsecret \
    privatekey secretkey accesskey credential credentials authorization";

const VARIABLES: &str = "*_KEY *_TOKEN *_SECRET *_PASSWORD AWS_* ANTHROPIC_* OPENAI_*";

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    names.into_iter().collect()
}

/// A path that a pattern means, at some depth.
fn example(pattern: &str) -> String {
    format!("deep/er/{}", pattern.trim_start_matches("**/").replace("**", "inside").replace('*', "x"))
}

#[test]
fn every_protected_name_is_protected() {
    let listed = PROTECTED_NAMES.iter().map(|name| name.pattern.strip_prefix("**/").unwrap());
    assert_eq!(set(listed), set(PROTECTED.split(' ')));
    let names = ProtectedNames::default();
    for pattern in PROTECTED.split(' ') {
        let path = example(pattern);
        for path in [path.clone(), path.to_uppercase(), pattern.replace('*', "x")] {
            assert!(names.reason(Path::new(&path)).is_some(), "{path}");
            assert!(
                Path::new(&path).iter().any(|name| names.suspects(name)),
                "a walk would not look at {path}"
            );
        }
        // What is in a folder of that name is protected as well. Of a repository only parts are.
        let inside = Path::new(&path).join("inside");
        assert_eq!(names.reason(&inside).is_some(), pattern != ".git", "{inside:?}");
    }
}

#[test]
fn every_denied_name_is_denied() {
    assert_eq!(set(DEFAULT_DENIES.iter().copied()), set(DENIED.split(' ')));
    let denied = DeniedPaths::new(DENIED.split(' '), Vec::new(), Anchoring::AtRoots).unwrap();
    let by = |path: &str| denied.pattern(&Path::new("/work").join(path), [Path::new(path)]);
    for pattern in DENIED.split(' ') {
        let path = example(pattern);
        assert!(by(&path).is_some() && by(&path.to_uppercase()).is_some(), "{path}");
        assert!(Path::new(&path).iter().any(|name| denied.suspects(name)), "a walk would not look at {path}");
        // The entry does it by itself.
        let alone = DeniedPaths::new([pattern], Vec::new(), Anchoring::AtRoots).unwrap();
        assert_eq!(
            alone.pattern(&Path::new("/work").join(&path), [Path::new(&path)]),
            Some(pattern),
            "{path}"
        );
    }
    for system in ["/proc/self/environ", "/proc", "/sys/kernel/x", "/sys"] {
        assert!(denied.pattern(Path::new(system), [Path::new("x")]).is_some(), "{system}");
    }
}

#[test]
fn every_member_that_holds_a_secret_is_hidden() {
    let full = Secrets::full(KnownSecrets::default());
    for name in MEMBERS.split(' ') {
        for name in [name.to_owned(), format!("db_{name}"), name.to_uppercase()] {
            assert!(full.hides_member(&name), "{name}");
        }
    }
}

#[test]
fn every_variable_that_may_hold_a_secret_is_kept_from_programs() {
    assert_eq!(set(DENIED_VARIABLES.iter().copied()), set(VARIABLES.split(' ')));
    let filter = EnvironmentFilter::new([] as [&str; 0], NameCase::Differs);
    for pattern in VARIABLES.split(' ') {
        assert!(!filter.allows(&pattern.replace('*', "X")), "{pattern}");
    }
}

/// A rule that goes missing, or that results lose, is noticed also where there is no collection to compare with. What
/// each rule finds is in `kinds.rs` and `redaction.rs`.
#[test]
fn no_rule_of_redaction_goes_missing() {
    let (full, results) = (Secrets::full(KnownSecrets::default()), Secrets::results(KnownSecrets::default()));
    assert_eq!((full.rules().len(), results.rules().len()), (307, 201));
}
