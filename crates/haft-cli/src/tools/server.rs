//! The tools of an MCP server: adding them, and keeping what is other about them until a person has looked at it.

use super::{
    super::{console::Console, failure::Failure, setup::Setup},
    args::ServerArgs,
    change::Adding,
};
use super::{
    super::{watch, words},
    change::{Taken, shown, take, written_out},
    taken::{is_of, remove_one},
};
use haft::{ToolDefinition, assembly::Signatures};
use haft_core::{McpSource, text::one_line};
use haft_guard::DefinitionChanges;
use haft_mcp::client::{Compared, Listing, Notice, Observer, compare};
use serde_json::json;
use std::path::Path;
use std::{path::PathBuf, sync::Arc};

/// Asks a server what it has, and adds that.
pub(super) fn add(
    name: &str,
    args: &ServerArgs,
    adding: Adding,
    setup: &Setup,
    working_folder: &Path,
    console: &mut Console,
) -> Result<(), Failure> {
    setup.registrations()?;
    let server = server(name, args, working_folder)?;
    let mut listing = ask(&server, setup)?;
    // One tool that cannot be used keeps nobody from the others.
    let mut unusable = Vec::new();
    listing.tools.retain(|name, definition| match haft_definition::check(definition).first() {
        None => true,
        Some(problem) => {
            unusable.push(format!("`{}`: {}", one_line(name, 80), one_line(&problem.to_string(), 300)));
            false
        }
    });
    listing.unusable.append(&mut unusable);
    for unusable in &listing.unusable {
        console.say(format!("note: left out: {unusable}"));
    }
    setup.haft.tools().bring_all()?;
    let known: Vec<_> =
        setup.haft.tools().all().into_iter().filter(|known| is_of(&known.definition, name)).collect();
    let definitions: Vec<ToolDefinition> = listing
        .tools
        .values()
        .map(|new| {
            let there = known.iter().find(|known| known.definition.name == new.name);
            there.map_or_else(|| new.clone(), |there| renewed(&there.definition, new, &listing))
        })
        .collect();
    let source = written_out(&definitions, working_folder);
    let shown = format!("the MCP server `{}`", one_line(name, 80));
    let taken = take(&shown, &definitions, &source, adding, setup)?;
    // Somebody who asks for the whole list again means all of it.
    let is_gone =
        |known: &&haft::Registration| !definitions.iter().any(|new| new.name == known.definition.name);
    let mut removed = Vec::new();
    for gone in known.iter().filter(is_gone) {
        removed.push(remove_one(&gone.definition.name, setup)?);
    }
    tell(&taken, &removed, &listing, adding, console)
}

fn tell(
    taken: &Taken,
    removed: &[String],
    listing: &Listing,
    adding: Adding,
    console: &mut Console,
) -> Result<(), Failure> {
    if adding.json {
        return console.print_json(&json!({
            "added": taken.added, "replaced": taken.replaced, "removed": removed, "leftOut": listing.unusable,
        }));
    }
    taken.tell(console)?;
    for name in removed {
        console.print(format!("removed `{name}`, which the server no longer has\n"))?;
    }
    if listing.tools.is_empty() {
        console.print("the server has no tools\n")?;
    }
    Ok(())
}

/// What a known tool is now: what the server says, and how it is reached from now on. What a person set stays.
fn renewed(there: &ToolDefinition, new: &ToolDefinition, listing: &Listing) -> ToolDefinition {
    let mut renewed = match compare(there, listing) {
        Compared::Same => there.clone(),
        Compared::Changed(changed) => *changed,
        Compared::Gone => new.clone(),
    };
    renewed.mcp.clone_from(&new.mcp);
    renewed
}

