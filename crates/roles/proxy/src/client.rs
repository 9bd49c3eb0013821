//! Client connections: requests are served from the store or fetched.

use std::io;
use std::rc::Rc;

use assay_cache::freshness::Reuse;
use assay_cache::storage::MethodClass;
use assay_cache::vary::Vary;
use assay_http::head::RequestHead;
use tokio::net::TcpStream;

use crate::access_log::LogEntry;
use crate::bypass::{self, BypassPlan, StaleFallback};
use crate::cache_status::{CacheStatus, ForwardReason, ResponseSource};
use crate::client_request::ClientRequest;
use crate::fetch::{self, FetchPlan};
use crate::fetched::{Fetch, FetchOutcome, FetchedHead};
use crate::prefetch::{BaseUrl, PrefetchPage};
use crate::ranges::{self, RangeSelection};
use crate::respond::ProxyClient;
use crate::shared::ProxyShared;
use crate::store::{StoreLookup, StoredResponse};
use crate::target::Target;
use crate::uncached::{self, UncachedOutcome};
use crate::upstream_route::UpstreamRoute;
use assay_net::byte_stream::ByteStream;
use assay_net::exchange::{self, AfterResponse, Exchange, Handler, Refusal, Request};
use assay_net::fields::{self, ReceivedProtocol};
use assay_net::http_stream::{HttpStream, serve_client};
use assay_net::shared_body::{BodyEnd, BodyRead, SharedBodyReader};

/// Serves a connection until it ends. Errors were caused by the client, or have been reported to it: they are of no further
/// interest.
pub async fn serve(stream: ByteStream<TcpStream>, shared: Rc<ProxyShared>) {
    let limits = shared.limits.of_clients();
    let serve = |exchange| {
        let shared = Rc::clone(&shared);
        async move { drop(exchange::serve(&mut ProxyClient::new(shared, exchange)).await) }
    };
    serve_client(stream, &shared.resources, limits, serve).await;
}

/// Work that remains once the request's head is no longer needed.
enum RequestStep {
    Responded,
    Bypass(Box<BypassPlan>),
}

impl RequestStep {
    fn bypass(plan: BypassPlan) -> Self {
        RequestStep::Bypass(Box::new(plan))
    }
}

// Rare paths are boxed from here on: the state of a task is moved for each request, and is as large as the largest path.
impl Handler for ProxyClient {
    type Transport = HttpStream;

    fn exchange(&mut self) -> &mut Exchange<Self::Transport> {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, received, .. }: &Request<'_>) -> io::Result<AfterResponse> {
        if let RequestStep::Bypass(plan) = handle_request(self, head, *received).await? {
            Box::pin(bypass::run(self, *plan)).await?;
        }
        Ok(AfterResponse::Request)
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        refuse(self, refusal.status(), &refusal.to_string(), is_head).await
    }

    fn on_request_end(&mut self, complete: bool) {
        self.log_request(complete);
    }
}

/// Responds to a malformed request; the connection cannot be used afterwards.
async fn refuse(client: &mut ProxyClient, status: u16, text: &str, is_head: bool) -> io::Result<()> {
    client.exchange.close_after_response();
    client.shared.count(|c| {
        c.requests += 1;
        c.refused += 1;
    });
    client.send_error(status, text, None, is_head).await
}

