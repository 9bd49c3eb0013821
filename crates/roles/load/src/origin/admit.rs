//! What an origin does with a complete request before it responds, whatever version of HTTP brought it.

use std::rc::Rc;

use assay_workload::Fault;
use assay_workload::model::OriginIndex;

use super::fault::Attempt;
use super::local::Local;
use super::request::{Request, What};

/// When a request was complete.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub at_ns: u64,
    /// How long its last bytes had lain unread then.
    pub unread_us: u32,
    /// Bytes read for it, where they are counted by requests.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Respond,
    /// The response, at this instant.
    Think {
        /// When the think time is over.
        until_ns: u64,
    },
    /// The end, without a response: a fault on purpose.
    Reset,
}

/// A request is under way at an origin that slows down under load; until this is dropped.
#[derive(Debug)]
pub struct UnderWay {
    local: Rc<Local>,
    origin: OriginIndex,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(site) = self.local.world.sites.get(self.origin) {
            site.finish();
        }
    }
}

/// The request is complete: counts it, and lets the origin think.
#[inline]
pub fn admit(
    local: &Rc<Local>,
    request: &mut Request,
    arrival: Arrival,
    under_way: &mut Option<UnderWay>,
) -> Next {
    request.complete_ns = arrival.at_ns;
    request.delay_us = arrival.unread_us;
    if !request.is_health() {
        let mut tally = local.tally.borrow_mut();
        let phase = request.phase(&tally);
        tally.enter(phase);
        let counts = &mut tally.of(phase).counts;
        counts.requests += 1;
        counts.wire_bytes_in += arrival.bytes;
        match request.what {
            What::Object { .. } => counts.validations += u64::from(request.validates),
            What::Health | What::Plain(_) => counts.refused += 1,
        }
    }
    let site = local.world.sites.get(request.origin).filter(|_| request.is_for_object());
    let mut think_ns =
        site.and_then(|site| site.think_ns(local.world.universe.seed(), &request.xact())).unwrap_or(0);
    if let Some(delay_ns) = site.and_then(|site| site.delay_ns()) {
        *under_way = Some(UnderWay { local: Rc::clone(local), origin: request.origin });
        think_ns = think_ns.saturating_add(delay_ns);
    }
    if request.special.is_some() {
        match meet_fault(local, request, arrival.at_ns) {
            Some(Fault::Reset) => return Next::Reset,
            Some(Fault::SlowStart(late)) => {
                think_ns = think_ns.saturating_add(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX));
            }
            Some(Fault::Expired(after)) => think_ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX),
            Some(Fault::Status(_) | Fault::SlowBody { .. }) | None => {}
        }
    }
    match think_ns {
        0 => Next::Respond,
        _ => Next::Think { until_ns: arrival.at_ns.saturating_add(think_ns) },
    }
}

/// What goes wrong with this request on purpose: the fault that is meant for it, unless it has met it before.
fn meet_fault(local: &Local, request: &mut Request, complete_ns: u64) -> Option<Fault> {
    let world = &local.world;
    let (What::Object { object, .. }, Some(special)) = (request.what, &mut request.special) else {
        return None;
    };
    let xact = request.mark?.xact;
    let fault = world.universe.fault(xact, request.origin)?;
    let attempt = world.attempts.note(xact, object.key, complete_ns);
    special.fault = (attempt == Attempt::First).then_some(fault);
    let fault = special.fault;
    let mut tally = local.tally.borrow_mut();
    let phase = request.phase(&tally);
    let counts = &mut tally.of(phase).counts;
    match fault {
        None => counts.retried += u64::from(attempt == Attempt::Again),
        // Counted where the status is written.
        Some(Fault::Status(_)) => {}
        Some(Fault::Reset | Fault::Expired(_)) => counts.fault_resets += 1,
        Some(Fault::SlowStart(_)) => counts.fault_slow_starts += 1,
        Some(Fault::SlowBody { .. }) => counts.fault_slow_bodies += 1,
    }
    fault
}
