//! `haft worker`: the process that runs detached calls.
//!
//! | file | what |
//! |---|---|
//! | `files` | its folder in the state folder: lock, socket, log |
//! | `talk` | what is said over the socket, and the side that asks |
//! | `begin` | starting it in the background, in a session of its own |
//! | `serve` | the worker itself |
//! | `engines` | an engine for each place that tasks come from |
//!
//! One worker serves a state folder. Tasks are on record before it hears of them, so that neither a lost word nor a
//! killed worker loses one: the socket only tells it to look now.

mod begin;
mod engines;
mod files;
mod serve;
mod talk;

pub(super) use begin::{Starter, ensure};
pub(super) use engines::Whence;
pub(super) use talk::look;

use super::{
    args::{WorkerArgs, WorkerCommand},
    console::Console,
    failure::Failure,
    setup::CliContext,
    words,
};
use files::Files;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use talk::WorkerRequest;

/// The kind of process that runs detached calls.
pub(super) const RUNNER: &str = "worker";

/// How long a worker that was told to stop may take.
const STOPPING: Duration = Duration::from_secs(20);

pub(super) fn run(args: &WorkerArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let state = ground.surroundings()?.state_folder().ok_or(Failure::NoStateFolder)?;
    let files = Files::new(&state);
    match (&args.command, args.step) {
        (Some(WorkerCommand::Status { json }), _) => status(&files, *json, console),
        (Some(WorkerCommand::Stop { now, json }), _) => stop(&files, *now, *json, console),
        (None, Some(1)) => begin::second_step(),
        (None, Some(_)) => {
            begin::own_session();
            serve::serve(&files, ground, console)
        }
        (None, None) if args.foreground => serve::serve(&files, ground, console),
        (None, None) => {
            let told = ensure(&Starter::of(&ground, &state)?, None)?;
            console
                .print(format!("a worker runs as process {}; `haft worker stop` stops it\n", told.process))?;
            Ok(0)
        }
    }
}

fn status(files: &Files, json: bool, console: &mut Console) -> Result<u8, Failure> {
    let told = match talk::ask(files, &WorkerRequest::Status) {
        Ok(told) => told,
        Err(_) if json => {
            console.print_json(&json!({"running": false}))?;
            return Ok(1);
        }
        Err(_) => {
            console.print("no worker is running; `haft call TOOL --detach` starts one\n")?;
            return Ok(1);
        }
    };
    if json {
        let mut value = json!({"running": true});
        if let (Value::Object(value), Value::Object(told)) = (&mut value, json!(told)) {
            value.extend(told);
        }
        console.print_json(&value)?;
        return Ok(0);
    }
    let mut text = format!(
        "process  {}\nsince    {}\nversion  {}\nstore    {}\nlog      {}\nrunning  {}\n",
        told.process,
        told.since,
        told.version,
        haft_core::text::one_line(&told.store, 400),
        words::path(&files.log()),
        words::count(told.tasks, "task"),
    );
    for engine in &told.engines {
        let number = |name: &str| engine.stats[name].as_u64().unwrap_or(0);
        let queued = engine.stats["lanes"]["queued"].as_u64().unwrap_or(0);
        text.push_str(&format!(
            "\n{}\n  {} running, {queued} queued, {} retried, {} refused by rate limits, {} by circuit breakers\n",
            haft_core::text::one_line(&engine.folder, 400),
            number("running"),
            number("retries"),
            number("rateLimited"),
            number("circuitRefused"),
        ));
        for (tool, numbers) in engine.stats["tools"].as_object().into_iter().flatten() {
            let total = usize::try_from(numbers["total"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
            let p95 = numbers["durationMs"]["p95"].as_f64().unwrap_or(0.0);
            text.push_str(&format!(
                "  {}: {}, 95 of 100 within {p95:.1} ms\n",
                words::name(tool),
                words::count(total, "call")
            ));
        }
    }
    console.print(text)?;
    Ok(0)
}

fn stop(files: &Files, now: bool, json: bool, console: &mut Console) -> Result<u8, Failure> {
    let Ok(told) = talk::ask(files, &WorkerRequest::Stop { now }) else {
        return Err(Failure::NoWorker);
    };
    let begun = Instant::now();
    while !files.is_free() {
        if begun.elapsed() > STOPPING {
            return Err(Failure::WorkerStays { process: told.process });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    if json {
        console.print_json(&json!({"stopped": told.process, "tasks": told.tasks}))?;
    } else {
        let tasks = match told.tasks {
            0 => String::new(),
            tasks => format!("; {} ended with it", words::count(tasks, "task")),
        };
        console.print(format!("the worker, process {}, has stopped{tasks}\n", told.process))?;
    }
    Ok(0)
}
