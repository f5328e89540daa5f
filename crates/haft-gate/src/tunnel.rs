//! Tunnels: what goes through one must be for the host that it was opened to, as far as that can be seen.

use super::{
    Shared,
    hello::{Answer, Hello, MAX_HELLO, other_record, read_answer, read_hello},
    http,
    name::HostName,
    refusal::{Refusal, shown},
    wire::{End, last_word, more_from_client, pass_on, write_within},
};
use std::{io, net::SocketAddr};
use tokio::time::Instant;

/// A host that was allowed, and the address that was decided on.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) host: HostName,
    pub(crate) port: u16,
    pub(crate) address: SocketAddr,
}

impl Route {
    /// As it stands in a header `Host`.
    pub(crate) fn authority(&self) -> String {
        match self.port {
            80 => self.host.to_string(),
            port => format!("{}:{port}", self.host),
        }
    }

    fn wrong(&self, problem: &'static str) -> Refusal {
        Refusal::WrongProtocol { host: self.host.clone(), port: self.port, problem }
    }
}

/// Why a tunnel ends before it is open.
enum Ended {
    Refused(Refusal),
    Gone,
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Ended::Gone
    }
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        Ended::Refused(refusal)
    }
}

/// A fatal alert `access_denied`: what a TLS client can show of a refusal.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// What a tunnel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tls,
    Http,
    Other,
}

/// Runs a tunnel whose client was told that it is open.
pub(crate) async fn run(shared: &Shared, mut client: End, mut server: End, route: Route) {
    match open(shared, &mut client, &mut server, &route).await {
        Ok(Protocol::Http) => http::serve_tunnelled(shared, client, server, &route).await,
        Ok(Protocol::Tls | Protocol::Other) => {
            pass_on(client, server, &shared.ledger, shared.limits.idle).await;
        }
        Err(Ended::Refused(refusal)) => {
            shared.ledger.refuse(&refusal);
            last_word(&mut client, &ACCESS_DENIED).await;
        }
        Err(Ended::Gone) => {}
    }
}

/// Looks at the client's first bytes. None of them reaches the server before they were understood.
async fn open(shared: &Shared, client: &mut End, server: &mut End, route: &Route) -> Result<Protocol, Ended> {
    // A client may open a tunnel before it needs it; once it speaks, it must finish its sentence.
    let mut deadline = Instant::now() + shared.limits.idle;
    let protocol = loop {
        match first_words(client.input.bytes()) {
            First::Is(protocol) => break protocol,
            First::TooLong => return Err(route.wrong("carries a first line that is too long").into()),
            First::Open => {}
        }
        let silent = client.input.bytes().is_empty();
        match more_from_client(client, server, &shared.ledger, deadline).await {
            Ok(0) => break Protocol::Other,
            Ok(_) if silent => deadline = Instant::now() + shared.limits.head_time,
            Ok(_) => {}
            Err(error) if !silent && error.kind() == io::ErrorKind::TimedOut => {
                return Err(route.wrong("carries a first line that does not end").into());
            }
            Err(_) => return Err(Ended::Gone),
        }
    };
    match (protocol, route.port) {
        (Protocol::Tls, _) => greet(shared, client, server, route).await?,
        // A client that closes without a word has done nothing wrong.
        (_, 80 | 443) if client.input.bytes().is_empty() => return Err(Ended::Gone),
        (_, 443) => return Err(route.wrong("does not begin with a TLS greeting").into()),
        (Protocol::Other, 80) => return Err(route.wrong("carries neither HTTP nor TLS").into()),
        (Protocol::Http | Protocol::Other, _) => {}
    }
    Ok(protocol)
}

/// What the first bytes of a client are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// Too few to tell.
    Open,
    TooLong,
    Is(Protocol),
}

/// Tells protocols apart by their first line. Whatever a server could take for HTTP is HTTP.
fn first_words(bytes: &[u8]) -> First {
    const LONGEST: usize = 8192;
    match bytes {
        [] | [22] => First::Open,
        [22, 3, ..] => First::Is(Protocol::Tls),
        // Servers skip empty lines and blanks before a request.
        [b'\r' | b'\n' | b' ' | b'\t', ..] => First::Is(Protocol::Http),
        _ => {
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | b'\r');
            let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
            if !line.iter().all(text) || !bytes.first().is_some_and(token) {
                return First::Is(Protocol::Other);
            }
            let whole = line.len() < bytes.len();
            match line.windows(6).any(|window| window.eq_ignore_ascii_case(b" HTTP/")) {
                true if whole => First::Is(Protocol::Http),
                false if whole => First::Is(Protocol::Other),
                _ if bytes.len() >= LONGEST => First::TooLong,
                _ => First::Open,
            }
        }
    }
}

