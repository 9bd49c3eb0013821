//! Exchanges in which the store has no part: POST and other uncacheable methods, HEAD that is not stored, parts of what is not
//! stored, requests with a body.

use std::io;
use std::rc::Rc;

use assay_cache::freshness::is_failure;
use assay_cache::storage::{MethodClass, invalidates, is_idempotent};
use assay_http::chunked::{ChunkError, LAST_CHUNK};
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, ResponseHead};

use crate::cache_status::{CacheStatus, ForwardReason};
use crate::client_request::ClientRequest;
use crate::origin::{self, OriginFailure, OriginHead};
use crate::respond::ProxyClient;
use crate::response::ResponseTimes;
use crate::shared::ProxyShared;
use crate::store::{CacheKey, StoreLookup, StoredResponse};
use crate::target::Target;
use crate::upstream_route::UpstreamRoute;
use assay_net::body::{BodyError, BodyReader};
use assay_net::exchange::{Refusal, unless_disconnected};
use assay_net::fields;
use assay_net::interim::{self, InterimResponses};
use assay_net::upstream::{MAX_RETRIES, ReceivedHead, UNREQUESTED_UPGRADE, Upstream, UpstreamError};

/// Upper bound on the bytes of a request body kept for a repetition.
const KEPT_MAX_BYTES: usize = 64 * 1024;

/// A request to forward without the store.
pub struct BypassPlan {
    route: UpstreamRoute,
    key: CacheKey,
    class: MethodClass,
    method: Box<str>,
    /// Complete head for the origin.
    request: Vec<u8>,
    body: BodyFraming,
    expects_continue: bool,
    reason: ForwardReason,
    /// Stored response for a HEAD whose origin fails.
    fallback: Option<StaleFallback>,
}

/// A stale response to send if the origin fails.
pub struct StaleFallback {
    stored: Rc<StoredResponse>,
    /// The request's condition holds, so a 304 is sent.
    is_not_modified: bool,
}

impl StaleFallback {
    /// Creates a fallback if `stale-if-error` permits it for this request.
    pub fn new(
        shared: &ProxyShared,
        client_request: &ClientRequest<'_>,
        stored: Rc<StoredResponse>,
    ) -> Option<Self> {
        let response = &stored.response;
        let may = response.freshness.serves_on_error(
            &client_request.control,
            shared.stale_if_error_s,
            shared.clock.now_ms(),
        );
        let is_not_modified = response.is_not_modified_for(&client_request.conditions);
        may.then_some(Self { stored, is_not_modified })
    }

    /// Sends the stale response; `status` is that of the origin's response, if there was one.
    async fn send(&self, client: &mut ProxyClient, status: Option<u16>) -> io::Result<()> {
        client.shared.count(|c| c.hits += 1);
        let now_ms = client.shared.clock.now_ms();
        let freshness = &self.stored.response.freshness;
        let ttl_s = freshness.remaining_ms(now_ms).div_euclid(1000);
        let cache_status = CacheStatus::StaleOnError { ttl_s, status, is_collapsed: false };
        if self.is_not_modified {
            let age_s = Some(freshness.age_s(now_ms));
            return client.send_not_modified(&self.stored.response, cache_status, age_s).await;
        }
        client.send_stored_head(&self.stored, cache_status, now_ms).await
    }
}

