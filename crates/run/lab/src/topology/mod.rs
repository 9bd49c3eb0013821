//! Caches that work together: which caches query which, and which robots speak to which.
//!
//! A [`TopologyChoice`] is what a file says ([`mod@read`]); a [`Topology`] is the same with every description found and every
//! name resolved: what a run starts.
//!
//! # Topologies
//!
//! *Topologies.* A target may be several caches (`lab::topology`): each the built-in proxy or a described one, with siblings, parents
//! and the protocols for queries, and a share of the robots. Robots are assigned to caches by `workload::cache_assignment`: a pure function of the
//! robot and the shares, so streams do not depend on it. Parents are started first and form no cycle. Robots see one target, and
//! ideal is that of one cache for all; the counters of each cache show what it served (`cache` in `proxy.parquet`,
//! `TargetInfo::caches`). A request from another cache is one that carries `Via`. Access logs carry `X-Assay` (`{xact}` in a
//! description): after the run, `lab::caches` joins the lines of each request across caches with the robots' row of it
//! (`caches.json`: counts and histograms of every combination), and `report` computes tables and the agreement of both sides from it.
//!
//! *Does not:* start anything, or choose addresses.

mod draw;
mod read;
mod resolve;

use std::collections::BTreeMap;
use std::time::Duration;

use assay_host::link::LinkSettings;
use assay_proxy::spec::Storing;
use assay_workload::cache_assignment::Share;

pub use draw::draw;
pub use read::{CACHE_FIELDS, caches, read};
pub use resolve::resolve;

use crate::description::Description;
use crate::mode::{Mode, PeerProtocol, PeerRelation};

/// Caches as a file names them.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologyChoice {
    /// Name.
    pub name: String,
    /// Mode in which robots address it; none: the first way that all of its caches know.
    pub mode: Option<Mode>,
    /// Defaults of its caches.
    pub usual: CacheDefaults,
    /// The caches, in the order of the file.
    pub caches: Vec<CacheChoice>,
}

/// Defaults of the caches of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheDefaults {
    pub proxy: String,
    /// Memory for its cache.
    pub memory_bytes: u64,
    /// Disk for its cache.
    pub disk_bytes: u64,
    /// Settings of its description.
    pub set: BTreeMap<String, String>,
}

/// A cache, or several alike, as a file names them.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheChoice {
    pub name: String,
    /// Number of caches; above 1 they are called by the name and a number.
    pub count: u32,
    pub proxy: Option<String>,
    /// Memory for its cache.
    pub memory_bytes: Option<u64>,
    /// Disk for its cache.
    pub disk_bytes: Option<u64>,
    /// Settings of its description.
    pub set: BTreeMap<String, String>,
    /// Names of its siblings. One that stands for several means all of them but the cache itself.
    pub siblings: Vec<String>,
    /// Names of its parents.
    pub parents: Vec<String>,
    /// The protocol that it uses with them.
    pub protocol: PeerProtocol,
    /// Delay that is added to every exchange with another cache.
    pub peer_delay: Duration,
    /// The link between it and each cache that it queries.
    pub peer_link: Option<LinkSettings>,
    /// Whether objects of siblings are not stored here too.
    pub proxy_only: bool,
    /// Whether it sends no requests to origins itself.
    pub never_direct: bool,
    /// Share of the robots that it gets; none: the same as others, or none where it is a parent.
    pub robots: Option<Share>,
    /// Line of the file, for messages about all of it.
    pub line: usize,
}

/// Caches that work together, with everything known.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Name.
    pub name: String,
    /// Mode in which robots address it.
    pub mode: Mode,
    /// The caches; parents come before their children.
    pub caches: Vec<Cache>,
    /// Links between them; where there is none, they are next to each other.
    pub links: Vec<PeerLink>,
}

/// A link between two caches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeerLink {
    /// Places of both among the caches, the smaller first.
    pub ends: [usize; 2],
    pub settings: LinkSettings,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// Name: letters, digits and `-`.
    pub name: String,
    /// Description by which it is driven; none: it is the built-in proxy.
    pub description: Option<Description>,
    /// Settings of the built-in proxy.
    pub storing: Storing,
    /// Memory for its cache.
    pub memory_bytes: u64,
    /// Disk for its cache.
    pub disk_bytes: u64,
    /// The caches that it queries.
    pub peers: Vec<PeerRef>,
    /// Delay that is added to every exchange with another cache.
    pub peer_delay: Duration,
    /// Whether objects of siblings are not stored here too.
    pub proxy_only: bool,
    /// Whether it sends no requests to origins itself.
    pub never_direct: bool,
    /// Share of the robots that it gets.
    pub robots: Share,
}

/// From a cache to one that it queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerRef {
    /// Place among the caches.
    pub to: usize,
    pub relation: PeerRelation,
    /// The protocol between the two.
    pub protocol: PeerProtocol,
}

/// Caches and those that they query, on one line.
pub fn in_words(caches: &[CacheChoice]) -> String {
    let one = |cache: &CacheChoice| {
        let times = if cache.count > 1 { format!(" × {}", cache.count) } else { String::new() };
        let named = [("siblings", &cache.siblings), ("parents", &cache.parents)];
        let queried = named.iter().filter(|(_, names)| !names.is_empty());
        let queried: Vec<String> =
            queried.map(|(what, names)| format!("{what} {}", names.join(" and "))).collect();
        let queries = if queried.is_empty() { String::new() } else { format!(" ({})", queried.join(", ")) };
        format!("{}{times}{queries}", cache.name)
    };
    caches.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Topology {
    /// Caches that query this one.
    pub fn clients(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let queries = move |cache: &Cache| cache.peers.iter().any(|bond| bond.to == place);
        self.caches.iter().enumerate().filter(move |(_, cache)| queries(cache)).map(|(place, _)| place)
    }

    /// Whether this cache responds to queries of that protocol.
    pub fn serves(&self, place: usize, protocol: PeerProtocol) -> bool {
        let queries =
            |cache: &Cache| cache.peers.iter().any(|bond| bond.to == place && bond.protocol == protocol);
        self.caches.iter().any(queries)
    }

    /// Every proxy that is started from a description, once each.
    pub fn descriptions(&self) -> impl Iterator<Item = &Description> {
        let mut seen: Vec<&str> = Vec::new();
        let all = self.caches.iter().filter_map(|cache| cache.description.as_ref());
        all.filter(move |description| {
            let is_new = !seen.contains(&description.name.as_str());
            seen.push(&description.name);
            is_new
        })
    }
}

impl Cache {
    /// Whether robots speak to it.
    pub fn has_robots(&self) -> bool {
        !matches!(&self.robots, Share::Weight(weight) if *weight <= 0.0)
    }

    /// The proxy that it is.
    pub fn proxy(&self) -> &str {
        self.description.as_ref().map_or("builtin", |description| &description.name)
    }

    /// Bytes that its stores can hold.
    pub fn capacity_bytes(&self) -> u64 {
        match &self.description {
            None => self.memory_bytes,
            Some(description) => description.capacity_bytes(self.memory_bytes, self.disk_bytes),
        }
    }
}
