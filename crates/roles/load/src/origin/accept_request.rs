//! Acceptance of a complete request, in either version of HTTP: counts, think time and faults.

use std::rc::Rc;

use assay_workload::Fault;
use assay_workload::model::{Method, OriginIndex};

use super::request::{OriginRequest, RequestTarget};
use super::tally::RequestError;
use super::worker_state::WorkerState;

/// Instant at which a request was complete, and its cost so far.
#[derive(Debug, Clone, Copy)]
pub struct RequestArrival {
    pub at_ns: u64,
    /// Time for which its last bytes had lain unread by then.
    pub unread_us: u32,
    /// Bytes read for it, where they are counted by requests.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAction {
    Respond,
    /// The response, at this instant.
    Think {
        /// End of the think time.
        until_ns: u64,
    },
    /// The end, without a response: a fault on purpose.
    Reset,
}

/// A request is under way at an origin that slows down under load; until this is dropped.
#[derive(Debug)]
pub struct ActiveRequest {
    worker: Rc<WorkerState>,
    origin: OriginIndex,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if let Some(config) = self.worker.shared.configs.get(self.origin) {
            config.finish();
        }
    }
}

/// Counts a complete request, and begins its think time.
#[inline]
pub fn accept_request(
    worker: &Rc<WorkerState>,
    request: &mut OriginRequest,
    arrival: RequestArrival,
    under_way: &mut Option<ActiveRequest>,
) -> NextAction {
    request.complete_ns = arrival.at_ns;
    request.delay_us = arrival.unread_us;
    if !request.is_health() {
        let mut tally = worker.tally.borrow_mut();
        let phase = request.phase(&tally);
        tally.enter(phase);
        let counts = &mut tally.recorder(phase).counts;
        counts.requests += 1;
        counts.wire_bytes_in += arrival.bytes;
        match request.target {
            RequestTarget::Object { .. } => counts.validations += u64::from(request.validates),
            RequestTarget::Health | RequestTarget::Plain(_) => counts.refused += 1,
        }
    }
    if request.method == Method::Post {
        check_repetition(worker, request, arrival.at_ns);
    }
    let config = worker.shared.configs.get(request.origin).filter(|_| request.is_for_object());
    let mut think_ns = config
        .and_then(|config| config.think_ns(worker.shared.universe.seed(), &request.xact()))
        .unwrap_or(0);
    if let Some(delay_ns) = config.and_then(|config| config.delay_ns()) {
        *under_way = Some(ActiveRequest { worker: Rc::clone(worker), origin: request.origin });
        think_ns = think_ns.saturating_add(delay_ns);
    }
    if request.special.is_some() {
        match meet_fault(worker, request, arrival.at_ns) {
            Some(Fault::Reset) => return NextAction::Reset,
            Some(Fault::SlowStart(late)) => {
                think_ns = think_ns.saturating_add(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX));
            }
            Some(Fault::Expired(after)) => think_ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX),
            Some(Fault::Status(_) | Fault::SlowBody { .. }) | None => {}
        }
    }
    match think_ns {
        0 => NextAction::Respond,
        _ => NextAction::Think { until_ns: arrival.at_ns.saturating_add(think_ns) },
    }
}

/// Counts a POST that its robot sent once, and that has come before: each attempt of a robot has a number of its own.
#[cold]
fn check_repetition(worker: &WorkerState, request: &OriginRequest, now_ns: u64) {
    let Some(mark) = request.mark.filter(|_| request.is_for_object()) else { return };
    // What an origin did not want may be sent to it once more (RFC 9110, 10.1.1).
    if request.special.as_ref().is_some_and(|special| special.is_body_refused) {
        return;
    }
    if let Some(before_ns) = worker.shared.posts.record((mark.xact, mark.attempt), now_ns, now_ns) {
        let after_ms = now_ns.saturating_sub(before_ns) / 1_000_000;
        worker.count_error(request, &RequestError::RepeatedPost { after_ms }, now_ns);
    }
}

/// Injects the fault that is meant for this request, unless it has met it before: a retry by a proxy succeeds.
fn meet_fault(worker: &WorkerState, request: &mut OriginRequest, complete_ns: u64) -> Option<Fault> {
    let shared = &worker.shared;
    let (RequestTarget::Object { object, .. }, Some(special)) = (request.target, &mut request.special) else {
        return None;
    };
    let xact = request.mark?.xact;
    let fault = shared.universe.fault(xact, request.origin)?;
    let before = shared.faults_met.record(xact, object.key, complete_ns);
    special.fault = before.is_none().then_some(fault);
    let fault = special.fault;
    let mut tally = worker.tally.borrow_mut();
    let phase = request.phase(&tally);
    let counts = &mut tally.recorder(phase).counts;
    match fault {
        // For another object, it is a later step of the same xact.
        None => counts.retried += u64::from(before == Some(object.key)),
        // Counted where the status is written.
        Some(Fault::Status(_)) => {}
        Some(Fault::Reset | Fault::Expired(_)) => counts.fault_resets += 1,
        Some(Fault::SlowStart(_)) => counts.fault_slow_starts += 1,
        Some(Fault::SlowBody { .. }) => counts.fault_slow_bodies += 1,
    }
    fault
}
