//! Why requests were refused or got no server, as counters tell it: closed sets of reasons, and no text of a client's.

use assay_http::head::HeadError;
use assay_http::target::TargetError;
use assay_net::exchange;

use crate::request::Refusal;

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is not HTTP, or its target or host is none.
    Malformed,
    /// Its fields leave open where its body ends.
    AmbiguousFraming,
    /// Its head or its target is too long.
    HeadTooLong,
    /// It has too many fields.
    TooManyFields,
    /// Its body is too long.
    BodyTooLong,
    /// It did not come in time.
    TooSlow,
    /// Its version, method, coding or scheme is not served.
    NotServed,
    /// As many requests of HTTP/2 were under way as may be, or its client had caused more work than it requested.
    TooMany,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All of them, in their order.
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

    /// As it is called in counters.
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

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Early(exchange::Refusal::Head(error)) => error.into(),
            Refusal::Early(exchange::Refusal::HeadTooLong(_) | exchange::Refusal::TargetTooLong(_)) => {
                Self::HeadTooLong
            }
            Refusal::Early(exchange::Refusal::TooSlow) | Refusal::TooSlow => Self::TooSlow,
            Refusal::TooManyFields(_) => Self::TooManyFields,
            Refusal::BodyTooLong(_) => Self::BodyTooLong,
            Refusal::Trace | Refusal::Target(TargetError::Scheme | TargetError::Tunnel) => Self::NotServed,
            Refusal::BadChunk
            | Refusal::Target(TargetError::Form | TargetError::Character | TargetError::Authority) => {
                Self::Malformed
            }
        }
    }
}

impl From<HeadError> for Reason {
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

/// Why a request, or a connection of layer 4, got no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoServer {
    /// None can get requests.
    Unavailable,
    /// All have enough, and as many wait as may wait.
    QueueFull,
    /// None had room in time.
    QueueTimeout,
}

impl NoServer {
    /// How many there are.
    pub const COUNT: usize = 3;
    /// All of them, in their order.
    pub const ALL: [Self; Self::COUNT] = [Self::Unavailable, Self::QueueFull, Self::QueueTimeout];

    /// As it is called in counters.
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
        assert!(Reason::ALL.iter().enumerate().all(|(place, &reason)| reason as usize == place));
        assert!(NoServer::ALL.iter().enumerate().all(|(place, &reason)| reason as usize == place));
        let mut names: Vec<&str> = Reason::ALL.map(Reason::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Reason::COUNT);
    }
}
