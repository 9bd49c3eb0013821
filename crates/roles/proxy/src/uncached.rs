//! Responses that no other request may get, relayed to the client in its own task.
//!
//! There is no fetch that others could join: the request is sent, the head of the response is rewritten into one buffer together
//! with the bytes of the body that came with it, and the rest follows read by read. A response that may be stored after all
//! becomes an ordinary fetch.

use std::io;
use std::rc::Rc;

use assay_cache::freshness::Freshness;
use assay_cache::http_fields::ResponseFields;
use assay_cache::storage::{MethodClass, may_store};
use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, ResponseHead};
use assay_net::exchange::unless_disconnected;
use assay_net::interim;
use assay_net::listen::leads_to;
use assay_net::relay::{RelayStep, RelayedBody, relay_step};
use assay_net::upstream::{MAX_RETRIES, UNREQUESTED_UPGRADE, Upstream, UpstreamError};

use crate::cache_status::{CacheStatus, ForwardReason, ResponseSource};
use crate::client_request::ClientRequest;
use crate::fetch::UnreadResponse;
use crate::origin::{self, OriginFailure, OriginHead};
use crate::respond::ProxyClient;
use crate::response::{self, ResponseTimes};
use crate::shared::ProxyShared;
use crate::target::{Destination, Target};
use crate::upstream_route::UpstreamRoute;

pub enum UncachedOutcome {
    /// The client has its response.
    Sent,
    /// Nothing was sent yet, and the response may be stored for other requests.
    Cacheable(Box<UnreadResponse>),
}

/// Whether the response to this request can be relayed without a fetch.
pub fn is_eligible(shared: &ProxyShared, client_request: &ClientRequest<'_>) -> bool {
    // Ranges, conditions and prefetching need the whole response.
    let is_plain = client_request.ranges.is_none() && !client_request.has_conditions();
    is_plain && !shared.peers.never_direct() && !shared.prefetcher.is_on()
}

/// A request whose response is relayed.
struct UncachedPlan<'o> {
    client_request: &'o ClientRequest<'o>,
    key: &'o [u8],
    /// The last response under this key could not be shared, which is recorded already.
    is_unshared: bool,
    source: ResponseSource,
    reason: ForwardReason,
    requested_ms: i64,
}

/// Classified head of a response.
enum UncachedHead {
    /// The rewritten head, and the bytes of the body at hand, are in `out`.
    Relay(UncachedRelay),
    Cacheable(Box<OriginHead>),
    /// A 304 although the request had no condition.
    NotModified,
}

/// State of a relayed body.
struct UncachedRelay {
    body: RelayedBody,
    framing: BodyFraming,
    /// Input bytes after the head that were consumed.
    used: usize,
    /// The chunked coding of the body is broken.
    is_broken: bool,
    persists: bool,
}

/// Sends the request, and relays the response unless it is for other requests too.
pub async fn run(
    client: &mut ProxyClient,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    key: &[u8],
    is_unshared: bool,
    reason: ForwardReason,
) -> io::Result<UncachedOutcome> {
    let shared = Rc::clone(&client.shared);
    let began = shared.store.borrow_mut().next_tick();
    let route = UpstreamRoute::to(&shared, target);
    let memory = &shared.resources.memory;
    let mut request = memory.get();
    route.append_fetch_request(&shared, client_request, target, &mut request);
    let mut out = memory.get();
    let mut plan =
        UncachedPlan { client_request, key, is_unshared, source: route.source(), reason, requested_ms: 0 };
    let received = exchange(client, &route, &mut plan, &request, &mut out).await?;
    memory.put(request);
    let failure = match received {
        Ok((upstream, UncachedHead::Relay(relay))) => {
            let sent = relay_response(client, upstream, &mut out, relay).await;
            memory.put(out);
            return sent.map(|()| UncachedOutcome::Sent);
        }
        Ok((upstream, UncachedHead::Cacheable(origin_head))) => {
            let unread = UnreadResponse { origin_head: *origin_head, upstream, source: plan.source, began };
            return Ok(UncachedOutcome::Cacheable(Box::new(unread)));
        }
        Ok((upstream, UncachedHead::NotModified)) => OriginFailure::BadConfirmation(upstream.address),
        Err(failure) => failure,
    };
    shared.count(|c| c.origin_errors += 1);
    let cache_status = CacheStatus::bypass(reason);
    Box::pin(client.send_failure(&failure, cache_status, false)).await?;
    Ok(UncachedOutcome::Sent)
}

