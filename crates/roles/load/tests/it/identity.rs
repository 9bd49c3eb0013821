//! Robots with an identity: they log in, keep cookies and objects, wait for 100 before they send, abort, and come and go.

use assay_measurement::error_kind::ErrorKind;
use assay_workload::model::*;

use crate::harness::{check_sums, content, simple};
use crate::identities::{ROBOTS, never, protected, uploading};
use crate::origins;
use crate::robot_run::{Options, Run, run};
use crate::server::{LONG_BYTES, Manner};

/// One thread has all robots: of several, one might reach the goal before another has had its turn.
fn together(manner: Manner) -> Options {
    Options { manner, threads: 1, ..Options::default() }
}

#[test]
fn robots_log_in_once_and_are_known_from_then_on() {
    use AuthScheme::{Basic, Digest};
    for schemes in [&[Basic][..], &[Digest], &[Basic, Digest]] {
        let both = origins::run(&protected(schemes));
        both.check();
        let (robots, origins) = (&both.robots, &both.origins);
        assert_eq!((robots.logged_in, origins.challenges), (ROBOTS, ROBOTS), "{schemes:?}");
        assert_eq!((robots.refused, origins.wrong_credentials), (0, 0), "{schemes:?}");
        assert!(origins.authenticated > 50, "{origins:#?}");
        assert_eq!(origins.requests, robots.completed + ROBOTS, "one step more for each of them");
        assert_eq!((robots.basic, robots.misses), (robots.completed, robots.completed));
    }
}

#[test]
fn a_wrong_password_is_shown_once_and_its_robot_refused() {
    let mut workload = protected(&[AuthScheme::Basic, AuthScheme::Digest]);
    workload.robots[0].credentials.wrong_share = 1.0;
    let both = origins::run(&workload);
    both.check();
    let (robots, origins) = (&both.robots, &both.origins);
    assert_eq!((origins.authenticated, origins.wrong_credentials), (0, ROBOTS));
    assert!(robots.refused > 50 && robots.logged_in == 0, "{robots:#?}");
    assert_eq!(origins.challenges, robots.refused + ROBOTS);
    assert_eq!(robots.completed, robots.basic + robots.refused);
    assert_eq!(robots.due_basic, robots.basic, "what is refused is not offered");
}

#[test]
fn credentials_and_challenges_that_are_lost_on_the_way_are_an_error() {
    let mut workload = protected(&[AuthScheme::Basic]);
    workload.servers[0].authentication.as_mut().expect("it has").share = 1.0;
    let refused = |workload: &Workload, fields| {
        let counts = run(workload, together(Manner::Refuses(fields))).total();
        let wrong = counts.errors.get(&ErrorKind::WrongStatus).copied().unwrap_or(0);
        assert_eq!(counts.error_total(), wrong, "{counts:#?}");
        (wrong > 0, counts.refused > 0)
    };
    let challenge = "WWW-Authenticate: Basic realm=\"r\"\r\n";
    assert_eq!(refused(&workload, challenge), (true, false), "it has the right password");
    workload.robots[0].credentials.wrong_share = 1.0;
    assert_eq!(refused(&workload, challenge), (false, true), "it has a wrong one");
    assert_eq!(refused(&workload, ""), (true, false), "there is no challenge");
}

#[test]
fn a_target_may_challenge_too() {
    let mut workload = simple();
    workload.robots[0].credentials.users = vec![UserRun::One { user: "u".into(), password: "p".into() }];
    let known = run(&workload, together(Manner::Challenges));
    let counts = known.total();
    check_sums(&counts);
    assert_eq!((counts.error_total(), counts.refused, counts.logged_in), (0, 0, ROBOTS), "{counts:#?}");
    assert_eq!(silent(&known), ROBOTS, "only the first request of each does not say it");
    workload.robots[0].credentials.users.clear();
    workload.robots[0].accepts = vec![Coding::Identity];
    let counts = run(&workload, together(Manner::Challenges)).total();
    // A robot that is nobody has nothing to show: the target was not to challenge it.
    assert_eq!((counts.completed, counts.refused), (0, 0), "{counts:#?}");
    assert_eq!(counts.errors.get(&ErrorKind::ErrorStatus).copied(), Some(counts.error_total()));
}

/// Requests without credentials.
fn silent(run: &Run) -> u64 {
    let said = |head: &str| head.contains("Proxy-Authorization: Basic dTpw\r\n");
    run.server.requests().iter().filter(|seen| !said(&seen.head)).count() as u64
}

#[test]
fn a_robot_that_breaks_off_reads_the_challenge_first() {
    let mut workload = simple();
    workload.robots[0].credentials.users = vec![UserRun::One { user: "u".into(), password: "p".into() }];
    workload.robots[0].abort_share = 1.0;
    // Most have had enough within the remark, were it the object. Neither can come at once: what has come in full is
    // not broken off.
    workload.contents[0].size_bytes = Distribution::Constant(LONG_BYTES as f64);
    let run = run(&workload, together(Manner::Challenges));
    let counts = run.total();
    check_sums(&counts);
    assert_eq!((counts.error_total(), counts.refused, silent(&run)), (0, 0, ROBOTS), "{counts:#?}");
    assert_eq!(counts.logged_in, ROBOTS);
    assert!(counts.broken_off > 0, "{counts:#?}");
}

