//! What the gate costs: bulk copy through a tunnel against the same copy without one, and requests against connections.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "not a library")]

use haft_core::port::BoxFuture;
use haft_gate::{Gate, HostList, HostName, Resolve};
use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const BULK: usize = 256 << 20;
const ROUNDS: usize = 15;
const GOAL: f64 = 0.5;

struct To(SocketAddr);

impl Resolve for To {
    fn resolve<'a>(&'a self, _host: &'a HostName, _port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async { Ok(vec![self.0]) })
    }
}

/// What a client asks the server for.
const MUCH: u8 = 0;
const ONE_BYTE: u8 = 1;

/// Sends what it is asked for.
fn source() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let block = vec![7; 256 * 1024];
                let mut asked = [0];
                if stream.read_exact(&mut asked).is_err() {
                    return;
                }
                let mut left = if asked == [MUCH] { BULK } else { 0 };
                if left == 0 {
                    let _ = stream.write_all(&[ONE_BYTE]);
                }
                while left > 0 && stream.write_all(&block).is_ok() {
                    left = left.saturating_sub(block.len());
                }
            });
        }
    });
    address
}

fn read_bulk(mut stream: TcpStream) -> Duration {
    let start = Instant::now();
    stream.write_all(&[MUCH]).unwrap();
    let mut buffer = vec![0; 256 * 1024];
    let mut got = 0;
    while got < BULK {
        got += match stream.read(&mut buffer).unwrap() {
            0 => panic!("the copy broke off"),
            length => length,
        };
    }
    start.elapsed()
}

fn tunnel(gate: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(gate).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(b"CONNECT bulk.test:9 HTTP/1.1\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    stream
}

fn one_byte(mut stream: TcpStream) {
    stream.write_all(&[ONE_BYTE]).unwrap();
    stream.read_exact(&mut [0]).unwrap();
}

/// Seconds on the wall, and on all cores together.
struct Cost {
    wall: f64,
    cpu: f64,
}

/// What this process has used so far, its server, gate and client together.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this measures on Linux");
    let behind_name = stat.rsplit(')').next().unwrap();
    // The twelfth and thirteenth behind the name: ticks of a hundredth of a second.
    let ticks: f64 =
        behind_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum();
    ticks / 100.0
}

fn cost(run: impl FnOnce() -> Duration) -> Cost {
    let before = cpu_seconds();
    let wall = run().as_secs_f64();
    Cost { wall, cpu: (cpu_seconds() - before).max(0.01) }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = source();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate_address = listener.local_addr().unwrap();
    let gate = runtime.block_on(async {
        Gate::new(HostList::parse(&["bulk.test:9"]).unwrap())
            .resolver(Arc::new(To(server)))
            .treat_as_public_for_tests(&[server])
            .start(listener)
            .unwrap()
    });

    // In turn, so that whatever else the machine does meets both.
    let rounds: Vec<(Cost, Cost)> = (0..ROUNDS)
        .map(|_| {
            let direct = cost(|| read_bulk(TcpStream::connect(server).unwrap()));
            (direct, cost(|| read_bulk(tunnel(gate_address))))
        })
        .collect();
    let mib = (BULK >> 20) as f64;
    let of_rounds = |figure: fn(&(Cost, Cost)) -> f64| median(rounds.iter().map(figure).collect());
    let (direct, tunnelled) = (mib / of_rounds(|round| round.0.wall), mib / of_rounds(|round| round.1.wall));
    let share = of_rounds(|(direct, tunnelled)| direct.wall / tunnelled.wall);
    let work = of_rounds(|(direct, tunnelled)| tunnelled.cpu / direct.cpu);
    println!("bulk copy, direct        {direct:8.0} MiB/s");
    println!(
        "bulk copy, through gate  {tunnelled:8.0} MiB/s  {:.0} % of direct (goal: at least {:.0} %)",
        share * 100.0,
        GOAL * 100.0
    );
    println!("time on cores, all three ends together: {work:.2} times that of a direct copy");

    let count = 2_000;
    let start = Instant::now();
    for _ in 0..count {
        one_byte(TcpStream::connect(server).unwrap());
    }
    let connecting = start.elapsed() / count;
    let start = Instant::now();
    for _ in 0..count {
        one_byte(tunnel(gate_address));
    }
    let opening = start.elapsed() / count;
    println!("a byte and back, direct  {:8.0} µs", connecting.as_secs_f64() * 1e6);
    println!("a byte and back, by gate {:8.0} µs  with a new tunnel for each", opening.as_secs_f64() * 1e6);
    let report = runtime.block_on(gate.stop());
    assert_eq!((report.requests, report.refused), (ROUNDS as u64 + u64::from(count), 0));
    if share < GOAL {
        println!(
            "the goal was missed: on a machine with other work, three busy threads get less of it than two"
        );
    }
}
