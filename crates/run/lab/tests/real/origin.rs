//! A scripted origin: responds as the path says, and remembers requests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// When everything was last modified.
pub const LAST_MODIFIED: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
/// A date after that: an `If-Modified-Since` of it gets a 304 response.
pub const LATER: &str = "Fri, 02 Jan 2026 00:00:00 GMT";

/// Requests seen, by path: `METHOD`, and `+ims` when it was conditional.
///
/// Requests for paths with `held-head` in them get their response, and bodies of those with `held-body` are finished, when that
/// is allowed.
pub type Seen = Arc<Mutex<HashMap<String, Vec<String>>>>;

/// An origin that runs as long as the test's runtime.
pub struct Origin {
    pub address: SocketAddr,
    seen: Seen,
    /// A permit lets one response go on that is held.
    gate: Arc<Semaphore>,
}

impl Origin {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Seen::default();
        let for_task = Arc::clone(&seen);
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&for_task), Arc::clone(&held)));
            }
        });
        Self { address, seen, gate }
    }

    /// The requests for this path so far.
    pub fn requested(&self, path: &str) -> Vec<String> {
        self.seen.lock().unwrap().get(path).cloned().unwrap_or_default()
    }
}

impl Origin {
    /// Waits until this path was requested so often.
    pub async fn until_requested(&self, path: &str, times: usize) {
        while self.requested(path).len() < times {
            tokio::task::yield_now().await;
        }
    }

    /// Lets so many responses go on.
    pub fn let_go(&self, responses: usize) {
        self.gate.add_permits(responses);
    }
}

async fn serve(stream: TcpStream, seen: Seen, gate: Arc<Semaphore>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let mut words = lines.first()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let header = |name: &str| {
            let found = lines.iter().filter_map(|line| line.split_once(": "));
            found
                .into_iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_owned())
        };
        let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let ims = header("if-modified-since");
        let number = {
            let mut seen = seen.lock().unwrap();
            let requested = seen.entry(target.clone()).or_default();
            requested.push(format!("{method}{}", if ims.is_some() { "+ims" } else { "" }));
            requested.len()
        };
        let in_parts = header("range").is_some();
        let response = response(&method, &target, ims.as_deref() == Some(LATER), in_parts, number);
        if target.contains("held-head") {
            gate.acquire().await.ok()?.forget();
        }
        let (begin, end) = match target.contains("held-body") {
            true => response.split_at(response.len() - 5),
            false => (&response[..], ""),
        };
        stream.get_mut().write_all(begin.as_bytes()).await.ok()?;
        if !end.is_empty() {
            gate.acquire().await.ok()?.forget();
            stream.get_mut().write_all(end.as_bytes()).await.ok()?;
        }
    }
}

fn response(method: &str, path: &str, unchanged: bool, in_parts: bool, number: usize) -> String {
    let body = format!("answer {number} for {path}\n");
    let cache = match path {
        path if path.contains("uncachable") => "Cache-Control: private, no-cache, no-store\r\n",
        path if path.contains("undated") => "Cache-Control: public\r\n",
        path if path.contains("expired") => {
            "Cache-Control: public\r\nExpires: Thu, 01 Jan 2026 00:00:01 GMT\r\n"
        }
        _ => "Cache-Control: public\r\nExpires: Thu, 01 Jan 2099 00:00:00 GMT\r\n",
    };
    let modified = format!("Last-Modified: {LAST_MODIFIED}\r\n");
    if unchanged {
        return format!("HTTP/1.1 304 Not Modified\r\n{cache}{modified}\r\n");
    }
    if in_parts {
        let total = body.len();
        let range = format!("Content-Range: bytes 0-0/{total}\r\nContent-Length: 1\r\n");
        return format!("HTTP/1.1 206 Partial Content\r\n{range}{cache}{modified}\r\n{}", &body[..1]);
    }
    let shown = if method == "HEAD" { "" } else { &body };
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{cache}{modified}\r\n{shown}", body.len())
}

/// One request over a connection of its own; status and body.
pub async fn exchange(
    proxy: SocketAddr,
    method: &str,
    target: &str,
    host: &str,
    headers: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP: {response:?}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}
