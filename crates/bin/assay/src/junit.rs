//! JUnit's XML of a run, of an experiment and of a comparison: a case for each requirement, cell and tolerance.

use std::path::Path;

use anyhow::anyhow;
use assay_base::junit::{Case, Outcome, Suite, document};
use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};
use assay_report::calendar::Utc;
use assay_report::compare::{CheckOutcome, Comparison, Gate, GateOutcome};
use assay_report::headline::RunConclusion;
use assay_report::require::{Decision, RequirementResult};
use assay_report::summary::Summary;

use crate::exit::Failure;
use crate::output;

/// Writes the suite of a run, if a file for it was named.
pub fn of_run(file: Option<&Path>, summary: &Summary) -> Result<(), Failure> {
    write(file, "assay run", || run(summary))
}

/// Writes the suite of an experiment, if a file for it was named. `judged`: what was required of cells, with their names.
pub fn of_experiment(
    file: Option<&Path>,
    info: &ExperimentInfo,
    judged: &[(String, Vec<RequirementResult>)],
) -> Result<(), Failure> {
    write(file, "assay lab", || experiment(info, judged))
}

/// Writes the suite of a comparison that was held against tolerances, if a file for it was named.
pub fn of_comparison(file: Option<&Path>, comparison: &Comparison) -> Result<(), Failure> {
    let Some(gate) = &comparison.gate else {
        return match file {
            None => Ok(()),
            Some(_) => Err(Failure::usage(anyhow!("--junit needs something to hold the comparison against"))
                .hint("say how much worse something may be: --tolerance 5%")),
        };
    };
    write(file, "assay compare", || Suite {
        name: "compared".into(),
        timestamp: None,
        time_s: None,
        cases: tolerances(gate),
    })
}

fn write(file: Option<&Path>, command: &str, suite: impl FnOnce() -> Suite) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    output::result(&document(command, &[suite()]), Some(file))
}

