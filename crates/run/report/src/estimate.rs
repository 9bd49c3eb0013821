//! Figures with their own error: what is stated of a time, a rate or a ratio, and how well it is known.

use assay_measurement::censored::{Bounds, Censored};
use assay_measurement::doubt::Extent;
use assay_measurement::histogram::Histogram;
use assay_measurement::own_error::{
    BEGUN_LATE_US, OwnError, OwnInterval, PRECISION_US, RandomArrivals, SOONER_US, Unrecorded,
};
use assay_measurement::times::{SpanOf, TimesSum};

use crate::disturbance;
use crate::tally::Tally;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XactClass {
    /// Completed xacts, and those that were never sent or timed out: as long as they had waited, or longer.
    All,
    Completed,
    /// Completed xacts whose outcome is hit.
    Hit,
    /// Completed xacts whose outcome is miss.
    Miss,
    /// All others that completed.
    Other,
}

/// Estimate of one figure, in its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureEstimate {
    /// Value as measured.
    pub value: f64,
    /// Requests without an end can have made it more: up to this; none: without a bound. That is the target's doing.
    pub open_to: Option<f64>,
    /// Interval in which it lies, whatever Assay and the lab did.
    pub own: OwnInterval,
}

impl FigureEstimate {
    /// A figure that nothing of Assay's can have touched.
    pub fn exact(value: f64) -> Self {
        let own = OwnInterval::of(value, value, Some(value), 0.0);
        Self { value, open_to: Some(value), own }
    }

    /// True where no more is known of what the target did than that it was not less.
    pub fn is_at_least(&self) -> bool {
        self.open_to != Some(self.value)
    }

    /// A figure between two bounds.
    pub fn between(value: f64, low: f64, high: Option<f64>, precision: f64) -> Self {
        Self { value, open_to: Some(value), own: OwnInterval::of(value, low, high, precision) }
    }

    /// The same, but nothing is known if `unknown`.
    #[must_use]
    pub fn unless(self, unknown: bool) -> Self {
        if unknown { Self { own: OwnInterval::UNKNOWN, ..self } } else { self }
    }

    /// The same in another unit.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { value: change(self.value), open_to: self.open_to.map(&change), own: self.own.map(&change) }
    }
}

/// Times of one class, and what can have been done to them.
pub struct TimesEstimate {
    times: Censored,
    error: OwnError,
    unknown: bool,
    is_recorded: bool,
}

impl TimesEstimate {
    /// False: the run was made before own errors were recorded, and what is stated has none.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    pub fn times(&self) -> &Censored {
        &self.times
    }

    /// The times as short as they can have been without Assay.
    pub fn least(&self) -> &Histogram {
        self.error.least()
    }

    /// The value that `quantile` (0 to 1) of all do not exceed, in microseconds; none: there are none.
    pub fn quantile(&self, quantile: f64) -> Option<FigureEstimate> {
        self.estimate(self.times.quantile(quantile), self.error.quantile(quantile))
    }

    pub fn mean(&self) -> Option<FigureEstimate> {
        self.estimate(self.times.mean(), self.error.mean())
    }

    pub fn max(&self) -> Option<FigureEstimate> {
        self.estimate(self.times.max(), self.error.max())
    }

    pub fn min(&self) -> Option<FigureEstimate> {
        self.estimate(self.times.min(), self.error.min())
    }

    fn estimate(&self, seen: Option<Bounds>, own: Option<Bounds>) -> Option<FigureEstimate> {
        let (seen, own) = (seen?, own?);
        if !self.is_recorded {
            return Some(FigureEstimate { open_to: seen.high_us, ..FigureEstimate::exact(seen.low_us) });
        }
        let own = OwnInterval::of(seen.low_us, own.low_us, own.high_us, PRECISION_US);
        Some(FigureEstimate { value: seen.low_us, open_to: seen.high_us, own }.unless(self.unknown))
    }
}

