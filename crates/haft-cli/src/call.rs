//! `haft call`: one tool, once.

use super::{
    call_args::CallArgs,
    console::Console,
    failure::Failure,
    help,
    input::Input,
    pairs,
    setup::{CliContext, Setup},
    show::{self, Sheet},
    watch::{self, Ended, Watch},
};
use haft::{
    Arguments, BatchOptions, BatchRequest, CallOptions, Decision, ExecutionId, IsolationLevel, Plan, Preview,
    Request, Target, ToolCall, ToolResult, ask_with, port::AuditRecord,
};
use haft_core::text::people_text;
use serde_json::{Value, json};
use std::{io::IsTerminal as _, path::Path, sync::Arc};

pub(super) fn run(args: &CallArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let working_folder = ground.surroundings.working_folder.clone();
    #[cfg(unix)]
    let detach = args.detach.then(|| detached(&ground)).transpose()?;
    let setup = match args.way.dry_run {
        true => ground.setup(console)?,
        false => ground.setup_for_calls(console)?,
    };
    let call = call(args, &setup, &working_folder)?;
    let options = CallOptions {
        execution_id: Some(ExecutionId::at(jiff::Timestamp::now())),
        isolation: args.isolation.map(IsolationLevel::from),
        isolation_technology: args.jail.unwrap_or_default(),
        coerce: args.no_coerce.then_some(false),
        ..CallOptions::default()
    };
    let options = args.timing.options(&setup, options);
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(async {
        #[cfg(unix)]
        if let Some(detach) = &detach {
            let caller = setup.caller(args.way.conversation.as_deref());
            return super::detach::run(detach, &setup, call, caller, options, args.json, console).await;
        }
        match args.way.dry_run {
            true => plan(args, &setup, call, options, console).await,
            false => execute(args, &setup, call, options, console).await,
        }
    });
    // A tool may have left a thread behind; nobody waits for it.
    runtime.shutdown_background();
    setup.end(console)?;
    ended
}

/// What handing a call over needs to know, before the engine is made.
#[cfg(unix)]
fn detached(ground: &CliContext) -> Result<super::detach::Detach, Failure> {
    use super::worker::{Starter, Whence};
    let state = ground.surroundings()?.state_folder().ok_or(Failure::NoStateFolder)?;
    Ok(super::detach::Detach { starter: Starter::of(ground, &state)?, whence: Whence::of(ground), state })
}

fn call(args: &CallArgs, setup: &Setup, working_folder: &Path) -> Result<ToolCall, Failure> {
    let mut input = Input::default();
    let arguments = match args.args.as_deref() {
        Some("-") => Arguments::from_text(input.stdin()?),
        Some(text) => Arguments::from_text(text),
        None => {
            let definition = setup.haft.definition(&args.tool);
            let schema = definition.map(|definition| definition.parameters.to_schema());
            pairs::arguments(&args.pairs, schema.as_ref(), |path| input.text(path, working_folder))?
        }
    };
    let mut call = ToolCall::new(args.tool.as_str(), arguments);
    call.id = args.id.as_deref().unwrap_or_default().into();
    call.metadata = args.metadata.clone().map(Into::into);
    call.idempotency_key = args.idempotency_key.as_deref().map(Into::into);
    Ok(call)
}

async fn execute(
    args: &CallArgs,
    setup: &Setup,
    call: ToolCall,
    options: CallOptions,
    console: &mut Console,
) -> Result<u8, Failure> {
    // Always set by `run`; with a new one, the call would merely not be watched.
    let id = options.execution_id.unwrap_or_else(|| ExecutionId::at(jiff::Timestamp::now()));
    let calls = vec![(call.name.to_string(), call.id.to_string())];
    let shown = setup.show_running(Target::Call(id), &calls);
    let what = Watch { target: Target::Call(id), calls, events: args.way.events, shown };
    let mut request =
        Request::new(call).options(options).context(setup.caller(args.way.conversation.as_deref()));
    request.approver = setup.approver(args.way.wait, console);
    let form = match args.for_model {
        Some(chars) => Form::ForModel(chars),
        None => Form::of(args.json),
    };
    run_request(setup, request, what, form, console).await
}

/// How a result is printed.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// For a person.
    People,
    /// As one JSON document.
    Json,
    /// As the block of text for a model's context, with so many characters of content.
    ForModel(usize),
}

impl Form {
    /// As the switch `--json` says.
    pub(super) fn of(json: bool) -> Self {
        if json { Form::Json } else { Form::People }
    }
}

/// Runs one call and shows how it ended.
pub(super) async fn run_request(
    setup: &Setup,
    request: Request,
    what: Watch,
    form: Form,
    console: &mut Console,
) -> Result<u8, Failure> {
    let Ended { value: result, stopped_by, .. } =
        watch::watch(console, &setup.haft, what, |haft| haft.execute(request)).await?;
    if stopped_by.is_some() {
        let results = std::slice::from_ref(&result);
        show::stopped(results, result.metadata.duration).iter().for_each(|line| console.say(line));
    }
    say_more(setup, std::slice::from_ref(&result), console).await;
    match form {
        Form::Json => console.print_json(&result)?,
        Form::People => print(setup, &result, console)?,
        Form::ForModel(chars) => {
            console.print(format!("{}\n", result.format_for_context(chars, true).trim_end()))?;
        }
    }
    let stopped = stopped_by.filter(|_| result.status == haft::Status::Cancelled);
    Ok(stopped.map_or(result.exit_code(), watch::Signal::exit))
}

