//! Exchanges that the store has no part in: POST and the like, HEAD that is not stored, parts of what is not stored, requests
//! with a body.

use std::io;
use std::rc::Rc;

use assay_cache::freshness::is_failure;
use assay_cache::storage::{MethodClass, invalidates, is_idempotent};
use assay_http::chunked::{ChunkError, LAST_CHUNK};
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, ResponseHead};

use crate::client_request::ClientRequest;
use crate::handling::{Handling, Why};
use crate::origin::{self, Failure, OriginResponse};
use crate::respond::Client;
use crate::response::Times;
use crate::shared::Shared;
use crate::store::{Found, Key, Stored};
use crate::target::Target;
use crate::way::Way;
use assay_net::body::{BodyError, BodyReader};
use assay_net::exchange::{Framing, Refusal, unless_gone};
use assay_net::fields;
use assay_net::interim::{self, Interim};
use assay_net::upstream::{MOST_TRIES, Received, SWITCHING, Upstream, UpstreamError};

/// What is kept of a body while it is sent.
const MOST_KEPT_BYTES: usize = 64 * 1024;

/// What to pass on.
pub struct PassOrder {
    way: Way,
    key: Key,
    class: MethodClass,
    method: Box<str>,
    /// The complete head for the origin.
    request: Vec<u8>,
    body: BodyFraming,
    expects_continue: bool,
    why: Why,
    /// The stored response that may be sent to a HEAD if the origin fails.
    fallback: Option<Fallback>,
}

/// A stale response that may be shown, should the origin fail.
pub struct Fallback {
    stored: Rc<Stored>,
    /// The condition of the request is met by it.
    is_not_modified: bool,
}

impl Fallback {
    /// The stored response, if it may be sent to this request in that case.
    pub fn new(shared: &Shared, attempt: &ClientRequest<'_>, stored: Rc<Stored>) -> Option<Self> {
        let response = &stored.response;
        let may = response.freshness.serves_on_error(
            &attempt.control,
            shared.stale_if_error_s,
            shared.clock.now_ms(),
        );
        let is_not_modified = response.is_not_modified_for(&attempt.conditions);
        may.then_some(Self { stored, is_not_modified })
    }

    /// Sends it; `status` is that of the origin's response, if there was one.
    async fn send(&self, client: &mut Client, status: Option<u16>) -> io::Result<()> {
        client.shared.count(|c| c.hits += 1);
        let now_ms = client.shared.clock.now_ms();
        let freshness = &self.stored.response.freshness;
        let ttl_s = freshness.remaining_ms(now_ms).div_euclid(1000);
        let handling = Handling::OnError { ttl_s, status, is_collapsed: false };
        if self.is_not_modified {
            let age_s = Some(freshness.age_s(now_ms));
            return client.send_not_modified(&self.stored.response, handling, age_s).await;
        }
        client.send_stored_head(&self.stored, handling, now_ms).await
    }
}

impl PassOrder {
    /// Of a request that goes through for this reason.
    pub fn new(
        shared: &Shared,
        attempt: &ClientRequest<'_>,
        target: &Target<'_>,
        key: &[u8],
        why: Why,
    ) -> Self {
        let head = &attempt.head;
        let body = head.body();
        let way = Way::to(shared, target);
        let mut request = Vec::with_capacity(512);
        way.write_request_line(shared, head.method, target, &mut request);
        fields::append_end_to_end(&mut request, head.headers(), (attempt.received, &shared.name), |field| {
            let is_own = ["host", "content-length", "expect"].iter().any(|name| field.is(name));
            is_own || (head.max_forwards().is_some() && field.is("max-forwards"))
        });
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
            way,
            key: key.into(),
            class: attempt.class,
            method: head.method.into(),
            request,
            body,
            expects_continue: head.expect_continue,
            why,
            fallback: None,
        }
    }

    /// With this response if the origin fails.
    pub fn or(self, fallback: Option<Fallback>) -> Self {
        Self { fallback, ..self }
    }
}

/// Why an exchange did not come about.
enum PassError {
    Client(io::Error),
    /// The client's body makes no sense.
    BadBody(ChunkError),
    /// The client's body does not come.
    Slow,
    Origin(Failure),
}

