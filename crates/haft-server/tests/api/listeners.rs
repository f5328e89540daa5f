//! Real sockets: the owner on a unix socket, TLS, an end in order.

use crate::support::world_with;
use haft_core::CallContext;
use haft_server::Listener;
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
};
use tokio_util::sync::CancellationToken;

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{key}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

#[tokio::test]
async fn the_owner_is_known_on_a_unix_socket_and_nowhere_else() {
    let world = world_with(|builder| builder.owner(CallContext::owner())).await;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("haft.sock");
    let unix = UnixListener::bind(&socket).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving =
        tokio::spawn(world.server.serve(vec![Listener::Unix(unix), Listener::Tcp(tcp)], stop.clone()));

    let answer = ask(UnixStream::connect(&socket).await.unwrap(), "/v1/me", None).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"tenant\":\"local\""), "{answer}");
    let answer = ask(UnixStream::connect(&socket).await.unwrap(), "/v1/me", Some("haft_wrong")).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "a wrong key is not made good by the socket: {answer}");
    let answer = ask(TcpStream::connect(address).await.unwrap(), "/v1/me", None).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let answer = ask(TcpStream::connect(address).await.unwrap(), "/v1/me", Some(&world.rival)).await;
    assert!(answer.contains("\"tenant\":\"rival\""), "{answer}");
    let answer = ask(TcpStream::connect(address).await.unwrap(), "/health", None).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    stop.cancel();
    tokio::time::timeout(Duration::from_secs(5), serving).await.expect("it ends").unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stop_ends_streams_and_lets_calls_end() {
    let world = world_with(|builder| builder).await;
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let stop = CancellationToken::new();
    let engine = world.haft.clone();
    let task = engine
        .submit(
            haft::Request::new(haft::ToolCall::new("wait", serde_json::json!({}))).context(
                CallContext::clone(&CallContext {
                    tenant: "acme".into(),
                    ..CallContext::clone(&CallContext::owner())
                }),
            ),
            Default::default(),
        )
        .await
        .unwrap();
    let serving = tokio::spawn(world.server.serve(vec![Listener::Tcp(tcp)], stop.clone()));
    let path = format!("/v1/tasks/{}/events", task.id);
    let key = world.invoker.clone();
    let watching =
        tokio::spawn(async move { ask(TcpStream::connect(address).await.unwrap(), &path, Some(&key)).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!watching.is_finished());
    stop.cancel();
    let seen =
        tokio::time::timeout(Duration::from_secs(5), watching).await.expect("the stream ends").unwrap();
    assert!(seen.contains("text/event-stream"), "{seen}");
    tokio::time::timeout(Duration::from_secs(5), serving).await.expect("it ends").unwrap().unwrap();
    engine.shutdown_now().await;
}

#[tokio::test]
async fn tls_is_spoken_with_the_given_certificate() {
    let world = world_with(|builder| builder).await;
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let acceptor = haft_server::tls(&certificate, &key).unwrap();
    assert!(haft_server::tls(&key, &key).is_err(), "a key is no certificate");
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    tokio::spawn(world.server.serve(vec![Listener::Tls(tcp, acceptor)], CancellationToken::new()));

    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, TcpStream::connect(address).await.unwrap()).await.unwrap();
    let answer = ask(stream, "/v1/me", Some(&world.invoker)).await;
    assert!(answer.contains("\"tenant\":\"acme\""), "{answer}");
    let plain = ask(TcpStream::connect(address).await.unwrap(), "/health", None).await;
    assert!(!plain.contains("200"), "{plain}");
}
