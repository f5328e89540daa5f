//! Programs that run other programs among many other things: `uv run`, `docker exec`, `bundle exec`.

use super::{word::Word, wrapper::Seen};

/// Commands with which a program runs another one; `None` where that is not known of it. An empty list: it has no other
/// use.
fn commands(stem: &str) -> Option<&'static [&'static str]> {
    Some(match stem {
        "uv" | "rustup" | "poetry" | "pdm" | "rye" | "hatch" | "pipenv" | "conda" | "mamba"
        | "micromamba" | "volta" | "doppler" | "op" => &["run", "tool", "shell", "x"],
        "pipx" => &["run", "runpip"],
        // Their commands may be shortened.
        "bundle" | "bundler" => &["exec", "exe", "ex", "e", "x", "run", "console", "open", "plugin"],
        "mise" | "rtx" => &["exec", "x", "run", "r", "watch", "w", "en", "tasks"],
        "asdf" | "direnv" => &["exec", "x", "run"],
        "nix" => &["run", "shell", "develop"],
        "docker" | "podman" | "nerdctl" => {
            &["run", "exec", "compose", "container", "buildx", "build", "create"]
        }
        "kubectl" | "oc" => &["exec", "run", "debug", "rsh"],
        "vagrant" => &["ssh", "winrm", "up"],
        "bunx" | "ccache" | "corepack" | "distcc" | "dotenv" | "icecc" | "nix-shell" | "npx" | "pnpx"
        | "pnx" | "sccache" | "uvx" => &[],
        _ => return None,
    })
}

/// What can be seen of what a program runs that has many commands, where one of them runs another program: `uv run rm
/// x`. A word that only the shell knows may be that.
pub(super) fn runs_another<'a>(stem: &str, words: &'a [Word]) -> Option<Vec<Seen<'a>>> {
    let commands = commands(stem)?;
    let runs = match commands {
        [] => !matches!(
            words.iter().map(Word::exact).collect::<Vec<_>>()[..],
            [] | [Some("--version" | "--help")]
        ),
        // A `--` before the command does not end what is looked at.
        _ => {
            let is_first = words.first().and_then(Word::exact).is_some_and(|word| !word.starts_with('-'));
            let command = words.iter().position(is_plain).unwrap_or(words.len());
            let ends = |(at, word): &(usize, &Word)| *at > command && word.exact() == Some("--");
            let mut own = words.iter().enumerate().take_while(|word| !ends(word));
            own.any(|(_, word)| match word.exact() {
                Some(word) => commands.contains(&word),
                None => !is_first,
            })
        }
    };
    runs.then(|| behind_dashes(words, !commands.is_empty()))
}

fn is_plain(word: &Word) -> bool {
    word.exact().is_none_or(|word| !word.starts_with('-'))
}

/// The words behind the first that is no option of the program itself, as far as they can be told: `uv run rm x`.
fn behind_dashes(words: &[Word], has_command: bool) -> Vec<Seen<'_>> {
    let plain = words.iter().enumerate().filter(|(_, word)| is_plain(word)).map(|(at, _)| at);
    plain.skip(usize::from(has_command)).take(1).filter_map(|at| words.get(at..)).map(Seen::Words).collect()
}
