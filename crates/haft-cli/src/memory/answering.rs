//! `haft approvals approve`, `deny`, `watch`: answers from here, for calls anywhere.

use super::{
    Memory,
    approvals::{ApproveArgs, DenyArgs, Remember, covered, find, open_approvals, short, shown, state},
    tenant_or_own,
};
use crate::{console::Console, failure::Failure, words};
use haft::{
    Arguments, Channel, Decision, assembly,
    port::{Answer, ApprovalFilter, ApprovalState, Approver, StoredApproval, StoredGrant, TenantStore as _},
};
use haft_core::text::one_line;
use haft_guard::Lasts;
use haft_store::Tenant;
use jiff::Timestamp;
use serde_json::json;
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// What answers from here are recorded as having come from.
const CHANNEL: Channel = Channel::CommandLine;

/// How often it is looked for news.
const LOOK: Duration = Duration::from_millis(200);
/// How long the changed call is waited for. A process that waits looks ten times a second.
const CHANGED: Duration = Duration::from_secs(5);

pub(super) async fn approve(
    args: &ApproveArgs,
    memory: &Memory,
    console: &mut Console,
) -> Result<u8, Failure> {
    counts(memory)?;
    let named = named(memory, args.tenant.as_deref(), &args.ids, args.all).await?;
    let tenant = memory.store.tenant(&tenant_or_own(args.tenant.as_deref()));
    if args.edit || args.args.is_some() {
        return edit(args, memory, &tenant, &named, console).await;
    }
    // What is to be remembered is known before anything is answered.
    let mut remembered = Vec::new();
    for question in &named {
        remembered.extend(remember(args, memory, question)?);
    }
    if !args.json {
        // What is approved has been seen, also what `--all` brings along.
        for question in &named {
            console.say(covered(question, console.side_width()).trim_end());
        }
    }
    let mut answered = Vec::new();
    for question in &named {
        answer(&tenant, memory, question, Decision::Approve).await?;
        answered.push(question);
    }
    for grant in &remembered {
        tenant.grant(grant.clone()).await?;
    }
    if args.json {
        let ids: Vec<_> = answered.iter().map(|question| &question.request.id).collect();
        console.print_json(&json!({"approved": ids, "grants": remembered}))?;
        return Ok(0);
    }
    for question in answered {
        console.print(format!("approved {}\n", line(question)))?;
    }
    for grant in &remembered {
        console.print(format!("remembered as {}: {}\n", grant.id, one_line(&grant.shown, 400)))?;
    }
    console.say("a waiting call goes on now; a call that ended runs when it is sent again");
    Ok(0)
}

pub(super) async fn deny(args: &DenyArgs, memory: &Memory, console: &mut Console) -> Result<u8, Failure> {
    counts(memory)?;
    let named = named(memory, args.tenant.as_deref(), &args.ids, args.all).await?;
    let tenant = memory.store.tenant(&tenant_or_own(args.tenant.as_deref()));
    for question in &named {
        answer(&tenant, memory, question, Decision::Deny { reason: args.reason.clone() }).await?;
    }
    if args.json {
        let ids: Vec<_> = named.iter().map(|question| &question.request.id).collect();
        console.print_json(&json!({"denied": ids}))?;
        return Ok(0);
    }
    for question in &named {
        console.print(format!("denied {}\n", line(question)))?;
    }
    Ok(0)
}

/// Said before anything is answered: an answer that does not count would use the question up.
fn counts(memory: &Memory) -> Result<(), Failure> {
    match haft::assembly::settings(&memory.config).accept_answers.counts(CHANNEL) {
        true => Ok(()),
        false => Err(Failure::NotAccepted { channel: CHANNEL }),
    }
}

fn line(question: &StoredApproval) -> String {
    let request = &question.request;
    format!("{}  {}: {}", short(&request.id), words::name(&request.tool), one_line(&request.summary, 200))
}

/// The questions that were named, with the others of their batches where those are meant, too. All are open.
async fn named(
    memory: &Memory,
    tenant: Option<&str>,
    ids: &[String],
    all: bool,
) -> Result<Vec<StoredApproval>, Failure> {
    let mut named: Vec<StoredApproval> = Vec::new();
    for id in ids {
        let question = find(memory, tenant, id).await?;
        if question.state != ApprovalState::Open {
            return Err(Failure::NotOpen { id: question.request.id.to_string(), state: state(&question) });
        }
        named.push(question);
    }
    if all {
        let batches: HashSet<_> = named.iter().filter_map(|question| question.request.batch_id).collect();
        let open = memory.store.tenant(&tenant_or_own(tenant)).approvals(open_approvals()).await?;
        named.extend(
            open.into_iter()
                .filter(|question| question.request.batch_id.is_some_and(|batch| batches.contains(&batch))),
        );
    }
    let mut seen = HashSet::new();
    named.retain(|question| seen.insert(question.request.id.clone()));
    Ok(named)
}

