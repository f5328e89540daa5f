//! `haft recover`: what processes that are gone left unfinished, and a person's decision about it. Nothing is run
//! again.

use super::{Memory, args::RecoverArgs, record, tenant_or_own};
use crate::{
    console::{BAD, Console, GOOD, QUIET, STRONG, UNSURE},
    failure::Failure,
    words,
};
use haft::{
    BatchId, Status,
    port::{
        CallState, ChangesStep, DISCARDED_AFTER_CRASH, MISSING_AFTER_CRASH, RecoveredCall, Recovery,
        TenantStore as _, Unfinished, UnfinishedCall, UnfinishedId,
    },
};
use haft_core::{
    id_prefix::{self, IdMatch},
    text::{one_line, people_text},
};
use serde_json::{Value, json};
use std::io::{self, BufRead as _, IsTerminal as _};

/// The exit code where a person must decide.
const DECIDE: u8 = 6;

pub(super) async fn run(args: &RecoverArgs, memory: &Memory, console: &mut Console) -> Result<u8, Failure> {
    let tenant = memory.store.tenant(&tenant_or_own(args.tenant.as_deref()));
    let unfinished = tenant.unfinished().await?;
    let decision = match (&args.resume, &args.discard) {
        (Some(id), _) => Some((id, Recovery::Resume)),
        (None, Some(id)) => Some((id, Recovery::Discard)),
        (None, None) => None,
    };
    if let Some((typed, how)) = decision {
        let chosen = chosen(typed, &unfinished)?;
        return decide(&tenant, &chosen, how, unfinished.len(), args.json, console).await;
    }
    if args.json {
        let list: Vec<Value> = unfinished.iter().map(unfinished_json).collect();
        console.print_json(&json!({"unfinished": list}))?;
        return Ok(if unfinished.is_empty() { 0 } else { DECIDE });
    }
    if unfinished.is_empty() {
        console.print("nothing is unfinished\n")?;
        return Ok(0);
    }
    console.print(overview(&unfinished))?;
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        console.say(HOW);
        return Ok(DECIDE);
    }
    ask(&tenant, &unfinished, console).await
}

const HOW: &str =
    "haft recover --resume ID    keep the results that exist\nhaft recover --discard ID   drop all results";

/// Those that were named.
fn chosen(typed: &str, unfinished: &[Unfinished]) -> Result<Vec<UnfinishedId>, Failure> {
    if typed == "all" {
        return Ok(unfinished.iter().map(|unfinished| unfinished.id).collect());
    }
    let digits = id_prefix::digits(typed).ok_or_else(|| Failure::NotAnId { id: typed.to_owned() })?;
    let fitting = unfinished.iter().filter(|one| id_prefix::begins(&name(one.id), &digits));
    let matches = fitting.map(|one| IdMatch { id: name(one.id), what: kind(one.id).to_owned() });
    let none = || Failure::NothingToRecover { id: typed.to_owned() };
    let matches: Vec<_> = matches.collect();
    let id = id_prefix::only(typed, &matches)?.ok_or_else(none)?;
    unfinished.iter().find(|one| name(one.id) == id).map(|found| vec![found.id]).ok_or_else(none)
}

async fn decide(
    tenant: &haft_store::Tenant,
    chosen: &[UnfinishedId],
    how: Recovery,
    before: usize,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let mut decided = Vec::new();
    for id in chosen {
        // Another process may have decided meanwhile.
        let Some(calls) = tenant.recover(*id, how).await? else {
            return Err(Failure::NothingToRecover { id: name(*id) });
        };
        decided.push((*id, calls));
    }
    let left = before.saturating_sub(decided.len());
    if json {
        let list: Vec<Value> = decided
            .iter()
            .map(|(id, calls)| json!({"id": name(*id), "decision": word(how), "calls": calls_json(calls)}))
            .collect();
        console.print_json(&json!({"decided": list, "left": left}))?;
    } else {
        for (id, calls) in &decided {
            console.print(decided_text(*id, how, calls))?;
        }
        if decided.is_empty() {
            console.print("nothing is unfinished\n")?;
        }
    }
    Ok(if left == 0 { 0 } else { DECIDE })
}

/// Asks about one after the other.
async fn ask(
    tenant: &haft_store::Tenant,
    unfinished: &[Unfinished],
    console: &mut Console,
) -> Result<u8, Failure> {
    let mut left = unfinished.len();
    for one in unfinished {
        console.say(format!("\n{} — r resume, d discard, anything else leaves it:", name(one.id)));
        let mut answer = String::new();
        io::stdin()
            .lock()
            .read_line(&mut answer)
            .map_err(|reason| Failure::Unreadable { name: "the answer".to_owned(), reason })?;
        let how = match answer.trim() {
            "r" | "resume" => Recovery::Resume,
            "d" | "discard" => Recovery::Discard,
            _ => continue,
        };
        if let Some(calls) = tenant.recover(one.id, how).await? {
            console.print(decided_text(one.id, how, &calls))?;
        }
        left -= 1;
    }
    Ok(if left == 0 { 0 } else { DECIDE })
}

fn name(id: UnfinishedId) -> String {
    match id {
        UnfinishedId::Batch(batch) => batch.to_string(),
        UnfinishedId::Call(call) => BatchId::from_uuid(call.as_uuid()).to_string(),
    }
}

fn kind(id: UnfinishedId) -> &'static str {
    match id {
        UnfinishedId::Batch(_) => "batch",
        UnfinishedId::Call(_) => "call",
    }
}

