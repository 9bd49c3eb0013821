//! Load that adapts: the clock moves, the stream does not.

use std::sync::Arc;
use std::time::Duration;

use assay_workload::model::{
    Distribution, Goal, Pace, Phase, Script, Session, Thermostat, WorkingSet, Workload,
};
use assay_workload::{
    Adaptation, AdaptiveClock, Freeze, Launch, Slice, Stream, Timeline, Universe, UniverseOptions,
};
use proptest::prelude::*;

use crate::fixtures::{self, phase, ramp, seconds};

#[test]
fn the_clock_runs_at_the_multiple_that_was_last_set() {
    let mut clock = AdaptiveClock::new();
    assert_eq!((clock.schedule_ns(5_000), clock.real_ns(5_000)), (5_000, Some(5_000)));
    clock.change(1_000, 2.0);
    clock.change(3_000, 0.0);
    clock.change(4_000, 0.5);
    for (real, schedule) in
        [(500, 500), (1_000, 1_000), (2_000, 3_000), (3_500, 5_000), (4_000, 5_000), (6_000, 6_000)]
    {
        assert_eq!(clock.schedule_ns(real), schedule, "at {real}");
    }
    assert_eq!(clock.real_ns(3_000), Some(2_000));
    assert_eq!(clock.real_ns(5_000), Some(3_000), "when it is first reached");
    assert_eq!(clock.real_ns(5_500), Some(5_000));
    assert_eq!(clock.schedule_length(1_000, 6_000), Duration::from_nanos(5_000));
    clock.change(2_000, f64::NAN);
    assert_eq!(clock.multiple(), 0.0);
    assert_eq!(clock.real_ns(1 << 40), None, "a clock that stands still never gets there");
}

proptest! {
    #[test]
    fn both_ways_agree_and_nothing_goes_back(
        changes in prop::collection::vec((0u64..1_000_000_000_000, 0.0f64..20.0), 0..12),
        moments in prop::collection::vec(0u64..2_000_000_000_000, 1..30),
    ) {
        let mut clock = AdaptiveClock::new();
        let mut at = 0;
        for (step, multiple) in changes {
            at += step / 10;
            clock.change(at, multiple);
        }
        let mut moments = moments;
        moments.sort_unstable();
        let schedule: Vec<u64> = moments.iter().map(|real| clock.schedule_ns(*real)).collect();
        prop_assert!(schedule.is_sorted());
        for (real, schedule) in moments.into_iter().zip(schedule) {
            let back = clock.real_ns(schedule).expect("was reached");
            prop_assert!(back <= real, "the first moment at which it is reached");
            prop_assert!(clock.schedule_ns(back) >= schedule);
        }
    }
}

/// A ramp with a thermostat between two plain phases.
fn workload() -> Workload {
    let mut workload = fixtures::mixed_listing();
    workload.robots[0].addresses[0].count = 60;
    workload.robots[0].pace = Pace::Rate { per_second: 2.0 };
    let sample = Some(Thermostat { sample: seconds(1), step: 0.1, low: None, high: Some(seconds(1)) });
    let adaptive = Phase {
        load: ramp(0.2, 1.0),
        recurrence: ramp(0.5, 1.0),
        thermostat: sample,
        script: Some(Script::default()),
        ..phase("adapted", 20.0)
    };
    let after = Phase { population: ramp(1.0, 0.3), ..phase("after", 10.0) };
    workload.schedule.phases = vec![phase("before", 10.0), adaptive, after];
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(25));
    workload
}

fn adapted(workload: &Workload, length_s: f64, population: &[(f64, f64)]) -> Arc<Timeline> {
    let population =
        population.iter().map(|(at_s, share)| (Duration::from_secs_f64(*at_s), *share)).collect();
    let adaptation = Adaptation { phase: 1, length: Some(Duration::from_secs_f64(length_s)), population };
    Arc::new(Timeline::adapted(workload, &[adaptation]).unwrap())
}

fn universe(workload: &Workload) -> Arc<Universe> {
    Arc::new(Universe::new(Arc::new(workload.clone()), 6, 1, UniverseOptions::default()).unwrap())
}

/// When a change is announced, how long the phase will be, and its population from when on, all in seconds.
type Change = (f64, f64, Vec<(f64, f64)>);

