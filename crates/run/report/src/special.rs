//! Requests that are more than a plain GET: parts, codings, redirections, logins, uploads, faults on purpose.

use assay_measurement::counts::{OriginSpecial, RobotSpecial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::Figures;
use crate::tally::Tally;

/// Numbers of requests that are more than a plain GET; all zero in workloads without any. None of these is an
/// error: a response that it must not have is counted among the errors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Special {
    /// What robots counted.
    #[serde(flatten)]
    pub robots: RobotSpecial,
    /// What origins counted.
    #[serde(flatten)]
    pub origins: OriginSpecial,
    /// Faults on purpose that origins made: an error status, a reset, a late first byte, a slow body.
    pub faults: u64,
}

/// The numbers of a phase or a run.
pub(crate) fn special(tally: &Tally) -> Special {
    Special {
        robots: (&tally.robots).into(),
        origins: (&tally.origins).into(),
        faults: tally.origins.faults(),
    }
}

/// Titles of the groups of columns, in their order.
const GROUPS: [&str; 6] = [
    "parts and codings",
    "redirections and logins",
    "uploads",
    "faults on purpose",
    "broken off on purpose",
    "behaviour of the target",
];

/// A column: its head, and what it shows of each row.
pub(crate) type SpecialColumn = (&'static str, Vec<u64>);

/// The columns in which at least one of `rows` has something, by group.
pub(crate) fn columns(rows: &[&Figures]) -> Vec<(&'static str, Vec<SpecialColumn>)> {
    let shown = |of: &dyn Fn(&Special) -> u64| rows.iter().map(|row| of(&row.special)).collect::<Vec<u64>>();
    let made = ("faults on purpose", "made", shown(&|special| special.faults));
    let robots =
        RobotSpecial::COLUMNS.iter().map(|(group, head, of)| (*group, *head, shown(&|s| of(&s.robots))));
    let origins =
        OriginSpecial::COLUMNS.iter().map(|(group, head, of)| (*group, *head, shown(&|s| of(&s.origins))));
    let occurs = |column: &(&str, &str, Vec<u64>)| column.2.iter().any(|count| *count > 0);
    let all: Vec<_> = [made].into_iter().chain(robots).chain(origins).filter(occurs).collect();
    let of_group = |title: &'static str| {
        let columns =
            all.iter().filter(|column| column.0 == title).map(|(_, head, shown)| (*head, shown.clone()));
        (title, columns.collect::<Vec<SpecialColumn>>())
    };
    GROUPS.into_iter().map(of_group).filter(|(_, columns)| !columns.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_occurred_has_a_column() {
        let none = Figures::default();
        assert!(columns(&[&none]).is_empty());
        let mut special = Special::default();
        (special.robots.parts, special.robots.faults_hidden) = (3, 1);
        let some = Figures { special, ..Figures::default() };
        let heads: Vec<_> = columns(&[&none, &some])
            .into_iter()
            .map(|(title, columns)| (title, columns.into_iter().map(|(head, _)| head).collect::<Vec<_>>()))
            .collect();
        assert_eq!(heads, [("parts and codings", vec!["206"]), ("faults on purpose", vec!["hidden"])]);
    }
}
