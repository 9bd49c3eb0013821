//! Traces of requests in the forms of research: bytes in, records out. Readers are given pieces of any length and keep what a
//! piece ends in the middle of.

pub mod csv;
pub mod oracle;

/// A request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Stands for the object: its number in the trace, or the hash of its name.
    pub key: u64,
    /// Bytes of the object; none: the trace has no sizes.
    pub bytes: Option<u64>,
    /// Seconds of any epoch; none: the trace has no times.
    pub at_s: Option<i64>,
}
