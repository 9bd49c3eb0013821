//! Several requests at once on one connection: the responses come in order, and none is lost.

use std::collections::BTreeMap;

use assay_measurement::counts::RobotCounts;
use assay_measurement::error_kind::ErrorKind;
use assay_workload::model::*;

use crate::harness::{check_sums, pages, phase, xacts};
use crate::robot_run::{Options, run};
use crate::server::{Manner, Seen};

fn is_embedded(seen: &Seen) -> bool {
    seen.head.contains("/t01/")
}

/// Every request that was sent got a correct response.
fn check_all_responded(counts: &RobotCounts) {
    check_sums(counts);
    assert_eq!(counts.error_total(), 0, "{counts:#?}");
    assert!(counts.pages >= 9, "{counts:#?}");
}

#[test]
fn responses_to_a_pipeline_may_be_cut_anywhere() {
    // The server keeps the responses back until all three are requested: without a pipeline, no request gets any.
    for piece in [usize::MAX, 1, 7, 64, 501] {
        // One thread, on which all four robots start at once: of two, one could be over before the other has a processor.
        let options = Options { manner: Manner::InThrees(piece), threads: 1, ..Options::default() };
        let run = run(&pages(Some(3.0)), options);
        let counts = run.total();
        check_all_responded(&counts);
        assert_eq!((counts.retries, counts.connections_opened), (0, 4), "{piece}");
        assert_eq!(counts.completed, run.server.requests().len() as u64, "{piece}");
    }
}

#[test]
fn a_pipeline_is_as_deep_as_its_connection_and_its_use_limit_allow() {
    let mut workload = pages(Some(2.0));
    workload.robots[0].connection_use_limit = Some(Distribution::Constant(3.0));
    for limit in [Some(1), Some(2), None] {
        workload.robots[0].open_connection_limit = limit;
        let run = run(&workload, Options::default());
        let counts = run.total();
        check_all_responded(&counts);
        assert_eq!(counts.retries, 0, "{limit:?}");
        let requests = run.server.requests();
        let mut uses = BTreeMap::<usize, Vec<&Seen>>::new();
        requests.iter().for_each(|seen| uses.entry(seen.connection).or_default().push(seen));
        for uses in uses.values() {
            assert!(uses.len() <= 3, "{limit:?}");
            let last_says_so = uses[uses.len() - 1].head.contains("Connection: close");
            assert_eq!(last_says_so, uses.len() == 3, "{limit:?}");
        }
    }
}

#[test]
fn what_is_behind_when_a_connection_ends_is_sent_again() {
    // Before the first response, and in the middle of each.
    for (cut, truncated_of_three, again_of_three) in [(0, 0, 3), (100, 1, 2), (900, 1, 1), (1500, 1, 0)] {
        let options = Options { manner: Manner::CutsThrees(cut), ..Options::default() };
        let run = run(&pages(Some(3.0)), options);
        let counts = run.total();
        check_sums(&counts);
        assert!(counts.completed >= 30, "{cut}: {counts:#?}");
        let truncated = counts.errors.get(&ErrorKind::TruncatedBody).copied().unwrap_or(0);
        assert_eq!(counts.error_total(), truncated, "{cut}: {counts:#?}");
        assert_eq!(truncated > 0, truncated_of_three > 0, "{cut}: {counts:#?}");
        if truncated > 0 {
            assert_eq!(counts.retries, truncated * again_of_three, "{cut}: {counts:#?}");
        } else {
            assert!(
                counts.retries > 0 && counts.retries.is_multiple_of(again_of_three),
                "{cut}: {counts:#?}"
            );
        }
        let again = run.server.requests().len() as u64;
        assert_eq!(again, counts.sent + counts.retries, "{cut}");
    }
}

#[test]
fn a_server_that_closes_after_every_response_loses_nothing() {
    let options = Options { manner: Manner::ClosesAfterOne, ..Options::default() };
    let run = run(&pages(Some(3.0)), options);
    let counts = run.total();
    check_sums(&counts);
    assert_eq!(counts.error_total(), 0, "{counts:#?}");
    assert!(run.server.requests().iter().any(is_embedded));
}

#[test]
fn a_pipeline_without_responses_times_out_as_a_whole() {
    let mut workload = pages(Some(3.0));
    // However slow the machine is: each of the four robots gets at most its page before it waits for embedded objects,
    // and a phase of best-effort robots ends only when eight requests have ended.
    workload.schedule.phases = vec![phase("only", xacts(8))];
    // Two responses are all that ever come: the third would not fit the depth.
    workload.robots[0].pipeline_depth = Some(Distribution::Constant(2.0));
    let options = Options { manner: Manner::InThrees(64), timeout_ms: 300, ..Options::default() };
    let counts = run(&workload, options).total();
    check_sums(&counts);
    let timed_out = counts.errors.get(&ErrorKind::TimedOut).copied().unwrap_or(0);
    assert!(timed_out > 0 && counts.error_total() == timed_out, "{counts:#?}");
}
