//! A case: one requirement on a proxy or a cache, and the exchanges that show whether it is met.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How binding a requirement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Level {
    /// The specification says MUST or MUST NOT, or an attack succeeds where the case fails.
    #[serde(rename = "MUST")]
    Must,
    /// The specification says SHOULD or SHOULD NOT.
    #[serde(rename = "SHOULD")]
    Should,
    /// The specification allows it.
    #[serde(rename = "MAY")]
    May,
    /// The specification leaves it open, and users want to know.
    #[serde(rename = "behaviour")]
    Behaviour,
}

impl Level {
    /// All of them, the most binding first.
    pub const ALL: [Level; 4] = [Level::Must, Level::Should, Level::May, Level::Behaviour];

    /// Name in cases, documents and tables.
    pub fn word(self) -> &'static str {
        match self {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
            Level::May => "MAY",
            Level::Behaviour => "behaviour",
        }
    }

    /// True where not behaving so is a failure.
    pub fn binds(self) -> bool {
        matches!(self, Level::Must | Level::Should)
    }
}

/// Targets to which a case applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applicability {
    /// Any intermediary.
    Proxy,
    /// An intermediary that stores responses.
    Cache,
}

/// A requirement with its exchanges.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Unique among all cases; parts are joined by hyphens, a row of a parameterised case follows a slash.
    pub name: String,
    /// Topic of its file.
    pub topic: String,
    pub level: Level,
    /// Number of the RFC; none: an attack or a behaviour that no RFC describes.
    pub rfc: Option<u32>,
    /// Section of the RFC, or where the attack or behaviour is described.
    pub section: String,
    /// The requirement in one sentence.
    pub rule: String,
    /// Names of the cases without which this one says nothing.
    pub depends: Vec<String>,
    pub applies: Applicability,
    /// True if it may upset connections: it is tried last, on an instance of the target of its own.
    pub isolated: bool,
    /// True if what it looks at is what one cache does: where several work together, each does it for itself, and it does not apply.
    pub alone: bool,
    /// Minimum number of tries: more than one for behaviour that depends on a race within the target.
    pub tries: usize,
    /// The exchanges, in order.
    pub steps: Vec<Step>,
    /// Position of the case: file and line.
    pub location: String,
}

impl Case {
    /// Source of the requirement: `RFC 9111, 4.2.1`, or the words of the case.
    pub fn reference(&self) -> String {
        match self.rfc {
            Some(rfc) => format!("RFC {rfc}, {}", self.section),
            None => self.section.clone(),
        }
    }

    /// True if this is its name, its name without a row, or its topic.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.topic == name || self.name.split('/').next() == Some(name)
    }

    /// True if a step of it is sent over HTTP/2.
    pub fn uses_http2(&self) -> bool {
        self.steps.iter().any(|step| step.request.is_http2())
    }

    /// True if a step of it is sent over HTTP/1.
    pub fn uses_http1(&self) -> bool {
        self.steps.iter().any(|step| !step.request.is_http2())
    }

    /// True if it sends something over and over, which keeps target and client busy.
    pub fn is_flood(&self) -> bool {
        let is_flood =
            |step: &Step| step.request.repeat > 1 || step.request.frames.iter().any(|frame| frame.times > 1);
        self.steps.iter().any(is_flood)
    }

    /// Seconds that its steps wait, added up.
    pub fn waits_s(&self) -> f64 {
        self.steps.iter().map(|step| step.wait_s).sum()
    }
}

/// One exchange: what the client sends, what the origin responds if it is reached, what must be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub request: Request,
    /// Seconds between the previous step and this one.
    pub wait_s: f64,
    /// If more seconds than this have passed since the previous response, the try says nothing.
    pub within_s: Option<f64>,
    /// True if its expectations are what the case relies on, and not what it is about.
    pub is_setup: bool,
    /// Number of copies of the request that are sent at the same time.
    pub copies: u32,
    /// Response of the origin.
    pub origin: Response,
    /// Response to a request with `If-None-Match` or `If-Modified-Since`.
    pub validated: Option<Response>,
    /// Response to a request with `Range`.
    pub part: Option<Response>,
    pub expect: Expect,
}

/// A request, with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The whole request as bytes, instead of everything below.
    pub raw: Option<String>,
    pub method: String,
    /// Suffix of the URL of the case.
    pub path: String,
    /// `Host`, if it is not the origin's.
    pub host: Option<String>,
    /// `1.1`, `1.0` or `2`.
    pub version: String,
    /// Field lines.
    pub fields: Vec<String>,
    /// Body; it is sent with a `Content-Length`.
    pub body: Option<String>,
    /// True if it is sent on a connection of its own.
    pub new_connection: bool,
    /// Frames of HTTP/2, instead of everything above; they are sent on a connection of their own.
    pub frames: Vec<Frame>,
    /// Repetitions of the frames, each two streams further.
    pub repeat: u32,
}

