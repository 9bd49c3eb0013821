//! What is in store for a single request.

use std::sync::Arc;
use std::time::Duration;

use assay_workload::model::{
    AuthDemand, AuthScheme, Coding, CookieSetting, Distribution, Expectation, Extent, HeaderRule, Method,
    Origin, Pace, Phase, RandomExtent, RangeSpec, RequestType, RobotGroup, UserRun, Weighted, Workload,
};
use assay_workload::object::{ObjectId, Space};
use assay_workload::variants::VaryConflict;
use assay_workload::{
    ByteRange, Fault, Launch, Object, Slice, Stream, Timeline, Universe, UniverseOptions, XactId,
};
use proptest::prelude::*;

use crate::fixtures::{self, flat};

fn universe(workload: Workload) -> Universe {
    Universe::new(Arc::new(workload), 21, 1, UniverseOptions::default()).unwrap()
}

fn xact(number: u64) -> XactId {
    XactId { robot: 3, number, place: 0 }
}

fn public(universe: &Universe, serial: u64) -> Object {
    universe.object(ObjectId { origin: 0, content: 0, space: Space::Public, serial })
}

/// Within five deviations of what `share` of `n` coins give.
pub fn is_share(seen: usize, n: u64, share: f64) -> bool {
    let n = n as f64;
    (seen as f64 - n * share).abs() <= 5.0 * (n * share * (1.0 - share)).sqrt() + 1e-9
}

const N: u64 = 20_000;

fn rule(name: &str, value: &str) -> HeaderRule {
    HeaderRule { fields: vec![(name.into(), value.into())], probability: 1.0 }
}

/// Ten robots that accept these codings and send these fields.
fn group(accepts: &[Coding], headers: &[(&str, &str)]) -> RobotGroup {
    let mut robots = fixtures::robots(10, 1.0, 0.5);
    robots.accepts = accepts.to_vec();
    robots.headers = headers.iter().map(|(name, value)| rule(name, value)).collect();
    robots
}

#[test]
fn requests_share_a_response_where_they_agree_in_what_vary_names() {
    let mut workload = fixtures::small();
    let (gzip, identity) = (Coding::Gzip, Coding::Identity);
    workload.robots = vec![
        group(&[gzip], &[]),
        group(&[gzip, identity], &[("accept-language", "de")]),
        group(&[identity, gzip], &[("Accept-Language", "fr")]),
        group(&[], &[("Accept-Encoding", "gzip")]),
    ];
    let keys = |workload: &Workload| {
        let universe = universe(workload.clone());
        [0, 10, 20, 30].map(|robot| {
            let key =
                |robot| universe.response_key(XactId { robot, number: 1, place: 0 }, &public(&universe, 1));
            assert_eq!(key(robot), key(robot + 9), "robots of one kind send the same fields");
            key(robot)
        })
    };
    let [first, others @ ..] = keys(&workload);
    assert_eq!(
        (first.is_some(), others),
        (true, [first; 3]),
        "one coding, so the response varies by nothing"
    );
    workload.contents[0].body.codings = vec![gzip, identity];
    let [a, b, c, d] = keys(&workload);
    assert!(a != b && b == c && a == d, "codings have no order: {a:?} {b:?} {c:?} {d:?}");
    workload.servers[0].headers = vec![rule("vary", "Accept-Encoding, ACCEPT-LANGUAGE")];
    let [a, b, c, d] = keys(&workload);
    assert!(a != b && b != c && a == d, "{a:?} {b:?} {c:?} {d:?}");
    workload.servers[0].headers = vec![rule("Vary", "*")];
    assert_eq!(keys(&workload), [None; 4]);
}

