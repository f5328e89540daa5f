//! `haft approvals approve`, `deny`, `watch`: answers from here, for calls anywhere.

use super::{
    Memory,
    approvals::{ApproveArgs, DenyArgs, covered, short, shown},
};
use crate::{console::Console, failure::Failure, watchers::Watcher, words};
use haft::{
    Answered, ApprovalError, Approvals, Arguments, Channel, Decision, GrantTime, Remember, Reply, WhichOffer,
    port::{ApprovalState, Approver, StoredApproval},
};
use haft_core::text::one_line;
use serde_json::json;
use std::{collections::HashSet, pin::pin, time::Duration};

/// What answers from here are recorded as having come from.
const CHANNEL: Channel = Channel::CommandLine;

/// How often it is looked whether anybody still reads what is printed.
const LOOK: Duration = Duration::from_millis(200);
/// How long the changed call is waited for. A process that waits looks ten times a second.
const CHANGED: Duration = Duration::from_secs(5);

pub(super) async fn approve(
    args: &ApproveArgs,
    memory: &Memory,
    console: &mut Console,
) -> Result<u8, Failure> {
    let approvals = memory.approvals(args.tenant.as_deref());
    approvals.accepts(CHANNEL)?;
    let named = named(&approvals, &args.ids, args.all).await?;
    if args.edit || args.args.is_some() {
        return edit(args, memory, &approvals, &named, console).await;
    }
    let reply = Reply::Approve { remember: remember(args)? };
    // What does not fit is said before anything is answered.
    for question in &named {
        approvals.check(question, &reply, CHANNEL)?;
    }
    if !args.json {
        // What is approved has been seen, also what `--all` brings along.
        for question in &named {
            console.say(covered(question, console.side_width()).trim_end());
        }
    }
    let mut remembered = Vec::new();
    for question in &named {
        let id = &question.request.id;
        let Answered { grant, .. } = approvals.answer(id, reply.clone(), &memory.user, CHANNEL).await?;
        remembered.extend(grant);
    }
    if args.json {
        let ids: Vec<_> = named.iter().map(|question| &question.request.id).collect();
        console.print_json(&json!({"approved": ids, "grants": remembered}))?;
        return Ok(0);
    }
    for question in &named {
        console.print(format!("approved {}\n", line(question)))?;
    }
    for grant in &remembered {
        console.print(format!("remembered as {}: {}\n", grant.id, one_line(&grant.shown, 400)))?;
    }
    console.say("a waiting call goes on now; a call that ended runs when it is sent again");
    Ok(0)
}

