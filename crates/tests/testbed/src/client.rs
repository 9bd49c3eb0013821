//! A client that sends what it is given, and says what came when.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::body::read_body;

/// One connection of a client.
pub struct Client {
    pub stream: TcpStream,
    /// Received bytes that were not read yet.
    pub buf: Vec<u8>,
}

impl Client {
    /// One to this address.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, buf: Vec::new() }
    }

    /// Sends this, as it is.
    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.expect("it is read");
    }

    /// `GET`s this path of host `a`, with these fields (each with its end of line).
    pub async fn get(&mut self, path: &str, fields: &str) -> Response {
        self.request("GET", path, fields).await
    }

    /// Requests this path of host `a`, with these fields (each with its end of line) and no body.
    pub async fn request(&mut self, method: &str, path: &str, fields: &str) -> Response {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
        self.response(method).await
    }

    /// The next response, with its head taken out of the buffer: its status, its head, how its body is delimited.
    pub async fn head(&mut self, method: &str) -> (u16, String, BodyFraming) {
        loop {
            if let Some((head, length)) = ResponseHead::parse(&self.buf).expect("the response is HTTP") {
                let (status, framing) = (head.status, head.body(method));
                let text = String::from_utf8(self.buf.drain(..length).collect()).expect("a head in UTF-8");
                return (status, text, framing);
            }
            assert!(
                matches!(self.stream.read_buf(&mut self.buf).await, Ok(1..)),
                "the connection was closed"
            );
        }
    }

    /// The next response to a request of this method; times count from this call.
    pub async fn response(&mut self, method: &str) -> Response {
        let began = Instant::now();
        let (status, head, framing) = self.head(method).await;
        let first_byte = began.elapsed();
        let mut arrivals: Vec<(usize, Duration)> = Vec::new();
        let mut came = |bytes: usize| {
            if bytes > arrivals.last().map_or(0, |&(before, _)| before) {
                arrivals.push((bytes, began.elapsed()));
            }
        };
        let body = read_body(&mut self.stream, &mut self.buf, framing, &mut came).await;
        let body = body.map(|bytes| String::from_utf8(bytes).expect("a body in UTF-8"));
        Response { status, head, body, first_byte, arrivals }
    }

    /// True when the connection was closed in order, and nothing more was sent.
    pub async fn is_closed(&mut self) -> bool {
        self.buf.is_empty() && matches!(self.stream.read_buf(&mut self.buf).await, Ok(0))
    }
}

/// A response as a client got it.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// With the empty line that ends it.
    pub head: String,
    /// Without its transfer coding; none: it broke off.
    pub body: Option<String>,
    /// Time until the head was complete.
    pub first_byte: Duration,
    /// Number of bytes of the body at each arrival, and its time.
    pub arrivals: Vec<(usize, Duration)>,
}

impl Response {
    /// The first field of this name, whatever the case of its letters.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// Value of `Cache-Status` (RFC 9211).
    pub fn cache_status(&self) -> &str {
        self.field("Cache-Status").expect("a cache says how its responses come about")
    }

    pub fn body(&self) -> &str {
        self.body.as_deref().expect("the body is complete")
    }
}
