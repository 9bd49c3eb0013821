//! Load that adapts, through the real binary.

use assay_measurement::adapted::{Adapted, Decided};
use assay_record::dir::RunDir;
use serde_json::Value;

use crate::support::Assay;

#[test]
fn a_thermostat_finds_the_load_that_a_slow_origin_can_bear() {
    let assay = Assay::new();
    let workload = assay.file("adapting.pg", include_str!("adapting.pg"));
    let said = assay.run(&[
        "run",
        workload,
        "--direct",
        "--threads",
        "2",
        "--run-dir",
        "r",
        "--no-report",
        "--json",
    ]);
    assert!(said.went_well(), "{said:?}");
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(document["total"]["errors"]["total"], 0, "{:#}", document["total"]["errors"]);
    let dir = RunDir::open(&assay.path("r")).expect("a run directory");
    let adapted = dir.read_series().expect("what was measured").adapted;
    let of = |what, phase| adapted.iter().filter(move |a| a.what == what && a.phase == phase);
    let loads: Vec<&Adapted> = of(Decided::Load, 0).collect();
    assert!(loads.len() >= 2, "{adapted:#?}");
    // Full load is what it cannot bear.
    let last = loads[loads.len() - 1].value;
    assert!((0.05..0.9).contains(&last), "{adapted:#?}");
    // The first decision may come before the first response.
    let first = loads.iter().find_map(|load| load.response_us);
    assert!(first > Some(60_000), "it is slow, so the load falls: {adapted:#?}");
    let end = of(Decided::End, 0).next().expect("the end of the phase");
    assert!(end.schedule_ns < 9_000_000_000, "less than the planned schedule was used: {end:?}");
    assert_eq!(end.at_ms, 9_000, "a duration is real time");
    let said: Vec<&str> = of(Decided::Print, 1).map(|a| a.text.as_str()).collect();
    assert_eq!(said, ["the load factor is 0.3"]);
    let phases = dir.read_info().expect("a head").phases;
    let times: Vec<_> = phases.iter().map(|phase| (phase.start_ms, phase.end_ms)).collect();
    assert_eq!((times[0], times[1].0), ((Some(0), Some(9_000)), Some(9_000)));
    // Its end is when the last robot has come to it, which a busy machine delays.
    assert!(times[1].1.is_some_and(|end_ms| (11_000..13_000).contains(&end_ms)), "{times:?}");
}
