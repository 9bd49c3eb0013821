//! Measurements of a step, and the same as a run that has nothing else in it.

use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_measurement::measured::{Measured, Series};
use assay_record::run::{PhaseInfo, RunInfo};

/// Measurements at one rate, or in some seconds of that.
#[derive(Debug)]
pub struct MeasurementWindow<'a> {
    pub robots: Vec<&'a RobotInterval>,
    pub origins: Vec<&'a OriginInterval>,
    /// Length in seconds.
    pub length_s: f64,
    /// Begin and end of its parts, in milliseconds since the start of the run; between two of them is something else.
    pub parts: Vec<(u64, u64)>,
    /// Everything that was measured meanwhile, before and after.
    pub beside: &'a [Measured],
    /// The run, with what disturbed the step in its verdict.
    pub run: &'a RunInfo,
}

impl MeasurementWindow<'_> {
    /// As a run whose phases are the parts of this stretch: how well its numbers are known follows from that as for any run.
    pub fn as_run(&self) -> (RunInfo, Series) {
        let mut series = Series::default();
        for measured in self.beside {
            if !matches!(measured, Measured::Robots(_) | Measured::Origins(_)) {
                series.take(measured.clone());
            }
        }
        let part_of = |at_ms: u64| {
            let within = |(from_ms, to_ms): &(u64, u64)| (*from_ms..*to_ms).contains(&at_ms);
            self.parts.iter().position(within).and_then(|index| u16::try_from(index).ok())
        };
        for interval in &self.robots {
            let Some(phase) = part_of(interval.start_ms) else { continue };
            series.robots.push(RobotInterval { phase, ..(*interval).clone() });
        }
        for interval in &self.origins {
            let Some(phase) = part_of(interval.start_ms) else { continue };
            series.origins.push(OriginInterval { phase, ..(*interval).clone() });
        }
        let phase = |(index, (from_ms, to_ms)): (usize, &(u64, u64))| {
            let of_it = series.robots.iter().filter(|interval| usize::from(interval.phase) == index);
            PhaseInfo {
                name: format!("part {}", index + 1),
                start_ms: Some(*from_ms),
                end_ms: Some(*to_ms),
                // Requests are due at set times, and do not wait for responses.
                expected_requests: Some(of_it.map(|interval| interval.counts.due as f64).sum()),
                ..PhaseInfo::default()
            }
        };
        let phases: Vec<PhaseInfo> = self.parts.iter().enumerate().map(phase).collect();
        let mut run = RunInfo { phases, ..self.run.clone() };
        // Nothing says which part it was.
        run.verdict.doubts.iter_mut().for_each(|doubt| doubt.phases.clear());
        (run, series)
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::health::Stall;

    use super::*;

    #[test]
    fn a_stretch_is_a_run_of_its_parts_alone() {
        let second = |start_ms, due| {
            let mut interval =
                RobotInterval { start_ms, length_ms: 1000, phase: 1, ..RobotInterval::default() };
            interval.counts.due = due;
            interval
        };
        let robots = [second(2000, 10), second(3000, 11), second(7000, 12)];
        let stall = Stall { at_ms: 2100, ..Stall::default() };
        let beside = [Measured::Robots(Box::new(second(0, 99))), Measured::Stall(Box::new(stall))];
        let run = RunInfo { own_errors: true, ..RunInfo::default() };
        let window = MeasurementWindow {
            robots: robots.iter().collect(),
            origins: Vec::new(),
            length_s: 3.0,
            parts: vec![(2000, 4000), (7000, 8000)],
            beside: &beside,
            run: &run,
        };
        let (run, series) = window.as_run();
        let spans: Vec<_> =
            run.phases.iter().map(|phase| (phase.start_ms, phase.end_ms, phase.expected_requests)).collect();
        assert_eq!(spans, [(Some(2000), Some(4000), Some(21.0)), (Some(7000), Some(8000), Some(12.0))]);
        assert!(run.own_errors && series.stalls.len() == 1);
        let phases: Vec<_> =
            series.robots.iter().map(|interval| (interval.start_ms, interval.phase)).collect();
        assert_eq!(phases, [(2000, 0), (3000, 0), (7000, 1)]);
    }
}
