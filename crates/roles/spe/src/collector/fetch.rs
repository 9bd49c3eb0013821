//! Fetching an object from its origin, once, for all requests for it.
//!
//! A fetch is a task of its own: who caused it may go away. Each one has a connection of its own, so that all of them
//! cost what a connection costs (11.3.1), and each step and each part of the body is recorded with its time. What fails is
//! recorded too, and replayed like everything else.

use std::iter;
use std::rc::Rc;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_cache::conditional::confirms;
use assay_cache::freshness::RequestControl;
use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, RequestHead, ResponseHead};
use assay_net::body::{BodyReader, Chunk};
use assay_net::interim;
use assay_net::upstream::{Received, Upstream, UpstreamError};
use tokio::time::sleep;

use crate::collector::recording::{Outcome, Recording, Steps};
use crate::collector::response::{Question, Response, Times};
use crate::collector::shared::{FetchError, Place, Shared};
use crate::collector::shelf::{Key, url_of};
use crate::collector::timeline::End;

/// How long the connection of a fetch that is complete is kept.
const LINGER: Duration = Duration::from_millis(1);

/// What to fetch, and what for.
pub struct Order {
    pub key: Key,
    /// Where it comes from.
    pub place: Place,
    /// The authority that it is spoken to for over TLS, beside an origin that always is; none: in the clear.
    pub secured: Option<String>,
    /// The head for the origin, without conditions and without the empty line.
    pub request: Vec<u8>,
    /// The client's conditions, if they are to be passed on.
    pub conditions: Vec<u8>,
    /// The body of the request.
    pub body: Vec<Chunk>,
    /// The recording that the origin is to confirm.
    pub confirming: Option<Rc<Recording>>,
    /// Directives of the client.
    pub control: RequestControl,
    /// The request has credentials.
    pub is_authorised: bool,
    /// The method may change what is there.
    pub is_unsafe: bool,
}

/// Fetches into a recording, to the end.
pub async fn run(shared: Rc<Shared>, recording: Rc<Recording>, order: Order) {
    if let Err(error) = fetch(&shared, &recording, &order).await {
        shared.count_failed(&error);
        let at_ns = monotonic_ns().saturating_sub(recording.requested_ns);
        let text = format!("{error}\n");
        let response = Response::failed(error.status(), shared.now_ms(), text.len() as u64);
        let steps = Steps { head_ns: at_ns, first_byte_ns: at_ns, ..recording.steps() };
        recording.append(at_ns, Chunk::from(text.as_bytes()));
        recording.finish(at_ns, End::Complete);
        recording.settle(steps, Outcome::Response(Rc::new(response)));
        shared.shelf.borrow_mut().complete(&order.key, &recording, 0, monotonic_ns());
    }
}

async fn fetch(shared: &Shared, recording: &Rc<Recording>, order: &Order) -> Result<(), FetchError> {
    let mut confirming = order.confirming.as_ref();
    loop {
        let mut request = order.request.clone();
        request.extend_from_slice(&order.conditions);
        if let Some(response) = confirming.and_then(|old| old.response()) {
            shared.count(|c| c.confirmations += 1);
            response.write_conditions(&mut request);
        }
        request.extend_from_slice(b"\r\n");
        let requested_ms = shared.now_ms();
        let take = |received: Received<'_>| {
            let times = Times { requested_ms, received_ms: shared.now_ms() };
            Ok((Response::new(&received.head, &question(&request, order)?, times), times))
        };
        let (origin, taken, steps) = attempt(shared, recording, order, &request, take).await?;
        let (response, times) = taken.map_err(|error| UpstreamError::BadResponse(origin.address, error))?;
        if response.status != 304 || (confirming.is_none() && !order.conditions.is_empty()) {
            receive(shared, recording, order, response, origin, steps).await;
            return Ok(());
        }
        let old = confirming.take().ok_or(FetchError::BadConfirmation)?;
        if let Some(renewed) = renew(recording, old, &response, &request, order, times) {
            shared.shelf.borrow_mut().renew(&order.key, (old, recording), &renewed, monotonic_ns());
            let ahead_ns = old.steps().head_ns as i64 - steps.head_ns as i64;
            recording.settle(steps, Outcome::Confirmed { recording: renewed, ahead_ns });
            return Ok(());
        }
        // It confirmed another version than the one that is here: fetch that.
    }
}