/// What was typed, as a server that is found from anywhere.
fn server(name: &str, args: &ServerArgs, working_folder: &Path) -> Result<McpSource, Failure> {
    let wrong = |what: String, help: &str| Failure::Mcp { what, help: help.to_owned() };
    let absolute = |path: &Path| {
        let path = working_folder.join(path);
        std::path::absolute(&path).unwrap_or(path)
    };
    let as_text = |path: PathBuf| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| wrong(format!("{} is not UTF-8", words::path(&path)), "use another folder"))
    };
    let mut server = McpSource::new(name, "");
    server.env.clone_from(&args.env);
    server.hosts.clone_from(&args.hosts);
    server.presets.clone_from(&args.presets);
    for file in &args.files {
        let path = absolute(file);
        if !path.exists() {
            let help = "--file names what the program reads, relative to this folder";
            return Err(wrong(format!("there is no {}", words::path(&path)), help));
        }
        server.files.push(as_text(path)?);
    }
    match (args.command.split_first(), &args.url) {
        (Some((program, rest)), _) => {
            // What is written as a path is one, and is found wherever haft is started.
            let placed = |word: &String| match word.starts_with("./") || word.starts_with("../") {
                true => as_text(absolute(Path::new(word))),
                false => Ok(word.clone()),
            };
            let placed_program = match program.contains('/') {
                true => as_text(absolute(Path::new(program)))?,
                false => program.clone(),
            };
            if program.contains('/') && !Path::new(&placed_program).is_file() {
                let what = format!("there is no program {}", words::path(Path::new(&placed_program)));
                return Err(wrong(what, "name it relative to this folder, or by its name in PATH"));
            }
            server.program = Some(placed_program);
            server.args = rest.iter().map(placed).collect::<Result<_, _>>()?;
            // Somebody who names a file beside the program means that it is read.
            let named = rest.iter().zip(&server.args).filter(|(typed, placed)| typed != placed);
            let named: Vec<String> = named.map(|(_, placed)| placed.clone()).collect();
            server.files.extend(named.into_iter().filter(|path| Path::new(path).exists()));
        }
        (None, Some(url)) => {
            server.url = Some(url.clone());
            for header in &args.headers {
                let (name, value) = header.split_once(':').ok_or_else(|| {
                    let what = format!("`{}` is not a header", one_line(header, 80));
                    wrong(what, "write it like --header 'Authorization: env:TOKEN'")
                })?;
                server.headers.insert(name.trim().to_owned(), value.trim().to_owned());
            }
        }
        (None, None) => {
            let what = format!("the MCP server `{}` needs a program or a URL", one_line(name, 80));
            return Err(wrong(
                what,
                "`haft tools add --mcp NAME -- PROGRAM ARGS…`, or `haft tools add --mcp NAME --url URL`",
            ));
        }
    }
    // The same rules as for a definition; the tool's own name is the server's to say.
    let mut probe = ToolDefinition::new("probe", "Looks whether the server is well described");
    probe.source = haft::Source::Mcp;
    probe.mcp = Some(Box::new(McpSource { tool: "probe".to_owned(), ..server.clone() }));
    match probe.check().first() {
        Some(problem) => Err(wrong(format!("{}: {}", problem.place, problem.problem), &problem.fix)),
        None => Ok(server),
    }
}

/// Begins the server, hears what it has, and ends it.
fn ask(server: &McpSource, setup: &Setup) -> Result<Listing, Failure> {
    let runtime = watch::runtime()?;
    let stopped = || Failure::Mcp {
        what: "cancelled before the server listed its tools".to_owned(),
        help: "haft added nothing".to_owned(),
    };
    let listing = runtime.block_on(async {
        let mut signals = watch::Signals::new().map_err(Failure::Runtime)?;
        tokio::select! {
            listing = setup.haft.upstreams().discover(server) => listing
                .map_err(|error| Failure::Upstream { name: server.server.clone(), error: Box::new(error) }),
            _ = signals.next() => Err(stopped()),
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    listing
}

/// Keeps what is other about the tools of a server until a person has accepted it.
pub(crate) fn keep_differences(
    haft: &haft::Haft,
    signatures: &Arc<Signatures>,
    console: &Console,
) -> Observer {
    let (engine, signatures, console) = (haft.downgrade(), Arc::clone(signatures), console.again());
    Arc::new(move |notice: &Notice| {
        if let Some(engine) = engine.upgrade() {
            for (names, withdrawn) in [(&notice.gone, true), (&notice.there, false)] {
                // One that somebody removed meanwhile is gone anyway.
                names.iter().for_each(|name| drop(engine.tools().set_withdrawn(name, withdrawn)));
            }
        }
        let changed = notice.changed.iter().map(|(accepted, proposed)| {
            (proposed, "changed", format!(":\n{}", shown(&DefinitionChanges::between(accepted, proposed))))
        });
        let new = notice
            .new
            .iter()
            .map(|proposed| (proposed, "is new", format!(": {}", one_line(&proposed.description, 300))));
        for (proposed, what, difference) in changed.chain(new) {
            let source = written_out(std::slice::from_ref(proposed), Path::new("/"));
            let name = &proposed.name;
            // Said once. What waits stays until a person has settled it: what they accept is what they read.
            if !matches!(signatures.proposed(name), Ok(None)) {
                continue;
            }
            let server = one_line(&notice.server, 80);
            match signatures.propose(name, &source) {
                Ok(()) => console.warn(&format!(
                    "`{name}` of the MCP server `{server}` {what}, and is not used until you run `haft tools accept \
                     {name}`{difference}"
                )),
                Err(error) => console.warn(&format!("`{name}` {what}, and haft cannot store that: {error}")),
            }
        }
    })
}
