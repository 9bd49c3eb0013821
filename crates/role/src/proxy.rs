//! Spec of the built-in proxy.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::tls::{ClientTls, ServerTls};

/// What stands in a line of the access log, in the words of descriptions of proxies. Times are those of the end of a response;
/// bytes are its body's.
pub const ACCESS_LOG_FORMAT: &str =
    "{time-s} {duration-us} {client} {outcome}/{status} {bytes} {method} {url} {hierarchy} {xact}";

/// What the built-in caching proxy is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxySpec {
    /// What it calls itself in `Via` and `Cache-Status`; caches that know each other need names of their own.
    #[serde(default = "usual_name")]
    pub name: String,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Worker threads (one store for all of them is not promised; today one).
    pub threads: u32,
    /// Processors the threads are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Bound on the memory store, in bytes, overhead per object included.
    pub memory_bytes: u64,
    /// How stale a response may be served when its origin fails and the response says nothing about that (`stale-if-error`),
    /// in seconds; 0: not at all.
    #[serde(default)]
    pub stale_if_error_s: u64,
    /// Reverse: which host goes to which real origin; one that is not listed goes to the first, in whatever form a request
    /// names it, and no other address is ever connected to. Empty (forward): a whole URL goes to the host that it names.
    pub origins: Vec<OriginRoute>,
    /// Where each request is written down, as [`ACCESS_LOG_FORMAT`] has it; none: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_log: Option<PathBuf>,
    /// Other caches; none: it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooperation: Option<Cooperation>,
    /// What is prefetched; none: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Prefetch>,
    /// How it speaks TLS to clients; none: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ServerTls>,
    /// How it speaks TLS to origins; none: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_tls: Option<ClientTls>,
}

/// What is prefetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefetch {
    /// The pages that a page leads to as well, not only what it is shown with.
    pub links: bool,
    /// Most resources for one page.
    pub per_page: u32,
    /// Most bytes for one page.
    pub page_bytes: u64,
    /// Most fetches at once.
    pub at_once: u32,
    /// Most that wait for that; those beyond are dropped.
    pub waiting: u32,
}

impl Prefetch {
    /// Words for [`Prefetch::from_word`].
    pub const WORDS: [&str; 3] = ["none", "embedded", "links"];

    /// The word for it.
    pub fn word(&self) -> &'static str {
        if self.links { "links" } else { "embedded" }
    }

    /// What a setting of this word means, with usual bounds; the outer none: it is no word for it.
    pub fn from_word(word: &str) -> Option<Option<Self>> {
        let usual = |links| Self { links, per_page: 64, page_bytes: 8 << 20, at_once: 16, waiting: 1024 };
        match word {
            "none" => Some(None),
            "embedded" => Some(Some(usual(false))),
            "links" => Some(Some(usual(true))),
            _ => None,
        }
    }
}

/// The name of a proxy that stands alone.
pub fn usual_name() -> String {
    "assay".into()
}

/// The other caches, and how they are queried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooperation {
    /// Where ICP queries are received, and sent from; none: no ICP.
    pub icp: Option<SocketAddr>,
    /// Addresses that may send ICP queries, beside the peers.
    pub clients: Vec<IpAddr>,
    /// The caches to query, in order of preference.
    pub peers: Vec<Peer>,
    /// How long to wait for ICP responses, in milliseconds.
    pub timeout_ms: u64,
    /// Time in milliseconds that is added to each query and each request to another cache, as if
    /// that were the round-trip time between the two.
    #[serde(default)]
    pub delay_ms: u64,
    /// What a sibling gave is not stored here too.
    pub proxy_only: bool,
    /// What no parent could fetch fails: no request goes to the origin.
    pub never_direct: bool,
}

/// Another cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// What it is called.
    pub name: String,
    /// What may be requested from it.
    pub relation: Relation,
    /// Where it speaks HTTP; requests to it are in absolute form.
    pub http: SocketAddr,
    /// Where it receives ICP queries; none: it is not queried. Nothing is requested from a sibling without it.
    pub icp: Option<SocketAddr>,
}

/// What may be requested from another cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// What it has.
    Sibling,
    /// Anything: it fetches what it has not.
    Parent,
}

/// As an authority: every host, named in a whole URL or not, is behind that one address.
pub const EVERY_HOST: &str = "*";

/// One origin behind the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginRoute {
    /// `host:port` as clients say it, or [`EVERY_HOST`].
    pub authority: String,
    /// Its real address.
    pub address: SocketAddr,
}
