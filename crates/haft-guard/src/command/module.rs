//! Modules of Python that `-m` runs: which of them run no text that they are given, and write nothing on the side.

use super::{interpreter, operand, option::Risky, word::Word};

/// Modules that run what is in files, or look at those, and of whose options none is known to do more.
const MODULES: &[&str] = &["black", "compileall", "doctest", "isort", "pyflakes", "tabnanny", "unittest"];

/// Whether a module with these arguments does only what it is known for.
pub(super) fn is_tame(module: &str, words: &[Word]) -> bool {
    let exact = || words.iter().filter_map(Word::exact);
    // What is fed to a module is text, not a file.
    let is_fed = |word: &str| {
        let path = word.split_once('=').map_or(word, |(_, value)| value);
        interpreter::may_be_input(path) && path != "/dev/null"
    };
    if exact().any(is_fed) {
        return false;
    }
    match module {
        "json.tool" => json_tool(words),
        "coverage" => coverage(words),
        "pip" if exact().any(|word| word == "config") => {
            exact().any(|word| matches!(word, "list" | "get" | "debug"))
        }
        _ if MODULES.contains(&module) => true,
        _ => risky(module).is_some_and(|risky| risky.find(words, true).is_none()),
    }
}

/// Options of modules with which they run something else, or write.
#[rustfmt::skip]
fn risky(module: &str) -> Option<Risky> {
    let none = Risky::default();
    Some(match module {
        "build" => Risky { writes: "o", write: &["--outdir"], ..none },
        "flake8" => Risky { write: &["--output-file"], ..none },
        "http.server" => Risky { write: &["--cgi"], ..none },
        "mypy" => Risky {
            write: &[
                "--python-executable", "--install-types", "--junit-xml", "--cache-map", "--any-exprs-report",
                "--cobertura-xml-report", "--html-report", "--linecount-report", "--linecoverage-report",
                "--lineprecision-report", "--txt-report", "--xml-report", "--xslt-html-report", "--xslt-txt-report",
            ], ..none
        },
        "pip" => Risky {
            writes: "t", takes: "cefidrw",
            write: &["--python", "--editor", "--log", "--target", "--root", "--src", "--report"], ..none
        },
        "pydoc" => Risky { writes: "bnpw", ..none },
        "pylint" => Risky {
            writes: "f", takes: "dej",
            write: &[
                "--init-hook", "--output", "--output-format", "--import-graph", "--int-import-graph",
                "--ext-import-graph",
            ], ..none
        },
        "pyright" => Risky { write: &["--pythonpath", "--createstub", "--writebaseline"], ..none },
        // Its debugger takes commands from the input; a folder for temporary files is emptied first.
        "pytest" => Risky {
            takes: "cknmoprW",
            write: &[
                "--pdb", "--pdbcls", "--trace", "--basetemp", "--junitxml", "--junit-xml", "--debug", "--log-file",
                "--pastebin",
            ], ..none
        },
        "ruff" => Risky { writes: "o", write: &["--output-file"], ..none },
        "venv" => Risky { write: &["--clear"], ..none },
        _ => return None,
    })
}

/// Its second file is written.
fn json_tool(words: &[Word]) -> bool {
    const FLAGS: &[&str] =
        &["--sort-keys", "--no-ensure-ascii", "--json-lines", "--tab", "--no-indent", "--compact"];
    let known = operand::Known { letters: "", values: "", longs: FLAGS, long_values: &["--indent"] };
    operand::operands(words, &known).is_some_and(|files| files.len() < 2)
}

/// `coverage run` runs as Python itself does; the others look at what was measured.
fn coverage(words: &[Word]) -> bool {
    let Some((first, rest)) = words.split_first() else { return true };
    match first.exact() {
        Some("run") => {
            let is_option = |word: &&Word| {
                word.exact().is_some_and(|word| {
                    matches!(word, "--append" | "-a" | "--branch" | "--parallel-mode" | "-p" | "--timid")
                        || ["--source=", "--include=", "--omit="]
                            .iter()
                            .any(|option| word.starts_with(option))
                })
            };
            let rest = &rest[rest.iter().take_while(is_option).count()..];
            let exact = |at: usize| rest.get(at).and_then(Word::exact);
            match exact(0) {
                Some("-m") => exact(1).is_some_and(|module| is_tame(module, &rest[2..])),
                Some(file) => !file.starts_with('-'),
                None => false,
            }
        }
        Some("report" | "html" | "xml" | "json" | "lcov" | "combine" | "erase" | "help" | "debug") => {
            let risky = Risky { writes: "od", write: &["--directory", "--data-file"], ..Risky::default() };
            risky.find(rest, true).is_none()
        }
        _ => false,
    }
}
