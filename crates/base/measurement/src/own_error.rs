//! Bounds on the error of measured times that is due to Assay and the lab, apart from chance.
//!
//! Three things can have happened to a time. Assay delayed the request or left its response unread: robots know by how
//! much, and record what the time was at least and at most ([`crate::interval::Disturbed`]). Others took the processors of
//! the target for a while: how much they took is known, but not from which requests. A request was lost by Assay: nothing
//! is known of it. [`OwnError`] takes all three and gives bounds of any figure.
//!
//! # Own error
//!
//! *Own error.* `measurement::own_error` computes bounds of any figure, apart from chance, from these delays, from the processors that others
//! took from the target where xacts were not joined with its waits (`report::disturbance`: how long these were, and who had the processors), from
//! segments sent again, and from requests lost by Assay. `report::estimate` states a figure with its interval: *known* (own error below a tenth
//! or 0.1 ms), *roughly* known, or *unknown*; the summary, requirements and comparisons all read figures there, so there is one function for
//! each. A run is neither valid nor invalid: `report::headline` lists how well each headline number is known, and what follows
//! (`Summary::conclusion`: the exit code).
//!
//! *Does not:* say anything of chance. A figure of few requests is uncertain however quiet the machine was; that is for
//! repetitions to show.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::censored::Bounds;
use crate::histogram::Histogram;

/// Xacts are recorded as disturbed where Assay's own delays of them can have been this long, in microseconds: half of what
/// is never held against a time ([`PRECISION_US`]). Short hits are so from less on ([`Unrecorded`]).
pub const DISTURBED_US: u64 = 50;

/// Upper bound on delays that are not recorded as disturbances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unrecorded {
    /// Less than [`DISTURBED_US`], however short it was. Origins tell no shorter delays, so that holds for whatever they had a part in.
    #[default]
    Fixed,
    /// Less than a sixteenth of the time to the first byte, if that is between 10 µs and [`DISTURBED_US`]: many hits take hardly longer
    /// than 50 µs.
    ByTime,
}

impl Unrecorded {
    /// Shortest delay that is recorded, in microseconds, for a time to the first byte.
    #[inline]
    pub fn recorded_from_us(self, ttfb_us: u64) -> u64 {
        const LEAST_US: u64 = 10;
        match self {
            Self::Fixed => DISTURBED_US,
            Self::ByTime => (ttfb_us / 16).clamp(LEAST_US, DISTURBED_US),
        }
    }
}

/// Upper bound, in microseconds, on how much sooner than it was read a response is taken to have come, where the kernel stamped it. If a
/// segment was lost, the stamp is that of a later one, and the response was not complete by then: no time is wrong by more than what is
/// never held against it ([`PRECISION_US`]).
pub const SOONER_US: u32 = 100;

/// Upper bound, in microseconds, on how much later than due a time begins, if its request was sent later. A target that was busy can have
/// taken less time because of it: half of what is never held against a time ([`PRECISION_US`]) is left for all else.
pub const BEGUN_LATE_US: u32 = 50;

/// Error in microseconds that is never held against a time.
pub const PRECISION_US: f64 = 100.0;

/// Relative error that is never held against a figure.
pub const PRECISION_SHARE: f64 = 0.1;

/// Share of the time for which threads that every request needs may wait for a processor before nothing is known of times: what follows a wait
/// lasts as long again, so more than this leaves no half of them undisturbed.
pub const MOST_WAITING: f64 = 0.25;

/// Length of the windows in which the target's waits for processors are added up.
pub const WAIT_WINDOW: Duration = Duration::from_millis(2);

/// How well a figure is known, apart from chance.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Its own error is below a tenth of it or 0.1 ms, whichever is larger.
    #[default]
    Known,
    /// It lies within an interval that is wider than that.
    Roughly,
    /// Nothing bounds it.
    Unknown,
}

/// The interval within which a figure lies, whatever Assay and the lab did to it. In the unit of the figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnInterval {
    /// It is not less; null: nothing is known.
    pub low: Option<f64>,
    /// It is not more; null: nothing says how much it is.
    pub high: Option<f64>,
    /// How well it is known.
    pub certainty: Certainty,
}

impl OwnInterval {
    /// Interval of an unknown figure.
    pub const UNKNOWN: OwnInterval = OwnInterval { low: None, high: None, certainty: Certainty::Unknown };

