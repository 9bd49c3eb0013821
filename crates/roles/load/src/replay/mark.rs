//! Marks on requests and responses of a replay: they tell whose request caused a response, and so whether it was a hit.
//!
//! The form is that of runs (`X-Assay`), so that access logs of proxies under test say the same of both.

use std::fmt::Write;

use assay_workload::XactId;
use assay_workload::mark::HEADER;
use strum::IntoStaticStr;

/// Mark of a response of a simulated origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplayMark {
    /// Number of the request that caused it; none: no request's.
    pub cause: Option<u64>,
    /// Key of the URL.
    pub key: u64,
    /// Instant at which it was made, `CLOCK_MONOTONIC`, in microseconds, rounded up.
    pub made_us: u64,
    /// The status that the origin gave.
    pub status: u16,
}

/// Part of the cache in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum CacheOutcome {
    Hit,
    /// Caused by another request that was under way.
    Joined,
    /// Served from the cache, after the origin had confirmed it.
    Revalidated,
    Miss,
    /// Made by the proxy itself, by no origin.
    Own,
}

impl CacheOutcome {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Line of request `number`, with its end.
pub(crate) fn request_line(number: u64) -> String {
    format!("{HEADER}: 0-{number}-0-0-b\r\n")
}

/// Number of a request, from the value of its field.
pub(crate) fn request_number(value: &[u8]) -> Option<u64> {
    let mut parts = std::str::from_utf8(value).ok()?.split('-');
    let robot: u64 = parts.next()?.parse().ok()?;
    let number = parts.next()?.parse().ok()?;
    (robot == 0 && parts.count() == 3).then_some(number)
}

impl ReplayMark {
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

    /// Outcome of request `number`, which was sent at `sent_ns`.
    pub fn outcome(&self, number: u64, sent_ns: u64) -> CacheOutcome {
        let is_older = self.made_us.saturating_mul(1000) <= sent_ns;
        match self.cause {
            Some(cause) if cause == number && self.status == 304 => CacheOutcome::Revalidated,
            Some(cause) if cause == number => CacheOutcome::Miss,
            _ if is_older => CacheOutcome::Hit,
            Some(_) => CacheOutcome::Joined,
            None => CacheOutcome::Miss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_anything_else_is_no_stamp() {
        for cause in [Some(7), None] {
            let mark = ReplayMark { cause, key: 0xabc, made_us: 12, status: 200 };
            let mut text = String::new();
            mark.write(&mut text);
            assert_eq!(ReplayMark::parse(text.as_bytes()), Some(mark), "{text}");
        }
        let line = request_line(9);
        let value = line.trim_end().split_once(": ").unwrap().1;
        assert_eq!(request_number(value.as_bytes()), Some(9));
        for bad in ["", "0-1", "x-1-0-0-b", "1-1-0-0-b", "0-1-0-0-b-c"] {
            assert_eq!(request_number(bad.as_bytes()), None, "{bad}");
        }
        for bad in ["", "0-1-0-zz-0-1-200", "0-1-0-1-0-1", "\u{e9}"] {
            assert_eq!(ReplayMark::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_response_that_its_request_did_not_cause_is_a_hit() {
        let mark = |cause, made_us, status| ReplayMark { cause, key: 1, made_us, status };
        let sent_ns = 5_000_000;
        assert_eq!(mark(Some(3), 6_000, 200).outcome(3, sent_ns), CacheOutcome::Miss);
        assert_eq!(mark(Some(3), 6_000, 304).outcome(3, sent_ns), CacheOutcome::Revalidated);
        assert_eq!(mark(Some(2), 4_000, 200).outcome(3, sent_ns), CacheOutcome::Hit);
        assert_eq!(mark(Some(2), 6_000, 200).outcome(3, sent_ns), CacheOutcome::Joined);
        assert_eq!(mark(None, 4_000, 200).outcome(3, sent_ns), CacheOutcome::Hit);
        assert_eq!(mark(None, 6_000, 200).outcome(3, sent_ns), CacheOutcome::Miss);
    }
}
