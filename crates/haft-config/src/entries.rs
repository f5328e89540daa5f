//! Lists whose entries say something that has a form of its own: rates and quotas.

use haft_core::{Channel, Quota, RateLimit, RateScope, iso_duration};
use std::time::Duration;

use super::keys::{Config, key};
use super::problem::{ConfigError, EntryFault, Problem};
use super::resolve::Origin;

/// What is wrong with an entry of that key, where its entries have a form.
pub(super) fn fault(key: &str, entry: &str) -> Option<EntryFault> {
    match key {
        "scheduling.rates" => parse_rate(entry).is_none().then_some(EntryFault::NotARate),
        "scheduling.quotas.tenants" => parse_quota(entry).is_none().then_some(EntryFault::NotAQuota),
        "tools.approval.accept_from" => {
            let known = Channel::CONFIGURABLE.iter().any(|channel| channel.as_str() == entry);
            (!known).then_some(EntryFault::NotAChannel)
        }
        _ => None,
    }
}

/// A rate limit as it is written in `scheduling.rates`: `agent 100/m`, `tool:web_fetch 5/10s`. `None` if it is not one.
pub fn parse_rate(entry: &str) -> Option<RateLimit> {
    let (scope, rate) = entry.trim().split_once(char::is_whitespace)?;
    let scope = match scope {
        "all" => RateScope::Global,
        "tenant" => RateScope::Tenant,
        "agent" => RateScope::Agent,
        "tool" => RateScope::Tool,
        named => {
            RateScope::NamedTool(named.strip_prefix("tool:").filter(|name| !name.is_empty())?.to_owned())
        }
    };
    let (calls, per) = rate.trim().split_once('/')?;
    let per = match per.trim() {
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(60 * 60),
        "d" => Duration::from_secs(24 * 60 * 60),
        time => iso_duration::parse(time).ok()?,
    };
    RateLimit::new(scope, calls.trim().parse().ok()?, per)
}

/// A tenant's quota as it is written in `scheduling.quotas.tenants`: `acme calls=1000 bytes=1000000`. `None` if it is
/// not one.
pub fn parse_quota(entry: &str) -> Option<(String, Quota)> {
    let mut words = entry.split_whitespace();
    let tenant = words.next().filter(|tenant| !tenant.contains('='))?;
    let mut quota = Quota::default();
    let mut is_empty = true;
    for word in words {
        let (name, amount) = word.split_once('=')?;
        let place = match name {
            "calls" => &mut quota.calls,
            "cpu_seconds" => &mut quota.cpu_seconds,
            "bytes" => &mut quota.bytes,
            _ => return None,
        };
        // Twice the same would leave open which one counts.
        if place.replace(amount.parse().ok()?).is_some() {
            return None;
        }
        is_empty = false;
    }
    (!is_empty).then(|| (tenant.to_owned(), quota))
}

