//! The pure stream.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use assay_workload::model::{
    ClientBehaviour, Distribution, Method, Origin, Pace, Phase, Popularity, PopularityLaw, RequestType,
    WorkingSet, Workload,
};
use assay_workload::object::{ObjectId, Space};
use assay_workload::rehearse::rehearse;
use assay_workload::{Launch, Slice, Stream, Timeline, Universe, UniverseOptions};
use proptest::prelude::*;

use crate::fixtures::{self, flat, phase, ramp, seconds};
use crate::statistics::parts;

fn stream(workload: Workload, seed: u64) -> Vec<Launch> {
    let (universe, timeline) = parts(workload, seed);
    Stream::new(universe, timeline, Slice::ALL).collect()
}

fn rehearsal(workload: &Workload) -> Workload {
    rehearse(workload, seconds(60)).unwrap().0
}

/// Within four deviations of a Poisson count.
fn close(seen: f64, expected: f64) -> bool {
    (seen - expected).abs() <= 4.0 * expected.sqrt() + 1.0
}

#[test]
fn due_times_are_in_order_and_in_their_phase() {
    let workload = rehearsal(&fixtures::mixed_listing());
    let (universe, timeline) = parts(workload, 1);
    let mut last = std::time::Duration::ZERO;
    let mut numbers: HashMap<u32, u64> = HashMap::new();
    for launch in Stream::new(universe, Arc::clone(&timeline), Slice::ALL) {
        assert!(launch.due >= last);
        assert_eq!(timeline.phase_at(launch.due), Some(launch.phase));
        let next = numbers.entry(launch.robot).or_default();
        assert_eq!(launch.number, *next, "robots count their launches in due order");
        *next += 1;
        last = launch.due;
    }
}

#[test]
fn every_phase_has_the_requests_it_should_have() {
    for workload in
        [fixtures::small(), rehearsal(&fixtures::image_listing()), rehearsal(&fixtures::mixed_listing())]
    {
        let (universe, timeline) = parts(workload, 2);
        let mut seen = vec![(0.0, 0.0); timeline.phases().len()];
        for launch in Stream::new(Arc::clone(&universe), Arc::clone(&timeline), Slice::ALL) {
            let (launches, requests) = &mut seen[usize::from(launch.phase)];
            *launches += 1.0;
            *requests += 1.0 + universe.children(&launch).count() as f64;
        }
        for (span, (launches, requests)) in timeline.phases().iter().zip(seen) {
            let expected = span.expected.unwrap();
            assert!(close(launches, expected.launches), "{}: {launches} of {}", span.name, expected.launches);
            // A page and its objects come together, so requests scatter more: 14 at most.
            let spread = 4.0 * (14.0 * expected.requests).sqrt();
            assert!((requests - expected.requests).abs() < spread, "{}: {requests}", span.name);
        }
    }
}

#[test]
fn offered_hits_are_recurrence_times_cachability_once_warm() {
    let (universe, timeline) = parts(fixtures::small(), 3);
    let (mut basic, mut hits) = (0.0, 0.0);
    for launch in Stream::new(Arc::clone(&universe), timeline, Slice::ALL).filter(|l| l.due > seconds(20)) {
        let offered = launch.offered(&universe.object(launch.object));
        basic += f64::from(u8::from(offered.basic));
        hits += f64::from(u8::from(offered.hit()));
    }
    // Revisits of few objects are not independent, so the margin is wider than a count's.
    assert!((hits / basic - 0.4_f64).abs() < 0.03, "{}", hits / basic);
}

#[test]
fn requests_split_as_the_mix_says() {
    let launches = stream(rehearsal(&fixtures::mixed_listing()), 4);
    let share = |what: &dyn Fn(&Launch) -> bool| launches.iter().filter(|l| what(l)).count() as f64;
    let all = launches.len() as f64;
    assert!(close(share(&|l| l.method == Method::Post), 0.15 * all));
    assert!(close(share(&|l| l.method == Method::Head), 0.15 * all));
    assert!(close(share(&|l| l.request_type == RequestType::Reload), 0.1 * all));
    assert!(close(share(&|l| l.object.content == 3), all / 3.0));
    assert!(close(share(&|l| matches!(l.object.space, Space::Private(_))), 0.1 * all));
    for launch in &launches {
        assert_eq!(launch.post_body.is_some(), launch.method == Method::Post);
        assert!(launch.post_body.is_none_or(|body| body.content == 2));
    }
}