#[test]
fn a_stored_response_serves_only_requests_with_the_same_values_of_what_it_varies_by() {
    let mut workload = fixtures::small();
    workload.robots = ["de, en;q=0.5", "EN;q=.50,de ; q=1", "fr"]
        .map(|languages| group(&[], &[("Accept-Language", languages)]))
        .into();
    let shared = |workload: &Workload| {
        let universe = universe(workload.clone());
        let of = |robot| XactId { robot, number: 1, place: 0 };
        let object = public(&universe, 1);
        let share = |requested, made_for| universe.vary_conflict(made_for, requested, &object).is_none();
        assert!(share(of(0), of(0)) && share(of(0), XactId::NOBODY));
        [of(1), of(10), of(20)].map(|other| {
            let [own, key] = [of(0), other].map(|xact| universe.response_key(xact, &object));
            let is_shared = share(of(0), other);
            assert_eq!(is_shared, own.is_some() && own == key, "the ideal cache agrees");
            is_shared
        })
    };
    assert_eq!(shared(&workload), [true; 3], "it varies by nothing");
    let mut varying_by = |fields: &str| {
        workload.servers[0].headers = vec![rule("Vary", fields)];
        shared(&workload)
    };
    assert_eq!(varying_by("Accept, accept-language"), [true, true, false]);
    assert_eq!(varying_by("Accept-Encoding, User-Agent"), [true; 3]);
    assert_eq!(varying_by("*"), [false; 3]);

    workload.servers[0].headers = vec![rule("Vary", "Accept, Accept-Language")];
    let universe = universe(workload);
    let of = |robot| XactId { robot, number: 1, place: 0 };
    let conflict = universe.vary_conflict(of(20), of(0), &public(&universe, 1));
    let values = |value: &str| vec![value.to_owned()];
    let expected = VaryConflict {
        field: "accept-language".to_owned(),
        made_for: values("fr"),
        requested: values("de, en;q=0.5"),
    };
    assert_eq!(conflict, Some(expected));
}

#[test]
fn what_varies_by_cookies_or_credentials_is_a_robots_own() {
    for field in ["Cookie", "Authorization"] {
        let mut workload = fixtures::small();
        let fields = vec![("Vary".to_owned(), field.to_owned())];
        workload.contents[0].headers = vec![HeaderRule { fields, probability: 1.0 }];
        let keys = |workload: &Workload| {
            let universe = universe(workload.clone());
            [0, 1].map(|robot| {
                universe.response_key(XactId { robot, number: 1, place: 0 }, &public(&universe, 1))
            })
        };
        workload.robots[0].cookies.share = 0.0;
        let [first, second] = keys(&workload);
        assert_eq!(first, second, "neither has any");
        workload.robots[0].cookies.share = 1.0;
        workload.robots[0].credentials.users = vec![UserRun::One { user: "a".into(), password: "b".into() }];
        let [first, second] = keys(&workload);
        assert!(first.is_some() && first != second, "{field}");
    }
}

#[test]
fn faults_have_their_shares_and_a_request_meets_one_at_most() {
    let mut workload = fixtures::small();
    let faults = &mut workload.servers[0].faults;
    faults.error_share = 0.1;
    faults.statuses = Weighted::new([(503, 0.75), (500, 0.25)]);
    faults.reset_share = 0.2;
    faults.slow_start_share = 0.3;
    faults.slow_start_s = Distribution::Constant(1.5);
    faults.slow_body_share = 0.15;
    faults.slow_body_bytes_per_s = 1000.0;
    let universe = universe(workload);
    let count = |wanted: &dyn Fn(&Fault) -> bool| {
        (0..N).filter(|n| universe.fault(xact(*n), 0).as_ref().is_some_and(wanted)).count()
    };
    assert!(is_share(count(&|f| matches!(f, Fault::Status(503))), N, 0.075));
    assert!(is_share(count(&|f| matches!(f, Fault::Status(500))), N, 0.025));
    assert!(is_share(count(&|f| *f == Fault::Reset), N, 0.2));
    assert!(is_share(count(&|f| *f == Fault::SlowStart(Duration::from_millis(1500))), N, 0.3));
    assert!(is_share(count(&|f| *f == Fault::SlowBody { bytes_per_s: 1000.0 }), N, 0.15));
    assert_eq!(universe.fault(XactId::NOBODY, 0), None, "a request of nobody's meets nothing");
    assert_eq!(universe.fault(xact(0), 99), None, "nor does one to no origin");
}

