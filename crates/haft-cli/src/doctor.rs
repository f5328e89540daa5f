//! `haft doctor`: what this machine can enforce, tried out.

use super::{
    args::DoctorArgs,
    console::{Console, STRONG},
    failure::Failure,
    layout,
    setup::CliContext,
    watch,
};
use haft::{
    assembly::{LazyJail, can_stage},
    doctor::{JailReport, examine},
    port::Jail as _,
};
use serde_json::json;

pub(super) fn run(args: &DoctorArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let setup = ground.setup(console)?;
    let folders =
        super::setup::folders(&surroundings, &setup.resolved.config).ok_or(Failure::NoStateFolder)?;
    let jail = LazyJail::new(&setup.resolved.config, &folders);
    let reports = match jail.jails() {
        Ok(jails) => {
            if console.is_terminal() {
                console.say("trying every jail …");
            }
            let runtime = watch::runtime()?;
            let reports = runtime.block_on(examine(jails.jails()));
            runtime.shutdown_background();
            reports.map_err(Failure::Runtime)?
        }
        Err(unavailable) => {
            if args.json {
                console.print_json(&json!({"jails": [], "problem": unavailable.to_string()}))?;
            } else {
                console.error(&unavailable.reason, Some(&unavailable.fix));
            }
            return Ok(1);
        }
    };
    let auto = |level| jail.offers(level).ok().map(|enforcement| enforcement.jail.into_owned());
    let chosen = json!({
        "standard": auto(haft::IsolationLevel::Standard),
        "strict": auto(haft::IsolationLevel::Strict),
        "restricted": auto(haft::IsolationLevel::Restricted),
    });
    let staged = can_stage(&setup.resolved.config, &folders, &jail);
    if args.json {
        let staged = match &staged {
            Ok(()) => json!({"available": true}),
            Err(why) => json!({"available": false, "path": why.path, "reason": why.reason, "fix": why.fix}),
        };
        console.print_json(&json!({"jails": reports, "auto": chosen, "staged": staged}))?;
    } else {
        console.print(shown(&reports, &chosen, console.width()))?;
        console.print(match staged {
            Ok(()) => "commands in this folder can be staged\n".to_owned(),
            Err(why) => {
                let text = format!("commands in this folder cannot be staged: {}", why.reason);
                let fix = layout::indented(&format!("fix: {}", why.fix), 2, console.width());
                format!("{}{fix}", layout::indented(&text, 0, console.width()))
            }
        })?;
    }
    Ok(u8::from(chosen["strict"].is_null()))
}

fn shown(reports: &[JailReport], chosen: &serde_json::Value, width: Option<usize>) -> String {
    let mut out = String::new();
    for report in reports {
        out.push_str(&format!("{STRONG}{}{STRONG:#}\n", report.jail));
        for level in &report.levels {
            let name = format!("{:?}", level.level).to_lowercase();
            if level.available {
                out.push_str(&format!("  ✓ {name}\n"));
            } else {
                let reason = level.reason.as_deref().unwrap_or_default();
                out.push_str(&layout::indented(&format!("✗ {name}: {reason}"), 2, width));
                if let Some(fix) = level.fix.as_deref().filter(|fix| !fix.is_empty()) {
                    out.push_str(&layout::indented(&format!("fix: {fix}"), 6, width));
                }
            }
        }
        for check in &report.checks {
            let mark = if check.held { '✓' } else { '✗' };
            out.push_str(&format!("    {mark} {}\n", check.name));
            if let Some(seen) = &check.seen {
                out.push_str(&layout::indented(seen, 8, width));
            }
        }
        if let Some(details) =
            report.levels.iter().rev().find(|level| level.available).map(|level| &level.details)
        {
            let said: Vec<_> = details.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            out.push_str(&layout::indented(&said.join(", "), 4, width));
        }
    }
    for level in ["standard", "strict", "restricted"] {
        let jail = chosen[level].as_str().unwrap_or("no jail; haft refuses calls that need it");
        out.push_str(&format!("{level}: {jail}\n"));
    }
    out
}