async fn answer(
    tenant: &Tenant,
    memory: &Memory,
    question: &StoredApproval,
    decision: Decision,
) -> Result<(), Failure> {
    let id = &question.request.id;
    let answer = Answer { decision, by: memory.user.clone(), from: CHANNEL };
    if tenant.answer(id, answer).await? {
        return Ok(());
    }
    // Somebody was faster, or it expired.
    let state = tenant.approval(id).await?.map_or_else(String::new, |question| state(&question));
    Err(Failure::NotOpen { id: id.to_string(), state })
}

/// What is to be remembered of a yes.
fn remember(
    args: &ApproveArgs,
    memory: &Memory,
    question: &StoredApproval,
) -> Result<Option<StoredGrant>, Failure> {
    let Some(wanted) = args.remember else { return Ok(None) };
    let request = &question.request;
    let now = Timestamp::now();
    let none = || {
        let kinds = request.offers.iter().filter_map(|offer| Remember::typed(offer.kind()));
        Failure::NoOffer { id: request.id.to_string(), kinds: kinds.collect::<Vec<_>>().join(", ") }
    };
    let lasts = match (args.lasts.as_str(), &request.asker.session) {
        ("always", _) => Lasts::Always,
        ("session", Some(session)) => Lasts::Session(session.to_string()),
        ("session", None) => {
            let problem = "the call belongs to no session".to_owned();
            return Err(Failure::BadEdit { problem });
        }
        (time, _) => {
            let time = haft::assembly::age(time).filter(|time| !time.is_zero());
            let end = time.and_then(|time| now.checked_add(time).ok());
            let problem =
                || format!("`{}` is not a time; write session, always, 8h or 7d", words::name(&args.lasts));
            Lasts::Until(end.ok_or_else(|| Failure::BadEdit { problem: problem() })?)
        }
    };
    let offer = request.offers.iter().find(|offer| offer.kind() == wanted.kind()).ok_or_else(none)?;
    assembly::to_store(offer, &lasts, &request.asker, &memory.user, now).map(Some).ok_or_else(none)
}

/// Other arguments: the process that makes the call plans it again, and asks about that.
async fn edit(
    args: &ApproveArgs,
    memory: &Memory,
    tenant: &Tenant,
    named: &[StoredApproval],
    console: &mut Console,
) -> Result<u8, Failure> {
    let bad = |problem: &str| Failure::BadEdit { problem: problem.to_owned() };
    let [question] = named else { return Err(bad("name one approval")) };
    let before = &question.request.arguments;
    if before.as_str().contains("[redacted:") {
        return Err(bad("they have redacted secrets"));
    }
    let after = match &args.args {
        Some(text) => {
            let after = Arguments::from_text(text.trim());
            let same = after.parse().map_err(|problem| bad(&problem.to_string()))?
                == before.parse().unwrap_or_default();
            (!same).then_some(after)
        }
        None => edited(memory, before).map_err(|problem| bad(&problem))?,
    };
    let after = after.ok_or_else(|| bad("they did not change"))?;
    answer(tenant, memory, question, Decision::Edit { arguments: after }).await?;
    let changed = changed(tenant, question).await?;
    if args.json {
        let changed = changed.as_ref().map(|changed| &changed.request.id);
        console.print_json(&json!({"edited": question.request.id, "changed": changed}))?;
        return Ok(0);
    }
    match changed {
        Some(changed) => {
            console.print(shown(&changed, &[], console.width()))?;
            console.say(format!("haft approvals approve {} lets it run so", changed.request.id));
        }
        None => console.say(
            "nobody waits for it now; when the call is sent again, it is planned with these arguments and asked about",
        ),
    }
    Ok(0)
}

#[cfg(unix)]
fn edited(memory: &Memory, before: &Arguments) -> Result<Option<Arguments>, String> {
    match &memory.editor {
        Some(editor) => editor.edit(before),
        None => Err("there is no folder to edit them in".to_owned()),
    }
}

