//! Options and subcommands with which a program runs another one, or writes a file: `git log --output=F`, `sort -o F`.
//!
//! A rule that allows `git log` does not allow that. Abbreviations of long options count (`--outp=F`), and so do
//! letters in a row (`-rnoF`). A word that only the shell knows may be such an option.

use super::{
    compiler,
    git::{git, settings},
    interpreter, module, operand, package,
    program::stem,
    runner::runs_another,
    script,
    word::{MANY, ONE, Word},
    wrapper::Seen,
};

/// What of a program's options makes it more than it seems.
#[derive(Clone, Copy, Default)]
pub(super) struct Risky {
    /// Letters that run something.
    pub(super) runs: &'static str,
    /// Letters that write, or read what runs something.
    pub(super) writes: &'static str,
    /// Letters behind which the word is their value. One that is missing here only asks more often.
    pub(super) takes: &'static str,
    /// Long options that run something.
    pub(super) run: &'static [&'static str],
    /// Long options that write.
    pub(super) write: &'static [&'static str],
    /// Whether options go on behind `--`: old letters of `tar` may take it as a value.
    pub(super) goes_on: bool,
}

/// What an option does: the value with which it runs something, empty where that is the next word, or `None` where it
/// writes.
type Does<'a> = Option<&'a str>;

impl Risky {
    pub(super) fn does<'a>(&self, word: &'a str) -> Option<Does<'a>> {
        if word.starts_with("--") {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let means =
                |options: &[&str]| name.len() > 2 && options.iter().any(|long| long.starts_with(name));
            return match () {
                () if means(self.run) => Some(Some(value)),
                () if means(self.write) => Some(None),
                () => None,
            };
        }
        let letters = word.strip_prefix('-')?;
        for (at, letter) in letters.char_indices() {
            if self.runs.contains(letter) {
                return Some(Some(&letters[at + letter.len_utf8()..]));
            }
            if self.writes.contains(letter) {
                return Some(None);
            }
            if self.takes.contains(letter) {
                return None;
            }
        }
        None
    }

    /// Whether one of the words is such an option, or may be, and what can be seen of what it runs.
    pub(super) fn find<'a>(&self, words: &'a [Word], unsure: bool) -> Option<Vec<Seen<'a>>> {
        let mut hits = false;
        let mut seen = Vec::new();
        for (place, word) in words.iter().enumerate() {
            let Some(text) = word.exact() else {
                hits |= unsure && may_be_option(word);
                continue;
            };
            // Behind an option it may be the value of that.
            let before = place.checked_sub(1).map(|before| &words[before]);
            let ends = |word: &Word| word.exact().is_some_and(|word| !word.starts_with('-'));
            if text == "--" && !self.goes_on && before.is_none_or(ends) {
                break;
            }
            let Some(does) = self.does(text) else { continue };
            hits = true;
            let value = match does {
                Some("") => words.get(place + 1).and_then(Word::exact),
                does => does,
            };
            seen.extend(value.map(line_of));
        }
        hits.then_some(seen)
    }
}

pub(super) fn line_of<'a>(value: &str) -> Seen<'a> {
    Seen::Line(value.trim_start_matches(['!', '|', '=']).to_owned())
}

/// Whether the shell may make an option of a word. A file can be called `--output=x.rs`, and `*.rs` finds it. A pattern
/// that begins with any other letter (`a*`, `./*`) finds no such file, and behind `--` it is none. It matters only for
/// programs with an option that runs or writes: those without one have no row here, and `cat *.rs` is as good as
/// `cat a.rs`.
pub(super) fn may_be_option(word: &Word) -> bool {
    match word {
        Word::Exact(text) => text.starts_with('-'),
        Word::Glob(pattern) => pattern.starts_with(['-', MANY, ONE]),
        Word::Any => true,
    }
}

