//! What may go through a tunnel.

use crate::world::{PATIENCE, Plan, Server, World, read_head};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

fn with_length(bytes: usize, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    [&length[length.len() - bytes..], content].concat()
}

/// A TLS greeting in records of so many bytes, with a name and an encrypted greeting inside, or without.
fn hello(name: Option<&str>, encrypted: bool, record: usize) -> Vec<u8> {
    let mut extensions = vec![0, 10, 0, 4, 0, 2, 0, 29];
    if encrypted {
        extensions.extend([0xfe, 0x0d]);
        extensions.extend(with_length(2, &[0; 200]));
    }
    if let Some(name) = name {
        let entry = [&[0][..], &with_length(2, name.as_bytes())].concat();
        extensions.extend([0, 0]);
        extensions.extend(with_length(2, &with_length(2, &entry)));
    }
    let body =
        [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &with_length(2, &extensions)].concat();
    let message = [&[1][..], &with_length(3, &body)].concat();
    message.chunks(record).flat_map(|part| [&[22, 3, 1][..], &with_length(2, part)].concat()).collect()
}

async fn all(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the gate closes");
    rest
}

/// Sends bytes into a tunnel; what comes back must be the same.
async fn echoes(tunnel: &mut TcpStream, bytes: &[u8]) {
    tunnel.write_all(bytes).await.unwrap();
    let mut back = vec![0; bytes.len()];
    timeout(PATIENCE, tunnel.read_exact(&mut back)).await.expect("in time").unwrap();
    assert_eq!(back, bytes);
}

async fn world() -> (World, Server) {
    let server = Server::echo().await;
    let mut plan = Plan::new(&["allowed.test", "allowed.test:22", "allowed.test:8443", "*.wild.test"]);
    for (host, port) in [
        ("allowed.test", 443),
        ("allowed.test", 80),
        ("allowed.test", 22),
        ("allowed.test", 8443),
        ("a.wild.test", 443),
    ] {
        plan = plan.name(host, port, &server);
    }
    (plan.open().await, server)
}

#[tokio::test]
async fn a_greeting_for_the_host_passes_however_it_is_cut() {
    let (world, _server) = world().await;
    for (authority, name) in [
        ("allowed.test:443", "allowed.test"),
        ("ALLOWED.test.:443", "Allowed.Test"),
        ("a.wild.test:443", "a.wild.test"),
    ] {
        for record in [3, 50, 5000] {
            let mut tunnel = world.tunnel(authority).await;
            echoes(&mut tunnel, &hello(Some(name), false, record)).await;
            echoes(&mut tunnel, b"and then anything at all").await;
        }
    }
    // Byte by byte.
    let mut tunnel = world.tunnel("allowed.test:443").await;
    let hello = hello(Some("allowed.test"), true, 100);
    for byte in &hello {
        tunnel.write_all(&[*byte]).await.unwrap();
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    let mut back = vec![0; hello.len()];
    tunnel.read_exact(&mut back).await.unwrap();
    assert_eq!(back, hello);
    // With the request, before the gate answered.
    let mut eager = world.connect().await;
    eager.write_all(&[&b"CONNECT allowed.test:443 HTTP/1.1\r\n\r\n"[..], &hello].concat()).await.unwrap();
    assert!(read_head(&mut eager).await.starts_with("HTTP/1.1 200 "));
    eager.read_exact(&mut back).await.unwrap();
    assert_eq!(world.violations(), [""; 0]);
}

#[tokio::test]
async fn a_greeting_for_anyone_else_does_not_pass() {
    let (world, server) = world().await;
    let wrong = [
        ("another name", hello(Some("other.test"), false, 5000)),
        ("another name, in small records", hello(Some("other.test"), false, 3)),
        ("a public name before an encrypted one", hello(Some("front.test"), true, 5000)),
        ("no name", hello(None, false, 5000)),
        ("no name before an encrypted one", hello(None, true, 5000)),
        ("a name below", hello(Some("a.allowed.test"), false, 5000)),
        ("a name with a zero", hello(Some("allowed.test\0.other.test"), false, 5000)),
        ("an address", hello(Some("127.0.0.1"), false, 5000)),
        ("an empty name", hello(Some(""), false, 5000)),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n".to_vec()),
        ("another protocol", b"SSH-2.0-x\r\n".to_vec()),
        ("SSL 2", vec![0x80, 0x2e, 1, 3, 1, 0, 0]),
        ("another record", vec![23, 3, 3, 0, 5, 1, 2, 3, 4, 5]),
        ("an empty record", vec![22, 3, 1, 0, 0]),
        ("two messages in a record", {
            let mut bytes = hello(Some("allowed.test"), false, 5000);
            bytes[4] += 1;
            bytes.push(1);
            bytes
        }),
    ];
    for (why, bytes) in &wrong {
        let mut tunnel = world.tunnel("allowed.test:443").await;
        tunnel.write_all(bytes).await.unwrap();
        assert_eq!(all(&mut tunnel).await, ACCESS_DENIED, "{why}");
    }
    assert_eq!(world.gate.report().refused, wrong.len() as u64);
    assert!(server.texts().iter().all(String::is_empty), "no byte reached the server: {:?}", server.texts());
}

#[tokio::test]
async fn a_second_greeting_must_name_the_same_host() {
    // A server that asks for a second greeting, as RFC 8446 has it.
    const RANDOM: &str = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c";
    let random: Vec<u8> =
        (0..32).map(|index| u8::from_str_radix(&RANDOM[2 * index..2 * index + 2], 16).unwrap()).collect();
    let retry = [&[22, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3][..], &random, &[0, 0x13, 1, 0]].concat();
    let (first_part, rest) = (retry[..45].to_vec(), retry[45..].to_vec());
    let server = Server::start(move |mut stream, seen| {
        let (first_part, rest) = (first_part.clone(), rest.clone());
        async move {
            let mut buffer = vec![0; 4096];
            let length = stream.read(&mut buffer).await?;
            seen.add(&buffer[..length]);
            stream.write_all(&first_part).await?;
            // The rest of the record comes later: it must not be held back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            stream.write_all(&rest).await?;
            loop {
                let length = stream.read(&mut buffer).await?;
                if length == 0 {
                    return Ok(());
                }
                seen.add(&buffer[..length]);
            }
        }
    })
    .await;
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 443, &server).open().await;
    let change_cipher = [20, 3, 3, 0, 1, 1];
    let first = hello(Some("allowed.test"), false, 5000);
    for (second, passes) in [("allowed.test", true), ("other.test", false)] {
        let mut tunnel = world.tunnel("allowed.test:443").await;
        tunnel.write_all(&first).await.unwrap();
        let mut answer = vec![0; retry.len()];
        timeout(PATIENCE, tunnel.read_exact(&mut answer)).await.expect("the whole answer").unwrap();
        assert_eq!(answer, retry);
        let second_hello = hello(Some(second), false, 5000);
        tunnel.write_all(&[&change_cipher[..], &second_hello, b"data"].concat()).await.unwrap();
        if passes {
            tunnel.shutdown().await.unwrap();
            assert_eq!(all(&mut tunnel).await, b"");
        } else {
            assert_eq!(all(&mut tunnel).await, ACCESS_DENIED);
        }
        let seen = server.seen.lock().unwrap().last().unwrap().clone();
        let expected = [&first[..], &change_cipher, &second_hello, b"data"].concat();
        let before = &expected[..first.len() + change_cipher.len()];
        // What is refused ends the connection at once, so that the record before it may be lost with it.
        assert!(if passes { seen == expected } else { before.starts_with(&seen) }, "{seen:?}");
    }
}

