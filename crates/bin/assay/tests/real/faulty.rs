//! A small forwarder that misbehaves on purpose, in one chosen way, and counts how often it did.
//!
//! It stands between robots and one origin as a reverse proxy. What it gets wrong, Assay must find: as often
//! as it happened, under the right name. It is written with plain blocking sockets and shares no code with
//! what it tests.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A response that came from the origin after a request was sent is none from a store, and is not counted as one. How long ago the
/// robot sent a request, the forwarder does not know: it serves reloads only what has been in its store for longer than any request
/// is on its way.
const LONG_STORED: Duration = Duration::from_secs(1);

/// What the forwarder gets wrong. Apart from it, it passes everything on and stores nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the control.
    None,
    /// Inverts one bit in the middle of every third body.
    FlippedByte,
    /// Ends the connection half-way through every third body.
    TruncatedBody,
    /// Responds to every third GET with the last object of the same connection.
    SwappedObject,
    /// Serves what it has stored long after it expired.
    StaleAfterExpiry,
    /// Serves reloads from its store.
    HitOnReload,
    /// Stores and serves what it must not store.
    HitOnUncachable,
    /// Lets one request at a time through to the origin.
    OneAtATime,
    /// Puts the origin's address in place of `Host`, whichever origin was requested.
    OneOrigin,
    /// Closes the connection in place of seven responses of eight.
    LostMost,
    /// Waits for two seconds before it sends the request to the origin.
    Slow,
    /// Sends every third POST to the origin again.
    RepeatedPost,
    /// Puts this field in place of the one of its name in responses with an object.
    ReplacedField(&'static str),
    /// Drops `X-Assay` from requests.
    Anonymous,
    /// Stores what may be stored, and keeps it when a POST to its URL succeeds.
    KeptAfterPost,
}

/// A running forwarder; it stops when dropped.
pub struct Faulty {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    fault: Fault,
    origin: SocketAddr,
    injected: AtomicU64,
    responded: AtomicU64,
    stop: AtomicBool,
    store: Mutex<HashMap<String, (Instant, Response)>>,
    /// Last POST to each path.
    posted: Mutex<HashMap<String, Instant>>,
    gate: Mutex<()>,
}

#[derive(Clone)]
struct Response {
    head: Vec<String>,
    body: Vec<u8>,
}

struct Request {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Faulty {
    /// Listens on a free port of `127.0.0.1`'s sibling `address` and forwards to `origin`.
    pub fn start(listen: &str, origin: SocketAddr, fault: Fault) -> Faulty {
        let listener = TcpListener::bind(listen).expect("the forwarder's own loopback address is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            fault,
            origin,
            injected: AtomicU64::new(0),
            responded: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            store: Mutex::new(HashMap::new()),
            posted: Mutex::new(HashMap::new()),
            gate: Mutex::new(()),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.stop.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(client) = client else { continue };
                let serving = Arc::clone(&accepting);
                thread::spawn(move || {
                    let _ = serve(client, &serving);
                });
            }
        });
        Faulty { address, shared }
    }

    /// How many responses it got wrong so far.
    pub fn injected(&self) -> u64 {
        self.shared.injected.load(Ordering::SeqCst)
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(client: TcpStream, shared: &Shared) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    client.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(client.try_clone()?);
    let mut writer = client;
    let mut last: Option<Response> = None;
    while let Some(mut request) = read_request(&mut reader)? {
        if !respond(&mut writer, &mut request, &mut last, shared)? || request.wants_close() {
            break;
        }
    }
    writer.shutdown(std::net::Shutdown::Both)
}