#[test]
fn an_origin_gives_up_what_it_would_think_about_for_too_long() {
    let mut workload = fixtures::small();
    workload.servers[0].think_s = Some(Distribution::Uniform { low: 0.0, high: 1.0 });
    workload.servers[0].faults.reset_share = 0.5;
    workload.servers[0].faults.lifetime_s = Some(Distribution::Constant(0.75));
    let universe = universe(workload);
    let expired = Fault::Expired(Duration::from_millis(750));
    let count = (0..N).filter(|n| universe.fault(xact(*n), 0) == Some(expired)).count();
    assert!(is_share(count, N, 0.5 * 0.25), "{count}: other faults come first");
}

#[test]
fn bodies_are_broken_off_in_the_middle() {
    let mut workload = fixtures::small();
    workload.robots[0].abort_share = 0.2;
    workload.servers[0].abort_share = 0.1;
    let universe = universe(workload);
    let cuts = |of: &dyn Fn(XactId) -> Option<u64>| (0..N).filter_map(|n| of(xact(n))).collect::<Vec<_>>();
    let robots = cuts(&|x| universe.robot_abort(x, 1000));
    let origins = cuts(&|x| universe.origin_abort(x, 0, 1000));
    assert!(is_share(robots.len(), N, 0.2) && is_share(origins.len(), N, 0.1));
    for places in [&robots, &origins] {
        assert!(places.iter().all(|at| *at < 1000));
        let early = places.iter().filter(|at| **at < 500).count();
        assert!(is_share(early, places.len() as u64, 0.5), "anywhere in the body");
    }
    assert_eq!(universe.robot_abort(xact(1), 0), None, "there is nothing to break off");
    let plain = (0..N).filter(|n| universe.is_plain(xact(*n), 0, 0, &public(&universe, *n))).count();
    assert!(is_share(plain, N, 0.8 * 0.9));
}

#[test]
fn redirections_lead_to_older_objects_and_end() {
    let mut workload = fixtures::mixed_listing();
    workload.servers[0].redirect_share = 0.5;
    workload.schedule.phases[1].special = flat(0.5);
    let universe = universe(workload);
    let spaces = [Space::Public, Space::Private(3), Space::BestEffort(3)];
    for space in spaces {
        let mut redirected = 0;
        for serial in 0..2000 {
            let object = universe.object(ObjectId { origin: 0, content: 1, space, serial });
            let Some(older) = universe.redirect(xact(serial), 0, &object) else { continue };
            redirected += 1;
            assert_eq!((older.origin, older.content, older.space), (0, 1, space));
            assert!(older.serial < serial);
        }
        // A best-effort robot's history is sparse: some find nothing older.
        let all =
            if space == Space::BestEffort(3) { redirected > 100 } else { is_share(redirected, 2000, 0.5) };
        assert!(all, "{redirected} in {space:?}");
    }
    let share = |phase| {
        (0..N).filter(|n| universe.redirect(xact(*n), phase, &public(&universe, 9)).is_some()).count()
    };
    assert!(is_share(share(0), N, 0.5) && is_share(share(1), N, 0.25), "less where nothing is special");
    let mut object = public(&universe, 1_000_000);
    let mut steps = 0;
    while let Some(next) = universe.redirect(xact(7), 0, &object) {
        object = universe.object(next);
        steps += 1;
    }
    assert!(steps < 60, "a chain ends");
    let once = universe.object(ObjectId { space: Space::RequestBody(3), ..object.id });
    assert!((0..100).all(|n| universe.redirect(xact(n), 0, &once).is_none()));
}

