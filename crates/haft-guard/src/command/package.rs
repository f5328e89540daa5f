//! Package managers of JavaScript: `npm`, `pnpm`, `yarn`, `bun`.
//!
//! They run other programs by many names: `npm exec`, which is `npm x` and any beginning of it (`npm ex`); `pnpm rm x`
//! by whatever is no command of its own; `bun run x`. So the command is looked for as they do, and must be one of those
//! that are known. Anything else asks.

use super::{
    interpreter,
    option::may_be_option,
    word::Word,
    wrapper::{
        Seen,
        Seen::{Line, Words},
    },
};

/// What is known of a package manager.
struct Manager {
    /// Commands that install, remove, tell something, or run scripts of the package.
    commands: &'static [&'static str],
    /// Options before the command that take nothing.
    flags: &'static [&'static str],
    /// Options before the command that take the next word.
    values: &'static [&'static str],
    /// Letters that run something, or load what does.
    letters: &'static str,
    /// Long options that do, without dashes.
    longs: &'static [&'static str],
    /// Whether a command that it does not know is a script of the package.
    has_scripts: bool,
}

/// Names of scripts under which no program is known.
const SCRIPTS: &[&str] = &[
    "build",
    "check",
    "dev",
    "fmt",
    "format",
    "lint",
    "preview",
    "start",
    "test",
    "type-check",
    "typecheck",
];

/// What can be seen of what a package manager runs, where it runs another program or may do so; `None` where it does
/// not. The outer `None`: this is no package manager.
pub(super) fn manager<'a>(stem: &str, words: &'a [Word]) -> Option<Option<Vec<Seen<'a>>>> {
    let manager = known(stem)?;
    let Some((place, command)) = manager.command(words) else {
        let is_told = words.iter().all(|word| word.exact().is_some_and(|word| manager.flags.contains(&word)));
        return Some((!is_told).then(|| visible(words)));
    };
    let rest = &words[place + 1..];
    let is_known = match (stem, command) {
        ("bun", "run") => {
            manager.command(rest).is_some_and(|(_, script)| is_script(script) || is_source(script))
        }
        ("bun", _) if is_source(command) => true,
        (_, "config" | "c") => is_one_of(rest, &["get", "list", "ls"]),
        (_, "pkg") => is_one_of(rest, &["get"]),
        _ => manager.commands.contains(&command) || (manager.has_scripts && is_script(command)),
    };
    let does_more = |word: &Word| match word.exact() {
        Some(word) => manager.does_more(word),
        None => may_be_option(word),
    };
    // Behind a file are its arguments.
    let own = if is_source(command) { &words[..place] } else { words };
    let is_tame = is_known && !own.iter().take_while(|word| word.exact() != Some("--")).any(does_more);
    Some((!is_tame).then(|| visible(words)))
}

fn is_one_of(rest: &[Word], names: &[&str]) -> bool {
    rest.first().and_then(Word::exact).is_some_and(|first| names.contains(&first))
}

/// `test:unit` is no program either.
fn is_script(name: &str) -> bool {
    SCRIPTS.contains(&name) || (name.contains(':') && !name.contains('/'))
}

fn is_source(name: &str) -> bool {
    const ENDINGS: [&str; 8] = [".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx"];
    ENDINGS.iter().any(|ending| name.ends_with(ending)) && interpreter::is_file(name)
}

/// Every tail of the words may be what is run, and so may be the values of options.
fn visible(words: &[Word]) -> Vec<Seen<'_>> {
    let is_plain = |word: &Word| word.exact().is_some_and(|word| !word.starts_with('-'));
    let tails = (0..words.len()).filter(|at| is_plain(&words[*at])).map(|at| Words(&words[at..]));
    let value = |(at, word): (usize, &Word)| {
        let option = word.exact()?.strip_prefix('-')?;
        let next = || words.get(at + 1).and_then(Word::exact);
        option.split_once('=').map(|(_, value)| value).or_else(next).map(|value| Line(value.to_owned()))
    };
    tails.take(3).chain(words.iter().enumerate().filter_map(value).take(3)).collect()
}

