//! `haft approvals`: what waits for a person, and what came of it.

use super::{
    Memory, answering,
    record::moment,
    table::{Side, table},
    tenant_or_own,
};
use crate::{
    ApprovalId, Risk,
    cli::{
        call_view,
        console::{BAD, Console, GOOD, QUIET, STRONG, UNSURE},
        examples,
        failure::Failure,
        layout, words,
    },
    grants,
    port::{Question, QuestionFilter, QuestionState, TenantStore as _},
};
use clap::{Args, Subcommand, ValueEnum};
use haft_core::text::{one_line, spelled_line};
use jiff::Timestamp;
use serde_json::json;

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List what waits for an answer, oldest first
    #[command(after_help = examples::APPROVALS_LIST)]
    List {
        /// Also what is answered already
        #[arg(long)]
        all: bool,
        #[arg(long, value_name = "NAME", help = "Another tenant's")]
        tenant: Option<String>,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Show one question: who asks for what and why, what would change, what could be remembered
    #[command(after_help = examples::APPROVALS_SHOW)]
    Show {
        /// Its id, or how it begins
        id: String,
        #[arg(long, value_name = "NAME", help = "Another tenant's")]
        tenant: Option<String>,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Let a call run
    #[command(after_help = examples::APPROVALS_APPROVE)]
    Approve(ApproveArgs),
    /// Do not let a call run
    #[command(after_help = examples::APPROVALS_DENY)]
    Deny(DenyArgs),
    /// Wait for questions, and answer each as it comes
    #[command(after_help = examples::APPROVALS_WATCH)]
    Watch {
        #[arg(long, value_name = "NAME", help = "Another tenant's")]
        tenant: Option<String>,
        /// Print each as a line of JSON, and answer nothing
        #[arg(long)]
        json: bool,
    },
}

impl ApprovalsCommand {
    /// Whether it may answer a question.
    #[cfg(unix)]
    pub(super) fn answers(&self) -> bool {
        matches!(
            self,
            ApprovalsCommand::Approve(_) | ApprovalsCommand::Deny(_) | ApprovalsCommand::Watch { .. }
        )
    }
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Their ids, or how they begin
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// With all others of the same batch
    #[arg(long)]
    pub(super) all: bool,
    /// Do not ask again about what is like it
    #[arg(long, value_name = "WHAT", conflicts_with = "all")]
    pub(super) remember: Option<Remember>,
    /// For how long: session, a time such as 8h or 7d, or always
    #[arg(
        long = "for",
        value_name = "TIME",
        requires = "remember",
        default_value = "always",
        hide_default_value = true
    )]
    pub(super) lasts: String,
    /// Change the arguments in $EDITOR; the changed call is asked about again
    #[arg(long, conflicts_with_all = ["all", "remember"])]
    pub(super) edit: bool,
    /// Change the arguments to these; the changed call is asked about again
    #[arg(long, value_name = "JSON", conflicts_with_all = ["all", "remember", "edit"])]
    pub(super) args: Option<String>,
    #[arg(long, value_name = "NAME", help = "Another tenant's")]
    pub(super) tenant: Option<String>,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// Their ids, or how they begin
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// With all others of the same batch
    #[arg(long)]
    pub(super) all: bool,
    /// Why, in words that the model gets to read
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    #[arg(long, value_name = "NAME", help = "Another tenant's")]
    pub(super) tenant: Option<String>,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

// Without doc comments on the choices: with them, clap spreads the whole help over three lines an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Remember {
    Exact,
    Folder,
    Commands,
    Host,
}

impl Remember {
    /// How the guard calls it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Remember::Exact => "exact_call",
            Remember::Folder => "tool_in_folder",
            Remember::Commands => "commands",
            Remember::Host => "host",
        }
    }

    /// How it is typed, where the guard calls it so.
    pub(super) fn typed(kind: &str) -> Option<&'static str> {
        Some(match kind {
            "exact_call" => "exact",
            "tool_in_folder" => "folder",
            "commands" => "commands",
            "host" => "host",
            _ => return None,
        })
    }
}

pub(super) async fn run(
    command: &ApprovalsCommand,
    memory: &Memory,
    console: &mut Console,
) -> Result<u8, Failure> {
    match command {
        ApprovalsCommand::List { all, tenant, json } => {
            list(memory, tenant.as_deref(), *all, *json, console).await
        }
        ApprovalsCommand::Show { id, tenant, json } => {
            let question = find(memory, tenant.as_deref(), id).await?;
            match json {
                true => console.print_json(&question)?,
                false => {
                    let past = past(memory, tenant.as_deref(), &question).await?;
                    console.print(shown(&question, &past, console.width()))?;
                }
            }
            Ok(0)
        }
        ApprovalsCommand::Approve(args) => answering::approve(args, memory, console).await,
        ApprovalsCommand::Deny(args) => answering::deny(args, memory, console).await,
        ApprovalsCommand::Watch { tenant, json } => {
            answering::watch(memory, tenant.as_deref(), *json, console).await
        }
    }
}

pub(super) fn open_questions() -> QuestionFilter {
    QuestionFilter { state: Some(QuestionState::Open), ..QuestionFilter::default() }
}

async fn list(
    memory: &Memory,
    tenant: Option<&str>,
    all: bool,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let filter = if all { QuestionFilter::default() } else { open_questions() };
    let questions = memory.store.tenant(&tenant_or_own(tenant)).questions(filter).await?;
    if json {
        console.print_json(&json!({"questions": questions}))?;
    } else if questions.is_empty() {
        console.print("nothing waits for an answer\n")?;
    } else {
        console.print(overview(&questions, Timestamp::now(), console.width()))?;
        if questions.iter().any(|question| question.state == QuestionState::Open) {
            console.say("haft approvals show ID · approve ID · deny ID");
        }
    }
    Ok(0)
}

