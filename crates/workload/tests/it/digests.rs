//! Digests: golden, and the same for every number of threads.

use std::sync::Arc;

use assay_workload::digest::stream_digest;
use assay_workload::model::{Pace, Workload};
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
    assert_eq!(digests, ["af5e26ddd423efd1", "010878bb1ae91de7", "c38abfd4047ee933", "cf7bc2e2641c4fa2"]);
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
