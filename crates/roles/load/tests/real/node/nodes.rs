//! What nodes respond while they are busy, fail, or are measured.

use std::time::{Duration, Instant};

use assay_load::node::ModelClock;
use assay_load::node::calibrate::{CalibrationSpec, calibrate};
use assay_load::node::nodes::NodeKind;
use assay_record::cluster::NodeState;

use crate::node::support::{SMALL, body_of, cluster, get, start};

#[test]
fn a_node_says_how_it_is_and_a_full_one_takes_no_more() {
    let text =
        SMALL.replace("nodes = 2\n", "nodes = 1\nworkers = 1\nqueue = 0\n").replace("\"20ms\"", "\"2s\"");
    let nodes = start(&cluster(&text), NodeKind::Virtual, ModelClock::now_at(1.0));
    let address = nodes.addresses()[0];
    let state = || -> NodeState {
        let response = get(address, "/assay/state");
        serde_json::from_str(body_of(&response)).unwrap_or_else(|error| panic!("{error}: {response}"))
    };
    assert_eq!((state().in_flight, state().latency_us), (0, None));
    assert!(get(address, "/assay/health").ends_with("ok"));
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| get(address, "/cgi-bin/cpu_light.cgi"));
        while state().in_flight == 0 {}
        assert!(get(address, "/file5k.html").starts_with("HTTP/1.1 503 "), "its only worker is busy");
        assert!(busy.join().expect("a response").starts_with("HTTP/1.1 200 "));
    });
    let after = state();
    assert!(after.latency_us.is_some_and(|us| us >= 2_000_000), "{after:?}");
    assert_eq!(after.in_flight, 0);
    let response = get(address, "/assay/state");
    let field = "endpoint-load-metrics: TEXT cpu_utilization=";
    assert!(
        response.contains(field) && response.contains("named_metrics.in_flight=0, named_metrics.latency_ns="),
        "{response}"
    );
}

#[test]
fn a_node_that_fails_drops_what_it_has_and_comes_back() {
    let failure = "[[failure]]\nnode = 0\nat = \"300ms\"\nlasts = \"500ms\"\n";
    let text = SMALL.replace("\"20ms\"", "\"60s\"") + failure;
    let nodes = start(&cluster(&text), NodeKind::Virtual, ModelClock::now_at(1.0));
    assert_eq!(get(nodes.addresses()[0], "/cgi-bin/cpu_light.cgi"), "", "lost");
    let timeout = Instant::now() + Duration::from_secs(30);
    let is_back = || get(nodes.addresses()[0], "/file5k.html").starts_with("HTTP/1.1 200 ");
    while !is_back() {
        assert!(Instant::now() < timeout, "it does not come back");
    }
    assert!(
        get(nodes.addresses()[1], "/file5k.html").starts_with("HTTP/1.1 200 "),
        "the other never was away"
    );
}

#[test]
fn calibration_finds_what_a_node_needs_and_never_less() {
    let text = SMALL.replace("nodes = 2\n", "nodes = 1\nprocessors = 2\n");
    let experiment = cluster(&text);
    let nodes = start(&experiment, NodeKind::Virtual, ModelClock::now_at(1.0));
    let spec = CalibrationSpec {
        address: nodes.addresses()[0],
        warm_up_s: 0.0,
        measure_s: 0.3,
        seed: 1,
        scale: 1.0,
    };
    let needs = calibrate(&spec, &experiment.services[2]).expect("clients");
    assert!(needs.alone_us() >= 20_000.0, "{needs:?}");
    // Two processors serve 100 a second at most; what was under way at the beginning and the end is one each.
    assert!(needs.most_per_s() <= 100.0 + 2.0 * 64.0 / 0.3 && needs.steps.len() >= 2, "{needs:?}");
    assert!(needs.steps.iter().all(|step| step.failed == 0), "{needs:?}");
}
