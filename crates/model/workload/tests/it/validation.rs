//! Workloads that cannot be run say what is wrong with them, and what to do.

use std::sync::Arc;
use std::time::Duration;

use assay_workload::model::{
    AuthDemand, Bin, BodySource, CookieSetting, Distribution, Embedded, Expectation, FileEntry, FileSet,
    Goal, HeaderRule, Injection, Origin, Pace, Popularity, PopularityLaw, RequestType, Session, Thermostat,
    Weighted, Workload,
};
use assay_workload::{Timeline, Universe, UniverseOptions};

use crate::fixtures;

/// What is said of the small workload after a change.
fn said(change: impl FnOnce(&mut Workload)) -> String {
    let mut workload = fixtures::small();
    change(&mut workload);
    let timeline = Timeline::new(&workload).map(|_| ());
    let universe = Universe::new(Arc::new(workload), 1, 1, UniverseOptions::default()).map(|_| ());
    match (timeline, universe) {
        (Err(timeline), Err(universe)) => {
            assert_eq!(timeline.to_string(), universe.to_string(), "both refuse it for the same reason");
            universe.to_string()
        }
        (Err(timeline), Ok(())) => timeline.to_string(),
        (Ok(()), _) => "nothing".into(),
    }
}

fn popularity(law: PopularityLaw) -> Option<Popularity> {
    Some(Popularity { law, ..Popularity::default() })
}

#[test]
fn numbers_must_make_sense() {
    let share = "must be between 0 and 1";
    let cases: [(String, &str, &str); 14] = [
        (said(|w| w.contents[0].body.unique = Some(1.5)), "`unique` of content \"plain\" is 1.5", share),
        (
            said(|w| {
                let gap_bytes = Distribution::Constant(1.0);
                w.contents[0].body.injection = Some(Injection { lines: None, gap_bytes, share: -0.1 });
            }),
            "infect_prob",
            share,
        ),
        (
            said(|w| w.robots[0].headers = vec![HeaderRule { fields: vec![], probability: 2.0 }]),
            "`http_headers` of robot",
            share,
        ),
        (said(|w| w.servers[0].redirect_share = 3.0), "`rep_types` of server", share),
        (
            said(|w| {
                let law = Distribution::Constant(1.0);
                w.servers[0].cookies =
                    Some(CookieSetting { senders: 1.0, share: 9.0, count: law.clone(), value_bytes: law });
            }),
            "cookie_set_prob",
            share,
        ),
        (
            said(|w| {
                w.servers[0].faults.error_share = 0.7;
                w.servers[0].faults.reset_share = 0.7;
            }),
            "the sum of all fault shares",
            share,
        ),
        (
            said(|w| w.servers[0].faults.statuses = Weighted::one(200)),
            "error_statuses` of server \"WebAxe-1-srv\" is 200",
            "400 to 599",
        ),
        (said(|w| w.servers[0].faults.slow_body_share = 0.1), "slow_body_bw", "must be positive"),
        (
            said(|w| {
                w.robots[0].private_share = 0.6;
                w.robots[0].foreign_share = 0.6;
            }),
            "interests",
            share,
        ),
        (said(|w| w.robots[0].expectation = Expectation::Sometimes(7.0)), "req_body_pause_prob", share),
        (
            said(|w| w.robots[0].pace = Pace::Renewal(Distribution::Constant(0.0))),
            "req_inter_arrival",
            "must be positive",
        ),
        (
            said(|w| w.robots[0].popularity = popularity(PopularityLaw::Zipf { skew: -1.0 })),
            "pop_distr",
            "a skew of 0 or more",
        ),
        (
            said(|w| {
                let bin = Bin { low: 0.0, high: 7.0, weight: 1.0 };
                w.contents[0].behaviour.popularity = popularity(PopularityLaw::Table(vec![bin]));
            }),
            "is 7",
            "a table of ages between 0 (the newest) and 1",
        ),
        (
            said(|w| {
                w.robots[0].popularity = popularity(PopularityLaw::Uniform);
                w.robots[0].popularity.as_mut().unwrap().size_preference = 1.1;
            }),
            "bhr_discrimination",
            share,
        ),
    ];
    for (message, what, wanted) in cases {
        assert!(message.contains(what) && message.contains(wanted), "{message}");
    }
}

#[test]
fn what_is_requested_must_be_there() {
    let empty = FileSet { root: "/x".into(), files: vec![FileEntry::default()] };
    let cases: [(String, &str); 9] = [
        (
            said(|w| w.contents[0].body.source = BodySource::Files(3)),
            "set of files number 3 is named, but there are 0",
        ),
        (
            said(|w| {
                w.files = vec![empty];
                w.contents[0].body.source = BodySource::Database(0);
            }),
            "there are no files, or empty ones",
        ),
        (
            said(|w| {
                let file = FileEntry { bytes: 1, ..FileEntry::default() };
                w.files = vec![FileSet { root: "/x".into(), files: vec![file] }];
                w.contents[0].body.source = BodySource::Files(0);
                w.contents[0].embedded =
                    Some(Embedded { count: Distribution::Constant(1.0), contents: Weighted::one(0) });
            }),
            "a page of whole files, but there is no place for links in them",
        ),
        (
            said(|w| {
                let realm = String::new();
                w.servers[0].authentication = Some(AuthDemand { schemes: vec![], realm, share: 1.0 });
            }),
            "it offers no scheme",
        ),
        (
            said(|w| w.robots[0].request_types = Weighted::one(RequestType::Range)),
            "may request parts of content \"plain\", but it does not say which; give it `ranges`",
        ),
        (said(|w| w.robots[0].foreign_share = 0.1), "there is no trace"),
        (
            said(|w| {
                w.robots[0].session =
                    Some(Session { busy: Goal::default(), idle_s: Distribution::Constant(1.0) });
            }),
            "`session` of robot \"WebAxe-1-rbt\", but it never ends",
        ),
        (said(|w| w.substitutes = vec![vec![0, 5]]), "origin number 5 is named, but there are 1"),
        (
            said(|w| w.origins.push(Origin { authority: "x:1".into(), server: 9 })),
            "server number 9 is named, but there are 1",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message}, not {expected}");
    }
}

#[test]
fn a_thermostat_must_be_able_to_work() {
    let ms = Duration::from_millis;
    let good = Thermostat { sample: ms(1000), step: 0.1, low: Some(ms(1)), high: Some(ms(2)) };
    let cases = [
        (good, "nothing"),
        (Thermostat { sample: Duration::ZERO, ..good }, "set sample_dur"),
        (Thermostat { step: 0.0, ..good }, "load_delta must be more than 0"),
        (Thermostat { low: None, high: None, ..good }, "set rptm_min or rptm_max"),
        (Thermostat { low: Some(ms(3)), ..good }, "rptm_min is above rptm_max"),
    ];
    for (thermostat, expected) in cases {
        let message = said(|w| w.schedule.phases[0].thermostat = Some(thermostat));
        assert!(message.contains(expected), "{message}, not {expected}");
    }
}
