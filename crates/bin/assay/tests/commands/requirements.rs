//! What a run must show, on the command line and in the workload: mistakes in it.

use crate::samples::requiring;
use crate::support::Assay;

#[test]
fn a_mistake_in_a_requirement_is_shown_with_its_place_before_anything_starts() {
    let assay = Assay::new();
    let name = assay.file("guarded.pg", &requiring(r#""errors == 0", "stedy.p99(hit) < 5ms""#));
    let said = assay.run(&["check", name]).exits(2);
    assert!(
        said.stderr.contains("guarded.pg:8:25") && said.stderr.contains("did you mean `steady`?"),
        "{said:?}"
    );
    assay.run(&["run", "demo", "--require", "p99(hits) < 5ms"]).exits(2).complains("did you mean `hit`?");
    assay.run(&["run", "demo", "--require", "top9.p99 < 5ms"]).exits(2).complains("did you mean `top1`?");
}

#[test]
fn what_a_proxys_log_decides_is_refused_where_there_is_none() {
    let assay = Assay::new();
    let required = ["--require", "misreported == 0"];
    for target in ["builtin", "direct", "127.0.0.1:1"] {
        assay
            .run(&[&["run", "demo", "--proxy", target][..], &required].concat())
            .exits(2)
            .complains("access log");
    }
    let robots = ["robots", "demo", "--start-at", "+1h", "--proxy", "127.0.0.1:1"];
    assay.run(&[&robots[..], &required].concat()).exits(2).complains("access log");
}
