//! What arrives at a collector, and what becomes of a run whose collector fails.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use assay_record::event::RunEvent;
use rustix::net;
use serde_json::Value;

use crate::serve::client::PATIENCE;
use crate::serve::collector::{collector, watch_to};

fn metric<'d>(document: &'d Value, name: &str) -> &'d Value {
    let metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The run has ended, by this document.
fn is_finished(document: &Value) -> bool {
    let stages = metric(document, "assay.run_stage")["gauge"]["dataPoints"].as_array().unwrap();
    stages.iter().any(|point| point.to_string().contains("finished") && point["asDouble"] == 1.0)
}

#[test]
fn the_last_document_holds_the_whole_run() {
    let (url, received) = collector("200 OK");
    let watched = watch_to(&url);
    watched.begin();
    watched.second(10);
    watched.second(20);
    watched.tell(RunEvent::Finished);
    watched.watcher.finish();
    let (head, document) = loop {
        let (head, document) = received.recv_timeout(PATIENCE).expect("the last document");
        if is_finished(&document) {
            break (head, document);
        }
    };
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    for line in ["Content-Type: application/json", "api-key: s ecret", "User-Agent: Assay/1.2.3"] {
        assert!(head.contains(line), "{head}");
    }
    let attributes = document["resourceMetrics"][0]["resource"]["attributes"].to_string();
    for (name, value) in
        [("service.name", "assay"), ("service.instance.id", "run"), ("assay.workload", "demo")]
    {
        let attribute = serde_json::json!({"key": name, "value": {"stringValue": value}}).to_string();
        assert!(attributes.contains(&attribute), "{attributes}");
    }
    let sent = metric(&document, "assay.requests_sent");
    assert_eq!(sent["sum"]["dataPoints"][0]["asDouble"], 30.0);
    assert_eq!(sent["sum"]["isMonotonic"], true);
    let times = &metric(&document, "assay.response_time")["exponentialHistogram"]["dataPoints"];
    let counted: u64 = times
        .as_array()
        .unwrap()
        .iter()
        .map(|point| {
            let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
            let buckets = point["positive"]["bucketCounts"].as_array().unwrap();
            let sum = buckets.iter().map(number).sum::<u64>() + number(&point["zeroCount"]);
            assert_eq!(sum, number(&point["count"]), "{point}");
            sum
        })
        .sum();
    assert_eq!(counted, 30);
}

#[test]
fn nothing_is_sent_before_the_run_has_a_name() {
    let (url, received) = collector("200 OK");
    let watched = watch_to(&url);
    watched.begin();
    let first = received.recv().unwrap();
    watched.watcher.finish();
    for (_, document) in std::iter::once(first).chain(received.try_iter()) {
        let attributes = document["resourceMetrics"][0]["resource"]["attributes"].to_string();
        assert!(attributes.contains(r#"{"stringValue":"run"}"#), "{attributes}");
    }
}

#[test]
fn a_collector_that_is_not_there_keeps_nobody_waiting() {
    // It has the port, so that no other is given it, and does not listen.
    let nobody = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None).unwrap();
    net::bind(&nobody, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddr::try_from(net::getsockname(&nobody).unwrap()).unwrap();
    let url = format!("http://{address}");
    let watched = watch_to(&url);
    watched.begin();
    watched.watcher.finish();
    assert_eq!(watched.said.lock().unwrap().len(), 1);
}