/// What can be seen of what a program runs besides itself, where its arguments make it run something or write a file.
pub(super) fn does_more<'a>(name: &str, words: &'a [Word]) -> Option<Vec<Seen<'a>>> {
    let stem = stem(name);
    if let Some(runs_a_file) = interpreter::runs_a_file(stem, words) {
        return (!runs_a_file).then(Vec::new);
    }
    if let Some(manager) = package::manager(stem, words) {
        return manager;
    }
    if let Some(seen) = runs_another(stem, words) {
        return Some(seen);
    }
    match stem {
        "git" => git(words),
        "sed" | "gsed" => (!script::is_tame_sed(words)).then(Vec::new),
        "make" | "gmake" => make(words),
        "uniq" => uniq(words),
        _ if compiler::is_compiler(stem) => words.iter().any(compiler::runs_more).then(Vec::new),
        "go" => go(words),
        // Whatever the compiler is told.
        "cargo"
            if words.iter().any(|word| word.may_be("--"))
                && words
                    .iter()
                    .any(|word| word.exact().is_some_and(|word| matches!(word, "rustc" | "rustdoc"))) =>
        {
            Some(Vec::new())
        }
        // A toolchain by its path, and a program that the compiler runs.
        "cargo" | "rustc"
            if words.iter().filter_map(Word::exact).any(|word| {
                word.contains("linker=")
                    || word.contains("link-arg")
                    || word.contains("codegen-backend")
                    || (stem == "rustc" && (word.starts_with('@') || word.starts_with("-Z")))
                    || (word.starts_with('+') && word.contains(['/', '.']))
            }) =>
        {
            Some(Vec::new())
        }
        "tar" | "bsdtar" => tar(words),
        "xxd" => xxd(words),
        // Modules of Python that are programs, too.
        "coverage" | "flake8" | "mypy" | "pip" | "pydoc" | "pylint" | "pyright" | "pytest" | "ruff" => {
            (!module::is_tame(stem, words)).then(Vec::new)
        }
        "py.test" => (!module::is_tame("pytest", words)).then(Vec::new),
        // A command of the pager, which may be one for a shell: `less '+!rm x' y`.
        "less" | "man" | "more" | "most"
            if words.iter().filter_map(Word::exact).any(|word| word.starts_with('+')) =>
        {
            Some(Vec::new())
        }
        // They have a language of their own in which everything can be said, or save what they fetch.
        "deno" | "ed" | "emacs" | "ex" | "gdb" | "lldb" | "nano" | "nvim" | "rvim" | "socat" | "vi"
        | "view" | "vim" | "vimdiff" | "wget" => Some(Vec::new()),
        _ => table(stem)?.find(words, true),
    }
}

#[rustfmt::skip]
fn table(name: &str) -> Option<Risky> {
    let none = Risky::default();
    Some(match name {
        "sort" => Risky { writes: "o", takes: "kStT", run: &["--compress-program"], write: &["--output"], ..none },
        "iconv" | "sdiff" | "shuf" | "xmllint" => Risky { writes: "o", write: &["--output", "--shell"], ..none },
        "file" => Risky { writes: "C", takes: "eFfmP", write: &["--compile"], ..none },
        // `-R` writes a page into each folder.
        "tree" => Risky { writes: "oR", takes: "HILPT", write: &["--output"], ..none },
        "split" => Risky { run: &["--filter"], ..none },
        "rg" => Risky { run: &["--pre", "--hostname-bin"], ..none },
        "fd" | "fdfind" => Risky { runs: "xX", takes: "eEtdScj", run: &["--exec", "--exec-batch"], ..none },
        "cargo" => Risky {
            takes: "pjFZm", writes: "C",
            write: &["--config", "--out-dir", "--artifact-dir", "--lockfile-path", "--open", "--root"], ..none
        },
        "rsync" => Risky {
            runs: "e", writes: "MT", takes: "fB", run: &["--rsh", "--rsync-path"],
            write: &["--write-batch", "--only-write-batch", "--log-file", "--remote-option", "--config", "--daemon",
                "--backup-dir", "--temp-dir", "--remove-source-files"], ..none
        },
        "scp" | "sftp" => Risky { runs: "SD", writes: "oF", takes: "ciJlPX", ..none },
        // `-m` deletes what is packed, `-l…` may be a log.
        "zip" => Risky {
            writes: "TOml", run: &["--unzip-command"],
            write: &["--test", "--output-file", "--out", "--move", "--logfile-path", "--log-append"], ..none
        },
        "man" => Risky { runs: "PH", writes: "CXr", run: &["--pager", "--html"], write: &["--config-file", "--gxditview", "--prompt"], ..none },
        "bat" | "batcat" => Risky { run: &["--pager"], write: &["--generate-config-file", "--target"], ..none },
        "less" | "more" | "most" => Risky {
            writes: "oOkK", write: &["--log-file", "--LOG-FILE", "--lesskey-file", "--lesskey-src", "--lesskey-content", "--cmd"], ..none
        },
        "curl" => Risky {
            writes: "oOKDcJw", takes: "AbdeEFHmPQrTuUxXyYzC",
            write: &["--output", "--output-dir", "--remote-name", "--remote-name-all", "--config", "--dump-header",
                "--cookie-jar", "--trace", "--trace-ascii", "--etag-save", "--hsts", "--alt-svc", "--libcurl", "--stderr", "--write-out",
                "--engine", "--ssl-sessions"], ..none
        },
        "yq" => Risky { writes: "is", write: &["--inplace", "--split-exp"], ..none },
        _ => return None,
    })
}

