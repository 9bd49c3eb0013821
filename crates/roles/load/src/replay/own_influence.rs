//! Influence of the replay itself and of the machine on the times that it reports: how late requests were sent, how busy
//! the thread was that sends them and reads their responses, and for how long threads that they needed waited for a
//! processor.

use assay_measurement::histogram::Histogram;
use assay_measurement::own_error::{Certainty, MOST_WAITING, OwnError, OwnInterval};
use assay_net::thread_times::ThreadTimes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::replay::results::TimeSummary;

/// Error in milliseconds that is not held against a time.
const PRECISION_MS: f64 = 0.1;
/// Share of the time that the thread may run before the replay itself counts as at its limit.
const BUSY: f64 = 0.9;

/// What the replay and the machine did to times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Own")]
pub struct OwnInfluence {
    /// From when a request was due to the last byte of its response: the times from sending, and what it was late.
    pub from_due_ms: TimeSummary,
    /// Share of the mean of that for which requests were late; null: no response came.
    pub lateness_share: Option<f64>,
    /// Where the mean response time lies: at most at that from when requests were due, at least at that from sending without what waiting
    /// threads can have added; null: no response came.
    pub mean_ms: Option<OwnInterval>,
    /// The same of the median.
    pub p50_ms: Option<OwnInterval>,
    /// The same of the 99th percentile.
    pub p99_ms: Option<OwnInterval>,
    /// Share of the time in which the thread that sends and reads ran; null: the system does not tell.
    pub busy_share: Option<f64>,
    /// Time for which it was ready to run and waited for a processor, as a share of all time; null: the system does not tell.
    pub waiting_share: Option<f64>,
    /// The same of the thread of simulated origins; null: there are none.
    pub origin_waiting_share: Option<f64>,
    /// The same of all threads of the proxy that was started, added up; null: it is not watched.
    pub target_waiting_share: Option<f64>,
}

/// Usage of threads during a replay.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadUsage {
    pub passed_ns: u64,
    /// The thread that sends and reads.
    pub sender: Option<ThreadTimes>,
    /// Thread of the simulated origins.
    pub origins: Option<ThreadTimes>,
    /// All threads of the target waited for so long.
    pub target_waited_us: Option<u64>,
}

impl ThreadUsage {
    fn share(&self, ns: u64) -> Option<f64> {
        (self.passed_ns > 0).then(|| ns as f64 / self.passed_ns as f64)
    }

    fn waiting_share(&self) -> f64 {
        if self.passed_ns == 0 { 0.0 } else { self.waited_us() * 1e3 / self.passed_ns as f64 }
    }

    fn waited_us(&self) -> f64 {
        let threads = [self.sender, self.origins].into_iter().flatten();
        let own_ns: u64 = threads.map(|thread| thread.waited_ns).sum();
        own_ns as f64 / 1e3 + self.target_waited_us.unwrap_or(0) as f64
    }
}

impl OwnInfluence {
    /// Computes the influence from times of whole responses, from sending and from when they were due, and from the
    /// usage of threads.
    pub(crate) fn new(from_sending: &Histogram, from_due: &Histogram, threads: &ThreadUsage) -> Self {
        let (sent, due) = (TimeSummary::from_histogram(from_sending), TimeSummary::from_histogram(from_due));
        let least = OwnError::beside_waits(from_sending, threads.waited_us(), threads.passed_ns as f64 / 1e3);
        let is_known = threads.waiting_share() <= MOST_WAITING;
        let between = |seen: Option<f64>, least_us: Option<f64>, most: Option<f64>| {
            let (seen, low, most) = (seen?, least_us? / 1e3, most?);
            Some(match is_known {
                true => OwnInterval::of(seen, low, Some(most), PRECISION_MS),
                false => OwnInterval::UNKNOWN,
            })
        };
        let quantile = |quantile: f64, seen: Option<f64>, most: Option<f64>| {
            between(seen, least.quantile(quantile).map(|bounds| bounds.low_us), most)
        };
        let share = |(sent, due): (f64, f64)| (due > 0.0).then(|| ((due - sent) / due).clamp(0.0, 1.0));
        Self {
            lateness_share: sent.mean.zip(due.mean).and_then(share),
            mean_ms: between(sent.mean, least.mean().map(|bounds| bounds.low_us), due.mean),
            p50_ms: quantile(0.5, sent.p50, due.p50),
            p99_ms: quantile(0.99, sent.p99, due.p99),
            from_due_ms: due,
            busy_share: threads.sender.and_then(|thread| threads.share(thread.ran_ns)),
            waiting_share: threads.sender.and_then(|thread| threads.share(thread.waited_ns)),
            origin_waiting_share: threads.origins.and_then(|thread| threads.share(thread.waited_ns)),
            target_waiting_share: threads.target_waited_us.and_then(|us| threads.share(us * 1_000)),
        }
    }

    /// Threads waited so long that times are unknown. Hit ratios are, too: requests that take longer overlap, and miss together.
    pub fn leaves_unknown(&self) -> bool {
        self.p50_ms.is_some_and(|interval| interval.certainty == Certainty::Unknown)
    }

