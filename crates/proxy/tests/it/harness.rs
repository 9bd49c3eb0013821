//! A scripted origin, raw clients, and a clock that moves only when it is told to.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_http::chunked::{Decoder, Piece};
use assay_http::date::{DATE_BYTES, write_date};
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, ResponseHead};
use assay_proxy::spec::{OriginRoute, ProxySpec};
use assay_proxy::{Clock, Limits, Proxy};
use assay_record::role::ProxyCounters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Semaphore;
use tokio::task::{spawn_local, yield_now};

/// When the clock starts: Unix seconds.
pub const START_S: i64 = 1_700_000_000;
/// No test takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a test on a runtime like the proxy's own.
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

pub fn date(unix_s: i64) -> String {
    let mut text = [0; DATE_BYTES];
    write_date(unix_s as u64, &mut text);
    String::from_utf8(text.to_vec()).unwrap()
}

/// What an origin does for an answer, in order.
#[derive(Clone)]
pub enum Part {
    Send(Vec<u8>),
    /// Waits for a permit.
    Wait(Rc<Semaphore>),
    Close,
}

pub fn send(text: impl AsRef<[u8]>) -> Part {
    Part::Send(text.as_ref().to_vec())
}

/// A 200 with these fields and this body.
pub fn ok(fields: &str, body: &str) -> Vec<Part> {
    vec![send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len()))]
}

/// A request as the origin got it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
    /// Connections are counted from 0.
    pub connection: usize,
}

impl Seen {
    pub fn has(&self, line: &str) -> bool {
        self.head.to_ascii_lowercase().contains(&format!("\r\n{}\r\n", line.to_ascii_lowercase()))
    }

    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }
}

/// An origin that answers as told and remembers what it was asked.
#[derive(Clone)]
pub struct Origin {
    pub address: SocketAddr,
    seen: Rc<RefCell<Vec<Seen>>>,
}

impl Origin {
    /// `answer` gets each request and how many came before it.
    pub async fn start(answer: impl Fn(&Seen, usize) -> Vec<Part> + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Rc<RefCell<Vec<Seen>>> = Rc::default();
        let answer = Rc::new(answer);
        let origin = Self { address, seen: Rc::clone(&seen) };
        spawn_local(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                spawn_local(serve_origin(stream, connection, Rc::clone(&seen), Rc::clone(&answer)));
            }
        });
        origin
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.borrow().len()
    }
}

async fn serve_origin(
    mut stream: TcpStream,
    connection: usize,
    seen: Rc<RefCell<Vec<Seen>>>,
    answer: Rc<impl Fn(&Seen, usize) -> Vec<Part> + 'static>,
) {
    let mut buf = Vec::new();
    loop {
        let (head, length, framing) = loop {
            if let Some((head, length)) = RequestHead::parse(&buf).expect("the proxy sends HTTP") {
                let expects = head.expect_continue;
                if expects {
                    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
                }
                break (String::from_utf8(buf[..length].to_vec()).unwrap(), length, head.body());
            }
            if !matches!(stream.read_buf(&mut buf).await, Ok(1..)) {
                return;
            }
        };
        buf.drain(..length);
        let Some(body) = read_body(&mut stream, &mut buf, framing).await else { return };
        let request = Seen { head, body, connection };
        let before = seen.borrow().len();
        seen.borrow_mut().push(request.clone());
        for part in answer(&request, before) {
            match part {
                Part::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Part::Wait(gate) => gate.acquire().await.unwrap().forget(),
                Part::Close => return,
            }
        }
    }
}

/// The body; none when it broke off.
async fn read_body(stream: &mut TcpStream, buf: &mut Vec<u8>, framing: BodyFraming) -> Option<Vec<u8>> {
    let (mut body, mut decoder) = (Vec::new(), Decoder::new());
    loop {
        match framing {
            BodyFraming::None => return Some(body),
            BodyFraming::Length(bytes) if buf.len() as u64 >= bytes => {
                return Some(buf.drain(..bytes as usize).collect());
            }
            BodyFraming::Chunked => loop {
                let (piece, used) = decoder.next(buf).expect("the coding is right");
                let data = if let Piece::Data(data) = piece { data.to_vec() } else { Vec::new() };
                let is_end = piece == Piece::End;
                let needs_more = piece == Piece::NeedMore;
                buf.drain(..used);
                body.extend(data);
                if is_end {
                    return Some(body);
                }
                if needs_more {
                    break;
                }
            },
            BodyFraming::Length(_) | BodyFraming::UntilClose => {}
        }
        match stream.read_buf(buf).await {
            Ok(1..) => {}
            Ok(0) if framing == BodyFraming::UntilClose => return Some(std::mem::take(buf)),
            _ => return None,
        }
    }
}

