//! `haft approvals`: what waits for a person, and what came of it.

use super::{
    Memory, answering,
    record::moment,
    table::{Side, table},
};
use crate::{
    call_view,
    console::{BAD, Console, GOOD, QUIET, STRONG, UNSURE},
    examples,
    failure::Failure,
    layout, words,
};
use clap::{Args, Subcommand, ValueEnum};
use haft::{
    ApprovalId, Risk,
    port::{ApprovalFilter, ApprovalState, StoredApproval},
};
use haft_core::text::{one_line, spelled_line};
use haft_engine::standing;
use haft_guard::spared;
use jiff::Timestamp;
use serde_json::json;

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that wait for approval, oldest first
    #[command(after_help = examples::APPROVALS_LIST)]
    List {
        /// Include answered calls
        #[arg(long)]
        all: bool,
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Show a waiting call: who, what, why, and what it would change
    #[command(after_help = examples::APPROVALS_SHOW)]
    Show {
        /// The id of the approval, or a prefix of it
        id: String,
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Approve calls
    #[command(after_help = examples::APPROVALS_APPROVE)]
    Approve(ApproveArgs),
    /// Deny calls
    #[command(after_help = examples::APPROVALS_DENY)]
    Deny(DenyArgs),
    /// Wait for calls that need approval, and answer each one
    #[command(after_help = examples::APPROVALS_WATCH)]
    Watch {
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Print each call as a line of JSON, and answer nothing
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
    /// The ids of the approvals, or prefixes of them
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Answer every waiting call of the same batch
    #[arg(long)]
    pub(super) all: bool,
    /// Do not ask again about similar calls
    #[arg(long, value_name = "WHAT", conflicts_with = "all")]
    pub(super) remember: Option<Remember>,
    /// How long to remember: session, a time such as 8h or 7d, or always
    #[arg(long = "for", value_name = "TIME", requires = "remember", default_value = "always")]
    pub(super) lasts: String,
    /// Edit the arguments in $EDITOR; haft asks about the changed call again
    #[arg(long, conflicts_with_all = ["all", "remember"])]
    pub(super) edit: bool,
    /// Replace the arguments; haft asks about the changed call again
    #[arg(long, value_name = "JSON", conflicts_with_all = ["all", "remember", "edit"])]
    pub(super) args: Option<String>,
    #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
    pub(super) tenant: Option<String>,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// The ids of the approvals, or prefixes of them
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Answer every waiting call of the same batch
    #[arg(long)]
    pub(super) all: bool,
    /// The reason, which the model reads
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
    pub(super) tenant: Option<String>,
    /// Print one JSON document only
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
}

/// How a kind of offer is typed after `--remember`.
pub(crate) fn remember_as(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "exact_call" => "exact",
        "tool_in_folder" => "folder",
        "commands" => "commands",
        "host" => "host",
        _ => return None,
    })
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
            let approvals = memory.approvals(tenant.as_deref());
            let question = approvals.find(id).await?;
            match json {
                true => console.print_json(&question)?,
                false => {
                    let past = approvals.past(&question.request).await?;
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

async fn list(
    memory: &Memory,
    tenant: Option<&str>,
    all: bool,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let approvals = memory.approvals(tenant);
    let questions = match all {
        true => approvals.list(ApprovalFilter::default()).await?,
        false => approvals.open().await?,
    };
    if json {
        console.print_json(&json!({"approvals": questions}))?;
    } else if questions.is_empty() {
        console.print("no call waits for approval\n")?;
    } else {
        console.print(overview(&questions, Timestamp::now(), console.width()))?;
        if questions.iter().any(|question| question.state == ApprovalState::Open) {
            console.say("haft approvals show ID · approve ID · deny ID");
        }
    }
    Ok(0)
}

fn overview(questions: &[StoredApproval], now: Timestamp, width: Option<usize>) -> String {
    let heading = [
        ("approval", Side::Left),
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

/// A question, whole, with what could be remembered of a yes.
pub(super) fn shown(question: &StoredApproval, past: &[StoredApproval], width: Option<usize>) -> String {
    let request = &question.request;
    let mut out = covered(question, width);
    if question.state == ApprovalState::Open && !request.offers.is_empty() {
        out.push_str(&format!("{STRONG}what haft can remember{STRONG:#}\n"));
        for offer in &request.offers {
            let Some(typed) = remember_as(offer.kind()) else { continue };
            let spared = spared(offer, past);
            let text = format!("--remember {typed}: {}", one_line(&offer.words, usize::MAX));
            out.push_str(&layout::indented(&text, 2, width));
            let spared =
                format!("would have spared {spared} of {}", words::count(past.len(), "earlier question"));
            out.push_str(&format!("{QUIET}{}{QUIET:#}\n", layout::indented(&spared, 4, width).trim_end()));
        }
    }
    out
}

/// A question with what you approve.
pub(super) fn covered(question: &StoredApproval, width: Option<usize>) -> String {
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
        ("state".to_owned(), standing(question)),
    ];
    rows.extend(request.expires_at.map(|at| ("expires".to_owned(), at.to_string())));
    rows.extend(request.replaces.as_ref().map(|id| ("changed".to_owned(), format!("in place of {id}"))));
    if let Some(edited) = &question.edited {
        rows.push(("now".to_owned(), spelled_line(edited.as_str())));
    }
    out.push_str(&layout::list(&rows, width));
    out.push_str(&format!("{STRONG}what you approve{STRONG:#}\n"));
    out.push_str(&call_view::rows(&request.view(), width));
    out
}