#[test]
fn robots_expect_100_before_bodies_and_origins_refuse_a_share() {
    let mut workload = fixtures::small();
    workload.robots[0].expectation = Expectation::Sometimes(0.3);
    workload.servers[0].body_allowed = 0.6;
    let sometimes = universe(workload.clone());
    assert!(is_share((0..N).filter(|n| sometimes.expects(xact(*n), 5)).count(), N, 0.3));
    assert!(is_share((0..N).filter(|n| sometimes.body_allowed(xact(*n), 0)).count(), N, 0.6));
    workload.robots[0].expectation = Expectation::From(1000);
    let large = universe(workload);
    assert!(large.expects(xact(1), 1000) && !large.expects(xact(1), 999));
}

#[test]
fn an_xact_has_its_own_patience_and_a_thinking_robot_its_pauses() {
    let mut workload = fixtures::small();
    workload.robots[0].lifetime_s = Some(Distribution::Uniform { low: 2.0, high: 4.0 });
    workload.robots[0].pace = Pace::Think(Distribution::Exponential { mean: 0.5 });
    let universe = universe(workload);
    let lifetimes: Vec<_> = (0..1000).filter_map(|n| universe.lifetime(xact(n))).collect();
    let seconds = |s| Duration::from_secs(s);
    assert!(lifetimes.len() == 1000 && lifetimes.iter().all(|l| *l >= seconds(2) && *l < seconds(4)));
    let mean = (0..N).map(|n| universe.pause(3, n).as_secs_f64()).sum::<f64>() / N as f64;
    assert!((mean - 0.5).abs() < 5.0 * 0.5 / (N as f64).sqrt(), "{mean}");
    assert_eq!(universe.pause(3, 7), universe.pause(3, 7));
}

fn with_bodies(recurrence: f64) -> Workload {
    let mut workload = fixtures::mixed_listing();
    let group = &mut workload.robots[0];
    group.addresses[0].count = 4;
    group.pace = Pace::Rate { per_second: 50.0 };
    group.methods = Weighted::new([(Method::Get, 0.4), (Method::Post, 0.3), (Method::Put, 0.3)]);
    group.put_contents = Weighted::new([(0, 0.5), (3, 0.5)]);
    group.request_types =
        Weighted::new([(RequestType::Basic, 0.8), (RequestType::Upload, 0.1), (RequestType::Range, 0.1)]);
    group.ranges = Weighted::one(RangeSpec::Suffix(Extent::Bytes(10)));
    group.body_recurrence = recurrence;
    workload.schedule.phases = vec![fixtures::phase("a", 100.0)];
    workload
}

fn launches(workload: Workload) -> (Arc<Universe>, Vec<Launch>) {
    let timeline = Arc::new(Timeline::new(&workload).unwrap());
    let universe = Arc::new(universe(workload));
    (universe.clone(), Stream::new(universe, timeline, Slice::ALL).collect())
}

#[test]
fn uploads_are_puts_parts_are_requested_with_get_and_both_sides_know_the_body() {
    let (universe, launches) = launches(with_bodies(0.3));
    for launch in &launches {
        match launch.request_type {
            RequestType::Upload => assert_eq!(launch.method, Method::Put),
            RequestType::Range => assert_eq!((launch.method, launch.carries_body()), (Method::Get, false)),
            _ => {}
        }
        let xact = XactId { robot: launch.robot, number: launch.number, place: 0 };
        assert_eq!(universe.request_body(xact, launch.method, launch.object.origin), launch.post_body);
        let content = launch.post_body.map(|body| body.content);
        match launch.method {
            Method::Get | Method::Head => assert_eq!(content, None),
            Method::Post => assert_eq!(content, Some(2)),
            Method::Put => assert!(matches!(content, Some(0 | 3))),
        }
    }
    let puts = launches.iter().filter(|l| l.method == Method::Put).count();
    // Uploads, and a third of what neither is an upload nor requests parts (some types have methods of their own).
    assert!(puts * 10 > launches.len() * 2);
}

