//! Heads of HTTP/1 messages, read so that no two readers can disagree about them.

use super::name::split_port;
use std::fmt::Write as _;

/// The most headers of a message.
const MAX_HEADERS: usize = 128;

/// Where the body of a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
    /// Only of an answer.
    UntilClose,
}

/// Where a request goes, by its first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `CONNECT host:port`.
    Tunnel { host: String, port: u16 },
    /// `GET http://host:port/path`.
    Absolute { host: String, port: u16, path: String },
    /// `GET /path`: for a server, not for a proxy.
    Origin { path: String },
}

/// A header, its name in lower case.
type Header = (String, Vec<u8>);

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: Target,
    /// The header `Host`.
    pub(crate) host: Option<String>,
    pub(crate) framing: Framing,
    /// Whether the client wants to send more requests on this connection.
    pub(crate) keep_alive: bool,
    /// Whether the client takes chunks in an answer.
    pub(crate) takes_chunks: bool,
    /// What is passed on.
    headers: Vec<Header>,
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    reason: String,
    pub(crate) framing: Framing,
    /// What a header says about the length, which may be of a body that is not sent.
    length: Option<u64>,
    headers: Vec<Header>,
}

/// Looks for the end of a head while it comes in, and refuses what must not be in one.
#[derive(Debug, Default)]
pub(crate) struct HeadScanner {
    scanned: usize,
    line_start: usize,
}

impl HeadScanner {
    /// The length of the head once all of it is there. To be called with the same bytes and more.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Result<Option<usize>, &'static str> {
        while let Some(&byte) = bytes.get(self.scanned) {
            let at_line_start = self.scanned == self.line_start;
            match byte {
                b'\n' => return Err("a line ends without a carriage return"),
                0 => return Err("a zero byte is in the head"),
                b' ' | b'\t' if at_line_start => return Err("a line begins with a blank (a folded header)"),
                b'\r' => match bytes.get(self.scanned + 1) {
                    None => return Ok(None),
                    Some(b'\n') if at_line_start && self.scanned == 0 => {
                        return Err("an empty line comes first");
                    }
                    Some(b'\n') if at_line_start => return Ok(Some(self.scanned + 2)),
                    Some(b'\n') => {
                        self.scanned += 2;
                        self.line_start = self.scanned;
                        continue;
                    }
                    Some(_) => return Err("a carriage return stands alone"),
                },
                _ => {}
            }
            self.scanned += 1;
        }
        Ok(None)
    }
}

/// Reads the head of a request that [`HeadScanner`] found whole.
pub(crate) fn parse_request(head: &[u8]) -> Result<RequestHead, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(_) => return Err("the head does not end where its empty line is"),
        Err(httparse::Error::TooManyHeaders) => return Err("there are too many headers"),
        Err(_) => return Err("the first line or a header is malformed"),
    }
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err("the first line is not whole");
    };
    let read = Headers::read(request.headers)?;
    let target = parse_target(method, target)?;
    let framing = match (read.chunked, read.length) {
        (true, _) if version == 0 => return Err("chunks are sent in HTTP/1.0"),
        (true, _) => Framing::Chunked,
        (false, Some(length)) => Framing::Length(length),
        (false, None) => Framing::None,
    };
    if matches!(target, Target::Tunnel { .. }) && !matches!(framing, Framing::None | Framing::Length(0)) {
        return Err("a CONNECT request has a body");
    }
    if version == 1 && read.host.is_none() && !matches!(target, Target::Tunnel { .. }) {
        return Err("there is no header Host");
    }
    Ok(RequestHead {
        method: method.to_owned(),
        target,
        host: read.host,
        framing,
        keep_alive: version == 1 && !read.close,
        takes_chunks: version == 1,
        headers: read.forwarded,
    })
}

/// Reads the head of an answer to a request with that method.
pub(crate) fn parse_response(head: &[u8], method: &str) -> Result<ResponseHead, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        _ => return Err("the head of the answer is malformed"),
    }
    let Some(status) = response.code else { return Err("the answer has no status") };
    let reason = response.reason.unwrap_or_default().to_owned();
    let read = Headers::read(response.headers)?;
    let no_body = method == "HEAD" || matches!(status, 100..=199 | 204 | 304);
    let framing = match (no_body, read.chunked, read.length) {
        (true, _, _) => Framing::None,
        (false, true, _) => Framing::Chunked,
        (false, false, Some(length)) => Framing::Length(length),
        (false, false, None) => Framing::UntilClose,
    };
    Ok(ResponseHead { status, reason, framing, length: read.length, headers: read.forwarded })
}

/// What the headers of a message say about its end and about the connection.
#[derive(Default)]
struct Headers {
    host: Option<String>,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    forwarded: Vec<Header>,
}

