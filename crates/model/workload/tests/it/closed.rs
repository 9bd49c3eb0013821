//! Best-effort robots.

use std::collections::HashSet;
use std::sync::Arc;

use assay_workload::model::{Pace, Ramp, Workload};
use assay_workload::object::Space;
use assay_workload::{ClosedRobot, Launch, Universe, UniverseOptions};

use crate::fixtures::{self, phase};

fn universe(workload: Workload) -> Universe {
    Universe::new(Arc::new(workload), 11, 1, UniverseOptions::default()).unwrap()
}

fn best_effort(robots: u32, recurrence: f64) -> Workload {
    let mut workload = fixtures::mixed_listing();
    workload.robots[0].pace = Pace::BestEffort;
    workload.robots[0].addresses[0].count = robots;
    workload.robots[0].recurrence = recurrence;
    workload.schedule.phases = vec![phase("a", 1.0), phase("b", 1.0)];
    workload
}

fn run(universe: &Universe, robots: u32, each: u64) -> Vec<Launch> {
    let mut crew: Vec<_> = (0..robots).map(|robot| ClosedRobot::new(universe, robot)).collect();
    (0..each).flat_map(|_| crew.iter_mut().map(|robot| robot.next(universe)).collect::<Vec<_>>()).collect()
}

#[test]
fn revisits_have_their_share_and_name_first_visits() {
    let mut workload = best_effort(50, 0.8);
    workload.robots[0].private_share = 0.0;
    let universe = universe(workload);
    let launches = run(&universe, 50, 2000);
    let introduced: HashSet<_> = launches.iter().filter(|l| !l.revisit).map(|l| l.object).collect();
    let late = &launches[launches.len() / 2..];
    let revisits: Vec<_> = late.iter().filter(|l| l.revisit).collect();
    let expected = 0.8 * late.len() as f64;
    assert!((revisits.len() as f64 - expected).abs() < 4.0 * (expected * 0.2).sqrt(), "{}", revisits.len());
    let known = revisits.iter().filter(|l| introduced.contains(&l.object)).count();
    assert_eq!(known, revisits.len(), "in lockstep every revisit is of something introduced");
    assert!(revisits.iter().any(|l| matches!(l.object.space, Space::BestEffort(r) if r != l.robot)));
}

#[test]
fn a_hot_object_is_introduced_once_whatever_the_recurrence() {
    for recurrence in [0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
        for (robots, each) in [(1, 10), (1, 500), (10, 2), (10, 100), (1000, 1), (1000, 5)] {
            let mut workload = fixtures::small();
            workload.robots = vec![fixtures::robots(robots, 1.0, recurrence)];
            workload.robots[0].pace = Pace::BestEffort;
            workload.schedule.phases = vec![phase("a", 1.0)];
            let universe = universe(workload);
            let launches = run(&universe, robots, each);
            let objects: HashSet<_> = launches.iter().map(|launch| launch.object).collect();
            let first_visits = launches.iter().filter(|launch| !launch.revisit).count();
            assert_eq!(first_visits, objects.len(), "{recurrence}, {robots} robots, {each} each");
            let expected = (1.0 - recurrence) * launches.len() as f64;
            let allowed = 4.0 * (expected * recurrence).sqrt() + 1.0;
            assert!(
                (objects.len() as f64 - 0.5 - expected).abs() <= allowed,
                "{} of {expected}",
                objects.len()
            );
        }
    }
}

#[test]
fn private_interest_stays_with_the_robot() {
    let mut workload = best_effort(3, 0.8);
    workload.robots[0].private_share = 0.5;
    let universe = universe(workload);
    let launches = run(&universe, 3, 5000);
    let private: Vec<_> = launches.iter().filter(|l| matches!(l.object.space, Space::Private(_))).collect();
    assert!((private.len() as f64 - 7500.0).abs() < 4.0 * 3750f64.sqrt());
    assert!(private.iter().all(|l| l.object.space == Space::Private(l.robot)));
    let revisits = private.iter().filter(|l| l.revisit).count() as f64;
    assert!((revisits / private.len() as f64 - 0.8).abs() < 0.03);
}

