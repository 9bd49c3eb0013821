//! Did a target fall behind? One that only queues what is too much keeps no promise, though no answer of a short step need
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
        times.merge_sparse(&interval.hit.response);
        times.merge_sparse(&interval.miss.response);
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
