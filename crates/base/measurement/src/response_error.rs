//! Failure of a request to get a whole response.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why there was no whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseError {
    /// No connection.
    Refused,
    /// The connection broke, or ended before there was a response.
    Reset,
    /// It took too long.
    TimedOut,
    /// What came is not HTTP.
    Garbage,
    /// The connection ended in the middle of the body.
    Truncated,
    /// It went on and on.
    TooLong,
    /// Bytes came behind its end, which would be taken for the next response.
    ExtraBytes,
    /// The client left, and took the rest of the response with it.
    ClientGone,
    /// TLS failed: the certificate was not accepted, the handshake did not succeed, or `close_notify` is missing.
    Tls,
}

impl ResponseError {
    /// All errors, in table order.
    pub const ALL: [ResponseError; 9] = [
        ResponseError::Refused,
        ResponseError::Reset,
        ResponseError::TimedOut,
        ResponseError::Garbage,
        ResponseError::Truncated,
        ResponseError::TooLong,
        ResponseError::ExtraBytes,
        ResponseError::ClientGone,
        ResponseError::Tls,
    ];

    /// Name in tables and documents.
    pub fn name(self) -> &'static str {
        match self {
            ResponseError::Refused => "refused",
            ResponseError::Reset => "reset",
            ResponseError::TimedOut => "timed_out",
            ResponseError::Garbage => "garbage",
            ResponseError::Truncated => "truncated",
            ResponseError::TooLong => "too_long",
            ResponseError::ExtraBytes => "extra_bytes",
            ResponseError::ClientGone => "client_gone",
            ResponseError::Tls => "tls",
        }
    }

    /// The error of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|error| error.name() == name)
    }
}
