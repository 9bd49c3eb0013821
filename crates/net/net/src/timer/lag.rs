//! How late a timer was served. Counted each time it is, at the cost of a few instructions.

use assay_measurement::histogram::{MAX_US, SparseHistogram};

/// Lag from which on it is a stall, in nanoseconds.
pub const STALL_NS: u64 = 10_000_000;
/// Upper bound on the stalls kept until they are taken.
const MAX_STALLS: usize = 64;

/// Below this many microseconds, each has a bucket of its own.
const EXACT_US: u64 = 1 << EXACT_BITS;
const EXACT_BITS: u32 = 7;
/// Buckets of each doubling above: none is wider than 1.6 % of what it holds.
const BUCKETS_PER_DOUBLING: u64 = 1 << DOUBLING_BITS;
const DOUBLING_BITS: u32 = 6;
const BUCKETS: usize = bucket_of(MAX_US) + 1;

/// A histogram of microseconds that is small enough to stay in the processor's cache while others work. Its buckets are
/// wider than those of [`assay_measurement::histogram::Histogram`].
#[derive(Debug, Clone)]
pub struct LagHistogram {
    buckets: Box<[u32]>,
    sum_us: u64,
    max_us: u64,
}

impl Default for LagHistogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS].into(), sum_us: 0, max_us: 0 }
    }
}

impl LagHistogram {
    #[inline]
    pub fn record(&mut self, lag_ns: u64) {
        let lag_us = ((lag_ns + 500) / 1_000).min(MAX_US);
        let bucket = &mut self.buckets[bucket_of(lag_us)];
        *bucket = bucket.saturating_add(1);
        self.sum_us += lag_us;
        self.max_us = self.max_us.max(lag_us);
    }

    /// Returns the histogram and resets it.
    pub fn take(&mut self) -> SparseHistogram {
        let mut buckets = Vec::new();
        // Above the longest there is nothing.
        let used = self.buckets.iter_mut().take(bucket_of(self.max_us) + 1).enumerate();
        for (index, count) in used.filter(|(_, count)| **count > 0) {
            buckets.push((low_us(index), u64::from(std::mem::take(count))));
        }
        SparseHistogram {
            sum_us: std::mem::take(&mut self.sum_us),
            max_us: std::mem::take(&mut self.max_us),
            buckets,
        }
    }
}

#[inline]
const fn bucket_of(us: u64) -> usize {
    if us < EXACT_US {
        return us as usize;
    }
    let doubling = us.ilog2();
    let within = (us >> (doubling - DOUBLING_BITS)) - BUCKETS_PER_DOUBLING;
    (EXACT_US + (doubling - EXACT_BITS) as u64 * BUCKETS_PER_DOUBLING + within) as usize
}

/// The least value of a bucket.
fn low_us(bucket: usize) -> u64 {
    let Some(above) = (bucket as u64).checked_sub(EXACT_US) else { return bucket as u64 };
    let (doubling, within) = (above / BUCKETS_PER_DOUBLING, above % BUCKETS_PER_DOUBLING);
    (BUCKETS_PER_DOUBLING + within) << (doubling + u64::from(EXACT_BITS - DOUBLING_BITS))
}

/// A stretch in which a timer should have been served and was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Stall {
    pub fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// Lags and stalls of one timer. Nothing is counted before it is told from when on.
///
/// A lag ends when the dispatcher looks at its deadlines, and begins with the earliest of them that has passed; but not
/// before it looked last: what was overdue then has been counted then. So the lags of a dispatcher that has fallen far
/// behind, and catches up step by step, are the lengths of its steps. A dispatcher that looks, and then does not come
/// back from what it found for as long as a stall, has stood still too: it may have put new deadlines after that.
#[derive(Debug)]
pub struct LagRecorder {
    /// Time before which nothing is counted.
    from_ns: u64,
    /// Last time when the dispatcher found something due.
    served_ns: u64,
    lags: LagHistogram,
    stalls: Vec<Stall>,
}

impl Default for LagRecorder {
    fn default() -> Self {
        Self { from_ns: u64::MAX, served_ns: 0, lags: LagHistogram::default(), stalls: Vec::new() }
    }
}

