//! Streams are what is stated of them: shares, sizes, popularity, offered ratios phase by phase.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use assay_workload::model::{
    Bin, ClientBehaviour, Content, Distribution, Embedded, ForeignUrl, Goal, Method, Origin, Pace, Phase,
    Popularity, PopularityLaw, RequestType, Session, Weighted, WorkingSet, Workload,
};
use assay_workload::object::{ObjectId, Space};
use assay_workload::rehearse::rehearse;
use assay_workload::{Launch, Slice, Stream, Timeline, Universe, UniverseOptions};

use crate::chance::{ClusterRatio, assert_counts, assert_follows};
use crate::fixtures::{self, KB, flat, phase, ramp, seconds};

/// What a workload requests.
pub struct Run {
    pub universe: Arc<Universe>,
    pub timeline: Arc<Timeline>,
    pub launches: Vec<Launch>,
}

pub fn parts(workload: Workload, seed: u64) -> (Arc<Universe>, Arc<Timeline>) {
    let timeline = Timeline::new(&workload).unwrap();
    let universe = Universe::new(Arc::new(workload), seed, 1, UniverseOptions::default()).unwrap();
    (Arc::new(universe), Arc::new(timeline))
}

pub fn run(workload: Workload, seed: u64) -> Run {
    let (universe, timeline) = parts(workload, seed);
    let launches = Stream::new(Arc::clone(&universe), Arc::clone(&timeline), Slice::ALL).collect();
    Run { universe, timeline, launches }
}

/// The mixed listing in two minutes.
fn mixed() -> Workload {
    rehearse(&fixtures::mixed_listing(), seconds(120)).unwrap().0
}

/// What a launch and its embedded objects are counted under: they share what is random about them.
fn cluster(id: ObjectId) -> ObjectId {
    id
}

/// Compares the offered ratios of every phase with what was stated. Phases in which little happens are left out.
fn assert_offered(what: &str, run: &Run) {
    let phases = run.timeline.phases().len();
    let mut objects: Vec<ClusterRatio<ObjectId>> = (0..phases).map(|_| ClusterRatio::default()).collect();
    let mut bytes: Vec<ClusterRatio<ObjectId>> = (0..phases).map(|_| ClusterRatio::default()).collect();
    let mut basics = vec![0.0; phases];
    for launch in &run.launches {
        let index = usize::from(launch.phase);
        let mut add = |offered: assay_workload::Offered, size: u64| {
            if offered.basic {
                let (hit, size) = (f64::from(u8::from(offered.hit())), size as f64);
                objects[index].add(cluster(launch.object), hit, 1.0);
                bytes[index].add(cluster(launch.object), hit * size, size);
                basics[index] += 1.0;
            }
        };
        let object = run.universe.object(launch.object);
        add(run.universe.offered(launch, &object), object.size_bytes);
        for child in run.universe.children(launch) {
            let object = run.universe.object(child.object);
            add(run.universe.offered_child(launch, &child, &object), object.size_bytes);
        }
    }
    let mut compared = 0;
    for (index, span) in run.timeline.phases().iter().enumerate() {
        let expected = span.expected.unwrap();
        if basics[index] < 3000.0 {
            continue;
        }
        compared += 1;
        let name = format!("{what}, phase {}", span.name);
        objects[index].assert_is(&format!("DHR of {name}"), expected.offered_dhr());
        bytes[index].assert_is(&format!("BHR of {name}"), expected.offered_bhr());
        // A page and its objects come together: up to 14 requests at once.
        let spread = 6.0 * (14.0 * expected.basic).sqrt();
        assert!(
            (basics[index] - expected.basic).abs() < spread,
            "{name}: {} basic of {}",
            basics[index],
            expected.basic
        );
    }
    assert!(compared > 0, "{what}: nothing was compared");
}

#[test]
fn content_types_request_types_and_methods_have_their_shares() {
    let mut workload = mixed();
    workload.contents[4].behaviour = ClientBehaviour {
        methods: Some(Weighted::new([(Method::Get, 0.5), (Method::Head, 0.5)])),
        ..ClientBehaviour::default()
    };
    let run = run(workload, 31);
    let all = run.launches.len() as f64;
    let count = |wanted: &dyn Fn(&Launch) -> bool| run.launches.iter().filter(|l| wanted(l)).count() as f64;
    let contents: Vec<_> =
        [1, 3, 4].iter().map(|c| (count(&|l| l.object.content == *c), all / 3.0)).collect();
    assert_counts("content types", &contents, 2);
    let types = [
        (RequestType::Basic, 0.7),
        (RequestType::Ims200, 0.1),
        (RequestType::Ims304, 0.1),
        (RequestType::Reload, 0.1),
    ];
    let types: Vec<_> =
        types.iter().map(|(t, share)| (count(&|l| l.request_type == *t), share * all)).collect();
    assert_counts("request types", &types, 3);
    let own = count(&|l| l.object.content == 4);
    let (gets, heads) = (0.7 * (all - own) + 0.5 * own, 0.15 * (all - own) + 0.5 * own);
    let methods = [
        (count(&|l| l.method == Method::Get), gets),
        (count(&|l| l.method == Method::Head), heads),
        (count(&|l| l.method == Method::Post), 0.15 * (all - own)),
        (count(&|l| l.method == Method::Put), 0.0),
    ];
    assert_counts("methods", &methods, 2);
}

