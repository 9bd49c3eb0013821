//! Whether an experiment still gets results. Where run after run is disturbed so much that its headline numbers are unknown, more
//! of the same takes time and shows nothing.

use assay_measurement::doubt::{Doubt, Reason};

/// Fewer runs show nothing about the next one …
const FEWEST_RUNS: usize = 4;
/// … nor do the repetitions of fewer cells: one cell alone can be too much for this machine.
const FEWEST_CELLS: usize = 2;

/// The runs since the last one with a result.
#[derive(Debug)]
pub(super) struct Streak {
    /// Number of disturbed runs in a row that is too many.
    most: usize,
    /// Runs in all.
    all: usize,
    disturbed: Vec<Disturbed>,
}

/// A run whose headline numbers are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Disturbed {
    unknown: Vec<String>,
    /// Reason that left them unknown, and the role; none if nothing was found.
    by: Option<(Reason, String)>,
}

impl Streak {
    /// `retries`: how often a cell without a result is repeated.
    pub(super) fn new(retries: u32) -> Self {
        let tries = retries as usize + 1;
        Self { most: FEWEST_RUNS.max(FEWEST_CELLS * tries), all: 0, disturbed: Vec::new() }
    }

    /// A run had a result.
    pub(super) fn record_result(&mut self) {
        self.all += 1;
        self.disturbed.clear();
    }

    /// In a run, these headline numbers are unknown; `doubts` are worst first.
    pub(super) fn record_disturbed(&mut self, unknown: &[String], doubts: &[Doubt]) {
        self.all += 1;
        let by = worst(doubts).map(|doubt| (doubt.reason, doubt.role.clone()));
        self.disturbed.push(Disturbed { unknown: unknown.to_vec(), by });
    }

    /// Reason why there is no point in going on, with what to do; none: there is.
    pub(super) fn abort_reason(&self) -> Option<String> {
        (self.disturbed.len() >= self.most).then(|| self.describe())
    }

    fn describe(&self) -> String {
        let (runs, all) = (self.disturbed.len(), self.all);
        let first = if runs == all {
            format!("no result: {runs} of {all} runs were disturbed")
        } else {
            format!("no further result: the last {runs} of {all} runs were disturbed")
        };
        let unknown = counted(self.disturbed.iter().flat_map(|run| run.unknown.iter().cloned()));
        let unknown: Vec<String> = unknown.into_iter().map(|(name, _)| name).collect();
        let mut words = format!("{first}, and headline numbers are unknown ({})", unknown.join(", "));
        for (by, runs) in counted(self.disturbed.iter().map(|run| run.by.clone())) {
            words += &match by {
                None => format!("\n  {runs} ×: no reason was found; their reports show what there is"),
                Some((reason, role)) if role.is_empty() => {
                    format!("\n  {runs} × {}: {}", reason.name(), reason.advice())
                }
                Some((reason, role)) => {
                    format!("\n  {runs} × {} ({role}): {}", reason.name(), reason.advice())
                }
            };
        }
        words
    }
}

/// Doubt that explains best why numbers are unknown.
pub(super) fn worst(doubts: &[Doubt]) -> Option<&Doubt> {
    let serious = || doubts.iter().filter(|doubt| doubt.serious);
    // Of equal ones the first, which is the worst: `max_by_key` would give the last.
    serious().rev().max_by_key(|doubt| doubt.leaves_unknown()).or(doubts.first())
}

/// Each value once with how often it occurs, most frequent first.
fn counted<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts: Vec<(T, usize)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(reason: Reason, role: &str) -> Doubt {
        Doubt { role: role.into(), ..Doubt::serious(reason, "seen") }
    }

    fn disturbed(streak: &mut Streak, reasons: &[(Reason, &str)]) {
        let doubts: Vec<Doubt> = reasons.iter().map(|(reason, role)| doubt(*reason, role)).collect();
        streak.record_disturbed(&["rate".to_owned(), "p50(hit)".to_owned()], &doubts);
    }

    #[test]
    fn four_disturbed_runs_of_two_cells_in_a_row_are_enough_and_the_words_say_what_to_do() {
        let mut streak = Streak::new(1);
        for _ in 0..3 {
            disturbed(&mut streak, &[(Reason::Starved, "robots"), (Reason::SocketMemory, "")]);
            assert_eq!(streak.abort_reason(), None);
        }
        disturbed(&mut streak, &[(Reason::RoleFailed, "origins")]);
        let expected = "no result: 4 of 4 runs were disturbed, and headline numbers are unknown (rate, p50(hit))\n  \
                        3 × socket-memory: raise net.ipv4.tcp_mem, tcp_rmem and tcp_wmem, or have fewer connections\n  \
                        1 × role-failed (origins): read its own words in `roles/` of the run directory, and run again";
        assert_eq!(streak.abort_reason().as_deref(), Some(expected));
    }

    #[test]
    fn a_run_with_a_result_begins_anew_and_is_told() {
        let mut streak = Streak::new(0);
        (0..3).for_each(|_| disturbed(&mut streak, &[]));
        streak.record_result();
        (0..3).for_each(|_| disturbed(&mut streak, &[]));
        assert_eq!(streak.abort_reason(), None);
        disturbed(&mut streak, &[]);
        let words = streak.abort_reason().unwrap();
        assert!(words.starts_with("no further result: the last 4 of 8 runs were disturbed"), "{words}");
        assert!(words.contains("4 ×: no reason was found"), "{words}");
    }

    #[test]
    fn a_cell_that_may_be_repeated_often_does_not_end_the_experiment_alone() {
        let mut streak = Streak::new(5);
        (0..11).for_each(|_| disturbed(&mut streak, &[]));
        assert_eq!(streak.abort_reason(), None);
        disturbed(&mut streak, &[]);
        assert!(streak.abort_reason().is_some());
    }

    #[test]
    fn what_leaves_most_unknown_is_named_and_of_equal_ones_the_first() {
        let doubts = [doubt(Reason::Stalled, "robots"), doubt(Reason::Late, "robots")];
        assert_eq!(worst(&doubts).unwrap().reason, Reason::Stalled);
        let doubts = [doubt(Reason::Stalled, "robots"), doubt(Reason::LabFailed, "")];
        assert_eq!(worst(&doubts).unwrap().reason, Reason::LabFailed);
        assert_eq!(worst(&[]), None);
    }
}
