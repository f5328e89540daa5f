//! For random batches with random footprints: (a) no two conflicting calls overlap, (b) the outcome equals the
//! sequential one, (c) none waits for ever, (d) results are in call order, (e) without conflicts all run at once up to
//! the limit.

use crate::{
    MS, batch,
    common::{call_with, house, tool, within},
};
use haft_core::{Footprint, Resource, Strategy as Order, ToolCall};
use haft_engine::Lanes;
use haft_sdk::{Args, ToolCtx};
use proptest::{collection::vec, prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// Everything that can be touched. Folders contain what is below them.
const LEAVES: [&str; 6] = ["/a/x", "/a/y", "/b/x", "/b/y", "/c", "git-index:/r"];
const NAMES: [&str; 8] = ["/a", "/a/x", "/a/y", "/b", "/b/x", "/c", "git-index:/r", "*"];

#[derive(Clone, Debug)]
struct Step {
    reads: Vec<&'static str>,
    writes: Vec<&'static str>,
    ms: u64,
}

fn resource(name: &str) -> Resource {
    match name {
        "*" => Resource::Anything,
        name if name.starts_with('/') => Resource::path(name),
        name => Resource::named(name),
    }
}

fn leaves(names: &[&str]) -> Vec<&'static str> {
    let touched = |leaf: &str| names.iter().any(|name| resource(name).overlaps(&resource(leaf)));
    LEAVES.into_iter().filter(|leaf| touched(leaf)).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few touch anything at all, or there would be nothing to overlap.
    let name = prop_oneof![40 => prop::sample::select(&NAMES[..7]), 1 => Just("*")];
    let step = (vec(name.clone(), 0..3), prop_oneof![2 => vec(name, 0..1), 1 => Just(Vec::new())], 1..6_u64);
    vec(step.prop_map(|(reads, writes, ms)| Step { reads, writes, ms }), 1..24)
}

/// What the calls work on, and what runs.
#[derive(Default)]
struct World {
    values: BTreeMap<&'static str, String>,
    running: Vec<(u64, Footprint)>,
    most: usize,
    clashes: Vec<String>,
}

fn names(args: &Args, key: &str) -> Vec<String> {
    let list = args.value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn footprint(args: &Args) -> Footprint {
    let of = |key| names(args, key).iter().map(|name| resource(name)).collect();
    Footprint { reads: of("reads"), writes: of("writes") }
}

fn works(world: &Arc<Mutex<World>>) -> crate::common::Scripted {
    let world = Arc::clone(world);
    tool("works", move |args: Args, _: ToolCtx| {
        let world = Arc::clone(&world);
        async move {
            let (n, mine) = (args.value["n"].as_u64().unwrap(), footprint(&args));
            let of = |key| names(&args, key);
            let (reads, writes) = (of("reads"), of("writes"));
            let seen: String = {
                let mut world = world.lock().unwrap();
                let clashes: Vec<_> = world
                    .running
                    .iter()
                    .filter(|(_, other)| other.conflicts_with(&mine))
                    .map(|(other, _)| format!("{n} began while {other} ran"))
                    .collect();
                world.clashes.extend(clashes);
                world.running.push((n, mine));
                world.most = world.most.max(world.running.len());
                let read: Vec<&str> = reads.iter().map(String::as_str).collect();
                leaves(&read).iter().map(|leaf| world.values.get(leaf).cloned().unwrap_or_default()).collect()
            };
            tokio::time::sleep(MS(args.value["ms"].as_u64().unwrap())).await;
            let mut world = world.lock().unwrap();
            world.running.retain(|(other, _)| *other != n);
            let written: Vec<&str> = writes.iter().map(String::as_str).collect();
            for leaf in leaves(&written) {
                // What was seen is part of what is written, so that an order that differs is seen later on.
                let value = world.values.entry(leaf).or_default();
                let digest: u32 = format!("{value}{n}{seen}")
                    .bytes()
                    .fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
                *value = format!("{digest:x}.");
            }
            Ok(format!("{n}:{seen}"))
        }
    })
    .on_footprint(footprint)
    .define(|definition| definition.constraints.allow_side_effects = false)
}

type CallEnd = (Vec<String>, BTreeMap<&'static str, String>);

async fn play(steps: &[Step], order: Order, at_once: usize, has_lanes: bool) -> (CallEnd, World) {
    let world = Arc::new(Mutex::new(World::default()));
    let house = match has_lanes {
        true => crate::with_around([works(&world)], |builder| {
            builder.lanes(Lanes { per_agent: Some(2), ..Lanes::default() })
        }),
        false => house([works(&world)]),
    };
    let calls: Vec<ToolCall> = steps
        .iter()
        .zip(0_u64..)
        .map(|(step, n)| {
            let arguments = json!({"n": n, "reads": step.reads, "writes": step.writes, "ms": step.ms});
            call_with("works", arguments).with_id(format!("call_{n}"))
        })
        .collect();
    let (results, _) = within("the batch", house.engine.execute_batch(batch(calls, order, at_once))).await;
    for (place, result) in results.iter().enumerate() {
        assert_eq!(&*result.call_id, format!("call_{place}"), "(d) results are in call order");
        assert!(result.is_success(), "{result:?}");
    }
    assert_eq!(results.len(), steps.len());
    let texts = results.iter().map(|result| result.text().to_owned()).collect();
    let world = std::mem::take(&mut *world.lock().unwrap());
    ((texts, world.values.clone()), world)
}

fn has_conflicts(steps: &[Step]) -> bool {
    let of = |step: &Step| Footprint {
        reads: step.reads.iter().map(|name| resource(name)).collect(),
        writes: step.writes.iter().map(|name| resource(name)).collect(),
    };
    let prints: Vec<_> = steps.iter().map(of).collect();
    let runs_alone = |print: &Footprint| print.writes.contains(&Resource::Anything);
    prints.iter().enumerate().any(|(place, a)| {
        prints[..place].iter().any(|b| a.conflicts_with(b) || runs_alone(a) || runs_alone(b))
    })
}

async fn check(steps: Vec<Step>, at_once: usize, has_lanes: bool) {
    let (expected, _) = play(&steps, Order::Sequential, 1, false).await;
    let (outcome, world) = play(&steps, Order::Smart, at_once, has_lanes).await;
    assert_eq!(world.clashes, Vec::<String>::new(), "(a) no two conflicting calls overlap");
    assert_eq!(outcome, expected, "(b) the outcome is the sequential one");
    let limit = if has_lanes { at_once.min(2) } else { at_once };
    assert!(world.most <= limit, "{} ran at once", world.most);
    if !has_conflicts(&steps) {
        assert_eq!(world.most, limit.min(steps.len()), "(e) without conflicts all run at once");
    }
}

#[test]
fn random_footprints_overlap_where_they_may_and_nowhere_else() {
    let config = ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(250),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(11),
        max_shrink_iters: 500,
        ..ProptestConfig::default()
    };
    let cases = (steps(), 1..10_usize, prop::bool::weighted(0.2));
    let outcome = prop::test_runner::TestRunner::new(config).run(&cases, |(steps, at_once, has_lanes)| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(check(steps, at_once, has_lanes));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