impl BypassPlan {
    /// Prepares a request that is forwarded for `reason`.
    pub fn new(
        shared: &ProxyShared,
        client_request: &ClientRequest<'_>,
        target: &Target<'_>,
        key: &[u8],
        reason: ForwardReason,
    ) -> Self {
        let head = &client_request.head;
        let body = head.body();
        let route = UpstreamRoute::to(shared, target);
        let mut request = Vec::with_capacity(512);
        route.write_request_line(shared, head.method, target, &mut request);
        fields::append_end_to_end(
            &mut request,
            head.headers(),
            client_request.received,
            &shared.name,
            |field| {
                let is_own = ["host", "content-length", "expect"].iter().any(|name| field.is(name));
                is_own || (head.max_forwards().is_some() && field.is("max-forwards"))
            },
        );
        if let Some(left) = head.max_forwards() {
            fields::append_number(&mut request, "Max-Forwards", left.saturating_sub(1));
        }
        match body {
            BodyFraming::Length(bytes) => fields::append_number(&mut request, "Content-Length", bytes),
            BodyFraming::Chunked => request.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            BodyFraming::None | BodyFraming::UntilClose => {}
        }
        if head.expect_continue {
            request.extend_from_slice(b"Expect: 100-continue\r\n");
        }
        request.extend_from_slice(b"\r\n");
        Self {
            route,
            key: key.into(),
            class: client_request.class,
            method: head.method.into(),
            request,
            body,
            expects_continue: head.expect_continue,
            reason,
            fallback: None,
        }
    }

    pub fn or(self, fallback: Option<StaleFallback>) -> Self {
        Self { fallback, ..self }
    }
}

/// Reasons for which a forwarded request has no response.
enum BypassError {
    Client(io::Error),
    /// Malformed body of the client.
    BadBody(ChunkError),
    /// Client that does not send its body.
    Slow,
    Origin(OriginFailure),
}

/// Forwards the request with its body, and relays the response.
pub async fn run(client: &mut ProxyClient, plan: BypassPlan) -> io::Result<()> {
    client.shared.count(|c| c.passed += 1);
    plan.route.count(&client.shared);
    let is_head = plan.class == MethodClass::Head;
    let failure = match attempt(client, &plan).await {
        Ok((origin, origin_head)) => return relay(client, &plan, origin, origin_head).await,
        Err(BypassError::Client(error)) => return Err(error),
        Err(BypassError::BadBody(error)) => {
            client.exchange.close_after_response();
            client.shared.count(|c| c.refused += 1);
            return client.send_error(400, &error.to_string(), None, is_head).await;
        }
        Err(BypassError::Slow) => {
            client.exchange.close_after_response();
            let refusal = Refusal::TooSlow;
            return client.send_error(refusal.status(), &refusal.to_string(), None, is_head).await;
        }
        Err(BypassError::Origin(failure)) => failure,
    };
    client.shared.count(|c| c.origin_errors += 1);
    if !matches!(plan.body, BodyFraming::None | BodyFraming::Length(0)) {
        // An unknown part of the body was read.
        client.exchange.close_after_response();
    }
    if let Some(fallback) = &plan.fallback {
        return fallback.send(client, None).await;
    }
    client.send_failure(&failure, CacheStatus::bypass(plan.reason), is_head).await
}

/// Sends the request and waits for the head of the final response.
async fn attempt(
    client: &mut ProxyClient,
    plan: &BypassPlan,
) -> Result<(Box<Upstream>, OriginHead), BypassError> {
    let shared = client.shared.clone();
    let timeouts = shared.upstream_timeouts();
    let requested_ms = shared.clock.now_ms();
    let address = origin::address_of(&plan.route.destination, shared.address, timeouts)
        .await
        .map_err(BypassError::Origin)?;
    let has_body = !matches!(plan.body, BodyFraming::None | BodyFraming::Length(0));
    let take = |received: ReceivedHead<'_>| {
        let times = ResponseTimes { requested_ms, received_ms: shared.clock.now_ms() };
        OriginHead::of(&received.head, &plan.method, &shared.name, times)
    };
    let (origin, origin_head) = if is_idempotent(&plan.method) && !has_body {
        let interim = InterimResponses::default();
        let push_interim = |head: &ResponseHead<'_>| interim.push(head, &shared.name);
        let requested = shared.pool.exchange(address, &plan.request, timeouts, push_interim, take);
        let taken = interim.forward(&mut client.exchange, requested).await.map_err(BypassError::Client)?;
        taken.map_err(upstream_error)?
    } else {
        // Not idempotent, so not sent on a pooled connection that the origin may just be closing. Only over HTTP/2 does an origin
        // state what it has not processed.
        let mut tries = 1..=MAX_RETRIES;
        let mut sent = SentBody::default();
        loop {
            let connecting =
                unless_disconnected(&client.exchange.connection, shared.pool.connect(address, timeouts));
            let mut origin = connecting.await.map_err(BypassError::Client)?.map_err(upstream_error)?;
            match upload(client, &mut origin, plan, &mut sent, &take).await {
                Err(BypassError::Origin(OriginFailure::Upstream(UpstreamError::Unprocessed(_))))
                    if sent.is_kept && tries.next().is_some() => {}
                taken => break (origin, taken?),
            }
        }
    };
    match origin_head {
        Ok(origin_head) => Ok((origin, origin_head)),
        Err(error) => Err(upstream_error(UpstreamError::BadResponse(address, error))),
    }
}