async fn handle_request(
    client: &mut ProxyClient,
    head: &RequestHead<'_>,
    received: ReceivedProtocol,
) -> io::Result<RequestStep> {
    let target = match Target::of_scheme(head, client.exchange.connection.stream.scheme()) {
        Ok(target) => target,
        Err(error) => {
            Box::pin(refuse(client, error.status(), &error.to_string(), head.method == "HEAD")).await?;
            return Ok(RequestStep::Responded);
        }
    };
    client.shared.count(|c| c.requests += 1);
    if client.shared.access_log.is_some() {
        client.log_entry = Some(LogEntry::new(head, client.shared.routes.url(&target)));
    }
    if head.max_forwards() == Some(0) {
        Box::pin(respond_and_close(client, head)).await?;
        return Ok(RequestStep::Responded);
    }
    let client_request = ClientRequest::new(head, received);
    count_caches(client, &client_request);
    let mut key = std::mem::take(&mut client.key);
    client.shared.routes.write_key(&target, &mut key);
    let step = if client_request.is_for_cache() {
        // The shortest path is for fresh stored responses.
        match look_up(client, &client_request, &key) {
            Ok(hit) => {
                if hit.is_stale {
                    revalidate(client, &client_request, &target, &key, &hit.stored);
                }
                hit.send(client, &client_request).await.map(|()| RequestStep::Responded)
            }
            Err(miss) => serve_miss(client, &client_request, &target, &key, miss).await,
        }
    } else {
        let reason = if client_request.is_for_origin && client_request.class != MethodClass::Unsafe {
            ForwardReason::Bypass
        } else {
            ForwardReason::Method
        };
        Ok(RequestStep::bypass(BypassPlan::new(&client.shared, &client_request, &target, &key, reason)))
    };
    client.key = key;
    step
}

/// Responds to a request whose `Max-Forwards` is used up. A trace would only repeat what the client has just sent.
async fn respond_and_close(client: &mut ProxyClient, head: &RequestHead<'_>) -> io::Result<()> {
    if !client.exchange.is_body_read() {
        client.exchange.close_after_response();
    }
    match head.method {
        "OPTIONS" => client.send_options().await,
        _ => client.send_error(501, "a trace goes on, or there is no response to it", None, false).await,
    }
}

/// Counts requests of other caches, recognised by `Via`, which robots and browsers do not send.
fn count_caches(client: &mut ProxyClient, client_request: &ClientRequest<'_>) {
    let shared = &client.shared;
    let names_this_proxy = shared
        .is_cooperating
        .then(|| fields::via_contains(client_request.head.headers(), &shared.name))
        .flatten();
    if names_this_proxy.is_some() {
        shared.peers.count(|c| c.peer_requests += 1);
    }
    (client.is_from_cache, client.has_passed_before) =
        (names_this_proxy.is_some(), names_this_proxy == Some(true));
}

/// A stored response that may be sent as it is.
struct StoreHit {
    stored: Rc<StoredResponse>,
    ttl_s: i64,
    now_ms: i64,
    /// Sent while it is revalidated (`stale-while-revalidate`).
    is_stale: bool,
}

impl StoreHit {
    async fn send(self, client: &mut ProxyClient, client_request: &ClientRequest<'_>) -> io::Result<()> {
        client
            .send_stored(client_request, &self.stored, CacheStatus::Hit { ttl_s: self.ttl_s }, self.now_ms)
            .await
    }
}

/// Reason for which no stored response may be sent, and the stored response that the origin may confirm.
struct StoreMiss {
    reason: ForwardReason,
    stored: Option<Rc<StoredResponse>>,
}

/// Looks up a response to a GET or HEAD.
fn look_up(
    client: &ProxyClient,
    client_request: &ClientRequest<'_>,
    key: &[u8],
) -> Result<StoreHit, StoreMiss> {
    let shared = &client.shared;
    let lookup = shared.store.borrow_mut().find(key, client_request.head.headers());
    let stored = match lookup {
        StoreLookup::Nothing => return Err(StoreMiss { reason: ForwardReason::Miss, stored: None }),
        StoreLookup::OtherVariant => return Err(StoreMiss { reason: ForwardReason::VaryMiss, stored: None }),
        StoreLookup::Response(stored) => stored,
    };
    let freshness = &stored.response.freshness;
    let now_ms = shared.clock.now_ms();
    let remaining_ms = freshness.remaining_ms(now_ms);
    let reuse = freshness.reuse(&client_request.control, now_ms);
    let is_stale = reuse == Reuse::Validate
        && client_request.class == MethodClass::Get
        && freshness.serves_while_revalidated(&client_request.control, now_ms);
    match reuse {
        _ if is_stale => {
            shared.count(|c| c.hits += 1);
            Ok(StoreHit { stored, ttl_s: remaining_ms.div_euclid(1000), now_ms, is_stale })
        }
        Reuse::Serve => {
            shared.count(|c| c.hits += 1);
            if stored.is_unrequested.replace(false) {
                shared.prefetcher.count(|c| c.prefetched_used += 1);
            }
            if client.is_from_cache {
                shared.peers.count(|c| c.peer_hits += 1);
            }
            Ok(StoreHit { stored, ttl_s: remaining_ms.div_euclid(1000), now_ms, is_stale })
        }
        Reuse::Refetch => Err(StoreMiss { reason: ForwardReason::Request, stored: None }),
        Reuse::Validate if remaining_ms > 0 => {
            Err(StoreMiss { reason: ForwardReason::Request, stored: Some(stored) })
        }
        Reuse::Validate => Err(StoreMiss { reason: ForwardReason::Stale, stored: Some(stored) }),
    }
}

