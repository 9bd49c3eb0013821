//! TLS through real proxies: on each leg that a proxy can speak it on, nothing is wrong, and sessions are counted on both sides.

use serde_json::Value;

use crate::helpers::has;
use crate::run_command::{Ran, run, workload};

/// A run of two seconds through a proxy.
fn through(proxy: &str, flags: &[&str]) -> Ran {
    let file = workload("plain.pg");
    let file = file.to_str().expect("UTF-8");
    run(&[
        &[file, "--proxy", proxy, "--duration", "2s", "--rate", "60", "--memory", "64MB", "--disk", "64MB"],
        flags,
    ]
    .concat())
}

fn number(ran: &Ran, path: &str) -> u64 {
    ran.number(path).unwrap_or_default() as u64
}

/// Handshakes of robots, and of origins.
fn handshakes(ran: &Ran) -> (u64, u64) {
    let sum = |full, resumed| number(ran, full) + number(ran, resumed);
    (sum("total.tls_full", "total.tls_resumed"), sum("total.origins.tls_full", "total.origins.tls_resumed"))
}

fn is_right(proxy: &str, legs: &[&str]) {
    let clear = through(proxy, &[]);
    for flags in [&["--robot-tls"][..], &["--origin-tls"], &["--robot-tls", "--origin-tls"]] {
        if !flags.iter().all(|flag| legs.contains(flag)) {
            continue;
        }
        let ran = through(proxy, flags);
        assert_eq!(ran.errors_total(), 0, "{proxy} {flags:?}: {}", ran.json["total"]["errors"]);
        assert!(number(&ran, "total.completed") > 0, "{proxy} {flags:?}");
        let digest = |ran: &Ran| -> Value { ran.json["total"]["due_digest"].clone() };
        assert_eq!(digest(&ran), digest(&clear), "{proxy} {flags:?}: the stream is the same");
        let (robots, origins) = handshakes(&ran);
        assert_eq!(robots > 0, flags.contains(&"--robot-tls"), "{proxy} {flags:?}");
        assert_eq!(origins > 0, flags.contains(&"--origin-tls"), "{proxy} {flags:?}");
        assert_eq!(ran.number("total.origins.tls_failed"), Some(0.0), "{proxy} {flags:?}");
    }
}

#[test]
fn the_built_in_proxy_speaks_tls_on_both_legs() {
    is_right("builtin", &["--robot-tls", "--origin-tls"]);
}

#[test]
fn nginx_speaks_tls_on_both_legs() {
    if has("nginx", "nginx") {
        is_right("nginx", &["--robot-tls", "--origin-tls"]);
    }
}

#[test]
fn haproxy_speaks_tls_on_both_legs() {
    if has("haproxy", "haproxy") {
        is_right("haproxy", &["--robot-tls", "--origin-tls"]);
    }
}

#[test]
fn httpd_speaks_tls_on_both_legs() {
    if has("apache2", "apache2") {
        is_right("httpd", &["--robot-tls", "--origin-tls"]);
    }
}

#[test]
fn traffic_server_speaks_tls_on_both_legs() {
    if has("traffic_server", "trafficserver") {
        is_right("trafficserver", &["--robot-tls", "--origin-tls"]);
    }
}

#[test]
fn squid_speaks_tls_to_robots() {
    if has("squid", "squid") {
        is_right("squid", &["--robot-tls"]);
    }
}

#[test]
fn varnish_speaks_tls_to_robots_through_hitch_which_counts_as_part_of_it() {
    if has("varnishd", "varnish") && has("hitch", "hitch") {
        is_right("varnish", &["--robot-tls"]);
        let ran = through("varnish", &["--robot-tls"]);
        let notes = ran.json["target"]["notes"].to_string();
        assert!(notes.contains("through hitch 1."), "{notes}");
    }
}

/// HTTP/2 over TLS: both sides agree on it, and requests are streams.
fn speaks_http2(proxy: &str) {
    let ran = through(proxy, &["--robot-tls", "--robot-http", "2"]);
    assert_eq!(ran.errors_total(), 0, "{proxy}: {}", ran.json["total"]["errors"]);
    assert!(handshakes(&ran).0 > 0, "{proxy}");
    // 120 are due; on a busy machine not all of them leave within their two seconds.
    assert!(
        number(&ran, "total.due") > 100 && number(&ran, "total.requests") > 20,
        "{proxy}: {}",
        ran.json["total"]["due"]
    );
    assert_eq!(number(&ran, "total.streams_opened"), number(&ran, "total.requests"), "{proxy}");
}

#[test]
fn five_proxies_speak_http_2_over_tls() {
    for (proxy, program, package) in [
        ("nginx", "nginx", "nginx"),
        ("haproxy", "haproxy", "haproxy"),
        ("httpd", "apache2", "apache2"),
        ("trafficserver", "traffic_server", "trafficserver"),
        ("varnish", "hitch", "hitch"),
    ] {
        if has(program, package) {
            speaks_http2(proxy);
        }
    }
}

/// HTTP/2 between the proxy and origins, in clear and over TLS, whatever robots speak: requests to origins are streams.
fn speaks_http2_to_origins(proxy: &str) {
    let clear = through(proxy, &[]);
    for flags in [&["--origin-tls"][..], &[], &["--robot-http", "2", "--robot-tls", "--origin-tls"]] {
        let ran = through(proxy, &[&["--origin-http", "2"][..], flags].concat());
        assert_eq!(ran.errors_total(), 0, "{proxy} {flags:?}: {}", ran.json["total"]["errors"]);
        assert_eq!(ran.json["total"]["due_digest"], clear.json["total"]["due_digest"], "{proxy} {flags:?}");
        let (streams, requests) =
            (number(&ran, "total.origins.streams_opened"), number(&ran, "total.origins.requests"));
        assert!(
            streams > 0 && streams >= requests,
            "{proxy} {flags:?}: {streams} streams, {requests} requests"
        );
    }
}

#[test]
fn haproxy_and_httpd_speak_http_2_to_origins() {
    for (proxy, program, package) in [("haproxy", "haproxy", "haproxy"), ("httpd", "apache2", "apache2")] {
        if has(program, package) {
            speaks_http2_to_origins(proxy);
        }
    }
}
