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
use haft::{CommandTool, RegisterError, ToolDefinition, assembly::Source};
use haft_core::{
    DefinitionProblem,
    port::StoreError,
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
    let taken = take(&name, &definitions, &source, adding, setup)?;
    for definition in &definitions {
        for note in haft_definition::dialect_notes(definition) {
            console.say(format!("note: {}: {note}", definition.name));
        }
    }
    if adding.json {
        return console.print_json(&json!({"added": taken.added, "replaced": taken.replaced}));
    }
    taken.tell(console)?;
    if definitions.iter().all(ToolDefinition::says_what_runs) {
        return Ok(());
    }
    console.print(
        "\nA definition without a program or URL cannot run here; with tools.mode = \"parse_only\" a program supplies its \
         results.\n",
    )
}

/// What became of definitions.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) added: Vec<String>,
    pub(super) replaced: Vec<String>,
}

impl Taken {
    pub(super) fn tell(&self, console: &mut Console) -> Result<(), Failure> {
        for (what, names) in [("added", &self.added), ("replaced", &self.replaced)] {
            for name in names {
                console.print(format!("{what} `{name}`\n"))?;
            }
        }
        Ok(())
    }
}

/// Adds tools, all of them or none: what can be known beforehand is looked at before the first is added.
pub(super) fn take(
    name: &str,
    definitions: &[ToolDefinition],
    source: &Source,
    adding: Adding,
    setup: &Setup,
) -> Result<Taken, Failure> {
    let admitted = setup.signatures.admit(source);
    admitted.map_err(|problem| Failure::BadSignature { name: name.to_owned(), problem })?;
    let maker = setup.maker();
    let mut tools = Vec::with_capacity(definitions.len());
    for definition in definitions {
        may_add(definition, adding, setup)?;
    }
    for definition in definitions {
        let tool = maker.make(definition.clone()).map_err(|problem| Failure::BadDefinitions {
            name: name.to_owned(),
            list: format!("  {}", one_line(&problem, 1000)),
        })?;
        is_as_it_was(tool.definition(), source, setup)?;
        tools.push((tool, setup.haft.tools().exists(&definition.name)));
    }
    let mut taken = Taken::default();
    for (definition, (_, replaces)) in definitions.iter().zip(&tools) {
        let names = if *replaces { &mut taken.replaced } else { &mut taken.added };
        names.push(definition.name.clone());
    }
    now(setup.haft.tools().take(tools, &setup.owner))??;
    for definition in definitions {
        keep(&definition.name, source, setup)?;
    }
    Ok(taken)
}

/// What a list in another dialect comes to, as haft writes it: nobody has signed that.
pub(super) fn written_out(definitions: &[ToolDefinition], folder: &Path) -> Source {
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
pub(super) fn shown(changes: &DefinitionChanges) -> String {
    let text = people_text(&changes.to_string()).into_owned();
    let lines = text.trim_end().lines().skip(1);
    lines
        .map(|line| one_line(line.trim_end(), 2000))
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Keeps what a tool was added from, as far as that is needed again.
pub(super) fn keep(name: &str, source: &Source, setup: &Setup) -> Result<(), Failure> {
    let kept = setup.signatures.remember(name, source).and_then(|()| setup.signatures.settle(name));
    kept.map_err(|error| unremembered(StoreError(error.to_string())))
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

pub(super) fn unremembered(error: StoreError) -> Failure {
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
