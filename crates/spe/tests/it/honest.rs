//! Multiplier, Collector and honest proxies, all of them real: whatever the Collector has no room for, none of them is blamed.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_proxy::{Clock, Limits, Proxy};
use assay_record::spe::{ResponseRow, Verdict};
use assay_role::evaluation::CollectorCounters;
use assay_role::evaluation::{CollectorSpec, Turns, When};
use assay_role::proxy::ProxySpec;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::collector_harness::{self, spec};
use crate::multiplier_bed::{Bed, Client, Part, Server, ok, run, until};

/// What may not be stored.
const OWN: &str = "Cache-Control: no-store\r\n";

/// An evaluation in one process.
struct Evaluation {
    collector: collector_harness::Bed,
    multiplier: Bed,
    clients: Vec<Client>,
    requested: u64,
}

/// A built-in proxy that is led to a listener for everything.
pub fn proxy(listener: SocketAddr) -> SocketAddr {
    let spec = ProxySpec {
        tls: None,
        origin_tls: None,
        origin_http2: false,
        name: "honest".into(),
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        cpus: Vec::new(),
        memory_bytes: 50_000_000,
        stale_if_error_s: 0,
        access_log: None,
        origins: vec![assay_role::proxy::OriginRoute { authority: "*".into(), address: listener }],
        cooperation: None,
        prefetch: None,
        storing: assay_role::proxy::Storing::default(),
    };
    let proxy = Rc::new(Proxy::bind(&spec, Clock::System, Limits::default()).unwrap());
    let address = proxy.address();
    spawn_local(async move { proxy.serve().await });
    address
}

impl Evaluation {
    /// Of so many honest proxies, by so many clients.
    async fn start(told: CollectorSpec, origin: &Server, when: When, clients: usize) -> Self {
        let collector = collector_harness::Bed::of(&told);
        let listeners = collector.collector.addresses().to_vec();
        let proxies: Vec<SocketAddr> = listeners[1..].iter().map(|&listener| proxy(listener)).collect();
        let multiplier = Bed::with(origin, &proxies, |spec| {
            spec.collector = listeners[0];
            (spec.when, spec.turns, spec.most_waiting) = (when, Turns::Permuted, 1000);
        });
        let mut evaluation = Self { collector, multiplier, clients: Vec::new(), requested: 0 };
        for _ in 0..clients {
            evaluation.clients.push(evaluation.multiplier.client().await);
        }
        evaluation
    }