fn word(how: Recovery) -> &'static str {
    match how {
        Recovery::Resume => "resume",
        Recovery::Discard => "discard",
    }
}

/// Everything that waits for a decision, as a person reads it.
fn overview(unfinished: &[Unfinished]) -> String {
    let mut text =
        String::from("Cut off by a crash. haft does not run a started call again, whatever you decide.\n");
    for one in unfinished {
        let kind = kind(one.id);
        let model = one.model.as_deref().map(|model| format!(", model {}", words::name(model)));
        text.push_str(&format!(
            "\n{STRONG}{kind} {}{STRONG:#}\n  begun {} by {}{}\n",
            name(one.id),
            one.begun_at.to_string().get(..19).unwrap_or_default().replace('T', " "),
            words::name(&one.agent),
            model.unwrap_or_default()
        ));
        if !one.assistant_text.trim().is_empty() {
            text.push_str(&format!("  {QUIET}“{}”{QUIET:#}\n", one_line(&one.assistant_text, 70)));
        }
        if !one.sealed {
            text.push_str("  the batch was not complete: its last call may be cut off\n");
        }
        for call in &one.calls {
            text.push_str(&format!("  {}\n", call_line(call)));
        }
        if one.calls.is_empty() {
            text.push_str("  it had no call yet\n");
        }
    }
    text.push_str(&format!(
        "\nresume   keeps the results that exist; a gap reads “{MISSING_AFTER_CRASH}”\n\
         discard  drops all results; each reads “{DISCARDED_AFTER_CRASH}”\n\
         The audit log stays either way.\n"
    ));
    text
}

fn call_line(call: &UnfinishedCall) -> String {
    let id =
        if call.call_id.is_empty() { String::new() } else { format!(" ({})", words::name(&call.call_id)) };
    let tool = format!("{}{id}", words::name(&call.tool));
    match &call.state {
        CallState::Finished(Some(result)) => {
            format!("{} {tool}  finished: {}", finished_mark(Some(result.status)), result.status)
        }
        CallState::Finished(None) => {
            format!("{} {tool}  finished; its result is no longer stored", finished_mark(None))
        }
        CallState::NeverStarted => format!("{UNSURE}•{UNSURE:#} {tool}  never started"),
        CallState::OutcomeUnknown { since, .. } => {
            let since = since.to_string();
            let effect = match call.changes {
                Some(changes) => format!("{}. What it did elsewhere is not known", changes.in_words()),
                None => "it may have had its effect".to_owned(),
            };
            format!(
                "{BAD}✗{BAD:#} {tool}  outcome unknown, not re-run: started {}. {effect}",
                since.get(11..19).unwrap_or(&since)
            )
        }
    }
}

/// Finished is finished, also where it failed: nothing about it is in doubt.
fn finished_mark(_status: Option<Status>) -> String {
    format!("{GOOD}✓{GOOD:#}")
}

fn decided_text(id: UnfinishedId, how: Recovery, calls: &[RecoveredCall]) -> String {
    let done = match how {
        Recovery::Resume => "resumed with what is there",
        Recovery::Discard => "discarded",
    };
    let mut text = format!("{STRONG}{}{STRONG:#} {done}\n", name(id));
    for call in calls {
        let mark = if call.is_error { format!("{BAD}✗{BAD:#}") } else { format!("{GOOD}✓{GOOD:#}") };
        let doubt = if call.outcome_unknown { "; look whether it had its effect" } else { "" };
        text.push_str(&format!(
            "  {mark} {}: {}{doubt}\n",
            words::name(&call.tool),
            record::line(&people_text(&call.text), 100)
        ));
    }
    text
}

fn calls_json(calls: &[RecoveredCall]) -> Vec<Value> {
    let json = |call: &RecoveredCall| {
        json!({
            "callId": call.call_id,
            "tool": call.tool,
            "text": call.text,
            "isError": call.is_error,
            "outcomeUnknown": call.outcome_unknown,
        })
    };
    calls.iter().map(json).collect()
}

/// How far a call came with its changes: `applied` is null where that is not known yet.
pub(super) fn changes_json(changes: ChangesStep) -> Value {
    json!({"step": changes.as_str(), "applied": changes.is_applied(), "text": changes.in_words()})
}

fn unfinished_json(one: &Unfinished) -> Value {
    let calls: Vec<Value> = one
        .calls
        .iter()
        .map(|call| {
            let mut value = json!({
                "callId": call.call_id,
                "tool": call.tool,
                "arguments": call.arguments.as_str(),
                "executionId": call.execution_id,
            });
            if let Some(changes) = call.changes {
                value["changes"] = changes_json(changes);
            }
            match &call.state {
                CallState::Finished(result) => {
                    value["state"] = json!("finished");
                    value["result"] = json!(result);
                }
                CallState::NeverStarted => value["state"] = json!("neverStarted"),
                CallState::OutcomeUnknown { since, attempt } => {
                    value["state"] = json!("outcomeUnknown");
                    value["since"] = json!(since);
                    value["attempt"] = json!(attempt);
                }
            }
            value
        })
        .collect();
    json!({
        "id": name(one.id),
        "kind": match one.id { UnfinishedId::Batch(_) => "batch", UnfinishedId::Call(_) => "call" },
        "agent": one.agent,
        "session": one.session,
        "model": one.model,
        "assistantText": one.assistant_text,
        "sealed": one.sealed,
        "begunAt": one.begun_at,
        "calls": calls,
    })
}