pub(super) async fn deny(args: &DenyArgs, memory: &Memory, console: &mut Console) -> Result<u8, Failure> {
    let approvals = memory.approvals(args.tenant.as_deref());
    approvals.accepts(CHANNEL)?;
    let named = named(&approvals, &args.ids, args.all).await?;
    let reply = Reply::Deny { reason: args.reason.clone() };
    for question in &named {
        approvals.check(question, &reply, CHANNEL)?;
    }
    for question in &named {
        approvals.answer(&question.request.id, reply.clone(), &memory.user, CHANNEL).await?;
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

fn line(question: &StoredApproval) -> String {
    let request = &question.request;
    format!("{}  {}: {}", short(&request.id), words::name(&request.tool), one_line(&request.summary, 200))
}

/// The approvals that were named, with the others of their batches where those are meant, too.
async fn named(approvals: &Approvals, ids: &[String], all: bool) -> Result<Vec<StoredApproval>, Failure> {
    let mut named: Vec<StoredApproval> = Vec::new();
    for id in ids {
        named.push(approvals.find(id).await?);
    }
    if all {
        let batches: HashSet<_> = named.iter().filter_map(|question| question.request.batch_id).collect();
        let open = approvals.open().await?;
        named.extend(
            open.into_iter()
                .filter(|question| question.request.batch_id.is_some_and(|batch| batches.contains(&batch))),
        );
    }
    let mut seen = HashSet::new();
    named.retain(|question| seen.insert(question.request.id.clone()));
    Ok(named)
}

/// What is to be remembered of a yes, as it was typed.
fn remember(args: &ApproveArgs) -> Result<Option<Remember>, Failure> {
    let Some(wanted) = args.remember else { return Ok(None) };
    let lasts = match args.lasts.as_str() {
        "always" => GrantTime::Always,
        "session" => GrantTime::Session,
        time => {
            let bad = || {
                let typed = words::name(time);
                Failure::BadEdit {
                    problem: format!("`{typed}` is not a time; write session, always, 8h or 7d"),
                }
            };
            GrantTime::For(haft::assembly::age(time).ok_or_else(bad)?)
        }
    };
    Ok(Some(Remember { offer: WhichOffer::Kind(wanted.kind().to_owned()), lasts }))
}

/// Other arguments: the process that makes the call plans it again, and asks about that.
async fn edit(
    args: &ApproveArgs,
    memory: &Memory,
    approvals: &Approvals,
    named: &[StoredApproval],
    console: &mut Console,
) -> Result<u8, Failure> {
    let bad = |problem: &str| Failure::BadEdit { problem: problem.to_owned() };
    let [question] = named else { return Err(bad("name one approval")) };
    let request = &question.request;
    let arguments = match &args.args {
        Some(text) => Arguments::from_text(text.trim()),
        // Nobody edits for nothing.
        None if !request.can_edit() => return Err(ApprovalError::Hidden.into()),
        None => edited(memory, &request.arguments)
            .map_err(|problem| bad(&problem))?
            .ok_or(ApprovalError::Unchanged)?,
    };
    approvals.answer(&request.id, Reply::Edit { arguments }, &memory.user, CHANNEL).await?;
    let changed = approvals.replacement(&request.id, CHANGED).await?;
    if args.json {
        let changed = changed.as_ref().map(|changed| &changed.request.id);
        console.print_json(&json!({"edited": request.id, "changed": changed}))?;
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

/// Shows approvals as they come. At a terminal each is asked about there; elsewhere each is a line.
pub(super) async fn watch(
    memory: &Memory,
    tenant: Option<&str>,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let approvals = memory.approvals(tenant);
    let prompt = if json { None } else { prompt(memory, console) };
    // Only who can answer is waited for: lines that a program reads are no answer.
    let watcher = prompt.is_some().then(|| Watcher::new(&memory.state, &super::tenant_or_own(tenant)));
    if let Some(Err(error)) = &watcher {
        console.warn(&format!("calls do not wait for answers from here: {error}"));
    }
    if prompt.is_some() {
        console.say("waiting for calls that need approval; Ctrl-C stops");
    }
    tokio::select! {
        biased;
        // What is being asked here is dropped, and stays open.
        _ = tokio::signal::ctrl_c() => Ok(130),
        ended = answer_all(memory, &approvals, prompt.as_deref(), json, console) => ended,
    }
}

async fn answer_all(
    memory: &Memory,
    approvals: &Approvals,
    prompt: Option<&dyn Approver>,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let mut open = approvals.subscribe();
    loop {
        let question = {
            let mut next = pin!(open.next());
            loop {
                tokio::select! {
                    biased;
                    question = &mut next => break question?,
                    () = tokio::time::sleep(LOOK) => {
                        if console.is_closed() {
                            return Ok(0);
                        }
                    }
                }
            }
        };
        match &prompt {
            Some(prompt) => ask(*prompt, memory, approvals, &question, console).await?,
            None if json => console.print_json(&question)?,
            None => console.print(format!("{}\n", line(&question)))?,
        }
        if console.is_closed() {
            return Ok(0);
        }
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

/// Asks about one approval here, unless somebody answers it elsewhere first.
async fn ask(
    prompt: &dyn Approver,
    memory: &Memory,
    approvals: &Approvals,
    question: &StoredApproval,
    console: &Console,
) -> Result<(), Failure> {
    // It may have been answered while an earlier one was asked about.
    let id = &question.request.id;
    if state(approvals.get(id).await)? != ApprovalState::Open {
        return Ok(());
    }
    let mut asking = pin!(prompt.ask(std::slice::from_ref(&question.request)));
    let mut elsewhere = pin!(approvals.wait(id, None));
    let mut is_over = false;
    let said = loop {
        tokio::select! {
            biased;
            said = &mut asking => break said,
            now = &mut elsewhere, if !is_over => {
                is_over = true;
                prompt.answered_elsewhere(id, &decision(state(now)?));
            }
        }
    };
    let decided = said.ok().and_then(|said| said.into_iter().next()).unwrap_or(Decision::Unanswered);
    let Some(reply) = Reply::of(decided.clone()) else { return Ok(()) };
    match approvals.answer(id, reply, &memory.user, prompt.channel()).await {
        // A yes that is remembered is written down by the prompt, with its grant.
        Err(ApprovalError::NotOpen(now))
            if now.answered_from == Some(prompt.channel()) && decision(now.state) == decided => {}
        Err(ApprovalError::NotOpen(_)) => console.say("somebody else answered first"),
        answered => drop(answered?),
    }
    Ok(())
}

/// Where an approval stands. One that is gone is over.
fn state(found: Result<StoredApproval, ApprovalError>) -> Result<ApprovalState, Failure> {
    match found {
        Ok(found) => Ok(found.state),
        Err(ApprovalError::NotFound { .. }) => Ok(ApprovalState::Expired),
        Err(error) => Err(error.into()),
    }
}

/// What an answer elsewhere means to somebody who is being asked.
fn decision(state: ApprovalState) -> Decision {
    match state {
        ApprovalState::Open => Decision::Unanswered,
        ApprovalState::Approved | ApprovalState::Used => Decision::Approve,
        ApprovalState::Denied | ApprovalState::Edited => Decision::Deny { reason: None },
        ApprovalState::Expired => Decision::Expired,
    }
}
