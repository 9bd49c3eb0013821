//! Traces of requests in the forms of research, and of people's own tables: bytes in, records out. Readers of binary forms are given
//! pieces of any length and keep what a piece ends in the middle of; readers of text are given lines.

pub mod columns;
pub mod lcs;
mod name;
mod number;
pub mod operation;
pub mod oracle;
pub mod published;
pub mod separator;
pub mod text;
pub mod vscsi;

/// A request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Stands for the object: its number in the trace, or the hash of its name.
    pub key: u64,
    /// Bytes of the object; none: the trace has no sizes.
    pub bytes: Option<u64>,
    /// Bytes of the response; none: those of the object.
    pub sent_bytes: Option<u64>,
    /// Milliseconds of any epoch; none: the trace has no times.
    pub at_ms: Option<i64>,
    /// Seconds that the response is fresh; none: the trace does not say.
    pub life_s: Option<u32>,
    /// Milliseconds until the response began; none: the trace does not say.
    pub takes_ms: Option<u32>,
}

impl Record {
    /// A request for all of an object, of which no more is known.
    pub const fn plain(key: u64, bytes: Option<u64>, at_s: Option<i64>) -> Self {
        let at_ms = match at_s {
            Some(at_s) => Some(at_s.saturating_mul(1000)),
            None => None,
        };
        Self { key, bytes, sent_bytes: None, at_ms, life_s: None, takes_ms: None }
    }
}
