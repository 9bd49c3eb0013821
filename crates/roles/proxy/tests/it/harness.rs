//! A proxy between a scripted origin and raw clients, on a clock that moves only when it is told to.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use assay_protocol::message::ProxyCounters;
use assay_proxy::spec::{OriginRoute, ProxySpec, Storing};
use assay_proxy::{Clock, Proxy, ProxyLimits};
use tokio::task::spawn_local;

pub use assay_testbed::{Client, Part, Response, Seen, Server as Origin, ok, run, send, until};

/// When the clock starts: Unix seconds.
pub const START_S: i64 = 1_700_000_000;

/// A proxy under test.
pub struct Bed {
    pub proxy: Rc<Proxy>,
    now_ms: Rc<Cell<i64>>,
}

impl Bed {
    /// In front of these origins, with 10 MB.
    pub fn start(origins: &[(&str, SocketAddr)]) -> Self {
        Self::with_memory(origins, 10_000_000)
    }

    pub fn with_memory(origins: &[(&str, SocketAddr)], memory_bytes: u64) -> Self {
        Self::of(&spec(origins, memory_bytes, 0), ProxyLimits::default())
    }

    /// In front of these origins, with this patience.
    pub fn with_limits(origins: &[(&str, SocketAddr)], limits: ProxyLimits) -> Self {
        Self::of(&spec(origins, 10_000_000, 0), limits)
    }

    /// As it is told, on a clock of its own.
    pub fn of(spec: &ProxySpec, limits: ProxyLimits) -> Self {
        let now_ms = Rc::new(Cell::new(START_S * 1000));
        let proxy = Rc::new(Proxy::bind(spec, Clock::Manual(Rc::clone(&now_ms)), limits).unwrap());
        let serving = Rc::clone(&proxy);
        spawn_local(async move { serving.serve().await });
        Self { proxy, now_ms }
    }

    pub fn pass_seconds(&self, seconds: i64) {
        self.now_ms.set(self.now_ms.get() + seconds * 1000);
    }

    pub fn counters(&self) -> ProxyCounters {
        self.proxy.counters()
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.proxy.address()).await
    }

    /// One request on a connection of its own.
    pub async fn get(&self, path: &str, fields: &str) -> Response {
        self.client().await.get(path, fields).await
    }
}

/// What a proxy is told.
pub fn spec(origins: &[(&str, SocketAddr)], memory_bytes: u64, stale_if_error_s: u64) -> ProxySpec {
    let route = |&(name, address): &(&str, SocketAddr)| OriginRoute { authority: name.into(), address };
    ProxySpec {
        tls: None,
        origin_tls: None,
        origin_http2: false,
        name: "assay".into(),
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        cpus: Vec::new(),
        memory_bytes,
        stale_if_error_s,
        access_log: None,
        origins: origins.iter().map(route).collect(),
        cooperation: None,
        prefetch: None,
        storing: Storing::default(),
    }
}
