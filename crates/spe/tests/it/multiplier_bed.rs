//! A scripted Collector, scripted proxies, raw clients, and a Multiplier between them.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, ResponseHead};
use assay_record::spe::{AnswerRow, MultiplierCounters, read_answers};
use assay_spe::multiplier::{Limits, Multiplier};
use assay_spe::spec::{MultiplierSpec, ProxyUnderTest, Turns, When};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_local, yield_now};

/// No test takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test on a runtime like the Multiplier's own.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") });
}

/// Waits until something is so.
pub async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        yield_now().await;
    }
}

/// What a server does for an answer, in order.
#[derive(Clone)]
pub enum Part {
    Send(Vec<u8>),
    /// Waits for a permit.
    Wait(Rc<Semaphore>),
    /// Sends the same again and again until it cannot.
    Endless(Vec<u8>),
    /// Does nothing more, and keeps the connection.
    Hang,
    Close,
}

pub fn send(text: impl AsRef<[u8]>) -> Part {
    Part::Send(text.as_ref().to_vec())
}

/// A 200 with these fields and this body.
pub fn ok(fields: &str, body: &str) -> Vec<Part> {
    vec![send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len()))]
}

/// A request as a server got it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
    /// Connections are counted from 0.
    pub connection: usize,
}

impl Seen {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub fn has(&self, text: &str) -> bool {
        self.head.contains(text)
    }
}

/// A server that answers as told and remembers what it was asked.
#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    seen: Rc<RefCell<Vec<Seen>>>,
    open: Rc<Cell<usize>>,
}

impl Server {
    /// `answer` gets each request and how many came before it.
    pub async fn start(answer: impl Fn(&Seen, usize) -> Vec<Part> + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, seen: Rc::default(), open: Rc::default() };
        let (own, answer) = (server.clone(), Rc::new(answer));
        spawn_local(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (own, answer) = (own.clone(), Rc::clone(&answer));
                spawn_local(async move {
                    own.open.set(own.open.get() + 1);
                    own.serve(stream, connection, answer).await;
                    own.open.set(own.open.get() - 1);
                });
            }
        });
        server
    }

    /// One that answers everything alike.
    pub async fn of(parts: Vec<Part>) -> Self {
        Self::start(move |_, _| parts.clone()).await
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.borrow().len()
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.open.get()
    }

    async fn serve(
        &self,
        mut stream: TcpStream,
        connection: usize,
        answer: Rc<impl Fn(&Seen, usize) -> Vec<Part> + 'static>,
    ) {
        let mut buf = Vec::new();
        loop {
            let (head, framing) = loop {
                if let Some((head, length)) = RequestHead::parse(&buf).expect("the Multiplier sends HTTP") {
                    if head.expect_continue {
                        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
                    }
                    let framing = head.body();
                    let head = String::from_utf8(buf.drain(..length).collect()).unwrap();
                    break (head, framing);
                }
                if !matches!(stream.read_buf(&mut buf).await, Ok(1..)) {
                    return;
                }
            };
            let Some(body) = read_body(&mut stream, &mut buf, framing).await else { return };
            let request = Seen { head, body, connection };
            let before = self.seen.borrow().len();
            self.seen.borrow_mut().push(request.clone());
            for part in answer(&request, before) {
                if !act(&mut stream, part).await {
                    return;
                }
            }
        }
    }
}

/// Whether the connection goes on.
async fn act(stream: &mut TcpStream, part: Part) -> bool {
    match part {
        Part::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
        Part::Wait(gate) => {
            gate.acquire().await.unwrap().forget();
            true
        }
        Part::Endless(bytes) => {
            while stream.write_all(&bytes).await.is_ok() {}
            false
        }
        Part::Hang => {
            let _ = stream.read_buf(&mut Vec::new()).await;
            false
        }
        Part::Close => false,
    }
}

/// The body as it was delimited; none when it broke off.
async fn read_body(stream: &mut TcpStream, buf: &mut Vec<u8>, framing: BodyFraming) -> Option<Vec<u8>> {
    loop {
        match framing {
            BodyFraming::None => return Some(Vec::new()),
            BodyFraming::Length(bytes) if buf.len() as u64 >= bytes => {
                return Some(buf.drain(..bytes as usize).collect());
            }
            BodyFraming::Chunked => {
                let end = buf.windows(5).position(|window| window == b"0\r\n\r\n");
                if let Some(end) = end {
                    return Some(buf.drain(..end + 5).collect());
                }
            }
            BodyFraming::Length(_) | BodyFraming::UntilClose => {}
        }
        match stream.read_buf(buf).await {
            Ok(1..) => {}
            Ok(0) if framing == BodyFraming::UntilClose => return Some(std::mem::take(buf)),
            _ => return None,
        }
    }
}

