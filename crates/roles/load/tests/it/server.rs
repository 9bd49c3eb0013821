//! The server that robots talk to in these tests. A small origin that responds correctly, or as it is told to.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use assay_http::head::RequestHead;
use assay_protocol::clock::RunClock;
use assay_workload::Universe;
use assay_workload::XactId;
use assay_workload::object::ObjectId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::expected::Right;
use crate::http2_server;

/// More than a robot reads at once (128 KiB), however late it looks.
pub const LONG_BYTES: usize = 300_000;

pub use crate::http2_server::Http2Manner;

/// How a server misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Not at all.
    Right,
    /// One body byte is wrong.
    FlippedByte,
    /// Closes in the middle of the body.
    CutOff,
    /// Closes in the middle of the head.
    HeadCutOff,
    Swapped,
    WrongLength,
    /// Leaves its mark out.
    NoMark,
    /// Names a version that is not there yet.
    EarlyVersion,
    /// Says that the response was made for another, at the start of the run.
    FromTheStore,
    /// Responds with 503.
    Unavailable,
    /// Responds with 304 to every request.
    NeverModified,
    /// Sends a byte too many.
    OneMore,
    /// Sends no HTTP.
    Garbage,
    /// Sends header fields without end.
    EndlessHead,
    /// Responds with 407 to requests without credentials, with a body too long for one read of a robot.
    Challenges,
    /// Responds like an origin that gets no credentials, with 401 and these field lines.
    Refuses(&'static str),
    /// Closes without a response.
    Closes,
    /// Closes each connection after its first response, without saying so.
    ClosesAfterOne,
    /// Chunked, in many small pieces.
    Chunked,
    /// Without a length, until the end of the connection.
    UntilClose,
    /// Waits until three embedded objects are requested on one connection, then sends the three responses, in pieces of so
    /// many bytes.
    InThrees(usize),
    /// The same, but cuts the connection off after so many bytes. Embedded objects that are the first of their connection
    /// get their responses one by one.
    CutsThrees(usize),
    /// Speaks HTTP/2, in this way.
    Http2(Http2Manner),
}

/// What the server saw of one request.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its start line and fields.
    pub head: String,
    /// Bytes of its body.
    pub body: usize,
    /// Which connection it came on.
    pub connection: usize,
    /// Where that came from.
    pub peer: IpAddr,
}