/// Revalidates in the background a response that is sent stale (`stale-while-revalidate`), once for all requests meanwhile. If
/// this fails, the next request tries again.
fn revalidate(
    client: &ProxyClient,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    key: &[u8],
    stored: &Rc<StoredResponse>,
) {
    let shared = &client.shared;
    if client_request.control.only_if_cached || shared.fetches.borrow().contains_key(key) {
        return;
    }
    let route = UpstreamRoute::to(shared, target);
    let mut request = Vec::with_capacity(512);
    route.append_fetch_request(shared, client_request, target, &mut request);
    let plan = FetchPlan {
        key: key.into(),
        request,
        route,
        validating: Some(Rc::clone(stored)),
        peers_url: None,
        control: client_request.control,
        is_authorised: client_request.is_authorised,
        replaces: true,
        page: None,
        is_unrequested: false,
    };
    let may_be_joined = !client_request.is_authorised && !client_request.control.no_store;
    // Without a reader the fetch continues as long as its response is being stored.
    drop(fetch::start(shared, plan, may_be_joined));
}

/// Serves a GET or HEAD without a usable stored response: joins a fetch under way, or starts one.
async fn serve_miss(
    client: &mut ProxyClient,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    key: &[u8],
    miss: StoreMiss,
) -> io::Result<RequestStep> {
    let StoreMiss { mut reason, mut stored } = miss;
    let mut may_join = !client_request.is_authorised && !may_loop(client, client_request, key);
    let mut previous_failure = None;
    loop {
        let is_head = client_request.class == MethodClass::Head;
        if client_request.control.only_if_cached {
            let text = "nothing that may be used is stored, and the origin may not be asked";
            Box::pin(client.send_error(504, text, Some(CacheStatus::NotForwarded), is_head)).await?;
            return Ok(RequestStep::Responded);
        }
        if is_head {
            let plan = BypassPlan::new(&client.shared, client_request, target, key, reason);
            let fallback =
                stored.and_then(|stored| StaleFallback::new(&client.shared, client_request, stored));
            return Ok(RequestStep::bypass(plan.or(fallback)));
        }
        let is_partial = client_request.ranges.is_some() || client_request.has_conditions();
        if is_partial && stored.is_none() && is_known_unshared(client, client_request, key) {
            return Ok(RequestStep::bypass(BypassPlan::new(
                &client.shared,
                client_request,
                target,
                key,
                reason,
            )));
        }
        if may_join && !client_request.control.no_cache {
            let current = client.shared.fetches.borrow().get(key).cloned();
            if let Some((fetch, reader)) =
                current.and_then(|f| SharedBodyReader::new(&f.shared_body).map(|r| (f, r)))
            {
                match Box::pin(join(client, client_request, &fetch, reader, reason, previous_failure)).await?
                {
                    JoinResult::Responded => return Ok(RequestStep::Responded),
                    // The response does not suit this request: look again, and do not join another.
                    JoinResult::Unsuitable => may_join = false,
                    // The first of the waiting requests starts the next fetch, and the others join it.
                    JoinResult::Failed(failure) => previous_failure = Some(failure),
                }
                match look_up(client, client_request, key) {
                    Ok(hit) => {
                        return Box::pin(hit.send(client, client_request))
                            .await
                            .map(|()| RequestStep::Responded);
                    }
                    Err(miss) => StoreMiss { reason, stored } = miss,
                }
                continue;
            }
        }
        return fetch_and_respond(client, client_request, target, key, reason, stored, may_join).await;
    }
}

