//! In front of an origin no request goes anywhere else, whatever it says; and recordings of two hosts stay apart.

use assay_spe::spec::CollectorSpec;
use assay_testbed::{elsewhere, response_to};

use crate::collector_harness::{Bed, Origin, UNCACHEABLE, ok, run, spec};
use crate::multiplier_bed;

/// An origin that stands behind what is tested, and one that must not get any request.
async fn origins() -> (Origin, Origin) {
    (Origin::of(ok(UNCACHEABLE, "named")).await, Origin::of(ok(UNCACHEABLE, "other")).await)
}

/// Of these responses, those that are the origin's.
fn served(requests: &[String], responses: &[(u16, String)]) -> usize {
    for (request, (status, text)) in requests.iter().zip(responses) {
        let is_served = *status == 200 && (text.ends_with("named") || !request.starts_with("GET "));
        let is_refused = matches!(*status, 400 | 501) && !text.contains("named");
        assert!(is_served || is_refused, "{request}{status} {text}");
        assert!(!request.starts_with("CONNECT ") || is_refused, "{request}{status} {text}");
    }
    responses.iter().filter(|(status, _)| *status == 200).count()
}

#[test]
fn the_collector_in_front_of_an_origin_uses_no_other_at_any_listener() {
    run(async {
        let (named, other) = origins().await;
        let bed = Bed::of(&CollectorSpec { origins: Vec::new(), ..spec(named.address, 1) });
        let requests = elsewhere(named.address, other.address);
        let mut responses = Vec::new();
        for request in &requests {
            responses.push(response_to(bed.collector.addresses()[0], request).await);
        }
        let served_once = served(&requests, &responses);
        assert!(served_once > requests.len() / 4, "{served_once}");
        assert_eq!((named.count(), named.connections().await), (served_once, served_once));
        // A proxy gets the same, and nothing is requested again.
        for (request, (status, _)) in requests.iter().zip(&responses) {
            let (again, text) = response_to(bed.collector.addresses()[1], request).await;
            assert_eq!(again, *status, "{request}{text}");
        }
        assert_eq!(named.count(), served_once);
        assert_eq!((other.count(), other.connections().await), (0, 0));
        let totals = bed.collector.counters();
        assert_eq!((totals.connects, totals.origin_requests), (0, served_once as u64));
    });
}

#[test]
fn hosts_in_front_of_one_origin_are_told_apart_and_told_to_it() {
    run(async {
        let origin = Origin::start(|seen, _| {
            let host = seen.head.lines().find(|line| line.starts_with("Host: ")).unwrap_or_default();
            ok("Cache-Control: max-age=1000\r\n", host)
        })
        .await;
        let bed = Bed::of(&CollectorSpec { origins: Vec::new(), ..spec(origin.address, 1) });
        let hosts = ["a", "a.", "b", "a:81", "a:8080", "[::1]", "[::2]", "127.0.0.1", "127.1"];
        for _ in 0..2 {
            for host in hosts {
                for target in ["/x".to_owned(), format!("http://{host}/x")] {
                    let field = if target == "/x" { host } else { "else" };
                    let request =
                        format!("GET {target} HTTP/1.1\r\nHost: {field}\r\nConnection: close\r\n\r\n");
                    let (_, text) = response_to(bed.collector.addresses()[0], &request).await;
                    assert!(text.ends_with(&format!("\r\n\r\nHost: {host}")), "{request}{text}");
                }
            }
        }
        assert_eq!(origin.count(), hosts.len(), "each once");
    });
}

#[test]
fn without_an_origin_the_collector_connects_to_the_named_host_and_no_other() {
    run(async {
        let (named, other) = origins().await;
        let bed =
            Bed::of(&CollectorSpec { origins: Vec::new(), default_origin: None, ..spec(named.address, 1) });
        let listener = bed.collector.addresses()[0];
        let exchange = async |target: &str, host: &str| {
            let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            response_to(listener, &request).await
        };
        let (url, host) = (format!("http://{}/", named.address), other.address.to_string());
        assert!(exchange(&url, &host).await.1.ends_with("named"), "the URL wins over Host");
        assert_eq!((named.count(), other.connections().await), (1, 0));
        assert!(exchange("/x", &host).await.1.ends_with("other"));
        assert_eq!((named.connections().await, other.count()), (1, 1));
        for target in [format!("http://u@{host}/"), format!("ftp://{host}/"), "http:///x".into()] {
            assert!(matches!(exchange(&target, &host).await.0, 400 | 501), "{target}");
        }
        assert_eq!((named.connections().await, other.connections().await), (1, 1));
    });
}

#[test]
fn the_multiplier_in_front_of_an_origin_names_no_other_to_the_collector_or_to_a_proxy() {
    run(async {
        let (collector, other) = origins().await;
        let proxy = Origin::of(ok(UNCACHEABLE, "named")).await;
        let bed = multiplier_bed::Bed::start(&collector, &[proxy.address]);
        let requests = elsewhere(collector.address, other.address);
        let mut responses = Vec::new();
        for request in &requests {
            responses.push(response_to(bed.address(), request).await);
        }
        let served = served(&requests, &responses) as u64;
        assert!(served > requests.len() as u64 / 4, "{served}");
        bed.responses(served).await;
        for seen in collector.seen().iter().chain(&proxy.seen()) {
            let target = seen.line().split(' ').nth(1).unwrap_or_default();
            assert!(target.starts_with('/') || target == "*", "{}", seen.head);
            let hosts = seen.head.to_ascii_lowercase().matches("\r\nhost:").count();
            assert!(hosts == 1 || (hosts == 0 && seen.line().ends_with("HTTP/1.0")), "{}", seen.head);
        }
        assert_eq!((collector.count() as u64, proxy.count() as u64), (served, served));
        assert_eq!((other.count(), other.connections().await), (0, 0));
    });
}
