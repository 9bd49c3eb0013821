//! Length, rate and number of robots of a run from the command line.

use serde_json::Value;

use crate::support::{Assay, read};

#[test]
fn a_run_records_what_the_command_line_decided() {
    let assay = Assay::new();
    let said =
        assay.run(&["run", "demo", "--duration", "1s", "--rate", "40", "--robots", "8", "--run-dir", "r"]);
    assert!(said.went_well(), "{said:?}");
    let said = said.complains("the command line changes the workload");
    assert!(!said.stderr.contains("rehears"), "{}", said.stderr);
    let info: Value = serde_json::from_str(&read(&assay.path("r/run.json"))).expect("JSON");
    let workload = &info["workload"];
    let expected = serde_json::json!({ "duration_s": 1.0, "rate_per_s": 40.0, "robots": 8 });
    assert_eq!((&workload["overrides"], &workload["robots"]), (&expected, &8.into()));
    assert_eq!(info["phases"][0]["planned_end_ms"], 1000);
}
