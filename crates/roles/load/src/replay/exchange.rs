//! One request with its response, and their instants.

use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_net::body::{BodyError, BodyReader};
use assay_net::byte_stream::{Handshake, tls_error};
use assay_net::pool::Pool;
use assay_net::tls::error::TlsError;
use assay_net::upstream::{Upstream, UpstreamError, UpstreamTimeouts};
use assay_record::spe::ResponseError;
use assay_workload::mark::HEADER;

use crate::replay::catalogue::key;
use crate::replay::drive::ReplayOptions;
use crate::replay::mark::{CacheOutcome, ReplayMark, request_line};
use crate::replay::origin::SimulatedOrigins;
use crate::replay::request::ReplayRequest;
use crate::replay::tls::{ClientSessions, ReplayRoute};

/// Result of one request. Instants are `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExchangeResult {
    /// Connect begun, or first byte written on a connection that was there.
    pub sent_ns: u64,
    /// Connection made; none: it was there.
    pub connected_ns: Option<u64>,
    /// The handshake of TLS on a connection that was made.
    pub handshake: Option<Handshake>,
    /// Failure of TLS, with advice.
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
    /// Judgement of the response, where the origins are simulated.
    pub cached: Option<CacheVerdict>,
}

/// Judgement of a response that can be compared with what its origin made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheVerdict {
    pub outcome: CacheOutcome,
    /// The response is not what the origin made: another object, another status or size, other bytes.
    pub wrong: bool,
}

/// Response that the origin makes.
struct ExpectedResponse<'s> {
    simulated: &'s SimulatedOrigins,
    /// Number of the request.
    number: u64,
    key: u64,
}

/// Settings and resources of a request.
pub(crate) struct ExchangeContext<'r> {
    pub route: &'r ReplayRoute,
    /// The client's; none: TLS is not spoken.
    pub sessions: Option<&'r ClientSessions>,
    pub options: &'r ReplayOptions,
    pub pool: &'r Pool<Box<str>>,
}

/// Reason for which a request got no whole response.
enum AttemptError {
    Upstream(UpstreamError),
    Body(BodyError),
    /// The proxy responded to CONNECT with this status.
    NoTunnel(u16),
    TimedOut,
    ExtraBytes,
}

