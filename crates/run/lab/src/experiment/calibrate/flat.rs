//! A workload at one steady load. Its schedule is replaced: a short rise, then one flat phase.

use std::time::Duration;

use assay_workload::model::{Goal, Phase, Ramp, Schedule, Server, WorkingSet, Workload};
use assay_workload::timeline::{ScheduleError, Timeline};

/// Index of the flat phase, which is the one that counts.
pub const FLAT_PHASE: u16 = 1;

/// Think times and sizes of so many deviations (or means) are waited for.
const DEVIATIONS: f64 = 6.0;
/// The least that loopback carries for one of many connections.
const SLOWEST_BYTES_PER_S: f64 = 1e8;
/// Additional time that a response may take.
const TIMEOUT_S: f64 = 0.5;

/// Moment of the workload's schedule at which the request rate is highest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakLoad {
    /// Requests per second; none: as many as the target completes (some robot is best effort).
    pub requests_per_s: Option<f64>,
    load: f64,
    /// Factors of the phase there.
    recurrence: f64,
    population: f64,
    special: f64,
}

impl PeakLoad {
    /// Finds it: the phase with the highest rate, and the end of it where load and population are highest.
    pub fn of(workload: &Workload) -> Result<Self, ScheduleError> {
        let timeline = Timeline::new(workload)?;
        let weight = |phase: &Phase, end: fn(Ramp) -> f64| end(phase.load) * end(phase.population);
        let weight_of = |phase: &Phase| weight(phase, |r| r.begin).max(weight(phase, |r| r.end));
        let phases = timeline.phases().iter().zip(&workload.schedule.phases);
        let busiest = phases.max_by(|(a_span, a), (b_span, b)| {
            let rate = |span: &assay_workload::PhaseSpan, phase: &Phase| {
                span.expected.map_or_else(|| weight_of(phase), |expected| expected.peak_request_rate)
            };
            rate(a_span, a).total_cmp(&rate(b_span, b))
        });
        let Some((span, phase)) = busiest else { return Err(ScheduleError::Empty) };
        let end: fn(Ramp) -> f64 = if weight(phase, |r| r.begin) > weight(phase, |r| r.end) {
            |ramp| ramp.begin
        } else {
            |ramp| ramp.end
        };
        Ok(Self {
            requests_per_s: span.expected.map(|expected| expected.peak_request_rate),
            load: end(phase.load),
            recurrence: end(phase.recurrence),
            population: end(phase.population),
            special: end(phase.special),
        })
    }

    /// The load factor there.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// A phase with the factors of that moment, whose load, length and name are for the caller to fill in.
    pub fn phase(&self) -> Phase {
        let level = |value: f64| Ramp { begin: value, end: value };
        Phase {
            recurrence: level(self.recurrence),
            population: level(self.population),
            special: level(self.special),
            log_stats: true,
            ..Phase::default()
        }
    }
}

/// The workload at `multiple` times its peak load: a rise of `rise`, then `length` at that load.
pub fn flat(
    workload: &Workload,
    peak: &PeakLoad,
    multiple: f64,
    rise: Duration,
    length: Duration,
) -> Workload {
    let phase = |name: &str, duration: Duration, begin: f64| Phase {
        name: name.into(),
        goal: Goal { duration: Some(duration), ..Goal::default() },
        load: Ramp { begin, end: peak.load * multiple },
        ..peak.phase()
    };
    let phases = vec![phase("warm", rise, 0.0), phase("steady", length, peak.load * multiple)];
    Workload { schedule: Schedule { phases, working_set: WorkingSet::Grows }, ..workload.clone() }
}

/// Time that a response of the origins may take when nothing is in its way: thought, and sent. A robot that waits longer for it
/// waits for Assay.
pub fn longest_response(workload: &Workload) -> Option<Duration> {
    let deliberate =
        |server: &Server| server.faults.slow_start_share > 0.0 || server.faults.slow_body_share > 0.0;
    if workload.servers.iter().any(deliberate) {
        return None;
    }
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let thinks = workload.servers.iter().filter_map(|server| server.think_s.as_ref());
    let think_s = most(&mut thinks.map(|think| think.mean() + DEVIATIONS * think.deviation()));
    let bytes = most(&mut workload.contents.iter().map(|content| content.size_bytes.mean_count()));
    Duration::try_from_secs_f64(think_s + DEVIATIONS * bytes / SLOWEST_BYTES_PER_S + TIMEOUT_S).ok()
}

#[cfg(test)]
mod tests {
    use assay_workload::model::{Distribution, Pace};

    use super::*;
    use crate::testing;

    /// Half load, then a ramp up to full load with all robots, then little.
    fn workload() -> Workload {
        let mut workload = testing::workload();
        let mut ramp = testing::phase("ramp", 2);
        ramp.load = Ramp { begin: 0.5, end: 2.0 };
        ramp.recurrence = Ramp { begin: 0.2, end: 0.8 };
        let mut cool = testing::phase("cool", 2);
        cool.load = Ramp { begin: 0.1, end: 0.0 };
        workload.schedule.phases = vec![testing::phase("warm", 2), ramp, cool];
        workload.schedule.working_set = WorkingSet::FrozenAfter(Duration::from_secs(1));
        workload
    }

    #[test]
    fn the_peak_is_where_most_requests_are_due() {
        let peak = PeakLoad::of(&workload()).unwrap();
        assert_eq!((peak.load, peak.recurrence), (2.0, 0.8));
        assert!((peak.requests_per_s.unwrap() - 20.0).abs() < 1e-9, "{peak:?}");
    }

    #[test]
    fn a_multiple_of_the_peak_is_offered_all_through_the_flat_phase() {
        let workload = workload();
        let peak = PeakLoad::of(&workload).unwrap();
        let flat = flat(&workload, &peak, 3.0, Duration::from_secs(1), Duration::from_secs(4));
        let timeline = Timeline::new(&flat).unwrap();
        let expected = timeline.phases()[usize::from(FLAT_PHASE)].expected.unwrap();
        assert!((expected.requests - 4.0 * 60.0).abs() < 1e-6, "{expected:?}");
        assert_eq!(timeline.total(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn responses_are_waited_for_as_long_as_origins_think_and_a_little_more() {
        let mut workload = workload();
        workload.servers[0].think_s = Some(Distribution::Normal { mean: 2.5, deviation: 0.5 });
        let longest = longest_response(&workload).unwrap();
        assert!(longest > Duration::from_secs(6) && longest < Duration::from_secs(7), "{longest:?}");
        workload.servers[0].faults.slow_start_share = 0.1;
        assert_eq!(longest_response(&workload), None);
    }

    #[test]
    fn best_effort_robots_have_no_rate_and_still_a_flat_phase() {
        let mut workload = workload();
        workload.robots[0].pace = Pace::BestEffort;
        let peak = PeakLoad::of(&workload).unwrap();
        assert_eq!(peak.requests_per_s, None);
        let flat = flat(&workload, &peak, 1.0, Duration::from_secs(1), Duration::from_secs(4));
        assert_eq!(Timeline::new(&flat).unwrap().total(), Some(Duration::from_secs(5)));
    }
}