    /// All clients request the same at once and wait for their responses; `release` is called when they have sent them.
    async fn round(&mut self, release: impl AsyncFnOnce()) {
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
    async fn end(self) -> (Vec<ResponseRow>, CollectorCounters) {
        let Self { collector, multiplier, clients, requested } = self;
        multiplier.responses(requested).await;
        drop(clients);
        let mut rows = multiplier.finish().await;
        rows.retain(|row| row.target > 0);
        (rows, collector.collector.counters())
    }
}

/// How many rows of a target have this verdict.
fn count(rows: &[ResponseRow], target: u16, verdict: Verdict) -> usize {
    rows.iter().filter(|row| row.target == target && row.verdict == verdict).count()
}

/// A body of so many bytes that says this.
fn body(number: usize, bytes: usize) -> String {
    format!("{}{number:08}", "-".repeat(bytes - 8))
}

/// An origin that responds to each request with something else; all but the first wait for a permit.
async fn changing(fields: &'static str, bytes: usize) -> (Server, Rc<Semaphore>) {
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

#[test]
fn more_clients_than_ever_at_one_url_that_changes_and_an_honest_proxy_matches_every_time() {
    const CLIENTS: usize = 300;
    const ROUNDS: usize = 4;
    run(async {
        let (origin, gate) = changing(OWN, 8).await;
        let told = spec(origin.address, 1);
        let mut evaluation = Evaluation::start(told, &origin, When::After, CLIENTS).await;
        for _ in 0..ROUNDS {
            let is_there = async || {
                // What is there so far cannot be shared, so that each has a fetch of its own, all of them at once.
                until(|| origin.count() >= CLIENTS).await;
                gate.add_permits(10 * CLIENTS);
            };
            evaluation.round(is_there).await;
        }
        let (rows, totals) = evaluation.end().await;
        assert_eq!(rows.len(), CLIENTS * ROUNDS);
        assert_eq!(count(&rows, 1, Verdict::Ok), CLIENTS * ROUNDS);
        assert_eq!(origin.count(), CLIENTS * ROUNDS, "once for each request");
        assert_eq!((totals.not_kept, totals.repeated), (0, 0));
    });
}

#[test]
fn in_whatever_order_responses_end_each_proxy_is_held_against_its_own_clients() {
    const CLIENTS: usize = 24;
    run(async {
        for when in [When::After, When::AtOnce] {
            // The later a request comes, the sooner its response comes.
            let origin = Server::start(|_, before| {
                let pause = assay_testbed::pause_ms(40 - 10 * (before as u64 % 5));
                [vec![pause], ok(OWN, &format!("answer {before}"))].concat()
            })
            .await;
            let told = spec(origin.address, 2);
            let mut evaluation = Evaluation::start(told, &origin, when, CLIENTS).await;
            for _ in 0..5 {
                evaluation.round(async || ()).await;
            }
            let (rows, totals) = evaluation.end().await;
            for target in [1, 2] {
                assert_eq!(count(&rows, target, Verdict::Ok), 5 * CLIENTS, "{when:?}");
            }
            assert_eq!(origin.count(), 5 * CLIENTS, "{when:?}");
            assert_eq!(totals.not_kept, 0);
        }
    });
}

/// 1 MB of memory, 12 clients that get 192 KB each, all at once.
async fn crowded(fields: &'static str, rounds: usize) -> (Vec<ResponseRow>, CollectorCounters, usize) {
    const CLIENTS: usize = 12;
    let (origin, gate) = changing(fields, 192 << 10).await;
    let told = CollectorSpec { memory_bytes: 1 << 20, ..spec(origin.address, 1) };
    let mut evaluation = Evaluation::start(told, &origin, When::After, CLIENTS).await;
    for _ in 0..rounds {
        evaluation.round(async || gate.add_permits(1000)).await;
        evaluation.multiplier.responses(evaluation.requested).await;
    }
    let (rows, totals) = evaluation.end().await;
    assert_eq!(rows.len(), rounds * CLIENTS);
    (rows, totals, origin.count())
}

#[test]
fn what_there_is_no_room_for_is_not_compared_and_nothing_is_fetched_twice() {
    run(async {
        let (rows, totals, requested) = crowded(OWN, 25).await;
        assert_eq!(requested, 300, "once for each request");
        let (matching, not_kept) = (count(&rows, 1, Verdict::Ok), count(&rows, 1, Verdict::NotKept));
        assert_eq!(matching + not_kept, 300, "nothing is blamed on the proxy");
        assert!(matching >= 25 * 4, "what there is room for is compared: {matching}");
        assert_eq!((totals.not_kept, totals.repeated), (not_kept as u64, 0));
        assert!(not_kept > 0, "a megabyte holds five of them");
    });
}

#[test]
fn what_caches_may_have_is_fetched_again_for_a_proxy_and_compared_where_it_is_the_same() {
    run(async {
        // Of a quarter of the memory and more, nothing is kept.
        let origin = Server::start(|seen, before| {
            let changes = if seen.line().contains("/changing") { before } else { 0 };
            ok("Cache-Control: max-age=1000\r\n", &body(changes, 300_000))
        })
        .await;
        let told = CollectorSpec { memory_bytes: 1 << 20, ..spec(origin.address, 1) };
        let evaluation = Evaluation::start(told, &origin, When::After, 0).await;
        let mut client = evaluation.multiplier.client().await;
        for (path, requested) in [("/same", 1), ("/changing", 2)] {
            assert_eq!(client.get(path, "").await.status, 200);
            evaluation.multiplier.responses(requested).await;
        }
        drop(client);
        let (rows, totals) = Evaluation { requested: 2, ..evaluation }.end().await;
        let verdicts: Vec<Verdict> = rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Verdict::Ok, Verdict::NotKept]);
        assert_eq!((origin.count(), totals.not_kept, totals.repeated), (4, 2, 2));
    });
}
