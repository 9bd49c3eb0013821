//! A collector of metrics, and a run whose metrics it is sent.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use assay_report::serve::{WatchSettings, from_environment};
use serde_json::Value;

use crate::serve::watched::{Watched, watch};

/// A collector that responds with `status`, and gives what it was sent: the head, and the document.
pub fn collector(status: &'static str) -> (String, Receiver<(String, Value)>) {
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
            // Before the response: whoever got that finds the exchange here.
            if sender.send(exchange).is_err() {
                return;
            }
            // Whoever waited too long has gone.
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
        }
    });
    (url, received)
}

pub fn watch_to(url: &str) -> Watched {
    let variable = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_HEADERS" => Some("api-key=s%20ecret".into()),
        "OTEL_METRIC_EXPORT_INTERVAL" => Some("1".into()),
        _ => None,
    };
    watch(WatchSettings { serve: None, collector: Some(from_environment(url, variable).unwrap()) })
}
