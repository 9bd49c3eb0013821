//! When phases begin and end.

use std::time::Duration;

use assay_workload::model::{Goal, Pace, Phase, WorkingSet, Workload};
use assay_workload::{Freeze, ScheduleError, Timeline};

use crate::fixtures::{self, GB, MB, flat, phase, ramp, seconds};

fn with_phases(phases: Vec<Phase>) -> Workload {
    let mut workload = fixtures::small();
    workload.schedule.phases = phases;
    workload
}

fn counting(transactions: u64) -> Goal {
    Goal { transactions: Some(transactions), ..Goal::default() }
}

fn length(timeline: &Timeline, index: usize) -> f64 {
    let span = &timeline.phases()[index];
    (span.end.unwrap() - span.start.unwrap()).as_secs_f64()
}

#[test]
fn durations_follow_each_other() {
    let timeline = Timeline::new(&with_phases(vec![phase("a", 1.5), phase("b", 2.25)])).unwrap();
    assert_eq!(timeline.phases()[1].start, Some(Duration::from_millis(1500)));
    assert_eq!(timeline.total(), Some(Duration::from_millis(3750)));
    assert_eq!(timeline.phase_at(Duration::from_millis(1499)), Some(0));
    assert_eq!(timeline.phase_at(Duration::from_millis(1500)), Some(1));
    assert_eq!(timeline.phase_at(Duration::from_millis(3750)), None);
}

#[test]
fn a_count_ends_its_phase_where_it_is_expected() {
    // 200/s at full load; a ramp from nothing has half of that on average.
    let flat_out = Phase { goal: counting(1000), ..phase("a", 0.0) };
    let rising = Phase { goal: counting(1000), load: ramp(0.0, 1.0), ..phase("b", 0.0) };
    let timeline = Timeline::new(&with_phases(vec![flat_out, rising])).unwrap();
    assert!((length(&timeline, 0) - 5.0).abs() < 1e-9);
    assert!((length(&timeline, 1) - 10.0).abs() < 1e-9);
}

#[test]
fn the_first_goal_that_is_reached_ends_a_phase() {
    let both = |transactions| Phase {
        goal: Goal { transactions: Some(transactions), ..phase("", 10.0).goal },
        ..phase("a", 0.0)
    };
    let timeline = Timeline::new(&with_phases(vec![both(1000), both(10_000)])).unwrap();
    assert!((length(&timeline, 0) - 5.0).abs() < 1e-9);
    assert_eq!(length(&timeline, 1), 10.0);
    // On a ramp of 10 s from 0 to 200/s, 250 requests have come due after 5 s.
    let ramped = Phase { load: ramp(0.0, 1.0), ..both(250) };
    assert!((length(&Timeline::new(&with_phases(vec![ramped])).unwrap(), 0) - 5.0).abs() < 1e-6);
}

#[test]
fn fill_counts_basic_first_visits_of_cachable_objects() {
    let fill = Phase { goal: Goal { fill_bytes: Some(8 * MB), ..Goal::default() }, ..phase("fill", 0.0) };
    let timeline = Timeline::new(&with_phases(vec![fill])).unwrap();
    // 200/s, half of them first visits, 80 % cachable, 1 KB each.
    assert!((length(&timeline, 0) - 8192.0 / 80.0).abs() < 1e-6);
    let expected = timeline.phases()[0].expected.unwrap();
    // The first request is a first visit, also if it would be a revisit.
    assert!((expected.fill_bytes - (8192.0 + 0.8 * 0.5) * 1024.0).abs() < 1.0);
    assert!((expected.offered_dhr() - 0.4 * (1.0 - 1.0 / (200.0 * length(&timeline, 0)))).abs() < 1e-9);
}

#[test]
fn the_listings_have_the_lengths_that_arithmetic_gives() {
    let timeline = Timeline::new(&fixtures::image_listing()).unwrap();
    let expected = 2.0 * GB as f64 / (400.0 * 0.95 * 0.8 * 9216.5);
    assert!((length(&timeline, 1) - expected).abs() < 1e-3, "{}", length(&timeline, 1));
    assert_eq!(timeline.freeze(), Freeze::At(seconds(640)));
    assert!((timeline.phases()[3].expected.unwrap().offered_dhr() - 0.76).abs() < 1e-9);
    let mixed = Timeline::new(&fixtures::mixed_listing()).unwrap();
    let expected = mixed.phases()[3].expected.unwrap();
    assert!((expected.requests - 1600.0 * 0.2 * 3600.0).abs() < 1e-3, "embedded objects count");
    assert!(expected.launches < 0.6 * expected.requests);
}

