//! Fetching of an object from its origin, once for all simultaneous requests for it.
//!
//! A fetch is a task of its own: the client that caused it may go away. It *settles* when the head of the response has arrived:
//! then every waiting request decides whether that response suits it. The body follows through a [`SharedBody`](assay_net::shared_body::SharedBody),
//! and is stored once complete, if it may be.

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

use crate::cache_status::ResponseSource;
use crate::fetched::{Fetch, FetchOutcome, FetchedHead, variant};
use crate::origin::{self, OriginFailure, OriginHead};
use crate::peers;
use crate::prefetch::{PageReader, PrefetchPage};
use crate::response::ResponseTimes;
use crate::shared::ProxyShared;
use crate::store::{CacheKey, StoredResponse};
use crate::upstream_route::UpstreamRoute;
use assay_net::body::{BodyReader, Chunk};
use assay_net::fields;
use assay_net::interim::InterimResponses;
use assay_net::limits::MIN_BODY_RATE;
use assay_net::shared_body::{BodyEnd, SharedBodyReader};
use assay_net::upstream::{ReceivedHead, Upstream, UpstreamError};

/// Head of a response whose body has not been read.
pub struct UnreadResponse {
    pub origin_head: OriginHead,
    /// Connection with the body.
    pub upstream: Box<Upstream>,
    pub source: ResponseSource,
    /// Tick of the store at which the request was sent.
    pub began: u64,
}

/// Parameters of a fetch.
pub struct FetchPlan {
    pub key: CacheKey,
    /// Server to use unless another cache has the object.
    pub route: UpstreamRoute,
    /// Complete head for the origin, without conditions.
    pub request: Vec<u8>,
    /// Stale response that the origin may confirm.
    pub validating: Option<Rc<StoredResponse>>,
    /// URL for queries to other caches; `None`: they are not queried.
    pub peers_url: Option<String>,
    /// Directives of the client.
    pub control: RequestControl,
    /// The request has credentials.
    pub is_authorised: bool,
    /// A stored response becomes obsolete by this one.
    pub replaces: bool,
    /// Set if the resources that a page names are to be prefetched.
    pub page: Option<PrefetchPage>,
    /// Prefetched: no client has requested it yet.
    pub is_unrequested: bool,
}

impl FetchPlan {
    /// Values, in the request, of the fields that a response varies by.
    fn variant(&self, vary: &Vary) -> Vec<u8> {
        match RequestHead::parse(&self.request) {
            Ok(Some((head, _))) => variant(vary, head.headers()),
            _ => Vec::new(),
        }
    }
}

/// Starts a fetch and returns it with its first reader. `is_open`: other requests may join.
pub fn start(shared: &Rc<ProxyShared>, plan: FetchPlan, is_open: bool) -> (Rc<Fetch>, SharedBodyReader) {
    let began = shared.store.borrow_mut().next_tick();
    let (fetch, reader) = Fetch::new();
    if is_open {
        shared.fetches.borrow_mut().insert(Rc::clone(&plan.key), Rc::clone(&fetch));
    }
    let task = FetchTask { fetch: Rc::clone(&fetch), shared: Rc::clone(shared), plan, began };
    spawn_local(task.run());
    (fetch, reader)
}

/// Continues a response that a client received on its own. Other requests cannot join.
pub fn resume(
    shared: &Rc<ProxyShared>,
    plan: FetchPlan,
    unread: UnreadResponse,
) -> (Rc<Fetch>, SharedBodyReader) {
    let (fetch, reader) = Fetch::new();
    let UnreadResponse { origin_head, upstream, source, began } = unread;
    let task = FetchTask { fetch: Rc::clone(&fetch), shared: Rc::clone(shared), plan, began };
    spawn_local(async move { task.deliver(origin_head, upstream, source).await });
    (fetch, reader)
}

/// Task that executes a fetch.
struct FetchTask {
    fetch: Rc<Fetch>,
    shared: Rc<ProxyShared>,
    plan: FetchPlan,
    /// Tick of the store at which the fetch began.
    began: u64,
}

impl FetchTask {
    async fn run(self) {
        if let Err(failure) = self.fetch().await {
            self.shared.count(|c| c.origin_errors += 1);
            self.fetch.settle(match self.stale_fallback() {
                Some(stored) => FetchOutcome::Stale { stored, status: None },
                None => FetchOutcome::Failed(Rc::new(self.unconfirmed(failure))),
            });
        }
        self.close();
    }

    /// Removes the fetch from those that can be joined.
    fn close(&self) {
        let mut fetches = self.shared.fetches.borrow_mut();
        if fetches.get(&self.plan.key).is_some_and(|current| Rc::ptr_eq(current, &self.fetch)) {
            fetches.remove(&self.plan.key);
        }
    }

