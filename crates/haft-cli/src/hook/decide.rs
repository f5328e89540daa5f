//! The engine, asked about one call of a host: before it runs, and after.

use super::{
    HookArgs,
    event::{Event, Protocol, Verdict},
    host_tool::{HostTool, RESULT},
    map::{Foreign, Mapped},
    ticket::{self, Settled, Wanted},
};
use crate::{
    console::Console,
    failure::Failure,
    hosts::{Host, command_line, digest},
    setup::{CliContext, Setup},
    waiting::Elsewhere,
};
use haft::{
    ApprovalRequest, CallContext, Channel, Decision, Request, Status, ToolCall, ToolResult,
    port::{Approver, BoxFuture, GuardError},
};
use haft_core::text::{one_line, truncate};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The most of a tool's output that is recorded.
const MOST_OUTPUT: usize = 64 << 10;
/// How long a command in the background has for taking its ticket.
const PATIENCE: Duration = Duration::from_secs(3);

/// Decides about a call that the host is about to run.
pub(super) fn before(
    args: &HookArgs,
    event: &Event,
    protocol: &Protocol,
    state: &Path,
    ground: CliContext,
    console: &Console,
) -> Result<Verdict, Failure> {
    let mapped = (protocol.map)(event);
    let setup = engine(event, ground, console)?;
    // A question of the host's would come without the changed command.
    let rewrites = args.exec && matches!(mapped, Mapped::Command(_));
    let host_asks = event.asks && !rewrites && setup.haft.settings().accept_answers.counts(Channel::Mcp);
    let asking = Arc::new(HostAsks::default());
    let approver: Arc<dyn Approver> = match host_asks {
        true => Arc::clone(&asking) as _,
        false => Arc::new(Elsewhere { wait: args.flags.wait(), console: console.again() }),
    };
    let call = call(&setup, args.host, event, &mapped)?;
    let request = Request::new(call).context(caller(&setup, args.host, event)).approver(approver);
    let result = now(setup.haft.decide(request))?;
    setup.end(console)?;
    if result.status != Status::Success {
        return Ok(Verdict::Deny(refusal(&result)));
    }
    let input = match (args.exec, mapped, protocol.rewritten) {
        (true, Mapped::Command(arguments), Some(rewritten)) => {
            let line = through_exec(args, event, state, &arguments)?;
            Some(rewritten(event, &line))
        }
        (true, Mapped::Command(_), None) => {
            let title = args.host.title();
            return Ok(Verdict::Deny(format!(
                "{title} does not let haft change a command, so it cannot run in a jail"
            )));
        }
        _ => None,
    };
    Ok(match asking.reason() {
        Some(why) => Verdict::Ask(why),
        None => Verdict::Allow { input, is_final: args.flags.allow },
    })
}

/// Records what a call gave, and looks whether it ran as it was decided.
pub(super) fn after(
    args: &HookArgs,
    event: &Event,
    protocol: &Protocol,
    state: &Path,
    ground: CliContext,
    console: &Console,
) -> Result<Verdict, Failure> {
    let is_command = matches!((protocol.map)(event), Mapped::Command(_));
    let alarm = match args.exec && is_command {
        true => alarm(args.host, event, state)?,
        false => None,
    };
    if let Some(why) = &alarm {
        ticket::block(state, args.host, &event.session, why).map_err(|reason| Failure::Unreadable {
            name: "the list of blocked sessions".to_owned(),
            reason,
        })?;
    }
    let text = match &event.output {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    };
    let text = truncate(&text, MOST_OUTPUT, None).text.into_owned();
    let gave = match (&alarm, event.failed) {
        (Some(why), _) => Err(why.clone()),
        (None, true) => Err(text.clone()),
        (None, false) => Ok(text.clone()),
    };
    let setup = engine(event, ground, console)?;
    setup.haft.register(HostTool::result(args.host.title(), gave))?;
    let arguments = json!({"host": args.host.name(), "tool": event.tool, "call": event.call});
    let request = Request::new(ToolCall::new(RESULT, arguments)).context(caller(&setup, args.host, event));
    let result = now(setup.haft.execute(request))?;
    setup.end(console)?;
    Ok(match alarm {
        Some(why) => Verdict::Alarm(why),
        None => Verdict::Noted(secret(event, &text, &result)),
    })
}

/// That a secret is in what a tool gave: the host has it already, and its model sees it.
fn secret(event: &Event, text: &str, result: &ToolResult) -> Option<String> {
    let recorded = match &result.error {
        None => result.text(),
        Some(_) => return None,
    };
    (recorded.trim_end() != text.trim_end() && !result.metadata.output_truncated).then(|| {
        format!(
            "haft: the output of {} has a secret in it (a key or token). haft's record leaves it out; this host does \
             not. Do not repeat it, and do not send it anywhere",
            one_line(&event.tool, 80)
        )
    })
}

