//! An origin with a site as browsers know them: a page with images, a style sheet and scripts; gzip, validators, redirects,
//! ranges, forms, cookies, bodies of all kinds. It counts its requests, and keeps what browsers report to it.

pub mod front;
mod response;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A request as it came; names of fields in lower case.
#[derive(Debug, Default)]
struct Request {
    method: String,
    path: String,
    fields: HashMap<String, String>,
    body: Vec<u8>,
    /// HTTP/1.0, or a client that wants it so.
    closes: bool,
}

impl Request {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// What the origin remembers.
#[derive(Debug, Default)]
struct Seen {
    /// How often each need came: method, path, coding, range and condition.
    requested: BTreeMap<String, u32>,
    /// What pages sent to `/report`.
    reports: Vec<String>,
}

/// An origin in threads of its own.
#[derive(Clone)]
pub struct Site {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Site {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let site = Self { address: listener.local_addr().expect("it has an address"), seen: Arc::default() };
        let own = site.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                thread::spawn(move || own.serve(stream));
            }
        });
        site
    }

    /// What was requested since the last call, and how often.
    pub fn requested(&self) -> BTreeMap<String, u32> {
        std::mem::take(&mut self.seen.lock().expect("nobody panics").requested)
    }

    /// The next report of a page.
    ///
    /// # Panics
    /// When none comes within two minutes.
    pub fn report(&self) -> String {
        let patience = Instant::now() + Duration::from_secs(120);
        loop {
            if let Some(report) = self.seen.lock().expect("nobody panics").reports.pop() {
                return report;
            }
            assert!(Instant::now() < patience, "no page reports");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let _ = stream.set_nodelay(true);
        let mut reader = BufReader::new(stream);
        loop {
            let request = read_request(&mut reader)?;
            self.remember(&request);
            let goes_on = response::give(&request, reader.get_mut()).ok()?;
            if request.closes || !goes_on {
                return None;
            }
        }
    }

    fn remember(&self, request: &Request) {
        let mut seen = self.seen.lock().expect("nobody panics");
        let field = |name| request.field(name).unwrap_or("-");
        let gzip = if field("accept-encoding").contains("gzip") { "gzip" } else { "-" };
        let condition = request.field("if-none-match").or(request.field("if-modified-since")).unwrap_or("-");
        let need = format!("{} {} {gzip} {} {condition}", request.method, request.path, field("range"));
        *seen.requested.entry(need).or_default() += 1;
        if request.path == "/report" {
            seen.reports.push(String::from_utf8_lossy(&request.body).into_owned());
        }
    }
}

fn read_line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    Some(line.trim_end().to_owned())
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let line = read_line(reader)?;
    let words: Vec<&str> = line.split(' ').collect();
    let [method, path, version] = words[..] else { return None };
    let mut request = Request { method: method.into(), path: path.into(), ..Request::default() };
    while let Some((name, value)) = read_line(reader)?.split_once(": ") {
        request.fields.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    request.closes = version == "HTTP/1.0" || request.field("connection") == Some("close");
    if request.field("expect").is_some() {
        reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    if request.field("transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(read_line(reader)?.split(';').next()?, 16).ok()?;
            let mut chunk = vec![0; size];
            reader.read_exact(&mut chunk).ok()?;
            request.body.extend(chunk);
            read_line(reader).or(Some(String::new()))?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request.field("content-length").and_then(|length| length.parse().ok()) {
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
    }
    Some(request)
}
