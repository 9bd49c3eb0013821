//! When what comes, as a proxy sees it.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;
use assay_net::clock::monotonic_ns;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::origin::Page;

#[derive(Clone)]
pub struct Fetched {
    pub path: String,
    /// How many bytes of the body were there, and when, in nanoseconds since the request was sent.
    pub arrivals: Vec<(usize, u64)>,
}

impl Fetched {
    /// From the request to the last byte.
    pub fn total_ms(&self) -> f64 {
        self.arrivals.last().map_or(f64::NAN, |(_, at_ns)| *at_ns as f64 / 1e6)
    }

    /// When so many bytes of the body were there.
    pub fn arrival_ms(&self, bytes: usize) -> Option<f64> {
        self.arrivals.iter().find(|(there, _)| *there >= bytes).map(|(_, at_ns)| *at_ns as f64 / 1e6)
    }

    /// How much later each part of the page came in `other`.
    pub fn arrivals_against(&self, other: &Fetched) -> Vec<f64> {
        let ends = Page::of(&self.path).ends().into_iter();
        ends.filter_map(|bytes| Some(other.arrival_ms(bytes)? - self.arrival_ms(bytes)?)).collect()
    }
}

/// Requests all paths at a listener, so many at a time, each over a connection of its own.
pub fn fetch_all(listener: SocketAddr, paths: &[String], workers: usize) -> Vec<Fetched> {
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<Option<Fetched>>> = Mutex::new(vec![None; paths.len()]);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = paths.get(index) else { return };
                    let fetched = fetch(listener, path).unwrap_or_else(|error| panic!("{path}: {error}"));
                    all.lock().expect("no worker panics with it")[index] = Some(fetched);
                }
            });
        }
    });
    all.into_inner().expect("no worker panics with it").into_iter().flatten().collect()
}

fn fetch(listener: SocketAddr, path: &str) -> std::io::Result<Fetched> {
    let mut stream = TcpStream::connect(listener)?;
    stream.set_nodelay(true)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n");
    let mut room = vec![0; 1 << 18];
    let (mut there, mut head_bytes, mut length, mut arrivals) = (0, None, 0, Vec::new());
    let sent_ns = monotonic_ns();
    stream.write_all(request.as_bytes())?;
    loop {
        let count = stream.read(&mut room[there..])?;
        let at_ns = monotonic_ns() - sent_ns;
        there += count;
        if head_bytes.is_none()
            && let Ok(Some((head, bytes))) = ResponseHead::parse(&room[..there])
        {
            let BodyFraming::Length(body) = head.body("GET") else {
                return Err(std::io::Error::other("the length of the body is not known"));
            };
            (head_bytes, length) = (Some(bytes), body as usize);
        }
        if let Some(head_bytes) = head_bytes {
            arrivals.push((there - head_bytes, at_ns));
            if there - head_bytes >= length {
                return Ok(Fetched { path: path.into(), arrivals });
            }
        }
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
