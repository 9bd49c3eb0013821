//! What tests of the switch need. Servers that do as they are told, raw clients, and a switch between them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use assay_switch::{Config, Switch, read};
use socket2::{Domain, Socket, Type};

/// An address on loopback, with a port that nobody has.
pub fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

thread_local! {
    static OWN_HOST: Ipv4Addr = {
        static THREADS: AtomicU32 = AtomicU32::new(0);
        // The number of a process has 22 bits at most.
        let number = (std::process::id() << 2) | (THREADS.fetch_add(1, Ordering::SeqCst) & 3);
        let [_, high, middle, low] = number.to_be_bytes();
        Ipv4Addr::new(127, high, middle, low)
    };
}

/// The host in 127.0.0.0/8 on which switches of this test listen, and nobody else: a port that one gives back
/// is given to no other program.
pub fn own_host() -> Ipv4Addr {
    OWN_HOST.with(|host| *host)
}

/// Has an address, so that no other program is given it, whether or not a server of this test listens there.
pub fn hold(address: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
    socket.set_reuse_port(true).expect("a socket");
    socket.bind(&address.into()).expect("an address");
    socket
}

/// Listens at an address that is held.
fn listen(address: SocketAddr) -> TcpListener {
    let socket = hold(address);
    socket.listen(128).expect("an address that is held");
    socket.into()
}

/// Waits until something is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "it never came about: {what}");
        std::thread::yield_now();
    }
}

/// No test waits longer than this for bytes: one that does has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What a server got: head and body.
#[derive(Debug, Clone)]
pub struct Got {
    pub head: String,
    pub body: Vec<u8>,
}

/// What a server does with a request: it writes the response itself; whether the connection lives on.
pub type Response = dyn Fn(&Got, &mut TcpStream) -> bool + Send + Sync;

/// A server on a thread for each connection.
pub struct Server {
    pub name: String,
    pub address: SocketAddr,
    pub got: Arc<Mutex<Vec<Got>>>,
    /// All connections that it accepted before it was killed.
    pub open: Arc<Mutex<Vec<TcpStream>>>,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
    /// Keeps the address of one that is killed.
    _held: Socket,
}

impl Server {
    /// One that responds with 200 and its name.
    pub fn named(name: &str) -> Self {
        let body = name.to_owned();
        Self::responding(name, move |_, stream| ok(stream, body.as_bytes()))
    }

    /// One that responds like this once the body of the request is there.
    pub fn responding(
        name: &str,
        response: impl Fn(&Got, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let response: Arc<Response> = Arc::new(response);
        Self::raw(anywhere(), name, move |mut stream, got| {
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            while let Some(request) = read_request(&mut reader) {
                got.lock().expect("no panic").push(request.clone());
                if !response(&request, &mut stream) {
                    break;
                }
            }
        })
    }

    /// One that does this with each connection.
    pub fn raw(
        address: SocketAddr,
        name: &str,
        serve: impl Fn(TcpStream, &Mutex<Vec<Got>>) + Send + Sync + 'static,
    ) -> Self {
        let held = hold(address);
        let address = held.local_addr().ok().and_then(|address| address.as_socket()).expect("is bound");
        let listener = listen(address);
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let serve = Arc::new(serve);
        let accepting = {
            let (got, is_over, open) = (Arc::clone(&got), Arc::clone(&is_over), Arc::clone(&open));
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    let _ = stream.set_read_timeout(Some(PATIENCE));
                    let _ = stream.set_nodelay(true);
                    let mut open = open.lock().expect("no panic");
                    open.push(stream.try_clone().expect("a socket"));
                    let (serve, got) = (Arc::clone(&serve), Arc::clone(&got));
                    std::thread::spawn(move || {
                        let end = stream.try_clone().expect("a socket");
                        serve(stream, &got);
                        let _ = end.shutdown(std::net::Shutdown::Both);
                    });
                }
            })
        };
        Self { name: name.to_owned(), address, got, open, is_over, accepting: Some(accepting), _held: held }
    }

    /// How many requests it got.
    pub fn count(&self) -> usize {
        self.got.lock().expect("no panic").len()
    }

    /// The last request that it got.
    pub fn last(&self) -> Got {
        self.got.lock().expect("no panic").last().expect("got something").clone()
    }

    /// Is gone: no connection is left, and none comes about.
    pub fn kill(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Whoever accepts looks up.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().expect("no panic");
        }
        for stream in self.open.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Its part of a switch file.
    pub fn toml(&self, more: &str) -> String {
        format!("[[server]]\nname = \"{}\"\naddress = \"{}\"\n{more}\n", self.name, self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Responds with 200 and this body.
pub fn ok(stream: &mut TcpStream, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).is_ok()
}

/// A head up to its empty line; none at the end.
pub fn read_head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if &head[before..] == "\r\n" {
            return Some(head);
        }
    }
}

