//! Fetching an object from its origin, once, for all simultaneous requests for it.
//!
//! A fetch is a task of its own: the client that caused it may go away. It *settles* when the head of the
//! response is there: then every waiting request decides whether that response suits it. The body follows through
//! a [`Flow`](assay_net::flow::Flow); when it is complete and may be stored, it is.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_cache::conditional::confirms;
use assay_cache::freshness::{RequestControl, is_failure};
use assay_cache::storage::{MethodClass, may_store};
use assay_cache::vary::Vary;
use assay_http::date::{DATE_BYTES, write_date};
use assay_http::head::{RequestHead, ResponseHead};
use tokio::task::spawn_local;
use tokio::time::Instant;

use crate::fetched::{Fetch, Fetched, Outcome, variant};
use crate::handling::Source;
use crate::origin::{self, Failure, OriginResponse};
use crate::peers;
use crate::prefetch::{Page, Reading};
use crate::response::Times;
use crate::shared::Shared;
use crate::store::{Key, Stored};
use crate::way::Way;
use assay_net::body::{BodyReader, Chunk};
use assay_net::fields;
use assay_net::flow::{End, Reader};
use assay_net::interim::Interim;
use assay_net::limits::LEAST_RATE;
use assay_net::upstream::{Received, Upstream, UpstreamError};

/// The head of a response, and what follows it.
pub struct Heard {
    pub origin_response: OriginResponse,
    /// Where the body comes from.
    pub upstream: Box<Upstream>,
    pub source: Source,
    /// When the request was sent, in ticks of the store.
    pub began: u64,
}

/// What to fetch, and what for.
pub struct Order {
    /// Name of the resource.
    pub key: Key,
    /// The server that the request goes to if no other cache has the object.
    pub way: Way,
    /// The complete head for the origin, without conditions.
    pub request: Vec<u8>,
    /// The stale response that the origin may confirm.
    pub validating: Option<Rc<Stored>>,
    /// The URL that other caches are queried for first; none: they are not queried.
    pub peers_url: Option<String>,
    /// Directives of the client.
    pub control: RequestControl,
    /// The request has credentials.
    pub is_authorised: bool,
    /// Something is stored that this response makes obsolete.
    pub replaces: bool,
    /// What it may name is to be fetched too, if this is a page.
    pub page: Option<Page>,
    /// No client has requested it yet.
    pub is_unrequested: bool,
}

impl Order {
    /// What the fields that a response varies by are in the request.
    fn variant(&self, vary: &Vary) -> Vec<u8> {
        match RequestHead::parse(&self.request) {
            Ok(Some((head, _))) => variant(vary, head.headers()),
            _ => Vec::new(),
        }
    }
}

/// Begins a fetch; its first reader comes with it. `is_open`: others may join.
pub fn start(shared: &Rc<Shared>, order: Order, is_open: bool) -> (Rc<Fetch>, Reader) {
    let began = shared.store.borrow_mut().next_tick();
    let (fetch, reader) = Fetch::new();
    if is_open {
        shared.fetches.borrow_mut().insert(Rc::clone(&order.key), Rc::clone(&fetch));
    }
    let task = Task { fetch: Rc::clone(&fetch), shared: Rc::clone(shared), order, began };
    spawn_local(task.run());
    (fetch, reader)
}

/// Goes on with what a client has begun on its own: no other request may join. Its first reader comes with it.
pub fn go_on(shared: &Rc<Shared>, order: Order, heard: Heard) -> (Rc<Fetch>, Reader) {
    let (fetch, reader) = Fetch::new();
    let Heard { origin_response, upstream, source, began } = heard;
    let task = Task { fetch: Rc::clone(&fetch), shared: Rc::clone(shared), order, began };
    spawn_local(async move { task.deliver(origin_response, upstream, source).await });
    (fetch, reader)
}

/// What carries a fetch out.
struct Task {
    fetch: Rc<Fetch>,
    shared: Rc<Shared>,
    order: Order,
    /// When it began, in ticks of the store.
    began: u64,
}

impl Task {
    async fn run(self) {
        if let Err(failure) = self.fetch().await {
            self.shared.count(|c| c.origin_errors += 1);
            self.fetch.settle(match self.rescue() {
                Some(stored) => Outcome::Stale { stored, status: None },
                None => Outcome::Failed(Rc::new(self.unconfirmed(failure))),
            });
        }
        self.close();
    }

    /// Nobody can join any more.
    fn close(&self) {
        let mut fetches = self.shared.fetches.borrow_mut();
        if fetches.get(&self.order.key).is_some_and(|current| Rc::ptr_eq(current, &self.fetch)) {
            fetches.remove(&self.order.key);
        }
    }

