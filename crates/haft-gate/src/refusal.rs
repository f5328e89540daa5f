//! What is refused, and in which words.

use super::name::{BadHostName, HostName};
use haft_core::{Violation, text};
use std::{fmt, net::IpAddr};

/// The longest text of a client's that is repeated in a message.
const MAX_SHOWN: usize = 260;

/// A text from outside, safe to repeat: one line, nothing invisible, not too long.
pub(crate) fn shown(text: &str) -> String {
    text::one_line(text, MAX_SHOWN)
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The host, or that port of it, is not on the list.
    NotListed {
        /// The host.
        host: HostName,
        /// The port.
        port: u16,
    },
    /// An address was written in place of a name.
    Literal {
        /// As it was written.
        host: String,
        /// The port.
        port: u16,
    },
    /// What should be a name is none.
    BadName {
        /// As it was written.
        host: String,
        /// The port.
        port: u16,
        /// What is wrong with it.
        reason: BadHostName,
    },
    /// The name is allowed, but leads to an address that is not of the public internet.
    ForbiddenAddress {
        /// The host.
        host: HostName,
        /// The port.
        port: u16,
        /// Where its name led.
        address: IpAddr,
        /// What kind of address that is.
        what: &'static str,
    },
    /// The TLS greeting in a tunnel is for another host than the tunnel, or for none.
    ServerName {
        /// The host of the tunnel.
        host: HostName,
        /// The port of the tunnel.
        port: u16,
        /// The name in the greeting.
        found: Option<String>,
    },
    /// A tunnel carries something that its port does not allow.
    WrongProtocol {
        /// The host of the tunnel.
        host: HostName,
        /// The port of the tunnel.
        port: u16,
        /// What is wrong.
        problem: &'static str,
    },
    /// The header `Host` names another host than the request.
    HostHeader {
        /// Where the request goes.
        expected: String,
        /// What the header says.
        found: String,
    },
    /// Bytes that two readers could read in two ways.
    Ambiguous {
        /// What is wrong.
        problem: &'static str,
    },
    /// A way to use the gate that it does not have.
    Unsupported {
        /// Which.
        what: &'static str,
    },
    /// More requests than the call may make.
    TooManyRequests {
        /// How many it may make.
        limit: u64,
    },
}

impl Refusal {
    /// What was reached for, such as `example.com:443`.
    pub fn resource(&self) -> String {
        match self {
            Refusal::NotListed { host, port }
            | Refusal::ForbiddenAddress { host, port, .. }
            | Refusal::ServerName { host, port, .. }
            | Refusal::WrongProtocol { host, port, .. } => format!("{host}:{port}"),
            Refusal::Literal { host, port } | Refusal::BadName { host, port, .. } => format!("{host}:{port}"),
            Refusal::HostHeader { found, .. } => found.clone(),
            Refusal::Ambiguous { .. } | Refusal::Unsupported { .. } | Refusal::TooManyRequests { .. } => {
                "network".to_owned()
            }
        }
    }

    /// The type that a violation has for it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Refusal::TooManyRequests { .. } => "NetworkRequestLimitExceeded",
            _ => "UnauthorizedNetworkAccess",
        }
    }

    /// The status of the answer to a client that speaks HTTP.
    pub(crate) fn http_status(&self) -> &'static str {
        match self {
            Refusal::Ambiguous { .. } | Refusal::Unsupported { .. } => "400 Bad Request",
            Refusal::TooManyRequests { .. } => "429 Too Many Requests",
            _ => "403 Forbidden",
        }
    }

    /// The error type of RFC 9209, by which a client tells the gate's answer from the server's.
    pub(crate) fn proxy_error(&self) -> &'static str {
        match self {
            Refusal::ForbiddenAddress { .. } => "destination_ip_prohibited",
            Refusal::Ambiguous { .. } | Refusal::Unsupported { .. } => "http_request_error",
            _ => "http_request_denied",
        }
    }

    /// What would let it through, where something would.
    pub fn hint(&self) -> Option<String> {
        match self {
            Refusal::NotListed { host, port: 80 | 443 } => {
                Some(format!("to allow it, add \"{host}\" to the hosts that this call may reach"))
            }
            Refusal::NotListed { host, port } => {
                Some(format!("to allow it, add \"{host}:{port}\" to the hosts that this call may reach"))
            }
            Refusal::Literal { .. } => Some("use the host's name, and allow that".to_owned()),
            _ => None,
        }
    }

    /// The violation that it leaves, as of now.
    pub(crate) fn violation(&self) -> Violation {
        Violation {
            kind: self.kind().to_owned(),
            resource: self.resource(),
            description: self.to_string(),
            timestamp: jiff::Timestamp::now(),
            was_blocked: true,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotListed { host, port } => {
                write!(f, "the host `{host}` is not allowed on port {port}")
            }
            Refusal::Literal { host, .. } => {
                write!(f, "`{host}` is an address; only names of hosts are allowed")
            }
            Refusal::BadName { host, reason, .. } => {
                write!(f, "`{host}` is not the name of a host: {reason}")
            }
            Refusal::ForbiddenAddress { host, address, what, .. } => {
                write!(f, "the host `{host}` leads to {address}, which is not a public address ({what})")
            }
            Refusal::ServerName { host, found: Some(found), .. } => {
                write!(f, "the tunnel to `{host}` carries a TLS greeting for `{found}`")
            }
            Refusal::ServerName { host, found: None, .. } => {
                write!(f, "the tunnel to `{host}` carries a TLS greeting that names no host")
            }
            Refusal::WrongProtocol { host, port, problem } => {
                write!(f, "the tunnel to `{host}` on port {port} {problem}")
            }
            Refusal::HostHeader { expected, found } => {
                write!(f, "the request goes to `{expected}`, but its header Host says `{found}`")
            }
            Refusal::Ambiguous { problem } => {
                write!(f, "the request cannot be read in one way only: {problem}")
            }
            Refusal::Unsupported { what } => write!(f, "the network gate does not have {what}"),
            Refusal::TooManyRequests { limit } => {
                write!(f, "the call made more than the {limit} network requests that it may make")
            }
        }
    }
}

impl std::error::Error for Refusal {}