/// Passes the request on, and its body; then the response back.
pub async fn run(client: &mut Client, order: PassOrder) -> io::Result<()> {
    client.shared.count(|c| c.passed += 1);
    order.way.count(&client.shared);
    let is_head = order.class == MethodClass::Head;
    let refusal = match attempt(client, &order).await {
        Ok((origin, origin_response)) => return relay(client, &order, origin, origin_response).await,
        Err(PassError::Client(error)) => return Err(error),
        Err(PassError::BadBody(error)) => {
            client.exchange.give_up();
            client.shared.count(|c| c.refused += 1);
            return client.send_error(400, &error.to_string(), None, is_head).await;
        }
        Err(PassError::Slow) => {
            client.exchange.give_up();
            let refusal = Refusal::TooSlow;
            return client.send_error(refusal.status(), &refusal.to_string(), None, is_head).await;
        }
        Err(PassError::Origin(failure)) => failure,
    };
    client.shared.count(|c| c.origin_errors += 1);
    if !matches!(order.body, BodyFraming::None | BodyFraming::Length(0)) {
        // How much of the body was read is not known.
        client.exchange.give_up();
    }
    if let Some(fallback) = &order.fallback {
        return fallback.send(client, None).await;
    }
    client.send_failure(&refusal, Handling::passed(order.why), is_head).await
}

/// Sends the request and waits for the head of the final response.
async fn attempt(
    client: &mut Client,
    order: &PassOrder,
) -> Result<(Box<Upstream>, OriginResponse), PassError> {
    let shared = client.shared.clone();
    let patience = shared.patience();
    let requested_ms = shared.clock.now_ms();
    let address =
        origin::address_of(&order.way.route, shared.address, patience).await.map_err(PassError::Origin)?;
    let has_body = !matches!(order.body, BodyFraming::None | BodyFraming::Length(0));
    let take = |received: Received<'_>| {
        let times = Times { requested_ms, received_ms: shared.clock.now_ms() };
        OriginResponse::of(&received.head, &order.method, &shared.name, times)
    };
    let (origin, origin_response) = if is_idempotent(&order.method) && !has_body {
        let interim = Interim::default();
        let keep = |head: &ResponseHead<'_>| interim.push(head, &shared.name);
        let requested = shared.pool.exchange(address, &order.request, patience, keep, take);
        let taken = interim.pass_on(&mut client.exchange, requested).await.map_err(PassError::Client)?;
        taken.map_err(upstream_fault)?
    } else {
        // This cannot be sent twice, so it does not risk a connection that the origin may just be closing. Over HTTP/2 an origin says
        // what it has not acted on.
        let mut tries = 1..=MOST_TRIES;
        let mut sent = Sent::default();
        loop {
            let connecting = unless_gone(&client.exchange.connection, shared.pool.connect(address, patience));
            let mut origin = connecting.await.map_err(PassError::Client)?.map_err(upstream_fault)?;
            match upload(client, &mut origin, order, &mut sent, &take).await {
                Err(PassError::Origin(Failure::Upstream(UpstreamError::Unprocessed(_))))
                    if sent.is_kept && tries.next().is_some() => {}
                taken => break (origin, taken?),
            }
        }
    };
    match origin_response {
        Ok(origin_response) => Ok((origin, origin_response)),
        Err(error) => Err(upstream_fault(UpstreamError::BadResponse(address, error))),
    }
}

/// What was sent of a body, to be sent again where the origin has not acted on it.
struct Sent {
    body: Vec<u8>,
    /// All of it is here: there was not too much of it.
    is_kept: bool,
}

impl Default for Sent {
    fn default() -> Self {
        Self { body: Vec::new(), is_kept: true }
    }
}

impl Sent {
    fn note(&mut self, part: &[u8]) {
        self.is_kept &= self.body.len() + part.len() <= MOST_KEPT_BYTES;
        if self.is_kept {
            self.body.extend_from_slice(part);
        } else {
            self.body = Vec::new();
        }
    }
}

