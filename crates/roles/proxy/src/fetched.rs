//! A fetch as seen by the requests that wait for it: whether its head is there, what came, and the body as it arrives.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use assay_cache::conditional::Conditions;
use assay_cache::vary::Vary;
use assay_http::field::Fields;
use assay_net::exchange::{Exchange, Stream};
use assay_net::flow::{Flow, Reader};
use assay_net::interim::Interim;
use tokio::sync::Notify;

use crate::handling::Source;
use crate::origin::Failure;
use crate::response::Response;
use crate::store::Stored;

/// A fetch under way.
pub struct Fetch {
    /// None while the head is not there.
    outcome: RefCell<Option<Outcome>>,
    settled: Notify,
    /// What the origin sent before the head.
    pub interim: Interim,
    pub flow: Rc<Flow>,
}

/// What came of a fetch, as soon as that is known.
#[derive(Clone)]
pub enum Outcome {
    /// No head that can be used.
    Failed(Rc<Failure>),
    /// The origin confirmed what was stored; this is it now.
    Confirmed(Rc<Stored>),
    /// The origin failed, and what is stored, though stale, may go to the requests that this was fetched for.
    Stale {
        stored: Rc<Stored>,
        /// Status of the origin's response; none: there was none that can be used.
        status: Option<u16>,
    },
    /// The head; the body follows.
    Response(Rc<Fetched>),
}

/// The head of a response whose body follows.
pub struct Fetched {
    pub response: Rc<Response>,
    /// Bytes of the body, if the origin has said so.
    pub length: Option<u64>,
    /// It is going to be stored, so it may be sent to other requests too.
    pub is_shared: bool,
    /// The server that responded.
    pub source: Source,
    /// What the fields that it varies by are in the request that was sent.
    pub variant: Vec<u8>,
}

impl Fetched {
    /// Whether it may be the response to a request with these fields.
    pub fn suits(&self, fields: Fields<'_>) -> bool {
        self.is_shared && self.variant == variant(&self.response.vary, fields)
    }

    /// Whether a request with these conditions gets a 304 instead. On what is not stored they are not evaluated (RFC 9111, 4.3.2): they
    /// were for the origin, and who has sent them gets all of it.
    pub fn is_not_modified_for(&self, conditions: &Conditions<'_>) -> bool {
        self.is_shared && self.response.is_not_modified_for(conditions)
    }
}

/// What the fields that a response varies by are among these.
pub fn variant(vary: &Vary, fields: Fields<'_>) -> Vec<u8> {
    vary.secondary_key(fields.map(|field| (field.name, field.value)))
}

impl Fetch {
    /// One that begins; its first reader comes with it.
    pub fn new() -> (Rc<Self>, Reader) {
        let (flow, reader) = Flow::new();
        (
            Rc::new(Self {
                outcome: RefCell::new(None),
                settled: Notify::new(),
                interim: Interim::default(),
                flow,
            }),
            reader,
        )
    }

    /// Waits for the head, and sends to the client the interim responses before it.
    pub async fn pass_on<S: Stream>(&self, client: &mut Exchange<S>) -> io::Result<Outcome> {
        self.interim.pass_on(client, self.settled()).await
    }

    /// Waits for the head.
    pub async fn settled(&self) -> Outcome {
        loop {
            let settled = self.settled.notified();
            if let Some(outcome) = &*self.outcome.borrow() {
                return outcome.clone();
            }
            settled.await;
        }
    }

    /// The head is there, or there is none.
    pub fn settle(&self, outcome: Outcome) {
        *self.outcome.borrow_mut() = Some(outcome);
        self.settled.notify_waiters();
    }
}
