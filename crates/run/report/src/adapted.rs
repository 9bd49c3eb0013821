//! Decisions of load that adapts: a chart of those of thermostats and scripts, and a sentence for each phase.

use assay_measurement::adapted::{Adapted, Decided};

use crate::chart::{Chart, ChartLine, short, time_chart};
use crate::document::PhaseFigures;
use crate::format::{duration_s, number};

/// Kinds of decisions that are charted, each with its name and the colour of its line.
const KINDS: [(Decided, &str, &str); 2] =
    [(Decided::Load, "load factor", "all"), (Decided::Population, "share of robots alive", "origin")];

/// The load factor, and the share of robots alive, at the middle of each step of a chart; none: nothing of the kind was
/// decided.
pub(crate) fn chart(
    section: &'static str,
    phases: &[PhaseFigures],
    adapted: &[Adapted],
    time_s: &[f64],
) -> Option<Chart> {
    let lines: Vec<ChartLine> = KINDS
        .into_iter()
        .filter(|(kind, ..)| adapted.iter().any(|decision| decision.what == *kind))
        .map(|(kind, name, role)| {
            let values = time_s.iter().map(|at_s| value_at(kind, phases, adapted, at_s * 1000.0).map(short));
            let values = values.collect();
            ChartLine::new(name, role, values)
        })
        .collect();
    let about = "What thermostats and scripts decided, from when it took effect; a phase begins as planned.";
    (!lines.is_empty())
        .then(|| time_chart(section, "adapted", "Load that adapts", "of what is planned at 1", about, lines))
}

/// Value in force at an instant: that of the last decision in the phase, else the one that the phase began with.
fn value_at(kind: Decided, phases: &[PhaseFigures], adapted: &[Adapted], at_ms: f64) -> Option<f64> {
    let is_on = |phase: &PhaseFigures| {
        let (start, end) = (phase.start_ms, phase.end_ms);
        start.is_some_and(|start| start as f64 <= at_ms) && end.is_some_and(|end| at_ms < end as f64)
    };
    let phase = phases.iter().position(is_on)?;
    let of_phase = || adapted.iter().filter(|a| usize::from(a.phase) == phase && a.what == kind);
    let last = of_phase().rfind(|decision| decision.at_ms as f64 <= at_ms);
    let planned = || (kind == Decided::Load && of_phase().next().is_some()).then_some(phases[phase].load.0);
    last.map(|decision| decision.value).or_else(planned)
}

/// A sentence for each phase in which the load was moved.
pub(crate) fn sentences(phases: &[PhaseFigures], adapted: &[Adapted]) -> Vec<String> {
    let numbered = phases.iter().enumerate();
    numbered.filter_map(|(index, phase)| sentence(phase, &of_phase(adapted, index))).collect()
}

fn of_phase(adapted: &[Adapted], phase: usize) -> Vec<&Adapted> {
    adapted.iter().filter(|decision| usize::from(decision.phase) == phase).collect()
}

fn sentence(phase: &PhaseFigures, decisions: &[&Adapted]) -> Option<String> {
    let moved: Vec<String> = KINDS
        .into_iter()
        .filter_map(|(kind, name, _)| {
            let values: Vec<f64> = decisions.iter().filter(|a| a.what == kind).map(|a| a.value).collect();
            let last = values.last()?;
            let (low, high) =
                values.iter().fold((*last, *last), |(low, high), value| (low.min(*value), high.max(*value)));
            let times = if values.len() == 1 { "once".to_owned() } else { format!("{} times", values.len()) };
            let between = match low < high {
                true => format!("between {} and {}, at the end {}", number(low), number(high), number(*last)),
                false => format!("to {}", number(*last)),
            };
            Some(format!("the {name} was moved {times}, {between}"))
        })
        .collect();
    if moved.is_empty() {
        return None;
    }
    let end = decisions.iter().find(|decision| decision.what == Decided::End);
    let length = phase.start_ms.zip(phase.end_ms).map(|(start, end)| end.saturating_sub(start));
    let progress = end.zip(length).map(|(end, length_ms)| {
        let [schedule, real] = [end.schedule_ns as f64 / 1e9, length_ms as f64 / 1e3].map(duration_s);
        format!("; in {real} the phase went through {schedule} of its schedule")
    });
    Some(format!("Load adapted in {}: {}{}.", phase.name, moved.join("; "), progress.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Figures;

    fn phase(name: &str, start_ms: Option<u64>, end_ms: Option<u64>) -> PhaseFigures {
        PhaseFigures {
            name: name.into(),
            start_ms,
            end_ms,
            goal: String::new(),
            load: (1.0, 1.0),
            recurrence: (1.0, 1.0),
            disturbed: false,
            doubts: Vec::new(),
            figures: Figures::default(),
        }
    }

    fn decided(what: Decided, phase: u16, at_ms: u64, value: f64) -> Adapted {
        Adapted { what, phase, at_ms, value, schedule_ns: at_ms * 500_000, ..Adapted::default() }
    }

    #[test]
    fn what_was_decided_holds_until_the_next_decision_or_the_end_of_the_phase() {
        let phases = [
            phase("settle", Some(0), Some(4_000)),
            phase("after", Some(4_000), Some(6_000)),
            phase("never", None, None),
        ];
        let adapted = [
            decided(Decided::Load, 0, 1_000, 0.5),
            decided(Decided::Load, 0, 3_000, 0.75),
            decided(Decided::End, 0, 4_000, 0.0),
            decided(Decided::Print, 1, 5_000, 0.0),
        ];
        let time_s = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5];
        let chart = chart("Load", &phases, &adapted, &time_s).expect("something was decided");
        let values: Vec<_> = chart.lines.into_iter().map(|line| (line.name, line.values)).collect();
        let expected = vec![Some(1.0), Some(0.5), Some(0.5), Some(0.75), None, None, None];
        assert_eq!(values, [("load factor".to_owned(), expected)]);
        assert_eq!(
            sentences(&phases, &adapted),
            [
                "Load adapted in settle: the load factor was moved 2 times, between 0.500 and 0.750, at the end 0.750; \
              in 4.00 s the phase went through 2.00 s of its schedule."
            ]
        );
    }

    #[test]
    fn a_run_that_follows_its_schedule_has_nothing_of_this() {
        let phases = [phase("only", Some(0), Some(1_000))];
        let adapted = [decided(Decided::Print, 0, 500, 0.0), decided(Decided::End, 0, 1_000, 0.0)];
        assert!(chart("Load", &phases, &adapted, &[0.5]).is_none());
        assert!(sentences(&phases, &adapted).is_empty());
    }

    #[test]
    fn one_decision_about_robots_has_one_value() {
        let adapted = [decided(Decided::Population, 0, 500, 0.25)];
        let phases = [phase("only", Some(0), None)];
        let said = sentences(&phases, &adapted);
        assert_eq!(said, ["Load adapted in only: the share of robots alive was moved once, to 0.250."]);
    }
}
