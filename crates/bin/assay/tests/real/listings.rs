//! The published listings through real proxies, rehearsed: no content errors, and hit ratios as they must be.
//!
//! Varnish, nginx and Squid take the listings of the study; all six take WebAxe-1, a minute of which is tested by hand and
//! a quarter of one here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_measurement::error_kind::ErrorKind;
use assay_measurement::outcome::Outcome;
use serde_json::Value;
use strum::VariantArray;

use crate::helpers::has;
use crate::run_command::{Ran, at, run, workload};

/// Runs that go on at a time: most of a run is waiting.
const AT_ONCE: usize = 3;
/// How long each listing is rehearsed here; long enough for a plateau of some thousand requests.
const REHEARSAL: &str = "20s";
/// A proxy that lets one hit in a hundred wait for longer stood still: origins take a third of a second.
const PROMPT_MS: f64 = 100.0;

fn listing(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../workloads").join(name)
}

fn rehearse(name: &str, proxy: &str) -> Ran {
    let file = listing(name);
    run(&[file.to_str().expect("UTF-8"), "--proxy", proxy, "--rehearse", REHEARSAL, "--xact-log"])
}

/// Basic xacts of a phase from which on `points` are held as they are: chance is a fraction of them.
const PLENTY: f64 = 2000.0;
/// Fewer say too little about a hit ratio: a phase that sends this many is judged, on however busy a machine.
const ENOUGH: u64 = 500;

/// Checks one run; `points` is how far measured may lie from ideal, as a ratio, in phases of [`PLENTY`] basic xacts. Robots that
/// wait for each response send fewer on a busy machine: the allowance then grows as chance does, with the root of their number.
///
/// Where the run itself calls a phase disturbed, robots may have seen responses long after a proxy that joins no requests had
/// them; where a proxy stood still, it read requests long after they were sent. In both cases any object requested before may
/// have been a hit, which no machine changes. A proxy that has neither the old nor the new copy while it stores an object again
/// may miss it for as long as it does so.
fn is_right(ran: &Ran, proxy: &str, points: f64) {
    for kind in ErrorKind::VARIANTS.iter().filter(|kind| kind.is_wrong_content()) {
        assert_eq!(ran.errors(kind.name()), 0, "{proxy}: {kind}");
    }
    let mut judged = 0;
    for (index, phase) in ran.phases().iter().enumerate() {
        let basic = at(phase, "basic").as_u64().expect("each phase counts basic xacts");
        if basic <= ENOUGH {
            continue;
        }
        let points = points * (PLENTY / basic as f64).sqrt().max(1.0);
        let ideal = at(phase, "dhr.ideal").as_f64().expect("basic xacts were sent");
        let measured = at(phase, "dhr.measured").as_f64().expect("basic xacts came back");
        let stood_still = at(phase, "response_time_ms.hit.p99").as_f64().is_some_and(|ms| ms > PROMPT_MS);
        let most = if (phase["disturbed"] == true || stood_still) && !COLLAPSING.contains(&proxy) {
            let [documents, _] = requested_before(ran, Some(index));
            ideal.max(documents)
        } else {
            ideal
        };
        let least =
            ideal - if REPLACING.contains(&proxy) { missed_while_stored_again(ran, index) } else { 0.0 };
        assert!(
            (least - points..=most + points).contains(&measured),
            "{proxy}, {}: ideal {ideal:.4}, at least {least:.4}, at most {most:.4}, measured {measured:.4}, disturbed {}, times {}",
            phase["name"],
            phase["disturbed"],
            phase["response_time_ms"]
        );
        judged += 1;
    }
    assert!(judged > 0, "{proxy}: no phase had more than {ENOUGH} basic xacts");
}

/// What must be the same whatever the proxy.
fn offered(ran: &Ran) -> Vec<(Value, Value, Value)> {
    ran.phases()
        .iter()
        .map(|p| (p["name"].clone(), at(p, "dhr.offered").clone(), p["due_digest"].clone()))
        .collect()
}