#[test]
fn the_slices_of_a_stream_make_the_whole() {
    for workload in [fixtures::small(), rehearsal(&fixtures::mixed_listing())] {
        let (universe, timeline) = parts(workload, 5);
        let per_robot = |launches: Vec<Launch>| {
            let mut robots: HashMap<u32, Vec<Launch>> = HashMap::new();
            launches.into_iter().for_each(|l| robots.entry(l.robot).or_default().push(l));
            robots
        };
        let slice = |index, count| {
            let slice = Slice::new(index, count);
            let launches: Vec<_> = Stream::new(Arc::clone(&universe), Arc::clone(&timeline), slice).collect();
            assert!(launches.iter().all(|l| l.robot % count == index));
            launches
        };
        let whole = per_robot(slice(0, 1));
        for count in [2, 3, 7] {
            assert_eq!(
                per_robot((0..count).flat_map(|index| slice(index, count)).collect()),
                whole,
                "{count} slices"
            );
        }
    }
}

#[test]
fn a_revisit_gives_the_first_visit_time_to_finish() {
    // Think times of 0.3 ± 0.1 s stay within the second that is always given; 1 ± 0.5 s need three.
    for (mean, deviation, delta) in [(0.3, 0.1, 1), (1.0, 0.5, 3)] {
        let mut workload = fixtures::small();
        workload.servers[0].think_s = Some(assay_workload::model::Distribution::Normal { mean, deviation });
        let mut first = HashMap::new();
        let mut revisits = 0;
        for launch in stream(workload, 6).iter().filter(|l| l.object.space == Space::Public) {
            if launch.revisit && launch.due > seconds(4) {
                revisits += 1;
                let introduced = first.get(&launch.object).expect("a first visit comes first");
                assert!(launch.due + std::time::Duration::from_nanos(2) >= *introduced + seconds(delta));
            } else if !launch.revisit {
                assert_eq!(first.insert(launch.object, launch.due), None, "a first visit comes once");
            }
        }
        assert!(revisits > 5000);
    }
}

/// One world of cachable objects, for which 20 requests a second come from robots in two groups.
fn one_world(robots: u32, recurrence: f64, length_s: f64) -> Workload {
    let mut workload = fixtures::small();
    workload.contents[0].cachable = 1.0;
    let group = |count, share: f64| fixtures::robots(count, 20.0 * share / f64::from(count), recurrence);
    workload.robots = match robots {
        1 => vec![group(1, 1.0)],
        more => vec![group(more / 5, 0.3), group(more - more / 5, 0.7)],
    };
    workload.schedule.phases = vec![phase("only", length_s)];
    workload
}

#[test]
fn the_first_request_in_a_world_makes_its_first_visit_whatever_the_recurrence() {
    for recurrence in [0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
        for (robots, length_s, streams) in
            [(1, 1.0, 400), (1, 50.0, 20), (10, 1.0, 400), (1000, 1.0, 100), (1000, 50.0, 20)]
        {
            let workload = one_world(robots, recurrence, length_s);
            let expected = Timeline::new(&workload).unwrap().phases()[0].expected.unwrap();
            let (mut launches, mut first_visits) = (0.0, 0.0);
            for seed in 0..streams {
                let mut objects = HashSet::new();
                for launch in stream(workload.clone(), seed) {
                    launches += 1.0;
                    first_visits += f64::from(u8::from(!launch.revisit));
                    assert_eq!(objects.insert(launch.object), !launch.revisit, "{recurrence}: {launch:?}");
                }
            }
            let n = f64::from(streams as u32);
            let what = format!("{recurrence}, {robots} robots, {length_s} s, {launches} launches");
            assert!(close(launches, n * expected.launches), "{what}");
            let wanted = n * (expected.basic - expected.offered_hits);
            assert!(close(first_visits, wanted), "{what}: {first_visits} first visits of {wanted}");
            assert!((expected.fill_objects * n - wanted).abs() < 1e-6 * wanted, "{what}");
        }
    }
}

#[test]
fn a_world_of_robots_with_a_law_of_their_own_is_opened_by_whoever_comes_first() {
    for recurrence in [0.9, 1.0] {
        let mut workload = one_world(10, recurrence, 20.0);
        workload.robots[0].pace = Pace::Renewal(Distribution::Constant(2.0));
        let mut opened_by_renewal = 0;
        for seed in 0..50 {
            let (universe, timeline) = parts(workload.clone(), seed);
            let slice = |index, count| {
                Stream::new(universe.clone(), timeline.clone(), Slice::new(index, count)).collect::<Vec<_>>()
            };
            let whole = slice(0, 1);
            assert!(!whole[0].revisit && whole[1..].iter().all(|l| l.revisit || recurrence < 1.0));
            opened_by_renewal += usize::from(universe.group_of(whole[0].robot) == Some(0));
            let mut sliced: Vec<Launch> = (0..3).flat_map(|index| slice(index, 3)).collect();
            sliced.sort_by_key(|launch| (launch.due, launch.robot));
            let mut sorted = whole.clone();
            sorted.sort_by_key(|launch| (launch.due, launch.robot));
            assert_eq!(sliced, sorted);
        }
        assert!((1..50).contains(&opened_by_renewal), "{opened_by_renewal}");
    }
}