/// Lets the TLS greeting through once it names the host of the tunnel; and the second one, if the server asks for it.
async fn greet(shared: &Shared, client: &mut End, server: &mut End, route: &Route) -> Result<(), Ended> {
    let idle = shared.limits.idle;
    greeting(shared, client, server, route).await?;
    let answer = loop {
        match read_answer(server.input.bytes()) {
            Answer::Partial => {
                // Should the server close, the client shall see what there was.
                if server.input.more_until(Instant::now() + idle).await? == 0 {
                    break Answer::Other;
                }
            }
            answer => break answer,
        }
    };
    if answer != Answer::Retry {
        return Ok(());
    }
    // The first part of the answer must reach the client, or it has nothing to react to.
    shared.ledger.received(server.input.bytes().len());
    let first = server.input.take(usize::MAX);
    write_within(&mut client.output, &first, idle).await?;
    loop {
        let there = client.input.bytes();
        match (there.first(), other_record(there)) {
            (_, Some(length)) if there.len() >= length => {
                let record = client.input.take(length);
                write_within(&mut server.output, &record, idle).await?;
                shared.ledger.sent(record.len());
                continue;
            }
            // A handshake message in the clear: the second greeting, or nothing that may pass.
            (Some(22), None) => return greeting(shared, client, server, route).await,
            _ => {}
        }
        let deadline = Instant::now() + idle;
        if more_from_client(client, server, &shared.ledger, deadline).await? == 0 {
            return Err(Ended::Gone);
        }
    }
}

/// Reads one greeting, compares its name, and sends it on.
async fn greeting(shared: &Shared, client: &mut End, server: &mut End, route: &Route) -> Result<(), Ended> {
    let deadline = Instant::now() + shared.limits.head_time;
    let length = loop {
        let bytes = client.input.bytes();
        match read_hello(bytes) {
            Hello::Complete { server_name, length } => {
                check_name(route, server_name)?;
                break length;
            }
            Hello::Broken(problem) => return Err(route.wrong(problem).into()),
            Hello::Partial if bytes.len() > MAX_HELLO => {
                return Err(route.wrong("has a TLS greeting that is too long").into());
            }
            Hello::Partial => {}
        }
        match more_from_client(client, server, &shared.ledger, deadline).await {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(route.wrong("has a TLS greeting that does not end").into());
            }
            // An end that leaves has done nothing wrong.
            Ok(0) | Err(_) => return Err(Ended::Gone),
            Ok(_) => {}
        }
    };
    let hello = client.input.take(length);
    write_within(&mut server.output, &hello, shared.limits.idle).await?;
    shared.ledger.sent(hello.len());
    Ok(())
}

fn check_name(route: &Route, found: Option<String>) -> Result<(), Refusal> {
    match found {
        Some(name) if HostName::parse(&name).is_ok_and(|name| name == route.host) => Ok(()),
        found => Err(Refusal::ServerName {
            host: route.host.clone(),
            port: route.port,
            found: found.map(|name| shown(&name)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_are_told_apart() {
        let long = [b"GET /".as_slice(), &[b'a'; 9000]].concat();
        let cases: [(&[u8], First); 20] = [
            (b"", First::Open),
            (&[22], First::Open),
            (&[22, 3], First::Is(Protocol::Tls)),
            (&[22, 2], First::Is(Protocol::Other)),
            (&[0x80, 0x2e, 1, 3, 1], First::Is(Protocol::Other)),
            (b"G", First::Open),
            (b"GET / HTTP/1.1", First::Open),
            (b"GET / HTTP/1.1\r\n", First::Is(Protocol::Http)),
            (b"GET / HTTP/1.1\n", First::Is(Protocol::Http)),
            (b"get / http/1.1\n", First::Is(Protocol::Http)),
            (b"ANY-THING / HTTP/1.1 \r\n", First::Is(Protocol::Http)),
            (b"\r\nGET / HTTP/1.1\r\n", First::Is(Protocol::Http)),
            (b"\n", First::Is(Protocol::Http)),
            (b" GET / HTTP/1.1\r\n", First::Is(Protocol::Http)),
            (b"PRI * HTTP/2.0\r\n", First::Is(Protocol::Http)),
            (b"SSH-2.0-OpenSSH_9.2\r\n", First::Is(Protocol::Other)),
            (b"EHLO me\r\n", First::Is(Protocol::Other)),
            (b"{\"json\": 1}", First::Is(Protocol::Other)),
            (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", First::Is(Protocol::Other)),
            (&long, First::TooLong),
        ];
        for (bytes, expected) in cases {
            assert_eq!(first_words(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
