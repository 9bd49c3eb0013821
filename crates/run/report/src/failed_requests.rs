//! Requests that the numbers of responses leave out: those that came due and got no correct response. A number of the rest is no
//! verdict on a run that lost many.

use assay_measurement::error_kind::ErrorKind;

use crate::document::{Figures, Finding, Mood};
use crate::format::{count, share};

/// Share of requests due up to which those that are missing take nothing from a verdict: when a phase ends, a few always wait.
pub(crate) const FEW: f64 = 0.01;

/// Share of requests sent that ended in an error from which on a run is no success, whatever was required.
const MOST: f64 = 0.5;

/// Requests without a correct response, if they are more than a few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailedRequests {
    missing: u64,
    due: u64,
}

impl FailedRequests {
    /// None: next to nothing is.
    pub(crate) fn from_figures(figures: &Figures) -> Option<Self> {
        let due = figures.counts.due;
        let missing = due.saturating_sub(figures.counts.completed);
        is_more_than_few(missing, due).then_some(Self { missing, due })
    }

    /// `880 of 1,000 requests due (88.0 %) got no correct response`.
    pub(crate) fn text(self) -> String {
        let Self { missing, due } = self;
        format!(
            "{} of {} requests due ({}) got no correct response",
            count(missing),
            count(due),
            share(missing, due)
        )
    }
}

/// A good finding on what came, which is a sentence, says what did not come.
pub(crate) fn qualified(good: Finding, figures: &Figures) -> Finding {
    match FailedRequests::from_figures(figures).filter(|_| good.mood == Mood::Good) {
        Some(left_out) => {
            let text = format!("{} But {}.", good.text, left_out.text());
            Finding { about: good.about, mood: Mood::Doubtful, text }
        }
        None => good,
    }
}

/// More requests than can be an accident.
pub(crate) fn is_more_than_few(requests: u64, due: u64) -> bool {
    requests as f64 > due as f64 * FEW
}

/// Most of the requests sent ended in errors of the target. Those that it was never sent do not count: more may be offered than it takes.
pub(crate) fn most_failed(figures: &Figures) -> bool {
    let failed = figures.errors.of(|kind| !kind.is_own() && kind != ErrorKind::QueueOverflow);
    failed as f64 > figures.counts.requests as f64 * MOST
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Topic;

    fn finding(about: Topic, mood: Mood, text: &str) -> Finding {
        Finding { about, mood, text: text.to_owned() }
    }

    fn figures(due: u64, completed: u64) -> Figures {
        let mut figures = Figures::default();
        (figures.counts.due, figures.counts.requests, figures.counts.completed) = (due, due, completed);
        figures
    }

    #[test]
    fn a_good_finding_says_what_is_missing_and_a_few_are_not() {
        let good = || finding(Topic::Requirements, Mood::Good, "All 2 requirements held.");
        assert_eq!(qualified(good(), &figures(1000, 990)), good());
        let doubtful = qualified(good(), &figures(1000, 120));
        assert_eq!(doubtful.mood, Mood::Doubtful);
        assert_eq!(
            doubtful.text,
            "All 2 requirements held. But 880 of 1,000 requests due (88.0 %) got no correct response."
        );
        let bad = finding(Topic::Requirements, Mood::Bad, "1 of 2 requirements failed.");
        assert_eq!(qualified(bad.clone(), &figures(1000, 120)), bad);
    }

    #[test]
    fn most_failed_if_more_than_half_of_what_was_sent_did() {
        let with = |kind: &str, failed| {
            let mut figures = figures(1000, 1000 - failed);
            figures.errors.by_kind.insert(kind.parse().expect("a kind"), failed);
            most_failed(&figures)
        };
        for kind in ["connection_lost", "error_status", "connect_failed"] {
            assert!(with(kind, 501) && !with(kind, 500), "{kind}");
        }
        assert!(!with("ports_exhausted", 900), "that is Assay's");
        assert!(!with("queue_overflow", 900), "they were not sent");
    }
}