fn through_all(name: &str) {
    let mut proxies = vec![("builtin", 0.01)];
    for (proxy, program, package, points) in [
        ("varnish", "varnishd", "varnish", 0.03),
        ("nginx", "nginx", "nginx-light", 0.03),
        // Squid sends requests that miss at the same time to the origin, all of them; ideal is a cache that
        // does not (proxies/squid.toml says why it is run so).
        ("squid", "squid", "squid", 0.05),
    ] {
        if has(program, package) {
            proxies.push((proxy, points));
        }
    }
    let runs = side_by_side(&proxies, |(proxy, points)| {
        let ran = rehearse(name, proxy);
        is_right(&ran, proxy, *points);
        ran
    });
    for (ran, (proxy, _)) in runs.iter().zip(&proxies) {
        assert_eq!(ran.json["stream_digest"], runs[0].json["stream_digest"], "{proxy}");
        assert_eq!(offered(ran), offered(&runs[0]), "{proxy}");
    }
}

/// A proxy, the program and the package that it is, and how far from ideal its hit ratio may lie. Ideal knows which of them
/// send all requests that miss at the same time to the origin; the rest is chance in a few thousand requests.
const SIX: [(&str, &str, &str, f64); 6] = [
    ("varnish", "varnishd", "varnish", 0.03),
    ("nginx", "nginx", "nginx-light", 0.04),
    ("squid", "squid", "squid", 0.04),
    ("trafficserver", "traffic_server", "trafficserver", 0.05),
    ("haproxy", "haproxy", "haproxy", 0.04),
    ("httpd", "apache2", "apache2", 0.04),
];

/// A quarter of a minute of WebAxe-1.
fn rehearse_webaxe(proxy: &str, flags: &[&str]) -> Ran {
    let load = ["webaxe-1", "--proxy", proxy, "--rehearse", "16s", "--no-report", "--xact-log"];
    let store = ["--memory", "64MB", "--disk", "256MB"];
    run(&[&load[..], &store, flags].concat())
}

/// A quarter of a minute of WebAxe-1; hits as the proxy counts them are hits as robots tell them.
fn webaxe_through(index: usize, mode: &str) {
    let (proxy, program, package, points) = SIX[index];
    if !has(program, package) {
        return;
    }
    let ran = rehearse_webaxe(proxy, &[mode]);
    assert_eq!(ran.errors_total(), 0, "{proxy} {mode}: {}", ran.json["total"]["errors"]);
    is_right(&ran, proxy, points);
    let number = |path: &str| ran.number(path).unwrap_or_else(|| panic!("{proxy}: no {path}"));
    let counted = number("counters.hits") + number("counters.collapsed");
    let told = number("total.outcomes.hit") + number("total.outcomes.collapsed");
    assert!((counted - told).abs() <= 0.02 * told + 20.0, "{proxy}: it counts {counted} hits, robots {told}");
}

#[test]
fn webaxe_runs_through_varnish() {
    webaxe_through(0, "--reverse");
}

#[test]
fn webaxe_runs_through_nginx() {
    webaxe_through(1, "--reverse");
}

#[test]
fn webaxe_runs_through_squid() {
    webaxe_through(2, "--reverse");
}

#[test]
fn webaxe_runs_through_traffic_server() {
    webaxe_through(3, "--reverse");
}

#[test]
fn webaxe_runs_through_haproxy() {
    webaxe_through(4, "--reverse");
}

#[test]
fn webaxe_runs_through_httpd() {
    webaxe_through(5, "--reverse");
}

/// The same over HTTP/2: nothing is lost when a connection is retired, and hits are hits.
fn over_http2_through(index: usize) {
    let (proxy, program, package, points) = SIX[index];
    if !has(program, package) {
        return;
    }
    let mut ran = rehearse_webaxe(proxy, &["--robot-http", "2"]);
    // Where others use the processors too, its threads queue to rename what they store (docs/reference/proxies.md), at worst until
    // after the end of the run: what is under way then has timed out.
    for _ in 0..3 {
        let errors = &ran.json["total"]["errors"];
        if proxy == "httpd" && errors["by_kind"]["timed_out"].as_u64() > Some(0) {
            eprintln!("once more, as httpd stood still: {errors}");
            ran = rehearse_webaxe(proxy, &["--robot-http", "2"]);
        }
    }
    assert_eq!(ran.errors_total(), 0, "{proxy}: {}", ran.json["total"]["errors"]);
    is_right(&ran, proxy, points);
    let number = |path: &str| ran.number(path).unwrap_or_else(|| panic!("{proxy}: no {path}"));
    // A request that a proxy did not act on takes another stream.
    let again = number("total.streams_opened") - number("total.requests");
    assert_eq!(again, number("total.retries"), "{proxy}");
}

