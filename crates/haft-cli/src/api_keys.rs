//! `haft keys create`, `list`, `revoke`: API keys, by which programs are known to `haft serve`.

use super::{
    console::{Console, STRONG},
    failure::Failure,
    memory::Memory,
    setup::{CliContext, now},
    words,
};
use clap::Args;
use haft::port::{ApiKey, KeyStore as _, Right};
use haft_core::{
    id_prefix::{self, IdMatch},
    text::one_line,
};
use haft_server::{ApiSecret, is_reserved};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// A name that says what the key is for
    name: String,
    /// What the key may do: invoke, approve or operate; can be repeated
    #[arg(long = "right", value_name = "RIGHT", required = true, value_parser = right)]
    rights: Vec<Right>,
    /// The tenant of the key
    #[arg(long, value_name = "NAME", default_value = "local")]
    tenant: String,
    /// A role, which decides which tools it may call; can be repeated
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// The agent of the key [default: each request names its own]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The person who uses the key
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Lifetime of the key, such as 12h or PT720H; `never` makes a key without expiry [default: 90 days]
    #[arg(long, value_name = "TIME", default_value = "PT2160H", value_parser = lasts, hide_default_value = true)]
    expires: Lasts,
    /// Print one JSON document only
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
enum Lasts {
    For(Duration),
    Forever,
}

fn right(typed: &str) -> Result<Right, String> {
    typed.parse().map_err(|problem: haft::port::NotARight| problem.to_string())
}

fn lasts(typed: &str) -> Result<Lasts, String> {
    match typed {
        "never" => Ok(Lasts::Forever),
        typed => words::time(typed).map(Lasts::For),
    }
}

/// What is wrong with a wish for a key.
fn bad(what: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::Server { what: what.into(), help: help.into() }
}

/// The roles that a tenant's callers can have: those that come with haft, and those of the configuration.
fn roles(config: &haft::config::Config, tenant: &str) -> Vec<String> {
    let own = config.permissions.roles.iter().filter_map(|text| haft_guard::Role::read(text).ok());
    let own = own.filter(|(of, _, _)| of.as_deref().is_none_or(|of| of == tenant)).map(|(_, name, _)| name);
    ["viewer", "contributor", "editor", "admin"].map(str::to_owned).into_iter().chain(own).collect()
}

fn is_role(config: &haft::config::Config, tenant: &str, role: &str) -> bool {
    roles(config, tenant).iter().any(|known| known == role)
}