#[test]
fn a_share_of_bodies_was_sent_before() {
    for (recurrence, least, most) in [(0.0, 0.0, 0.0), (0.5, 0.46, 0.52), (1.0, 0.97, 1.0)] {
        let (_, launches) = launches(with_bodies(recurrence));
        let (mut seen, mut sent, mut again) = (std::collections::HashSet::new(), 0.0, 0.0);
        for launch in &launches {
            if let Some(body) = launch.post_body {
                sent += 1.0;
                again += f64::from(u8::from(!seen.insert((launch.robot, body))));
            }
        }
        let share = again / sent;
        assert!((least..=most).contains(&share), "{share} of {sent} at {recurrence}");
    }
}

fn with_range(spec: RangeSpec) -> Universe {
    let mut workload = fixtures::small();
    workload.robots[0].request_types = Weighted::one(RequestType::Range);
    workload.robots[0].ranges = Weighted::one(spec);
    universe(workload)
}

#[test]
fn ranges_are_written_as_http_has_them() {
    let written = |spec, size| {
        let ranges = with_range(spec).ranges(xact(1), 0, size).unwrap();
        let mut text = Vec::new();
        ranges.write(&mut text);
        (String::from_utf8(text).unwrap(), ranges.resolve(size))
    };
    let span = |first, last| RangeSpec::Span { first, last };
    let (bytes, share) = (Extent::Bytes, Extent::Share);
    assert_eq!(written(span(bytes(10), Some(bytes(19))), 100), ("bytes=10-19".into(), vec![(10, 19)]));
    assert_eq!(written(span(bytes(10), None), 100), ("bytes=10-".into(), vec![(10, 99)]));
    assert_eq!(written(span(share(0.5), Some(share(0.75))), 100), ("bytes=50-75".into(), vec![(50, 75)]));
    assert_eq!(written(span(bytes(10), Some(bytes(900))), 100).1, [(10, 99)], "cut at the end");
    assert_eq!(written(span(bytes(100), None), 100).1, [], "beyond the end: 416");
    assert_eq!(written(RangeSpec::Suffix(bytes(5)), 100), ("bytes=-5".into(), vec![(95, 99)]));
    assert_eq!(written(RangeSpec::Suffix(bytes(500)), 100).1, [(0, 99)]);
    assert_eq!(written(RangeSpec::Suffix(share(0.1)), 0).1, [], "an empty object has no parts");
    assert_eq!(ByteRange::Between(5, 4).resolve(100), None);
}

proptest! {
    #[test]
    fn several_parts_are_apart_from_each_other_and_within_the_object(
        size in 1u64..1_000_000, number: u64, first in prop::option::of(0.0f64..1.2), count in 0.0f64..100.0,
        length in 0.0f64..0.5, in_bytes: bool,
    ) {
        let share = |mean| RandomExtent::Share(Distribution::Exponential { mean });
        let spec = RangeSpec::Multiple {
            first: first.map(share),
            length: if in_bytes { RandomExtent::Bytes(Distribution::Exponential { mean: 1e4 * length }) } else { share(length) },
            count: Distribution::Constant(count),
        };
        let universe = with_range(spec);
        let ranges = universe.ranges(xact(number), 0, size).unwrap();
        prop_assert!(!ranges.parts().is_empty() && ranges.parts().len() <= 64);
        let parts = ranges.resolve(size);
        prop_assert!(parts.iter().all(|(first, last)| first <= last && *last < size));
        prop_assert!(parts.windows(2).all(|pair| pair[1].0 > pair[0].1 + 1), "{parts:?}");
        prop_assert_eq!(universe.ranges(xact(number), 0, size), Some(ranges));
    }
}

