//! Programs that run other programs among many other things: package managers, compilers.

use super::{option::may_be_option, word::Word, wrapper::Seen};

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
