//! A server whose every response is a script.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_http::head::RequestHead;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::body::read_body;

/// Step of a server's response. After the last one it reads the next request.
#[derive(Clone)]
pub enum Part {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Waits for a permit, and uses it up.
    Wait(Rc<Semaphore>),
    Pause(Duration),
    /// Sends the same again and again until it cannot.
    Endless(Vec<u8>),
    /// Does nothing more, and keeps the connection until the other side ends it.
    Hang,
    /// Ends the connection in order.
    Close,
    /// Ends the connection with a reset.
    Reset,
}

pub fn send(text: impl AsRef<[u8]>) -> Part {
    Part::Send(text.as_ref().to_vec())
}

/// Waits so many milliseconds.
pub fn pause_ms(ms: u64) -> Part {
    Part::Pause(Duration::from_millis(ms))
}

/// A 200 with these fields (each with its end of line) and this body.
pub fn ok(fields: &str, body: &str) -> Vec<Part> {
    vec![send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len()))]
}

/// A request as a server got it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// With the empty line that ends it.
    pub head: String,
    /// Without its transfer coding.
    pub body: Vec<u8>,
    /// On which connection; they are counted from 0.
    pub connection: usize,
}

impl Seen {
    pub fn line(&self) -> &str {
        self.head.lines().next().expect("a head has lines")
    }

    /// True if this is a line of the head, whatever the case of its letters.
    pub fn has(&self, line: &str) -> bool {
        self.head.to_ascii_lowercase().contains(&format!("\r\n{}\r\n", line.to_ascii_lowercase()))
    }
}

/// Response to each request, and to how many came before it.
type Script = dyn Fn(&Seen, usize) -> Vec<Part>;

/// A server that responds as told and remembers its requests.
#[derive(Clone)]
pub struct Server {
    /// Listening address: a free port on loopback.
    pub address: SocketAddr,
    seen: Rc<RefCell<Vec<Seen>>>,
    open: Rc<Cell<usize>>,
    /// Number of accepted connections, and the peer of the last one.
    accepted: Rc<Cell<(usize, Option<SocketAddr>)>>,
}

impl Server {
    /// `response` gets each request and how many came before it.
    pub async fn start(response: impl Fn(&Seen, usize) -> Vec<Part> + 'static) -> Self {
        Self::bind(Rc::new(response)).await
    }

    /// Not generic: hundreds of tests have a script of their own, and the server would be compiled for each.
    async fn bind(script: Rc<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("is bound");
        let server = Self { address, seen: Rc::default(), open: Rc::default(), accepted: Rc::default() };
        let own = server.clone();
        spawn_local(async move {
            for connection in 0.. {
                let (stream, from) = listener.accept().await.expect("somebody connects");
                let (own, script) = (own.clone(), Rc::clone(&script));
                own.accepted.set((own.accepted.get().0 + 1, Some(from)));
                spawn_local(async move {
                    own.open.set(own.open.get() + 1);
                    own.serve(stream, connection, &*script).await;
                    own.open.set(own.open.get() - 1);
                });
            }
        });
        server
    }

    /// One that sends the same response to everything.
    pub async fn of(parts: Vec<Part>) -> Self {
        Self::start(move |_, _| parts.clone()).await
    }

    /// The requests that it got so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Number of requests so far.
    pub fn count(&self) -> usize {
        self.seen.borrow().len()
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.open.get()
    }

    /// Connections that were made to it so far, those that nobody has accepted yet among them.
    pub async fn connections(&self) -> usize {
        let own = TcpStream::connect(self.address).await.expect("it listens");
        let own = own.local_addr().expect("it is connected");
        // They are accepted in the order in which they were made, and this one is the last.
        while self.accepted.get().1 != Some(own) {
            tokio::task::yield_now().await;
        }
        let others = self.accepted.get().0 - 1;
        self.accepted.set((others, None));
        others
    }

    async fn serve(&self, mut stream: TcpStream, connection: usize, script: &Script) {
        // Parts leave when they are sent: what a test says about times is about these.
        stream.set_nodelay(true).expect("a socket");
        let mut buf = Vec::new();
        while let Some(request) = read_request(&mut stream, &mut buf, connection).await {
            let before = self.count();
            self.seen.borrow_mut().push(request.clone());
            for part in script(&request, before) {
                if !act(&mut stream, part).await {
                    return;
                }
            }
        }
    }
}

/// The next request; none when the connection ended, or in the middle of one.
async fn read_request(stream: &mut TcpStream, buf: &mut Vec<u8>, connection: usize) -> Option<Seen> {
    let (head, framing) = loop {
        if let Some((head, length)) = RequestHead::parse(buf).expect("HTTP is sent to servers") {
            let (framing, expects) = (head.body(), head.expect_continue);
            let head = String::from_utf8(buf.drain(..length).collect()).expect("a head in UTF-8");
            if expects {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.ok()?;
            }
            break (head, framing);
        }
        if !matches!(stream.read_buf(buf).await, Ok(1..)) {
            return None;
        }
    };
    let body = read_body(stream, buf, framing, &mut |_| ()).await?;
    Some(Seen { head, body, connection })
}

/// Whether the connection goes on.
async fn act(stream: &mut TcpStream, part: Part) -> bool {
    match part {
        Part::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
        Part::Wait(gate) => {
            gate.acquire().await.expect("nobody closes it").forget();
            true
        }
        Part::Pause(time) => {
            tokio::time::sleep(time).await;
            true
        }
        Part::Endless(bytes) => {
            while stream.write_all(&bytes).await.is_ok() {}
            false
        }
        Part::Hang => {
            // Whatever comes or goes, it ends here.
            let _ = stream.read_buf(&mut Vec::new()).await;
            false
        }
        Part::Close => false,
        Part::Reset => {
            stream.set_zero_linger().expect("a socket");
            false
        }
    }
}
