//! Where the configuration wants things remembered, and how.

use super::heads::{AuditPlaces, HeadsTo};
use crate::config::{Config, StoreBackend, StoreConfig, StoreDurability};
use haft_core::{Tier, iso_duration, port::StoreError};
use haft_store::{Durability, DurableStore, Keep, Options, RetentionRule};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Where a store is, worked out from a configuration. Nothing is opened yet.
pub struct StorePlace {
    folder: PathBuf,
    options: Options,
    audit: AuditPlaces,
    server: Option<Server>,
}

/// How the server's address is found. It is looked up when the store is opened, so that a command that needs no store
/// does not need the address either.
struct Server {
    may_change_layout: bool,
    reference: String,
    variable: Option<String>,
}

impl StorePlace {
    /// In the state folder, as the configuration says; `variable` looks one up in the environment.
    pub fn new(
        config: &Config,
        folder: &Path,
        audit: AuditPlaces,
        variable: impl FnOnce(&str) -> Option<String>,
    ) -> StorePlace {
        let store = &config.store;
        let server = match store.backend {
            StoreBackend::Sqlite => None,
            StoreBackend::Postgres => Some(Server {
                may_change_layout: store.allow_layout_change,
                reference: store.url.clone(),
                variable: store.url.strip_prefix("env:").and_then(variable),
            }),
        };
        StorePlace { folder: folder.to_owned(), options: options(store), audit, server }
    }

    /// Opens it. Blocks.
    pub fn open(&self) -> Result<DurableStore, StoreError> {
        let options = Options {
            key_file: self.audit.key_file.clone(),
            sink: self.audit.heads.sink()?,
            ..self.options.clone()
        };
        match &self.server {
            None => open_sqlite(&self.folder, options),
            Some(server) => open_postgres(server, &self.folder, options),
        }
    }

    /// The state folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether there is a database already. That of a server is: others may have made it.
    pub(super) fn exists(&self) -> bool {
        self.server.is_some() || exists(&self.folder)
    }

    /// The file in which ends of the audit chain are told, where there is one.
    pub fn heads(&self) -> Option<&Path> {
        match &self.audit.heads {
            HeadsTo::File(path) => Some(path),
            HeadsTo::Nowhere | HeadsTo::Stderr => None,
        }
    }
}

#[cfg(feature = "sqlite")]
fn open_sqlite(folder: &Path, options: Options) -> Result<DurableStore, StoreError> {
    DurableStore::open_sqlite(folder, options)
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(_folder: &Path, _options: Options) -> Result<DurableStore, StoreError> {
    Err(StoreError("this haft was built without SQLite; set store.backend to \"postgres\"".to_owned()))
}

#[cfg(feature = "sqlite")]
use haft_store::sqlite_exists as exists;

#[cfg(not(feature = "sqlite"))]
fn exists(_folder: &Path) -> bool {
    true
}

#[cfg(feature = "postgres")]
fn open_postgres(server: &Server, folder: &Path, options: Options) -> Result<DurableStore, StoreError> {
    let place = haft_store::PostgresPlace::new(server.address(folder)?);
    let place = haft_store::PostgresPlace { may_change_layout: server.may_change_layout, ..place };
    DurableStore::open_postgres(&place, folder, options)
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(server: &Server, folder: &Path, _options: Options) -> Result<DurableStore, StoreError> {
    let _ = (server.address(folder)?, server.may_change_layout);
    Err(StoreError("this haft was built without PostgreSQL; set store.backend to \"sqlite\"".to_owned()))
}

impl Server {
    fn address(&self, folder: &Path) -> Result<String, StoreError> {
        let refuse = |what: String| StoreError(format!("store.url: {what}"));
        let found = match self.reference.split_once(':') {
            _ if self.reference.is_empty() => {
                return Err(refuse(
                    "the address of the server is missing; write it like \"env:HAFT_DATABASE\"".to_owned(),
                ));
            }
            Some(("env", name)) => self
                .variable
                .clone()
                .ok_or_else(|| refuse(format!("the variable {name} is not set, or is not text")))?,
            Some(("file", path)) => std::fs::read_to_string(folder.join(path))
                .map_err(|error| refuse(format!("{path} cannot be read: {error}")))?,
            _ if holds_password(&self.reference) => {
                return Err(refuse(
                    "a password does not belong in a configuration file; put the address in a variable and write \
                     \"env:NAME\", or in a file of your own and write \"file:PATH\""
                        .to_owned(),
                ));
            }
            _ => self.reference.clone(),
        };
        match found.trim() {
            "" => Err(refuse(format!("`{}` is empty", self.reference))),
            found => Ok(found.to_owned()),
        }
    }
}

/// Whether an address has a password in the open: `user:password@host`, or a word `password=`.
fn holds_password(address: &str) -> bool {
    let user = address.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.contains(':')) || address.to_ascii_lowercase().contains("password")
}

fn options(store: &StoreConfig) -> Options {
    let days = |days: u64| (days > 0).then(|| DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX)));
    Options {
        durability: match store.durability {
            StoreDurability::Full => Durability::Full,
            StoreDurability::Effects => Durability::Effects,
        },
        audit_input: store.audit_input,
        keep: Keep {
            results: days(store.keep_results_days),
            outputs: days(store.keep_outputs_days),
            output_bytes: store.max_output_bytes,
            ..Keep::default()
        },
        ..Options::default()
    }
}

