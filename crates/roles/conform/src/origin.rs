//! The origin behind a target: it responds as the case says that the request belongs to, and keeps what reached it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, sleep};

use crate::case::{Case, Response};
use crate::check::STEP_FIELD;
use crate::message::{MAX_BYTES, Message};
use crate::observe::Arrival;
use crate::template::{Values, with_values};

/// Prefix of a token, which every URL of a case contains; digits of its own follow.
const TOKEN: &str = "assay-";
/// Digits of a token.
const TOKEN_DIGITS: usize = 10;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Between an interim response and what follows it: that it comes before is what it is for.
const INTERIM_PAUSE: Duration = Duration::from_millis(250);
/// Interval at which stalls of this process are looked for.
const TICK: Duration = Duration::from_millis(100);
/// By how much longer than that we may take before we stood still.
const STALL: Duration = Duration::from_secs(2);
/// Response to requests of no case: the code that starts a proxy polls with them.
const NOT_A_CASE: &[u8] = b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\nok\n";

/// One try of a case, as both sides of the target see it.
pub struct Try {
    pub case: Rc<Case>,
    /// Values of its placeholders, with a URL of its own.
    pub values: Values,
    /// Number of the step that is under way, from 0.
    pub step: Cell<usize>,
    began: Instant,
    arrivals: RefCell<Vec<(usize, Arrival)>>,
}

impl Try {
    /// Milliseconds since it began.
    pub fn now_ms(&self) -> f64 {
        self.began.elapsed().as_secs_f64() * 1000.0
    }

    /// Requests that reached the origin in a step.
    pub fn arrivals(&self, step: usize) -> Vec<Arrival> {
        self.arrivals
            .borrow()
            .iter()
            .filter(|(of, _)| *of == step)
            .map(|(_, arrival)| arrival.clone())
            .collect()
    }

    /// The placeholders' values at this moment.
    pub fn values_now(&self) -> Values {
        Values { now_unix_s: unix_s(), ..self.values.clone() }
    }
}

/// The origin. Dropped, it accepts no more connections.
pub struct Origin {
    pub address: SocketAddr,
    tries: TryMap,
    next: Cell<u64>,
    stalled_at: Rc<Cell<Option<Instant>>>,
    tasks: [JoinHandle<()>; 2],
}

type TryMap = Rc<RefCell<HashMap<String, Rc<Try>>>>;

impl Origin {
    /// Listens; call it in a `LocalSet`.
    pub fn start(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let tries: TryMap = Rc::default();
        let stalled_at = Rc::default();
        let tasks = [
            spawn_local(accept(listener, Rc::clone(&tries))),
            spawn_local(detect_stalls(Rc::clone(&stalled_at))),
        ];
        // Tokens of two evaluations of one running target must differ: they are keys in its cache.
        let first = (unix_s() % 1_000_000) * 10_000;
        Ok(Self { address, tries, next: Cell::new(first), stalled_at, tasks })
    }

    /// Begins a try of a case, with a URL that was never used before, for clients that write this scheme and host.
    pub fn begin(&self, case: &Rc<Case>, scheme: &'static str, host: &str) -> Rc<Try> {
        let number = self.next.replace(self.next.get() + 1);
        let token = format!("{TOKEN}{:0TOKEN_DIGITS$}", number % 10_u64.pow(TOKEN_DIGITS as u32));
        let values = Values { token: token.clone(), host: host.to_owned(), scheme, now_unix_s: unix_s() };
        let new = Rc::new(Try {
            case: Rc::clone(case),
            values,
            step: Cell::new(0),
            began: Instant::now(),
            arrivals: RefCell::default(),
        });
        self.tries.borrow_mut().insert(token, Rc::clone(&new));
        new
    }

    /// True if this process stood still while a try was under way: what did not come in time says nothing then.
    pub fn stalled_during(&self, attempt: &Try) -> bool {
        self.stalled_at.get().is_some_and(|ended| ended >= attempt.began)
    }

