//! The client before a target: it sends what a step says, and keeps what comes back, byte for byte.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use crate::case::Request;
use crate::http2::connection::{Connection, Http2Content};
use crate::http2::frame::{Field, field};
use crate::message::{MAX_BYTES, Message};
use crate::observe::Received;
use crate::template::{Values, with_values};
use crate::transport::{Endpoint, TargetStream};

/// Timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(6);
/// Time after a response in which more bytes, or the end of the connection, are waited for.
const LINGER: Duration = Duration::from_millis(300);
/// The same where frames are sent: what is wrong with one may be noticed behind the response.
const LINGER_FRAMES: Duration = Duration::from_millis(600);
/// The same where thousands are sent.
const LINGER_FLOOD: Duration = Duration::from_secs(2);

/// A connection to a target, kept from step to step.
#[derive(Default)]
pub struct Client {
    stream: Option<TargetStream>,
    http2: Option<Connection>,
}

/// A request as it is sent.
#[derive(Debug, Clone)]
pub struct EncodedRequest {
    pub bytes: Vec<u8>,
    /// Method, which decides whether a response has a body.
    pub method: String,
    /// True if the connection is to be watched after the response.
    pub lingers: bool,
    /// Frames or fields that are sent over HTTP/2, instead of the bytes.
    pub http2: Option<Http2Content>,
}

impl EncodedRequest {
    /// The frames that are sent over HTTP/2, in words.
    pub fn frames(&self) -> Vec<String> {
        self.http2.as_ref().map(Http2Content::lines).unwrap_or_default()
    }
}

