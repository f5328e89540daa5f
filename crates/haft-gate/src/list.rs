//! The hosts that a call may reach.

use super::{
    name::{BadHostName, HostName, split_port},
    refusal::{Refusal, shown},
};
use std::fmt;

/// The ports that a host without a port stands for.
const WEB: [u16; 2] = [80, 443];

/// What was wrong with an entry of a host list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` cannot be in a list of hosts: {reason}; write `host`, `*.host` or `host:port`")]
pub struct BadHostEntry {
    /// The entry, as it was written.
    pub entry: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Which names an entry covers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Names {
    Exactly(HostName),
    Below(HostName),
}

impl Names {
    fn has(&self, host: &HostName) -> bool {
        match self {
            Names::Exactly(name) => host == name,
            Names::Below(parent) => host.is_below(parent),
        }
    }

    /// Whether every name of `other` is one of these.
    fn covers(&self, other: &Names) -> bool {
        match (self, other) {
            (_, Names::Exactly(name)) => self.has(name),
            (Names::Below(wide), Names::Below(narrow)) => wide == narrow || narrow.is_below(wide),
            (Names::Exactly(_), Names::Below(_)) => false,
        }
    }
}

/// One entry of a host list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    names: Names,
    /// `None` stands for both ports of the web.
    port: Option<u16>,
}

impl Entry {
    fn parse(text: &str) -> Result<Self, String> {
        let (host, port) = match text.rsplit_once(':') {
            None => (text, None),
            // Two colons make an IPv6 address, which `HostName` names as such.
            Some((host, _)) if host.contains(':') => (text, None),
            Some(_) => match split_port(text) {
                Some((host, port)) => (host, Some(port)),
                None => return Err("its port is not a number from 1 to 65535".into()),
            },
        };
        let below = host.strip_prefix("*.");
        let name = HostName::parse(below.unwrap_or(host)).map_err(|error| match error {
            BadHostName::Character('*') => "`*` may only stand first, as in `*.example.com`".to_owned(),
            BadHostName::Character('/') => "it is a URL or has a path".to_owned(),
            error => error.to_string(),
        })?;
        if name.is_localhost() {
            return Err("it is this machine itself".into());
        }
        let names = if below.is_some() { Names::Below(name) } else { Names::Exactly(name) };
        Ok(Entry { names, port })
    }

    fn ports(&self) -> &[u16] {
        self.port.as_ref().map_or(&WEB, std::slice::from_ref)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.names {
            Names::Exactly(name) => write!(f, "{name}")?,
            Names::Below(name) => write!(f, "*.{name}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The hosts that a call may reach. An empty one allows nothing.
///
/// `host` means its ports 80 and 443; `*.host` every name below it, not the host itself; `host:port` and `*.host:port`
/// that port alone.
///
/// ```
/// use haft_gate::HostList;
/// let parent = HostList::parse(&["*.example.org", "example.com:8080"]).unwrap();
/// let child = HostList::parse(&["api.example.org:443"]).unwrap();
/// assert!(child.is_subset_of(&parent));
/// assert_eq!(parent.outside_of(&child), ["*.example.org", "example.com:8080"]);
/// assert!(HostList::parse(&["127.1"]).is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList {
    entries: Vec<Entry>,
}

impl HostList {
    /// Reads a list; the first entry that cannot be in one is named.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, BadHostEntry> {
        let parse = |entry: &S| {
            let entry = entry.as_ref();
            Entry::parse(entry).map_err(|reason| BadHostEntry { entry: shown(entry), reason })
        };
        Ok(HostList { entries: entries.iter().map(parse).collect::<Result<_, _>>()? })
    }

    /// Whether it allows nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether that port of that host may be reached, as far as the name goes.
    pub fn allows(&self, host: &HostName, port: u16) -> bool {
        self.entries.iter().any(|entry| entry.ports().contains(&port) && entry.names.has(host))
    }

    /// Whether everything that it allows is allowed by `parent`, too.
    pub fn is_subset_of(&self, parent: &HostList) -> bool {
        self.entries.iter().all(|entry| parent.covers(entry))
    }

    /// The entries that allow something that `parent` does not, as they would be written.
    pub fn outside_of(&self, parent: &HostList) -> Vec<String> {
        self.entries.iter().filter(|entry| !parent.covers(entry)).map(Entry::to_string).collect()
    }

    /// One port of an entry is covered by one entry or by none: no union of names makes a wildcard.
    fn covers(&self, entry: &Entry) -> bool {
        entry.ports().iter().all(|port| {
            self.entries.iter().any(|own| own.ports().contains(port) && own.names.covers(&entry.names))
        })
    }
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries.iter().enumerate() {
            write!(f, "{}{entry}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Decides on a host as a client wrote it: the first of the two decisions; the second is on the resolved address.
///
/// ```
/// use haft_gate::{HostList, decide};
/// let hosts = HostList::parse(&["example.com"]).unwrap();
/// assert!(decide("example.com", 443, &hosts).is_ok());
/// assert!(decide("example.com", 22, &hosts).is_err());
/// assert!(decide("93.184.215.14", 443, &hosts).is_err());
/// ```
pub fn decide(host: &str, port: u16, hosts: &HostList) -> Result<HostName, Refusal> {
    match HostName::parse(host) {
        Ok(name) if hosts.allows(&name, port) => Ok(name),
        Ok(name) => Err(Refusal::NotListed { host: name, port }),
        Err(BadHostName::Address) => Err(Refusal::Literal { host: shown(host), port }),
        Err(reason) => Err(Refusal::BadName { host: shown(host), port, reason }),
    }
}
