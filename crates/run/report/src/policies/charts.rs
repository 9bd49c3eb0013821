//! The charts of the policy report. A line for each policy.

use assay_record::cluster::{Balance, ClusterPoint, ClusterResult};

use super::{MeanEstimate, MixOnCluster, distinct, gain, nodes, points_of, terminal};
use crate::chart::{Chart, ChartKind, ChartLine, ChartText, short, time_chart};
use crate::compare::subject_style;

/// A value with the ends of its interval.
type BoundedValue = (f64, Option<(f64, f64)>);

/// The charts of a mix on a cluster.
pub(super) struct MixCharts {
    pub title: String,
    pub loads: Vec<Chart>,
    /// Over time, under one load.
    pub times: Vec<Chart>,
    /// Of each node, over time.
    pub nodes: Vec<Chart>,
}

impl MixCharts {
    /// In the order of the page.
    pub fn all(&self) -> impl Iterator<Item = &Chart> {
        self.loads.iter().chain(&self.times).chain(&self.nodes)
    }
}

/// All charts of a mix; `other` is drawn beside it, broken. `axis` is that of its charts over time.
pub(super) fn mix_charts(
    result: &ClusterResult,
    other: Option<&ClusterResult>,
    mix: MixOnCluster<'_>,
    axis: usize,
) -> MixCharts {
    let points: Vec<&ClusterPoint> = points_of(result, mix).collect();
    let beside: Vec<&ClusterPoint> = other.map(|other| points_of(other, mix).collect()).unwrap_or_default();
    let all = MixPoints { result, other, points, beside, number: axis };
    MixCharts { title: mix.to_string(), loads: all.loads(), times: all.times(), nodes: all.nodes() }
}

struct MixPoints<'r> {
    result: &'r ClusterResult,
    other: Option<&'r ClusterResult>,
    points: Vec<&'r ClusterPoint>,
    beside: Vec<&'r ClusterPoint>,
    number: usize,
}