#[cfg(not(unix))]
fn edited(_memory: &Memory, _before: &Arguments) -> Result<Option<Arguments>, String> {
    Err("use --args here".to_owned())
}

/// The question about the changed call, once the process that waits has planned it.
async fn changed(tenant: &Tenant, question: &StoredApproval) -> Result<Option<StoredApproval>, Failure> {
    let begun = Instant::now();
    let filter = ApprovalFilter { replaces: Some(question.request.id.clone()), ..ApprovalFilter::default() };
    loop {
        if let Some(changed) = tenant.approvals(filter.clone()).await?.pop() {
            return Ok(Some(changed));
        }
        // Nobody has taken the answer: nobody waits.
        let taken = tenant.approval(&question.request.id).await?;
        let is_taken = taken.is_some_and(|question| question.used_by.is_some());
        if begun.elapsed() > CHANGED || (!is_taken && begun.elapsed() > CHANGED / 5) {
            return Ok(None);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Shows questions as they come. At a terminal each is asked about there; elsewhere each is a line.
pub(super) async fn watch(
    memory: &Memory,
    tenant: Option<&str>,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let tenant = memory.store.tenant(&tenant_or_own(tenant));
    let prompt = if json { None } else { prompt(memory, console) };
    if prompt.is_some() {
        console.say("waiting for calls that need approval; Ctrl-C stops");
    }
    tokio::select! {
        biased;
        // What is being asked here is dropped, and stays open.
        _ = tokio::signal::ctrl_c() => Ok(130),
        ended = answer_all(memory, &tenant, prompt.as_deref(), json, console) => ended,
    }
}

async fn answer_all(
    memory: &Memory,
    tenant: &Tenant,
    prompt: Option<&dyn Approver>,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let mut seen = HashSet::new();
    loop {
        for question in tenant.approvals(open_approvals()).await? {
            if !seen.insert(question.request.id.clone()) {
                continue;
            }
            match &prompt {
                Some(prompt) => ask(*prompt, memory, tenant, &question, console).await?,
                None if json => console.print_json(&question)?,
                None => console.print(format!("{}\n", line(&question)))?,
            }
        }
        if console.is_closed() {
            return Ok(0);
        }
        tokio::time::sleep(LOOK).await;
    }
}

type Asks = Box<dyn Approver>;

#[cfg(unix)]
fn prompt(memory: &Memory, console: &Console) -> Option<Asks> {
    let channel = crate::prompt::CHANNEL;
    let counts = haft::assembly::settings(&memory.config).accept_answers.counts(channel);
    let editor = memory.editor.clone().filter(|_| counts)?;
    let prompt = crate::prompt::Prompt::new(console.again(), memory.lazy.clone(), editor)?;
    Some(Box::new(prompt))
}

#[cfg(not(unix))]
fn prompt(_memory: &Memory, _console: &Console) -> Option<Asks> {
    None
}

/// Asks about one question here, unless somebody answers it elsewhere first.
async fn ask(
    prompt: &dyn Approver,
    memory: &Memory,
    tenant: &Tenant,
    question: &StoredApproval,
    console: &Console,
) -> Result<(), Failure> {
    let requests = std::slice::from_ref(&question.request);
    let id = &question.request.id;
    let mut asking = std::pin::pin!(prompt.ask(requests));
    let mut looks = tokio::time::interval(LOOK);
    let said = loop {
        tokio::select! {
            biased;
            said = &mut asking => break said,
            _ = looks.tick() => {
                let now = tenant.approval(id).await?;
                match now.map(|question| question.state) {
                    Some(ApprovalState::Open) => {}
                    Some(ApprovalState::Approved | ApprovalState::Used) => {
                        prompt.answered_elsewhere(id, &Decision::Approve);
                    }
                    Some(ApprovalState::Denied | ApprovalState::Edited) => {
                        prompt.answered_elsewhere(id, &Decision::Deny { reason: None });
                    }
                    Some(ApprovalState::Expired) | None => prompt.answered_elsewhere(id, &Decision::Expired),
                }
            }
        }
    };
    let decision = said.ok().and_then(|said| said.into_iter().next()).unwrap_or(Decision::Unanswered);
    if decision == Decision::Unanswered {
        return Ok(());
    }
    let answer = Answer { decision, by: memory.user.clone(), from: prompt.channel() };
    if !tenant.answer(id, answer).await? {
        console.say("somebody else answered first");
    }
    Ok(())
}
