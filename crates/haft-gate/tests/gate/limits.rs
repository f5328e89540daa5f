//! Programs that want to keep the gate busy.

use crate::world::{PATIENCE, Plan, Server, read_head};
use haft_gate::GateLimits;
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

const SHORT: Duration = Duration::from_millis(300);

async fn closes(stream: &mut TcpStream) -> (Duration, String) {
    let start = Instant::now();
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the gate closes");
    (start.elapsed(), String::from_utf8_lossy(&rest).into_owned())
}

#[tokio::test]
async fn a_head_that_trickles_in_is_cut_off() {
    let limits = GateLimits { head_time: SHORT, ..GateLimits::default() };
    let world = Plan::new(&["allowed.test"]).limits(limits).open().await;
    let (mut read, mut write) = world.connect().await.into_split();
    let trickle = tokio::spawn(async move {
        for byte in "GET http://allowed.test/ HTTP/1.1\r\n".bytes().chain(std::iter::repeat(b'a')) {
            if write.write_all(&[byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    let start = Instant::now();
    let mut answer = String::new();
    let _ = timeout(PATIENCE, read.read_to_string(&mut answer)).await.expect("the gate closes");
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(start.elapsed() >= SHORT);
    trickle.abort();
    // The same for the other things that a client begins.
    for beginning in [&b"\x05"[..], b"\x05\x01\x00\x05\x01", b"CONNECT"] {
        let mut stream = world.connect().await;
        stream.write_all(beginning).await.unwrap();
        let (took, _) = closes(&mut stream).await;
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[tokio::test]
async fn a_greeting_that_trickles_in_is_cut_off() {
    let server = Server::echo().await;
    let limits = GateLimits { head_time: SHORT, ..GateLimits::default() };
    let world = Plan::new(&["allowed.test", "allowed.test:22"])
        .name("allowed.test", 443, &server)
        .name("allowed.test", 22, &server)
        .limits(limits)
        .open()
        .await;
    let mut tunnel = world.tunnel("allowed.test:443").await;
    tunnel.write_all(&[22, 3, 1, 0, 200, 1, 0]).await.unwrap();
    assert!(closes(&mut tunnel).await.0 < Duration::from_secs(5));
    let mut tunnel = world.tunnel("allowed.test:22").await;
    tunnel.write_all(b"GET / HTT").await.unwrap();
    assert!(closes(&mut tunnel).await.0 < Duration::from_secs(5));
    assert_eq!(
        world.violations(),
        [
            "the tunnel to `allowed.test` on port 443 has a TLS greeting that does not end",
            "the tunnel to `allowed.test` on port 22 carries a first line that does not end",
        ]
    );
    assert!(server.texts().iter().all(String::is_empty));
}

#[tokio::test]
async fn what_is_too_long_is_refused() {
    let world = Plan::new(&["allowed.test"]).open().await;
    let long = format!("GET http://allowed.test/{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
    assert!(world.say_text(&long).await.starts_with("HTTP/1.1 400 Bad Request\r\n"));
    let many = format!("GET http://allowed.test/ HTTP/1.1\r\n{}", "a: b\r\n".repeat(20_000));
    assert!(world.say_text(&many).await.starts_with("HTTP/1.1 400 Bad Request\r\n"));
    let name = format!("CONNECT {}.test:443 HTTP/1.1\r\n\r\n", "a".repeat(20_000));
    let answer = world.say_text(&name).await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n") && answer.len() < 1000, "{}", answer.len());
    assert!(world.gate.report().violations.iter().all(|seen| seen.description.len() < 1000));
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_moves_ends_and_one_that_moves_does_not() {
    let server = Server::echo().await;
    let limits = GateLimits { idle: Duration::from_millis(600), ..GateLimits::default() };
    let world = Plan::new(&["allowed.test:22"]).name("allowed.test", 22, &server).limits(limits).open().await;
    let mut tunnel = world.tunnel("allowed.test:22").await;
    let start = Instant::now();
    for _ in 0..10 {
        tunnel.write_all(b"\x01").await.unwrap();
        tunnel.read_exact(&mut [0]).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    assert!(start.elapsed() > Duration::from_millis(900));
    let (took, _) = closes(&mut tunnel).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    // A connection that says nothing at all.
    assert!(closes(&mut world.connect().await).await.0 < Duration::from_secs(5));
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_a_place() {
    let server = Server::http().await;
    let limits = GateLimits { connections: 2, ..GateLimits::default() };
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 80, &server).limits(limits).open().await;
    let (first, second) = (world.connect().await, world.connect().await);
    let mut third = world.connect().await;
    third.write_all(b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n").await.unwrap();
    assert!(timeout(SHORT, third.read_u8()).await.is_err(), "there is no place for it yet");
    drop(first);
    assert!(read_head(&mut third).await.starts_with("HTTP/1.1 200 OK\r\n"));
    drop(second);
}

#[tokio::test]
async fn requests_over_the_limit_are_refused() {
    let server = Server::http().await;
    let limits = GateLimits { requests: Some(2), ..GateLimits::default() };
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 80, &server).limits(limits).open().await;
    let request = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
    let answer = world.say_text(&request.repeat(3)).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{answer}");
    assert!(answer.contains("HTTP/1.1 429 Too Many Requests\r\n"), "{answer}");
    let report = world.gate.stop().await;
    assert_eq!((report.requests, &*report.violations[0].kind), (2, "NetworkRequestLimitExceeded"));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn when_it_stops_every_connection_ends_and_nothing_listens() {
    let server = Server::echo().await;
    let world = Plan::new(&["allowed.test:22"]).name("allowed.test", 22, &server).open().await;
    let mut tunnel = world.tunnel("allowed.test:22").await;
    tunnel.write_all(b"\x01").await.unwrap();
    tunnel.read_exact(&mut [0]).await.unwrap();
    let port = world.port;
    let report = world.gate.stop().await;
    assert_eq!((report.requests, report.bytes_in, report.bytes_out), (1, 1, 1));
    assert!(closes(&mut tunnel).await.0 < Duration::from_secs(2));
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once() {
    let server = Server::http().await;
    let world =
        std::sync::Arc::new(Plan::new(&["allowed.test"]).name("allowed.test", 80, &server).open().await);
    let tasks: Vec<_> = (0..300)
        .map(|number| {
            let world = std::sync::Arc::clone(&world);
            tokio::spawn(async move {
                let host = if number % 3 == 0 { "other.test" } else { "allowed.test" };
                let request =
                    format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
                let answer = world.say_text(&request).await;
                let expected = if number % 3 == 0 { "HTTP/1.1 403 " } else { "HTTP/1.1 200 " };
                assert!(answer.starts_with(expected), "{answer}");
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let report = world.gate.report();
    assert_eq!((report.requests, report.refused, report.violations.len()), (200, 100, 1));
    world.canary_lives();
}
