//! A proxy between a scripted origin and raw clients, on a clock that moves only when it is told to.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_http::date::{DATE_BYTES, write_date};
use assay_proxy::{Clock, Limits, Proxy};
use assay_role::message::ProxyCounters;
use assay_role::proxy::{OriginRoute, ProxySpec, Storing};
use tokio::task::spawn_local;

pub use assay_testbed::{Client, Part, Response, Seen, Server as Origin, ok, run, send, until};

/// When the clock starts: Unix seconds.
pub const START_S: i64 = 1_700_000_000;

pub fn date(unix_s: i64) -> String {
    let mut text = [0; DATE_BYTES];
    write_date(unix_s as u64, &mut text);
    String::from_utf8(text.to_vec()).unwrap()
}

/// A proxy under test.
pub struct Bed {
    pub proxy: Rc<Proxy>,
    now_ms: Rc<Cell<i64>>,
}

impl Bed {
    /// In front of these origins, with 10 MB and short patience.
    pub fn start(origins: &[(&str, SocketAddr)]) -> Self {
        Self::with_memory(origins, 10_000_000)
    }

    pub fn with_memory(origins: &[(&str, SocketAddr)], memory_bytes: u64) -> Self {
        Self::with(origins, memory_bytes, 0)
    }

    /// One that may serve what is so stale when an origin fails.
    pub fn with_stale_if_error(origins: &[(&str, SocketAddr)], stale_if_error_s: u64) -> Self {
        Self::with(origins, 10_000_000, stale_if_error_s)
    }

    fn with(origins: &[(&str, SocketAddr)], memory_bytes: u64, stale_if_error_s: u64) -> Self {
        let limits = Limits { origin_response: Duration::from_millis(300), ..Limits::default() };
        Self::of(&spec(origins, memory_bytes, stale_if_error_s), limits)
    }

    /// In front of these origins, which speak HTTP/2.
    pub fn with_http2(origins: &[(&str, SocketAddr)]) -> Self {
        let spec = ProxySpec { origin_http2: true, ..spec(origins, 10_000_000, 0) };
        Self::of(&spec, Limits::default())
    }

    /// One that stores this.
    pub fn storing(origins: &[(&str, SocketAddr)], memory_bytes: u64, storing: Storing) -> Self {
        Self::of(&ProxySpec { storing, ..spec(origins, memory_bytes, 0) }, Limits::default())
    }

    /// In front of these origins, with this patience.
    pub fn with_limits(origins: &[(&str, SocketAddr)], limits: Limits) -> Self {
        Self::of(&spec(origins, 10_000_000, 0), limits)
    }

    /// As it is told, on a clock of its own.
    pub fn of(spec: &ProxySpec, limits: Limits) -> Self {
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
