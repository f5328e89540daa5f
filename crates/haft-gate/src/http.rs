//! Plain HTTP: every request is read, checked, and sent on a connection of its own.

use super::{
    Shared,
    chunk::{Chunks, Piece},
    head::{
        Framing, HeadScanner, RequestHead, ResponseHead, Target, parse_request, parse_response,
        split_authority,
    },
    name::HostName,
    refusal::{Refusal, shown},
    resolve::NoRoute,
    tunnel::{self, Route},
    wire::{End, Input, last_word, write_within},
};
use std::{io, time::Duration};
use tokio::{net::tcp::OwnedWriteHalf, time::Instant};

/// Whether a connection may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    KeepAlive,
    Close,
}

/// Why an exchange broke off before the client had the head of an answer.
enum Broken {
    /// The client's fault.
    Refused(Refusal),
    /// The server's.
    BadAnswer,
    /// An end is gone or silent.
    Gone,
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Broken::Gone
    }
}

/// Serves a client that uses the gate as its HTTP proxy.
pub(crate) async fn serve_proxy(shared: &Shared, mut client: End) {
    while let Some(head) = next_request(shared, &mut client).await {
        let (host, port) = match &head.target {
            Target::Tunnel { host, port } | Target::Absolute { host, port, .. } => (host, *port),
            Target::Origin { .. } => {
                let refusal =
                    Refusal::Unsupported { what: "pages of its own: it is a proxy for other hosts" };
                return refuse(shared, &mut client, &refusal).await;
            }
        };
        let decided = super::decide(host, port, &shared.hosts).and_then(|name| same_host(&head, name, port));
        let name = match decided {
            Ok(name) => name,
            Err(refusal) => return refuse(shared, &mut client, &refusal).await,
        };
        let (route, server) = match shared.open(&name, port).await {
            Ok(opened) => opened,
            Err(no_route) => return answer_no_route(shared, &mut client, &name, no_route).await,
        };
        let Target::Absolute { path, .. } = &head.target else {
            let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
            if write_within(&mut client.output, established, shared.limits.idle).await.is_ok() {
                tunnel::run(shared, client, server, route).await;
            }
            return;
        };
        if exchange(shared, &mut client, &head, server, &route, path).await == After::Close {
            return;
        }
    }
}

/// Serves a client that speaks HTTP to a server inside a tunnel: to that server, and to no other name on it.
pub(crate) async fn serve_tunnelled(shared: &Shared, mut client: End, server: End, route: &Route) {
    let mut first = Some(server);
    while let Some(head) = next_request(shared, &mut client).await {
        let Target::Origin { path } = &head.target else {
            let refusal = Refusal::Unsupported { what: "proxy requests inside a tunnel" };
            return refuse(shared, &mut client, &refusal).await;
        };
        if let Err(refusal) = same_host(&head, route.host.clone(), route.port) {
            return refuse(shared, &mut client, &refusal).await;
        }
        let server = match first.take() {
            Some(server) => server,
            None => match shared.open_again(route).await {
                Ok(server) => server,
                Err(no_route) => return answer_no_route(shared, &mut client, &route.host, no_route).await,
            },
        };
        if exchange(shared, &mut client, &head, server, route, path).await == After::Close {
            return;
        }
    }
}

/// The next request on a connection. `None` when there is none; what was wrong was answered.
async fn next_request(shared: &Shared, client: &mut End) -> Option<RequestHead> {
    if client.input.bytes().is_empty() {
        let deadline = Instant::now() + shared.limits.idle;
        match client.input.more_until(deadline).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    }
    let read = match read_head(&mut client.input, shared.limits.head_time, shared.limits.head_bytes).await {
        Ok(head) => parse_request(&head),
        Err(HeadProblem::Malformed(problem)) => Err(problem),
        Err(HeadProblem::Late) => {
            let text = "the head of the request took too long";
            answer(client, "408 Request Timeout", "http_request_error", text).await;
            return None;
        }
        Err(HeadProblem::Gone) => return None,
    };
    match read {
        Ok(head) => Some(head),
        Err(problem) => {
            refuse(shared, client, &Refusal::Ambiguous { problem }).await;
            None
        }
    }
}

