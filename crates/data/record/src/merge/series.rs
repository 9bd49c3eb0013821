//! Measurements of parts, joined.

use std::collections::{BTreeMap, BTreeSet};

use assay_measurement::counts::RobotCounts;
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_measurement::measured::Series;

/// Role of the rows on the whole machine.
const MACHINE: &str = "host";

/// Measurements of one part.
#[derive(Debug, Clone, Default)]
pub struct PartSeries {
    /// Identity of the machine's monotonic clock; empty: not known, and the part counts as a machine of its own.
    pub clock: String,
    pub series: Series,
}

/// All measurements together. Intervals of robots and of origins that began at the same instant in the same phase become one, as do
/// those of a role's processes in the same second. Worker threads are numbered anew. What was measured of a machine or its network is
/// taken once for each machine, and of the machine as a whole from the first only. `is_one_cache`: all robots were in one part, so that
/// its ideal cache is that of the run.
pub fn join(parts: Vec<PartSeries>, is_one_cache: bool) -> Series {
    let mut all = Series::default();
    let mut robots: BTreeMap<(u64, u16), RobotInterval> = BTreeMap::new();
    let mut origins: BTreeMap<(u64, u16), OriginInterval> = BTreeMap::new();
    let mut host: BTreeMap<HostKey, HostInterval> = BTreeMap::new();
    let mut machines = BTreeSet::new();
    for (index, PartSeries { clock, mut series }) in parts.into_iter().enumerate() {
        for interval in std::mem::take(&mut series.robots) {
            merge_into(&mut robots, (interval.start_ms, interval.phase), interval, RobotInterval::merge);
        }
        for interval in std::mem::take(&mut series.origins) {
            merge_into(&mut origins, (interval.start_ms, interval.phase), interval, OriginInterval::merge);
        }
        if index > 0 {
            clear_machine(&mut series);
        }
        let machine = if clock.is_empty() { format!("part {index}") } else { clock };
        if !machines.insert(machine) {
            series.network.clear();
        }
        for (key, interval) in keyed(std::mem::take(&mut series.host)) {
            merge_into(&mut host, key, interval, HostInterval::merge);
        }
        renumber(&mut series, &all);
        series.into_measured().for_each(|measured| all.take(measured));
    }
    all.robots = robots.into_values().collect();
    all.origins = origins.into_values().collect();
    all.host = host.into_values().collect();
    if !is_one_cache {
        all.robots.iter_mut().for_each(|interval| clear_ideal(&mut interval.counts));
    }
    all
}

/// Second, role, and number of the interval among those of that role in the second.
type HostKey = (u64, String, usize);

/// Keys intervals by the nearest second, because parts read the use of processes a few milliseconds apart, each by its own
/// clock.
fn keyed(host: Vec<HostInterval>) -> Vec<(HostKey, HostInterval)> {
    let mut counts: BTreeMap<(u64, String), usize> = BTreeMap::new();
    let each = host.into_iter().map(|interval| {
        let second = interval.start_ms.saturating_add(500) / 1000;
        let number = counts.entry((second, interval.role.clone())).or_default();
        *number += 1;
        ((second, interval.role.clone(), *number), interval)
    });
    each.collect()
}

fn merge_into<K: Ord, T>(into: &mut BTreeMap<K, T>, key: K, item: T, merge: impl Fn(&mut T, &T)) {
    match into.entry(key) {
        std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(item)),
        std::collections::btree_map::Entry::Occupied(mut entry) => merge(entry.get_mut(), &item),
    }
}

/// Drops measurements of a machine as a whole, and decisions that each part makes for itself.
fn clear_machine(series: &mut Series) {
    series.host.retain(|interval| interval.role != MACHINE);
    series.machine.clear();
    series.processors.clear();
    series.disks.clear();
    series.interfaces.clear();
    series.blocks.clear();
    series.proxy.clear();
    series.adapted.clear();
}

