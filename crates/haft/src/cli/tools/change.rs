//! Adding, removing, switching and configuring tools. What is changed here counts in every later call of haft.

use super::{
    super::{
        console::Console,
        definition_file::{self, Format},
        failure::Failure,
        input::Input,
        setup::{Setup, now},
        words,
    },
    args::ConfigArgs,
    check, find, sign,
};
use crate::{CommandTool, RegisterError, ToolDefinition, guarding::Source, wiring::described};
use haft_core::{
    DefinitionProblem,
    port::{Registrations as _, StoreError},
    text::{one_line, people_text},
};
use haft_guard::DefinitionChanges;
use serde_json::{Map, Value, json};
use std::path::Path;

/// How to add.
#[derive(Clone, Copy)]
pub(super) struct Adding {
    pub(super) replace: bool,
    /// The file is in a provider's dialect.
    pub(super) import: bool,
    pub(super) json: bool,
}

pub(super) fn add(
    file: &Path,
    adding: Adding,
    setup: &Setup,
    working_folder: &Path,
    console: &mut Console,
) -> Result<(), Failure> {
    setup.registrations()?;
    let (name, read, source) = match adding.import {
        true => {
            let (name, read) = imported(file, working_folder, console)?;
            (name, read, None)
        }
        // A flow is written out as a tool, which nobody has signed.
        false if definition_file::is_flow(file) => {
            let most_nodes = setup.most_nodes();
            let (name, flow) =
                super::super::flow::read_fine(file, &mut Input::default(), working_folder, most_nodes)?;
            // With the tools that are here: what it calls must be there, and must not lead back to it.
            let checked = setup.haft.check_flow(&flow);
            checked.map_err(|errors| super::super::flow::bad(name.clone(), &errors))?;
            (name, Ok(vec![flow.definition()]), None)
        }
        // Read once: what is checked is what is added.
        false => {
            let source = sign::source(file, &mut Input::default(), working_folder)?;
            let format = if source.is_json { Format::Json } else { Format::Toml };
            let name = if file.as_os_str() == "-" { "standard input".to_owned() } else { words::path(file) };
            (name, definition_file::read(&source.text, format), Some(source))
        }
    };
    let bad = |problems: &[DefinitionProblem]| Failure::BadDefinitions {
        name: name.clone(),
        list: check::list(problems).trim_end().to_owned(),
    };
    let definitions = read.map_err(|problems| bad(&problems))?;
    // What stands beside the file must be found from anywhere.
    let beside = working_folder.join(file);
    let folder = if file.as_os_str() == "-" { Some(working_folder) } else { beside.parent() };
    let folder = folder.unwrap_or(working_folder);
    let search_path = std::env::var_os("PATH");
    let anchored = |definition| CommandTool::anchored(definition, folder, search_path.as_deref());
    let definitions = definitions
        .into_iter()
        .map(anchored)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|problem| bad(&[problem]))?;
    let source = source.unwrap_or_else(|| written_out(&definitions, folder));
    let admitted = setup.signatures.admit(&source);
    admitted.map_err(|problem| Failure::BadSignature { name: name.clone(), problem })?;
    let commands = setup.command_tools();
    // All of them or none: what can be known beforehand is looked at before the first is added.
    for definition in &definitions {
        may_add(definition, adding, setup)?;
    }
    let made = |definition: &ToolDefinition| {
        described(definition.clone(), &commands).map_err(|problem| Failure::BadDefinitions {
            name: name.clone(),
            list: format!("  {}", one_line(&problem, 1000)),
        })
    };
    for definition in &definitions {
        is_as_it_was(made(definition)?.definition(), &source, setup)?;
    }
    let (mut added, mut replaced) = (Vec::new(), Vec::new());
    for definition in &definitions {
        let tools = setup.haft.tools();
        let tool = made(definition)?;
        if tools.exists(&definition.name) {
            now(tools.replace(tool, &setup.owner))??;
            replaced.push(definition.name.as_str());
        } else {
            now(tools.add(tool, &setup.owner))??;
            added.push(definition.name.as_str());
        }
        keep(&definition.name, &source, setup)?;
    }
    if adding.json {
        return console.print_json(&json!({"added": added, "replaced": replaced}));
    }
    for (what, names) in [("added", &added), ("replaced", &replaced)] {
        for name in names {
            console.print(format!("{what} `{name}`\n"))?;
        }
    }
    if definitions.iter().all(ToolDefinition::says_what_runs) {
        return Ok(());
    }
    console.print(
        "\nNothing here can run what is only described: with tools.mode = \"parse_only\" its calls wait for their \
         results.\n",
    )
}

