//! Requests of robots with a rate are Poisson processes; those of robots with a law of their own lie on it.
//!
//! Chances to fail though nothing is wrong are one in a million for each comparison, if seeds were drawn anew. Seeds are fixed.

use std::collections::HashMap;

use assay_base::random::Rng;
use assay_workload::Purpose;
use assay_workload::model::{Distribution, Origin, Pace, Phase, Weighted, WorkingSet, Workload};
use assay_workload::object::Space;
use assay_workload::{Launch, Slice, Stream};

use crate::chance::{assert_dispersion, assert_follows};
use crate::fixtures::{self, flat, phase, ramp, seconds};
use crate::statistics::run;

/// Windows in seconds.
const WINDOWS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

/// Panics unless launches are a Poisson process of `per_second`. `elapsed` is the integral of its load over time, which
/// reaches `total`.
fn assert_poisson(what: &str, due_s: &[f64], per_second: f64, elapsed: impl Fn(f64) -> f64, total: f64) {
    let places: Vec<f64> = due_s.iter().map(|due_s| elapsed(*due_s)).collect();
    for window in WINDOWS.into_iter().filter(|window| *window <= total / 10.0) {
        assert_dispersion(&format!("{what}, windows of {window} s"), &places, per_second, window, total);
    }
    let mut gaps: Vec<f64> = places.windows(2).map(|pair| (pair[1] - pair[0]) * per_second).collect();
    assert_follows(&format!("gaps of {what}"), &mut gaps, |gap| 1.0 - (-gap).exp());
}

fn dues<'a>(launches: impl IntoIterator<Item = &'a Launch>) -> Vec<f64> {
    launches.into_iter().map(|launch| launch.due.as_secs_f64()).collect()
}

/// Two origins, two groups of robots with different recurrence.
fn two_groups() -> Workload {
    let mut workload = fixtures::small();
    workload.origins.push(Origin { authority: "other:80".into(), server: 0 });
    workload.robots = vec![fixtures::robots(20, 5.0, 0.3), fixtures::robots(10, 10.0, 0.9)];
    for group in &mut workload.robots {
        group.origins = Weighted::new([(0, 0.25), (1, 0.75)]);
    }
    workload
}

#[test]
fn all_requests_each_robots_and_each_worlds_are_poisson_whatever_the_recurrence() {
    for (recurrence, seed) in [(0.0, 61), (0.3, 62), (0.55, 63), (0.95, 64), (1.0, 65)] {
        let mut workload = two_groups();
        workload.robots.iter_mut().for_each(|group| group.recurrence = recurrence);
        let run = run(workload, seed);
        let same = |at: f64| at;
        let of = |what: &str, wanted: &dyn Fn(&&Launch) -> bool, per_second: f64| {
            let what = format!("{what} at recurrence {recurrence}");
            assert_poisson(&what, &dues(run.launches.iter().filter(wanted)), per_second, same, 100.0);
        };
        of("all requests", &|_| true, 200.0);
        of("requests of robot 3", &|l| l.robot == 3, 5.0);
        of("requests of robot 25", &|l| l.robot == 25, 10.0);
        of("requests of a world", &|l| l.object.origin == 0, 50.0);
        if recurrence < 1.0 {
            let is_first =
                |l: &&Launch| !l.revisit && l.object.space == Space::Public && l.object.origin == 1;
            of("first visits of a world", &is_first, 150.0 * (1.0 - recurrence));
        }
    }
}

#[test]
fn a_robot_that_makes_only_first_visits_is_poisson_alone() {
    let mut workload = fixtures::small();
    workload.robots = vec![fixtures::robots(1, 100.0, 0.0)];
    let run = run(workload, 66);
    assert_poisson("a robot alone", &dues(&run.launches), 100.0, |at| at, 100.0);
}