pub(super) fn create(args: &CreateArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let mut rights = args.rights.clone();
    rights.sort();
    rights.dedup();
    let both = [Right::Invoke, Right::Approve].iter().all(|right| rights.contains(right));
    if both && !memory.config.server.invoke_and_approve {
        return Err(bad(
            "a key that makes calls must not approve them",
            "make two keys, or set server.invoke_and_approve = true in your own haft.toml",
        ));
    }
    let names = [Some(&args.name), Some(&args.tenant), args.agent.as_ref(), args.user.as_ref()];
    let is_odd = |text: &&String| haft_core::check_name("name", text).is_err();
    if let Some(odd) = names.into_iter().flatten().chain(&args.roles).find(is_odd) {
        let shown = words::name(odd);
        return Err(bad(
            format!("`{shown}` cannot be a name"),
            "names have 1 to 255 characters, none of which controls anything",
        ));
    }
    if let Some(taken) = [&args.agent, &args.user].into_iter().flatten().find(|name| is_reserved(name)) {
        return Err(bad(
            format!("a key cannot stand for `{}`", words::name(taken)),
            "the names `owner`, `mcp:…` and `key_…` are haft's own: choose another one",
        ));
    }
    if let Some(unknown) = args.roles.iter().find(|role| !is_role(&memory.config, &args.tenant, role)) {
        let known = roles(&memory.config, &args.tenant);
        let near = haft_core::suggest::nearest(unknown, known.iter().map(String::as_str));
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        return Err(bad(
            format!("there is no role `{}`", words::name(unknown)),
            format!("{near}Known: {}; permissions.roles in your own haft.toml adds others", known.join(", ")),
        ));
    }
    if args.roles.is_empty() && rights.contains(&Right::Invoke) {
        console.warn("the key has no role, so it may call only tools that need no permission; add --role editor, for one");
    }
    let created_at = Timestamp::now();
    let expires_at = match args.expires {
        Lasts::Forever => None,
        Lasts::For(time) => {
            let end = SignedDuration::try_from(time).ok().and_then(|time| created_at.checked_add(time).ok());
            Some(
                end.ok_or_else(|| bad("that is too long", "use `--expires never` for a key without expiry"))?,
            )
        }
    };
    let secret = ApiSecret::random().map_err(Failure::Task)?;
    let key = ApiKey {
        id: format!("key_{}", &haft::TaskId::random().as_str()[4..20]),
        name: args.name.clone(),
        tenant: args.tenant.as_str().into(),
        agent: args.agent.as_deref().map(Into::into),
        user: args.user.as_deref().map(Into::into),
        roles: args.roles.clone(),
        rights,
        created_at,
        created_by: one_line(&memory.user, 100),
        expires_at,
        revoked_at: None,
    };
    now(memory.store.add(key.clone(), secret.hash()))??;
    if args.json {
        console.print_json(&json!({"key": key, "secret": secret.as_str()}))?;
    } else {
        let until = key.expires_at.map_or_else(|| "without expiry".to_owned(), |end| format!("until {end}"));
        console.print(format!("{}\n", secret.as_str()))?;
        console.say(format!(
            "{} is valid {until}. The secret is shown only now; `haft keys revoke {}` revokes the key",
            key.id, key.id
        ));
    }
    Ok(0)
}

pub(super) fn list(
    tenant: Option<&str>,
    json: bool,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let keys = now(memory.store.all(tenant))??;
    if json {
        console.print_json(&json!({"keys": keys}))?;
        return Ok(0);
    }
    if keys.is_empty() {
        console.print("there are no API keys\n")?;
        return Ok(0);
    }
    let today = Timestamp::now();
    for key in keys {
        let state = match (key.revoked_at, key.expires_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(end)) if end <= today => format!("expired {end}"),
            (None, Some(end)) => format!("until {end}"),
            (None, None) => "without expiry".to_owned(),
        };
        let rights = key.rights.iter().map(|right| right.as_str()).collect::<Vec<_>>().join(", ");
        let (name, tenant) = (words::name(&key.name), words::name(&key.tenant));
        console.print(format!("{STRONG}{}{STRONG:#}  {tenant}  {rights}  {state}  {name}\n", key.id))?;
    }
    Ok(0)
}

/// The id of the key that was named, whole or by a prefix. Of several, those that were revoked already are not meant.
fn whole_id(keys: &[ApiKey], typed: &str) -> Result<String, Failure> {
    let typed = typed.trim();
    if !id_prefix::is_prefix(typed, "key_") {
        return Ok(typed.to_owned());
    }
    let fitting = keys.iter().filter(|key| key.revoked_at.is_none() && key.id.starts_with(typed));
    let matches = fitting.map(|key| IdMatch { id: key.id.clone(), what: key.name.clone() });
    let matches: Vec<_> = matches.collect();
    Ok(id_prefix::only(typed, &matches)?.unwrap_or(typed).to_owned())
}

pub(super) fn revoke(
    id: &str,
    json: bool,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let keys = now(memory.store.all(None))??;
    let id = &whole_id(&keys, id)?;
    if !now(memory.store.revoke(id, &one_line(&memory.user, 100)))?? {
        return Err(bad(
            format!("there is no active key `{}`", words::name(id)),
            "`haft keys list` shows every key",
        ));
    }
    match json {
        true => console.print_json(&json!({"revoked": id}))?,
        false => console.print(format!(
            "{} is revoked; a running server notices within two seconds\n",
            words::name(id)
        ))?,
    }
    Ok(0)
}
