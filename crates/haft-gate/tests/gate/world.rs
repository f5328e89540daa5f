//! A small internet on loopback: names, servers, and a gate before them.

use haft_core::port::BoxFuture;
use haft_gate::{Gate, GateHandle, GateLimits, HostList, HostName, Resolve};
use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    process::Command,
    time::timeout,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A resolver that a test fills. What it does not know leads to the canary.
#[derive(Default)]
pub(crate) struct Names {
    /// For each name and port the answers, in turn; the last one stays.
    answers: Mutex<HashMap<(String, u16), Vec<SocketAddr>>>,
    pub(crate) asked: Mutex<Vec<String>>,
    otherwise: Mutex<Option<SocketAddr>>,
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a HostName, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        self.asked.lock().unwrap().push(format!("{host}:{port}"));
        let mut answers = self.answers.lock().unwrap();
        let found = match answers.get_mut(&(host.to_string(), port)) {
            Some(turns) if turns.len() > 1 => Some(turns.remove(0)),
            Some(turns) => turns.first().copied(),
            None => *self.otherwise.lock().unwrap(),
        };
        Box::pin(async move { Ok(found.into_iter().collect()) })
    }
}

/// What a server on loopback saw.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The bytes of each connection.
    pub(crate) seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    /// Runs `behave` on each connection, with the place where what it reads is kept.
    pub(crate) async fn start<F, Fut>(behave: F) -> Server
    where
        F: Fn(TcpStream, Seen) -> Fut + Send + 'static,
        Fut: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let all = Arc::clone(&server.seen);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let place = {
                    let mut all = all.lock().unwrap();
                    all.push(Vec::new());
                    all.len() - 1
                };
                tokio::spawn(behave(stream, Seen { all: Arc::clone(&all), place }));
            }
        });
        server
    }

    /// Says everything back.
    pub(crate) async fn echo() -> Server {
        Server::start(|mut stream, seen| async move {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let length = stream.read(&mut buffer).await?;
                if length == 0 {
                    return stream.shutdown().await;
                }
                seen.add(&buffer[..length]);
                stream.write_all(&buffer[..length]).await?;
            }
        })
        .await
    }

    /// Answers HTTP requests by their path, one on each connection.
    pub(crate) async fn http() -> Server {
        Server::start(|mut stream, seen| async move {
            let mut request = Vec::new();
            while !whole(&request) {
                let mut buffer = [0; 4096];
                let length = stream.read(&mut buffer).await?;
                if length == 0 {
                    return Ok(());
                }
                seen.add(&buffer[..length]);
                request.extend_from_slice(&buffer[..length]);
            }
            let text = String::from_utf8_lossy(&request);
            let path = text.split(' ').nth(1).unwrap_or_default();
            let answer = match path {
                "/chunked" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".into(),
                "/until-close" => "HTTP/1.1 200 OK\r\n\r\nuntil the end".into(),
                "/early" => "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into(),
                "/switch" => "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".into(),
                "/two-lengths" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc".into(),
                path if path.starts_with("/to?") => {
                    format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", &path[4..])
                }
                path => {
                    let body = format!("{} got {path} with {} bytes", "server", body_of(&request).len());
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                }
            };
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await
        })
        .await
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

/// Where one connection's bytes are kept.
pub(crate) struct Seen {
    all: Arc<Mutex<Vec<Vec<u8>>>>,
    place: usize,
}

impl Seen {
    pub(crate) fn add(&self, bytes: &[u8]) {
        self.all.lock().unwrap()[self.place].extend_from_slice(bytes);
    }
}

fn body_of(request: &[u8]) -> &[u8] {
    request.windows(4).position(|window| window == b"\r\n\r\n").map_or(&[], |end| &request[end + 4..])
}

/// Whether all of a request is there.
fn whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let body = &request[end + 4..];
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with(b"0\r\n\r\n");
    }
    let length =
        head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
    body.len() >= length.unwrap_or(0)
}

/// A gate, the names behind it, and a server that nobody may reach.
pub(crate) struct World {
    pub(crate) gate: GateHandle,
    pub(crate) port: u16,
    pub(crate) names: Arc<Names>,
    pub(crate) canary: Server,
}

/// What is there before the gate opens.
pub(crate) struct Plan {
    hosts: Vec<String>,
    names: Vec<(String, u16, Vec<SocketAddr>)>,
    public: Vec<SocketAddr>,
    limits: GateLimits,
}

impl Plan {
    pub(crate) fn new(hosts: &[&str]) -> Self {
        Plan {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            names: Vec::new(),
            public: Vec::new(),
            limits: GateLimits::default(),
        }
    }

    /// A name that leads to a server, which counts as public.
    pub(crate) fn name(mut self, host: &str, port: u16, server: &Server) -> Self {
        self.public.push(server.address);
        self.names.push((host.to_owned(), port, vec![server.address]));
        self
    }

    /// A name that leads to these addresses, one after the other; none of them is public by that.
    pub(crate) fn turns(mut self, host: &str, port: u16, addresses: &[SocketAddr]) -> Self {
        self.names.push((host.to_owned(), port, addresses.to_vec()));
        self
    }

    pub(crate) fn limits(mut self, limits: GateLimits) -> Self {
        self.limits = limits;
        self
    }

    pub(crate) async fn open(self) -> World {
        let canary = Server::echo().await;
        let names = Arc::new(Names::default());
        *names.otherwise.lock().unwrap() = Some(canary.address);
        for (host, port, addresses) in self.names {
            names.answers.lock().unwrap().insert((host, port), addresses);
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Gate::new(HostList::parse(&self.hosts).unwrap())
            .resolver(Arc::clone(&names) as Arc<dyn Resolve>)
            .treat_as_public_for_tests(&self.public)
            .limits(self.limits)
            .start(listener)
            .unwrap();
        World { gate, port, names, canary }
    }
}

impl World {
    /// Sends bytes and reads until the gate closes.
    pub(crate) async fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        // The gate may have answered and closed before it has heard all of it.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the gate closes");
        answer
    }

    pub(crate) async fn say_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.say(text.as_bytes()).await).into_owned()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// Opens a tunnel by CONNECT.
    pub(crate) async fn tunnel(&self, authority: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(format!("CONNECT {authority} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        assert_eq!(read_head(&mut stream).await, "HTTP/1.1 200 Connection established\r\n\r\n");
        stream
    }

    /// Nobody reached the server that nobody may reach.
    pub(crate) fn canary_lives(&self) {
        assert_eq!(self.canary.connections(), 0, "the canary was reached: {:?}", self.canary.texts());
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        let violations = self.gate.report().violations;
        assert!(violations.iter().all(|seen| seen.was_blocked));
        violations.into_iter().map(|seen| seen.description).collect()
    }
}

/// Reads up to the empty line, and no further.
pub(crate) async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(PATIENCE, stream.read_u8()).await.expect("in time").expect("a whole head"));
    }
    String::from_utf8(head).unwrap()
}

/// What a program printed, and whether it said that all went well.
pub(crate) struct Ran {
    pub(crate) success: bool,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs a program with nothing in its environment that could lead it elsewhere; `None` where it is not installed.
pub(crate) async fn run(program: &str, arguments: &[&str]) -> Option<Ran> {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    for name in [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "ALL_PROXY",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ] {
        command.env_remove(name);
    }
    let output = timeout(PATIENCE, command.output()).await.expect("the program ends").ok()?;
    Some(Ran {
        success: output.status.success(),
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