    async fn fetch(&self) -> Result<(), Failure> {
        let (shared, order) = (&self.shared, &self.order);
        if let Some(url) = &order.peers_url
            && self.fetch_from_peers(url).await?
        {
            return Ok(());
        }
        let address = origin::address_of(&order.way.route, shared.address, shared.patience()).await?;
        let mut validating = order.validating.as_ref();
        loop {
            let request = conditional(&order.request, validating);
            order.way.count(shared);
            let (origin, origin_response, times) =
                get(shared, address, &request, &self.fetch.interim).await?;
            let status = origin_response.response.status;
            if let Some(stored) = is_failure(status).then(|| self.rescue()).flatten() {
                // Its connection goes with its body, which nobody wants.
                shared.count(|c| c.origin_errors += 1);
                self.fetch.settle(Outcome::Stale { stored, status: Some(status) });
                return Ok(());
            }
            if status != 304 {
                self.deliver(origin_response, origin, order.way.source()).await;
                return Ok(());
            }
            if origin_response.persists {
                shared.pool.put_back(origin);
            }
            let stored = validating.take().ok_or(Failure::BadConfirmation(address))?;
            if confirms(&origin_response.response.validators(), &stored.response.validators()) {
                let updated = stored.response.updated_by(&origin_response.response, times);
                let response = Rc::new(updated.map_err(|error| UpstreamError::BadResponse(address, error))?);
                self.confirm(Stored { response, ..Stored::clone(stored) });
                return Ok(());
            }
            // It confirmed another version than the one we have: fetch that.
        }
    }

    /// Requests the object from other caches, the most promising first; false: it is left to the origin.
    async fn fetch_from_peers(&self, url: &str) -> Result<bool, Failure> {
        let shared = &self.shared;
        let promising = shared.peers.choose(url).await;
        for peer in &promising {
            let request = peers::request(&self.order.request, url, peer.source);
            if !shared.peers.delay().is_zero() {
                tokio::time::sleep(shared.peers.delay()).await;
            }
            match get(shared, peer.address, &request, &self.fetch.interim).await {
                Err(_) => shared.peers.count(|c| c.peer_errors += 1),
                // Its store has changed since it said hit. The connection goes with a body that nobody wants.
                Ok((_, origin_response, _))
                    if peer.source == Source::Sibling && origin_response.response.status == 504 =>
                {
                    shared.peers.count(|c| c.false_hits += 1);
                }
                Ok((origin, origin_response, _)) => {
                    shared.peers.count_fetch(peer, &origin_response.response);
                    self.deliver(origin_response, origin, peer.source).await;
                    return Ok(true);
                }
            }
        }
        if shared.peers.never_direct() { Err(Failure::NoParent) } else { Ok(false) }
    }

    fn confirm(&self, stored: Stored) {
        let order = &self.order;
        // A request that forbids storing may still learn that what is stored is good.
        if may_store(MethodClass::Get, &order.control, order.is_authorised, &stored.response.facts).is_ok() {
            self.store(stored.clone());
        }
        self.fetch.settle(Outcome::Confirmed(Rc::new(stored)));
    }

    fn store(&self, stored: Stored) {
        if let Ok(Some((head, _))) = RequestHead::parse(&self.order.request) {
            self.shared.store.borrow_mut().insert(&self.order.key, head.headers(), stored, self.began);
        }
    }

    /// The stale response that may be sent because the origin has failed.
    fn rescue(&self) -> Option<Rc<Stored>> {
        let (shared, stored) = (&self.shared, self.order.validating.as_ref()?);
        let freshness = &stored.response.freshness;
        let now_ms = shared.clock.now_ms();
        let may = freshness.serves_on_error(&self.order.control, shared.stale_if_error_s, now_ms);
        may.then(|| Rc::clone(stored))
    }

    /// A failure of the origin, where it was to confirm what may not be used without it.
    fn unconfirmed(&self, failure: Failure) -> Failure {
        let stored = self.order.validating.as_ref();
        match failure {
            Failure::Upstream(error)
                if stored.is_some_and(|stored| stored.response.freshness.is_never_stale()) =>
            {
                Failure::Unconfirmed(error)
            }
            other => other,
        }
    }

    /// The response, of this status, is not stored: nobody else gets it, and what it makes obsolete goes.
    fn leave_to_one(&self, status: u16) {
        self.close();
        if self.order.replaces && status < 500 {
            self.shared.store.borrow_mut().remove(&self.order.key);
        }
    }

