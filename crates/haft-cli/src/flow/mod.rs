//! `haft flow`: calls that take something from each other, in a file.

mod args;
mod run;

pub(super) use args::FlowCommand;

use super::{
    console::{BAD, Console, GOOD, STRONG},
    definition_file::format,
    failure::{Failure, USAGE},
    input::Input,
    setup::CliContext,
    words,
};
use args::Form;
use haft_core::text::one_line;
use haft_definition::ReadErrors;
use haft_flow::Flow;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) fn run(command: &FlowCommand, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    match command {
        FlowCommand::Run(args) => run::run(args, ground, console),
        FlowCommand::Check { files, json } => check(files, *json, ground, console),
        FlowCommand::Graph { file, format, json } => graph(file, *format, *json, &ground, console),
    }
}

/// The file as a person calls it, and the flow in it.
fn read(
    file: &Path,
    input: &mut Input,
    working_folder: &Path,
    most_nodes: usize,
) -> Result<(String, Result<Flow, ReadErrors>), Failure> {
    let text = input.text(file, working_folder)?;
    let name = if file.as_os_str() == "-" { "standard input".to_owned() } else { words::path(file) };
    Ok((name, haft_flow::read_within(&text, format(file, &text), most_nodes)))
}

/// The flow in a file that is fine.
pub(super) fn read_fine(
    file: &Path,
    input: &mut Input,
    working_folder: &Path,
    most_nodes: usize,
) -> Result<(String, Flow), Failure> {
    let (name, flow) = read(file, input, working_folder, most_nodes)?;
    match flow {
        Ok(flow) => Ok((name, flow)),
        Err(errors) => Err(bad(name, &errors)),
    }
}

/// What is wrong with a flow, each problem in a line, with what to do below it.
pub(super) fn bad(name: String, errors: &ReadErrors) -> Failure {
    Failure::BadFlow { list: list(&name, errors).trim_end().to_owned(), name }
}

fn list(name: &str, errors: &ReadErrors) -> String {
    let line = |error: &haft_definition::ReadError| {
        let at = error.position;
        let problem = one_line(&error.problem, 1000);
        let help = error.help.as_ref().map(|help| format!("    {}\n", one_line(help, 1000)));
        format!("  {name}:{}:{}: {problem}\n{}", at.line, at.column, help.unwrap_or_default())
    };
    let shown: String = errors.errors().iter().take(50).map(line).collect();
    match errors.errors().len().saturating_sub(50) {
        0 => shown,
        more => format!("{shown}  and {more} more\n"),
    }
}

fn check(files: &[PathBuf], json: bool, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let working_folder = ground.surroundings.working_folder.clone();
    let setup = ground.setup(console)?;
    let mut input = Input::default();
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        let (name, flow) = read(file, &mut input, &working_folder, setup.most_nodes())?;
        let checked = flow.and_then(|flow| setup.haft.check_flow(&flow).map(|()| flow));
        found.push((name, checked));
    }
    let is_fine = found.iter().all(|(_, checked)| checked.is_ok());
    if json {
        let files: Vec<Value> = found.iter().map(|(name, checked)| as_json(name, checked)).collect();
        console.print_json(&json!({"files": files}))?;
    } else {
        for (name, checked) in &found {
            console.print(match checked {
                Ok(flow) => {
                    let nodes = words::count(flow.nodes.len(), "node");
                    format!(
                        "{GOOD}ok{GOOD:#}  {STRONG}{name}{STRONG:#}: {}, {nodes}\n",
                        words::name(&flow.name)
                    )
                }
                Err(errors) => {
                    let count = words::count(errors.errors().len(), "problem");
                    format!("{BAD}bad{BAD:#} {STRONG}{name}{STRONG:#}: {count}\n{}", list(name, errors))
                }
            })?;
        }
    }
    Ok(if is_fine { 0 } else { USAGE })
}

fn as_json(name: &str, checked: &Result<Flow, ReadErrors>) -> Value {
    let problems: Vec<Value> = match checked {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .errors()
            .iter()
            .map(|error| {
                let at = error.position;
                json!({"line": at.line, "column": at.column, "problem": error.problem, "help": error.help})
            })
            .collect(),
    };
    let flow = checked.as_ref().ok();
    json!({
        "file": name,
        "ok": flow.is_some(),
        "flow": flow.map(|flow| &flow.name),
        "nodes": flow.map(|flow| flow.nodes.len()),
        "problems": problems,
    })
}

fn graph(
    file: &Path,
    form: Form,
    json: bool,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let most_nodes = ground.configured(console)?.most_nodes();
    let working_folder = &ground.surroundings.working_folder;
    let (_, flow) = read_fine(file, &mut Input::default(), working_folder, most_nodes)?;
    if json {
        let nodes: Vec<Value> = flow
            .nodes
            .iter()
            .map(|node| {
                let earlier: Vec<&str> =
                    node.depends_on.iter().map(|&earlier| &*flow.nodes[earlier].name).collect();
                json!({
                    "name": node.name,
                    "tool": node.tool,
                    "dependsOn": earlier,
                    "when": node.when.as_ref().map(haft_flow::Condition::text),
                    "continueOnFailure": node.continue_on_failure,
                })
            })
            .collect();
        let pictures = json!({
            "flow": flow.name,
            "nodes": nodes,
            "mermaid": haft_flow::mermaid(&flow),
            "text": haft_flow::picture(&flow, 100),
        });
        console.print_json(&pictures)?;
        return Ok(0);
    }
    console.print(match form {
        Form::Mermaid => haft_flow::mermaid(&flow),
        Form::Text => haft_flow::picture(&flow, console.width().unwrap_or(200)),
    })?;
    Ok(0)
}
