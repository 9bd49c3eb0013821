//! The stream of requests. A request is a pure function of the seed, the client, and how many requests that client has sent before.

use crate::dispatch::ClassId;
use crate::dispatch::node::Work;
use assay_base::random::{Rng, hash};
use assay_workload::Purpose;

use crate::simulate::experiment::{Service, ServiceTimeLaw};

/// Client's number in the seed of a request in an open loop.
const NOBODY: u64 = u64::MAX;

/// Number of a client in a closed loop, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(pub u32);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedRequest {
    /// Index of the service.
    pub service: u32,
    pub class: ClassId,
    /// Number of the document in its service, from 0.
    pub number: u64,
    /// Hash of the document, for policies and memories.
    pub document: u64,
    pub work: Work,
    /// Bytes of the response.
    pub bytes: u64,
}

/// Requests of one mix. Request *n* of client *c* is the same in a simulation and on a network.
#[derive(Debug)]
pub struct RequestStream {
    services: Vec<Service>,
    /// Cumulative shares of services.
    shares: Vec<f64>,
    /// Cumulative shares of documents, for services with a Zipf exponent.
    popularity: Vec<Vec<f64>>,
    seed: u64,
}

/// Hash of a document, for policies and memories.
pub fn document_of(service: usize, number: u64) -> u64 {
    hash(Purpose::Object, &[service as u64, number])
}

/// Cumulative shares of weights.
fn cumulative(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    for weight in weights {
        sums.push(sums.last().copied().unwrap_or(0.0) + weight);
    }
    let total = sums.last().copied().unwrap_or(1.0);
    sums.iter().map(|sum| sum / total).collect()
}

/// Zipf weight of document `number`, from 0.
pub(crate) fn popularity(number: u64, zipf: f64) -> f64 {
    libm::pow((number + 1) as f64, -zipf)
}

impl RequestStream {
    /// Requests for services with these weights, in any unit.
    pub fn new(services: &[Service], weights: &[f64], seed: u64) -> Self {
        let ranked = |service: &Service| match service.zipf > 0.0 {
            true => cumulative((0..service.documents).map(|number| popularity(number, service.zipf))),
            false => Vec::new(),
        };
        Self {
            services: services.to_vec(),
            shares: cumulative(weights.iter().copied()),
            popularity: services.iter().map(ranked).collect(),
            seed,
        }
    }

    /// Request `number` of a client, or of none (open loop).
    pub fn request(&self, client: Option<ClientId>, number: u64) -> SimulatedRequest {
        let client = client.map_or(NOBODY, |client| u64::from(client.0));
        let mut rng = Rng::of(Purpose::Request, &[self.seed, client, number]);
        let draw = rng.unit();
        let index = self.shares.partition_point(|share| *share <= draw).min(self.shares.len() - 1);
        let service = &self.services[index];
        let number = match self.popularity[index].is_empty() {
            true => rng.below(service.documents),
            false => {
                let draw = rng.unit();
                self.popularity[index].partition_point(|share| *share <= draw) as u64
            }
        };
        let number = number.min(service.documents.saturating_sub(1));
        let document = document_of(index, number);
        let mut time = |mean_s: f64| match service.law {
            ServiceTimeLaw::Constant => mean_s,
            ServiceTimeLaw::Exponential => mean_s * rng.exponential(),
        };
        let (processor_s, disk_s) = (time(service.processor_s), time(service.disk_s));
        let read = (service.documents > 0).then_some((document, service.bytes));
        let work = Work { processor_s, disk_s, document: read };
        SimulatedRequest {
            service: index as u32,
            class: service.class,
            number,
            document,
            work,
            bytes: service.bytes,
        }
    }
}