/// Its second file is written. Options behind the first are files to some systems.
fn uniq(words: &[Word]) -> Option<Vec<Seen<'_>>> {
    let known = operand::Known {
        letters: "cdDiuz0123456789",
        values: "fsw",
        longs: &[
            "--count",
            "--ignore-case",
            "--repeated",
            "--unique",
            "--zero-terminated",
            "--help",
            "--version",
        ],
        long_values: &["--skip-fields", "--skip-chars", "--check-chars"],
    };
    let is_tame = match operand::operands(words, &known).as_deref() {
        Some([]) => true,
        Some([file]) => words.last().and_then(Word::exact) == Some(file),
        _ => false,
    };
    (!is_tame).then(Vec::new)
}

fn make(words: &[Word]) -> Option<Vec<Seen<'_>>> {
    let risky = Risky {
        runs: "E",
        writes: "f",
        takes: "CIjloW",
        run: &["--eval"],
        write: &["--file", "--makefile"],
        goes_on: false,
    };
    let sets = |word: &Word| word.exact().is_none_or(|word| !word.starts_with('-') && word.contains('='));
    let seen = risky.find(words, true);
    // `SHELL=…`, `CC=…`: also behind `--`.
    if words.iter().any(sets) {
        Some(seen.into_iter().flatten().chain(settings(words)).collect())
    } else {
        seen
    }
}

/// Options of go have one dash or two.
fn go(words: &[Word]) -> Option<Vec<Seen<'_>>> {
    const RUNS: &[&str] = &[
        "exec",
        "toolexec",
        "vettool",
        "o",
        "overlay",
        "modfile",
        "ldflags",
        "gccgoflags",
        "C",
        "w",
        "coverprofile",
        "cpuprofile",
        "memprofile",
        "blockprofile",
        "mutexprofile",
        "trace",
        "outputdir",
        "gocoverdir",
        "pkgdir",
        "testlogfile",
    ];
    let mut hits = false;
    let mut seen = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let Some(text) = word.exact() else {
            hits |= may_be_option(word);
            continue;
        };
        let Some(option) = text.strip_prefix('-') else { continue };
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let name = name.strip_prefix('-').unwrap_or(name);
        // As the test program itself calls them.
        let name = name.strip_prefix("test.").unwrap_or(name);
        if RUNS.contains(&name) {
            hits = true;
            let next = words.get(place + 1).and_then(Word::exact).unwrap_or_default();
            if matches!(name, "exec" | "toolexec" | "vettool") {
                seen.push(line_of(if value.is_empty() { next } else { value }));
            }
        }
    }
    hits.then_some(seen)
}

fn tar(words: &[Word]) -> Option<Vec<Seen<'_>>> {
    let risky = Risky {
        runs: "IF",
        writes: "g",
        takes: "fbCHKLNTVX",
        run: &[
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
        write: &["--index-file", "--listed-incremental", "--remove-files", "--volno-file"],
        goes_on: true,
    };
    // `tar xIf PROGRAM FILE`: letters without a dash, and their values behind them.
    let first = words.first().and_then(Word::exact);
    let old = first.is_some_and(|first| !first.starts_with('-') && first.contains(['I', 'F', 'g']));
    let seen = risky.find(words, true);
    // An archive on another machine is fetched by another program.
    if words.iter().filter_map(Word::exact).any(is_remote) {
        return Some(Vec::new());
    }
    if !old {
        return seen.map(|seen| seen.into_iter().map(action).collect());
    }
    let values = words[1..].iter().filter_map(Word::exact).map(line_of);
    Some(values.collect())
}

/// `host:archive`, as a word, or behind `-f` or `--file=`.
fn is_remote(word: &str) -> bool {
    let place = match word.split_once('=') {
        Some((option, value)) if option.len() > 2 && "--file".starts_with(option) => value,
        _ if word.starts_with("--") => return false,
        _ => word,
    };
    place.split('/').next().is_some_and(|first| first.contains(':'))
}

/// Its second file is written. Its options are words, of which some take a number.
fn xxd(words: &[Word]) -> Option<Vec<Seen<'_>>> {
    const VALUES: [&str; 11] =
        ["-R", "-c", "-cols", "-g", "-groupsize", "-l", "-len", "-n", "-o", "-offset", "-s"];
    let mut files = 0;
    let mut before = "";
    for word in words {
        let Some(word) = word.exact() else { return Some(Vec::new()) };
        let is_value = VALUES.contains(&before);
        files += usize::from(!is_value && (!word.starts_with('-') || matches!(word, "-" | "--")));
        before = if is_value { "" } else { word };
    }
    (files > 1).then(Vec::new)
}

/// `--checkpoint-action=exec=rm x`.
fn action(seen: Seen<'_>) -> Seen<'_> {
    match seen {
        Seen::Line(line) => Seen::Line(line.strip_prefix("exec=").map(str::to_owned).unwrap_or(line)),
        other => other,
    }
}