/// `2026-01-02T03:04:05`.
fn timestamp(unix_ms: u64) -> String {
    let Utc { year, month, day, hour, minute, second } = Utc::from_unix_s(unix_ms / 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

fn run(summary: &Summary) -> Suite {
    let class = format!("{}.{}", summary.workload, summary.proxy);
    let mut cases: Vec<Case> =
        vec![Case { class: class.clone(), name: "run".into(), outcome: whole(summary) }];
    cases.extend(summary.requirements.iter().map(|one| requirement(&class, one)));
    Suite {
        name: format!("{} through {}", summary.workload, summary.proxy),
        timestamp: Some(timestamp(summary.started_unix_ms)),
        time_s: summary.total.duration_s,
        cases,
    }
}

/// The run as such: content, time-outs, and numbers that are not known. Requirements are cases of their own.
fn whole(summary: &Summary) -> Outcome {
    let sentences: Vec<&str> = summary.verdict.iter().map(|finding| finding.text.as_str()).collect();
    let why = sentences.join(" ");
    let a_requirement_failed = summary.requirements.iter().any(|one| one.decision == Some(Decision::Failed));
    match summary.conclusion() {
        _ if summary.partial => Outcome::Skipped("it was ended before its schedule was over".into()),
        RunConclusion::ServedNothing | RunConclusion::NothingMeasured => Outcome::Error(why),
        RunConclusion::Failed if !a_requirement_failed => Outcome::Failed(why),
        RunConclusion::Undecided if summary.requires_nothing() => Outcome::Skipped(why),
        RunConclusion::Fine | RunConclusion::Failed | RunConclusion::Undecided => Outcome::Passed,
    }
}

fn requirement(class: &str, judged: &RequirementResult) -> Case {
    let outcome = match judged.held {
        Some(true) => Outcome::Passed,
        Some(false) => Outcome::Failed(judged.seen.clone()),
        None => Outcome::Skipped(judged.seen.clone()),
    };
    Case { class: class.into(), name: judged.text.clone(), outcome }
}

fn experiment(info: &ExperimentInfo, judged: &[(String, Vec<RequirementResult>)]) -> Suite {
    let mut cases: Vec<Case> = info.cells.iter().map(cell).collect();
    for (id, requirements) in judged {
        cases.extend(requirements.iter().map(|one| requirement(id, one)));
    }
    Suite { name: info.name.clone(), timestamp: Some(timestamp(info.started_unix_ms)), time_s: None, cases }
}

fn cell(cell: &CellInfo) -> Case {
    let why = || cell.why.clone().unwrap_or_else(|| "no reason is known".into());
    let outcome = match (cell.state, &cell.fault) {
        (CellState::Failed, _) => Outcome::Error(why()),
        (CellState::Waiting | CellState::Running, _) => Outcome::Skipped("it has not run".into()),
        (CellState::Done | CellState::Invalid, Some(fault)) => Outcome::Failed(fault.clone()),
        (CellState::Done, None) => Outcome::Passed,
        (CellState::Invalid, None) => Outcome::Skipped(why()),
    };
    Case { class: format!("{}.{}", cell.workload, cell.subject), name: cell.id.clone(), outcome }
}

/// The verdict, and a case for each difference that was held against a tolerance.
fn tolerances(gate: &Gate) -> Vec<Case> {
    let why = || gate.why.clone();
    let verdict = match gate.outcome {
        GateOutcome::Held => Outcome::Passed,
        GateOutcome::Regressed => Outcome::Failed(why()),
        GateOutcome::NotCompared => Outcome::Error(why()),
        GateOutcome::Invalid => Outcome::Skipped(why()),
    };
    let mut cases = vec![Case { class: "comparison".into(), name: "verdict".into(), outcome: verdict }];
    cases.extend(gate.checks.iter().map(|check| Case {
        class: format!("{}.{}.{}", check.workload, check.condition, check.subject),
        name: format!("{}, {}, against {}", check.title, check.scope, check.base),
        outcome: match check.outcome {
            CheckOutcome::Held => Outcome::Passed,
            CheckOutcome::Regressed => Outcome::Failed(match check.worse_by {
                Some(by) => format!("worse by {by:.4}; allowed: {:.4} ({})", check.allowed, check.metric),
                None => format!("worse by more than {:.4} ({})", check.allowed, check.metric),
            }),
            CheckOutcome::NotShown => {
                Outcome::Skipped("the interval reaches to both sides of the tolerance".into())
            }
            CheckOutcome::NotCompared => Outcome::Skipped("there is nothing to compare".into()),
        },
    }));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str, held: Option<bool>) -> RequirementResult {
        let decision = held.map(|held| if held { Decision::Held } else { Decision::Failed });
        RequirementResult {
            text: text.into(),
            held,
            decision,
            seen: "seen".into(),
            ..RequirementResult::default()
        }
    }

    #[test]
    fn a_run_has_a_case_for_itself_and_for_each_requirement() {
        let requirements = vec![judged("a", Some(true)), judged("b", Some(false)), judged("c", None)];
        let mut summary =
            Summary { workload: "demo".into(), proxy: "nginx".into(), requirements, ..Summary::default() };
        assert!(matches!(run(&summary).cases[0].outcome, Outcome::Error(_)), "nothing was measured");
        summary.total.counts.completed = 1;
        let suite = run(&summary);
        let outcomes: Vec<&Outcome> = suite.cases.iter().map(|case| &case.outcome).collect();
        let (failed, skipped) = (Outcome::Failed("seen".into()), Outcome::Skipped("seen".into()));
        assert_eq!(outcomes, [&Outcome::Passed, &Outcome::Passed, &failed, &skipped]);
        assert_eq!((suite.name.as_str(), suite.cases[1].name.as_str()), ("demo through nginx", "a"));
    }

    #[test]
    fn a_cell_whose_target_has_a_fault_fails_and_one_that_failed_is_an_error() {
        let of = |state, fault: Option<&str>| {
            let fault = fault.map(str::to_owned);
            cell(&CellInfo { state, why: Some("why".into()), fault, ..CellInfo::default() }).outcome
        };
        assert_eq!(of(CellState::Done, None), Outcome::Passed);
        assert_eq!(of(CellState::Failed, None), Outcome::Error("why".into()));
        assert_eq!(of(CellState::Invalid, None), Outcome::Skipped("why".into()));
        for state in [CellState::Done, CellState::Invalid] {
            assert_eq!(
                of(state, Some("3 responses were wrong")),
                Outcome::Failed("3 responses were wrong".into())
            );
        }
    }
}
