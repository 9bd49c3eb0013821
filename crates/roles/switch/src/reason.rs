//! Closed sets of reasons for which requests are refused or get no server, as counters label them. No text of a client becomes a
//! label.

use assay_http::head::HeadError;
use assay_http::target::TargetError;
use assay_net::exchange;
use strum::{IntoStaticStr, VariantArray};

use crate::request::RequestRefusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum RefusalReason {
    /// Not HTTP, or an invalid target or host.
    Malformed,
    /// Fields that leave the end of the body open.
    AmbiguousFraming,
    /// Head or target too long.
    HeadTooLong,
    TooManyFields,
    BodyTooLong,
    /// Request not complete in time.
    TooSlow,
    /// Version, method, coding or scheme that is not served.
    NotServed,
    /// Limit of concurrent HTTP/2 requests, or a client that caused more work than it requested.
    TooMany,
}

impl RefusalReason {
    /// Label in counters.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl From<RequestRefusal> for RefusalReason {
    fn from(refusal: RequestRefusal) -> Self {
        match refusal {
            RequestRefusal::Early(exchange::Refusal::Head(error)) => error.into(),
            RequestRefusal::Early(
                exchange::Refusal::HeadTooLong(_) | exchange::Refusal::TargetTooLong(_),
            ) => Self::HeadTooLong,
            RequestRefusal::Early(exchange::Refusal::TooSlow) | RequestRefusal::TooSlow => Self::TooSlow,
            RequestRefusal::TooManyFields(_) => Self::TooManyFields,
            RequestRefusal::BodyTooLong(_) => Self::BodyTooLong,
            RequestRefusal::Trace | RequestRefusal::Target(TargetError::Scheme | TargetError::Tunnel) => {
                Self::NotServed
            }
            RequestRefusal::BadChunk
            | RequestRefusal::Target(TargetError::Form | TargetError::Character | TargetError::Authority) => {
                Self::Malformed
            }
        }
    }
}

impl From<HeadError> for RefusalReason {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::TooLong | HeadError::LineTooLong => Self::HeadTooLong,
            HeadError::TooManyHeaders => Self::TooManyFields,
            HeadError::Syntax(_) | HeadError::BadHost => Self::Malformed,
            HeadError::Version | HeadError::UnknownCoding => Self::NotServed,
            HeadError::BadContentLength
            | HeadError::ConflictingContentLength
            | HeadError::LengthAndCoding
            | HeadError::BadTransferEncoding => Self::AmbiguousFraming,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum NoServerReason {
    /// No server of the group is available.
    Unavailable,
    /// All servers are at their limits, and the queue is full.
    QueueFull,
    /// No server had room in time.
    QueueTimeout,
}

impl NoServerReason {
    /// Label in counters.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