impl LagRecorder {
    /// Counts from this instant on, and forgets what came before.
    pub fn begin(&mut self, from_ns: u64) {
        *self = Self { from_ns, served_ns: self.served_ns, ..Self::default() };
    }

    /// The dispatcher looks at its deadlines for the first time.
    pub fn start(&mut self, now_ns: u64) {
        self.served_ns = now_ns;
    }

    /// The dispatcher found at `now_ns` that `deadline_ns` was the earliest of the deadlines that have passed.
    #[inline]
    pub fn record_served(&mut self, deadline_ns: u64, now_ns: u64) {
        self.count(deadline_ns.max(self.served_ns), now_ns);
        self.served_ns = now_ns;
    }

    /// The dispatcher, which looked at `looked_ns`, has done by `now_ns` what it found.
    #[inline]
    pub fn record_done(&mut self, looked_ns: u64, now_ns: u64) {
        if now_ns.saturating_sub(looked_ns) >= STALL_NS {
            self.count(looked_ns, now_ns);
            self.served_ns = now_ns;
        }
    }

    #[inline]
    fn count(&mut self, from_ns: u64, now_ns: u64) {
        let from_ns = from_ns.max(self.from_ns);
        let Some(lag_ns) = now_ns.checked_sub(from_ns) else { return };
        self.lags.record(lag_ns);
        if lag_ns >= STALL_NS && self.stalls.len() < MAX_STALLS {
            self.stalls.push(Stall { from_ns, to_ns: now_ns });
        }
    }

    /// The stalls since the last call.
    pub fn take_stalls(&mut self) -> Vec<Stall> {
        std::mem::take(&mut self.stalls)
    }

    /// The lags since the last call.
    pub fn take_lags(&mut self) -> SparseHistogram {
        self.lags.take()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn nothing_is_counted_before_the_run() {
        let mut account = LagRecorder::default();
        account.record_served(0, 50 * MS);
        account.begin(100 * MS);
        account.record_served(60 * MS, 90 * MS);
        assert_eq!((account.take_lags().buckets, account.take_stalls()), (vec![], vec![]));
    }

    #[test]
    fn a_stall_across_the_start_is_counted_from_the_start_on() {
        let mut account = LagRecorder::default();
        account.begin(100 * MS);
        account.record_served(80 * MS, 130 * MS);
        assert_eq!(account.take_stalls(), [Stall { from_ns: 100 * MS, to_ns: 130 * MS }]);
    }

    #[test]
    fn a_stall_is_counted_once_however_much_was_overdue_after_it() {
        let mut account = LagRecorder::default();
        account.begin(0);
        account.start(0);
        account.record_served(10 * MS, 310 * MS);
        // The next deadline was overdue as well, and was come to a moment later.
        account.record_served(11 * MS, 311 * MS);
        account.record_served(320 * MS, 320 * MS);
        assert_eq!(account.take_stalls(), [Stall { from_ns: 10 * MS, to_ns: 310 * MS }]);
        let lags = account.take_lags();
        assert_eq!((lags.max_us, lags.sum_us), (300_000, 301_000));
        assert_eq!(lags.count(), 3);
        assert_eq!(account.take_lags(), SparseHistogram::default());
    }

    #[test]
    fn a_stall_in_the_middle_of_what_was_due_is_seen_once() {
        let mut account = LagRecorder::default();
        account.begin(0);
        account.record_served(20 * MS, 20 * MS);
        account.record_done(20 * MS, 320 * MS);
        account.record_served(30 * MS, 321 * MS);
        account.record_done(321 * MS, 322 * MS);
        assert_eq!(account.take_stalls(), [Stall { from_ns: 20 * MS, to_ns: 320 * MS }]);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_what_is_near_to_it(us in 0..=MAX_US) {
            let low = low_us(bucket_of(us));
            prop_assert!(low <= us && (us - low) as f64 <= us as f64 * 0.016, "{low} {us}");
            prop_assert!(bucket_of(us) < BUCKETS);
        }
    }
}