/// Whether the request has passed this proxy before. A fetch that it joined could wait for this very request, by an address that
/// is not known to be this proxy's.
fn may_loop(client: &ProxyClient, client_request: &ClientRequest<'_>, key: &[u8]) -> bool {
    let passed = || fields::via_contains(client_request.head.headers(), &client.shared.name) == Some(true);
    client.has_passed_before || (client.shared.fetches.borrow().contains_key(key) && passed())
}

/// Whether fetching the whole object, for its parts or to evaluate conditions, is in vain: it is known that it would not be
/// stored.
fn is_known_unshared(client: &ProxyClient, client_request: &ClientRequest<'_>, key: &[u8]) -> bool {
    client_request.control.no_store
        || client.shared.store.borrow_mut().is_unshared(key, client_request.is_authorised)
}

/// Fetches, and sends the response.
async fn fetch_and_respond(
    client: &mut ProxyClient,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    key: &[u8],
    reason: ForwardReason,
    stored: Option<Rc<StoredResponse>>,
    may_be_joined: bool,
) -> io::Result<RequestStep> {
    let shared = Rc::clone(&client.shared);
    let is_unshared = shared.store.borrow_mut().is_unshared(key, client_request.is_authorised);
    let is_open = may_be_joined && !client_request.control.no_store && !is_unshared;
    if client_request.control.no_cache {
        // A response that is under way already is older than this reload wants.
        let tick = shared.store.borrow_mut().next_tick();
        shared.store.borrow_mut().set_barrier(key, tick);
    }
    let unread = match !is_open && stored.is_none() && uncached::is_eligible(&shared, client_request) {
        false => None,
        // As far as is known, no other request can get the response.
        true => match uncached::run(client, client_request, target, key, is_unshared, reason).await? {
            UncachedOutcome::Sent => return Ok(RequestStep::Responded),
            UncachedOutcome::Cacheable(unread) => Some(unread),
        },
    };
    let route = UpstreamRoute::to(&shared, target);
    let mut request = Vec::with_capacity(512);
    route.append_fetch_request(&shared, client_request, target, &mut request);
    let plan = FetchPlan {
        key: key.into(),
        request,
        route,
        peers_url: peers_url(client, client_request, target, stored.is_some())
            .filter(|_| is_open || shared.peers.never_direct()),
        replaces: stored.is_some() || client_request.control.no_cache,
        validating: stored,
        control: client_request.control,
        is_authorised: client_request.is_authorised,
        page: shared.prefetcher.is_on().then(|| page(&shared, client_request, target)).flatten(),
        is_unrequested: false,
    };
    let (fetch, reader) = match unread {
        None => fetch::start(&shared, plan, is_open),
        Some(unread) => fetch::resume(&shared, plan, *unread),
    };
    Box::pin(respond_from(client, client_request, target, key, reason, &fetch, reader)).await
}

/// Sends the response of the client's own fetch.
async fn respond_from(
    client: &mut ProxyClient,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    key: &[u8],
    reason: ForwardReason,
    fetch: &Fetch,
    mut reader: SharedBodyReader,
) -> io::Result<RequestStep> {
    let shared = Rc::clone(&client.shared);
    let cache_status = |is_confirmed, is_stored, source| CacheStatus::Forwarded {
        reason,
        is_confirmed,
        is_stored,
        is_collapsed: false,
        source,
    };
    match fetch.wait_relaying_interim(&mut client.exchange).await? {
        FetchOutcome::Response(fetched) => {
            shared.count(|c| c.misses += 1);
            let response = &fetched.response;
            let age_s = response.has_age.then(|| response.freshness.age_s(shared.clock.now_ms()));
            let cache_status = cache_status(false, fetched.is_shared, fetched.source);
            if fetched.is_not_modified_for(&client_request.conditions) {
                drop(reader);
                client.send_not_modified(response, cache_status, age_s).await?;
                return Ok(RequestStep::Responded);
            }
            let selection = ranges::select(client_request, response, fetched.length);
            if !fetched.is_shared && matches!(selection, RangeSelection::Parts(_)) {
                // A part would require relaying the whole response.
                drop(reader);
                return Ok(RequestStep::bypass(BypassPlan::new(
                    &shared,
                    client_request,
                    target,
                    key,
                    reason,
                )));
            }
            if !send_fetched(client, &fetched, selection, &mut reader, cache_status, age_s).await? {
                client.send_error(502, BROKE_OFF, Some(cache_status), false).await?;
            }
        }
        FetchOutcome::Confirmed(stored) => {
            shared.count(|c| c.revalidated += 1);
            let now_ms = shared.clock.now_ms();
            client
                .send_stored(
                    client_request,
                    &stored,
                    cache_status(true, false, ResponseSource::Origin),
                    now_ms,
                )
                .await?;
        }
        FetchOutcome::Stale { stored, status } => {
            send_on_error(client, client_request, &stored, status, false).await?
        }
        FetchOutcome::Failed(failure) => {
            let cache_status = cache_status(false, false, ResponseSource::Origin);
            client.send_failure(&failure, cache_status, false).await?;
        }
    }
    Ok(RequestStep::Responded)
}