/// Connects, sends the request, and waits for the head of the final response, of which `take` takes what is needed.
async fn attempt<T>(
    shared: &Shared,
    recording: &Recording,
    order: &Order,
    request: &[u8],
    take: impl FnOnce(Received<'_>) -> T,
) -> Result<(Box<Upstream>, T, Steps), FetchError> {
    let patience = shared.patience();
    let offset = || monotonic_ns().saturating_sub(recording.requested_ns);
    let address = shared.address_of(&order.place).await?;
    let mut steps = Steps { resolved_ns: offset(), ..Steps::default() };
    shared.count(|c| c.origin_requests += 1);
    let mut origin = shared.connect(address, order.secured.as_deref()).await?.timed();
    steps.connected_ns = offset();
    let parts: Vec<&[u8]> = iter::once(request).chain(order.body.iter().map(|part| &part[..])).collect();
    // Where that fails, it may have responded before it closed.
    let sent = origin.send(&parts, patience).await;
    let hear = |head: &ResponseHead<'_>| {
        if let Some(interim) = interim::passing_unnamed(head) {
            recording.hear(offset(), &interim);
        }
    };
    let taken = match origin.final_head_after(patience.response, hear, take).await {
        Ok(taken) => taken,
        // Why the request could not be sent says more.
        Err(error) => return Err(sent.err().unwrap_or(error).into()),
    };
    let first_byte_ns = origin.first_byte_ns.unwrap_or(recording.requested_ns);
    steps.first_byte_ns = first_byte_ns.saturating_sub(recording.requested_ns);
    steps.head_ns = offset();
    Ok((origin, taken, steps))
}

fn question<'q>(request: &'q [u8], order: &Order) -> Result<Question<'q>, HeadError> {
    let head = RequestHead::parse(request)?;
    let (head, _) = head.ok_or(HeadError::Syntax("the head of the request is not complete"))?;
    Ok(Question { head, control: order.control, is_authorised: order.is_authorised })
}

/// The recording that a confirmation makes of an old one; none: it does not confirm that one.
fn renew(
    recording: &Recording,
    old: &Rc<Recording>,
    confirmation: &Response,
    request: &[u8],
    order: &Order,
    times: Times,
) -> Option<Rc<Recording>> {
    let stored = old.response()?;
    if !confirms(&confirmation.validators(), &stored.validators()) {
        return None;
    }
    let renewed = stored.updated_by(confirmation, &question(request, order).ok()?, times).ok()?;
    Some(old.renewed(renewed, recording))
}

async fn receive(
    shared: &Shared,
    recording: &Rc<Recording>,
    order: &Order,
    response: Response,
    mut origin: Box<Upstream>,
    steps: Steps,
) {
    if matches!(response.status, 200..=299) {
        shared.shelf.borrow_mut().note_shared(&order.key, response.is_fresh(&order.control, shared.now_ms()));
    }
    if order.is_unsafe && matches!(response.status, 200..=399) {
        shared.shelf.borrow_mut().change(url_of(&order.key), monotonic_ns());
    }
    let mut body = BodyReader::new(response.framing);
    let length = if let BodyFraming::Length(bytes) = response.framing { bytes } else { 0 };
    // All at once, where it is known: of several that arrive together, some are kept whole then, and not all of them half.
    let mut is_kept = shared.shelf.borrow_mut().reserve(0, length, monotonic_ns());
    let (mut reserved, mut received) = (if is_kept { length } else { 0 }, 0);
    let is_for_all = response.is_for_all();
    if !is_kept {
        // Before another request can join it: what cannot be kept makes the requests that share it wait for each other.
        recording.let_go();
        shared.shelf.borrow_mut().drop_recording(&order.key, recording, is_for_all, monotonic_ns());
    }
    recording.settle(steps, Outcome::Response(Rc::new(response)));
    let end = loop {
        if !recording.is_wanted(|readers| shared.count(|c| c.given_up += readers)).await {
            break End::Broken;
        }
        let limit = shared.patience().response;
        match body.next(&mut origin.connection, limit).await {
            Ok(Some(part)) => {
                let at_ns = monotonic_ns().saturating_sub(recording.requested_ns);
                let bytes = part.len() as u64;
                shared.count(|c| c.origin_bytes += bytes);
                let mut shelf = shared.shelf.borrow_mut();
                received += bytes;
                let more = received.saturating_sub(reserved);
                if is_kept && (more == 0 || shelf.reserve(reserved, more, monotonic_ns())) {
                    reserved += more;
                } else if is_kept {
                    is_kept = false;
                    shelf.release(std::mem::take(&mut reserved));
                    recording.let_go();
                    shelf.drop_recording(&order.key, recording, is_for_all, monotonic_ns());
                }
                recording.append(at_ns, part);
            }
            Ok(None) => break End::Complete,
            Err(_) => {
                shared.count(|c| c.origin_errors += 1);
                break End::Broken;
            }
        }
    };
    recording.finish(monotonic_ns().saturating_sub(recording.requested_ns), end);
    if is_kept {
        shared.shelf.borrow_mut().complete(&order.key, recording, reserved, monotonic_ns());
    }
    // Requests that wait for the end of the response go first: to close a connection takes time, and wakes the task at its other
    // end.
    sleep(LINGER).await;
    drop(origin);
}