/// Sends the request and waits for the head of the final response. A pooled connection may just have been closed by the server:
/// then a new one is tried. The outer error is the client's: it has gone.
async fn exchange(
    client: &mut ProxyClient,
    route: &UpstreamRoute,
    plan: &mut UncachedPlan<'_>,
    request: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<Result<(Box<Upstream>, UncachedHead), OriginFailure>> {
    let shared = Rc::clone(&client.shared);
    let timeouts = shared.upstream_timeouts();
    let address = match route.destination {
        Destination::Address(address) if !leads_to(address, shared.address) => address,
        _ => match Box::pin(origin::address_of(&route.destination, shared.address, timeouts)).await {
            Ok(address) => address,
            Err(failure) => return Ok(Err(failure)),
        },
    };
    plan.requested_ms = shared.clock.now_ms();
    route.count(&shared);
    if let Some(mut upstream) = shared.pool.take(&address) {
        match send_and_read_head(client, &mut upstream, plan, request, out).await? {
            Ok(head) => return Ok(Ok((upstream, head))),
            Err(UpstreamError::Lost(_) | UpstreamError::Unprocessed(_)) => {}
            Err(failure) => return Ok(Err(failure.into())),
        }
    }
    let mut tries = 1..=MAX_RETRIES;
    loop {
        let connecting = Box::pin(shared.pool.connect(address, timeouts));
        let mut upstream = match unless_disconnected(&client.exchange.connection, connecting).await? {
            Ok(upstream) => upstream,
            Err(failure) => return Ok(Err(failure.into())),
        };
        match send_and_read_head(client, &mut upstream, plan, request, out).await? {
            Ok(head) => return Ok(Ok((upstream, head))),
            Err(UpstreamError::Unprocessed(_)) if tries.next().is_some() => {}
            Err(failure) => return Ok(Err(failure.into())),
        }
    }
}

async fn send_and_read_head(
    client: &mut ProxyClient,
    upstream: &mut Upstream,
    plan: &UncachedPlan<'_>,
    request: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<Result<UncachedHead, UpstreamError>> {
    let timeouts = client.shared.upstream_timeouts();
    let shared = Rc::clone(&client.shared);
    if let Err(error) = upstream.send(&[request], timeouts).await {
        return Ok(Err(error));
    }
    let classified = loop {
        // `classify` borrows the whole client, so its connection is watched beforehand, until the response begins.
        let begun =
            unless_disconnected(&client.exchange.connection, upstream.wait_response(timeouts.response));
        if let Err(error) = begun.await? {
            return Ok(Err(error));
        }
        let next_head = upstream.head(timeouts.response, |received| match received.head.status {
            101 => Ok(Err(UNREQUESTED_UPGRADE)),
            100..=199 => Err(interim::rewrite(&received.head, &shared.name)),
            _ => Ok(classify(client, plan, &received.head, received.rest, out)),
        });
        match next_head.await {
            Ok(Ok(classified)) => break classified,
            Ok(Err(Some(interim_head))) if client.exchange.accepts_interim() => {
                client.exchange.write(&[&interim_head]).await?;
            }
            Ok(Err(_)) => {}
            Err(error) => return Ok(Err(error)),
        }
    };
    let head = classified.map_err(|error| UpstreamError::BadResponse(upstream.address, error));
    if let Ok(UncachedHead::Relay(relay)) = &head {
        upstream.connection.input.consume(relay.used);
    }
    Ok(head)
}

/// Decides what becomes of a response; for a relayed one, writes its head and the bytes of the body at hand to `out`.
fn classify(
    client: &mut ProxyClient,
    plan: &UncachedPlan<'_>,
    head: &ResponseHead<'_>,
    rest: &[u8],
    out: &mut Vec<u8>,
) -> Result<UncachedHead, HeadError> {
    if head.status == 304 {
        return Ok(UncachedHead::NotModified);
    }
    let shared = Rc::clone(&client.shared);
    let origin_framing = head.body("GET");
    out.clear();
    let response_fields = response::append_head(out, head, &shared.name, || shared.clock.now_ms());
    if is_cacheable(&shared, plan, head, &response_fields, origin_framing) {
        let times = ResponseTimes { requested_ms: plan.requested_ms, received_ms: shared.clock.now_ms() };
        return OriginHead::of(head, "GET", &shared.name, times)
            .map(|origin_head| UncachedHead::Cacheable(Box::new(origin_head)));
    }
    shared.count(|c| c.misses += 1);
    // Errors and redirections say nothing about whether the object can be shared, nor does a request that forbids storing.
    let ClientRequest { control, is_authorised, .. } = plan.client_request;
    if matches!(head.status, 200..=299) && !plan.is_unshared && !control.no_store {
        shared.store.borrow_mut().record_shared(plan.key, *is_authorised, false);
    }
    if plan.client_request.control.no_cache && head.status < 500 {
        shared.store.borrow_mut().remove(plan.key);
    }
    let age_s = response_fields.age_s().map(|age_s| {
        let now_ms = shared.clock.now_ms();
        let facts = response_fields.facts(head.status, age_s);
        Freshness::new(&facts, plan.requested_ms, now_ms).age_s(now_ms)
    });
    let length = match origin_framing {
        BodyFraming::None => Some(0),
        BodyFraming::Length(bytes) => Some(bytes),
        BodyFraming::Chunked | BodyFraming::UntilClose => None,
    };
    let framing = client.exchange.framing(head.status, length);
    let cache_status = CacheStatus::Forwarded {
        reason: plan.reason,
        is_confirmed: false,
        is_stored: false,
        is_collapsed: false,
        source: plan.source,
    };
    client.append_recorded_tail(out, head.status, cache_status, age_s, framing);
    let mut body = RelayedBody::new(origin_framing, framing == BodyFraming::Chunked);
    let taken = body.take(rest, out);
    let (used, is_broken) = (taken.unwrap_or(rest.len()), taken.is_err());
    Ok(UncachedHead::Relay(UncachedRelay { body, framing, used, is_broken, persists: head.persists("GET") }))
}

/// Whether the response may be stored, and is small enough.
fn is_cacheable(
    shared: &ProxyShared,
    plan: &UncachedPlan<'_>,
    head: &ResponseHead<'_>,
    response_fields: &ResponseFields<'_>,
    framing: BodyFraming,
) -> bool {
    let control = response_fields.control();
    if control.no_store || control.private || plan.client_request.control.no_store {
        return false;
    }
    let bytes = if let BodyFraming::Length(bytes) = framing { bytes } else { 0 };
    if bytes > shared.store.borrow().largest_bytes() {
        return false;
    }
    let facts = response_fields.facts(head.status, 0);
    may_store(MethodClass::Get, &plan.client_request.control, plan.client_request.is_authorised, &facts)
        .is_ok()
}

/// Sends `out`, and then the rest of the body.
async fn relay_response(
    client: &mut ProxyClient,
    mut upstream: Box<Upstream>,
    out: &mut Vec<u8>,
    mut relay: UncachedRelay,
) -> io::Result<()> {
    let shared = Rc::clone(&client.shared);
    let is_length_recorded = matches!(relay.framing, BodyFraming::Length(_));
    let mut recorded_bytes = 0;
    loop {
        if !is_length_recorded {
            client.record_bytes(relay.body.content_bytes - recorded_bytes);
            recorded_bytes = relay.body.content_bytes;
        }
        let is_done = relay.body.is_done();
        if is_done && relay.persists && upstream.connection.input.unread().is_empty() {
            // The whole body is here: the server is free before the client has it.
            shared.pool.put_back(upstream);
            return client.exchange.write(&[out]).await;
        }
        client.exchange.write(&[out]).await?;
        if is_done {
            return Ok(());
        }
        out.clear();
        let part = match relay.is_broken {
            true => RelayStep::Broken,
            false => {
                let to = &client.exchange.connection;
                upstream.connection.deadline.set(shared.limits.origin_response);
                let (from, deadline, input, memory) = upstream.connection.parts();
                let part = relay_step(memory, from, deadline, input, &mut relay.body, out, |bytes| {
                    to.stream.try_write(bytes)
                });
                unless_disconnected(to, part).await?.unwrap_or(RelayStep::Broken)
            }
        };
        match part {
            RelayStep::Some => {}
            RelayStep::ClientGone(error) => return Err(error),
            RelayStep::Broken => {
                shared.count(|c| c.origin_errors += 1);
                return Err(client.exchange.abort(relay.framing));
            }
        }
    }
}
