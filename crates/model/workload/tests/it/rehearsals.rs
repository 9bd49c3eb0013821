//! Schedules made shorter.

use std::time::Duration;

use assay_workload::model::{Goal, Pace, Phase, Script, ScriptStatement, Thermostat, WorkingSet, Workload};
use assay_workload::rehearse::{Rehearsal, rehearse};
use assay_workload::{Freeze, ScheduleError, Timeline};
use proptest::prelude::*;

use crate::fixtures::{self, flat, phase, ramp, seconds};

fn total(workload: &Workload) -> f64 {
    Timeline::new(workload).unwrap().total().unwrap().as_secs_f64()
}

fn any_phase() -> impl Strategy<Value = Phase> {
    let goal = (
        prop::option::of(1u64..10_000_000),
        prop::option::of(1u64..100_000),
        prop::option::of(1u64..100_000_000),
    );
    (goal, 0.01f64..1.0, 0.01f64..1.0, 0.0f64..1.9, 0.0f64..1.9, prop::bool::weighted(0.2)).prop_map(
        |((micros, transactions, fill_bytes), l0, l1, r0, r1, wait_for_freeze)| {
            let none = micros.is_none() && transactions.is_none() && fill_bytes.is_none();
            let micros = micros.or(none.then_some(1_000_000));
            let goal = Goal {
                duration: micros.map(|m| Duration::from_micros(m * 100)),
                transactions,
                fill_bytes,
                errors: None,
            };
            Phase { goal, load: ramp(l0, l1), recurrence: ramp(r0, r1), wait_for_freeze, ..phase("p", 0.0) }
        },
    )
}