/// A Multiplier under test.
pub struct Bed {
    multiplier: Rc<Multiplier>,
    serving: JoinHandle<()>,
    pub directory: tempfile::TempDir,
}

impl Bed {
    /// In front of a Collector, as a reverse proxy that asks proxies after each answer.
    pub fn start(collector: &Server, proxies: &[SocketAddr]) -> Self {
        Self::with(collector, proxies, |_| {})
    }

    /// The same, with other settings.
    pub fn with(collector: &Server, proxies: &[SocketAddr], set: impl FnOnce(&mut MultiplierSpec)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let name = |(index, &address)| ProxyUnderTest { label: format!("p{index}"), address };
        let mut spec = MultiplierSpec {
            listen: "127.0.0.1:0".parse().unwrap(),
            collector: collector.address,
            proxies: proxies.iter().enumerate().map(name).collect(),
            forward: false,
            when: When::After,
            turns: Turns::Fixed,
            seed: 1,
            most_waiting: 100,
            patience_ms: 10_000,
            rules: None,
            directory: directory.path().to_owned(),
            text_log: false,
            cpus: Vec::new(),
        };
        set(&mut spec);
        let multiplier = Rc::new(Multiplier::bind(&spec, Limits::default()).unwrap());
        let server = Rc::clone(&multiplier);
        let serving = spawn_local(async move { server.serve().await });
        Self { multiplier, serving, directory }
    }

    pub fn address(&self) -> SocketAddr {
        self.multiplier.address()
    }

    pub fn counters(&self) -> MultiplierCounters {
        self.multiplier.counters()
    }

    pub async fn client(&self) -> Client {
        Client { stream: TcpStream::connect(self.address()).await.unwrap(), buf: Vec::new() }
    }

    /// One request on a connection of its own.
    pub async fn get(&self, path: &str) -> Reply {
        self.client().await.request("GET", path, "").await
    }

    /// Waits until so many answers of each proxy were told, of any kind.
    pub async fn answers(&self, each: u64) {
        until(|| {
            let targets = self.counters().targets;
            targets[1..].iter().all(|t| t.answered + t.no_answer + t.dropped >= each)
        })
        .await;
    }

    /// Ends it: what was written down, by request and target.
    pub async fn finish(self) -> Vec<AnswerRow> {
        let Self { multiplier, serving, directory } = self;
        serving.abort();
        let _ = serving.await;
        let multiplier = Rc::into_inner(multiplier).expect("nobody else has it");
        multiplier.finish().await.unwrap();
        let path: PathBuf = directory.path().join("answers.parquet");
        let mut rows = read_answers(&path).unwrap();
        rows.sort_by_key(|row| (row.request, row.target));
        rows
    }
}

/// A connection to the Multiplier.
pub struct Client {
    pub stream: TcpStream,
    pub buf: Vec<u8>,
}

impl Client {
    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.unwrap();
    }

    pub async fn request(&mut self, method: &str, path: &str, fields: &str) -> Reply {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
        self.reply(method).await
    }

    /// The next answer, with words on the way before it.
    pub async fn reply(&mut self, method: &str) -> Reply {
        let (status, head, framing) = loop {
            if let Some((head, length)) = ResponseHead::parse(&self.buf).expect("the Multiplier answers HTTP")
            {
                let (status, framing) = (head.status, head.body(method));
                let text = String::from_utf8(self.buf.drain(..length).collect()).unwrap();
                break (status, text, framing);
            }
            assert!(matches!(self.stream.read_buf(&mut self.buf).await, Ok(1..)), "it was closed");
        };
        let body = read_body(&mut self.stream, &mut self.buf, framing).await;
        Reply { status, head, body: body.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()) }
    }

    /// True when the connection was closed in order, and nothing more was sent.
    pub async fn is_closed(&mut self) -> bool {
        self.buf.is_empty() && matches!(self.stream.read_buf(&mut self.buf).await, Ok(0))
    }
}

/// An answer as a client got it.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    /// As it was delimited; none: it broke off.
    pub body: Option<String>,
}
