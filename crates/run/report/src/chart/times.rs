//! The charts of response times: over time, and of the whole run.

use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::{RobotInterval, Times};
use assay_measurement::measured::Series;

use super::{Chart, ChartKind, ChartLine, ChartText, Heat, line, logarithmic, short, time_chart};
use crate::steps::{MergedTimes, Step};

/// Heading of the response times.
pub(super) const RESPONSE: &str = "Response time";
/// Rows of a heat map for each factor of ten.
const ROWS_PER_DECADE: i32 = 12;
/// Points of a cumulative curve for each factor of ten.
const POINTS_PER_DECADE: i32 = 24;
/// Phases that one chart can tell apart.
const MOST_PHASES: usize = 8;
/// Colours for things of one kind.
const COLOURS: [&str; MOST_PHASES] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// Response times over time.
pub(super) fn response(steps: &[Step<'_>]) -> Vec<Chart> {
    let ruler = Histogram::new();
    let ms = |us: f64| us / 1000.0;
    let lines = |value: &dyn Fn(&MergedTimes) -> Option<f64>| {
        let of = |merged: MergedTimes| value(&merged).map(ms);
        vec![
            line("all", "all", steps, |s| of(all(s))),
            line("hits", "hit", steps, |s| of(MergedTimes::new(s.hit.iter().copied()))),
            line("misses", "miss", steps, |s| of(MergedTimes::new(s.miss.iter().copied()))),
        ]
    };
    let quantiles =
        [("median", "p50", 0.5), ("90 %", "p90", 0.9), ("99 %", "p99", 0.99), ("99.9 %", "p999", 0.999)];
    let mut spread: Vec<ChartLine> = quantiles
        .iter()
        .map(|(name, role, q)| line(*name, role, steps, |s| all(s).quantile_us(*q, &ruler).map(ms)))
        .collect();
    spread.push(line("longest", "max", steps, |s| all(s).max_us().map(ms)));
    let about = "From when a request was due to the last byte of its response, by the second in which it ended. Under \"all\", requests \
         that were given up or never sent are as long as they had waited.";
    let chart = |id, title, lines| logarithmic(time_chart(RESPONSE, id, title, "ms", about, lines));
    let mut charts = vec![
        chart("response-mean", "Mean response time", lines(&MergedTimes::mean_us)),
        chart("response-percentiles", "Percentiles", spread),
        chart("response-p50", "Median response time", lines(&|merged| merged.quantile_us(0.5, &ruler))),
        chart("response-p99", "99th percentile", lines(&|merged| merged.quantile_us(0.99, &ruler))),
    ];
    type PickTimes = for<'a, 's> fn(&'s Step<'a>) -> &'s [&'a SparseHistogram];
    let maps: [(&str, &str, PickTimes); 2] = [
        ("response-heat-hit", "Every hit", |step| &step.hit),
        ("response-heat-miss", "Every miss", |step| &step.miss),
    ];
    charts.extend(maps.into_iter().filter_map(|(id, title, of)| heat_map(id, title, steps, of)));
    charts
}

fn all(step: &Step<'_>) -> MergedTimes {
    MergedTimes::new(step.all.iter().copied())
}