    /// Forgets a try that is over.
    pub fn end(&self, over: &Try) {
        self.tries.borrow_mut().remove(&over.values.token);
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Notes when this process stood still (it was suspended, or got no processor): it saw nothing of what it waited for then.
async fn detect_stalls(stalled_at: Rc<Cell<Option<Instant>>>) {
    loop {
        let before = Instant::now();
        sleep(TICK).await;
        if before.elapsed() > TICK + STALL {
            stalled_at.set(Some(Instant::now()));
        }
    }
}

async fn accept(listener: TcpListener, tries: TryMap) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            // Responses that are not sent at once would look slow; without the option they are late, and still right.
            let _ = stream.set_nodelay(true);
            let tries = Rc::clone(&tries);
            spawn_local(async move {
                // A connection that breaks is the target's business, and what came of it is in the arrivals.
                let _ = serve(stream, &tries).await;
            });
        }
    }
}

async fn serve(mut stream: TcpStream, tries: &TryMap) -> io::Result<()> {
    let mut buf = Vec::new();
    while let Some((request, bytes)) = next_request(&mut stream, &mut buf).await? {
        let found = token_in(&bytes).and_then(|token| tries.borrow().get(token).cloned());
        let goes_on = match found {
            Some(of) => respond(&mut stream, &of, request, bytes).await?,
            None => stream.write_all(NOT_A_CASE).await.map(|()| true)?,
        };
        if !goes_on {
            return stream.shutdown().await;
        }
    }
    Ok(())
}

/// The next request with its bytes; none when the connection ended. One that expects a 100 gets it, even if its content is there
/// already: a server may leave it out then (RFC 9110, 10.1.1), and what a target does with it would depend on how its writes fell.
async fn next_request(stream: &mut TcpStream, buf: &mut Vec<u8>) -> io::Result<Option<(Message, Vec<u8>)>> {
    let mut told_to_go_on = false;
    loop {
        if let Some((mut request, length)) = Message::head(buf) {
            if !told_to_go_on
                && request.values("Expect").any(|value| value.eq_ignore_ascii_case("100-continue"))
            {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                told_to_go_on = true;
                sleep(INTERIM_PAUSE).await;
            }
            let framing = request.request_framing();
            if let Some(used) = request.take_body(&buf[length..], framing, false) {
                let bytes = buf.drain(..length + used).collect();
                return Ok(Some((request, bytes)));
            }
        }
        if buf.len() > MAX_BYTES || stream.read_buf(buf).await? == 0 {
            // A request without an end says something too: it is kept, and nothing is sent.
            return Ok(None);
        }
    }
}

/// The token in a request, wherever it stands.
fn token_in(bytes: &[u8]) -> Option<&str> {
    let length = TOKEN.len() + TOKEN_DIGITS;
    let is_token = |window: &&[u8]| {
        window.starts_with(TOKEN.as_bytes()) && window[TOKEN.len()..].iter().all(u8::is_ascii_digit)
    };
    let found = bytes.windows(length).find(is_token)?;
    std::str::from_utf8(found).ok()
}

