//! Charts of the target's own counters, beside measurements from outside.

use std::collections::BTreeMap;

use assay_measurement::measured::Series;
use assay_measurement::ratios::Outcomes;

use super::{Chart, ChartLine, ChartText, dashed, line, short, time_chart};
use crate::steps::Step;

/// Heading of the target's own counters.
const COUNTERS: &str = "The target’s own counters beside ours";
/// Counters in words of the target's own that are drawn; the rest is in the list of the last readings.
const MOST_FOREIGN: usize = 8;
/// Names that mean the same for every target, as far as it has them.
const KNOWN: [&str; 14] = [
    "requests",
    "hits",
    "collapsed",
    "revalidated",
    "misses",
    "passed",
    "evictions",
    "objects",
    "stored_bytes",
    "origin_requests",
    "origin_errors",
    "refused",
    "slow_clients",
    "dismissed_clients",
];

/// One chart: id, title, unit, what is seen, and its lines by counter.
struct CounterChart<'a> {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    lines: Vec<(&'static str, &'static str, &'a str)>,
    ours: Vec<ChartLine>,
}

/// Charts of the target's counters; none: it has none that moved.
pub(super) fn charts(steps: &[Step<'_>], series: &Series, step_ms: u64) -> Vec<Chart> {
    let together = Series { proxy: series.proxy_together().into_owned(), ..Series::default() };
    let read = CounterReadings { series: &together, step_ms, count: steps.len() };
    let hits = |s: &Step<'_>| {
        let outcomes = Outcomes::of(&s.robots, &s.origins);
        s.per_second(outcomes.hit + outcomes.collapsed)
    };
    let pairs = [
        CounterChart {
            id: "own-requests",
            title: "Requests",
            about: "What robots sent and origins got, and what the target says of the same. Health checks and fetches of \
                    its own make a difference.",
            lines: vec![
                ("target: from robots", "proxy", "requests"),
                ("target: to origins", "miss", "origin_requests"),
            ],
            ours: vec![
                dashed(line("robots sent", "all", steps, |s| s.per_second(s.robots.sent))),
                dashed(line("origins got", "origin", steps, |s| s.per_second(s.origins.requests))),
            ],
        },
        CounterChart {
            id: "own-hits",
            title: "Hits and misses",
            about: "What was told apart by what responses carry, of plain GETs, and what the target counts as such, of all \
                    requests.",
            lines: vec![
                ("target: hits", "proxy", "hits"),
                ("target: misses", "miss", "misses"),
                ("target: passed", "offered", "passed"),
            ],
            ours: vec![
                dashed(line("our hits", "hit", steps, hits)),
                dashed(line("our misses", "all", steps, |s| s.per_second(s.robots.misses))),
            ],
        },
    ];
    let mut charts: Vec<Chart> = pairs.into_iter().filter_map(|pair| pair_chart(&read, pair)).collect();
    charts.extend(store(&read));
    charts.extend(foreign(&read));
    charts
}

fn pair_chart(read: &CounterReadings<'_>, pair: CounterChart<'_>) -> Option<Chart> {
    let theirs: Vec<ChartLine> = pair
        .lines
        .into_iter()
        .map(|(name, role, counter)| ChartLine::new(name, role, read.rate(counter)))
        .filter(moved)
        .collect();
    if theirs.is_empty() {
        return None;
    }
    let lines = pair.ours.into_iter().chain(theirs).collect();
    Some(time_chart(COUNTERS, pair.id, pair.title, "per second", pair.about, lines))
}

/// Charts of the target's store: its contents and its evictions.
fn store(read: &CounterReadings<'_>) -> Vec<Chart> {
    let mb = |value: f64| value / f64::from(1 << 20);
    let chart = |id, title, unit, about, line: ChartLine| {
        moved(&line).then(|| time_chart(COUNTERS, id, title, unit, about, vec![line]))
    };
    let charts = [
        chart(
            "own-store",
            "Kept in its store",
            "MB",
            "As the target says, at the end of each step; 1 MB is 1024 × 1024 bytes.",
            ChartLine::new("stored", "proxy", read.level("stored_bytes", mb)),
        ),
        chart(
            "own-objects",
            "Objects in its store",
            "objects",
            "As the target says, at the end of each step.",
            ChartLine::new("objects", "proxy", read.level("objects", |value| value)),
        ),
        chart(
            "own-evictions",
            "Thrown out of its store",
            "per second",
            "Objects that had to make room, as the target says. From here on, hit ratios fall below those of a cache \
             without bounds.",
            ChartLine::new("evictions", "error", read.rate("evictions")),
        ),
    ];
    charts.into_iter().flatten().collect()
}

