//! A response with its timing, while it is recorded and afterwards.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use assay_net::body::Chunk;
use tokio::sync::Notify;

use crate::collector::lost::RequestRange;
use crate::collector::response::RecordedResponse;
use crate::collector::timeline::{BodyEnd, DueParts, Timeline};

/// Bytes by which a fetch may be ahead of the slowest reader of a body that is not kept.
const WINDOW_BYTES: u64 = 4 * 1024 * 1024;

/// Times of the steps of a fetch, as offsets from the request, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchTimings {
    /// Name lookup done.
    pub resolved_ns: u64,
    /// Connection established.
    pub connected_ns: u64,
    /// First byte of the response received.
    pub first_byte_ns: u64,
    pub head_ns: u64,
}

/// Outcome of a fetch, known when the head has arrived.
#[derive(Debug, Clone)]
pub enum RecordingOutcome {
    Response(Rc<RecordedResponse>),
    /// The origin confirmed an earlier recording, renewed here. A request that waited for the confirmation has spent the round
    /// trip to the origin already: its replay starts `ahead_ns` before the request (or after it, if negative).
    Confirmed {
        recording: Rc<Recording>,
        /// Time to the head in the recording, minus the duration of the confirmation.
        ahead_ns: i64,
    },
}

/// A response and the pace at which it arrived, or is arriving.
#[derive(Debug)]
pub struct Recording {
    /// Instant of the request, on the monotonic clock: offsets count from there.
    pub requested_ns: u64,
    /// Instant at which the timings were taken: `requested_ns`, unless the recording was confirmed since.
    pub timed_ns: u64,
    /// Listener of the request.
    pub listener: u16,
    /// The request had a condition of the client's, so its response may be 304.
    pub is_conditional: bool,
    /// Listeners that have received it, a bit for each.
    pub received_by: Cell<u64>,
    /// Clients' requests that got it, or that it was fetched for, if known.
    requests: Cell<Option<RequestRange>>,
    /// Requests that wait for the head, and will be served with this recording if it suits.
    claims: Rc<Cell<u32>>,
    timings: Cell<FetchTimings>,
    outcome: RefCell<Option<RecordingOutcome>>,
    interim: Rc<RefCell<Vec<RecordedInterim>>>,
    body: Rc<RecordedBody>,
}

/// An interim response of the origin.
#[derive(Debug, Clone)]
pub struct RecordedInterim {
    /// Offset from the request.
    pub at_ns: u64,
    pub head: Rc<[u8]>,
}

#[derive(Debug, Default)]
struct RecordedBody {
    timeline: RefCell<Timeline>,
    /// Notified on new parts, the end, and the head.
    grown: Notify,
    /// Notified when a reader progresses or leaves.
    drained: Notify,
}

impl Recording {
    /// Starts a recording for the request of this number, if it has one.
    pub fn begin(requested_ns: u64, listener: u16, is_conditional: bool, number: Option<u64>) -> Rc<Self> {
        Rc::new(Self {
            requested_ns,
            timed_ns: requested_ns,
            listener,
            is_conditional,
            received_by: Cell::new(listener_bit(listener)),
            requests: Cell::new(number.map(RequestRange::single)),
            claims: Rc::default(),
            timings: Cell::default(),
            outcome: RefCell::default(),
            interim: Rc::default(),
            body: Rc::default(),
        })
    }

    /// Returns this recording with the head that a confirmation has updated: the same pace, requested at the time of the
    /// confirmation and by the requests that waited for it.
    pub fn renewed(&self, response: RecordedResponse, confirmation: &Recording) -> Rc<Self> {
        Rc::new(Self {
            requested_ns: confirmation.requested_ns,
            timed_ns: self.timed_ns,
            listener: confirmation.listener,
            is_conditional: false,
            received_by: confirmation.received_by.clone(),
            requests: Cell::new(
                self.requests
                    .get()
                    .into_iter()
                    .chain(confirmation.requests.get())
                    .reduce(RequestRange::union),
            ),
            claims: Rc::clone(&confirmation.claims),
            timings: Cell::new(self.timings.get()),
            outcome: RefCell::new(Some(RecordingOutcome::Response(Rc::new(response)))),
            interim: Rc::clone(&confirmation.interim),
            body: Rc::clone(&self.body),
        })
    }

    /// Clients' requests that got it, if known.
    pub fn requests(&self) -> Option<RequestRange> {
        self.requests.get()
    }

    /// Records that a client's request gets it.
    pub fn give(&self, number: u64) {
        let one = RequestRange::single(number);
        self.requests.set(Some(self.requests.get().map_or(one, |range| range.union(one))));
    }

    pub fn timings(&self) -> FetchTimings {
        self.timings.get()
    }

    /// Head, once it has arrived.
    pub fn response(&self) -> Option<Rc<RecordedResponse>> {
        match &*self.outcome.borrow() {
            Some(RecordingOutcome::Response(response)) => Some(Rc::clone(response)),
            _ => None,
        }
    }

    /// Waits for the outcome.
    pub async fn settled(&self) -> RecordingOutcome {
        loop {
            let grown = self.body.grown.notified();
            if let Some(outcome) = &*self.outcome.borrow() {
                return outcome.clone();
            }
            grown.await;
        }
    }

    /// Waits for the outcome, or for the interim response with this index if that comes first.
    pub async fn settled_after(&self, number: usize) -> Result<RecordedInterim, RecordingOutcome> {
        loop {
            let grown = self.body.grown.notified();
            if let Some(interim) = self.interim(number) {
                return Ok(interim);
            }
            if let Some(outcome) = &*self.outcome.borrow() {
                return Err(outcome.clone());
            }
            grown.await;
        }
    }

