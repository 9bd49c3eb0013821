//! Caches that work together: what one has is found by the other, whoever they are, and counted where it was.

use serde_json::Value;

use crate::alone::links::{FINE_OR_UNDECIDED, may_have_namespaces};
use crate::helpers::has;
use crate::run_command::{Ran, at, run, workload};

fn through(topology: &str) -> Ran {
    through_by(run, topology)
}

fn through_by(run: impl Fn(&[&str]) -> Ran, topology: &str) -> Ran {
    let directory = tempfile::tempdir().expect("the temp directory is writable");
    let file = directory.path().join("caches.toml");
    std::fs::write(&file, topology).expect("the file can be written");
    let workload = workload("shared.pg");
    let ran = run(&[workload.to_str().expect("UTF-8"), "--topology", file.to_str().expect("UTF-8")]);
    assert!(FINE_OR_UNDECIDED.contains(&ran.code), "{}", ran.json["doubts"]);
    assert_eq!(ran.errors_total(), 0, "{}", ran.json["total"]["errors"]);
    ran
}

fn cache<'a>(ran: &'a Ran, name: &str) -> &'a Value {
    let caches = ran.json["hierarchy"]["caches"].as_array().expect("a topology has caches");
    caches.iter().find(|cache| cache["name"] == name).expect("it is called so")
}

fn count(of: &Value, path: &str) -> u64 {
    at(of, path).as_u64().expect("it is a count")
}

/// What robots and logs counted of the whole run, for all caches together.
fn agreement(ran: &Ran, what: &str) -> (u64, u64, String) {
    let rows = ran.json["cache_logs"]["agreement"].as_array().expect("the logs were read");
    let row = rows.iter().find(|row| row["cache"] == "all" && row["what"] == what).expect("it is counted");
    (count(row, "robots"), count(row, "logs"), row["why"].as_str().unwrap_or_default().to_owned())
}

/// Plain GETs whose response came from there, for all caches together.
fn from(ran: &Ran, source: &str) -> u64 {
    let caches = ran.json["cache_logs"]["caches"].as_array().expect("the logs were read");
    let all = caches.iter().find(|cache| cache["cache"] == "all").expect("all are added up");
    let sources = all["sources"].as_array().expect("they came from somewhere");
    sources.iter().find(|found| found["source"] == source).map_or(0, |found| count(found, "requests"))
}

fn between_caches(ran: &Ran, counter: &str) -> u64 {
    let rows = ran.json["cache_logs"]["traffic"].as_array().expect("the logs were read");
    rows.iter().map(|row| count(row, counter)).sum()
}

const PAIR: &str = r#"
mode = "forward"
memory = "32MB"
disk = "32MB"
[[cache]]
name = "left"
robots = ["Left"]
siblings = ["right"]
[[cache]]
name = "right"
robots = ["Right"]
siblings = ["left"]
"#;

#[test]
fn siblings_hit_more_than_separate_caches_with_the_same_requests() {
    let pair = format!("proxy = \"builtin\"{PAIR}");
    let siblings = through(&pair);
    let separate = through(&pair.replace("siblings", "# siblings"));
    assert_eq!(siblings.json["stream_digest"], separate.json["stream_digest"]);
    let dhr = |ran: &Ran| ran.number("total.dhr.measured").expect("there are basic xacts");
    assert!(dhr(&siblings) > dhr(&separate) + 0.05, "{} and {}", dhr(&siblings), dhr(&separate));
    for name in ["left", "right"] {
        let cache = cache(&siblings, name);
        assert_eq!(count(cache, "robots"), 20);
        assert!(count(cache, "sibling_hits") > 20 && count(cache, "icp.hits_sent") > 20, "{cache}");
        assert_eq!(count(self::cache(&separate, name), "icp.sent"), 0);
    }
    // What robots saw and what the caches wrote down is the same, request by request.
    assert_eq!(siblings.json["cache_logs"]["joined"], true);
    for what in
        ["requests answered", "plain GETs: hits", "responses of the same status", "bytes of responses"]
    {
        let (robots, logs, why) = agreement(&siblings, what);
        assert!(robots > 100 && robots == logs && why.is_empty(), "{what}: {robots}, {logs}: {why}");
    }
    let sibling_hits = from(&siblings, "sibling");
    assert!(sibling_hits > 40 && from(&siblings, "local") > 40, "{}", siblings.json["cache_logs"]);
    assert_eq!(between_caches(&siblings, "hits"), sibling_hits);
    assert_eq!(from(&separate, "sibling") + between_caches(&separate, "requests"), 0);
    // Each log can be looked at by itself; together they are no one log.
    assert_eq!(siblings.logs(&[]).0, 2);
    let each = ["left", "right"].map(|name| {
        let (code, said) = siblings.logs(&["--of", name]);
        assert_eq!(code, 0, "{said}");
        count(&said, "all.requests")
    });
    let (_, logged, _) = agreement(&siblings, "requests answered");
    assert_eq!(each.iter().sum::<u64>(), logged + between_caches(&siblings, "requests"));
    // One's hits from its sibling are the other's hits for its sibling.
    let (left, right) = (cache(&siblings, "left"), cache(&siblings, "right"));
    assert_eq!(count(left, "sibling_hits"), count(right, "hits_for_caches"));
    assert_eq!(count(right, "sibling_hits"), count(left, "hits_for_caches"));
}

