//! SOCKS5 (RFC 1928): CONNECT by name. Nothing else.

use super::{
    Shared, decide,
    refusal::Refusal,
    resolve::NoRoute,
    tunnel,
    wire::{End, last_word, write_within},
};
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::time::Instant;

/// The first byte of every message.
pub(crate) const VERSION: u8 = 5;

/// What a request is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Reply {
    Succeeded = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

impl Reply {
    /// With an address of zeros: where the gate connects from is nobody's business.
    fn bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SocksRequest {
    /// Too few bytes to tell.
    Partial,
    Connect {
        host: String,
        port: u16,
        length: usize,
    },
    Command(&'static str),
    Malformed(&'static str),
}

fn read_request(bytes: &[u8]) -> SocksRequest {
    match bytes {
        [] => return SocksRequest::Partial,
        [version, ..] if *version != VERSION => {
            return SocksRequest::Malformed("a SOCKS request of another version");
        }
        [_, 2, ..] => return SocksRequest::Command("SOCKS BIND"),
        [_, 3, ..] => return SocksRequest::Command("SOCKS UDP ASSOCIATE"),
        [_, command, ..] if *command != 1 => return SocksRequest::Command("that SOCKS command"),
        [_, _, reserved, ..] if *reserved != 0 => {
            return SocksRequest::Malformed("a SOCKS request with a wrong byte");
        }
        _ => {}
    }
    let (host, rest) = match bytes.get(3..) {
        Some([1, a, b, c, d, rest @ ..]) => (Ipv4Addr::new(*a, *b, *c, *d).to_string(), rest),
        Some([4, rest @ ..]) => match rest.split_first_chunk::<16>() {
            Some((address, rest)) => (format!("[{}]", Ipv6Addr::from(*address)), rest),
            None => return SocksRequest::Partial,
        },
        Some([3, length, rest @ ..]) => match rest.split_at_checked(usize::from(*length)) {
            Some((name, rest)) => (String::from_utf8_lossy(name).into_owned(), rest),
            None => return SocksRequest::Partial,
        },
        Some([] | [1 | 3, ..]) | None => return SocksRequest::Partial,
        Some(_) => return SocksRequest::Malformed("a SOCKS request with an unknown kind of address"),
    };
    let [high, low, rest @ ..] = rest else { return SocksRequest::Partial };
    SocksRequest::Connect { host, port: u16::from_be_bytes([*high, *low]), length: bytes.len() - rest.len() }
}

/// For the fuzz target: a request that is whole is the same with more behind it, and needs all of its bytes.
#[cfg(fuzzing)]
pub(crate) fn fuzz_request(bytes: &[u8]) {
    let asked = read_request(bytes);
    if let SocksRequest::Connect { length, .. } = &asked {
        assert!(*length <= bytes.len(), "{asked:?}");
        assert_eq!(read_request(&bytes[..*length]), asked, "what follows changes nothing");
        assert_eq!(read_request(&bytes[..*length - 1]), SocksRequest::Partial, "all of it is needed");
    }
}

/// Serves a client that uses the gate as its SOCKS5 proxy.
pub(crate) async fn serve(shared: &Shared, mut client: End) {
    let deadline = Instant::now() + shared.limits.head_time;
    let Some(methods) = greeting(&mut client, deadline).await else { return };
    // 0 is "without a password": the listening socket says whose connection this is.
    if !methods.contains(&0) {
        return last_word(&mut client, &[VERSION, 0xff]).await;
    }
    if write_within(&mut client.output, &[VERSION, 0], shared.limits.idle).await.is_err() {
        return;
    }
    let (host, port) = loop {
        match read_request(client.input.bytes()) {
            SocksRequest::Connect { host, port, length } => {
                client.input.skip(length);
                break (host, port);
            }
            SocksRequest::Command(what) => {
                shared.ledger.refuse(&Refusal::Unsupported { what });
                return last_word(&mut client, &Reply::CommandNotSupported.bytes()).await;
            }
            SocksRequest::Malformed(problem) => {
                shared.ledger.refuse(&Refusal::Ambiguous { problem });
                return last_word(&mut client, &Reply::AddressTypeNotSupported.bytes()).await;
            }
            SocksRequest::Partial => {}
        }
        if !matches!(client.input.more_until(deadline).await, Ok(1..)) {
            return;
        }
    };
    let opened = match decide(&host, port, &shared.hosts) {
        Ok(name) => shared.open(&name, port).await,
        Err(refusal) => Err(NoRoute::Forbidden(refusal)),
    };
    let reply = match opened {
        Ok((route, server)) => {
            let reply = Reply::Succeeded.bytes();
            if write_within(&mut client.output, &reply, shared.limits.idle).await.is_ok() {
                tunnel::run(shared, client, server, route).await;
            }
            return;
        }
        Err(NoRoute::Forbidden(refusal)) => {
            shared.ledger.refuse(&refusal);
            Reply::NotAllowed
        }
        Err(NoRoute::Unresolved | NoRoute::Unreachable) => Reply::HostUnreachable,
        Err(NoRoute::ConnectionRefused) => Reply::ConnectionRefused,
    };
    last_word(&mut client, &reply.bytes()).await;
}

/// The methods that a client offers.
async fn greeting(client: &mut End, deadline: Instant) -> Option<Vec<u8>> {
    loop {
        if let [_, count, rest @ ..] = client.input.bytes()
            && rest.len() >= usize::from(*count)
        {
            let greeting = client.input.take(2 + usize::from(*count));
            return greeting.get(2..).map(<[u8]>::to_vec);
        }
        if !matches!(client.input.more_until(deadline).await, Ok(1..)) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_byte_by_byte_and_never_beyond() {
        let named = [&[5, 1, 0, 3, 11][..], b"example.com", &[1, 187], b"rest"].concat();
        for length in 0..named.len() - 4 {
            assert_eq!(read_request(&named[..length]), SocksRequest::Partial, "{length}");
        }
        let connect = |host: &str, port, length| SocksRequest::Connect { host: host.into(), port, length };
        assert_eq!(read_request(&named), connect("example.com", 443, 18));
        assert_eq!(read_request(&[5, 1, 0, 1, 127, 0, 0, 1, 0, 80]), connect("127.0.0.1", 80, 10));
        let v6 = [&[5, 1, 0, 4][..], &Ipv6Addr::LOCALHOST.octets(), &[0, 80]].concat();
        assert_eq!(read_request(&v6), connect("[::1]", 80, 22));
        assert_eq!(read_request(&[5, 3]), SocksRequest::Command("SOCKS UDP ASSOCIATE"));
        assert_eq!(read_request(&[5, 2]), SocksRequest::Command("SOCKS BIND"));
        assert_eq!(read_request(&[5, 9]), SocksRequest::Command("that SOCKS command"));
        assert!(matches!(read_request(&[4, 1]), SocksRequest::Malformed(_)));
        assert!(matches!(read_request(&[5, 1, 1]), SocksRequest::Malformed(_)));
        assert!(matches!(read_request(&[5, 1, 0, 2]), SocksRequest::Malformed(_)));
    }
}
