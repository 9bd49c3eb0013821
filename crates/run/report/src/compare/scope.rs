//! The stretches of a schedule that runs are judged by: phases, and all of them together.

use assay_record::run::PhaseInfo;

/// A stretch of the schedule: one phase, or all that are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub name: String,
    /// Indices of its phases.
    pub phases: Vec<usize>,
    /// Subjects are judged by it: it has a row in the table of scenarios.
    pub judged: bool,
}

/// Name of the scope of all measured phases.
pub const WHOLE: &str = "whole run";
/// Share of the measured time from which on a phase is judged by itself, where none is marked as primary.
const JUDGED_SHARE: f64 = 0.2;
/// A phase in which so much less is requested again than in others fills the cache, and is not judged by itself.
const FILLING: f64 = 0.5;

/// The stretches of a schedule: each phase that belongs into the statistics, and all of them together. Judged are those
/// that the workload marks as primary; where it marks none, those that take most of the time.
pub fn scopes(phases: &[PhaseInfo]) -> Vec<Scope> {
    let of = |wanted: fn(&PhaseInfo) -> bool| -> Vec<usize> {
        (0..phases.len()).filter(|index| wanted(&phases[*index])).collect()
    };
    let (primary, mut measured) = (of(|phase| phase.primary), of(|phase| phase.log_stats || phase.primary));
    if measured.is_empty() {
        measured = of(|_| true);
    }
    let length = |index: usize| -> f64 {
        let phase = &phases[index];
        let planned = phase.planned_end_ms.zip(phase.planned_start_ms);
        let known = planned.or(phase.end_ms.zip(phase.start_ms));
        known.map_or(0.0, |(end, start)| end.saturating_sub(start) as f64)
    };
    let recurrence = |index: usize| (phases[index].recurrence.0 + phases[index].recurrence.1) / 2.0;
    let most = measured.iter().map(|index| recurrence(*index)).fold(0.0, f64::max);
    let total: f64 = measured.iter().map(|index| length(*index)).sum();
    let judged = |index: usize| match primary.is_empty() {
        false => primary.contains(&index),
        true => length(index) >= total * JUDGED_SHARE && recurrence(index) >= most * FILLING,
    };
    let alone = measured.len() == 1;
    let mut scopes: Vec<Scope> = measured
        .iter()
        .map(|index| Scope {
            name: phases[*index].name.clone(),
            phases: vec![*index],
            judged: alone || (total > 0.0 && judged(*index)),
        })
        .collect();
    if !alone && !measured.is_empty() {
        let judged = !scopes.iter().any(|scope| scope.judged);
        let phases = if primary.is_empty() { measured } else { primary };
        if phases.len() > 1 {
            scopes.push(Scope { name: WHOLE.to_owned(), phases, judged });
        }
    }
    scopes
}

/// Name of a scope beside its workload.
pub fn scope_title(scope: &str) -> String {
    if scope == WHOLE { scope.to_owned() } else { format!("phase {scope}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(name: &str, seconds: u64, log_stats: bool, primary: bool, recurrence: f64) -> PhaseInfo {
        PhaseInfo {
            name: name.into(),
            planned_start_ms: Some(0),
            planned_end_ms: Some(seconds * 1000),
            log_stats,
            primary,
            recurrence: (recurrence, recurrence),
            load: (1.0, 1.0),
            ..PhaseInfo::default()
        }
    }

    fn judged(scopes: &[Scope]) -> Vec<&str> {
        scopes.iter().filter(|scope| scope.judged).map(|scope| scope.name.as_str()).collect()
    }

    #[test]
    fn subjects_are_judged_by_primary_phases_or_else_by_those_that_take_most_of_the_time() {
        let mut phases = vec![
            phase("warm", 300, false, false, 1.0),
            phase("fill", 4000, true, false, 0.05),
            phase("link", 300, true, false, 1.0),
            phase("top1", 3600, true, false, 1.0),
            phase("inc", 6000, true, false, 1.0),
            phase("top2", 600, true, false, 1.0),
        ];
        let found = scopes(&phases);
        assert_eq!(judged(&found), ["top1", "inc"], "as the study of 2012 did");
        assert_eq!(
            found.last().unwrap(),
            &Scope { name: WHOLE.into(), phases: vec![1, 2, 3, 4, 5], judged: false }
        );
        phases[5].primary = true;
        let found = scopes(&phases);
        assert_eq!(judged(&found), ["top2"]);
        assert_eq!(found.len(), 5, "the only primary phase is the whole");
    }

    #[test]
    fn the_whole_is_judged_where_no_phase_stands_out() {
        let phases: Vec<_> = (0..8).map(|n| phase(&n.to_string(), 10, true, false, 1.0)).collect();
        assert_eq!(judged(&scopes(&phases)), [WHOLE]);
        assert_eq!(judged(&scopes(&phases[..1])), ["0"]);
        assert!(scopes(&[]).is_empty());
        let unknown = PhaseInfo { name: "x".into(), log_stats: true, ..PhaseInfo::default() };
        assert_eq!(judged(&scopes(&[unknown.clone(), unknown])), [WHOLE], "lengths are not known");
    }
}