impl Tally {
    /// The times of a span of all xacts of a class, with what can have been done to them.
    pub fn times(&self, span: SpanOf, class: XactClass) -> TimesEstimate {
        let (sum, times) = match class {
            XactClass::Hit => (None, self.times.hit.of(span).clone().into()),
            XactClass::Miss => (None, self.times.miss.of(span).clone().into()),
            XactClass::Other => (None, self.times.other.of(span).clone().into()),
            XactClass::Completed => {
                let sum = self.completed_sum();
                let times = sum.of(span).clone().into();
                (Some(sum), times)
            }
            XactClass::All => {
                let mut sum = self.completed_sum();
                sum.disturb_open(&self.times.timed_out, &self.times.unsent_wait, &self.times.unsent_least);
                let waits = [self.times.timed_out.of(span), &self.times.unsent_wait];
                let waits = if span == SpanOf::Response { &waits[..] } else { &waits[..1] };
                let times = Censored::new(sum.of(span).clone(), waits);
                (Some(sum), times)
            }
        };
        let of_class = match class {
            XactClass::Hit => &self.times.hit,
            XactClass::Miss => &self.times.miss,
            XactClass::Other => &self.times.other,
            XactClass::Completed | XactClass::All => sum.as_ref().unwrap_or(&self.times.other),
        };
        let length_s = self.span.map_or(0.0, |span| span.length_s());
        let (needs, all_needs) = self.needs(class);
        let disturbance = &self.disturbance;
        let unrecorded = match class {
            XactClass::Hit => Unrecorded::ByTime,
            _ => Unrecorded::Fixed,
        };
        let error = of_class.own_error(span, &times, unrecorded);
        // Requests that were joined with the waits of the target are recorded with the least that they can have taken.
        let error = match disturbance.joined_share(self.robots.joined, self.robots.completed) {
            Some(share) => {
                error.spread(disturbance.stolen_spread_us(length_s, needs, all_needs)).touched(1.0 - share)
            }
            None => {
                let (waits, length_us) = disturbance.waits();
                error
                    .spread(disturbance.spread_us(length_s, needs, all_needs))
                    .windows(waits, length_us, needs)
            }
        };
        // A robot that waits for a response sends its next request just when the target is done with the last.
        let batch = self.robots.sent as f64 / self.robots.pages.max(1) as f64;
        let batch = if self.robots.pages > 0 { batch } else { 1.0 };
        let error = if disturbance.is_closed {
            error
        } else {
            error.random_arrivals(RandomArrivals { needs, batch })
        };
        let error =
            if span == SpanOf::Response { error.begun_late(self.times.lateness.clone()) } else { error };
        let error = error
            .busy(self.disturbance.busy())
            .touched(self.disturbance.delayed_share(self.robots.sent))
            .touched(if class == XactClass::Hit {
                0.0
            } else {
                self.written_late_share(of_class.response.count())
            })
            .lost(disturbance::lost(self));
        let is_recorded = !self.disturbance.is_not_recorded;
        TimesEstimate { times, error, unknown: self.disturbance.unknown >= Extent::Times, is_recorded }
    }

    /// Of so many times that include an origin, the share that can be longer because the response was written late, after the
    /// origin had said how late it was: all of them, where origins fell behind.
    fn written_late_share(&self, times: u64) -> f64 {
        if self.disturbance.are_origins_behind {
            return 1.0;
        }
        (self.origins.written_late as f64 / times.max(1) as f64).min(1.0)
    }

    /// Number of times that a request of a class needs the target's processors, and that of all requests together:
    /// once for each arrival of data. That is the request itself; where the origin takes part, the beginning and the
    /// end of its response too; and on each side whatever of a body does not fit into what the kernel holds for a
    /// connection.
    fn needs(&self, class: XactClass) -> (f64, f64) {
        /// Least that the kernel takes of a body at once, in bytes.
        const AT_ONCE: f64 = 65_536.0;
        let counts = &self.robots;
        let hits = self.times.hit.response.count() as f64;
        let others = (counts.completed as f64 - hits).max(0.0);
        let parts = |bytes: u64, of: f64| if of > 0.0 { bytes as f64 / of / AT_ONCE } else { 0.0 };
        let of_hit = 1.0 + parts(counts.hit_bytes, hits);
        let of_other = 3.0 + 2.0 * parts(counts.body_bytes_in.saturating_sub(counts.hit_bytes), others);
        let all = hits * of_hit + others * of_other;
        let needs = match class {
            XactClass::Hit => of_hit,
            XactClass::Miss | XactClass::Other => of_other,
            XactClass::All | XactClass::Completed if others > 0.0 => of_other,
            XactClass::All | XactClass::Completed => of_hit,
        };
        (needs, all)
    }

    /// All classes of xacts that completed, together.
    fn completed_sum(&self) -> TimesSum {
        let mut sum = self.times.hit.clone();
        sum.merge(&self.times.miss);
        sum.merge(&self.times.other);
        sum
    }