fn any_working_set() -> impl Strategy<Value = WorkingSet> {
    prop_oneof![
        (1u64..1000).prop_map(|s| WorkingSet::FrozenAfter(seconds(s))),
        (1u64..10_000).prop_map(WorkingSet::FrozenAtFill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_rehearsal_takes_the_time_it_was_given(
        phases in prop::collection::vec(any_phase(), 1..6), working_set in any_working_set(), millis in 1000u64..200_000,
    ) {
        let mut workload = fixtures::small();
        workload.schedule.phases = phases;
        workload.schedule.working_set = working_set;
        let wanted = Duration::from_millis(millis);
        let (rehearsal, scale) = rehearse(&workload, wanted).unwrap();
        prop_assert!((total(&rehearsal) - wanted.as_secs_f64()).abs() < 1e-3, "{} {}", total(&rehearsal), scale);
        prop_assert!((scale - wanted.as_secs_f64() / total(&workload)).abs() < 1e-9 * scale);
    }
}

#[test]
fn every_phase_of_the_listings_shrinks_alike() {
    for workload in [fixtures::image_listing(), fixtures::mixed_listing()] {
        let (rehearsal, scale) = rehearse(&workload, seconds(60)).unwrap();
        let (long, short) = (Timeline::new(&workload).unwrap(), Timeline::new(&rehearsal).unwrap());
        for (long, short) in long.phases().iter().zip(short.phases()) {
            let (long_end, short_end) = (long.end.unwrap().as_secs_f64(), short.end.unwrap().as_secs_f64());
            assert!((short_end - long_end * scale).abs() < 1e-5, "{}: {short_end}", short.name);
            let (long, short) = (long.expected.unwrap(), short.expected.unwrap());
            assert!((short.requests - long.requests * scale).abs() < 0.01);
            // A first fetch takes as long as ever, so more of a short run is spent waiting for one; and a
            // robot's first private request is a larger part of what it requests.
            assert!(short.offered_dhr() <= long.offered_dhr() + 1e-9);
            assert_eq!(short.peak_request_rate, long.peak_request_rate, "rates stay");
        }
        let (Freeze::At(long), Freeze::At(short)) = (long.freeze(), short.freeze()) else {
            panic!("never frozen")
        };
        assert!((short.as_secs_f64() - long.as_secs_f64() * scale).abs() < 1e-6);
        assert_eq!(rehearsal.robots, workload.robots);
        assert_eq!(rehearsal.contents, workload.contents);
    }
}

#[test]
fn best_effort_scales_what_has_a_length() {
    let mut workload = fixtures::small();
    workload.robots[0].pace = Pace::BestEffort;
    let count = Phase { goal: Goal { transactions: Some(500), ..Goal::default() }, ..phase("b", 0.0) };
    workload.schedule.phases.push(count.clone());
    let (rehearsal, scale) = rehearse(&workload, seconds(10)).unwrap();
    assert_eq!(scale, 0.1);
    assert_eq!(rehearsal.schedule.phases[0].goal.duration, Some(seconds(10)));
    assert_eq!(rehearsal.schedule.phases[1].goal.transactions, Some(50));
    workload.schedule.phases = vec![count];
    assert!(matches!(rehearse(&workload, seconds(10)), Err(ScheduleError::Rehearsal { .. })));
}

#[test]
fn a_schedule_of_counts_is_rehearsed_by_a_share_of_them() {
    let mut workload = fixtures::small();
    workload.robots[0].pace = Pace::BestEffort;
    let goal = Goal { transactions: Some(500), errors: Some(30.0), ..Goal::default() };
    workload.schedule.phases = vec![Phase { goal, ..phase("b", 0.0) }];
    let why = rehearse(&workload, seconds(10)).unwrap_err().to_string();
    assert!(why.contains("--rehearse 5%"), "{why}");
    let (rehearsal, scale) = Rehearsal::Share(0.1).apply(&workload).unwrap();
    assert_eq!(scale, 0.1);
    let wanted = Goal { transactions: Some(50), errors: Some(3.0), ..Goal::default() };
    assert_eq!(rehearsal.schedule.phases[0].goal, wanted);
}

#[test]
fn a_share_of_a_schedule_with_a_length_is_that_share_of_its_length() {
    let workload = fixtures::image_listing();
    let (rehearsal, scale) = Rehearsal::Share(0.25).apply(&workload).unwrap();
    assert!((total(&rehearsal) - total(&workload) / 4.0).abs() < 1e-5);
    assert!((scale - 0.25).abs() < 1e-9);
}

#[test]
fn a_number_of_errors_shrinks_but_not_to_a_share_and_a_share_stays() {
    let goal_of = |errors: f64| {
        let mut workload = fixtures::small();
        workload.schedule.phases[0].goal.errors = Some(errors);
        rehearse(&workload, seconds(1)).unwrap().0.schedule.phases[0].goal.errors
    };
    assert_eq!(goal_of(1000.0), Some(10.0));
    assert_eq!(goal_of(2.0), Some(1.0));
    assert_eq!(goal_of(0.03), Some(0.03));
}

#[test]
fn what_cannot_be_rehearsed_says_why() {
    assert!(matches!(rehearse(&fixtures::small(), Duration::ZERO), Err(ScheduleError::Rehearsal { .. })));
    let mut workload = fixtures::small();
    workload.schedule.phases = vec![Phase { goal: Goal::default(), load: flat(1.0), ..phase("x", 0.0) }];
    assert!(matches!(rehearse(&workload, seconds(1)), Err(ScheduleError::NeverEnds { .. })));
    workload.schedule.phases = vec![Phase::default_phase(Goal::ENDLESS)];
    let why = rehearse(&workload, seconds(1)).unwrap_err().to_string();
    assert!(why.contains("no end") && why.contains("--duration"), "{why}");
    let why = Rehearsal::Share(0.05).apply(&workload).unwrap_err().to_string();
    assert!(why.starts_with("cannot rehearse 5 % of it: its schedule has no end"), "{why}");
}

#[test]
fn samples_of_scripts_and_thermostats_shrink_with_their_phase() {
    let mut workload = fixtures::small();
    let thermostat = Thermostat { sample: seconds(10), step: 0.1, low: None, high: Some(seconds(1)) };
    let every = |length_s: u64, body| {
        let goal = Goal { duration: Some(seconds(length_s)), transactions: Some(100), ..Goal::default() };
        ScriptStatement::Every { goal, body }
    };
    workload.schedule.phases[0].thermostat = Some(thermostat);
    workload.schedule.phases[0].script = Some(Script(vec![every(20, vec![every(1, vec![])])]));
    let (rehearsal, scale) = rehearse(&workload, seconds(10)).unwrap();
    assert_eq!(scale, 0.1);
    let phase = &rehearsal.schedule.phases[0];
    assert_eq!(phase.thermostat, Some(Thermostat { sample: seconds(1), ..thermostat }));
    let Some(Script(statements)) = &phase.script else { panic!("no script") };
    let [ScriptStatement::Every { goal, body }] = statements.as_slice() else { panic!("{statements:?}") };
    assert_eq!((goal.duration, goal.transactions), (Some(seconds(2)), Some(10)));
    let [ScriptStatement::Every { goal, .. }] = body.as_slice() else { panic!("{body:?}") };
    assert_eq!(goal.duration, Some(Duration::from_millis(200)), "nothing is learned from less");
}
