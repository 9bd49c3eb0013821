//! Load that adapts, in virtual time: a coordinator, its workers, and a target of a few lines.

use assay_workload::model::{
    Goal, Pace, Ramp, RobotAddress, Script, ScriptExpr, ScriptStatement, Thermostat, Weighted,
};
use assay_workload::{Launch, Slice, Stream, Universe};

use super::super::sampling::SAMPLE_NS;
use super::super::schedule::{LaunchSchedule, ScheduleStep};
use super::*;
use crate::origin::testing;

const START_NS: u64 = 5_000_000_000_007;
const TICK_NS: u64 = 10_000_000;
const LEAD_NS: u64 = 100_000_000;

fn ramp(begin: f64, end: f64) -> Ramp {
    Ramp { begin, end }
}

/// Twenty robots that make 400 requests a second together, in three phases; the second can be made to adapt.
fn workload(adapt: impl FnOnce(&mut Phase)) -> Arc<Workload> {
    let mut workload = testing::workload();
    workload.servers[0].direct_access = Weighted::one(0);
    workload.origins.truncate(1);
    let robots = &mut workload.robots[0];
    robots.addresses = vec![RobotAddress { host: "127.0.0.1".into(), count: 20 }];
    robots.origins = Weighted::one(0);
    robots.pace = Pace::Rate { per_second: 20.0 };
    robots.recurrence = 0.5;
    let template = workload.schedule.phases[0].clone();
    let phase = |name: &str, seconds| Phase {
        name: name.into(),
        goal: Goal { duration: Some(Duration::from_secs(seconds)), ..Goal::default() },
        ..template.clone()
    };
    workload.schedule.phases = vec![phase("before", 3), phase("adapted", 20), phase("after", 4)];
    adapt(&mut workload.schedule.phases[1]);
    Arc::new(workload)
}

fn thermostat(low_ms: u64, high_ms: u64) -> Thermostat {
    Thermostat {
        sample: Duration::from_secs(1),
        step: 0.2,
        low: Some(Duration::from_millis(low_ms)),
        high: Some(Duration::from_millis(high_ms)),
    }
}

struct Outcome {
    controller: LoadController,
    notes: Vec<Adapted>,
    /// Launches with the instants they were due, in nanoseconds since the start.
    launches: Vec<(Launch, u64)>,
    ends_ns: Vec<u64>,
}

/// Plays a workload against a target that responds after `response_s` of the load factor. Workers stand still now and
/// then, and the coordinator too.
fn run(workload: &Arc<Workload>, workers: u32, response_s: impl Fn(f64) -> f64) -> Outcome {
    let options = UniverseOptions::default();
    let universe = Arc::new(Universe::new(workload.clone(), 3, 1, options).expect("is valid"));
    let planned = Arc::new(Timeline::new(workload).expect("is valid"));
    let mut controller = LoadController::new(workload.clone(), options, planned).expect("adapts");
    let timeline = controller.first_timeline().expect("is valid");
    let mut ends_ns = controller.first_ends_ns();
    let mut agendas: Vec<(LaunchSchedule, usize)> = (0..workers)
        .map(|index| {
            let stream = Stream::new(universe.clone(), timeline.clone(), Slice::new(index, workers));
            let mut schedule = LaunchSchedule::new(stream, true);
            schedule.start_at(START_NS);
            (schedule, 0)
        })
        .collect();
    let (mut notes, mut launches, mut now_ns, mut tick) = (Vec::new(), Vec::new(), 0, 0u64);
    while agendas.iter().any(|(_, phase)| *phase < ends_ns.len()) {
        assert!(now_ns < 200_000_000_000, "it ends some time");
        tick += 1;
        now_ns += if tick.is_multiple_of(97) { 7 * TICK_NS } else { TICK_NS };
        let mut request = Vec::new();
        let next = usize::from(controller.next_phase());
        let begin_ns = if next == 0 { Some(0) } else { ends_ns[next - 1] };
        if next < ends_ns.len() && begin_ns.is_some_and(|at_ns| at_ns <= now_ns + 200_000_000) {
            request.push(controller.begin(next as u16, begin_ns.unwrap_or_default()));
        }
        if now_ns / SAMPLE_NS > (now_ns - TICK_NS) / SAMPLE_NS {
            let load = controller.factors(now_ns).load;
            let mut sample = Sample::default();
            for _ in 0..(40.0 * load) as u64 {
                sample.class_mut(ResponseClass::Rep).record(response_s(load), 1_000);
                sample.ok += 1;
            }
            let phase = next.saturating_sub(1) as u16;
            request.push(controller.observe(phase, sample, now_ns / SAMPLE_NS * SAMPLE_NS));
        }
        let mut proposals = Vec::new();
        for request in request.iter().filter(|request| request.is_change()) {
            if let Some(proposal) = controller.propose(request, now_ns + LEAD_NS).expect("is valid") {
                proposals.push(proposal.change.clone());
                notes.extend(controller.commit(proposal));
            }
        }
        if controller.end_ns().is_some_and(|end_ns| end_ns <= now_ns + LAST_NS)
            && let Some(proposal) = controller.propose_end(now_ns + LEAD_NS).expect("is valid")
        {
            proposals.push(proposal.change.clone());
            notes.extend(controller.commit(proposal));
        }
        for change in proposals {
            assert!(change.at_ns >= now_ns + LEAD_NS);
            ends_ns.clone_from(&change.ends_ns);
            let change = Arc::new(change);
            agendas.iter_mut().for_each(|(schedule, _)| schedule.announce(change.clone()));
        }
        for (index, (schedule, phase)) in agendas.iter_mut().enumerate() {
            // One stands still for a second now and then.
            if (tick / 100 + index as u64).is_multiple_of(5) {
                continue;
            }
            walk(schedule, phase, &ends_ns, now_ns, &mut launches);
        }
    }
    let ends_ns = ends_ns.into_iter().map(|end_ns| end_ns.expect("is over")).collect();
    Outcome { controller, notes, launches, ends_ns }
}