/// Responds to one request; false when the connection is to end.
fn respond(
    client: &mut TcpStream,
    request: &mut Request,
    last: &mut Option<Response>,
    shared: &Shared,
) -> std::io::Result<bool> {
    let path = request.path();
    let is_get = request.line.starts_with("GET ");
    let robot = request.header("x-assay").is_some();
    if robot
        && is_get
        && let Some((since, stored)) = shared.stored_response(request, &path)
    {
        let posted = shared.posted.lock().expect("no thread panics with it").get(&path).copied();
        let is_wrong = shared.fault != Fault::KeptAfterPost || posted.is_some_and(|posted| since < posted);
        shared.injected.fetch_add(u64::from(is_wrong), Ordering::SeqCst);
        write_response(client, &stored, stored.body.len(), true)?;
        return Ok(true);
    }
    if robot && shared.fault == Fault::Slow {
        thread::sleep(Duration::from_secs(2));
    }
    if robot && shared.fault == Fault::Anonymous {
        request.headers.retain(|line| !is_field(line, "x-assay"));
    }
    let gate = (shared.fault == Fault::OneAtATime).then(|| shared.gate.lock());
    if shared.fault == Fault::OneOrigin {
        request.headers.retain(|line| !is_field(line, "host"));
        request.headers.push(format!("Host: {}", shared.origin));
    }
    let mut response = fetch(request, shared.origin)?;
    drop(gate);
    let nth = if robot { shared.responded.fetch_add(1, Ordering::SeqCst) } else { 1 };
    let is_post = robot && request.line.starts_with("POST ");
    if is_post && response.is_ok() {
        shared.posted.lock().expect("no thread panics with it").insert(path.clone(), Instant::now());
    }
    if shared.fault == Fault::RepeatedPost && is_post && nth.is_multiple_of(3) {
        shared.injected.fetch_add(1, Ordering::SeqCst);
        response = fetch(request, shared.origin)?;
    }
    if robot && shared.fault == Fault::LostMost && !nth.is_multiple_of(8) {
        shared.injected.fetch_add(1, Ordering::SeqCst);
        return Ok(false);
    }
    if let Fault::ReplacedField(field) = shared.fault
        && response.is_ok()
    {
        let (name, _) = field.split_once(':').expect("a field has a colon");
        response.head.retain(|line| !is_field(line, name));
        response.head.push(field.to_owned());
    }
    let every_third =
        robot && is_get && nth.is_multiple_of(3) && response.is_ok() && response.body.len() > 40;
    match shared.fault {
        Fault::FlippedByte if every_third => {
            let mut wrong = response.clone();
            let middle = wrong.body.len() / 2;
            wrong.body[middle] ^= 0x10;
            shared.injected.fetch_add(1, Ordering::SeqCst);
            write_response(client, &wrong, wrong.body.len(), true)?;
        }
        Fault::TruncatedBody if every_third => {
            shared.injected.fetch_add(1, Ordering::SeqCst);
            write_response(client, &response, response.body.len() / 2, true)?;
            return Ok(false);
        }
        Fault::SwappedObject if every_third && last.as_ref().is_some_and(|l| l.path_differs(&path)) => {
            shared.injected.fetch_add(1, Ordering::SeqCst);
            let other = last.clone().expect("just tested");
            write_response(client, &other, other.body.len(), true)?;
        }
        _ => {
            shared.keep(request, &path, &response);
            write_response(client, &response, response.body.len(), !request.line.starts_with("HEAD "))?;
        }
    }
    if robot && is_get && response.is_ok() {
        let mut kept = response;
        kept.head.push(format!("x-path: {path}"));
        *last = Some(kept);
    }
    Ok(true)
}

impl Shared {
    /// A stored response that this fault makes the forwarder give, though it must not.
    fn stored_response(&self, request: &Request, path: &str) -> Option<(Instant, Response)> {
        let (since, stored) = self.store.lock().expect("no thread panics with it").get(path).cloned()?;
        let reload = request.header("cache-control").is_some_and(|v| v.contains("no-cache"));
        let conditional = request.header("if-modified-since").is_some();
        let wrong = match self.fault {
            Fault::HitOnReload => reload && since.elapsed() >= LONG_STORED,
            Fault::HitOnUncachable => !reload && !conditional && !stored.is_cachable(),
            Fault::StaleAfterExpiry => !reload && !conditional && stored.expired_for() > 3,
            Fault::KeptAfterPost => true,
            _ => false,
        };
        wrong.then_some((since, stored))
    }

