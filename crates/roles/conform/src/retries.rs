//! What the tries of a case come to: whether it is tried again, and the outcome that is reported.
//!
//! A try that holds settles a case, one that does not is repeated under better conditions. Tries that disagree are the interesting ones: a
//! requirement that holds sometimes does not hold, so that such a case is tried often enough to say how often, and neither result is dropped.

use std::rc::Rc;

use crate::case::Case;
use crate::run::Outcome;
use crate::verdict::{Judgement, TryCounts, Verdict};

/// Most tries of a case whose tries do not contradict each other.
const MAX_TRIES: usize = 3;
/// Tries of a case that are counted once two of them contradict each other.
const COUNTED_TRIES: usize = 12;
/// Tries of such a case in quiet, at least.
const MIN_QUIET_TRIES: usize = 2;

/// Number of tries of a case whose tries contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contradiction {
    /// Until it can be said how often it holds.
    Counted,
    /// Most of three tries decide: the caller tries the case over and over, and counts by itself.
    Outvoted,
}

/// The tries of a case, in order.
#[derive(Default)]
pub(crate) struct CaseTries {
    /// Tries of the first round, beside all other cases.
    pub crowded: Vec<Outcome>,
    /// Tries of later rounds, with longer pauses and less beside them.
    pub quiet: Vec<Outcome>,
}

impl CaseTries {
    fn all(&self) -> impl DoubleEndedIterator<Item = &Outcome> {
        self.crowded.iter().chain(&self.quiet)
    }

    /// Counts of tries by result. An absence, or a refetch, in the crowd that never occurred in quiet is a statement
    /// about the crowd: such tries are not counted.
    fn times(&self) -> TryCounts {
        let quiet = counted(self.quiet.iter());
        if quiet.held >= MIN_QUIET_TRIES && quiet.unheld == 0 {
            let is_told = |outcome: &&Outcome| holds(outcome) != Some(false) || !outcome.judgement.is_absence;
            return quiet + counted(self.crowded.iter().filter(is_told));
        }
        quiet + counted(self.crowded.iter())
    }

    /// The case, and how many times it is to be tried in the next round; none: it is settled.
    pub fn next(&self, contradiction: Contradiction) -> Option<(Rc<Case>, usize)> {
        let missing = self.missing(contradiction);
        let first = self.all().next().filter(|_| missing > 0)?;
        Some((Rc::clone(&first.case), missing))
    }

    fn missing(&self, contradiction: Contradiction) -> usize {
        let times = self.times();
        let count = self.crowded.len() + self.quiet.len();
        if times.contradict() {
            return match contradiction {
                Contradiction::Counted => self.missing_to_count(times),
                Contradiction::Outvoted if times.held == times.unheld => MAX_TRIES.saturating_sub(count),
                Contradiction::Outvoted => 0,
            };
        }
        let mut last = self.all().map(|outcome| &outcome.judgement);
        let is_same = match (last.next_back(), last.next_back()) {
            // The same happens each time: once more would tell nothing new.
            (Some(last), Some(before)) => last == before,
            _ => false,
        };
        let is_doubtful = count == 1 && self.all().all(|outcome| outcome.judgement.is_doubtful);
        let is_settled = is_same || times.unheld > 1 || (times.held > 0 && !is_doubtful);
        usize::from(!is_settled && count < MAX_TRIES.max(self.crowded.len() + 2))
    }

    /// Tries that are missing: in quiet for what failed in the crowd alone, otherwise up to the number that is
    /// counted.
    fn missing_to_count(&self, times: TryCounts) -> usize {
        let in_quiet = MIN_QUIET_TRIES.saturating_sub(self.quiet.len());
        let is_of_crowd = |outcome: &Outcome| holds(outcome) != Some(false) || outcome.judgement.is_absence;
        let is_settled_in_quiet = self.crowded.iter().all(is_of_crowd)
            && self.quiet.iter().all(|outcome| holds(outcome) == Some(true));
        if in_quiet > 0 && is_settled_in_quiet {
            return in_quiet;
        }
        COUNTED_TRIES.saturating_sub(times.held + times.unheld).max(in_quiet)
    }

    /// The outcome that is reported: with the exchanges of a try that did not hold, where there is one.
    pub fn decided(self, contradiction: Contradiction) -> Option<Outcome> {
        let times = self.times();
        let tries = self.crowded.len() + self.quiet.len();
        let is_wanted = |wanted: Option<bool>| self.all().rfind(|outcome| holds(outcome) == wanted);
        let is_outvoted = contradiction == Contradiction::Outvoted && times.held != times.unheld;
        let mut outcome = match (times.held, times.unheld) {
            (0, 0) => self.all().last(),
            (held, unheld) if is_outvoted => is_wanted(Some(held > unheld)),
            (_, 0) => is_wanted(Some(true)),
            _ => is_wanted(Some(false)),
        }?
        .clone();
        if times.contradict() && !is_outvoted {
            let (held, all) = (times.held, times.held + times.unheld);
            let reason = outcome.judgement.reason;
            outcome.judgement = match contradiction {
                Contradiction::Counted => Judgement::new(
                    Verdict::Sometimes,
                    format!("it held in {held} of {all} tries; otherwise {reason}"),
                ),
                Contradiction::Outvoted => {
                    Judgement::new(Verdict::Inconclusive, format!("{tries} tries disagree: {reason}"))
                }
            };
        }
        outcome.tries = tries;
        outcome.times = times;
        Some(outcome)
    }
}

