//! `haft tools check`: what is wrong with files that describe tools.

use super::super::{
    console::{BAD, Console, GOOD, STRONG},
    definition_file,
    failure::{Failure, USAGE},
    input::Input,
    setup::CliContext,
    words,
};
use haft::ToolDefinition;
use haft_core::{DefinitionProblem, text::one_line};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) type Read = Result<Vec<ToolDefinition>, Vec<DefinitionProblem>>;

pub(super) fn run(
    files: &[PathBuf],
    json: bool,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let mut input = Input::default();
    let mut checked: Vec<(String, Read)> = Vec::with_capacity(files.len());
    for file in files {
        let (name, read) = read(file, &mut input, &ground.surroundings.working_folder)?;
        checked.push((name, read));
    }
    let is_fine = checked.iter().all(|(_, read)| read.is_ok());
    if json {
        let files: Vec<Value> = checked.iter().map(|(name, read)| as_json(name, read)).collect();
        console.print_json(&json!({"files": files}))?;
    } else {
        let text: Vec<String> = checked.iter().map(|(name, read)| in_words(name, read)).collect();
        console.print(text.join(""))?;
    }
    Ok(if is_fine { 0 } else { USAGE })
}

/// The file as a person calls it, and what is in it.
pub(super) fn read(file: &Path, input: &mut Input, working_folder: &Path) -> Result<(String, Read), Failure> {
    let text = input.text(file, working_folder)?;
    let name = if file.as_os_str() == "-" { "standard input".to_owned() } else { words::path(file) };
    Ok((name, definition_file::read(&text, definition_file::format(file, &text))))
}

fn as_json(name: &str, read: &Read) -> Value {
    let (tools, problems) = match read {
        Ok(definitions) => (definitions.as_slice(), &[][..]),
        Err(problems) => (&[][..], problems.as_slice()),
    };
    let tools: Vec<&str> = tools.iter().map(|definition| definition.name.as_str()).collect();
    let problems: Vec<Value> = problems
        .iter()
        .map(|found| json!({"place": found.place, "problem": found.problem, "fix": found.fix}))
        .collect();
    json!({"file": name, "ok": read.is_ok(), "tools": tools, "problems": problems})
}

fn in_words(name: &str, read: &Read) -> String {
    match read {
        Ok(definitions) => {
            let names: Vec<&str> = definitions.iter().map(|definition| definition.name.as_str()).collect();
            format!("{GOOD}ok{GOOD:#}  {STRONG}{name}{STRONG:#}: {}\n", one_line(&names.join(", "), 400))
        }
        Err(problems) => {
            let count = words::count(problems.len(), "problem");
            format!("{BAD}bad{BAD:#} {STRONG}{name}{STRONG:#}: {count}\n{}", list(problems))
        }
    }
}

/// Each problem with its place, and below it what to do.
pub(super) fn list(problems: &[DefinitionProblem]) -> String {
    let shown = |text: &str| one_line(text, 1000);
    problems
        .iter()
        .map(|found| {
            let (place, problem, fix) = (shown(&found.place), shown(&found.problem), shown(&found.fix));
            format!("  {place}: {problem}\n    {fix}\n")
        })
        .collect()
}
