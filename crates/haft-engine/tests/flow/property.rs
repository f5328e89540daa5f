//! Random flows: every node at most once, dependencies before dependents, and blocked exactly what a failure blocks.

use super::*;
use common::house;
use proptest::{prelude::*, test_runner::Config};
use std::sync::Mutex;

#[derive(Clone, Debug)]
struct Plan {
    /// Which earlier nodes each node depends on, whether it fails, whether that may be.
    nodes: Vec<(Vec<usize>, bool, bool)>,
    at_once: usize,
    /// By which the nodes are shuffled in the file.
    turn: usize,
}

fn plans() -> impl Strategy<Value = Plan> {
    let node =
        (proptest::collection::vec(0..20_usize, 0..4), prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    (proptest::collection::vec(node, 1..20), 1..6_usize, 0..20_usize).prop_map(|(nodes, at_once, turn)| {
        Plan {
            nodes: nodes
                .into_iter()
                .enumerate()
                .map(|(place, (earlier, fails, goes_on))| {
                    let mut earlier: Vec<usize> =
                        earlier.into_iter().filter(|earlier| *earlier < place).collect();
                    earlier.sort_unstable();
                    earlier.dedup();
                    (earlier, fails, goes_on)
                })
                .collect(),
            at_once,
            turn,
        }
    })
}

/// What has to come of each node: true where it runs.
fn expected(plan: &Plan) -> Vec<bool> {
    let mut runs = Vec::new();
    for (earlier, ..) in &plan.nodes {
        let passed = |place: usize, runs: &[bool]| {
            let (_, fails, goes_on) = &plan.nodes[place];
            (runs[place] && !fails) || *goes_on
        };
        runs.push(earlier.iter().all(|&place| passed(place, &runs)));
    }
    runs
}

proptest! {
    #![proptest_config(Config {
        cases: std::env::var("HAFT_PROPERTY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96),
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn random_flows_keep_their_order_and_block_what_they_must(plan in plans()) {
        let log: Arc<Mutex<Vec<(usize, bool)>>> = Arc::default();
        let seen = Arc::clone(&log);
        let step = tool("step", move |args, _| {
            let seen = Arc::clone(&seen);
            async move {
                let place = args.value["place"].as_u64().unwrap() as usize;
                seen.lock().unwrap().push((place, true));
                for _ in 0..place % 3 {
                    tokio::task::yield_now().await;
                }
                seen.lock().unwrap().push((place, false));
                if args.value["fails"] == true { Err(ToolError::failed("told to")) } else { Ok("done") }
            }
        });
        let mut nodes: Vec<Value> = plan.nodes.iter().enumerate().map(|(place, (earlier, fails, goes_on))| {
            let after: Vec<String> = earlier.iter().map(|place| format!("n{place}")).collect();
            json!({"name": format!("n{place}"), "tool": "step", "after": after, "continue_on_failure": goes_on,
                   "arguments": {"place": place, "fails": fails}})
        }).collect();
        let turn = plan.turn % nodes.len();
        nodes.rotate_left(turn);
        let flow = flow_with(json!({"max_parallelism": plan.at_once, "nodes": nodes}));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(async { run(&house([step]), flow, json!({})).await });

        let log = log.lock().unwrap().clone();
        let runs = expected(&plan);
        for (place, (earlier, fails, _)) in plan.nodes.iter().enumerate() {
            let begins: Vec<usize> = log.iter().enumerate().filter(|(_, entry)| **entry == (place, true)).map(|(at, _)| at).collect();
            prop_assert_eq!(begins.len(), usize::from(runs[place]), "n{} of {:?}", place, plan);
            let node = result.nodes.iter().find(|node| *node.name == *format!("n{place}")).unwrap();
            let status = match (runs[place], fails) {
                (true, false) => NodeStatus::Success,
                (true, true) => NodeStatus::Failed,
                (false, _) => NodeStatus::Blocked,
            };
            prop_assert_eq!(node.status, status, "n{} of {:?}", place, plan);
            if let Some(&begin) = begins.first() {
                for earlier in earlier.iter().filter(|earlier| runs[**earlier]) {
                    let end = log.iter().position(|entry| *entry == (*earlier, false)).unwrap();
                    prop_assert!(end < begin, "n{} before n{} of {:?}", place, earlier, plan);
                }
            }
        }
        let (mut now, mut most) = (0_usize, 0_usize);
        for (_, begins) in &log {
            if *begins { now += 1; most = most.max(now); } else { now -= 1; }
        }
        prop_assert!(most <= plan.at_once, "{} at once of {:?}", most, plan);
    }
}