    /// Completed requests per second. What Assay lost would have been more of them; robots that wait for a response before
    /// they send the next request would have sent more without Assay's delays.
    pub fn completed_per_s(&self, seconds: Option<f64>) -> Option<FigureEstimate> {
        let seconds = seconds.filter(|seconds| *seconds > 0.0)?;
        let rate = self.robots.completed as f64 / seconds;
        if self.disturbance.is_not_recorded {
            return Some(FigureEstimate::exact(rate));
        }
        let high = (self.robots.completed + self.lost_or_late()) as f64 / seconds;
        let high = self.faster_without_assay().map(|factor| high * factor);
        let stated = FigureEstimate::between(rate, rate, high, 0.0);
        Some(stated.unless(self.disturbance.unknown >= Extent::Times))
    }

    /// By which factor robots that wait for a response before they send the next request can have been faster without Assay's
    /// delays; 1 where none wait, none where nothing bounds it.
    fn faster_without_assay(&self) -> Option<f64> {
        if !self.disturbance.is_closed || self.robots.completed == 0 {
            return Some(1.0);
        }
        let mean = self.times(SpanOf::Response, XactClass::Completed).mean()?;
        let least_us = mean.own.low.filter(|us| *us > 0.0 && !self.disturbance.is_saturated)?;
        Some(((mean.value + self.beside_us()) / least_us).max(1.0))
    }

    /// Mean of the lateness of requests and of the time that responses lay unread, as far as it is part of no time,
    /// in microseconds: robots waited for that, too.
    fn beside_us(&self) -> f64 {
        let sum_us = |delays: &Histogram, most_us: u32| {
            let beside = |(us, count): (u64, u64)| us.min(u64::from(most_us)) * count;
            delays.buckets().map(beside).sum::<u64>() as f64
        };
        let sum_us = sum_us(&self.times.unread, SOONER_US) + sum_us(&self.times.lateness, BEGUN_LATE_US);
        sum_us / self.robots.completed.max(1) as f64
    }

    /// Requests that Assay lost; and where it was late, those of pages that came too late. They would have been requests, too.
    fn lost_or_late(&self) -> u64 {
        disturbance::lost(self) + if self.disturbance.is_late { self.robots.not_reached } else { 0 }
    }

