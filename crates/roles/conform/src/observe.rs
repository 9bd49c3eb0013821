//! What was seen of one try of a case, on both sides of the target.

use crate::message::Message;

/// Observations of one step, on both sides. Times are milliseconds since the start of the try.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Bytes that the client sent.
    pub sent: Vec<u8>,
    /// The frames that it sent over HTTP/2, in words.
    pub sent_frames: Vec<String>,
    pub sent_ms: f64,
    /// Response to each copy of the request; one, unless the step has several.
    pub received: Vec<Received>,
    /// Requests that reached the origin before the next step.
    pub arrivals: Vec<Arrival>,
    /// Body of the origin's response in this step.
    pub origin_body: Vec<u8>,
}

/// Response, or anything else that a client got.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// The response, if its head came.
    pub response: Option<Message>,
    /// Bytes of the response, and those that followed.
    pub bytes: Vec<u8>,
    /// Time at which the head was complete; without one, at which the client gave up.
    pub head_ms: f64,
    pub end_ms: f64,
    /// True if the connection ended after it.
    pub closed: bool,
    /// Interim responses that came.
    pub interim: Vec<u16>,
    /// Reason for which there is no response.
    pub problem: Option<String>,
    /// True if no connection could be made: nothing was seen of the request.
    pub unreached: bool,
    /// True if it is of an exchange over HTTP/2.
    pub is_http2: bool,
    /// Frames that came over HTTP/2, in words.
    pub frames: Vec<String>,
    /// Error code of the RST_STREAM that ended the stream.
    pub reset: Option<u32>,
    /// Error code of a GOAWAY.
    pub goaway: Option<u32>,
    /// The first thing that HTTP/2 forbids, of what came.
    pub fault: Option<String>,
    /// True if header blocks cannot be decoded any more.
    pub is_garbled: bool,
}

impl Received {
    /// True if the target ended the connection, or has said so with an error.
    pub fn ends_connection(&self) -> bool {
        self.closed || self.goaway.is_some_and(|code| code != 0)
    }

    /// True if a connection over HTTP/2 ended without a response and without a frame that says why. A target may do so
    /// (RFC 9113, 6.8), but so does one whose process crashes.
    pub fn is_bare_end(&self) -> bool {
        let is_said = self.goaway.is_some() || self.reset.is_some() || self.response.is_some();
        self.closed && self.is_http2 && !is_said
    }

    /// True if the target ended the exchange: its stream or its connection.
    pub fn is_over(&self) -> bool {
        self.ends_connection() || self.reset.is_some()
    }
}

/// A request as it reached the origin.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    pub request: Message,
    pub bytes: Vec<u8>,
    /// Time at which the head was complete.
    pub at_ms: f64,
    /// Beginning of the origin's response; none: it never responded.
    pub responded_ms: Option<f64>,
    /// Status of the origin's response; 0: it sent none.
    pub status: u16,
}

impl Observation {
    /// Requests to which the origin responded before the client got its response.
    pub fn before_response(&self) -> impl Iterator<Item = &Arrival> {
        let head_ms = self.received.first().map_or(f64::INFINITY, |received| received.head_ms);
        self.arrivals.iter().filter(move |arrival| arrival.responded_ms.is_some_and(|at| at <= head_ms))
    }

    /// The response to the first copy of the request.
    pub fn response(&self) -> Option<&Message> {
        self.received.first().and_then(|received| received.response.as_ref())
    }
}
