//! What the replay itself did to the times that it reports: how late it sent requests, and how busy its own thread was.
//!
//! *Does not:* say how long responses lay unread. They are read by the thread that sends: where that is late with one, it can be late
//! with the other.

use assay_measurement::histogram::Histogram;
use assay_measurement::own_error::{Certainty, OwnInterval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::results::Times;

/// Error in milliseconds that is not held against a time.
const PRECISION_MS: f64 = 0.1;
/// Share of the time that its thread may run before the replay itself is said to be at its limit.
const BUSY: f64 = 0.9;

/// What the replay did to its own times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Own {
    /// From when a request was due to the last byte of its response: the times from sending, and what it was late.
    pub from_due_ms: Times,
    /// Share of the mean of that for which requests were late; null: no response came.
    pub lateness_share: Option<f64>,
    /// The mean response time lies between that from sending and that from when it was due; null: no response came.
    pub mean_ms: Option<OwnInterval>,
    /// The same of the median.
    pub p50_ms: Option<OwnInterval>,
    /// The same of the 99th percentile.
    pub p99_ms: Option<OwnInterval>,
    /// Share of the time in which the thread that sends and reads ran; null: the system does not tell.
    pub busy_share: Option<f64>,
    /// Share of the time in which it was ready to run and waited for a processor; null: the system does not tell.
    pub waiting_share: Option<f64>,
}

/// For how long a thread ran, and waited for a processor, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadTimes {
    ran_ns: u64,
    waited_ns: u64,
}

impl ThreadTimes {
    /// Of the calling thread; none: the system does not tell.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        Some(Self { ran_ns: numbers.next()?, waited_ns: numbers.next()? })
    }
}

impl Own {
    /// From times of whole responses, from sending and from when they were due.
    pub(crate) fn of(from_sending: &Histogram, from_due: &Histogram) -> Self {
        let (sent, due) = (Times::of(from_sending), Times::of(from_due));
        let between = |pick: fn(&Times) -> Option<f64>| {
            let (low, high) = (pick(&sent)?, pick(&due)?);
            Some(OwnInterval::of(low, low, Some(high), PRECISION_MS))
        };
        let share = |(sent, due): (f64, f64)| (due > 0.0).then(|| ((due - sent) / due).clamp(0.0, 1.0));
        Self {
            lateness_share: sent.mean.zip(due.mean).and_then(share),
            mean_ms: between(|times| times.mean),
            p50_ms: between(|times| times.p50),
            p99_ms: between(|times| times.p99),
            from_due_ms: due,
            ..Self::default()
        }
    }

    /// With how busy its thread was since `before`, `passed_ns` ago.
    pub(crate) fn with_thread(mut self, before: Option<ThreadTimes>, passed_ns: u64) -> Self {
        if let (Some(before), Some(now), 1..) = (before, ThreadTimes::now(), passed_ns) {
            let share =
                |from: u64, to: u64| Some((to.saturating_sub(from) as f64 / passed_ns as f64).min(1.0));
            self.busy_share = share(before.ran_ns, now.ran_ns);
            self.waiting_share = share(before.waited_ns, now.waited_ns);
        }
        self
    }

    /// How late it was, and how much of the times that is; none: no response came.
    pub(crate) fn words(&self, lateness: &Times) -> Option<String> {
        let (share, late) = (self.lateness_share?, lateness.p99?);
        let mut text = format!(
            "Assay itself sent 99 % of requests within {late:.3} ms of their time; its lateness is {:.1} % of the mean time from when \
             a request was due to its last byte.",
            share * 100.0
        );
        if let (Some(busy), Some(waiting)) = (self.busy_share, self.waiting_share) {
            let (busy, waiting) = (busy * 100.0, waiting * 100.0);
            text += &format!(
                " Its thread ran {busy:.0} % of the time, and waited {waiting:.0} % for a processor."
            );
        }
        Some(text)
    }

    /// Which times are only known to lie within an interval, and what to do; none: all are known.
    pub fn doubt(&self) -> Option<String> {
        let named =
            [("the mean", self.mean_ms), ("the median", self.p50_ms), ("the 99th percentile", self.p99_ms)];
        let rough: Vec<String> = named
            .iter()
            .filter_map(|(name, interval)| {
                let interval = interval.filter(|interval| interval.certainty != Certainty::Known)?;
                Some(format!("{name} between {:.3} and {:.3} ms", interval.low?, interval.high?))
            })
            .collect();
        let is_busy = self.busy_share.is_some_and(|share| share > BUSY);
        let remedy = "lower --speed or --rate, or take a machine with less other work";
        match (rough.is_empty(), is_busy) {
            (true, false) => None,
            (true, true) => {
                Some(format!("Assay's own thread was at its limit, so times may be too long: {remedy}"))
            }
            (false, _) => Some(format!(
                "Assay itself was late, so response times are known only within intervals: {}; {remedy}",
                rough.join(", ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(sent_us: u64, due_us: u64) -> Own {
        let of = |us| {
            let mut histogram = Histogram::default();
            (0..100).for_each(|_| histogram.record(us));
            histogram
        };
        Own::of(&of(sent_us), &of(due_us))
    }

    #[test]
    fn lateness_is_a_share_of_the_time_from_due_and_times_lie_between() {
        let late = own(10_400, 20_000);
        assert!((late.lateness_share.unwrap() - 0.48).abs() < 0.01, "{late:?}");
        let p50 = late.p50_ms.unwrap();
        assert_eq!(p50.certainty, Certainty::Roughly);
        assert!((p50.low.unwrap() - 10.4).abs() < 0.2 && (p50.high.unwrap() - 20.0).abs() < 0.3, "{p50:?}");
        let doubt = late.doubt().unwrap();
        assert!(doubt.contains("the median between 10.") && doubt.contains("--speed"), "{doubt}");
        let lateness = Times { p99: Some(9.6), ..Times::default() };
        assert!(
            late.words(&lateness).unwrap().contains("its lateness is 48."),
            "{:?}",
            late.words(&lateness)
        );
    }

    #[test]
    fn times_with_little_lateness_are_known_and_no_times_say_nothing() {
        let little = own(20_000, 20_500);
        assert_eq!((little.doubt(), little.p50_ms.unwrap().certainty), (None, Certainty::Known));
        let none = Own::of(&Histogram::default(), &Histogram::default());
        assert_eq!((none.doubt(), none.words(&Times::default()), none.lateness_share), (None, None, None));
        let busy = Own { busy_share: Some(0.95), ..little };
        assert!(busy.doubt().unwrap().contains("at its limit"));
    }

    #[test]
    fn the_times_of_a_thread_are_read_if_the_system_tells_them() {
        assert_eq!(ThreadTimes::parse("12 34 5\n"), Some(ThreadTimes { ran_ns: 12, waited_ns: 34 }));
        assert_eq!(ThreadTimes::parse("12\n"), None);
        assert_eq!(ThreadTimes::parse(""), None);
    }
}
