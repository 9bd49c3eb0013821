//! One response for all requests for it, while it is recorded and afterwards.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use assay_net::body::Chunk;
use tokio::sync::Notify;

use crate::collector::lost::Span;
use crate::collector::response::Response;
use crate::collector::timeline::{Due, End, Timeline};

/// How far a fetch may be ahead of the slowest reader of a body that is not kept, in bytes.
const WINDOW_BYTES: u64 = 4 * 1024 * 1024;

/// When the steps of a fetch were done, as offsets from the request, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// The name had an address.
    pub resolved_ns: u64,
    /// The connection was there.
    pub connected_ns: u64,
    /// The first byte of the response was there.
    pub first_byte_ns: u64,
    pub head_ns: u64,
}

/// What came of a fetch, as soon as that is known.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The head; the body follows.
    Response(Rc<Response>),
    /// What was recorded before still holds: this is it now. A request that waited for the confirmation has paid for the way to the
    /// origin already: its replay begins earlier by `ahead_ns` than the request came (or later, where that is negative).
    Confirmed {
        recording: Rc<Recording>,
        /// Time to the head in that recording, less what the confirmation took.
        ahead_ns: i64,
    },
}

/// A response and the pace at which it came, or is coming.
#[derive(Debug)]
pub struct Recording {
    /// When the request was sent, on the monotonic clock: all offsets count from there.
    pub requested_ns: u64,
    /// When its timings were taken: the same, unless it was confirmed since.
    pub timed_ns: u64,
    /// The listener through which it was requested.
    pub listener: u16,
    /// The request had a condition of the client's, and its response may be 304.
    pub is_conditional: bool,
    /// The listeners that have had it, a bit for each.
    pub seen: Cell<u64>,
    /// The clients' requests that got it, or that it was fetched for; none: not known.
    requests: Cell<Option<Span>>,
    /// Requests that wait for the head, and will be served with this if it suits.
    claims: Rc<Cell<u32>>,
    steps: Cell<Steps>,
    outcome: RefCell<Option<Outcome>>,
    early: Rc<RefCell<Vec<Early>>>,
    body: Rc<Body>,
}

/// An interim response of the origin, as clients get it.
#[derive(Debug, Clone)]
pub struct Early {
    /// When it came, as an offset from the request.
    pub at_ns: u64,
    pub head: Rc<[u8]>,
}

#[derive(Debug, Default)]
struct Body {
    timeline: RefCell<Timeline>,
    /// Something was appended, or it ended, or the head is there.
    grown: Notify,
    /// A reader went on, or went away.
    drained: Notify,
}

impl Recording {
    /// One that begins now, for the request of this number, if it has one.
    pub fn begin(requested_ns: u64, listener: u16, is_conditional: bool, number: Option<u64>) -> Rc<Self> {
        Rc::new(Self {
            requested_ns,
            timed_ns: requested_ns,
            listener,
            is_conditional,
            seen: Cell::new(listener_bit(listener)),
            requests: Cell::new(number.map(Span::of)),
            claims: Rc::default(),
            steps: Cell::default(),
            outcome: RefCell::default(),
            early: Rc::default(),
            body: Rc::default(),
        })
    }

    /// This recording with the head that a confirmation has made of it: the same pace, requested at the time of the
    /// confirmation and by requests that waited for that.
    pub fn renewed(&self, response: Response, confirmation: &Recording) -> Rc<Self> {
        Rc::new(Self {
            requested_ns: confirmation.requested_ns,
            timed_ns: self.timed_ns,
            listener: confirmation.listener,
            is_conditional: false,
            seen: confirmation.seen.clone(),
            requests: Cell::new(
                self.requests.get().into_iter().chain(confirmation.requests.get()).reduce(Span::and),
            ),
            claims: Rc::clone(&confirmation.claims),
            steps: Cell::new(self.steps.get()),
            outcome: RefCell::new(Some(Outcome::Response(Rc::new(response)))),
            early: Rc::clone(&confirmation.early),
            body: Rc::clone(&self.body),
        })
    }

    /// The clients' requests that got it; none: not known.
    pub fn requests(&self) -> Option<Span> {
        self.requests.get()
    }

    /// A client's request gets it.
    pub fn give(&self, number: u64) {
        let one = Span::of(number);
        self.requests.set(Some(self.requests.get().map_or(one, |span| span.and(one))));
    }

    /// When the steps of the fetch were done.
    pub fn steps(&self) -> Steps {
        self.steps.get()
    }

    /// The head, if it is there.
    pub fn response(&self) -> Option<Rc<Response>> {
        match &*self.outcome.borrow() {
            Some(Outcome::Response(response)) => Some(Rc::clone(response)),
            _ => None,
        }
    }

    /// Waits for the outcome.
    pub async fn settled(&self) -> Outcome {
        loop {
            let grown = self.body.grown.notified();
            if let Some(outcome) = &*self.outcome.borrow() {
                return outcome.clone();
            }
            grown.await;
        }
    }