    /// Interval of a figure that lies between two values. `precision` is the error that is not held against it.
    pub fn of(value: f64, low: f64, high: Option<f64>, precision: f64) -> Self {
        let low = low.min(value);
        let high = high.map(|high| high.max(value));
        let tolerated = (value.abs() * PRECISION_SHARE).max(precision);
        let certainty = match high {
            Some(high) if (value - low).max(high - value) <= tolerated => Certainty::Known,
            None if low <= 0.0 => Certainty::Unknown,
            _ => Certainty::Roughly,
        };
        Self { low: Some(low), high, certainty }
    }

    /// The interval with both ends changed, by a function that keeps their order.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { low: self.low.map(&change), high: self.high.map(&change), ..self }
    }
}

/// Waits of the target in each of many windows of time of one length.
#[derive(Debug, Clone)]
struct Windows {
    /// Longest wait of each bucket, in microseconds, and how many waits there were; ascending.
    waits: Vec<(u64, u64)>,
    /// Number of all waits.
    count: u64,
    /// Length of a window.
    window_us: f64,
    /// Number of windows that each time met.
    met: f64,
}

/// Requests that arrive at instants which do not depend on what the target does for others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomArrivals {
    /// Number of times that each needs the target.
    pub needs: f64,
    /// Number that arrive at once, as the objects of a page do: they meet the same.
    pub batch: f64,
}

/// Effect of Assay and the lab on a collection of times, as bounds.
#[derive(Debug, Clone)]
pub struct OwnError {
    least: Histogram,
    /// `least`, less the delays that are too short to be recorded.
    lowest: Histogram,
    ranks: Vec<Rank>,
    most: Histogram,
    spread_us: f64,
    windows: Option<Windows>,
    aftermath: Histogram,
    /// `aftermath` of the times that met a burst only if the target happened to be busy.
    passing: Histogram,
    /// None: requests do not come by chance.
    arrivals: Option<RandomArrivals>,
    busy: f64,
    /// Lateness of requests that is in none of the times; none: it is in the times.
    begun_late: Option<Histogram>,
    touched: f64,
    lost: u64,
}

/// Number of the lowest times up to the end of one of their buckets.
#[derive(Debug, Clone, Copy)]
struct Rank {
    count: u64,
    /// Lowest value of the bucket.
    low_us: u64,
}

fn ranks(lowest: &Histogram) -> Vec<Rank> {
    let rank = |count: &mut u64, (low_us, number)| {
        *count = count.saturating_add(number);
        Some(Rank { count: *count, low_us })
    };
    lowest.buckets().scan(0, rank).collect()
}

impl OwnError {
    /// Error of `all` times, none of which was disturbed.
    pub fn undisturbed(all: &Histogram, unrecorded: Unrecorded) -> Self {
        let lowest = less_unrecorded(all, unrecorded);
        Self {
            least: all.clone(),
            ranks: ranks(&lowest),
            lowest,
            most: all.clone(),
            spread_us: 0.0,
            windows: None,
            aftermath: Histogram::new(),
            passing: Histogram::new(),
            arrivals: None,
            busy: 1.0,
            begun_late: None,
            touched: 0.0,
            lost: 0,
        }
    }

    /// Of `all` times of responses that came within `passed_us`, while threads that they needed waited for a processor for `waited_us`
    /// altogether, and nothing tells which of them that delayed: each wait can have kept all that were under way, and what came behind it
    /// for as long again.
    pub fn beside_waits(all: &Histogram, waited_us: f64, passed_us: f64) -> Self {
        let error = Self::undisturbed(all, Unrecorded::ByTime);
        let Some(mean_us) = all.mean_us().filter(|_| waited_us > 0.0 && passed_us > 0.0) else {
            return error;
        };
        let under_way = all.count() as f64 * mean_us / passed_us;
        // Where hardly two are under way at once, hardly any comes behind.
        error.spread(waited_us * under_way.max(1.0) * (1.0 + under_way.min(1.0)) / all.count() as f64)
    }

    /// Error of `all` times, among them the disturbed ones: as they were `seen`, and at `least`.
    pub fn new(all: &Histogram, [seen, least]: &[Histogram; 2], unrecorded: Unrecorded) -> Self {
        let mut shortest = all.without(seen);
        let mut lowest = less_unrecorded(&shortest, unrecorded);
        shortest.merge(least);
        lowest.merge(least);
        Self { least: shortest, ranks: ranks(&lowest), lowest, ..Self::undisturbed(all, unrecorded) }
    }

