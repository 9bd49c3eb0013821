//! Findings of phases, merged to one doubt per reason and role.

use assay_measurement::doubt::{Doubt, Reason};
use assay_record::run::PhaseInfo;

/// A disturbance of a phase, or of the run as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub reason: Reason,
    /// True if the phase is disturbed; otherwise the finding is only worth knowing.
    pub serious: bool,
    /// Name of the role; empty for the machine.
    pub role: &'static str,
    /// Index of the phase; none for the run as a whole.
    pub phase: Option<u16>,
    /// Severity, comparable among findings of a reason.
    pub weight: f64,
    /// Time of the worst.
    pub at_ms: Option<u64>,
    /// Observation, as text.
    pub seen: String,
}

/// Doubts, worst first: the serious ones in the order of reasons, then those worth knowing. Findings of several phases become
/// one doubt with the text of the worst.
pub fn doubts(findings: Vec<Finding>, phases: &[PhaseInfo]) -> Vec<Doubt> {
    let mut groups: Vec<Vec<Finding>> = Vec::new();
    for finding in findings {
        let same =
            |group: &&mut Vec<Finding>| group[0].reason == finding.reason && group[0].role == finding.role;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    let mut doubts: Vec<Doubt> =
        groups.into_iter().filter_map(|group| merge_findings(group, phases)).collect();
    sort(&mut doubts);
    doubts
}

pub fn sort(doubts: &mut [Doubt]) {
    doubts.sort_by_key(|doubt| (!doubt.serious, doubt.reason));
}

/// Merges findings of one reason and role. If any is serious, the others are dropped.
fn merge_findings(mut group: Vec<Finding>, phases: &[PhaseInfo]) -> Option<Doubt> {
    let serious = group.iter().any(|finding| finding.serious);
    group.retain(|finding| finding.serious == serious);
    let worst = group.iter().max_by(|a, b| a.weight.total_cmp(&b.weight))?;
    let touched: Vec<u16> = group.iter().filter_map(|finding| finding.phase).collect();
    let mut seen = worst.seen.clone();
    if let Some(phase) = worst.phase {
        let name = |index: u16| phases.get(usize::from(index)).map_or("?", |phase| phase.name.as_str());
        seen = format!("in phase {}, {seen}", name(phase));
        let others: Vec<String> = group
            .iter()
            .filter_map(|other| Some((other.phase.filter(|index| *index != phase)?, other.at_ms)))
            .map(|(index, at_ms)| match at_ms {
                Some(at_ms) => format!("{} at {:.3} s", name(index), at_ms as f64 / 1e3),
                None => name(index).to_owned(),
            })
            .collect();
        match others.len() {
            0 => {}
            1..=3 => seen = format!("{seen} (also in {})", others.join(", ")),
            many => seen = format!("{seen} (also in {many} other phases)"),
        }
    }
    Some(Doubt {
        serious,
        phases: touched,
        role: worst.role.to_owned(),
        at_ms: worst.at_ms,
        ..Doubt::worth_knowing(worst.reason, seen)
    })
}

/// A duration in a fitting unit.
pub fn format_time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

/// A share as a percentage.
pub fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1.0 { format!("{percent:.2} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(reason: Reason, serious: bool, phase: u16, weight: f64) -> Finding {
        let seen = format!("{weight} was seen");
        Finding { reason, serious, role: "robots", phase: Some(phase), weight, at_ms: Some(7), seen }
    }

    fn phases() -> Vec<PhaseInfo> {
        ["a", "b", "c"].map(|name| PhaseInfo { name: name.into(), ..PhaseInfo::default() }).into()
    }

    #[test]
    fn a_reason_is_told_once_in_the_words_of_the_worst() {
        let found =
            [(0, 1.0), (1, 3.0), (2, 2.0)].map(|(phase, weight)| finding(Reason::Late, true, phase, weight));
        let doubts = doubts(found.into(), &phases());
        assert_eq!(doubts.len(), 1);
        assert_eq!(doubts[0].seen, "in phase b, 3 was seen (also in a at 0.007 s, c at 0.007 s)");
        assert_eq!((doubts[0].phases.as_slice(), doubts[0].at_ms), ([0, 1, 2].as_slice(), Some(7)));
    }

    #[test]
    fn what_is_serious_comes_first_and_covers_what_is_worth_knowing() {
        let found = vec![
            finding(Reason::Stalled, false, 0, 9.0),
            finding(Reason::Late, false, 0, 9.0),
            finding(Reason::Late, true, 1, 1.0),
        ];
        let doubts = doubts(found, &phases());
        let summaries: Vec<_> =
            doubts.iter().map(|doubt| (doubt.reason, doubt.serious, doubt.phases.clone())).collect();
        assert_eq!(summaries, [(Reason::Late, true, vec![1]), (Reason::Stalled, false, vec![0])]);
    }

    #[test]
    fn times_and_shares_have_units() {
        assert_eq!(
            [format_time(999), format_time(1_500), format_time(2_500_000)],
            ["999 µs", "1.5 ms", "2.50 s"]
        );
        assert_eq!([format_percent(0.005), format_percent(0.951)], ["0.50 %", "95 %"]);
    }
}
