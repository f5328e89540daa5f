//! From names to addresses, and from addresses to connections.

use super::{address::forbidden_address, name::HostName, refusal::Refusal};
use haft_core::port::BoxFuture;
use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, time::timeout};

/// Turns the name of a host into addresses. Asked once for every request; what it says is what is decided on, and what
/// is connected to.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of that port of a host, best first.
    fn resolve<'a>(&'a self, host: &'a HostName, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// The resolver of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a HostName, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        // The dot at the end keeps the resolver from trying the name below this machine's search domains.
        let name = format!("{host}.");
        Box::pin(async move { Ok(tokio::net::lookup_host((name, port)).await?.collect()) })
    }
}

/// Why there is no connection to an allowed name.
#[derive(Debug)]
pub(crate) enum NoRoute {
    /// It leads where nothing may go.
    Forbidden(Refusal),
    /// The name has no address, or the resolver did not answer.
    Unresolved,
    /// Nobody listens there.
    ConnectionRefused,
    /// No answer in time, or no way there.
    Unreachable,
}

/// Opens connections to addresses that are public, or that a test named one by one.
#[derive(Debug, Default)]
pub(crate) struct Dialler {
    pub(crate) public_for_tests: Vec<SocketAddr>,
}

impl Dialler {
    /// The addresses of the answer that may be connected to. If there is none, the first shows why.
    ///
    /// An answer may have both: on networks with NAT64 it usually does. What is not public is left out, so that a
    /// mixed answer leads nowhere else.
    pub(crate) fn permitted(
        &self,
        host: &HostName,
        port: u16,
        answer: &[SocketAddr],
    ) -> Result<Vec<SocketAddr>, NoRoute> {
        let permitted: Vec<_> =
            answer.iter().copied().filter(|address| self.forbids(address).is_none()).collect();
        match answer.first() {
            None => Err(NoRoute::Unresolved),
            Some(first) if permitted.is_empty() => {
                let what = self.forbids(first).unwrap_or("not public");
                Err(NoRoute::Forbidden(Refusal::ForbiddenAddress {
                    host: host.clone(),
                    port,
                    address: first.ip(),
                    what,
                }))
            }
            Some(_) => Ok(permitted),
        }
    }

    fn forbids(&self, address: &SocketAddr) -> Option<&'static str> {
        if self.public_for_tests.contains(address) { None } else { forbidden_address(address.ip()) }
    }

    /// Connects to the first address that answers. Names are not looked at again.
    pub(crate) async fn connect(
        &self,
        host: &HostName,
        port: u16,
        permitted: &[SocketAddr],
        within: Duration,
    ) -> Result<TcpStream, NoRoute> {
        let end = Instant::now() + within;
        let mut refused = false;
        for (index, address) in permitted.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now());
            // An address that swallows packets must leave time for the ones behind it.
            let others = u32::try_from(permitted.len() - index).unwrap_or(u32::MAX);
            match timeout(left / others.max(1), TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    self.not_this_machine(host, port, address, &stream)?;
                    // Small messages go both ways; waiting to gather them only adds delay.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => refused |= error.kind() == io::ErrorKind::ConnectionRefused,
                Err(_) => {}
            }
        }
        Err(if refused { NoRoute::ConnectionRefused } else { NoRoute::Unreachable })
    }

    /// A connection from an address to itself never left this machine, even where the address is a public one.
    fn not_this_machine(
        &self,
        host: &HostName,
        port: u16,
        address: &SocketAddr,
        stream: &TcpStream,
    ) -> Result<(), NoRoute> {
        let own = stream.local_addr().map_err(|_| NoRoute::Unreachable)?.ip();
        if own != address.ip() || self.public_for_tests.contains(address) {
            return Ok(());
        }
        Err(NoRoute::Forbidden(Refusal::ForbiddenAddress {
            host: host.clone(),
            port,
            address: own,
            what: "this machine itself",
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_not_public_is_left_out_of_an_answer() {
        let host = HostName::parse("mixed.example").unwrap();
        let dialler = Dialler::default();
        let answer = addresses(&["10.0.0.1:443", "8.8.8.8:443", "[64:ff9b::808:808]:443"]);
        assert_eq!(dialler.permitted(&host, 443, &answer).unwrap(), addresses(&["8.8.8.8:443"]));
        let private = addresses(&["10.0.0.1:443", "[::1]:443"]);
        let NoRoute::Forbidden(refusal) = dialler.permitted(&host, 443, &private).unwrap_err() else {
            panic!("refused for another reason")
        };
        assert_eq!(
            refusal.to_string(),
            "the host `mixed.example` leads to 10.0.0.1, which is not a public address (private)"
        );
        assert!(matches!(dialler.permitted(&host, 443, &[]), Err(NoRoute::Unresolved)));
    }

    #[test]
    fn a_test_address_is_one_socket_address_not_a_network() {
        let dialler = Dialler { public_for_tests: addresses(&["127.0.0.1:1000"]) };
        let host = HostName::parse("a.example").unwrap();
        assert!(dialler.permitted(&host, 1000, &addresses(&["127.0.0.1:1000"])).is_ok());
        assert!(dialler.permitted(&host, 1001, &addresses(&["127.0.0.1:1001"])).is_err());
    }
}
