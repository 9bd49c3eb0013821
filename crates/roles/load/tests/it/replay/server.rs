//! A server that misbehaves where the path of a request says so.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// What is told of each request: its line, its host, and the number of its connection.
type Sees = dyn Fn(&str, &str, u64) + Send + Sync;

/// Where one listens that tells of its requests, and of each response once that has been sent.
pub fn start(
    sees: impl Fn(&str, &str, u64) + Send + Sync + 'static,
    responded: impl Fn() + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sees, responded) = (Arc::new(sees), Arc::new(responded));
    std::thread::spawn(move || {
        for (connection, stream) in listener.incoming().enumerate() {
            let (sees, responded) = (Arc::clone(&sees), Arc::clone(&responded));
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || serve(&stream, connection as u64, &*sees, &*responded));
        }
    });
    address
}

/// The path in the line of a request.
pub fn path(line: &str) -> &str {
    let target = line.split(' ').nth(1).unwrap_or_default();
    target.strip_prefix("http://a.example").unwrap_or(target)
}

fn serve(stream: &TcpStream, connection: u64, sees: &Sees, responded: &dyn Fn()) {
    let mut lines = BufReader::new(stream).lines();
    let mut out = stream;
    while let Some(Ok(line)) = lines.next() {
        let mut host = String::new();
        for field in lines.by_ref().map_while(Result::ok).take_while(|field| !field.is_empty()) {
            if let Some(value) = field.strip_prefix("Host: ") {
                host = value.to_owned();
            }
        }
        sees(&line, &host, connection);
        let response: &[u8] = match path(&line) {
            "/reset" => return,
            "/garbage" => b"what is this?\r\n\r\n",
            "/extra" => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloEXTRA",
            "/truncated" => b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
            // Kept open until the other side has had enough.
            "/hang" => b"",
            "/close" => b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
            _ if line.starts_with("HEAD") => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        };
        if out.write_all(response).is_err() {
            return;
        }
        responded();
        if matches!(path(&line), "/garbage" | "/truncated" | "/close" | "/then-close") {
            return;
        }
    }
}