/// Sends a response that is still arriving, or parts of it. False: it broke off before anything of it was sent.
async fn send_fetched(
    client: &mut ProxyClient,
    fetched: &FetchedHead,
    selection: RangeSelection,
    reader: &mut SharedBodyReader,
    cache_status: CacheStatus,
    age_s: Option<u64>,
) -> io::Result<bool> {
    let (spans, total) = match (selection, fetched.length) {
        (RangeSelection::Unsatisfied { total }, _) => {
            return client.send_unsatisfied(total, cache_status).await.map(|()| true);
        }
        (RangeSelection::Parts(spans), Some(total)) => (spans, total),
        (RangeSelection::Whole, _) | (RangeSelection::Parts(_), None) => {
            return client.send_shared_body(fetched, reader, cache_status, age_s).await.map(|()| true);
        }
    };
    if let [span] = spans[..] {
        let response = &fetched.response;
        return client
            .send_shared_body_part(response, total, reader, span, cache_status, age_s)
            .await
            .map(|()| true);
    }
    // Several parts may be requested in any order, so they wait for the whole response, which is kept in memory anyway.
    let mut chunks = Vec::new();
    loop {
        let taking = reader.read(&mut chunks);
        match exchange::unless_disconnected(&client.exchange.connection, taking).await? {
            BodyRead::Chunks => {}
            BodyRead::End(BodyEnd::Complete) => break,
            BodyRead::End(BodyEnd::Broken) => return Ok(false),
        }
    }
    let whole = StoredResponse::new(Rc::clone(&fetched.response), chunks);
    client.send_parts(&whole, &spans, cache_status, age_s).await.map(|()| true)
}

/// Sends a stale stored response because the origin failed.
async fn send_on_error(
    client: &mut ProxyClient,
    client_request: &ClientRequest<'_>,
    stored: &StoredResponse,
    status: Option<u16>,
    is_collapsed: bool,
) -> io::Result<()> {
    client.shared.count(|c| c.hits += 1);
    let now_ms = client.shared.clock.now_ms();
    let ttl_s = stored.response.freshness.remaining_ms(now_ms).div_euclid(1000);
    client
        .send_stored(
            client_request,
            stored,
            CacheStatus::StaleOnError { ttl_s, status, is_collapsed },
            now_ms,
        )
        .await
}

/// Text for a request of several parts whose fetch broke off.
const BROKE_OFF: &str = "the origin's response broke off";

/// Result of joining a fetch.
enum JoinResult {
    /// The client has its response.
    Responded,
    /// The response does not suit this request.
    Unsuitable,
    /// Failed quickly, with nothing sent to the client: another fetch may succeed.
    Failed(JoinFailure),
}

/// Failure of a joined fetch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JoinFailure {
    NoResponse,
    /// The body broke off. The request has been counted as collapsed.
    BrokeOff,
}