/// What a list in another dialect comes to, as haft writes it: nobody has signed that.
fn written_out(definitions: &[ToolDefinition], folder: &Path) -> Source {
    let text = serde_json::to_string(definitions).unwrap_or_default();
    Source { text, is_json: true, folder: folder.to_path_buf(), signature: None }
}

/// A known tool does not become another one unnoticed: a changed definition waits until a person has accepted it.
fn is_as_it_was(definition: &ToolDefinition, source: &Source, setup: &Setup) -> Result<(), Failure> {
    let Some(there) = setup.haft.tools().get(&definition.name) else { return Ok(()) };
    let changes = DefinitionChanges::between(&there.definition, definition);
    if changes.is_empty() {
        return Ok(());
    }
    let name = &definition.name;
    setup.signatures.propose(name, source).map_err(|error| unremembered(StoreError(error.to_string())))?;
    Err(Failure::Changed { name: name.clone(), changes: shown(&changes) })
}

/// The differences, one below the other.
fn shown(changes: &DefinitionChanges) -> String {
    let text = people_text(&changes.to_string()).into_owned();
    let lines = text.trim_end().lines().skip(1);
    lines
        .map(|line| one_line(line.trim_end(), 2000))
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Keeps what a tool was added from, as far as that is needed again.
fn keep(name: &str, source: &Source, setup: &Setup) -> Result<(), Failure> {
    let kept = setup.signatures.remember(name, source).and_then(|()| setup.signatures.settle(name));
    kept.map_err(|error| unremembered(StoreError(error.to_string())))
}

/// Takes the changed definition that waits for it.
pub(super) fn accept(name: &str, json: bool, setup: &Setup, console: &mut Console) -> Result<(), Failure> {
    setup.registrations()?;
    let registration = find(&setup.haft, name)?;
    let name = registration.definition.name.as_str();
    let proposed =
        setup.signatures.proposed(name).map_err(|error| unremembered(StoreError(error.to_string())))?;
    let source = proposed.ok_or_else(|| Failure::NothingToAccept { name: name.to_owned() })?;
    let refused = |problem| Failure::BadSignature { name: format!("the new `{name}`"), problem };
    let admitted = setup.signatures.admit(&source).map_err(refused)?;
    let new = admitted.definitions.into_iter().find(|definition| definition.name == name);
    let new = new.ok_or_else(|| Failure::NothingToAccept { name: name.to_owned() })?;
    let tool = described(new, &setup.command_tools()).map_err(|problem| Failure::BadDefinitions {
        name: format!("`{name}`"),
        list: format!("  {}", one_line(&problem, 1000)),
    })?;
    let changes = DefinitionChanges::between(&registration.definition, tool.definition());
    now(setup.haft.tools().replace(tool, &setup.owner))??;
    keep(name, &source, setup)?;
    if json {
        return console.print_json(&json!({"accepted": name, "changes": changes.changes}));
    }
    console.print(format!("accepted `{name}`:\n{}\n", shown(&changes)))
}

/// The tools of a list in a provider's dialect. What is not as it was there is said.
fn imported(
    file: &Path,
    working_folder: &Path,
    console: &mut Console,
) -> Result<(String, check::Read), Failure> {
    let text = Input::default().text(file, working_folder)?;
    let name = if file.as_os_str() == "-" { "standard input".to_owned() } else { words::path(file) };
    let problem = |place: &str, problem: &str, fix: &str| DefinitionProblem {
        place: place.to_owned(),
        problem: problem.to_owned(),
        fix: fix.to_owned(),
    };
    let list = match haft_core::json::parse(&text) {
        Ok(list) => list,
        Err(found) => {
            let problems = vec![problem("the file", &found.message, "write a list of tools as JSON")];
            return Ok((name, Err(problems)));
        }
    };
    let read = haft_dialect::import(&list).map(|import| {
        import.remarks.iter().for_each(|remark| console.say(format!("note: {remark}")));
        import.definitions
    });
    let problems = |error: haft_dialect::ImportError| {
        error.problems.iter().map(|found| problem(&found.place, &found.problem, &found.fix)).collect()
    };
    Ok((name, read.map_err(problems)))
}

/// Whether the names are free, or may be replaced.
fn may_add(definition: &ToolDefinition, adding: Adding, setup: &Setup) -> Result<(), Failure> {
    for name in std::iter::once(&definition.name).chain(&definition.aliases) {
        let Some(there) = setup.haft.tools().get(name) else { continue };
        let is_the_same = there.definition.name == definition.name;
        if is_the_same && adding.replace && !there.is_built_in {
            continue;
        }
        if is_the_same && there.is_built_in {
            return Err(RegisterError::BuiltIn { name: name.clone() }.into());
        }
        let replaceable = is_the_same && !there.is_built_in;
        return Err(Failure::NameTaken {
            name: name.clone(),
            by: there.definition.name.clone(),
            replaceable,
        });
    }
    Ok(())
}

pub(super) fn remove(name: &str, json: bool, setup: &Setup, console: &mut Console) -> Result<(), Failure> {
    let registrations = setup.registrations()?;
    let name = match find(&setup.haft, name) {
        Ok(registration) => {
            let name = registration.definition.name.clone();
            now(setup.haft.tools().remove(&name))??;
            name
        }
        // What is remembered may not have come back: then there is no tool, and still something to forget.
        Err(not_there) => {
            let known = now(registrations.load())?.map_err(unremembered)?;
            let known =
                known.into_iter().find(|known| known.name.eq_ignore_ascii_case(name)).ok_or(not_there)?;
            now(registrations.remove(&known.name))?.map_err(unremembered)?;
            known.name
        }
    };
    let forgotten = setup.signatures.forget_all(&name);
    forgotten.map_err(|error| unremembered(StoreError(error.to_string())))?;
    if json {
        return console.print_json(&json!({"removed": name}));
    }
    console.print(format!("removed `{}`\n", one_line(&name, 80)))
}

fn unremembered(error: StoreError) -> Failure {
    RegisterError::NotRemembered(error.to_string()).into()
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

pub(super) fn switch(
    name: &str,
    to: Switch,
    json: bool,
    setup: &Setup,
    console: &mut Console,
) -> Result<(), Failure> {
    setup.registrations()?;
    let registration = find(&setup.haft, name)?;
    let (name, enabled) = (&registration.definition.name, to == Switch::On);
    let is_new = registration.enabled != enabled;
    if is_new {
        now(setup.haft.tools().set_enabled(name, enabled))??;
    }
    let done = if enabled { "enabled" } else { "disabled" };
    match (json, is_new) {
        (true, _) => console.print_json(&json!({"name": name, "enabled": enabled})),
        (false, true) => console.print(format!("{done} `{name}`\n")),
        (false, false) => console.print(format!("`{name}` is {done} already\n")),
    }
}

pub(super) fn config(args: &ConfigArgs, setup: &Setup, console: &mut Console) -> Result<(), Failure> {
    let registration = find(&setup.haft, &args.name)?;
    let name = registration.definition.name.as_str();
    let before = &*registration.settings;
    let after = if args.clear {
        Map::new()
    } else if let Some(text) = &args.json {
        object(text)?
    } else {
        with_pairs(before.clone(), &args.pairs)?
    };
    if after != *before {
        setup.registrations()?;
        now(setup.haft.tools().configure(name, after.clone()))??;
    }
    if after.is_empty() {
        return console.print(format!("`{name}` has no settings\n"));
    }
    let lines = after
        .iter()
        .map(|(key, value)| format!("{} = {}\n", one_line(key, 200), one_line(&value.to_string(), 4096)));
    console.print(lines.collect::<String>())
}

fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::NotJson { key: "--json".to_owned(), problem: error.to_string() })
}

