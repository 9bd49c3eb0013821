//! An evaluation of honest proxies in one process: Multiplier, Collector and proxies, all of them real.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_protocol::evaluation::CollectorCounters;
use assay_record::spe::{ResponseRow, Verdict};
use assay_spe::spec::{CollectorSpec, Turns, When};
use tokio::sync::Semaphore;

use crate::collector_harness;
use crate::honest_proxy::proxy;
use crate::multiplier_bed::{Bed, Client, Part, Server, ok};

/// An evaluation in one process.
pub struct Evaluation {
    pub collector: collector_harness::Bed,
    pub multiplier: Bed,
    pub clients: Vec<Client>,
    pub requested: u64,
}

impl Evaluation {
    /// Of so many honest proxies, by so many clients.
    pub async fn start(told: CollectorSpec, origin: &Server, when: When, clients: usize) -> Self {
        let collector = collector_harness::Bed::of(&told);
        let listeners = collector.collector.addresses().to_vec();
        let proxies: Vec<SocketAddr> = listeners[1..].iter().map(|&listener| proxy(listener)).collect();
        let multiplier = Bed::with(origin, &proxies, |spec| {
            spec.collector = listeners[0];
            (spec.when, spec.turns, spec.max_waiting) = (when, Turns::Permuted, 1000);
        });
        let mut evaluation = Self { collector, multiplier, clients: Vec::new(), requested: 0 };
        for _ in 0..clients {
            evaluation.clients.push(evaluation.multiplier.client().await);
        }
        evaluation
    }

    /// All clients request the same at once and wait for their responses; `release` is called when they have sent them.
    pub async fn round(&mut self, release: impl AsyncFnOnce()) {
        for client in &mut self.clients {
            client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        }
        release().await;
        for client in &mut self.clients {
            let response = client.response("GET").await;
            assert_eq!(response.status, 200, "{response:?}");
            assert!(response.field("x-assay-lost").is_none() && response.field("x-assay-request").is_none());
        }
        self.requested += self.clients.len() as u64;
    }

    /// Waits for all proxies: what was written down of them, and what the Collector did.
    pub async fn end(self) -> (Vec<ResponseRow>, CollectorCounters) {
        let Self { collector, multiplier, clients, requested } = self;
        multiplier.responses(requested).await;
        drop(clients);
        let mut rows = multiplier.finish().await;
        rows.retain(|row| row.target > 0);
        (rows, collector.collector.counters())
    }
}

/// How many rows of a target have this verdict.
pub fn count(rows: &[ResponseRow], target: u16, verdict: Verdict) -> usize {
    rows.iter().filter(|row| row.target == target && row.verdict == verdict).count()
}

/// A body of so many bytes that says this.
pub fn body(number: usize, bytes: usize) -> String {
    format!("{}{number:08}", "-".repeat(bytes - 8))
}

/// An origin that responds to each request with something else; all but the first wait for a permit.
pub async fn changing(fields: &'static str, bytes: usize) -> (Server, Rc<Semaphore>) {
    let gate = Rc::new(Semaphore::new(0));
    let held = Rc::clone(&gate);
    let origin = Server::start(move |seen, before| {
        assert!(!seen.head.to_ascii_lowercase().contains("x-assay"), "{}", seen.head);
        let body = body(before, bytes);
        let wait = (before > 0).then(|| Part::Wait(Rc::clone(&held)));
        wait.into_iter().chain(ok(fields, &body)).collect()
    })
    .await;
    (origin, gate)
}