    async fn fetch(&self) -> Result<(), OriginFailure> {
        let (shared, plan) = (&self.shared, &self.plan);
        if let Some(url) = &plan.peers_url
            && self.fetch_from_peers(url).await?
        {
            return Ok(());
        }
        let address =
            origin::address_of(&plan.route.destination, shared.address, shared.upstream_timeouts()).await?;
        let mut validating = plan.validating.as_ref();
        loop {
            let request = conditional(&plan.request, validating);
            plan.route.count(shared);
            let (origin, origin_head, times) = get(shared, address, &request, &self.fetch.interim).await?;
            let status = origin_head.response.status;
            if let Some(stored) = is_failure(status).then(|| self.stale_fallback()).flatten() {
                // The body is unwanted, so the connection is closed.
                shared.count(|c| c.origin_errors += 1);
                self.fetch.settle(FetchOutcome::Stale { stored, status: Some(status) });
                return Ok(());
            }
            if status != 304 {
                self.deliver(origin_head, origin, plan.route.source()).await;
                return Ok(());
            }
            if origin_head.persists {
                shared.pool.put_back(origin);
            }
            let stored = validating.take().ok_or(OriginFailure::BadConfirmation(address))?;
            if confirms(&origin_head.response.validators(), &stored.response.validators()) {
                let updated = stored.response.updated_by(&origin_head.response, times);
                let response = Rc::new(updated.map_err(|error| UpstreamError::BadResponse(address, error))?);
                self.confirm(StoredResponse { response, ..StoredResponse::clone(stored) });
                return Ok(());
            }
            // Another version than the stored one was confirmed: fetch that.
        }
    }

    /// Requests the object from other caches, the most promising first; false: it is left to the origin.
    async fn fetch_from_peers(&self, url: &str) -> Result<bool, OriginFailure> {
        let shared = &self.shared;
        let candidates = shared.peers.choose(url).await;
        for peer in &candidates {
            let request = peers::request(&self.plan.request, url, peer.source);
            if !shared.peers.delay().is_zero() {
                tokio::time::sleep(shared.peers.delay()).await;
            }
            match get(shared, peer.address, &request, &self.fetch.interim).await {
                Err(_) => shared.peers.count(|c| c.peer_errors += 1),
                // The sibling has evicted the object since it said hit. The body is unwanted, so the connection is closed.
                Ok((_, origin_head, _))
                    if peer.source == ResponseSource::Sibling && origin_head.response.status == 504 =>
                {
                    shared.peers.count(|c| c.false_hits += 1);
                }
                Ok((origin, origin_head, _)) => {
                    shared.peers.count_fetch(peer, &origin_head.response);
                    self.deliver(origin_head, origin, peer.source).await;
                    return Ok(true);
                }
            }
        }
        if shared.peers.never_direct() { Err(OriginFailure::NoParent) } else { Ok(false) }
    }

    fn confirm(&self, stored: StoredResponse) {
        let plan = &self.plan;
        // A request that forbids storing may still update what is stored.
        if may_store(MethodClass::Get, &plan.control, plan.is_authorised, &stored.response.facts).is_ok() {
            self.store(stored.clone());
        }
        self.fetch.settle(FetchOutcome::Confirmed(Rc::new(stored)));
    }

    fn store(&self, stored: StoredResponse) {
        if let Ok(Some((head, _))) = RequestHead::parse(&self.plan.request) {
            self.shared.store.borrow_mut().insert(&self.plan.key, head.headers(), stored, self.began);
        }
    }

    /// Stale response that may be sent because the origin has failed.
    fn stale_fallback(&self) -> Option<Rc<StoredResponse>> {
        let (shared, stored) = (&self.shared, self.plan.validating.as_ref()?);
        let freshness = &stored.response.freshness;
        let now_ms = shared.clock.now_ms();
        let may = freshness.serves_on_error(&self.plan.control, shared.stale_if_error_s, now_ms);
        may.then(|| Rc::clone(stored))
    }

    /// Adjusts the failure where the stored response may not be used without confirmation (`must-revalidate`).
    fn unconfirmed(&self, failure: OriginFailure) -> OriginFailure {
        let stored = self.plan.validating.as_ref();
        match failure {
            OriginFailure::Upstream(error)
                if stored.is_some_and(|stored| stored.response.freshness.is_never_stale()) =>
            {
                OriginFailure::Unconfirmed(error)
            }
            other => other,
        }
    }

    /// Ends sharing of a response that is not stored, and removes the stored one that it makes obsolete.
    fn stop_sharing(&self, status: u16) {
        self.close();
        if self.plan.replaces && status < 500 {
            self.shared.store.borrow_mut().remove(&self.plan.key);
        }
    }

