//! A server that remembers its requests, and misbehaves where its path says so.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    pub line: String,
    pub host: String,
    /// Number of its connection.
    pub connection: u64,
}

impl Requested {
    pub fn path(&self) -> &str {
        let target = self.line.split(' ').nth(1).unwrap_or_default();
        target.strip_prefix("http://a.example").unwrap_or(target)
    }
}

pub struct Server {
    pub address: SocketAddr,
    requested: Arc<Mutex<Vec<Requested>>>,
    first: Arc<Notify>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requested = Arc::new(Mutex::new(Vec::new()));
        let first = Arc::new(Notify::new());
        let (requested_there, first_there) = (requested.clone(), first.clone());
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (requested, first) = (requested_there.clone(), first_there.clone());
                let Ok(stream) = stream else { return };
                std::thread::spawn(move || serve(&stream, connection as u64, &requested, &first));
            }
        });
        Self { address, requested, first }
    }

    pub fn requested(&self) -> Vec<Requested> {
        self.requested.lock().unwrap().clone()
    }

    /// Ready when a response has been sent.
    pub async fn first_request(&self) {
        self.first.notified().await;
    }
}

fn serve(stream: &TcpStream, connection: u64, requested: &Mutex<Vec<Requested>>, first: &Notify) {
    let mut lines = BufReader::new(stream).lines();
    let mut out = stream;
    while let Some(Ok(line)) = lines.next() {
        let mut host = String::new();
        for field in lines.by_ref().map_while(Result::ok).take_while(|field| !field.is_empty()) {
            if let Some(value) = field.strip_prefix("Host: ") {
                host = value.to_owned();
            }
        }
        let one = Requested { line, host, connection };
        requested.lock().unwrap().push(one.clone());
        let response: &[u8] = match one.path() {
            "/reset" => return,
            "/garbage" => b"what is this?\r\n\r\n",
            "/truncated" => b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
            // Kept open until the other side has had enough.
            "/hang" => b"",
            "/close" => b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
            _ if one.line.starts_with("HEAD") => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        };
        if out.write_all(response).is_err() {
            return;
        }
        first.notify_one();
        if matches!(one.path(), "/garbage" | "/truncated" | "/close" | "/then-close") {
            return;
        }
    }
}
