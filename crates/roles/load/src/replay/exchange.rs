//! One request, as it is put, and what came back when.

use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_net::body::{BodyError, BodyReader};
use assay_net::byte_stream::{Handshake, tls_error};
use assay_net::pool::Pool;
use assay_net::tls::error::TlsError;
use assay_net::upstream::{Patience, Upstream, UpstreamError};
use assay_record::spe::ResponseError;
use assay_workload::mark::HEADER;

use crate::replay::catalogue::key;
use crate::replay::options::Options;
use crate::replay::origin::Simulated;
use crate::replay::request::Call;
use crate::replay::stamp::{Outcome, Stamp, request_line};
use crate::replay::tls::{ClientSessions, Way};

/// What became of a request. Instants are `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Connect begun, or first byte written on a connection that was there.
    pub sent_ns: u64,
    /// Connection made; none: it was there.
    pub connected_ns: Option<u64>,
    /// The handshake of TLS on a connection that was made.
    pub handshake: Option<Handshake>,
    /// What was wrong with TLS, and what to do.
    pub tls_failure: Option<String>,
    /// First byte of the response.
    pub first_ns: Option<u64>,
    /// Last byte of the response; none: it never came.
    pub last_ns: Option<u64>,
    pub status: Option<u16>,
    pub head_bytes: u64,
    pub body_bytes: u64,
    pub error: Option<ResponseError>,
    /// Sent again on a new connection, because the old one turned out to be closed.
    pub retried: bool,
    /// Where the origins are simulated: what the response was.
    pub cached: Option<Cached>,
}

/// What a response was that can be held against what its origin made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cached {
    pub outcome: Outcome,
    /// It is not what the origin made: another object, another status or size, other bytes.
    pub wrong: bool,
}

/// What one response is held against.
struct Held<'s> {
    simulated: &'s Simulated,
    /// Number of the request.
    number: u64,
    key: u64,
}

/// How a request gets to its server, if there is no connection yet.
pub(crate) struct Route<'r> {
    pub way: &'r Way,
    /// The client's; none: TLS is not spoken.
    pub sessions: Option<&'r ClientSessions>,
    pub options: &'r Options,
    pub pool: &'r Pool<Box<str>>,
}

/// Why a request got no whole response.
enum Failed {
    Upstream(UpstreamError),
    Body(BodyError),
    /// The proxy responded to CONNECT with this status.
    NoTunnel(u16),
    TimedOut,
}

impl From<UpstreamError> for Failed {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

impl From<BodyError> for Failed {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl From<Failed> for ResponseError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Upstream(error) => error.into(),
            Failed::Body(error) => error.into(),
            Failed::NoTunnel(_) => ResponseError::Refused,
            Failed::TimedOut => ResponseError::TimedOut,
        }
    }
}

impl Failed {
    /// What was wrong with TLS, or with the way to it, and what to do; none: it was something else.
    fn of_tls(&self, call: &Call) -> Option<String> {
        let said = |error: &TlsError| {
            let (host, advice) = (&call.authority, error.kind.advice());
            format!("a request for {host} failed: {}; {advice}", error.detail)
        };
        match self {
            Failed::Upstream(UpstreamError::Tls(_, error)) => Some(said(error)),
            Failed::Body(BodyError::Io(error)) => tls_error(error).map(said),
            Failed::NoTunnel(status) => Some(format!(
                "the proxy responded with {status} to CONNECT for {}; let it open tunnels to that port",
                call.authority
            )),
            _ => None,
        }
    }
}

/// Puts a request, over `connection` if there is one. Gives the connection back when it can be used again.
pub(crate) async fn exchange(
    call: &Call,
    number: u64,
    connection: Option<Box<Upstream>>,
    route: &Route<'_>,
) -> (Seen, Option<Box<Upstream>>) {
    let options = route.options;
    let mut request = Vec::with_capacity(256);
    let mut fields = std::borrow::Cow::Borrowed(options.fields.as_slice());
    let held = options.simulated.as_deref().map(|simulated| {
        fields.to_mut().extend_from_slice(request_line(number).as_bytes());
        Held { simulated, number, key: key(&call.authority, &call.path) }
    });
    let is_whole_url = options.forward && !matches!(route.way, Way::Tunnel(_));
    call.write(&mut request, is_whole_url, &fields);
    let mut seen = Seen { sent_ns: monotonic_ns(), ..Seen::default() };
    let was_there = connection.is_some();
    let first = attempt(call, &request, connection, (route, held.as_ref()), &mut seen);
    let mut left = bounded(first, options.patience).await;
    // A connection that the other side closed just then says nothing about the request.
    let is_lost = |failed: &Failed| matches!(failed, Failed::Upstream(UpstreamError::Lost(_)));
    if was_there && left.as_ref().err().is_some_and(is_lost) && seen.first_ns.is_none() {
        seen.retried = true;
        let second = attempt(call, &request, None, (route, held.as_ref()), &mut seen);
        left = bounded(second, options.patience).await;
    }
    match left {
        Ok(connection) => (seen, connection),
        Err(failed) => {
            seen.tls_failure = failed.of_tls(call);
            seen.error = Some(failed.into());
            (seen, None)
        }
    }
}

