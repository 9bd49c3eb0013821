//! The kinds of responses that there were. Charts of outcomes over time, and of everything that has a class.

use std::collections::BTreeMap;

use assay_measurement::counts::RobotCounts;

use super::{Chart, ChartKind, ChartLine, line, time_chart};
use crate::steps::Step;

/// Heading of the classes.
const CLASSES: &str = "Object classes";

/// Charts of what was requested and which responses came; none: no response came.
pub(super) fn charts(steps: &[Step<'_>]) -> Vec<Chart> {
    let mut sum = RobotCounts::default();
    steps.iter().for_each(|step| sum.merge(&step.robots));
    if sum.completed == 0 {
        return Vec::new();
    }
    let mut charts = vec![outcomes(steps)];
    charts.push(sizes(steps));
    charts.push(bars(&sum));
    charts
}

fn outcomes(steps: &[Step<'_>]) -> Chart {
    let rate = |name, role, count: fn(&RobotCounts) -> u64| {
        line(name, role, steps, move |s| s.per_second(count(&s.robots)))
    };
    let lines = vec![
        rate("hits", "hit", |c| c.hits),
        rate("misses", "miss", |c| c.misses),
        rate("revalidated", "origin", |c| c.revalidated),
        rate("collapsed", "accent", |c| c.collapsed),
        rate("not plain GETs", "offered", |c| c.completed.saturating_sub(c.basic)),
    ];
    let lines = lines.into_iter().filter(|line| line.values.iter().flatten().any(|value| *value > 0.0));
    let about = "Where responses came from: the store, the origin, the store after the origin confirmed it, or \
                 another request's fetch.";
    time_chart(CLASSES, "outcomes", "Responses by outcome", "responses/s", about, lines.collect())
}

fn sizes(steps: &[Step<'_>]) -> Chart {
    let mean = |name, role, of: fn(&RobotCounts) -> (u64, u64)| {
        line(name, role, steps, move |s| {
            let (bytes, count) = of(&s.robots);
            (count > 0).then(|| bytes as f64 / count as f64 / 1024.0)
        })
    };
    let lines = vec![
        mean("hits", "hit", |c| (c.hit_bytes, c.hits)),
        mean("misses", "miss", |c| (c.miss_bytes, c.misses)),
    ];
    let about = "Mean body of a plain GET's response in each step. A store that keeps small objects longer shows it \
                 here; 1 KB is 1024 bytes.";
    time_chart(CLASSES, "sizes", "Size of responses", "KB", about, lines)
}

/// All responses of the run by outcome, request type, method and status.
fn bars(sum: &RobotCounts) -> Chart {
    let mut names: Vec<(String, u64)> = vec![
        ("hit".into(), sum.hits),
        ("collapsed".into(), sum.collapsed),
        ("revalidated".into(), sum.revalidated),
        ("miss".into(), sum.misses),
    ];
    let listed = |map: &BTreeMap<String, u64>| -> Vec<(String, u64)> {
        map.iter().map(|(name, count)| (name.clone(), *count)).collect()
    };
    names.extend(listed(&sum.by_type).into_iter().map(|(name, n)| (format!("type {name}"), n)));
    names.extend(listed(&sum.by_method));
    names.extend(sum.by_status.iter().map(|(status, count)| (status.to_string(), *count)));
    names.extend([
        ("in parts".to_owned(), sum.parts),
        ("coded".to_owned(), sum.coded),
        ("redirected".to_owned(), sum.redirected),
        ("after a login".to_owned(), sum.logged_in),
        ("refused".to_owned(), sum.refused),
        ("fault passed on".to_owned(), sum.faults_passed),
        ("fault hidden".to_owned(), sum.faults_hidden),
        ("broken off".to_owned(), sum.broken_off + sum.broken_off_by_origin),
    ]);
    names.retain(|(_, count)| *count > 0);
    let (x_names, values) = names.into_iter().map(|(name, count)| (name, Some(count as f64))).unzip();
    let about = "Responses of the whole run, by outcome, request type, method and status, and those that are more than a \
                 plain GET. A response is in several of these.";
    let line = ChartLine { x_names, ..ChartLine::new("responses", "all", values) };
    Chart {
        kind: ChartKind::Bars,
        ..time_chart(CLASSES, "classes", "Classes", "responses", about, vec![line])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_did_not_occur_has_no_bar_and_no_line() {
        let robots = RobotCounts {
            completed: 10,
            basic: 10,
            hits: 4,
            misses: 6,
            by_status: BTreeMap::from([(200, 10)]),
            ..RobotCounts::default()
        };
        let charts = charts(&[Step { robots, ..Step::default() }]);
        let bars = &charts[2].lines[0];
        assert_eq!(bars.x_names, ["hit", "miss", "200"]);
        assert_eq!(bars.values, [Some(4.0), Some(6.0), Some(10.0)]);
        assert!(super::charts(&[Step::default()]).is_empty());
    }
}