impl Manager {
    /// The command, and its place among the words; `None` where there is none, or an option before it is not known.
    fn command<'a>(&self, words: &'a [Word]) -> Option<(usize, &'a str)> {
        let mut place = 0;
        loop {
            let word = words.get(place)?.exact()?;
            place += match word {
                _ if !word.starts_with('-') => return Some((place, word)),
                _ if self.flags.contains(&word) => 1,
                _ if self.values.contains(&word) => 2,
                _ if word.starts_with("--") && word.contains('=') => 1,
                _ => return None,
            };
        }
    }

    /// Whether an option runs something. Their names may be shortened, and have one dash or many.
    fn does_more(&self, word: &str) -> bool {
        let Some(option) = word.strip_prefix('-') else { return false };
        let is_short = !option.starts_with('-');
        let name = option.trim_start_matches('-');
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        let name = name.strip_prefix("config.").unwrap_or(name);
        (is_short && name.chars().any(|letter| self.letters.contains(letter)))
            || (name.len() > 1 && self.longs.iter().any(|long| long.starts_with(name)))
    }
}

#[rustfmt::skip]
fn known(stem: &str) -> Option<Manager> {
    const LONGS: &[&str] = &[
        "browser", "call", "editor", "git", "global-pnpmfile", "globalconfig", "init-module", "node-gyp",
        "node-options", "pack-destination", "pnpmfile", "prefix", "python", "script-shell", "shell", "shell-mode",
        "use-yarnrc", "userconfig", "viewer",
    ];
    Some(match stem {
        "npm" => Manager {
            commands: &[
                "add", "audit", "bin", "cache", "ci", "cit", "clean-install", "ddp", "dedupe", "diff", "dist-tag",
                "doctor", "explain", "find", "find-dupes", "fund", "get", "i", "info", "install", "install-ci-test",
                "install-test", "it", "la", "link", "list", "ll", "ln", "ls", "outdated", "pack", "ping", "prefix",
                "prune", "publish", "query", "r", "rb", "rebuild", "remove", "restart", "rm", "root", "run",
                "run-script", "s", "sbom", "se", "search", "show", "start", "stop", "t", "test", "tst", "un",
                "uninstall", "unlink", "up", "update", "upgrade", "v", "version", "view", "whoami", "why",
            ],
            flags: &[
                "--silent", "-s", "--quiet", "-q", "--verbose", "--version", "-v", "--help", "-h", "-g", "--global",
                "--json", "--offline", "--prefer-offline", "--workspaces", "-ws", "--if-present", "--no-audit",
                "--no-fund", "--yes", "-y",
            ],
            values: &["-w", "--workspace"],
            letters: "c",
            longs: LONGS,
            has_scripts: false,
        },
        "pnpm" => Manager {
            commands: &[
                "add", "audit", "bin", "dedupe", "fetch", "i", "import", "info", "install", "it", "install-test", "la",
                "licenses", "link", "list", "ll", "ln", "ls", "outdated", "pack", "prune", "publish", "rb", "rebuild",
                "remove", "restart", "rm", "root", "run", "run-script", "show", "start", "stop", "store", "t", "test",
                "tst", "un", "uninstall", "unlink", "up", "update", "upgrade", "view", "why",
            ],
            flags: &[
                "--silent", "-s", "--version", "-v", "--help", "-h", "-r", "--recursive", "-w", "--workspace-root",
                "-g", "--global", "--offline", "--parallel", "--stream",
            ],
            values: &["-F", "--filter"],
            letters: "c",
            longs: LONGS,
            has_scripts: true,
        },
        "yarn" | "yarnpkg" => Manager {
            commands: &[
                "add", "audit", "cache", "check", "dedupe", "info", "install", "licenses", "link", "list", "outdated",
                "pack", "publish", "remove", "run", "unlink", "up", "upgrade", "version", "versions", "why",
            ],
            flags: &[
                "--silent", "-s", "--verbose", "--version", "-v", "--help", "-h", "--offline", "--immutable",
                "--frozen-lockfile",
            ],
            values: &[],
            letters: "c",
            longs: LONGS,
            has_scripts: true,
        },
        "bun" => Manager {
            commands: &[
                "a", "add", "audit", "build", "ci", "i", "info", "install", "link", "outdated", "patch", "pm",
                "publish", "remove", "rm", "test", "unlink", "update", "why",
            ],
            flags: &[
                "--silent", "--version", "-v", "--revision", "--help", "-h", "--bun", "-b", "--watch", "--hot", "--smol",
            ],
            values: &["-F", "--filter"],
            letters: "cepr",
            longs: &[
                "config", "cwd", "env-file", "eval", "import", "inspect", "inspect-brk", "inspect-wait", "loader",
                "outdir", "outfile", "preload", "print", "require", "shell",
            ],
            has_scripts: false,
        },
        _ => return None,
    })
}