/// Response times as a heat map over time. A row is a twelfth of a decade.
fn heat_map(
    id: &'static str,
    title: &'static str,
    steps: &[Step<'_>],
    of: for<'a, 's> fn(&'s Step<'a>) -> &'s [&'a SparseHistogram],
) -> Option<Chart> {
    let row = |low_us: u64| (f64::from(ROWS_PER_DECADE) * (low_us.max(1) as f64).log10()).floor() as i32;
    let buckets = |step| of(step).iter().flat_map(|histogram| histogram.buckets.iter());
    let rows = steps.iter().flat_map(buckets).map(|(low_us, _)| row(*low_us));
    let (first, last) = rows.fold(None, |ends: Option<(i32, i32)>, row| {
        Some(ends.map_or((row, row), |(low, high)| (low.min(row), high.max(row))))
    })?;
    let cells = steps.iter().map(|step| {
        let mut cells = vec![0; (last - first + 1) as usize];
        for (low_us, count) in buckets(step) {
            cells[(row(*low_us) - first) as usize] += count;
        }
        cells.truncate(cells.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
        cells
    });
    let edge_ms = |row: i32| short(10f64.powf(f64::from(row) / f64::from(ROWS_PER_DECADE)) / 1000.0);
    let heat = Heat { y_edges: (first..=last + 1).map(edge_ms).collect(), cells: cells.collect() };
    let about = "All response times, by the second in which they ended: the stronger a spot's colour, the more requests \
                 took that long. Nothing is averaged away here.";
    let chart = logarithmic(time_chart(RESPONSE, id, title, "ms", about, Vec::new()));
    Some(Chart { kind: ChartKind::Heat, heat: Some(heat), ..chart })
}

/// Times of the whole run by class.
struct TimesByClass {
    all: Histogram,
    hit: Histogram,
    miss: Histogram,
}

impl TimesByClass {
    /// `of` picks a kind of time; open waits count as long as they were.
    fn from_series(
        series: &Series,
        of: fn(&Times) -> &SparseHistogram,
        unsent: Option<fn(&RobotInterval) -> &SparseHistogram>,
    ) -> Self {
        let mut classes = Self { all: Histogram::new(), hit: Histogram::new(), miss: Histogram::new() };
        for interval in &series.robots {
            classes.hit.merge_sparse(of(&interval.times.hit));
            classes.miss.merge_sparse(of(&interval.times.miss));
            let waits = unsent.map(|unsent| unsent(interval));
            let all = interval.times.completed().into_iter().chain([&interval.times.timed_out]).map(of);
            all.chain(waits).for_each(|times| classes.all.merge_sparse(times));
        }
        classes
    }

    fn named(&self) -> [(&'static str, &'static str, &Histogram); 3] {
        [("all", "all", &self.all), ("hits", "hit", &self.hit), ("misses", "miss", &self.miss)]
    }
}

/// Response times of the whole run: percentile curves by class and by phase, and the share that took so long at most.
pub(super) fn whole_run(series: &Series, phases: &[&str]) -> Vec<Chart> {
    let response = TimesByClass::from_series(
        series,
        |times| &times.response,
        Some(|interval| &interval.times.unsent_wait),
    );
    let first_byte = TimesByClass::from_series(series, |times| &times.ttfb, None);
    let mut charts = vec![distribution(
        "response-distribution",
        "Percentile curves",
        "Over the whole run: how long the given share of requests took at most. Each mark to the right is ten times \
         rarer. Under \"all\", requests that were given up or never sent are as long as they had waited.",
        &response.named(),
    )];
    charts.extend(by_phase(series, phases));
    charts.push(cdf(
        "response-cdf",
        "Cumulative distribution",
        "Over the whole run: the share of requests that took no longer, from when they were due.",
        &response.named(),
    ));
    charts.push(cdf(
        "first-byte-cdf",
        "First byte",
        "Over the whole run: the share of requests whose first byte came no later, from when they were sent.",
        &first_byte.named(),
    ));
    charts
}

/// A curve for each phase, of those with the most requests.
fn by_phase(series: &Series, phases: &[&str]) -> Option<Chart> {
    let mut times: Vec<(usize, Histogram)> = (0..phases.len()).map(|i| (i, Histogram::new())).collect();
    for interval in &series.robots {
        if let Some((_, histogram)) = times.get_mut(usize::from(interval.phase)) {
            let all = interval.times.completed().into_iter().chain([&interval.times.timed_out]);
            all.for_each(|times| histogram.merge_sparse(&times.response));
            histogram.merge_sparse(&interval.times.unsent_wait);
        }
    }
    times.retain(|(_, histogram)| histogram.count() > 0);
    times.sort_by_key(|(_, histogram)| std::cmp::Reverse(histogram.count()));
    let about = if times.len() > MOST_PHASES {
        "The same for each phase, of the eight with the most requests."
    } else {
        "The same for each phase."
    };
    times.truncate(MOST_PHASES);
    times.sort_by_key(|(index, _)| *index);
    let named: Vec<_> = times
        .iter()
        .zip(COLOURS)
        .map(|((index, histogram), role)| (phases[*index], role, histogram))
        .collect();
    (named.len() > 1).then(|| distribution("response-phases", "Percentile curves by phase", about, &named))
}

/// A name, its colour, and times.
pub type NamedTimes<'a> = (&'a str, &'static str, &'a Histogram);

/// Times from the shortest to the longest.
pub fn distribution(
    id: impl Into<ChartText>,
    title: impl Into<ChartText>,
    about: impl Into<ChartText>,
    classes: &[NamedTimes<'_>],
) -> Chart {
    // Fine at the end: tenths of a decade, as far as there are requests to speak of.
    let largest = classes.iter().map(|class| class.2.count()).max().unwrap_or(0);
    let most = (largest.max(10) as f64).log10().min(5.0);
    let shares: Vec<f64> =
        (0..=(most * 10.0) as i32).map(|tenth| 1.0 - 10f64.powf(-f64::from(tenth) / 10.0)).collect();
    let line = |&(name, role, histogram): &NamedTimes<'_>| {
        let values = shares
            .iter()
            // A class of few requests has no far end.
            .map(|share| (histogram.count() as f64 * (1.0 - share) >= 1.0 - 1e-9).then_some(*share))
            .map(|share| histogram.quantile_us(share?).map(|us| short(us as f64 / 1000.0)));
        let values = values.collect();
        ChartLine {
            x: Some(shares.iter().map(|share| Some(*share)).collect()),
            ..ChartLine::new(name, role, values)
        }
    };
    let lines = classes.iter().map(line).collect();
    let chart = time_chart(RESPONSE, id, title, "ms", about, lines);
    Chart { kind: ChartKind::Distribution, ..logarithmic(chart) }
}