/// Numbers that make no sense beside each other, with the place of the one that was written.
pub(super) fn together(config: &Config, origins: impl Fn(&str) -> Vec<Origin>) -> Result<(), ConfigError> {
    let breaker = &config.scheduling.breaker;
    let guard = &config.scheduling.repeat_guard;
    let lanes = &config.scheduling.lanes;
    // The first must not be above the second.
    let pairs = [
        ("scheduling.breaker.min_calls", breaker.min_calls, "scheduling.breaker.window", breaker.window),
        (
            "scheduling.repeat_guard.warn_at",
            guard.warn_at,
            "scheduling.repeat_guard.stop_after",
            guard.stop_after,
        ),
        (
            "scheduling.lanes.queue_per_tenant",
            lanes.queue_per_tenant,
            "scheduling.lanes.queue_total",
            lanes.queue_total,
        ),
    ];
    let written = |key: &str| {
        origins(key).into_iter().rev().find_map(|origin| match origin {
            Origin::Set(place) => Some(place),
            Origin::Default => None,
        })
    };
    let mut problems = Vec::new();
    for (low, least, high, most) in pairs {
        if least <= most {
            continue;
        }
        // What somebody wrote is what has to change; one of the two is not the default, or this would not be so.
        let bounds = |path: &str| match key(path).map(|key| key.rule().kind) {
            Some(super::rule::Kind::Count { min, max }) => (min, max),
            _ => (0, u64::MAX),
        };
        let problem = match (written(low), written(high)) {
            (Some(place), _) => Problem::OutOfRange {
                key: low.to_owned(),
                found: least.to_string(),
                min: bounds(low).0,
                max: most,
                place,
            },
            (None, Some(place)) => Problem::OutOfRange {
                key: high.to_owned(),
                found: most.to_string(),
                min: least,
                max: bounds(high).1,
                place,
            },
            (None, None) => continue,
        };
        problems.push(problem);
    }
    // Alone it is the whole network, beside others it is no host: a folder that takes the others away must not make it
    // one.
    let hosts = &config.tools.commands.hosts;
    if let (true, Some(place)) =
        (hosts.len() > 1 && hosts.iter().any(|host| host == "*"), written("tools.commands.hosts"))
    {
        let (key, found) = ("tools.commands.hosts".to_owned(), "\"*\"".to_owned());
        problems.push(Problem::BadEntry { key, found, fault: EntryFault::NotAlone, place });
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ConfigError::new(problems, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_is_none_is_named_with_those_that_are() {
        let error = crate::parse("[tools.approval]\naccept_from = ['terminl']\n").unwrap_err().to_string();
        assert!(error.contains("is no channel that answers come by"), "{error}");
        assert!(error.contains("write \"terminal\", \"command_line\", \"http\" or \"mcp\""), "{error}");
        // What the embedding program says always counts: there is nothing to allow.
        assert!(crate::parse("[tools.approval]\naccept_from = ['program']\n").is_err());
    }

    #[test]
    fn rates_and_quotas_have_a_form() {
        let minute = Duration::from_secs(60);
        assert_eq!(parse_rate("agent 100/m"), RateLimit::new(RateScope::Agent, 100, minute));
        assert_eq!(
            parse_rate("tool:web_fetch 5/10s"),
            RateLimit::new(RateScope::NamedTool("web_fetch".into()), 5, minute / 6)
        );
        assert_eq!(parse_rate("all  1 / PT1M"), RateLimit::new(RateScope::Global, 1, minute));
        for wrong in [
            "",
            "agent",
            "agent 100",
            "agent 0/m",
            "agent -1/m",
            "agent 1/0s",
            "agents 1/m",
            "tool: 1/m",
            "agent 1/x",
        ] {
            assert_eq!(parse_rate(wrong), None, "{wrong}");
        }
        let acme = Quota { calls: Some(10), bytes: Some(0), ..Quota::default() };
        assert_eq!(parse_quota("acme calls=10 bytes=0"), Some(("acme".to_owned(), acme)));
        for wrong in
            ["", "acme", "calls=10", "acme calls", "acme calls=-1", "acme calls=1 calls=2", "acme cals=1"]
        {
            assert_eq!(parse_quota(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_that_make_no_sense_together_are_refused_with_their_place() {
        let refused = |text: &str| crate::parse(text).unwrap_err().to_string();
        assert_eq!(
            refused("[scheduling.breaker]\nwindow = 5\n"),
            "`scheduling.breaker.window` must be from 10 to 10000, not 5, in haft.toml:2:10\n  \
             help: choose a whole number from 10 to 10000"
        );
        assert_eq!(
            refused("[scheduling.repeat_guard]\nstop_after = 6\nwarn_at = 7\n"),
            "`scheduling.repeat_guard.warn_at` must be from 1 to 6, not 7, in haft.toml:3:11\n  \
             help: choose a whole number from 1 to 6"
        );
        assert!(crate::parse("[scheduling.breaker]\nwindow = 5\nmin_calls = 5\n").is_ok());
    }

    #[test]
    fn what_is_negative_or_absurd_is_refused_with_its_place() {
        for (line, place) in [
            ("max_parallelism = -1", "haft.toml:2:19"),
            ("max_parallelism = 0", "haft.toml:2:19"),
            ("strategy = 'fast'", "haft.toml:2:12"),
            ("rates = ['agent 0/m']", "haft.toml:2:10"),
            ("lanes.per_agent = 0", "haft.toml:2:19"),
            ("lanes.queue_total = -5", "haft.toml:2:21"),
            ("retry.max_retries = 1000000", "haft.toml:2:21"),
            ("quotas.calls_per_day = -1", "haft.toml:2:24"),
            ("quotas.tenants = ['acme']", "haft.toml:2:19"),
            ("breaker.percent = 101", "haft.toml:2:19"),
            ("cache.ttl_seconds = 0", "haft.toml:2:21"),
            ("adaptive_timeout.factor = 0", "haft.toml:2:27"),
        ] {
            let error = crate::parse(&format!("[scheduling]\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains(place), "{line}: {error}");
        }
    }
}
