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
mod tests {
    use super::*;
    use proptest::{
        prelude::*,
        test_runner::{Config, RngSeed},
    };

    fn request(head: &str) -> Result<RequestHead, &'static str> {
        match HeadScanner::default().scan(head.as_bytes())? {
            Some(length) if length == head.len() => parse_request(head.as_bytes()),
            _ => Err("not whole"),
        }
    }

    #[test]
    fn targets() {
        let target =
            |line: &str| request(&format!("{line} HTTP/1.1\r\nHost: a.com\r\n\r\n")).map(|head| head.target);
        let absolute =
            |port, path: &str| Ok(Target::Absolute { host: "a.com".into(), port, path: path.into() });
        assert_eq!(target("GET http://a.com/b?c"), absolute(80, "/b?c"));
        assert_eq!(target("GET http://a.com"), absolute(80, "/"));
        assert_eq!(target("GET HTTP://a.com:8080?q"), absolute(8080, "/?q"));
        assert_eq!(target("OPTIONS http://a.com"), absolute(80, "*"));
        assert_eq!(target("GET /b"), Ok(Target::Origin { path: "/b".into() }));
        assert_eq!(target("CONNECT a.com:443"), Ok(Target::Tunnel { host: "a.com".into(), port: 443 }));
        // The host is whatever stands there, for `decide` to refuse: never a part of it.
        let odd = |host: &str| Ok(Target::Absolute { host: host.into(), port: 80, path: "/".into() });
        assert_eq!(target("GET http://u@a.com/"), odd("u@a.com"));
        assert_eq!(target("GET http://b.com\\@a.com/"), odd("b.com\\@a.com"));
        assert_eq!(target("GET http://[::1]/"), odd("[::1]"));
        assert_eq!(target("GET http:///"), odd(""));
        for line in [
            "GET https://a.com/",
            "GET ftp://a.com/",
            "GET a.com",
            "GET http:/a.com",
            "GET *",
            "GET http://a.com/#f",
            "GET http://a.com:/",
            "GET http://a.com:80x/",
            "GET http://a.com:0/",
            "GET http://u:p@a.com/",
            "CONNECT a.com",
            "CONNECT a.com:",
            "CONNECT a.com:99999",
            "CONNECT /",
            "CONNECT http://a.com/",
            "GET http://a.com/ü",
            "GET  http://a.com/",
            "GET http://a.com/ x",
        ] {
            assert!(target(line).is_err(), "{line}: {:?}", target(line));
        }
    }

    #[test]
    fn requests_that_two_readers_read_differently_are_refused() {
        let ok = "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(request(ok).unwrap().framing, Framing::Length(5));
        for (headers, why) in [
            ("Host: a.com\r\nHost: b.com\r\n", "two hosts"),
            ("Host: a.com\r\nhost: a.com\r\n", "two hosts, the same"),
            ("", "no host"),
            ("Host: a.com\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", "CL and TE"),
            ("Host: a.com\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", "TE and CL"),
            ("Host: a.com\r\nContent-Length: 5\r\nContent-Length: 6\r\n", "two lengths"),
            ("Host: a.com\r\nContent-Length: 5\r\nContent-Length: 5\r\n", "two lengths, the same"),
            ("Host: a.com\r\nContent-Length: 5, 5\r\n", "a list of lengths"),
            ("Host: a.com\r\nContent-Length: +5\r\n", "a sign"),
            ("Host: a.com\r\nContent-Length: 0x5\r\n", "hexadecimal"),
            ("Host: a.com\r\nContent-Length: 5 5\r\n", "a blank inside"),
            ("Host: a.com\r\nContent-Length:\r\n", "no number"),
            ("Host: a.com\r\nContent-Length: 99999999999999999999\r\n", "too large"),
            ("Host: a.com\r\nTransfer-Encoding: gzip, chunked\r\n", "another coding"),
            ("Host: a.com\r\nTransfer-Encoding: xchunked\r\n", "an unknown coding"),
            ("Host: a.com\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "two codings"),
            ("Host: a.com\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "chunked twice"),
            ("Host: a.com\r\nTransfer-Encoding : chunked\r\n", "a blank before the colon"),
            ("Host: a.com\r\nTransfer-Encoding:\x0bchunked\r\n", "a vertical tab"),
            ("Host: a.com\r\nTransfer\u{2010}Encoding: chunked\r\n", "a name that is no token"),
            ("Host: a.com\r\nX: y\r\n Transfer-Encoding: chunked\r\n", "a folded header"),
            ("Host: a.com\r\nX: y\nTransfer-Encoding: chunked\r\n", "a bare LF"),
            ("Host: a.com\r\nX: y\rTransfer-Encoding: chunked\r\n", "a bare CR"),
            ("Host: a.com\r\nX: y\0z\r\n", "a zero byte"),
            (" Host: a.com\r\n", "a blank before the first header"),
            ("Host: a.com\r\nno colon\r\n", "no colon"),
            ("Host: a.com\r\n: empty\r\n", "no name"),
            ("Host: a\u{e4}.com\r\n", "a host that is not ASCII"),
        ] {
            let head = format!("POST http://a.com/ HTTP/1.1\r\n{headers}\r\n");
            assert!(request(&head).is_err(), "{why}: {:?}", request(&head));
        }
        for head in [
            "\r\nGET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
            "GET http://a.com/\r\nHost: a.com\r\n\r\n",
            "GET http://a.com/ HTTP/1.2\r\nHost: a.com\r\n\r\n",
            "GET http://a.com/ HTTP/2.0\r\nHost: a.com\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "POST http://a.com/ HTTP/1.0\r\nHost: a.com\r\nTransfer-Encoding: chunked\r\n\r\n",
            "CONNECT a.com:443 HTTP/1.1\r\nHost: a.com\r\nContent-Length: 5\r\n\r\n",
            "CONNECT a.com:443 HTTP/1.1\r\nHost: a.com\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(request(head).is_err(), "{head:?}");
        }
        let many = format!("GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n{}\r\n", "A: b\r\n".repeat(200));
        assert_eq!(request(&many), Err("there are too many headers"));
    }

    #[test]
    fn what_goes_to_the_server_speaks_of_this_request_alone() {
        let head = request(
            "POST http://A.com/b HTTP/1.1\r\nHost: A.com\r\nX-One: 1\r\nConnection: keep-alive, X-Two, upgrade\r\n\
             X-Two: 2\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: Keep-Alive\r\nUpgrade: h2c\r\n\
             HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nTE: trailers\r\nContent-Length:  03 \r\nX-\u{7e}: \u{e4}\r\n\r\n",
        )
        .unwrap();
        assert!(head.keep_alive);
        assert_eq!(
            String::from_utf8(head.for_server("a.com", "/b")).unwrap(),
            "POST /b HTTP/1.1\r\nhost: a.com\r\ncontent-length: 3\r\nconnection: close\r\nx-one: 1\r\nx-~: \u{e4}\r\n\r\n"
        );
        let close = "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nConnection: Close\r\n\r\n";
        assert!(!request(close).unwrap().keep_alive);
    }

    #[test]
    fn answers() {
        let framing = |head: &str, method| parse_response(head.as_bytes(), method).map(|head| head.framing);
        assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "GET"), Ok(Framing::Length(3)));
        assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HEAD"), Ok(Framing::None));
        assert_eq!(framing("HTTP/1.1 304 \r\nContent-Length: 3\r\n\r\n", "GET"), Ok(Framing::None));
        assert_eq!(framing("HTTP/1.0 200 OK\r\n\r\n", "GET"), Ok(Framing::UntilClose));
        assert_eq!(
            framing("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET"),
            Ok(Framing::Chunked)
        );
        for broken in [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "SSH-2.0-x\r\n\r\n",
        ] {
            assert!(framing(broken, "GET").is_err(), "{broken:?}");
        }
        let head = parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nA: b\r\n\r\n", "HEAD").unwrap();
        assert_eq!(
            head.for_client(Framing::None, true),
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: keep-alive\r\na: b\r\n\r\n"
        );
    }

    proptest! {
        #![proptest_config(Config { rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::with_cases(2_000) })]

        #[test]
        fn what_is_sent_on_reads_back_as_what_was_decided_on(
            headers in prop::collection::vec(
                ("(Host|Content-Length|Transfer-Encoding|Connection|Upgrade|X-A)", "(a.com|5|chunked|close|[ -~]{0,12})"),
                0..6,
            ),
            noise in "[\r\n\t :a]{0,3}",
        ) {
            let mut text = "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\n".to_owned();
            for (name, value) in headers {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            text.push_str(&noise);
            text.push_str("\r\n");
            if let Ok(head) = request(&text) {
                let sent = String::from_utf8(head.for_server("a.com", "/")).unwrap();
                let again = request(&sent).unwrap();
                prop_assert_eq!(again.framing, head.framing);
                prop_assert_eq!(again.host.as_deref(), Some("a.com"));
                prop_assert!(!again.keep_alive);
                prop_assert_eq!(again.headers, head.headers);
            }
        }

        #[test]
        fn the_end_of_a_head_does_not_depend_on_packets(text in "[a: \r\n]{0,30}", packet in 1usize..5) {
            let whole = HeadScanner::default().scan(text.as_bytes());
            let mut scanner = HeadScanner::default();
            let mut stepwise = Ok(None);
            for end in (0..text.len()).step_by(packet).chain([text.len()]) {
                stepwise = scanner.scan(&text.as_bytes()[..end]);
                if stepwise != Ok(None) {
                    break;
                }
            }
            prop_assert_eq!(stepwise, whole);
        }
    }
}