    pub fn interim(&self, number: usize) -> Option<RecordedInterim> {
        self.interim.borrow().get(number).cloned()
    }

    pub fn append_interim(&self, at_ns: u64, head: &[u8]) {
        self.interim.borrow_mut().push(RecordedInterim { at_ns, head: head.into() });
        self.body.grown.notify_waiters();
    }

    /// Publishes the outcome.
    pub fn settle(&self, timings: FetchTimings, outcome: RecordingOutcome) {
        self.timings.set(timings);
        *self.outcome.borrow_mut() = Some(outcome);
        self.body.grown.notify_waiters();
    }

    /// Adds a part of the body with its arrival time.
    pub fn append(&self, at_ns: u64, bytes: Chunk) {
        self.body.timeline.borrow_mut().append(at_ns, bytes);
        self.body.grown.notify_waiters();
    }

    pub fn finish(&self, at_ns: u64, end: BodyEnd) {
        self.body.timeline.borrow_mut().finish(at_ns, end);
        self.body.grown.notify_waiters();
    }

    /// Stops keeping the body for other requests.
    pub fn stop_keeping(&self) {
        self.body.timeline.borrow_mut().stop_keeping();
    }

    /// End of the body, once it has ended.
    pub fn end(&self) -> Option<BodyEnd> {
        self.body.timeline.borrow().end()
    }

    /// The whole body is kept.
    pub fn is_kept(&self) -> bool {
        self.body.timeline.borrow().is_kept()
    }

    /// Complete, received by all of these listeners, and not awaited by any.
    pub fn is_done_for(&self, listeners: u64) -> bool {
        self.end().is_some() && self.received_by.get() == listeners && self.claims.get() == 0
    }

    /// The body can be moved to disk.
    pub fn can_be_unloaded(&self) -> bool {
        self.body.timeline.borrow().can_be_unloaded()
    }

    /// Takes the bytes of the body out; `None` if they are in use or incomplete.
    pub fn unload(&self) -> Option<Vec<u8>> {
        self.body.timeline.borrow_mut().unload()
    }

    /// Puts the bytes back; `None`: they are lost.
    pub fn load(&self, whole: Option<&[u8]>) {
        self.body.timeline.borrow_mut().load(whole);
        self.body.grown.notify_waiters();
    }

    /// Bytes of the body, in memory or on disk.
    pub fn body_bytes(&self) -> u64 {
        self.body.timeline.borrow().held_bytes()
    }

    /// Memory used, once the body is complete.
    pub fn weight_bytes(&self) -> u64 {
        let interim: usize = self
            .interim
            .borrow()
            .iter()
            .map(|interim| size_of::<RecordedInterim>() + interim.head.len())
            .sum();
        let head = interim + self.response().map_or(0, |response| response.weight_bytes());
        let body = self.body.timeline.borrow().weight_bytes();
        (size_of::<Self>() + size_of::<RecordedBody>() + head) as u64 + body
    }

    /// Waits until readers have progressed far enough for more. Readers that would hold up a client's own response are dropped,
    /// and `shed` gets their number. False: nobody reads any more.
    pub async fn is_wanted(&self, shed: impl Fn(u64)) -> bool {
        loop {
            let drained = self.body.drained.notified();
            {
                let mut timeline = self.body.timeline.borrow_mut();
                if !timeline.is_wanted() {
                    return false;
                }
                if timeline.is_kept() || timeline.held_bytes() < WINDOW_BYTES {
                    return true;
                }
                let given_up = timeline.shed();
                if given_up > 0 {
                    shed(given_up as u64);
                    self.body.grown.notify_waiters();
                    continue;
                }
            }
            drained.await;
        }
    }
}

/// Marks a recording as awaited by a request.
#[derive(Debug)]
pub struct RecordingClaim(Rc<Recording>);

impl RecordingClaim {
    pub fn new(recording: Rc<Recording>) -> Self {
        recording.claims.set(recording.claims.get() + 1);
        Self(recording)
    }

    pub fn is_of(&self, recording: &Rc<Recording>) -> bool {
        Rc::ptr_eq(&self.0, recording)
    }
}

impl Drop for RecordingClaim {
    fn drop(&mut self) {
        self.0.claims.set(self.0.claims.get() - 1);
    }
}

pub fn listener_bit(listener: u16) -> u64 {
    1 << (listener % 64)
}

/// Reads a body at its own pace.
pub struct RecordingReader {
    body: Rc<RecordedBody>,
    reader: usize,
}

impl RecordingReader {
    /// Starts at the beginning of the body; `None` if that is gone. A reader that `goes_first` never waits for one that does not.
    pub fn new(recording: &Recording, goes_first: bool) -> Option<Self> {
        let reader = recording.body.timeline.borrow_mut().join(goes_first)?;
        Some(Self { body: Rc::clone(&recording.body), reader })
    }

    /// Adds to `batch` the parts that are due at this offset.
    pub fn take(&self, now_ns: u64, batch: &mut Vec<Chunk>) -> DueParts {
        let due = self.body.timeline.borrow_mut().take(self.reader, now_ns, batch);
        if matches!(due, DueParts::Parts { .. }) {
            self.body.drained.notify_waiters();
        }
        due
    }

    /// Waits until there may be more to read.
    pub async fn grown(&self) {
        let grown = self.body.grown.notified();
        let is_known = self.body.timeline.borrow().is_known_to(self.reader);
        if !is_known {
            grown.await;
        }
    }
}

impl Drop for RecordingReader {
    fn drop(&mut self) {
        self.body.timeline.borrow_mut().leave(self.reader);
        self.body.drained.notify_waiters();
    }
}
