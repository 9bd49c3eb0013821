//! Exchanges that the store has no part in: POST and the like, HEAD that is not stored, parts of what is not stored, requests
//! with a body.

use std::io;
use std::rc::Rc;

use assay_cache::freshness::is_failure;
use assay_cache::storage::{MethodClass, invalidates, is_idempotent};
use assay_http::chunked::{ChunkError, LAST_CHUNK};
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;

use crate::ask::Ask;
use crate::handling::{Handling, Why};
use crate::origin::{self, Answer, Failure};
use crate::reply::Times;
use crate::respond::Client;
use crate::shared::Shared;
use crate::store::{Found, Key, Stored};
use crate::target::Target;
use crate::way::Way;
use assay_plane::body::{BodyError, BodyReader};
use assay_plane::exchange::Framing;
use assay_plane::fields;
use assay_plane::upstream::{Received, Upstream, UpstreamError};

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
    /// What a HEAD may be answered with if the origin fails.
    fallback: Option<Fallback>,
}

/// A stale reply that may be shown, should the origin fail.
pub struct Fallback {
    stored: Rc<Stored>,
    /// The condition of the request is met by it.
    is_not_modified: bool,
}

impl Fallback {
    /// What is stored, if this request may be answered with it in that case.
    pub fn new(shared: &Shared, ask: &Ask<'_>, stored: Rc<Stored>) -> Option<Self> {
        let reply = &stored.reply;
        let may =
            reply.freshness.serves_on_error(&ask.control, shared.stale_if_error_s, shared.clock.now_ms());
        let is_not_modified = reply.is_not_modified_for(&ask.conditions);
        may.then_some(Self { stored, is_not_modified })
    }

    /// Sends it; `status` is what the origin answered, if it did.
    async fn send(&self, client: &mut Client, status: Option<u16>) -> io::Result<()> {
        client.shared.count(|c| c.hits += 1);
        let now_ms = client.shared.clock.now_ms();
        let freshness = &self.stored.reply.freshness;
        let ttl_s = freshness.remaining_ms(now_ms).div_euclid(1000);
        let handling = Handling::OnError { ttl_s, status, is_collapsed: false };
        if self.is_not_modified {
            let age_s = Some(freshness.age_s(now_ms));
            return client.send_not_modified(&self.stored.reply, handling, age_s).await;
        }
        client.send_stored_head(&self.stored, handling, now_ms).await
    }
}

impl PassOrder {
    /// Of a request that goes through for this reason.
    pub fn new(shared: &Shared, ask: &Ask<'_>, target: &Target<'_>, key: &[u8], why: Why) -> Self {
        let head = &ask.head;
        let body = head.body();
        let way = Way::to(shared, target);
        let mut request = Vec::with_capacity(512);
        way.write_request_line(shared, head.method, target, &mut request);
        fields::append_end_to_end(
            &mut request,
            head.headers(),
            (head.facts.version, &shared.name),
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
            way,
            key: key.into(),
            class: ask.class,
            method: head.method.into(),
            request,
            body,
            expects_continue: head.expect_continue,
            why,
            fallback: None,
        }
    }

    /// To be answered with this if the origin fails.
    pub fn or(self, fallback: Option<Fallback>) -> Self {
        Self { fallback, ..self }
    }
}

/// Why an exchange did not come about.
enum PassError {
    /// The client's connection.
    Client(io::Error),
    /// The client's body makes no sense.
    BadBody(ChunkError),
    /// The origin.
    Origin(Failure),
}

