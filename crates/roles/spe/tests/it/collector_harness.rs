//! A Collector with listeners between a scripted origin and raw clients.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_protocol::evaluation::ListenerRow;
use assay_spe::collector::{Collector, DIRECT};
use assay_spe::spec::{CollectorSpec, Listener, Route};
use tokio::task::spawn_local;

pub use assay_testbed::{Client, Part, Response, Seen, Server as Origin, ok, pause_ms, run, send, until};

/// Fields of a response that caches may keep.
pub const CACHEABLE: &str = "Cache-Control: max-age=1000\r\n";
/// Fields of one that they may not.
pub const UNCACHEABLE: &str = "Cache-Control: no-store\r\n";

/// A Collector with listeners: 0 is the Multiplier's, the others are of proxies.
pub struct Bed {
    pub collector: Rc<Collector>,
}

/// What a Collector for tests is told; each `Host` goes to the origin.
pub fn spec(origin: SocketAddr, proxies: usize) -> CollectorSpec {
    let listener = |client: String| Listener { listen: "127.0.0.1:0".parse().unwrap(), client };
    let proxies = (1..=proxies).map(|n| listener(format!("proxy-{n}")));
    CollectorSpec {
        lost_key: String::new(),
        listeners: std::iter::once(listener(DIRECT.into())).chain(proxies).collect(),
        origins: vec![Route { authority: "a".into(), address: origin }],
        default_origin: Some(origin),
        origin_tls: None,
        tunnels_tls: None,
        destinations: None,
        minimum_freshness_ms: 180_000,
        maximum_age_ms: 3_600_000,
        replay: true,
        memory_bytes: 10_000_000,
        disk: None,
        log: None,
        cpus: Vec::new(),
    }
}

impl Bed {
    /// In front of an origin, with so many proxies.
    pub fn start(origin: &Origin, proxies: usize) -> Self {
        Self::of(&spec(origin.address, proxies))
    }

    pub fn of(spec: &CollectorSpec) -> Self {
        let collector = Rc::new(Collector::bind(spec).unwrap());
        spawn_local(Rc::clone(&collector).serve());
        Self { collector }
    }

    pub async fn client(&self, listener: usize) -> Client {
        Client::connect(self.collector.addresses()[listener]).await
    }

    /// One request on a connection of its own.
    pub async fn get(&self, listener: usize, path: &str, fields: &str) -> Response {
        self.request(listener, "GET", path, fields, "").await
    }

    pub async fn request(
        &self,
        listener: usize,
        method: &str,
        path: &str,
        fields: &str,
        body: &str,
    ) -> Response {
        let mut client = self.client(listener).await;
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")).await;
        client.response(method).await
    }

    pub fn listeners(&self) -> Vec<ListenerRow> {
        self.collector.take_listeners()
    }
}
