//! curl and Python behind the gate.

use crate::world::{PATIENCE, Plan, Ran, Server, World, run};
use std::{path::PathBuf, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

/// A server by openssl, with a certificate for `allowed.test`.
struct TlsServer {
    server: Server,
    certificate: PathBuf,
    _child: Child,
    _folder: tempfile::TempDir,
}

impl TlsServer {
    /// `None` where there is no openssl.
    async fn start(options: &[&str]) -> Option<TlsServer> {
        let folder = tempfile::tempdir().unwrap();
        let (key, certificate) = (folder.path().join("key.pem"), folder.path().join("certificate.pem"));
        let (key_path, certificate_path) = (key.to_str().unwrap(), certificate.to_str().unwrap());
        let made = run(
            "openssl",
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=allowed.test",
                "-addext",
                "subjectAltName=DNS:allowed.test",
                "-keyout",
                key_path,
                "-out",
                certificate_path,
            ],
        )
        .await?;
        assert!(made.success, "{}", made.errors);
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-www", "-key", key_path, "-cert", certificate_path])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = loop {
            let line =
                timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().expect("openssl says its port");
            if let Some(address) = line.strip_prefix("ACCEPT ") {
                break address.trim().parse().unwrap();
            }
        };
        // Whatever else it prints must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let server = Server { address, seen: std::sync::Arc::default() };
        Some(TlsServer { server, certificate, _child: child, _folder: folder })
    }
}

async fn curl(world: &World, arguments: &[&str]) -> Option<Ran> {
    let proxy = format!("http://127.0.0.1:{}", world.port);
    let all = [&["-sS", "--max-time", "15", "--noproxy", "", "-x", proxy.as_str()], arguments].concat();
    run("curl", &all).await
}

async fn python(world: &World, script: &str, arguments: &[&str]) -> Option<Ran> {
    let port = world.port.to_string();
    run("python3", &[&["-c", script, port.as_str()], arguments].concat()).await
}

#[tokio::test]
async fn curl_reaches_an_allowed_host_and_no_other_by_http() {
    let server = Server::http().await;
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 80, &server).open().await;
    let Some(ran) = curl(&world, &["http://allowed.test/page", "-d", "12345"]).await else {
        return haft_testkit::not_run(
            "curl_reaches_an_allowed_host_and_no_other_by_http",
            "curl is not installed",
        );
    };
    assert_eq!((ran.success, &*ran.output), (true, "server got /page with 5 bytes"), "{}", ran.errors);

    let refused = curl(&world, &["-i", "http://other.test/"]).await.unwrap().output;
    assert!(refused.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{refused}");
    assert!(refused.contains("proxy-status: haft; error=http_request_denied\r\n"), "{refused}");
    assert!(
        refused.ends_with(
            "haft: the host `other.test` is not allowed on port 80; to allow it, add \"other.test\" to the hosts that \
             this call may reach\n"
        ),
        "{refused}"
    );
    // A page of the allowed host leads elsewhere; the gate does not follow, and curl is stopped.
    let elsewhere = format!("http://allowed.test/to?http://other.test:{}/", world.canary.address.port());
    let redirected = curl(&world, &["-L", &elsewhere]).await.unwrap();
    assert!(redirected.output.contains("the host `other.test` is not allowed"), "{}", redirected.output);
    let private = format!("http://allowed.test/to?http://127.0.0.1:{}/", world.canary.address.port());
    let redirected = curl(&world, &["-L", &private]).await.unwrap();
    assert!(redirected.output.contains("`127.0.0.1` is an address"), "{}", redirected.output);

    // Two requests on one connection: the second is for another host.
    let two = curl(&world, &["-v", "http://allowed.test/one", "http://other.test/two"]).await.unwrap();
    assert!(two.errors.contains("Re-using existing connection"), "{}", two.errors);
    assert!(two.output.starts_with("server got /one with 0 bytes"), "{}", two.output);
    assert!(two.output.contains("the host `other.test` is not allowed"), "{}", two.output);

    world.canary_lives();
    let report = world.gate.stop().await;
    assert_eq!((report.requests, report.refused, report.violations.len()), (4, 4, 3), "{report:?}");
    assert!(report.bytes_in > 0 && report.bytes_out > 0);
}

