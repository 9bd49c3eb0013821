//! Robots with a foreign interest walk through a trace.

use std::collections::HashSet;
use std::sync::Arc;

use assay_workload::model::{ForeignUrl, Origin, Pace, Weighted, Workload};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{
    ClosedRobot, Launch, PathError, Slice, Stream, Timeline, Universe, UniverseError, UniverseOptions,
};

use crate::fixtures::{self, phase};
use crate::xacts::is_share;

fn url(origin: u16, path: &str) -> ForeignUrl {
    ForeignUrl { origin, path: path.into() }
}

fn with_trace(lines: u32, share: f64) -> Workload {
    let mut workload = fixtures::small();
    workload.origins.push(Origin { authority: "other:80".into(), server: 0 });
    workload.foreign = (0..lines).map(|line| url((line % 2) as u16, &format!("/a/{line}?q=1"))).collect();
    workload.robots[0].foreign_share = share;
    workload
}

fn parts(workload: Workload) -> (Arc<Universe>, Arc<Timeline>) {
    let timeline = Timeline::new(&workload).unwrap();
    let universe = Universe::new(Arc::new(workload), 4, 1, UniverseOptions::default()).unwrap();
    (Arc::new(universe), Arc::new(timeline))
}

fn is_foreign(launch: &&Launch) -> bool {
    launch.object.space == Space::Foreign
}

#[test]
fn new_lines_come_in_order_and_revisits_are_of_earlier_ones() {
    let (universe, timeline) = parts(with_trace(100_000, 0.4));
    let launches: Vec<_> = Stream::new(universe, timeline, Slice::ALL).collect();
    let foreign: Vec<_> = launches.iter().filter(is_foreign).collect();
    assert!(is_share(foreign.len(), launches.len() as u64, 0.4));
    let new: Vec<u64> = foreign.iter().filter(|l| !l.revisit).map(|l| l.object.serial).collect();
    assert!(new.len() > 3500 && new.iter().copied().eq(0..new.len() as u64), "{new:?}");
    let mut seen = HashSet::new();
    for launch in &foreign {
        if launch.revisit {
            assert!(seen.contains(&launch.object));
        } else {
            seen.insert(launch.object);
        }
        assert_eq!(u64::from(launch.object.origin), launch.object.serial % 2);
    }
    let revisits = foreign.iter().filter(|l| l.revisit).count();
    assert!((revisits as f64 / foreign.len() as f64 - 0.5).abs() < 0.03);
}

#[test]
fn a_url_with_a_number_is_another_with_each_visit_and_is_found_again() {
    for pace in [Pace::Rate { per_second: 10.0 }, Pace::BestEffort] {
        let mut workload = with_trace(7, 1.0);
        workload.foreign[3].path = "/n/${url_number}/x?n=${url_number}".into();
        workload.foreign[5].path = "/deadbeef00${url_number}".into();
        workload.robots[0].recurrence = 0.0;
        workload.robots[0].pace = pace.clone();
        let (universe, timeline) = parts(workload.clone());
        let launches: Vec<_> = if pace == Pace::BestEffort {
            let mut crew: Vec<_> = (0..20).map(|robot| ClosedRobot::new(&universe, robot)).collect();
            (0..1000)
                .flat_map(|_| crew.iter_mut().map(|robot| robot.next(&universe)).collect::<Vec<_>>())
                .collect()
        } else {
            Stream::new(universe.clone(), timeline.clone(), Slice::ALL).collect()
        };
        let expected = timeline.phases()[0].expected.filter(|_| pace != Pace::BestEffort);
        let (mut numbered, mut distinct) = (0, HashSet::new());
        for launch in &launches {
            let object = universe.object(launch.object);
            let path = universe.path(&object);
            assert_eq!(universe.parse_path(object.id.origin, path.as_bytes()), Ok(object.id), "{path}");
            if path.starts_with("/n/") || path.starts_with("/dead") {
                numbered += 1;
                assert!(distinct.insert(path.clone()), "{path} again");
            }
        }
        assert!(is_share(numbered, launches.len() as u64, 2.0 / 7.0), "{numbered} of {}", launches.len());
        // Of the rest, four fifths of the objects may be cached, and all were there before.
        let dhr = expected.map(|expected| expected.offered_dhr());
        assert!(dhr.is_none_or(|dhr| (dhr - 0.8 * 5.0 / 7.0).abs() < 0.001), "{dhr:?}");
    }
}

