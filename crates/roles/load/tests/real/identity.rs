//! Robots with an identity, where time is a part of it: they wait for 100 for a second, and come, go and give up at a rate.

use assay_measurement::error_kind::ErrorKind;
use assay_workload::model::*;

use crate::harness::{content, lasts, phase, simple};
use crate::identities::{ROBOTS, never, protected, uploading};
use crate::origins;
use crate::robots::unanswered;

#[test]
fn uploads_log_in_too() {
    let mut workload = protected(&[AuthScheme::Digest]);
    workload.contents.push(content("form", 700.0));
    workload.robots[0].methods = Weighted::one(Method::Post);
    workload.robots[0].post_contents = Weighted::one(1);
    workload.robots[0].expectation = Expectation::Sometimes(0.5);
    let both = origins::run(&workload);
    both.check();
    assert_eq!((both.robots.logged_in, both.origins.challenges), (ROBOTS, ROBOTS));
    assert!(both.robots.invited > 50 && both.robots.invited == both.origins.continued, "{:#?}", both.robots);
}

#[test]
fn bodies_wait_for_a_word_and_go_without_it_where_they_are_refused() {
    let mut workload = uploading(0.7);
    workload.servers[0].body_allowed = 0.6;
    let both = origins::run(&workload);
    both.check();
    let (robots, origins) = (&both.robots, &both.origins);
    assert_eq!((robots.invited, robots.impatient), (origins.continued, 0));
    assert_eq!(robots.uninvited, origins.expectations_refused);
    assert!(robots.invited > 20 && robots.uninvited > 10, "{robots:#?}");
    assert_eq!(origins.requests, robots.completed + robots.uninvited);
}

#[test]
fn an_xact_is_given_up_when_its_lifetime_is_over() {
    let mut workload = simple();
    workload.robots[0].lifetime_s = Some(Distribution::Uniform { low: 0.02, high: 0.4 });
    workload.robots[0].open_connection_limit = Some(1);
    workload.robots[0].pace = Pace::Rate { per_second: 20.0 };
    workload.schedule.phases = vec![phase("only", lasts(500))];
    let counts = unanswered(&workload, 5_000).total();
    assert_eq!(counts.completed, 0);
    assert_eq!(counts.errors.keys().collect::<Vec<_>>(), [&ErrorKind::TimedOut]);
    let waiting = counts.error_total() - counts.sent;
    assert!(counts.sent > 4 && waiting > 0, "some never had a connection: {counts:#?}");
    assert_eq!(counts.due, counts.error_total() + counts.unsent);
}

#[test]
fn robots_at_a_rate_that_come_and_go_start_anew() {
    let mut workload = protected(&[AuthScheme::Digest]);
    workload.robots[0].connection_use_limit = never();
    workload.robots[0].pace = Pace::Rate { per_second: 50.0 };
    workload.robots[0].session = Some(Session { busy: lasts(200), idle_s: Distribution::Constant(0.2) });
    workload.schedule.phases = vec![phase("only", lasts(1500))];
    let both = origins::run(&workload);
    both.check();
    assert!(both.origins.challenges > ROBOTS, "{:#?}", both.origins);
    assert_eq!(both.robots.refused, 0);
}