    /// A share of requests, of which those that Assay lost could have been part or not. `whole` is what it is a share of.
    pub fn share(&self, value: f64, whole: u64) -> FigureEstimate {
        let lost = self.lost_or_late();
        if self.disturbance.is_not_recorded || (lost == 0 && self.disturbance.unknown != Extent::Everything) {
            return FigureEstimate::exact(value);
        }
        let lost = lost as f64;
        let all = whole as f64 + lost;
        let (low, high) = if all > 0.0 {
            (value * whole as f64 / all, (value * whole as f64 + lost) / all)
        } else {
            (value, value)
        };
        // A hit ratio is compared in points: one of them is not nothing.
        let tolerated = OwnInterval::of(value, low, Some(high), 0.01);
        FigureEstimate { value, open_to: Some(value), own: tolerated }
            .unless(self.disturbance.unknown == Extent::Everything)
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::own_error::Certainty;
    use assay_measurement::times::TimesRecorder;

    use super::*;
    use crate::tally::Span;

    fn tally() -> Tally {
        let mut tally = Tally { span: Some(Span { start_ms: 0, end_ms: 1000 }), ..Tally::default() };
        (0..100).for_each(|n| tally.times.miss.response.record(10_000 + n));
        tally.robots.completed = 100;
        tally.robots.sent = 100;
        tally.robots.basic = 100;
        tally
    }

    #[test]
    fn what_assay_lost_bounds_the_rate_and_the_hit_ratio_from_both_sides() {
        let mut tally = tally();
        assert_eq!(tally.completed_per_s(Some(1.0)), Some(FigureEstimate::exact(100.0)));
        tally.robots.unsent_late = 25;
        let rate = tally.completed_per_s(Some(1.0)).unwrap();
        assert_eq!((rate.own.high, rate.own.certainty), (Some(125.0), Certainty::Roughly));
        let ratio = tally.share(0.5, 100);
        assert_eq!((ratio.own.low, ratio.own.high), (Some(0.4), Some(0.6)));
        let p99 = tally.times(SpanOf::Response, XactClass::Miss).quantile(0.99).unwrap();
        assert_eq!(
            (p99.own.high, p99.own.certainty),
            (None, Certainty::Roughly),
            "the lost could be the longest"
        );
    }

    #[test]
    fn what_waited_behind_delays_of_assay_until_the_end_is_not_called_known() {
        let mut tally = tally();
        // Twice as many were never sent, and all of what they waited for was Assay's doing.
        (0..200).for_each(|_| tally.times.unsent_wait.record(4_000_000));
        let median = |tally: &Tally| tally.times(SpanOf::Response, XactClass::All).quantile(0.5).unwrap();
        assert!(
            median(&tally).own.low.is_some_and(|us| us > 3_900_000.0),
            "the target's, for all that is known"
        );
        (0..200).for_each(|_| tally.times.unsent_least.record(5_000));
        let median = median(&tally);
        assert!(median.value > 3_900_000.0);
        assert_eq!(median.own.certainty, Certainty::Roughly);
        assert!(median.own.low.is_some_and(|us| us <= 5_100.0), "{median:?}");
    }

    #[test]
    fn responses_that_were_written_late_can_be_the_longest() {
        let mut tally = tally();
        tally.times.miss.response.record(80_000);
        let longest = |tally: &Tally| tally.times(SpanOf::Response, XactClass::Miss).max().unwrap().own;
        assert_eq!(longest(&tally).certainty, Certainty::Known);
        tally.origins.written_late = 1;
        let own = longest(&tally);
        assert_eq!(own.certainty, Certainty::Roughly);
        assert!(own.low.is_some_and(|us| us < 10_100.0), "{own:?}");
        let hits = tally.times(SpanOf::Response, XactClass::Hit).max();
        assert_eq!(hits, None, "an origin has no part in them");
    }

    #[test]
    fn objects_of_pages_that_came_too_late_bound_the_hit_ratio_where_assay_was_late() {
        let mut tally = tally();
        tally.robots.not_reached = 25;
        assert_eq!(tally.share(0.5, 100), FigureEstimate::exact(0.5), "the target was slow");
        tally.disturbance.is_late = true;
        let ratio = tally.share(0.5, 100);
        assert_eq!(
            (ratio.own.low, ratio.own.high, ratio.own.certainty),
            (Some(0.4), Some(0.6), Certainty::Roughly)
        );
        assert_eq!(tally.completed_per_s(Some(1.0)).unwrap().own.high, Some(125.0));
        tally.robots.not_reached = 1;
        assert_eq!(tally.share(0.5, 100).own.certainty, Certainty::Known, "next to nothing");
    }

    #[test]
    fn a_rate_of_robots_that_wait_is_bounded_by_assays_own_delays() {
        let mut tally = tally();
        let mut recorder = TimesRecorder::default();
        recorder.record_disturbed([30_000, 10_000], [0; 2], [0; 2], None);
        tally.times.miss.add(&recorder.to_times());
        let open = tally.completed_per_s(Some(1.0)).unwrap();
        assert_eq!(open.own.high, Some(100.0), "due whatever Assay does");
        tally.disturbance.is_closed = true;
        let closed = tally.completed_per_s(Some(1.0)).unwrap();
        assert!(closed.own.high.is_some_and(|high| (102.0..105.0).contains(&high)), "{closed:?}");
        (0..100).for_each(|_| tally.times.unread.record(50));
        tally.times.unread.record(2_000_000);
        let unread = tally.completed_per_s(Some(1.0)).unwrap();
        let beyond = unread.own.high.unwrap() / closed.own.high.unwrap();
        assert!((1.004..1.006).contains(&beyond), "51 µs of 10,000 that are in no time: {beyond}");
        tally.disturbance.is_saturated = true;
        assert_eq!(tally.completed_per_s(Some(1.0)).unwrap().own.high, None, "Assay was the limit");
        tally.disturbance.is_saturated = false;
        tally.disturbance.are_origins_behind = true;
        let unbounded = tally.completed_per_s(Some(1.0)).unwrap();
        assert_eq!(
            (unbounded.own.high, unbounded.own.certainty),
            (None, Certainty::Roughly),
            "nothing says how short"
        );
    }

    #[test]
    fn nothing_is_stated_of_times_that_nothing_bounds_and_ratios_stay() {
        let mut tally = tally();
        tally.disturbance.unknown = Extent::Times;
        let median = tally.times(SpanOf::Response, XactClass::All).quantile(0.5).unwrap();
        assert_eq!(median.own, OwnInterval::UNKNOWN);
        assert_eq!(tally.share(0.5, 100).own.certainty, Certainty::Known);
        tally.disturbance.unknown = Extent::Everything;
        assert_eq!(tally.share(0.5, 100).own.certainty, Certainty::Unknown);
    }
}
