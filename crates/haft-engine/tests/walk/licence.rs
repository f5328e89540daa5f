//! Every tier at every limit that acts in the engine.

use crate::common::{Setup, call, code, house, message, tool};
use haft_core::{
    BatchOptions, CallContext, CallOptions, IsolationLevel, Limits, SideEffect, SideEffectKind, Strategy,
    Tier, ToolOutput,
};
use haft_engine::{BatchRequest, Request};
use haft_guard::{Need, check_licence};
use haft_sdk::ToolCtx;
use std::{sync::Arc, time::Duration};

const TIERS: [Tier; 4] = [Tier::Core, Tier::WriterPro, Tier::Teams, Tier::Enterprise];

fn caller(tier: Tier) -> Arc<CallContext> {
    Arc::new(CallContext { tier, ..CallContext::clone(&CallContext::owner()) })
}

#[tokio::test]
async fn batches_tools_and_parallel_calls() {
    let house = house([
        tool("plain", |_, _| async { Ok(()) }),
        tool("of_teams", |_, _| async { Ok(()) }).define(|definition| definition.tier = Tier::Teams),
    ]);
    for tier in TIERS {
        for count in [1, 5, 6, 20, 21, 50, 51, 60] {
            let request = BatchRequest::from(vec![call("plain"); count]).context(caller(tier));
            let (results, _) = house.engine.execute_batch(request).await;
            let fits = check_licence(tier, Need::Batch(count)).is_ok();
            assert_eq!(results.iter().all(|result| code(result) == "OK"), fits, "{tier:?} {count}");
            assert!(
                fits || results.iter().all(|result| code(result) == "LIMIT_EXCEEDED"),
                "{tier:?} {count}"
            );
        }
        let result = house.engine.execute(Request::new(call("of_teams")).context(caller(tier))).await;
        let expected = if tier >= Tier::Teams { "OK" } else { "LICENSE_REQUIRED" };
        assert_eq!(code(&result), expected, "{tier:?}");
        if tier < Tier::Teams {
            let expected = format!("`of_teams` needs the Teams tier, and this caller has {tier:?}");
            assert_eq!(message(&result), expected);
        }
        let options =
            BatchOptions { strategy: Strategy::Parallel, max_parallelism: 4, ..BatchOptions::default() };
        let request = BatchRequest::from(vec![call("plain"); 4]).context(caller(tier)).options(options);
        let (results, summary) = house.engine.execute_batch(request).await;
        assert!(results.iter().all(|result| code(result) == "OK"), "it falls back, and fails not: {tier:?}");
        let falls_back = check_licence(tier, Need::Parallel(4)).is_err();
        assert_eq!(summary.note.is_some(), falls_back, "{tier:?}: {summary:?}");
        assert!(!falls_back || summary.note.unwrap().contains("does not include parallel calls"));
    }
}

#[tokio::test]
async fn isolation_and_limits_that_are_asked_for() {
    let mib = 1 << 20;
    let seconds = Duration::from_secs;
    let memory = |bytes| Limits { memory_bytes: Some(bytes), ..Limits::default() };
    let time = |time| Limits { cpu_time: Some(time), ..Limits::default() };
    let cases = [
        (None, memory(64 * mib), Need::Memory(64 * mib)),
        (None, memory(64 * mib + 1), Need::Memory(64 * mib + 1)),
        (None, memory(128 * mib + 1), Need::Memory(128 * mib + 1)),
        (None, memory(256 * mib + 1), Need::Memory(256 * mib + 1)),
        (None, time(seconds(30)), Need::CpuTime(seconds(30))),
        (None, time(seconds(31)), Need::CpuTime(seconds(31))),
        (None, time(seconds(61)), Need::CpuTime(seconds(61))),
        (None, time(seconds(301)), Need::CpuTime(seconds(301))),
    ];
    let house = with_jail();
    for tier in TIERS {
        for (isolation, limits, need) in cases.clone() {
            let options = CallOptions { isolation, limits: Some(Box::new(limits)), ..CallOptions::default() };
            let request = Request::new(call("jailed")).context(caller(tier)).options(options);
            let result = house.engine.execute(request).await;
            let expected = if check_licence(tier, need).is_ok() { "OK" } else { "LICENSE_REQUIRED" };
            assert_eq!(code(&result), expected, "{tier:?} {need:?}: {}", message(&result));
        }
        for level in [IsolationLevel::Standard, IsolationLevel::Strict, IsolationLevel::Restricted] {
            let options = CallOptions { isolation: Some(level), ..CallOptions::default() };
            let request = Request::new(call("jailed")).context(caller(tier)).options(options);
            let result = house.engine.execute(request).await;
            let expected =
                if check_licence(tier, Need::Isolation(level)).is_ok() { "OK" } else { "LICENSE_REQUIRED" };
            assert_eq!(code(&result), expected, "{tier:?} {level:?}: {}", message(&result));
        }
    }
}

