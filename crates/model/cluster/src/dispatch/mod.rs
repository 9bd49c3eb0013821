//! Balancing policies (which server gets a request), and the model of a node (how long a request takes on its processors, memory,
//! disk and queue), as data structures without I/O.
//!
//! Every policy gets the events and chooses servers, behind one trait, [`Policy`]. Each has a file
//! of its own below [`policies`], with its algorithm and its source; [`PolicyConfig`] names them all and builds one. The same
//! objects drive a live switch and a simulation: time is an argument, chance comes from a seed. [`node`] is a machine that shares its
//! processors between requests, waits for its disk and caches documents; it returns the time of its next event, and its caller advances
//! it to that time.
//!
//! *Does not:* open sockets, know a clock, parse HTTP, check the health of servers, or retry: those are events that it receives.

mod in_flight;
mod members;
mod moment;
pub mod node;
pub mod policies;
mod policy;
mod policy_config;
mod ring;

pub use moment::Moment;
pub use policy::{ClassId, Completion, Policy, Request, RequestOutcome, ServerId, ServerState};
pub use policy_config::PolicyConfig;
