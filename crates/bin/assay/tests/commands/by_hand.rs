//! Parts of one run as processes of their own, that cannot be. `tests/real` runs some that can.

use crate::samples::SPECIAL;
use crate::support::Assay;

#[test]
fn parts_that_cannot_be_are_refused_before_anything_starts() {
    let assay = Assay::new();
    let workload = assay.file("special.pg", SPECIAL);
    let robots = |more: &[&str]| assay.run(&[&["robots", workload][..], more].concat());
    robots(&["--start-at", "+1h", "--robots", "0-40", "--proxy", "127.0.0.1:1"])
        .exits(2)
        .complains("40 robots");
    robots(&["--start-at", "+1h"]).exits(2).complains("--origin gives 0 addresses for 2 origins");
    robots(&["--start-at", "5", "--proxy", "127.0.0.1:1"]).exits(2).complains("has passed");
    robots(&["--start-at", "+1h", "--origin", "8.8.8.8:80-81"]).exits(2).complains("--i-own-this-target");
    let origins =
        |more: &[&str]| assay.run(&[&["origins", workload, "--start-at", "+1h"][..], more].concat());
    origins(&["--listen", "127.0.0.1:9000"]).exits(2).complains("--listen gives 1 addresses for 2 origins");
    origins(&["--origins", "1-2", "--listen", "127.0.0.1:9000"]).exits(2).complains("2 origins");
}
