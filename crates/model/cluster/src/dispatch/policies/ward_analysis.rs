//! The ward-analysis: cost of each size of WARD's core, and the cheapest.
//!
//! Documents are put in order, most requested first. For each prefix taken as the core: it takes its bytes from every node's
//! memory; what is left of all memories together holds the next documents, each once; the rest is read from disk at every
//! request. A request for a document that is not core arrives at the wrong node (N − 1) times out of N and must be handed
//! over. Source: as [`super::ward`]; here requests that are read from disk pay a seek and their bytes, and loading the
//! memories once is counted too.

/// A document and its number of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentDemand {
    /// Hash, as in a request.
    pub document: u64,
    pub bytes: u64,
    pub requests: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterCosts {
    pub nodes: u32,
    /// Memory for documents of each node.
    pub node_memory_bytes: u64,
    /// Handing a request over to another node.
    pub hand_over_s: f64,
    /// Time to find a document on disk.
    pub disk_seek_s: f64,
    pub disk_bytes_per_s: f64,
}

impl ClusterCosts {
    fn read_s(&self, bytes: u64) -> f64 {
        self.disk_seek_s + bytes as f64 / self.disk_bytes_per_s
    }
}

/// Cost of a core of some size, over all requests.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoreCost {
    /// Documents in the core.
    pub core_documents: usize,
    /// Bytes of those documents.
    pub core_bytes: u64,
    /// Documents each in the memory of one node.
    pub partitioned_documents: usize,
    /// Requests handed over, in seconds.
    pub hand_over_s: f64,
    /// Requests that read the disk, in seconds.
    pub disk_s: f64,
    /// Reading what memories hold, once, in seconds.
    pub load_s: f64,
}

impl CoreCost {
    pub fn total_s(&self) -> f64 {
        self.hand_over_s + self.disk_s + self.load_s
    }
}

/// Result of the analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct WardAnalysis {
    /// The core's documents, most requested first.
    pub core: Vec<u64>,
    /// Cost of the best size.
    pub best: CoreCost,
    /// Cost without a core: every document partitioned.
    pub no_core: CoreCost,
    /// Cost of the largest core that fits.
    pub full_core: CoreCost,
}

/// Finds the cheapest core.
pub fn analyse(documents: &[DocumentDemand], costs: &ClusterCosts) -> WardAnalysis {
    let mut order: Vec<DocumentDemand> = documents.to_vec();
    order.sort_by(|one, other| {
        other
            .requests
            .total_cmp(&one.requests)
            .then(one.bytes.cmp(&other.bytes))
            .then(one.document.cmp(&other.document))
    });
    let sums = Sums::new(&order, costs);
    let mut best = sums.cost(0, costs);
    let (no_core, mut full_core) = (best, best);
    for core in 1..=order.len() {
        if sums.bytes[core] > costs.node_memory_bytes {
            break;
        }
        full_core = sums.cost(core, costs);
        if full_core.total_s() < best.total_s() {
            best = full_core;
        }
    }
    let core = order[..best.core_documents].iter().map(|requested| requested.document).collect();
    WardAnalysis { core, best, no_core, full_core }
}

/// Prefix sums over the documents, so that each size costs one search.
struct Sums {
    bytes: Vec<u64>,
    requests: Vec<f64>,
    /// Seconds to read each of them for every request.
    disk_s: Vec<f64>,
    /// Seconds to read each of them once.
    load_s: Vec<f64>,
}

impl Sums {
    fn new(order: &[DocumentDemand], costs: &ClusterCosts) -> Self {
        let mut sums = Self { bytes: vec![0], requests: vec![0.0], disk_s: vec![0.0], load_s: vec![0.0] };
        for (index, requested) in order.iter().enumerate() {
            let read_s = costs.read_s(requested.bytes);
            sums.bytes.push(sums.bytes[index].saturating_add(requested.bytes));
            sums.requests.push(sums.requests[index] + requested.requests);
            sums.disk_s.push(sums.disk_s[index] + requested.requests * read_s);
            sums.load_s.push(sums.load_s[index] + read_s);
        }
        sums
    }

    fn cost(&self, core: usize, costs: &ClusterCosts) -> CoreCost {
        let nodes = f64::from(costs.nodes.max(1));
        let last = self.bytes.len() - 1;
        let left = costs.node_memory_bytes.saturating_sub(self.bytes[core]);
        let room = left.saturating_mul(u64::from(costs.nodes)).saturating_add(self.bytes[core]);
        // The first document of which the sum exceeds the room is the first on disk.
        let in_memory = (self.bytes.partition_point(|bytes| *bytes <= room) - 1).max(core);
        let elsewhere = (nodes - 1.0) / nodes;
        CoreCost {
            core_documents: core,
            core_bytes: self.bytes[core],
            partitioned_documents: in_memory - core,
            hand_over_s: (self.requests[last] - self.requests[core]) * elsewhere * costs.hand_over_s,
            disk_s: self.disk_s[last] - self.disk_s[in_memory],
            load_s: self.load_s[core] * nodes + self.load_s[in_memory] - self.load_s[core],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COSTS: ClusterCosts = ClusterCosts {
        nodes: 4,
        node_memory_bytes: 1000,
        hand_over_s: 0.001,
        disk_seek_s: 0.01,
        disk_bytes_per_s: 1e6,
    };

    fn document_demands(count: u64, requests: impl Fn(u64) -> f64) -> Vec<DocumentDemand> {
        (0..count)
            .map(|document| DocumentDemand { document, bytes: 100, requests: requests(document) })
            .collect()
    }

    #[test]
    fn a_site_that_fits_one_node_is_all_core() {
        let analysis = analyse(&document_demands(10, |_| 1e6), &COSTS);
        assert_eq!(analysis.best.core_documents, 10);
        assert_eq!(analysis.best.hand_over_s, 0.0);
    }

    #[test]
    fn a_site_of_the_clusters_size_and_equal_documents_has_no_core() {
        // 40 documents fill four nodes exactly; each one in the core would push three to disk.
        let analysis = analyse(&document_demands(40, |_| 1e6), &COSTS);
        assert_eq!(analysis.best.core_documents, 0);
        assert_eq!(analysis.best.disk_s, 0.0);
    }

    #[test]
    fn a_skewed_site_has_a_small_core() {
        let analysis = analyse(&document_demands(60, |n| 1e7 / ((n + 1) as f64).powf(1.5)), &COSTS);
        let core = analysis.best.core_documents;
        assert!((1..10).contains(&core), "{core}");
        assert!(analysis.best.total_s() < analysis.no_core.total_s());
        assert!(analysis.best.total_s() < analysis.full_core.total_s());
    }

    proptest! {
        #[test]
        fn no_other_size_is_cheaper_and_the_core_fits(
            sizes in proptest::collection::vec((1u64..400, 0.0f64..1e5), 1..60), nodes in 1u32..9,
        ) {
            let documents: Vec<_> = sizes.iter().enumerate()
                .map(|(n, (bytes, requests))| DocumentDemand { document: n as u64, bytes: *bytes, requests: *requests })
                .collect();
            let costs = ClusterCosts { nodes, ..COSTS };
            let analysis = analyse(&documents, &costs);
            prop_assert!(analysis.best.core_bytes <= costs.node_memory_bytes);
            prop_assert_eq!(analysis.core.len(), analysis.best.core_documents);
            for other in [analysis.no_core, analysis.full_core] {
                prop_assert!(analysis.best.total_s() <= other.total_s());
            }
        }
    }
}
