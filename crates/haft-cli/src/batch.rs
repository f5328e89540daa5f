//! `haft batch`: several calls, planned together and answered in order.

use super::{
    args::BatchArgs,
    batch_file::{self, BadBatch},
    call::{preview_exit, preview_help, preview_json, say_more},
    console::Console,
    failure::Failure,
    help,
    input::Input,
    setup::{CliContext, Setup},
    show::{self, Sheet},
    watch::{self, Ended, Watch},
    words,
};
use haft::{
    BatchId, BatchOptions, BatchRequest, BatchSummary, CallOptions, ExecutionId, Status, Target, ToolCall,
    ToolResult,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    results: &'a [ToolResult],
    summary: &'a BatchSummary,
}

pub(super) fn run(args: &BatchArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let name = match args.file.as_os_str() {
        file if file == "-" => "standard input".to_owned(),
        _ => words::path(&args.file),
    };
    let text = Input::default().text(&args.file, &ground.surroundings.working_folder)?;
    let calls = batch_file::parse(&text).map_err(|BadBatch { line, column, what, help }| {
        Failure::BadBatch { place: format!("{name}:{line}:{column}"), what, help }
    })?;
    let setup = match args.way.dry_run {
        true => ground.setup(console)?,
        false => ground.setup_for_calls(console)?,
    };
    let runtime = watch::runtime()?;
    let ended = if args.way.dry_run {
        runtime.block_on(plan(args, &setup, calls, console))
    } else {
        runtime.block_on(execute(args, &setup, calls, console))
    };
    // A tool may have left a thread behind; nobody waits for it.
    runtime.shutdown_background();
    setup.end(console)?;
    ended
}

fn options(args: &BatchArgs, setup: &Setup, id: ExecutionId) -> BatchOptions {
    let usual = &setup.resolved.config.scheduling;
    BatchOptions {
        strategy: args.strategy.map_or(usual.strategy, Into::into),
        max_parallelism: args
            .max_parallelism
            .unwrap_or_else(|| usize::try_from(usual.max_parallelism).unwrap_or(usize::MAX)),
        call: args.timing.options(setup, CallOptions { execution_id: Some(id), ..CallOptions::default() }),
        continue_on_failure: !args.stop_on_failure,
        ..BatchOptions::default()
    }
}

async fn execute(
    args: &BatchArgs,
    setup: &Setup,
    calls: Vec<ToolCall>,
    console: &mut Console,
) -> Result<u8, Failure> {
    let id = ExecutionId::at(jiff::Timestamp::now());
    let sheet = Sheet::new(&calls, console.width(), args.full);
    let target = Target::Batch(BatchId::from_uuid(id.as_uuid()));
    let names: Vec<_> = calls.iter().map(|call| (call.name.to_string(), call.id.to_string())).collect();
    let shown = setup.show_running(target, &names);
    let what = Watch { target, calls: names, events: args.way.events, shown };
    let caller = setup.caller(args.way.conversation.as_deref());
    let mut request = BatchRequest::from(calls).options(options(args, setup, id)).context(caller);
    request.approver = setup.approver(args.way.wait, console);
    let Ended { value: (results, summary), stopped_by, times } =
        watch::watch(console, &setup.haft, what, |haft| haft.execute_batch(request)).await?;
    if stopped_by.is_some() {
        show::stopped(&results, summary.duration).iter().for_each(|line| console.say(line));
    }
    say_more(setup, &results, console).await;
    if args.json {
        console.print_json(&Document { results: &results, summary: &summary })?;
    } else {
        let mut text = String::new();
        // The same advice for ten calls is one piece of advice.
        let mut given = HashSet::new();
        for (index, result) in results.iter().enumerate() {
            let help = help::for_result(setup, result).filter(|help| given.insert(help.clone()));
            let time = times.get(index).copied().flatten();
            text.push_str(&sheet.result(result, index, time, help.as_deref()));
        }
        text.push_str(&show::summary(&summary));
        console.print(text)?;
    }
    let stopped = stopped_by.filter(|_| results.iter().any(|result| result.status == Status::Cancelled));
    let failed = results.iter().find(|result| !result.is_success());
    Ok(stopped.map_or_else(|| failed.map_or(0, ToolResult::exit_code), watch::Signal::exit))
}

async fn plan(
    args: &BatchArgs,
    setup: &Setup,
    calls: Vec<ToolCall>,
    console: &mut Console,
) -> Result<u8, Failure> {
    let id = ExecutionId::at(jiff::Timestamp::now());
    let caller = setup.caller(args.way.conversation.as_deref());
    let request = BatchRequest::from(calls.clone()).options(options(args, setup, id)).context(caller);
    let previews = setup.haft.plan(request).await;
    if args.json {
        let plans: Vec<Value> =
            calls.iter().zip(&previews).map(|(call, preview)| preview_json(call, preview)).collect();
        console.print_json(&json!({"plans": plans}))?;
    } else {
        let sheet = Sheet::new(&calls, console.width(), args.full);
        let mut text = String::new();
        for (index, (call, preview)) in calls.iter().zip(&previews).enumerate() {
            let help = preview_help(setup, call, preview);
            text.push_str(&sheet.preview(call, index, preview, help.as_deref()));
        }
        let ready = previews.iter().filter(|preview| preview_exit(preview) == 0).count();
        text.push_str(&format!("{ready} of {} would run; nothing was run\n", previews.len()));
        console.print(text)?;
    }
    Ok(previews.iter().map(preview_exit).find(|exit| *exit != 0).unwrap_or(0))
}