#[test]
fn cookies_are_sent_back_by_those_who_keep_them() {
    let mut workload = simple();
    workload.schedule.phases[0].goal.transactions = Some(200);
    workload.servers[0].cookies = Some(CookieSetting {
        senders: 1.0,
        share: 0.5,
        count: Distribution::Constant(3.0),
        value_bytes: Distribution::Constant(20.0),
    });
    let both = origins::run(&workload);
    both.check();
    assert_eq!(both.robots.cookies_taken, both.origins.cookies_set);
    assert!(both.robots.cookies_sent > 150 && both.origins.cookies_set > 100, "{:#?}", both.robots);
    assert_eq!(both.robots.basic, both.robots.completed);
    workload.robots[0].cookies.share = 0.0;
    let both = origins::run(&workload);
    both.check();
    assert_eq!((both.robots.cookies_taken, both.robots.cookies_sent), (0, 0));
    workload.robots[0].cookies = CookieKeeping { share: 1.0, limit: Distribution::Constant(0.0) };
    assert_eq!(origins::run(&workload).robots.cookies_sent, 0);
}

#[test]
fn a_body_is_sent_when_no_word_comes_in_time() {
    let mut workload = uploading(1.0);
    workload.schedule.phases[0].goal.transactions = Some(8);
    let ran = run(&workload, together(Manner::Right));
    let counts = ran.total();
    check_sums(&counts);
    assert_eq!((counts.error_total(), counts.invited), (0, 0), "{counts:#?}");
    assert!(counts.impatient > 0);
    let posts = ran.server.requests().into_iter().filter(|seen| seen.body > 0).collect::<Vec<_>>();
    assert_eq!(counts.impatient, posts.len() as u64);
    assert!(posts.iter().all(|seen| seen.body == 100_000 && seen.head.contains("Expect: 100-continue\r\n")));
    workload.robots[0].http_versions = Weighted::one(HttpVersion::Http10);
    let old = run(&workload, together(Manner::Right));
    assert_eq!((old.total().impatient, old.total().error_total()), (0, 0), "HTTP/1.0 cannot ask");
}

#[test]
fn what_a_robot_has_in_its_own_cache_is_not_requested() {
    let mut workload = simple();
    workload.contents.push(content("image", 500.0));
    workload.contents[0].embedded =
        Some(Embedded { count: Distribution::Constant(3.0), contents: Weighted::one(1) });
    workload.robots[0].recurrence = 0.8;
    workload.schedule.phases[0].goal.transactions = Some(400);
    let due = |workload: &Workload| {
        let counts = run(workload, Options::default()).total();
        check_sums(&counts);
        assert_eq!(counts.error_total(), 0);
        (counts.due, counts.held)
    };
    let (due_all, held) = due(&workload);
    assert_eq!((due_all % 4, held), (0, 0), "each page brings three");
    workload.robots[0].private_cache = 1000;
    let (due_few, held) = due(&workload);
    assert!(held > 20 && (due_few + held) % 4 == 0, "{due_few} {held}");
}

#[test]
fn robots_that_come_and_go_start_anew_and_keep_no_connections() {
    let mut workload = protected(&[AuthScheme::Digest]);
    workload.robots[0].connection_use_limit = never();
    workload.robots[0].session = Some(Session {
        busy: Goal { transactions: Some(10), ..Goal::default() },
        idle_s: Distribution::Constant(0.3),
    });
    workload.schedule.phases[0].goal.transactions = Some(120);
    let both = origins::run(&workload);
    both.check();
    let (robots, origins) = (&both.robots, &both.origins);
    assert!(origins.challenges >= 2 * ROBOTS, "each session logs in: {origins:#?}");
    assert_eq!(robots.logged_in, origins.challenges);
    assert!(robots.connections_opened >= 2 * ROBOTS, "{robots:#?}");
}

#[test]
fn an_idle_connection_to_a_substitute_saves_a_new_one() {
    let mut workload = simple();
    workload.origins.push(Origin { authority: "other.test:80".into(), server: 0 });
    workload.robots[0].origins = Weighted::new([(0, 0.5), (1, 0.5)]);
    workload.robots[0].connection_use_limit = never();
    workload.servers[0].connection_use_limit = never();
    let each = origins::run(&workload);
    each.check();
    assert_eq!((each.robots.connections_opened, each.robots.substituted), (2 * ROBOTS, 0));
    workload.substitutes = vec![vec![0, 1]];
    workload.robots[0].substitution = 1.0;
    let one = origins::run(&workload);
    one.check();
    assert_eq!(one.robots.connections_opened, ROBOTS, "{:#?}", one.robots);
    assert!(one.robots.substituted > 5, "{:#?}", one.robots);
}
