//! Simulation of a cluster behind a web switch. Clients, a switch, nodes and links as a discrete-event simulation, with the
//! very policies that a live switch uses.
//!
//! [`Experiment`] is what a cluster file says: services and their mixes, clusters, policies, loads; [`cells`] are its
//! combinations, and [`simulate`] runs one of them. What happens is told to a [`Recorder`]; percentiles and tables are made
//! by its implementations. A request's identity follows from the seed, its client and its number, so all policies get
//! the same requests; everything follows from the seed, so a cell can be repeated bit by bit.
//!
//! *Does not:* open files (a resolver is given to it), know a clock, keep histograms, or print.

mod agenda;
mod experiment;
mod failures;
mod kernel;
mod links;
mod paths;
mod policies;
mod read;
mod references;
mod stream;
mod switch;
mod ways;

pub use experiment::{
    Cell, Cluster, Experiment, Failure, Group, Law, Load, Mix, NamedPolicy, PolicyChoice, Reference,
    ReferenceNode, Service, SwitchSpec, Way, cells,
};
pub use kernel::{NOBODY, NodeSample, PAUSE_AFTER_FAILURE_S, Recorder, Responded, SAMPLE_EVERY_S, simulate};
pub use links::Links;
pub use paths::{document_at, path_of, usual_path};
pub use policies::{choice, site, ward_costs};
pub use read::{Extended, HAND_OVER_S, Resolver, read};
pub use stream::{Requested, Stream, document_of};
pub use switch::Switch;
