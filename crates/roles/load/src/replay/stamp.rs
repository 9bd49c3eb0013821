//! Whose request caused a response, and so whether it was a hit. What requests and responses carry between the two ends of a
//! replay.
//!
//! The form is that of runs (`X-Assay`), so that access logs of proxies under test say the same of both.

use std::fmt::Write;

use assay_workload::XactId;
use assay_workload::mark::HEADER;

/// What a response of a simulated origin says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Number of the request that caused it; none: no request's.
    pub cause: Option<u64>,
    /// What it is a response to.
    pub key: u64,
    /// When it was made, `CLOCK_MONOTONIC`, in microseconds, rounded up.
    pub made_us: u64,
    /// The status that the origin gave.
    pub status: u16,
}

/// What a response was to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Hit,
    /// Caused by another request that was under way.
    Joined,
    /// From the cache, after the origin had confirmed it.
    Revalidated,
    Miss,
    /// From the proxy itself: no origin made it.
    Own,
}

impl Outcome {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Hit => "hit",
            Outcome::Joined => "joined",
            Outcome::Revalidated => "revalidated",
            Outcome::Miss => "miss",
            Outcome::Own => "own",
        }
    }
}

/// The line that request `number` carries, with its end.
pub(crate) fn request_line(number: u64) -> String {
    format!("{HEADER}: 0-{number}-0-0-b\r\n")
}

/// The number of a request, from the value of its field.
pub(crate) fn number_of(value: &[u8]) -> Option<u64> {
    let mut parts = std::str::from_utf8(value).ok()?.split('-');
    let robot: u64 = parts.next()?.parse().ok()?;
    let number = parts.next()?.parse().ok()?;
    (robot == 0 && parts.count() == 3).then_some(number)
}

impl Stamp {
    /// Appends the field's value.
    pub fn write(&self, out: &mut String) {
        let (robot, number) = self.cause.map_or((XactId::NOBODY.robot, 0), |number| (0, number));
        let (key, made, status) = (self.key, self.made_us, self.status);
        // Writing to a string cannot fail.
        let _ = write!(out, "{robot}-{number}-0-{key:016x}-0-{made}-{status}");
    }

    /// Reads the field's value; none: no simulated origin wrote this.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let parts: Vec<&str> = std::str::from_utf8(value).ok()?.split('-').collect();
        let [robot, number, "0", key, "0", made, status] = parts[..] else { return None };
        let robot: u32 = robot.parse().ok()?;
        let number = number.parse().ok()?;
        Some(Self {
            cause: (XactId::NOBODY.robot != robot).then_some(number),
            key: u64::from_str_radix(key, 16).ok()?,
            made_us: made.parse().ok()?,
            status: status.parse().ok()?,
        })
    }

    /// What the response was to request `number`, which was sent then.
    pub fn outcome(&self, number: u64, sent_ns: u64) -> Outcome {
        let is_older = self.made_us.saturating_mul(1000) <= sent_ns;
        match self.cause {
            Some(cause) if cause == number && self.status == 304 => Outcome::Revalidated,
            Some(cause) if cause == number => Outcome::Miss,
            _ if is_older => Outcome::Hit,
            Some(_) => Outcome::Joined,
            None => Outcome::Miss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_anything_else_is_no_stamp() {
        for cause in [Some(7), None] {
            let stamp = Stamp { cause, key: 0xabc, made_us: 12, status: 200 };
            let mut text = String::new();
            stamp.write(&mut text);
            assert_eq!(Stamp::parse(text.as_bytes()), Some(stamp), "{text}");
        }
        let line = request_line(9);
        let value = line.trim_end().split_once(": ").unwrap().1;
        assert_eq!(number_of(value.as_bytes()), Some(9));
        for bad in ["", "0-1", "x-1-0-0-b", "1-1-0-0-b", "0-1-0-0-b-c"] {
            assert_eq!(number_of(bad.as_bytes()), None, "{bad}");
        }
        for bad in ["", "0-1-0-zz-0-1-200", "0-1-0-1-0-1", "\u{e9}"] {
            assert_eq!(Stamp::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_response_that_its_request_did_not_cause_is_a_hit() {
        let stamp = |cause, made_us, status| Stamp { cause, key: 1, made_us, status };
        let sent_ns = 5_000_000;
        assert_eq!(stamp(Some(3), 6_000, 200).outcome(3, sent_ns), Outcome::Miss);
        assert_eq!(stamp(Some(3), 6_000, 304).outcome(3, sent_ns), Outcome::Revalidated);
        assert_eq!(stamp(Some(2), 4_000, 200).outcome(3, sent_ns), Outcome::Hit);
        assert_eq!(stamp(Some(2), 6_000, 200).outcome(3, sent_ns), Outcome::Joined);
        assert_eq!(stamp(None, 4_000, 200).outcome(3, sent_ns), Outcome::Hit);
        assert_eq!(stamp(None, 6_000, 200).outcome(3, sent_ns), Outcome::Miss);
    }
}
