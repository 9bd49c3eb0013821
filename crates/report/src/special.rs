//! Requests that are more than a plain GET: parts, codings, redirections, logins, uploads, faults on purpose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::Figures;
use crate::tally::Tally;

/// Numbers of requests that are more than a plain GET; all zero in workloads without any. None of these is an
/// error: what is answered as it must not be is counted among the errors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Special {
    /// Answered with parts of an object (206).
    pub parts: u64,
    /// Of those, with more than one part.
    pub multiparts: u64,
    /// Asked for parts that are not there, and told so (416).
    pub unsatisfied: u64,
    /// Answered with a coded body (gzip), decoded and compared.
    pub coded: u64,
    /// Answered after one redirection or more.
    pub redirected: u64,
    /// Refused for good: 401, 406, 407.
    pub refused: u64,
    /// Met a fault on purpose, and the target passed it on.
    pub faults_passed: u64,
    /// Were to meet a fault on purpose, and were answered as if there were none.
    pub faults_hidden: u64,
    /// Broken off by the robot, on purpose.
    pub broken_off: u64,
    /// Broken off by the origin, on purpose.
    pub broken_off_by_origin: u64,
    /// Origins asked who it is (401).
    pub challenges: u64,
    /// Requests whose user was proven to an origin.
    pub authenticated: u64,
    /// Requests that named a user and did not prove it.
    pub wrong_credentials: u64,
    /// Cookies that origins set.
    pub cookies_set: u64,
    /// Request bodies that origins asked for with 100.
    pub continued: u64,
    /// Request bodies that origins did not want (417).
    pub expectations_refused: u64,
    /// Faults on purpose that origins made: an error status, a reset, a late first byte, a slow body.
    pub faults: u64,
    /// Requests that had met a fault, and that origins saw again within ten seconds.
    pub retried: u64,
}

/// The numbers of a phase or a run.
pub(crate) fn special(tally: &Tally) -> Special {
    let (robots, origins) = (&tally.robots, &tally.origins);
    Special {
        parts: robots.parts,
        multiparts: robots.multiparts,
        unsatisfied: robots.unsatisfied,
        coded: robots.coded,
        redirected: robots.redirected,
        refused: robots.refused,
        faults_passed: robots.faults_passed,
        faults_hidden: robots.faults_hidden,
        broken_off: robots.broken_off,
        broken_off_by_origin: robots.broken_off_by_origin,
        challenges: origins.challenges,
        authenticated: origins.authenticated,
        wrong_credentials: origins.wrong_credentials,
        cookies_set: origins.cookies_set,
        continued: origins.continued,
        expectations_refused: origins.expectations_refused,
        faults: origins.fault_statuses
            + origins.fault_resets
            + origins.fault_slow_starts
            + origins.fault_slow_bodies,
        retried: origins.retried,
    }
}

/// A column: its head, and what it shows.
pub(crate) type Column = (&'static str, fn(&Special) -> u64);

const GROUPS: [(&str, &[Column]); 5] = [
    (
        "parts and codings",
        &[
            ("206", |s| s.parts),
            ("multipart", |s| s.multiparts),
            ("416", |s| s.unsatisfied),
            ("coded", |s| s.coded),
        ],
    ),
    (
        "redirections and logins",
        &[
            ("redirected", |s| s.redirected),
            ("challenges", |s| s.challenges),
            ("proven", |s| s.authenticated),
            ("disproven", |s| s.wrong_credentials),
            ("refused", |s| s.refused),
            ("cookies", |s| s.cookies_set),
        ],
    ),
    ("uploads", &[("continued", |s| s.continued), ("unwanted", |s| s.expectations_refused)]),
    (
        "faults on purpose",
        &[
            ("made", |s| s.faults),
            ("passed on", |s| s.faults_passed),
            ("hidden", |s| s.faults_hidden),
            ("retried", |s| s.retried),
        ],
    ),
    ("broken off on purpose", &[("by robots", |s| s.broken_off), ("by origins", |s| s.broken_off_by_origin)]),
];

/// The columns in which at least one of `rows` has something.
pub(crate) fn columns(rows: &[&Figures]) -> Vec<(&'static str, Vec<Column>)> {
    let occurs = |(_, value): &Column| rows.iter().any(|figures| value(&figures.special) > 0);
    let kept =
        GROUPS.iter().map(|(title, columns)| (*title, columns.iter().copied().filter(occurs).collect()));
    kept.filter(|(_, columns): &(_, Vec<Column>)| !columns.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_occurred_has_a_column() {
        let none = Figures::default();
        assert!(columns(&[&none]).is_empty());
        let special = Special { parts: 3, faults_hidden: 1, ..Special::default() };
        let some = Figures { special, ..Figures::default() };
        let heads: Vec<_> = columns(&[&none, &some])
            .into_iter()
            .map(|(title, columns)| (title, columns.into_iter().map(|(head, _)| head).collect::<Vec<_>>()))
            .collect();
        assert_eq!(heads, [("parts and codings", vec!["206"]), ("faults on purpose", vec!["hidden"])]);
    }
}