#[test]
fn a_type_with_its_own_recurrence_gets_its_share_of_revisits() {
    let mut workload = best_effort(40, 0.5);
    workload.robots[0].private_share = 0.0;
    workload.contents[4].behaviour.recurrence = Some(0.9);
    let universe = universe(workload);
    let launches = run(&universe, 40, 3000);
    let late = &launches[launches.len() / 2..];
    let share = |content| {
        let (all, revisits) = late
            .iter()
            .filter(|l| l.object.content == content)
            .fold((0, 0), |(n, r), l| (n + 1, r + u32::from(l.revisit)));
        (f64::from(all) / late.len() as f64, f64::from(revisits) / f64::from(all))
    };
    for (content, recurrence) in [(1, 0.5), (3, 0.5), (4, 0.9)] {
        let (part, revisits) = share(content);
        assert!(
            (part - 1.0 / 3.0).abs() < 0.02 && (revisits - recurrence).abs() < 0.03,
            "{content}: {part} {revisits}"
        );
    }
}

#[test]
fn a_request_depends_on_the_robots_own_counts_only() {
    let universe = universe(best_effort(10, 0.8));
    let mut one = ClosedRobot::new(&universe, 4);
    let early: Vec<_> = (0..100).map(|_| one.next(&universe)).collect();
    one.freeze();
    one.enter_phase(&universe, 1);
    let late: Vec<_> = (0..100).map(|_| one.next(&universe)).collect();
    assert_eq!(one.counts(), [100, 100]);
    assert_eq!(one.frozen_at(), Some(100));
    assert_eq!((early[99].number, late[0].number, late[0].phase), (99, 1 << 40, 1));

    let mut other = ClosedRobot::new(&universe, 4);
    other.resume(&universe, &[100], Some(100));
    assert_eq!(
        (0..100).map(|_| other.next(&universe)).collect::<Vec<_>>(),
        late,
        "imposed counts give the same"
    );
    let mut shorter = ClosedRobot::new(&universe, 4);
    shorter.resume(&universe, &[60], Some(60));
    assert_ne!((0..100).map(|_| shorter.next(&universe)).collect::<Vec<_>>(), late);
}

#[test]
fn the_window_is_respected_after_the_freeze() {
    let mut workload = best_effort(5, 0.8);
    workload.robots[0].private_share = 0.0;
    let universe = universe(workload);
    let mut robot = ClosedRobot::new(&universe, 0);
    (0..200).for_each(|_| _ = robot.next(&universe));
    robot.freeze();
    robot.enter_phase(&universe, 1);
    for _ in 0..1000 {
        let launch = robot.next(&universe);
        let own = 200 + (launch.number & ((1 << 40) - 1));
        if let (true, Space::BestEffort(_)) = (launch.revisit, launch.object.space) {
            let serial = launch.object.serial;
            let index = if serial >> 40 == 1 { 200 + (serial & ((1 << 40) - 1)) } else { serial };
            assert!((own - 200..own).contains(&index), "{index} is not among the last 200 before {own}");
        }
    }
}

#[test]
fn a_phase_of_revisits_alone_keeps_to_what_an_earlier_phase_introduced() {
    let mut workload = best_effort(4, 1.0);
    workload.robots[0].private_share = 0.0;
    workload.schedule.phases[0].recurrence = Ramp { begin: 0.0, end: 0.0 };
    let universe = universe(workload);
    let mut crew: Vec<_> = (0..4).map(|robot| ClosedRobot::new(&universe, robot)).collect();
    let request = |crew: &mut [ClosedRobot], each: u64| -> Vec<Launch> {
        (0..each)
            .flat_map(|_| crew.iter_mut().map(|robot| robot.next(&universe)).collect::<Vec<_>>())
            .collect()
    };
    let introduced: HashSet<_> = request(&mut crew, 20).iter().map(|l| l.object).collect();
    assert_eq!(introduced.len(), 80);
    crew.iter_mut().for_each(|robot| robot.enter_phase(&universe, 1));
    assert!(request(&mut crew, 5000).iter().all(|l| l.revisit && introduced.contains(&l.object)));
}