/// The settings with these changed.
fn with_pairs(mut settings: Map<String, Value>, pairs: &[String]) -> Result<Map<String, Value>, Failure> {
    for pair in pairs {
        let not_a_pair = || Failure::NotAPair { pair: pair.clone() };
        let (key, text) = pair.split_once('=').ok_or_else(not_a_pair)?;
        let read = serde_json::from_str(text);
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => {
                let not_json = |error: serde_json::Error| Failure::NotJson {
                    key: key.to_owned(),
                    problem: error.to_string(),
                };
                (key, read.map_err(not_json)?)
            }
            None => (key, read.unwrap_or_else(|_| Value::from(text))),
        };
        if key.is_empty() {
            return Err(not_a_pair());
        }
        settings.insert(key.to_owned(), value);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_json_where_they_can_be() {
        let pairs = ["n=1", "on=true", "text=plain", "list=[1]", "quoted=\"1\"", "kept:={\"a\": null}"];
        let settings = with_pairs(Map::new(), &pairs.map(str::to_owned)).unwrap();
        let expected =
            json!({"n": 1, "on": true, "text": "plain", "list": [1], "quoted": "1", "kept": {"a": null}});
        assert_eq!(Value::from(settings), expected);
        for wrong in ["plain", "=1", "a:=b"] {
            assert!(with_pairs(Map::new(), &[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
