//! Tells whether a target fell behind. One that only queues what is too much keeps no promise, though no answer of a short step need
//! show it.

use assay_record::histogram::Histogram;

use super::Stretch;

/// So many requests more or less are under way by chance …
const UNDER_WAY: f64 = 2.0;
/// … and so many standard deviations of those that are under way on average.
const CHANCE: f64 = 2.0;

/// Where a target fell behind, what was seen: what came due and did not end became ever more, by more than chance and the most
/// that Assay was late explain.
pub(super) fn fell_behind(stretch: &Stretch<'_>, late_us: u64) -> Option<String> {
    let mut times = Histogram::new();
    let (mut due, mut ended, mut left) = (0, 0, Vec::new());
    let mut intervals = stretch.robots.clone();
    intervals.sort_by_key(|interval| interval.start_ms);
    for interval in &intervals {
        interval.completed().iter().for_each(|class| times.merge_sparse(&class.response));
        // What no page led to was never asked for.
        due += interval.counts.due.saturating_sub(interval.counts.not_reached);
        ended += interval.counts.completed + interval.counts.error_total();
        left.push(due as f64 - ended as f64);
    }
    let length_s = stretch.length_s.max(1e-3);
    let rate_per_s = due as f64 / length_s;
    // Little's law: so many are under way on average.
    let under_way = times.mean_us().unwrap_or(0.0) / 1e6 * rate_per_s;
    let allowed = UNDER_WAY + CHANCE * under_way.sqrt() + rate_per_s * late_us as f64 / 1e6;
    // The end of a single second may lie in a short pause, so the last third counts, and the first second may still hold
    // what another rate left.
    let last = left.len() - left.len() / 3;
    let least = left.iter().skip(last.saturating_sub(1)).copied().reduce(f64::min)?;
    let first = left.first().filter(|_| left.len() >= 3).map_or(0.0, |first| first.max(0.0));
    (least - first > allowed)
        .then(|| format!("{:.1} % of what came due ended in time", ended as f64 * 100.0 / due as f64))
}

#[cfg(test)]
mod tests {
    use assay_record::interval::RobotInterval;

    use super::*;

    /// Seconds in which so many came due and ended, each answered in so many microseconds.
    fn seconds(of: impl Iterator<Item = (u64, u64)>, us: u64) -> Vec<RobotInterval> {
        let second = |(index, (due, completed)): (usize, (u64, u64))| {
            let mut interval =
                RobotInterval { start_ms: index as u64 * 1000, length_ms: 1000, ..Default::default() };
            (interval.counts.due, interval.counts.completed) = (due, completed);
            let mut times = Histogram::new();
            (0..completed).for_each(|_| times.record(us));
            interval.miss.response = times.to_sparse();
            interval
        };
        of.enumerate().map(second).collect()
    }

    fn is_behind(seconds: &[RobotInterval], late_us: u64) -> bool {
        let stretch =
            Stretch { robots: seconds.iter().collect(), origins: Vec::new(), length_s: seconds.len() as f64 };
        fell_behind(&stretch, late_us).is_some()
    }

    #[test]
    fn what_becomes_ever_more_is_falling_behind_and_what_is_only_under_way_is_not() {
        // One in a hundred is left over every second; after ten seconds that is a tenth of a second's worth.
        assert!(is_behind(&seconds((0..10).map(|_| (1000, 990)), 50_000), 0));
        assert!(!is_behind(&seconds((0..10).map(|_| (1000, 1000)), 50_000), 0));
        // Two seconds each: two thousand are under way, and chance moves that by some tens.
        assert!(!is_behind(&seconds((0..10).map(|s| (1000, 1000 - 8 * (s % 2))), 2_000_000), 0));
        // In the first second, a rate before it ends; in the last, there is a pause.
        assert!(!is_behind(&seconds((0..10).map(|s| (1000, if s == 0 { 800 } else { 1000 })), 5_000), 0));
        assert!(!is_behind(&seconds((0..10).map(|s| (1000, if s == 9 { 700 } else { 1000 })), 5_000), 0));
    }

    #[test]
    fn so_much_of_it_is_not_the_targets_as_came_due_while_assay_was_late() {
        let behind = seconds((0..10).map(|_| (1000, 990)), 50_000);
        // Sixty are left over from the second second to the seventh.
        assert!(is_behind(&behind, 20_000) && !is_behind(&behind, 60_000));
    }
}
