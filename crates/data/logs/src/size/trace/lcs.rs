//! The binary form `lcs` of libCacheSim, in its versions 1 to 8: a head of 8,192 bytes, then records, little endian. Each has the time
//! in seconds (u32), the object (u64) and its size in bytes (u32; from version 3 on i64), from version 2 on the operation (u8) and
//! the tenant (u24), from version 3 on the lifetime in seconds (u32); then the number of the object's next request (i64), and from
//! version 4 on features (u32 each), none of which is used.

use thiserror::Error;

use super::Record;
use super::operation::Operations;

/// Magic number at the beginning of a trace, and at the end of its head.
const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
const HEAD_BYTES: usize = 8192;
/// Bytes of a record, by version.
const RECORD_BYTES: [usize; 8] = [24, 28, 36, 40, 44, 52, 68, 100];
/// Operations by their number; 0: the trace does not say, and it is a request.
const OPERATIONS: [&str; 15] = [
    "get", "get", "gets", "set", "add", "cas", "replace", "append", "prepend", "delete", "incr", "decr",
    "read", "write", "update",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LcsError {
    /// The magic number is missing.
    #[error("cannot read the trace: it does not begin as libCacheSim's lcs does")]
    NoLcs,
    #[error(
        "cannot read the trace: its version of libCacheSim's lcs is {0}, and 1 to 8 are read; write it as oracleGeneral, with traceConv of \
         libCacheSim"
    )]
    Version(u64),
}

/// True if a trace begins like one in this form.
pub fn is_lcs(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

#[derive(Debug, Default)]
pub struct Lcs {
    /// Bytes of each; none: the head was not read yet.
    record_bytes: Option<usize>,
    /// The beginning of what the last piece ended in.
    rest: Vec<u8>,
    pub operations: Operations,
}

impl Lcs {
    /// Reads the next piece.
    ///
    /// # Errors
    /// If the trace is none of these.
    pub fn read(&mut self, piece: &[u8], mut each: impl FnMut(Record)) -> Result<(), LcsError> {
        self.rest.extend_from_slice(piece);
        let mut from = 0;
        if self.record_bytes.is_none() {
            let Some(head) = self.rest.first_chunk::<HEAD_BYTES>() else { return Ok(()) };
            self.record_bytes = Some(record_bytes(head)?);
            from = HEAD_BYTES;
        }
        let bytes = self.record_bytes.unwrap_or(HEAD_BYTES);
        let mut records = self.rest[from..].chunks_exact(bytes);
        for bytes in &mut records {
            let (record, operation) = record(bytes);
            let name = OPERATIONS.get(operation).copied().unwrap_or("invalid");
            if self.operations.parse(name.as_bytes(), 1) {
                each(record);
            }
        }
        self.rest = records.remainder().to_vec();
        Ok(())
    }

    /// Bytes after the last whole record, and bytes of a record; none: the trace is not truncated.
    pub fn left_over(&self) -> Option<(usize, usize)> {
        Some((self.rest.len(), self.record_bytes.unwrap_or(HEAD_BYTES))).filter(|(left, _)| *left > 0)
    }
}

fn record_bytes(head: &[u8; HEAD_BYTES]) -> Result<usize, LcsError> {
    let (begin, end) = (head.starts_with(&MAGIC), head.ends_with(&MAGIC));
    let version = number(head, 8, 8);
    let bytes = usize::try_from(version).ok().and_then(|version| RECORD_BYTES.get(version.checked_sub(1)?));
    match bytes {
        _ if !begin => Err(LcsError::NoLcs),
        Some(bytes) if end => Ok(*bytes),
        _ => Err(LcsError::Version(version)),
    }
}

/// A record, and the number of its operation.
fn record(bytes: &[u8]) -> (Record, usize) {
    let (time, key) = (number(bytes, 0, 4), number(bytes, 4, 8));
    let [without_operations, _, with_lives, ..] = RECORD_BYTES;
    let has_long_sizes = bytes.len() >= with_lives;
    let (size, operation_at) =
        if has_long_sizes { (number(bytes, 12, 8), 20) } else { (number(bytes, 12, 4), 16) };
    let operation = if bytes.len() > without_operations { number(bytes, operation_at, 1) } else { 0 };
    let life_s = if has_long_sizes { number(bytes, 24, 4) } else { 0 };
    let record = Record::plain(key, Some(size), Some(time as i64));
    (Record { life_s: Some(life_s as u32).filter(|life_s| *life_s > 0), ..record }, operation as usize)
}

/// A number of this size in bytes.
pub(super) fn number(bytes: &[u8], from: usize, length: usize) -> u64 {
    bytes[from..from + length].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(version: u64) -> Vec<u8> {
        let mut head = vec![0; HEAD_BYTES];
        head[..8].copy_from_slice(&MAGIC);
        head[8..16].copy_from_slice(&version.to_le_bytes());
        head[HEAD_BYTES - 8..].copy_from_slice(&MAGIC);
        head
    }

    fn read(trace: &[u8], piece: usize) -> (Vec<Record>, Lcs) {
        let (mut lcs, mut found) = (Lcs::default(), Vec::new());
        for piece in trace.chunks(piece) {
            lcs.read(piece, |record| found.push(record)).unwrap();
        }
        (found, lcs)
    }

    #[test]
    fn records_of_every_version_are_read_and_only_reads_are_requests() {
        for (version, length) in (1..).zip(RECORD_BYTES) {
            let mut trace = head(version);
            for operation in [1, 3] {
                let mut record = vec![0; length];
                record[..4].copy_from_slice(&9_u32.to_le_bytes());
                record[4..12].copy_from_slice(&(1_u64 << 40).to_le_bytes());
                record[12..16].copy_from_slice(&700_u32.to_le_bytes());
                match version {
                    1 => {}
                    2 => record[16] = operation,
                    _ => (record[20], record[24]) = (operation, 60),
                }
                trace.extend(record);
            }
            let life_s = Some(60).filter(|_| version > 2);
            let expected = Record { life_s, ..Record::plain(1 << 40, Some(700), Some(9)) };
            let (found, lcs) = read(&trace[..trace.len() - 1], 1000);
            assert_eq!(found, [expected], "{version}");
            assert_eq!(lcs.left_over(), Some((length - 1, length)));
            let (found, lcs) = read(&trace, 7);
            assert_eq!((found.len(), lcs.left_over()), (if version == 1 { 2 } else { 1 }, None), "{version}");
            assert_eq!(lcs.operations.operations.len(), if version == 1 { 1 } else { 2 });
        }
    }

    #[test]
    fn what_is_no_such_trace_is_refused() {
        let refused = |trace: &[u8]| Lcs::default().read(trace, |_| {});
        assert_eq!(refused(&head(9)), Err(LcsError::Version(9)));
        assert_eq!(refused(&[0; HEAD_BYTES]), Err(LcsError::NoLcs));
        assert!(is_lcs(&head(1)) && !is_lcs(b"time,id"));
        assert_eq!(read(&head(1)[..100], 100).1.left_over(), Some((100, HEAD_BYTES)));
    }
}
