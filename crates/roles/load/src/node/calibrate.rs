//! Demand of each service on a single node, measured. More and more clients request one service until its rate of responses
//! rises no more.
//!
//! One client alone sees the service's own time. The rate that no more clients can raise is what the busiest part of the
//! node can do: with *p* processors that work without a loss for each other, a service needs *p* / rate of processor time.

use std::net::SocketAddr;
use std::time::Duration;

use assay_cluster::simulate::{OfferedLoad, Service};

use crate::node::NodeError;
use crate::node::clients::{ClientShare, ClientsSpec, ClientsTarget, run};
use crate::node::model_clock::ModelClock;

/// A rate that is not higher by this part is the same.
const RISE: f64 = 0.03;
/// More clients than this are not tried.
const MOST_CLIENTS: u32 = 256;

/// Lengths of the measurements, and the node that is measured.
#[derive(Debug, Clone, Copy)]
pub struct CalibrationSpec {
    pub address: SocketAddr,
    /// Time for each step that is not counted.
    pub warm_up_s: f64,
    /// Time for each step that is.
    pub measure_s: f64,
    /// Seed of the choice of documents.
    pub seed: u64,
    /// Real seconds in a second of the node.
    pub scale: f64,
}

/// Result of a number of clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationStep {
    pub clients: u32,
    pub per_s: f64,
    pub mean_us: f64,
    pub failed: u64,
}

/// Demand of a service on a node.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceDemand {
    /// One client, and then more and more.
    pub steps: Vec<CalibrationStep>,
}

impl ServiceDemand {
    /// Mean response time of a client that is alone.
    pub fn alone_us(&self) -> f64 {
        self.steps.first().map_or(0.0, |step| step.mean_us)
    }

    /// The most responses a second.
    pub fn most_per_s(&self) -> f64 {
        self.steps.iter().map(|step| step.per_s).fold(0.0, f64::max)
    }

    /// Processor time of a request, for a node with `processors` that is busy with nothing else.
    pub fn processor_us(&self, processors: u32) -> f64 {
        let most = self.most_per_s();
        if most > 0.0 { f64::from(processors) * 1e6 / most } else { 0.0 }
    }

    /// Share of a processor's speed that is left when all are busy: what a client alone sees, over what it costs then.
    pub fn shared_speed(&self, processors: u32) -> f64 {
        (self.alone_us() / self.processor_us(processors).max(f64::MIN_POSITIVE)).min(1.0)
    }
}

/// Requests one service from a node, with one client, then two, four and so on, until that brings no more.
pub fn calibrate(spec: &CalibrationSpec, service: &Service) -> Result<ServiceDemand, NodeError> {
    let mut steps: Vec<CalibrationStep> = Vec::new();
    let mut clients = 1;
    loop {
        let step = step(spec, std::slice::from_ref(service), &[1.0], clients)?;
        let before = steps.last().map_or(0.0, |step| step.per_s);
        steps.push(step);
        if step.per_s < before * (1.0 + RISE) || clients >= MOST_CLIENTS || step.failed > 0 {
            return Ok(ServiceDemand { steps });
        }
        clients *= 2;
    }
}

/// Measures a number of clients with a mix of services on a node.
pub fn step(
    spec: &CalibrationSpec,
    services: &[Service],
    weights: &[f64],
    clients: u32,
) -> Result<CalibrationStep, NodeError> {
    let outcome = run(ClientsSpec {
        services: services.to_vec(),
        weights: weights.to_vec(),
        seed: spec.seed,
        load: OfferedLoad::Clients(clients),
        share: ClientShare::ALL,
        target: ClientsTarget::One(spec.address),
        host: None,
        keep_alive: true,
        warm_up_s: spec.warm_up_s,
        measure_s: spec.measure_s,
        surroundings: None,
        check_sizes: false,
        timeout: Duration::from_secs(60),
        clock: ModelClock::now_at(spec.scale),
    })?;
    let (tally, times) = (&outcome.tally, outcome.tally.times());
    let per_s = tally.count() as f64 / spec.measure_s;
    Ok(CalibrationStep { clients, per_s, mean_us: times.mean.unwrap_or(0.0), failed: tally.failures() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_follow_from_the_time_alone_and_the_rate_of_many() {
        let step = |clients, per_s, mean_us| CalibrationStep { clients, per_s, mean_us, failed: 0 };
        let needs = ServiceDemand {
            steps: vec![step(1, 10.0, 100_000.0), step(2, 16.8, 119_000.0), step(4, 16.8, 238_000.0)],
        };
        assert_eq!(needs.alone_us(), 100_000.0);
        assert!((needs.processor_us(2) - 119_047.6).abs() < 1.0);
        assert!((needs.shared_speed(2) - 0.84).abs() < 1e-9);
        assert_eq!(ServiceDemand { steps: vec![] }.processor_us(2), 0.0);
    }
}