/// A response that takes too long as a whole, however it comes, is given up.
async fn bounded<T>(
    attempt: impl Future<Output = Result<T, Failed>>,
    patience: Duration,
) -> Result<T, Failed> {
    tokio::time::timeout(patience, attempt).await.unwrap_or(Err(Failed::TimedOut))
}

async fn connect(
    call: &Call,
    route: &Route<'_>,
    patience: Patience,
    seen: &mut Seen,
) -> Result<Box<Upstream>, Failed> {
    let (to, pool) = (route.options.to, route.pool);
    let session = || {
        let begun = route.sessions.map(|sessions| sessions.connect(&call.authority)).transpose();
        begun.map_err(|error| UpstreamError::Tls(to, error))
    };
    let mut upstream = match route.way {
        Way::Clear => pool.open(to, None, patience).await?,
        Way::Secured => pool.open(to, session()?, patience).await?,
        Way::Tunnel(authority) => {
            let mut tunnel = pool.open(to, None, patience).await?;
            seen.connected_ns = Some(monotonic_ns());
            let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
            tunnel.send(&[request.as_bytes()], patience).await?;
            let status = tunnel.final_head(patience.response, |received| received.head.status).await?;
            if !(200..300).contains(&status) {
                return Err(Failed::NoTunnel(status));
            }
            if let Some(session) = session()? {
                tunnel.secure(session, patience).await?;
            }
            tunnel
        }
    };
    seen.handshake = upstream.connection.stream.take_handshake();
    let made_ns = seen.handshake.as_ref().map_or_else(monotonic_ns, |handshake| handshake.begun_ns);
    seen.connected_ns.get_or_insert(made_ns);
    Ok(upstream.timed())
}

async fn attempt(
    call: &Call,
    request: &[u8],
    connection: Option<Box<Upstream>>,
    (route, held): (&Route<'_>, Option<&Held<'_>>),
    seen: &mut Seen,
) -> Result<Option<Box<Upstream>>, Failed> {
    let limit = route.options.patience;
    let patience = Patience { connect: limit, response: limit };
    let mut upstream = match connection {
        Some(upstream) => upstream,
        None => connect(call, route, patience, seen).await?,
    };
    upstream.send(&[request], patience).await?;
    let method = call.method();
    let received = upstream
        .final_head(patience.response, |received| {
            let head = &received.head;
            seen.status = Some(head.status);
            seen.head_bytes += received.bytes.len() as u64;
            let stamp = head.header(HEADER).and_then(Stamp::parse);
            (head.status, head.body(method), head.persists(method), stamp)
        })
        .await;
    seen.first_ns = upstream.first_byte_ns;
    let (status, framing, persists, stamp) = received?;
    let mut check = held.map(|held| Check::new(held, stamp, status));
    let mut body = BodyReader::new(framing);
    while let Some(chunk) = body.next(&mut upstream.connection, patience.response).await? {
        if let Some(check) = &mut check {
            check.take(seen.body_bytes, &chunk);
        }
        seen.body_bytes += chunk.len() as u64;
    }
    seen.cached = check.map(|check| check.end(call.head_only, seen));
    seen.last_ns = Some(monotonic_ns());
    Ok((persists && upstream.connection.input.unread().is_empty()).then_some(upstream))
}

/// Holds a response against what its origin made.
struct Check<'h> {
    held: &'h Held<'h>,
    stamp: Option<Stamp>,
    wrong: bool,
}

impl<'h> Check<'h> {
    fn new(held: &'h Held<'h>, stamp: Option<Stamp>, status: u16) -> Self {
        let thing = held.simulated.catalogue.thing(held.key);
        let wrong = stamp.is_some_and(|stamp| stamp.key != held.key || status != thing.status);
        Self { held, stamp, wrong }
    }

    fn take(&mut self, at: u64, bytes: &[u8]) {
        // What a proxy says itself can be anything.
        if self.stamp.is_some() && !self.wrong {
            self.wrong = !self.held.simulated.content.is(self.held.key, at, bytes);
        }
    }

    fn end(self, head_only: bool, seen: &Seen) -> Cached {
        let Some(stamp) = self.stamp else { return Cached { outcome: Outcome::Own, wrong: false } };
        let thing = self.held.simulated.catalogue.thing(self.held.key);
        let has_body = !head_only && thing.status != 204;
        let bytes = if has_body { thing.bytes } else { 0 };
        Cached {
            outcome: stamp.outcome(self.held.number, seen.sent_ns),
            wrong: self.wrong || bytes != seen.body_bytes,
        }
    }
}