/// Bytes of the body sent so far, for a repetition where the origin has not processed them.
struct SentBody {
    body: Vec<u8>,
    /// The body has not outgrown [`KEPT_MAX_BYTES`].
    is_kept: bool,
}

impl Default for SentBody {
    fn default() -> Self {
        Self { body: Vec::new(), is_kept: true }
    }
}

impl SentBody {
    fn push(&mut self, part: &[u8]) {
        self.is_kept &= self.body.len() + part.len() <= KEPT_MAX_BYTES;
        if self.is_kept {
            self.body.extend_from_slice(part);
        } else {
            self.body = Vec::new();
        }
    }
}

/// Sends the request and its body while watching for an early response; `take` is applied to the final head.
async fn upload<T>(
    client: &mut ProxyClient,
    origin: &mut Upstream,
    plan: &BypassPlan,
    sent: &mut SentBody,
    take: impl Fn(ReceivedHead<'_>) -> T,
) -> Result<T, BypassError> {
    let limit = client.shared.limits.origin_response;
    let timeouts = client.shared.upstream_timeouts();
    let name = client.shared.name.clone();
    let is_chunked = plan.body == BodyFraming::Chunked;
    let mut awaits_continue = plan.expects_continue && client.exchange.accepts_interim();
    // An HTTP/1.1 origin cannot state what it has not processed.
    sent.is_kept &= origin.is_http2();
    origin.send(&[&plan.request], timeouts).await.map_err(upstream_error)?;
    if !sent.body.is_empty() {
        origin.send_part(&sent.body, is_chunked, timeouts).await.map_err(upstream_error)?;
    }
    while !client.exchange.is_body_read() {
        let interim_or_taken = |received: ReceivedHead<'_>| match received.head.is_interim() {
            true => Err((received.head.status, interim::rewrite(&received.head, &name))),
            false => Ok(take(received)),
        };
        tokio::select! {
            biased;
            head = origin.head(limit, interim_or_taken) => match head.map_err(upstream_error)? {
                Err((101, _)) => {
                    return Err(upstream_error(UpstreamError::BadResponse(origin.address, UNREQUESTED_UPGRADE)));
                }
                Err((100, _)) => {
                    if std::mem::take(&mut awaits_continue) {
                        client.exchange.send_continue().await.map_err(BypassError::Client)?;
                    }
                }
                Err((_, interim_head)) => {
                    if let Some(interim_head) = interim_head.filter(|_| client.exchange.accepts_interim()) {
                        client.exchange.write(&[&interim_head]).await.map_err(BypassError::Client)?;
                    }
                }
                Ok(taken) => {
                    // The response does not depend on the rest of the body, which stays unread.
                    client.exchange.close_after_response();
                    return Ok(taken);
                }
            },
            part = client.exchange.next_part() => {
                let Some(part) = part.map_err(client_error)? else { break };
                sent.push(&part);
                let sending = origin.send_part(&part, is_chunked, timeouts);
                let sent_part = unless_disconnected(&client.exchange.connection, sending).await;
                if let Err(error) = sent_part.map_err(BypassError::Client)? {
                    if matches!(error, UpstreamError::Unprocessed(_)) && sent.is_kept {
                        return Err(upstream_error(error));
                    }
                    // The origin may have sent a response before it closed.
                    client.exchange.close_after_response();
                    break;
                }
            }
        }
    }
    if client.exchange.is_body_read() && is_chunked {
        // If this fails, so does the wait for the response.
        let _ = origin.send(&[LAST_CHUNK], timeouts).await;
    }
    let interim = InterimResponses::default();
    let last = origin.final_head_after(limit, |head| interim.push(head, &name), take);
    interim.forward(&mut client.exchange, last).await.map_err(BypassError::Client)?.map_err(upstream_error)
}

