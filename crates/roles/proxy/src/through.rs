//! Responses that no other request may get: they reach their client in its own task, as they come.
//!
//! No fetch that others could join, and nothing that waits for them: the request goes out, the head of the response is written
//! anew into one buffer, what came of the body with it goes along, and the rest follows read by read. Should the response be one
//! that may be stored after all, it becomes a fetch like any other.

use std::io;
use std::rc::Rc;

use assay_cache::freshness::Freshness;
use assay_cache::http_fields::ResponseFields;
use assay_cache::storage::{MethodClass, may_store};
use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, ResponseHead};
use assay_net::carrier::Carrier;
use assay_net::exchange::{Framing, unless_gone};
use assay_net::interim;
use assay_net::listen::leads_to;
use assay_net::relay::{Part, next_part};
use assay_net::upstream::{MOST_TRIES, SWITCHING, Upstream, UpstreamError};

use crate::client_request::ClientRequest;
use crate::fetch::Heard;
use crate::handling::{Handling, Source, Why};
use crate::origin::{self, Failure, OriginResponse};
use crate::respond::Client;
use crate::response::{self, Times};
use crate::shared::Shared;
use crate::target::{Route, Target};
use crate::way::Way;

pub enum Went {
    /// The client has its response.
    Through,
    /// The head is there, nothing was sent, and the response is for more than this client.
    ForMany(Box<Heard>),
}

/// Whether a response to this can go through on its own, if no other request may get it.
pub fn may(shared: &Shared, client_request: &ClientRequest<'_>) -> bool {
    // What is evaluated or read here needs more of the response than goes by.
    let is_plain = client_request.ranges.is_none() && !client_request.has_conditions();
    is_plain && !shared.peers.never_direct() && !shared.prefetcher.is_on()
}

/// A request that goes through, and whose it is.
struct Order<'o> {
    client_request: &'o ClientRequest<'o>,
    key: &'o [u8],
    /// The last response under this name could not be shared: that is known already.
    is_unshared: bool,
    source: Source,
    why: Why,
    requested_ms: i64,
}

/// What is known of a response once its head is there.
enum Head {
    /// Its new head is in `out`, and what came of its body.
    Through(Relay),
    ForMany(Box<OriginResponse>),
    /// A confirmation (304) though the request had no condition.
    Confirmation,
}

/// The rest of a response that goes through.
struct Relay {
    carrier: Carrier,
    framing: Framing,
    /// Bytes after the head that are done with.
    used: usize,
    /// Its body makes no sense from there on.
    is_broken: bool,
    persists: bool,
}

/// Sends the request, and passes the response on.
pub async fn run(
    client: &mut Client,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    (key, is_unshared): (&[u8], bool),
    why: Why,
) -> io::Result<Went> {
    let shared = Rc::clone(&client.shared);
    let began = shared.store.borrow_mut().next_tick();
    let way = Way::to(&shared, target);
    let memory = &shared.resources.memory;
    let mut request = memory.take();
    way.append_fetch_request(&shared, client_request, target, &mut request);
    let mut out = memory.take();
    let mut order = Order { client_request, key, is_unshared, source: way.source(), why, requested_ms: 0 };
    let heard = exchange(client, &way, &mut order, &request, &mut out).await?;
    memory.give(request);
    let failure = match heard {
        Ok((upstream, Head::Through(relay))) => {
            let went = pass_on(client, upstream, &mut out, relay).await;
            memory.give(out);
            return went.map(|()| Went::Through);
        }
        Ok((upstream, Head::ForMany(origin_response))) => {
            let heard = Heard { origin_response: *origin_response, upstream, source: order.source, began };
            return Ok(Went::ForMany(Box::new(heard)));
        }
        Ok((upstream, Head::Confirmation)) => Failure::BadConfirmation(upstream.address),
        Err(failure) => failure,
    };
    shared.count(|c| c.origin_errors += 1);
    let handling = Handling::passed(why);
    Box::pin(client.send_failure(&failure, handling, false)).await?;
    Ok(Went::Through)
}

