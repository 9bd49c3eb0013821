//! A Collector with doors between a scripted origin and raw clients.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_role::evaluation::{CollectorSpec, Door, Route};
use assay_spe::collector::{Collector, DIRECT, DoorCounters};
use tokio::task::spawn_local;

pub use assay_testbed::{Client, Part, Reply, Seen, Server as Origin, ok, pause_ms, run, send, until};

/// Fields of an answer that caches may keep.
pub const CACHEABLE: &str = "Cache-Control: max-age=1000\r\n";
/// Fields of one that they may not.
pub const UNCACHEABLE: &str = "Cache-Control: no-store\r\n";

/// A Collector with doors: 0 is the Multiplier's, the others are of proxies.
pub struct Bed {
    pub collector: Rc<Collector>,
}

/// What a Collector for tests is told; each `Host` goes to the origin.
pub fn spec(origin: SocketAddr, proxies: usize) -> CollectorSpec {
    let door = |who: String| Door { listen: "127.0.0.1:0".parse().unwrap(), who };
    let proxies = (1..=proxies).map(|n| door(format!("proxy-{n}")));
    CollectorSpec {
        doors: std::iter::once(door(DIRECT.into())).chain(proxies).collect(),
        origins: vec![Route { authority: "a".into(), address: origin }],
        default_origin: Some(origin),
        minimum_freshness_ms: 180_000,
        maximum_age_ms: 3_600_000,
        replay: true,
        memory_bytes: 10_000_000,
        disk: None,
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

    pub async fn client(&self, door: usize) -> Client {
        Client::connect(self.collector.addresses()[door]).await
    }

    /// One request on a connection of its own.
    pub async fn get(&self, door: usize, path: &str, fields: &str) -> Reply {
        self.request(door, "GET", path, fields, "").await
    }

    pub async fn request(&self, door: usize, method: &str, path: &str, fields: &str, body: &str) -> Reply {
        let mut client = self.client(door).await;
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")).await;
        client.reply(method).await
    }

    pub fn doors(&self) -> Vec<DoorCounters> {
        self.collector.take_doors()
    }
}