/// Renumbers worker threads to follow those of the same role in `before`.
fn renumber(series: &mut Series, before: &Series) {
    let mut next: BTreeMap<&str, u32> = BTreeMap::new();
    let known = before.threads.iter().map(|thread| (thread.role.as_str(), thread.thread));
    let known =
        known.chain(before.baselines.iter().map(|baseline| (baseline.role.as_str(), baseline.thread)));
    for (role, thread) in known {
        let number = next.entry(role).or_default();
        *number = (*number).max(thread.saturating_add(1));
    }
    let shift = |role: &str, thread: &mut u32| *thread += next.get(role).copied().unwrap_or_default();
    series.threads.iter_mut().for_each(|thread| shift(&thread.role, &mut thread.thread));
    series.stalls.iter_mut().for_each(|stall| shift(&stall.role, &mut stall.thread));
    series.baselines.iter_mut().for_each(|baseline| shift(&baseline.role, &mut baseline.thread));
}

/// Clears the ideal cache's counts: those of several parts are not one ideal cache.
fn clear_ideal(counts: &mut RobotCounts) {
    counts.ideal_hits = 0;
    counts.ideal_hit_bytes = 0;
    counts.ideal_basic = 0;
    counts.ideal_basic_bytes = 0;
}

#[cfg(test)]
mod tests {
    use assay_measurement::health::{NetworkInterval, ThreadInterval};
    use assay_measurement::histogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    fn robots(start_ms: u64, phase: u16, values_us: &[u64]) -> RobotInterval {
        let mut histogram = Histogram::new();
        values_us.iter().for_each(|value| histogram.record(*value));
        let mut interval = RobotInterval { start_ms, length_ms: 1000, phase, ..RobotInterval::default() };
        interval.times.hit.response = histogram.to_sparse();
        interval.counts.due = values_us.len() as u64;
        interval.counts.due_digest = values_us.iter().fold(0, |sum, value| sum.wrapping_add(value << 50));
        interval.counts.ideal_basic = 1;
        interval
    }

    fn piece(clock: &str, robots: Vec<RobotInterval>) -> PartSeries {
        let thread = ThreadInterval { role: "robots".into(), thread: 0, ..ThreadInterval::default() };
        let host = |role: &str| HostInterval {
            role: role.into(),
            cpu_us: 10,
            length_ms: 1000,
            ..HostInterval::default()
        };
        let series = Series {
            robots,
            threads: vec![thread.clone(), ThreadInterval { thread: 1, ..thread }],
            host: vec![host("robots"), host(MACHINE)],
            network: vec![NetworkInterval::default()],
            ..Series::default()
        };
        PartSeries { clock: clock.into(), series }
    }

    #[test]
    fn a_machine_is_counted_once_and_its_processes_are_added_up() {
        let all = join(vec![piece("a", vec![]), piece("a", vec![]), piece("b", vec![])], false);
        let host: Vec<_> = all.host.iter().map(|host| (host.role.as_str(), host.cpu_us)).collect();
        assert_eq!(host, [(MACHINE, 10), ("robots", 30)]);
        assert_eq!(all.network.len(), 2, "a network for each machine");
        assert_eq!(all.threads.iter().map(|thread| thread.thread).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(join(vec![piece("", vec![]), piece("", vec![])], false).network.len(), 2);
    }

    #[test]
    fn an_ideal_cache_of_one_part_is_kept_and_those_of_several_are_not_added_up() {
        let ideal = |parts, is_one| join(parts, is_one).robots[0].counts.ideal_basic;
        let one = || piece("a", vec![robots(0, 0, &[1])]);
        assert_eq!(ideal(vec![one()], true), 1);
        assert_eq!(ideal(vec![one(), one()], false), 0);
    }

    proptest! {
        #[test]
        fn parts_and_the_whole_have_the_same_counts_and_histograms(
            values in prop::collection::vec((0_u64..5, 0_u16..2, 1_u64..10_000_000, 0_usize..3), 0..60)
        ) {
            let of = |part: Option<usize>| {
                let mut by: BTreeMap<(u64, u16), Vec<u64>> = BTreeMap::new();
                for (second, phase, value, whose) in &values {
                    if part.is_none_or(|part| part == *whose) {
                        by.entry((second * 1000, *phase)).or_default().push(*value);
                    }
                }
                by.into_iter().map(|((start, phase), values)| robots(start, phase, &values)).collect::<Vec<_>>()
            };
            let whole = join(vec![piece("a", of(None))], false);
            let parts = join((0..3).map(|part| piece("a", of(Some(part)))).collect(), false);
            prop_assert_eq!(parts.robots, whole.robots);
        }
    }
}