#[test]
fn a_phase_that_never_ends_is_named() {
    let name = |workload: &Workload| match Timeline::new(workload) {
        Err(ScheduleError::NeverEnds { phase, .. }) => phase,
        other => panic!("{other:?}"),
    };
    let aimless = Phase { goal: Goal::default(), ..phase("aimless", 0.0) };
    assert_eq!(name(&with_phases(vec![phase("a", 1.0), aimless])), "aimless");
    let idle = Phase { goal: counting(5), load: flat(0.0), ..phase("idle", 0.0) };
    assert_eq!(name(&with_phases(vec![idle])), "idle");
    let filled = Phase {
        goal: Goal { fill_bytes: Some(1), ..Goal::default() },
        recurrence: flat(2.0),
        ..phase("full", 0.0)
    };
    assert_eq!(name(&with_phases(vec![filled])), "full");
    let waiting = Phase { wait_for_freeze: true, ..phase("waiting", 1.0) };
    assert_eq!(name(&with_phases(vec![waiting])), "waiting");
    assert_eq!(Timeline::new(&with_phases(vec![])), Err(ScheduleError::Empty));
}

#[test]
fn a_schedule_without_an_end_has_no_length_and_keeps_its_rate() {
    let workload = with_phases(vec![Phase::default_phase(Goal::ENDLESS)]);
    let timeline = Timeline::new(&workload).unwrap();
    assert!(timeline.is_endless() && timeline.total().is_none());
    let limited = with_phases(vec![Phase::default_phase(seconds(10))]);
    let limited = Timeline::new(&limited).unwrap();
    assert_eq!((limited.is_endless(), limited.total()), (false, Some(seconds(10))));
    let rate = |timeline: &Timeline| timeline.phases()[0].expected.unwrap().peak_request_rate;
    assert_eq!(rate(&timeline), rate(&limited));
}

#[test]
fn a_phase_waits_for_the_freeze() {
    let waiting = Phase { wait_for_freeze: true, ..phase("a", 10.0) };
    let mut workload = with_phases(vec![waiting, phase("b", 5.0)]);
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(30));
    assert_eq!(Timeline::new(&workload).unwrap().total(), Some(seconds(35)));
    // 80 fill objects a second.
    workload.schedule.working_set = WorkingSet::FrozenAtFill(1600);
    let timeline = Timeline::new(&workload).unwrap();
    assert!((length(&timeline, 0) - 20.0).abs() < 1e-6);
    workload.schedule.phases[0].wait_for_freeze = false;
    assert_eq!(Timeline::new(&workload).unwrap().freeze(), Freeze::Never, "15 s are too short");
    workload.schedule.phases[1] = phase("b", 50.0);
    let Freeze::At(at) = Timeline::new(&workload).unwrap().freeze() else { panic!("never frozen") };
    assert!((at.as_secs_f64() - 20.0).abs() < 1e-6);
}

#[test]
fn recurrence_beyond_certainty_is_clipped() {
    let clipped = Phase { recurrence: ramp(0.0, 4.0), ..phase("a", 100.0) };
    let expected = Timeline::new(&with_phases(vec![clipped])).unwrap().phases()[0].expected.unwrap();
    // 0.5 × factor reaches 1 half way: the mean is 0.75. The first request is no revisit, and hardly meant to be.
    let offered = expected.offered_hits / expected.basic;
    assert!(offered < 0.75 * 0.8 && offered > 0.75 * 0.8 - 1e-4, "{offered}");
}

#[test]
fn best_effort_leaves_open_what_depends_on_counts() {
    let mut workload =
        with_phases(vec![phase("a", 3.0), Phase { goal: counting(5), ..phase("b", 0.0) }, phase("c", 1.0)]);
    workload.robots[0].pace = Pace::BestEffort;
    let timeline = Timeline::new(&workload).unwrap();
    assert_eq!(timeline.phases()[0].end, Some(seconds(3)));
    assert_eq!((timeline.phases()[1].start, timeline.phases()[1].end), (Some(seconds(3)), None));
    assert_eq!((timeline.phases()[2].start, timeline.total()), (None, None));
    workload.robots.push(fixtures::robots(1, 1.0, 0.5));
    assert_eq!(Timeline::new(&workload), Err(ScheduleError::Mixed { phase: "b".into() }));
}

#[test]
fn nonsense_in_a_schedule_is_refused() {
    let error = |phase| Timeline::new(&with_phases(vec![phase])).unwrap_err();
    let factor = error(Phase { population: flat(1.5), ..phase("a", 1.0) });
    assert!(matches!(factor, ScheduleError::Factor { field: "populus_factor", .. }));
    assert!(matches!(error(Phase { load: flat(f64::NAN), ..phase("a", 1.0) }), ScheduleError::Factor { .. }));
    assert!(matches!(error(phase("a", 1e11)), ScheduleError::TooLong { .. }));
    let eternal = Phase { goal: counting(u64::MAX), load: flat(1e-300), ..phase("a", 0.0) };
    assert!(matches!(error(eternal), ScheduleError::TooLong { .. }));
}
