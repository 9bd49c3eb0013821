//! The numbers of the summary can be found from the tables by hand.

use assay_measurement::histogram::Histogram;
use assay_report::summary::Summary;

use crate::synthetic::{self, Story};

#[test]
fn totals_are_the_sums_of_the_phases() {
    let summary = Summary::from_run(&synthetic::run(Story::Troubled).dir).unwrap();
    let sum = |pick: fn(&assay_report::summary::Figures) -> u64| -> u64 {
        summary.phases.iter().map(|phase| pick(&phase.figures)).sum()
    };
    assert_eq!(summary.total.counts.requests, sum(|f| f.counts.requests));
    assert_eq!(summary.total.counts.unsent, sum(|f| f.counts.unsent));
    assert_eq!(summary.total.errors.total, sum(|f| f.errors.total));
    assert_eq!(summary.total.response_time_ms.all.count, sum(|f| f.response_time_ms.all.count));
    assert_eq!(summary.total.origins.counts.requests, sum(|f| f.origins.counts.requests));
    let requests = summary.total.counts.requests + summary.total.counts.unsent;
    assert_eq!(requests, summary.total.counts.due);
    assert!(summary.total.counts.unsent > 0 && summary.total.errors.total > 0, "the story is not empty");
}

#[test]
fn rates_use_the_actual_length_of_a_phase() {
    let summary = Summary::from_run(&synthetic::run(Story::Good).dir).unwrap();
    let warm = &summary.phases[0];
    assert_eq!((warm.start_ms, warm.end_ms), (Some(0), Some(4250)));
    assert_eq!(warm.figures.duration_s, Some(4.25));
    let expected = warm.figures.counts.due as f64 / 4.25;
    assert!((warm.figures.rate.offered.unwrap() - expected).abs() < 0.001);
}

#[test]
fn percentiles_come_from_one_merged_histogram() {
    let run = synthetic::run(Story::Good);
    let summary = Summary::from_run(&run.dir).unwrap();
    let series = run.dir.read_series().unwrap();
    let mut merged = Histogram::new();
    for interval in series.robots.iter().filter(|interval| interval.phase == 3) {
        merged.merge_sparse(&interval.times.hit.response);
        merged.merge_sparse(&interval.times.miss.response);
        merged.merge_sparse(&interval.times.other.response);
    }
    let top1 = &summary.phases[3].figures.response_time_ms;
    let p99 = merged.quantile_us(0.99).map(|us| us as f64 / 1000.0);
    assert_eq!((top1.completed.p99, top1.completed.count), (p99, merged.count()));
    assert_eq!(top1.all, top1.completed, "all were sent, and all ended");
}

#[test]
fn measured_hits_leave_out_what_the_origins_validated() {
    let run = synthetic::run(Story::Troubled);
    let summary = Summary::from_run(&run.dir).unwrap();
    let series = run.dir.read_series().unwrap();
    let robots = |pick: fn(&assay_measurement::counts::RobotCounts) -> u64| -> u64 {
        series.robots.iter().map(|interval| pick(&interval.counts)).sum()
    };
    let validated: u64 = series.origins.iter().map(|interval| interval.counts.validated_basic).sum();
    assert!(validated > 0);
    let expected =
        (robots(|c| c.hits) + robots(|c| c.collapsed) - validated) as f64 / robots(|c| c.basic) as f64;
    assert!((summary.total.dhr.measured.unwrap() - expected).abs() < 1e-6);
    assert_eq!(summary.total.outcomes.revalidated, validated);
}
