//! Pacing of slow bodies.

use assay_base::clock::SECOND_NS;

/// A body is sent in pieces of the bytes due in this time, or of one byte.
const PIECE_NS: u64 = 20_000_000;

/// A response whose head is sent at once, and whose body is sent at a steady rate.
#[derive(Debug, Clone, Copy)]
pub struct BodyPacer {
    pub begun_ns: u64,
    /// Bytes of the head.
    pub head_bytes: u64,
    pub bytes_per_s: f64,
}

impl BodyPacer {
    /// Bytes that may have gone out by now.
    pub fn allowed(&self, now_ns: u64) -> u64 {
        let seconds = now_ns.saturating_sub(self.begun_ns) as f64 / SECOND_NS as f64;
        self.head_bytes.saturating_add((seconds * self.bytes_per_s) as u64)
    }

    /// Due time of the next piece, after `written` bytes of `length`.
    pub fn due_ns(&self, written: u64, length: u64) -> u64 {
        let piece = (self.bytes_per_s * PIECE_NS as f64 / SECOND_NS as f64).max(1.0) as u64;
        let next = written.saturating_add(piece).min(length).saturating_sub(self.head_bytes);
        // Rounded up, so that the piece is allowed when it is due.
        self.begun_ns.saturating_add((next as f64 / self.bytes_per_s * SECOND_NS as f64) as u64 + 2)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_due_is_allowed_and_all_of_it_takes_its_time(
            bytes_per_s in 0.5f64..1e9, head_bytes in 0u64..1000, body_bytes in 1u64..100_000, begun_ns in 0u64..1 << 50,
        ) {
            let pace = BodyPacer { begun_ns, head_bytes, bytes_per_s };
            let (length, mut written, mut now_ns, mut pieces) = (head_bytes + body_bytes, 0, begun_ns, 0u64);
            while written < length && pieces < 1000 {
                match pace.allowed(now_ns).saturating_sub(written) {
                    0 => {
                        let due_ns = pace.due_ns(written, length);
                        prop_assert!(due_ns > now_ns && pace.allowed(due_ns) > written);
                        now_ns = due_ns;
                    }
                    most => written += most.min(length - written),
                }
                pieces += 1;
            }
            if written == length {
                let least_s = body_bytes as f64 / bytes_per_s;
                prop_assert!((now_ns - begun_ns) as f64 / SECOND_NS as f64 > 0.999 * least_s - 1e-6);
            }
        }
    }
}
