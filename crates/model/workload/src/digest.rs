//! Digests of streams. Digests of identities, never of times.

use std::ops::Range;
use std::sync::Arc;

use crate::Purpose;
use crate::closed::ClosedRobot;
use crate::launch::Launch;
use crate::model::{Method, Pace, RequestType, RobotIndex};
use crate::object::ObjectId;
use crate::stream::{Slice, Stream};
use crate::timeline::Timeline;
use crate::universe::Universe;
use assay_base::random::{fold, hash};

/// Digest of one launch with its embedded objects; digests of launches are added with `wrapping_add`, in any order.
pub fn launch_digest(launch: &Launch, universe: &Universe) -> u64 {
    let key = |id: ObjectId| universe.key(&id);
    let how = how(launch.request_type, launch.method) | u64::from(launch.revisit) << 8;
    let words = [
        universe.seed(),
        u64::from(launch.robot),
        launch.number,
        key(launch.object),
        how,
        launch.post_body.map_or(0, key),
    ];
    let digest = hash(Purpose::Digest, &words);
    if universe.content(launch.object.content).embedded.is_none() {
        return digest;
    }
    universe.children(launch).fold(digest, |digest, child| {
        let how = u64::from(child.place) << 16 | how_type(child.request_type);
        fold(fold(digest, how), key(child.object))
    })
}

fn how(request_type: RequestType, method: Method) -> u64 {
    let method = match method {
        Method::Get => 0,
        Method::Head => 1,
        Method::Post => 2,
        Method::Put => 3,
    };
    method << 4 | how_type(request_type)
}

fn how_type(request_type: RequestType) -> u64 {
    match request_type {
        RequestType::Basic => 0,
        RequestType::Ims200 => 1,
        RequestType::Ims304 => 2,
        RequestType::Reload => 3,
        RequestType::Range => 4,
        RequestType::Upload => 5,
    }
}

/// The digest of the first `per_robot` launches of every robot with their embedded objects, as 16 hexadecimal
/// digits: the same for every number of threads. Best-effort robots count as if all launches were in the
/// first phase.
pub fn stream_digest(
    universe: &Arc<Universe>,
    timeline: &Arc<Timeline>,
    per_robot: u64,
    threads: u32,
) -> String {
    format!("{:016x}", part_digest(universe, timeline, per_robot, 0..universe.robot_count(), threads))
}

/// Digest of a range of robots: those of ranges that make up all robots add up to [`stream_digest`] by `wrapping_add`.
pub fn part_digest(
    universe: &Arc<Universe>,
    timeline: &Arc<Timeline>,
    per_robot: u64,
    robots: Range<RobotIndex>,
    threads: u32,
) -> u64 {
    let count = threads.max(1);
    std::thread::scope(|scope| {
        let slice = |index| {
            let slice = Slice::of_range(robots.clone(), index, count);
            move || slice_digest(universe, timeline, per_robot, slice)
        };
        let workers: Vec<_> = (0..count).map(|index| scope.spawn(slice(index))).collect();
        workers.into_iter().fold(0u64, |sum, worker| match worker.join() {
            Ok(digest) => sum.wrapping_add(digest),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn slice_digest(universe: &Arc<Universe>, timeline: &Arc<Timeline>, per_robot: u64, slice: Slice) -> u64 {
    let mut sum = 0u64;
    let mut add = |launch: &Launch| sum = sum.wrapping_add(launch_digest(launch, universe));
    let mut scheduled = 0u64;
    for robot in slice.robots(universe.robot_count()) {
        if is_closed(universe, robot) {
            let mut closed = ClosedRobot::new(universe, robot);
            (0..per_robot).for_each(|_| add(&closed.next(universe)));
        } else {
            scheduled += 1;
        }
    }
    if scheduled == 0 || per_robot == 0 {
        return sum;
    }
    let mut unfinished = scheduled;
    for launch in Stream::new(Arc::clone(universe), Arc::clone(timeline), slice) {
        if launch.number < per_robot {
            add(&launch);
            unfinished -= u64::from(launch.number + 1 == per_robot);
            if unfinished == 0 {
                break;
            }
        }
    }
    sum
}

fn is_closed(universe: &Universe, robot: RobotIndex) -> bool {
    let pace = universe.group_of(robot).map(|group| &universe.workload().robots[group].pace);
    pace.is_some_and(Pace::is_closed)
}
