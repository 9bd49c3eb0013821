//! Workloads in plain words.

use std::time::Duration;

use assay_workload::Timeline;
use assay_workload::explain::explain;
use assay_workload::model::{
    AuthDemand, AuthScheme, BodySource, Coding, CookieSetting, Credentials, Distribution, Expectation,
    Extent, FileEntry, FileSet, ForeignUrl, Goal, HeaderRule, Injection, Origin, Pace, RandomExtent,
    RangeSpec, RequestType, Script, Session, Thermostat, UserRun, Weighted, Workload,
};

use crate::fixtures;

fn assert_says(workload: &Workload, parts: &[&str]) {
    let text = explain(workload, &Timeline::new(workload).unwrap()).join("\n");
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn a_listing_is_explained_with_its_numbers() {
    assert_says(
        &fixtures::mixed_listing(),
        &[
            "1,600 robots, 1 origin, 7 phases",
            "1/s each, 1,600/s together at full load",
            "recurrence 95%, uniform popularity, 10% of launches to the robot's private world",
            "requests: Basic 70%, Ims200 10%, Ims304 10%, Reload 10%; methods: GET 70%, POST 15%, HEAD 15%",
            "posts some-content",
            "think time 0.3 ± 0.1 s",
            "content \"HTML\": 8.5 KB on average, 90% cachable, modified every 7 days, a page with",
            "working set: frozen after 26.7 min, in phase \"top1\"; then it slides; about ",
            "phase \"top1\": 60 min (from",
            "load 20%; about 1,152,000 requests (peak 320/s)",
        ],
    );
}

#[test]
fn names_of_origins_are_listed_as_robots_request_them() {
    let mut workload = fixtures::mixed_listing();
    let origin = workload.origins[0].clone();
    let named = |n: usize| Origin { authority: format!("10.0.0.{n}:80"), ..origin.clone() };
    workload.origins = (1..=2).map(named).collect();
    assert_says(&workload, &["requested as (Host): 10.0.0.1:80, 10.0.0.2:80\n"]);
    workload.origins = (1..=200).map(named).collect();
    assert_says(&workload, &["requested as (Host): 10.0.0.1:80, 10.0.0.2:80 … 10.0.0.200:80\n"]);
}

#[test]
fn expected_bytes_of_workloads_with_coded_bodies_are_said_to_be_uncoded() {
    const UNCODED: &str = "(bytes are those of uncoded bodies)";
    let mut workload = fixtures::mixed_listing();
    let says = |workload: &Workload| {
        explain(workload, &Timeline::new(workload).unwrap()).join("\n").contains(UNCODED)
    };
    workload.contents[0].body.codings = vec![Coding::Identity, Coding::Gzip];
    assert!(!says(&workload), "nobody accepts them");
    workload.robots[0].accepts = vec![Coding::Gzip];
    assert!(says(&workload));
}

#[test]
fn what_robots_do_on_the_side_is_explained() {
    let mut workload = fixtures::small();
    workload.foreign = (0..300).map(|i| ForeignUrl { origin: 0, path: format!("/{}", i % 200) }).collect();
    let group = &mut workload.robots[0];
    group.pace = Pace::Renewal(Distribution::Uniform { low: 0.0, high: 1.0 });
    group.foreign_share = 0.2;
    group.popularity.as_mut().unwrap().size_preference = 0.25;
    group.request_types = Weighted::new([(RequestType::Range, 0.5), (RequestType::Upload, 0.5)]);
    let pieces = RangeSpec::Multiple {
        first: None,
        length: RandomExtent::Bytes(Distribution::Constant(2048.0)),
        count: Distribution::Constant(3.0),
    };
    group.ranges = Weighted::new([(RangeSpec::Suffix(Extent::Share(0.1)), 0.6), (pieces, 0.4)]);
    group.put_contents = Weighted::one(0);
    group.body_recurrence = 0.3;
    group.expectation = Expectation::From(4096);
    group.accepts = vec![Coding::Gzip];
    group.headers = vec![HeaderRule { fields: vec![("X-A".into(), "1".into())], probability: 0.5 }];
    group.cookies.share = 0.5;
    group.private_cache = 1000;
    group.abort_share = 0.01;
    group.lifetime_s = Some(Distribution::Constant(30.0));
    let run = UserRun::Made { count: 5000, realm: "r".into() };
    group.credentials = Credentials { users: vec![run], wrong_share: 0.02 };
    group.session = Some(Session {
        busy: Goal { transactions: Some(50), ..Goal::default() },
        idle_s: Distribution::Constant(90.0),
    });
    assert_says(
        &workload,
        &[
            "each sends a request every 0.5 s on average, with intervals of its own law",
            "uniform popularity, 25% of revisits to a small object nearby, 20% of launches for URLs of the trace",
            "requests: Range 50%, Upload 50%",
            "parts: the last 10% 60%, 3 pieces of 2 KB each 40%; puts plain; 30% of bodies were sent before; \
             asks before it sends bodies of 4 KB or more (100-continue)",
            "accepts gzip; adds X-A (50%); 50% of robots send cookies; a cache of its own for 1,000 objects; \
             1% of responses are broken off in the middle; gives up 30 s after it was due",
            "as one of 5,000 users, 2% of the time with a wrong password; busy until 50 requests are answered, \
             then idle for 90 s on average",
            "trace: 300 lines with 200 different URLs",
            "note: intervals of a law of their own",
            "note: robots that come and go",
        ],
    );
}

#[test]
fn what_origins_do_on_purpose_is_explained() {
    let mut workload = fixtures::small();
    let server = &mut workload.servers[0];
    server.redirect_share = 0.05;
    server.cookies = Some(CookieSetting {
        senders: 1.0,
        share: 0.4,
        count: Distribution::Constant(2.0),
        value_bytes: Distribution::Constant(40.0),
    });
    server.authentication = Some(AuthDemand {
        schemes: vec![AuthScheme::Basic, AuthScheme::Digest],
        realm: "in".into(),
        share: 0.1,
    });
    server.body_allowed = 0.8;
    server.abort_share = 0.02;
    server.faults.error_share = 0.03;
    server.faults.statuses = Weighted::one(503);
    server.faults.reset_share = 0.01;
    server.faults.slow_start_share = 0.1;
    server.faults.slow_start_s = Distribution::Exponential { mean: 2.0 };
    server.faults.slow_body_share = 0.2;
    server.faults.slow_body_bytes_per_s = 10_240.0;
    server.faults.delay_per_active_s = 0.01;
    server.faults.lifetime_s = Some(Distribution::Constant(30.0));
    assert_says(
        &workload,
        &[
            "redirects 5% of requests to an older object; sets 2 cookies of 40 B with 40% of objects; \
             10% of objects need a login (Basic or Digest, realm \"in\"); refuses 20% of bodies when it is asked (417); \
             breaks off 2% of responses in the middle",
            "on purpose, 3% of requests fail (503); 1% are reset; 10% are answered late, by 2 ± 2 s; \
             20% of bodies come at 10 KB/s; 0.01 s more think time for every other request under way; \
             what it thinks about for longer than 30 s is reset",
        ],
    );
}

#[test]
fn what_bodies_are_made_of_is_explained() {
    let mut workload = fixtures::small();
    let file = |path: &str, bytes| FileEntry { path: path.into(), bytes, digest: 0 };
    workload.files = vec![FileSet { root: "/srv".into(), files: vec![file("a", 1000), file("b", 3000)] }];
    let content = &mut workload.contents[0];
    content.body.source = BodySource::Files(0);
    content.body.unique = Some(0.75);
    content.body.codings = vec![Coding::Identity, Coding::Gzip];
    content.body.injection =
        Some(Injection { lines: Some(0), gap_bytes: Distribution::Constant(500.0), share: 0.1 });
    content.checksum = 0.5;
    content.behaviour.recurrence = Some(0.3);
    content.behaviour.methods = Some(Weighted::none());
    assert_says(
        &workload,
        &[
            "content \"plain\": 1.95 KB on average",
            "whole files, one of 2 files below /srv; 25% of objects share one body; sent as identity or gzip; \
             10% of objects have lines every 500 bytes put in; 50% with a checksum",
            "for all robots: recurrence 30%; methods of its own",
        ],
    );
}

#[test]
fn load_that_adapts_is_explained() {
    let mut workload = fixtures::small();
    let ms = Duration::from_millis;
    workload.schedule.phases[0].thermostat =
        Some(Thermostat { sample: ms(30_000), step: 0.05, low: Some(ms(100)), high: Some(ms(500)) });
    workload.schedule.phases[0].script = Some(Script::default());
    assert_says(
        &workload,
        &[
            "the load is adapted every 30 s by 5%: it rises while the mean response time is below 0.1 s, \
             falls while it is above 0.5 s",
            "a script runs when it begins",
            "note: where load is adapted, the numbers above are those of the plan",
        ],
    );
    workload.robots[0].pace = Pace::Think(Distribution::Constant(0.5));
    assert_says(&workload, &["0.5 s after the last is answered", "note: best-effort robots have no load"]);
}
