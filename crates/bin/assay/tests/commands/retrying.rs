//! `--retries`, where it cannot be.

use crate::support::Assay;

#[test]
fn a_proxy_that_runs_already_is_not_tried_again() {
    let assay = Assay::new();
    let said = assay.run(&["run", "demo", "--proxy", "127.0.0.1:9", "--retries", "1"]).exits(2);
    assert!(said.stderr.contains("cannot be emptied between runs"), "{}", said.stderr);
    assay.run(&["run", "demo", "--retries", "1", "--calibrate"]).exits(2).complains("cannot be used with");
}
