//! The action for GitHub and the component for GitLab: both run the same lines. `tests/real` runs them.

use std::collections::BTreeMap;

use crate::support::{Assay, read, root};
use crate::workflows::{inputs, scripts_of_component, steps_of_action};

#[test]
fn both_systems_run_the_same_lines() {
    let steps = steps_of_action(&BTreeMap::new());
    let run = steps.iter().find(|step| step.name == "Run both and compare").expect("the step");
    assert_eq!(Some(&run.script), scripts_of_component().last());
    // With the same defaults.
    let component = read(&root().join("contrib/ci/gitlab/templates/guard.yml"));
    let defaults = inputs(&component);
    for (name, variable) in [("workload", "WORKLOAD"), ("length", "LENGTH"), ("tolerance", "TOLERANCE")] {
        assert_eq!(defaults.get(name), run.env.get(variable), "{name}");
    }
}

#[test]
fn a_file_for_junit_that_cannot_be_is_refused_before_anything_starts() {
    let assay = Assay::new();
    assay.run(&["run", "demo", "--junit", "no/such/file"]).exits(2).complains("no/such");
    assay.run(&["compare", "a", "b", "--junit", "x.xml"]).exits(2).complains("--tolerance");
}
