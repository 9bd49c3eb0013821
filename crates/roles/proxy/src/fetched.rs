//! A fetch as seen by the requests that wait for it: its outcome, and the body as it arrives.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use assay_cache::conditional::Conditions;
use assay_cache::vary::Vary;
use assay_http::field::Fields;
use assay_net::exchange::{Exchange, Transport};
use assay_net::interim::InterimResponses;
use assay_net::shared_body::{SharedBody, SharedBodyReader};
use tokio::sync::Notify;

use crate::cache_status::ResponseSource;
use crate::origin::OriginFailure;
use crate::response::ProxyResponse;
use crate::store::StoredResponse;

/// A fetch under way.
pub struct Fetch {
    /// `None` until the head has arrived.
    outcome: RefCell<Option<FetchOutcome>>,
    settled: Notify,
    /// Interim responses of the origin.
    pub interim: InterimResponses,
    pub shared_body: Rc<SharedBody>,
}

/// Outcome of a fetch, known when the head has arrived.
#[derive(Clone)]
pub enum FetchOutcome {
    /// No usable head.
    Failed(Rc<OriginFailure>),
    /// The origin confirmed the stored response, updated here.
    Confirmed(Rc<StoredResponse>),
    /// The origin failed, and the stale stored response may be sent to the requests that this was fetched for.
    Stale {
        stored: Rc<StoredResponse>,
        /// Status of the origin's response; `None` without a usable one.
        status: Option<u16>,
    },
    Response(Rc<FetchedHead>),
}

/// Head of a response whose body follows.
pub struct FetchedHead {
    pub response: Rc<ProxyResponse>,
    /// Bytes of the body, if known.
    pub length: Option<u64>,
    /// Being stored, so it may be sent to other requests too.
    pub is_shared: bool,
    pub source: ResponseSource,
    /// Values, in the request sent, of the fields that the response varies by.
    pub variant: Vec<u8>,
}

impl FetchedHead {
    /// Whether the response may be sent to a request with these fields.
    pub fn suits(&self, fields: Fields<'_>) -> bool {
        self.is_shared && self.variant == variant(&self.response.vary, fields)
    }

    /// Whether a request with these conditions gets a 304. Conditions are not evaluated on a response that is not stored (RFC
    /// 9111, 4.3.2): they were meant for the origin, and the client gets the whole response.
    pub fn is_not_modified_for(&self, conditions: &Conditions<'_>) -> bool {
        self.is_shared && self.response.is_not_modified_for(conditions)
    }
}

/// Values of the fields that a response varies by.
pub fn variant(vary: &Vary, fields: Fields<'_>) -> Vec<u8> {
    vary.secondary_key(fields.map(|field| (field.name, field.value)))
}

impl Fetch {
    /// Creates a fetch with its first reader.
    pub fn new() -> (Rc<Self>, SharedBodyReader) {
        let (shared_body, reader) = SharedBody::new();
        (
            Rc::new(Self {
                outcome: RefCell::new(None),
                settled: Notify::new(),
                interim: InterimResponses::default(),
                shared_body,
            }),
            reader,
        )
    }

    /// Waits for the outcome, and relays interim responses to the client meanwhile.
    pub async fn wait_relaying_interim<S: Transport>(
        &self,
        client: &mut Exchange<S>,
    ) -> io::Result<FetchOutcome> {
        self.interim.forward(client, self.wait()).await
    }

    /// Waits for the outcome.
    pub async fn wait(&self) -> FetchOutcome {
        loop {
            let settled = self.settled.notified();
            if let Some(outcome) = &*self.outcome.borrow() {
                return outcome.clone();
            }
            settled.await;
        }
    }

    /// Publishes the outcome.
    pub fn settle(&self, outcome: FetchOutcome) {
        *self.outcome.borrow_mut() = Some(outcome);
        self.settled.notify_waiters();
    }
}