#[test]
fn ramps_of_load_and_population_change_the_rate_and_nothing_else() {
    let mut workload = two_groups();
    workload.robots.iter_mut().for_each(|group| group.recurrence = 0.5);
    workload.schedule.phases = vec![
        Phase { load: ramp(0.2, 2.0), ..phase("rise", 60.0) },
        Phase { load: flat(2.0), recurrence: ramp(1.0, 0.0), ..phase("top", 30.0) },
        Phase { load: ramp(2.0, 0.0), ..phase("fall", 20.0) },
    ];
    // The integral of load over time.
    let elapsed = |at: f64| {
        let rise = at.min(60.0);
        let top = (at - 60.0).clamp(0.0, 30.0);
        let fall = (at - 90.0).clamp(0.0, 20.0);
        0.2 * rise + 1.8 / 120.0 * rise * rise + 2.0 * top + 2.0 * fall - fall * fall / 20.0
    };
    let total = elapsed(110.0);
    let run = run(workload, 67);
    assert_poisson("all requests", &dues(&run.launches), 200.0, elapsed, total);
    let first = run.launches.iter().filter(|l| l.robot == 22);
    assert_poisson("a robot's requests", &dues(first), 10.0, elapsed, total);
    let world = run.launches.iter().filter(|l| l.object.origin == 1);
    assert_poisson("a world's requests", &dues(world), 150.0, elapsed, total);

    let mut workload = fixtures::small();
    workload.robots[0].addresses[0].count = 1000;
    workload.schedule.phases = vec![Phase { population: ramp(0.1, 1.0), ..phase("wake", 40.0) }];
    // Living robots are whole ones: the line and its steps are apart by half a robot at most.
    let elapsed = |at: f64| 0.1 * at + 0.9 / 80.0 * at * at;
    let run = crate::statistics::run(workload, 68);
    assert_poisson("a growing population", &dues(&run.launches), 10_000.0, elapsed, elapsed(40.0));
}

#[test]
fn a_queue_behind_the_stream_waits_as_theory_says() {
    // A server that takes 1 s for each request, at 90 % load. Mean wait: Pollaczek and Khinchine. The distribution:
    // Erlang's sum for a deterministic server.
    const LOAD: f64 = 0.9;
    const ARRIVALS: usize = 1_000_000;
    let mean = LOAD / (2.0 * (1.0 - LOAD));
    let p99 = quantile(0.99, |wait| erlang(LOAD, wait));
    for (recurrence, seed) in [(0.0, 71), (0.3, 72), (0.55, 73), (0.95, 74)] {
        let mut workload = fixtures::small();
        workload.robots = vec![fixtures::robots(10, LOAD / 10.0, recurrence)];
        workload.schedule.phases = vec![phase("long", 2.0 * ARRIVALS as f64)];
        workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(1000));
        let (universe, timeline) = crate::statistics::parts(workload, seed);
        let (mut wait, mut last) = (0.0f64, 0.0);
        let mut waits: Vec<f64> = Stream::new(universe, timeline, Slice::ALL)
            .take(ARRIVALS)
            .map(|launch| {
                let due = launch.due.as_secs_f64();
                wait = (wait + 1.0 - (due - last)).max(0.0);
                last = due;
                wait
            })
            .collect();
        assert_eq!(waits.len(), ARRIVALS);
        let seen_mean = waits.iter().sum::<f64>() / ARRIVALS as f64;
        let (_, seen_p99, _) = waits.select_nth_unstable_by(ARRIVALS * 99 / 100, f64::total_cmp);
        for (what, seen, theory) in [("mean", seen_mean, mean), ("99th percentile", *seen_p99, p99)] {
            let apart = (seen / theory - 1.0).abs();
            assert!(apart < 0.05, "{what} at recurrence {recurrence}: {seen}, theory {theory}");
        }
    }
}

/// The chance to wait at most so long in M/D/1 with a service time of 1, by Erlang's formula.
fn erlang(load: f64, wait: f64) -> f64 {
    let mut sum = 0.0;
    for k in 0..=wait as u32 {
        let x = load * (f64::from(k) - wait);
        let factorial: f64 = (1..=k).map(f64::from).product();
        sum += x.powi(k as i32) / factorial * (-x).exp();
    }
    (1.0 - load) * sum
}

fn quantile(share: f64, below: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 30.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if below(middle) < share { low = middle } else { high = middle }
    }
    high
}

#[test]
fn the_theory_of_the_queue_is_right() {
    // Lindley's recursion on exponential gaps of the standard generator, apart from any stream.
    let mut rng = Rng::of(Purpose::Other, &[1]);
    let mut wait = 0.0f64;
    let mut waits: Vec<f64> = (0..3_000_000)
        .map(|_| {
            wait = (wait + 1.0 - rng.exponential() / 0.9).max(0.0);
            wait
        })
        .collect();
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    waits.sort_by(f64::total_cmp);
    let p99 = waits[waits.len() * 99 / 100];
    assert!((mean / 4.5 - 1.0).abs() < 0.05, "{mean}");
    assert!((p99 / quantile(0.99, |wait| erlang(0.9, wait)) - 1.0).abs() < 0.05, "{p99}");
}