#[test]
fn the_window_slides_after_the_freeze() {
    let mut workload = fixtures::small();
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(10));
    let mut introduced = 0u64;
    // 100 first visits a second: a working set of 1000 when frozen.
    for launch in stream(workload, 8).iter().filter(|l| l.object.space == Space::Public) {
        if !launch.revisit {
            introduced = launch.object.serial + 1;
        } else if launch.due > seconds(11) {
            // A second's worth of slots is not available yet.
            let oldest = introduced.saturating_sub(1000 + 100 + 3);
            assert!(launch.object.serial >= oldest, "{} of {introduced}", launch.object.serial);
            assert!(launch.object.serial < introduced);
        }
    }
}

#[test]
fn the_newest_are_popular_under_zipf_and_the_hot_set_is_hot() {
    let mut workload = fixtures::small();
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(20));
    let revisits = |law, hot_set_probability| {
        let mut workload = workload.clone();
        workload.robots[0].popularity =
            Some(Popularity { law, hot_set_fraction: 0.01, hot_set_probability, ..Popularity::default() });
        stream(workload, 9).into_iter().filter(|l| l.revisit).collect::<Vec<_>>()
    };
    // 100 first visits a second: the age of an object in slots is close to the age of its serial.
    let young = |launches: &[Launch]| {
        let age = |l: &&Launch| l.due.as_secs_f64() * 100.0 - (l.object.serial as f64) < 250.0;
        launches.iter().filter(age).count() as f64 / launches.len() as f64
    };
    let zipf = PopularityLaw::Zipf { skew: 1.0 };
    assert!(young(&revisits(zipf, 0.0)) > 3.0 * young(&revisits(PopularityLaw::Uniform, 0.0)));
    let top = |launches: &[Launch]| {
        let mut counts: HashMap<ObjectId, u32> = HashMap::new();
        launches.iter().for_each(|l| *counts.entry(l.object).or_default() += 1);
        let mut counts: Vec<u32> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        f64::from(counts.iter().take(100).sum::<u32>()) / launches.len() as f64
    };
    assert!(top(&revisits(PopularityLaw::Uniform, 0.5)) > 3.0 * top(&revisits(PopularityLaw::Uniform, 0.0)));
}

#[test]
fn private_objects_are_their_robots_own_unless_told_otherwise() {
    let mut workload = fixtures::small();
    workload.robots[0].private_share = 0.5;
    let mut first: HashSet<ObjectId> = HashSet::new();
    let (mut all, mut revisits) = (0.0, 0.0);
    for launch in stream(workload.clone(), 10) {
        if let Space::Private(robot) = launch.object.space {
            assert_eq!(robot, launch.robot);
            assert_eq!(first.insert(launch.object), !launch.revisit, "new once, then revisited");
            all += 1.0;
            revisits += f64::from(u8::from(launch.revisit));
        }
    }
    assert!(close(all, 10_000.0) && (revisits / all - 0.5_f64).abs() < 0.03);
    let options = UniverseOptions { private_as_public: true };
    let timeline = Arc::new(Timeline::new(&workload).unwrap());
    let universe = Arc::new(Universe::new(Arc::new(workload), 10, 1, options).unwrap());
    assert!(
        Stream::new(universe, timeline, Slice::ALL).all(|l| !matches!(l.object.space, Space::Private(_)))
    );
}

#[test]
fn content_types_override_recurrence_methods_and_types() {
    let mut workload = fixtures::small();
    let own = ClientBehaviour {
        recurrence: Some(0.0),
        methods: Some(assay_workload::model::Weighted::one(Method::Head)),
        request_types: Some(assay_workload::model::Weighted::one(RequestType::Reload)),
        popularity: None,
        ..ClientBehaviour::default()
    };
    let special = fixtures::content("special", assay_workload::model::Distribution::Constant(10.0), 1.0);
    workload.contents.push(assay_workload::model::Content { behaviour: own, ..special });
    let both = assay_workload::model::Weighted::new([(0, 0.5), (1, 0.5)]);
    workload.servers[0].direct_access = both;
    let launches = stream(workload.clone(), 11);
    let special: Vec<_> = launches.iter().filter(|l| l.object.content == 1).collect();
    assert!(close(special.len() as f64, launches.len() as f64 / 2.0));
    assert!(
        special
            .iter()
            .all(|l| !l.revisit && l.method == Method::Head && l.request_type == RequestType::Reload)
    );
    assert!(launches.iter().filter(|l| l.object.content == 0).all(|l| l.method == Method::Get));
    workload.schedule.phases[0].special = flat(0.0);
    assert!(
        stream(workload, 11).iter().all(|l| l.method == Method::Get && l.request_type == RequestType::Basic)
    );
}