/// Why a command that ran must not have run so, if it must not.
fn alarm(host: Host, event: &Event, state: &Path) -> Result<Option<String>, Failure> {
    let wanted = wanted(host, event);
    let settled = ticket::settle(state, &wanted, PATIENCE)
        .map_err(|reason| Failure::Unreadable { name: "the ticket of this command".to_owned(), reason })?;
    Ok(match settled {
        Settled::Taken => None,
        Settled::NotTaken => {
            Some("a command ran past haft: the host did not take the changed command".to_owned())
        }
        Settled::Missing => Some("a command ran that haft had not allowed".to_owned()),
    })
}

fn wanted(host: Host, event: &Event) -> Wanted<'_> {
    Wanted { host, session: &event.session, call: &event.call, folder: &event.folder }
}

/// The engine of the host's project.
fn engine(event: &Event, mut ground: CliContext, console: &Console) -> Result<Setup, Failure> {
    ground.surroundings.working_folder.clone_from(&event.folder);
    ground.setup_for_calls(console)
}

/// The host's session is the conversation.
fn caller(setup: &Setup, host: Host, event: &Event) -> Arc<CallContext> {
    let short = |text: &str| match text.chars().count() > 100 || text.chars().any(char::is_control) {
        true => digest(text.as_bytes())[..16].to_owned(),
        false => text.to_owned(),
    };
    let name: Arc<str> = format!("{}/{}", host.name(), short(&event.session)).into();
    Arc::new(CallContext {
        conversation: Some(Arc::clone(&name)),
        session: Some(name),
        correlation_id: Some(short(&event.call)).filter(|call| !call.is_empty()).map(Into::into),
        ..CallContext::clone(&setup.owner)
    })
}

/// The call as haft has it. A tool that only the host has is made known for it.
fn call(setup: &Setup, host: Host, event: &Event, mapped: &Mapped) -> Result<ToolCall, Failure> {
    let (tool, arguments) = match mapped {
        Mapped::Known(tool, arguments) => ((*tool).to_owned(), arguments.clone()),
        Mapped::Command(arguments) => ("run_command".to_owned(), arguments.clone()),
        Mapped::Foreign(foreign) => {
            let name = free_name(setup, foreign);
            setup.haft.register(HostTool::new(&name, host.title(), foreign))?;
            (name, foreign.arguments.clone())
        }
    };
    let mut call = ToolCall::new(tool.as_str(), arguments);
    call.id = one_line(&event.call, 100).into();
    Ok(call)
}

/// The host's name for it, where no tool of haft's has that.
fn free_name(setup: &Setup, foreign: &Foreign) -> String {
    match setup.haft.definition(&foreign.name) {
        None => foreign.name.clone(),
        Some(_) => format!("host_{}", foreign.name),
    }
}

/// The command that runs the host's through `haft exec`, with a ticket for it.
fn through_exec(args: &HookArgs, event: &Event, state: &Path, arguments: &Value) -> Result<String, Failure> {
    let line = arguments["command"].as_str().unwrap_or_default();
    let words = ["bash".to_owned(), "-c".to_owned(), line.to_owned()];
    let id = ticket::make(state, &wanted(args.host, event), &words, jiff::Timestamp::now().as_second())
        .map_err(|reason| Failure::CannotWrite { path: state.join("hook/tickets"), reason })?;
    let program = std::env::current_exe()
        .map_err(|reason| Failure::Unreadable { name: "the path of this program".to_owned(), reason })?;
    let mut all = vec!["exec".to_owned(), "--ticket".to_owned(), id, "--".to_owned()];
    all.extend(words);
    Ok(command_line(&program.to_string_lossy(), &all))
}

/// Why a call does not run, for the model.
fn refusal(result: &ToolResult) -> String {
    let why = result.error.as_ref().map_or("it was not allowed", |error| error.message.as_str());
    format!("haft: {why}")
}

/// The host asks its own person: what haft would have asked goes there.
#[derive(Default)]
struct HostAsks(Mutex<Option<String>>);

impl HostAsks {
    fn reason(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for HostAsks {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move {
            let reason = requests.first().map(|request| {
                format!("haft: {} ({})", one_line(&request.reason, 300), one_line(&request.summary, 300))
            });
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
            Ok(vec![Decision::Approve; requests.len()])
        })
    }

    fn channel(&self) -> Channel {
        Channel::Mcp
    }
}

/// What a future gives, on this thread: a hook is over in milliseconds.
fn now<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    let value = runtime.block_on(future);
    runtime.shutdown_background();
    Ok(value)
}