#[test]
fn what_a_parent_has_fetched_for_one_child_it_has_for_the_other() {
    let tree = "proxy = \"builtin\"\nmemory = \"32MB\"\n[[cache]]\nname = \"child\"\ncount = 2\nparents = [\"top\"]\n\
                never-direct = true\n[[cache]]\nname = \"top\"\n";
    let ran = through(tree);
    let (top, all) = (cache(&ran, "top"), &ran.json["hierarchy"]["all"]);
    assert_eq!((count(top, "robots"), count(top, "requests")), (0, count(cache(&ran, "top"), "requests")));
    assert!(
        count(all, "parent_hits") > 20 && count(top, "hits_for_caches") >= count(all, "parent_hits"),
        "{all}"
    );
    // The parent's own log tells which of its responses it had, and which it fetched.
    assert!(from(&ran, "parent") > 20 && from(&ran, "through_parent") > 20, "{}", ran.json["cache_logs"]);
    assert!(from(&ran, "origin") == 0 && between_caches(&ran, "hits") >= from(&ran, "parent"));
}

#[test]
fn the_builtin_proxy_and_a_real_squid_give_each_other_what_they_have() {
    if !has("squid", "squid") {
        return;
    }
    for mode in ["forward", "reverse"] {
        let pair = format!("proxy = \"squid\"{PAIR}")
            .replace("name = \"left\"", "name = \"left\"\nproxy = \"builtin\"")
            .replace("forward", mode);
        let ran = through(&pair);
        let (robots, logs, why) = agreement(&ran, "requests answered");
        assert!(robots > 100 && robots.abs_diff(logs) <= robots / 50, "{mode}: {robots}, {logs}: {why}");
        assert!(from(&ran, "sibling") > 40, "{mode}: {}", ran.json["cache_logs"]);
        for name in ["left", "right"] {
            let cache = cache(&ran, name);
            assert!(count(cache, "sibling_hits") > 20, "{mode}: {cache}");
            assert!(count(cache, "icp.sent") > 20 && count(cache, "icp.hits_sent") > 20, "{mode}: {cache}");
        }
    }
}

/// The median time of a response that came from there, and how many came, for all caches together.
fn median_ms(ran: &Ran, source: &str) -> (f64, u64) {
    let caches = ran.json["cache_logs"]["caches"].as_array().expect("the logs were read");
    let all = caches.iter().find(|cache| cache["cache"] == "all").expect("all are added up");
    let sources = all["sources"].as_array().expect("they came from somewhere");
    let found = sources.iter().find(|found| found["source"] == source).expect("something came from there");
    (found["response_ms"]["p50"].as_f64().expect("it took some time"), count(found, "requests"))
}

#[test]
fn a_link_between_caches_delays_requests_between_them_and_nothing_else() {
    if !may_have_namespaces() {
        return;
    }
    let squid = has("squid", "squid").then_some("squid");
    for proxy in ["builtin"].into_iter().chain(squid) {
        let pair = format!("proxy = \"{proxy}\"{PAIR}");
        let ran = through_by(run, &pair.replace("siblings", "peer-link = \"delay=40ms\"\nsiblings"));
        let bed = ran.info().bed.expect("there is a link");
        let names: Vec<&str> = bed.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["left-right"]);
        assert!(bed.links[0].directions.iter().all(|way| way.packets > 200), "{:?}", bed.links[0]);
        // A query and a request go there and back: two round trips of 80 ms.
        let ((near_ms, _), (far_ms, far)) = (median_ms(&ran, "local"), median_ms(&ran, "sibling"));
        assert!(
            far > 40 && far_ms > 155.0 && near_ms < far_ms - 100.0,
            "{proxy}: {near_ms}, {far_ms}, {far}"
        );
        let (robots, logs, why) = agreement(&ran, "requests answered");
        assert!(robots > 100 && robots.abs_diff(logs) <= robots / 50, "{proxy}: {robots}, {logs}: {why}");
    }
}