    /// Others took the target's processors: that can have made all times together longer by this much per time, in
    /// microseconds, however it was spread over them.
    #[must_use]
    pub fn spread(mut self, mean_us: f64) -> Self {
        self.spread_us += mean_us;
        self
    }

    /// The same waiting, seen another way: how long the target waited in each of many stretches, which together lasted for
    /// `length_us`; each time met so many of them.
    #[must_use]
    pub fn windows(mut self, waits: Histogram, length_us: f64, met: f64) -> Self {
        let count = waits.count();
        let window_us = (length_us / count.max(1) as f64).max(1.0);
        let waits = waits.buckets().map(|(us, number)| (waits.bucket_high_us(us), number)).collect();
        self.windows = (count > 0).then_some(Windows { waits, count, window_us, met });
        self
    }

    /// As many times as there are values were held back together with others, or met them, and were delayed with them by that
    /// length; and as many as there are in `passing` were in flight when it could be felt.
    #[must_use]
    pub fn aftermath(mut self, met: Histogram, passing: Histogram) -> Self {
        (self.aftermath, self.passing) = (met, passing);
        self
    }

    /// Requests come at instants that do not depend on what the target does for others: of those in passing, only a share can have met
    /// it busy.
    #[must_use]
    pub fn random_arrivals(mut self, arrivals: RandomArrivals) -> Self {
        self.arrivals = Some(arrivals);
        self
    }

    /// Times begin when requests were sent, up to [`BEGUN_LATE_US`] after they were due: so late were requests, all of which can have been
    /// of these times. One that would have found the target busy would have taken so much longer.
    #[must_use]
    pub fn begun_late(mut self, lateness: Histogram) -> Self {
        self.begun_late = Some(lateness);
        self
    }

    /// The target was busy for this share of the time. What is held back for a while is as much work for it as it does in that
    /// share of the while: that is by how much others can have been faster before, and slower after.
    #[must_use]
    pub fn busy(mut self, share: f64) -> Self {
        self.busy = share.clamp(0.0, 1.0);
        self
    }

    /// Adds a share of the times that was made longer by an unknown amount, and nobody knows which of them.
    #[must_use]
    pub fn touched(mut self, share: f64) -> Self {
        self.touched += share;
        self
    }

    /// So many more times would be there, of which nothing is known.
    #[must_use]
    pub fn lost(mut self, count: u64) -> Self {
        self.lost += count;
        self
    }

    /// The times as short as their recorded delays leave them.
    pub fn least(&self) -> &Histogram {
        &self.least
    }

    /// Bounds of the value that `quantile` (0 to 1) of all do not exceed; none: there are none.
    pub fn quantile(&self, quantile: f64) -> Option<Bounds> {
        let (count, lost) = (self.least.count() as f64, self.lost as f64);
        if count == 0.0 {
            return None;
        }
        let rank = quantile * (count + lost);
        let low_us = self.least_quantile((rank - lost) / count);
        Some(Bounds { low_us, high_us: self.most_quantile(rank / count) })
    }

    /// Effect of the delays of others: for some lengths, the share of times that can have been moved by more.
    fn moved(&self) -> Vec<(f64, f64)> {
        const LENGTHS: u32 = 16;
        let all = self.least.count().max(1) as f64;
        let mut delays = self.aftermath.clone();
        delays.merge(&self.passing);
        let touched = self.aftermath.count() as f64 + self.met(self.passing.count());
        let lengths = (1..=LENGTHS).filter_map(|n| {
            let part = f64::from(n) / f64::from(LENGTHS);
            let us = delays.bucket_high_us(delays.quantile_us(part)?);
            let longer = self.aftermath.count_over_us(us) as f64 + self.met(self.passing.count_over_us(us));
            Some((us as f64 * self.busy, longer / all))
        });
        std::iter::once((0.0, touched / all)).chain(lengths).collect()
    }

    /// Number of times in passing, at most, that can have met the target busy with held-back work, or less busy because of it.
    ///
    /// A delay D holds back work of b·D, if the target is busy for a share b of the time. What arrives during D finds less to wait
    /// for than it would have only if the target would have been busy: a share b. Afterwards, what was held back is done within
    /// D·b ⁄ (1 − b), which is a share b ⁄ 2(1 − b) of the 2 D during which it is taken to be felt.
    fn met(&self, passing: u64) -> f64 {
        self.at_most_by_chance(passing as f64, self.busy.max(self.busy / (2.0 * (1.0 - self.busy)).max(1e-9)))
    }

