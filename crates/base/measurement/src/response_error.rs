//! Failure of a request to get a whole response.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Why there was no whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    /// Name in tables and documents.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
