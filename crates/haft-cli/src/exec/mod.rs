//! `haft exec`: any program in a jail, connected to the terminal.
//!
//! It is an ordinary call of a tool that only this command has: planned, contained, journalled, settled. What the person
//! types beside it is what an operator could configure: it widens what is granted for this one program.

mod agents;
mod attach;
mod own_folder;
mod program;
mod tool;

use super::{
    console::Console,
    exec_args::ExecArgs,
    failure::Failure,
    help, hook,
    setup::{CliContext, Setup},
    show, watch,
};
use agents::Agent;
use attach::Attached;
use haft::{
    AskCommands, CallOptions, CancelReason, CommandWrites, ErrorCode, ExecutionId, Request, Target, ToolCall,
    ToolResult, TypedTool as _,
    config::{Config, Profile, Surroundings},
    typed,
};
use haft_core::text::people_text;
use program::Program;
use serde_json::json;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use tool::ExecProgram;

/// Where programs are where nobody says.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// CPU seconds of a program that somebody sits in front of: more than a month of all cores of most machines.
const CPU_SECONDS: u64 = 1 << 30;
/// Processes and threads, where more are not configured.
const PROCESSES: u64 = 4096;
/// How often it is asked whether another process wants the program to stop.
const LOOK: Duration = Duration::from_millis(300);

pub(super) fn run(args: &ExecArgs, mut ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    if let Some(profile) = args.profile {
        ground.global.settings.push(("policy.profile".to_owned(), profile.as_str().to_owned()));
    }
    let started_in = ground.surroundings.working_folder.clone();
    if let Some(id) = &args.ticket {
        // What was decided about holds for the project, wherever in it the host's shell stands.
        ground.surroundings.working_folder = take_ticket(id, args, &ground)?;
    }
    let surroundings = ground.surroundings.clone();
    let found = find(args, &surroundings)?;
    let agent = agents::of(&args.program[0]).filter(|_| !args.no_preset);
    let folder = agent.map(|agent| prepare(agent, &surroundings, console)).transpose()?;
    let environment = environment(args, agent, folder.as_deref(), &surroundings)?;
    let configured = ground.configured(console)?;
    let tool = ExecProgram {
        attached: Arc::new(Attached::here()),
        environment,
        readable: found.readable,
        starts_in: args.ticket.as_ref().map(|_| started_in),
        isolation: configured.resolved.config.tools.commands.isolation,
    };
    ground.tools.push(Box::new(typed(tool)));
    let is_read_only = args.profile == Some(Profile::ReadOnly);
    let setup = ground.setup_with_config(console, configured, |config| {
        grant(config, args, agent, folder);
        if is_read_only {
            read_only(config);
        }
    })?;
    let argv = argv(args, agent, &found.path);
    let runtime = watch::runtime()?;
    let result = runtime.block_on(execute(&setup, argv, console));
    runtime.shutdown_background();
    let code = say(&setup, &result, console);
    setup.end(console)?;
    Ok(code)
}

/// Takes the ticket that `haft hook` made for this very command, and gives the project that it was made for.
fn take_ticket(id: &str, args: &ExecArgs, ground: &CliContext) -> Result<PathBuf, Failure> {
    let state = ground.surroundings()?.state_folder().ok_or(Failure::NoStateFolder)?;
    let now = jiff::Timestamp::now().as_second();
    Ok(hook::take_ticket(&state, id, &args.program, now)?.folder)
}

/// Where the program is, or what to do where it is not.
fn find(args: &ExecArgs, surroundings: &Surroundings) -> Result<Program, Failure> {
    let name = &args.program[0];
    let path = surroundings.env.iter().find(|(variable, _)| variable == "PATH");
    let path = path.map_or_else(|| USUAL_PATH.into(), |(_, value)| value.clone());
    program::find(name, &surroundings.working_folder, &path)
        .ok_or_else(|| Failure::NoProgram { name: name.clone() })
}

/// Makes an agent's own folder ready, and says what is different in a jail.
fn prepare(agent: &Agent, surroundings: &Surroundings, console: &Console) -> Result<PathBuf, Failure> {
    let data = surroundings.data_folder().ok_or(Failure::NoStateFolder)?;
    let folder = agent
        .prepare(&data, surroundings.home.as_deref())
        .map_err(|reason| Failure::CannotWrite { path: data.join("haft/agents"), reason })?;
    console.note(&format!(
        "{} keeps its sessions and its login in {}; its own sandbox is off, because haft's jail is around it",
        agent.program,
        folder.display()
    ));
    Ok(folder)
}