/// The launches of a stream that is told of each change when it is announced.
fn retimed(workload: &Workload, slice: Slice, changes: &[Change]) -> Vec<Launch> {
    let mut stream = Stream::new(universe(workload), Arc::new(Timeline::new(workload).unwrap()), slice);
    let mut launches = Vec::new();
    for (at_s, length_s, population) in changes {
        let before = Duration::from_secs_f64(*at_s);
        while stream.due().is_some_and(|due| due < before) {
            launches.extend(stream.next());
        }
        stream.retime(adapted(workload, *length_s, population));
    }
    launches.extend(stream);
    launches
}

fn changes() -> Vec<Change> {
    vec![
        (12.0, 35.0, vec![]),
        (15.5, 31.25, vec![(7.0, 0.5)]),
        (30.0, 27.125, vec![(7.0, 0.5), (21.5, 0.9)]),
        (36.0, 26.5, vec![(7.0, 0.5), (21.5, 0.9)]),
    ]
}

#[test]
fn a_stream_that_is_told_of_changes_is_the_one_that_always_knew() {
    let mut with_sessions = workload();
    let busy = Goal { duration: Some(seconds(3)), ..Goal::default() };
    let idle_s = Distribution::Exponential { mean: 2.0 };
    with_sessions.robots[0].session = Some(Session { busy, idle_s });
    for workload in [workload(), with_sessions] {
        let (_, length_s, population) = changes().pop().unwrap();
        let timeline = adapted(&workload, length_s, &population);
        let known: Vec<_> = Stream::new(universe(&workload), timeline.clone(), Slice::ALL).collect();
        assert!(known.len() > 1000);
        let total_s = timeline.total().unwrap().as_secs_f64();
        assert!((total_s - (10.0 + 26.5 + 10.0)).abs() < 1e-9, "{total_s}");
        assert_eq!(retimed(&workload, Slice::ALL, &changes()), known);
        let mut parts: Vec<_> =
            (0..3).flat_map(|index| retimed(&workload, Slice::new(index, 3), &changes())).collect();
        let mut whole = known.clone();
        parts.sort_by_key(|l| (l.robot, l.number));
        whole.sort_by_key(|l| (l.robot, l.number));
        assert_eq!(parts, whole);
        let expected: f64 = timeline.phases().iter().map(|p| p.expected.unwrap().launches).sum();
        let seen = known.len() as f64;
        assert!((seen - expected).abs() < 0.08 * expected, "{seen} of {expected}");
    }
}

#[test]
fn only_living_robots_send_requests() {
    let workload = workload();
    let timeline = adapted(&workload, 20.0, &[(5.0, 0.2), (10.0, 0.6)]);
    let universe = universe(&workload);
    for launch in Stream::new(universe.clone(), timeline, Slice::ALL) {
        let share = match launch.due.as_secs_f64() {
            at if (15.0..20.0).contains(&at) => 0.2,
            at if (20.0..30.0).contains(&at) => 0.6,
            _ => 1.0,
        };
        assert!(universe.is_alive(launch.robot, share), "{launch:?}");
    }
}

#[test]
fn ramps_stay_where_they_are_and_the_rest_goes_on_at_their_end() {
    let workload = workload();
    let (planned, longer) = (Timeline::new(&workload).unwrap(), adapted(&workload, 40.0, &[]));
    for at_s in [3.0, 12.0, 20.0, 29.0] {
        let at = Duration::from_secs_f64(at_s);
        assert_eq!(planned.load_at(at), longer.load_at(at), "at {at_s} s");
    }
    assert!((planned.load_at(seconds(20)).unwrap() - 0.6).abs() < 1e-9);
    assert_eq!(longer.load_at(seconds(45)), Some(1.0));
    assert_eq!(longer.load_at(seconds(60)), None);
    assert_eq!(longer.phases()[2].start, Some(seconds(50)));
}

#[test]
fn a_freeze_at_a_fill_moves_with_what_was_filled() {
    let workload = workload();
    let frozen = |cap, population: &[(f64, f64)]| {
        let mut workload = workload.clone();
        workload.schedule.working_set = WorkingSet::FrozenAtFill(cap);
        workload.schedule.phases[2] = phase("after", 300.0);
        match adapted(&workload, 20.0, population).freeze() {
            Freeze::At(at) => at.as_secs_f64(),
            other => panic!("{other:?}"),
        }
    };
    let early = frozen(1, &[]);
    assert!(early < 10.0);
    let planned = frozen(130, &[]);
    assert!(planned > 10.0 && planned < 30.0, "{planned}");
    assert!(frozen(130, &[(1.0, 0.3)]) > planned + 1.0, "fewer robots take longer");
}
