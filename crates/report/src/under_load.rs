//! Conformance cases that were tried while the run put load on its target: what they have shown, as a requirement of the run.

use std::collections::BTreeMap;

use assay_conform::case::Level;
use assay_conform::document::Document;
use assay_conform::verdict::{Times, Verdict};
use assay_record::dir::RunDir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::require::{Decision, Judged};

/// The document of `assay conform` in a run directory.
const FILE: &str = "conform.json";
/// As what it is listed among requirements.
const TEXT: &str = "conformance under load: every MUST is met";
/// Cases that a sentence names.
const MOST_NAMED: usize = 5;

/// Cases that were tried beside the load. The exchanges are in `conform.json` of the run directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnderLoad {
    /// Cases that were tried to an end at least once.
    pub cases: usize,
    /// How often, all together.
    pub tries: usize,
    /// How many cases have each verdict; of several tries of a case, a failure counts.
    pub verdicts: BTreeMap<String, usize>,
    /// Cases of MUST and SHOULD that failed.
    pub failures: Vec<CaseUnderLoad>,
}

/// A case that failed under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseUnderLoad {
    /// Its name.
    pub case: String,
    /// `MUST` or `SHOULD`.
    pub level: String,
    /// The requirement.
    pub rule: String,
    /// What was seen.
    pub reason: String,
    /// How often it held.
    pub held: usize,
    /// How often it did not.
    pub failed: usize,
}

/// What the cases of a run have shown; none: none were tried. What is wrong with their file, if it cannot be read.
pub(crate) fn read(dir: &RunDir) -> Result<Option<UnderLoad>, String> {
    let path = dir.path().join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
    };
    let document = Document::from_json(&text)
        .map_err(|why| format!("{} has no results of conformance cases: {why}", path.display()))?;
    Ok(Some(of(&document)))
}

fn of(document: &Document) -> UnderLoad {
    let mut found = UnderLoad { cases: document.results.len(), ..UnderLoad::default() };
    for result in &document.results {
        let Times { held, unheld, open } = result.under_load.unwrap_or_default();
        found.tries += held + unheld + open;
        *found.verdicts.entry(name(result.verdict)).or_default() += 1;
        if result.fails() {
            found.failures.push(CaseUnderLoad {
                case: result.case.clone(),
                level: result.level.word().to_owned(),
                rule: result.rule.clone(),
                reason: result.reason.clone(),
                held,
                failed: unheld,
            });
        }
    }
    found
}

/// A verdict as the document has it.
fn name(verdict: Verdict) -> String {
    serde_json::to_value(verdict)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_else(|| verdict.words().to_owned())
}

impl UnderLoad {
    /// The requirement that a run with cases has.
    pub(crate) fn judged(&self) -> Judged {
        let must = Level::Must.word();
        let failed: Vec<&CaseUnderLoad> = self.failures.iter().filter(|one| one.level == must).collect();
        let decided: usize = ["pass", "fail", "sometimes", "yes", "no"]
            .iter()
            .filter_map(|name| self.verdicts.get(*name))
            .sum();
        let decision = match (failed.len(), decided) {
            (1.., _) => Decision::Failed,
            (0, 1..) => Decision::Held,
            (0, 0) => Decision::Undecided,
        };
        let tried = format!("{} cases, tried {} times beside the load", self.cases, self.tries);
        let seen = match decision {
            Decision::Held => format!("{tried}; {}", self.others()),
            Decision::Undecided | Decision::TooEarly => {
                format!("{tried}, and none of them found anything out")
            }
            Decision::Failed => {
                let one = |one: &&CaseUnderLoad| {
                    let times = one.held + one.failed;
                    format!("{} ({} of {times} times: {})", one.case, one.failed, one.reason)
                };
                let named: Vec<String> = failed.iter().take(MOST_NAMED).map(one).collect();
                let more = match failed.len().saturating_sub(MOST_NAMED) {
                    0 => String::new(),
                    more => format!("; and {more} more"),
                };
                format!(
                    "{tried}; {} failed: {}{more}; {FILE} has the exchanges",
                    failed.len(),
                    named.join("; ")
                )
            }
        };
        Judged {
            text: TEXT.to_owned(),
            decision: Some(decision),
            held: match decision {
                Decision::Held => Some(true),
                Decision::Failed => Some(false),
                Decision::Undecided | Decision::TooEarly => None,
            },
            value: Some(failed.len() as f64),
            unit: "count".to_owned(),
            seen,
            ..Judged::default()
        }
    }

    fn others(&self) -> String {
        let should: Vec<&str> = self.failures.iter().map(|one| one.case.as_str()).collect();
        match should.len() {
            0 => "no MUST and no SHOULD failed".to_owned(),
            _ => format!("no MUST failed; SHOULD not met: {}", should.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(level: &str) -> CaseUnderLoad {
        let text = |text: &str| text.to_owned();
        CaseUnderLoad {
            case: text("age-sent"),
            level: text(level),
            rule: text("r."),
            reason: text("no Age"),
            held: 2,
            failed: 1,
        }
    }

    #[test]
    fn a_must_that_failed_once_fails_the_run_and_a_should_does_not() {
        let of = |failures: Vec<CaseUnderLoad>, verdicts: &[(&str, usize)]| {
            let verdicts = verdicts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            UnderLoad { cases: 3, tries: 9, verdicts, failures }.judged()
        };
        let must = of(vec![failed("MUST")], &[("pass", 2), ("fail", 1)]);
        assert_eq!((must.decision, must.held), (Some(Decision::Failed), Some(false)));
        assert!(must.seen.contains("age-sent (1 of 3 times: no Age)"), "{}", must.seen);
        let should = of(vec![failed("SHOULD")], &[("pass", 2), ("fail", 1)]);
        assert_eq!(should.decision, Some(Decision::Held));
        assert!(should.seen.ends_with("SHOULD not met: age-sent"), "{}", should.seen);
        assert_eq!(of(Vec::new(), &[("inconclusive", 3)]).decision, Some(Decision::Undecided));
    }

    #[test]
    fn verdicts_are_named_as_in_the_document() {
        assert_eq!(name(Verdict::DependencyMissing), "dependency-missing");
    }
}
