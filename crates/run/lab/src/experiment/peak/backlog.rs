//! Tells whether a target fell behind. One that only queues what is too much keeps no promise, though no response of a short
//! step need show it. And whether a step that was kept leaves a queue to the next one, which would be judged by it.

use assay_measurement::interval::RobotInterval;

use super::MeasurementWindow;

/// So many requests more or less are under way by chance …
const UNDER_WAY: f64 = 2.0;
/// … and so many standard deviations of those that are under way on average.
const CHANCE: f64 = 2.0;
/// Share of all requests whose backlog is no queue that grows: a target near its limit has that many waiting.
const RESOLUTION: f64 = 0.005;

/// Evidence that a target fell behind: at the end more is under way than in its quickest second, by more than chance and
/// the most that Assay was late explain. A step begins with nothing that waits, so a queue that is there at the end grew in it.
pub(super) fn fell_behind(window: &MeasurementWindow<'_>, late_us: u64) -> Option<String> {
    let intervals = sorted_intervals(window);
    let (mut due, mut ended) = (0, 0);
    for interval in &intervals {
        // Objects that no page led to were never requested.
        due += interval.counts.due.saturating_sub(interval.counts.not_reached);
        ended += interval.counts.completed + interval.counts.error_total();
    }
    let rate_per_s = due as f64 / window.length_s.max(1e-3);
    let quickest_s = seconds(window).reduce(f64::min).unwrap_or(0.0);
    // The end of a single second may lie in a short pause, so the last third counts.
    let last = intervals.len() - intervals.len() / 3;
    let at_end = intervals.iter().skip(last.saturating_sub(1));
    let least = at_end.map(|interval| interval.levels.waiting + interval.levels.in_flight).min()?;
    let usual = rate_per_s * quickest_s;
    let allowed = chance_margin(usual) + RESOLUTION * due as f64 + rate_per_s * late_us as f64 / 1e6;
    (least as f64 - usual > allowed)
        .then(|| format!("{:.1} % of what came due ended in time", ended as f64 * 100.0 / due as f64))
}

/// Whether a queue is left at the end: more is under way than in the quickest second, by more than chance explains.
pub(super) fn leaves_queue(window: &MeasurementWindow<'_>) -> bool {
    let completed: u64 = window.robots.iter().map(|interval| interval.counts.completed).sum();
    let rate_per_s = completed as f64 / window.length_s.max(1e-3);
    let (Some(quickest_s), Some(last_s)) = (seconds(window).reduce(f64::min), seconds(window).last()) else {
        return false;
    };
    (last_s - quickest_s) * rate_per_s > chance_margin(quickest_s * rate_per_s)
}

/// So many more than on average are under way by chance.
fn chance_margin(under_way: f64) -> f64 {
    UNDER_WAY + CHANCE * under_way.sqrt()
}

/// Mean response times of one second after the other, in seconds; by Little's law, times the rate they are how many requests
/// are under way.
fn seconds(window: &MeasurementWindow<'_>) -> impl Iterator<Item = f64> {
    sorted_intervals(window).into_iter().filter_map(|interval| {
        let (mut sum_us, mut count) = (0, 0);
        for class in interval.times.completed() {
            sum_us += class.response.sum_us;
            count += class.response.count();
        }
        (count > 0).then(|| sum_us as f64 / count as f64 / 1e6)
    })
}

fn sorted_intervals<'a>(window: &MeasurementWindow<'a>) -> Vec<&'a RobotInterval> {
    let mut intervals = window.robots.clone();
    intervals.sort_by_key(|interval| interval.start_ms);
    intervals
}

#[cfg(test)]
mod tests {
    use assay_measurement::histogram::Histogram;
    use assay_record::run::RunInfo;

    use super::*;

    fn window<'a>(seconds: &'a [RobotInterval], run: &'a RunInfo) -> MeasurementWindow<'a> {
        MeasurementWindow {
            robots: seconds.iter().collect(),
            origins: Vec::new(),
            length_s: seconds.len() as f64,
            parts: Vec::new(),
            beside: &[],
            run,
        }
    }

    /// Seconds in which so many came due and ended, each with a response time of so many microseconds.
    fn seconds(of: impl Iterator<Item = (u64, u64)>, us: u64) -> Vec<RobotInterval> {
        let mut left = 0;
        let second = |(index, (due, completed)): (usize, (u64, u64))| {
            let mut interval =
                RobotInterval { start_ms: index as u64 * 1000, length_ms: 1000, ..Default::default() };
            (interval.counts.due, interval.counts.completed) = (due, completed);
            left += due - completed;
            interval.levels.in_flight = left + completed * us / 1_000_000;
            let mut times = Histogram::new();
            (0..completed).for_each(|_| times.record(us));
            interval.times.miss.response = times.to_sparse();
            interval
        };
        of.enumerate().map(second).collect()
    }

    fn is_behind(seconds: &[RobotInterval], late_us: u64) -> bool {
        fell_behind(&window(seconds, &RunInfo::default()), late_us).is_some()
    }

    #[test]
    fn what_becomes_ever_more_is_falling_behind_and_what_is_only_under_way_is_not() {
        // One in a hundred is left over every second; after seven seconds, 70, of which chance and its share of all explain 66.
        assert!(is_behind(&seconds((0..10).map(|_| (1000, 990)), 50_000), 0));
        assert!(!is_behind(&seconds((0..10).map(|_| (1000, 1000)), 50_000), 0));
        // Two seconds each: two thousand are under way, and chance moves that by some tens.
        assert!(!is_behind(&seconds((0..10).map(|s| (1000, 1000 - 8 * (s % 2))), 2_000_000), 0));
        // In the last second, there is a pause.
        assert!(!is_behind(&seconds((0..10).map(|s| (1000, if s == 9 { 700 } else { 1000 })), 5_000), 0));
    }

    #[test]
    fn a_queue_that_grew_is_left_and_what_always_takes_long_is_none() {
        let run = RunInfo::default();
        let leaves = |seconds: &[RobotInterval]| leaves_queue(&window(seconds, &run));
        let growing: Vec<_> = (1..5).flat_map(|s| seconds([(300, 300)].into_iter(), s * 40_000)).collect();
        assert!(leaves(&growing));
        assert!(!leaves(&seconds([(300, 300); 4].into_iter(), 2_000_000)));
        assert!(!leaves(&seconds([(300, 300); 4].into_iter(), 500)) && !leaves(&[]));
    }

    #[test]
    fn so_much_of_it_is_not_the_targets_as_came_due_while_assay_was_late() {
        let behind = seconds((0..10).map(|_| (1000, 980)), 50_000);
        // After the seventh second, 140 are left over, of which chance and its share of all explain 66.
        assert!(is_behind(&behind, 70_000) && !is_behind(&behind, 80_000));
    }
}
