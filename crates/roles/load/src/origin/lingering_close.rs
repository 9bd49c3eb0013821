//! Lingering close: the end of a connection whose client may still be sending.
//!
//! The system resets a connection that is closed while something is unread, or to which something comes afterwards. What the client
//! had not been sent by then is thrown away, and some clients throw away what they had not read. So the origin ends its own side, and reads
//! on until the client ends its side, for a while (RFC 9112, 9.6).

use assay_base::clock::SECOND_NS;

/// Interval between looks at the connection.
const INTERVAL_NS: u64 = SECOND_NS;
/// Time that a client has to end its side once its system has everything: one on a busy machine may not have read it
/// yet.
const AFTER_DELIVERY_NS: u64 = 5 * SECOND_NS;
/// Longest lingering. Without a bound, a client that reads nothing would be waited for for ever.
const LONGEST_NS: u64 = 60 * SECOND_NS;

/// A connection of which the origin has ended its own side.
#[derive(Debug)]
pub(super) struct LingeringClose {
    began_ns: u64,
    /// Instant at which the client's system was first seen to have everything.
    delivered_ns: Option<u64>,
}

impl LingeringClose {
    /// Begins after the origin has ended its side; returns the instant of the first look.
    pub fn begin(now_ns: u64) -> (Self, u64) {
        (Self { began_ns: now_ns, delivered_ns: None }, now_ns + INTERVAL_NS)
    }

    /// Instant of the next look; none: the wait is over.
    pub fn check(&mut self, is_delivered: bool, now_ns: u64) -> Option<u64> {
        if is_delivered {
            self.delivered_ns.get_or_insert(now_ns);
        }
        let until_ns = self.began_ns + LONGEST_NS;
        let until_ns = self.delivered_ns.map_or(until_ns, |at_ns| until_ns.min(at_ns + AFTER_DELIVERY_NS));
        (now_ns < until_ns).then_some(now_ns + INTERVAL_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds spent waiting for a client whose system has received everything after `delivered_s` seconds.
    fn waits_s(delivered_s: u64) -> u64 {
        let (mut closing, mut at_ns) = LingeringClose::begin(0);
        while let Some(next_ns) = closing.check(at_ns >= delivered_s * SECOND_NS, at_ns) {
            at_ns = next_ns;
        }
        at_ns / SECOND_NS
    }

    #[test]
    fn a_client_has_seconds_once_everything_is_there_and_a_minute_in_all() {
        assert_eq!(waits_s(0), 1 + 5);
        assert_eq!(waits_s(20), 20 + 5);
        assert_eq!(waits_s(58), 60);
        assert_eq!(waits_s(1_000), 60);
    }
}
