//! Programs that run text or other programs among many other things: interpreters, package managers, compilers.

use super::{
    option::{Risky, may_be_option},
    word::Word,
    wrapper::Seen,
};

/// What an interpreter's options are.
pub(super) struct Interpreter {
    /// Letters that run text, or load code.
    pub(super) code: &'static str,
    /// Letters whose value is the rest of the word.
    pub(super) takes: &'static str,
    /// Letters that are known to take nothing.
    pub(super) flags: &'static str,
    /// Long options that run text, or load code.
    pub(super) longs: &'static [&'static str],
    /// Whether `-m` names what is run.
    pub(super) has_modules: bool,
}

/// Modules of Python that run no text that they are given, but what is in files, or look at those.
#[rustfmt::skip]
const TAME_MODULES: &[&str] = &[
    "black", "build", "compileall", "coverage", "doctest", "flake8", "http.server", "isort", "json.tool", "mypy", "pip", "pydoc", "pyflakes",
    "pylint", "pyright", "pytest", "ruff", "tabnanny", "unittest", "venv",
];

/// A program that runs a file, or text that it is given. Its options end at the file. Without one it runs its input.
pub(super) fn interpreter<'a>(words: &'a [Word], options: &Interpreter) -> Option<Vec<Seen<'a>>> {
    let risky =
        Risky { writes: options.code, takes: options.takes, write: options.longs, ..Risky::default() };
    let is_flag =
        |word: &str| word.len() > 1 && word[1..].chars().all(|letter| options.flags.contains(letter));
    let mut has_file = false;
    // Whether the next word may be the value of the one before.
    let mut may_be_value = false;
    for (place, word) in words.iter().enumerate() {
        let Some(text) = word.exact() else { return Some(Vec::new()) };
        match text {
            "-" => return Some(Vec::new()),
            "--version" | "-V" | "-v" | "--help" | "-h" if words.len() == 1 => return None,
            "-m" if options.has_modules => {
                let module = words.get(place + 1).and_then(Word::exact);
                return (!module.is_some_and(|module| TAME_MODULES.contains(&module))).then(Vec::new);
            }
            // Its own input, by another name.
            _ if text.starts_with("/dev/") || text.starts_with("/proc/") => return Some(Vec::new()),
            _ if risky.does(text).is_some() => return Some(Vec::new()),
            _ if text.starts_with('-') => may_be_value = !is_flag(text),
            _ if may_be_value => (has_file, may_be_value) = (true, false),
            _ => return None,
        }
    }
    (!has_file).then(Vec::new)
}

/// Whether an option of a C compiler names a program that it runs, or a file of more options.
pub(super) fn is_compilers_program(word: &Word) -> bool {
    const OPTIONS: [&str; 8] =
        ["-wrapper", "--wrapper", "-B", "-specs", "--specs", "-fplugin", "-Xclang", "@"];
    word.exact()
        .map_or_else(|| may_be_option(word), |word| OPTIONS.iter().any(|option| word.starts_with(option)))
}

/// Whether a program that has many commands is told to run another program by one of them: `uv run rm x`. A word that
/// only the shell knows may be that.
pub(super) fn runs_another(program: &str, words: &[Word]) -> bool {
    let commands: &[&str] = match program {
        "uv" | "rustup" | "poetry" | "pdm" | "rye" | "hatch" | "pipenv" | "conda" | "mamba"
        | "micromamba" | "volta" | "doppler" | "op" => &["run", "tool", "shell", "x"],
        "npm" | "pnpm" | "yarn" | "bun" => &["exec", "x", "explore", "dlx", "node"],
        "bundle" | "bundler" | "mise" | "asdf" | "direnv" => &["exec", "x", "run"],
        "nix" => &["run", "shell", "develop"],
        "docker" | "podman" | "nerdctl" => {
            &["run", "exec", "compose", "container", "buildx", "build", "create"]
        }
        "kubectl" | "oc" => &["exec", "run", "debug", "rsh"],
        "vagrant" => &["ssh", "winrm", "up"],
        // They have no other use.
        _ => return !words.is_empty(),
    };
    words
        .iter()
        .take_while(|word| !word.may_be("--"))
        .any(|word| commands.iter().any(|command| word.may_be(command)))
}

/// The words behind the first that is no option of the program itself, as far as they can be told: `uv run rm x`.
pub(super) fn behind_dashes(words: &[Word]) -> Vec<Seen<'_>> {
    let plain = |word: &Word| word.exact().is_none_or(|word| !word.starts_with('-'));
    let command = words.iter().position(plain);
    let runs = command.and_then(|at| {
        let rest = words.get(at + 1..)?;
        rest.iter().position(plain).and_then(|at| rest.get(at..))
    });
    runs.map(Seen::Words).into_iter().collect()
}
