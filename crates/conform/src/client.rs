//! The client before a target: it sends what a step says, and keeps what comes back, byte for byte.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::case::Request;
use crate::message::{MOST_BYTES, Message};
use crate::observe::Received;
use crate::template::{Values, with_values};

/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(6);
/// How long after a response is watched for more bytes, or for the end of the connection.
const LINGER: Duration = Duration::from_millis(300);

/// A connection to a target, kept from step to step.
#[derive(Debug, Default)]
pub struct Client {
    stream: Option<TcpStream>,
}

/// A request as it is sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its method: it decides whether a response has a body.
    pub method: String,
    /// True if the connection is to be watched after the response.
    pub lingers: bool,
}

/// The bytes of a request; to a forward proxy (`is_forward`) its target is in absolute form.
pub fn written(request: &Request, lingers: bool, values: &Values, is_forward: bool) -> Sent {
    if let Some(raw) = &request.raw {
        let bytes = with_values(raw, values).into_bytes();
        let method = String::from_utf8_lossy(&bytes).split(' ').next().unwrap_or_default().to_owned();
        return Sent { bytes, method, lingers: true };
    }
    let path = with_values(&request.path, values);
    let host = request.host.as_ref().map_or_else(|| values.host.clone(), |host| with_values(host, values));
    // A path that begins with a slash and the token is a URL of its own; anything else follows the URL of the case.
    let mut target = if path.contains(&values.token) { path } else { format!("/{}{path}", values.token) };
    if is_forward && target.starts_with('/') {
        target = format!("http://{}{target}", values.host);
    }
    let mut head = format!("{} {target} HTTP/{}\r\n", request.method, request.version);
    if !host.is_empty() {
        head.push_str(&format!("Host: {host}\r\n"));
    }
    for line in &request.fields {
        head.push_str(&with_values(line, values));
        head.push_str("\r\n");
    }
    let body = request.body.as_ref().map(|body| with_values(body, values)).unwrap_or_default();
    if request.body.is_some() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    Sent { bytes: (head + "\r\n" + &body).into_bytes(), method: request.method.clone(), lingers }
}

impl Client {
    /// Sends a request and waits for its response; `now_ms` is the clock of the try.
    pub async fn exchange(
        &mut self,
        target: SocketAddr,
        sent: &Sent,
        is_new: bool,
        now_ms: &impl Fn() -> f64,
    ) -> Received {
        if is_new {
            self.stream = None;
        }
        let is_kept = self.stream.is_some();
        let received = self.once(target, sent, now_ms).await;
        // A target may end an idle connection at any moment; nothing came, so nothing was seen of the request.
        let is_stale = is_kept && received.response.is_none() && received.bytes.is_empty() && received.closed;
        if is_stale { self.once(target, sent, now_ms).await } else { received }
    }

    async fn once(&mut self, target: SocketAddr, sent: &Sent, now_ms: &impl Fn() -> f64) -> Received {
        let mut received = Received::default();
        if let Err(error) = self.talk(target, sent, &mut received, now_ms).await {
            received.problem = Some(error.to_string());
            received.closed |= error.kind() != io::ErrorKind::TimedOut;
            self.stream = None;
        }
        if received.head_ms == 0.0 {
            received.head_ms = now_ms();
        }
        received.end_ms = now_ms();
        if received.closed {
            self.stream = None;
        }
        received
    }

    async fn talk(
        &mut self,
        target: SocketAddr,
        sent: &Sent,
        received: &mut Received,
        now_ms: &impl Fn() -> f64,
    ) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let late = |_| {
            io::Error::new(io::ErrorKind::TimedOut, format!("no response within {} s", PATIENCE.as_secs()))
        };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = timeout_at(deadline, TcpStream::connect(target)).await.map_err(late)??;
                stream.set_nodelay(true)?;
                none.insert(stream)
            }
        };
        // A target may refuse a request before all of it is sent, so what it sends is read even if writing fails.
        let wrote = timeout_at(deadline, stream.write_all(&sent.bytes)).await.map_err(late)?;
        let mut at = 0;
        loop {
            if let Some((mut head, length)) = Message::head(&received.bytes[at..]) {
                let status = head.status();
                if (100..200).contains(&status) && status != 101 {
                    received.interim.push(status);
                    at += length;
                    continue;
                }
                if received.head_ms == 0.0 {
                    received.head_ms = now_ms();
                }
                let framing = head.response_framing(&sent.method);
                if head.take_body(&received.bytes[at + length..], framing, received.closed).is_some() {
                    head.interim.clone_from(&received.interim);
                    let is_complete = head.is_complete;
                    received.response = Some(head);
                    if !is_complete {
                        received.closed = true;
                        return Err(io::Error::other("the connection ended within the response"));
                    }
                    break;
                }
            }
            if received.closed {
                wrote?;
                return Err(io::Error::other("the connection ended without a response"));
            }
            let read = timeout_at(deadline, stream.read_buf(&mut received.bytes)).await.map_err(late)?;
            match read {
                Ok(0) | Err(_) => received.closed = true,
                Ok(_) if received.bytes.len() > MOST_BYTES => {
                    return Err(io::Error::other("the response is too long"));
                }
                Ok(_) => {}
            }
        }
        if sent.lingers && !received.closed {
            received.closed = linger(stream, &mut received.bytes).await;
        }
        Ok(())
    }
}

/// Keeps what follows a response; true when the connection ended.
async fn linger(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> bool {
    let until = Instant::now() + LINGER;
    loop {
        match timeout(until.saturating_duration_since(Instant::now()), stream.read_buf(bytes)).await {
            Err(_) => return false,
            Ok(Ok(0) | Err(_)) => return true,
            Ok(Ok(_)) if bytes.len() > MOST_BYTES => return false,
            Ok(Ok(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read;

    #[test]
    fn a_forward_proxy_gets_the_whole_url_and_a_reverse_proxy_the_path() {
        let text = "topic = \"t\"\n[[case]]\nname = \"a\"\nlevel = \"MAY\"\nsection = \"s\"\nrule = \"r.\"\n\
            steps = [{ path = \"?a\", expect = { status = 200 } }]\n";
        let case = read("t.toml", text).unwrap().cases.remove(0);
        let values = Values { token: "t1".into(), host: "h:80".into(), now_unix_s: 0 };
        let line = |is_forward| {
            let sent = written(&case.steps[0].request, false, &values, is_forward);
            String::from_utf8(sent.bytes).unwrap().lines().next().unwrap().to_owned()
        };
        assert_eq!(line(false), "GET /t1?a HTTP/1.1");
        assert_eq!(line(true), "GET http://h:80/t1?a HTTP/1.1");
    }
}