impl From<UpstreamError> for AttemptError {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

impl From<BodyError> for AttemptError {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl From<AttemptError> for ResponseError {
    fn from(failed: AttemptError) -> Self {
        match failed {
            AttemptError::Upstream(error) => error.into(),
            AttemptError::Body(error) => error.into(),
            AttemptError::NoTunnel(_) => ResponseError::Refused,
            AttemptError::TimedOut => ResponseError::TimedOut,
            AttemptError::ExtraBytes => ResponseError::ExtraBytes,
        }
    }
}

impl AttemptError {
    /// Text about a failure of TLS, or of the tunnel to it, with advice; none: it was something else.
    fn of_tls(&self, request: &ReplayRequest) -> Option<String> {
        let describe = |error: &TlsError| {
            let (host, advice) = (&request.authority, error.kind.advice());
            format!("a request for {host} failed: {}; {advice}", error.detail)
        };
        match self {
            AttemptError::Upstream(UpstreamError::Tls(_, error)) => Some(describe(error)),
            AttemptError::Body(BodyError::Io(error)) => tls_error(error).map(describe),
            AttemptError::NoTunnel(status) => Some(format!(
                "the proxy responded with {status} to CONNECT for {}; let it open tunnels to that port",
                request.authority
            )),
            _ => None,
        }
    }
}

/// Puts a request, over `connection` if there is one. Gives the connection back when it can be used again.
pub(crate) async fn exchange(
    request: &ReplayRequest,
    number: u64,
    connection: Option<Box<Upstream>>,
    context: &ExchangeContext<'_>,
) -> (ExchangeResult, Option<Box<Upstream>>) {
    let options = context.options;
    let mut request_bytes = Vec::with_capacity(256);
    let mut fields = std::borrow::Cow::Borrowed(options.fields.as_slice());
    let expected = options.simulated.as_deref().map(|simulated| {
        fields.to_mut().extend_from_slice(request_line(number).as_bytes());
        ExpectedResponse { simulated, number, key: key(&request.authority, &request.path) }
    });
    let is_whole_url = options.forward && !matches!(context.route, ReplayRoute::Tunnel(_));
    request.write(&mut request_bytes, is_whole_url, &fields);
    let mut result = ExchangeResult { sent_ns: monotonic_ns(), ..ExchangeResult::default() };
    let was_open = connection.is_some();
    let first = attempt(request, &request_bytes, connection, context, expected.as_ref(), &mut result);
    let mut outcome = bounded(first, options.timeout).await;
    // A connection that the other side closed just then says nothing about the request.
    let is_lost = |failed: &AttemptError| matches!(failed, AttemptError::Upstream(UpstreamError::Lost(_)));
    if was_open && outcome.as_ref().err().is_some_and(is_lost) && result.first_ns.is_none() {
        result.retried = true;
        let second = attempt(request, &request_bytes, None, context, expected.as_ref(), &mut result);
        outcome = bounded(second, options.timeout).await;
    }
    match outcome {
        Ok(connection) => (result, connection),
        Err(failed) => {
            result.tls_failure = failed.of_tls(request);
            result.error = Some(failed.into());
            (result, None)
        }
    }
}

/// Bounds the time of a whole response, however it comes.
async fn bounded<T>(
    attempt: impl Future<Output = Result<T, AttemptError>>,
    limit: Duration,
) -> Result<T, AttemptError> {
    tokio::time::timeout(limit, attempt).await.unwrap_or(Err(AttemptError::TimedOut))
}

async fn connect(
    request: &ReplayRequest,
    context: &ExchangeContext<'_>,
    timeouts: UpstreamTimeouts,
    result: &mut ExchangeResult,
) -> Result<Box<Upstream>, AttemptError> {
    let (to, pool) = (context.options.to, context.pool);
    let session = || {
        let begun = context.sessions.map(|sessions| sessions.connect(&request.authority)).transpose();
        begun.map_err(|error| UpstreamError::Tls(to, error))
    };
    let mut upstream = match context.route {
        ReplayRoute::Clear => pool.open(to, None, timeouts).await?,
        ReplayRoute::Secured => pool.open(to, session()?, timeouts).await?,
        ReplayRoute::Tunnel(authority) => {
            let mut tunnel = pool.open(to, None, timeouts).await?;
            result.connected_ns = Some(monotonic_ns());
            let request_bytes = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
            tunnel.send(&[request_bytes.as_bytes()], timeouts).await?;
            let status = tunnel.final_head(timeouts.response, |received| received.head.status).await?;
            // Any 2xx opens the tunnel (RFC 9110, 9.3.6).
            if !(200..300).contains(&status) {
                return Err(AttemptError::NoTunnel(status));
            }
            if let Some(session) = session()? {
                tunnel.secure(session, timeouts).await?;
            }
            tunnel
        }
    };
    result.handshake = upstream.connection.stream.take_handshake();
    let made_ns = result.handshake.as_ref().map_or_else(monotonic_ns, |handshake| handshake.begun_ns);
    result.connected_ns.get_or_insert(made_ns);
    Ok(upstream.with_timing())
}

async fn attempt(
    request: &ReplayRequest,
    request_bytes: &[u8],
    connection: Option<Box<Upstream>>,
    context: &ExchangeContext<'_>,
    expected: Option<&ExpectedResponse<'_>>,
    result: &mut ExchangeResult,
) -> Result<Option<Box<Upstream>>, AttemptError> {
    let limit = context.options.timeout;
    let timeouts = UpstreamTimeouts { connect: limit, response: limit };
    let mut upstream = match connection {
        Some(upstream) => upstream,
        None => connect(request, context, timeouts, result).await?,
    };
    upstream.send(&[request_bytes], timeouts).await?;
    let method = request.method();
    let received = upstream
        .final_head(timeouts.response, |received| {
            let head = &received.head;
            result.status = Some(head.status);
            result.head_bytes += received.bytes.len() as u64;
            let mark = head.header(HEADER).and_then(ReplayMark::parse);
            (head.status, head.body(method), head.persists(method), mark)
        })
        .await;
    result.first_ns = upstream.first_byte_ns;
    let (status, framing, persists, mark) = received?;
    let mut check = expected.map(|expected| ResponseCheck::new(expected, mark, status));
    let mut body = BodyReader::new(framing);
    while let Some(chunk) = body.next(&mut upstream.connection, timeouts.response).await? {
        if let Some(check) = &mut check {
            check.take(result.body_bytes, &chunk);
        }
        result.body_bytes += chunk.len() as u64;
    }
    result.cached = check.map(|check| check.end(request.head_only, result));
    result.last_ns = Some(monotonic_ns());
    if !upstream.connection.input.unread().is_empty() {
        return Err(AttemptError::ExtraBytes);
    }
    Ok(persists.then_some(upstream))
}

/// Holds a response against what its origin made.
struct ResponseCheck<'h> {
    expected: &'h ExpectedResponse<'h>,
    mark: Option<ReplayMark>,
    wrong: bool,
}

impl<'h> ResponseCheck<'h> {
    fn new(expected: &'h ExpectedResponse<'h>, mark: Option<ReplayMark>, status: u16) -> Self {
        let entry = expected.simulated.catalogue.entry(expected.key);
        let wrong = mark.is_some_and(|mark| mark.key != expected.key || status != entry.status);
        Self { expected, mark, wrong }
    }

    fn take(&mut self, at: u64, bytes: &[u8]) {
        // What a proxy says itself can be anything.
        if self.mark.is_some() && !self.wrong {
            self.wrong = !self.expected.simulated.content.is(self.expected.key, at, bytes);
        }
    }

    fn end(self, head_only: bool, result: &ExchangeResult) -> CacheVerdict {
        let Some(mark) = self.mark else {
            return CacheVerdict { outcome: CacheOutcome::Own, wrong: false };
        };
        let entry = self.expected.simulated.catalogue.entry(self.expected.key);
        let has_body = !head_only && entry.status != 204;
        let bytes = if has_body { entry.bytes } else { 0 };
        CacheVerdict {
            outcome: mark.outcome(self.expected.number, result.sent_ns),
            wrong: self.wrong || bytes != result.body_bytes,
        }
    }
}
