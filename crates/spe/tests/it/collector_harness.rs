//! A scripted origin, a Collector with doors, and raw clients, all on one runtime.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use assay_http::chunked::{Decoder, Piece};
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, ResponseHead};
use assay_spe::collector::{Collector, DIRECT, DoorCounters};
use assay_spe::spec::{CollectorSpec, Door, Route};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Semaphore;
use tokio::task::{spawn_local, yield_now};

/// No test takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test on a runtime like the Collector's own.
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

/// What an origin does for an answer, in order.
#[derive(Clone)]
pub enum Part {
    Send(Vec<u8>),
    /// Waits for a permit.
    Wait(Rc<Semaphore>),
    /// Waits so long.
    Pause(Duration),
    /// Ends the connection with a reset.
    Reset,
}

pub fn send(text: impl AsRef<[u8]>) -> Part {
    Part::Send(text.as_ref().to_vec())
}

pub fn pause_ms(ms: u64) -> Part {
    Part::Pause(Duration::from_millis(ms))
}

/// A 200 with these fields and this body.
pub fn ok(fields: &str, body: &str) -> Vec<Part> {
    vec![send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len()))]
}

/// Fields of an answer that caches may keep.
pub const CACHEABLE: &str = "Cache-Control: max-age=1000\r\n";
/// Fields of one that they may not.
pub const UNCACHEABLE: &str = "Cache-Control: no-store\r\n";

/// A request as the origin got it.
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

    pub fn has(&self, line: &str) -> bool {
        self.head.to_ascii_lowercase().contains(&format!("\r\n{}\r\n", line.to_ascii_lowercase()))
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
                spawn_local(serve(stream, connection, Rc::clone(&seen), Rc::clone(&answer)));
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

/// One answer: the Collector asks for one thing on each connection.
async fn serve(
    mut stream: TcpStream,
    connection: usize,
    seen: Rc<RefCell<Vec<Seen>>>,
    answer: Rc<impl Fn(&Seen, usize) -> Vec<Part> + 'static>,
) {
    stream.set_nodelay(true).unwrap();
    let mut buf = Vec::new();
    let (head, length, framing) = loop {
        if let Some((head, length)) = RequestHead::parse(&buf).expect("the Collector sends HTTP") {
            break (String::from_utf8(buf[..length].to_vec()).unwrap(), length, head.body());
        }
        if !matches!(stream.read_buf(&mut buf).await, Ok(1..)) {
            return;
        }
    };
    buf.drain(..length);
    let Some(body) = read_body(&mut stream, &mut buf, framing, &mut |_| ()).await else { return };
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
            Part::Pause(time) => tokio::time::sleep(time).await,
            Part::Reset => return stream.set_zero_linger().unwrap(),
        }
    }
}

/// The body; none when it broke off. `came` is told how many bytes of it are there, whenever more are.
async fn read_body(
    stream: &mut TcpStream,
    buf: &mut Vec<u8>,
    framing: BodyFraming,
    came: &mut impl FnMut(usize),
) -> Option<Vec<u8>> {
    let (mut body, mut decoder) = (Vec::new(), Decoder::new());
    loop {
        match framing {
            BodyFraming::None => return Some(body),
            BodyFraming::Length(bytes) => {
                came(buf.len().min(bytes as usize));
                if buf.len() as u64 >= bytes {
                    return Some(buf.drain(..bytes as usize).collect());
                }
            }
            BodyFraming::Chunked => loop {
                let (piece, used) = decoder.next(buf).expect("the coding is right");
                let data = if let Piece::Data(data) = piece { data.to_vec() } else { Vec::new() };
                let (is_end, needs_more) = (piece == Piece::End, piece == Piece::NeedMore);
                buf.drain(..used);
                body.extend(data);
                came(body.len());
                if is_end {
                    return Some(body);
                }
                if needs_more {
                    break;
                }
            },
            BodyFraming::UntilClose => came(buf.len()),
        }
        match stream.read_buf(buf).await {
            Ok(1..) => {}
            Ok(0) if framing == BodyFraming::UntilClose => return Some(std::mem::take(buf)),
            _ => return None,
        }
    }
}

/// A Collector with doors: 0 is the Multiplier's, the others are of proxies.
pub struct Bed {
    pub collector: Rc<Collector>,
}

/// What a Collector for tests is told; each `Host` goes to the origin.
pub fn spec(origin: SocketAddr, proxies: usize) -> CollectorSpec {
    let door = |who: String| Door { listen: "127.0.0.1:0".parse().unwrap(), who };
    let proxies = (1..=proxies).map(|n| door(format!("proxy-{n}")));
    CollectorSpec {
        doors: std::iter::once(door(DIRECT.into())).chain(proxies).collect(),
        origins: vec![Route { authority: "a".into(), address: origin }],
        default_origin: Some(origin),
        minimum_freshness_ms: 180_000,
        maximum_age_ms: 3_600_000,
        replay: true,
        memory_bytes: 10_000_000,
        disk: None,
        cpus: Vec::new(),
    }
}

impl Bed {
    /// In front of an origin, with so many proxies.
    pub fn start(origin: &Origin, proxies: usize) -> Self {
        Self::of(&spec(origin.address, proxies))
    }

    pub fn of(spec: &CollectorSpec) -> Self {
        let collector = Rc::new(Collector::bind(spec).unwrap());
        spawn_local(Rc::clone(&collector).serve());
        Self { collector }
    }

    pub async fn client(&self, door: usize) -> Client {
        let stream = TcpStream::connect(self.collector.addresses()[door]).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, buf: Vec::new() }
    }

    /// One request on a connection of its own.
    pub async fn get(&self, door: usize, path: &str, fields: &str) -> Reply {
        self.request(door, "GET", path, fields, "").await
    }

    pub async fn request(&self, door: usize, method: &str, path: &str, fields: &str, body: &str) -> Reply {
        let mut client = self.client(door).await;
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")).await;
        client.reply(method).await
    }

    pub fn doors(&self) -> Vec<DoorCounters> {
        self.collector.take_doors()
    }
}

/// A connection to a door.
pub struct Client {
    pub stream: TcpStream,
    pub buf: Vec<u8>,
}

impl Client {
    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.unwrap();
    }

    /// The next answer; times count from this call.
    pub async fn reply(&mut self, method: &str) -> Reply {
        let began = Instant::now();
        let (status, head, framing, first_byte) = loop {
            if let Some((head, length)) = ResponseHead::parse(&self.buf).expect("the Collector answers HTTP")
            {
                let text = String::from_utf8(self.buf[..length].to_vec()).unwrap();
                let found = (head.status, text, head.body(method), began.elapsed());
                self.buf.drain(..length);
                break found;
            }
            assert!(matches!(self.stream.read_buf(&mut self.buf).await, Ok(1..)), "the Collector closed");
        };
        let mut arrivals = Vec::new();
        let mut came = |bytes: usize| {
            if arrivals.last().is_none_or(|&(before, _)| before < bytes) && bytes > 0 {
                arrivals.push((bytes, began.elapsed()));
            }
        };
        let body = read_body(&mut self.stream, &mut self.buf, framing, &mut came).await;
        let body = body.map(|bytes| String::from_utf8(bytes).unwrap());
        Reply { status, head, body, first_byte, arrivals }
    }
}

/// An answer as a client got it.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    /// None: it broke off.
    pub body: Option<String>,
    pub first_byte: Duration,
    /// How many bytes of the body were there, and when.
    pub arrivals: Vec<(usize, Duration)>,
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
}