    fn keep(&self, request: &Request, path: &str, response: &Response) {
        let storing = matches!(
            self.fault,
            Fault::HitOnReload | Fault::HitOnUncachable | Fault::StaleAfterExpiry | Fault::KeptAfterPost
        );
        if storing && request.line.starts_with("GET ") && response.is_ok() {
            let mut store = self.store.lock().expect("no thread panics with it");
            store.entry(path.to_owned()).or_insert_with(|| (Instant::now(), response.clone()));
        }
    }
}

impl Request {
    fn path(&self) -> String {
        self.line.split(' ').nth(1).unwrap_or("").to_owned()
    }

    fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    fn wants_close(&self) -> bool {
        self.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"))
    }
}

impl Response {
    fn is_ok(&self) -> bool {
        self.head[0].contains(" 200")
    }

    fn is_cachable(&self) -> bool {
        header(&self.head, "cache-control").is_none_or(|v| !v.contains("no-store"))
    }

    fn path_differs(&self, path: &str) -> bool {
        header(&self.head, "x-path").is_some_and(|p| p != path)
    }

    /// Seconds since `Expires`; negative while it is fresh or says nothing.
    fn expired_for(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64;
        header(&self.head, "expires").and_then(unix_seconds).map_or(-1, |expires| now - expires)
    }
}

fn is_field(line: &str, name: &str) -> bool {
    line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
}

fn header<'a>(lines: &'a [String], name: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` to Unix seconds.
fn unix_seconds(date: &str) -> Option<i64> {
    let mut fields = date.split([' ', ':']).skip(1);
    let day: i64 = fields.next()?.parse().ok()?;
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month_name = fields.next()?;
    let month = months.iter().position(|m| *m == month_name)? as i64 + 1;
    let year: i64 = fields.next()?.parse().ok()?;
    let mut clock = fields.take(3).map(|f| f.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    // Days from the civil calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let Some(mut lines) = read_head(reader)? else { return Ok(None) };
    let line = lines.remove(0);
    let mut body = vec![0; length(&lines)];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { line, headers: lines, body }))
}

/// Lines of a head without their ends; none when the peer has closed.
fn read_head(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            return Ok(Some(lines));
        }
        lines.push(line);
    }
}

fn length(lines: &[String]) -> usize {
    header(lines, "content-length").and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// Requests it from the origin on a connection of its own.
fn fetch(request: &Request, origin: SocketAddr) -> std::io::Result<Response> {
    let mut socket = TcpStream::connect(origin)?;
    socket.set_nodelay(true)?;
    let mut message = format!("{}\r\n", request.line).into_bytes();
    for line in request.headers.iter().filter(|l| !l.to_ascii_lowercase().starts_with("connection:")) {
        message.extend_from_slice(line.as_bytes());
        message.extend_from_slice(b"\r\n");
    }
    message.extend_from_slice(b"Connection: close\r\n\r\n");
    message.extend_from_slice(&request.body);
    socket.write_all(&message)?;
    let mut reader = BufReader::new(socket);
    let head = read_head(&mut reader)?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let bodiless = request.line.starts_with("HEAD ") || head[0].contains(" 304");
    let mut body = vec![0; if bodiless { 0 } else { length(&head) }];
    reader.read_exact(&mut body)?;
    Ok(Response { head, body })
}

/// Writes the head and the first `bytes` of the body.
fn write_response(
    client: &mut TcpStream,
    response: &Response,
    bytes: usize,
    with_body: bool,
) -> std::io::Result<()> {
    let mut message = Vec::new();
    for line in &response.head {
        let lower = line.to_ascii_lowercase();
        if !lower.starts_with("connection:") && !lower.starts_with("x-path:") {
            message.extend_from_slice(line.as_bytes());
            message.extend_from_slice(b"\r\n");
        }
    }
    message.extend_from_slice(b"\r\n");
    if with_body {
        message.extend_from_slice(&response.body[..bytes.min(response.body.len())]);
    }
    client.write_all(&message)
}