#[test]
fn all_requests_of_a_robot_lie_on_its_own_law_first_visits_and_revisits() {
    for recurrence in [0.0, 0.4, 0.95] {
        for (law, seed) in [
            (Distribution::Constant(0.1), 81),
            (Distribution::Uniform { low: 0.05, high: 0.15 }, 82),
            (Distribution::LogNormal { mean: 0.1, deviation: 0.2 }, 83),
        ] {
            let mut workload = fixtures::small();
            workload.robots[0].pace = Pace::Renewal(law.clone());
            workload.robots[0].recurrence = recurrence;
            workload.robots[0].private_share = 0.2;
            let run = run(workload, seed);
            let mut last: HashMap<u32, f64> = HashMap::new();
            let mut gaps = Vec::new();
            for launch in &run.launches {
                let at = launch.due.as_secs_f64();
                gaps.extend(last.insert(launch.robot, at).map(|before| at - before));
            }
            let what = format!("intervals by {law:?} at recurrence {recurrence}");
            if let Distribution::Constant(between_s) = law {
                assert_eq!(run.launches.len(), 20 * 1000, "each robot makes 1000 requests in 100 s");
                assert!(gaps.iter().all(|gap| (gap - between_s).abs() < 1e-6), "{what}");
            } else {
                assert_follows(&what, &mut gaps, |gap| law.chance_within(gap));
            }
            let public = run.launches.iter().filter(|l| l.object.space == Space::Public);
            let (first, again): (Vec<&Launch>, Vec<&Launch>) = public.partition(|l| !l.revisit);
            let serials: Vec<u64> = first.iter().map(|l| l.object.serial).collect();
            assert!(serials.iter().copied().eq(0..serials.len() as u64), "{what}: serials are in due order");
            let expected = run.launches.len() as f64 * 0.8 * recurrence;
            // Until something is there to revisit (a bit more than a second of 100), all are new.
            let apart = (again.len() as f64 - 0.988 * expected).abs();
            assert!(apart < 4.75 * expected.sqrt() + 1.0, "{what}: {} revisits of {expected}", again.len());
        }
    }
}

#[test]
fn robots_with_and_without_a_law_of_their_own_share_worlds_and_slices_agree() {
    let mut workload = two_groups();
    workload.robots[1].pace = Pace::Renewal(Distribution::Constant(0.1));
    workload.robots[1].recurrence = 0.5;
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(40));
    let (universe, timeline) = crate::statistics::parts(workload, 84);
    let slice = |index, count| {
        Stream::new(universe.clone(), timeline.clone(), Slice::new(index, count)).collect::<Vec<_>>()
    };
    let whole = slice(0, 1);
    let mut introduced: HashMap<(u16, u64), f64> = HashMap::new();
    let mut made = [[0u64; 2]; 2];
    let mut serials = [0u64; 2];
    for launch in whole.iter().filter(|l| l.object.space == Space::Public) {
        let (name, at) = ((launch.object.origin, launch.object.serial), launch.due.as_secs_f64());
        if launch.revisit {
            let first = introduced.get(&name).expect("what is revisited was introduced");
            assert!(at < 3.0 || at >= first + 0.999_999, "a first fetch is given a second");
        } else {
            let next = &mut serials[usize::from(name.0)];
            assert_eq!(name.1, *next, "serials count first visits");
            *next += 1;
            assert_eq!(introduced.insert(name, at), None);
            made[usize::from(launch.robot >= 20)][usize::from(name.0)] += 1;
        }
    }
    // 20 robots × 5/s × 70 % new, and 10 × 10/s × 50 %, in 100 s; a quarter at the first origin.
    for (group, expected) in [(0, 7000.0), (1, 5000.0)] {
        for (origin, share) in [(0, 0.25), (1, 0.75)] {
            let (seen, expected) = (made[group][origin] as f64, expected * share);
            assert!((seen - expected).abs() < 4.75 * f64::sqrt(expected), "{seen} of {expected}");
        }
    }
    for count in [2, 3, 7] {
        let mut parts: Vec<Launch> = (0..count).flat_map(|index| slice(index, count)).collect();
        parts.sort_by_key(|l| (l.robot, l.number));
        let mut all = whole.clone();
        all.sort_by_key(|l| (l.robot, l.number));
        assert_eq!(parts, all, "{count} slices");
    }
}
