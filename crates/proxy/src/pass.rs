//! How does an exchange go through that the store has no part in: POST and the like, HEAD that is not stored,
//! parts of what is not stored, requests with a body?

use std::io::{self, IoSlice};
use std::rc::Rc;

use assay_cache::freshness::is_failure;
use assay_cache::storage::{MethodClass, invalidates, is_idempotent};
use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, ChunkError, LAST_CHUNK, chunk_head};
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;

use crate::ask::Ask;
use crate::origin::{self, Answer, Failure};
use crate::peers::Source;
use crate::reply::Times;
use crate::respond::{Client, Framing, Handling, Why};
use crate::shared::Shared;
use crate::store::{Found, Key, Stored};
use crate::target::{Route, Target};
use assay_plane::body::{BodyError, BodyReader};
use assay_plane::fields;
use assay_plane::upstream::{self, Upstream, UpstreamError};
use assay_plane::wire::{Chunk, Input};

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

/// Who answers in the end what no cache has.
pub struct Way {
    /// Where that is.
    pub route: Route,
    /// It is a parent, and is asked for this URL; none: it is the origin.
    parent_url: Option<String>,
}

impl Way {
    /// To the origin, or, where that may not be asked, to a parent.
    pub fn to(shared: &Shared, target: &Target<'_>) -> Self {
        let url =
            shared.peers.never_direct().then(|| target.url(shared.routes.fallback_authority())).flatten();
        match url.as_deref().and_then(|url| shared.peers.only_way(url)) {
            Some(parent) => Self { route: Route::Address(parent), parent_url: url },
            None => Self { route: shared.routes.route(target), parent_url: None },
        }
    }

    /// Who that is.
    pub fn source(&self) -> Source {
        if self.parent_url.is_some() { Source::Parent } else { Source::Origin }
    }

    /// Counts a request on its way.
    pub fn count(&self, shared: &Shared) {
        match self.source() {
            Source::Parent => shared.count_peers(|c| c.parent_fetches += 1),
            Source::Origin | Source::Sibling => shared.count(|c| c.origin_requests += 1),
        }
    }

    /// `METHOD path HTTP/1.1` and `Host`.
    pub fn write_request_line(
        &self,
        shared: &Shared,
        method: &str,
        target: &Target<'_>,
        request: &mut Vec<u8>,
    ) {
        write_request_line(shared, method, target, self.parent_url.as_deref(), request);
    }
}