#[test]
fn a_population_grows_robot_by_robot() {
    let mut workload = fixtures::small();
    workload.robots[0].addresses[0].count = 100;
    let growing = Phase { population: ramp(0.1, 1.0), ..phase("grow", 50.0) };
    let shrinking = Phase { population: ramp(1.0, 0.1), ..phase("shrink", 50.0) };
    workload.schedule.phases = vec![growing, shrinking];
    let (universe, timeline) = parts(workload, 12);
    let launches: Vec<_> = Stream::new(Arc::clone(&universe), Arc::clone(&timeline), Slice::ALL).collect();
    for (phase, span) in timeline.phases().iter().enumerate() {
        let seen = launches.iter().filter(|l| usize::from(l.phase) == phase).count() as f64;
        assert!(close(seen, span.expected.unwrap().launches), "{seen} in {}", span.name);
    }
    for launch in &launches {
        let at = launch.due.as_secs_f64();
        let population = if at < 50.0 { 0.1 + 0.9 * at / 50.0 } else { 1.0 - 0.9 * (at - 50.0) / 50.0 };
        assert!(universe.is_alive(launch.robot, population + 1e-6), "robot {} at {at}", launch.robot);
    }
}

#[test]
fn two_groups_share_their_worlds_by_their_rates() {
    let mut workload = fixtures::small();
    workload.origins.push(Origin { authority: "other:80".into(), server: 0 });
    workload.robots.push(fixtures::robots(10, 40.0, 0.9));
    let second = assay_workload::model::Weighted::new([(0, 0.25), (1, 0.75)]);
    workload.robots[1].origins = second;
    let launches = stream(workload, 13);
    let count = |new: bool, group: usize, origin: u16| {
        let of = |l: &&Launch| {
            l.revisit != new && usize::from(l.robot >= 20) == group && l.object.origin == origin
        };
        launches.iter().filter(|l| l.due > seconds(5)).filter(of).count() as f64
    };
    // 20 × 10/s × 50 % new at origin 0; 10 × 40/s × 10 % new, a quarter at origin 0.
    assert!(close(count(true, 0, 0), 95.0 * 100.0) && close(count(true, 1, 0), 95.0 * 10.0));
    assert!(close(count(true, 1, 1), 95.0 * 30.0) && count(true, 0, 1) == 0.0);
    assert!(close(count(false, 1, 1), 95.0 * 270.0) && close(count(false, 0, 0), 95.0 * 100.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_workload_breaks_the_stream(
        robots in 1u32..12, rate in 0.01f64..50.0, recurrence in 0.0f64..=1.0, private in 0.0f64..=1.0,
        factors in prop::collection::vec((0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..3.0, 0.0f64..3.0), 1..5),
        population in 0.0f64..=1.0, special in 0.0f64..=1.0, freeze in prop::option::of(0u64..20), seed: u64,
    ) {
        let mut workload = fixtures::mixed_listing();
        workload.robots[0].addresses[0].count = robots;
        workload.robots[0].pace = assay_workload::model::Pace::Rate { per_second: rate };
        workload.robots[0].recurrence = recurrence;
        workload.robots[0].private_share = private;
        workload.schedule.phases = factors
            .into_iter()
            .map(|(l0, l1, r0, r1)| Phase {
                load: ramp(l0, l1),
                recurrence: ramp(r0, r1),
                population: ramp(population, 1.0 - population),
                special: ramp(special, 1.0),
                ..phase("p", 3.0)
            })
            .collect();
        workload.schedule.working_set = freeze.map_or(WorkingSet::Grows, |s| WorkingSet::FrozenAfter(seconds(s)));
        let (universe, timeline) = parts(workload, seed);
        let whole: Vec<_> = Stream::new(Arc::clone(&universe), Arc::clone(&timeline), Slice::ALL).collect();
        let expected: f64 = timeline.phases().iter().map(|p| p.expected.unwrap().launches).sum();
        prop_assert!((whole.len() as f64 - expected).abs() <= 6.0 * expected.sqrt() + 6.0, "{} of {}", whole.len(), expected);
        let odd: Vec<_> = Stream::new(universe, timeline, Slice::new(1, 2)).collect();
        prop_assert_eq!(odd, whole.into_iter().filter(|l| l.robot % 2 == 1).collect::<Vec<_>>());
    }
}
