//! A Multiplier between a scripted Collector, scripted proxies and raw clients.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use assay_protocol::evaluation::MultiplierCounters;
use assay_record::spe::{ResponseRow, read_responses};
use assay_spe::multiplier::{Multiplier, MultiplierLimits};
use assay_spe::spec::{MultiplierSpec, ProxyUnderTest, Turns, When};
use tokio::task::{JoinHandle, spawn_local};

pub use assay_testbed::{Client, Part, Response, Server, ok, run, send, until};

/// A Multiplier under test.
pub struct Bed {
    multiplier: Rc<Multiplier>,
    serving: JoinHandle<()>,
    pub directory: tempfile::TempDir,
}

/// What a Multiplier before a Collector and without proxies is told.
pub fn spec(collector: SocketAddr, directory: &Path) -> MultiplierSpec {
    MultiplierSpec {
        lost_key: String::new(),
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        intercept: None,
        collector,
        proxies: Vec::new(),
        forward: false,
        when: When::After,
        turns: Turns::Fixed,
        seed: 1,
        max_waiting: 100,
        response_timeout_ms: 60_000,
        rules: None,
        directory: directory.to_owned(),
        text_log: false,
        cpus: Vec::new(),
    }
}

impl Bed {
    /// In front of a Collector, with these settings instead of those of `spec`.
    pub fn with(collector: &Server, proxies: &[SocketAddr], set: impl FnOnce(&mut MultiplierSpec)) -> Self {
        Self::with_limits(collector, proxies, MultiplierLimits::default(), set)
    }

    /// The same, with other patience.
    pub fn with_limits(
        collector: &Server,
        proxies: &[SocketAddr],
        limits: MultiplierLimits,
        set: impl FnOnce(&mut MultiplierSpec),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let name = |(index, &address)| ProxyUnderTest { label: format!("p{index}"), address, tls: None };
        let mut spec = spec(collector.address, directory.path());
        spec.proxies = proxies.iter().enumerate().map(name).collect();
        set(&mut spec);
        let multiplier = Rc::new(Multiplier::bind(&spec, limits).unwrap());
        let server = Rc::clone(&multiplier);
        let serving = spawn_local(async move { server.serve().await });
        Self { multiplier, serving, directory }
    }

    pub fn address(&self) -> SocketAddr {
        self.multiplier.address()
    }

    pub fn counters(&self) -> MultiplierCounters {
        self.multiplier.counters()
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.address()).await
    }

    /// One request on a connection of its own.
    pub async fn get(&self, path: &str) -> Response {
        self.client().await.get(path, "").await
    }

    /// Waits until so many responses of each proxy were told, of any kind.
    pub async fn responses(&self, each: u64) {
        until(|| {
            let targets = self.counters().targets;
            targets[1..].iter().all(|t| t.responses + t.no_response + t.dropped >= each)
        })
        .await;
    }

    /// Ends it: what was written down, by request and target.
    pub async fn finish(self) -> Vec<ResponseRow> {
        let Self { multiplier, serving, directory } = self;
        serving.abort();
        let _ = serving.await;
        let multiplier = Rc::into_inner(multiplier).expect("nobody else has it");
        multiplier.finish().await.unwrap();
        let path: PathBuf = directory.path().join("responses.parquet");
        let mut rows = read_responses(&path).unwrap();
        rows.sort_by_key(|row| (row.request, row.target));
        rows
    }
}