enum HeadProblem {
    Malformed(&'static str),
    Late,
    Gone,
}

/// Reads a head within a time that starts now, however slowly its bytes come.
async fn read_head(input: &mut Input, within: Duration, most: usize) -> Result<Vec<u8>, HeadProblem> {
    let deadline = Instant::now() + within;
    let mut scanner = HeadScanner::default();
    loop {
        if let Some(length) = scanner.scan(input.bytes()).map_err(HeadProblem::Malformed)? {
            return Ok(input.take(length));
        }
        if input.bytes().len() >= most {
            return Err(HeadProblem::Malformed("the head is too long"));
        }
        match input.more_until(deadline).await {
            Ok(0) => return Err(HeadProblem::Gone),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(HeadProblem::Late),
            Err(_) => return Err(HeadProblem::Gone),
        }
    }
}

/// Checks that the header `Host` says where the request goes.
fn same_host(head: &RequestHead, name: HostName, port: u16) -> Result<HostName, Refusal> {
    let Some(host) = &head.host else { return Ok(name) };
    let same = split_authority(host).is_some_and(|(host, found)| {
        let port_fits = match (&head.target, found) {
            (_, Some(found)) => found == port,
            // A URL without a port means 80; in a tunnel the port is that of the tunnel.
            (Target::Absolute { .. }, None) => port == 80,
            (Target::Tunnel { .. } | Target::Origin { .. }, None) => true,
        };
        port_fits && HostName::parse(host).is_ok_and(|host| host == name)
    });
    if same {
        return Ok(name);
    }
    Err(Refusal::HostHeader { expected: format!("{name}:{port}"), found: shown(host) })
}

/// Sends one request and brings back its answer.
async fn exchange(
    shared: &Shared,
    client: &mut End,
    head: &RequestHead,
    mut server: End,
    route: &Route,
    path: &str,
) -> After {
    let mut answered = false;
    let broken = match send_and_receive(shared, client, &mut server, head, route, path, &mut answered).await {
        Ok(After::KeepAlive) => return After::KeepAlive,
        Ok(After::Close) => {
            last_word(client, b"").await;
            return After::Close;
        }
        Err(broken) => broken,
    };
    match broken {
        // With half an answer sent, only the end of the connection can say that it is not whole.
        Broken::Refused(refusal) if answered => shared.ledger.refuse(&refusal),
        Broken::BadAnswer | Broken::Gone if answered => {}
        Broken::Refused(refusal) => refuse(shared, client, &refusal).await,
        Broken::BadAnswer | Broken::Gone => {
            let text = format!("`{}` gave no answer that could be passed on", route.host);
            answer(client, "502 Bad Gateway", "http_protocol_error", &text).await;
        }
    }
    After::Close
}

/// Sends and receives at the same time: a server may answer before it has the whole request, or ask for its body.
async fn send_and_receive(
    shared: &Shared,
    client: &mut End,
    server: &mut End,
    head: &RequestHead,
    route: &Route,
    path: &str,
    answered: &mut bool,
) -> Result<After, Broken> {
    let idle = shared.limits.idle;
    let bytes = head.for_server(&route.authority(), path);
    write_within(&mut server.output, &bytes, idle).await?;
    shared.ledger.sent(bytes.len());
    let upload = body(&mut client.input, &mut server.output, head.framing, head.framing, idle, |n| {
        shared.ledger.sent(n)
    });
    let download = bring_back(shared, &mut server.input, &mut client.output, head, answered);
    tokio::pin!(upload, download);
    let (mut uploading, mut uploaded) = (true, false);
    loop {
        tokio::select! {
            sent = &mut upload, if uploading => {
                uploading = false;
                match sent {
                    Ok(()) => uploaded = true,
                    Err(BodyProblem::Malformed(problem)) => return Err(Broken::Refused(Refusal::Ambiguous { problem })),
                    Err(BodyProblem::SourceGone) => return Err(Broken::Gone),
                    // A server that has heard enough may still say why.
                    Err(BodyProblem::SinkGone) => {}
                }
            }
            after = &mut download => return after.map(|after| if uploaded { after } else { After::Close }),
        }
    }
}

/// Brings the answer back: interim ones as they are, then the final one with its body.
async fn bring_back(
    shared: &Shared,
    server: &mut Input,
    client: &mut OwnedWriteHalf,
    request: &RequestHead,
    answered: &mut bool,
) -> Result<After, Broken> {
    let (ledger, limits) = (&shared.ledger, &shared.limits);
    loop {
        let head =
            read_head(server, limits.idle, limits.head_bytes).await.map_err(|problem| match problem {
                HeadProblem::Malformed(_) => Broken::BadAnswer,
                HeadProblem::Late | HeadProblem::Gone => Broken::Gone,
            })?;
        ledger.received(head.len());
        let head: ResponseHead = parse_response(&head, &request.method).map_err(|_| Broken::BadAnswer)?;
        match head.status {
            // The request to change the protocol was not passed on.
            101 => return Err(Broken::BadAnswer),
            100..=199 => {
                if request.takes_chunks {
                    write_within(client, &head.for_client(Framing::None, true), limits.idle).await?;
                }
                continue;
            }
            _ => {}
        }
        let framing = match head.framing {
            Framing::Chunked if !request.takes_chunks => Framing::UntilClose,
            framing => framing,
        };
        let keep_alive = request.keep_alive && framing != Framing::UntilClose;
        *answered = true;
        write_within(client, &head.for_client(framing, keep_alive), limits.idle).await?;
        let counted = |bytes| ledger.received(bytes);
        body(server, client, head.framing, framing, limits.idle, counted).await.map_err(|_| Broken::Gone)?;
        return Ok(if keep_alive { After::KeepAlive } else { After::Close });
    }
}

enum BodyProblem {
    Malformed(&'static str),
    SourceGone,
    SinkGone,
}

/// Passes a body on. Chunks are taken apart, and written again where they go on as chunks.
async fn body(
    from: &mut Input,
    to: &mut OwnedWriteHalf,
    framing: Framing,
    onward: Framing,
    idle: Duration,
    counted: impl Fn(usize),
) -> Result<(), BodyProblem> {
    let mut chunks = Chunks::default();
    let mut left = match framing {
        Framing::Length(length) => length,
        Framing::None | Framing::Chunked | Framing::UntilClose => 0,
    };
    loop {
        let there = from.bytes().len();
        let piece = match framing {
            Framing::Length(_) if left == 0 => Piece::End,
            Framing::None => Piece::End,
            Framing::Length(_) | Framing::UntilClose if there == 0 => Piece::More,
            Framing::Length(_) => Piece::Content(usize::try_from(left).unwrap_or(usize::MAX).min(there)),
            Framing::UntilClose => Piece::Content(there),
            Framing::Chunked => chunks.next(from.bytes()).map_err(BodyProblem::Malformed)?,
        };
        match piece {
            Piece::More => match from.more_until(Instant::now() + idle).await {
                Ok(0) if framing == Framing::UntilClose => return Ok(()),
                Ok(0) | Err(_) => return Err(BodyProblem::SourceGone),
                Ok(_) => {}
            },
            Piece::Form(length) => {
                counted(length);
                from.skip(length);
            }
            Piece::Content(length) => {
                counted(length);
                left = left.saturating_sub(length as u64);
                let mut content = from.take(length);
                if onward == Framing::Chunked {
                    let size = format!("{length:x}\r\n");
                    content.splice(0..0, size.into_bytes());
                    content.extend_from_slice(b"\r\n");
                }
                write_within(to, &content, idle).await.map_err(|_| BodyProblem::SinkGone)?;
            }
            Piece::End => {
                if onward == Framing::Chunked {
                    write_within(to, b"0\r\n\r\n", idle).await.map_err(|_| BodyProblem::SinkGone)?;
                }
                return Ok(());
            }
        }
    }
}

/// Refuses, keeps that, and says it.
pub(crate) async fn refuse(shared: &Shared, client: &mut End, refusal: &Refusal) {
    shared.ledger.refuse(refusal);
    let mut text = refusal.to_string();
    if let Some(hint) = refusal.hint() {
        text = format!("{text}; {hint}");
    }
    answer(client, refusal.http_status(), refusal.proxy_error(), &text).await;
}

async fn answer_no_route(shared: &Shared, client: &mut End, host: &HostName, no_route: NoRoute) {
    let (status, error, text) = match no_route {
        NoRoute::Forbidden(refusal) => return refuse(shared, client, &refusal).await,
        NoRoute::Unresolved => ("502 Bad Gateway", "dns_error", "has no address"),
        NoRoute::ConnectionRefused => ("502 Bad Gateway", "connection_refused", "refused the connection"),
        NoRoute::Unreachable => ("504 Gateway Timeout", "connection_timeout", "did not answer"),
    };
    answer(client, status, error, &format!("the host `{host}` {text}")).await;
}

/// An answer of the gate's own. `Proxy-Status` (RFC 9209) tells it from one of a server's.
async fn answer(client: &mut End, status: &str, error: &str, text: &str) {
    let body = format!("haft: {text}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         proxy-status: haft; error={error}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    last_word(client, answer.as_bytes()).await;
}
