//! One xact as the opt-in log keeps it.

use crate::error_kind::ErrorKind;
use crate::outcome::Outcome;
use crate::planned_fault::PlannedFault;

pub const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "PUT"];
pub const TYPES: [&str; 6] = ["basic", "ims200", "ims304", "reload", "range", "upload"];

/// One request with its response: instants, never durations. Instants are microseconds since the start of
/// the run; none: it never came to that.
#[derive(Debug, Clone, PartialEq)]
pub struct XactRow {
    pub robot: u32,
    /// Number of the request.
    pub number: u64,
    /// 0: launched by the stream; else place in its page.
    pub place: u16,
    /// Index of the phase it was due in.
    pub phase: u16,
    /// One of [`METHODS`].
    pub method: &'static str,
    /// One of [`TYPES`].
    pub request_type: &'static str,
    /// Key of the object.
    pub object: u64,
    /// Index of its content type.
    pub content: u16,
    /// The object may be cached.
    pub cachable: bool,
    /// The stream says that it was requested before.
    pub revisit: bool,
    /// Due time.
    pub due_us: i64,
    /// Time when the robot's own rules allowed it.
    pub ready_us: Option<i64>,
    /// Connect begun, or first byte written on a reused connection.
    pub sent_us: Option<i64>,
    /// Connection established (new connections only).
    pub connected_us: Option<i64>,
    /// TLS handshake over (new connections with TLS only).
    pub secured_us: Option<i64>,
    /// First byte of the response.
    pub first_byte_us: Option<i64>,
    /// Last byte of the response.
    pub last_byte_us: Option<i64>,
    /// Outcome; none for errors and unsent requests.
    pub outcome: Option<Outcome>,
    pub error: Option<ErrorKind>,
    pub status: Option<u16>,
    /// Bytes of the body that were received.
    pub body_bytes: u64,
    /// Connection of the robot, counted from 0.
    pub connection: Option<u32>,
    /// Fault that its origin injects if the request gets there.
    pub fault: Option<PlannedFault>,
    /// The response shows that the xact met that fault: the error or the lost connection came through, or the origin made the late or slow
    /// response for this very request.
    pub fault_met: bool,
}
