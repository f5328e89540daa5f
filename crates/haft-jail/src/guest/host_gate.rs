//! The network gate as jails use it.

use super::gate::{GateReport, Gatekeeper, OpenGate};
use haft_gate::{Gate, GateHandle, HostList};
use std::net::TcpListener;

/// Opens gates that let through the hosts of a list and nothing else.
///
/// ```
/// use haft_jail::guest::{Gatekeeper as _, HostGate};
/// assert!(HostGate::new().check(&["example.com".to_owned()]).is_ok());
/// assert!(HostGate::new().check(&["127.0.0.1".to_owned()]).is_err());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HostGate;

impl HostGate {
    /// One that asks the system for addresses.
    pub fn new() -> Self {
        HostGate
    }
}

impl Gatekeeper for HostGate {
    fn check(&self, hosts: &[String]) -> Result<(), String> {
        HostList::parse(hosts).map(|_| ()).map_err(|error| error.to_string())
    }

    fn open(&self, listener: TcpListener, hosts: &[String]) -> Result<Box<dyn OpenGate>, String> {
        let hosts = HostList::parse(hosts).map_err(|error| error.to_string())?;
        let gate = Gate::new(hosts).start(listener).map_err(|error| error.to_string())?;
        Ok(Box::new(Opened(gate)))
    }
}

struct Opened(GateHandle);

impl OpenGate for Opened {
    fn report(&self) -> GateReport {
        let report = self.0.report();
        GateReport {
            requests: report.requests,
            bytes_received: report.bytes_in,
            bytes_sent: report.bytes_out,
            violations: report.violations,
        }
    }
}