/// A server in a thread of its own; it ends with the process.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    /// The requests so far.
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Debug)]
pub struct Shared {
    universe: Arc<Universe>,
    clock: RunClock,
    manner: Manner,
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

impl Shared {
    /// The last request of a connection was for an object of the second type: in these tests, an embedded one.
    fn is_embedded(&self, seen: &[Seen], connection: usize) -> bool {
        let last = seen.iter().rfind(|seen| seen.connection == connection);
        last.is_some_and(|seen| seen.head.contains("/t01/"))
    }
}

impl Server {
    /// Listens on a port of 127.0.0.1 that the system chooses.
    pub fn start(universe: Arc<Universe>, clock: RunClock, manner: Manner) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound");
        listener.set_nonblocking(true).expect("a socket can be");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::new(Shared { universe, clock, manner, seen: seen.clone() });
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("is nonblocking");
                let mut number = 0;
                while let Ok((stream, peer)) = listener.accept().await {
                    // Pieces leave as they are written.
                    stream.set_nodelay(true).expect("a socket can be");
                    match shared.manner {
                        Manner::Http2(manner) => {
                            tokio::spawn(http2_server::serve(stream, shared.clone(), number, manner));
                        }
                        _ => drop(tokio::spawn(serve(stream, shared.clone(), number, peer.ip()))),
                    }
                    number += 1;
                }
            });
        });
        Self { address, seen }
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Seen> {
        self.seen.lock().expect("nobody panicked").clone()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, connection: usize, peer: IpAddr) {
    let mut buffer = Vec::new();
    // Responses to embedded objects that wait for the third of them.
    let mut held = (0, Vec::new());
    let mut is_first = true;
    let mut in_turn = false;
    loop {
        let (head_bytes, body_bytes, response) = loop {
            if let Some(whole) = respond(&buffer, &shared) {
                break whole;
            }
            let mut piece = [0; 8192];
            match stream.read(&mut piece).await {
                Ok(length @ 1..) => buffer.extend_from_slice(&piece[..length]),
                _ => return,
            }
        };
        let head = String::from_utf8_lossy(&buffer[..head_bytes]).into_owned();
        let close = head.contains("Connection: close");
        let seen = Seen { head, body: body_bytes, connection, peer };
        shared.seen.lock().expect("nobody panicked").push(seen);
        buffer.drain(..head_bytes + body_bytes);
        let is_embedded = shared.is_embedded(&shared.seen.lock().expect("nobody panicked"), connection);
        in_turn |= std::mem::take(&mut is_first) && is_embedded;
        let (piece, cut) = match shared.manner {
            Manner::InThrees(piece) if is_embedded => (piece, usize::MAX),
            Manner::CutsThrees(cut) if is_embedded && !in_turn => (usize::MAX, cut),
            _ => (0, 0),
        };
        if piece > 0 {
            held.0 += 1;
            held.1.extend_from_slice(&response);
            if held.0 == 3 {
                held.0 = 0;
                let batch = std::mem::take(&mut held.1);
                for slice in batch[..batch.len().min(cut)].chunks(piece) {
                    if stream.write_all(slice).await.is_err() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
                if cut < usize::MAX {
                    return;
                }
            }
            continue;
        }
        let endless = shared.manner == Manner::EndlessHead;
        let mut sent = stream.write_all(&response).await;
        while endless && sent.is_ok() {
            sent = stream.write_all(b"X-More: and more\r\n").await;
        }
        let hangs_up = matches!(
            shared.manner,
            Manner::CutOff
                | Manner::HeadCutOff
                | Manner::Closes
                | Manner::ClosesAfterOne
                | Manner::UntilClose
        );
        if sent.is_err() || close || hangs_up {
            return;
        }
    }
}

/// The lengths of the head and the body of the request that `buffer` begins with, and the response to it.
fn respond(buffer: &[u8], shared: &Shared) -> Option<(usize, usize, Vec<u8>)> {
    let (head, length) = RequestHead::parse(buffer).expect("robots speak HTTP")?;
    let body = head.facts.content_length.unwrap_or(0) as usize;
    (buffer.len() >= length + body).then(|| (length, body, response(&head, shared)))
}

pub fn response(head: &RequestHead<'_>, shared: &Shared) -> Vec<u8> {
    let Shared { universe, clock, manner, .. } = shared;
    let mut right = Right::to(head, universe, clock);
    match manner {
        Manner::NeverModified => right.mark.status = 304,
        Manner::Swapped => {
            let id = right.object.id;
            right.object = universe.object(ObjectId { serial: id.serial ^ 1, ..id });
            right.mark.key = right.object.key;
        }
        Manner::EarlyVersion => right.mark.version += 1,
        Manner::FromTheStore => {
            right.mark.xact = XactId::NOBODY;
            right.mark.made_us = 0;
            right.mark.version = 0;
        }
        _ => {}
    }
    match manner {
        Manner::Garbage => return b"What do you want?\r\n\r\n".to_vec(),
        Manner::HeadCutOff => return b"HTTP/1.1 200 OK\r\nContent-Le".to_vec(),
        Manner::EndlessHead => return b"HTTP/1.1 200 OK\r\n".to_vec(),
        Manner::Closes => return Vec::new(),
        Manner::Challenges if head.header("Proxy-Authorization").is_none() => {
            let fields = format!("Proxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: {LONG_BYTES}");
            let head = format!("HTTP/1.1 407 Who?\r\n{fields}\r\n\r\n");
            return [head.into_bytes(), vec![b'?'; LONG_BYTES]].concat();
        }
        Manner::Refuses(fields) => {
            right.mark.status = 401;
            let mut out = format!("HTTP/1.1 401 Who?\r\n{fields}Content-Length: 0\r\nX-Assay: ").into_bytes();
            right.mark.write(&mut out);
            out.extend_from_slice(b"\r\n\r\n");
            return out;
        }
        Manner::Unavailable => return b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ => {}
    }
    let mut out = right.start(*manner != Manner::NoMark, clock);
    if right.mark.not_modified() {
        out.extend_from_slice(b"\r\n");
        return out;
    }
    finish(*manner, head.method == "HEAD", right.body(universe), &mut out);
    out
}

/// The fields that describe the body, and the body.
fn finish(manner: Manner, without_body: bool, mut body: Vec<u8>, out: &mut Vec<u8>) {
    match manner {
        Manner::Chunked => {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for piece in body.chunks(100) {
                out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                out.extend_from_slice(piece);
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"0\r\n\r\n");
            return;
        }
        Manner::UntilClose => out.extend_from_slice(b"\r\n"),
        _ => {
            let length = body.len() + usize::from(manner == Manner::WrongLength);
            out.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
        }
    }
    match manner {
        Manner::FlippedByte => *body.last_mut().expect("objects are not empty") ^= 1,
        Manner::CutOff => body.truncate(body.len() / 2),
        Manner::OneMore => body.push(b'!'),
        _ => {}
    }
    if !without_body {
        out.extend_from_slice(&body);
    }
}
