//! What robots do is what the workload says, and what they count is what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use assay_load::spec::Target;
use assay_measurement::counts::RobotCounts;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::measured::Measured;
use assay_protocol::message::{Event, PhaseEvent};
use assay_record::xact_log::XactLog;
use assay_workload::model::*;
use assay_workload::{Slice, Stream, Timeline, Universe, UniverseOptions};

use crate::harness::{SEED, check_sums, content, lasts, phase, simple, xacts};
use crate::robot_run::{Options, Run, run};
use crate::server::Manner;

/// The errors of which a run has shown the requests.
fn examples(run: &Run) -> Vec<ErrorKind> {
    let kind = |event: &Event| match event {
        Event::Measured(Measured::Example(example)) => Some(example.kind),
        _ => None,
    };
    run.events.iter().filter_map(kind).collect()
}

/// What was counted in a phase.
fn of_phase(run: &Run, phase: u16) -> RobotCounts {
    let mut total = RobotCounts::default();
    run.intervals().filter(|i| i.phase == phase).for_each(|i| total.merge(&i.counts));
    total
}

#[test]
fn best_effort_robots_do_what_the_phase_sets() {
    let run = run(&simple(), Options::default());
    let counts = run.total();
    check_sums(&counts);
    assert_eq!((counts.error_total(), counts.unsent), (0, 0));
    assert!(counts.completed >= 40);
    assert_eq!(counts.completed, run.server.requests().len() as u64);
    assert_eq!(counts.body_bytes_in, counts.completed * 3000);
    assert_eq!(counts.connections_opened, counts.connections_closed);
    assert_eq!(counts.misses, counts.basic, "an origin that answers itself is a miss");
    // Ten uses a connection, and the last of them says so.
    let requests = run.server.requests();
    assert!(requests.iter().all(|seen| seen.head.contains("Host: origin.test:80\r\n")));
    let mut uses = BTreeMap::<usize, u64>::new();
    requests.iter().for_each(|seen| *uses.entry(seen.connection).or_default() += 1);
    assert!(uses.values().all(|&uses| uses <= 10), "{uses:?}");
    assert_eq!(counts.connections_opened, uses.len() as u64);
    assert_eq!(
        counts.on_reused_connection,
        counts.sent - counts.connections_opened,
        "all but the first of each"
    );
    let launched = run.events.iter().find_map(|event| match event {
        Event::Phase(PhaseEvent::Ended { launched, .. }) => Some(launched.clone()),
        _ => None,
    });
    let launched = launched.expect("the phase ended");
    assert_eq!((launched.len(), launched.iter().map(|&n| u64::from(n)).sum::<u64>()), (4, counts.due));
}

#[test]
fn the_working_set_is_what_the_stream_introduces_before_the_freeze() {
    let mut workload = simple();
    workload.robots[0].pace = Pace::Rate { per_second: 50.0 };
    workload.schedule.phases = vec![phase("first", lasts(400)), phase("second", lasts(400))];
    let freeze = Duration::from_millis(500);
    workload.schedule.working_set = WorkingSet::FrozenAfter(freeze);
    let universe =
        Arc::new(Universe::new(Arc::new(workload.clone()), SEED, 1, UniverseOptions::default()).unwrap());
    let timeline = Arc::new(Timeline::new(&workload).unwrap());
    let first_visits = || {
        let stream = Stream::new(universe.clone(), timeline.clone(), Slice::ALL);
        stream.filter(|launch| !launch.revisit)
    };
    let before = first_visits().filter(|launch| launch.due < freeze).count();
    assert!(0 < before && before < first_visits().count(), "some are introduced after the freeze");
    let counts = run(&workload, Options { threads: 2, ..Options::default() }).total();
    assert_eq!(counts.working_set, before as u64);
}