/// Variables that the program gets besides those that every program gets.
fn environment(
    args: &ExecArgs,
    agent: Option<&Agent>,
    folder: Option<&std::path::Path>,
    surroundings: &Surroundings,
) -> Result<BTreeMap<String, String>, Failure> {
    let value = |name: &str| {
        let (_, value) = surroundings.env.iter().find(|(variable, _)| variable == name)?;
        value.to_str().map(str::to_owned)
    };
    let mut all = BTreeMap::new();
    if let (Some(agent), Some(folder)) = (agent, folder) {
        let own = agent
            .folders
            .iter()
            .map(|(name, below)| ((*name).to_owned(), folder.join(below).to_string_lossy().into_owned()));
        let set = agent.set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let passed = agent.variables.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?)));
        all.extend(own.chain(set).chain(passed));
    }
    for asked in &args.env {
        let (name, value) = match asked.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&**asked, value(asked)),
        };
        let value = value.ok_or_else(|| Failure::NoVariable { name: name.to_owned() })?;
        all.insert(name.to_owned(), value);
    }
    Ok(all)
}

/// What the person who typed the command grants to this one program.
fn grant(config: &mut Config, args: &ExecArgs, agent: Option<&Agent>, folder: Option<PathBuf>) {
    let (commands, files) = (&mut config.tools.commands, &mut config.tools.files);
    let hosts = agent.map(|agent| agent.hosts).unwrap_or_default();
    commands.hosts.extend(hosts.iter().map(|host| (*host).to_owned()));
    commands.hosts.extend(args.host.iter().cloned());
    commands.memory_bytes = args.memory;
    commands.cpu_seconds = CPU_SECONDS;
    commands.processes = commands.processes.max(PROCESSES);
    files.allowed_roots.extend(args.write.iter().cloned().chain(folder));
    files.read_only_roots.extend(args.read.iter().cloned());
    let unprotected = agent.map(|agent| agent.unprotected).unwrap_or_default();
    files.unprotected_names.extend(unprotected.iter().map(|name| (*name).to_owned()));
    // The person who would be asked about it typed it. A rule or a list that denies it still does.
    config.tools.approval.allowlist.push(ExecProgram::NAME.to_owned());
    if args.staged {
        commands.writes = CommandWrites::Staged;
        commands.ask = AskCommands::Effects;
    }
}

/// Nothing can be written but scratch space.
fn read_only(config: &mut Config) {
    let files = &mut config.tools.files;
    let writable = std::mem::take(&mut files.allowed_roots);
    files.read_only_roots.extend(writable);
}

/// The program as it was found, with its arguments.
fn argv(args: &ExecArgs, agent: Option<&Agent>, path: &std::path::Path) -> Vec<String> {
    let before = agent.map(|agent| agent.arguments).unwrap_or_default();
    let typed = args.program.iter().skip(1).cloned();
    let before = before.iter().map(|argument| (*argument).to_owned());
    [path.to_string_lossy().into_owned()].into_iter().chain(before).chain(typed).collect()
}

/// Runs the program to its end.
async fn execute(setup: &Setup, argv: Vec<String>, console: &Console) -> ToolResult {
    let id = ExecutionId::at(jiff::Timestamp::now());
    let call = ToolCall::new(ExecProgram::NAME, json!({"argv": argv}));
    let shown = setup.show_running(Target::Call(id), &[(call.name.to_string(), String::new())]);
    let mut request = Request::new(call)
        .options(CallOptions { execution_id: Some(id), attended: true, ..CallOptions::default() })
        .context(setup.caller(None));
    // About the program nobody is asked; about what it changed, maybe.
    request.approver = setup.approver(None, console);
    let mut running = std::pin::pin!(setup.haft.execute(request));
    loop {
        tokio::select! {
            result = &mut running => return result,
            () = tokio::time::sleep(LOOK) => {
                if shown.as_ref().is_some_and(crate::live_runs::Shown::is_to_stop) {
                    setup.haft.cancel(Target::Call(id), CancelReason::User, Some("stopped by `haft runs cancel`"));
                }
            }
        }
    }
}

/// Says on standard error what is worth knowing, and gives the exit code: the program's own where it ended by itself.
fn say(setup: &Setup, result: &ToolResult, console: &Console) -> u8 {
    for line in show::violations(result) {
        console.warn(&line);
    }
    let code = |name: &str| {
        let data =
            result.error.as_ref().filter(|error| error.code == ErrorCode::NonZeroExit)?.data.as_ref()?;
        data.get(name)?.as_u64()
    };
    let ended = code("exitCode").or_else(|| code("signal").map(|signal| 128 + signal));
    let text = match &result.error {
        None => show::text(result),
        Some(_) => show::output_before_failure(result),
    };
    if !text.trim().is_empty() {
        console.say(text.trim_end());
    }
    match (&result.error, ended) {
        (None, _) => 0,
        (Some(_), Some(code)) => u8::try_from(code).unwrap_or(u8::MAX),
        (Some(error), None) => {
            // About changes that wait, the message itself says what can be done.
            let help = result.metadata.changes.is_none().then(|| help::for_result(setup, result)).flatten();
            console.error(&people_text(&error.message), help.as_deref());
            result.exit_code()
        }
    }
}
