//! One HTTP request by hand: is it ready, and what do its counters say?

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 4 * 1024 * 1024;

/// Asks `address` for `target`, saying that `host` is meant. Returns status and body.
pub async fn get(
    address: SocketAddr,
    host: &str,
    target: &str,
    patience: Duration,
) -> io::Result<(u16, String)> {
    // HTTP/1.0: the answer is not chunked, and the connection ends with it.
    let request = format!("GET {target} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await?;
        Ok(answer)
    };
    let answer: io::Result<Vec<u8>> = tokio::time::timeout(patience, exchange)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {patience:?}")))?;
    parse(&answer?).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
}

fn parse(answer: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_body_are_told_apart() {
        let answer = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\nmore";
        assert_eq!(parse(answer), Some((200, "body\r\n\r\nmore".into())));
        assert_eq!(parse(b"HTTP/1.1 502\r\n\r\n"), Some((502, String::new())));
        assert_eq!(parse(b"SSH-2.0-x\r\n\r\n"), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