/// Sends the request and its body while listening for a response that does not wait for it; what `take` takes of the final head.
async fn upload<T>(
    client: &mut Client,
    origin: &mut Upstream,
    order: &PassOrder,
    sent: &mut Sent,
    take: impl Fn(Received<'_>) -> T,
) -> Result<T, PassError> {
    let limit = client.shared.limits.origin_response;
    let patience = client.shared.patience();
    let name = client.shared.name.clone();
    let is_chunked = order.body == BodyFraming::Chunked;
    let mut awaits_continue = order.expects_continue && client.exchange.takes_interim();
    // Over HTTP/1.1 nobody says what was not acted on.
    sent.is_kept &= origin.is_http2();
    origin.send(&[&order.request], patience).await.map_err(upstream_fault)?;
    if !sent.body.is_empty() {
        origin.send_part(&sent.body, is_chunked, patience).await.map_err(upstream_fault)?;
    }
    while !client.exchange.is_read() {
        let interim_or_taken = |received: Received<'_>| match received.head.is_interim() {
            true => Err((received.head.status, interim::passing(&received.head, &name))),
            false => Ok(take(received)),
        };
        tokio::select! {
            biased;
            head = origin.head(limit, interim_or_taken) => match head.map_err(upstream_fault)? {
                Err((101, _)) => {
                    return Err(upstream_fault(UpstreamError::BadResponse(origin.address, SWITCHING)));
                }
                Err((100, _)) => {
                    if std::mem::take(&mut awaits_continue) {
                        client.exchange.send_continue().await.map_err(PassError::Client)?;
                    }
                }
                Err((_, passing)) => {
                    if let Some(passing) = passing.filter(|_| client.exchange.takes_interim()) {
                        client.exchange.write(&[&passing]).await.map_err(PassError::Client)?;
                    }
                }
                Ok(taken) => {
                    // Decided without the body; what is left of it is nobody's business any more.
                    client.exchange.give_up();
                    return Ok(taken);
                }
            },
            part = client.exchange.next_part() => {
                let Some(part) = part.map_err(client_fault)? else { break };
                sent.note(&part);
                let sending = origin.send_part(&part, is_chunked, patience);
                let sent_part = unless_gone(&client.exchange.connection, sending).await;
                if let Err(error) = sent_part.map_err(PassError::Client)? {
                    if matches!(error, UpstreamError::Unprocessed(_)) && sent.is_kept {
                        return Err(upstream_fault(error));
                    }
                    // It may have sent a response before it closed.
                    client.exchange.give_up();
                    break;
                }
            }
        }
    }
    if client.exchange.is_read() && is_chunked {
        // If this fails, so does the wait for the response.
        let _ = origin.send(&[LAST_CHUNK], patience).await;
    }
    let interim = Interim::default();
    let last = origin.final_head_after(limit, |head| interim.push(head, &name), take);
    interim.pass_on(&mut client.exchange, last).await.map_err(PassError::Client)?.map_err(upstream_fault)
}

fn upstream_fault(error: UpstreamError) -> PassError {
    PassError::Origin(error.into())
}

fn client_fault(error: BodyError) -> PassError {
    match error {
        BodyError::Truncated => PassError::Client(io::ErrorKind::UnexpectedEof.into()),
        BodyError::Io(error) if error.kind() == io::ErrorKind::TimedOut => PassError::Slow,
        BodyError::Io(error) => PassError::Client(error),
        BodyError::Coding(error) => PassError::BadBody(error),
    }
}

/// Sends the response on.
async fn relay(
    client: &mut Client,
    order: &PassOrder,
    mut origin: Box<Upstream>,
    origin_response: OriginResponse,
) -> io::Result<()> {
    let shared = client.shared.clone();
    let response = &origin_response.response;
    if let Some(fallback) = order.fallback.as_ref().filter(|_| is_failure(response.status)) {
        shared.count(|c| c.origin_errors += 1);
        return fallback.send(client, Some(response.status)).await;
    }
    if invalidates(order.class, response.status) {
        shared.invalidate(&order.key);
    }
    if order.class == MethodClass::Head {
        drop_if_outdated(&shared, order, &origin_response);
    }
    let framing = match (origin_response.framing, origin_response.described_length) {
        (BodyFraming::None, Some(bytes)) if order.class == MethodClass::Head => Framing::Described(bytes),
        (framing, _) => client.exchange.framing_of(response.status, framing),
    };
    client.send_head(response, Handling::passed(order.why), framing).await?;
    let mut body = BodyReader::new(origin_response.framing);
    let limit = shared.limits.origin_response;
    loop {
        let part = body.next(&mut origin.connection, limit);
        match unless_gone(&client.exchange.connection, part).await? {
            Ok(Some(chunk)) => client.send_body(&[chunk], framing).await?,
            Ok(None) => break,
            Err(_) => {
                shared.count(|c| c.origin_errors += 1);
                return Err(client.exchange.break_off(framing));
            }
        }
    }
    if framing == Framing::Chunked {
        client.send_body(&[], framing).await?;
    }
    // A response that came before the whole request was sent leaves the connection in the middle of that
    // request.
    if origin_response.persists && !client.exchange.leaves_unread {
        shared.pool.put_back(origin);
    }
    Ok(())
}

/// The response to a HEAD may show that what is stored is no longer what the origin has (RFC 9111, 4.3.5).
fn drop_if_outdated(shared: &Shared, order: &PassOrder, origin_response: &OriginResponse) {
    let Ok(Some((request, _))) = RequestHead::parse(&order.request) else { return };
    let mut store = shared.store.borrow_mut();
    if let Found::Response(stored) = store.find(&order.key, request.headers()) {
        let is_other_length = origin_response.described_length.is_some_and(|bytes| bytes != stored.length);
        let is_other =
            origin_response.response.validators() != stored.response.validators() || is_other_length;
        if origin_response.response.status == 200 && is_other {
            store.remove(&order.key);
        }
    }
}
