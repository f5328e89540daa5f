//! Taking what waits to be accepted, and removing: one tool, or all of an MCP server.

use super::{
    super::{
        console::Console,
        failure::Failure,
        setup::{Setup, now},
    },
    change::{keep, shown, unremembered},
    find,
};
use haft::{Tool, ToolDefinition, assembly::Source};
use haft_core::{
    port::{Registrations as _, StoreError, ToolShelf as _},
    text::{one_line, people_text},
};
use haft_guard::DefinitionChanges;
use serde_json::json;
use std::sync::Arc;

/// One tool, or those of an MCP server.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    Tool(&'a str),
    Server(&'a str),
}

impl<'a> Wanted<'a> {
    pub(super) fn of(name: Option<&'a str>, server: Option<&'a str>) -> Self {
        match server {
            Some(server) => Wanted::Server(server),
            None => Wanted::Tool(name.unwrap_or_default()),
        }
    }
}

/// Whether a definition is one of a tool of that server.
pub(super) fn is_of(definition: &ToolDefinition, server: &str) -> bool {
    definition.mcp.as_ref().is_some_and(|mcp| mcp.server == server)
}

/// Takes the changed and new definitions that wait for it.
pub(super) fn accept(
    wanted: Wanted<'_>,
    taking: Taking,
    json: bool,
    setup: &Setup,
    console: &mut Console,
) -> Result<(), Failure> {
    setup.registrations()?;
    let unreadable = |error: std::io::Error| unremembered(StoreError(error.to_string()));
    let waiting: Vec<(String, Source)> = match wanted {
        Wanted::Tool(name) => {
            let known = setup.haft.tools().get(name).map(|known| known.definition.name.clone());
            let name = known.unwrap_or_else(|| name.to_owned());
            match setup.signatures.proposed(&name).map_err(unreadable)? {
                Some(source) => vec![(name, source)],
                None => {
                    find(&setup.haft, &name)?;
                    return Err(Failure::NothingToAccept { name });
                }
            }
        }
        Wanted::Server(server) => {
            let mut all = setup.signatures.all_proposed().map_err(unreadable)?;
            let is_its = |name: &str, source: &Source| {
                let definitions = source.definitions().unwrap_or_default();
                definitions.iter().any(|definition| definition.name == name && is_of(definition, server))
            };
            all.retain(|(name, source)| is_its(name, source));
            if all.is_empty() {
                return Err(Failure::NothingToAccept { name: server.to_owned() });
            }
            all
        }
    };
    let mut told = Vec::new();
    for (name, source) in &waiting {
        let Waiting { tool, changes } = waiting_one(name, source, setup)?;
        let definition = Arc::clone(tool.definition());
        let (key, done) = match taking {
            Taking::Take => {
                match changes {
                    Some(_) => now(setup.haft.tools().replace(tool, &setup.owner))??,
                    None => now(setup.haft.tools().add(tool, &setup.owner))??,
                };
                keep(name, source, setup)?;
                ("accepted", "accepted")
            }
            Taking::Show => ("waiting", "waits to be accepted:"),
        };
        if json {
            let changes = changes.as_ref().map(|changes| &changes.changes);
            told.push(json!({key: name, "changes": changes, "definition": *definition}));
        } else {
            console.print(match &changes {
                Some(changes) => format!("{done} `{name}`:\n{}\n", shown(changes)),
                None => {
                    let description = people_text(&definition.description).into_owned();
                    format!("{done} the new `{name}`: {}\n", one_line(&description, 1000))
                }
            })?;
        }
    }
    match (json, wanted, told.pop()) {
        (false, ..) => Ok(()),
        (true, Wanted::Tool(_), Some(one)) => console.print_json(&one),
        (true, _, last) => {
            told.extend(last);
            console.print_json(&told)
        }
    }
}

/// A definition that waits, as a tool. No changes where there is no tool of that name yet.
struct Waiting {
    tool: Box<dyn Tool>,
    changes: Option<DefinitionChanges>,
}

fn waiting_one(name: &str, source: &Source, setup: &Setup) -> Result<Waiting, Failure> {
    let refused = |problem| Failure::BadSignature { name: format!("the new `{name}`"), problem };
    let admitted = setup.signatures.admit(source).map_err(refused)?;
    let new = admitted.definitions.into_iter().find(|definition| definition.name == name);
    let new = new.ok_or_else(|| Failure::NothingToAccept { name: name.to_owned() })?;
    let tool = setup.maker().make(new).map_err(|problem| Failure::BadDefinitions {
        name: format!("`{name}`"),
        list: format!("  {}", one_line(&problem, 1000)),
    })?;
    let known = setup.haft.tools().get(name);
    let changes = known.map(|known| DefinitionChanges::between(&known.definition, tool.definition()));
    Ok(Waiting { tool, changes })
}

/// Whether what waits is taken, or only looked at.
#[derive(Clone, Copy)]
pub(super) enum Taking {
    Take,
    Show,
}

pub(super) fn remove(
    wanted: Wanted<'_>,
    json: bool,
    setup: &Setup,
    console: &mut Console,
) -> Result<(), Failure> {
    let server = match wanted {
        Wanted::Tool(name) => {
            let name = remove_one(name, setup)?;
            return match json {
                true => console.print_json(&json!({"removed": name})),
                false => console.print(format!("removed `{}`\n", one_line(&name, 80))),
            };
        }
        Wanted::Server(server) => server,
    };
    let remembered = now(setup.registrations()?.load())?.map_err(unremembered)?;
    let its = remembered
        .into_iter()
        .filter(|known| known.definition.as_deref().is_some_and(|definition| is_of(definition, server)));
    let names: Vec<String> = its.map(|known| known.name).collect();
    for name in &names {
        remove_one(name, setup)?;
    }
    forget_waiting(server, setup)?;
    if names.is_empty() {
        return Err(Failure::NoServer { name: server.to_owned() });
    }
    if json {
        return console.print_json(&json!({"removed": names}));
    }
    names.iter().try_for_each(|name| console.print(format!("removed `{}`\n", one_line(name, 80))))
}

/// What waits of a server that is gone waits no more.
fn forget_waiting(server: &str, setup: &Setup) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| unremembered(StoreError(error.to_string()));
    for (name, source) in setup.signatures.all_proposed().map_err(unreadable)? {
        if source.definitions().unwrap_or_default().iter().any(|definition| is_of(definition, server)) {
            setup.signatures.settle(&name).map_err(unreadable)?;
        }
    }
    Ok(())
}

/// Removes a tool, and gives its name.
pub(super) fn remove_one(name: &str, setup: &Setup) -> Result<String, Failure> {
    let registrations = setup.registrations()?;
    let name = match find(&setup.haft, name) {
        Ok(registration) => {
            let name = registration.definition.name.clone();
            now(setup.haft.tools().remove(&name))??;
            name
        }
        // What is remembered may not have come back: then there is no tool, and still something to forget.
        Err(not_there) => {
            let known = registrations.find(&name.to_ascii_lowercase())?;
            let known = known.filter(|known| known.name.eq_ignore_ascii_case(name)).ok_or(not_there)?;
            now(registrations.remove(&known.name))?.map_err(unremembered)?;
            known.name
        }
    };
    let forgotten = setup.signatures.forget_all(&name);
    forgotten.map_err(|error| unremembered(StoreError(error.to_string())))?;
    Ok(name)
}