    /// Number of times, at most, that can have needed the target when something held for this share of the time: three standard deviations
    /// more than on average, because which of them is chance. All of them, if they do not come by chance.
    fn at_most_by_chance(&self, times: f64, share: f64) -> f64 {
        let Some(RandomArrivals { needs, batch }) = self.arrivals else { return times };
        let share = (share * needs).min(1.0);
        (times * share + 3.0 * (times * share * (1.0 - share) * batch.max(1.0)).sqrt()).min(times)
    }

    /// Effect of late requests: for some lengths, the share of times that can have been longer by more, had the requests been sent when
    /// they were due.
    fn shortened(&self) -> Vec<(f64, f64)> {
        let Some(lateness) = &self.begun_late else { return vec![(0.0, 0.0)] };
        let all = self.least.count().max(1) as f64;
        let lengths = [0.5, 0.75, 0.9, 0.99].into_iter().filter_map(|part| {
            let us = lateness.bucket_high_us(lateness.quantile_us(part)?);
            Some((us as f64, lateness.count_over_us(us) as f64 / all))
        });
        let busy = (0.0, self.at_most_by_chance(all, self.busy) / all);
        let most = (self.most_shortened_us(), 0.0);
        lengths.filter(|(us, _)| *us < most.0).chain([busy, most]).collect()
    }

    /// The most that a quantile can be; none: nothing bounds it.
    fn most_quantile(&self, quantile: f64) -> Option<f64> {
        let bound = |(us, share): (f64, f64)| {
            let at = Some(quantile + share).filter(|at| *at <= 1.0)?;
            Some(self.most.bucket_high_us(self.most.quantile_us(at)?) as f64 + us)
        };
        let shortened = self.shortened();
        let both = |moved: (f64, f64)| shortened.iter().map(move |by| (moved.0 + by.0, moved.1 + by.1));
        self.moved().into_iter().flat_map(both).filter_map(bound).reduce(f64::min)
    }

    /// The least that a quantile can be.
    fn least_quantile(&self, quantile: f64) -> f64 {
        let bound = |(us, share): (f64, f64)| self.least_quantile_unmoved(quantile - share) - us;
        self.moved().into_iter().map(bound).fold(0.0, f64::max)
    }

    /// The same without what delays of others did.
    fn least_quantile_unmoved(&self, quantile: f64) -> f64 {
        let quantile = quantile - self.touched;
        if quantile <= 0.0 {
            return 0.0;
        }
        if self.spread_us <= 0.0 {
            return self.lowest_at(quantile);
        }
        // Both hold: the larger is the better bound.
        self.least_by_sum(quantile).max(self.least_by_windows(quantile)).max(0.0)
    }

    /// The lowest of the values that share a bucket with a quantile of the lowest times.
    fn lowest_at(&self, quantile: f64) -> f64 {
        let rank = ((quantile.min(1.0) * self.lowest.count() as f64).ceil() as u64).max(1);
        let place = self.ranks.partition_point(|bucket| bucket.count < rank);
        self.ranks.get(place).map_or(0.0, |bucket| bucket.low_us as f64)
    }

    /// The least quantile if delays with a mean of `spread_us` were given to those times with which they do most: those just
    /// above it.
    fn least_by_sum(&self, quantile: f64) -> f64 {
        let count = self.lowest.count() as f64;
        let mut budget_us = self.spread_us * count;
        let mut above = count * (1.0 - quantile);
        let (mut mass, mut at_us) = (0.0, None::<f64>);
        for (us, number) in self.lowest.buckets().rev() {
            let number = number as f64;
            if above >= number {
                above -= number;
                continue;
            }
            if let Some(from_us) = at_us {
                let cost_us = mass * (from_us - us as f64);
                if cost_us >= budget_us {
                    return (from_us - budget_us / mass).max(0.0);
                }
                budget_us -= cost_us;
            }
            at_us = Some(us as f64);
            mass += number - above;
            above = 0.0;
        }
        at_us.map_or(0.0, |us| (us - budget_us / mass.max(1.0)).max(0.0))
    }

