//! Digests: golden, and the same for every number of threads.

use std::sync::Arc;

use assay_workload::digest::{part_digest, stream_digest};
use assay_workload::model::{
    Distribution, Extent, ForeignUrl, Goal, Pace, RangeSpec, RequestType, RobotGroup, Session, Weighted,
    Workload,
};
use assay_workload::rehearse::rehearse;
use assay_workload::{Timeline, Universe, UniverseOptions};

use crate::fixtures;

fn digest(workload: Workload, seed: u64, per_robot: u64, threads: u32) -> String {
    let timeline = Arc::new(Timeline::new(&workload).unwrap());
    let universe = Universe::new(Arc::new(workload), seed, 1, UniverseOptions::default()).unwrap();
    stream_digest(&Arc::new(universe), &timeline, per_robot, threads)
}

#[test]
fn streams_are_the_same_on_every_machine() {
    let mut closed = fixtures::small();
    closed.robots[0].pace = Pace::BestEffort;
    let digests = [
        digest(fixtures::small(), 1, 500, 1),
        digest(closed, 1, 500, 1),
        digest(rehearse(&fixtures::image_listing(), fixtures::seconds(60)).unwrap().0, 1, 20, 1),
        digest(fixtures::mixed_listing(), 1, 20, 1),
    ];
    assert_eq!(digests, ["5116e25e64c62340", "521462d2f8f83bde", "a32124afdcdf38fe", "83e74260786eeaf4"]);
}

#[test]
fn threads_do_not_change_a_digest() {
    let workloads = [
        (fixtures::small(), 300),
        (rehearse(&fixtures::image_listing(), fixtures::seconds(60)).unwrap().0, 10),
        (rehearse(&fixtures::mixed_listing(), fixtures::seconds(60)).unwrap().0, 5),
    ];
    for (workload, per_robot) in workloads {
        let one = digest(workload.clone(), 5, per_robot, 1);
        for threads in [2, 3, 7] {
            assert_eq!(digest(workload.clone(), 5, per_robot, threads), one, "{threads} threads");
        }
        assert_ne!(digest(workload.clone(), 6, per_robot, 1), one, "the seed matters");
        assert_ne!(digest(workload, 5, per_robot - 1, 1), one, "the length matters");
    }
}

/// Something of everything: a trace, sessions, intervals of a law of their own, uploads, parts, small objects
/// preferred, bodies sent again, best-effort robots beside scheduled ones.
fn everything() -> Workload {
    let mut workload = rehearse(&fixtures::mixed_listing(), fixtures::seconds(60)).unwrap().0;
    workload.foreign =
        (0..500).map(|line| ForeignUrl { origin: 0, path: format!("/{}", line % 400) }).collect();
    let group = &mut workload.robots[0];
    group.addresses[0].count = 90;
    group.foreign_share = 0.2;
    group.session = Some(Session {
        busy: Goal { transactions: Some(5), ..Goal::default() },
        idle_s: Distribution::Exponential { mean: 3.0 },
    });
    group.request_types =
        Weighted::new([(RequestType::Basic, 0.8), (RequestType::Range, 0.1), (RequestType::Upload, 0.1)]);
    group.ranges = Weighted::one(RangeSpec::Suffix(Extent::Share(0.1)));
    group.put_contents = Weighted::one(4);
    group.body_recurrence = 0.3;
    group.popularity.as_mut().unwrap().size_preference = 0.3;
    let mut regular = group.clone();
    regular.pace = Pace::Renewal(Distribution::LogNormal { mean: 0.5, deviation: 1.0 });
    let closed = RobotGroup { pace: Pace::Think(Distribution::Constant(1.0)), ..group.clone() };
    workload.robots.extend([regular, closed]);
    for phase in &mut workload.schedule.phases {
        phase.goal = Goal { duration: Some(fixtures::seconds(10)), ..Goal::default() };
    }
    workload
}

#[test]
fn everything_is_the_same_on_every_machine_for_any_threads_and_in_parts() {
    let whole = digest(everything(), 1, 25, 1);
    assert_eq!(whole, "5010eeb95017ac98");
    for threads in [2, 7] {
        assert_eq!(digest(everything(), 1, 25, threads), whole, "{threads} threads");
    }
    for workload in [everything(), fixtures::small()] {
        let whole = digest(workload.clone(), 1, 25, 1);
        let timeline = Arc::new(Timeline::new(&workload).unwrap());
        let universe = Universe::new(Arc::new(workload), 1, 1, UniverseOptions::default()).unwrap();
        let universe = Arc::new(universe);
        let part =
            |robots: std::ops::Range<u32>, threads| part_digest(&universe, &timeline, 25, robots, threads);
        let all = universe.robot_count();
        for middle in [1, 7, all / 2, all - 1] {
            let halves = part(0..middle, 2).wrapping_add(part(middle..all, 3));
            assert_eq!(format!("{halves:016x}"), whole, "two parts, cut at {middle}");
        }
        assert_eq!(part(all..all + 100, 1), 0, "robots that are not there");
    }
}