/// A proxy under test.
pub struct Bed {
    pub proxy: Rc<Proxy>,
    now_ms: Rc<Cell<i64>>,
}

impl Bed {
    /// In front of these origins, with 10 MB and short patience.
    pub fn start(origins: &[(&str, SocketAddr)]) -> Self {
        Self::with_memory(origins, 10_000_000)
    }

    pub fn with_memory(origins: &[(&str, SocketAddr)], memory_bytes: u64) -> Self {
        Self::with(origins, memory_bytes, 0)
    }

    /// One that may serve what is so stale when an origin fails.
    pub fn with_stale_if_error(origins: &[(&str, SocketAddr)], stale_if_error_s: u64) -> Self {
        Self::with(origins, 10_000_000, stale_if_error_s)
    }

    fn with(origins: &[(&str, SocketAddr)], memory_bytes: u64, stale_if_error_s: u64) -> Self {
        let limits = Limits { origin_reply: Duration::from_millis(300), ..Limits::default() };
        let origins =
            origins.iter().map(|&(name, address)| OriginRoute { authority: name.into(), address }).collect();
        let listen = "127.0.0.1:0".parse().unwrap();
        let cpus = Vec::new();
        let name = "assay".into();
        let spec = ProxySpec {
            name,
            listen,
            threads: 1,
            cpus,
            memory_bytes,
            stale_if_error_s,
            access_log: None,
            origins,
            cooperation: None,
            prefetch: None,
        };
        Self::of(&spec, limits)
    }

    /// As it is told, on a clock of its own.
    pub fn of(spec: &ProxySpec, limits: Limits) -> Self {
        let now_ms = Rc::new(Cell::new(START_S * 1000));
        let proxy = Rc::new(Proxy::bind(spec, Clock::Manual(Rc::clone(&now_ms)), limits).unwrap());
        let serving = Rc::clone(&proxy);
        spawn_local(async move { serving.serve().await });
        Self { proxy, now_ms }
    }

    pub fn pass_seconds(&self, seconds: i64) {
        self.now_ms.set(self.now_ms.get() + seconds * 1000);
    }

    pub fn counters(&self) -> ProxyCounters {
        self.proxy.counters()
    }

    pub async fn client(&self) -> Client {
        Client { stream: TcpStream::connect(self.proxy.address()).await.unwrap(), buf: Vec::new() }
    }

    /// One request on a connection of its own.
    pub async fn get(&self, path: &str, fields: &str) -> Reply {
        self.client().await.get(path, fields).await
    }
}

/// A connection to the proxy.
pub struct Client {
    pub stream: TcpStream,
    pub buf: Vec<u8>,
}

impl Client {
    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.unwrap();
    }

    pub async fn get(&mut self, path: &str, fields: &str) -> Reply {
        self.request("GET", path, fields).await
    }

    pub async fn request(&mut self, method: &str, path: &str, fields: &str) -> Reply {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
        self.reply(method).await
    }

    /// The head of the next answer, with its length dropped from the buffer.
    pub async fn head(&mut self, method: &str) -> (u16, String, BodyFraming) {
        loop {
            if let Some((head, length)) = ResponseHead::parse(&self.buf).expect("the proxy answers HTTP") {
                let text = String::from_utf8(self.buf[..length].to_vec()).unwrap();
                let found = (head.status, text, head.body(method));
                self.buf.drain(..length);
                return found;
            }
            assert!(matches!(self.stream.read_buf(&mut self.buf).await, Ok(1..)), "the proxy closed");
        }
    }

    pub async fn reply(&mut self, method: &str) -> Reply {
        let (status, head, framing) = self.head(method).await;
        let body = read_body(&mut self.stream, &mut self.buf, framing).await;
        let body = body.map(|bytes| String::from_utf8(bytes).unwrap());
        Reply { status, head, body }
    }

    /// True when the proxy has closed the connection in order, and sent nothing more.
    pub async fn is_closed(&mut self) -> bool {
        self.buf.is_empty() && matches!(self.stream.read_buf(&mut self.buf).await, Ok(0))
    }
}

/// An answer as a client got it.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    /// None: it broke off.
    pub body: Option<String>,
}

impl Reply {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub fn body(&self) -> &str {
        self.body.as_deref().expect("the body is complete")
    }

    pub fn cache_status(&self) -> &str {
        self.field("Cache-Status").expect("our own answers say how they came about")
    }
}
