//! Closed sets of reasons for which requests are refused or get no server, as counters label them. No text of a client becomes a
//! label.

use assay_http::head::HeadError;
use assay_http::target::TargetError;
use assay_net::exchange;

use crate::request::RequestRefusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub const COUNT: usize = 8;
    pub const ALL: [Self; Self::COUNT] = [
        Self::Malformed,
        Self::AmbiguousFraming,
        Self::HeadTooLong,
        Self::TooManyFields,
        Self::BodyTooLong,
        Self::TooSlow,
        Self::NotServed,
        Self::TooMany,
    ];

    /// Label in counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::AmbiguousFraming => "ambiguous_framing",
            Self::HeadTooLong => "head_too_long",
            Self::TooManyFields => "too_many_fields",
            Self::BodyTooLong => "body_too_long",
            Self::TooSlow => "too_slow",
            Self::NotServed => "not_served",
            Self::TooMany => "too_many",
        }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoServerReason {
    /// No server of the group is available.
    Unavailable,
    /// All servers are at their limits, and the queue is full.
    QueueFull,
    /// No server had room in time.
    QueueTimeout,
}

impl NoServerReason {
    pub const COUNT: usize = 3;
    pub const ALL: [Self; Self::COUNT] = [Self::Unavailable, Self::QueueFull, Self::QueueTimeout];

    /// Label in counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::QueueFull => "queue_full",
            Self::QueueTimeout => "queue_timeout",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_their_order_and_each_has_a_name_of_its_own() {
        assert!(RefusalReason::ALL.iter().enumerate().all(|(index, &reason)| reason as usize == index));
        assert!(NoServerReason::ALL.iter().enumerate().all(|(index, &reason)| reason as usize == index));
        let mut names: Vec<&str> = RefusalReason::ALL.map(RefusalReason::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RefusalReason::COUNT);
    }
}
