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
    let absolute = |port, path: &str| Ok(Target::Absolute { host: "a.com".into(), port, path: path.into() });
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
    assert_eq!(framing("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET"), Ok(Framing::Chunked));
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