#[test]
fn a_trace_that_was_walked_through_has_nothing_new() {
    let mut workload = with_trace(1500, 0.5);
    workload.foreign.extend_from_within(..500);
    let timeline = Timeline::new(&workload).unwrap();
    let expected = timeline.phases()[0].expected.unwrap();
    let (universe, timeline) = parts(workload);
    let launches: Vec<_> = Stream::new(universe.clone(), timeline, Slice::ALL).collect();
    let new: Vec<_> = launches.iter().filter(is_foreign).filter(|l| !l.revisit).map(|l| l.object).collect();
    let distinct: HashSet<_> = new.iter().collect();
    assert_eq!(distinct.len(), 1500, "as many as there are URLs");
    assert_eq!(new.len(), 1500, "a URL is new once");
    let hits =
        launches.iter().filter(|l| universe.offered(l, &universe.object(l.object)).hit()).count() as f64;
    let dhr = expected.offered_dhr();
    assert!(
        (hits / launches.len() as f64 - dhr).abs() < 0.02,
        "{hits} of {}, expected {dhr}",
        launches.len()
    );
}

#[test]
fn a_path_of_the_trace_leads_to_its_first_line() {
    let mut workload = with_trace(10, 0.1);
    workload.foreign.push(url(1, "/a/1?q=1"));
    let (universe, _) = parts(workload);
    let id = universe.parse_path(1, b"/a/1?q=1").unwrap();
    assert_eq!((id.space, id.serial, id.origin), (Space::Foreign, 1, 1));
    assert_eq!(universe.path(&universe.object(id)), "/a/1?q=1");
    assert_eq!(universe.parse_path(0, b"/a/1?q=1"), Err(PathError::Unknown), "another host");
    assert_eq!(universe.parse_path(1, b"/a/1"), Err(PathError::Unknown));
    let public = ObjectId { space: Space::Public, ..id };
    assert_ne!(universe.object(public).key, universe.object(id).key);
}

#[test]
fn a_best_effort_robot_walks_on_its_own() {
    let mut workload = with_trace(100_000, 0.6);
    workload.robots[0].pace = Pace::BestEffort;
    let (universe, _) = parts(workload);
    let mut robots: Vec<_> = (0..20).map(|robot| ClosedRobot::new(&universe, robot)).collect();
    let launches: Vec<_> =
        (0..500).flat_map(|_| robots.iter_mut().map(|r| r.next(&universe)).collect::<Vec<_>>()).collect();
    let foreign: Vec<_> = launches.iter().filter(is_foreign).collect();
    assert!(is_share(foreign.len(), launches.len() as u64, 0.6));
    let new: HashSet<_> = foreign.iter().filter(|l| !l.revisit).map(|l| l.object).collect();
    let late = &foreign[foreign.len() / 2..];
    let known = late.iter().filter(|l| l.revisit).filter(|l| new.contains(&l.object)).count();
    let revisits = late.iter().filter(|l| l.revisit).count();
    assert_eq!(known, revisits);
    assert!(is_share(revisits, late.len() as u64, 0.5));
}

#[test]
fn robots_may_have_no_other_interest_and_a_trace_needs_origins() {
    let mut workload = with_trace(1000, 1.0);
    workload.robots[0].origins = Weighted::none();
    for pace in [Pace::Rate { per_second: 5.0 }, Pace::BestEffort] {
        workload.robots[0].pace = pace.clone();
        workload.schedule.phases = vec![phase("a", 20.0)];
        let (universe, timeline) = parts(workload.clone());
        if pace.is_closed() {
            let mut robot = ClosedRobot::new(&universe, 0);
            assert!((0..100).all(|_| robot.next(&universe).object.space == Space::Foreign));
        } else {
            assert!(Stream::new(universe, timeline, Slice::ALL).all(|l| l.object.space == Space::Foreign));
        }
    }
    workload.foreign.clear();
    let error = |workload: Workload| {
        Universe::new(Arc::new(workload), 1, 1, UniverseOptions::default()).map(|_| ()).unwrap_err()
    };
    assert!(matches!(error(workload.clone()), UniverseError::Lacks { .. }));
    workload.foreign = vec![url(7, "/")];
    assert!(matches!(error(workload), UniverseError::Missing { what: "origin", .. }));
}