    /// Hands a full response to the requests that wait for it, and stores it. What comes more slowly than a client may is not stored:
    /// nobody could say how long it would take room from others.
    async fn deliver(&self, origin_response: OriginResponse, mut origin: Box<Upstream>, source: Source) {
        let (shared, order, flow) = (&self.shared, &self.order, &self.fetch.flow);
        let length = origin_response.body_length();
        let response = Rc::new(origin_response.response);
        let mut room = Room::default();
        let storable =
            may_store(MethodClass::Get, &order.control, order.is_authorised, &response.facts).is_ok();
        let is_copy = source == Source::Sibling && shared.peers.is_proxy_only();
        let may_be_kept = storable && !is_copy && response.vary != Vary::Everything;
        let is_admitted = may_be_kept && shared.store.borrow_mut().admits(&order.key);
        // Room is taken as the body comes: a length that is only announced takes none from others.
        let mut is_kept = is_admitted && length.unwrap_or(0) <= shared.store.borrow().largest_bytes();
        flow.keep(is_kept);
        // What is said instead of the object (an error, a redirection) says nothing about the object, nor does a request that forbids
        // storing, and what is refused now may be stored the next time.
        let is_refused = order.control.no_store || (may_be_kept && shared.store.borrow().is_selective());
        if is_kept || (matches!(response.status, 200..=299) && !is_copy && !is_refused) {
            shared.store.borrow_mut().note_shared(&order.key, order.is_authorised, is_kept);
        }
        if !is_kept {
            self.leave_to_one(response.status);
        }
        let variant = order.variant(&response.vary);
        let fetched = Fetched { response: Rc::clone(&response), length, is_shared: is_kept, source, variant };
        let mut reading = Reading::new(shared, order.page.as_ref(), &order.request, &fetched);
        self.fetch.settle(Outcome::Response(Rc::new(fetched)));
        let mut body = BodyReader::new(origin_response.framing);
        let (started, mut come) = (Instant::now(), 0);
        let end = loop {
            if !flow.is_wanted().await {
                break End::Broken;
            }
            let limit = shared.limits.origin_response;
            let next = tokio::select! {
                biased;
                next = body.next(&mut origin.connection, limit) => next,
                () = flow.until_unwanted() => break End::Broken,
            };
            match next {
                Ok(Some(chunk)) => {
                    shared.peers.count_bytes(source, chunk.len());
                    if reading.as_mut().is_some_and(|page| !page.push(shared, &chunk)) {
                        reading = None;
                    }
                    come += chunk.len() as u64;
                    let is_slow = started.elapsed() > limit + Duration::from_secs(come / LEAST_RATE);
                    if is_kept && (is_slow || !room.grow(shared, &order.key, chunk.len() as u64)) {
                        is_kept = false;
                        room.release(shared);
                        self.leave_to_one(response.status);
                        shared.store.borrow_mut().note_shared(&order.key, order.is_authorised, false);
                        flow.keep(false);
                    }
                    flow.append(chunk);
                }
                Ok(None) => break End::Complete,
                Err(_) => {
                    shared.count(|c| c.origin_errors += 1);
                    break End::Broken;
                }
            }
        };
        room.release(shared);
        if end == End::Complete {
            if origin_response.persists {
                shared.pool.put_back(origin);
            }
            let chunks: Option<Vec<Chunk>> = if is_kept { flow.all_chunks() } else { None };
            if let Some(chunks) = chunks {
                let stored = Stored::new(response, chunks);
                stored.is_unrequested.set(order.is_unrequested);
                self.store(stored);
            }
        }
        // After storing, so that there is no instant at which a new request finds neither the fetch nor the
        // object.
        self.close();
        flow.finish(end);
    }
}

/// Sends the request to a server: the connection, the head of its response, and when that was.
async fn get(
    shared: &Shared,
    address: SocketAddr,
    request: &[u8],
    interim: &Interim,
) -> Result<(Box<Upstream>, OriginResponse, Times), UpstreamError> {
    let requested_ms = shared.clock.now_ms();
    let take = |received: Received<'_>| {
        let times = Times { requested_ms, received_ms: shared.clock.now_ms() };
        OriginResponse::of(&received.head, "GET", &shared.name, times)
            .map(|origin_response| (origin_response, times))
    };
    let keep = |head: &ResponseHead<'_>| interim.push(head, &shared.name);
    let (upstream, taken) = shared.pool.exchange(address, request, shared.patience(), keep, take).await?;
    let (mut origin_response, times) = taken.map_err(|error| UpstreamError::BadResponse(address, error))?;
    origin_response.response =
        origin_response.response.with_default_lifetime(shared.default_lifetime_s, times);
    Ok((upstream, origin_response, times))
}

/// Room in the store that is reserved for a body on its way.
#[derive(Default)]
struct Room {
    bytes: u64,
}

impl Room {
    /// Takes more for this object; false when it is too large, or there is no room for it.
    fn grow(&mut self, shared: &Shared, key: &[u8], bytes: u64) -> bool {
        let mut store = shared.store.borrow_mut();
        let fits = self.bytes.saturating_add(bytes) <= store.largest_bytes() && store.reserve(key, bytes);
        if fits {
            self.bytes += bytes;
        }
        fits
    }

    fn release(&mut self, shared: &Shared) {
        shared.store.borrow_mut().release(std::mem::take(&mut self.bytes));
    }
}

/// The request with conditions that validate the stored response.
fn conditional<'r>(request: &'r [u8], validating: Option<&Rc<Stored>>) -> Cow<'r, [u8]> {
    let Some(stored) = validating else { return Cow::Borrowed(request) };
    let mut conditional = request[..request.len() - 2].to_vec();
    let validators = stored.response.validators();
    if let Some(etag) = validators.etag {
        fields::append(&mut conditional, b"If-None-Match", etag);
    }
    if let Some(unix_s) = validators.last_modified_s.and_then(|s| u64::try_from(s).ok()) {
        let mut date = [0; DATE_BYTES];
        write_date(unix_s, &mut date);
        fields::append(&mut conditional, b"If-Modified-Since", &date);
    }
    conditional.extend_from_slice(b"\r\n");
    Cow::Owned(conditional)
}