/// Responds as the case says. False: the connection ends.
async fn respond(
    stream: &mut TcpStream,
    attempt: &Rc<Try>,
    request: Message,
    bytes: Vec<u8>,
) -> io::Result<bool> {
    let index = attempt.step.get();
    let Some(step) = attempt.case.steps.get(index) else { return Ok(false) };
    let response = match &step.validated {
        Some(validated) if is_met(&request, &attempt.case, index, &attempt.values) => validated,
        _ => step.part.as_ref().filter(|_| request.value("Range").is_some()).unwrap_or(&step.origin),
    };
    let (is_head, wants_close) = (
        request.method() == "HEAD",
        request.values("Connection").any(|value| value.eq_ignore_ascii_case("close")),
    );
    let arrival_index = {
        let mut arrivals = attempt.arrivals.borrow_mut();
        arrivals.push((
            index,
            Arrival { request, bytes, at_ms: attempt.now_ms(), responded_ms: None, status: 0 },
        ));
        arrivals.len() - 1
    };
    if response.delay_s > 0.0 {
        sleep(Duration::from_secs_f64(response.delay_s)).await;
    }
    if let Some((_, arrival)) = attempt.arrivals.borrow_mut().get_mut(arrival_index) {
        arrival.responded_ms = Some(attempt.now_ms());
        arrival.status = response.status;
    }
    let values = attempt.values_now();
    if let Some(raw) = &response.raw {
        stream.write_all(with_values(raw, &values).as_bytes()).await?;
        return Ok(false);
    }
    for interim in &response.interim {
        stream.write_all(format!("HTTP/1.1 {}\r\n\r\n", with_values(interim, &values)).as_bytes()).await?;
        // What comes in one piece with the final response, some targets do not pass on, and whether it does would be chance.
        sleep(INTERIM_PAUSE).await;
    }
    let body = body(response, index, &values);
    match response.cut {
        Some(0) => return Ok(false),
        Some(bytes) => {
            let head = head(response, index, body.len(), &values);
            stream.write_all(&[head.as_bytes(), &body[..bytes.min(body.len())]].concat()).await?;
            return Ok(false);
        }
        None => {}
    }
    let head = head(response, index, body.len(), &values);
    let has_body = !is_head && !matches!(response.status, 204 | 304);
    let sent = match (has_body, response.chunked) {
        (false, _) => Vec::new(),
        (true, false) => body,
        (true, true) => chunked(&body, response, &values),
    };
    stream.write_all(&[head.into_bytes(), sent].concat()).await?;
    let says_close = response.fields.iter().any(|line| line.eq_ignore_ascii_case("connection: close"));
    Ok(!wants_close && !says_close)
}

/// True if a request has a condition that a 304 is the response to: it names an entity tag that the origin has sent, or a date.
fn is_met(request: &Message, case: &Case, index: usize, values: &Values) -> bool {
    let Some(wanted) = request.value("If-None-Match") else { return request.is_conditional() };
    let lines = case.steps.iter().take(index + 1).flat_map(|step| &step.origin.fields);
    let mut tags = lines.filter_map(|line| line.strip_prefix("ETag:"));
    tags.any(|tag| wanted.contains(with_values(tag, values).trim().trim_start_matches("W/")))
}

/// The body of the origin's response in a step (from 0).
pub fn body(response: &Response, index: usize, values: &Values) -> Vec<u8> {
    match &response.body {
        Some(body) => with_values(body, values).into_bytes(),
        None => format!("{} step {}\n", values.token, index + 1).into_bytes(),
    }
}

fn head(response: &Response, index: usize, length: usize, values: &Values) -> String {
    let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
    let has = |name: &str| {
        response
            .fields
            .iter()
            .any(|line| line.split(':').next().is_some_and(|own| own.eq_ignore_ascii_case(name)))
    };
    if response.dated && !has("Date") {
        head.push_str(&with_values("Date: {date}\r\n", values));
    }
    head.push_str(&format!("{STEP_FIELD}: {}\r\n", index + 1));
    for line in &response.fields {
        head.push_str(&with_values(line, values));
        head.push_str("\r\n");
    }
    if response.chunked {
        head.push_str("Transfer-Encoding: chunked\r\n");
    } else if !matches!(response.status, 204 | 304) && !has("Content-Length") {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head + "\r\n"
}

fn chunked(body: &[u8], response: &Response, values: &Values) -> Vec<u8> {
    let mut out = Vec::new();
    // In two parts, so that a target that takes the first for the whole is noticed.
    for part in body.chunks(body.len().div_ceil(2).max(1)) {
        out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n");
    for trailer in &response.trailers {
        out.extend_from_slice(with_values(trailer, values).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn reason(status: u16) -> &'static str {
    match assay_http::status::reason(status) {
        "" => "Status",
        reason => reason,
    }
}

/// Seconds since the epoch.
pub(crate) fn unix_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_wherever_it_stands() {
        assert_eq!(token_in(b"GET /x?u=/assay-0000000042/y HTTP/1.1"), Some("assay-0000000042"));
        assert_eq!(token_in(b"GET /assay/health HTTP/1.1"), None);
        assert_eq!(token_in(b"GET /assay-00000x0042 HTTP/1.1"), None);
    }
}