/// Steps of a worker up to a moment.
fn walk(
    schedule: &mut LaunchSchedule,
    phase: &mut usize,
    ends_ns: &[Option<u64>],
    now_ns: u64,
    launches: &mut Vec<(Launch, u64)>,
) {
    while *phase < ends_ns.len() {
        let end_ns = ends_ns[*phase].map_or(u64::MAX, |end_ns| START_NS + end_ns);
        match schedule.step(START_NS + now_ns, Some(end_ns)) {
            ScheduleStep::Wait(until_ns) => return assert!(until_ns > START_NS + now_ns),
            ScheduleStep::EndInterval(at_ns) => {
                schedule.begin_interval(at_ns);
                *phase += usize::from(at_ns == end_ns);
            }
            ScheduleStep::Launch(launch, due_ns) => {
                assert!(due_ns <= START_NS + now_ns, "never early");
                assert_eq!(usize::from(launch.phase), *phase, "in its phase");
                launches.push((launch, due_ns - START_NS));
            }
        }
    }
}

/// The launches of the final schedule, as if everything had been known before.
fn known(workload: &Arc<Workload>, outcome: &Outcome) -> Vec<Launch> {
    let adaptations = &outcome.controller.plan.adaptations;
    let timeline = Arc::new(Timeline::adapted(workload, adaptations).expect("is valid"));
    let universe = Universe::new(workload.clone(), 3, 1, UniverseOptions::default()).expect("is valid");
    Stream::new(Arc::new(universe), timeline, Slice::ALL).collect()
}

fn sorted(launches: impl IntoIterator<Item = Launch>) -> Vec<Launch> {
    let mut launches: Vec<_> = launches.into_iter().collect();
    launches.sort_by_key(|launch| (launch.robot, launch.number));
    launches
}

fn is_the_stream(workload: &Arc<Workload>, outcome: &Outcome) {
    let made = sorted(outcome.launches.iter().map(|(launch, _)| *launch));
    let known = sorted(known(workload, outcome));
    assert_eq!(made.len(), known.len());
    assert!(made == known, "the launches are those of a stream that always knew");
}

