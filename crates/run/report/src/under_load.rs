//! Conformance cases that were tried while the run put load on its target: what they have shown, as a requirement of the run.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use assay_conform::case::Level;
use assay_conform::document::Document;
use assay_conform::verdict::{TryCounts, Verdict};
use assay_record::dir::RunDir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::require::{Decision, RequirementResult};

/// The document of `assay conform` in a run directory.
const FILE: &str = "conform.json";
/// As what it is listed among requirements.
const TEXT: &str = "conformance under load: every MUST is met";
/// Cases that a sentence names.
const MOST_NAMED: usize = 5;

/// Failure to read the results of conformance cases.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnderLoadError {
    #[error("{} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} has no results of conformance cases: {source}", path.display())]
    Parse { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

/// Cases that were tried beside the load. The exchanges are in `conform.json` of the run directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnderLoad {
    /// Cases that were to be tried, with those that they rely on.
    pub cases: usize,
    /// Those of them that are a MUST.
    pub musts: usize,
    /// Those of MUST of which it is known whether they hold.
    pub musts_decided: usize,
    /// Cases of MUST of which it is not, and why, as many as a sentence names.
    pub undecided: Vec<String>,
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

/// Reads the results of the cases of a run; none: none were tried.
pub(crate) fn read(dir: &RunDir) -> Result<Option<UnderLoad>, UnderLoadError> {
    let path = dir.path().join(FILE);
    let text = match assay_base::files::text(&path, assay_base::files::DOCUMENT_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(UnderLoadError::Read { path, source }),
    };
    let document =
        Document::from_json(&text).map_err(|error| UnderLoadError::Parse { path, source: error.into() })?;
    Ok(Some(summarise(&document)))
}

fn summarise(document: &Document) -> UnderLoad {
    let mut found = UnderLoad { cases: document.results.len(), ..UnderLoad::default() };
    for result in &document.results {
        let TryCounts { held, unheld, open } = result.under_load.unwrap_or_default();
        found.tries += held + unheld + open;
        *found.verdicts.entry(name(result.verdict)).or_default() += 1;
        if result.level == Level::Must {
            found.musts += 1;
            found.musts_decided += usize::from(result.verdict.is_decided());
            if !result.verdict.is_decided() && found.undecided.len() < MOST_NAMED {
                found.undecided.push(format!("{}: {}", result.case, result.reason));
            }
        }
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
    pub(crate) fn judged(&self) -> RequirementResult {
        let must = Level::Must.word();
        let failed: Vec<&CaseUnderLoad> = self.failures.iter().filter(|one| one.level == must).collect();
        // A case that does not hold takes longer than one that does: if no MUST was decided, it says nothing that none failed.
        let decision = match (failed.len(), self.musts_decided) {
            (1.., _) => Decision::Failed,
            (0, 1..) => Decision::Held,
            (0, 0) => Decision::Undecided,
        };
        let tried = format!(
            "{} of {} MUST cases decided, {} cases tried {} times beside the load",
            self.musts_decided, self.musts, self.cases, self.tries
        );
        let seen = match decision {
            Decision::Held => format!("{tried}; {}{}", self.others(), self.open()),
            Decision::Undecided | Decision::TooEarly if self.musts == 0 => {
                format!("{tried}: choose a case or a topic that has a MUST")
            }
            Decision::Undecided | Decision::TooEarly => {
                format!("{tried}{}; a longer run may tell", self.open())
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
        RequirementResult {
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
            ..RequirementResult::default()
        }
    }

    /// The cases of MUST that were not decided.
    fn open(&self) -> String {
        let more = match (self.musts - self.musts_decided).saturating_sub(self.undecided.len()) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        match self.undecided.is_empty() {
            true => String::new(),
            false => format!("; not decided: {}{more}", self.undecided.join("; ")),
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
            let known = |name: &&(&str, usize)| name.0 != "inconclusive";
            let musts_decided = verdicts.iter().filter(known).map(|(_, count)| count).sum();
            let verdicts = verdicts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            let open = vec!["date-added: too short".to_owned(); 3 - musts_decided];
            UnderLoad { cases: 4, musts: 3, musts_decided, undecided: open, tries: 9, verdicts, failures }
                .judged()
        };
        let must = of(vec![failed("MUST")], &[("pass", 2), ("fail", 1)]);
        assert_eq!((must.decision, must.held), (Some(Decision::Failed), Some(false)));
        assert!(must.seen.contains("age-sent (1 of 3 times: no Age)"), "{}", must.seen);
        let should = of(vec![failed("SHOULD")], &[("pass", 2), ("fail", 1)]);
        assert_eq!(should.decision, Some(Decision::Held));
        assert!(should.seen.ends_with("SHOULD not met: age-sent"), "{}", should.seen);
        let partly = of(Vec::new(), &[("pass", 2), ("inconclusive", 1)]);
        assert_eq!(partly.decision, Some(Decision::Held));
        assert!(partly.seen.starts_with("2 of 3 MUST cases decided"), "{}", partly.seen);
        assert!(partly.seen.ends_with("not decided: date-added: too short"), "{}", partly.seen);
        assert_eq!(of(Vec::new(), &[("inconclusive", 3)]).decision, Some(Decision::Undecided));
    }

    #[test]
    fn behaviour_alone_meets_no_must() {
        let yes = BTreeMap::from([("yes".to_owned(), 4)]);
        let only = UnderLoad { cases: 4, tries: 9, verdicts: yes, ..UnderLoad::default() }.judged();
        assert_eq!(only.decision, Some(Decision::Undecided));
        assert!(only.seen.contains("that has a MUST"), "{}", only.seen);
    }

    #[test]
    fn verdicts_are_named_as_in_the_document() {
        assert_eq!(name(Verdict::DependencyMissing), "dependency-missing");
    }
}