#[test]
fn the_same_stream_is_due_for_any_number_of_threads() {
    let mut workload = simple();
    workload.robots[0].pace = Pace::Rate { per_second: 50.0 };
    workload.schedule.phases = vec![phase("first", lasts(400)), phase("second", lasts(400))];
    let runs = [1, 3].map(|threads| run(&workload, Options { threads, ..Options::default() }));
    let [one, three] = runs.each_ref().map(|run| run.total());
    check_sums(&one);
    assert_eq!(
        (one.due, one.due_digest, one.offered_hits),
        (three.due, three.due_digest, three.offered_hits)
    );
    assert_eq!(one.due, one.completed + one.unsent);
    assert!(one.due > 50);
    for run in &runs {
        let ends: Vec<_> = run.intervals().map(|i| (i.start_ms + i.length_ms, i.phase)).collect();
        assert!(
            ends.contains(&(400, 0)) && ends.contains(&(800, 1)),
            "no interval spans two phases: {ends:?}"
        );
        check_sums(&of_phase(run, 0));
        check_sums(&of_phase(run, 1));
    }
}

#[test]
fn pages_bring_their_embedded_objects() {
    let mut workload = simple();
    workload.contents.push(content("image", 500.0));
    workload.contents[0].embedded =
        Some(Embedded { count: Distribution::Constant(3.0), contents: Weighted::one(1) });
    workload.servers[0].contents = Weighted::new([(0, 0.5), (1, 0.5)]);
    for limit in [None, Some(1), Some(2)] {
        workload.robots[0].open_connection_limit = limit;
        let run = run(&workload, Options::default());
        let counts = run.total();
        check_sums(&counts);
        // Only the pages that are under way when the phase ends may lack something: one for each robot.
        assert_eq!(counts.error_total(), 0, "{limit:?}");
        assert!(counts.not_reached <= 4 * 3 && counts.due <= 4 * (counts.pages + 4), "{limit:?}: {counts:?}");
        assert_eq!(counts.due % 4, 0, "{limit:?}");
        assert_eq!(counts.due_basic_bytes, counts.due / 4 * (3000 + 3 * 500), "{limit:?}");
    }
}

#[test]
fn every_fault_is_counted_under_its_own_name() {
    let mut workload = simple();
    workload.contents[0].life_cycle = Some(LifeCycle {
        length_s: Distribution::Constant(1000.0),
        variance: 0.0,
        with_last_modified: 1.0,
        expires: Weighted::none(),
    });
    let faults = [
        (Manner::FlippedByte, ErrorKind::WrongBytes),
        (Manner::CutOff, ErrorKind::TruncatedBody),
        (Manner::HeadCutOff, ErrorKind::TruncatedBody),
        (Manner::Swapped, ErrorKind::WrongObject),
        (Manner::WrongLength, ErrorKind::WrongLength),
        (Manner::NoMark, ErrorKind::Foreign),
        (Manner::EarlyVersion, ErrorKind::WrongVersion),
        (Manner::Unavailable, ErrorKind::ErrorStatus),
        (Manner::NeverModified, ErrorKind::WrongNotModified),
        (Manner::OneMore, ErrorKind::ExtraBytes),
        (Manner::Garbage, ErrorKind::Malformed),
        (Manner::EndlessHead, ErrorKind::Malformed),
        (Manner::Closes, ErrorKind::ConnectionLost),
    ];
    workload.schedule.phases = vec![phase("only", xacts(8))];
    for (manner, kind) in faults {
        let run = run(&workload, Options { manner, ..Options::default() });
        let counts = run.total();
        check_sums(&counts);
        assert!(counts.errors.contains_key(&kind), "{manner:?}: {counts:?}");
        assert_eq!(counts.errors.len(), 1, "{manner:?}: {counts:?}");
        assert_eq!(counts.completed, 0, "{manner:?}");
        let examples = examples(&run);
        assert!((1..=5).contains(&examples.len()) && examples.iter().all(|&seen| seen == kind), "{manner:?}");
    }
}