/// The share of times up to each time.
pub fn cdf(id: &'static str, title: &'static str, about: &'static str, classes: &[NamedTimes<'_>]) -> Chart {
    let place = |us: u64| f64::from(POINTS_PER_DECADE) * (us.max(1) as f64).log10();
    let known = || classes.iter().map(|class| class.2).filter(|histogram| histogram.count() > 0);
    let first = known().filter_map(|h| h.quantile_us(0.0)).map(|us| place(us).floor() as i32 - 1).min();
    let last = known().filter_map(Histogram::max_us).map(|us| place(us).ceil() as i32).max();
    let marks: Vec<f64> = match (first, last) {
        (Some(first), Some(last)) => {
            (first..=last).map(|mark| 10f64.powf(f64::from(mark) / f64::from(POINTS_PER_DECADE))).collect()
        }
        _ => Vec::new(),
    };
    let line = |&(name, role, histogram): &NamedTimes<'_>| {
        let mut buckets = histogram.buckets().peekable();
        let mut upto = 0;
        let values = marks.iter().map(|mark_us| {
            // A bucket is up to 0.1 % wide, far less than the distance of two marks.
            while let Some((_, count)) = buckets.next_if(|(low_us, _)| *low_us as f64 <= *mark_us) {
                upto += count;
            }
            (histogram.count() > 0).then(|| short(upto as f64 * 100.0 / histogram.count() as f64))
        });
        let values = values.collect();
        ChartLine {
            x: Some(marks.iter().map(|us| Some(short(us / 1000.0))).collect()),
            ..ChartLine::new(name, role, values)
        }
    };
    let chart = time_chart(RESPONSE, id, title, "%", about, classes.iter().map(line).collect());
    Chart { kind: ChartKind::Cdf, x_label: Some("ms".into()), ..chart }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measurement::interval::RobotInterval;

    fn histogram(values_us: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values_us.iter().for_each(|us| histogram.record(*us));
        histogram
    }

    #[test]
    fn a_cumulative_curve_rises_from_nothing_to_all() {
        let times = histogram(&[100, 200, 200, 50_000]);
        let chart = cdf("x", "x", "x", &[("all", "all", &times), ("hits", "hit", &Histogram::new())]);
        let values: Vec<f64> = chart.lines[0].values.iter().flatten().copied().collect();
        assert_eq!((values.first(), values.last()), (Some(&0.0), Some(&100.0)));
        assert!(values.is_sorted());
        let x = chart.lines[0].x.as_ref().unwrap();
        let at_1_ms = x.iter().position(|x| x.unwrap() >= 1.0).unwrap();
        assert_eq!(values[at_1_ms], 75.0);
        assert!(!chart.lines[1].is_known(), "a class without requests has no curve");
    }

    #[test]
    fn a_heat_map_holds_every_request_in_the_row_of_its_time() {
        let (one, two) = (histogram(&[100, 101, 5_000]).to_sparse(), histogram(&[99, 7_000]).to_sparse());
        let step = |miss| Step { miss, ..Step::default() };
        let steps = [step(vec![&one, &two]), step(vec![]), step(vec![&two])];
        let chart = heat_map("x", "x", &steps, |step| &step.miss).unwrap();
        let heat = chart.heat.unwrap();
        let sums: Vec<u64> = heat.cells.iter().map(|cells| cells.iter().sum()).collect();
        assert_eq!(sums, [5, 0, 2]);
        assert!(heat.y_edges.is_sorted() && heat.y_edges[0] <= 0.099);
        assert!(heat.cells.iter().all(|cells| cells.len() < heat.y_edges.len()));
        assert_eq!(heat_map("x", "x", &steps, |step| &step.hit), None);
    }

    #[test]
    fn curves_by_phase_are_of_the_phases_that_had_requests() {
        let times = |phase, us| {
            let mut interval = RobotInterval { phase, ..RobotInterval::default() };
            interval.times.miss.response = histogram(&[us; 20]).to_sparse();
            interval
        };
        let series =
            Series { robots: vec![times(0, 1_000), times(2, 3_000), times(9, 1)], ..Series::default() };
        let phases = ["a", "b", "c"];
        let chart = by_phase(&series, &phases).unwrap();
        let lines: Vec<_> = chart.lines.iter().map(|line| (line.name.as_str(), line.values[0])).collect();
        assert_eq!(lines, [("a", Some(1.0)), ("c", Some(3.0))]);
        assert!(by_phase(&Series::default(), &phases).is_none());
    }
}
