//! `--find-peak`: promises that cannot be meant.

use crate::samples::ONE_PHASE;
use crate::support::Assay;

#[test]
fn a_promise_that_cannot_be_meant_is_refused_before_anything_starts() {
    let assay = Assay::new();
    let name = assay.file("limited.pg", ONE_PHASE);
    assay.run(&["run", name, "--find-peak", "p99 < 50"]).exits(2).complains("p99 < 50");
    assay.run(&["run", name, "--find-peak", "top1.p99 < 50ms"]).exits(2).complains("top1");
    assay
        .run(&["run", name, "--find-peak", "errors < 1%", "--peak-step", "500ms"])
        .exits(2)
        .complains("whole seconds");
    assay.run(&["run", name, "--find-peak", "errors < 1%", "--calibrate"]).exits(2).complains("--calibrate");
}