#[test]
fn a_hit_is_wrong_on_a_reload_after_expiry_and_on_what_may_not_be_stored() {
    let mut workload = simple();
    workload.schedule.phases = vec![phase("only", xacts(8))];
    let stored = || Options { manner: Manner::FromTheStore, ..Options::default() };
    let counts = run(&workload, stored()).total();
    assert_eq!((counts.error_total(), counts.hits), (0, counts.completed));
    assert_eq!(counts.unattributed, counts.completed, "they name no request");
    workload.robots[0].request_types = Weighted::one(RequestType::Reload);
    let counts = run(&workload, stored()).total();
    assert_eq!(counts.errors.keys().collect::<Vec<_>>(), [&ErrorKind::HitOnReload]);
    let undeclared = Options { reloads_reach_origin: false, ..stored() };
    let counts = run(&workload, undeclared).total();
    assert_eq!((counts.error_total(), counts.reloads_from_store), (0, counts.completed));
    workload.robots[0].request_types = Weighted::one(RequestType::Basic);
    let expires = Expiry { base: ExpiryBase::LastModified, after_s: Distribution::Constant(-10.0) };
    workload.contents[0].life_cycle = Some(LifeCycle {
        length_s: Distribution::Constant(1000.0),
        variance: 0.0,
        with_last_modified: 1.0,
        expires: Weighted::one(Some(expires)),
    });
    let counts = run(&workload, stored()).total();
    assert_eq!(counts.errors.keys().collect::<Vec<_>>(), [&ErrorKind::Stale]);
    workload.contents[0].cachable = 0.0;
    let counts = run(&workload, stored()).total();
    assert_eq!(counts.errors.keys().collect::<Vec<_>>(), [&ErrorKind::HitOnUncachable]);
}

#[test]
fn responses_may_be_framed_in_any_way() {
    for manner in [Manner::Chunked, Manner::UntilClose] {
        let counts = run(&simple(), Options { manner, ..Options::default() }).total();
        check_sums(&counts);
        assert_eq!(counts.error_total(), 0, "{manner:?}");
        assert_eq!(counts.body_bytes_in, counts.completed * 3000, "{manner:?}");
    }
}

#[test]
fn a_reused_connection_that_was_closed_is_no_error() {
    let run = run(&simple(), Options { manner: Manner::ClosesAfterOne, ..Options::default() });
    let counts = run.total();
    check_sums(&counts);
    assert_eq!(counts.error_total(), 0);
    assert_eq!(counts.connections_opened, counts.completed);
}

#[test]
fn a_stop_sends_nothing_new_and_ends_soon() {
    let mut workload = simple();
    workload.schedule.phases = vec![phase("long", lasts(3_600_000)), phase("never", lasts(3_600_000))];
    let run = run(&workload, Options { stop_after: Some(20), ..Options::default() });
    let counts = run.total();
    check_sums(&counts);
    assert!(counts.completed > 0);
    assert!(run.events.iter().any(|event| matches!(event, Event::Phase(PhaseEvent::Ended { phase: 0, .. }))));
    assert!(
        !run.events.iter().any(|event| matches!(event, Event::Phase(PhaseEvent::Began { phase: 1, .. })))
    );
}

#[test]
fn a_target_that_refuses_connections_is_not_hammered() {
    let mut workload = simple();
    workload.schedule.phases = vec![phase("only", xacts(12))];
    // Port 1 of loopback has no listener.
    let target = |_| Target::Reverse { proxy: SocketAddr::from(([127, 0, 0, 1], 1)) };
    let run = run(&workload, Options { target, ..Options::default() });
    let counts = run.total();
    assert_eq!(counts.errors.keys().collect::<Vec<_>>(), [&ErrorKind::ConnectFailed]);
    // Of the four robots, one has tried three times at least, and paused for 100 ms in between.
    let ended = run.events.iter().find_map(|event| match event {
        Event::Phase(PhaseEvent::Ended { at_ms, .. }) => Some(*at_ms),
        _ => None,
    });
    assert!(ended.is_some_and(|at_ms| at_ms >= 200), "{ended:?}: {counts:?}");
}

#[test]
fn methods_and_types_look_as_they_must() {
    let mut workload = simple();
    workload.contents[0].life_cycle = Some(LifeCycle {
        length_s: Distribution::Constant(1000.0),
        variance: 0.0,
        with_last_modified: 1.0,
        expires: Weighted::none(),
    });
    let robots = &mut workload.robots[0];
    robots.request_types = Weighted::new([
        (RequestType::Basic, 0.25),
        (RequestType::Ims200, 0.25),
        (RequestType::Ims304, 0.25),
        (RequestType::Reload, 0.25),
    ]);
    robots.methods = Weighted::new([(Method::Get, 0.6), (Method::Head, 0.2), (Method::Post, 0.2)]);
    robots.post_contents = Weighted::one(0);
    workload.schedule.phases = vec![phase("only", xacts(300))];
    let run = run(&workload, Options::default());
    let counts = run.total();
    check_sums(&counts);
    assert_eq!(counts.error_total(), 0, "{:?}", run.events);
    assert_eq!(counts.by_method.len(), 3);
    assert_eq!(counts.by_type.len(), 4);
    assert_eq!(counts.by_status.keys().collect::<Vec<_>>(), [&200, &304]);
    for seen in run.server.requests() {
        assert_eq!(seen.body, if seen.head.starts_with("POST") { 3000 } else { 0 }, "{}", seen.head);
    }
}

