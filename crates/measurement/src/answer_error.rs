//! Why a request has no whole response.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why there was no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerError {
    /// No connection.
    Refused,
    /// The connection broke, or ended before there was an answer.
    Reset,
    /// It took too long.
    TimedOut,
    /// What came is not HTTP.
    Garbage,
    /// The connection ended in the middle of the body.
    Truncated,
    /// It went on and on.
    TooLong,
    /// The client left, and took the rest of the answer with it.
    ClientGone,
}

impl AnswerError {
    /// All of them, in table order.
    pub const ALL: [AnswerError; 7] = [
        AnswerError::Refused,
        AnswerError::Reset,
        AnswerError::TimedOut,
        AnswerError::Garbage,
        AnswerError::Truncated,
        AnswerError::TooLong,
        AnswerError::ClientGone,
    ];

    /// Name in tables and documents.
    pub fn name(self) -> &'static str {
        match self {
            AnswerError::Refused => "refused",
            AnswerError::Reset => "reset",
            AnswerError::TimedOut => "timed_out",
            AnswerError::Garbage => "garbage",
            AnswerError::Truncated => "truncated",
            AnswerError::TooLong => "too_long",
            AnswerError::ClientGone => "client_gone",
        }
    }

    /// The error of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|error| error.name() == name)
    }
}
