//! `haft flow run`.

use super::{
    super::{
        call::{preview_exit, preview_help, preview_json, say_more},
        console::{BAD, Console, GOOD, QUIET, STRONG, UNSURE},
        failure::Failure,
        help,
        input::Input,
        pairs,
        setup::{CliContext, Setup},
        show::{self, Sheet},
        watch::{self, Ended, Watch},
        words,
    },
    args::RunArgs,
    bad, read_fine,
};
use haft::{
    Arguments, BatchId, BatchRequest, CallOptions, ExecutionId, FlowError, FlowRequest, FlowResult, Preview,
    Target, ToolCall, ToolResult,
};
use haft_core::text::{one_line, people_text};
use haft_flow::{Flow, NodeStatus};
use serde_json::{Map, Value, json};
use std::{collections::HashSet, path::Path, sync::Arc};

pub(super) fn run(args: &RunArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let working_folder = ground.surroundings.working_folder.clone();
    let setup = match args.way.dry_run {
        true => ground.setup(console)?,
        false => ground.setup_for_calls(console)?,
    };
    let mut files = Input::default();
    let (name, flow) = read_fine(&args.file, &mut files, &working_folder, setup.most_nodes())?;
    setup.haft.check_flow(&flow).map_err(|errors| bad(name, &errors))?;
    let input = input(args, &flow, &mut files, &working_folder)?;
    let runtime = watch::runtime()?;
    let flow = Arc::new(flow);
    let ended = if args.way.dry_run {
        runtime.block_on(plan(args, &setup, &flow, &input, console))
    } else {
        runtime.block_on(execute(args, &setup, flow, input, console))
    };
    // A tool may have left a thread behind; nobody waits for it.
    runtime.shutdown_background();
    setup.end(console)?;
    ended
}

/// What the flow is given.
fn input(
    args: &RunArgs,
    flow: &Flow,
    files: &mut Input,
    folder: &Path,
) -> Result<Map<String, Value>, Failure> {
    let given = match args.input.as_deref() {
        Some("-") => Arguments::from_text(files.stdin()?),
        Some(text) => Arguments::from_text(text),
        None => {
            let schema = flow.parameters.to_schema();
            pairs::arguments(&args.pairs, Some(&schema), |path| files.text(path, folder))?
        }
    };
    given.parse().map_err(|problem| Failure::NotJson { key: "--input".to_owned(), problem: problem.message })
}

async fn execute(
    args: &RunArgs,
    setup: &Setup,
    flow: Arc<Flow>,
    input: Map<String, Value>,
    console: &mut Console,
) -> Result<u8, Failure> {
    let id = ExecutionId::at(jiff::Timestamp::now());
    let target = Target::Batch(BatchId::from_uuid(id.as_uuid()));
    let calls: Vec<_> =
        flow.nodes.iter().map(|node| (node.tool.to_string(), node.name.to_string())).collect();
    let request = FlowRequest::new(Arc::clone(&flow), input)
        .options(CallOptions { execution_id: Some(id), ..CallOptions::default() })
        .context(setup.caller(args.way.conversation.as_deref()));
    // Everything that can be wrong with it is found before anything runs.
    let running = setup.haft.run_flow(request).map_err(|error| match error {
        FlowError::Bad(errors) => bad(words::path(&args.file), &errors),
        FlowError::Refused(error) => Failure::FlowRefused { code: error.code, message: error.message },
    })?;
    let shown = setup.show_running(target, &calls);
    let what = Watch { target, calls, events: args.way.events, shown };
    let Ended { value: result, stopped_by, .. } =
        watch::watch(console, &setup.haft, what, |_| running).await?;
    let results: Vec<ToolResult> = result.nodes.iter().filter_map(|node| node.result.clone()).collect();
    if stopped_by.is_some() {
        show::stopped(&results, result.summary.duration).iter().for_each(|line| console.say(line));
    }
    say_more(setup, &results, console).await;
    if args.json {
        console.print_json(&result)?;
    } else {
        print(setup, &result, console)?;
    }
    let stopped = stopped_by.filter(|_| result.summary.cancelled > 0);
    Ok(stopped.map_or(result.exit_code(), watch::Signal::exit))
}

