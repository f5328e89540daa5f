//! `haft grants`: what a person agreed to ahead of time.

use super::{
    Memory,
    record::moment,
    table::{Side, table},
};
use crate::{console::Console, examples, failure::Failure, layout, words};
use clap::Subcommand;
use haft::port::StoredGrant;
use haft_core::{
    id_prefix::{self, IdMatch},
    text::one_line,
};
use jiff::Timestamp;
use serde_json::json;

#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// List active grants, oldest first
    #[command(after_help = examples::GRANTS_LIST)]
    List {
        /// Include expired and revoked grants
        #[arg(long)]
        all: bool,
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Show a grant: what it covers, for whom, until when
    #[command(after_help = examples::GRANTS_SHOW)]
    Show {
        /// The id of the grant, or a prefix of it
        id: String,
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Revoke grants: haft asks about the next call again
    #[command(after_help = examples::GRANTS_REVOKE)]
    Revoke {
        /// The ids of the grants, or prefixes of them
        #[arg(required_unless_present = "all", value_name = "ID")]
        ids: Vec<String>,
        /// Every active grant
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(
    command: &GrantsCommand,
    memory: &Memory,
    console: &mut Console,
) -> Result<u8, Failure> {
    match command {
        GrantsCommand::List { all, tenant, json } => {
            let grants = memory.approvals(tenant.as_deref()).grants(*all).await?;
            if *json {
                console.print_json(&json!({"grants": grants}))?;
            } else if grants.is_empty() {
                console.print("there are no active grants\n")?;
            } else {
                console.print(overview(&grants, Timestamp::now(), console.width()))?;
            }
        }
        GrantsCommand::Show { id, tenant, json } => {
            let grant = find(memory.approvals(tenant.as_deref()).grants(true).await?, id)?;
            match json {
                true => console.print_json(&grant)?,
                false => console.print(shown(&grant, console.width()))?,
            }
        }
        GrantsCommand::Revoke { ids, all, tenant, json } => {
            let approvals = memory.approvals(tenant.as_deref());
            let holding = approvals.grants(false).await?;
            let named = match all {
                true => holding,
                false => ids.iter().map(|id| find(holding.clone(), id)).collect::<Result<Vec<_>, _>>()?,
            };
            let mut revoked = Vec::new();
            for grant in named {
                // Another process may have been faster; it does not hold either way.
                if approvals.revoke(&grant.id, &memory.user).await? {
                    revoked.push(grant);
                }
            }
            if *json {
                let ids: Vec<&str> = revoked.iter().map(|grant| grant.id.as_str()).collect();
                console.print_json(&json!({"revoked": ids}))?;
            } else if revoked.is_empty() {
                console.print("there are no active grants\n")?;
            } else {
                for grant in revoked {
                    console.print(format!("revoked {}: {}\n", grant.id, one_line(&grant.shown, 400)))?;
                }
            }
        }
    }
    Ok(0)
}

fn find(grants: Vec<StoredGrant>, typed: &str) -> Result<StoredGrant, Failure> {
    let none = || Failure::NoGrant { id: typed.to_owned() };
    if !id_prefix::is_prefix(typed, "grant_") {
        return Err(none());
    }
    let fitting = grants.iter().filter(|grant| grant.id.starts_with(typed.trim()));
    let matches = fitting.map(|grant| IdMatch { id: grant.id.clone(), what: grant.shown.clone() });
    let matches: Vec<_> = matches.collect();
    let id = id_prefix::only(typed, &matches)?.ok_or_else(none)?.to_owned();
    grants.into_iter().find(|grant| grant.id == id).ok_or_else(none)
}

fn overview(grants: &[StoredGrant], now: Timestamp, width: Option<usize>) -> String {
    let heading = [("grant", Side::Left), ("since", Side::Left), ("what", Side::Left)];
    let rows: Vec<Vec<String>> = grants
        .iter()
        .map(|grant| {
            let what = match over(grant, now) {
                Some(over) => format!("({over}) {}", grant.shown),
                None => grant.shown.clone(),
            };
            vec![grant.id.clone(), moment(grant.granted_at, now), one_line(&what, 400)]
        })
        .collect();
    table(&heading, &rows, width)
}

/// Why it does not hold any more, where it does not.
fn over(grant: &StoredGrant, now: Timestamp) -> Option<&'static str> {
    match (grant.revoked_at, grant.expires_at) {
        (Some(_), _) => Some("revoked"),
        (None, Some(end)) if end <= now => Some("expired"),
        // An earlier haft did not say by which way it came, so nobody knows whether that counts.
        (None, _) if grant.granted_from.is_none() => Some("covers nothing, revoke it"),
        (None, _) => None,
    }
}

fn shown(grant: &StoredGrant, width: Option<usize>) -> String {
    let mut rows = vec![
        ("id".to_owned(), grant.id.clone()),
        ("what".to_owned(), one_line(&grant.shown, 1000)),
        ("granted by".to_owned(), format!("{} at {}", words::name(&grant.granted_by), grant.granted_at)),
    ];
    let from = grant.granted_from.map_or("unknown, so it covers nothing", haft_core::Channel::as_str);
    rows.push(("by way of".to_owned(), from.to_owned()));
    let to = grant.user.as_ref().or(grant.agent.as_ref());
    rows.extend(to.map(|to| ("to".to_owned(), words::name(to))));
    rows.extend(grant.session.as_ref().map(|session| ("session".to_owned(), words::name(session))));
    rows.extend(grant.expires_at.map(|at| ("until".to_owned(), at.to_string())));
    rows.extend(grant.revoked_at.map(|at| ("revoked".to_owned(), at.to_string())));
    layout::list(&rows, width)
}
