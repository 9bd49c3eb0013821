//! The built-in proxy is the reference: it meets everything that binds.

use std::collections::BTreeSet;
use std::rc::Rc;

use assay_conform::origin::Origin;
use assay_conform::run::{Http2, Target, run};
use assay_conform::suite::Suite;
use assay_conform::verdict::Verdict;

use crate::relay::built_in;
use crate::targets::{cache_at, on_one_thread};

#[test]
fn the_built_in_proxy_fails_no_must_and_no_should() {
    let failed = on_one_thread(async {
        let suite = Suite::bundled().unwrap();
        let binding = suite.cases.iter().filter(|case| case.level.binds()).map(|case| case.name.clone());
        let cases = suite.chosen(&binding.collect::<Vec<_>>()).unwrap();
        assert!(cases.len() > 400, "{} cases", cases.len());
        let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
        let target = Target { http2: Http2::Beside, ..cache_at(built_in(origin.address)) };
        let outcomes = run(&cases, &target, &origin, |_, _| ()).await;
        let is_wrong = |verdict| matches!(verdict, Verdict::Fail | Verdict::Inconclusive);
        let wrong = outcomes.iter().filter(|outcome| is_wrong(outcome.judgement.verdict));
        wrong
            .map(|outcome| format!("{}: {}", outcome.case.name, outcome.judgement.reason))
            .collect::<BTreeSet<_>>()
    });
    assert!(failed.is_empty(), "{failed:#?}");
}

/// What HTTP leaves open, and the page on conformance says of the built-in proxy that it does it.
const PROMISED: [&str; 18] = [
    "stores",
    "collapses",
    "range-fills",
    "range-from-store",
    "206-parts-combined",
    "vary-several-variants",
    "freshened",
    "head-updates",
    "stale-while-revalidate",
    "stale-while-revalidate-in-background",
    "stale-if-error",
    "stale-if-error-broken",
    "stale-if-error-of-client",
    "cdn-cache-control",
    "cache-status-fwd",
    "proxy-status-on-error",
    "proxy-status-error-type",
    "only-if-cached-stored",
];

#[test]
fn the_built_in_proxy_does_what_its_page_says_of_it() {
    let others = on_one_thread(async {
        let chosen = Suite::bundled().unwrap().chosen(&PROMISED.map(str::to_owned)).unwrap();
        let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
        let address = built_in(origin.address);
        let target = cache_at(address);
        let outcomes = run(&chosen, &target, &origin, |_, _| ()).await;
        let others = outcomes.iter().filter(|outcome| !outcome.judgement.verdict.holds());
        others.map(|outcome| format!("{}: {:?}", outcome.case.name, outcome.judgement)).collect::<Vec<_>>()
    });
    assert!(others.is_empty(), "{others:#?}");
}
