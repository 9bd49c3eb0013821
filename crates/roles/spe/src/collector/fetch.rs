//! Fetching of an object from its origin, once for all requests for it.
//!
//! A fetch is a task of its own: the client that caused it may go away. Each fetch uses a new connection, so that its cost
//! includes connecting (11.3.1 of the thesis), and each step and each part of the body is recorded with its time. Failures are
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
use assay_net::upstream::{ReceivedHead, Upstream, UpstreamError};
use tokio::time::sleep;

use crate::collector::recording::{FetchTimings, Recording, RecordingOutcome};
use crate::collector::recording_store::{RecordingKey, url_of};
use crate::collector::response::{RecordedResponse, RecordedTimes, RequestContext};
use crate::collector::shared::{CollectorShared, FetchAddress, FetchError};
use crate::collector::timeline::BodyEnd;

/// Time for which the connection of a completed fetch stays open.
const LINGER: Duration = Duration::from_millis(1);

/// Parameters of a fetch.
pub struct OriginFetch {
    pub key: RecordingKey,
    /// Address of the origin.
    pub destination: FetchAddress,
    /// Authority to speak TLS to, in addition to an origin that always speaks it; `None`: in the clear.
    pub tls_authority: Option<String>,
    /// Head for the origin, without conditions and the empty line.
    pub request: Vec<u8>,
    /// The client's conditions, if they are to be forwarded.
    pub conditions: Vec<u8>,
    pub body: Vec<Chunk>,
    /// Recording that the origin is to confirm.
    pub confirming: Option<Rc<Recording>>,
    /// Directives of the client.
    pub control: RequestControl,
    /// The request has credentials.
    pub is_authorised: bool,
    /// The method may change the resource.
    pub is_unsafe: bool,
}

/// Fetches into a recording.
pub async fn run(shared: Rc<CollectorShared>, recording: Rc<Recording>, plan: OriginFetch) {
    if let Err(error) = fetch(&shared, &recording, &plan).await {
        shared.count_failed(&error);
        let at_ns = monotonic_ns().saturating_sub(recording.requested_ns);
        let text = format!("{error}\n");
        let response = RecordedResponse::failed(error.status(), shared.now_ms(), text.len() as u64);
        let timings = FetchTimings { head_ns: at_ns, first_byte_ns: at_ns, ..recording.timings() };
        recording.append(at_ns, Chunk::from(text.as_bytes()));
        recording.finish(at_ns, BodyEnd::Complete);
        recording.settle(timings, RecordingOutcome::Response(Rc::new(response)));
        shared.store.borrow_mut().complete(&plan.key, &recording, 0, monotonic_ns());
    }
}

async fn fetch(
    shared: &CollectorShared,
    recording: &Rc<Recording>,
    plan: &OriginFetch,
) -> Result<(), FetchError> {
    let mut confirming = plan.confirming.as_ref();
    loop {
        let mut request = plan.request.clone();
        request.extend_from_slice(&plan.conditions);
        if let Some(response) = confirming.and_then(|old| old.response()) {
            shared.count(|c| c.confirmations += 1);
            response.write_conditions(&mut request);
        }
        request.extend_from_slice(b"\r\n");
        let requested_ms = shared.now_ms();
        let take = |received: ReceivedHead<'_>| {
            let times = RecordedTimes { requested_ms, received_ms: shared.now_ms() };
            Ok((RecordedResponse::new(&received.head, &context(&request, plan)?, times), times))
        };
        let (origin, taken, timings) = attempt(shared, recording, plan, &request, take).await?;
        let (response, times) = taken.map_err(|error| UpstreamError::BadResponse(origin.address, error))?;
        if response.status != 304 || (confirming.is_none() && !plan.conditions.is_empty()) {
            receive(shared, recording, plan, response, origin, timings).await;
            return Ok(());
        }
        let old = confirming.take().ok_or(FetchError::BadConfirmation)?;
        if let Some(renewed) = renew(recording, old, &response, &request, plan, times) {
            shared.store.borrow_mut().renew(&plan.key, old, recording, &renewed, monotonic_ns());
            let ahead_ns = old.timings().head_ns as i64 - timings.head_ns as i64;
            recording.settle(timings, RecordingOutcome::Confirmed { recording: renewed, ahead_ns });
            return Ok(());
        }
        // Another version than the recorded one was confirmed: fetch that.
    }
}

