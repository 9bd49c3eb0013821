//! Plan of an evaluation, its events and its result.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::Mode;
use crate::harness::TestedProxy;
use assay_net::tls::settings::{AuthorityFiles, ClientTls, ServerTls};
use assay_protocol::evaluation::{CollectorCounters, MultiplierCounters};
use assay_protocol::network::Destinations;
use assay_record::spe::{How, Waits};
use assay_spe::spec::{Turns, When};

/// First port that the Collector's listeners have where nothing else is configured and a proxy that runs already must know them.
pub const LISTENERS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 3200);

/// Plan of an evaluation.
#[derive(Debug, Clone)]
pub struct SpePlan {
    /// The program itself, which roles are played by.
    pub exe: PathBuf,
    /// Version of Assay.
    pub assay_version: String,
    /// Address at which clients connect.
    pub listen: SocketAddr,
    /// Mode in which clients address proxies.
    pub mode: Mode,
    /// Reverse: the one origin behind all, by name and by address.
    pub origin: Option<(String, SocketAddr)>,
    /// TLS settings towards clients; none: in the clear.
    pub tls: Option<ServerTls>,
    /// TLS settings towards that origin; none: in the clear.
    pub origin_tls: Option<ClientTls>,
    /// With which authority tunnels are opened, and how their origins are spoken to; none: tunnels go through unseen.
    pub intercept: Option<(AuthorityFiles, ClientTls)>,
    /// The proxies under test.
    pub proxies: Vec<TestedProxy>,
    /// Proxies that get their requests over TLS, by label, with the authority (`host:port`) for whose host their certificate is verified.
    pub over_tls: BTreeMap<String, String>,
    /// TLS settings by which the certificates of those that run already are verified; none: none of them is in `over_tls`.
    pub proxies_tls: Option<ClientTls>,
    /// First address of the Collector's listeners, the others on the next ports; none: chosen.
    pub listeners: Option<SocketAddr>,
    /// Order of requests to the proxies and to the origin.
    pub when: When,
    pub turns: Turns,
    /// Seed of the order.
    pub seed: u64,
    /// Time that a response that may not be cached is kept for listeners that have not seen it.
    pub minimum_freshness: Duration,
    /// Age after which a recording is made anew.
    pub maximum_age: Duration,
    /// Respond at the pace of the recording.
    pub replay: bool,
    /// Memory for the Collector's recordings.
    pub collector_memory_bytes: u64,
    /// Disk for those that memory has no room for; 0: they go.
    pub collector_disk_bytes: u64,
    /// Most requests that wait for one proxy.
    pub max_waiting: u32,
    /// Time that a proxy's response may take.
    pub response_timeout: Duration,
    /// Rules that say what a difference is.
    pub rules: Option<PathBuf>,
    pub directory: PathBuf,
    /// Write the log in the document's form too.
    pub text_log: bool,
    /// Duration; none: until it is stopped.
    pub duration: Option<Duration>,
    /// Addresses that clients may request; none: all.
    pub destinations: Option<Destinations>,
    /// Public addresses that were named are the user's own.
    pub own_target: bool,
}

#[derive(Debug, Clone)]
pub enum SpeEvent {
    /// The directory is made.
    Directory(PathBuf),
    /// A proxy that runs already belongs to this listener: it is its origin (reverse) or its parent (forward).
    Listener {
        label: String,
        listener: SocketAddr,
    },
    /// A proxy is being started: what it says it is.
    Starting(String),
    Listening(SocketAddr),
    /// A second has passed.
    Second(Box<SpeProgress>),
    /// A proxy ended by itself.
    Died(String),
    /// Something that was measured could not be written down.
    Fault(String),
    /// The last responses are waited for.
    Draining,
}

#[derive(Debug, Clone, Default)]
pub struct SpeProgress {
    /// Labels of all targets, `direct` first.
    pub labels: Vec<String>,
    /// Counters of the Multiplier.
    pub multiplier: MultiplierCounters,
    /// Counters of the Collector.
    pub collector: CollectorCounters,
    /// For how long threads had no processor.
    pub waits: Waits,
}

#[derive(Debug, Clone)]
pub struct SpeOutcome {
    /// The directory, complete.
    pub directory: PathBuf,
    pub how: How,
    /// The last that was counted.
    pub progress: SpeProgress,
}