/// Counters under names that only the target knows.
fn foreign(read: &CounterReadings<'_>) -> Vec<Chart> {
    let names = read.series.proxy.iter().flat_map(|sample| sample.counters.keys());
    let mut names: Vec<&String> = names.filter(|name| !KNOWN.contains(&name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let chart = |(number, name): (usize, &String)| {
        let grows = read.series.proxy.windows(2).all(|pair| {
            let [before, after] = [&pair[0], &pair[1]].map(|sample| sample.counters.get(name));
            before.zip(after).is_none_or(|(before, after)| before <= after)
        });
        let (unit, values) = match grows {
            true => ("per second", read.rate(name)),
            false => ("", read.level(name, |value| value)),
        };
        let line = ChartLine::new(name, "proxy", values);
        let about = "Read from the target, in its own words.";
        let id = ChartText::from(format!("own-{number}"));
        moved(&line).then(|| time_chart(COUNTERS, id, name.clone(), unit, about, vec![line]))
    };
    names.into_iter().enumerate().filter_map(chart).take(MOST_FOREIGN).collect()
}

fn moved(line: &ChartLine) -> bool {
    line.values.iter().flatten().any(|value| *value != 0.0)
}

/// The counters on the time axis.
struct CounterReadings<'a> {
    series: &'a Series,
    step_ms: u64,
    count: usize,
}

impl CounterReadings<'_> {
    /// The step in which a reading was taken; one at the very end of a step belongs to it.
    fn step(&self, at_ms: u64) -> usize {
        usize::try_from(at_ms.saturating_sub(1) / self.step_ms).unwrap_or(usize::MAX)
    }

    fn level(&self, counter: &str, unit: impl Fn(f64) -> f64) -> Vec<Option<f64>> {
        let mut values = vec![None; self.count];
        for sample in &self.series.proxy {
            let known = sample.counters.get(counter).map(|value| short(unit(*value)));
            if let (Some(value), Some(place)) = (known, values.get_mut(self.step(sample.at_ms))) {
                *place = Some(value);
            }
        }
        values
    }

    /// By how much it grew in a second, between the readings that end in a step. A counter that fell was reset: nothing
    /// is said of that moment.
    fn rate(&self, counter: &str) -> Vec<Option<f64>> {
        let mut grown: BTreeMap<usize, (f64, u64)> = BTreeMap::new();
        let readings = self.series.proxy.iter().filter_map(|s| Some((s.at_ms, *s.counters.get(counter)?)));
        // What was before the first reading is not known.
        let mut before: Option<(u64, f64)> = None;
        for (at_ms, value) in readings {
            if let Some((then_ms, then)) = before.filter(|(ms, v)| *ms < at_ms && *v <= value) {
                let step = grown.entry(self.step(at_ms)).or_default();
                step.0 += value - then;
                step.1 += at_ms - then_ms;
            }
            before = Some((at_ms, value));
        }
        let rate = |step| grown.get(&step).map(|(by, ms)| short(by * 1000.0 / *ms as f64));
        (0..self.count).map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measurement::measured::ProxySample;

    fn series(counter: &str, readings: &[(u64, f64)]) -> Series {
        let sample = |&(at_ms, value): &(u64, f64)| ProxySample {
            cache: String::new(),
            at_ms,
            counters: BTreeMap::from([(counter.to_owned(), value)]),
        };
        Series { proxy: readings.iter().map(sample).collect(), ..Series::default() }
    }

    #[test]
    fn a_counter_is_shown_as_what_it_grew_by_in_a_second() {
        let series = series("hits", &[(1_000, 10.0), (2_000, 30.0), (3_000, 4.0), (4_000, 5.0)]);
        let read = CounterReadings { series: &series, step_ms: 1_000, count: 5 };
        assert_eq!(read.rate("hits"), [None, Some(20.0), None, Some(1.0), None], "it was reset once");
        let coarse = CounterReadings { step_ms: 2_000, count: 2, ..read };
        assert_eq!(coarse.rate("hits"), [Some(20.0), Some(1.0)]);
        assert_eq!(coarse.level("hits", |v| v), [Some(30.0), Some(5.0)]);
    }

    #[test]
    fn what_a_target_does_not_count_has_no_chart() {
        let steps: Vec<Step<'_>> = (0..2).map(|_| Step::default()).collect();
        let none = series("hits", &[(1_000, 0.0), (2_000, 0.0)]);
        assert!(charts(&steps, &none, 1_000).is_empty());
        let own = series("MAIN.n_lru", &[(1_000, 7.0), (2_000, 3.0)]);
        let drawn = charts(&steps, &own, 1_000);
        assert_eq!((drawn.len(), drawn[0].title.as_ref()), (1, "MAIN.n_lru"));
        assert_eq!(drawn[0].lines[0].values, [Some(7.0), Some(3.0)], "it falls, so it is no sum");
    }
}