/// Sends the response of another request's fetch. If another fetch has failed before, its failure is sent to the client:
/// retrying for every waiting client would overload a failing origin.
async fn join(
    client: &mut ProxyClient,
    client_request: &ClientRequest<'_>,
    fetch: &Fetch,
    mut reader: SharedBodyReader,
    reason: ForwardReason,
    previous_failure: Option<JoinFailure>,
) -> io::Result<JoinResult> {
    let shared = Rc::clone(&client.shared);
    let cache_status = |is_confirmed, source| CacheStatus::Forwarded {
        reason,
        is_confirmed,
        is_stored: false,
        is_collapsed: true,
        source,
    };
    let outcome = fetch.wait_relaying_interim(&mut client.exchange).await?;
    let now_ms = shared.clock.now_ms();
    match outcome {
        FetchOutcome::Response(fetched) => {
            let response = &fetched.response;
            let is_fresh = response.freshness.reuse(&client_request.control, now_ms) == Reuse::Serve;
            if !is_fresh || !fetched.suits(client_request.head.headers()) {
                return Ok(JoinResult::Unsuitable);
            }
            if previous_failure != Some(JoinFailure::BrokeOff) {
                shared.count(|c| c.collapsed += 1);
            }
            let age_s = Some(response.freshness.age_s(now_ms));
            let cache_status = cache_status(false, fetched.source);
            if fetched.is_not_modified_for(&client_request.conditions) {
                drop(reader);
                client.send_not_modified(response, cache_status, age_s).await?;
            } else {
                let selection = ranges::select(client_request, response, fetched.length);
                match send_fetched(client, &fetched, selection, &mut reader, cache_status, age_s).await? {
                    true => {}
                    false if previous_failure.is_none() => {
                        return Ok(JoinResult::Failed(JoinFailure::BrokeOff));
                    }
                    false => client.send_error(502, BROKE_OFF, Some(cache_status), false).await?,
                }
            }
        }
        FetchOutcome::Stale { stored, status } => {
            drop(reader);
            let freshness = &stored.response.freshness;
            let may = freshness.serves_on_error(&client_request.control, shared.stale_if_error_s, now_ms);
            if !may || !matches!(stored.response.vary, Vary::Nothing) {
                return Ok(JoinResult::Unsuitable);
            }
            send_on_error(client, client_request, &stored, status, true).await?;
        }
        FetchOutcome::Confirmed(stored) => {
            drop(reader);
            let is_same_variant = matches!(stored.response.vary, Vary::Nothing);
            if !is_same_variant
                || stored.response.freshness.reuse(&client_request.control, now_ms) != Reuse::Serve
            {
                return Ok(JoinResult::Unsuitable);
            }
            shared.count(|c| c.collapsed += 1);
            client
                .send_stored(client_request, &stored, cache_status(true, ResponseSource::Origin), now_ms)
                .await?;
        }
        // A slow failure (504) would take as long again.
        FetchOutcome::Failed(failure) if previous_failure.is_none() && failure.status() == 502 => {
            return Ok(JoinResult::Failed(JoinFailure::NoResponse));
        }
        FetchOutcome::Failed(failure) => {
            client.send_failure(&failure, cache_status(false, ResponseSource::Origin), false).await?;
        }
    }
    Ok(JoinResult::Responded)
}

/// Page to scan for prefetching, if the response turns out to be one; `None` for authorised requests.
fn page(
    shared: &ProxyShared,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
) -> Option<PrefetchPage> {
    let authority = target.authority.unwrap_or(shared.routes.fallback_authority()).to_owned();
    let mut path = Vec::new();
    target.write_path(&mut path);
    let base = BaseUrl { authority, path: String::from_utf8(path).ok()? };
    (!client_request.is_authorised).then_some(PrefetchPage { base, is_absolute: target.is_absolute })
}

/// URL for queries to other caches; `None`: they are not queried. Reloads, validations and authorised requests need the origin's
/// response; and a request that has passed this cache before must not loop.
fn peers_url(
    client: &ProxyClient,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    is_stored: bool,
) -> Option<String> {
    let shared = &client.shared;
    if shared.peers.is_alone() || is_stored || client_request.control.no_cache || client_request.is_authorised
    {
        return None;
    }
    if client.has_passed_before {
        shared.peers.count(|c| c.loops += 1);
        return None;
    }
    shared.routes.url(target)
}