/// The value of a field, whatever its case.
pub fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().skip(1).find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A body as its head says.
pub fn read_body(reader: &mut impl BufRead, head: &str) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    if field(head, "transfer-encoding").is_some() {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return Some(body);
            }
        }
    }
    let length = field(head, "content-length").map_or(0, |text| text.parse().expect("a length"));
    body.resize(length, 0);
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn read_request(reader: &mut impl BufRead) -> Option<Got> {
    let head = read_head(reader)?;
    let body = read_body(reader, &head)?;
    Some(Got { head, body })
}

pub struct Client {
    pub stream: TcpStream,
    pub reader: BufReader<TcpStream>,
}

impl Client {
    pub fn new(switch: &Switch) -> Self {
        Self::to(switch.addresses()[0])
    }

    pub fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("is listened at");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        Self { reader: BufReader::new(stream.try_clone().expect("a socket")), stream }
    }

    pub fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("is taken");
    }

    /// Status, head and body of the next response; a HEAD's has no body.
    pub fn response_to(&mut self, method: &str) -> (u16, String, Vec<u8>) {
        let head = read_head(&mut self.reader).expect("a response");
        let status: u16 = head[9..12].parse().expect("a status");
        let bodiless = method == "HEAD" || status == 204 || status == 304 || status < 200;
        let body = if bodiless {
            Vec::new()
        } else if field(&head, "content-length").is_none() && field(&head, "transfer-encoding").is_none() {
            let mut body = Vec::new();
            self.reader.read_to_end(&mut body).expect("an end");
            body
        } else {
            read_body(&mut self.reader, &head).expect("a body")
        };
        (status, head, body)
    }

    pub fn response(&mut self) -> (u16, String, Vec<u8>) {
        self.response_to("GET")
    }

    pub fn get(&mut self, path: &str) -> (u16, String, Vec<u8>) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        self.response()
    }

    /// The body of a GET, as text.
    pub fn body(&mut self, path: &str) -> String {
        String::from_utf8(self.get(path).2).expect("text")
    }

    /// True when nothing more comes.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0]), Ok(0) | Err(_))
    }
}

/// A server that responds when it is told to.
pub fn on_command(name: &str) -> (Server, Sender<()>) {
    let (go, told) = channel();
    let told: Arc<Mutex<Receiver<()>>> = Arc::new(Mutex::new(told));
    let body = name.to_owned();
    let server = Server::responding(name, move |_, stream| {
        // The test is over when nobody tells any more.
        let _ = told.lock().expect("no panic").recv();
        ok(stream, body.as_bytes())
    });
    (server, go)
}

/// The preface, SETTINGS, and HEADERS with GET of / at a.
pub fn request_http2(settings: &[u8]) -> Vec<u8> {
    let head = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x01\x01a";
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", &[settings.len() as u8][..], b"\x04\0\0\0\0\0", settings, head]
        .concat()
}

/// A switch file that listens anywhere.
pub fn file(top: &str, servers: &[&Server], rest: &str) -> String {
    let servers: String = servers.iter().map(|server| server.toml("")).collect();
    format!("listen = \"{}:0\"\n{top}\n{servers}\n{rest}\n", own_host())
}

/// The time limits of a switch file: those of connections, and those of requests too.
const OF_CONNECTIONS: [&str; 3] = ["connect", "queue", "stop"];
const OF_REQUESTS: [&str; 7] =
    ["client-idle", "client-request", "connect", "response", "queue", "server-idle", "stop"];

/// A switch file whose limits are an hour, but for those that it sets itself: no other one runs out, however
/// busy the machine is.
fn patient(file: &str) -> String {
    let (before, after) = file.split_once("[timeouts]\n").unwrap_or((file, ""));
    let own = after.split("\n[").next().unwrap_or_default();
    let is_set = |limit: &str| own.lines().any(|line| line.starts_with(&format!("{limit} =")));
    let all = if file.contains("mode = \"tcp\"") { &OF_CONNECTIONS[..] } else { &OF_REQUESTS };
    let hours = all.iter().filter(|limit| !is_set(limit)).map(|limit| format!("{limit} = \"1h\"\n"));
    format!("{before}\n[timeouts]\n{}{after}", hours.collect::<String>())
}

/// What this switch file says, with patience.
pub fn config(file: &str) -> Config {
    read("test.toml", &patient(file)).expect("is a switch file")
}

/// A switch that goes by this file.
pub fn switch(file: &str) -> Switch {
    Switch::start(config(file)).expect("starts")
}