#[test]
fn special_requests_have_their_share_on_a_ramp() {
    let mut workload = fixtures::mixed_listing();
    workload.schedule.phases = vec![Phase { special: ramp(0.0, 1.0), ..phase("a", 40.0) }];
    let run = run(workload, 32);
    let by_tenth: Vec<_> = (0..10)
        .map(|tenth| {
            let here = |l: &&Launch| (l.due.as_secs_f64() / 4.0) as u32 == tenth;
            let all = run.launches.iter().filter(here).count() as f64;
            let special =
                run.launches.iter().filter(here).filter(|l| l.request_type != RequestType::Basic).count()
                    as f64;
            (special, all * 0.3 * (f64::from(tenth) + 0.5) / 10.0)
        })
        .collect();
    assert_counts("special requests", &by_tenth, 10);
}

#[test]
fn sizes_follow_their_distributions() {
    let laws = [
        Distribution::Exponential { mean: 9.0 * KB },
        Distribution::LogNormal { mean: 300.0 * KB, deviation: 300.0 * KB },
        Distribution::Uniform { low: 100.0, high: 20_000.0 },
        Distribution::Zipf { n: 5000.0 },
        Distribution::Table(vec![
            Bin { low: 500.0, high: 500.0, weight: 1.0 },
            Bin { low: 1000.0, high: 9000.0, weight: 3.0 },
        ]),
    ];
    for law in laws {
        let mut workload = fixtures::small();
        workload.contents[0].size_bytes = law.clone();
        let run = run(workload, 33);
        let objects: HashSet<_> = run.launches.iter().map(|l| l.object).collect();
        let mut sizes: Vec<f64> =
            objects.into_iter().map(|id| run.universe.object(id).size_bytes as f64).collect();
        assert!(sizes.len() > 5000);
        assert_follows(&format!("sizes by {law:?}"), &mut sizes, |bytes| law.chance_within(bytes));
    }
}

#[test]
fn pages_have_as_many_objects_as_they_should_and_room_for_them() {
    let run = run(mixed(), 34);
    let pages: HashSet<_> = run.launches.iter().map(|l| l.object).filter(|o| o.content == 1).collect();
    let law = Distribution::Zipf { n: 13.0 };
    let objects: Vec<_> = pages.iter().map(|id| run.universe.object(*id)).collect();
    let n = objects.len() as f64;
    let counts: Vec<_> = (1..=13u16)
        .map(|count| {
            let seen = objects.iter().filter(|o| run.universe.embedded_count(o) == count).count() as f64;
            let within = |count: u16| law.chance_within(f64::from(count));
            (seen, n * (within(count) - within(count - 1)))
        })
        .collect();
    assert_counts("embedded objects", &counts, 12);
    // The stated mean size of requested objects includes the room for links.
    let plain = Distribution::Exponential { mean: 8.5 * KB }.mean_count();
    let mean = objects.iter().map(|o| o.size_bytes as f64).sum::<f64>() / n;
    assert!(mean > plain - 5.0 * plain / n.sqrt(), "{mean}");
}

/// A world of 100 first visits a second that freezes after 10 s, and the ages of what is revisited later, as shares of the
/// working set.
fn ages(popularity: Popularity, seed: u64) -> Vec<f64> {
    let mut workload = fixtures::small();
    workload.robots[0].recurrence = 0.8;
    workload.robots[0].popularity = Some(popularity);
    workload.robots[0].pace = Pace::Rate { per_second: 25.0 };
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(10));
    let run = run(workload, seed);
    let public = run.launches.iter().filter(|l| l.object.space == Space::Public);
    let introduced: Vec<_> = public.filter(|l| !l.revisit).map(|l| l.due).collect();
    let until = |instant| introduced.partition_point(|due| *due <= instant) as f64;
    let size = until(seconds(10));
    let revisits = run.launches.iter().filter(|l| l.revisit && l.due > seconds(25));
    // The time for a first fetch is a second.
    revisits.map(|l| (until(l.due - seconds(1)) - l.object.serial as f64) / size).collect()
}

