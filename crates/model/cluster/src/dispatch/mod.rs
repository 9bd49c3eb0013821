//! Balancing policies (which server gets a request), and the model of a node (how long a request takes on its processors, memory,
//! disk and queue), as data structures without I/O.
//!
//! Every policy gets the events and chooses servers, behind one trait, [`Policy`]. Each has a file
//! of its own below [`policies`], with a paragraph on what it does and where it comes from; [`Choice`] names
//! them all and builds one. The same objects drive a live switch and a simulation: time is an argument, chance
//! comes from a seed. [`node`] is a machine that shares its processors between requests, waits for its disk and
//! remembers documents; it says when something will be done, and whoever drives it sees to it that time passes.
//!
//! *Does not:* open sockets, know a clock, parse HTTP, check the health of servers, or retry: it is told.

mod choice;
mod in_flight;
mod members;
mod moment;
pub mod node;
pub mod policies;
mod policy;
mod ring;

pub use choice::Choice;
pub use moment::Moment;
pub use policy::{ClassId, End, Finish, Policy, Request, ServerId, ServerState};