impl Request {
    /// True if it is sent over HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.version == "2" || !self.frames.is_empty()
    }
}

/// A frame of HTTP/2, with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Frame type.
    pub kind: u8,
    pub flags: u8,
    /// Stream; none: that of the request.
    pub stream: Option<u32>,
    pub payload: Payload,
    /// Number of copies, one after the other.
    pub times: u32,
}

impl Frame {
    /// The field lines in it.
    pub fn fields(&self) -> &[String] {
        match &self.payload {
            Payload::Fields(lines) => lines,
            _ => &[],
        }
    }
}

/// Payload of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// A header block of these field lines.
    Fields(Vec<String>),
    Text(String),
    Bytes(Vec<u8>),
}

/// A response of the origin, with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The whole response as bytes, instead of everything below; the connection ends after it.
    pub raw: Option<String>,
    pub status: u16,
    /// Field lines; `Date` and the framing are added.
    pub fields: Vec<String>,
    /// Body; none: a text that names case and step.
    pub body: Option<String>,
    /// Seconds before it begins.
    pub delay_s: f64,
    /// The connection ends after this number of bytes of the body; 0: before the head.
    pub cut: Option<usize>,
    /// True if it is sent with the chunked coding.
    pub chunked: bool,
    /// False if no `Date` is added.
    pub dated: bool,
    /// Interim responses before it: status and field lines, each with its end of line.
    pub interim: Vec<String>,
    /// Trailer fields of a chunked body.
    pub trailers: Vec<String>,
}

/// Source of the response that the client got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedSource {
    /// The target alone: no response of the origin came before it.
    Store,
    /// The origin, in response to a request of this step.
    Origin,
    /// The origin confirmed a stored response in response to a conditional request.
    Validated,
    /// The origin was reached without a condition.
    Fetched,
}

/// Expectations of an exchange; what is left out is not checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expect {
    /// Source of the response.
    pub served: Option<ExpectedSource>,
    /// The body is that of the origin's response in one of these steps (from 1).
    pub from: Vec<usize>,
    /// The body is that of none of these steps.
    pub not_from: Vec<usize>,
    /// One of these statuses.
    pub status: Vec<u16>,
    /// None of these statuses.
    pub not_status: Vec<u16>,
    /// The whole body.
    pub body: Option<String>,
    /// The body, or what follows the head, does not contain it.
    pub body_lacks: Option<String>,
    /// The body contains this.
    pub body_has: Option<String>,
    /// Conditions on fields of the response.
    pub fields: Vec<FieldTest>,
    /// Conditions on fields of the request as the origin got it.
    pub forwarded: Vec<FieldTest>,
    /// Request target as the origin got it.
    pub target: Option<String>,
    /// Method as the origin got it.
    pub method: Option<String>,
    /// Body of the request as the origin got it.
    pub upload: Option<String>,
    /// Most requests that reach the origin in this step.
    pub most_requests: Option<usize>,
    /// Fewest of them.
    pub least_requests: Option<usize>,
    /// The target refuses the request: an error status or the end of the connection, and nothing reaches the origin.
    pub refused: bool,
    /// A response comes: not to get one is a failure, and not a reason to say nothing.
    pub responds: bool,
    /// The target may refuse the request instead of everything else that is expected.
    pub or_refused: bool,
    /// No request whose head contains this reaches the origin.
    pub never: Option<String>,
    /// The body is incomplete in a way that the client sees.
    pub incomplete: bool,
    /// The connection ends after the response.
    pub closes: bool,
    /// The stream or the connection ends with an error.
    pub ends: bool,
    /// One of these frames comes over HTTP/2: its type, and other words of it.
    pub frames: Vec<String>,
    /// None of these comes.
    pub not_frames: Vec<String>,
    /// Nothing comes over HTTP/2 that it forbids.
    pub well_formed: bool,
    /// Interim responses that the client gets.
    pub interim: Vec<u16>,
}

/// A condition on the fields of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldTest {
    /// Name of the field.
    pub name: String,
    pub test: FieldCondition,
    /// True if the condition must not be met.
    pub negated: bool,
}

/// Condition on a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldCondition {
    /// The field is present.
    Present,
    /// A line, or all lines joined by commas, has this value, or it is a member of the list.
    Is(String),
    /// A line contains this, whatever the case.
    Contains(String),
    /// The first line is a number of at least this.
    Least(i64),
    /// The first line is a number of at most this.
    Most(i64),
}
