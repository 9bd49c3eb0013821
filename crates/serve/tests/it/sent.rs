//! What arrives at a collector, and what becomes of a run whose collector fails.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use assay_record::event::RunEvent;
use assay_serve::{Settings, from_environment};
use serde_json::Value;

use crate::support::{Watched, watch};

/// A collector that responds with `status`, and gives what it was sent: the head, and the document.
fn collector(status: &'static str) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = channel();
    std::thread::spawn(move || {
        'connections: for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut bytes, mut part) = (Vec::new(), [0; 65536]);
            let exchange = loop {
                let count = stream.read(&mut part).unwrap();
                if count == 0 {
                    // A document that is being sent when the run ends is given up for the last one.
                    continue 'connections;
                }
                bytes.extend_from_slice(&part[..count]);
                let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
                let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
                let length = head.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap();
                if bytes.len() == end + 4 + length.parse::<usize>().unwrap() {
                    break (head, serde_json::from_slice(&bytes[end + 4..]).unwrap());
                }
            };
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
            if sender.send(exchange).is_err() {
                return;
            }
        }
    });
    (url, received)
}

fn watch_to(url: &str) -> Watched {
    let variable = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_HEADERS" => Some("api-key=s%20ecret".into()),
        "OTEL_METRIC_EXPORT_INTERVAL" => Some("1".into()),
        _ => None,
    };
    watch(Settings { serve: None, collector: Some(from_environment(url, variable).unwrap()) })
}

fn metric<'d>(document: &'d Value, name: &str) -> &'d Value {
    let metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}"))
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
    let (head, document) = received.try_iter().last().unwrap();
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
    let stages = metric(&document, "assay.run_stage")["gauge"]["dataPoints"].as_array().unwrap();
    let finished = stages.iter().find(|point| point.to_string().contains("finished")).unwrap();
    assert_eq!(finished["asDouble"], 1.0);
    assert!(watched.said.lock().unwrap().is_empty());
}

#[test]
fn a_collector_that_fails_is_mentioned_once_and_tried_again() {
    let (url, received) = collector("503 Service Unavailable");
    let watched = watch_to(&url);
    watched.begin();
    for _ in 0..2 {
        received.recv().unwrap();
    }
    watched.watcher.finish();
    let said = watched.said.lock().unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("answered 503") && said[0].contains("goes on without"), "{said:?}");
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
    // No test listens on this host: no other can be given the port.
    let nobody = TcpListener::bind("127.83.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let watched = watch_to(&url);
    watched.begin();
    watched.watcher.finish();
    assert_eq!(watched.said.lock().unwrap().len(), 1);
}