#[test]
fn webaxe_runs_over_http_2_through_varnish() {
    over_http2_through(0);
}

#[test]
fn webaxe_runs_over_http_2_through_nginx() {
    over_http2_through(1);
}

#[test]
fn webaxe_runs_over_http_2_through_haproxy() {
    over_http2_through(4);
}

#[test]
fn webaxe_runs_over_http_2_through_httpd() {
    over_http2_through(5);
}

#[test]
fn the_image_listing_runs_through_every_proxy() {
    through_all("image.pg");
}

#[test]
fn the_mixed_listing_runs_through_every_proxy() {
    through_all("mixed.pg");
}

/// Those that declare that requests join a fetch that is under way. For them ideal follows from the order of requests alone.
const COLLAPSING: [&str; 3] = ["builtin", "varnish", "trafficserver"];
/// How much more than it may be measured is: requests of one microsecond may go either way.
const CHANCE: f64 = 0.01;

/// The most that can be a hit: plain GETs for what is cachable and was requested before, by requests and by bytes; counted from
/// the log of every xact. Where requests do not join a fetch, how much of it is ideal is a matter of who saw a response when: robots
/// see it after the proxy. Of one phase where it is given, else of the whole run.
fn requested_before(ran: &Ran, phase: Option<usize>) -> [f64; 2] {
    let mut rows = ran.xacts();
    rows.sort_by_key(|row| row.sent_us);
    let (mut first, mut all, mut before) = (HashMap::new(), [0, 0], [0, 0]);
    for row in rows.iter().filter(|row| row.sent_us.is_some()) {
        let first = *first.entry(row.object).or_insert(row.sent_us);
        let is_meant = phase.is_none_or(|phase| usize::from(row.phase) == phase);
        if !is_meant || row.outcome.is_none() || row.method != "GET" || row.request_type != "basic" {
            continue;
        }
        let is_before = row.cachable && first < row.sent_us;
        for (place, value) in [1, row.body_bytes].into_iter().enumerate() {
            all[place] += value;
            before[place] += if is_before { value } else { 0 };
        }
    }
    [0, 1].map(|place| before[place] as f64 / (all[place] as f64).max(1.0))
}

/// Those of which a store of an object that they have, because several requests missed it at once, takes it away until it is over
/// (`proxies/httpd.toml`). On a machine that runs nothing else that is a few milliseconds.
const REPLACING: [&str; 1] = ["httpd"];

/// The share of a phase's basic xacts that missed what had arrived before they were sent, while another miss of the same object was
/// under way.
fn missed_while_stored_again(ran: &Ran, phase: usize) -> f64 {
    let rows = ran.xacts();
    let mut misses: HashMap<u64, Vec<(i64, i64)>> = HashMap::new();
    let mut arrived: HashMap<u64, i64> = HashMap::new();
    for row in &rows {
        let Some((sent_us, last_us)) = row.sent_us.zip(row.last_byte_us) else { continue };
        let first_us = arrived.entry(row.object).or_insert(last_us);
        *first_us = last_us.min(*first_us);
        if row.outcome == Some(Outcome::Miss) {
            misses.entry(row.object).or_default().push((sent_us, last_us));
        }
    }
    let (mut basic, mut missed) = (0, 0);
    for row in rows.iter().filter(|row| usize::from(row.phase) == phase && row.request_type == "basic") {
        let (Some(outcome), Some((sent_us, last_us))) = (row.outcome, row.sent_us.zip(row.last_byte_us))
        else {
            continue;
        };
        basic += 1;
        if outcome != Outcome::Miss || !row.cachable || arrived[&row.object] >= sent_us {
            continue;
        }
        // The xact itself is one of them.
        let at_once =
            misses[&row.object].iter().filter(|(sent, last)| *sent < last_us && *last > sent_us).count();
        missed += u32::from(at_once > 1);
    }
    f64::from(missed) / f64::from(basic).max(1.0)
}

