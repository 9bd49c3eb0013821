//! Whether cases reach the target of a run.

use crate::error::LabError;
use crate::plan::{Part, RunPlan, TargetChoice};
use crate::versions::robots_speak_http2;

/// Refuses a run whose target cases cannot be tried on.
pub(crate) fn check(plan: &RunPlan) -> Result<(), LabError> {
    if plan.conform.is_none() {
        return Ok(());
    }
    let why = match &plan.target {
        TargetChoice::Direct => "there is no target: robots speak to the origins",
        TargetChoice::Running { .. } => {
            "the target runs already, and does not know the origin of the cases; try it without load, with `assay conform HOST:PORT`"
        }
        _ if plan.elsewhere.is_some() => "the target is on another machine; leave --fleet out",
        _ if plan.part != Part::Whole => "this is only a part of a run",
        _ if plan.needs_bed() => {
            "robots and target live in networks of their own; leave links and --congestion out"
        }
        _ if plan.tls.is_some() => "cases are tried in clear; leave TLS out",
        _ if robots_speak_http2(&plan.workload) => "cases are tried over HTTP/1.1; let robots speak it too",
        _ => return Ok(()),
    };
    Err(LabError::plan(format!("--with-conform: {why}")))
}

#[cfg(test)]
mod tests {
    use assay_conform::suite::Suite;

    use super::super::plan::ConformPlan;
    use super::*;
    use crate::mode::Mode;
    use crate::testing;

    fn plan(topics: &[&str]) -> Option<ConformPlan> {
        let topics: Vec<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        ConformPlan::new(&topics, &Suite::bundled().unwrap().chosen(&topics).unwrap())
    }

    #[test]
    fn only_cases_that_can_be_tried_beside_load_are_taken_and_none_is_no_plan() {
        let stale = plan(&["stale"]).unwrap();
        assert!(stale.cases.iter().any(|case| case.name == "stores"), "what they depend on is among them");
        assert!(plan(&["framing"]).is_none());
    }

    #[test]
    fn a_target_that_cases_do_not_reach_is_refused_before_anything_starts() {
        let refused = |target: TargetChoice| {
            check(&RunPlan { target, conform: plan(&["stale"]), ..testing::plan() }).unwrap_err().to_string()
        };
        assert!(refused(TargetChoice::Direct).contains("there is no target"));
        let address = "127.0.0.1:1".parse().unwrap();
        assert!(refused(TargetChoice::Running { address, mode: Mode::Reverse }).contains("runs already"));
        let builtin = TargetChoice::Builtin(Mode::Reverse);
        assert!(check(&RunPlan { target: builtin, conform: plan(&["stale"]), ..testing::plan() }).is_ok());
    }
}