#[test]
fn a_forward_proxy_gets_absolute_targets() {
    let target = |proxy| Target::Forward { proxy, origins: vec![SocketAddr::from(([127, 0, 0, 9], 8080))] };
    let run = run(&simple(), Options { target, ..Options::default() });
    assert_eq!(run.total().error_total(), 0);
    for seen in run.server.requests() {
        assert!(seen.head.starts_with("GET http://127.0.0.9:8080/w00000001/t00/"), "{}", seen.head);
        assert!(seen.head.contains("Host: 127.0.0.9:8080\r\n"), "{}", seen.head);
    }
}

#[test]
fn http_1_0_robots_keep_connections_only_by_requesting_it() {
    let mut workload = simple();
    workload.robots[0].http_versions = Weighted::one(HttpVersion::Http10);
    let run = run(&workload, Options::default());
    assert_eq!(run.total().error_total(), 0);
    let requests = run.server.requests();
    assert!(requests.iter().all(|seen| seen.head.contains(" HTTP/1.0\r\n")));
    assert!(requests.iter().any(|seen| seen.head.contains("Connection: keep-alive\r\n")));
}

#[test]
fn the_xact_log_has_every_xact() {
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path().join("xacts.parquet");
    let run = run(&simple(), Options { xact_log: Some(path.clone()), ..Options::default() });
    let rows = XactLog::read(&path).expect("is a log");
    let counts = run.total();
    assert_eq!(rows.len() as u64, counts.due);
    for row in &rows {
        let instants =
            [row.ready_us, row.sent_us, row.first_byte_us, row.last_byte_us].map(|at| at.expect("has been"));
        assert!(row.due_us <= instants[0] && instants.is_sorted(), "{row:?}");
        assert_eq!((row.status, row.error, row.body_bytes), (Some(200), None, 3000));
    }
}

#[test]
fn a_robot_at_its_limit_closes_an_idle_connection_to_go_elsewhere() {
    let mut workload = simple();
    workload.origins.push(Origin { authority: "other.test:80".to_owned(), server: 0 });
    workload.robots[0].origins = Weighted::new([(0, 0.5), (1, 0.5)]);
    workload.robots[0].open_connection_limit = Some(1);
    // Both origins live at one address, but connections to them are not the same.
    let target = |origin| Target::Direct { origins: vec![origin, origin] };
    let run = run(&workload, Options { target, ..Options::default() });
    let counts = run.total();
    check_sums(&counts);
    assert_eq!(counts.error_total(), 0);
    let requests = run.server.requests();
    let hosts = |connection| {
        let of_it = requests.iter().filter(move |seen| seen.connection == connection);
        of_it.map(|seen| seen.head.contains("Host: origin.test:80")).collect::<BTreeSet<_>>()
    };
    assert!(counts.connections_opened > 8);
    assert!((0..counts.connections_opened as usize).all(|connection| hosts(connection).len() == 1));
    assert!(run.intervals().all(|interval| interval.levels.connections <= 4));
}

#[test]
fn robots_come_from_the_addresses_they_are_given() {
    let mut workload = simple();
    workload.robots[0].addresses = vec![
        RobotAddress { host: "10.0.0.1".to_owned(), count: 3 },
        RobotAddress { host: "10.0.0.2".to_owned(), count: 1 },
    ];
    let sources = [[127, 0, 0, 71], [0, 0, 0, 0]].map(IpAddr::from).to_vec();
    // One thread, on which all robots start at once: of two, one could be over before the other has a processor.
    let run = run(&workload, Options { sources, threads: 1, ..Options::default() });
    assert_eq!(run.total().error_total(), 0);
    let peers: BTreeSet<_> = run.server.requests().iter().map(|seen| seen.peer).collect();
    assert_eq!(peers, BTreeSet::from([[127, 0, 0, 1], [127, 0, 0, 71]].map(IpAddr::from)));
}
