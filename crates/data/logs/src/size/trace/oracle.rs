//! The binary form `oracleGeneral` of libCacheSim: records of 24 bytes, little endian: time in seconds (u32), object (u64), size
//! in bytes (u32), the number of the object's next request (i64), which is not used: it follows from the trace.

use super::Record;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 24;

#[derive(Debug, Default)]
pub struct Oracle {
    /// The beginning of a record that the last piece ended in.
    rest: Vec<u8>,
}

impl Oracle {
    /// Reads the next piece.
    pub fn read(&mut self, mut piece: &[u8], mut each: impl FnMut(Record)) {
        if !self.rest.is_empty() {
            let missing = (RECORD_BYTES - self.rest.len()).min(piece.len());
            self.rest.extend_from_slice(&piece[..missing]);
            piece = &piece[missing..];
            let Some(whole) = self.rest.first_chunk() else { return };
            each(record(whole));
            self.rest.clear();
        }
        let (records, rest) = piece.as_chunks();
        records.iter().map(record).for_each(&mut each);
        self.rest.extend_from_slice(rest);
    }

    /// Bytes after the last whole record: 0 unless the trace is truncated.
    pub fn left_over(&self) -> usize {
        self.rest.len()
    }
}

fn record(bytes: &[u8; RECORD_BYTES]) -> Record {
    let [a, b, c, d, k @ .., _, _, _, _, _, _, _, _] = bytes;
    let ([k0, k1, k2, k3, k4, k5, k6, k7, s0, s1, s2, s3], time) = (*k, [*a, *b, *c, *d]);
    Record::plain(
        u64::from_le_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
        Some(u64::from(u32::from_le_bytes([s0, s1, s2, s3]))),
        Some(i64::from(u32::from_le_bytes(time))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(records: &[(u32, u64, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (time, key, size) in records {
            bytes.extend(time.to_le_bytes());
            bytes.extend(key.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend((-1i64).to_le_bytes());
        }
        bytes
    }

    proptest::proptest! {
        #[test]
        fn records_are_the_same_however_the_trace_is_cut(
            records in proptest::collection::vec((0u32.., 0u64.., 0u32..), 0..20),
            cut in 1usize..70, lost in 0usize..24
        ) {
            let mut bytes = written(&records);
            bytes.truncate(bytes.len().saturating_sub(lost));
            let (mut oracle, mut found) = (Oracle::default(), Vec::new());
            for piece in bytes.chunks(cut) {
                oracle.read(piece, |record| found.push(record));
            }
            let expected = records.iter().map(|(time, key, size)| {
                Record::plain(*key, Some(u64::from(*size)), Some(i64::from(*time)))
            });
            proptest::prop_assert_eq!(oracle.left_over(), bytes.len() % RECORD_BYTES);
            let whole = bytes.len() / RECORD_BYTES;
            proptest::prop_assert_eq!(found, expected.take(whole).collect::<Vec<_>>());
        }
    }
}