/// Passes the request on, and its body; then the answer back.
pub async fn run(client: &mut Client, order: PassOrder) -> io::Result<()> {
    client.shared.count(|c| c.passed += 1);
    order.way.count(&client.shared);
    let refusal = match ask(client, &order).await {
        Ok((origin, answer)) => return relay(client, &order, origin, answer).await,
        Err(PassError::Client(error)) => return Err(error),
        Err(PassError::BadBody(error)) => {
            client.exchange.give_up();
            return client.send_error(400, &error.to_string(), None, false).await;
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
    let is_head = order.class == MethodClass::Head;
    let handling = Some(Handling::passed(order.why));
    client.send_error(refusal.status(), &refusal.to_string(), handling, is_head).await
}

/// Sends the request and waits for the head of the final answer.
async fn ask(client: &mut Client, order: &PassOrder) -> Result<(Box<Upstream>, Answer), PassError> {
    let shared = client.shared.clone();
    let patience = shared.patience();
    let asked_ms = shared.clock.now_ms();
    let address =
        origin::address_of(&order.way.route, shared.address, patience).await.map_err(PassError::Origin)?;
    let has_body = !matches!(order.body, BodyFraming::None | BodyFraming::Length(0));
    let take = |received: Received<'_>| {
        let times = Times { asked_ms, received_ms: shared.clock.now_ms() };
        Answer::of(&received.head, &order.method, &shared.name, times)
    };
    let (origin, answer) = if is_idempotent(&order.method) && !has_body {
        shared.pool.exchange(address, &order.request, patience, take).await.map_err(upstream_fault)?
    } else {
        // This cannot be sent twice, so it does not risk a connection that the origin may just be closing.
        let mut origin = shared.pool.connect(address, patience).await.map_err(upstream_fault)?;
        origin.send(&[&order.request], patience).await.map_err(upstream_fault)?;
        let answer = upload(client, &mut origin, order, take).await?;
        (origin, answer)
    };
    match answer {
        Ok(answer) => Ok((origin, answer)),
        Err(error) => Err(upstream_fault(UpstreamError::BadReply(address, error))),
    }
}

/// Sends the body while listening for an answer that does not wait for it; what `take` takes of the final head.
async fn upload<T>(
    client: &mut Client,
    origin: &mut Upstream,
    order: &PassOrder,
    take: impl Fn(Received<'_>) -> T,
) -> Result<T, PassError> {
    let limit = client.shared.limits.origin_reply;
    let patience = client.shared.patience();
    let is_chunked = order.body == BodyFraming::Chunked;
    let mut awaits_continue = order.expects_continue && client.exchange.takes_interim();
    while !client.exchange.is_read() {
        let interim_or_taken = |received: Received<'_>| match received.head.is_interim() {
            true => Err(received.head.status),
            false => Ok(take(received)),
        };
        tokio::select! {
            biased;
            head = origin.head(limit, interim_or_taken) => match head.map_err(upstream_fault)? {
                Err(status) => {
                    if status == 100 && std::mem::take(&mut awaits_continue) {
                        client.exchange.send_continue().await.map_err(PassError::Client)?;
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
                if origin.send_part(&part, is_chunked, patience).await.is_err() {
                    // It may have answered before it closed.
                    client.exchange.give_up();
                    break;
                }
            }
        }
    }
    if client.exchange.is_read() && is_chunked {
        // If this fails, so does the wait for the answer.
        let _ = origin.send(&[LAST_CHUNK], patience).await;
    }
    origin.final_head(limit, take).await.map_err(upstream_fault)
}

fn upstream_fault(error: UpstreamError) -> PassError {
    PassError::Origin(error.into())
}

fn client_fault(error: BodyError) -> PassError {
    match error {
        BodyError::Truncated => PassError::Client(io::ErrorKind::UnexpectedEof.into()),
        BodyError::Io(error) => PassError::Client(error),
        BodyError::Coding(error) => PassError::BadBody(error),
    }
}

/// Sends the answer on.
async fn relay(
    client: &mut Client,
    order: &PassOrder,
    mut origin: Box<Upstream>,
    answer: Answer,
) -> io::Result<()> {
    let shared = client.shared.clone();
    let reply = &answer.reply;
    if let Some(fallback) = order.fallback.as_ref().filter(|_| is_failure(reply.status)) {
        shared.count(|c| c.origin_errors += 1);
        return fallback.send(client, Some(reply.status)).await;
    }
    if invalidates(order.class, reply.status) {
        shared.invalidate(&order.key);
    }
    if order.class == MethodClass::Head {
        drop_if_outdated(&shared, order, &answer);
    }
    let framing = match (answer.framing, answer.described_length) {
        (BodyFraming::None, Some(bytes)) if order.class == MethodClass::Head => Framing::Described(bytes),
        (framing, _) => client.exchange.framing_of(reply.status, framing),
    };
    client.send_head(reply, Handling::passed(order.why), framing).await?;
    let mut body = BodyReader::new(answer.framing);
    let limit = shared.limits.origin_reply;
    loop {
        match body.next(&mut origin.connection, limit).await {
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
    // An answer that came before the whole request was sent leaves the connection in the middle of that
    // request.
    if answer.persists && !client.exchange.leaves_unread {
        shared.pool.put_back(origin);
    }
    Ok(())
}

/// The answer to a HEAD may show that what is stored is no longer what the origin has (RFC 9111, 4.3.5).
fn drop_if_outdated(shared: &Shared, order: &PassOrder, answer: &Answer) {
    let Ok(Some((request, _))) = RequestHead::parse(&order.request) else { return };
    let mut store = shared.store.borrow_mut();
    if let Found::Reply(stored) = store.find(&order.key, request.headers()) {
        let is_other_length = answer.described_length.is_some_and(|bytes| bytes != stored.length);
        let is_other = answer.reply.validators() != stored.reply.validators() || is_other_length;
        if answer.reply.status == 200 && is_other {
            store.remove(&order.key);
        }
    }
}