fn write_request_line(
    shared: &Shared,
    method: &str,
    target: &Target<'_>,
    url: Option<&str>,
    request: &mut Vec<u8>,
) {
    request.extend_from_slice(method.as_bytes());
    request.push(b' ');
    match url {
        Some(url) => request.extend_from_slice(url.as_bytes()),
        None => target.write_path(request),
    }
    request.extend_from_slice(b" HTTP/1.1\r\n");
    let authority = target.authority.unwrap_or(shared.routes.fallback_authority());
    fields::append(request, b"Host", authority.as_bytes());
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

/// Passes the request on, and its body, which follows in `input`; then the answer back.
pub async fn run(client: &mut Client, input: &mut Input, order: PassOrder) -> io::Result<()> {
    client.shared.count(|c| c.passed += 1);
    order.way.count(&client.shared);
    let asked_ms = client.shared.clock.now_ms();
    let refusal = match ask(client, input, &order).await {
        Ok((origin, length)) => match relay(client, &order, origin, length, asked_ms).await? {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        },
        Err(PassError::Client(error)) => return Err(error),
        Err(PassError::BadBody(error)) => {
            (client.persists, client.leaves_unread) = (false, true);
            return client.send_error(400, &error.to_string(), None, false).await;
        }
        Err(PassError::Origin(failure)) => failure,
    };
    client.shared.count(|c| c.origin_errors += 1);
    if !matches!(order.body, BodyFraming::None | BodyFraming::Length(0)) {
        // How much of the body was read is not known.
        (client.persists, client.leaves_unread) = (false, true);
    }
    if let Some(fallback) = &order.fallback {
        return fallback.send(client, None).await;
    }
    let is_head = order.class == MethodClass::Head;
    let handling = Some(Handling::passed(order.why));
    client.send_error(refusal.status(), &refusal.to_string(), handling, is_head).await
}

/// Sends the request and waits for the head of the final answer.
async fn ask(
    client: &mut Client,
    input: &mut Input,
    order: &PassOrder,
) -> Result<(Upstream, usize), PassError> {
    let shared = client.shared.clone();
    let patience = shared.patience();
    let address =
        origin::address_of(&order.way.route, shared.address, patience).await.map_err(PassError::Origin)?;
    let has_body = !matches!(order.body, BodyFraming::None | BodyFraming::Length(0));
    if is_idempotent(&order.method) && !has_body {
        let asked = upstream::exchange(&shared.pool, &shared.scratch, address, &order.request, patience);
        return asked.await.map_err(upstream_fault);
    }
    // This cannot be sent twice, so it does not risk a connection that the origin may just be closing.
    let mut origin = Upstream::connect(address, patience).await.map_err(upstream_fault)?;
    origin.send(&mut [IoSlice::new(&order.request)], patience).await.map_err(upstream_fault)?;
    let length = upload(client, input, &mut origin, order).await?;
    Ok((origin, length))
}

/// Sends the body while listening for an answer that does not wait for it: the length of the final head.
async fn upload(
    client: &mut Client,
    input: &mut Input,
    origin: &mut Upstream,
    order: &PassOrder,
) -> Result<usize, PassError> {
    let shared = client.shared.clone();
    let (patience, scratch) = (shared.patience(), &shared.scratch);
    let mut body = BodyReader::new(order.body);
    let mut awaits_continue = order.expects_continue && client.takes_interim();
    while !body.is_done() {
        tokio::select! {
            biased;
            head = origin.head(scratch, patience) => match head.map_err(upstream_fault)? {
                (length, status @ (100 | 102..=199)) => {
                    origin.pass_over_interim(length).map_err(upstream_fault)?;
                    if status == 100 && std::mem::take(&mut awaits_continue) {
                        let go_on = client.send_continue().await;
                        go_on.map_err(PassError::Client)?;
                    }
                }
                (length, _) => {
                    // Decided without the body; what is left of it is nobody's business any more.
                    (client.persists, client.leaves_unread) = (false, true);
                    return Ok(length);
                }
            },
            part = body.next(&mut client.stream, input, scratch, shared.limits.client_read) => {
                let part = part.map_err(client_fault)?;
                if send_part(origin, &shared, part, order.body).await.is_err() {
                    // It may have answered before it closed.
                    (client.persists, client.leaves_unread) = (false, true);
                    break;
                }
            }
        }
    }
    if body.is_done() && order.body == BodyFraming::Chunked {
        // If this fails, so does the wait for the answer.
        let _ = origin.send(&mut [IoSlice::new(LAST_CHUNK)], patience).await;
    }
    origin.final_head(scratch, patience).await.map_err(upstream_fault)
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

async fn send_part(
    origin: &mut Upstream,
    shared: &Shared,
    part: Option<Chunk>,
    framing: BodyFraming,
) -> Result<(), UpstreamError> {
    let Some(chunk) = part else { return Ok(()) };
    let patience = shared.patience();
    if framing != BodyFraming::Chunked {
        return origin.send(&mut [IoSlice::new(&chunk)], patience).await;
    }
    let mut room = [0; CHUNK_HEAD_BYTES];
    let size_line = chunk_head(chunk.len() as u64, &mut room);
    let mut slices = [IoSlice::new(size_line), IoSlice::new(&chunk), IoSlice::new(CHUNK_END)];
    origin.send(&mut slices, patience).await
}

/// Sends the answer on. The inner error: it is of no use, and nothing was sent.
async fn relay(
    client: &mut Client,
    order: &PassOrder,
    mut origin: Upstream,
    length: usize,
    asked_ms: i64,
) -> io::Result<Result<(), Failure>> {
    let shared = client.shared.clone();
    let times = Times { asked_ms, received_ms: shared.clock.now_ms() };
    let answer = match Answer::take(&mut origin, length, &order.method, &shared.name, times) {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error.into())),
    };
    let reply = &answer.reply;
    if let Some(fallback) = order.fallback.as_ref().filter(|_| is_failure(reply.status)) {
        shared.count(|c| c.origin_errors += 1);
        return fallback.send(client, Some(reply.status)).await.map(Ok);
    }
    if invalidates(order.class, reply.status) {
        shared.invalidate(&order.key);
    }
    if order.class == MethodClass::Head {
        drop_if_outdated(&shared, order, &answer);
    }
    let framing = match (answer.framing, answer.described_length) {
        (BodyFraming::None, Some(bytes)) if order.class == MethodClass::Head => Framing::Described(bytes),
        (BodyFraming::None, _) => Framing::None,
        (BodyFraming::Length(bytes), _) => client.framing(reply.status, Some(bytes)),
        (BodyFraming::Chunked | BodyFraming::UntilClose, _) => client.framing(reply.status, None),
    };
    client.send_head(reply, Handling::passed(order.why), framing).await?;
    let mut body = BodyReader::new(answer.framing);
    let limit = shared.limits.origin_reply;
    loop {
        match body.next(&mut origin.stream, &mut origin.input, &shared.scratch, limit).await {
            Ok(Some(chunk)) => client.send_body(&[chunk], framing).await?,
            Ok(None) => break,
            Err(_) => {
                shared.count(|c| c.origin_errors += 1);
                return Err(client.break_off(framing));
            }
        }
    }
    if framing == Framing::Chunked {
        client.send_body(&[], framing).await?;
    }
    // An answer that came before the whole request was sent leaves the connection in the middle of that
    // request.
    if answer.persists && !client.leaves_unread {
        shared.pool.put_back(origin);
    }
    Ok(Ok(()))
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
