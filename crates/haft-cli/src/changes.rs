//! `haft diff`, `haft apply`, `haft discard`: what a staged command changed, and what becomes of it.

use super::{
    args::{ChangesArgs, DiffArgs},
    call::run_agreed,
    console::Console,
    failure::Failure,
    setup::{CliContext, Setup},
    watch, words,
};
use haft::{ExecutionId, ToolCall, ToolError, port::KeptChanges};
use haft_core::text::{one_line, people_text};
use serde_json::json;

/// What a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Apply,
    Discard,
}

/// Shows what a command changed; without one, which commands changed something that nobody decided about.
pub(super) fn diff(args: &DiffArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let setup = ground.setup(console)?;
    let kept = kept(&setup)?;
    let Some(typed) = &args.execution else { return list(&kept, args.json, console) };
    let id = find(&kept, typed)?;
    let sets = setup.haft.change_sets().ok_or_else(|| failed(nothing()))?;
    let tenant = &setup.owner.tenant;
    let runtime = watch::runtime()?;
    let (found, diff) = runtime
        .block_on(async {
            let found = sets.look(tenant, id).await?;
            Ok((found, sets.diff(tenant, id, args.max_bytes).await?))
        })
        .map_err(failed)?;
    if args.json {
        console.print_json(&json!({
            "executionId": id,
            "changes": found.summary,
            "violations": found.violations,
            "conflicts": found.conflicts,
            "asks": found.asks,
            "diff": diff,
        }))?;
        return Ok(0);
    }
    console.print(people_text(&diff))?;
    console.print(format!("{}\n", found.summary))?;
    for (what, all) in [("cannot be applied", &found.violations), ("conflict", &found.conflicts)] {
        for one in all {
            console.print(format!("{what}: {}\n", one_line(one, 500)))?;
        }
    }
    Ok(0)
}

fn list(kept: &[KeptChanges], as_json: bool, console: &mut Console) -> Result<u8, Failure> {
    if as_json {
        let all: Vec<_> = kept
            .iter()
            .map(|kept| {
                json!({
                    "executionId": kept.call.execution_id,
                    "tool": kept.call.tool,
                    "summary": kept.call.summary,
                    "reason": kept.why,
                    "since": kept.since,
                    "canApply": kept.can_apply,
                })
            })
            .collect();
        console.print_json(&all)?;
        return Ok(0);
    }
    if kept.is_empty() {
        console.print("no changes wait for a decision\n")?;
    }
    for kept in kept {
        let (id, what, why) =
            (kept.call.execution_id, one_line(&kept.call.summary, 80), one_line(&kept.why, 200));
        console.print(format!("{id}  {what}\n    {why}\n"))?;
    }
    Ok(0)
}

/// It is an ordinary call: checked and recorded.
pub(super) fn settle(
    verb: Verb,
    args: &ChangesArgs,
    mut ground: CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    ground.tools.extend(haft_tools::change_set_tools());
    let setup = ground.setup_for_calls(console)?;
    let execution = find(&kept(&setup)?, &args.execution)?;
    let tool = match verb {
        Verb::Apply => "apply_changes",
        Verb::Discard => "discard_changes",
    };
    let call = ToolCall::new(tool, json!({"execution_id": execution}));
    run_agreed(setup, call, args.json, console)
}

fn kept(setup: &Setup) -> Result<Vec<KeptChanges>, Failure> {
    let Some(sets) = setup.haft.change_sets() else { return Ok(Vec::new()) };
    watch::runtime()?.block_on(sets.list(&setup.owner.tenant)).map_err(failed)
}

/// The call that is meant, by its id or a prefix of it.
fn find(kept: &[KeptChanges], typed: &str) -> Result<ExecutionId, Failure> {
    let typed = typed.trim().to_ascii_lowercase();
    let ids: Vec<ExecutionId> = kept
        .iter()
        .map(|kept| kept.call.execution_id)
        .filter(|id| !typed.is_empty() && id.to_string().starts_with(&typed))
        .collect();
    match ids[..] {
        [id] => Ok(id),
        [] => Err(failed(nothing())),
        _ => {
            let text = format!(
                "{} begin with `{typed}`. Type more of the id",
                words::count(ids.len(), "change set")
            );
            Err(failed(ToolError::bad_args(text)))
        }
    }
}

fn nothing() -> ToolError {
    ToolError::failed(
        "No changes of that call wait for a decision: they were applied or discarded, or kept for too long. `haft diff` \
         lists those that wait",
    )
}

fn failed(error: ToolError) -> Failure {
    Failure::Changes(Box::new(error))
}
