//! What robots do with requests that come due while others get no response.

use std::collections::BTreeMap;
use std::net::TcpListener;

use assay_load::spec::Target;
use assay_measurement::counts::RobotCounts;
use assay_measurement::error_kind::ErrorKind;
use assay_workload::model::*;

use crate::harness::{Reported, Setting, check_sums, lasts, perform, phase, simple, start_soon};

/// Runs a workload's robots against a server that takes connections and never responds.
pub fn unanswered(workload: &Workload, timeout_ms: u64) -> Reported {
    let silent = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let proxy = silent.local_addr().expect("it is bound");
    perform(workload, start_soon(), Setting { timeout_ms, ..Setting::to(Target::Reverse { proxy }) })
}

#[test]
fn what_cannot_be_sent_is_unsent_and_does_not_reach_the_next_phase() {
    let mut workload = simple();
    workload.robots[0].pace = Pace::Rate { per_second: 100.0 };
    workload.robots[0].open_connection_limit = Some(2);
    workload.schedule.phases = vec![phase("first", lasts(300)), phase("second", lasts(300))];
    let run = unanswered(&workload, 1_000);
    let of_phase = |phase: u16| {
        let mut total = RobotCounts::default();
        run.intervals().filter(|i| i.phase == phase).for_each(|i| total.merge(&i.counts));
        total
    };
    for phase in [0, 1] {
        let counts = of_phase(phase);
        check_sums(&counts);
        assert!(counts.unsent > 0);
        assert_eq!(counts.completed, 0);
    }
    // Four robots with two connections each: all busy in the first phase, and never free again.
    assert_eq!((of_phase(0).sent, of_phase(1).sent), (8, 0));
    assert_eq!(run.total().errors, BTreeMap::from([(ErrorKind::TimedOut, 8)]));
    let waited: u64 =
        run.intervals().flat_map(|i| &i.times.unsent_wait.buckets).map(|&(_, count)| count).sum();
    assert_eq!(waited, run.total().unsent);
}

#[test]
fn a_full_queue_is_an_error_of_requests_that_were_never_sent() {
    let mut workload = simple();
    workload.robots[0].pace = Pace::Rate { per_second: 100.0 };
    workload.robots[0].open_connection_limit = Some(1);
    workload.robots[0].waiting_limit = Some(3);
    workload.schedule.phases = vec![phase("only", lasts(300))];
    let counts = unanswered(&workload, 500).total();
    // Each of the four robots has one request under way and three that wait; the others find no place (but for
    // those that a late worker finds only after the end).
    let overflow = counts.errors[&ErrorKind::QueueOverflow];
    assert_eq!((counts.sent, counts.errors[&ErrorKind::TimedOut]), (4, 4));
    assert!(counts.unsent >= 4 * 3 && overflow > 0, "{counts:?}");
    assert_eq!(counts.due, counts.sent + counts.unsent + overflow);
}
