//! Requests by host: what became of them, and how long they took. Hosts without number, in bounded memory.

use super::tally::{GroupTally, RequestSample};
use crate::hash::hash;
use crate::sketch::distinct::DistinctCounter;
use crate::sketch::durations::DurationHistogram;
use crate::sketch::heavy_hitters::{HeavyHitters, Weights};

/// Hosts that are followed one by one.
const MAX_HOSTS: usize = 16_384;
/// Hosts of them whose response times are kept, 9 KB each.
const MAX_TIMED_HOSTS: usize = 2048;

#[derive(Debug)]
pub(super) struct HostTable {
    pub table: HeavyHitters<GroupTally>,
    pub count: DistinctCounter,
    /// Hosts whose response times are kept.
    timed: usize,
}

impl Default for HostTable {
    fn default() -> Self {
        Self { table: HeavyHitters::new(MAX_HOSTS), count: DistinctCounter::default(), timed: 0 }
    }
}

impl HostTable {
    #[inline]
    pub(super) fn count(&mut self, key: u64, host: &[u8], counted: RequestSample, weights: Weights) {
        if self.table.find(key).is_none() {
            self.add(key, host, counted.duration_us.is_some());
        }
        let Some(entry) = self.table.find(key) else { return };
        entry.sums += weights;
        entry.more.count(counted.without_duration());
        if let (Some(times), Some(us)) = (&mut entry.more.times, counted.duration_us) {
            times.record(us);
        }
    }

    #[cold]
    fn add(&mut self, key: u64, host: &[u8], has_times: bool) {
        debug_assert_eq!(key, hash(host));
        if !host.is_empty() {
            self.count.insert(key);
        }
        if has_times && self.timed >= MAX_TIMED_HOSTS {
            self.forget_times();
        }
        let entry = self.table.add(key, |text| text.extend_from_slice(host));
        if has_times {
            entry.more.times = Some(Box::<DurationHistogram>::default());
            self.timed += 1;
        }
    }

    /// Keeps response times of the half of the hosts that has most requests: few others will be among the first in the end.
    fn forget_times(&mut self) {
        let mut requests: Vec<u64> = self
            .table
            .entries()
            .filter(|entry| entry.more.times.is_some())
            .map(|e| e.sums.requests)
            .collect();
        let middle = requests.len() / 2;
        let Some((_, median, _)) = (!requests.is_empty()).then(|| requests.select_nth_unstable(middle))
        else {
            self.timed = 0;
            return;
        };
        let median = *median;
        self.timed = 0;
        for entry in self.table.entries_mut() {
            if entry.sums.requests <= median {
                entry.more.times = None;
            }
            self.timed += usize::from(entry.more.times.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;

    #[test]
    fn a_host_with_many_requests_keeps_its_times_however_many_others_come() {
        let mut hosts = HostTable::default();
        let mut cacheability = |host: &str, us| {
            let counted = RequestSample::new(Class::SiblingHit, 10, Some(us));
            let one = Weights { requests: 1, bytes: 10, misses: 0 };
            hosts.count(hash(host.as_bytes()), host.as_bytes(), counted, one);
        };
        for other in 0..10_000 {
            cacheability("www", 1000);
            cacheability(&format!("host{other}"), 5);
        }
        let www = hosts.table.find(hash(b"www")).unwrap();
        assert_eq!((www.sums.requests, www.more.class(Class::SiblingHit)), (10_000, 10_000));
        assert_eq!(www.more.times.as_ref().unwrap().count(), 10_000);
        let timed = hosts.table.entries().filter(|entry| entry.more.times.is_some()).count();
        assert!(timed <= MAX_TIMED_HOSTS && timed == hosts.timed, "{timed}");
        assert_eq!(hosts.table.len(), 10_001);
    }
}