/// What the flow gave goes to standard output, so that it can be piped on; what became of its nodes to standard error.
fn print(setup: &Setup, result: &FlowResult, console: &mut Console) -> Result<(), Failure> {
    let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0).min(28);
    let name_width = widest(&mut result.nodes.iter().map(|node| node.name.chars().count()));
    let tool_width = widest(&mut result.nodes.iter().map(|node| node.tool.chars().count()));
    let mut given = HashSet::new();
    for node in &result.nodes {
        let (sign, style) = match node.status {
            NodeStatus::Success => ("✓", GOOD),
            NodeStatus::Failed => ("✗", BAD),
            NodeStatus::Blocked | NodeStatus::Cancelled => ("⊘", BAD),
            NodeStatus::Skipped => ("•", UNSURE),
        };
        let (name, tool) = (words::name(&node.name), words::name(&node.tool));
        let end = match (&node.status, &node.reason) {
            (NodeStatus::Success, _) => words::duration(node.duration),
            (NodeStatus::Skipped, Some(reason)) => format!("skipped: {}", people_text(reason)),
            (_, Some(reason)) => one_line(&people_text(reason), 400),
            (status, None) => status.as_str().to_owned(),
        };
        console.say(format!(
            "{style}{sign}{style:#} {STRONG}{name:name_width$}{STRONG:#}  {QUIET}{tool:tool_width$}{QUIET:#}  {end}"
        ));
        let code = node.result.as_ref().and_then(ToolResult::error_code);
        // The same advice for ten nodes is one piece of advice.
        let help = code.filter(|_| node.status == NodeStatus::Failed);
        let help = help.and_then(|code| help::next_step(setup, code, &node.tool));
        if let Some(help) = help.filter(|help| given.insert(help.clone())) {
            console.say(format!("  {QUIET}help: {help}{QUIET:#}"));
        }
    }
    let summary = &result.summary;
    let style = if result.is_success() { GOOD } else { BAD };
    let mut counts = format!("{} of {} succeeded", summary.succeeded, summary.total);
    for (count, what) in [
        (summary.failed, "failed"),
        (summary.blocked, "blocked"),
        (summary.skipped, "skipped"),
        (summary.cancelled, "cancelled"),
    ] {
        if count > 0 {
            counts.push_str(&format!(", {count} {what}"));
        }
    }
    console.say(format!("{style}{counts}{style:#} in {}", words::duration(summary.duration)));
    match (&result.output, &result.error) {
        (Some(Value::String(text)), _) => console.print(format!("{}\n", people_text(text.trim_end()))),
        (Some(Value::Null) | None, None) => Ok(()),
        (Some(value), _) => {
            let text = serde_json::to_string_pretty(value).map_err(Failure::Unwritable)?;
            console.print(format!("{}\n", people_text(&text)))
        }
        // What a node says stands there already.
        (None, Some(_)) if summary.failed + summary.blocked + summary.cancelled > 0 => Ok(()),
        (None, Some(error)) => {
            console.error(&people_text(&error.message), None);
            Ok(())
        }
    }
}

/// What would happen, as far as it is known before anything runs.
async fn plan(
    args: &RunArgs,
    setup: &Setup,
    flow: &Flow,
    input: &Map<String, Value>,
    console: &mut Console,
) -> Result<u8, Failure> {
    // Known is what is written in the file, and what was given to the flow.
    let input = Value::Object(input.clone());
    let mut known = Vec::new();
    let mut calls = Vec::new();
    for (place, node) in flow.nodes.iter().enumerate() {
        let arguments = node.arguments.fill(&mut |path: &haft_flow::Path| {
            let found = haft_flow::Path::follow(&path.steps, &input).filter(|_| path.root == "input");
            found.cloned().ok_or(())
        });
        if let Ok(arguments) = arguments {
            known.push(place);
            calls.push(ToolCall::new(Arc::clone(&node.tool), arguments).with_id(Arc::clone(&node.name)));
        }
    }
    let request = BatchRequest::from(calls.clone()).context(setup.caller(args.way.conversation.as_deref()));
    let previews = setup.haft.plan(request).await;
    let preview =
        |place: usize| known.iter().position(|&other| other == place).map(|at| (&calls[at], &previews[at]));
    let depends_on: Vec<&[usize]> = flow.nodes.iter().map(|node| &*node.depends_on).collect();
    let order = haft_flow::order(&depends_on);
    if args.json {
        let nodes: Vec<Value> = order
            .iter()
            .map(|&place| {
                let node = &flow.nodes[place];
                let earlier: Vec<&str> =
                    node.depends_on.iter().map(|&earlier| &*flow.nodes[earlier].name).collect();
                let plan = preview(place).map(|(call, preview)| preview_json(call, preview));
                json!({"name": node.name, "tool": node.tool, "dependsOn": earlier, "plan": plan})
            })
            .collect();
        console.print_json(&json!({"flow": flow.name, "nodes": nodes}))?;
    } else {
        let sheet = Sheet::new(&calls, console.width(), true);
        let mut text = String::new();
        for &place in &order {
            let node = &flow.nodes[place];
            match preview(place) {
                Some((call, preview)) => {
                    let help = preview_help(setup, call, preview);
                    text.push_str(&sheet.preview(call, place, preview, help.as_deref()));
                }
                None => text.push_str(&format!(
                    "{UNSURE}•{UNSURE:#} {}: its arguments are known when it runs\n",
                    show::label(&node.tool, &node.name)
                )),
            }
            if let Some(when) = &node.when {
                text.push_str(&format!("  {QUIET}only when {}{QUIET:#}\n", one_line(when.text(), 200)));
            }
        }
        text.push_str(&format!("{}; nothing was run\n", words::count(flow.nodes.len(), "node")));
        console.print(text)?;
    }
    Ok(previews.iter().map(|preview: &Preview| preview_exit(preview)).find(|exit| *exit != 0).unwrap_or(0))
}