fn upstream_error(error: UpstreamError) -> BypassError {
    BypassError::Origin(error.into())
}

fn client_error(error: BodyError) -> BypassError {
    match error {
        BodyError::Truncated => BypassError::Client(io::ErrorKind::UnexpectedEof.into()),
        BodyError::Io(error) if error.kind() == io::ErrorKind::TimedOut => BypassError::Slow,
        BodyError::Io(error) => BypassError::Client(error),
        BodyError::Coding(error) => BypassError::BadBody(error),
    }
}

async fn relay(
    client: &mut ProxyClient,
    plan: &BypassPlan,
    mut origin: Box<Upstream>,
    origin_head: OriginHead,
) -> io::Result<()> {
    let shared = client.shared.clone();
    let response = &origin_head.response;
    if let Some(fallback) = plan.fallback.as_ref().filter(|_| is_failure(response.status)) {
        shared.count(|c| c.origin_errors += 1);
        return fallback.send(client, Some(response.status)).await;
    }
    if invalidates(plan.class, response.status) {
        shared.invalidate(&plan.key);
    }
    if plan.class == MethodClass::Head {
        drop_if_changed(&shared, plan, &origin_head);
    }
    let framing = client.exchange.framing_for(response.status, origin_head.framing);
    let described_bytes = origin_head.described_length.filter(|_| plan.class == MethodClass::Head);
    let age_s = response.has_age.then(|| response.freshness.age_s(shared.clock.now_ms()));
    let cache_status = CacheStatus::bypass(plan.reason);
    client.send_head(response, cache_status, age_s, framing, described_bytes).await?;
    let mut body = BodyReader::new(origin_head.framing);
    let limit = shared.limits.origin_response;
    loop {
        let part = body.next(&mut origin.connection, limit);
        match unless_disconnected(&client.exchange.connection, part).await? {
            Ok(Some(chunk)) => client.send_body(&[chunk], framing).await?,
            Ok(None) => break,
            Err(_) => {
                shared.count(|c| c.origin_errors += 1);
                return Err(client.exchange.abort(framing));
            }
        }
    }
    if framing == BodyFraming::Chunked {
        client.send_body(&[], framing).await?;
    }
    // After an early response, the connection is in the middle of the request.
    if origin_head.persists && !client.exchange.leaves_unread {
        shared.pool.put_back(origin);
    }
    Ok(())
}

/// Removes a stored response that the response to a HEAD shows to be outdated (RFC 9111, 4.3.5).
fn drop_if_changed(shared: &ProxyShared, plan: &BypassPlan, origin_head: &OriginHead) {
    let Ok(Some((request, _))) = RequestHead::parse(&plan.request) else { return };
    let mut store = shared.store.borrow_mut();
    if let StoreLookup::Response(stored) = store.find(&plan.key, request.headers()) {
        let is_other_length = origin_head.described_length.is_some_and(|bytes| bytes != stored.length);
        let is_other = origin_head.response.validators() != stored.response.validators() || is_other_length;
        if origin_head.response.status == 200 && is_other {
            store.remove(&plan.key);
        }
    }
}