#[tokio::test]
async fn curl_sends_large_bodies_in_every_form() {
    let server = Server::http().await;
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 80, &server).open().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, vec![b'x'; 3_000_000]).unwrap();
    let body = format!("@{}", file.display());
    // More than a megabyte: curl waits for "100 Continue", which the server never says, for a second.
    let Some(ran) = curl(&world, &["http://allowed.test/a", "--data-binary", &body]).await else {
        return haft_testkit::not_run("curl_sends_large_bodies_in_every_form", "curl is not installed");
    };
    assert_eq!(ran.output, "server got /a with 3000000 bytes", "{}", ran.errors);
    let chunked = [
        "http://allowed.test/b",
        "-H",
        "Transfer-Encoding: chunked",
        "-H",
        "Expect:",
        "--data-binary",
        &body,
    ];
    let ran = curl(&world, &chunked).await.unwrap();
    assert!(ran.output.starts_with("server got /b with 30"), "{} {}", ran.output, ran.errors);
    for (path, expected) in [("chunked", "abcde"), ("until-close", "until the end"), ("early", "ok")] {
        for version in ["--http1.1", "--http1.0"] {
            let url = format!("http://allowed.test/{path}");
            let ran = curl(&world, &[version, &url]).await.unwrap();
            assert_eq!((ran.success, &*ran.output), (true, expected), "{path} {version}: {}", ran.errors);
        }
    }
    let ran = curl(&world, &["-I", "http://allowed.test/head"]).await.unwrap();
    assert!(ran.success && ran.output.contains("content-length: 29"), "{}", ran.output);
    for path in ["switch", "two-lengths"] {
        let ran = curl(&world, &["-i", &format!("http://allowed.test/{path}")]).await.unwrap();
        assert!(ran.output.starts_with("HTTP/1.1 502 "), "{path}: {}", ran.output);
    }
}

#[tokio::test]
async fn curl_reaches_an_allowed_host_by_tls_and_is_held_to_its_name() {
    const TEST: &str = "curl_reaches_an_allowed_host_by_tls_and_is_held_to_its_name";
    let Some(tls) = TlsServer::start(&[]).await else {
        return haft_testkit::not_run(TEST, "openssl is not installed");
    };
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 443, &tls.server).open().await;
    let trust = ["--cacert", tls.certificate.to_str().unwrap()];
    let Some(ran) = curl(&world, &[&trust[..], &["https://allowed.test/"]].concat()).await else {
        return haft_testkit::not_run(TEST, "curl is not installed");
    };
    assert!(ran.success && ran.output.contains("s_server"), "{} {}", ran.output, ran.errors);

    let socks = format!("socks5h://127.0.0.1:{}", world.port);
    let ran =
        run("curl", &[&["-sS", "-x", &socks, "https://allowed.test/"], &trust[..]].concat()).await.unwrap();
    assert!(ran.success && ran.output.contains("s_server"), "{} {}", ran.output, ran.errors);
    assert_eq!(world.violations(), [""; 0]);

    // The tunnel is for the allowed host; the greeting inside is for another.
    let other = ["--connect-to", "other.test:443:allowed.test:443", "-k", "https://other.test/"];
    let ran = curl(&world, &other).await.unwrap();
    assert!(!ran.success && ran.errors.contains("access denied"), "{}", ran.errors);
    // Without a name: curl sends none for an address.
    let unnamed = ["--connect-to", "192.0.2.1:443:allowed.test:443", "-k", "https://192.0.2.1/"];
    let ran = curl(&world, &unnamed).await.unwrap();
    assert!(!ran.success && ran.errors.contains("access denied"), "{}", ran.errors);
    assert_eq!(
        world.violations(),
        [
            "the tunnel to `allowed.test` carries a TLS greeting for `other.test`",
            "the tunnel to `allowed.test` carries a TLS greeting that names no host",
        ]
    );

    // Not on the list: no tunnel at all.
    for (url, status) in
        [("https://other.test/", "403"), ("https://127.0.0.1/", "403"), ("https://allowed.test:8443/", "403")]
    {
        let ran = curl(&world, &["-k", url]).await.unwrap();
        assert!(!ran.success && ran.errors.contains(status), "{url}: {}", ran.errors);
    }
    // SOCKS by address, and by a name that is not on the list.
    for url in ["https://127.0.0.1/", "https://other.test/"] {
        let ran = run("curl", &["-sS", "-k", "-x", &socks, url]).await.unwrap();
        assert!(!ran.success && ran.errors.contains("(2)"), "{url}: {}", ran.errors);
    }
    world.canary_lives();
}