/// A jail that offers everything, for a tool that runs no program.
struct Willing;

impl haft_core::port::Jail for Willing {
    fn name(&self) -> &str {
        "willing"
    }

    fn offers(&self, level: IsolationLevel) -> Result<haft_core::Enforcement, haft_core::port::Unavailable> {
        Ok(haft_core::Enforcement { level, ..haft_core::Enforcement::in_process() })
    }

    fn start<'a>(
        &'a self,
        _spec: haft_core::port::GuestSpec,
    ) -> haft_core::port::BoxFuture<'a, Result<Box<dyn haft_core::port::Guest>, haft_core::ToolError>> {
        Box::pin(std::future::ready(Err(haft_core::ToolError::failed("nothing is started here"))))
    }
}

fn with_jail() -> crate::common::House {
    let setup = Setup { around: |builder| builder.jail(Arc::new(Willing)), ..Setup::default() };
    setup.build([tool("jailed", |_, _| async { Ok(()) })
        .define(|definition| definition.constraints.required_isolation = IsolationLevel::Standard)])
}

#[tokio::test]
async fn what_a_result_tells_and_what_is_kept_of_it() {
    let house = house([
        tool("changes", |_, _| async {
            let effect = SideEffect::new(SideEffectKind::Modified, "a.txt", jiff::Timestamp::UNIX_EPOCH);
            Ok(ToolOutput::text("changed").with_side_effect(effect))
        }),
        tool("long", |_, cx: ToolCtx| async move {
            cx.progress(50, "half");
            Ok(ToolOutput::text("line\n".repeat(40_000)))
        }),
    ]);
    for tier in TIERS {
        let result = house.engine.execute(Request::new(call("changes")).context(caller(tier))).await;
        let tells = check_licence(tier, Need::SideEffects).is_ok();
        assert_eq!(result.metadata.side_effects.len(), usize::from(tells), "{tier:?}");
        let result = house.engine.execute(Request::new(call("long")).context(caller(tier))).await;
        assert!(result.metadata.output_truncated);
        let keeps = check_licence(tier, Need::FullOutput).is_ok();
        assert_eq!(result.metadata.output_handle.is_some(), keeps, "{tier:?}");
        let events = house.events(result.metadata.execution_id).await;
        let told = events.iter().any(|event| event.payload.is_droppable());
        assert_eq!(told, check_licence(tier, Need::FullProgress).is_ok(), "{tier:?}");
    }
}

#[tokio::test]
async fn tools_of_ones_own() {
    for tier in TIERS {
        let house = house([]);
        let most = tier.max_custom_tools().unwrap_or(60);
        for number in 0..most {
            let own = tool(&format!("own_{number}"), |_, _| async { Ok(()) });
            house.engine.tools().add(own, &caller(tier)).await.unwrap();
        }
        let one_more = tool("one_more", |_, _| async { Ok(()) });
        let added = house.engine.tools().add(one_more, &caller(tier)).await;
        assert_eq!(added.is_ok(), tier == Tier::Enterprise, "{tier:?}");
        assert_eq!(check_licence(tier, Need::CustomTools(most + 1)).is_ok(), tier == Tier::Enterprise);
    }
}
