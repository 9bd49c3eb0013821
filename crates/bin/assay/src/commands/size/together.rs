//! Several caches: those of a topology, as `assay run --topology` starts them, or layers behind each other.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use assay_lab::mode::PeerRelation;
use assay_lab::topology::Topology;
use assay_logs::size::cooperate::{CacheNode, Hierarchy};
use assay_logs::size::layout::Layout;
use assay_logs::size::policy::{Policy, Replacement};
use assay_workload::cache_assignment::{Share, assign_caches};
use clap::Args;

use super::cache_size::CacheSize;
use super::model::CacheModel;
use super::prove::ProveArgs;
use super::workload::{self, WorkloadArgs};
use crate::exit::Failure;
use crate::target;

/// Memory and disk of a topology's caches that do not say what they have, as of `assay run`.
const USUAL_BYTES: u64 = 256 << 20;
/// Clients of a log are dealt to caches in so many parts.
const PARTS: u32 = 997;

/// Flags of caches that work together.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several caches")]
pub struct TogetherArgs {
    /// Simulate the caches of a topology too, as `assay run --topology` starts them: siblings, parents, and which robots each has
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// Simulate caches behind each other too, the nearest to clients first: memory and disk, edge and shield; sizes are as for
    /// `--sizes`
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = CacheSize::parse, conflicts_with = "topology")]
    pub layers: Vec<CacheSize>,
    /// So many caches of the first of the layers, side by side, which share the clients
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), default_value_t = 1, requires = "layers")]
    pub edges: u16,
}

impl TogetherArgs {
    /// True if the client of each request matters.
    pub fn needs_clients(&self) -> bool {
        self.topology.is_some() || self.edges > 1
    }
}

/// Caches, and what requests mean to them.
pub struct CooperationPlan {
    pub hierarchy: Hierarchy,
    /// As what the requests are to be read; none: as without these caches.
    pub model: Option<CacheModel>,
}

impl CooperationPlan {
    /// The same with the first of these policies that a cache can have.
    #[must_use]
    pub fn replacing_by(mut self, policies: &[Policy]) -> Self {
        self.hierarchy.policy = policies.iter().find_map(|policy| policy.online()).unwrap_or_default();
        self
    }
}

/// The caches; none: nobody asked.
pub fn several(
    args: &TogetherArgs,
    named: Option<&str>,
    own: &WorkloadArgs,
    proof: &ProveArgs,
) -> Result<Option<CooperationPlan>, Failure> {
    if let Some(file) = &args.topology {
        if proof.as_proxy.is_some() {
            return Err(Failure::usage(anyhow!("--as does not go with --topology"))
                .hint("the topology says which proxies its caches are"));
        }
        return of_topology(file, named, own, &proof.proxy_dir).map(Some);
    }
    // Requests have the room that --as gives them already.
    let sizes: Vec<u64> = args.layers.iter().map(|layer| layer.size).collect();
    let layers = || Hierarchy::layers(&sizes, usize::from(args.edges), Layout::BODIES);
    Ok((!args.layers.is_empty()).then(|| CooperationPlan { hierarchy: layers(), model: None }))
}

fn of_topology(
    file: &Path,
    named: Option<&str>,
    own: &WorkloadArgs,
    proxy_dirs: &[PathBuf],
) -> Result<CooperationPlan, Failure> {
    let topology = target::topology_in(file, USUAL_BYTES, proxy_dirs)?;
    let shares: Vec<&Share> = topology.caches.iter().map(|cache| &cache.robots).collect();
    let entries = match named {
        Some(name) => {
            assign_caches(&shares, workload::compiled(name, own)?.as_ref()).map_err(Failure::usage)?
        }
        None => of_log(&shares)?,
    };
    let nodes = (0..topology.caches.len()).map(|place| node(&topology, place, proxy_dirs));
    let hierarchy = Hierarchy {
        name: topology.name.clone(),
        nodes: nodes.collect::<Result<_, _>>()?,
        entries,
        policy: Replacement::default(),
    };
    let first = topology.caches.first().map_or("builtin", |cache| cache.proxy());
    let model = CacheModel::from_description(first, proxy_dirs)?.without_overhead();
    Ok(CooperationPlan { hierarchy, model: Some(model) })
}

fn node(topology: &Topology, place: usize, proxy_dirs: &[PathBuf]) -> Result<CacheNode, Failure> {
    let cache = &topology.caches[place];
    let peers = |relation: PeerRelation| {
        cache
            .peers
            .iter()
            .filter(move |bond| bond.relation == relation)
            .map(|bond| bond.to)
            .collect::<Vec<_>>()
    };
    Ok(CacheNode {
        name: cache.name.clone(),
        capacity_bytes: cache.capacity_bytes(),
        layout: CacheModel::from_description(cache.proxy(), proxy_dirs)?.layout,
        siblings: peers(PeerRelation::Sibling),
        parents: peers(PeerRelation::Parent),
        proxy_only: cache.proxy_only,
        // LRU is what a topology says if it says nothing.
        policy: Some(cache.storing.policy).filter(|policy| *policy != Replacement::default()),
        admission: cache.storing.admission,
    })
}

/// The caches of a log's clients, by their weights.
fn of_log(shares: &[&Share]) -> Result<Vec<u16>, Failure> {
    let mut weights = Vec::new();
    for share in shares {
        match share {
            Share::Weight(weight) => weights.push(weight.max(0.0)),
            Share::Groups(_) => {
                return Err(Failure::usage(anyhow!("the topology names robots, and an access log has none"))
                    .hint("write `robots = 1` or another weight for each cache"));
            }
        }
    }
    let total: f64 = weights.iter().sum();
    let mut entries = Vec::new();
    for part in 0..PARTS {
        let at = (f64::from(part) + 0.5) / f64::from(PARTS) * total;
        let mut sum = 0.0;
        let found = weights.iter().position(|weight| {
            sum += weight;
            at < sum
        });
        entries.push(found.unwrap_or_default() as u16);
    }
    Ok(entries)
}