#[test]
fn fields_are_added_each_with_its_probability() {
    let mut workload = fixtures::small();
    let rule = |fields: &[(&str, &str)], probability| HeaderRule {
        fields: fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        probability,
    };
    workload.robots[0].headers = vec![rule(&[("A", "1")], 1.0), rule(&[("B", "2"), ("C", "3")], 0.25)];
    workload.servers[0].headers = vec![rule(&[("S", "s")], 0.5)];
    workload.contents[0].headers = vec![rule(&[("K", "k")], 0.5)];
    let universe = universe(workload);
    let requests: Vec<Vec<_>> = (0..N).map(|n| universe.request_headers(xact(n)).collect()).collect();
    assert!(requests.iter().all(|fields| fields[0] == ("A", "1")));
    assert!(requests.iter().all(|fields| fields.len() == 1 || fields[1..] == [("B", "2"), ("C", "3")]));
    assert!(is_share(requests.iter().filter(|fields| fields.len() == 3).count(), N, 0.25));
    let has = |n: u64| {
        let object = public(&universe, n);
        let (server, content) =
            (universe.server_headers(&object).count(), universe.content_headers(&object).count());
        (server == 1, content == 1)
    };
    let objects: Vec<_> = (0..N).map(has).collect();
    assert!(is_share(objects.iter().filter(|o| o.0).count(), N, 0.5));
    assert!(is_share(objects.iter().filter(|o| o.0 && o.1).count(), N, 0.25), "independent of each other");
    assert_eq!(universe.request_headers(XactId::NOBODY).count(), 0);
}

#[test]
fn a_share_of_objects_sets_cookies_that_are_always_the_same() {
    let mut workload = fixtures::small();
    workload.servers[0].cookies = Some(CookieSetting {
        senders: 1.0,
        share: 0.3,
        count: Distribution::Uniform { low: 0.5, high: 3.0 },
        value_bytes: Distribution::Constant(20.0),
    });
    workload.robots[0].cookies.share = 0.4;
    let universe = universe(workload);
    let cookies: Vec<Vec<_>> = (0..N).map(|n| universe.cookies(&public(&universe, n)).collect()).collect();
    assert!(is_share(cookies.iter().filter(|c| !c.is_empty()).count(), N, 0.3));
    for (n, cookies) in (0..).zip(&cookies) {
        assert!(cookies.len() <= 3 && cookies.iter().all(|c| c.value.len() == 20));
        assert!(
            cookies.iter().all(|c| c.value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)))
        );
        assert_eq!(*cookies, universe.cookies(&public(&universe, n)).collect::<Vec<_>>());
    }
    let keepers = (0..20).filter(|robot| universe.keeps_cookies(*robot)).count();
    assert!((2..15).contains(&keepers), "{keepers}");
    assert_eq!(universe.cookie_limit(3), 4, "as many as nothing else was said");
}

#[test]
fn a_share_of_origins_sets_cookies_at_all() {
    let mut workload = fixtures::small();
    let origin = workload.origins[0].clone();
    workload.origins =
        (0..60).map(|n| Origin { authority: format!("o{n}.test:80"), ..origin.clone() }).collect();
    workload.servers[usize::from(origin.server)].cookies = Some(CookieSetting {
        senders: 0.5,
        share: 1.0,
        count: Distribution::Constant(1.0),
        value_bytes: Distribution::Constant(5.0),
    });
    let universe = universe(workload);
    let sets = |origin: u16, serial: u64| {
        let id = ObjectId { origin, ..public(&universe, serial).id };
        universe.cookies(&universe.object(id)).count() == 1
    };
    let senders = (0..60).filter(|origin| sets(*origin, 0)).count();
    assert!((15..46).contains(&senders), "{senders}");
    assert!(
        (0..60).all(|origin| (1..20).all(|serial| sets(origin, serial) == sets(origin, 0))),
        "it is sticky"
    );
}

