use std::sync::Arc;
use std::time::Duration;

use assay_pgl::{SearchPath, compile};
use assay_workload::{Slice, Stream, Timeline, Universe, UniverseOptions};

use super::*;
use crate::size::curve;
use crate::size::http::USUAL;
use crate::size::policy::Policy;
use crate::size::simulate;
use crate::size::simulate::Admission;

/// Robots that request objects of 1 KB; `content`, `robot` and `phases` are PGL.
fn plan(content: &str, robot: &str, phases: &str) -> WorkloadPlan<'static> {
    let text = format!(
        r#"
        Content cntAny = {{ kind = "any"; size = const(1KB); {content} }};
        Server S = {{ kind = "s"; contents = [ cntAny ]; direct_access = contents; addresses = ['10.1.0.1:80']; }};
        Robot R = {{
            kind = "r"; recurrence = 60%; interests = ["public"]; pop_model = {{ pop_distr = popUnif(); }};
            origins = S.addresses; addresses = [ '10.2.0.1-20' ]; {robot}
        }};
        {phases}
        use(S, R);
        "#
    );
    let resolver = SearchPath::from_fn(vec![], |name| (name == "w.pg").then(|| text.as_str().into()));
    let compiled = compile("w.pg", &resolver).unwrap_or_else(|failure| panic!("{failure}"));
    let workload = Arc::new(compiled.workload);
    let timeline = Arc::new(Timeline::new(&workload).unwrap());
    let universe = Universe::new(workload, 3, 1, UniverseOptions::default()).unwrap();
    WorkloadPlan {
        name: "w.pg",
        universe: Arc::new(universe),
        timeline,
        behaviour: USUAL,
        response: None,
        phases: &[],
        how: ReadOptions::default(),
    }
}

const TWO_PHASES: &str = r#"
    Phase phOne = { name = "one"; goal.duration = 60sec; };
    Phase phTwo = { name = "two"; goal.duration = 60sec; };
    schedule(phOne, phTwo);
"#;

#[test]
fn the_requests_of_scheduled_robots_are_those_of_their_stream_and_an_infinite_cache_hits_what_it_offers() {
    let plan = plan("cachable = 80%;", "req_rate = 5/sec;", TWO_PHASES);
    let read = read(&plan).unwrap();
    let (universe, timeline) = (plan.universe.clone(), plan.timeline.clone());
    let launches: Vec<_> = Stream::new(universe.clone(), timeline, Slice::ALL).collect();
    assert_eq!(read.requests.list.len(), launches.len());
    assert_eq!((read.requests.unordered, read.requests.uncounted(), read.notes.len()), (0, 0, 0));
    let offered =
        |launch: &&assay_workload::Launch| universe.offered(launch, &universe.object(launch.object)).hit();
    let counts = simulate::infinite(&read.requests, 0.into()).total();
    assert_eq!(counts.hits, launches.iter().filter(offered).count() as u64);
    assert_eq!(counts.bytes, launches.len() as u64 * 1024);
    assert!(read.requests.uncachable > counts.requests / 6, "a fifth of the objects is uncachable");
}

#[test]
fn objects_that_expire_are_validated_and_then_lru_is_simulated_at_each_size() {
    let life = "cachable = 100%; obj_life_cycle = { length = const(100000hour); variance = 0%; with_lmt = 100%; expires = [now + const(10sec)]; };";
    let expiring = read(&plan(life, "req_rate = 5/sec;", TWO_PHASES)).unwrap();
    let lasting = read(&plan("cachable = 100%;", "req_rate = 5/sec;", TWO_PHASES)).unwrap();
    let (with, without) = (
        simulate::infinite(&expiring.requests, 0.into()).total(),
        simulate::infinite(&lasting.requests, 0.into()).total(),
    );
    assert!(with.validated > 100 && with.hits < without.hits, "{with:?} {without:?}");
    // Nothing else differs: whatever is not fresh is still known.
    assert_eq!((with.hits + with.validated, without.validated), (without.hits, 0));
    let method = |requests| {
        let plan = curve::CurvePlan {
            policies: &[Policy::LRU],
            sizes: &[1 << 20],
            warm_up: 0.0,
            admission: Admission::All,
        };
        curve::curves(requests, &plan).curves[0].points[0].method
    };
    assert_eq!(method(&expiring.requests), crate::size::curve::CurveMethod::Simulated);
    assert_eq!(method(&lasting.requests), crate::size::curve::CurveMethod::OnePass);
}