impl<'r> MixPoints<'r> {
    fn policies(&self) -> Vec<&'r str> {
        distinct(self.points.iter().map(|point| point.policy.as_str()))
    }

    /// All loads, ascending.
    fn x(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.points.iter().chain(&self.beside).map(|point| point.load()).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    fn x_label(&self) -> &'static str {
        let closed = self.points.iter().any(|point| point.clients.is_some());
        if closed { "clients" } else { "requests/s offered" }
    }

    fn line(
        &self,
        policy: &str,
        points: &[&ClusterPoint],
        value: &impl Fn(&ClusterPoint) -> Option<BoundedValue>,
    ) -> ChartLine {
        let x = self.x();
        let at = |load: &f64| {
            let there = points.iter().find(|point| point.policy == policy && point.load() == *load)?;
            value(there)
        };
        let all: Vec<Option<BoundedValue>> = x.iter().map(at).collect();
        let index = self.policies().iter().position(|other| *other == policy).unwrap_or(0);
        let end = |pick: fn(&(f64, f64)) -> f64| {
            let ends = |value: &Option<BoundedValue>| {
                value.and_then(|(_, ends)| ends).map(|ends| short(pick(&ends)))
            };
            all.iter()
                .any(|value| value.is_some_and(|(_, ends)| ends.is_some()))
                .then(|| all.iter().map(ends).collect())
        };
        let values = all.iter().map(|value| value.map(|(mean, _)| short(mean))).collect();
        ChartLine {
            x: Some(x.into_iter().map(Some).collect()),
            low: end(|ends| ends.0),
            high: end(|ends| ends.1),
            dash: subject_style(index).dash,
            ..ChartLine::new(policy, subject_style(index).colour, values)
        }
    }

    fn over_load(
        &self,
        id: &str,
        title: &'static str,
        unit: &'static str,
        about: &'static str,
        value: impl Fn(&ClusterResult, &ClusterPoint) -> Option<BoundedValue>,
    ) -> Chart {
        let own = |point: &ClusterPoint| value(self.result, point);
        let mut lines: Vec<ChartLine> =
            self.policies().iter().map(|policy| self.line(policy, &self.points, &own)).collect();
        if let Some(other) = self.other {
            let there = |point: &ClusterPoint| value(other, point).map(|(mean, _)| (mean, None));
            let more = self.policies().into_iter().map(|policy| {
                let line = self.line(policy, &self.beside, &there);
                ChartLine { name: format!("{policy}, {}", other.name), dashed: true, dash: &[2, 3], ..line }
            });
            lines.extend(more.collect::<Vec<_>>());
        }
        lines.retain(ChartLine::is_known);
        let chart = time_chart("policies", format!("{id}-{}", self.number), title, unit, about, lines);
        Chart {
            kind: ChartKind::Lines,
            x_label: Some(ChartText::from(self.x_label())),
            axis: self.number,
            ..chart
        }
    }

    fn loads(&self) -> Vec<Chart> {
        let ms = |us: Option<u64>| us.map(|us| (us as f64 / 1e3, None));
        let mut charts = vec![
            self.over_load(
                "throughput",
                "Throughput",
                "responses/s",
                "Responses a second over the load. The band is the 95 % interval.",
                |_, point| {
                    let estimate = MeanEstimate::from_values(&point.responses_per_s_by_repetition)?;
                    Some((estimate.mean, estimate.half_width.map(|_| estimate.ends())))
                },
            ),
            self.over_load(
                "gain",
                "Gain",
                "%",
                "Responses a second more than under the first policy, in percent of those.",
                |result, point| {
                    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
                    let gain = gain(result, point)?;
                    let (low, high) = gain.ends();
                    Some((percent(gain.mean), gain.half_width.map(|_| (percent(low), percent(high)))))
                },
            ),
            self.over_load(
                "p50",
                "Response time, half",
                "ms",
                "Half of all responses took no longer.",
                |_, point| ms(point.response_us.p50),
            ),
            self.over_load(
                "p99",
                "Response time, 99 %",
                "ms",
                "All but one in a hundred took no longer.",
                |_, point| ms(point.response_us.p99),
            ),
            self.over_load(
                "uneven",
                "Balance of processors",
                "deviation/mean",
                "How unequally the nodes' processors are used, second by second: 0 is perfect balance.",
                |_, point| Some((terminal::balance(point)?.processor, None)),
            ),
            self.over_load(
                "uneven-disk",
                "Balance of disks",
                "deviation/mean",
                "The same of their disks.",
                |_, point| (point.balance.disk > 0.0).then_some((point.balance.disk, None)),
            ),
        ];
        charts.retain(|chart| !chart.lines.is_empty());
        charts
    }

    /// The load under which the best policy is furthest ahead of the first.
    fn best_gain(&self) -> Option<&'r ClusterPoint> {
        let ahead = |point: &&&ClusterPoint| gain(self.result, point).map_or(1.0, |gain| gain.mean);
        self.points.iter().max_by(|one, other| ahead(one).total_cmp(&ahead(other))).copied()
    }

    /// All points have their nodes drawn if they are few; otherwise the one under which the best policy is furthest ahead.
    fn nodes(&self) -> Vec<Chart> {
        let drawn = match self.points.len() <= nodes::FEW_POINTS {
            true => self.points.clone(),
            false => self.best_gain().into_iter().collect(),
        };
        let of =
            |(index, point): (usize, &&ClusterPoint)| nodes::charts(point, self.number, &index.to_string());
        drawn.iter().enumerate().flat_map(of).collect()
    }

    fn times(&self) -> Vec<Chart> {
        let Some(best) = self.best_gain() else { return Vec::new() };
        let (load, loaded) = (best.load(), terminal::load(best));
        let of = |id: &str, title: &'static str, value: fn(&Balance) -> f64| {
            let lines = self.points.iter().filter(|point| point.load() == load).map(|point| {
                let index = self.policies().iter().position(|policy| *policy == point.policy).unwrap_or(0);
                let values =
                    point.balance_by_second.iter().map(|balance| Some(short(value(balance)))).collect();
                ChartLine {
                    dash: subject_style(index).dash,
                    ..ChartLine::new(&point.policy, subject_style(index).colour, values)
                }
            });
            let about = format!(
                "Deviation over mean between nodes, second by second, with {loaded}: 0 is perfect balance."
            );
            let lines = lines.filter(|line| line.values.iter().flatten().any(|value| *value > 0.0)).collect();
            let chart = time_chart("balance", format!("{id}-{}", self.number), title, "", about, lines);
            Chart { axis: self.number, ..chart }
        };
        let mut charts = vec![
            of("balance-processor", "Balance of processors over time", |balance| balance.processor),
            of("balance-disk", "Balance of disks over time", |balance| balance.disk),
            of("balance-in-flight", "Balance of requests over time", |balance| balance.in_flight),
        ];
        charts.retain(|chart| !chart.lines.is_empty());
        charts
    }
}