    /// The least quantile if a time was delayed in each window that it met by all that was waited there: for every wait, a
    /// share of times met a longer one, and all others none that was longer. A wait that was over in a window may have begun
    /// before it by as much as it was long: it can be met in both.
    fn least_by_windows(&self, quantile: f64) -> f64 {
        let Some(Windows { waits, count, window_us, met }) = &self.windows else { return 0.0 };
        let at = |share: f64| if share > 0.0 { self.lowest_at(share) } else { 0.0 };
        let reach = |us: u64| 1.0 + us as f64 / window_us;
        let mut longer: f64 = waits.iter().map(|&(us, number)| number as f64 * reach(us)).sum();
        let mut low_us: f64 = 0.0;
        for &(us, number) in waits {
            longer -= number as f64 * reach(us);
            let share = (met * longer.max(0.0) / *count as f64).min(1.0);
            low_us = low_us.max(at(quantile - share) - met * us as f64);
        }
        low_us
    }

    /// The most by which a delay of others can have moved a time.
    fn most_moved_us(&self) -> f64 {
        self.aftermath.max_us().max(self.passing.max_us()).unwrap_or(0) as f64 * self.busy
    }

    /// The most that a time can be without because its request was late.
    fn most_shortened_us(&self) -> f64 {
        let latest_us = self.begun_late.as_ref().and_then(Histogram::max_us).unwrap_or(0);
        latest_us.min(u64::from(BEGUN_LATE_US)) as f64
    }

    /// Bounds of the mean.
    pub fn mean(&self) -> Option<Bounds> {
        let (lowest_us, most_us) = (self.lowest.mean_us()?, self.most.mean_us()?);
        let known = self.least.count() as f64 / (self.least.count() + self.lost) as f64;
        let touched_us = self.least.max_us().map_or(0.0, |us| us as f64) * self.touched;
        let sum_us = |delays: &Histogram| delays.mean_us().unwrap_or(0.0) * delays.count() as f64;
        let moved_us =
            (sum_us(&self.aftermath) + sum_us(&self.passing)) * self.busy / self.least.count() as f64;
        let taken_us = self.spread_us + touched_us + moved_us;
        let low_us = ((lowest_us - taken_us) * known).max(0.0);
        Some(Bounds {
            low_us,
            high_us: (self.lost == 0).then_some(most_us + moved_us + self.mean_shortened_us()),
        })
    }

    /// The most by which the mean can be without because requests were late: all of their lateness on these times, and none longer than
    /// [`BEGUN_LATE_US`]; or the most on as many as can have found the target busy.
    fn mean_shortened_us(&self) -> f64 {
        let Some(lateness) = &self.begun_late else { return 0.0 };
        let all = self.least.count().max(1) as f64;
        let most_us = self.most_shortened_us();
        let of_one = |us: u64| lateness.bucket_high_us(us).min(u64::from(BEGUN_LATE_US)) as f64;
        let by_lateness_us: f64 = lateness.buckets().map(|(us, number)| of_one(us) * number as f64).sum();
        let by_busy_us = most_us * self.at_most_by_chance(all, self.busy);
        (by_lateness_us.min(by_busy_us) / all).min(most_us)
    }

    /// Bounds of the shortest.
    pub fn min(&self) -> Option<Bounds> {
        let low_us = self.lowest.min_us()? as f64 - self.spread_us;
        let moved_us = self.most_moved_us();
        let low_us = if self.lost > 0 || self.touched > 0.0 { 0.0 } else { (low_us - moved_us).max(0.0) };
        let high_us = self
            .most
            .min_us()
            .map(|us| self.most.bucket_high_us(us) as f64 + moved_us + self.most_shortened_us());
        Some(Bounds { low_us, high_us })
    }

    /// Bounds of the longest.
    pub fn max(&self) -> Option<Bounds> {
        let low_us = self.least_quantile(1.0);
        let moved_us = self.most_moved_us();
        let high_us = self
            .most
            .max_us()
            .map(|us| us as f64 + moved_us + self.most_shortened_us())
            .filter(|_| self.lost == 0);
        Some(Bounds { low_us, high_us })
    }
}

/// The same times, all shorter by what xacts can have been delayed without being recorded as disturbed.
///
/// They are spans that are not shorter than the time to the first byte, so no more can be missing than their own length tells.
fn less_unrecorded(times: &Histogram, unrecorded: Unrecorded) -> Histogram {
    let mut less = Histogram::new();
    for (us, count) in times.buckets() {
        let missing_us = unrecorded.recorded_from_us(times.bucket_high_us(us));
        less.record_many(us.saturating_sub(missing_us), count);
    }
    less
}

#[cfg(test)]
#[path = "own_error_tests.rs"]
mod tests;