/// Sends the request and waits for the head of the final response. An idle connection may have been closed by the server just now:
/// then a new one is tried. The outer error is the client's: it has gone.
async fn exchange(
    client: &mut Client,
    way: &Way,
    order: &mut Order<'_>,
    request: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<Result<(Box<Upstream>, Head), Failure>> {
    let shared = Rc::clone(&client.shared);
    let patience = shared.patience();
    let address = match way.route {
        Route::Address(address) if !leads_to(address, shared.address) => address,
        _ => match Box::pin(origin::address_of(&way.route, shared.address, patience)).await {
            Ok(address) => address,
            Err(failure) => return Ok(Err(failure)),
        },
    };
    order.requested_ms = shared.clock.now_ms();
    way.count(&shared);
    if let Some(mut upstream) = shared.pool.take(&address) {
        match hear(client, &mut upstream, order, request, out).await? {
            Ok(head) => return Ok(Ok((upstream, head))),
            Err(UpstreamError::Lost(_) | UpstreamError::Unprocessed(_)) => {}
            Err(failure) => return Ok(Err(failure.into())),
        }
    }
    let mut tries = 1..=MOST_TRIES;
    loop {
        let connecting = Box::pin(shared.pool.connect(address, patience));
        let mut upstream = match unless_gone(&client.exchange.connection, connecting).await? {
            Ok(upstream) => upstream,
            Err(failure) => return Ok(Err(failure.into())),
        };
        match hear(client, &mut upstream, order, request, out).await? {
            Ok(head) => return Ok(Ok((upstream, head))),
            Err(UpstreamError::Unprocessed(_)) if tries.next().is_some() => {}
            Err(failure) => return Ok(Err(failure.into())),
        }
    }
}

async fn hear(
    client: &mut Client,
    upstream: &mut Upstream,
    order: &Order<'_>,
    request: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<Result<Head, UpstreamError>> {
    let patience = client.shared.patience();
    let shared = Rc::clone(&client.shared);
    if let Err(error) = upstream.send(&[request], patience).await {
        return Ok(Err(error));
    }
    let judged = loop {
        // Whoever judges the head has the client for itself: whether that is there is seen to before.
        let begun = unless_gone(&client.exchange.connection, upstream.begin(patience.response));
        if let Err(error) = begun.await? {
            return Ok(Err(error));
        }
        let heard = upstream.head(patience.response, |received| match received.head.status {
            101 => Ok(Err(SWITCHING)),
            100..=199 => Err(interim::passing(&received.head, &shared.name)),
            _ => Ok(judge(client, order, &received.head, received.rest, out)),
        });
        match heard.await {
            Ok(Ok(judged)) => break judged,
            Ok(Err(Some(passing))) if client.exchange.takes_interim() => {
                client.exchange.write(&[&passing]).await?;
            }
            Ok(Err(_)) => {}
            Err(error) => return Ok(Err(error)),
        }
    };
    let head = judged.map_err(|error| UpstreamError::BadResponse(upstream.address, error));
    if let Ok(Head::Through(relay)) = &head {
        upstream.connection.input.consume(relay.used);
    }
    Ok(head)
}

/// What becomes of a response; if it goes through, its new head and what is there of its body are in `out`.
fn judge(
    client: &mut Client,
    order: &Order<'_>,
    head: &ResponseHead<'_>,
    rest: &[u8],
    out: &mut Vec<u8>,
) -> Result<Head, HeadError> {
    if head.status == 304 {
        return Ok(Head::Confirmation);
    }
    let shared = Rc::clone(&client.shared);
    let from = head.body("GET");
    out.clear();
    let found = response::append_head(out, head, &shared.name, || shared.clock.now_ms());
    if is_for_many(&shared, order, head, &found, from) {
        let times = Times { requested_ms: order.requested_ms, received_ms: shared.clock.now_ms() };
        return OriginResponse::of(head, "GET", &shared.name, times)
            .map(|origin_response| Head::ForMany(Box::new(origin_response)));
    }
    shared.count(|c| c.misses += 1);
    // What is said instead of the object (an error, a redirection) says nothing about the object, and neither does a request that
    // forbids storing.
    let ClientRequest { control, is_authorised, .. } = order.client_request;
    if matches!(head.status, 200..=299) && !order.is_unshared && !control.no_store {
        shared.store.borrow_mut().note_shared(order.key, *is_authorised, false);
    }
    if order.client_request.control.no_cache && head.status < 500 {
        shared.store.borrow_mut().remove(order.key);
    }
    let age_s = found.age_s().map(|age_s| {
        let now_ms = shared.clock.now_ms();
        let facts = found.facts(head.status, age_s);
        Freshness::new(&facts, order.requested_ms, now_ms).age_s(now_ms)
    });
    let length = match from {
        BodyFraming::None => Some(0),
        BodyFraming::Length(bytes) => Some(bytes),
        BodyFraming::Chunked | BodyFraming::UntilClose => None,
    };
    let framing = client.exchange.framing(head.status, length);
    let handling = Handling::Forwarded {
        why: order.why,
        is_confirmed: false,
        is_stored: false,
        is_collapsed: false,
        source: order.source,
    };
    client.append_noted_tail(out, (head.status, handling), age_s, framing);
    let mut carrier = Carrier::new(from, framing == Framing::Chunked);
    let taken = carrier.take(rest, out);
    let (used, is_broken) = (taken.unwrap_or(rest.len()), taken.is_err());
    Ok(Head::Through(Relay { carrier, framing, used, is_broken, persists: head.persists("GET") }))
}

/// Whether the response may be stored, and is not too large for it.
fn is_for_many(
    shared: &Shared,
    order: &Order<'_>,
    head: &ResponseHead<'_>,
    found: &ResponseFields<'_>,
    framing: BodyFraming,
) -> bool {
    let control = found.control();
    if control.no_store || control.private || order.client_request.control.no_store {
        return false;
    }
    let bytes = if let BodyFraming::Length(bytes) = framing { bytes } else { 0 };
    if bytes > shared.store.borrow().largest_bytes() {
        return false;
    }
    let facts = found.facts(head.status, 0);
    may_store(MethodClass::Get, &order.client_request.control, order.client_request.is_authorised, &facts)
        .is_ok()
}

/// Sends what is in `out`, and what follows.
async fn pass_on(
    client: &mut Client,
    mut upstream: Box<Upstream>,
    out: &mut Vec<u8>,
    mut relay: Relay,
) -> io::Result<()> {
    let shared = Rc::clone(&client.shared);
    let is_noted = matches!(relay.framing, Framing::Length(_));
    let mut noted = 0;
    loop {
        if !is_noted {
            client.note_bytes(relay.carrier.payload - noted);
            noted = relay.carrier.payload;
        }
        let is_done = relay.carrier.is_done();
        if is_done && relay.persists && upstream.connection.input.unread().is_empty() {
            // All is here: the server is free before the client has it.
            shared.pool.put_back(upstream);
            return client.exchange.write(&[out]).await;
        }
        client.exchange.write(&[out]).await?;
        if is_done {
            return Ok(());
        }
        out.clear();
        let part = match relay.is_broken {
            true => Part::Broken,
            false => {
                let to = &client.exchange.connection;
                upstream.connection.deadline.set(shared.limits.origin_response);
                let (from, deadline, input, memory) = upstream.connection.parts();
                let carried = (&mut relay.carrier, &mut *out);
                let part =
                    next_part(memory, (from, deadline), input, carried, |bytes| to.stream.try_write(bytes));
                unless_gone(to, part).await?.unwrap_or(Part::Broken)
            }
        };
        match part {
            Part::Some => {}
            Part::ClientGone(error) => return Err(error),
            Part::Broken => {
                shared.count(|c| c.origin_errors += 1);
                return Err(client.exchange.break_off(relay.framing));
            }
        }
    }
}
