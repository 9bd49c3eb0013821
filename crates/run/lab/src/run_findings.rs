//! Findings of a run that are in none of its measurements: doubts, and warnings that are no doubts.

use std::cmp::Ordering;

use assay_base::settings::show::bytes;
use assay_host::verdict::{apply_doubts, doubts};
use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_protocol::message::ProxyCounters;
use assay_record::dir::RunDir;
use assay_record::run::{RunInfo, RunVerdict};

/// Most things of those that roles say are wrong that are recorded.
const MAX_ROLE_DOUBTS: usize = 100;

/// A few sums for what a reader should know of the cache.
#[derive(Debug, Default)]
struct CacheSums {
    completed: u64,
    origin_body_bytes: u64,
    peak_stored_bytes: u64,
}

/// Doubts and warnings that become known while a run goes on, and is in none of its measurements.
#[derive(Debug, Default)]
pub struct RunFindings {
    sums: CacheSums,
    last_proxy: ProxyCounters,
    doubts: Vec<Doubt>,
    warnings: Vec<String>,
}

impl RunFindings {
    /// Adds an interval of the robots.
    pub fn robots(&mut self, interval: &RobotInterval) {
        self.sums.completed += interval.counts.completed;
    }

    /// Adds an interval of the origins.
    pub fn origins(&mut self, interval: &OriginInterval) {
        self.sums.origin_body_bytes += interval.counts.body_bytes_out;
    }

    /// Takes note of the target's own counters.
    pub fn proxy(&mut self, counters: &ProxyCounters) {
        self.last_proxy = *counters;
        self.sums.peak_stored_bytes = self.sums.peak_stored_bytes.max(counters.stored_bytes);
    }

    /// Records a fault that a role reports, or a report that is malformed. Gives what is to be recorded: the record is written again for each, so that one that says
    /// it again and again would hold up all others.
    pub fn record_role_doubt(&mut self, doubt: Doubt) -> Option<Doubt> {
        let doubt = match self.doubts.len().cmp(&MAX_ROLE_DOUBTS) {
            Ordering::Less => doubt,
            Ordering::Equal => {
                let words = format!(
                    "more was said to be wrong; the first {MAX_ROLE_DOUBTS} of these are in the record"
                );
                Doubt::serious(Reason::RoleFailed, words)
            }
            Ordering::Greater => return None,
        };
        self.doubt(doubt.clone());
        Some(doubt)
    }

    /// Something outside the target went wrong.
    pub fn doubt(&mut self, doubt: Doubt) {
        self.doubts.push(doubt);
    }

    /// Something that a reader should know. Said once, however often it happens.
    pub fn warn(&mut self, message: impl Into<String>) {
        let message = message.into();
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }

    /// Judges the run and writes it into its head. What the cache could hold is not known of every target.
    pub fn conclude(mut self, dir: &RunDir, info: &mut RunInfo, partial: bool, cache_bytes: Option<u64>) {
        if let Some(warning) = never_full(&self.sums, &self.last_proxy, cache_bytes) {
            self.warn(warning);
        }
        let known = self.doubts.clone();
        let found = doubts(dir, info, self.doubts).unwrap_or_else(|e| {
            self.warnings.push(format!("what was measured could not be read again to judge it: {e}"));
            known
        });
        info.verdict = RunVerdict { partial, doubts: Vec::new(), warnings: self.warnings };
        apply_doubts(info, found);
    }
}

/// A sentence where the cache has bounds and never came to them: hit ratios mean something else then.
fn never_full(sums: &CacheSums, counters: &ProxyCounters, capacity_bytes: Option<u64>) -> Option<String> {
    let filled = sums.origin_body_bytes.max(sums.peak_stored_bytes);
    let capacity = capacity_bytes.filter(|capacity| filled < *capacity)?;
    (counters.evictions == 0 && sums.completed > 0).then(|| {
        format!(
            "the cache was never full: at most {} of {} were put into it, so hit ratios are those of a cache without \
             bounds",
            bytes(filled),
            bytes(capacity)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_was_never_full_is_told() {
        let judge = |filled: u64, evictions: u64, capacity: Option<u64>| {
            let sums = CacheSums { completed: 1, origin_body_bytes: filled, peak_stored_bytes: 0 };
            never_full(&sums, &ProxyCounters { evictions, ..ProxyCounters::default() }, capacity)
        };
        let told = judge(1 << 20, 0, Some(1 << 30)).unwrap();
        assert!(told.contains("never full: at most 1 MB of 1 GB"), "{told}");
        assert_eq!(judge(1 << 20, 5, Some(1 << 30)), None);
        assert_eq!(judge(2 << 30, 0, Some(1 << 30)), None);
        assert_eq!(judge(1, 0, None), None);
    }

    #[test]
    fn what_roles_say_is_wrong_is_recorded_up_to_a_bound_and_why_a_run_ended_beyond_it() {
        let mut tally = RunFindings::default();
        let doubt = |number: usize| Doubt::serious(Reason::RoleFailed, format!("{number}"));
        let recorded =
            (0..1000).filter_map(|number| tally.record_role_doubt(doubt(number))).collect::<Vec<_>>();
        assert_eq!((recorded.len(), tally.doubts.len()), (MAX_ROLE_DOUBTS + 1, MAX_ROLE_DOUBTS + 1));
        assert_eq!(recorded[MAX_ROLE_DOUBTS - 1], doubt(MAX_ROLE_DOUBTS - 1));
        assert_eq!(recorded, tally.doubts);
        tally.doubt(doubt(7));
        assert_eq!(tally.doubts.last(), Some(&doubt(7)));
    }

    #[test]
    fn a_warning_is_said_once() {
        let mut tally = RunFindings::default();
        tally.warn("x");
        tally.warn("x");
        assert_eq!(tally.warnings, ["x"]);
    }
}
