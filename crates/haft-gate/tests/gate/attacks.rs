//! Programs that want to go elsewhere.

use crate::{
    spellings::SPELLINGS,
    world::{Plan, Server, read_head},
};
use haft_gate::{Gate, HostList};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn socks_by_name(host: &[u8], port: u16) -> Vec<u8> {
    let length = u8::try_from(host.len()).unwrap();
    [&[5, 1, 0, 5, 1, 0, 3, length][..], host, &port.to_be_bytes()].concat()
}

#[tokio::test]
async fn no_spelling_of_an_address_leads_anywhere_by_any_protocol() {
    let server = Server::http().await;
    let world =
        Plan::new(&["allowed.test", "*.com", "*.test"]).name("allowed.test", 80, &server).open().await;
    let port = world.canary.address.port();
    for spelling in SPELLINGS {
        let get = format!("GET http://{spelling}:{port}/ HTTP/1.1\r\nHost: {spelling}:{port}\r\n\r\n");
        let connect = format!("CONNECT {spelling}:{port} HTTP/1.1\r\n\r\n");
        for request in [get, connect] {
            let answer = world.say_text(&request).await;
            assert!(
                answer.starts_with("HTTP/1.1 403 ") || answer.starts_with("HTTP/1.1 400 "),
                "{request:?}: {answer}"
            );
        }
        let answer = world.say(&socks_by_name(spelling.as_bytes(), port)).await;
        assert_eq!(answer[..4], [5, 0, 5, 2], "{spelling:?}");
    }
    assert_eq!(world.names.asked.lock().unwrap().len(), 0, "no such name is even resolved");
    world.canary_lives();
    let report = world.gate.stop().await;
    assert_eq!((report.requests, report.bytes_out), (0, 0));
    assert_eq!(report.refused, SPELLINGS.len() as u64 * 3);
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused_by_every_protocol() {
    let addresses = [
        "127.0.0.1",
        "127.8.8.8",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "192.0.2.1",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "2002:7f00:1::1",
        "2001::1",
        "fe80::1",
        "fd00:ec2::254",
        "ff02::1",
    ];
    let canary_port = Server::echo().await.address.port();
    let mut plan = Plan::new(&["*.test:80"]);
    for (index, address) in addresses.iter().enumerate() {
        let address = SocketAddr::new(address.parse().unwrap(), canary_port);
        plan = plan.turns(&format!("h{index}.test"), 80, &[address]);
    }
    let world = plan.open().await;
    for (index, address) in addresses.iter().enumerate() {
        let host = format!("h{index}.test");
        let answer = world.say_text(&format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        assert!(answer.contains("error=destination_ip_prohibited\r\n"), "{answer}");
        let leads = format!("haft: the host `{host}` leads to {address}, which is not a public address (");
        assert!(answer.contains(&leads), "{answer}");
        let answer = world.say_text(&format!("CONNECT {host}:80 HTTP/1.1\r\n\r\n")).await;
        assert!(answer.contains(&leads), "{answer}");
        assert_eq!(world.say(&socks_by_name(host.as_bytes(), 80)).await[..4], [5, 0, 5, 2]);
    }
    let report = world.gate.stop().await;
    assert_eq!(report.violations.len(), addresses.len());
    assert!(report.violations.iter().all(|seen| seen.kind == "UnauthorizedNetworkAccess"));
    assert!(
        report.violations[0].description.ends_with(" (loopback) (3 times)"),
        "{:?}",
        report.violations[0]
    );
}

#[tokio::test]
async fn a_name_that_moves_is_followed_nowhere() {
    let server = Server::http().await;
    let canary = Server::echo().await;
    let plan = Plan::new(&["moving.test"]).name("still.test", 80, &server).turns(
        "moving.test",
        80,
        &[server.address, canary.address],
    );
    let world = plan.open().await;
    let request = "GET http://moving.test/ HTTP/1.1\r\nHost: moving.test\r\n\r\n";
    // Both requests on one connection: the first is answered by the server, the second by the gate.
    let mut stream = world.connect().await;
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(
        *world.names.asked.lock().unwrap(),
        ["moving.test:80"],
        "a name is resolved once for a request"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("HTTP/1.1 403 Forbidden\r\n") && rest.contains("leads to 127.0.0.1"), "{rest}");
    assert_eq!((server.connections(), canary.connections()), (1, 0));
}

#[tokio::test]
async fn a_tunnel_stays_with_the_address_that_was_decided_on() {
    let (server, canary) = (Server::http().await, Server::echo().await);
    let plan = Plan::new(&["moving.test"]).name("still.test", 80, &server).turns(
        "moving.test",
        80,
        &[server.address, canary.address],
    );
    let world = plan.open().await;
    let mut tunnel = world.tunnel("moving.test:80").await;
    for _ in 0..3 {
        tunnel.write_all(b"GET /x HTTP/1.1\r\nHost: moving.test\r\n\r\n").await.unwrap();
        assert!(read_head(&mut tunnel).await.starts_with("HTTP/1.1 200 OK\r\n"));
        let mut body = vec![0; "server got /x with 0 bytes".len()];
        tunnel.read_exact(&mut body).await.unwrap();
    }
    assert_eq!((server.connections(), canary.connections()), (3, 0));
    assert_eq!(world.names.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn smuggled_requests_never_reach_a_server() {
    let server = Server::http().await;
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 80, &server).open().await;
    let smuggled = "GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n";
    let headers = [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "Content-Length: 4\r\nContent-Length: 400\r\n",
        "Content-Length: 4, 400\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 0x4\r\n",
        "Host: other.test\r\n",
        "host: allowed.test\r\n",
    ];
    for headers in headers {
        let request = format!(
            "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{headers}\r\n0\r\n\r\n{smuggled}"
        );
        let answer = world.say_text(&request).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{headers:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "what follows is not answered: {answer}");
    }
    assert_eq!(server.connections(), 0, "{:?}", server.texts());
    // Chunks that are wrong further on: the server has the start of a request that never ends.
    for chunks in [
        "5\nhello\r\n",
        "5\r\nhelloX\r\n",
        "5 \r\nhello\r\n",
        "-1\r\n",
        "0x5\r\nhello\r\n",
        "fffffffffffffffff\r\n",
    ] {
        let request = format!(
            "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n{chunks}0\r\n\r\n{smuggled}"
        );
        let answer = world.say_text(&request).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{chunks:?}: {answer}");
    }
    for seen in server.texts() {
        assert!(!seen.contains("other.test") && !seen.contains("0\r\n\r\n"), "{seen}");
    }
    world.canary_lives();
    // Each is data, not only an answer.
    assert!(world.violations().iter().any(|seen| seen.contains("both Content-Length and Transfer-Encoding")));
}

#[tokio::test]
async fn pipelined_requests_are_each_answered_and_each_checked() {
    let server = Server::http().await;
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 80, &server).open().await;
    let request =
        |path: &str, host: &str| format!("GET http://{host}/{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let all =
        [request("a", "allowed.test"), request("b", "allowed.test"), request("c", "other.test")].concat();
    let answer = world.say_text(&(all + &request("d", "allowed.test"))).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 403 Forbidden").count(), 1, "{answer}");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn the_header_host_must_say_where_the_request_goes() {
    let server = Server::http().await;
    let world = Plan::new(&["allowed.test", "allowed.test:8080"])
        .name("allowed.test", 80, &server)
        .name("allowed.test", 8080, &server)
        .open()
        .await;
    let ask = async |authority: &str, host: &str| {
        let request =
            format!("GET http://{authority}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        world.say_text(&request).await
    };
    for (authority, host) in [
        ("allowed.test", "allowed.test"),
        ("allowed.test", "ALLOWED.test."),
        ("allowed.test", "allowed.test:80"),
        ("allowed.test:8080", "allowed.test:8080"),
    ] {
        let answer = ask(authority, host).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{authority} {host}: {answer}");
    }
    let connections = server.connections();
    for (authority, host) in [
        ("allowed.test", "other.test"),
        ("allowed.test", "allowed.test:8080"),
        ("allowed.test:8080", "allowed.test"),
        ("allowed.test", "127.0.0.1"),
        ("allowed.test", ""),
        ("allowed.test", "allowed.test, other.test"),
        ("allowed.test", "allowed.test other.test"),
        ("allowed.test", "other.test@allowed.test"),
    ] {
        let answer = ask(authority, host).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{authority} {host}: {answer}");
    }
    assert_eq!(server.connections(), connections);
    // The server is told the name that was decided on, not the one that was written.
    assert!(server.texts().iter().all(|seen| seen.contains("\r\nhost: allowed.test")));
}

#[tokio::test]
async fn a_sink_hears_of_each_refusal_once_and_at_once() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let gate = Gate::new(HostList::parse(&["allowed.test"]).unwrap())
        .sink(Arc::new(move |violation| sink.lock().unwrap().push(violation.resource.clone())))
        .start(listener)
        .unwrap();
    for _ in 0..3 {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(b"CONNECT other.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert_eq!(*heard.lock().unwrap(), ["other.test:443"]);
    }
    assert_eq!(gate.stop().await.refused, 3);
}