#[test]
fn a_robot_that_accepts_none_of_the_codings_is_refused() {
    let coding = |offers: &[Coding], accepts: &[Coding]| {
        let mut workload = fixtures::small();
        workload.contents[0].body.codings = offers.to_vec();
        workload.robots[0].accepts = accepts.to_vec();
        let universe = universe(workload);
        let object = public(&universe, 1);
        let is_acceptable = universe.has_acceptable(3, 0);
        assert_eq!(universe.is_plain(xact(1), 0, 0, &object), is_acceptable);
        (is_acceptable, universe.varies(0))
    };
    use Coding::{Gzip, Identity};
    assert_eq!(coding(&[], &[Gzip]), (true, false));
    assert_eq!(coding(&[Gzip], &[Gzip]), (true, false));
    assert_eq!(coding(&[Gzip], &[Identity]), (false, false), "406");
    assert_eq!(coding(&[Gzip], &[]), (true, false), "nothing is refused");
    assert_eq!(coding(&[Identity, Gzip], &[Gzip]), (true, true));
    assert_eq!(coding(&[Identity, Gzip], &[Identity]), (true, true));
}

#[test]
fn a_share_of_objects_is_protected() {
    let mut workload = fixtures::small();
    let demand = AuthDemand { schemes: vec![AuthScheme::Digest], realm: "r".into(), share: 0.3 };
    workload.servers[0].authentication = Some(demand.clone());
    let universe = universe(workload);
    let protected: Vec<_> =
        (0..N).filter(|n| universe.auth_demand(&public(&universe, *n)).is_some()).collect();
    assert!(is_share(protected.len(), N, 0.3));
    assert_eq!(universe.auth_demand(&public(&universe, protected[0])), Some(&demand));
    assert!(universe.is_anonymous(3) && !universe.is_plain(xact(1), 0, 0, &public(&universe, protected[0])));
}

#[test]
fn offered_ratios_leave_out_what_cannot_be_basic() {
    let mut workload = fixtures::small();
    workload.servers[0].faults.error_share = 0.3;
    workload.robots[0].abort_share = 0.2;
    workload.schedule.phases = vec![Phase { ..fixtures::phase("a", 30.0) }];
    let timeline = Timeline::new(&workload).unwrap();
    let expected = timeline.phases()[0].expected.unwrap();
    let (universe, launches) = launches(workload);
    let basic = |l: &&Launch| universe.offered(l, &universe.object(l.object)).basic;
    let seen = launches.iter().filter(basic).count();
    assert!(is_share(seen, launches.len() as u64, 0.7 * 0.8));
    assert!((expected.basic - 0.56 * expected.requests).abs() < 1e-6);
}

#[test]
fn whatever_keeps_a_request_from_being_plain_makes_requests_special() {
    let is_special = |workload: &Workload| {
        workload.robots[0].makes_special_requests()
            || workload.contents[0].specials().requests
            || workload.servers[0].specials().requests
    };
    let is_plain = |workload: &Workload| {
        let universe = universe(workload.clone());
        (0..200).all(|n| universe.is_plain(xact(n), 0, 0, &public(&universe, n)))
    };
    let small = fixtures::small();
    assert!(!is_special(&small) && is_plain(&small));
    let changes: [fn(&mut Workload); 8] = [
        |workload| workload.robots[0].abort_share = 0.5,
        |workload| workload.servers[0].abort_share = 0.5,
        |workload| {
            workload.servers[0].redirect_share = 0.5;
            workload.servers[0].popularity.clone_from(&workload.robots[0].popularity);
            workload.schedule.phases[0].special = flat(1.0);
        },
        |workload| {
            let schemes = vec![AuthScheme::Basic];
            workload.servers[0].authentication = Some(AuthDemand { schemes, realm: "r".into(), share: 0.5 });
        },
        |workload| workload.servers[0].faults.error_share = 0.5,
        |workload| workload.servers[0].faults.reset_share = 0.5,
        |workload| {
            workload.servers[0].think_s = Some(Distribution::Constant(2.0));
            workload.servers[0].faults.lifetime_s = Some(Distribution::Constant(1.0));
        },
        |workload| {
            workload.contents[0].body.codings = vec![Coding::Gzip];
            workload.robots[0].accepts = vec![Coding::Identity];
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut workload = small.clone();
        change(&mut workload);
        assert!(!is_plain(&workload), "change {number} does nothing");
        assert!(is_special(&workload), "change {number}");
    }
}
