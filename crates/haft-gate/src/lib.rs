//! The network gate: the only way out of a jail, for the hosts that a call may reach.
//!
//! A jail with a host list has nothing but its own loopback. Its init binds a port there and passes the *listening*
//! socket out; the gate serves that socket from haft's side. So the socket says which call a connection belongs to, and
//! nothing inside the jail could reach the network past it. On one port the gate speaks
//!
//! - HTTP CONNECT and SOCKS5 (by name) for tunnels,
//! - plain HTTP with whole URLs, each request on a kept connection checked by itself.
//!
//! # What is decided, and on what
//!
//! 1. The name, on the [`HostList`]: [`decide`]. Addresses are refused in every spelling. A name that is not on the
//!    list is never resolved.
//! 2. The address that the name resolves to, once: [`forbidden_address`]. The connection goes to that address; names
//!    are not looked at a second time, so they cannot change in between.
//! 3. What goes through. A tunnel to port 443 must begin with a TLS greeting for its host; one to port 80 with that or
//!    with HTTP; on other ports TLS and HTTP are checked where they appear. HTTP must name its host in `Host`, and must
//!    be readable in one way only (framing, line ends, chunks).
//!
//! # Threat model
//!
//! The attacker is the program in the jail. It knows the list, may speak any bytes on any number of connections, and
//! may control a name below a wildcard, and so what that name resolves to. It must not reach an address that is not
//! public, nor a host that is not on the list, nor make haft hang or fill its memory.
//!
//! Not stopped: a listed host that passes things on (a content network that serves other sites under one certificate,
//! or whose name is the public one of an encrypted greeting), and data in the very names below a listed wildcard, which
//! reach the name server of that domain.
//!
//! # Example
//!
//! ```
//! use haft_gate::{Gate, HostList};
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! let gate = Gate::new(HostList::parse(&["example.com", "*.example.org"]).unwrap());
//! let running = gate.start(listener).unwrap();
//! // … the call runs …
//! let report = running.stop().await;
//! assert_eq!((report.requests, report.violations.len()), (0, 0));
//! # });
//! ```

mod address;
mod chunk;
#[cfg(feature = "client")]
mod client;
#[cfg(fuzzing)]
pub mod fuzzing;
mod head;
mod hello;
mod http;
mod ledger;
mod list;
mod name;
mod refusal;
mod resolve;
mod serve;
mod socks;
#[cfg(target_os = "linux")]
mod splice;
mod tunnel;
mod wire;

pub use address::forbidden_address;
#[cfg(feature = "client")]
pub use client::{BadPrivateHost, Client};
pub use ledger::{GateReport, ViolationSink};
pub use list::{BadHostEntry, HostList, decide};
pub use name::{BadHostName, HostName};
pub use refusal::Refusal;
pub use resolve::{Resolve, SystemResolver};
pub use serve::{Gate, GateHandle, GateLimits};

use serve::Shared;