#[tokio::test]
async fn other_ports_carry_other_protocols_and_still_check_what_names_a_host() {
    let (world, server) = world().await;
    // A client that speaks first, with what is neither HTTP nor TLS.
    let mut tunnel = world.tunnel("allowed.test:22").await;
    echoes(&mut tunnel, b"SSH-2.0-OpenSSH_9.2\r\n").await;
    echoes(&mut tunnel, &[0, 1, 2, 3]).await;
    let mut tunnel = world.tunnel("allowed.test:22").await;
    echoes(&mut tunnel, &[0, 0, 0, 8, 4, 210, 22, 47]).await;
    let mut tunnel = world.tunnel("allowed.test:8443").await;
    echoes(&mut tunnel, &hello(Some("allowed.test"), false, 5000)).await;
    assert_eq!(world.violations(), [""; 0]);
    let before = server.texts().concat();

    let mut tunnel = world.tunnel("allowed.test:8443").await;
    tunnel.write_all(&hello(Some("other.test"), false, 5000)).await.unwrap();
    assert_eq!(all(&mut tunnel).await, ACCESS_DENIED);
    for request in [
        "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
        "get / http/1.1\r\nhost: other.test\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
        "GET / HTTP/1.1\nHost: other.test\n\n",
        "GET http://other.test/ HTTP/1.1\r\nHost: allowed.test:8443\r\n\r\n",
        "CONNECT other.test:443 HTTP/1.1\r\nHost: allowed.test:8443\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut tunnel = world.tunnel("allowed.test:8443").await;
        tunnel.write_all(request.as_bytes()).await.unwrap();
        let answer = String::from_utf8_lossy(&all(&mut tunnel).await).into_owned();
        assert!(
            answer.starts_with("HTTP/1.1 403 ") || answer.starts_with("HTTP/1.1 400 "),
            "{request:?}: {answer}"
        );
    }
    assert_eq!(server.texts().concat(), before, "nothing of it reached the server");
}

