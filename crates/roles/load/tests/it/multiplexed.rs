//! Robots over HTTP/2: what they do is what they do over HTTP/1.1, on fewer connections, and no request is lost.

use std::collections::BTreeMap;

use assay_measurement::counts::RobotCounts;
use assay_measurement::error_kind::ErrorKind;
use assay_workload::model::*;

use crate::harness::{check_sums, content, lasts, phase, simple, xacts};
use crate::robot_run::{Options, Run, run};
use crate::server::{Http2Manner, Manner};

/// Four best-effort robots, pages, and many requests at a time.
fn busy() -> Workload {
    let mut workload = simple();
    workload.contents.push(content("image", 500.0));
    workload.contents[0].embedded =
        Some(Embedded { count: Distribution::Constant(6.0), contents: Weighted::one(1) });
    workload.robots[0].streams = 5;
    workload.robots[0].connection_use_limit = None;
    workload.schedule.phases = vec![phase("only", xacts(600))];
    workload
}

fn multiplexed(mut workload: Workload, manner: Http2Manner) -> Run {
    workload.robots[0].http_versions = Weighted::one(HttpVersion::Http2);
    // One thread, on which all four robots start at once: of two, one could be over before the other has a processor.
    run(&workload, Options { manner: Manner::Http2(manner), threads: 1, ..Options::default() })
}

/// Nothing was lost, and nothing was wrong.
fn check_all(run: &Run) -> RobotCounts {
    let counts = run.total();
    check_sums(&counts);
    assert_eq!(counts.error_total(), 0, "{:?}", counts.errors);
    assert!(counts.completed > 50, "{counts:?}");
    counts
}

#[test]
fn the_same_is_due_as_over_http_1_1() {
    let mut workload = busy();
    workload.robots[0].streams = 1;
    workload.robots[0].pace = Pace::Rate { per_second: 100.0 };
    workload.schedule.phases = vec![phase("only", lasts(500))];
    // What is due does not depend on how much of it is sent in time.
    let due = |run: &Run| {
        let counts = run.total();
        check_sums(&counts);
        (counts.due, counts.due_digest, counts.offered_hits)
    };
    let before = due(&run(&workload, Options::default()));
    assert!(before.0 > 50, "{before:?}");
    assert_eq!(due(&multiplexed(workload, Http2Manner::Right(100))), before);
}

#[test]
fn each_robot_has_one_connection_on_which_fields_are_coded() {
    let run = multiplexed(busy(), Http2Manner::Right(100));
    let counts = check_all(&run);
    assert_eq!((counts.connections_opened, counts.connections_closed), (4, 4));
    assert_eq!((counts.streams_opened, counts.streams_reset, counts.retries), (counts.sent, 0, 0));
    assert_eq!(counts.on_reused_connection, counts.sent - 4);
    assert!(counts.coded_field_bytes_out * 2 < counts.field_bytes_out, "{counts:?}");
    assert!(counts.coded_field_bytes_in < counts.field_bytes_in, "{counts:?}");
    for seen in run.server.requests() {
        assert!(!seen.head.contains("host:") && seen.head.contains("accept: */*"), "{}", seen.head);
    }
}

#[test]
fn pages_are_more_urgent_than_what_they_embed_where_that_is_to_be_said() {
    let mut workload = busy();
    let said = |run: &Run, embedded: bool| -> Vec<Option<String>> {
        let requests =
            run.server.requests().into_iter().filter(|seen| seen.head.contains("/t01/") == embedded);
        let line = |head: &str| head.lines().find(|line| line.starts_with("priority:")).map(str::to_owned);
        let mut said: Vec<_> = requests.map(|seen| line(&seen.head.to_lowercase())).collect();
        said.sort();
        said.dedup();
        said
    };
    let silent = multiplexed(workload.clone(), Http2Manner::Right(100));
    assert_eq!((said(&silent, false), said(&silent, true)), (vec![None], vec![None]));
    workload.robots[0].priorities = true;
    let mut one_by_one = workload.clone();
    one_by_one.robots[0].streams = 1;
    let all = [multiplexed(workload.clone(), Http2Manner::Right(100)), run(&one_by_one, Options::default())];
    for run in all {
        check_all(&run);
        assert_eq!(said(&run, false), [Some("priority: u=1".to_owned())]);
        assert_eq!(said(&run, true), [Some("priority: u=5, i".to_owned())]);
    }
    workload.contents[0].embedded = None;
    let alone = multiplexed(workload, Http2Manner::Right(100));
    assert_eq!(said(&alone, false), [None], "nothing is more urgent than nothing");
}

#[test]
fn no_more_streams_are_open_than_the_target_allows() {
    let counts = check_all(&multiplexed(busy(), Http2Manner::Right(2)));
    // A few may be sent, and refused, before its settings have come.
    assert_eq!(counts.retries, counts.streams_reset, "{counts:?}");
    assert_eq!(counts.connections_opened, 4);
}