#[test]
fn revisits_follow_the_popularity_law() {
    let of = |law| Popularity { law, ..Popularity::default() };
    assert_follows("uniform", &mut ages(of(PopularityLaw::Uniform), 35), |age| age);
    for skew in [1.0, 0.6, 1.7] {
        // About a thousand objects, which matters little under a logarithm.
        let zipf = |age: f64| ((1000.0 * age + 1.0).ln() / 1001f64.ln()).powf(1.0 / skew);
        assert_follows(&format!("Zipf {skew}"), &mut ages(of(PopularityLaw::Zipf { skew }), 36), zipf);
    }
    let table = vec![Bin { low: 0.0, high: 0.1, weight: 3.0 }, Bin { low: 0.5, high: 1.0, weight: 1.0 }];
    let below = |age: f64| if age < 0.1 { 7.5 * age } else { 0.75 + 0.5 * (age - 0.5).max(0.0) };
    assert_follows("table", &mut ages(of(PopularityLaw::Table(table)), 37), below);
}

#[test]
fn the_hot_set_gets_its_share_of_revisits() {
    let popularity = Popularity { hot_set_fraction: 0.02, hot_set_probability: 0.3, ..Popularity::default() };
    let mut workload = fixtures::small();
    workload.robots[0].popularity = Some(popularity);
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(10));
    let run = run(workload, 38);
    // Within a second, the hot set of 20 objects is requested as often as 300 others would be.
    let mut seconds_seen: HashMap<u64, Vec<u32>> = HashMap::new();
    for l in run.launches.iter().filter(|l| l.revisit && l.due > seconds(25)) {
        seconds_seen.entry(l.due.as_secs()).or_insert_with(|| vec![0; 12_020])[l.object.serial as usize] += 1;
    }
    let (mut top, mut all) = (0, 0);
    for counts in seconds_seen.values() {
        top +=
            counts.windows(20).map(|objects| objects.iter().sum::<u32>()).max().expect("there are windows");
        all += counts.iter().sum::<u32>();
    }
    let share = f64::from(top) / f64::from(all);
    assert!(
        (0.28..0.37).contains(&share),
        "{share}: 30 % and a fiftieth of the rest, and a move now and then"
    );
}

#[test]
fn offered_ratios_are_those_stated_from_the_first_request_on() {
    assert_offered("small", &run(fixtures::small(), 40));
    assert_offered("image listing", &run(rehearse(&fixtures::image_listing(), seconds(60)).unwrap().0, 41));
    assert_offered("mixed listing", &run(mixed(), 42));
    let mut short = fixtures::small();
    short.schedule.phases =
        vec![phase("short", 4.0), Phase { recurrence: ramp(0.0, 2.0), ..phase("then", 30.0) }];
    short.robots[0].addresses[0].count = 100;
    assert_offered("four seconds", &run(short, 43));
}

#[test]
fn offered_ratios_hold_for_private_and_mixed_interest() {
    for (private, seed) in [(1.0, 44), (0.5, 45)] {
        let mut workload = fixtures::small();
        workload.robots[0].addresses[0].count = 300;
        workload.robots[0].pace = Pace::Rate { per_second: 1.0 };
        workload.robots[0].private_share = private;
        workload.contents.push(fixtures::content("other", Distribution::Exponential { mean: 5000.0 }, 0.5));
        workload.servers[0].direct_access = Weighted::new([(0, 0.7), (1, 0.3)]);
        let growing = Phase { population: ramp(0.3, 1.0), ..phase("grow", 40.0) };
        workload.schedule.phases =
            vec![phase("all", 20.0), growing.clone(), Phase { load: ramp(0.5, 1.0), ..phase("b", 40.0) }];
        assert_offered(&format!("private {private}"), &run(workload.clone(), seed));
        workload.schedule.phases = vec![growing, phase("b", 40.0)];
        assert_offered(&format!("private {private}, growing"), &run(workload, seed + 100));
    }
}

#[test]
fn offered_ratios_hold_for_many_origins_and_groups() {
    let mut workload = fixtures::mixed_listing();
    workload.origins = (0..30).map(|i| Origin { authority: format!("o{i}:80"), server: 0 }).collect();
    workload.robots[0].addresses[0].count = 300;
    workload.robots[0].origins = Weighted::new((0..30).map(|origin| (origin, 1.0 + f64::from(origin))));
    let mut second = workload.robots[0].clone();
    second.addresses[0].count = 50;
    second.pace = Pace::Rate { per_second: 3.0 };
    second.recurrence = 0.4;
    workload.robots.push(second);
    workload.schedule.phases = vec![phase("cold", 15.0), phase("warm", 60.0)];
    assert_offered("thirty origins", &run(workload, 46));
}