    /// Passes a full response to the waiting requests, and stores it. A body that arrives more slowly than a client may send is
    /// not stored, since it would occupy reserved memory for an unbounded time.
    async fn deliver(&self, origin_head: OriginHead, mut origin: Box<Upstream>, source: ResponseSource) {
        let (shared, plan, shared_body) = (&self.shared, &self.plan, &self.fetch.shared_body);
        let length = origin_head.body_length();
        let response = Rc::new(origin_head.response);
        let mut reservation = StoreReservation::default();
        let storable =
            may_store(MethodClass::Get, &plan.control, plan.is_authorised, &response.facts).is_ok();
        let is_copy = source == ResponseSource::Sibling && shared.peers.is_proxy_only();
        let may_be_kept = storable && !is_copy && response.vary != Vary::Everything;
        let is_admitted = may_be_kept && shared.store.borrow_mut().admits(&plan.key);
        // Memory is reserved as the body arrives: an announced length alone takes none from others.
        let mut is_kept = is_admitted && length.unwrap_or(0) <= shared.store.borrow().largest_bytes();
        shared_body.set_retained(is_kept);
        // Errors and redirections say nothing about whether the object can be shared, nor does a request that forbids storing;
        // and what admission refuses now may be stored the next time.
        let is_refused = plan.control.no_store || (may_be_kept && shared.store.borrow().is_selective());
        if is_kept || (matches!(response.status, 200..=299) && !is_copy && !is_refused) {
            shared.store.borrow_mut().record_shared(&plan.key, plan.is_authorised, is_kept);
        }
        if !is_kept {
            self.stop_sharing(response.status);
        }
        let variant = plan.variant(&response.vary);
        let fetched =
            FetchedHead { response: Rc::clone(&response), length, is_shared: is_kept, source, variant };
        let mut page_reader = PageReader::new(shared, plan.page.as_ref(), &plan.request, &fetched);
        self.fetch.settle(FetchOutcome::Response(Rc::new(fetched)));
        let mut body = BodyReader::new(origin_head.framing);
        let (started, mut received_bytes) = (Instant::now(), 0);
        let end = loop {
            if !shared_body.wait_for_room().await {
                break BodyEnd::Broken;
            }
            let limit = shared.limits.origin_response;
            let next = tokio::select! {
                biased;
                next = body.next(&mut origin.connection, limit) => next,
                () = shared_body.wait_unwanted() => break BodyEnd::Broken,
            };
            match next {
                Ok(Some(chunk)) => {
                    shared.peers.count_bytes(source, chunk.len());
                    if page_reader.as_mut().is_some_and(|reader| !reader.push(shared, &chunk)) {
                        page_reader = None;
                    }
                    received_bytes += chunk.len() as u64;
                    let is_slow =
                        started.elapsed() > limit + Duration::from_secs(received_bytes / MIN_BODY_RATE);
                    if is_kept && (is_slow || !reservation.grow(shared, &plan.key, chunk.len() as u64)) {
                        is_kept = false;
                        reservation.release(shared);
                        self.stop_sharing(response.status);
                        shared.store.borrow_mut().record_shared(&plan.key, plan.is_authorised, false);
                        shared_body.set_retained(false);
                    }
                    shared_body.append(chunk);
                }
                Ok(None) => break BodyEnd::Complete,
                Err(_) => {
                    shared.count(|c| c.origin_errors += 1);
                    break BodyEnd::Broken;
                }
            }
        };
        reservation.release(shared);
        if end == BodyEnd::Complete {
            if origin_head.persists {
                shared.pool.put_back(origin);
            }
            let chunks: Option<Vec<Chunk>> = if is_kept { shared_body.all_chunks() } else { None };
            if let Some(chunks) = chunks {
                let stored = StoredResponse::new(response, chunks);
                stored.is_unrequested.set(plan.is_unrequested);
                self.store(stored);
            }
        }
        // After storing, so that at no instant a new request finds neither the fetch nor the object.
        self.close();
        shared_body.finish(end);
    }
}

/// Sends the request to a server and returns the connection, the head of the response, and its times.
async fn get(
    shared: &ProxyShared,
    address: SocketAddr,
    request: &[u8],
    interim: &InterimResponses,
) -> Result<(Box<Upstream>, OriginHead, ResponseTimes), UpstreamError> {
    let requested_ms = shared.clock.now_ms();
    let take = |received: ReceivedHead<'_>| {
        let times = ResponseTimes { requested_ms, received_ms: shared.clock.now_ms() };
        OriginHead::of(&received.head, "GET", &shared.name, times).map(|origin_head| (origin_head, times))
    };
    let push_interim = |head: &ResponseHead<'_>| interim.push(head, &shared.name);
    let (upstream, taken) =
        shared.pool.exchange(address, request, shared.upstream_timeouts(), push_interim, take).await?;
    let (mut origin_head, times) = taken.map_err(|error| UpstreamError::BadResponse(address, error))?;
    origin_head.response = origin_head.response.with_default_lifetime(shared.default_lifetime_s, times);
    Ok((upstream, origin_head, times))
}

/// Memory of the store that is reserved for a body under way.
#[derive(Default)]
struct StoreReservation {
    bytes: u64,
}

impl StoreReservation {
    /// Reserves more; false if the object is too large, or memory is short.
    fn grow(&mut self, shared: &ProxyShared, key: &[u8], bytes: u64) -> bool {
        let mut store = shared.store.borrow_mut();
        let fits = self.bytes.saturating_add(bytes) <= store.largest_bytes() && store.reserve(key, bytes);
        if fits {
            self.bytes += bytes;
        }
        fits
    }

    fn release(&mut self, shared: &ProxyShared) {
        shared.store.borrow_mut().release(std::mem::take(&mut self.bytes));
    }
}

/// Adds conditions that validate the stored response.
fn conditional<'r>(request: &'r [u8], validating: Option<&Rc<StoredResponse>>) -> Cow<'r, [u8]> {
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
