//! What the tests share: a recorder that keeps what they look at, and cluster files.

use std::path::Path;

use assay_cluster::simulate::{
    BaseFile, Cell, CompletedRequest, Experiment, NodeSample, Recorder, cells, read, simulate,
};

/// Counts and sums of one cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    pub responded: u64,
    pub failed: u64,
    pub response_s: f64,
    pub by_server: Vec<u64>,
    /// Nodes seen with so many requests.
    pub in_flight: Vec<u64>,
    /// Seconds × nodes.
    pub looks: u64,
    pub processor: f64,
}

impl Recorder for Seen {
    fn record_response(&mut self, request: &CompletedRequest) {
        self.responded += 1;
        self.response_s += request.response_nanos as f64 / 1e9;
        let server = request.server.0 as usize;
        self.by_server.resize(self.by_server.len().max(server + 1), 0);
        self.by_server[server] += 1;
    }

    fn record_failure(&mut self) {
        self.failed += 1;
    }

    fn record_sample(&mut self, nodes: &[NodeSample]) {
        for node in nodes {
            let has = node.in_flight as usize;
            self.in_flight.resize(self.in_flight.len().max(has + 1), 0);
            self.in_flight[has] += 1;
            self.processor += node.processor;
        }
        self.looks += nodes.len() as u64;
    }
}

impl Seen {
    pub fn mean_s(&self) -> f64 {
        self.response_s / self.responded as f64
    }

    /// Share of nodes that had so many requests or more.
    pub fn tail(&self, least: usize) -> f64 {
        self.in_flight.iter().skip(least).sum::<u64>() as f64 / self.looks as f64
    }
}

/// Reads a cluster from text.
pub fn cluster(text: &str) -> Experiment {
    read("test.toml", text, &|name| Err(format!("no {name} here").into()))
        .unwrap_or_else(|mistake| panic!("{mistake}"))
}

/// Reads a bundled cluster file.
pub fn bundled(name: &str) -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../clusters");
    let text =
        |name: &str| std::fs::read_to_string(folder.join(format!("{name}.toml"))).map_err(|e| e.to_string());
    let resolver = |name: &str| Ok(BaseFile { name: name.to_owned(), text: text(name)? });
    read(name, &text(name).expect("a bundled cluster"), &resolver)
        .unwrap_or_else(|mistake| panic!("{mistake}"))
}

pub fn run(experiment: &Experiment, cell: &Cell) -> Seen {
    let mut seen = Seen::default();
    simulate(experiment, cell, &mut seen);
    seen
}

/// Runs the only cell of an experiment.
pub fn only(text: &str) -> Seen {
    let experiment = cluster(text);
    let all = cells(&experiment);
    assert_eq!(all.len(), 1);
    run(&experiment, &all[0])
}