#[tokio::test]
async fn a_server_may_ask_for_a_second_greeting() {
    const TEST: &str = "a_server_may_ask_for_a_second_greeting";
    // The client's first guess is another curve, so that the server asks again.
    let Some(tls) = TlsServer::start(&["-tls1_3", "-groups", "P-384"]).await else {
        return haft_testkit::not_run(TEST, "openssl is not installed");
    };
    let world = Plan::new(&["allowed.test"]).name("allowed.test", 443, &tls.server).open().await;
    let trust = tls.certificate.to_str().unwrap();
    let Some(ran) = curl(&world, &["-v", "--cacert", trust, "https://allowed.test/"]).await else {
        return haft_testkit::not_run(TEST, "curl is not installed");
    };
    assert!(ran.success && ran.output.contains("s_server"), "{} {}", ran.output, ran.errors);
    assert_eq!(ran.errors.matches("(OUT), TLS handshake, Client hello").count(), 2, "{}", ran.errors);
}

#[tokio::test]
async fn python_reaches_an_allowed_host_and_no_other() {
    const TEST: &str = "python_reaches_an_allowed_host_and_no_other";
    const FETCH: &str = r#"
import ssl, sys, urllib.request, urllib.error
port, certificate, *urls = sys.argv[1:]
proxy = f"http://127.0.0.1:{port}"
context = ssl.create_default_context(cafile=certificate)
opener = urllib.request.build_opener(
    urllib.request.ProxyHandler({"http": proxy, "https": proxy}), urllib.request.HTTPSHandler(context=context))
for url in urls:
    try:
        print(opener.open(url, timeout=15).read().decode().splitlines()[0])
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode().strip())
    except OSError as error:
        print("failed", error)
"#;
    let Some(tls) = TlsServer::start(&[]).await else {
        return haft_testkit::not_run(TEST, "openssl is not installed");
    };
    let server = Server::http().await;
    let world = Plan::new(&["allowed.test"])
        .name("allowed.test", 80, &server)
        .name("allowed.test", 443, &tls.server)
        .open()
        .await;
    let urls = [
        tls.certificate.to_str().unwrap(),
        "http://allowed.test/page",
        "https://allowed.test/",
        "http://other.test/",
        "https://other.test/",
        "http://allowed.test/to?http://other.test/",
        "http://169.254.169.254/latest/meta-data/",
    ];
    let Some(ran) = python(&world, FETCH, &urls).await else {
        return haft_testkit::not_run(TEST, "python3 is not installed");
    };
    let lines: Vec<_> = ran.output.lines().collect();
    let [page, secure, other, secure_other, redirected, metadata] = lines[..] else {
        panic!("{} {}", ran.output, ran.errors)
    };
    assert_eq!(page, "server got /page with 0 bytes");
    assert!(secure.contains("<HTML>"), "{secure}");
    assert!(other.starts_with("403 haft: the host `other.test` is not allowed on port 80; "), "{other}");
    assert!(secure_other.contains("403"), "{secure_other}");
    assert!(redirected.starts_with("403 haft: the host `other.test`"), "{redirected}");
    assert!(metadata.starts_with("403 haft: `169.254.169.254` is an address"), "{metadata}");
    world.canary_lives();
}

#[tokio::test]
async fn a_python_program_with_a_raw_socket_is_checked_on_every_request() {
    const RAW: &str = r#"
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=15)
def ask(host):
    connection.sendall(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(4096)
    head, body = answer.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
    while len(body) < length:
        body += connection.recv(4096)
    print(head.split(b"\r\n")[0].decode(), body.decode().strip())
ask("allowed.test"); ask("second.test"); ask("other.test")
print(connection.recv(1))
"#;
    let server = Server::http().await;
    let world = Plan::new(&["allowed.test", "second.test"])
        .name("allowed.test", 80, &server)
        .name("second.test", 80, &server)
        .open()
        .await;
    let Some(ran) = python(&world, RAW, &[]).await else {
        return haft_testkit::not_run(
            "a_python_program_with_a_raw_socket_is_checked_on_every_request",
            "python3 is not installed",
        );
    };
    let lines: Vec<_> = ran.output.lines().collect();
    assert_eq!(lines[..2], ["HTTP/1.1 200 OK server got / with 0 bytes"; 2], "{} {}", ran.output, ran.errors);
    assert!(
        lines[2].starts_with("HTTP/1.1 403 Forbidden haft: the host `other.test` is not allowed"),
        "{}",
        lines[2]
    );
    assert_eq!(lines[3], "b''", "a refusal ends the connection");
    let hosts: Vec<_> = server.texts().iter().map(|text| text.lines().nth(1).unwrap().to_owned()).collect();
    assert_eq!(hosts, ["host: allowed.test", "host: second.test"]);
    world.canary_lives();
}
