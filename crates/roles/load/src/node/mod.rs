//! A cluster to try a switch on: back-end nodes, and clients that send requests without a pause as WebStone's do.
//!
//! Nodes ([`nodes`]) speak HTTP and serve what a cluster file describes: files, and programs that take processor and disk
//! time. A *virtual* node works a request off in `dispatch`'s model of a machine and waits as long as that takes, so dozens
//! fit in a process and on a small machine; a *real* one burns processor time and writes to a disk ([`real`]). Clients
//! ([`clients`]) form a closed loop. What they request is the simulation's stream, request by request, and what comes out
//! has the form of its results, so that a live cluster and a simulated one can be held against each other. WebStone's own
//! files are read as they stand ([`webstone`]), nodes that somebody else started are watched ([`watched`]), and a node's own service times are found by [`calibrate`].
//!
//! *Does not:* balance (that is a switch's work), open settings files, print, or judge results.

pub mod calibrate;
pub mod clients;
mod error;
mod front;
mod house;
pub mod nodes;
mod pace;
pub mod real;
mod serve;
pub mod watched;
pub mod webstone;

pub use error::NodeError;
pub use pace::Pace;
