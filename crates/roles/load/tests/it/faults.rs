//! Faults on purpose as the log of xacts has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_measurement::outcome::Outcome;
use assay_measurement::planned_fault::PlannedFault;
use assay_measurement::xact::XactRow;
use assay_record::xact_log::XactLog;
use assay_workload::model::{Distribution, Faults, Goal, RequestType, Weighted, Workload};
use assay_workload::{Fault, Universe, UniverseOptions, XactId};

use crate::harness::simple;
use crate::origins::{Both, play};

/// Four robots that send requests to an origin which misbehaves towards most of them, in every way that there is.
fn misbehaving() -> Workload {
    let mut workload = simple();
    workload.servers[0].faults = Faults {
        error_share: 0.15,
        statuses: Weighted::one(503),
        reset_share: 0.1,
        slow_start_share: 0.15,
        slow_start_s: Distribution::Constant(0.005),
        slow_body_share: 0.15,
        slow_body_bytes_per_s: 300_000.0,
        lifetime_s: Some(Distribution::Constant(0.002)),
        ..Faults::default()
    };
    // Some are thought about for longer than they are given.
    workload.servers[0].think_s = Some(Distribution::Uniform { low: 0.0, high: 0.004 });
    workload.robots[0].request_types = Weighted::one(RequestType::Basic);
    workload.schedule.phases[0].goal = Goal { transactions: Some(300), ..Goal::default() };
    workload
}

/// Runs it; gives its rows, and what both sides counted.
fn logged(workload: &Workload) -> (Vec<XactRow>, Both) {
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path().join("xacts.parquet");
    let both = Both::of(play(workload, |setting| setting.xact_log = Some(path.clone())));
    (XactLog::read(&path).expect("a log"), both)
}

#[test]
fn every_row_has_the_fault_that_the_workload_plans_for_it_and_says_whether_it_was_met() {
    let workload = misbehaving();
    let (rows, both) = logged(&workload);
    both.check();
    // The seed and the world of these runs.
    let universe = Universe::new(Arc::new(workload), 7, 1, UniverseOptions::default()).expect("a universe");
    let mut planned = BTreeMap::new();
    for row in &rows {
        let xact = XactId { robot: row.robot, number: row.number, place: row.place };
        let plan = universe.fault(xact, 0).map(|fault| match fault {
            Fault::Status(_) => "status",
            Fault::Reset => "reset",
            Fault::Expired(_) => "expired",
            Fault::SlowStart(_) => "slow_start",
            Fault::SlowBody { .. } => "slow_body",
        });
        assert_eq!(row.fault.map(PlannedFault::name), plan, "{row:?}");
        // Nothing stands between: every request with a response got to the origin.
        assert_eq!(row.fault_met, plan.is_some() && row.last_byte_us.is_some(), "{row:?}");
        if matches!(plan, Some("status" | "reset" | "expired")) && row.fault_met {
            assert_eq!((row.outcome, row.error), (None, None), "it is no error: {row:?}");
            assert_eq!(row.status.is_some(), plan == Some("status"), "{row:?}");
        }
        *planned.entry(plan).or_insert(0u64) += u64::from(row.last_byte_us.is_some());
    }
    let of = |name: &str| planned.get(&Some(name)).copied().unwrap_or_default();
    for name in ["status", "reset", "expired", "slow_start", "slow_body"] {
        assert!(of(name) > 0, "no {name} in {planned:?}");
    }
    assert_eq!(both.robots.by_status.keys().collect::<Vec<_>>(), [&200, &503]);
    assert_eq!(both.robots.faults_passed, of("status") + of("reset") + of("expired"));
    let counts = &both.origins;
    assert_eq!(
        (counts.fault_statuses, counts.fault_resets, counts.fault_slow_starts, counts.fault_slow_bodies),
        (of("status"), of("reset") + of("expired"), of("slow_start"), of("slow_body"))
    );
}

#[test]
fn without_faults_no_row_is_marked() {
    let (rows, both) = logged(&simple());
    both.check();
    assert!(rows.len() >= 40 && rows.iter().all(|row| row.fault.is_none() && !row.fault_met));
    assert!(rows.iter().any(|row| row.outcome == Some(Outcome::Miss)));
}