impl Headers {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Self, &'static str> {
        let mut read = Headers::default();
        let mut named_by_connection = Vec::new();
        for header in headers {
            let name = header.name.to_ascii_lowercase();
            let value = header.value.trim_ascii();
            match name.as_str() {
                "host" if read.host.is_some() => return Err("there are two headers Host"),
                "host" => read.host = Some(ascii(value)?.to_owned()),
                "content-length" if read.length.is_some() => {
                    return Err("there are two headers Content-Length");
                }
                "content-length" => read.length = Some(content_length(value)?),
                "transfer-encoding" if read.chunked => return Err("there are two headers Transfer-Encoding"),
                "transfer-encoding" if value.eq_ignore_ascii_case(b"chunked") => read.chunked = true,
                "transfer-encoding" => return Err("the header Transfer-Encoding is not `chunked`"),
                "connection" | "proxy-connection" => {
                    let tokens = ascii(value)?.split(',').map(|token| token.trim().to_ascii_lowercase());
                    named_by_connection.extend(tokens);
                }
                // These speak of one connection, not of the request (RFC 9110, 7.6.1).
                "keep-alive"
                | "te"
                | "trailer"
                | "upgrade"
                | "http2-settings"
                | "proxy-authenticate"
                | "proxy-authorization" => {}
                _ => read.forwarded.push((name, value.to_vec())),
            }
        }
        if read.chunked && read.length.is_some() {
            return Err("there are both Content-Length and Transfer-Encoding");
        }
        read.close = named_by_connection.iter().any(|token| token == "close");
        read.forwarded.retain(|(name, _)| !named_by_connection.contains(name));
        Ok(read)
    }
}

fn ascii(value: &[u8]) -> Result<&str, &'static str> {
    let text = std::str::from_utf8(value).ok().filter(|text| text.is_ascii());
    text.ok_or("a header about the connection is not ASCII")
}

/// Digits alone: no sign, no list, no number that is larger than any file.
fn content_length(value: &[u8]) -> Result<u64, &'static str> {
    let digits = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let number = if digits { ascii(value)?.parse().ok() } else { None };
    number.ok_or("the header Content-Length is not one number")
}

fn parse_target(method: &str, target: &str) -> Result<Target, &'static str> {
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the first line has characters that belong escaped");
    }
    if method == "CONNECT" {
        let (host, port) = split_port(target).ok_or("CONNECT is not followed by host:port")?;
        return Ok(Target::Tunnel { host: host.to_owned(), port });
    }
    if target.contains('#') {
        return Err("the first line has a fragment");
    }
    if target.starts_with('/') {
        return Ok(Target::Origin { path: target.to_owned() });
    }
    let rest = match target.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => rest,
        _ if method == "OPTIONS" && target == "*" => return Ok(Target::Origin { path: "*".to_owned() }),
        _ => return Err("the first line does not name a URL with http:// (for https, use CONNECT)"),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = split_authority(authority).ok_or("the URL has a port that is no number")?;
    let path = match path {
        "" if method == "OPTIONS" => "*".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        query => format!("/{query}"),
    };
    Ok(Target::Absolute { host: host.to_owned(), port: port.unwrap_or(80), path })
}

/// Splits `host` or `host:port`. Whether the host is one is for `decide`.
pub(crate) fn split_authority(authority: &str) -> Option<(&str, Option<u16>)> {
    // `[::1]` has colons of its own; it is refused later, as an address.
    if !authority.contains(':') || authority.ends_with(']') {
        return Some((authority, None));
    }
    split_port(authority).map(|(host, port)| (host, Some(port)))
}

impl RequestHead {
    /// The head as it goes to a server: to this host, on a connection for this one request.
    pub(crate) fn for_server(&self, authority: &str, path: &str) -> Vec<u8> {
        let mut head = format!("{} {path} HTTP/1.1\r\nhost: {authority}\r\n", self.method);
        write_framing(&mut head, self.framing);
        head.push_str("connection: close\r\n");
        finish(head, &self.headers)
    }
}

impl ResponseHead {
    /// The head as it goes to the client.
    pub(crate) fn for_client(&self, framing: Framing, keep_alive: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, self.reason);
        match (framing, self.length) {
            // The length of what a HEAD request or a cache asked about.
            (Framing::None, Some(length)) if self.status != 204 && self.status >= 200 => {
                write_framing(&mut head, Framing::Length(length));
            }
            _ => write_framing(&mut head, framing),
        }
        if self.status >= 200 {
            head.push_str(if keep_alive { "connection: keep-alive\r\n" } else { "connection: close\r\n" });
        }
        finish(head, &self.headers)
    }
}

fn write_framing(head: &mut String, framing: Framing) {
    match framing {
        // Writing into a string cannot fail.
        Framing::Length(length) => _ = write!(head, "content-length: {length}\r\n"),
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        Framing::None | Framing::UntilClose => {}
    }
}

fn finish(head: String, headers: &[Header]) -> Vec<u8> {
    let mut head = head.into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests;
