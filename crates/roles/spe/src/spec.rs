//! Specs of the Multiplier and the Collector.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use assay_net::tls::settings::{AuthorityFiles, ClientTls, ServerTls};
use assay_protocol::network::Destinations;

/// What the Collector is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectorSpec {
    /// With what it marks responses in place of those that it has not kept: only the Multiplier has the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lost_key: String,
    /// Where it listens, and which clients it has there. A request is counted, and a response is new, by listener: addresses of
    /// clients do not tell proxies on one machine apart.
    pub listeners: Vec<Listener>,
    /// Which `Host` goes to which real server; others are looked up by the system.
    pub origins: Vec<Route>,
    /// Where a request that names no known host goes (reverse); none: to the host that it names.
    pub default_origin: Option<SocketAddr>,
    /// How that origin is spoken to over TLS; none: in the clear.
    #[serde(default)]
    pub origin_tls: Option<TlsTo>,
    /// How the origins of tunnels that the Multiplier opens are spoken to; none: it opens none.
    #[serde(default)]
    pub tunnels_tls: Option<ClientTls>,
    /// Which addresses are requested; none: all. Those of known origins are no exception.
    #[serde(default)]
    pub destinations: Option<Destinations>,
    /// How long a response that may not be cached is kept for listeners that have not seen it, in milliseconds.
    pub minimum_freshness_ms: u64,
    /// Recordings older than this are made anew, however fresh the response is, in milliseconds (11.3.8).
    pub maximum_age_ms: u64,
    /// Respond at the pace of the recording; false: at once (the document's control).
    pub replay: bool,
    /// Most bytes of recordings in memory, overhead included.
    pub memory_bytes: u64,
    /// Where recordings go that memory has no room for; none: nowhere.
    pub disk: Option<DiskSpec>,
    /// Where each request is logged; none: nowhere.
    #[serde(default)]
    pub log: Option<CollectorLog>,
    /// Processors the thread is pinned to; empty: not pinned.
    pub cpus: Vec<u32>,
}

/// The Collector's own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectorLog {
    /// The directory of `collector.parquet`.
    pub directory: PathBuf,
    /// As text too, in the form of Squid's access log (`collector.log`).
    pub text: bool,
}

/// TLS to an origin, or to a proxy under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TlsTo {
    /// What is offered and trusted.
    pub client: ClientTls,
    /// The authority (`host` or `host:port`) whose host the certificate is verified for.
    pub authority: String,
}

/// A listening address of the Collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    pub listen: SocketAddr,
    /// Its client: the label of a proxy under test, or `direct` for the Multiplier itself.
    pub who: String,
}

/// Where one host really is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// `host` or `host:port`, as clients say it.
    pub authority: String,
    pub address: SocketAddr,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSpec {
    /// A directory of its own, emptied at the end.
    pub directory: PathBuf,
    /// Most bytes in it.
    pub bytes: u64,
}

/// When requests are sent to the proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// When the Collector's response is complete, as in the document.
    After,
    /// At once: at the clients' own pace.
    AtOnce,
}

/// In which order requests are sent to the proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// Another one for each request, from the seed.
    Permuted,
    /// As they are listed.
    Fixed,
}

/// What the Multiplier is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MultiplierSpec {
    /// With what the Collector marks responses in place of those that it has not kept: no proxy has it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lost_key: String,
    /// Where clients come in.
    pub listen: SocketAddr,
    /// How clients are spoken to over TLS; none: in the clear.
    #[serde(default)]
    pub tls: Option<ServerTls>,
    /// With which authority tunnels are opened; none: they go through unseen.
    #[serde(default)]
    pub intercept: Option<AuthorityFiles>,
    /// The Collector's listener for the Multiplier.
    pub collector: SocketAddr,
    /// The proxies under test.
    pub proxies: Vec<ProxyUnderTest>,
    /// Requests go to the proxies with their whole URL (forward), or with a path and `Host` (reverse).
    pub forward: bool,
    /// When requests are sent to the proxies.
    pub when: When,
    pub turns: Turns,
    /// Seed of the order.
    pub seed: u64,
    /// Most requests that wait for one proxy, or are under way with it; those beyond are dropped and counted.
    pub most_waiting: u32,
    /// How long a proxy's response may take, in milliseconds.
    pub patience_ms: u64,
    /// Which differences are none (a file in TOML); none: the defaults.
    pub rules: Option<PathBuf>,
    /// Where responses are written: the SPE directory.
    pub directory: PathBuf,
    /// Write the log in the document's form too.
    pub text_log: bool,
    /// Processors the thread is pinned to; empty: not pinned.
    pub cpus: Vec<u32>,
}

/// A proxy under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxyUnderTest {
    /// What it is called in results.
    pub label: String,
    pub address: SocketAddr,
    /// How it is spoken to over TLS; none: in the clear.
    #[serde(default)]
    pub tls: Option<TlsTo>,
}