#[test]
fn a_connection_carries_as_many_requests_as_its_robot_wants() {
    let mut workload = busy();
    workload.robots[0].connection_use_limit = Some(Distribution::Constant(10.0));
    let run = multiplexed(workload, Http2Manner::Right(100));
    let counts = check_all(&run);
    let mut uses = BTreeMap::<usize, u64>::new();
    run.server.requests().iter().for_each(|seen| *uses.entry(seen.connection).or_default() += 1);
    assert!(uses.values().all(|&uses| uses <= 10), "{uses:?}");
    assert_eq!(counts.connections_opened, uses.len() as u64);
}

#[test]
fn what_the_target_has_not_acted_on_is_sent_again() {
    let mut workload = busy();
    workload.schedule.phases = vec![phase("only", xacts(200))];
    for manner in [Http2Manner::Refuses, Http2Manner::GoesAway, Http2Manner::Hangs] {
        let run = multiplexed(workload.clone(), manner);
        let counts = run.total();
        check_sums(&counts);
        // A connection that is closed without a word can take responses with it that had begun.
        if manner != Http2Manner::Hangs {
            assert_eq!(counts.error_total(), 0, "{manner:?}: {:?}", counts.errors);
            assert!(counts.retries > 5, "{manner:?}: {counts:?}");
            assert_eq!(counts.completed, run.server.requests().len() as u64, "{manner:?}: each once");
        }
        assert_eq!(counts.goaways > 0, manner == Http2Manner::GoesAway, "{counts:?}");
        assert_eq!(counts.streams_reset > 0, manner == Http2Manner::Refuses, "{counts:?}");
    }
}

#[test]
fn what_the_target_never_acts_on_is_an_error_after_so_many_attempts() {
    let mut workload = busy();
    workload.schedule.phases = vec![phase("only", xacts(20))];
    let counts = multiplexed(workload, Http2Manner::RefusesAll).total();
    check_sums(&counts);
    assert!(counts.errors[&ErrorKind::StreamReset] > 0, "{:?}", counts.errors);
    assert_eq!(counts.error_total(), counts.errors[&ErrorKind::StreamReset], "{:?}", counts.errors);
    assert_eq!(counts.retries, 100 * counts.error_total(), "{counts:?}");
}

#[test]
fn every_fault_of_a_stream_is_counted_under_its_own_name() {
    for (manner, kind) in [
        (Http2Manner::ResetsWithin, ErrorKind::TruncatedBody),
        (Http2Manner::ResetsBefore, ErrorKind::StreamReset),
        (Http2Manner::Pushes, ErrorKind::Malformed),
        (Http2Manner::Interim, ErrorKind::Malformed),
        (Http2Manner::NoStatus, ErrorKind::Malformed),
    ] {
        let counts = multiplexed(simple(), manner).total();
        check_sums(&counts);
        assert_eq!((counts.errors[&kind], counts.completed), (counts.sent, 0), "{manner:?}: {counts:?}");
    }
}

#[test]
fn a_best_effort_robot_has_as_many_requests_under_way_as_it_is_told() {
    let with = |(streams, gathered): (u32, usize), timeout_ms: u64| {
        let mut workload = simple();
        workload.robots[0].streams = streams;
        workload.robots[0].connection_use_limit = None;
        workload.robots[0].http_versions = Weighted::one(HttpVersion::Http2);
        let manner = Manner::Http2(Http2Manner::Gathers(gathered));
        // One thread, on which all four robots start at once: of two, one could be over before the other has a processor.
        run(&workload, Options { manner, threads: 1, timeout_ms, ..Options::default() }).total()
    };
    let counts = with((5, 5), 60_000);
    check_sums(&counts);
    assert_eq!((counts.error_total(), counts.connections_opened), (0, 4), "{counts:?}");
    assert!(counts.completed > 40, "{counts:?}");
    // One more than that never comes before the first of each robot has been given up.
    for (streams, gathered) in [(5, 6), (1, 2)] {
        let counts = with((streams, gathered), 300);
        check_sums(&counts);
        let timed_out = counts.errors.get(&ErrorKind::TimedOut).copied().unwrap_or_default();
        assert!(timed_out >= 4, "{streams} {gathered}: {counts:?}");
    }
}

#[test]
fn uploads_go_out_as_streams() {
    let mut workload = simple();
    workload.robots[0].methods = Weighted::one(Method::Post);
    workload.robots[0].post_contents = Weighted::one(0);
    workload.contents[0].size_bytes = Distribution::Constant(300_000.0);
    let run = multiplexed(workload, Http2Manner::Right(100));
    let counts = run.total();
    check_sums(&counts);
    assert_eq!(counts.error_total(), 0, "{:?}", counts.errors);
    assert!(run.server.requests().iter().all(|seen| seen.body == 300_000));
}