#[test]
fn a_thermostat_settles_the_load_where_response_times_are_as_wanted() {
    let workload = workload(|phase| phase.thermostat = Some(thermostat(30, 50)));
    for workers in [1, 3] {
        // 100 ms at full load; wanted are 30 to 50.
        let outcome = run(&workload, workers, |load| 0.1 * load);
        let loads: Vec<f64> =
            outcome.notes.iter().filter(|note| note.what == Decided::Load).map(|note| note.value).collect();
        assert!(loads.len() >= 4 && loads.len() < 8, "{loads:?}");
        assert!(loads.last().is_some_and(|load| (0.3..=0.5).contains(load)), "{loads:?}");
        assert_eq!(outcome.ends_ns, [3, 23, 27].map(|s| s * 1_000_000_000), "durations are real time");
        let end = outcome.notes.last().expect("the end is noted");
        assert_eq!((end.what, end.at_ms), (Decided::End, 23_000));
        assert!(end.schedule_ns > 8_000_000_000 && end.schedule_ns < 14_000_000_000, "{end:?}");
        is_the_stream(&workload, &outcome);
        let after = outcome.launches.iter().filter(|(launch, _)| launch.phase == 2);
        let (first, last) = after.fold((u64::MAX, 0), |(a, b), (_, at)| (a.min(*at), b.max(*at)));
        assert!(first >= 23_000_000_000 && last < 27_000_000_000 && last - first > 3_500_000_000);
    }
}

#[test]
fn a_script_sets_load_and_population_and_ends_its_phase_for_all_workers_alike() {
    let number = |value| ScriptExpr::Number(value);
    let after = |seconds, body| ScriptStatement::Every {
        goal: Goal { duration: Some(Duration::from_secs(seconds)), ..Goal::default() },
        body,
    };
    let script = Script(vec![
        ScriptStatement::Load { value: number(0.5), relative: false },
        after(2, vec![ScriptStatement::Load { value: number(0.25), relative: true }]),
        after(3, vec![ScriptStatement::Population { value: number(0.6), relative: false }]),
        after(5, vec![ScriptStatement::Load { value: number(0.0), relative: false }]),
        after(7, vec![ScriptStatement::Load { value: number(1.0), relative: false }]),
        after(11, vec![ScriptStatement::EndPhase]),
    ]);
    let workload = workload(|phase| {
        phase.script = Some(script);
        phase.load = ramp(0.8, 1.0);
    });
    let one = run(&workload, 1, |_| 0.01);
    is_the_stream(&workload, &one);
    assert_eq!(one.notes[0].at_ms, 3_000, "what it wants at once holds from the beginning");
    assert!((one.ends_ns[1] / 1_000_000).abs_diff(14_400) < 400, "{:?}", one.ends_ns);
    for workers in [2, 7] {
        let outcome = run(&workload, workers, |_| 0.01);
        assert_eq!(outcome.notes, one.notes);
        let by_robot = |outcome: &Outcome| {
            let mut all = outcome.launches.clone();
            all.sort_by_key(|(launch, _)| (launch.robot, launch.number));
            all
        };
        assert!(
            by_robot(&outcome) == by_robot(&one),
            "{workers} workers make the same requests at the same time"
        );
    }
    let stopped = one.launches.iter().filter(|(_, at)| (8_300_000_000..10_000_000_000).contains(at));
    assert_eq!(stopped.count(), 0, "a load of 0 stops the clock");
}

#[test]
fn counts_end_a_phase_where_the_schedule_expects_them_however_fast_it_goes() {
    let workload = workload(|phase| {
        phase.goal = Goal { transactions: Some(2_000), ..Goal::default() };
        phase.script =
            Some(Script(vec![ScriptStatement::Load { value: ScriptExpr::Number(0.5), relative: false }]));
    });
    let outcome = run(&workload, 2, |_| 0.01);
    is_the_stream(&workload, &outcome);
    let made = outcome.launches.iter().filter(|(launch, _)| launch.phase == 1).count();
    assert!((1_850..2_150).contains(&made), "{made}");
    // 400 a second planned, 200 made.
    assert!((outcome.ends_ns[1] / 1_000_000).abs_diff(13_000) < 400, "{:?}", outcome.ends_ns);
}

#[test]
fn where_nothing_is_decided_everything_is_as_planned() {
    let workload = workload(|phase| phase.thermostat = Some(thermostat(10, 50)));
    let outcome = run(&workload, 3, |_| 0.03);
    assert_eq!(outcome.notes.iter().map(|note| note.what).collect::<Vec<_>>(), [Decided::End]);
    let timeline = Arc::new(Timeline::new(&workload).expect("is valid"));
    let universe = Universe::new(workload.clone(), 3, 1, UniverseOptions::default()).expect("is valid");
    let planned = sorted(Stream::new(Arc::new(universe), timeline, Slice::ALL));
    assert!(sorted(outcome.launches.iter().map(|(launch, _)| *launch)) == planned);
    assert!(outcome.launches.iter().all(|(launch, at)| launch.due.as_nanos() as u64 == *at));
}