/// Whether a try held; none: it says nothing.
fn holds(outcome: &Outcome) -> Option<bool> {
    let verdict = outcome.judgement.verdict;
    verdict.is_decided().then(|| verdict.holds())
}

fn counted<'o>(tries: impl Iterator<Item = &'o Outcome>) -> TryCounts {
    tries.fold(TryCounts::default(), |times, outcome| times + TryCounts::of(outcome.judgement.verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+` holds, `-` does not, `r` misses what was to come, `?` says nothing, `d` holds because a connection ended.
    fn outcome(letter: char) -> Outcome {
        let verdict = match letter {
            '+' | 'd' => Verdict::Pass,
            '-' | 'r' => Verdict::Fail,
            _ => Verdict::Inconclusive,
        };
        let mut judgement = Judgement::new(verdict, format!("seen {letter}"));
        judgement.is_absence = letter == 'r';
        judgement.is_doubtful = letter == 'd';
        let text = "topic = \"t\"\n[[case]]\nname = \"a\"\nlevel = \"MUST\"\nsection = \"x\"\nrule = \"r\"\n\
            steps = [{ expect = { status = 200 } }]\n";
        let case = Rc::new(crate::read::read("t.toml", text).unwrap().cases.remove(0));
        Outcome { case, judgement, observations: Vec::new(), tries: 1, times: TryCounts::of(verdict) }
    }

    fn tries(crowded: &str, quiet: &str) -> CaseTries {
        let all = |text: &str| text.chars().map(outcome).collect();
        CaseTries { crowded: all(crowded), quiet: all(quiet) }
    }

    fn next(crowded: &str, quiet: &str) -> usize {
        tries(crowded, quiet).next(Contradiction::Counted).map_or(0, |(_, times)| times)
    }

    fn decided(crowded: &str, quiet: &str) -> (Verdict, String) {
        let outcome = tries(crowded, quiet).decided(Contradiction::Counted).unwrap();
        (outcome.judgement.verdict, outcome.judgement.reason)
    }

    #[test]
    fn a_case_that_holds_is_tried_once_and_one_that_does_not_is_repeated() {
        assert_eq!([next("+", ""), next("-", ""), next("?", ""), next("d", "")], [0, 1, 1, 1]);
        assert_eq!([next("-", "-"), next("?", "?"), next("d", "d"), next("d", "+")], [0, 0, 0, 0]);
        assert_eq!([next("-", "?"), next("-", "??"), next("?", "-"), next("?", "-?")], [1, 0, 1, 0]);
        assert_eq!([next("++++++", ""), next("------", ""), next("??????", "")], [0, 0, 0]);
        assert_eq!(decided("-", "?").0, Verdict::Fail);
        assert_eq!(decided("?", "+").0, Verdict::Pass);
        assert_eq!(decided("?", "?").0, Verdict::Inconclusive);
    }

    #[test]
    fn tries_that_contradict_each_other_are_counted_and_neither_is_dropped() {
        assert_eq!([next("-", "+"), next("d", "-"), next("-", "+++++")], [10, 10, 6]);
        assert_eq!([next("-", "+++++++++++"), next("-", "+++++++++?+")], [0, 1]);
        let (verdict, reason) = decided("-", "+++++++++++");
        assert_eq!((verdict, &*reason), (Verdict::Sometimes, "it held in 11 of 12 tries; otherwise seen -"));
        assert_eq!(decided("----------+", "--").0, Verdict::Sometimes);
        // However many tries there were in the crowd, some in quiet are among those that are counted.
        assert_eq!([next("++++++++++++++++++-", ""), next("++++++++++++++++++-", "+")], [2, 1]);
        assert_eq!(next("++++++++++++++++++-", "++"), 0);
    }

    #[test]
    fn what_did_not_come_in_the_crowd_alone_is_no_contradiction() {
        assert_eq!([next("r", ""), next("r", "+"), next("r", "++"), next("r", "r")], [1, 1, 0, 0]);
        assert_eq!([decided("r", "++").0, decided("r", "+?").0], [Verdict::Pass, Verdict::Sometimes]);
        assert_eq!([next("r", "+-"), next("+", "r+")], [9, 9]);
        assert_eq!(decided("r", "+-").0, Verdict::Sometimes);
    }

    #[test]
    fn most_of_three_decide_where_the_caller_counts() {
        let decided = |crowded: &str, quiet: &str| {
            let outcome = tries(crowded, quiet).decided(Contradiction::Outvoted).unwrap();
            outcome.judgement.verdict
        };
        let next = |crowded: &str, quiet: &str| {
            tries(crowded, quiet).next(Contradiction::Outvoted).map(|(_, times)| times)
        };
        assert_eq!([next("-", ""), next("-", "+"), next("-", "++")], [Some(1), Some(1), None]);
        assert_eq!([decided("-", "++"), decided("-", "+-")], [Verdict::Pass, Verdict::Fail]);
        assert_eq!(decided("-", "+?"), Verdict::Inconclusive);
    }
}