#[tokio::test]
async fn a_server_may_speak_first() {
    let server = Server::start(|mut stream, seen| async move {
        stream.write_all(b"220 hello\r\n").await?;
        let mut line = [0; 64];
        let length = stream.read(&mut line).await?;
        seen.add(&line[..length]);
        stream.write_all(b"250 fine\r\n").await?;
        stream.shutdown().await
    })
    .await;
    let world = Plan::new(&["mail.test:25"]).name("mail.test", 25, &server).open().await;
    let mut tunnel = world.tunnel("mail.test:25").await;
    let mut greeting = [0; 11];
    timeout(PATIENCE, tunnel.read_exact(&mut greeting)).await.expect("before the client speaks").unwrap();
    tunnel.write_all(b"EHLO me\r\n").await.unwrap();
    assert_eq!(all(&mut tunnel).await, b"250 fine\r\n");
    assert_eq!(server.texts(), ["EHLO me\r\n"]);
}

#[tokio::test]
async fn http_in_a_tunnel_is_for_its_host_alone_on_every_request() {
    let server = Server::http().await;
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 80, &server).open().await;
    let mut tunnel = world.tunnel("allowed.test:80").await;
    let request = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let both = [request("allowed.test"), request("other.test")].concat();
    tunnel.write_all(both.as_bytes()).await.unwrap();
    let answer = String::from_utf8(all(&mut tunnel).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("server got / with 0 bytesHTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert_eq!(server.connections(), 1);
    let mut tunnel = world.tunnel("allowed.test:80").await;
    tunnel.write_all(b"SSH-2.0-x\r\n").await.unwrap();
    assert_eq!(all(&mut tunnel).await, ACCESS_DENIED);
    assert_eq!(
        world.violations(),
        [
            "the request goes to `allowed.test:80`, but its header Host says `other.test`",
            "the tunnel to `allowed.test` on port 80 carries neither HTTP nor TLS",
        ]
    );
}

#[tokio::test]
async fn half_a_connection_may_end_before_the_other() {
    let (world, _server) = world().await;
    let mut tunnel = world.tunnel("allowed.test:22").await;
    let bytes: Vec<u8> = (0..3_000_000u32).map(|number| number.to_le_bytes()[0]).collect();
    let (mut read, mut write) = tunnel.split();
    let send = async {
        write.write_all(&bytes).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut back = Vec::new();
    let (_, read) = tokio::join!(send, timeout(PATIENCE, read.read_to_end(&mut back)));
    read.expect("in time").unwrap();
    assert!(back == bytes, "all of it came back");
    let report = world.gate.stop().await;
    assert_eq!((report.requests, report.bytes_in, report.bytes_out), (1, 3_000_000, 3_000_000));
}

#[tokio::test]
async fn socks_answers_with_its_own_codes() {
    let server = Server::echo().await;
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        Server { address: listener.local_addr().unwrap(), seen: server.seen.clone() }
    };
    let world = Plan::new(&["allowed.test", "closed.test", "nowhere.test"])
        .name("allowed.test", 443, &server)
        .name("closed.test", 443, &closed)
        .turns("nowhere.test", 443, &[])
        .open()
        .await;
    let named = |host: &str| {
        let length = u8::try_from(host.len()).unwrap();
        [&[5, 1, 0, 5, 1, 0, 3, length][..], host.as_bytes(), &[1, 187]].concat()
    };
    let port = world.canary.address.port().to_be_bytes();
    let cases = [
        (vec![5, 1, 2], vec![5, 0xff], "only with a password"),
        (vec![5, 0], vec![5, 0xff], "no method at all"),
        (named("other.test"), vec![5, 0, 5, 2], "not on the list"),
        (named("127.0.0.1"), vec![5, 0, 5, 2], "an address as a name"),
        (named(""), vec![5, 0, 5, 2], "an empty name"),
        ([&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &port].concat(), vec![5, 0, 5, 2], "an address"),
        ([&[5, 1, 0, 5, 1, 0, 4][..], &[0; 15], &[1], &port].concat(), vec![5, 0, 5, 2], "an IPv6 address"),
        (vec![5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80], vec![5, 0, 5, 7], "BIND"),
        (vec![5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0], vec![5, 0, 5, 7], "UDP ASSOCIATE"),
        (vec![5, 1, 0, 5, 1, 0, 9], vec![5, 0, 5, 8], "an unknown kind of address"),
        (named("nowhere.test"), vec![5, 0, 5, 4], "no address"),
        (named("closed.test"), vec![5, 0, 5, 5], "nobody listens"),
        ([&[4, 1, 0, 80, 127, 0, 0, 1, 0][..]].concat(), vec![0, 91], "SOCKS4"),
    ];
    for (bytes, expected, why) in cases {
        let answer = world.say(&bytes).await;
        assert!(answer.starts_with(&expected), "{why}: {answer:?}");
    }
    world.canary_lives();
    // And through: in one breath with the greeting.
    let mut stream = world.connect().await;
    let hello = hello(Some("allowed.test"), false, 5000);
    stream.write_all(&[named("allowed.test"), hello.clone()].concat()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    let mut back = vec![0; hello.len()];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(back, hello);
}
