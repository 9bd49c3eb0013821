//! State shared by the clients' thread, the proxies' thread and the log's.
//!
//! Counters, the number of requests outstanding at each proxy, and the memory held for clients' bodies. Everything here is an
//! atomic number or a channel: no thread waits for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, TrySendError};

use assay_base::clock::monotonic_ns;
use assay_protocol::evaluation::{MultiplierCounters, OpenedCounters, TargetCounters};
use assay_record::spe::Verdict;

use super::measurement::Measurement;
use super::message::RequestSummary;

/// Bytes of clients' bodies that are held for the proxies at once, at most half of them for one body.
const HELD_MAX_BYTES: u64 = 64 << 20;

/// Log entry of one response.
#[derive(Debug, Clone)]
pub struct ResponseEntry {
    pub summary: Arc<RequestSummary>,
    /// 0 is the Collector.
    pub target: u16,
    /// Position of the proxy in the request's order.
    pub position: u8,
    pub measurement: Measurement,
    /// MD5 of the body.
    pub checksum: Option<String>,
    pub verdict: Verdict,
    /// Field that differs.
    pub header: Option<String>,
    /// Status of the Collector's response.
    pub direct_status: Option<u16>,
}

#[derive(Default)]
struct TargetState {
    requested: AtomicU64,
    responses: AtomicU64,
    matching: AtomicU64,
    mismatches: AtomicU64,
    not_kept: AtomicU64,
    no_response: AtomicU64,
    dropped: AtomicU64,
    waiting: AtomicU64,
    response_sum_us: AtomicU64,
    body_bytes: AtomicU64,
}

/// A client's connection, with its outstanding requests by target.
#[derive(Debug, Clone)]
pub struct ClientLoad {
    /// Number of the connection.
    pub id: u64,
    waiting: Arc<[AtomicU64]>,
}

/// Outcomes of tunnels to intercept; each is counted once.
#[derive(Default)]
pub struct InterceptCounts {
    pub opened: AtomicU64,
    /// The client rejected the certificate.
    pub certificate_refused: AtomicU64,
    /// The client named another server, or none.
    pub name_refused: AtomicU64,
    /// The client did not speak TLS.
    pub not_tls: AtomicU64,
    pub no_common_parameters: AtomicU64,
    /// The handshake was not completed.
    pub failed: AtomicU64,
}

impl InterceptCounts {
    fn counters(&self) -> OpenedCounters {
        OpenedCounters {
            opened: self.opened.load(Relaxed),
            certificate_refused: self.certificate_refused.load(Relaxed),
            name_refused: self.name_refused.load(Relaxed),
            not_tls: self.not_tls.load(Relaxed),
            no_common_parameters: self.no_common_parameters.load(Relaxed),
            failed: self.failed.load(Relaxed),
        }
    }
}

#[derive(Debug)]
pub enum LogCommand {
    Entry {
        entry: Box<ResponseEntry>,
        /// Start of the evaluation.
        start_ns: u64,
    },
    End,
}

pub struct SharedState {
    start_ns: AtomicU64,
    max_waiting: u64,
    targets: Vec<TargetState>,
    held: AtomicU64,
    /// Shared with the log's thread.
    lost: Arc<AtomicU64>,
    entries: SyncSender<LogCommand>,
    pub clients: AtomicU64,
    pub open_clients: AtomicU64,
    pub requests: AtomicU64,
    pub connects: AtomicU64,
    pub opened: InterceptCounts,
    pub refused: AtomicU64,
    /// Requests that got 503 because of the limit of concurrent requests.
    pub no_room: AtomicU64,
    /// Clients that left before they had their response.
    pub client_gone: AtomicU64,
}

pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl SharedState {
    /// Creates the state for so many proxies, each with up to `max_waiting` outstanding requests; entries go to `entries`, and
    /// those that are not written are counted in `lost`.
    pub fn new(
        proxies: usize,
        max_waiting: u32,
        entries: SyncSender<LogCommand>,
        lost: Arc<AtomicU64>,
    ) -> Self {
        Self {
            start_ns: AtomicU64::new(monotonic_ns()),
            max_waiting: max_waiting.into(),
            targets: (0..=proxies).map(|_| TargetState::default()).collect(),
            held: AtomicU64::new(0),
            lost,
            entries,
            clients: AtomicU64::new(0),
            open_clients: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            connects: AtomicU64::new(0),
            opened: InterceptCounts::default(),
            refused: AtomicU64::new(0),
            no_room: AtomicU64::new(0),
            client_gone: AtomicU64::new(0),
        }
    }

    /// Sets the start of the evaluation, from which times count.
    pub fn start(&self, at_ns: u64) {
        self.start_ns.store(at_ns, Relaxed);
    }

    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(Relaxed)
    }

    pub fn client_load(&self, id: u64) -> ClientLoad {
        ClientLoad { id, waiting: self.targets.iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// Admits one more request of a connection to a proxy, if possible; it then counts as outstanding until
    /// [`SharedState::responded`]. A connection may have as many outstanding requests as there is room left: one that sends
    /// requests faster than a proxy responds leaves room for others. Called by one thread alone.
    pub fn admit(&self, load: &ClientLoad, target: u16) -> bool {
        let target = usize::from(target);
        let (Some(state), Some(own)) = (self.targets.get(target), load.waiting.get(target)) else {
            return false;
        };
        let is_admitted = state.waiting.load(Relaxed) + own.load(Relaxed) < self.max_waiting;
        if is_admitted {
            count(&state.waiting);
            count(own);
        }
        is_admitted
    }

    /// Counts a request sent to a target.
    pub fn requested(&self, target: u16) {
        self.targets.get(usize::from(target)).into_iter().for_each(|state| count(&state.requested));
    }

    /// Takes back [`SharedState::requested`] for a request that could not be sent.
    pub fn not_requested(&self, target: u16) {
        self.targets.get(usize::from(target)).into_iter().for_each(|state| {
            state.requested.fetch_sub(1, Relaxed);
        });
    }

    /// Records the response to an admitted request.
    pub fn responded(&self, load: &ClientLoad, entry: ResponseEntry) {
        let target = usize::from(entry.target);
        if let (Some(state), Some(own)) = (self.targets.get(target), load.waiting.get(target)) {
            state.waiting.fetch_sub(1, Relaxed);
            own.fetch_sub(1, Relaxed);
        }
        self.record(entry);
    }

    /// Counts and logs a response. If the disk is too slow, the entry is lost rather than waited for.
    pub fn record(&self, entry: ResponseEntry) {
        if let Some(state) = self.targets.get(usize::from(entry.target)) {
            let measurement = &entry.measurement;
            match entry.verdict {
                Verdict::Dropped => count(&state.dropped),
                _ if measurement.error.is_some() => count(&state.no_response),
                _ if measurement.status.is_some() => {
                    count(&state.responses);
                    if entry.verdict != Verdict::NotKept {
                        state.response_sum_us.fetch_add(measurement.response_ns() / 1_000, Relaxed);
                    }
                }
                _ => {}
            }
            match entry.verdict {
                Verdict::Ok => count(&state.matching),
                Verdict::NotKept => count(&state.not_kept),
                verdict if verdict.is_mismatch() => count(&state.mismatches),
                _ => {}
            }
            state.body_bytes.fetch_add(measurement.body_bytes, Relaxed);
        }
        let command = LogCommand::Entry { entry: Box::new(entry), start_ns: self.start_ns() };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.entries.try_send(command) {
            count(&self.lost);
        }
    }

    /// Ends the log. Waits until its thread has received the command.
    pub fn close(&self) {
        // An error means that the thread has ended already.
        let _ = self.entries.send(LogCommand::End);
    }

    /// Starts a reservation, of nothing yet, for a body held for the proxies.
    pub fn hold_body(self: &Arc<Self>) -> HeldBody {
        HeldBody { state: Arc::clone(self), bytes: 0 }
    }

    pub fn counters(&self) -> MultiplierCounters {
        let of = |state: &TargetState| TargetCounters {
            requested: state.requested.load(Relaxed),
            responses: state.responses.load(Relaxed),
            matching: state.matching.load(Relaxed),
            mismatches: state.mismatches.load(Relaxed),
            not_kept: state.not_kept.load(Relaxed),
            no_response: state.no_response.load(Relaxed),
            dropped: state.dropped.load(Relaxed),
            waiting: state.waiting.load(Relaxed),
            response_sum_us: state.response_sum_us.load(Relaxed),
            body_bytes: state.body_bytes.load(Relaxed),
        };
        MultiplierCounters {
            at_ms: monotonic_ns().saturating_sub(self.start_ns()) / 1_000_000,
            clients: self.clients.load(Relaxed),
            open_clients: self.open_clients.load(Relaxed),
            requests: self.requests.load(Relaxed),
            connects: self.connects.load(Relaxed),
            opened: self.opened.counters(),
            refused: self.refused.load(Relaxed),
            no_room: self.no_room.load(Relaxed),
            client_gone: self.client_gone.load(Relaxed),
            responses_lost: self.lost.load(Relaxed),
            targets: self.targets.iter().map(of).collect(),
            ..MultiplierCounters::default()
        }
    }
}

/// Memory reserved for a body; released on drop.
pub struct HeldBody {
    state: Arc<SharedState>,
    bytes: u64,
}

impl HeldBody {
    /// Reserves more. False if there is none, as no body may take more than it leaves to others. Called by one thread alone.
    pub fn take(&mut self, more: u64) -> bool {
        let held = self.state.held.load(Relaxed);
        let fits = self.bytes + more <= HELD_MAX_BYTES.saturating_sub(held);
        if fits {
            self.state.held.fetch_add(more, Relaxed);
            self.bytes += more;
        }
        fits
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.state.held.fetch_sub(self.bytes, Relaxed);
    }
}

impl std::fmt::Debug for HeldBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeldBody({})", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::mpsc::sync_channel;

    use assay_http::head::Version;

    use super::*;

    fn entry(target: u16, verdict: Verdict) -> ResponseEntry {
        let summary = RequestSummary {
            number: 0,
            client: IpAddr::from([127, 0, 0, 1]),
            method: "GET".into(),
            version: Version::Http11,
            url: "http://a/".into(),
            is_validation: false,
        };
        let measurement =
            Measurement { status: Some(200), first_byte_ns: Some(5_000), ..Measurement::default() };
        let (position, checksum, header) = (0, None, None);
        ResponseEntry {
            summary: summary.into(),
            target,
            position,
            measurement,
            checksum,
            verdict,
            header,
            direct_status: None,
        }
    }

    #[test]
    fn no_more_wait_for_a_proxy_than_may_and_each_response_makes_room() {
        let (entries, _written) = sync_channel(10);
        let state = SharedState::new(2, 2, entries, Arc::default());
        let (one, other) = (state.client_load(0), state.client_load(1));
        assert!(state.admit(&one, 1) && state.admit(&other, 1) && !state.admit(&state.client_load(2), 1));
        assert!(state.admit(&one, 2), "the other proxy has room of its own");
        let waiting: Vec<u64> = state.counters().targets.iter().map(|target| target.waiting).collect();
        assert_eq!(waiting, [0, 2, 1]);
        state.responded(&one, entry(1, Verdict::Ok));
        assert!(state.admit(&one, 1));
        assert!(!state.admit(&one, 9), "there is no such proxy");
    }

    #[test]
    fn a_connection_has_as_many_requests_waiting_as_it_leaves_places_to_others() {
        let (entries, _written) = sync_channel(10);
        let state = SharedState::new(1, 100, entries, Arc::default());
        let admitted = |load: &ClientLoad| (0..100).take_while(|_| state.admit(load, 1)).count();
        assert_eq!([0, 1, 2].map(|id| admitted(&state.client_load(id))), [50, 25, 13]);
        let late = state.client_load(3);
        assert!(state.admit(&late, 1));
        state.responded(&late, entry(1, Verdict::Ok));
        assert_eq!(state.counters().targets[1].waiting, 88);
    }

    #[test]
    fn what_cannot_be_written_in_time_is_counted_as_lost() {
        let (entries, written) = sync_channel(1);
        let state = SharedState::new(1, 9, entries, Arc::default());
        state.record(entry(1, Verdict::Ok));
        state.record(entry(1, Verdict::BodyMismatch));
        let counters = state.counters();
        assert_eq!((counters.responses_lost, counters.targets[1].responses), (1, 2));
        assert_eq!((counters.targets[1].matching, counters.targets[1].mismatches), (1, 1));
        assert_eq!(counters.targets[1].response_sum_us, 10);
        drop(written);
    }

    #[test]
    fn room_for_bodies_is_bounded_and_given_back() {
        let (entries, _written) = sync_channel(1);
        let state = Arc::new(SharedState::new(1, 9, entries, Arc::default()));
        let (mut first, mut second) = (state.hold_body(), state.hold_body());
        assert!(first.take(HELD_MAX_BYTES / 2) && !first.take(1), "half of it is left to others");
        assert!(second.take(HELD_MAX_BYTES / 4) && !second.take(1));
        drop(first);
        assert!(second.take(HELD_MAX_BYTES / 4) && !second.take(1));
    }

    #[test]
    fn bodies_that_have_hardly_begun_take_hardly_any_room() {
        let (entries, _written) = sync_channel(1);
        let state = Arc::new(SharedState::new(1, 9, entries, Arc::default()));
        let begun: Vec<HeldBody> = (0..10_000).map(|_| state.hold_body()).collect();
        let begun = begun.into_iter().map(|mut held| held.take(1).then_some(held)).collect::<Vec<_>>();
        assert!(begun.iter().all(Option::is_some) && state.hold_body().take(1 << 20));
    }
}