/// The rules by which audit records are archived: those of the list first, then the one for all.
pub fn retention(store: &StoreConfig) -> Result<Vec<RetentionRule>, String> {
    let mut rules = store.retention.iter().map(|text| rule(text)).collect::<Result<Vec<_>, _>>()?;
    let keep = u32::try_from(store.keep_audit_days).ok().filter(|days| *days > 0);
    rules.push(RetentionRule { tier: None, tool: None, keep: keep.map(|days| DAY.saturating_mul(days)) });
    Ok(rules)
}

/// A time as a person writes an age: days and weeks (`7d`, `2w`), and everything that a duration can be.
pub fn age(text: &str) -> Option<Duration> {
    let text = text.trim();
    let days = match (text.strip_suffix('d'), text.strip_suffix('w')) {
        (Some(days), _) => days.parse::<u32>().ok(),
        (None, Some(weeks)) => weeks.parse::<u32>().ok().and_then(|weeks| weeks.checked_mul(7)),
        (None, None) => None,
    };
    days.and_then(|days| DAY.checked_mul(days)).or_else(|| iso_duration::parse(text).ok())
}

fn rule(text: &str) -> Result<RetentionRule, String> {
    let wrong = || {
        format!(
            "store.retention: `{text}` is not like \"get_metrics 7d\", \"tier:core 30d\" or \"deploy forever\""
        )
    };
    let (which, time) = text.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
    let keep = match time.trim() {
        "forever" => None,
        time => Some(age(time).ok_or_else(wrong)?),
    };
    let tier = match which.strip_prefix("tier:") {
        None => None,
        Some("core") => Some(Tier::Core),
        Some("writer_pro") => Some(Tier::WriterPro),
        Some("teams") => Some(Tier::Teams),
        Some("enterprise") => Some(Tier::Enterprise),
        Some(_) => {
            return Err(format!("{}; tiers are core, writer_pro, teams and enterprise", wrong()));
        }
    };
    Ok(RetentionRule { tier, tool: tier.is_none().then(|| which.to_owned()), keep })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn what_the_file_says_is_what_the_store_does() {
        let text = "[store]\ndurability = 'full'\naudit_input = true\nkeep_results_days = 0\nkeep_outputs_days = 2\n\
                    max_output_bytes = 2097152\n";
        let options = options(&parse(text).unwrap().store);
        assert_eq!(options.durability, Durability::Full);
        assert!(options.audit_input);
        let keep = &options.keep;
        assert_eq!((keep.results, keep.outputs, keep.output_bytes), (None, Some(2 * DAY), 2 << 20));
        assert_eq!(super::options(&Config::default().store).keep, Keep::default(), "the defaults agree");
    }

    #[test]
    fn rules_name_a_tool_or_a_tier_and_a_time() {
        let text = "[store]\nkeep_audit_days = 365\nretention = ['get_metrics 7d', 'tier:core PT1H', 'deploy forever']\n";
        let rules = retention(&parse(text).unwrap().store).unwrap();
        let rule =
            |tier, tool: Option<&str>, keep| RetentionRule { tier, tool: tool.map(str::to_owned), keep };
        assert_eq!(
            rules,
            [
                rule(None, Some("get_metrics"), Some(7 * DAY)),
                rule(Some(Tier::Core), None, Some(Duration::from_secs(3600))),
                rule(None, Some("deploy"), None),
                rule(None, None, Some(365 * DAY)),
            ]
        );
        for wrong in ["get_metrics", "get_metrics soon", "tier:gold 7d"] {
            let text = format!("[store]\nretention = ['{wrong}']\n");
            assert!(retention(&parse(&text).unwrap().store).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn an_address_comes_by_reference_and_never_with_a_password_in_the_open() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("address"), "postgres://from-file\n").unwrap();
        let address = |reference: &str, variable: Option<&str>| {
            let server = Server {
                may_change_layout: false,
                reference: reference.to_owned(),
                variable: variable.map(str::to_owned),
            };
            server.address(folder.path()).map_err(|error| error.to_string())
        };
        assert_eq!(address("env:DB", Some("postgres://from-env")).unwrap(), "postgres://from-env");
        assert_eq!(address("file:address", None).unwrap(), "postgres://from-file");
        assert_eq!(address("postgres://ada@db/haft", None).unwrap(), "postgres://ada@db/haft");
        assert!(address("env:DB", None).unwrap_err().contains("DB is not set"));
        assert!(address("", None).unwrap_err().contains("missing"));
        for open in ["postgres://ada:pw@db/haft", "host=db password=pw"] {
            let error = address(open, None).unwrap_err();
            assert!(error.contains("env:NAME") && !error.contains("pw"), "{error}");
        }
    }
}