    /// Waits for the outcome, or for the interim response of this number, from 0, if that comes first.
    pub async fn settled_after(&self, number: usize) -> Result<Early, Outcome> {
        loop {
            let grown = self.body.grown.notified();
            if let Some(early) = self.early(number) {
                return Ok(early);
            }
            if let Some(outcome) = &*self.outcome.borrow() {
                return Err(outcome.clone());
            }
            grown.await;
        }
    }

    /// The interim response of this number, from 0.
    pub fn early(&self, number: usize) -> Option<Early> {
        self.early.borrow().get(number).cloned()
    }

    /// Adds an interim response.
    pub fn hear(&self, at_ns: u64, head: &[u8]) {
        self.early.borrow_mut().push(Early { at_ns, head: head.into() });
        self.body.grown.notify_waiters();
    }

    /// Says what came of it.
    pub fn settle(&self, steps: Steps, outcome: Outcome) {
        self.steps.set(steps);
        *self.outcome.borrow_mut() = Some(outcome);
        self.body.grown.notify_waiters();
    }

    /// Adds a part of the body that came at this offset.
    pub fn append(&self, at_ns: u64, bytes: Chunk) {
        self.body.timeline.borrow_mut().append(at_ns, bytes);
        self.body.grown.notify_waiters();
    }

    pub fn finish(&self, at_ns: u64, end: End) {
        self.body.timeline.borrow_mut().finish(at_ns, end);
        self.body.grown.notify_waiters();
    }

    /// Nothing of it is kept for others any more.
    pub fn let_go(&self) {
        self.body.timeline.borrow_mut().let_go();
    }

    /// How the body ended; none: it has not.
    pub fn end(&self) -> Option<End> {
        self.body.timeline.borrow().end()
    }

    /// All of the body is there, or will be.
    pub fn is_kept(&self) -> bool {
        self.body.timeline.borrow().is_kept()
    }

    /// All of these listeners have had it, and none of them still waits for it.
    pub fn is_done_for(&self, listeners: u64) -> bool {
        self.end().is_some() && self.seen.get() == listeners && self.claims.get() == 0
    }

    /// Its body could go elsewhere and come back.
    pub fn can_be_unloaded(&self) -> bool {
        self.body.timeline.borrow().can_be_unloaded()
    }

    /// Takes the bytes of the body out; none: they are needed here, or not all there.
    pub fn unload(&self) -> Option<Vec<u8>> {
        self.body.timeline.borrow_mut().unload()
    }

    /// Puts them back; none: they are lost.
    pub fn load(&self, whole: Option<&[u8]>) {
        self.body.timeline.borrow_mut().load(whole);
        self.body.grown.notify_waiters();
    }

    /// Bytes of the body that are there, here or elsewhere.
    pub fn body_bytes(&self) -> u64 {
        self.body.timeline.borrow().held_bytes()
    }

    /// Bytes of memory that it takes, once its body is complete.
    pub fn weight_bytes(&self) -> u64 {
        let early: usize =
            self.early.borrow().iter().map(|early| size_of::<Early>() + early.head.len()).sum();
        let head = early + self.response().map_or(0, |response| response.weight_bytes());
        let body = self.body.timeline.borrow().weight_bytes();
        (size_of::<Self>() + size_of::<Body>() + head) as u64 + body
    }

    /// Waits until readers are near enough for more; those that a client's own response would wait for are given up, and
    /// `shed` is told how many. False: nobody wants any.
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

/// A recording that a request waits for.
#[derive(Debug)]
pub struct Claim(Rc<Recording>);

impl Claim {
    pub fn new(recording: Rc<Recording>) -> Self {
        recording.claims.set(recording.claims.get() + 1);
        Self(recording)
    }

    /// Whether it is of this one.
    pub fn is_of(&self, recording: &Rc<Recording>) -> bool {
        Rc::ptr_eq(&self.0, recording)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.claims.set(self.0.claims.get() - 1);
    }
}

/// The bit of a listener.
pub fn listener_bit(listener: u16) -> u64 {
    1 << (listener % 64)
}

/// One who takes a body at its own time.
pub struct Reader {
    body: Rc<Body>,
    place: usize,
}

impl Reader {
    /// From the beginning of the body; none: that is gone already. One that `goes_first` waits for no other that does not.
    pub fn new(recording: &Recording, goes_first: bool) -> Option<Self> {
        let place = recording.body.timeline.borrow_mut().join(goes_first)?;
        Some(Self { body: Rc::clone(&recording.body), place })
    }

    /// Adds to `batch` what is due at this offset.
    pub fn take(&self, now_ns: u64, batch: &mut Vec<Chunk>) -> Due {
        let due = self.body.timeline.borrow_mut().take(self.place, now_ns, batch);
        if matches!(due, Due::Parts { .. }) {
            self.body.drained.notify_waiters();
        }
        due
    }

    /// Waits until there may be more than there was.
    pub async fn grown(&self) {
        let grown = self.body.grown.notified();
        let is_known = self.body.timeline.borrow().is_known_to(self.place);
        if !is_known {
            grown.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.body.timeline.borrow_mut().leave(self.place);
        self.body.drained.notify_waiters();
    }
}
