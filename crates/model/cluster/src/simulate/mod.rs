//! Discrete-event simulation of a cluster behind a web switch: clients, a switch, nodes and links, with the policies of the live
//! switch.
//!
//! A cluster file is parsed to an [`Experiment`]: services and their mixes, clusters, policies, loads; [`cells`] are its
//! combinations, and [`simulate`] runs one of them. Results go to a [`Recorder`], whose implementations compute percentiles and
//! tables. A request's identity follows from the seed, its client and its number, so all policies get
//! the same requests; everything follows from the seed, so a cell can be repeated bit by bit.
//!
//! *Does not:* open files (a resolver is given to it), know a clock, keep histograms, or print.

mod error;
mod event_queue;
mod experiment;
mod failures;
mod forwarding;
mod kernel;
mod links;
mod paths;
mod policies;
mod read;
mod references;
mod stream;
mod switch;

pub use experiment::{
    Cell, Cluster, Experiment, ForwardingMethod, NamedPolicy, NodeFailure, NodeGroup, OfferedLoad,
    PolicySpec, ReferenceCurve, ReferenceNode, Service, ServiceMix, ServiceTimeLaw, SwitchSpec, cells,
};
pub use kernel::{CompletedRequest, NodeSample, PAUSE_AFTER_FAILURE_S, Recorder, SAMPLE_EVERY_S, simulate};
pub use links::{LinkId, Links};
pub use paths::{default_path, document_at, path_of};
pub use policies::{document_demands, policy_config, ward_costs};
pub use read::{BaseFile, HAND_OVER_S, Resolver, read};
pub use stream::{ClientId, RequestStream, SimulatedRequest, document_of};
pub use switch::Switch;
