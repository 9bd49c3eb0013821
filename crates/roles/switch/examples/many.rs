//! A switch that keeps thousands of connections through a server that dies, one that comes back, and reloads. Counted at the
//! clients: `cargo run --release -p assay-switch --example many -- CLIENTS SECONDS`.
//!
//! Servers, the switch and clients are processes of their own, so that each has its own descriptors. Servers hold each request for
//! some seconds: all clients have one under way at all times.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_net::worker::raise_descriptor_limit;
use assay_switch::{Switch, read};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep, sleep_until};

/// How long a server holds a request.
const HOLD: Duration = Duration::from_secs(4);
const SERVERS: usize = 3;
/// Connections that are opened at once, so that no queue of the system overflows.
const AT_ONCE: usize = 200;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    raise_descriptor_limit();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words.first().map(String::as_str) {
        Some("server") => LocalSet::new().block_on(&runtime, serve(words[1].clone())),
        Some("switch") => run_switch(),
        _ => {
            let number = |at: usize, usual| words.get(at).map_or(Ok(usual), |word| word.parse::<u64>());
            LocalSet::new().block_on(&runtime, measure(number(0, 9000)? as usize, number(1, 30)?))
        }
    }
}

/// A server: responds after a while, for ever.
async fn serve(address: String) -> Result<(), Failure> {
    let listener = TcpListener::bind(&address).await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (mut stream, _) = listener.accept().await?;
        spawn_local(async move {
            let mut bytes = [0; 2048];
            let mut got = 0;
            loop {
                match stream.read(&mut bytes[got..]).await {
                    Ok(more @ 1..) => got += more,
                    _ => return,
                }
                if !bytes[..got].ends_with(b"\r\n\r\n") {
                    continue;
                }
                got = 0;
                sleep(HOLD).await;
                if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.is_err() {
                    return;
                }
            }
        });
    }
}

/// A switch that reads its files from standard input, each ended by an empty line.
fn run_switch() -> Result<(), Failure> {
    let mut switch: Option<Switch> = None;
    let mut text = String::new();
    for line in std::io::stdin().lines() {
        let line = line?;
        if line != "END" {
            text.push_str(&line);
            text.push('\n');
            continue;
        }
        let config = read("standard input", &std::mem::take(&mut text))?;
        match &mut switch {
            Some(switch) => switch.reload(config)?,
            none => *none = Some(Switch::start(config)?),
        }
        println!("{}", switch.as_ref().ok_or("no switch")?.addresses()[0]);
    }
    if let Some(switch) = switch {
        let now = switch.snapshot()?;
        let total = now.total();
        eprintln!(
            "switch: {} responses, {} failed at a server and {} sent again, {} connections to servers",
            total.requests(),
            total.failed,
            total.retried,
            now.connects
        );
    }
    Ok(())
}

/// A process of this program that prints a line when it is ready.
fn start(words: &[&str]) -> Result<(Child, BufReader<std::process::ChildStdout>, String), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut said = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    if words[0] == "server" {
        said.read_line(&mut line)?;
    }
    Ok((child, said, line.trim().to_owned()))
}

fn file(servers: &[String], policy: &str) -> String {
    let mut text = format!(
        "listen = \"127.0.0.1:0\"\npolicy = \"{policy}\"\n[limits]\nconnections = 9500\nserver-connections = 9500\n\
         [passive]\nfailures = 5\nout = \"2s\"\n"
    );
    for (number, address) in servers.iter().enumerate() {
        text.push_str(&format!("[[server]]\nname = \"s{number}\"\naddress = \"{address}\"\n"));
    }
    text + "END\n"
}

#[derive(Default)]
struct Counts {
    responded: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    open: AtomicU64,
}

async fn measure(clients: usize, seconds: u64) -> Result<(), Failure> {
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        servers.push(start(&["server", "127.0.0.1:0"])?);
    }
    let addresses: Vec<String> = servers.iter().map(|(_, _, address)| address.clone()).collect();
    let (mut switch, mut said, _) = start(&["switch"])?;
    let mut words = switch.stdin.take().ok_or("no input")?;
    let mut tell = |text: String| -> Result<String, Failure> {
        words.write_all(text.as_bytes())?;
        let mut line = String::new();
        said.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    };
    let address = tell(file(&addresses, "lc"))?;
    let counts = Rc::new(Counts::default());
    let opening = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..clients {
        let stream = TcpStream::connect(&address).await?;
        counts.open.fetch_add(1, Ordering::Relaxed);
        tasks.push((stream, number));
        if number % AT_ONCE == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }
    println!("{clients} connections opened in {:.1} s", opening.elapsed().as_secs_f64());
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut running = Vec::new();
    for (stream, number) in tasks {
        // Spread over the time for which a server holds a request.
        let begin = Instant::now() + HOLD.mul_f64(number as f64 / clients as f64);
        running.push(spawn_local(request(stream, begin, end, Rc::clone(&counts))));
    }
    let quarter = Duration::from_secs(seconds) / 4;
    sleep(quarter).await;
    println!("a server is killed, with what it has");
    servers[0].0.kill()?;
    servers[0].0.wait()?;
    sleep(quarter).await;
    println!("it is back; the policy changes");
    servers[0] = start(&["server", &addresses[0]])?;
    tell(file(&addresses, "p2c"))?;
    sleep(quarter).await;
    println!("another one is taken out");
    tell(file(&addresses[..2], "p2c"))?;
    for task in running {
        task.await?;
    }
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{} answered, {} answered other than 200, {} lost, in {seconds} s with {clients} clients",
        count(&counts.responded),
        count(&counts.refused),
        count(&counts.lost)
    );
    drop(words);
    switch.wait()?;
    for (mut server, _, _) in servers {
        server.kill()?;
        server.wait()?;
    }
    Ok(())
}

/// A client: sends one request after the other until the end.
async fn request(mut stream: TcpStream, begin: Instant, end: Instant, counts: Rc<Counts>) {
    sleep_until(begin).await;
    let mut bytes = [0; 1024];
    while Instant::now() < end {
        if stream.write_all(b"GET /x HTTP/1.1\r\nHost: many\r\n\r\n").await.is_err() {
            counts.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut got = 0;
        loop {
            match stream.read(&mut bytes[got..]).await {
                Ok(more @ 1..) => got += more,
                _ => {
                    counts.lost.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
            if bytes[..got].ends_with(b"\r\n\r\nok") {
                counts.responded.fetch_add(1, Ordering::Relaxed);
                break;
            }
            if !bytes.starts_with(b"HTTP/1.1 200") {
                counts.refused.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }
}