/// Connects, sends the request, and applies `take` to the head of the final response.
async fn attempt<T>(
    shared: &CollectorShared,
    recording: &Recording,
    plan: &OriginFetch,
    request: &[u8],
    take: impl FnOnce(ReceivedHead<'_>) -> T,
) -> Result<(Box<Upstream>, T, FetchTimings), FetchError> {
    let timeouts = shared.origin_timeouts();
    let offset = || monotonic_ns().saturating_sub(recording.requested_ns);
    let address = shared.address_of(&plan.destination).await?;
    let mut timings = FetchTimings { resolved_ns: offset(), ..FetchTimings::default() };
    shared.count(|c| c.origin_requests += 1);
    let mut origin = shared.connect(address, plan.tls_authority.as_deref()).await?.with_timing();
    timings.connected_ns = offset();
    let parts: Vec<&[u8]> = iter::once(request).chain(plan.body.iter().map(|part| &part[..])).collect();
    // Not an error yet: the origin may have responded before it closed.
    let sent = origin.send(&parts, timeouts).await;
    let record_interim = |head: &ResponseHead<'_>| {
        if let Some(interim) = interim::rewrite_unnamed(head) {
            recording.append_interim(offset(), &interim);
        }
    };
    let taken = match origin.final_head_after(timeouts.response, record_interim, take).await {
        Ok(taken) => taken,
        // The error of sending is more specific.
        Err(error) => return Err(sent.err().unwrap_or(error).into()),
    };
    let first_byte_ns = origin.first_byte_ns.unwrap_or(recording.requested_ns);
    timings.first_byte_ns = first_byte_ns.saturating_sub(recording.requested_ns);
    timings.head_ns = offset();
    Ok((origin, taken, timings))
}

fn context<'q>(request: &'q [u8], plan: &OriginFetch) -> Result<RequestContext<'q>, HeadError> {
    let head = RequestHead::parse(request)?;
    let (head, _) = head.ok_or(HeadError::Syntax("the head of the request is not complete"))?;
    Ok(RequestContext { head, control: plan.control, is_authorised: plan.is_authorised })
}

/// Recording that results from the confirmation of an old one; `None` if another version was confirmed.
fn renew(
    recording: &Recording,
    old: &Rc<Recording>,
    confirmation: &RecordedResponse,
    request: &[u8],
    plan: &OriginFetch,
    times: RecordedTimes,
) -> Option<Rc<Recording>> {
    let stored = old.response()?;
    if !confirms(&confirmation.validators(), &stored.validators()) {
        return None;
    }
    let renewed = stored.updated_by(confirmation, &context(request, plan).ok()?, times).ok()?;
    Some(old.renewed(renewed, recording))
}

async fn receive(
    shared: &CollectorShared,
    recording: &Rc<Recording>,
    plan: &OriginFetch,
    response: RecordedResponse,
    mut origin: Box<Upstream>,
    timings: FetchTimings,
) {
    if matches!(response.status, 200..=299) {
        shared.store.borrow_mut().note_shared(&plan.key, response.is_fresh(&plan.control, shared.now_ms()));
    }
    if plan.is_unsafe && matches!(response.status, 200..=399) {
        shared.store.borrow_mut().change(url_of(&plan.key), monotonic_ns());
    }
    let mut body = BodyReader::new(response.framing);
    let length = if let BodyFraming::Length(bytes) = response.framing { bytes } else { 0 };
    // The announced length is reserved at once: of several bodies that arrive together, some are then kept whole, instead of all
    // of them in part.
    let mut is_kept = shared.store.borrow_mut().reserve(0, length, monotonic_ns());
    let (mut reserved, mut received) = (if is_kept { length } else { 0 }, 0);
    let is_for_all = response.is_for_all();
    if !is_kept {
        // Before another request can join: requests that share a recording which is not kept wait for each other.
        recording.stop_keeping();
        shared.store.borrow_mut().drop_recording(&plan.key, recording, is_for_all, monotonic_ns());
    }
    recording.settle(timings, RecordingOutcome::Response(Rc::new(response)));
    let end = loop {
        if !recording.is_wanted(|readers| shared.count(|c| c.given_up += readers)).await {
            break BodyEnd::Broken;
        }
        let limit = shared.origin_timeouts().response;
        match body.next(&mut origin.connection, limit).await {
            Ok(Some(part)) => {
                let at_ns = monotonic_ns().saturating_sub(recording.requested_ns);
                let bytes = part.len() as u64;
                shared.count(|c| c.origin_bytes += bytes);
                let mut store = shared.store.borrow_mut();
                received += bytes;
                let more = received.saturating_sub(reserved);
                if is_kept && (more == 0 || store.reserve(reserved, more, monotonic_ns())) {
                    reserved += more;
                } else if is_kept {
                    is_kept = false;
                    store.release(std::mem::take(&mut reserved));
                    recording.stop_keeping();
                    store.drop_recording(&plan.key, recording, is_for_all, monotonic_ns());
                }
                recording.append(at_ns, part);
            }
            Ok(None) => break BodyEnd::Complete,
            Err(_) => {
                shared.count(|c| c.origin_errors += 1);
                break BodyEnd::Broken;
            }
        }
    };
    recording.finish(monotonic_ns().saturating_sub(recording.requested_ns), end);
    if is_kept {
        shared.store.borrow_mut().complete(&plan.key, recording, reserved, monotonic_ns());
    }
    // Delayed so that requests waiting for the end of the response go first: closing takes time, and wakes the task at the other
    // end.
    sleep(LINGER).await;
    drop(origin);
}
