//! `haft license`: the tier, why it is that, and what it includes.

use super::{
    console::{Console, STRONG},
    examples,
    failure::Failure,
    keys,
    setup::CliContext,
    words,
};
use clap::{Args, Subcommand, ValueHint};
use haft_core::text::one_line;
use haft_guard::{Allowance, LIMITS, Licence, Licensing, TierSource};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum LicenseCommand {
    /// Show the tier, where it comes from, and what it includes
    #[command(after_help = examples::LICENSE)]
    Show {
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Issue a licence, signed with a key of `haft keys generate`
    #[command(after_help = examples::LICENSE_ISSUE)]
    Issue(IssueArgs),
}

#[derive(Debug, Args)]
pub(super) struct IssueArgs {
    /// The tier that the licence gives: Core, WriterPro, Teams or Enterprise
    #[arg(long, value_parser = words::tier)]
    pub(super) tier: haft_core::Tier,
    /// Whose licence it is
    #[arg(long, value_name = "NAME")]
    pub(super) holder: String,
    /// The number of the licence; made up where absent
    #[arg(long)]
    pub(super) id: Option<String>,
    /// Only for this tenant; by default for all of an installation
    #[arg(long, value_name = "NAME")]
    pub(super) tenant: Option<String>,
    /// When it expires, such as 2030-01-01T00:00:00Z; by default never
    #[arg(long, value_name = "TIME")]
    pub(super) expires: Option<jiff::Timestamp>,
    /// The key that signs it [default: signing.key beside your haft.toml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) key: Option<PathBuf>,
}

pub(super) fn run(
    command: &LicenseCommand,
    ground: CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let json = match command {
        LicenseCommand::Show { json } => json,
        LicenseCommand::Issue(args) => return issue(args, &ground, console),
    };
    let setup = ground.setup(console)?;
    let licensing = setup.haft.licensing();
    let (tier, source) = licensing.tier(jiff::Timestamp::now(), &setup.owner.tenant);
    let why = match &source {
        TierSource::Owner => "license.authority is not set, so there are no limits".to_owned(),
        TierSource::Licence(id) => format!("by the licence {id}"),
        TierSource::None => "there is no licence; put its file at license.file".to_owned(),
        TierSource::Refused(problem) => problem.to_string(),
    };
    let licence = match licensing {
        Licensing::ByLicence(Ok(Some(licence))) => Some(licence),
        Licensing::ByLicence(_) | Licensing::Unlimited => None,
    };
    let included = |row: &haft_guard::LimitRow| row.tiers[tier as usize];
    if *json {
        let limits: serde_json::Map<String, Value> =
            LIMITS.iter().map(|row| (row.name.to_owned(), amount(included(row)))).collect();
        console.print_json(&json!({"tier": tier, "why": why, "licence": licence, "limits": limits}))?;
        return Ok(0);
    }
    console.print(format!("{STRONG}{tier:?}{STRONG:#}: {}\n", one_line(&why, 1000)))?;
    if let Some(licence) = licence {
        let until = licence.expires.map_or_else(|| "without expiry".to_owned(), |end| format!("until {end}"));
        console.print(format!("for {}, {until}\n", one_line(&licence.holder, 200)))?;
    }
    console.print("\n")?;
    let width = LIMITS.iter().map(|row| row.name.len()).max().unwrap_or_default();
    for row in LIMITS {
        console.print(format!("{:width$}  {}\n", row.name, included(row)))?;
    }
    Ok(0)
}

/// Signs a licence and prints it: what a person keeps, sends, or writes to a file.
fn issue(args: &IssueArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let key = keys::read(&keys::place(args.key.as_deref(), &surroundings)?)?;
    let now = jiff::Timestamp::now();
    if let Some(at) = args.expires.filter(|at| *at <= now) {
        return Err(Failure::NotIssued { problem: format!("{at} is over") });
    }
    let id = args.id.clone().unwrap_or_else(|| format!("L-{}", haft_core::ExecutionId::at(now)));
    let licence = Licence {
        id: id.clone(),
        holder: args.holder.clone(),
        tier: args.tier,
        valid_from: now,
        expires: args.expires,
        tenant: args.tenant.clone(),
    };
    let text = licence.sign(&key).map_err(|problem| Failure::NotIssued { problem: problem.to_string() })?;
    console.print(format!("{text}\n"))?;
    console.say(format!(
        "Licence {}: {:?} for {}. It counts where license.authority = \"{}\".",
        one_line(&id, 100),
        args.tier,
        one_line(&args.holder, 200),
        key.public()
    ));
    Ok(0)
}

fn amount(allowance: Allowance) -> Value {
    match allowance {
        Allowance::Most(most) => json!(most),
        Allowance::Unlimited => json!("unlimited"),
        Allowance::No => json!(false),
    }
}
