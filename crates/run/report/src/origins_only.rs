//! The verdict of a part of a run that has origins and no robots. It says what reached these origins; what was sent, whether the
//! target kept up and what it spared them are known where the robots are.

use crate::document::{Finding, Mood, Summary, Topic};
use crate::figure_text::time;
use crate::format::{count, duration_s, number, share};
use crate::own;
use crate::text::{finding, rehearsed};

/// Whether the run had origins only.
pub(crate) fn is_origins_only(summary: &Summary) -> bool {
    summary.workload_info.robots == 0 && summary.proxy == "origins"
}

/// Verdict of such a part.
pub(crate) fn verdict(summary: &Summary) -> Vec<Finding> {
    vec![received(summary), speed(summary), correctness(summary), own::text::trust(summary)]
}

fn received(summary: &Summary) -> Finding {
    let total = &summary.total;
    let length = total.duration_s.map_or_else(String::new, |s| format!(" in {}", duration_s(s)));
    let rate = total.origins.rate.map_or_else(String::new, |rate| format!(", {} per second", number(rate)));
    let scale = rehearsed(summary.workload_info.scale).map_or_else(String::new, |text| format!(", {text}"));
    let text = format!(
        "{} requests reached these origins{length}{rate} (workload {}{scale}).",
        count(total.origins.counts.requests),
        summary.workload
    );
    finding(Topic::Test, Mood::Plain, text)
}

fn speed(summary: &Summary) -> Finding {
    let times = &summary.total.origins.service_time_ms;
    let (Some(median), Some(p99)) = (times.figure("p50"), times.figure("p99")) else {
        return finding(Topic::Speed, Mood::Doubtful, "No request came, so nothing can be said about speed.");
    };
    let text = format!(
        "From a request to its response, think time included, they took {} at the median and {} at the 99th percentile.",
        time(median),
        time(p99)
    );
    finding(Topic::Speed, Mood::Plain, text)
}

fn correctness(summary: &Summary) -> Finding {
    let counts = &summary.total.origins.counts;
    let wrong =
        [(counts.refused, "were not HTTP or not for this workload"), (counts.broken, "ended in the middle")];
    let wrong: Vec<String> = wrong
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} ({}) {what}", count(*number), share(*number, counts.requests)))
        .collect();
    if wrong.is_empty() {
        let text = "All of these requests were for objects of this workload; robots check what became of the responses.";
        return finding(Topic::Correctness, Mood::Good, text);
    }
    finding(Topic::Correctness, Mood::Bad, format!("Of these requests, {}.", wrong.join(", and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(requests: u64, refused: u64, broken: u64) -> Summary {
        let mut summary = Summary { proxy: "origins".into(), ..Summary::default() };
        let counts = &mut summary.total.origins.counts;
        (counts.requests, counts.refused, counts.broken) = (requests, refused, broken);
        summary
    }

    #[test]
    fn requests_that_were_refused_or_broken_off_are_not_called_right() {
        let mood = |summary: &Summary| correctness(summary).mood;
        assert!(is_origins_only(&summary(10, 0, 0)));
        assert_eq!(mood(&summary(10, 0, 0)), Mood::Good);
        assert_eq!(mood(&summary(10, 1, 0)), Mood::Bad);
        assert_eq!(mood(&summary(10, 0, 1)), Mood::Bad);
        assert_eq!(speed(&summary(0, 0, 0)).mood, Mood::Doubtful);
    }

    #[test]
    fn a_run_with_robots_is_judged_by_what_they_saw() {
        let mut whole = summary(10, 0, 0);
        whole.workload_info.robots = 1;
        assert!(!is_origins_only(&whole));
    }
}