/// Runs one call that a person typed as a decision of theirs, such as an undo: the person who would be asked about it is
/// the one who typed it.
pub(super) fn run_agreed(
    setup: Setup,
    call: ToolCall,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let id = ExecutionId::at(jiff::Timestamp::now());
    let calls = vec![(call.name.to_string(), String::new())];
    let shown = setup.show_running(Target::Call(id), &calls);
    let what = Watch { target: Target::Call(id), calls, events: false, shown };
    let agreed = ask_with(|questions| questions.iter().map(|_| Decision::Approve).collect());
    let request = Request::new(call)
        .options(CallOptions { execution_id: Some(id), ..CallOptions::default() })
        .context(setup.caller(None))
        .approver(Arc::new(agreed));
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(run_request(&setup, request, what, Form::of(json), console));
    runtime.shutdown_background();
    setup.end(console)?;
    ended
}

/// The text goes to standard output, so that it can be piped on; everything about it to standard error.
fn print(setup: &Setup, result: &ToolResult, console: &mut Console) -> Result<(), Failure> {
    let text = match &result.error {
        None => show::text(result),
        Some(_) => show::output_before_failure(result),
    };
    let text = text.trim_end();
    if !text.is_empty() {
        console.print(format!("{text}\n"))?;
    }
    for line in show::violations(result) {
        console.warn(&line);
    }
    match &result.error {
        None if std::io::stderr().is_terminal() => console.say(show::headline(result)),
        None => {}
        Some(error) => {
            let help = help::for_result(setup, result);
            console.error(&people_text(&error.message), help.as_deref());
        }
    }
    Ok(())
}

async fn plan(
    args: &CallArgs,
    setup: &Setup,
    call: ToolCall,
    options: CallOptions,
    console: &mut Console,
) -> Result<u8, Failure> {
    let options = BatchOptions { call: options, ..BatchOptions::default() };
    let request = BatchRequest::from(vec![call.clone()]).options(options);
    let request = request.context(setup.caller(args.way.conversation.as_deref()));
    let previews = setup.haft.plan(request).await;
    for preview in &previews {
        if args.json {
            console.print_json(&preview_json(&call, preview))?;
        } else {
            let help = preview_help(setup, &call, preview);
            let sheet = Sheet::new(std::slice::from_ref(&call), console.width(), true);
            console.print(sheet.preview(&call, 0, preview, help.as_deref()))?;
        }
    }
    Ok(previews.first().map_or(0, preview_exit))
}

/// What to do about a call that would not run.
pub(super) fn preview_help(setup: &Setup, call: &ToolCall, preview: &Preview) -> Option<String> {
    match preview {
        Preview::Ready { .. } | Preview::Pending { .. } => None,
        Preview::NeedsApproval { tool, .. } => {
            help::next_step(setup, haft::ErrorCode::ConfirmationRequired, tool)
        }
        Preview::Refused(error) => help::next_step(setup, error.code, &call.name),
    }
}

/// The exit code that the call would have, as far as it is known before it runs.
pub(super) fn preview_exit(preview: &Preview) -> u8 {
    match preview {
        Preview::Ready { .. } | Preview::Pending { .. } => 0,
        Preview::NeedsApproval { .. } => haft::ErrorCode::ConfirmationRequired.exit(),
        Preview::Refused(error) => error.code.exit(),
    }
}

/// A preview for a program, as HTTP gives it, too.
pub(super) fn preview_json(call: &ToolCall, preview: &Preview) -> Value {
    json!(Plan::new(call, preview))
}

/// With `--verbose`: by which rule it was decided, where it ran, and what only an operator should see.
pub(super) async fn say_more(setup: &Setup, results: &[ToolResult], console: &Console) {
    if !console.verbose {
        return;
    }
    let reader = setup.haft.store().for_tenant(&haft::CallContext::owner().tenant);
    let records = reader.audit(results.len()).await.unwrap_or_default();
    for result in results {
        let meta = &result.metadata;
        let record: Option<&AuditRecord> =
            records.iter().find(|record| record.metadata.execution_id == meta.execution_id);
        let rule = record.and_then(|record| record.rule.as_deref()).unwrap_or("none reached");
        let jail = meta.enforcement.as_ref().map_or("not started", |enforcement| &enforcement.jail);
        let mut text = format!(
            "{}: execution {}, rule {rule}, {jail}, {} bytes of output",
            show::label(&result.tool, &result.call_id),
            meta.execution_id,
            meta.output_size
        );
        if !meta.coercions.is_empty() {
            text.push_str(&format!(", coerced {}", meta.coercions.join(" ")));
        }
        if let Some(diagnostics) = &result.diagnostics {
            text.push_str(&format!("\n      {}", people_text(diagnostics)));
        }
        console.note(&text);
    }
}