fn overview(questions: &[Question], now: Timestamp, width: Option<usize>) -> String {
    let heading = [
        ("question", Side::Left),
        ("UTC", Side::Left),
        ("state", Side::Left),
        ("risk", Side::Left),
        ("what", Side::Left),
    ];
    let rows: Vec<Vec<String>> = questions
        .iter()
        .map(|question| {
            let request = &question.request;
            vec![
                short(&request.id),
                moment(question.asked_at, now),
                question.state.as_str().to_owned(),
                risk_word(request.risk).to_owned(),
                format!("{}: {}", words::name(&request.tool), one_line(&request.summary, 200)),
            ]
        })
        .collect();
    table(&heading, &rows, width)
}

/// As much of an id as a person wants to type.
pub(super) fn short(id: &ApprovalId) -> String {
    id.as_str().chars().take(12).collect()
}

fn risk_word(risk: Risk) -> &'static str {
    match risk {
        Risk::Low => "low",
        Risk::Medium => "medium",
        Risk::High => "high",
    }
}

/// The question that was named, whole or by how it begins.
pub(super) async fn find(memory: &Memory, tenant: Option<&str>, typed: &str) -> Result<Question, Failure> {
    let tenant = memory.store.tenant(&tenant_or_own(tenant));
    if let Some(question) = tenant.question(&ApprovalId::from_text(typed)).await? {
        return Ok(question);
    }
    let none = || Failure::NoQuestion { id: typed.to_owned() };
    // Shorter ones would only hit by chance.
    if typed.strip_prefix("apr_").is_none_or(|rest| rest.len() < 4) {
        return Err(none());
    }
    let all = QuestionFilter { limit: 10_000, ..QuestionFilter::default() };
    let mut fitting = tenant.questions(all).await?;
    fitting.retain(|question| question.request.id.as_str().starts_with(typed));
    let mut open: Vec<Question> =
        fitting.iter().filter(|question| question.state == QuestionState::Open).cloned().collect();
    let candidates = if open.is_empty() { &mut fitting } else { &mut open };
    match (candidates.pop(), candidates.is_empty()) {
        (None, _) => Err(none()),
        (Some(question), true) => Ok(question),
        (Some(_), false) => Err(Failure::ManyQuestions { id: typed.to_owned() }),
    }
}

/// Earlier questions about the same tool.
async fn past(memory: &Memory, tenant: Option<&str>, question: &Question) -> Result<Vec<Question>, Failure> {
    let filter = QuestionFilter {
        tool: Some(question.request.tool.to_string()),
        limit: 500,
        ..QuestionFilter::default()
    };
    let mut past = memory.store.tenant(&tenant_or_own(tenant)).questions(filter).await?;
    past.retain(|other| other.request.id != question.request.id);
    Ok(past)
}

/// A question, whole, with what could be remembered of a yes.
pub(super) fn shown(question: &Question, past: &[Question], width: Option<usize>) -> String {
    let request = &question.request;
    let mut out = covered(question, width);
    if question.state == QuestionState::Open && !request.offers.is_empty() {
        out.push_str(&format!("{STRONG}what could be remembered{STRONG:#}\n"));
        for offer in &request.offers {
            let Some(typed) = Remember::typed(offer.kind()) else { continue };
            let spared = grants::spared(offer, past);
            let text = format!("--remember {typed}: {}", one_line(&offer.words, usize::MAX));
            out.push_str(&layout::indented(&text, 2, width));
            let spared =
                format!("would have spared {spared} of {}", words::count(past.len(), "earlier question"));
            out.push_str(&format!("{QUIET}{}{QUIET:#}\n", layout::indented(&spared, 4, width).trim_end()));
        }
    }
    out
}

/// A question with everything that a yes covers.
pub(super) fn covered(question: &Question, width: Option<usize>) -> String {
    let request = &question.request;
    let style = match request.risk {
        Risk::Low => GOOD,
        Risk::Medium => UNSURE,
        Risk::High => BAD,
    };
    let mut out = format!(
        "{STRONG}{}{STRONG:#}  {style}{} risk{style:#}\n",
        words::name(&request.tool),
        risk_word(request.risk)
    );
    out.push_str(&layout::indented(&one_line(&request.summary, 200), 2, width));
    let mut rows = vec![
        ("id".to_owned(), request.id.to_string()),
        ("asked".to_owned(), question.asked_at.to_string()),
        ("state".to_owned(), state(question)),
    ];
    rows.extend(request.expires_at.map(|at| ("expires".to_owned(), at.to_string())));
    rows.extend(request.replaces.as_ref().map(|id| ("changed".to_owned(), format!("in place of {id}"))));
    if let Some(edited) = &question.edited {
        rows.push(("now".to_owned(), spelled_line(edited.as_str())));
    }
    out.push_str(&layout::list(&rows, width));
    out.push_str(&format!("{STRONG}everything that a yes covers{STRONG:#}\n"));
    out.push_str(&call_view::rows(&request.view(), width));
    out
}

/// Where it stands, and by whom.
pub(super) fn state(question: &Question) -> String {
    let mut text = question.state.as_str().to_owned();
    if question.state == QuestionState::Approved && question.used_by.is_some() {
        text = "approved, and taken by the call".to_owned();
    }
    if let Some(by) = &question.answered_by {
        text.push_str(&format!(" by {}", words::name(by)));
    }
    if let Some(from) = &question.answered_from {
        text.push_str(&format!(" ({})", words::name(from)));
    }
    if let Some(reason) = &question.answer_reason {
        text.push_str(&format!(": {}", one_line(reason, 200)));
    }
    text
}
