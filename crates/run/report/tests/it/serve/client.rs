//! A client that speaks plain HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything takes, unless it hangs: who responds gets only the processor time that is left over.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A response, taken apart.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        let of = |line: &'_ str| -> Option<(usize, usize)> {
            line.split_once(": ").map(|(n, v)| (n.len(), v.len()))
        };
        self.head.lines().find_map(|line| {
            let (name_length, _) = of(line)?;
            line[..name_length].eq_ignore_ascii_case(name).then(|| &line[name_length + 2..])
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads one response; its body is as long as it says, or none.
pub fn read(stream: &mut TcpStream, head_only: bool) -> Response {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "ended within {:?}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut response = Response { status, head, body: Vec::new() };
    let length = response.field("content-length").map_or(0, |length| length.parse().unwrap());
    if !head_only {
        response.body = vec![0; length];
        stream.read_exact(&mut response.body).unwrap();
    }
    response
}

/// Sends a request as it is written here and reads its response.
pub fn exchange(address: SocketAddr, request: &str) -> Response {
    let mut stream = connect(address);
    // A server that refuses early may not read all of it.
    let _ = stream.write_all(request.as_bytes());
    read(&mut stream, request.starts_with("HEAD"))
}

pub fn get(address: SocketAddr, path: &str, fields: &str) -> Response {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n"))
}

/// Panics unless as many clients were sent away as there were too many: 201 or 202 wanted a place, of which there
/// are 64.
pub fn assert_dismissed(text: &str) {
    let name = "assay_watching_dismissed_clients_total ";
    let count = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{text}"));
    let count: f64 = count.parse().unwrap();
    assert!((137.0..=138.0).contains(&count), "{count}");
}