#[test]
fn an_infinite_cache_holds_each_variant_and_a_post_drops_them_all() {
    use assay_cache::ideal::{FOREVER, IdealCache, Lookup, RequestClass};
    use assay_workload::model::Method;

    let content = r#"cachable = 100%; encodings = ["gzip", "identity"];"#;
    let robot = r#"req_rate = 5/sec; accept_content_encodings = ["gzip"]; req_methods = ["GET", "POST": 10%]; post_contents = [cntAny];"#;
    let others =
        r#"Robot Q = R; Q.accept_content_encodings = ["identity"]; Q.addresses = ['10.3.0.1-20']; use(Q);"#;
    let plan = plan(content, robot, &format!("{TWO_PHASES} {others}"));
    let requests = read(&plan).unwrap().requests;
    let (universe, timeline) = (plan.universe.clone(), plan.timeline.clone());
    let mut ideal = [true, false].map(|has_variants| (has_variants, IdealCache::new(USUAL), 0));
    for launch in Stream::new(universe.clone(), timeline, Slice::ALL) {
        let object = universe.object(launch.object).key;
        let request = if launch.method == Method::Post { RequestClass::Post } else { RequestClass::Get };
        let at_us = launch.due.as_micros() as u64;
        for (has_variants, cache, hits) in &mut ideal {
            let key = object.wrapping_add(u64::from(*has_variants && launch.robot >= 20));
            *hits += u64::from(cache.lookup(Lookup {
                key,
                object,
                request,
                cachable: true,
                at_us,
                fresh_until_ms: FOREVER,
            }));
        }
    }
    let hits = simulate::infinite(&requests, 0.into()).total().hits;
    let [(.., with), (.., without)] = ideal;
    assert_eq!(hits, with);
    assert!(with > 1000 && with < without * 9 / 10, "{with} of {without}");
}

#[test]
fn only_the_named_phases_are_counted_and_the_others_fill_the_caches() {
    let counts = |phases: &[String]| {
        let plan = WorkloadPlan { phases, ..plan("cachable = 100%;", "req_rate = 5/sec;", TWO_PHASES) };
        let requests = read(&plan).unwrap().requests;
        let counts = simulate::infinite(&requests, 0.into()).total();
        assert_eq!(counts.requests + requests.uncounted(), requests.list.len() as u64);
        (requests.list.len(), counts)
    };
    let (all, one, two) = (counts(&[]), counts(&["one".to_owned()]), counts(&["two".to_owned()]));
    assert!(all.0 == one.0 && all.0 == two.0 && two.1.requests > 1000);
    assert_eq!(all.1.requests, one.1.requests + two.1.requests);
    assert_eq!(all.1.hits, one.1.hits + two.1.hits, "the second phase finds what the first one left");
    let whole = plan("cachable = 100%;", "req_rate = 5/sec;", TWO_PHASES);
    let three = ["three".to_owned()];
    let error = read(&WorkloadPlan { phases: &three, ..whole }).unwrap_err().to_string();
    assert!(error.contains("no phase `three`; it has one, two"), "{error}");
}

#[test]
fn requests_that_are_no_plain_gets_are_not_counted() {
    let mixed = r#"req_rate = 5/sec; req_types = ["Basic", "Ims304" : 30%, "Reload" : 10%]; req_methods = ["GET", "HEAD" : 10%];"#;
    let requests = read(&plan("cachable = 100%;", mixed, TWO_PHASES)).unwrap().requests;
    let share = requests.uncounted() as f64 / requests.list.len() as f64;
    assert!((0.4..0.5).contains(&share), "{share}");
}

#[test]
fn best_effort_robots_request_one_object_after_the_other_until_a_phase_has_its_count() {
    let phases = r#"
        Phase phOne = { name = "one"; goal.xactions = 2000; };
        Phase phTwo = { name = "two"; goal.duration = 10sec; };
        schedule(phOne, phTwo);
    "#;
    let plan =
        WorkloadPlan { response: Some(Duration::from_millis(20)), ..plan("cachable = 100%;", "", phases) };
    let read = read(&plan).unwrap();
    assert_eq!(read.requests.unordered, 0);
    // 2,000 requests of 20 robots at 50 a second each take two seconds, and the second phase is ten seconds long.
    let expected = 2000 + 10 * 20 * 50;
    assert!(read.requests.list.len().abs_diff(expected) <= 40, "{}", read.requests.list.len());
    assert_eq!(read.requests.lasts_s, Some(11));
    assert!(read.notes[0].contains("20 ms"), "{:?}", read.notes);
    let dhr = simulate::infinite(&read.requests, 0.into()).total().dhr().unwrap();
    assert!((0.4..0.65).contains(&dhr), "{dhr}");
}

#[test]
fn a_schedule_without_an_end_is_refused() {
    let error = read(&plan("cachable = 100%;", "req_rate = 5/sec;", "")).unwrap_err();
    assert!(matches!(error, SizeError::Endless { .. }), "{error}");
}
