//! What would have been measured had every response come sooner by the most that Assay was late. Counts stay as they are.
//! No time is disturbed any more: what was taken off all of them is more than any single one was delayed.

use assay_measurement::histogram::SparseHistogram;
use assay_measurement::interval::{Disturbed, OriginInterval, RobotInterval, Times};

/// Takes so much off all times; none becomes less than nothing.
fn all(times: &SparseHistogram, late_us: u64) -> SparseHistogram {
    let mut sooner =
        SparseHistogram { max_us: times.max_us.saturating_sub(late_us), ..SparseHistogram::default() };
    let mut taken_us: u64 = 0;
    for &(us, count) in &times.buckets {
        taken_us = taken_us.saturating_add(us.min(late_us).saturating_mul(count));
        let us = us.saturating_sub(late_us);
        match sooner.buckets.last_mut() {
            Some(last) if last.0 == us => last.1 += count,
            _ => sooner.buckets.push((us, count)),
        }
    }
    sooner.sum_us = times.sum_us.saturating_sub(taken_us);
    sooner
}

fn times(of: &Times, late_us: u64) -> Times {
    Times {
        response: all(&of.response, late_us),
        service: all(&of.service, late_us),
        ttfb: all(&of.ttfb, late_us),
        disturbed: Disturbed::default(),
    }
}

/// The robots' side.
pub(super) fn robots(interval: &RobotInterval, late_us: u64) -> RobotInterval {
    RobotInterval {
        hit: times(&interval.hit, late_us),
        miss: times(&interval.miss, late_us),
        other: times(&interval.other, late_us),
        timed_out: times(&interval.timed_out, late_us),
        unsent_wait: all(&interval.unsent_wait, late_us),
        ..interval.clone()
    }
}

/// The origins' side.
pub(super) fn origins(interval: &OriginInterval, late_us: u64) -> OriginInterval {
    OriginInterval { service: all(&interval.service, late_us), ..interval.clone() }
}

#[cfg(test)]
mod tests {
    use assay_measurement::histogram::Histogram;
    use assay_measurement::interval::Disturbance;

    use super::*;

    #[test]
    fn every_histogram_but_that_of_lateness_itself_is_taken_from_and_nothing_stays_disturbed() {
        let mut once = Histogram::new();
        once.record(5_000);
        let once = once.to_sparse();
        let class = || Times {
            response: once.clone(),
            service: once.clone(),
            ttfb: once.clone(),
            disturbed: Disturbed {
                response: Disturbance { seen: once.clone(), least: once.clone() },
                ..Disturbed::default()
            },
        };
        let interval = RobotInterval {
            hit: class(),
            miss: class(),
            other: class(),
            timed_out: class(),
            lateness: once.clone(),
            unsent_wait: once.clone(),
            ..RobotInterval::default()
        };
        let sooner = robots(&interval, 1_000);
        for (metric, class, times) in sooner.histograms().filter(|(_, _, times)| !times.buckets.is_empty()) {
            let wanted = if metric == "lateness" { 5_000 } else { 4_000 };
            assert_eq!(times.max_us, wanted, "{metric} {class}");
        }
        assert!(sooner.hit.disturbed.is_empty() && sooner.timed_out.disturbed.is_empty());
    }

    #[test]
    fn every_time_is_shorter_and_none_less_than_nothing() {
        let mut once = Histogram::new();
        [100, 200, 5_000, 70_000].iter().for_each(|us| once.record(*us));
        let mut again = Histogram::new();
        again.merge_sparse(&all(&once.to_sparse(), 1_000));
        assert_eq!((again.count(), again.max_us()), (4, Some(69_000)));
        assert_eq!(again.quantile_us(0.5), Some(0));
        assert!(
            (again.mean_us().unwrap() - (4_000.0 + 69_000.0) / 4.0).abs() < 50.0,
            "{:?}",
            again.mean_us()
        );
    }
}
