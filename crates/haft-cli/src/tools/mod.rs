//! `haft tools`: what there is to call, and changing that.

mod args;
mod change;
mod check;
mod export;
mod page;
mod search;
mod server;
mod sign;
mod taken;

pub(super) use args::ToolsCommand;
pub(super) use server::keep_differences;

use super::{
    console::{Console, QUIET},
    failure::Failure,
    layout,
    setup::{CliContext, Setup, now},
};
use args::ListArgs;
use haft::{Haft, Registration, ToolDefinition};
use haft_core::text::one_line;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn run(command: &ToolsCommand, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    // Says something about files alone: what is registered has no part in it.
    if let ToolsCommand::Check { files, json } = command {
        return check::run(files, *json, &ground, console);
    }
    if let ToolsCommand::Sign { file, key, json } = command {
        return sign::sign(file, key.as_deref(), *json, &ground, console);
    }
    if let ToolsCommand::Verify { files, json } = command {
        return sign::verify(files, *json, &ground, console);
    }
    let working_folder = ground.surroundings.working_folder.clone();
    let setup = ground.setup(console)?;
    match command {
        ToolsCommand::Check { .. } | ToolsCommand::Sign { .. } | ToolsCommand::Verify { .. } => {}
        ToolsCommand::Accept { name, mcp, show, json } => {
            let wanted = taken::Wanted::of(name.as_deref(), mcp.as_deref());
            let taking = if *show { taken::Taking::Show } else { taken::Taking::Take };
            taken::accept(wanted, taking, *json, &setup, console)?;
        }
        ToolsCommand::List(args) => list(args, &setup, console)?,
        ToolsCommand::Show { name, json } => show(name, *json, &setup, console)?,
        ToolsCommand::Search { words, limit, json } => {
            search::run(words, usize::from(*limit), *json, &setup, console)?;
        }
        ToolsCommand::Add(args) => {
            let adding = change::Adding { replace: args.replace, import: args.import, json: args.json };
            match (&args.server.mcp, &args.file) {
                (Some(name), _) => {
                    server::add(name, &args.server, adding, &setup, &working_folder, console)?;
                }
                (None, Some(file)) => change::add(file, adding, &setup, &working_folder, console)?,
                // The parser of the command line has seen to it.
                (None, None) => {}
            }
        }
        ToolsCommand::Remove { name, mcp, json } => {
            let wanted = taken::Wanted::of(name.as_deref(), mcp.as_deref());
            taken::remove(wanted, *json, &setup, console)?;
        }
        ToolsCommand::Enable { name, json } => {
            change::switch(name, change::Switch::On, *json, &setup, console)?;
        }
        ToolsCommand::Disable { name, json } => {
            change::switch(name, change::Switch::Off, *json, &setup, console)?;
        }
        ToolsCommand::Config(args) => change::config(args, &setup, console)?,
        ToolsCommand::Export(args) => export::run(args, &setup, console)?,
    }
    Ok(0)
}

fn list(args: &ListArgs, setup: &Setup, console: &mut Console) -> Result<(), Failure> {
    let haft = &setup.haft;
    haft.tools().bring_all()?;
    let mut registrations = haft.tools().all();
    if let Some(category) = args.category {
        registrations.retain(|registration| registration.definition.category == category);
    }
    if args.available {
        let available = now(haft.tools().available(&setup.owner))?;
        let names: BTreeSet<&str> = available.iter().map(|definition| definition.name.as_str()).collect();
        registrations.retain(|registration| names.contains(registration.definition.name.as_str()));
    }
    if args.json {
        let all: Vec<Value> = registrations.iter().map(as_json).collect::<Result<_, _>>()?;
        return console.print_json(&all);
    }
    if registrations.is_empty() {
        return console.print("no tools match\n");
    }
    let rows: Vec<(String, String)> = registrations
        .iter()
        .map(|registration| {
            let definition = &registration.definition;
            (
                definition.name.clone(),
                format!("{}{}", marks(registration), one_line(sentence(definition), 200)),
            )
        })
        .collect();
    let mut text = layout::list(&rows, console.width());
    let waiting = setup.signatures.all_proposed().unwrap_or_default();
    if !waiting.is_empty() {
        let names: Vec<String> = waiting.iter().map(|(name, _)| one_line(name, 80)).collect();
        text.push_str(&format!(
            "\nnew or changed, and not used until you run `haft tools accept NAME`: {}\n",
            names.join(", ")
        ));
    }
    text.push_str(&format!("\n{QUIET}`haft tools show NAME` shows the parameters of a tool{QUIET:#}\n"));
    console.print(text)
}

/// `[added, disabled] `, where there is something to say.
fn marks(registration: &Registration) -> String {
    let marks: Vec<&str> = [("added", !registration.is_built_in), ("disabled", !registration.enabled)]
        .into_iter()
        .filter_map(|(mark, applies)| applies.then_some(mark))
        .collect();
    if marks.is_empty() { String::new() } else { format!("[{}] ", marks.join(", ")) }
}

fn show(name: &str, json: bool, setup: &Setup, console: &mut Console) -> Result<(), Failure> {
    let registration = find(&setup.haft, name)?;
    if json {
        console.print_json(&as_json(&registration)?)
    } else {
        console.print(page::of(&registration, console.width()))
    }
}

/// The registered tool of that name, or what was probably meant.
fn find(haft: &Haft, name: &str) -> Result<Registration, Failure> {
    haft.tools().get(name).ok_or_else(|| Failure::NoTool { name: name.to_owned(), near: haft.nearest(name) })
}

/// The definition, with how it is registered as one more member.
fn as_json(registration: &Registration) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(&*registration.definition).map_err(Failure::Unwritable)?;
    value["registration"] = json!({
        "builtIn": registration.is_built_in,
        "enabled": registration.enabled,
        "settings": &*registration.settings,
        "registeredBy": registration.registered_by,
        "registeredAt": (!registration.is_built_in).then(|| registration.registered_at.to_string()),
    });
    Ok(value)
}

/// The first sentence of the description.
fn sentence(definition: &ToolDefinition) -> &str {
    let text = definition.description.trim();
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}
