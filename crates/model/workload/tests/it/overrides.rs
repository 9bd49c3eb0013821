//! A workload with another length, rate or number of robots.

use assay_workload::Timeline;
use assay_workload::model::{Goal, HttpVersion, Pace, Phase, RobotAddress, Workload};
use assay_workload::overrides::{OverrideError, Overrides, multiply_rate};

use crate::fixtures::{self, phase, seconds};

fn peak(workload: &Workload) -> f64 {
    let timeline = Timeline::new(workload).unwrap();
    let rates = timeline.phases().iter().map(|phase| phase.expected.unwrap().peak_request_rate);
    rates.fold(0.0, f64::max)
}

fn with(overrides: Overrides, mut workload: Workload) -> Workload {
    overrides.apply(&mut workload).unwrap();
    workload
}

#[test]
fn a_duration_is_one_phase_of_constant_full_load() {
    let short =
        with(Overrides { duration: Some(seconds(7)), ..Overrides::default() }, fixtures::mixed_listing());
    assert_eq!(short.schedule.phases, [Phase::default_phase(seconds(7))]);
    assert_eq!(Timeline::new(&short).unwrap().total(), Some(seconds(7)));
}

#[test]
fn a_rate_is_that_of_all_robots_where_the_load_is_highest() {
    for workload in [fixtures::small(), fixtures::image_listing(), fixtures::mixed_listing()] {
        let before = Timeline::new(&workload).unwrap();
        let set = with(Overrides { rate: Some(123.0), ..Overrides::default() }, workload);
        assert!((peak(&set) - 123.0).abs() < 1e-6, "{}", peak(&set));
        assert_eq!(Timeline::new(&set).unwrap().phases().len(), before.phases().len());
    }
}

#[test]
fn robots_that_wait_for_responses_get_a_rate() {
    let mut workload = fixtures::small();
    workload.robots.iter_mut().for_each(|group| group.pace = Pace::BestEffort);
    workload.schedule.phases = vec![Phase::default_phase(Goal::ENDLESS)];
    let set = with(Overrides { rate: Some(50.0), ..Overrides::default() }, workload);
    assert!((peak(&set) - 50.0).abs() < 1e-6);
}

#[test]
fn robots_of_all_kinds_keep_their_shares_and_their_addresses() {
    let mut workload = fixtures::small();
    let address = |host: &str, count| RobotAddress { host: host.into(), count };
    let mut other = workload.robots[0].clone();
    workload.robots[0].addresses = vec![address("10.0.1.1", 1), address("10.0.1.2", 1)];
    other.addresses = vec![address("10.0.2.1", 6)];
    workload.robots.push(other);
    for wanted in [2, 3, 8, 17, 4_000, 1_000_000] {
        let set = with(Overrides { robots: Some(wanted), ..Overrides::default() }, workload.clone());
        assert_eq!(set.robot_count(), wanted);
        let counts: Vec<f64> = set.robots.iter().map(|group| f64::from(group.count())).collect();
        assert!((counts[1] - f64::from(wanted) * 0.75).abs() <= 1.5, "{counts:?}");
        assert!(set.robots.iter().flat_map(|group| &group.addresses).all(|address| address.count > 0));
    }
    let eight = with(Overrides { robots: Some(8), ..Overrides::default() }, workload.clone());
    assert_eq!(eight.robots[1].addresses, workload.robots[1].addresses);
    let one = Overrides { robots: Some(1), ..Overrides::default() }.apply(&mut workload);
    assert_eq!(one, Err(OverrideError::TooFewRobots { robots: 1, kinds: 2 }));
}

#[test]
fn a_rate_holds_whatever_the_number_of_robots() {
    let both = Overrides { rate: Some(40.0), robots: Some(9), ..Overrides::default() };
    let set = with(both, fixtures::small());
    assert_eq!(set.robot_count(), 9);
    assert!((peak(&set) - 40.0).abs() < 1e-6);
}

#[test]
fn twice_the_rate_is_twice_the_requests() {
    let requests = |workload: &Workload| {
        let timeline = Timeline::new(workload).unwrap();
        timeline.phases()[0].expected.unwrap().requests
    };
    let mut workload = fixtures::small();
    let before = requests(&workload);
    multiply_rate(&mut workload, 2.0).unwrap();
    assert!((requests(&workload) / before - 2.0).abs() < 1e-9);
    workload.robots[0].pace = Pace::BestEffort;
    assert!(multiply_rate(&mut workload, 2.0).is_err());
    assert_eq!(multiply_rate(&mut workload, 1.0), Ok(()));
}

#[test]
fn a_rate_that_cannot_be_set_says_why() {
    let rate = Overrides { rate: Some(40.0), ..Overrides::default() };
    let why = |mut workload: Workload| rate.apply(&mut workload).unwrap_err().to_string();
    let mut mixed = fixtures::small();
    let mut waits = mixed.robots[0].clone();
    waits.pace = Pace::BestEffort;
    mixed.robots.push(waits);
    assert!(why(mixed).contains("no rate to multiply"));
    let mut idle = fixtures::small();
    idle.schedule.phases = vec![Phase { load: fixtures::flat(0.0), ..phase("idle", 5.0) }];
    assert!(why(idle).contains("never send anything"));
}

#[test]
fn several_streams_are_for_best_effort_robots_over_http_2() {
    let over = |robot_http, streams| Overrides { robot_http, streams: Some(streams), ..Overrides::default() };
    let closed = || {
        let mut workload = fixtures::small();
        workload.robots[0].pace = Pace::BestEffort;
        workload
    };
    let set = with(over(Some(HttpVersion::Http2), 10), closed());
    assert_eq!(set.robots[0].streams, 10);
    let refused = |overrides: Overrides, mut workload| overrides.apply(&mut workload).unwrap_err();
    assert_eq!(refused(over(None, 10), closed()), OverrideError::NoHttp2);
    // Another version of HTTP is no way out where no robot waits for responses.
    for version in [None, Some(HttpVersion::Http2)] {
        let error = refused(over(version, 10), fixtures::small());
        assert_eq!(error, OverrideError::NoStreams);
        assert!(!error.to_string().contains("--robot-http"), "{error}");
    }
    assert_eq!(with(over(None, 1), closed()).robots[0].streams, 1);
}