#[test]
fn offered_ratios_hold_with_traces_sessions_and_faults() {
    let mut workload = fixtures::small();
    workload.foreign =
        (0..3000).map(|line| ForeignUrl { origin: 0, path: format!("/{}", line % 2500) }).collect();
    workload.robots[0].foreign_share = 0.4;
    workload.robots[0].addresses[0].count = 200;
    workload.robots[0].pace = Pace::Rate { per_second: 2.0 };
    workload.robots[0].session = Some(Session {
        busy: Goal { duration: Some(seconds(3)), ..Goal::default() },
        idle_s: Distribution::Exponential { mean: 2.0 },
    });
    workload.servers[0].faults.error_share = 0.1;
    workload.servers[0].abort_share = 0.1;
    workload.contents[0].size_bytes = Distribution::Exponential { mean: 3000.0 };
    workload.schedule.phases = vec![phase("first", 30.0), phase("later", 60.0)];
    assert_offered("trace", &run(workload, 47));
}

#[test]
fn offered_ratios_hold_when_small_objects_are_preferred() {
    for (private, seed) in [(0.0, 48), (1.0, 49)] {
        let mut workload = fixtures::small();
        workload.contents[0].size_bytes = Distribution::LogNormal { mean: 10.0 * KB, deviation: 10.0 * KB };
        workload.contents[0].cachable = 0.3;
        workload.robots[0].private_share = private;
        workload.robots[0].popularity = Some(Popularity { size_preference: 0.6, ..Popularity::default() });
        // Windows that are large from the start: neighbours are looked for on both sides.
        workload.schedule.phases =
            vec![Phase { recurrence: flat(0.0), ..phase("fill", 50.0) }, phase("top", 100.0)];
        let run = run(workload, seed);
        let span = run.timeline.phases()[1].expected.unwrap();
        assert!(span.offered_bhr() < span.offered_dhr(), "small objects are hit");
        assert_offered(&format!("preference, private {private}"), &run);
    }
}

#[test]
fn pages_within_the_mix_keep_their_ratios() {
    let mut workload = fixtures::mixed_listing();
    let page = Content {
        embedded: Some(Embedded {
            count: Distribution::Uniform { low: 20.0, high: 60.0 },
            contents: Weighted::one(0),
        }),
        ..fixtures::content("page", Distribution::Constant(500.0), 0.9)
    };
    workload.contents.push(page);
    workload.servers[0].direct_access = Weighted::new([(5, 0.5), (4, 0.5)]);
    workload.robots[0].embedded_recurrence = 0.5;
    workload.robots[0].recurrence = 0.5;
    workload.robots[0].addresses[0].count = 300;
    workload.schedule.phases = vec![phase("a", 60.0), Phase { special: ramp(1.0, 0.0), ..phase("b", 60.0) }];
    let run = run(workload, 50);
    let room = run.launches.iter().filter(|l| l.object.content == 5 && l.object.space == Space::Public);
    assert!(room.into_iter().all(|l| run.universe.object(l.object).size_bytes > 500));
    assert_offered("large pages", &run);
}

#[test]
fn the_working_set_is_as_large_as_was_stated() {
    let mut workload = mixed();
    workload.schedule.working_set = WorkingSet::FrozenAfter(seconds(60));
    workload.robots[0].embedded_recurrence = 1.0;
    let run = run(workload, 54);
    let stated = run.timeline.working_set().unwrap();
    let (mut objects, mut bytes) = (0.0, 0.0);
    let lasting = |l: &&Launch| matches!(l.object.space, Space::Public | Space::Private(_));
    for launch in run.launches.iter().filter(|l| l.due < seconds(60) && !l.revisit).filter(lasting) {
        let page = run.universe.object(launch.object);
        let embedded =
            (1..=run.universe.embedded_count(&page)).filter_map(|place| run.universe.embedded(&page, place));
        for object in std::iter::once(page).chain(embedded.map(|id| run.universe.object(id))) {
            objects += 1.0;
            bytes += object.size_bytes as f64;
        }
    }
    assert!((objects / stated.objects - 1.0).abs() < 0.05, "{objects}, stated {}", stated.objects);
    assert!((bytes / stated.bytes - 1.0).abs() < 0.1, "{bytes}, stated {}", stated.bytes);
}