    /// Text about lateness, and its share of the times; none: no response came.
    pub(crate) fn lateness_text(&self, lateness: &TimeSummary) -> Option<String> {
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

    /// Text about times that are unknown or only known to lie within an interval, with advice; none: all are known.
    pub fn doubt(&self) -> Option<String> {
        let named =
            [("the mean", self.mean_ms), ("the median", self.p50_ms), ("the 99th percentile", self.p99_ms)];
        let text = |(name, interval): &(&str, Option<OwnInterval>)| match *interval {
            Some(OwnInterval { certainty: Certainty::Unknown, .. }) => Some(format!("{name} is unknown")),
            Some(OwnInterval { certainty: Certainty::Roughly, low: Some(low), high: Some(high) }) => {
                Some(format!("{name} lies between {low:.3} and {high:.3} ms"))
            }
            _ => None,
        };
        let rough: Vec<String> = named.iter().filter_map(text).collect();
        let is_busy = self.busy_share.is_some_and(|share| share > BUSY);
        let remedy = "lower --speed or --rate, or take a machine with less other work";
        match (rough.is_empty(), is_busy) {
            (true, false) => None,
            (true, true) => {
                Some(format!("Assay's own thread was at its limit, so times may be too long: {remedy}"))
            }
            (false, _) => Some(format!(
                "{}, so response times are not exact: {}; {remedy}",
                self.cause(),
                rough.join(", ")
            )),
        }
    }

    /// Largest influence on times.
    fn cause(&self) -> String {
        let waiting = [
            ("the proxy's threads", self.target_waiting_share),
            ("the thread of the simulated origins", self.origin_waiting_share),
            ("Assay's own thread", self.waiting_share),
        ];
        let waited = waiting.into_iter().filter_map(|(name, share)| Some((name, share?)));
        let most = waited.max_by(|one, other| one.1.total_cmp(&other.1));
        match most.filter(|(_, share)| *share > self.lateness_share.unwrap_or(0.0)) {
            Some((name, share)) => {
                format!("{name} waited {:.0} % of the time for a processor", share * 100.0)
            }
            None => "Assay itself was late".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(us: u64) -> Histogram {
        let mut histogram = Histogram::default();
        (0..100).for_each(|_| histogram.record(us));
        histogram
    }

    fn own(sent_us: u64, due_us: u64) -> OwnInfluence {
        OwnInfluence::new(&times(sent_us), &times(due_us), &ThreadUsage::default())
    }

    #[test]
    fn lateness_is_a_share_of_the_time_from_due_and_times_lie_between() {
        let late = own(10_400, 20_000);
        assert!((late.lateness_share.unwrap() - 0.48).abs() < 0.01, "{late:?}");
        let p50 = late.p50_ms.unwrap();
        assert_eq!(p50.certainty, Certainty::Roughly);
        assert!((p50.low.unwrap() - 10.4).abs() < 0.2 && (p50.high.unwrap() - 20.0).abs() < 0.3, "{p50:?}");
        let doubt = late.doubt().unwrap();
        assert!(doubt.contains("the median lies between 10.") && doubt.contains("--speed"), "{doubt}");
        let lateness = TimeSummary { p99: Some(9.6), ..TimeSummary::default() };
        assert!(
            late.lateness_text(&lateness).unwrap().contains("its lateness is 48."),
            "{:?}",
            late.lateness_text(&lateness)
        );
    }

    #[test]
    fn times_with_little_lateness_are_known_and_no_times_say_nothing() {
        let little = own(20_000, 20_500);
        assert_eq!((little.doubt(), little.p50_ms.unwrap().certainty), (None, Certainty::Known));
        let none = OwnInfluence::new(&Histogram::default(), &Histogram::default(), &ThreadUsage::default());
        assert_eq!(
            (none.doubt(), none.lateness_text(&TimeSummary::default()), none.lateness_share),
            (None, None, None)
        );
        let busy = OwnInfluence { busy_share: Some(0.95), ..little };
        assert!(busy.doubt().unwrap().contains("at its limit"));
    }

    #[test]
    fn times_are_known_as_far_as_threads_that_waited_for_processors_allow() {
        // A hundred responses of 20 ms, one after the other, in two seconds.
        let waited = |sender_ms: u64, target_ms: u64| {
            let sender = ThreadTimes { ran_ns: 0, waited_ns: sender_ms * 1_000_000 };
            let threads = ThreadUsage {
                passed_ns: 2_000_000_000,
                sender: Some(sender),
                origins: None,
                target_waited_us: Some(target_ms * 1_000),
            };
            OwnInfluence::new(&times(20_000), &times(20_000), &threads)
        };
        let certainty =
            |own: &OwnInfluence| [own.mean_ms, own.p50_ms].map(|interval| interval.unwrap().certainty);
        let little = waited(20, 20);
        assert_eq!(certainty(&little), [Certainty::Known; 2]);
        assert_eq!((little.waiting_share, little.target_waiting_share), (Some(0.01), Some(0.01)));
        assert!(!little.leaves_unknown());
        let some = waited(0, 200);
        assert_eq!(certainty(&some)[0], Certainty::Roughly);
        assert!((some.mean_ms.unwrap().low.unwrap() - 16.0).abs() < 0.2, "{some:?}");
        for much in [waited(920, 100), waited(0, 1_020)] {
            assert!(certainty(&much) == [Certainty::Unknown; 2] && much.leaves_unknown(), "{much:?}");
        }
        let doubt = waited(920, 100).doubt().unwrap();
        assert!(
            doubt.starts_with("Assay's own thread waited 46 %") && doubt.contains("the median is unknown"),
            "{doubt}"
        );
        assert!(waited(0, 1_020).doubt().unwrap().starts_with("the proxy's threads waited 51 %"));
    }
}
