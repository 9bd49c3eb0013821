//! Robots that come and go.

use std::sync::Arc;
use std::time::Duration;

use assay_workload::model::{Distribution, Goal, Pace, Session, WorkingSet, Workload};
use assay_workload::{SessionClock, SessionState, Slice, Stream, Timeline, Universe, UniverseOptions};
use proptest::prelude::*;

use crate::fixtures::{self, phase, seconds};

fn with_sessions(busy: Goal, idle_s: Distribution) -> Workload {
    let mut workload = fixtures::small();
    workload.robots[0].addresses[0].count = 200;
    workload.robots[0].session = Some(Session { busy, idle_s });
    workload
}

fn busy_for(duration_s: u64) -> Goal {
    Goal { duration: Some(seconds(duration_s)), ..Goal::default() }
}

fn universe(workload: Workload) -> Arc<Universe> {
    Arc::new(Universe::new(Arc::new(workload), 8, 1, UniverseOptions::default()).unwrap())
}

/// What a robot does at each of some moments.
fn states(universe: &Universe, robot: u32, moments_s: impl Iterator<Item = u64>) -> Vec<SessionState> {
    let mut clock = SessionClock::new(universe, robot).expect("has sessions");
    moments_s.map(|s| clock.at(universe, s * 1_000_000_000)).collect()
}

#[test]
fn the_share_of_busy_robots_is_the_same_at_every_moment() {
    let laws = [
        Distribution::Constant(6.0),
        Distribution::Exponential { mean: 6.0 },
        Distribution::LogNormal { mean: 6.0, deviation: 6.0 },
    ];
    for idle_s in laws {
        let mut workload = with_sessions(busy_for(4), idle_s.clone());
        workload.robots[0].addresses[0].count = 4000;
        let universe = universe(workload);
        let mut busy = [0; 6];
        for robot in 0..4000 {
            let states = states(&universe, robot, [0, 1, 5, 10, 60, 601].into_iter());
            busy.iter_mut().zip(states).for_each(|(n, state)| *n += u32::from(state.busy));
        }
        // 40 % of 4000, within five deviations.
        assert!(busy.iter().all(|n| (1600 - 155..=1600 + 155).contains(n)), "{idle_s:?}: {busy:?}");
    }
}

#[test]
fn periods_follow_each_other_and_are_counted() {
    let universe = universe(with_sessions(busy_for(4), Distribution::Uniform { low: 1.0, high: 9.0 }));
    for robot in 0..50 {
        let mut clock = SessionClock::new(&universe, robot).unwrap();
        let mut state = clock.at(&universe, 0);
        for _ in 0..40 {
            let next = clock.at(&universe, state.until_ns);
            assert_ne!(next.busy, state.busy);
            assert_eq!(
                next.session,
                state.session + u64::from(next.busy),
                "a new one begins with being busy"
            );
            let length_s = (next.until_ns - state.until_ns) as f64 / 1e9;
            let wanted = if next.busy { 4.0..4.0 + 1e-6 } else { 1.0..9.0 };
            assert!(wanted.contains(&length_s), "{length_s}");
            state = next;
        }
    }
}

#[test]
fn idle_robots_request_nothing_and_the_rest_is_as_expected() {
    let mut workload = with_sessions(busy_for(5), Distribution::Exponential { mean: 5.0 });
    workload.robots[0].private_share = 0.2;
    workload.schedule.phases = vec![phase("top", 120.0)];
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(30));
    let timeline = Arc::new(Timeline::new(&workload).unwrap());
    let expected = timeline.phases()[0].expected.unwrap();
    assert!((expected.requests - 200.0 * 10.0 * 0.5 * 120.0).abs() < 1e-6);
    let universe = universe(workload);
    let mut clocks: Vec<_> = (0..200).map(|robot| SessionClock::new(&universe, robot).unwrap()).collect();
    let whole: Vec<_> = Stream::new(universe.clone(), timeline.clone(), Slice::ALL).collect();
    for launch in &whole {
        // A nanosecond is the grain of due times.
        let due_ns = launch.due.as_nanos() as u64;
        let clock = &mut clocks[launch.robot as usize];
        let busy = clock.at(&universe, due_ns).busy || clock.at(&universe, due_ns + 2).busy;
        assert!(busy, "{launch:?}");
    }
    // Robots are busy or not for seconds: the sum scatters more than a Poisson count.
    let seen = whole.len() as f64;
    assert!((seen / expected.requests - 1.0).abs() < 0.05, "{seen} of {}", expected.requests);
    let parts: Vec<_> = (0..3)
        .flat_map(|index| Stream::new(universe.clone(), timeline.clone(), Slice::new(index, 3)))
        .collect();
    let sorted = |mut launches: Vec<assay_workload::Launch>| {
        launches.sort_by_key(|l| (l.robot, l.number));
        launches
    };
    assert_eq!(sorted(parts), sorted(whole));
}

#[test]
fn a_number_of_transactions_is_a_time_at_the_robots_rate() {
    let busy = Goal { transactions: Some(40), ..Goal::default() };
    let counted = universe(with_sessions(busy.clone(), Distribution::Constant(1.0)));
    let mut clock = SessionClock::new(&counted, 0).unwrap();
    assert_eq!(clock.transactions(&counted), None, "the robot need not count");
    let mut state = clock.at(&counted, 0);
    while !state.busy {
        state = clock.at(&counted, state.until_ns);
    }
    let idle = clock.at(&counted, state.until_ns);
    let busy_again = clock.at(&counted, idle.until_ns);
    assert_eq!(busy_again.until_ns - idle.until_ns, 4_000_000_000, "40 requests at 10 a second");

    let mut closed = with_sessions(busy, Distribution::Constant(1.5));
    closed.robots[0].pace = Pace::BestEffort;
    let closed = universe(closed);
    let mut clock = SessionClock::new(&closed, 0).unwrap();
    assert_eq!(clock.transactions(&closed), Some(40));
    assert_eq!(
        clock.at(&closed, 99_000_000_000),
        SessionState { session: 0, busy: true, until_ns: u64::MAX }
    );
    clock.finish(&closed, 100_000_000_000);
    let idle = clock.at(&closed, 100_000_000_000);
    assert_eq!((idle.busy, idle.until_ns), (false, 101_500_000_000));
    let next = clock.at(&closed, idle.until_ns);
    assert_eq!((next.session, next.busy, next.until_ns), (1, true, u64::MAX));
}

#[test]
fn robots_without_sessions_have_no_clock() {
    assert!(SessionClock::new(&universe(fixtures::small()), 0).is_none());
    assert_eq!(SessionState::ALWAYS.until_ns, u64::MAX);
}

proptest! {
    #[test]
    fn no_sessions_stop_the_clock(busy_us in 1u64..10_000_000, mean in 0.0f64..1e7, robot in 0u32..200, now_s in 0u64..600) {
        let busy = Goal { duration: Some(Duration::from_micros(busy_us)), ..Goal::default() };
        let universe = universe(with_sessions(busy, Distribution::Exponential { mean: mean / 1e3 }));
        let mut clock = SessionClock::new(&universe, robot).unwrap();
        let now_ns = now_s * 1_000_000_000;
        prop_assert!(clock.at(&universe, now_ns).until_ns > now_ns);
    }
}
