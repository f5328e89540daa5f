//! What a jail needs from a network gate. The gate itself is elsewhere; it is given a socket, which says whose it is.

use haft_core::Violation;
use std::net::TcpListener;

/// What went through a gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateReport {
    /// Requests that were made.
    pub requests: u64,
    /// Bytes that came in.
    pub bytes_received: u64,
    /// Bytes that went out.
    pub bytes_sent: u64,
    /// What was refused.
    pub violations: Vec<Violation>,
}

/// An open gate. Dropping it closes it.
pub trait OpenGate: Send {
    /// What went through it so far.
    fn report(&self) -> GateReport;
}

/// Opens gates.
pub trait Gatekeeper: Send + Sync {
    /// Whether these are hosts that a list may have; why not, otherwise.
    fn check(&self, hosts: &[String]) -> Result<(), String>;

    /// Serves a listening socket of a jail: those hosts, and no others. Called in a tokio runtime.
    fn open(&self, listener: TcpListener, hosts: &[String]) -> Result<Box<dyn OpenGate>, String>;
}