/// Documents and bytes of a run: measured is not above ideal, as far as the proxy's declared behaviour decides about it.
fn does_not_beat_ideal(workload: &str, proxy: &str) {
    let file = listing(workload);
    let file = file.to_str().expect("UTF-8");
    let room = ["--memory", "64MB", "--disk", "256MB", "--no-report", "--xact-log"];
    let ran = run(&[&[file, "--proxy", proxy, "--rehearse", "3s"][..], &room].concat());
    let collapses = COLLAPSING.contains(&proxy);
    for (kind, most) in ["dhr", "bhr"].into_iter().zip(requested_before(&ran, None)) {
        let [offered, ideal, measured] = ["offered", "ideal", "measured"]
            .map(|which| ran.number(&format!("total.{kind}.{which}")).unwrap_or_default());
        let allowed = if collapses { ideal } else { ideal.max(most) };
        assert!(
            measured <= allowed + CHANCE,
            "{workload}, {proxy}, {kind}: offered {offered}, ideal {ideal}, at most {allowed}, measured {measured}"
        );
    }
}

/// The proxies that are here, the built-in one among them.
fn here() -> Vec<&'static str> {
    let real = SIX.iter().filter(|(_, program, package, _)| has(program, package)).map(|(proxy, ..)| *proxy);
    std::iter::once("builtin").chain(real).collect()
}

#[test]
fn no_proxy_beats_ideal_in_any_bundled_workload() {
    let proxies = here();
    let files = std::fs::read_dir(listing("")).expect("the bundled workloads").flatten();
    let mut names: Vec<String> = files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".pg"))
        .collect();
    names.sort_unstable();
    assert!(names.len() > 20, "{names:?}");
    // Each through one of them, in turn: it is the workloads that differ.
    let pairs: Vec<_> = names.iter().zip(proxies.iter().cycle()).collect();
    side_by_side(&pairs, |(name, proxy)| does_not_beat_ideal(name, proxy));
}

#[test]
fn no_proxy_beats_ideal_where_bodies_are_coded() {
    let both = |proxy| ["site.pg", "api.pg"].map(|name| (name, proxy));
    let pairs: Vec<_> = here().into_iter().flat_map(both).collect();
    side_by_side(&pairs, |(name, proxy)| does_not_beat_ideal(name, proxy));
}

/// Those that keep one variant of a URL at a time, or none where `Vary` is there.
const WITHOUT_VARIANTS: [&str; 1] = ["haproxy"];

#[test]
fn no_proxy_is_accused_of_what_it_may_do_with_variants_and_parts_of_coded_bodies() {
    let both = |proxy| ["variants.pg", "coded-parts.pg"].map(|name| (name, proxy));
    let pairs: Vec<_> = here().into_iter().flat_map(both).collect();
    side_by_side(&pairs, |(name, proxy)| {
        let file = workload(name);
        let room = ["--memory", "64MB", "--disk", "256MB", "--no-report"];
        let ran = run(&[&[file.to_str().expect("UTF-8"), "--proxy", proxy][..], &room].concat());
        assert_eq!(ran.errors_total(), 0, "{name}, {proxy}: {}", ran.json["total"]["errors"]);
        assert!(matches!(ran.code, 0 | 96), "{name}, {proxy}: {} {:#}", ran.code, ran.json["verdict"]);
        if *name == "variants.pg" && !WITHOUT_VARIANTS.contains(proxy) {
            let [ideal, measured] = ["ideal", "measured"]
                .map(|which| ran.number(&format!("total.dhr.{which}")).unwrap_or_default());
            assert!((ideal - measured).abs() <= 3.0 * CHANCE, "{proxy}: {measured} of {ideal}");
        }
    });
}

/// Does something with each of `all`, some at a time; the results in their order.
fn side_by_side<T: Sync, R: Send>(all: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (each, next) = (&each, &AtomicUsize::new(0));
    let work = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        numbers.map_while(|number| Some((number, each(all.get(number)?)))).collect::<Vec<_>>()
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.flat_map(|results| results.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
