//! Targets against cases: where they disagree, what fails, and how many cases have which verdict.

use strum::VariantArray;

use std::collections::BTreeMap;

use crate::case::Level;
use crate::document::{CaseResult, Document};
use crate::verdict::Verdict;

/// A case with its results, one for each target in the order of the document; none where it was not tried.
#[derive(Debug, Clone)]
pub struct Row<'d> {
    /// Any of its results: name, level and rule are the same in all.
    pub case: &'d CaseResult,
    pub results: Vec<Option<&'d CaseResult>>,
}

impl Row<'_> {
    /// True where two targets were found to differ.
    pub fn differs(&self) -> bool {
        let mut decided =
            self.results.iter().flatten().map(|result| result.verdict).filter(|verdict| verdict.is_decided());
        let first = decided.next();
        decided.any(|verdict| Some(verdict) != first)
    }
}

/// All cases; those that targets disagree about first, and among them the most binding first.
pub fn rows(document: &Document) -> Vec<Row<'_>> {
    let mut by_case: BTreeMap<(&str, &str), Vec<&CaseResult>> = BTreeMap::new();
    for result in &document.results {
        by_case.entry((&result.topic, &result.case)).or_default().push(result);
    }
    let mut rows: Vec<Row<'_>> =
        by_case.into_values().filter_map(|results| row(document, &results)).collect();
    rows.sort_by_key(|row| (!row.differs(), row.case.level));
    rows
}

fn row<'d>(document: &'d Document, results: &[&'d CaseResult]) -> Option<Row<'d>> {
    let of = |label: &str| results.iter().find(|result| result.target == label).copied();
    let all = document.targets.iter().map(|target| of(&target.label)).collect();
    Some(Row { case: results.first()?, results: all })
}

/// Numbers of a target: for each level, how many cases have each verdict.
pub fn counts(document: &Document, target: &str) -> Vec<(Level, Vec<(Verdict, usize)>)> {
    let of = |level: Level| {
        let all = Verdict::VARIANTS.iter().map(|&verdict| (verdict, document.count(target, level, verdict)));
        all.filter(|(_, count)| *count > 0).collect()
    };
    Level::ALL.into_iter().map(|level| (level, of(level))).collect()
}

/// Decided cases of a level: `(holds, decided, all)`.
pub fn share(document: &Document, target: &str, level: Level) -> (usize, usize, usize) {
    let of = |is_counted: fn(Verdict) -> bool| {
        Verdict::VARIANTS
            .iter()
            .filter(|verdict| is_counted(**verdict))
            .map(|verdict| document.count(target, level, *verdict))
            .sum()
    };
    (of(Verdict::holds), of(Verdict::is_decided), of(|_| true))
}