/// The bytes of a request; to a forward proxy (`is_forward`) its target is in absolute form.
pub fn encode_request(request: &Request, lingers: bool, values: &Values, is_forward: bool) -> EncodedRequest {
    if let Some(raw) = &request.raw {
        let bytes = with_values(raw, values).into_bytes();
        let method = String::from_utf8_lossy(&bytes).split(' ').next().unwrap_or_default().to_owned();
        return EncodedRequest { bytes, method, lingers: true, http2: None };
    }
    if !request.frames.is_empty() {
        return frames(request, values);
    }
    let path = with_values(&request.path, values);
    let host = request.host.as_ref().map_or_else(|| values.host.clone(), |host| with_values(host, values));
    // A path that begins with a slash and the token is a URL of its own; anything else follows the URL of the case.
    let mut target = if path.contains(&values.token) { path } else { format!("/{}{path}", values.token) };
    if request.is_http2() {
        return over_http2(request, &host, &target, lingers, values);
    }
    if is_forward && target.starts_with('/') {
        target = format!("{}://{}{target}", values.scheme, values.host);
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
    let bytes = (head + "\r\n" + &body).into_bytes();
    EncodedRequest { bytes, method: request.method.clone(), lingers, http2: None }
}

/// The frames of a step.
fn frames(request: &Request, values: &Values) -> EncodedRequest {
    let lines = request.frames.iter().flat_map(|frame| frame.fields());
    let method = lines.filter_map(|line| line.strip_prefix(":method: ")).next().unwrap_or("GET").to_owned();
    let outgoing = Http2Content::Frames {
        frames: request.frames.clone(),
        repeat: request.repeat,
        values: values.clone(),
    };
    EncodedRequest { bytes: Vec::new(), method, lingers: true, http2: Some(outgoing) }
}

/// A request over HTTP/2: names of fields are in lower case there.
fn over_http2(request: &Request, host: &str, target: &str, lingers: bool, values: &Values) -> EncodedRequest {
    let pseudo = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    let mut fields: Vec<Field> = vec![pseudo(":method", &request.method), pseudo(":scheme", values.scheme)];
    if !host.is_empty() {
        fields.push(pseudo(":authority", host));
    }
    fields.push(pseudo(":path", target));
    fields.extend(request.fields.iter().map(|line| {
        let (name, value) = field(&with_values(line, values));
        (name.to_ascii_lowercase(), value)
    }));
    let body = request.body.as_ref().map(|body| with_values(body, values).into_bytes());
    if let Some(body) = &body {
        fields.push(pseudo("content-length", &body.len().to_string()));
    }
    let outgoing = Http2Content::Request { fields, body };
    EncodedRequest { bytes: Vec::new(), method: request.method.clone(), lingers, http2: Some(outgoing) }
}

impl Client {
    /// Sends a request and waits for its response; `now_ms` is the clock of the try.
    pub async fn exchange(
        &mut self,
        target: &Endpoint,
        sent: &EncodedRequest,
        is_new: bool,
        now_ms: &impl Fn() -> f64,
    ) -> Received {
        if is_new {
            (self.stream, self.http2) = (None, None);
        }
        if let Some(outgoing) = &sent.http2 {
            return self.over_http2(target, outgoing, sent, now_ms).await;
        }
        let is_kept = self.stream.is_some();
        let received = self.exchange_once(target, sent, now_ms).await;
        // A target may end an idle connection at any moment; nothing came, so nothing was seen of the request.
        let is_stale = is_kept && received.response.is_none() && received.bytes.is_empty() && received.closed;
        if is_stale { self.exchange_once(target, sent, now_ms).await } else { received }
    }

    async fn exchange_once(
        &mut self,
        target: &Endpoint,
        sent: &EncodedRequest,
        now_ms: &impl Fn() -> f64,
    ) -> Received {
        let mut received = Received::default();
        if let Err(error) = self.send_and_receive(target, sent, &mut received, now_ms).await {
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

    /// The same over HTTP/2. Frames have a connection of their own, since they may have upset it.
    async fn over_http2(
        &mut self,
        target: &Endpoint,
        outgoing: &Http2Content,
        sent: &EncodedRequest,
        now_ms: &impl Fn() -> f64,
    ) -> Received {
        let is_request = matches!(outgoing, Http2Content::Request { .. });
        let linger = linger_of(outgoing, sent.lingers);
        let idle = self.http2.take().filter(|_| is_request);
        let was_idle = idle.is_some();
        let (mut received, connection) =
            exchange_once_over_http2(idle, target, outgoing, sent, linger, now_ms).await;
        self.http2 = connection.filter(|_| is_request && Connection::is_usable(&received));
        // A target may end an idle connection at any moment; it has not acted on the request then.
        if was_idle && received.bytes.is_empty() && received.reset.is_none() && received.ends_connection() {
            let (again, connection) =
                exchange_once_over_http2(None, target, outgoing, sent, linger, now_ms).await;
            self.http2 = connection.filter(|_| Connection::is_usable(&again));
            received = again;
        }
        received
    }

    async fn send_and_receive(
        &mut self,
        target: &Endpoint,
        sent: &EncodedRequest,
        received: &mut Received,
        now_ms: &impl Fn() -> f64,
    ) -> io::Result<()> {
        let deadline = Instant::now() + RESPONSE_TIMEOUT;
        let late = |_| {
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no response within {} s", RESPONSE_TIMEOUT.as_secs()),
            )
        };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                received.unreached = true;
                let stream =
                    timeout_at(deadline, TargetStream::connect(target, false)).await.map_err(late)??;
                received.unreached = false;
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
                Ok(_) if received.bytes.len() > MAX_BYTES => {
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

/// Time for which frames are waited for after the response.
fn linger_of(outgoing: &Http2Content, lingers: bool) -> Duration {
    match outgoing {
        Http2Content::Frames { .. } if outgoing.is_flood() => LINGER_FLOOD,
        Http2Content::Frames { .. } => LINGER_FRAMES,
        Http2Content::Request { .. } if lingers => LINGER,
        Http2Content::Request { .. } => Duration::ZERO,
    }
}

/// One exchange over HTTP/2, on a connection that is kept or a new one; and the connection.
async fn exchange_once_over_http2(
    idle: Option<Connection>,
    target: &Endpoint,
    outgoing: &Http2Content,
    sent: &EncodedRequest,
    linger: Duration,
    now_ms: &impl Fn() -> f64,
) -> (Received, Option<Connection>) {
    let mut received = Received { is_http2: true, ..Received::default() };
    let deadline = Instant::now() + RESPONSE_TIMEOUT;
    let opened = match idle {
        Some(connection) => Ok(connection),
        None => match timeout_at(deadline, Connection::open(target)).await {
            Ok(opened) => opened,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no connection in time")),
        },
    };
    received.unreached = opened.is_err();
    let mut connection = None;
    let result = match opened {
        Ok(open) => {
            let open = connection.insert(open);
            open.exchange(outgoing, &sent.method, linger, deadline, &mut received, now_ms).await
        }
        Err(error) => {
            received.closed = error.kind() != io::ErrorKind::TimedOut;
            Err(error)
        }
    };
    received.problem = result.err().map(|error| error.to_string());
    received.end_ms = now_ms();
    if received.head_ms == 0.0 {
        received.head_ms = received.end_ms;
    }
    (received, connection)
}

/// Keeps what follows a response; true when the connection ended.
async fn linger(stream: &mut TargetStream, bytes: &mut Vec<u8>) -> bool {
    let until = Instant::now() + LINGER;
    loop {
        match timeout(until.saturating_duration_since(Instant::now()), stream.read_buf(bytes)).await {
            Err(_) => return false,
            Ok(Ok(0) | Err(_)) => return true,
            Ok(Ok(_)) if bytes.len() > MAX_BYTES => return false,
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
        let values = Values { token: "t1".into(), host: "h:80".into(), scheme: "http", now_unix_s: 0 };
        let line = |is_forward| {
            let sent = encode_request(&case.steps[0].request, false, &values, is_forward);
            String::from_utf8(sent.bytes).unwrap().lines().next().unwrap().to_owned()
        };
        assert_eq!(line(false), "GET /t1?a HTTP/1.1");
        assert_eq!(line(true), "GET http://h:80/t1?a HTTP/1.1");
    }
}
